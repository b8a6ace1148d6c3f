/* SPDX-License-Identifier: Apache-2.0 */
/* Each fast path against its plain loop; each backward pass against central
 * finite differences of its forward pass. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "err.h"
#include "helper_numbers.h"
#include "kernels.h"

/* ---- fast path = plain loop ---- */

static void gemm_of_cblas_equals_the_plain_loop(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {17, 16, 33}, {64, 24, 48}};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int ta = 0; ta < 2; ta++)
            for (int tb = 0; tb < 2; tb++)
                for (int with_beta = 0; with_beta < 2; with_beta++) {
                    size_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
                    /* rows are longer than the matrix, as inside qkv */
                    size_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 2, ldc = n + 1;
                    struct fr_gemm g = {
                        (enum fr_trans)ta,       (enum fr_trans)tb, m, n, k, lda, ldb, ldc, 0.5f,
                        with_beta ? 0.25f : 0.0f};
                    float *a = random_floats((ta ? k : m) * lda, 1);
                    float *b = random_floats((tb ? n : k) * ldb, 2);
                    float *c = random_floats(m * ldc, 3), *d = random_floats(m * ldc, 3);

                    fr_gemm(&g, a, b, c);
                    fr_gemm_plain(&g, a, b, d);
                    assert_true(largest_difference(c, d, m * ldc) < 1e-5);
                    free(a);
                    free(b);
                    free(c);
                    free(d);
                }
}

static void gemm_with_beta_zero_never_reads_what_it_writes(void **state)
{
    struct fr_gemm g = {FR_N, FR_N, 4, 4, 4, 4, 4, 4, 1.0f, 0.0f};
    float *a = random_floats(16, 1), *b = random_floats(16, 2), c[16], d[16];

    (void)state;
    for (int i = 0; i < 16; i++)
        c[i] = d[i] = NAN;
    fr_gemm(&g, a, b, c);
    fr_gemm_plain(&g, a, b, d);
    assert_true(largest_difference(c, d, 16) < 1e-6);
    free(a);
    free(b);
}

static void attention_of_cblas_equals_the_plain_loop(void **state)
{
    const struct fr_attention s = {2, 12, 3, 8};
    size_t w = s.h * s.e, rows = s.b * s.s, np = s.b * s.h * s.s * s.s;
    float *qkv = random_floats(rows * 3 * w, 4), *dy = random_floats(rows * w, 5);
    float *y = random_floats(rows * w, 6), *y_plain = random_floats(rows * w, 7);
    float *p = random_floats(np, 8), *p_plain = random_floats(np, 9);
    float *d = random_floats(rows * 3 * w, 10), *d_plain = random_floats(rows * 3 * w, 11);
    float *scratch = random_floats(s.s * s.s, 12);

    (void)state;
    fr_attention_forward(&s, y, p, qkv);
    fr_attention_forward_plain(&s, y_plain, p_plain, qkv);
    assert_true(largest_difference(y, y_plain, rows * w) < 1e-5);
    assert_true(largest_difference(p, p_plain, np) < 1e-5);
    fr_attention_backward(&s, d, scratch, dy, p, qkv);
    fr_attention_backward_plain(&s, d_plain, scratch, dy, p_plain, qkv);
    assert_true(largest_difference(d, d_plain, rows * 3 * w) < 1e-5);
    free(qkv);
    free(dy);
    free(y);
    free(y_plain);
    free(p);
    free(p_plain);
    free(d);
    free(d_plain);
    free(scratch);
}

static void attention_never_looks_ahead(void **state)
{
    const struct fr_attention s = {1, 10, 2, 4};
    size_t w = s.h * s.e, cut = 6;
    float *qkv = random_floats(s.s * 3 * w, 1), *p = random_floats(s.h * s.s * s.s, 2);
    float *y = random_floats(s.s * w, 3), *z = random_floats(s.s * w, 4);

    (void)state;
    fr_attention_forward(&s, y, p, qkv);
    for (size_t i = cut * 3 * w; i < s.s * 3 * w; i++)
        qkv[i] = -qkv[i] + 1;
    fr_attention_forward(&s, z, p, qkv);
    assert_memory_equal(y, z, cut * w * sizeof *y);
    assert_memory_not_equal(y + cut * w, z + cut * w, (s.s - cut) * w * sizeof *y);
    free(qkv);
    free(p);
    free(y);
    free(z);
}

