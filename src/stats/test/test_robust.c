/* SPDX-License-Identifier: Apache-2.0 */
/* test_robust.c - against GSL where it is there, and against sorting */
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
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#endif

#include "base/rng.h"
#include "stats/robust.h"

enum { MOST = 300 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Samples with many, some and no equal values, sorted ones, and heavy tails. */
static size_t draw(struct fr_rng *r, double *v)
{
    size_t n = fr_rng_below(r, 10) ? fr_rng_below(r, 40) + 1 : fr_rng_below(r, MOST) + 1;
    uint64_t shape = fr_rng_below(r, 5);

    for (size_t i = 0; i < n; i++) {
        if (shape == 0)
            v[i] = (double)fr_rng_below(r, 4);
        else if (shape == 1)
            v[i] = (double)i;
        else if (shape == 2)
            v[i] = -(double)(i / 2);
        else if (shape == 3)
            v[i] = fr_rng_normal(r);
        else
            v[i] = 1 / (fr_rng_unit(r) - 0.5000001);
    }
    return n;
}

static int close_to(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fmax(1, fmax(fabs(a), fabs(b)));
}

static void selecting_puts_the_kth_in_its_place(void **state)
{
    struct fr_rng r = {1};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        double v[MOST], sorted[MOST];
        size_t n = draw(&r, v), k = fr_rng_below(&r, n);

        memcpy(sorted, v, sizeof v);
        qsort(sorted, n, sizeof *v, by_value);
        assert_true(fr_robust_select(v, n, k) == sorted[k]);
        for (size_t i = 0; i < n; i++)
            assert_true(i < k ? v[i] <= v[k] : v[i] >= v[k]);
        qsort(v, n, sizeof *v, by_value);
        assert_memory_equal(v, sorted, n * sizeof *v); /* nothing was lost */
    }
}

static void selecting_stays_linear_on_sorted_and_equal_input(void **state)
{
    enum { N = 1 << 20 };
    double *v = malloc(N * sizeof *v);

    (void)state;
    for (int shape = 0; shape < 4; shape++) {
        for (size_t i = 0; i < N; i++)
            v[i] = shape == 0   ? 1
                   : shape == 1 ? (double)i
                   : shape == 2 ? (double)(N - i)
                                : (double)(i % 2);
        /* Quadratic time would be 10^12 steps: the test's time limit would end it. */
        fr_robust_select(v, N, N / 2);
    }
    free(v);
}

static void quantiles_medians_and_mads_equal_the_oracle(void **state)
{
    struct fr_rng r = {2};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        double v[MOST], sorted[MOST], scratch[MOST], q = fr_rng_unit(&r), got, mad, median, want;
        size_t n = draw(&r, v), k = (size_t)(q * (double)(n - 1));
        double share = q * (double)(n - 1) - (double)k;

        memcpy(sorted, v, sizeof v);
        qsort(sorted, n, sizeof *v, by_value);
        assert_int_equal(fr_robust_quantile(v, n, q, scratch, &got), 0);
        want = k + 1 < n ? sorted[k] * (1 - share) + sorted[k + 1] * share : sorted[k];
        assert_true(close_to(got, want));
        assert_int_equal(fr_robust_mad(v, n, scratch, &median, &mad), 0);
        assert_int_equal(fr_robust_median(v, n, scratch, &got), 0);
        assert_true(got == median);
        assert_true(close_to(median, (sorted[n / 2] + sorted[(n - 1) / 2]) / 2));
        for (size_t i = 0; i < n; i++)
            sorted[i] = fabs(v[i] - median);
        qsort(sorted, n, sizeof *v, by_value);
        assert_true(close_to(mad, 1.482602218505602 * (sorted[n / 2] + sorted[(n - 1) / 2]) / 2));
#ifdef FR_HAVE_GSL
        memcpy(sorted, v, sizeof v);
        assert_true(close_to(mad, gsl_stats_mad(sorted, 1, n, scratch)));
        gsl_sort(sorted, 1, n);
        assert_true(close_to(median, gsl_stats_median_from_sorted_data(sorted, 1, n)));
        fr_robust_quantile(v, n, q, scratch, &got);
        assert_true(close_to(got, gsl_stats_quantile_from_sorted_data(sorted, 1, n, q)));
#endif
    }
}

