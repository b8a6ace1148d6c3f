# SPDX-License-Identifier: Apache-2.0
# install-deps with dpkg and apt-get played by scripts: what it asks for, and that the guard comes and goes
root=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"/bin "$dir"/tree/tools
cp -r "$root"/tools/packages "$dir"/tree/tools/
# The guard's place is moved into the scratch folder; nothing of this machine is touched.
sed "s#^policy=.*#policy=$dir/policy-rc.d#" "$root"/tools/install-deps >"$dir"/tree/tools/install-deps
n=0 bad=0

ok() {
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; bad=1; fi
}
script() {
    printf '#!/bin/bash\n%s\n' "$2" >"$dir/bin/$1"
    chmod +x "$dir/bin/$1"
}
deps() {
    rm -f "$dir"/calls
    PATH=$dir/bin:$PATH bash "$dir"/tree/tools/install-deps "$@" >"$dir"/out 2>&1
}
every=$(sed -e 's/#.*//' -e 's/|.*//' "$root"/tools/packages/demo.txt | tr -s ' \n' ' ')
script id 'echo 0'
script apt-get "echo \"\$@\" >>$dir/calls; cat $dir/policy-rc.d >>$dir/guard 2>/dev/null; exit 0"

script dpkg-query "for p in $every; do echo \"\$p ii\"; done"
deps demo
[ $? -eq 0 ] && [ ! -e "$dir"/calls ] && [ ! -s "$dir"/out ]
ok "with everything there it does nothing and says nothing" $?

script dpkg-query "for p in $every; do [ \$p = libuv1-dev ] && continue; [ \$p = pkg-config ] && p=pkgconf; echo \"\$p ii\"; done; echo 'libuv1-dev rc'"
deps demo
[ $? -eq 0 ] && grep -q -- '--no-install-recommends .* libuv1-dev$' "$dir"/calls && ! grep -q pkg-config "$dir"/calls
ok "only what is missing is installed; an alternative counts; a removed package does not" $?
grep -q 'exit 101' "$dir"/guard && [ ! -e "$dir"/policy-rc.d ]
ok "a guard against starting services stood there meanwhile and is gone" $?

echo mine >"$dir"/policy-rc.d
deps demo
[ "$(cat "$dir"/policy-rc.d)" = mine ]
ok "a guard that was there already stays as it was" $?
rm "$dir"/policy-rc.d

script apt-get "echo \"\$1\" >>$dir/calls; [ \$1 = update ] || { [ \$(wc -l <$dir/calls) -ge 3 ]; }"
deps demo
[ $? -eq 0 ] && [ "$(tr '\n' ' ' <"$dir"/calls)" = "install update install " ]
ok "a failed installation is tried again after one update" $?

script apt-get "echo \"\$1\" >>$dir/calls; echo 'E: no such package'; exit 100"
deps demo
[ $? -eq 1 ] && grep -q 'E: no such package' "$dir"/out && grep -q '^install-deps: error: apt-get could not install' "$dir"/out &&
    [ "$(wc -l <"$dir"/calls)" -le 3 ] && [ ! -e "$dir"/policy-rc.d ]
ok "a failure that stays is told with its reason, and the guard is gone" $?

script id 'echo 1000'
script sudo 'exec "$@"'
script apt-get 'exit 0'
deps demo
ok "an ordinary user goes through sudo" $?
deps nonsense
[ $? -eq 2 ]
ok "wrong usage is refused" $?
FULLRANK_NO_DEPS=1 deps demo
[ $? -eq 0 ] && [ ! -e "$dir"/calls ]
ok "it can be told to keep out" $?
echo "1..$n"
exit $bad