static void exp_is_within_two_units_of_libm(void **state)
{
    (void)state;
    for (float x = -86.9f; x < 87.9f; x += 0.00137f) {
        float y;
        fr_exp(&y, &x, 1);
        assert_true(fabs((double)y / exp((double)x) - 1) < 2.5e-7);
    }
}

static void exp_stays_finite_outside_its_range_and_hands_on_nan(void **state)
{
    const float x[4] = {-1e30f, -INFINITY, 1e30f, INFINITY};
    float y[4];

    (void)state;
    fr_exp(y, x, 4);
    for (int i = 0; i < 4; i++)
        assert_true(isfinite(y[i]) && y[i] >= 0);
    assert_true(y[0] < 1e-37f && y[2] > 1e38f);
    y[1] = NAN;
    fr_exp(y, y + 1, 1);
    assert_true(isnan(y[0])); /* a diverged run must not look well */
}

/* ---- backward = slope of forward ---- */

/* A kernel under test: value() is a scalar function of the array x[n], dx its
 * gradient as the backward pass says. */
struct slope_case {
    float *x;
    size_t n;
    const float *dx;
    double (*value)(void *context);
    void *context;
};

static void assert_slopes(const struct slope_case *c, double tolerance)
{
    const float h = 1e-2f;

    for (size_t i = 0; i < c->n; i++) {
        float saved = c->x[i];
        double up, down, step;

        c->x[i] = saved + h;
        step = (double)c->x[i];
        up = c->value(c->context);
        c->x[i] = saved - h;
        step -= (double)c->x[i]; /* what was really moved, after rounding */
        down = c->value(c->context);
        c->x[i] = saved;
        if (!(fabs((up - down) / step - (double)c->dx[i]) <
              tolerance * (1 + fabs((double)c->dx[i]))))
            fail_msg("element %zu: differences %g, gradient %g", i, (up - down) / step,
                     (double)c->dx[i]);
    }
}

enum { N = 6, D = 19 }; /* odd, so that the tails of the vector loops run */

struct layernorm_context {
    float *x, *gain, *bias, *y, *r;
};

static double layernorm_value(void *context)
{
    struct layernorm_context *c = context;
    float mean[N], rstd[N];

    fr_layernorm_forward(c->y, mean, rstd, c->x, c->gain, c->bias, N, D);
    return dot_double(c->y, c->r, N * D);
}

static void layernorm_backward_agrees_with_finite_differences(void **state)
{
    struct layernorm_context c = {random_floats(N * D, 1), random_floats(D, 2), random_floats(D, 3),
                                  random_floats(N * D, 4), random_floats(N * D, 5)};
    float mean[N], rstd[N], *dx = fr_zalloc(N * D, 4), *dg = fr_zalloc(D, 4), *db = fr_zalloc(D, 4);

    (void)state;
    fr_layernorm_forward(c.y, mean, rstd, c.x, c.gain, c.bias, N, D);
    fr_layernorm_backward(dx, dg, db, c.r, c.x, mean, rstd, c.gain, N, D);
    assert_slopes(&(struct slope_case){c.x, N * D, dx, layernorm_value, &c}, 2e-3);
    assert_slopes(&(struct slope_case){c.gain, D, dg, layernorm_value, &c}, 2e-3);
    assert_slopes(&(struct slope_case){c.bias, D, db, layernorm_value, &c}, 2e-3);
    free(c.x);
    free(c.gain);
    free(c.bias);
    free(c.y);
    free(c.r);
    free(dx);
    free(dg);
    free(db);
}

