#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# resume.sh TRAINER - a killed run goes on bit-exactly; a bad checkpoint is passed over
#
# 1. an undisturbed run; 2. the same, one rank killed with SIGKILL at a random
# step, resumed: every loss has the same bits; 3. the newest checkpoint damaged:
# refused by name, the one before is used, same bits again; 4. another grid: one
# clear error; 5. a checkpoint that cannot be written: a warning, training ends.
# Environment: SEED of the random step (default: the time; printed).
set -u
trainer=${1:?usage: resume.sh TRAINER}
seed=${SEED:-$(date +%s)}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}" # what MPI_Init keeps is not ours
dir=$(mktemp -d "${TMPDIR:-/tmp}/fullrank-resume-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

passed=0 failed=0
check() { # check WHAT COMMAND...
    what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok: $what"
    else
        failed=$((failed + 1))
        echo "FAIL: $what"
    fi
}

steps=60
model="--layers 4 --d-model 64 --heads 4 --seq 32 --batch 8 --micro-batch 2 --steps $steps
    --peak-flops 1e9 --quiet --checkpoint-every 10 --keep 3"
# job LOSSES CHECKPOINTS [OPTION]...: runs in this shell's place
job() {
    losses=$1 checkpoints=$2
    shift 2
    exec timeout 100 mpirun --oversubscribe -np 8 "$trainer" --dp 2 --pp 2 --tp 2 $model \
        --loss-file "$losses" --checkpoint-dir "$checkpoints" "$@" </dev/null
}
bits() { # the part of each line that must repeat
    sed 's/,"step_time_s.*//' "$1" >"$1.bits"
}
same_bits() {
    bits "$dir/whole" && bits "$1" && [ "$(wc -l <"$1.bits")" = $steps ] &&
        cmp "$dir/whole.bits" "$1.bits"
}
# The process of one rank: a child of this mpirun that runs the trainer.
rank_pid() { # rank_pid MPIRUN_PID RANK
    for child in $(ps -o pid= --ppid "$1"); do
        if tr '\0' '\n' <"/proc/$child/environ" 2>/dev/null |
            grep -qx "OMPI_COMM_WORLD_RANK=$2"; then
            echo "$child"
            return
        fi
    done
}

(job "$dir/whole" "$dir/ck-whole")
check "the undisturbed run ends well" [ $? = 0 ]

# kill a random rank once the losses show a random step
step=$(awk -v s="$seed" 'BEGIN { srand(s); print 12 + int(rand() * 40) }')
victim=$(awk -v s="$seed" 'BEGIN { srand(s + 1); print int(rand() * 8) }')
echo "seed $seed: rank $victim dies after step $step"
job "$dir/killed" "$dir/ck" 2>"$dir/killed.err" &
timer=$!
until grep -q "\"step\":$step," "$dir/killed" 2>/dev/null || ! kill -0 $timer 2>/dev/null; do
    sleep 0.02
done
mpirun=$(ps -o pid= --ppid $timer | tr -d ' ')
pid=$(rank_pid "${mpirun:-0}" "$victim")
check "the victim is there" [ -n "$pid" ]
[ -n "$pid" ] && kill -9 "$pid"
wait $timer
check "the job dies with its rank" [ $? != 0 ]
check "it had not finished" [ "$(wc -l <"$dir/killed")" -lt $steps ]
cp -r "$dir/ck" "$dir/ck-before"
cp "$dir/killed" "$dir/killed-before"

(job "$dir/killed" "$dir/ck")
check "the resumed run ends well" [ $? = 0 ]
check "every loss has the bits of the undisturbed run" same_bits "$dir/killed"

# damage the newest checkpoint that the kill left behind
newest=$(ls -d "$dir"/ck-before/step-*/manifest | tail -n 1)
newest=${newest%/manifest}
mkdir "$dir/ck-small"
cp -r "$dir"/ck-before/step-* "$dir/ck-small"
newest=$dir/ck-small/${newest##*/}
printf 'x' | dd of="$newest/rank-00002.shard" bs=1 seek=5000 conv=notrunc 2>/dev/null
cp "$dir/killed-before" "$dir/damaged"
(job "$dir/damaged" "$dir/ck-small") 2>"$dir/damaged.err"
check "a run with a damaged checkpoint ends well" [ $? = 0 ]
check "the damaged shard is refused by name" \
    grep -q "${newest##*/}/rank-00002.shard: corrupt" "$dir/damaged.err"
check "every loss again has the same bits" same_bits "$dir/damaged"

timeout 100 mpirun --oversubscribe -np 8 "$trainer" --dp 1 --pp 4 --tp 2 $model \
    --checkpoint-dir "$dir/ck" </dev/null 2>"$dir/grid.err"
check "a checkpoint of another grid is an error" [ $? = 1 ]
check "with one clear line" \
    [ "$(grep -c '^fullrank-train: error: checkpoint: .*written by the grid' "$dir/grid.err")" = 1 ]

# a file where each checkpoint's folder should be: no shard can be written
mkdir "$dir/ck-full"
for n in 10 20 30 40 50 60; do
    : >"$dir/ck-full/step-000000$n"
done
(job "$dir/full" "$dir/ck-full" --resume none) 2>"$dir/full.err"
check "a run that cannot write checkpoints ends well" [ $? = 0 ]
check "and says so for each of them" \
    [ "$(grep -c 'warning: checkpoint: .*not written.*training goes on' "$dir/full.err")" = 6 ]
check "every loss is there" same_bits "$dir/full"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
