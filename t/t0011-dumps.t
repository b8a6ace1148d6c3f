#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
test_description='a stuck job is asked for its Flight Recorder dumps before it is ended; the ranks are real, the recorder beside each is a fake'
. "$FR_T/lib.sh"

# What PyTorch does, beside the rank: a pipe, looked at now and then, and a file when something comes through it.
cat >recorder.py <<'EOF'
import os, time
rank = os.environ["OMPI_COMM_WORLD_RANK"]
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + rank + ".pipe"
if os.path.exists(pipe):
    os.unlink(pipe)
os.mkfifo(pipe)
fd = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
while True:
    if os.read(fd, 128):
        with open(os.environ["TORCH_FR_DUMP_TEMP_FILE"] + rank, "w") as f:
            f.write("dump of rank " + rank + "\n")
    time.sleep(0.3)
EOF
TORCH_NCCL_DEBUG_INFO_PIPE_FILE=$PWD/trigger_ TORCH_FR_DUMP_TEMP_FILE=$PWD/dump_
export TORCH_NCCL_DEBUG_INFO_PIPE_FILE TORCH_FR_DUMP_TEMP_FILE

bundled() {
	find st -path "*/bundles/*" -name "$1" | grep -q .
}

test_expect_success 'a job of two nodes and a spare makes steps' '
	fullrank run --state-dir "$PWD/st" --nodes 2 --ranks-per-node 2 --spares 1 -- sh -c "python3 \"$PWD/recorder.py\" & exec fullrank-train --dp 2 --tp 2 --steps 900 $SMALL --checkpoint-dir ck" >out 2>err & RUN=$! &&
	wait_for 20 grep -q "private controller" err && FULLRANK_SERVER=$(sed -n "s/.*private controller for this run: \([^ ]*\).*/\1/p" err) && export FULLRANK_SERVER &&
	FULLRANK_TOKEN_FILE=$(sed -n "s/.*FULLRANK_TOKEN_FILE=.\(.*\).$/\1/p" err) && export FULLRANK_TOKEN_FILE &&
	wait_for 30 job_step_over 40
'
test_expect_success 'a rank hangs, and the others tell what they wait for' '
	fullrank inject hang --rank 1 -o json >hit &&
	wait_for 20 bundled "*.flight-recorder.txt" && for rank in 0 2 3; do wait_for 10 bundled "*.nccl_trace_rank_$rank" || return 1; done &&
	test "$(cat $(find st -path "*/bundles/*" -name "*.nccl_trace_rank_3"))" = "dump of rank 3"
'
test_expect_success 'the rank that is stopped is not asked, and the bundle says so' '
	! bundled "*.nccl_trace_rank_1" && cat $(find st -path "*/bundles/*" -name "*.flight-recorder.txt") >notes && grep -q "^rank 1: not asked, its process is stopped" notes
'
test_expect_success 'then the job goes on without the node' '
	wait_for 30 sh -c "fullrank job list -o json | grep -q \"\\\"attempt\\\": *2\"" && kill -INT $RUN && { wait $RUN; test $? = 130; }
'
test_done
