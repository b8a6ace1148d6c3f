/* SPDX-License-Identifier: Apache-2.0 */
/* test_admit.c - law 11: whatever is forged, the segment is refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "agent/admit.h"
#include "sense/proc/process.h"

static uint32_t ranks[] = {2, 3};
static const struct fr_assignment A[2] = {
    {.job = "j1",
     .attempt = 2,
     .epoch = 7,
     .uid = 1000,
     .session = 500,
     .ranks = ranks,
     .nranks = 2},
    {.job = "j2",
     .attempt = 1,
     .epoch = 9,
     .uid = 1001,
     .cgroup = "/jobs/j2",
     .ranks = ranks,
     .nranks = 2},
};
static const struct fr_claims C = {.pid = 77,
                                   .uid = 1000,
                                   .starttime = 123,
                                   .rank = 3,
                                   .world = 8,
                                   .attempt = 2,
                                   .epoch = 7,
                                   .job = "j1"};
static const struct fr_facts F = {
    .file_pid = 77, .file_uid = 1000, .alive = true, .uid = 1000, .session = 500, .starttime = 123};

static enum fr_verdict judge(struct fr_claims c, struct fr_facts f)
{
    size_t i = 99;

    return fr_admit(&c, &f, A, 2, &i);
}

static void an_honest_rank_is_believed(void **state)
{
    struct fr_claims c = C;
    struct fr_facts f = F;
    size_t i = 99;

    (void)state;
    assert_int_equal(fr_admit(&c, &f, A, 2, &i), FR_ADMIT_YES);
    assert_int_equal(i, 0);
    strcpy(c.job, "j2");
    c.attempt = 1;
    c.epoch = 9;
    c.uid = f.uid = f.file_uid = 1001;
    f.cgroup_of = 2;
    assert_int_equal(fr_admit(&c, &f, A, 2, &i), FR_ADMIT_YES);
    assert_int_equal(i, 1);
}

static void each_single_forgery_is_refused(void **state)
{
    struct fr_claims c;
    struct fr_facts f;

    (void)state;
    f = F, f.file_uid = 1001;
    assert_int_equal(judge(C, f), FR_ADMIT_UID);
    f = F, f.uid = 1001;
    assert_int_equal(judge(C, f), FR_ADMIT_UID);
    c = C, c.uid = 0;
    assert_int_equal(judge(c, F), FR_ADMIT_UID);
    f = F, f.session = 501;
    assert_int_equal(judge(C, f), FR_ADMIT_SESSION);
    f = F, f.session = 501, f.cgroup_of = 2; /* in the cgroup of another job */
    assert_int_equal(judge(C, f), FR_ADMIT_SESSION);
    f = F, f.session = 0;
    assert_int_equal(judge(C, f), FR_ADMIT_SESSION);
    c = C, c.starttime = 124;
    assert_int_equal(judge(c, F), FR_ADMIT_STARTTIME);
    c = C, c.pid = 78;
    assert_int_equal(judge(c, F), FR_ADMIT_PID);
    c = C, c.rank = 4;
    assert_int_equal(judge(c, F), FR_ADMIT_RANK);
    c = C, c.epoch = 8;
    assert_int_equal(judge(c, F), FR_ADMIT_EPOCH);
    c = C, c.epoch = 6; /* an old attempt that still runs */
    assert_int_equal(judge(c, F), FR_ADMIT_EPOCH);
    c = C, c.attempt = 1;
    assert_int_equal(judge(c, F), FR_ADMIT_EPOCH);
    c = C, strcpy(c.job, "j2");
    assert_true(fr_verdict_is_refusal(judge(c, F)));
    c = C, strcpy(c.job, "j3"); /* a job that nobody runs here: never believed */
    assert_int_equal(judge(c, F), FR_ADMIT_LATER);
    c = C, c.job[0] = '\0';
    assert_int_equal(judge(c, F), FR_ADMIT_LATER);
}

static void a_rank_that_does_not_know_its_number_yet_waits(void **state)
{
    struct fr_claims c = C;
    size_t i;

    (void)state;
    c.rank = -1;
    assert_int_equal(judge(c, F), FR_ADMIT_LATER);
    assert_int_equal(fr_admit(&C, &F, A, 0, &i), FR_ADMIT_LATER);
}

static void what_a_dead_process_left_is_told_as_a_death_or_swept(void **state)
{
    struct fr_claims c = C;
    struct fr_facts f = F;

    (void)state;
    f.alive = false;
    f.uid = f.session = 0;
    assert_int_equal(judge(c, f), FR_ADMIT_DEAD);
    c.epoch = 6;
    assert_int_equal(judge(c, f), FR_ADMIT_STALE);
    f.file_uid = 1001; /* another user's file is neither believed nor removed */
    assert_int_equal(judge(c, f), FR_ADMIT_UID);
    c = C, f = F, f.starttime = 999; /* the pid was reused by a later process */
    assert_int_equal(judge(c, f), FR_ADMIT_DEAD);
}

/* Every field of claims and facts set to a wrong value: nothing but the untouched pair may pass. */
static void no_combination_of_forgeries_passes(void **state)
{
    (void)state;
    for (unsigned m = 0; m < 1u << 9; m++) {
        struct fr_claims c = C;
        struct fr_facts f = F;

        c.uid += m & 1u;
        c.starttime += m >> 1 & 1u;
        c.rank += (int32_t)(m >> 2 & 1u);
        c.attempt += m >> 3 & 1u;
        c.epoch += m >> 4 & 1u;
        f.file_uid += m >> 5 & 1u;
        f.uid += m >> 6 & 1u;
        f.session += m >> 7 & 1u;
        c.job[1] = m >> 8 & 1u ? '3' : '1';
        assert_int_equal(judge(c, f) == FR_ADMIT_YES, m == 0);
        assert_true(strlen(fr_verdict_text(judge(c, f))) > 3);
    }
}

static void facts_of_this_process_are_what_the_kernel_says(void **state)
{
    struct fr_facts f;
    struct fr_proc_stat st;

    (void)state;
    fr_facts_read((uint32_t)getpid(), 42, NULL, 0, &f);
    assert_int_equal(fr_proc_stat_read("", (uint32_t)getpid(), &st), 0);
    assert_true(f.alive);
    assert_int_equal(f.uid, getuid());
    assert_int_equal(f.session, getsid(0));
    assert_int_equal(f.starttime, st.starttime);
    assert_int_equal(f.file_uid, 42);
    fr_facts_read(0, 0, NULL, 0, &f);
    assert_false(f.alive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_honest_rank_is_believed),
        cmocka_unit_test(each_single_forgery_is_refused),
        cmocka_unit_test(a_rank_that_does_not_know_its_number_yet_waits),
        cmocka_unit_test(what_a_dead_process_left_is_told_as_a_death_or_swept),
        cmocka_unit_test(no_combination_of_forgeries_passes),
        cmocka_unit_test(facts_of_this_process_are_what_the_kernel_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
