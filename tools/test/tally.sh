# SPDX-License-Identifier: Apache-2.0
# run-tests counts the cases of programs, and cuts the shard's jobs into three bins
root=$1
python3 - "$root" <<'END'
import importlib.machinery
import importlib.util
import sys

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("run_tests", sys.argv[1] + "/tools/run-tests")
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
loader.exec_module(module)
number, bad = 0, 0


def ok(text, good):
    global number, bad
    number += 1
    bad |= not good
    print(("ok " if good else "not ok ") + f"{number} - {text}")


def counted(*program):
    tally = module.Tally()
    tally.add_program(*program)
    return tally.passed, tally.failed, tally.skipped


CMOCKA = """[==========] Running 4 test(s).
[ RUN      ] a
[       OK ] a
[ RUN      ] b
[  FAILED  ] b
[ RUN      ] c
[  SKIPPED ] c
[ RUN      ] d
[  FAILED  ] d
[==========] 4 test(s) run.
[  PASSED  ] 1 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] c
[  FAILED  ] 2 test(s), listed below:
[  FAILED  ] b
[  FAILED  ] d
"""
TAP = "ok 1 - first\nnot ok 2 - second\nok 3 # skip third (missing GPU)\nok then\n1..3\n"

ok("the cases of a cmocka program count one by one", counted("x", "fail", "", CMOCKA) == (1, 2, [("x:c", "the test says so")]))
got = counted("x", "fail", "", TAP)
ok("the cases of a TAP script too", got[:2] == (1, 1) and got[2][0][1] == "third (missing GPU)")
ok("another program counts once", counted("x", "run", "", "hello") == (1, 0, []))
ok("one that died counts as failed beside what had passed", counted("x", "fail", "SEGFAULT", "[       OK ] a\n") == (1, 1, []))
ok("a skip by exit status tells the last line", counted("x", "notrun", "SKIP_RETURN_CODE=77", "no GPU\n") == (0, 0, [("x", "no GPU")]))
ok("a program that is missing has failed", counted("x", "notrun", "Unable to find executable", "") == (0, 1, []))

jobs = [(f"j{i}", float(3 + i * 7 % 11), "shell", "true") for i in range(20)]
bins = module.balance(jobs)
sums = [sum(j[1] for j in b) for b in bins]
ok("every job is in one bin", sorted(j for b in bins for j in b) == sorted(jobs))
ok("the bins differ by less than the longest job", max(sums) - min(sums) <= max(j[1] for j in jobs))
ok("the same jobs give the same bins", module.balance(list(reversed(jobs))) == bins)
listed = module.shard_jobs({"t.unlisted": ([], 600.0)})
ok("a slow test that no table lists is there with its time limit", ("slow:t.unlisted", 10.0, "slow", "t.unlisted") in listed)
ok("the table's own jobs fit", max(sum(j[1] for j in b) for b in module.balance(listed)) <= module.BIN_MINUTES)
print(f"1..{number}")
sys.exit(bad)
END
