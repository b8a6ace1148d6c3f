#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
test_description='fullrank demo --quick: one fault, found and survived, with the account of it'
. "$FR_T/lib.sh"

test_expect_success 'the demo finds its fault and ends well' '
	fullrank demo --quick --seed 7 -o json --html report.html >result 2>log || { cat log; false; }
'
test_expect_success 'its JSON has the schema and is right' '
	test "$(json "d[\"schema\"]" <result)" = fullrank.demo/1 &&
	test "$(json "[f[\"correct\"] for f in d[\"faults\"]]" <result)" = "[True]" &&
	test "$(json "d[\"faults\"][0][\"named_rank\"] == d[\"faults\"][0][\"rank\"]" <result)" = True &&
	test "$(json "abs(d[\"ledger_error_s\"]) < 0.001" <result)" = True && test "$(json "d[\"wrong_drains\"]" <result)" = 0
'
test_expect_success 'the report is one file that asks nobody for anything' '
	grep -q "</html>" report.html && ! grep -qE "https?://|<script|<link|<img" report.html && grep -c "<svg" report.html >n && test "$(cat n)" -ge 4
'
test_expect_success 'the progress names fault, finding, decision and recovery' '
	for w in FAULT FOUND DECIDED RECOVER; do grep -q "$w" log || return 1; done
'
test_expect_success 'a fault that does not exist is refused at once' '
	test_expect_code 2 fullrank demo --faults slow,fire 2>err && grep -q fire err
'
test_done
