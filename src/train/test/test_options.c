/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "options.h"

static int parse(struct fr_options *o, struct fr_err *err, const char *a, const char *b)
{
    char *argv[] = {(char *)"fullrank-train", (char *)a, (char *)b, NULL};

    return fr_options_parse(1 + (a != NULL) + (b != NULL), argv, o, err);
}

static void without_options_the_defaults_make_a_job_of_one_rank(void **state)
{
    struct fr_options o;

    (void)state;
    assert_int_equal(parse(&o, NULL, NULL, NULL), 0);
    assert_int_equal(fr_options_check(&o, 1, NULL), 0);
    assert_true(o.resume);
    assert_int_equal(o.data_count, 1);
    assert_string_equal(o.data[0], "/usr/share/common-licenses");
}

static void the_defaults_fit_every_grid_of_eight_ranks(void **state)
{
    struct fr_options o;

    (void)state;
    assert_int_equal(parse(&o, NULL, NULL, NULL), 0);
    o.micro_batch = 1;
    for (o.dp = 1; o.dp <= 8; o.dp *= 2)
        for (o.pp = 1; o.pp * o.dp <= 8; o.pp *= 2) {
            o.tp = 8 / o.dp / o.pp;
            assert_int_equal(fr_options_check(&o, 8, NULL), 0);
        }
}

static void a_value_may_follow_an_equals_sign_or_a_space(void **state)
{
    struct fr_options o;

    (void)state;
    assert_int_equal(parse(&o, NULL, "--d-model=96", NULL), 0);
    assert_int_equal(o.d_model, 96);
    assert_int_equal(parse(&o, NULL, "--d-model", "64"), 0);
    assert_int_equal(o.d_model, 64);
    assert_int_equal(parse(&o, NULL, "--resume", "none"), 0);
    assert_false(o.resume);
}

static void what_is_not_understood_is_named(void **state)
{
    static const char *const bad[][2] = {
        {"--nonsense", NULL},
        {"--d", "1"},
        {"word", NULL},
        {"--dp", "0"},
        {"--dp", "2x"},
        {"--dp", ""},
        {"--dp", "99999999999999999999"},
        {"--dp", NULL},
        {"--lr", "nan"},
        {"--lr", "-1"},
        {"--quiet=1", NULL},
        {"--resume", "maybe"},
        {"--loss-file", ""},
        {"--pause", "nap:1:all:1"},
        {"--pause", "eval:0:all:1"},
        {"--pause", "eval:1:all"},
        {"--pause", "eval:1:all:1:1"},
        {"--pause", "eval:1:-2:1"},
        {"--pause", "eval:1:all:-1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fr_options o;
        struct fr_err err = {{0}};

        assert_int_equal(parse(&o, &err, bad[i][0], bad[i][1]), -EINVAL);
        assert_non_null(strstr(err.text, strncmp(bad[i][0], "--quiet", 7) ? bad[i][0] : "--quiet"));
        assert_null(strchr(err.text, '\n'));
    }
}

static void a_pause_says_who_stands_still_when_and_for_how_long(void **state)
{
    struct fr_options o;

    (void)state;
    assert_int_equal(parse(&o, NULL, "--pause=loader:5:3:1.5", "--pause=eval:6:all:2"), 0);
    assert_true(fr_options_pause_s(&o, FR_PAUSE_LOADER, 5, 3) == 1.5);
    assert_true(fr_options_pause_s(&o, FR_PAUSE_LOADER, 5, 2) == 0);
    assert_true(fr_options_pause_s(&o, FR_PAUSE_LOADER, 4, 3) == 0);
    assert_true(fr_options_pause_s(&o, FR_PAUSE_EVAL, 6, 7) == 2);
    assert_true(fr_options_pause_s(&o, FR_PAUSE_CHECKPOINT, 6, 7) == 0);
    assert_int_equal(fr_options_check(&o, 1, NULL), -EINVAL); /* no rank 3 there */
}

static void numbers_that_do_not_fit_each_other_are_refused(void **state)
{
    static const struct {
        const char *option, *value, *word;
        int64_t world;
    } bad[] = {
        {"--dp", "2", "mpirun -np", 1},       {"--tp", "3", "--heads", 3},
        {"--pp", "3", "--layers", 3},         {"--heads", "3", "--d-model", 1},
        {"--batch", "6", "--micro-batch", 1}, {"--min-lr", "1", "--lr", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fr_options o;
        struct fr_err err = {{0}};

        assert_int_equal(parse(&o, NULL, bad[i].option, bad[i].value), 0);
        assert_int_equal(fr_options_check(&o, bad[i].world, &err), -EINVAL);
        assert_non_null(strstr(err.text, bad[i].word));
    }
}

static void help_wins_over_everything_else(void **state)
{
    struct fr_options o;

    (void)state;
    assert_int_equal(parse(&o, NULL, "--nonsense", "--help"), 0);
    assert_true(o.help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_options_the_defaults_make_a_job_of_one_rank),
        cmocka_unit_test(the_defaults_fit_every_grid_of_eight_ranks),
        cmocka_unit_test(a_value_may_follow_an_equals_sign_or_a_space),
        cmocka_unit_test(what_is_not_understood_is_named),
        cmocka_unit_test(a_pause_says_who_stands_still_when_and_for_how_long),
        cmocka_unit_test(numbers_that_do_not_fit_each_other_are_refused),
        cmocka_unit_test(help_wins_over_everything_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