static void layernorm_rows_have_mean_zero_and_variance_one(void **state)
{
    float *x = random_floats(N * D, 1), *y = random_floats(N * D, 2), mean[N], rstd[N];
    float gain[D], bias[D] = {0};

    (void)state;
    for (int j = 0; j < D; j++)
        gain[j] = 1;
    fr_layernorm_forward(y, mean, rstd, x, gain, bias, N, D);
    for (size_t i = 0; i < N; i++) {
        double s = 0, s2 = 0;
        for (size_t j = 0; j < D; j++) {
            s += (double)y[i * D + j];
            s2 += (double)y[i * D + j] * (double)y[i * D + j];
        }
        assert_true(fabs(s / D) < 1e-6 && fabs(s2 / D - 1) < 1e-3);
    }
    free(x);
    free(y);
}

struct gelu_context {
    float *x, *y, *r;
};

static double gelu_value(void *context)
{
    struct gelu_context *c = context;

    fr_gelu_forward(c->y, c->x, N * D);
    return dot_double(c->y, c->r, N * D);
}

static void gelu_backward_agrees_with_finite_differences(void **state)
{
    struct gelu_context c = {random_floats(N * D, 1), random_floats(N * D, 2),
                             random_floats(N * D, 3)};
    float *dx = random_floats(N * D, 4);

    (void)state;
    for (int i = 0; i < N * D; i++)
        c.x[i] *= 4;
    fr_gelu_backward(dx, c.r, c.x, N * D);
    assert_slopes(&(struct slope_case){c.x, N * D, dx, gelu_value, &c}, 2e-3);
    free(c.x);
    free(c.y);
    free(c.r);
    free(dx);
}

static void gelu_equals_its_published_tanh_form(void **state)
{
    (void)state;
    for (double x = -9; x < 9; x += 0.011) {
        float in = (float)x, y;
        double d = (double)in;

        fr_gelu_forward(&y, &in, 1);
        assert_true(fabs((double)y -
                         0.5 * d * (1 + tanh(sqrt(2 / M_PI) * (d + 0.044715 * d * d * d)))) < 1e-6);
    }
}

enum { IN = 7, OUT = 5 };

struct linear_context {
    float *x, *w, *bias, *y, *r;
};

static double linear_value(void *context)
{
    struct linear_context *c = context;

    fr_linear_forward(c->y, c->x, c->w, c->bias, N, IN, OUT);
    return dot_double(c->y, c->r, N * OUT);
}

static void linear_backward_agrees_with_finite_differences(void **state)
{
    struct linear_context c = {random_floats(N * IN, 1), random_floats(OUT * IN, 2),
                               random_floats(OUT, 3), random_floats(N * OUT, 4),
                               random_floats(N * OUT, 5)};
    float *dx = random_floats(N * IN, 6), *dw = fr_zalloc(OUT * IN, 4), *db = fr_zalloc(OUT, 4);

    (void)state;
    fr_linear_backward(dx, dw, db, c.r, c.x, c.w, N, IN, OUT);
    assert_slopes(&(struct slope_case){c.x, N * IN, dx, linear_value, &c}, 1e-3);
    assert_slopes(&(struct slope_case){c.w, OUT * IN, dw, linear_value, &c}, 1e-3);
    assert_slopes(&(struct slope_case){c.bias, OUT, db, linear_value, &c}, 1e-3);
    free(c.x);
    free(c.w);
    free(c.bias);
    free(c.y);
    free(c.r);
    free(dx);
    free(dw);
    free(db);
}

static const struct fr_attention small = {2, 5, 2, 3};
enum { SMALL_W = 6, SMALL_ROWS = 10, SMALL_P = 2 * 2 * 5 * 5 };

struct attention_context {
    float *qkv, *y, *p, *r;
};

static double attention_value(void *context)
{
    struct attention_context *c = context;

    fr_attention_forward(&small, c->y, c->p, c->qkv);
    return dot_double(c->y, c->r, SMALL_ROWS * SMALL_W);
}

