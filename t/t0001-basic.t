#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
test_description='fullrank without a server: help, suggestions, exit codes, formats'
. "$FR_T/lib.sh"

test_expect_success 'help lists every command and ends well' '
	fullrank help >out && grep -q "^  demo" out && grep -q "^  inject kill" out &&
	fullrank --help >out2 && test_cmp out out2
'
test_expect_success 'every command has a help of its own' '
	fullrank help | sed -n "s/^  \([a-z][a-z]*\( [a-z][a-z-]*\)*\).*  .*/\1/p" >all &&
	test $(wc -l <all) -ge 20 &&
	while read -r noun verb rest; do
		case "$verb" in "" | "--"*) verb= ;; esac
		fullrank $noun $verb --help >help || { echo "$noun $verb"; return 1; }
	done <all
'
test_expect_success 'no command is wrong usage and shows the help on stderr' '
	test_expect_code 2 fullrank >out 2>err && test_must_be_empty out && grep -q "^Usage" err
'
test_expect_success 'an unknown command suggests the nearest' '
	test_expect_code 2 fullrank stauts 2>err &&
	echo "fullrank: error: no command stauts (did you mean status?)" >want && test_cmp want err
'
test_expect_success 'an unknown verb suggests the nearest' '
	test_expect_code 2 fullrank node drian n1 2>err && grep -q "did you mean drain?" err
'
test_expect_success 'an unknown option suggests the nearest' '
	test_expect_code 2 fullrank run --node 2 -- true 2>err && grep -q "nodes" err
'
test_expect_success 'a noun alone says what there is' '
	test_expect_code 2 fullrank incident 2>err && grep -q "list, show, ack" err
'
test_expect_success 'the help of a noun lists its commands' '
	for words in "job --help" "help job" "--help job"; do
		fullrank $words >out && grep -q "^  job watch" out && ! grep -q "^  node" out || return 1
	done
'
test_expect_success 'a missing operand is wrong usage' '
	test_expect_code 2 fullrank node show 2>err && grep -q "node show: give NODE (usage: fullrank node show NODE)" err
'
test_expect_success 'too many operands of a command without any leave no stray blank' '
	test_expect_code 2 fullrank demo x 2>err && grep -q "(usage: fullrank demo)" err
'
test_expect_success 'a word of three letters is not taken for another one' '
	test_expect_code 2 fullrank foo 2>err && ! grep -q "did you mean" err
'
test_expect_success 'an unknown format is wrong usage' '
	test_expect_code 2 fullrank -o xml status 2>err && grep -q "table, json, jsonl, csv" err
'
test_expect_success 'a server that does not answer is exit code 5, in one line' '
	test_expect_code 5 fullrank --server http://127.0.0.1:9 status 2>err && test "$(wc -l <err)" = 1 && grep -q "^fullrank: error: no controller answers at http://127.0.0.1:9 (" err
'
test_expect_success 'with -v the error says what the network said' '
	test_expect_code 5 fullrank -v --server http://127.0.0.1:9 status 2>err && grep -q "FULLRANK_SERVER): ." err
'
test_expect_success 'options may stand before, between and behind the words' '
	test_expect_code 5 fullrank --server http://127.0.0.1:9 -o json node list 2>err &&
	test_expect_code 5 fullrank node --server http://127.0.0.1:9 list -o json 2>err
'
test_expect_success 'the version is told in both ways' '
	fullrank --version >a && fullrank version >b && test_cmp a b && fullrank version -o json | json "d[\"schema\"]"
'
test_expect_success 'a bad key in the settings names file and line' '
	mkdir -p cfg/fullrank && printf "[agent]\ncontroler = x\n" >cfg/fullrank/config &&
	test_expect_code 2 env XDG_CONFIG_HOME="$PWD/cfg" fullrank status 2>err && grep -q "config:2" err && grep -q "controller" err
'
test_expect_success 'injecting needs a victim' '
	test_expect_code 2 fullrank inject kill 2>err && grep -q -- "--rank" err
'
test_done