static void the_trimmed_mean_equals_the_oracle(void **state)
{
    struct fr_rng r = {3};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        double v[MOST], sorted[MOST], scratch[MOST], trim = fr_rng_unit(&r) / 2, got, sum = 0;
        size_t n = draw(&r, v), cut = (size_t)floor(trim * (double)n);

        memcpy(sorted, v, sizeof v);
        qsort(sorted, n, sizeof *v, by_value);
        assert_int_equal(fr_robust_trimmed_mean(v, n, trim, scratch, &got), 0);
        for (size_t i = cut; i < n - cut; i++)
            sum += sorted[i];
        assert_true(fabs(got - sum / (double)(n - 2 * cut)) <=
                    1e-9 * fmax(1, fabs(sorted[n - 1 - cut]) + fabs(sorted[cut])));
#ifdef FR_HAVE_GSL
        assert_true(fabs(got - gsl_stats_trmean_from_sorted_data(trim, sorted, 1, n)) <=
                    1e-9 * fmax(1, fabs(sorted[n - 1 - cut]) + fabs(sorted[cut])));
#endif
    }
}

/* Oracle: whole weights are as many copies of the value. */
static void the_weighted_median_is_the_median_of_the_copies(void **state)
{
    struct fr_rng r = {4};

    (void)state;
    for (int round = 0; round < 20000; round++) {
        double v[MOST], w[MOST], scratch[2 * MOST], copies[MOST * 6], got, want;
        size_t n = draw(&r, v), m = 0;

        for (size_t i = 0; i < n; i++) {
            w[i] = (double)fr_rng_below(&r, 6);
            for (int k = 0; k < (int)w[i]; k++)
                copies[m++] = v[i];
        }
        if (m == 0) {
            assert_int_equal(fr_robust_weighted_median(v, w, n, scratch, &got), -ENODATA);
            continue;
        }
        qsort(copies, m, sizeof *copies, by_value);
        want = (copies[m / 2] + copies[(m - 1) / 2]) / 2;
        assert_int_equal(fr_robust_weighted_median(v, w, n, scratch, &got), 0);
        assert_true(close_to(got, want));
    }
}

/* Property: the median of a sample of which less than half is wild lies among the tame ones. */
static void wild_values_below_half_cannot_move_median_and_mad_away(void **state)
{
    struct fr_rng r = {5};

    (void)state;
    for (int round = 0; round < 2000; round++) {
        double v[101], scratch[101], median, mad;

        for (int i = 0; i < 101; i++)
            v[i] = i < 50 ? (fr_rng_below(&r, 2) ? INFINITY : 1e300) : 1 + fr_rng_unit(&r);
        assert_int_equal(fr_robust_mad(v, 101, scratch, &median, &mad), 0);
        assert_true(median >= 1 && median <= 2);
        assert_true(mad <= FR_MAD_SCALE);
    }
}

static void bad_input_is_refused_and_changes_nothing(void **state)
{
    double v[3] = {1, NAN, 2}, w[3] = {1, 1, 1}, bad[3] = {1, -1, 1}, scratch[6], got = -7;

    (void)state;
    assert_int_equal(fr_robust_median(v, 0, scratch, &got), -ENODATA);
    assert_int_equal(fr_robust_median(v, 3, scratch, &got), -EINVAL);
    assert_int_equal(fr_robust_quantile(v, 1, 1.1, scratch, &got), -EDOM);
    assert_int_equal(fr_robust_quantile(v, 1, NAN, scratch, &got), -EDOM);
    assert_int_equal(fr_robust_trimmed_mean(v, 1, 0.5, scratch, &got), -EDOM);
    assert_int_equal(fr_robust_mad(v, 3, scratch, NULL, &got), -EINVAL);
    assert_int_equal(fr_robust_weighted_median(v, w, 3, scratch, &got), -EINVAL);
    assert_int_equal(fr_robust_weighted_median(v, bad, 3, scratch, &got), -EINVAL);
    assert_int_equal(fr_robust_weighted_median(v, w, 0, scratch, &got), -ENODATA);
    assert_true(got == -7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selecting_puts_the_kth_in_its_place),
        cmocka_unit_test(selecting_stays_linear_on_sorted_and_equal_input),
        cmocka_unit_test(quantiles_medians_and_mads_equal_the_oracle),
        cmocka_unit_test(the_trimmed_mean_equals_the_oracle),
        cmocka_unit_test(the_weighted_median_is_the_median_of_the_copies),
        cmocka_unit_test(wild_values_below_half_cannot_move_median_and_mad_away),
        cmocka_unit_test(bad_input_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
