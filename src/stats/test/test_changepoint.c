/* SPDX-License-Identifier: Apache-2.0 */
/* test_changepoint.c - planted shifts are found where they are, noise is left alone */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef FR_HAVE_GSL
#include <gsl/gsl_statistics_double.h>
#endif

#include "base/rng.h"
#include "stats/changepoint.h"

/* Montgomery, table 9.3: slack 0.5, limit 5; average run lengths, both sides. */
static void the_cusums_run_lengths_are_the_published_ones(void **state)
{
    static const struct {
        double shift, run_length;
    } TABLE[] = {{0, 465}, {0.5, 38.0}, {1.0, 10.4}, {2.0, 4.01}, {3.0, 2.57}};
    enum { RUNS = 4000 };
    struct fr_rng r = {1};

    (void)state;
    for (size_t i = 0; i < sizeof TABLE / sizeof TABLE[0]; i++) {
        double sum = 0;

        for (int run = 0; run < RUNS; run++) {
            struct fr_cusum c;

            assert_int_equal(fr_cusum_init(&c, 10, 2, 0.5, 5), 0);
            while (fr_cusum_add(&c, 10 + 2 * (TABLE[i].shift + fr_rng_normal(&r))) == 0)
                ;
            sum += (double)c.n;
        }
        assert_true(fabs(sum / RUNS / TABLE[i].run_length - 1) <
                    0.06); /* about 4 standard errors */
    }
}

static void the_cusum_knows_direction_and_onset(void **state)
{
    struct fr_rng r = {2};
    int early = 0;

    (void)state;
    for (int run = 0; run < 2000; run++) {
        int direction = fr_rng_below(&r, 2) ? 1 : -1, got = 0;
        uint64_t onset = 20 + fr_rng_below(&r, 30), since;
        struct fr_cusum c;

        fr_cusum_init(&c, 1, 0.01, 0.5, 8);
        for (uint64_t i = 0; got == 0; i++)
            got =
                fr_cusum_add(&c, 1 + 0.01 * (fr_rng_normal(&r) + (i >= onset ? 6 * direction : 0)));
        since = fr_cusum_since(&c, direction);
        assert_int_equal(got, direction);
        assert_true(c.n <= onset + 3); /* 6 sd against a limit of 8 */
        assert_true(since <= onset);
        early += since + 10 < onset; /* noise had begun to climb before */
        fr_cusum_reset(&c);
        assert_int_equal(fr_cusum_add(&c, 1), 0);
    }
    assert_true(early < 2000 / 20);
}

static void the_cusum_refuses_what_is_no_number(void **state)
{
    struct fr_cusum c, before;

    (void)state;
    assert_int_equal(fr_cusum_init(&c, 1, 0, 0.5, 5), -EINVAL);
    assert_int_equal(fr_cusum_init(&c, NAN, 1, 0.5, 5), -EINVAL);
    assert_int_equal(fr_cusum_init(&c, 1, 1, 0.5, 5), 0);
    before = c;
    assert_int_equal(fr_cusum_add(&c, NAN), -EINVAL);
    assert_int_equal(fr_cusum_add(&c, INFINITY), -EINVAL);
    assert_memory_equal(&c, &before, sizeof c);
}

/* Oracle for the split: two-sample t of every split, from its textbook formula. */
static double largest_t(const double *x, size_t n, size_t least, size_t *ret_at)
{
    double best = -1;

    for (size_t at = least; at + least <= n; at++) {
        double m1 = 0, m2 = 0, s = 0, t;

        for (size_t i = 0; i < n; i++)
            *(i < at ? &m1 : &m2) += x[i] / (double)(i < at ? at : n - at);
        for (size_t i = 0; i < n; i++)
            s += pow(x[i] - (i < at ? m1 : m2), 2);
        s /= (double)(n - 2);
        t = fabs(m2 - m1) / sqrt(s * (1.0 / (double)at + 1.0 / (double)(n - at)));
#ifdef FR_HAVE_GSL
        if (at > 1 && n - at > 1) /* GSL has no variance of one sample */
            assert_true(fabs(fabs(gsl_stats_ttest(x, 1, at, x + at, 1, n - at)) - t) <=
                        1e-6 * fmax(1, t));
#endif
        if (t > best) {
            best = t;
            *ret_at = at;
        }
    }
    return best;
}

