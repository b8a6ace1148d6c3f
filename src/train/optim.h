/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim.h - AdamW with decoupled decay, and the cosine schedule
 *
 * Threads: none shared.
 * Source:  Loshchilov, Hutter, "Decoupled Weight Decay Regularization", 2019,
 *          algorithm 2; beta 0.9, 0.95 and epsilon 1e-8 as GPT-3.
 */
#ifndef FR_TRAIN_OPTIM_H
#define FR_TRAIN_OPTIM_H

#include <stddef.h>
#include <stdint.h>

/* Learning rate of `step` (from 1): linear up to `lr` over `warmup` steps, then
 * half a cosine down to `min_lr` at step `steps`. */
double fr_lr_at(int64_t step, int64_t steps, int64_t warmup, double lr, double min_lr);

/* One step on n parameters w with gradient g and moments m, v. `decay` is 0 for
 * norms and biases; the gradient is used times `scale` (clipping). */
struct fr_adamw {
    double lr, decay, scale;
    int64_t step; /* from 1, for the bias correction */
};
void fr_adamw_step(const struct fr_adamw *a, float *w, const float *g, float *m, float *v,
                   size_t n);

/* Sum of squares in double. */
double fr_norm2(const float *x, size_t n);

#endif /* FR_TRAIN_OPTIM_H */
