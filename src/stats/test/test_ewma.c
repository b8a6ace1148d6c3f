/* SPDX-License-Identifier: Apache-2.0 */
/* test_ewma.c - against the weighted mean written out, and GSL's */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#ifdef FR_HAVE_GSL
#include <gsl/gsl_statistics_double.h>
#endif

#include "base/rng.h"
#include "stats/ewma.h"

static void mean_and_deviation_equal_the_weighted_sample(void **state)
{
    struct fr_rng r = {1};

    (void)state;
    for (int run = 0; run < 300; run++) {
        double x[60], w[60], age = 0, half_life = 0.1 + 10 * fr_rng_unit(&r), dt[60], sum = 0,
                             total = 0, var = 0, mean, sd;
        size_t n = fr_rng_below(&r, 60) + 1;
        struct fr_ewma e;

        assert_int_equal(fr_ewma_init(&e, half_life), 0);
        for (size_t i = 0; i < n; i++) {
            x[i] = 5 + fr_rng_normal(&r);
            dt[i] = fr_rng_unit(&r) * 3;
            assert_int_equal(fr_ewma_add(&e, x[i], dt[i]), 0);
        }
        for (size_t i = n; i-- > 0;) {
            w[i] = pow(0.5, age / half_life);
            age += dt[i];
            sum += w[i] * x[i];
            total += w[i];
        }
        for (size_t i = 0; i < n; i++)
            var += w[i] * pow(x[i] - sum / total, 2) / total;
        assert_int_equal(fr_ewma_value(&e, &mean, &sd), 0);
        assert_true(fabs(mean - sum / total) < 1e-9);
        assert_true(fabs(sd * sd - var) < 1e-9);
#ifdef FR_HAVE_GSL
        assert_true(fabs(mean - gsl_stats_wmean(w, 1, x, 1, n)) < 1e-9);
#endif
    }
}

static void bad_input_is_refused_and_changes_nothing(void **state)
{
    struct fr_ewma e;
    double mean = -7, sd;

    (void)state;
    assert_int_equal(fr_ewma_init(&e, 0), -EINVAL);
    assert_int_equal(fr_ewma_init(&e, NAN), -EINVAL);
    assert_int_equal(fr_ewma_init(&e, 1), 0);
    assert_int_equal(fr_ewma_value(&e, &mean, NULL), -ENODATA);
    assert_int_equal(fr_ewma_add(&e, NAN, 1), -EINVAL);
    assert_int_equal(fr_ewma_add(&e, 1, -1), -EINVAL);
    assert_int_equal(fr_ewma_value(&e, &mean, NULL), -ENODATA);
    assert_true(mean == -7);
    assert_int_equal(fr_ewma_add(&e, 3, 100), 0);
    assert_int_equal(fr_ewma_value(&e, &mean, &sd), 0);
    assert_true(mean == 3 && sd == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_deviation_equal_the_weighted_sample),
        cmocka_unit_test(bad_input_is_refused_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
