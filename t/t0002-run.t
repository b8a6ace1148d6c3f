#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
test_description='fullrank run: a clean small job from end to end in a private fleet'
. "$FR_T/lib.sh"

test_expect_success 'a training job runs to its end, every step has a loss' '
	fullrank run --nodes 2 --ranks-per-node 2 -- fullrank-train --dp 2 --tp 2 --steps 30 $SMALL --checkpoint-dir ck --loss-file loss >out 2>err &&
	all_losses loss 30
'
test_expect_success 'the state of a good run is removed' '
	test -z "$(ls "$FULLRANK_STATE_DIR" 2>/dev/null)"
'
test_expect_success 'the books of a kept run answer SQL, and nothing changes them' '
	fullrank run -q --state-dir "$PWD/st" --nodes 2 -- fullrank-train --dp 2 --steps 20 $SMALL --loss-file loss 2>err &&
	dir=$(dirname "$(find st -name ledger.db)") &&
	fullrank ledger query --state-dir "$dir" -o json "SELECT step, loss FROM steps ORDER BY step DESC LIMIT 1" >out &&
	grep -q "\"step\":20,\"loss\":" out &&
	fullrank ledger query --state-dir "$dir" -o csv "SELECT count(*) AS n, \"a,b\" AS t FROM steps" >out && printf "n,t\n20,\"a,b\"\n" | cmp - out &&
	test_expect_code 2 fullrank ledger query --state-dir "$dir" "DELETE FROM steps" 2>err && test "$(wc -l <err)" = 1 &&
	test_expect_code 2 fullrank ledger query --state-dir "$dir" "SELECT x FROM y" 2>err && test "$(wc -l <err)" = 1 &&
	test_expect_code 6 fullrank ledger query --state-dir nowhere "SELECT 1" 2>err && grep -q "nowhere/ledger.db" err
'
test_expect_success 'output passes through, on both streams' '
	fullrank run -q -- sh -c "echo to stdout; echo to stderr >&2" >out 2>err && grep -q "^to stdout$" out && grep -q "^to stderr$" err
'
test_expect_success 'without a probe library the job runs as well' '
	fullrank run -q --probe off -- true
'
test_expect_success 'the own exit code of the job is passed on' '
	test_expect_code 7 fullrank run -q --max-attempts 1 -- sh -c "exit 7" 2>err
'
test_expect_success 'a job that something else restarts is started once, and its owner is named' '
	(SLURM_JOB_ID=7 SBATCH_REQUEUE=1 && export SLURM_JOB_ID SBATCH_REQUEUE && test_expect_code 7 fullrank run -- sh -c "echo x >>starts; exit 7" 2>err) &&
	test "$(wc -l <starts)" = 1 && grep -q "Slurm (--requeue) restarts this job" err
'
test_expect_success 'unless fullrank is told to own, or not to' '
	rm -f starts && (SLURM_JOB_ID=7 SBATCH_REQUEUE=1 && export SLURM_JOB_ID SBATCH_REQUEUE &&
		test_expect_code 7 fullrank run -q --own-restarts --max-attempts 2 -- sh -c "echo x >>starts; exit 7" 2>err) && test "$(wc -l <starts)" = 2 &&
	rm -f starts && test_expect_code 7 fullrank run -q --no-own-restarts -- sh -c "echo x >>starts; exit 7" 2>err && test "$(wc -l <starts)" = 1 &&
	test_expect_code 2 fullrank run --own-restarts --no-own-restarts -- true 2>err && test "$(wc -l <err)" = 1
'
test_expect_success 'what the launcher would take for its own is refused' '
	test_expect_code 127 fullrank run -q --max-attempts 1 -- echo : x 2>err && grep -q "wrap the command" err
'
test_expect_success 'a program that is not there, or is none, is refused before anything is started' '
	test_expect_code 127 fullrank run ./nothing 2>err && test "$(wc -l <err)" = 1 && grep -q "./nothing" err &&
	echo x >plain && test_expect_code 126 fullrank run ./plain 2>err && test "$(wc -l <err)" = 1
'
# A controller of somebody else may listen at the default address: then that one is asked.
test_expect_success 'the only private run is found without its address, its token with it' '
	{ unset FULLRANK_SERVER FULLRANK_TOKEN_FILE; true; } &&
	fullrank run --name findme -- sleep 300 2>err & run=$! &&
	wait_for 20 grep -q "attempt 1" err &&
	if ! python3 -c "import socket; socket.create_connection((\"127.0.0.1\", 7880))" 2>/dev/null; then
		fullrank job list >jobs && grep -q findme jobs && fullrank node drain n0 --reason test
	fi &&
	kill -INT $run && { wait $run; test $? = 130; }
'
test_expect_success 'Ctrl-C cancels the job and ends all of it' '
	fullrank run --name cancelme -- sh -c "echo \$\$ >rank.pid; exec sleep 300" 2>err & run=$! &&
	wait_for 20 test -s rank.pid && kill -INT $run && { wait $run; test $? = 130; } &&
	test_expect_code 1 kill -0 "$(cat rank.pid)"
'
test_done
