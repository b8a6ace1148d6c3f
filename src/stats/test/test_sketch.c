/* SPDX-License-Identifier: Apache-2.0 */
/* test_sketch.c - quantiles within ALPHA of the sorted sample */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "stats/sketch.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double draw(struct fr_rng *r, int shape)
{
    switch (shape) {
    case 0:
        return 0.2 * exp(3.0 * fr_rng_unit(r) - 1.5); /* 45 ms .. 0.9 s */
    case 1:
        return pow(10, -6 + 10 * fr_rng_unit(r)); /* the whole range */
    case 2:
        return 0.1 + 1e-4 * fr_rng_normal(r) * (fr_rng_below(r, 20) ? 1 : 0) +
               (fr_rng_below(r, 50) ? 0 : 3.0);
    default:
        return fr_rng_below(r, 3) ? 1e-9 * fr_rng_unit(r) : 0.5; /* mostly below the range */
    }
}

/* Property: for any sample, any quantile is within ALPHA of the exact one (what is below MIN counts
 * as zero). */
static void quantile_is_within_alpha_of_the_sorted_sample(void **state)
{
    enum { N = 20000 };
    static double v[N];
    struct fr_sketch sk;
    struct fr_rng r = {7};

    (void)state;
    for (int shape = 0; shape < 4; shape++) {
        fr_sketch_init(&sk);
        for (int i = 0; i < N; i++) {
            v[i] = fabs(draw(&r, shape));
            assert_int_equal(fr_sketch_add(&sk, v[i]), 0);
        }
        qsort(v, N, sizeof v[0], by_value);
        for (int p = 0; p <= 1000; p++) {
            double q = p / 1000.0, got, exact = v[(int)(q * (N - 1))];

            assert_int_equal(fr_sketch_quantile(&sk, q, &got), 0);
            if (exact < FR_SKETCH_MIN_S)
                assert_true(got == 0);
            else
                assert_true(fabs(got - exact) <= FR_SKETCH_ALPHA * exact * (1 + 1e-9));
        }
    }
}

/* The bucket's ends are where the header says: check each, from the definition. */
static void every_bucket_end_is_within_alpha(void **state)
{
    double g = (1 + FR_SKETCH_ALPHA) / (1 - FR_SKETCH_ALPHA);

    (void)state;
    for (int i = 1; i < FR_SKETCH_BUCKETS; i++) {
        for (int side = -1; side <= 1; side++) {
            double s = FR_SKETCH_MIN_S * pow(g, i) * (1 + side * 1e-10), got;
            struct fr_sketch sk;

            if (s > FR_SKETCH_MAX_S)
                continue;
            fr_sketch_init(&sk);
            fr_sketch_add(&sk, s / 1000);
            fr_sketch_add(&sk, s);
            fr_sketch_add(&sk, s * 1000); /* so that the true extremes do not help */
            assert_int_equal(fr_sketch_quantile(&sk, 0.5, &got), 0);
            assert_true(fabs(got - s) <= FR_SKETCH_ALPHA * s * (1 + 1e-6));
        }
    }
}

static void merging_equals_one_owner_who_saw_everything(void **state)
{
    struct fr_sketch one, parts[5], empty;
    struct fr_rng r = {9};

    (void)state;
    fr_sketch_init(&one);
    fr_sketch_init(&empty);
    for (int k = 0; k < 5; k++)
        fr_sketch_init(&parts[k]);
    for (int i = 0; i < 10000; i++) {
        double s = fabs(draw(&r, i % 4));

        fr_sketch_add(&one, s);
        fr_sketch_add(&parts[fr_rng_below(&r, 5)], s);
    }
    for (int k = 1; k < 5; k++)
        fr_sketch_merge(&parts[0], &parts[k]);
    fr_sketch_merge(&parts[0], &empty);
    assert_memory_equal(&one, &parts[0], sizeof one);
    fr_sketch_merge(&empty, &one);
    assert_memory_equal(&one, &empty, sizeof one);
}

static void values_beyond_the_range_keep_the_true_maximum(void **state)
{
    struct fr_sketch sk;
    double got;

    (void)state;
    fr_sketch_init(&sk);
    assert_int_equal(fr_sketch_add(&sk, 1e7), 0);
    assert_int_equal(fr_sketch_add(&sk, 0), 0);
    assert_true(sk.max_s == 1e7 && sk.min_s == 0);
    assert_int_equal(fr_sketch_quantile(&sk, 0, &got), 0);
    assert_true(got == 0);
    assert_int_equal(fr_sketch_quantile(&sk, 1, &got), 0);
    assert_true(got >= FR_SKETCH_MAX_S * (1 - FR_SKETCH_ALPHA) && got <= 1e7);
}

static void bad_input_is_refused_and_changes_nothing(void **state)
{
    struct fr_sketch sk, before;
    double got = -1;

    (void)state;
    fr_sketch_init(&sk);
    before = sk;
    assert_int_equal(fr_sketch_quantile(&sk, 0.5, &got), -ENODATA);
    assert_int_equal(fr_sketch_add(&sk, -1.0), -EINVAL);
    assert_int_equal(fr_sketch_add(&sk, NAN), -EINVAL);
    assert_int_equal(fr_sketch_add(&sk, INFINITY), -EINVAL);
    assert_memory_equal(&sk, &before, sizeof sk);
    fr_sketch_add(&sk, 1.0);
    assert_int_equal(fr_sketch_quantile(&sk, 1.5, &got), -EDOM);
    assert_int_equal(fr_sketch_quantile(&sk, NAN, &got), -EDOM);
    assert_true(got == -1); /* a failed call leaves its result alone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile_is_within_alpha_of_the_sorted_sample),
        cmocka_unit_test(every_bucket_end_is_within_alpha),
        cmocka_unit_test(merging_equals_one_owner_who_saw_everything),
        cmocka_unit_test(values_beyond_the_range_keep_the_true_maximum),
        cmocka_unit_test(bad_input_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
