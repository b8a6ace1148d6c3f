# SPDX-License-Identifier: Apache-2.0
# run-bench makes one table of what benchmarks print, and fails when one fails or says nothing
root=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"/tools "$dir"/build/bench
cp "$root"/tools/run-bench "$dir"/tools/
n=0 bad=0

ok() {
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; bad=1; fi
}
program() {
    printf '#!/bin/bash\n%s\n' "$2" >"$dir/build/bench/$1"
    chmod +x "$dir/build/bench/$1"
}
table() {
    "$dir"/tools/run-bench "$@" 2>"$dir"/err | tr -s ' ' | sed 's/ $//' >"$dir"/out
    return "${PIPESTATUS[0]}"
}

table
[ $? -eq 1 ] && grep -q 'no benchmark' "$dir"/err
ok "nothing to run is told" $?
program a 'echo "a remark"; printf "ring record\t7.31\tns\t2.1 %%\n"'
program b 'printf "%-44s %12.2f %-12s +-%.1f%%\n" "MPI_Allreduce of 8 bytes" 12.5 ns/call 1.5'
table
[ $? -eq 0 ] && grep -qx 'ring record 7.31 ns 2.1 %' "$dir"/out && grep -qx 'MPI_Allreduce of 8 bytes 12.50 ns/call +-1.5%' "$dir"/out &&
    [ "$(wc -l <"$dir"/out)" -eq 3 ]
ok "results in both forms become rows, remarks do not" $?
table b
[ $? -eq 0 ] && [ "$(wc -l <"$dir"/out)" -eq 2 ]
ok "a pattern chooses" $?
program c 'echo nothing measured'
table c
[ $? -eq 1 ] && grep -q 'printed no result' "$dir"/err
ok "a benchmark without a result has failed" $?
program c 'echo "x 1 ns"; echo why >&2; exit 3'
table c
[ $? -eq 1 ] && grep -q 'why' "$dir"/err && grep -q 'failed' "$dir"/err
ok "a benchmark that fails shows its output" $?
echo "1..$n"
exit $bad
