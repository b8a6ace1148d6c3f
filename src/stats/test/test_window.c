/* SPDX-License-Identifier: Apache-2.0 */
/* test_window.c - the sorted window against the last N values, sorted anew each time */
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
#include "stats/robust.h"
#include "stats/window.h"

static void every_answer_equals_that_of_the_last_values(void **state)
{
    enum { N = 500 };
    static double all[N];
    struct fr_rng r = {1};

    (void)state;
    for (unsigned cap = 1; cap <= FR_WINDOW_MAX; cap++) {
        struct fr_window w;

        fr_window_init(&w, cap);
        for (unsigned i = 0; i < N; i++) {
            unsigned n = i + 1 < cap ? i + 1 : cap;
            const double *last = all + i + 1 - n;
            double scratch[FR_WINDOW_MAX], q = fr_rng_unit(&r), got, want, median, mad;

            all[i] = cap % 2 ? (double)fr_rng_below(&r, 5) : fr_rng_normal(&r);
            assert_int_equal(fr_window_add(&w, all[i]), 0);
            assert_int_equal(w.n, n);
            assert_true(fr_window_at(&w, 0) == last[0] && fr_window_at(&w, n - 1) == all[i]);
            fr_robust_quantile(last, n, q, scratch, &want);
            assert_int_equal(fr_window_quantile(&w, q, &got), 0);
            assert_true(fabs(got - want) < 1e-12);
            fr_robust_mad(last, n, scratch, &want, &mad);
            assert_int_equal(fr_window_median(&w, &got), 0);
            assert_true(fabs(got - want) < 1e-12);
            assert_int_equal(fr_window_mad(&w, &median, &got), 0);
            assert_true(median == want && fabs(got - mad) < 1e-12);
        }
    }
}

static void infinities_pass_through_and_nan_is_refused(void **state)
{
    struct fr_window w;
    double got = -7;

    (void)state;
    fr_window_init(&w, 3);
    assert_int_equal(fr_window_median(&w, &got), -ENODATA);
    assert_int_equal(fr_window_mad(&w, NULL, &got), -ENODATA);
    assert_int_equal(fr_window_add(&w, NAN), -EINVAL);
    assert_int_equal(fr_window_quantile(&w, 2, &got), -EDOM);
    assert_true(got == -7 && w.n == 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(fr_window_add(&w, INFINITY), 0);
        assert_int_equal(fr_window_add(&w, -INFINITY), 0);
        assert_int_equal(fr_window_add(&w, 1), 0);
        assert_int_equal(fr_window_median(&w, &got), 0);
        assert_true(got == 1);
    }
    fr_window_clear(&w);
    assert_int_equal(fr_window_median(&w, &got), -ENODATA);
    fr_window_add(&w, 5);
    assert_true(fr_window_at(&w, 0) == 5);
    fr_window_init(&w, 0);
    assert_int_equal(w.cap, 1);
    fr_window_init(&w, 1000);
    assert_int_equal(w.cap, FR_WINDOW_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_equals_that_of_the_last_values),
        cmocka_unit_test(infinities_pass_through_and_nan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
