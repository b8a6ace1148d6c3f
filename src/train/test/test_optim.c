/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "flops.h"
#include "helper_numbers.h"
#include "kernels.h"
#include "optim.h"

static void the_rate_climbs_in_a_line_and_falls_in_half_a_cosine(void **state)
{
    (void)state;
    assert_true(fr_lr_at(1, 110, 10, 1.0, 0.2) == 0.1);
    assert_true(fr_lr_at(10, 110, 10, 1.0, 0.2) == 1.0);
    assert_true(fabs(fr_lr_at(60, 110, 10, 1.0, 0.2) - 0.6) < 1e-12); /* half way */
    assert_true(fabs(fr_lr_at(35, 110, 10, 1.0, 0.2) - (0.6 + 0.4 * sqrt(0.5))) < 1e-12);
    assert_true(fr_lr_at(110, 110, 10, 1.0, 0.2) == 0.2);
    assert_true(fr_lr_at(500, 110, 10, 1.0, 0.2) == 0.2);
    assert_true(fr_lr_at(1, 1, 0, 1.0, 0.2) == 0.2);
}

static void the_rate_never_rises_after_the_warm_up(void **state)
{
    (void)state;
    for (int64_t s = 10; s < 300; s++)
        assert_true(fr_lr_at(s + 1, 300, 10, 3e-3, 3e-4) <= fr_lr_at(s, 300, 10, 3e-3, 3e-4));
}

/* Algorithm 2 of the AdamW paper, word for word and in double. */
static void adamw_follows_the_published_algorithm(void **state)
{
    enum { N = 37, STEPS = 25 };
    float *w = random_floats(N, 1), *m = random_floats(N, 2), *v = random_floats(N, 3);
    double x[N], m1[N] = {0}, v1[N] = {0};

    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = (double)w[i];
        m[i] = v[i] = 0;
    }
    for (int t = 1; t <= STEPS; t++) {
        float *g = random_floats(N, 10 + (unsigned)t);
        struct fr_adamw a = {.lr = 0.01, .decay = 0.1, .scale = 0.5, .step = t};

        fr_adamw_step(&a, w, g, m, v, N);
        for (int i = 0; i < N; i++) {
            double gi = 0.5 * (double)g[i], mh, vh;

            m1[i] = 0.9 * m1[i] + 0.1 * gi;
            v1[i] = 0.95 * v1[i] + 0.05 * gi * gi;
            mh = m1[i] / (1 - pow(0.9, t));
            vh = v1[i] / (1 - pow(0.95, t));
            x[i] -= 0.01 * (mh / (sqrt(vh) + 1e-8) + 0.1 * x[i]);
        }
        free(g);
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)w[i] - x[i]) < 1e-5);
    free(w);
    free(m);
    free(v);
}

static void a_gradient_of_zero_leaves_a_parameter_without_decay_alone(void **state)
{
    float w = 0.75f, g = 0, m = 0, v = 0;
    struct fr_adamw a = {.lr = 0.1, .decay = 0, .scale = 1, .step = 1};

    (void)state;
    fr_adamw_step(&a, &w, &g, &m, &v, 1);
    assert_true(w == 0.75f && m == 0 && v == 0);
}

static void the_norm_is_the_sum_of_squares(void **state)
{
    float x[] = {1, 2, 3, 4, 5, 6, 7};

    (void)state;
    assert_true(fr_norm2(x, 7) == 140);
    assert_true(fr_norm2(x, 0) == 0);
}

/* NeMo's gpt3() of the published 175B shape, causal: 1.061947 TFLOP a token. */
static void model_flops_of_gpt3_are_the_published_ones(void **state)
{
    (void)state;
    assert_true(fabs(fr_flops_per_token(96, 12288, 2048, 51200) / 1.061947e12 - 1) < 1e-6);
}

/* An independent look at the same core: a peak of one core is at least what a GEMM of the trainer
 * gets in wall time, and no x86 or Arm core does more than 64 float32 multiply-adds a cycle at 6
 * GHz. */
static void the_peak_of_a_core_is_no_less_than_a_gemm_gets_and_within_physics(void **state)
{
    enum { N = 256 };
    const struct fr_gemm g = {FR_N, FR_N, N, N, N, N, N, N, 1.0f, 0.0f};
    static float a[N * N], b[N * N], c[N * N];
    double peak = fr_flops_core(8), start, rate;

    (void)state;
    start = fr_now_s();
    for (int i = 0; i < 8; i++)
        fr_gemm(&g, a, b, c);
    rate = 8 * 2.0 * N * N * N / (fr_now_s() - start);
    assert_true(peak > 0.7 * rate);
    assert_true(peak < 2.0 * 64 * 6e9);
    assert_true(fr_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rate_climbs_in_a_line_and_falls_in_half_a_cosine),
        cmocka_unit_test(the_rate_never_rises_after_the_warm_up),
        cmocka_unit_test(adamw_follows_the_published_algorithm),
        cmocka_unit_test(a_gradient_of_zero_leaves_a_parameter_without_decay_alone),
        cmocka_unit_test(the_norm_is_the_sum_of_squares),
        cmocka_unit_test(model_flops_of_gpt3_are_the_published_ones),
        cmocka_unit_test(the_peak_of_a_core_is_no_less_than_a_gemm_gets_and_within_physics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
