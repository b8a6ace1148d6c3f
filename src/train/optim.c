/* SPDX-License-Identifier: Apache-2.0 */
#include "optim.h"

#include <math.h>

#define BETA1   0.9
#define BETA2   0.95
#define EPSILON 1e-8

double fr_lr_at(int64_t step, int64_t steps, int64_t warmup, double lr, double min_lr)
{
    double done;

    if (step <= warmup)
        return lr * (double)step / (double)warmup;
    if (step >= steps)
        return min_lr;
    done = (double)(step - warmup) / (double)(steps - warmup);
    return min_lr + 0.5 * (1 + cos(M_PI * done)) * (lr - min_lr);
}

void fr_adamw_step(const struct fr_adamw *a, float *w, const float *g, float *m, float *v, size_t n)
{
    const float b1 = (float)BETA1, b2 = (float)BETA2, c1 = (float)(1 - BETA1),
                c2 = (float)(1 - BETA2);
    const float scale = (float)a->scale, keep = (float)(1 - a->lr * a->decay);
    /* lr * mhat / (sqrt(vhat) + eps), with both corrections taken out of the loop */
    const double fix1 = 1 - pow(BETA1, (double)a->step), fix2 = 1 - pow(BETA2, (double)a->step);
    const float rate = (float)(a->lr / fix1), inv2 = (float)(1 / fix2), eps = (float)EPSILON;

    for (size_t i = 0; i < n; i++) {
        float gi = g[i] * scale;
        m[i] = b1 * m[i] + c1 * gi;
        v[i] = b2 * v[i] + c2 * gi * gi;
        w[i] = w[i] * keep - rate * m[i] / (sqrtf(v[i] * inv2) + eps);
    }
}

double fr_norm2(const float *x, size_t n)
{
    double acc[4] = {0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (size_t l = 0; l < 4; l++)
            acc[l] += (double)x[i + l] * (double)x[i + l];
    for (; i < n; i++)
        acc[0] += (double)x[i] * (double)x[i];
    return (acc[0] + acc[1]) + (acc[2] + acc[3]);
}