static void the_split_is_the_one_with_the_largest_t(void **state)
{
    struct fr_shift_rule any = {.samples_min = 1, .ratio_min = -1, .z_min = 0};
    struct fr_rng r = {3};

    (void)state;
    for (int run = 0; run < 1000; run++) {
        double x[120], scratch[120], t;
        size_t n = 10 + fr_rng_below(&r, 110), shift = fr_rng_below(&r, n), at = 0;
        struct fr_shift got;

        for (size_t i = 0; i < n; i++) /* neighbours differ so much that nothing is a spike */
            x[i] = 1 + 0.1 * (double)(i % 2) + 0.1 * fr_rng_unit(&r) +
                   (i >= shift ? 0.02 * (double)(run % 3) : 0);
        t = largest_t(x, n, 1, &at);
        assert_int_equal(fr_shift_find(x, n, &any, scratch, &got), 1);
        assert_int_equal(got.at, at);
        assert_true(fabs(got.z - t) < 1e-6 * fmax(1, t));
    }
}

static void a_lasting_shift_above_ten_percent_is_found_where_it_began(void **state)
{
    static const struct fr_shift_rule RULE = FR_SHIFT_RULE_DEFAULT;
    struct fr_rng r = {4};

    (void)state;
    for (int run = 0; run < 2000; run++) {
        double x[200], scratch[200],
            ratio = fr_rng_below(&r, 2) ? 0.15 + fr_rng_unit(&r) : -0.15 - 0.5 * fr_rng_unit(&r);
        size_t onset = 12 + fr_rng_below(&r, 176);
        struct fr_shift got;

        for (size_t i = 0; i < 200; i++) {
            x[i] = 0.25 * (1 + 0.02 * fr_rng_normal(&r)) * (i >= onset ? 1 + ratio : 1);
            if (i != onset && fr_rng_below(&r, 40) == 0)
                x[i] *= 1 + 9 * fr_rng_unit(&r); /* a hiccup now and then */
        }
        assert_int_equal(fr_shift_find(x, 200, &RULE, scratch, &got), 1);
        assert_true(got.at <= onset + 5 && got.at + 5 >= onset);
        assert_true(fabs(got.ratio - ratio) < 0.05);
        assert_true(fabs(got.before / 0.25 - 1) < 0.03);
    }
}

static void noise_spikes_and_small_or_short_shifts_are_left_alone(void **state)
{
    static const struct fr_shift_rule RULE = FR_SHIFT_RULE_DEFAULT;
    struct fr_rng r = {5};
    int told = 0;

    (void)state;
    for (int run = 0; run < 3000; run++) {
        double x[200], scratch[200];
        struct fr_shift got;

        for (size_t i = 0; i < 200; i++) {
            x[i] = 0.25 * (1 + (run % 3 ? 0.02 : 0.2) * fmax(-4, fr_rng_normal(&r)));
            if (run % 3 == 1 && i >= 100)
                x[i] *= 1.07; /* below 10 % */
            if (run % 3 == 2 && i >= 195)
                x[i] *= 3; /* five samples only */
            if (fr_rng_below(&r, 30) == 0)
                x[i] *= 20;
        }
        told += fr_shift_find(x, 200, &RULE, scratch, &got);
    }
    assert_true(told <= 3); /* 1 in 1,000 */
}

static void edges_are_handled(void **state)
{
    static const struct fr_shift_rule RULE = FR_SHIFT_RULE_DEFAULT;
    double x[40], scratch[40];
    struct fr_shift got = {.at = 99};

    (void)state;
    for (int i = 0; i < 40; i++)
        x[i] = 1;
    assert_int_equal(fr_shift_find(x, 0, &RULE, scratch, &got), 0);
    assert_int_equal(fr_shift_find(x, 19, &RULE, scratch, &got), 0);
    assert_int_equal(fr_shift_find(x, 40, &RULE, scratch, &got), 0); /* all equal */
    x[3] = NAN;
    assert_int_equal(fr_shift_find(x, 40, &RULE, scratch, &got), -EINVAL);
    x[3] = 0;
    assert_int_equal(fr_shift_find(x, 40, &RULE, scratch, &got), -EINVAL);
    assert_int_equal(got.at, 99);
    x[3] = 1;
    for (int i = 25; i < 40; i++)
        x[i] = 2; /* without any noise */
    assert_int_equal(fr_shift_find(x, 40, &RULE, scratch, &got), 1);
    assert_int_equal(got.at, 25);
    assert_true(got.before == 1 && got.after == 2 && got.ratio == 1 && got.z == 1e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cusums_run_lengths_are_the_published_ones),
        cmocka_unit_test(the_cusum_knows_direction_and_onset),
        cmocka_unit_test(the_cusum_refuses_what_is_no_number),
        cmocka_unit_test(the_split_is_the_one_with_the_largest_t),
        cmocka_unit_test(a_lasting_shift_above_ten_percent_is_found_where_it_began),
        cmocka_unit_test(noise_spikes_and_small_or_short_shifts_are_left_alone),
        cmocka_unit_test(edges_are_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
