#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# grids.sh TRAINER - every grid of 8 ranks gives the single-rank loss curve
#
# 50 steps of the same model and seed on one rank and on all 10 grids
# dp x pp x tp = 8; every loss must be within 1e-4 (relative) of the single rank's.
# One more grid runs twice: same grid, same seed, same bits.
# Environment: STEPS (50).
set -u
trainer=${1:?usage: grids.sh TRAINER}
steps=${STEPS:-50}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}" # what MPI_Init keeps is not ours
dir=$(mktemp -d "${TMPDIR:-/tmp}/fullrank-grids-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# run RANKS DP PP TP FILE
run() {
    timeout 300 mpirun --oversubscribe -np "$1" "$trainer" --dp "$2" --pp "$3" --tp "$4" \
        --layers 8 --heads 8 --d-model 64 --seq 32 --batch 16 --micro-batch 2 \
        --steps "$steps" --peak-flops 1e9 --quiet --loss-file "$5" </dev/null
}

passed=0 failed=0
if ! run 1 1 1 1 "$dir/one"; then
    echo "FAIL: the single rank did not run"
    exit 1
fi
for grid in "1 1 8" "1 8 1" "8 1 1" "1 2 4" "1 4 2" "2 1 4" "2 4 1" "4 1 2" "4 2 1" "2 2 2"; do
    set -- $grid
    if run 8 "$1" "$2" "$3" "$dir/grid" &&
        worst=$(awk -F'[:,]' -v steps="$steps" '
            { loss = $4 }
            FNR == NR { one[$2] = loss; next }
            { n++; d = (loss - one[$2]) / one[$2]; if (d < 0) d = -d; if (d > worst) worst = d }
            END { printf "%.2e", worst; exit !(n == steps && worst <= 1e-4) }' \
            "$dir/one" "$dir/grid"); then
        passed=$((passed + 1))
        echo "ok: dp $1 pp $2 tp $3: largest difference ${worst}"
    else
        failed=$((failed + 1))
        echo "FAIL: dp $1 pp $2 tp $3: largest difference ${worst:-unknown}, allowed 1e-4"
    fi
    rm -f "$dir/grid"
done
# the times differ from run to run, the rest of each line must not
if run 8 2 2 2 "$dir/a" && run 8 2 2 2 "$dir/b" &&
    sed 's/,"step_time_s.*//' "$dir/a" >"$dir/a.bits" &&
    sed 's/,"step_time_s.*//' "$dir/b" >"$dir/b.bits" && [ -s "$dir/a.bits" ] &&
    cmp "$dir/a.bits" "$dir/b.bits"; then
    passed=$((passed + 1))
    echo "ok: the same grid twice: the same bits"
else
    failed=$((failed + 1))
    echo "FAIL: the same grid twice: other bits"
fi
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
