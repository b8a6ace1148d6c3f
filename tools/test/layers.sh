# SPDX-License-Identifier: Apache-2.0
# check-layers finds each kind of fault in a made-up house, and none in a clean one
root=$1
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
mkdir -p "$house"/tools "$house"/src/{base,judge/test,stats,cli}
cp "$root"/tools/{layers,libraries}.tsv "$house"/tools/
n=0 bad=0

ok() { # ok TEXT STATUS
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; bad=1; fi
}

# finds FILE LINE-OF-CODE EXPECTED: the line alone makes check-layers fail with that text
finds() {
    printf '%s\n' "$2" >"$house/src/$1"
    "$root"/tools/check-layers "$house" >"$house/out"
    [ $? -eq 1 ] && grep -qF "src/$1:1: $3" "$house/out"
    ok "$1: $2" $?
    rm "$house/src/$1"
}

printf '#include "base/err.h"\n#include "stats/robust.h"\n/* time( and labels */\nint x; /* open(\n label */\nconst char *s = "inject";\n' >"$house"/src/judge/a.c
printf '#include <jansson.h>\n#include "base/http.h"\nint f(void) { return rand() + time(0); }\n' >"$house"/src/judge/test/test_a.c
"$root"/tools/check-layers "$house"
ok "a clean house is clean" $?
finds judge/b.c '#include "store/ledger.h"' 'judge must not include store/ledger.h'
finds judge/b.c '#include <policy/policy.h>' 'judge must not include policy/policy.h'
finds base/b.h '#  include "stats/robust.h"' 'base must not include stats/robust.h'
finds cli/b.c '#include <sqlite3.h>' 'sqlite3.h belongs to store'
finds cli/b.c '#include <curl/curl.h>' 'curl/curl.h belongs to base'
finds stats/b.c 'int f(void) { return (int)time(0); }' 'stats is pure and must not call time()'
finds judge/b.c 'void f(void) { printf("x"); }' 'judge is pure and must not call printf()'
finds judge/b.c 'int f(void) { return fr_mono_ns() > 3; }' 'judge is pure and must not call fr_mono_ns()'
finds judge/b.c 'int injected_rank;' "judge must know nothing of 'injected_rank'"
finds judge/b.c 'int label;' "judge must know nothing of 'label'"
finds judge/b.c 'int truth_schedule;' "judge must know nothing of 'truth_schedule'"
echo "1..$n"
exit $bad
