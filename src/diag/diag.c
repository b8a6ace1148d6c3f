/* SPDX-License-Identifier: Apache-2.0 */
/* diag.c - the table of tests, judging, and the run; see test.h */
#define _GNU_SOURCE
#include "diag/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "diag/measure.h"

#define ALL_LEVELS (FR_DIAG_VERIFY | FR_DIAG_QUICK | FR_DIAG_MEDIUM | FR_DIAG_LONG)

/* Floors are a tenth or less of what the slowest server of the last ten years does: they find what
 * is broken, not what is old. What is merely slow shows against the cohort. */
const struct fr_diag_test FR_DIAG_TESTS[] = {
    {"scheduling",
     "share of the time in which this process was neither running nor runnable though it wanted to "
     "run",
     "ratio", ALL_LEVELS, 0.6, FR_DIAG_AT_MOST, 0.2,
     "a process that is not stopped or throttled loses less than 0.01, at any load",
     fr_diag_measure_scheduling},
    {"arithmetic", "multiply-adds of small matrices per second of CPU time", "GFLOP/s", ALL_LEVELS,
     0.4, FR_DIAG_AT_LEAST, 0.1, "plain scalar code reaches 1 GFLOP/s on any 64-bit server core",
     fr_diag_measure_arithmetic},
    {"checksum", "repeated arithmetic that gave another result than the first time", "errors",
     ALL_LEVELS, 0.2, FR_DIAG_AT_MOST, 0, "arithmetic that differs from itself is a broken core",
     fr_diag_measure_checksum},
    {"memory", "bytes copied per second of CPU time, beyond the caches", "GB/s", ALL_LEVELS, 0.3,
     FR_DIAG_AT_LEAST, 0.2, "one core of any server copies 3 GB/s", fr_diag_measure_memory},
    {"disk", "write and fsync of 256 KiB in the spool's folder, median of 5", "s", ALL_LEVELS, 0.4,
     FR_DIAG_AT_MOST, 2.0, "a disk that takes longer than this holds up checkpoints and the spool",
     fr_diag_measure_disk},
    {"loopback", "round trip of one byte over TCP on loopback, best of 200", "us", ALL_LEVELS, 0.2,
     FR_DIAG_AT_MOST, 5000, "some tens of microseconds, some hundreds on a busy machine",
     fr_diag_measure_loopback},
};
const size_t FR_DIAG_TEST_COUNT = sizeof FR_DIAG_TESTS / sizeof FR_DIAG_TESTS[0];

unsigned fr_diag_level_parse(const char *name)
{
    static const struct {
        const char *name;
        unsigned level;
    } LEVELS[] = {{"verify", FR_DIAG_VERIFY},
                  {"quick", FR_DIAG_QUICK},
                  {"medium", FR_DIAG_MEDIUM},
                  {"long", FR_DIAG_LONG}};

    for (size_t i = 0; i < sizeof LEVELS / sizeof LEVELS[0]; i++)
        if (strcmp(name, LEVELS[i].name) == 0)
            return LEVELS[i].level;
    return 0;
}

bool fr_diag_judge(const struct fr_diag_test *t, const struct fr_diag_sample *s)
{
    if (s->skipped)
        return true;
    if (isnan(s->value))
        return false; /* missing is not healthy */
    if (isnan(t->floor))
        return true;
    return t->judging == FR_DIAG_AT_LEAST ? s->value >= t->floor : s->value <= t->floor;
}

size_t fr_diag_run(unsigned level, const char *scratch_dir, double limit_s,
                   void (*fn)(const struct fr_diag_result *r, void *arg), void *arg)
{
    struct fr_diag_context cx = {scratch_dir, fr_mono_ns() + (uint64_t)(limit_s * 1e9)};
    id_t self = (id_t)gettid();
    int nice_before = getpriority(PRIO_PROCESS, self);
    size_t ran = 0;

    setpriority(PRIO_PROCESS, self, 10); /* gives way to the jobs of the other nodes */
    for (size_t i = 0; i < FR_DIAG_TEST_COUNT; i++) {
        struct fr_diag_result r = {.test = &FR_DIAG_TESTS[i]};
        uint64_t begun = fr_mono_ns();

        if (!(r.test->levels & level))
            continue;
        r.sample.value = NAN;
        if (begun > cx.deadline_ns)
            snprintf(r.sample.detail, sizeof r.sample.detail,
                     "not run: the %.1f s for all tests were over", limit_s);
        else
            r.test->measure(&cx, &r.sample);
        r.passed = fr_diag_judge(r.test, &r.sample);
        r.duration_ns = fr_mono_ns() - begun;
        fn(&r, arg);
        ran++;
    }
    setpriority(PRIO_PROCESS, self,
                nice_before); /* works for root; a worker thread stays nice otherwise */
    return ran;
}
