/* SPDX-License-Identifier: Apache-2.0 */
/* test_rng.c - the generator against its published sequence, and its moments */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

/* First outputs for seed 1234567, from the reference code of Vigna (prng.di.unimi.it/splitmix64.c),
 * as listed on Rosetta Code, "Pseudo-random numbers/Splitmix64". */
static void the_published_sequence_comes_out(void **state)
{
    static const uint64_t EXPECTED[] = {6457827717110365317ull, 3203168211198807973ull,
                                        9817491932198370423ull, 4593380528125082431ull,
                                        16408922859458223821ull};
    struct fr_rng r = {1234567};

    (void)state;
    for (size_t i = 0; i < sizeof EXPECTED / sizeof EXPECTED[0]; i++)
        assert_true(fr_rng_u64(&r) == EXPECTED[i]);
}

static void uniform_and_normal_have_their_moments(void **state)
{
    enum { N = 200000 };
    double sum = 0, sum2 = 0, u = 0;
    struct fr_rng r = {31};

    (void)state;
    for (int i = 0; i < N; i++) {
        double x = fr_rng_normal(&r), y = fr_rng_unit(&r);

        assert_true(y >= 0 && y < 1);
        assert_true(fr_rng_below(&r, 7) < 7);
        sum += x;
        sum2 += x * x;
        u += y;
    }
    /* Within 5 standard errors: 1/sqrt(N), sqrt(2/N), sqrt(1/12N). */
    assert_true(fabs(sum / N) < 5 / sqrt(N));
    assert_true(fabs(sum2 / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(u / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_sequence_comes_out),
        cmocka_unit_test(uniform_and_normal_have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
