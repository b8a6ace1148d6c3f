/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test.h - the tests that a node can be put to: one table
 *
 * A drained node comes back only after its own test; a site runs longer ones before it trusts a new
 * node. A test measures one figure; whether that is good is judged apart, by a floor that any sound
 * machine reaches, or (by the caller, who has the figures of all nodes) against the cohort.
 *
 * Tests of the level "verify" run beside other work: they are short, run at nice 10, and measure
 * what the machine gave to them in relation to the CPU time they got, so that a busy machine passes
 * and a stopped, throttled or broken one does not.
 *
 * Unit:    of each test, in its row.
 * Threads: a run belongs to one thread, which it makes nice; run it on a thread of its own.
 * Memory:  up to 32 MiB while a test of memory runs.
 */
#ifndef FR_DIAG_TEST_H
#define FR_DIAG_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fr_diag_level {
    FR_DIAG_VERIFY = 1,
    FR_DIAG_QUICK = 2,
    FR_DIAG_MEDIUM = 4,
    FR_DIAG_LONG = 8
}; /* bits */

struct fr_diag_context {
    const char *scratch_dir; /* for the disk test; NULL: it is left out */
    uint64_t deadline_ns;    /* CLOCK_MONOTONIC; a test gives up beyond it */
};

enum fr_diag_judging {
    FR_DIAG_AT_LEAST, /* passed when value >= floor */
    FR_DIAG_AT_MOST   /* passed when value <= floor */
};

/* What was measured. */
struct fr_diag_sample {
    double value;     /* NaN: could not be measured; why is in detail */
    bool skipped;     /* this machine has nothing to be measured here: no verdict */
    char detail[200]; /* one sentence with the numbers behind the value */
};

struct fr_diag_test {
    const char *name;
    const char *text; /* what it measures */
    const char *unit;
    unsigned levels; /* bits of enum fr_diag_level */
    double seconds;  /* about */
    enum fr_diag_judging judging;
    double floor;       /* NaN: judged against the cohort only, any value passes here */
    const char *reason; /* of the floor */
    void (*measure)(const struct fr_diag_context *cx, struct fr_diag_sample *ret);
};

struct fr_diag_result {
    const struct fr_diag_test *test;
    struct fr_diag_sample sample;
    bool passed;
    uint64_t duration_ns;
};

extern const struct fr_diag_test FR_DIAG_TESTS[];
extern const size_t FR_DIAG_TEST_COUNT;

/* The level of that name, or 0. */
unsigned fr_diag_level_parse(const char *name);

/* The verdict on a sample; pure. What could not be measured does not pass; what was skipped does.
 */
bool fr_diag_judge(const struct fr_diag_test *t, const struct fr_diag_sample *s);

/* Run the tests of a level in the order of the table, each result given to fn. Returns how many
 * ran. limit_s: all together. */
size_t fr_diag_run(unsigned level, const char *scratch_dir, double limit_s,
                   void (*fn)(const struct fr_diag_result *r, void *arg), void *arg);

#endif /* FR_DIAG_TEST_H */
