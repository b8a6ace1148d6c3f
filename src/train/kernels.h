/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - the arithmetic of a transformer, forward and backward, float32
 *
 * Every kernel is a plain C loop that can be read against the formula. Where a
 * matrix product makes cblas worth it there are two of them: fr_x_plain, the
 * reference, and fr_x, the fast path; the tests hold one against the other.
 * No kernel knows of ranks: a shard is just a smaller matrix.
 *
 * Shape:   row-major, last axis fastest. N rows (batch x seq tokens), D model
 *          width, B sequences, S tokens each, H heads here, E width of a head,
 *          V vocabulary. Weights are [out, in], so y = x w^T + b.
 * Error:   the same inputs give the same bits on the same machine: loops have
 *          a fixed order and cblas runs one thread.
 * Memory:  none allocated; buffers must not overlap unless said otherwise.
 * Threads: none shared.
 * Source:  llm.c (train_gpt2.c) for the shapes and the order of the passes.
 */
#ifndef FR_TRAIN_KERNELS_H
#define FR_TRAIN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* How a matrix of fr_gemm is read. */
enum fr_trans { FR_N = 0, FR_T = 1 };

/* c[m,n] = alpha * op(a)[m,k] op(b)[k,n] + beta * c; ld* are row strides as
 * stored. With beta 0 c is written, never read. */
struct fr_gemm {
    enum fr_trans ta, tb;
    size_t m, n, k;
    size_t lda, ldb, ldc;
    float alpha, beta;
};
void fr_gemm(const struct fr_gemm *g, const float *a, const float *b, float *c);
void fr_gemm_plain(const struct fr_gemm *g, const float *a, const float *b, float *c);

/* y[N,O] = x[N,I] w[O,I]^T + bias[O]; bias may be NULL. */
void fr_linear_forward(float *y, const float *x, const float *w, const float *bias, size_t n,
                       size_t in, size_t out);
/* dx[N,I] = dy w (written; NULL: not wanted), dw[O,I] += dy^T x,
 * dbias[O] += column sums of dy (NULL: none). */
void fr_linear_backward(float *dx, float *dw, float *dbias, const float *dy, const float *x,
                        const float *w, size_t n, size_t in, size_t out);

/* y[N,D] = (x - mean) * rstd * gain[D] + bias[D]; keeps mean[N] and rstd[N]. */
void fr_layernorm_forward(float *y, float *mean, float *rstd, const float *x, const float *gain,
                          const float *bias, size_t n, size_t d);
/* dx[N,D] += ..., dgain[D] += ..., dbias[D] += ... */
void fr_layernorm_backward(float *dx, float *dgain, float *dbias, const float *dy, const float *x,
                           const float *mean, const float *rstd, const float *gain, size_t n,
                           size_t d);

/* y = x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): the tanh form of GELU. */
void fr_gelu_forward(float *y, const float *x, size_t n);
/* dx = dy * gelu'(x); dx may be dy. */
void fr_gelu_backward(float *dx, const float *dy, const float *x, size_t n);

/* Causal attention of H heads. qkv[B,S,3,H,E], probs[B,H,S,S] (kept for the
 * backward pass, zero above the diagonal), y[B,S,H,E]. */
struct fr_attention {
    size_t b, s, h, e;
};
void fr_attention_forward(const struct fr_attention *a, float *y, float *probs, const float *qkv);
void fr_attention_forward_plain(const struct fr_attention *a, float *y, float *probs,
                                const float *qkv);
/* dqkv[B,S,3,H,E] is written; scratch[S,S]. */
void fr_attention_backward(const struct fr_attention *a, float *dqkv, float *scratch,
                           const float *dy, const float *probs, const float *qkv);
void fr_attention_backward_plain(const struct fr_attention *a, float *dqkv, float *scratch,
                                 const float *dy, const float *probs, const float *qkv);

/* x[N,D] = wte[token] + wpe[position]; row i has position i % s. */
void fr_embed_forward(float *x, const float *wte, const float *wpe, const uint8_t *tokens, size_t n,
                      size_t s, size_t d);
/* dwte, dwpe += dx at the rows that were read. */
void fr_embed_backward(float *dwte, float *dwpe, const float *dx, const uint8_t *tokens, size_t n,
                       size_t s, size_t d);

/* Sum over the rows of -log softmax(logits)[target], in double. When `scale`
 * is not 0, logits[N,V] is replaced by its gradient times `scale`. */
double fr_cross_entropy(float *logits, const uint8_t *targets, size_t n, size_t v, float scale);

/* y[N,D] = a[N,D] + b[N,D] + bias[D]: closes a residual branch. */
void fr_residual(float *y, const float *a, const float *b, const float *bias, size_t n, size_t d);
/* out[D] += column sums of x[N,D]. */
void fr_column_sums(float *out, const float *x, size_t n, size_t d);

/* exp for a whole array at vector speed: no branch, no table. Range: what is
 * below -87 counts as -87, above 88 as 88, NaN stays NaN. Error: 2 units in the last place. */
void fr_exp(float *y, const float *x, size_t n);

/* The pool of cblas runs one thread from here on. */
void fr_kernels_init(void);

#endif /* FR_TRAIN_KERNELS_H */
