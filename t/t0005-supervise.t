#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
test_description='fullrank supervise: kill -9 of controller and agent while a job runs; the job goes on, the view is right again'
. "$FR_T/lib.sh"

lines() { test -f "$1" && wc -l <"$1" || echo 0; }
lines_over() { test "$(lines "$1")" -gt "$2"; }

test_expect_success 'a fleet of two nodes' '
	start_controller && start_agent n0 && A0=$AGENT && start_agent n1 &&
	wait_for 15 node_is n0 healthy && wait_for 15 node_is n1 healthy
'
test_expect_success 'a supervised job makes steps' '
	fullrank supervise --nodes 2 --ranks-per-node 1 -- fullrank-train --dp 2 --steps 1500 $SMALL --checkpoint-dir ck --loss-file loss >out 2>err & JOB=$! &&
	PIDS="$PIDS $JOB" && wait_for 30 job_step_over 30
'
test_expect_success 'the job goes on while the controller is dead' '
	kill -9 $CONTROLLER && at=$(lines loss) && wait_for 20 lines_over loss $((at + 50))
'
test_expect_success 'the view is right again within 5 s of its restart' '
	start_controller && wait_for 5 job_is running && at=$(fullrank job list -o json | json "d[\"items\"][0].get(\"step\") or 0") && wait_for 5 job_step_over $at
'
test_expect_success 'the attempt is still the first: nothing was restarted' '
	test "$(fullrank job list -o json | json "d[\"items\"][0][\"attempt\"]")" = 1
'
test_expect_success 'the job goes on while an agent is dead, and the agent is believed again' '
	kill -9 $A0 && at=$(lines loss) && wait_for 20 lines_over loss $((at + 50)) && start_agent n0 &&
	wait_for 10 node_is n0 healthy && at=$(fullrank job list -o json | json "d[\"items\"][0][\"step\"]") && wait_for 10 job_step_over $at
'
test_expect_success 'the job ends well' '
	{ wait $JOB || { cat err; false; }; } && all_losses loss 1500 && wait_for 5 job_is done
'
test_expect_success 'its books balance' '
	fullrank job report --check --html report.html >report && grep -q "WHERE TIME WENT" report && grep -q "</html>" report.html
'
test_expect_success 'a drain by hand and its return, with a reason kept' '
	fullrank node drain n1 --reason "fan" && wait_for 5 node_is n1 drained && fullrank node show n1 | grep -q fan &&
	fullrank node resume n1 && wait_for 20 node_is n1 probation
'
test_expect_success 'two nodes at once are asked about' '
	test_expect_code 1 fullrank node drain "n[0-1]" </dev/null 2>err && grep -q -- "--yes" err && fullrank node drain "n[0-1]" --dry-run
'
test_expect_success 'what is not there is exit code 6' '
	test_expect_code 6 fullrank node show n99 && test_expect_code 6 fullrank job show nonsense && test_expect_code 6 fullrank incident show 999
'
test_expect_success 'a change without the token is refused with exit code 5' '
	test_expect_code 5 env -u FULLRANK_TOKEN_FILE fullrank node drain n0 2>err && grep -q token err
'
test_done
