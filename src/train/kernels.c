/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#define LANES 8 /* sums run in this many fixed lanes: vector code, same order always */

static float sum_lanes(const float acc[LANES])
{
    return ((acc[0] + acc[4]) + (acc[2] + acc[6])) + ((acc[1] + acc[5]) + (acc[3] + acc[7]));
}

static float sum(const float *x, size_t n)
{
    float acc[LANES] = {0}, rest = 0;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            acc[l] += x[i + l];
    for (; i < n; i++)
        rest += x[i];
    return sum_lanes(acc) + rest;
}

static float dot(const float *x, const float *y, size_t n)
{
    float acc[LANES] = {0}, rest = 0;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            acc[l] += x[i + l] * y[i + l];
    for (; i < n; i++)
        rest += x[i] * y[i];
    return sum_lanes(acc) + rest;
}

static float largest(const float *x, size_t n)
{
    float m = x[0];

    for (size_t i = 1; i < n; i++)
        m = x[i] > m ? x[i] : m;
    return m;
}

/* e^x = 2^k e^r with k whole and |r| <= ln2/2; e^r by the polynomial of Cephes'
 * expf. Without a branch, so that a loop over it becomes vector code. */
static inline float exp_one(float in)
{
    float x, k, r, p, scale;
    int32_t bits;

    x = in > -87.0f ? in : -87.0f; /* also catches NaN, which must not become an int */
    x = x < 88.0f ? x : 88.0f;
    /* adding and taking away 1.5 * 2^23 rounds to the nearest whole number */
    k = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    bits = ((int32_t)k + 127) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return in != in ? in : p * scale; /* but has to show */
}

void fr_exp(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = exp_one(x[i]);
}

void fr_kernels_init(void)
{
    openblas_set_num_threads(1);
}

/* ---- matrix product ---- */

void fr_gemm_plain(const struct fr_gemm *g, const float *a, const float *b, float *c)
{
    for (size_t i = 0; i < g->m; i++)
        for (size_t j = 0; j < g->n; j++) {
            float s = 0;
            for (size_t l = 0; l < g->k; l++)
                s += (g->ta == FR_T ? a[l * g->lda + i] : a[i * g->lda + l]) *
                     (g->tb == FR_T ? b[j * g->ldb + l] : b[l * g->ldb + j]);
            c[i * g->ldc + j] =
                g->alpha * s + (g->beta == 0.0f ? 0.0f : g->beta * c[i * g->ldc + j]);
        }
}

void fr_gemm(const struct fr_gemm *g, const float *a, const float *b, float *c)
{
    cblas_sgemm(CblasRowMajor, g->ta == FR_T ? CblasTrans : CblasNoTrans,
                g->tb == FR_T ? CblasTrans : CblasNoTrans, (blasint)g->m, (blasint)g->n,
                (blasint)g->k, g->alpha, a, (blasint)g->lda, b, (blasint)g->ldb, g->beta, c,
                (blasint)g->ldc);
}

void fr_column_sums(float *out, const float *x, size_t n, size_t d)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++)
            out[j] += x[i * d + j];
}

void fr_linear_forward(float *y, const float *x, const float *w, const float *bias, size_t n,
                       size_t in, size_t out)
{
    struct fr_gemm g = {FR_N, FR_T, n, out, in, in, in, out, 1.0f, 0.0f};

    if (bias) {
        for (size_t i = 0; i < n; i++)
            memcpy(y + i * out, bias, out * sizeof *y);
        g.beta = 1.0f;
    }
    fr_gemm(&g, x, w, y);
}

void fr_linear_backward(float *dx, float *dw, float *dbias, const float *dy, const float *x,
                        const float *w, size_t n, size_t in, size_t out)
{
    /* dx[n,in] = dy[n,out] w[out,in];  dw[out,in] += dy[n,out]^T x[n,in] */
    struct fr_gemm gx = {FR_N, FR_N, n, in, out, out, in, in, 1.0f, 0.0f};
    struct fr_gemm gw = {FR_T, FR_N, out, in, n, out, in, in, 1.0f, 1.0f};

    if (dx)
        fr_gemm(&gx, dy, w, dx);
    fr_gemm(&gw, dy, x, dw);
    if (dbias)
        fr_column_sums(dbias, dy, n, out);
}

/* ---- layer norm, GELU, residual ---- */

void fr_layernorm_forward(float *y, float *mean, float *rstd, const float *x, const float *gain,
                          const float *bias, size_t n, size_t d)
{
    for (size_t i = 0; i < n; i++) {
        const float *xi = x + i * d;
        float *yi = y + i * d;
        float m = sum(xi, d) / (float)d, r;

        for (size_t j = 0; j < d; j++)
            yi[j] = xi[j] - m;
        r = 1.0f / sqrtf(dot(yi, yi, d) / (float)d + 1e-5f);
        for (size_t j = 0; j < d; j++)
            yi[j] = yi[j] * r * gain[j] + bias[j];
        mean[i] = m;
        rstd[i] = r;
    }
}

