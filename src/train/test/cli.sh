#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cli.sh TRAINER - a bad command line or input is one clear line and an exit status
set -u
trainer=${1:?usage: cli.sh TRAINER}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}" # what MPI_Init keeps is not ours
dir=$(mktemp -d "${TMPDIR:-/tmp}/fullrank-cli-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
passed=0 failed=0

# refuse STATUS WORD RANKS OPTION...: exactly one error line, with WORD and advice
refuse() {
    status=$1 word=$2 ranks=$3
    shift 3
    timeout 60 mpirun --oversubscribe -np "$ranks" "$trainer" "$@" </dev/null \
        >"$dir/out" 2>"$dir/err"
    got=$?
    if [ $got = "$status" ] && [ "$(grep -c '^fullrank-train: error: ' "$dir/err")" = 1 ] &&
        grep '^fullrank-train: error: ' "$dir/err" | grep -qF -e "$word" &&
        ! grep -q MPI_ABORT "$dir/err" && [ ! -s "$dir/out" ]; then
        passed=$((passed + 1))
        echo "ok: $*"
    else
        failed=$((failed + 1))
        echo "FAIL: $*: exit $got, expected $status and one line with '$word'"
        cat "$dir/err"
    fi
}

printf 'too short' >"$dir/short"
refuse 2 "--nonsense" 2 --nonsense
refuse 2 "make the product equal" 2 --dp 3
refuse 2 "--heads 3" 2 --tp 2 --heads 3 --d-model 96
refuse 2 "--layers 3" 2 --pp 2 --layers 3
refuse 2 "--batch 6" 2 --dp 2 --batch 6
refuse 2 "--d-model 100" 1 --d-model 100
refuse 2 "rank 7" 2 --dp 2 --pause loader:1:7:1
refuse 1 "$dir/missing" 2 --dp 2 --data "$dir/missing"
refuse 1 "too short for --seq" 2 --dp 2 --data "$dir/short"
refuse 1 "--checkpoint-dir" 2 --dp 2 --checkpoint-dir /proc/none
refuse 1 "--loss-file" 2 --dp 2 --loss-file "$dir/none/losses"

refuse 1 "diverged" 2 --dp 2 --layers 1 --d-model 16 --heads 2 --seq 16 --quiet --warmup 0 \
    --lr 1000 --min-lr 1000 --clip 0 --weight-decay 1000 --steps 50

for option in --help --version; do
    if [ "$(timeout 60 mpirun -np 2 --oversubscribe "$trainer" $option </dev/null |
        grep -c fullrank-train)" = 1 ]; then
        passed=$((passed + 1))
        echo "ok: $option"
    else
        failed=$((failed + 1))
        echo "FAIL: $option is not told once"
    fi
done

# a pause stands still and changes nothing else
pauses="--pause loader:2:1:0.3 --pause compile:3:all:0.2 --pause eval:2:0:0.1
    --pause checkpoint:4:all:0.1"
run() {
    losses=$1
    shift
    timeout 60 mpirun --oversubscribe -np 2 "$trainer" --dp 2 --layers 1 --d-model 16 --heads 2 \
        --seq 16 --batch 4 --micro-batch 2 --steps 4 --eval-every 2 --checkpoint-every 2 \
        --checkpoint-dir "$dir/ck" --loss-file "$losses" --peak-flops 1e9 --quiet \
        --resume none "$@" </dev/null
}
if run "$dir/a.losses" && run "$dir/b.losses" $pauses &&
    [ "$(sed 's/,"step_time_s.*//' "$dir/a.losses")" = "$(sed 's/,"step_time_s.*//' "$dir/b.losses")" ] &&
    awk -F'step_time_s":' '{ t[NR] = $2 + 0 } END { exit !(t[2] >= 0.3 && t[3] >= 0.2) }' \
        "$dir/b.losses"; then
    passed=$((passed + 1))
    echo "ok: pauses take their time and change no loss"
else
    failed=$((failed + 1))
    echo "FAIL: pauses"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
