/* SPDX-License-Identifier: Apache-2.0 */
/* test_diag.c - judging apart from measuring; a busy machine passes, a stopped process does not */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "diag/test.h"

static const struct fr_diag_test *test_named(const char *name)
{
    for (size_t i = 0; i < FR_DIAG_TEST_COUNT; i++)
        if (strcmp(FR_DIAG_TESTS[i].name, name) == 0)
            return &FR_DIAG_TESTS[i];
    fail_msg("no test %s", name);
    return NULL;
}

static void the_verdict_follows_the_floor_and_its_direction(void **state)
{
    struct fr_diag_test least = {.judging = FR_DIAG_AT_LEAST, .floor = 2},
                        most = {.judging = FR_DIAG_AT_MOST, .floor = 2},
                        cohort = {.judging = FR_DIAG_AT_LEAST, .floor = NAN};

    (void)state;
    assert_true(fr_diag_judge(&least, &(struct fr_diag_sample){.value = 2}));
    assert_false(fr_diag_judge(&least, &(struct fr_diag_sample){.value = 1.999}));
    assert_true(fr_diag_judge(&most, &(struct fr_diag_sample){.value = 2}));
    assert_false(fr_diag_judge(&most, &(struct fr_diag_sample){.value = 2.001}));
    assert_true(fr_diag_judge(&cohort, &(struct fr_diag_sample){.value = 0}));
    assert_false(fr_diag_judge(
        &cohort, &(struct fr_diag_sample){.value = NAN})); /* missing is not healthy */
    assert_false(fr_diag_judge(&most, &(struct fr_diag_sample){.value = NAN}));
    assert_true(fr_diag_judge(&most, &(struct fr_diag_sample){.value = NAN, .skipped = true}));
}

static void every_test_is_complete_and_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < FR_DIAG_TEST_COUNT; i++) {
        const struct fr_diag_test *t = &FR_DIAG_TESTS[i];

        assert_ptr_equal(test_named(t->name), t);
        assert_true(t->text && t->unit && t->measure && t->levels && t->reason);
    }
    assert_int_equal(fr_diag_level_parse("verify"), FR_DIAG_VERIFY);
    assert_int_equal(fr_diag_level_parse("nonsense"), 0);
}

struct outcome {
    size_t n, passed;
};

static void count(const struct fr_diag_result *r, void *arg)
{
    struct outcome *o = arg;

    o->n++;
    o->passed += r->passed;
    if (!r->passed)
        print_message("%s: %g %s: %s\n", r->test->name, r->sample.value, r->test->unit,
                      r->sample.detail);
}

static pid_t burner(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile uint64_t i = 0;; i++)
            ;
    }
    return pid;
}

static void a_contended_machine_passes(void **state)
{
    pid_t load[6];
    struct outcome o = {0};
    uint64_t begun;

    (void)state;
    for (int i = 0; i < 6; i++)
        load[i] = burner();
    begun = fr_mono_ns();
    fr_diag_run(FR_DIAG_VERIFY, "/tmp", 15.0, count, &o); /* the agent's own limit */
    begun = fr_mono_ns() - begun;
    for (int i = 0; i < 6; i++) {
        kill(load[i], SIGKILL);
        waitpid(load[i], NULL, 0);
    }
    assert_int_equal(o.n, FR_DIAG_TEST_COUNT);
    assert_int_equal(o.passed, o.n);
    print_message("%.2f s against six busy processes\n", (double)begun * 1e-9);
}

/* Stopped and let go in turn, as `inject slow` does: half of its time is taken away. */
static void a_process_that_is_stopped_half_of_the_time_fails(void **state)
{
    const struct fr_diag_test *t = test_named("scheduling");
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        struct fr_diag_context cx = {NULL, UINT64_MAX};
        struct fr_diag_sample s = {.value = NAN};

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        t->measure(&cx, &s);
        _exit(s.skipped ? 3 : fr_diag_judge(t, &s) ? 1 : 2);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        kill(pid, SIGSTOP);
        usleep(20000);
        kill(pid, SIGCONT);
        usleep(20000);
    }
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 3)
        skip();
    assert_int_equal(WEXITSTATUS(status), 2);
}

static void a_folder_that_cannot_be_written_fails_the_disk_test_and_says_why(void **state)
{
    const struct fr_diag_test *t = test_named("disk");
    struct fr_diag_context cx = {"/nonexistent/folder", UINT64_MAX};
    struct fr_diag_sample s = {.value = NAN};

    (void)state;
    t->measure(&cx, &s);
    assert_false(fr_diag_judge(t, &s));
    assert_non_null(strstr(s.detail, "/nonexistent/folder"));
    s = (struct fr_diag_sample){.value = NAN};
    cx.scratch_dir = NULL;
    t->measure(&cx, &s);
    assert_true(s.skipped);
}

static void when_time_is_over_the_rest_fails_as_not_run(void **state)
{
    struct outcome o = {0};

    (void)state;
    fr_diag_run(FR_DIAG_VERIFY, NULL, -1, count, &o);
    assert_int_equal(o.n, FR_DIAG_TEST_COUNT);
    assert_int_equal(o.passed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_verdict_follows_the_floor_and_its_direction),
        cmocka_unit_test(every_test_is_complete_and_has_a_name_of_its_own),
        cmocka_unit_test(a_contended_machine_passes),
        cmocka_unit_test(a_process_that_is_stopped_half_of_the_time_fails),
        cmocka_unit_test(a_folder_that_cannot_be_written_fails_the_disk_test_and_says_why),
        cmocka_unit_test(when_time_is_over_the_rest_fails_as_not_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