void fr_layernorm_backward(float *dx, float *dgain, float *dbias, const float *dy, const float *x,
                           const float *mean, const float *rstd, const float *gain, size_t n,
                           size_t d)
{
    for (size_t i = 0; i < n; i++) {
        const float *xi = x + i * d, *dyi = dy + i * d;
        float *dxi = dx + i * d, m = mean[i], r = rstd[i];
        float acc_g[LANES] = {0}, acc_gx[LANES] = {0}, g_mean, gx_mean;
        size_t j = 0;

        /* g = dy * gain, xhat = (x - mean) * rstd:
         * dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) */
        for (; j + LANES <= d; j += LANES)
            for (size_t l = 0; l < LANES; l++) {
                float g = dyi[j + l] * gain[j + l];
                acc_g[l] += g;
                acc_gx[l] += g * ((xi[j + l] - m) * r);
            }
        for (; j < d; j++) {
            acc_g[0] += dyi[j] * gain[j];
            acc_gx[0] += dyi[j] * gain[j] * ((xi[j] - m) * r);
        }
        g_mean = sum_lanes(acc_g) / (float)d;
        gx_mean = sum_lanes(acc_gx) / (float)d;
        for (j = 0; j < d; j++) {
            float xhat = (xi[j] - m) * r;
            dgain[j] += dyi[j] * xhat;
            dbias[j] += dyi[j];
            dxi[j] += r * (dyi[j] * gain[j] - g_mean - xhat * gx_mean);
        }
    }
}

#define GELU_C 0.7978845608f /* sqrt(2/pi) */

void fr_gelu_forward(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float u2 = 2.0f * GELU_C * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
        y[i] = x[i] / (1.0f + exp_one(-u2));
    }
}

void fr_gelu_backward(float *dx, const float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float xx = x[i] * x[i];
        float s = 1.0f / (1.0f + exp_one(-2.0f * GELU_C * (x[i] + 0.044715f * x[i] * xx)));
        float du2 = 2.0f * GELU_C * (1.0f + 3.0f * 0.044715f * xx);
        dx[i] = dy[i] * (s + x[i] * s * (1.0f - s) * du2);
    }
}

void fr_residual(float *y, const float *a, const float *b, const float *bias, size_t n, size_t d)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++)
            y[i * d + j] = a[i * d + j] + (b[i * d + j] + bias[j]);
}

/* ---- attention ---- */

/* Row t of a causal score matrix: softmax over 0..t, zero beyond. */
static void softmax_row(float *p, size_t t, size_t s)
{
    float m = largest(p, t + 1), inv;

    for (size_t j = 0; j <= t; j++)
        p[j] = exp_one(p[j] - m);
    inv = 1.0f / sum(p, t + 1);
    for (size_t j = 0; j <= t; j++)
        p[j] *= inv;
    memset(p + t + 1, 0, (s - t - 1) * sizeof *p);
}

void fr_attention_forward(const struct fr_attention *a, float *y, float *probs, const float *qkv)
{
    size_t s = a->s, e = a->e, w = a->h * a->e;
    /* scores[S,S] = q[S,E] k[S,E]^T / sqrt(E);  y[S,E] = probs[S,S] v[S,E] */
    struct fr_gemm gs = {FR_N, FR_T, s, s, e, 3 * w, 3 * w, s, 1.0f / sqrtf((float)e), 0.0f};
    struct fr_gemm gy = {FR_N, FR_N, s, e, s, s, 3 * w, w, 1.0f, 0.0f};

    for (size_t b = 0; b < a->b; b++)
        for (size_t h = 0; h < a->h; h++) {
            const float *q = qkv + b * s * 3 * w + h * e, *k = q + w, *v = k + w;
            float *p = probs + (b * a->h + h) * s * s;

            fr_gemm(&gs, q, k, p);
            for (size_t t = 0; t < s; t++)
                softmax_row(p + t * s, t, s);
            fr_gemm(&gy, p, v, y + b * s * w + h * e);
        }
}

void fr_attention_forward_plain(const struct fr_attention *a, float *y, float *probs,
                                const float *qkv)
{
    size_t s = a->s, e = a->e, w = a->h * a->e;

    for (size_t b = 0; b < a->b; b++)
        for (size_t h = 0; h < a->h; h++)
            for (size_t t = 0; t < s; t++) {
                const float *base = qkv + b * s * 3 * w + h * e, *q = base + t * 3 * w;
                float *p = probs + ((b * a->h + h) * s + t) * s, *out = y + (b * s + t) * w + h * e;
                float m = -INFINITY, total = 0;

                for (size_t j = 0; j < s; j++) {
                    p[j] = 0;
                    for (size_t i = 0; i < e; i++)
                        p[j] += q[i] * base[j * 3 * w + w + i];
                    p[j] /= sqrtf((float)e);
                    if (j <= t && p[j] > m)
                        m = p[j];
                }
                for (size_t j = 0; j < s; j++) {
                    p[j] = j <= t ? expf(p[j] - m) : 0;
                    total += p[j];
                }
                for (size_t i = 0; i < e; i++)
                    out[i] = 0;
                for (size_t j = 0; j < s; j++) {
                    p[j] /= total;
                    for (size_t i = 0; i < e; i++)
                        out[i] += p[j] * base[j * 3 * w + 2 * w + i];
                }
            }
}