static void attention_backward_agrees_with_finite_differences(void **state)
{
    struct attention_context c = {random_floats(SMALL_ROWS * 3 * SMALL_W, 1),
                                  random_floats(SMALL_ROWS * SMALL_W, 2), random_floats(SMALL_P, 3),
                                  random_floats(SMALL_ROWS * SMALL_W, 4)};
    float *d = random_floats(SMALL_ROWS * 3 * SMALL_W, 5), *scratch = random_floats(25, 6);

    (void)state;
    fr_attention_forward(&small, c.y, c.p, c.qkv);
    fr_attention_backward(&small, d, scratch, c.r, c.p, c.qkv);
    assert_slopes(&(struct slope_case){c.qkv, SMALL_ROWS * 3 * SMALL_W, d, attention_value, &c},
                  2e-3);
    free(c.qkv);
    free(c.y);
    free(c.p);
    free(c.r);
    free(d);
    free(scratch);
}

enum { V = 11 };
static const uint8_t targets[N] = {0, 3, 10, 3, 7, 1};

static double cross_entropy_value(void *context)
{
    float copy[N * V];

    memcpy(copy, context, sizeof copy);
    return fr_cross_entropy(copy, targets, N, V, 0.0f);
}

static void cross_entropy_backward_agrees_with_finite_differences(void **state)
{
    float *logits = random_floats(N * V, 1), *d = random_floats(N * V, 1);

    (void)state;
    fr_cross_entropy(d, targets, N, V, 1.0f);
    assert_slopes(&(struct slope_case){logits, N * V, d, cross_entropy_value, logits}, 1e-3);
    free(logits);
    free(d);
}

static void cross_entropy_of_equal_logits_is_the_log_of_the_vocabulary(void **state)
{
    float logits[N * V];

    (void)state;
    for (int i = 0; i < N * V; i++)
        logits[i] = 300; /* would overflow without the shift by the maximum */
    assert_true(fabs(fr_cross_entropy(logits, targets, N, V, 0.0f) - N * log(V)) < 1e-6);
}

static void embedding_backward_adds_each_row_to_its_token_and_position(void **state)
{
    enum { S = 3, TOKENS = 6, W = 4 };
    const uint8_t tokens[TOKENS] = {2, 0, 2, 1, 2, 0};
    float dx[TOKENS * W], dwte[3 * W] = {0}, dwpe[S * W] = {0};
    /* powers of two: a sum tells which rows are in it */
    const float by_token[3] = {2 + 32, 8, 1 + 4 + 16}, by_position[S] = {1 + 8, 2 + 16, 4 + 32};

    (void)state;
    for (int i = 0; i < TOKENS * W; i++)
        dx[i] = (float)(1 << (i / W));
    fr_embed_backward(dwte, dwpe, dx, tokens, TOKENS, S, W);
    for (int i = 0; i < 3 * W; i++) {
        assert_true(dwte[i] == by_token[i / W]);
        assert_true(dwpe[i] == by_position[i / W]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_of_cblas_equals_the_plain_loop),
        cmocka_unit_test(gemm_with_beta_zero_never_reads_what_it_writes),
        cmocka_unit_test(attention_of_cblas_equals_the_plain_loop),
        cmocka_unit_test(attention_never_looks_ahead),
        cmocka_unit_test(exp_is_within_two_units_of_libm),
        cmocka_unit_test(exp_stays_finite_outside_its_range_and_hands_on_nan),
        cmocka_unit_test(layernorm_backward_agrees_with_finite_differences),
        cmocka_unit_test(layernorm_rows_have_mean_zero_and_variance_one),
        cmocka_unit_test(gelu_backward_agrees_with_finite_differences),
        cmocka_unit_test(gelu_equals_its_published_tanh_form),
        cmocka_unit_test(linear_backward_agrees_with_finite_differences),
        cmocka_unit_test(attention_backward_agrees_with_finite_differences),
        cmocka_unit_test(cross_entropy_backward_agrees_with_finite_differences),
        cmocka_unit_test(cross_entropy_of_equal_logits_is_the_log_of_the_vocabulary),
        cmocka_unit_test(embedding_backward_adds_each_row_to_its_token_and_position),
    };

    fr_kernels_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
