#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
test_description='fullrank scan job-log and scan flight-recorder: foreign evidence without a server'
. "$FR_T/lib.sh"

test_expect_success 'a job log gives its first cause, from a file and from standard input' '
	printf "[rank3]: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)\nsrun: error: gpu-7: task 7: Out Of Memory\n" >log &&
	fullrank scan job-log log -o json >out &&
	grep -q "\"first_cause\":{\"family\":\"scheduler\",\"blame\":\"app\",\"signature\":\"host_oom\",\"action\":\"fix_job\",\"line_number\":2,\"rank\":7,\"host\":\"gpu-7\"" out &&
	fullrank scan job-log - -o json <log >out2 && test_cmp out out2
'
test_expect_success 'a rules file of a site is asked first, a wrong one is refused with its line' '
	echo "mine cause app app mine fix_job  task 7" >rules && fullrank scan job-log log --rules rules >out && grep -q "mine" out &&
	echo "mine nothing" >rules && test_expect_code 1 fullrank scan job-log log --rules rules 2>err && grep -q "rules:1:" err
'
test_expect_success 'a file that is not there is an error' '
	test_expect_code 1 fullrank scan job-log none 2>err && grep -q "^fullrank: error: none: " err
'
test_expect_success 'dumps name the rank that never entered' '
	mkdir dumps && for r in 0 1 2; do
		seq=2 && test $r = 1 && seq=1
		state=scheduled && test $r = 1 && state=completed
		echo "{\"version\": \"2.9\", \"pg_config\": {\"0\": {\"desc\": \"default_pg\", \"ranks\": \"[0, 1, 2]\"}}, \"entries\": [{\"process_group\": [\"0\", \"default_pg\"], \"collective_seq_id\": $seq, \"profiling_name\": \"nccl:all_reduce\", \"state\": \"$state\", \"is_p2p\": false}]}" >dumps/nccl_trace_rank_$r
	done && fullrank scan flight-recorder dumps -o json >out &&
	grep -q "\"culprits\":\[{\"rank\":1,\"rule\":\"never_entered\",\"group\":\"default_pg\"" out
'
test_expect_success 'a pickle that names a function is refused, and its rank has no dump' '
	printf "\200\002cos\nsystem\n." >dumps/nccl_trace_rank_1 && fullrank scan flight-recorder dumps -o json >out &&
	grep -q "offset 2: opcode 0x63 (GLOBAL)" out && grep -q "\"rank\":1,\"rule\":\"no_dump\"" out
'
test_expect_success 'a folder without dumps is an error' '
	mkdir empty && test_expect_code 1 fullrank scan flight-recorder empty 2>err && grep -q "no dump there" err
'
test_done