void fr_attention_backward(const struct fr_attention *a, float *dqkv, float *scratch,
                           const float *dy, const float *probs, const float *qkv)
{
    size_t s = a->s, e = a->e, w = a->h * a->e;
    float scale = 1.0f / sqrtf((float)e);
    struct fr_gemm gp = {FR_N, FR_T, s, s, e, w, 3 * w, s, 1.0f, 0.0f};      /* dp = dy v^T */
    struct fr_gemm gv = {FR_T, FR_N, s, e, s, s, w, 3 * w, 1.0f, 0.0f};      /* dv = p^T dy */
    struct fr_gemm gq = {FR_N, FR_N, s, e, s, s, 3 * w, 3 * w, scale, 0.0f}; /* dq = ds k */
    struct fr_gemm gk = {FR_T, FR_N, s, e, s, s, 3 * w, 3 * w, scale, 0.0f}; /* dk = ds^T q */

    for (size_t b = 0; b < a->b; b++)
        for (size_t h = 0; h < a->h; h++) {
            size_t at = b * s * 3 * w + h * e;
            const float *q = qkv + at, *k = q + w, *v = k + w;
            const float *p = probs + (b * a->h + h) * s * s, *d = dy + b * s * w + h * e;
            float *dq = dqkv + at, *dk = dq + w, *dv = dk + w;

            fr_gemm(&gp, d, v, scratch);
            fr_gemm(&gv, p, d, dv);
            for (size_t t = 0; t < s; t++) { /* ds = p * (dp - sum(p * dp)), row by row */
                const float *pt = p + t * s;
                float *ds = scratch + t * s, row = dot(pt, ds, t + 1);

                for (size_t j = 0; j < s; j++)
                    ds[j] = pt[j] * (ds[j] - row);
            }
            fr_gemm(&gq, scratch, k, dq);
            fr_gemm(&gk, scratch, q, dk);
        }
}

void fr_attention_backward_plain(const struct fr_attention *a, float *dqkv, float *scratch,
                                 const float *dy, const float *probs, const float *qkv)
{
    size_t s = a->s, e = a->e, w = a->h * a->e;

    memset(dqkv, 0, a->b * s * 3 * w * sizeof *dqkv);
    for (size_t b = 0; b < a->b; b++)
        for (size_t h = 0; h < a->h; h++)
            for (size_t t = 0; t < s; t++) {
                size_t at = b * s * 3 * w + h * e;
                const float *p = probs + ((b * a->h + h) * s + t) * s;
                const float *d = dy + (b * s + t) * w + h * e;
                float row = 0;

                for (size_t j = 0; j <= t; j++) {
                    scratch[j] = 0;
                    for (size_t i = 0; i < e; i++) {
                        scratch[j] += d[i] * qkv[at + j * 3 * w + 2 * w + i];
                        dqkv[at + j * 3 * w + 2 * w + i] += p[j] * d[i];
                    }
                    row += p[j] * scratch[j];
                }
                for (size_t j = 0; j <= t; j++) {
                    float ds = p[j] * (scratch[j] - row) / sqrtf((float)e);
                    for (size_t i = 0; i < e; i++) {
                        dqkv[at + t * 3 * w + i] += ds * qkv[at + j * 3 * w + w + i];
                        dqkv[at + j * 3 * w + w + i] += ds * qkv[at + t * 3 * w + i];
                    }
                }
            }
}

/* ---- embedding and loss ---- */

void fr_embed_forward(float *x, const float *wte, const float *wpe, const uint8_t *tokens, size_t n,
                      size_t s, size_t d)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++)
            x[i * d + j] = wte[tokens[i] * d + j] + wpe[i % s * d + j];
}

void fr_embed_backward(float *dwte, float *dwpe, const float *dx, const uint8_t *tokens, size_t n,
                       size_t s, size_t d)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++) {
            dwte[tokens[i] * d + j] += dx[i * d + j];
            dwpe[i % s * d + j] += dx[i * d + j];
        }
}

double fr_cross_entropy(float *logits, const uint8_t *targets, size_t n, size_t v, float scale)
{
    double loss = 0;

    for (size_t i = 0; i < n; i++) {
        float *row = logits + i * v, m = largest(row, v), at_target = row[targets[i]], total, f;

        for (size_t j = 0; j < v; j++)
            row[j] = exp_one(row[j] - m);
        total = sum(row, v);
        loss += log((double)total) - ((double)at_target - (double)m);
        if (scale == 0.0f)
            continue;
        f = scale / total;
        for (size_t j = 0; j < v; j++)
            row[j] *= f;
        row[targets[i]] -= scale;
    }
    return loss;
}
