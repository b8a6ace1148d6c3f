# SPDX-License-Identifier: Apache-2.0
# fault.sh - one rank is hit by `inject $KIND`; it has to be found as $FOUND, and the job to end as if nothing had happened

start_job() {
	fullrank run --nodes 2 --ranks-per-node 1 --spares 1 -- fullrank-train --dp 2 --steps 900 $SMALL --checkpoint-dir ck --loss-file loss \
		>out 2>err & RUN=$!
	wait_for 20 grep -q "private controller" err && FULLRANK_SERVER=$(sed -n 's/.*private controller for this run: \([^ ]*\).*/\1/p' err) &&
	export FULLRANK_SERVER
}

isolated() {
	fullrank decision list -o json >decisions && test "$(json "len([x for x in d[\"items\"] if x[\"choice\"] == \"isolate\"])" <decisions)" -ge 1
}

test_expect_success 'a job of two nodes and a spare makes steps' '
	start_job && wait_for 30 job_step_over 40
'
test_expect_success 'inject hits one rank and says which' '
	fullrank inject $KIND --rank 1 -o json >hit && test "$(json "d[\"victims\"][0][\"rank\"]" <hit)" = 1
'
test_expect_success 'the rank is named' '
	wait_for 10 found $FOUND 1
'
test_expect_success 'its node is isolated by a decision that says why' '
	node=$(json "d[\"victims\"][0][\"node\"]" <hit) &&
	wait_for 20 isolated && test "$(json "[x for x in d[\"items\"] if x[\"choice\"] == \"isolate\"][0][\"node\"]" <decisions)" = "$node"
'
test_expect_success 'the listings show it to people' '
	fullrank status >status && grep -q "fullrank-train" status && fullrank incident list | grep -q $FOUND && fullrank incident show 1 >one && grep -q "^  - " one &&
	fullrank job show >card && grep -q "^attempt" card && fullrank node list -n --fields node,state -o csv | grep -q "^n0,"
'
test_expect_success 'the second attempt makes steps' '
	wait_for 20 sh -c "fullrank job list -o json | grep -q \"\\\"attempt\\\": *2\""
'
test_expect_success 'the job ends well, each step has one loss, those made again the same' '
	{ wait $RUN || { cat err; false; }; } && all_losses loss 900
'
test_done
