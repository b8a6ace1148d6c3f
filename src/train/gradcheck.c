/* SPDX-License-Identifier: Apache-2.0 */
#include "gradcheck.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "optim.h"

#define TRAIN_STEPS 8
#define STEP_LENGTH 1e-2 /* in the norm of the tensor */

/* This rank's part of a tensor; NULL when it has none. */
static const struct fr_tensor *find_tensor(const struct fr_model *m, enum fr_kind kind,
                                           int64_t layer)
{
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].kind == kind && m->tensor[i].layer == layer)
            return &m->tensor[i];
    return NULL;
}

/* Loss with tensor x moved by `length` along its gradient of norm `norm`. */
static double loss_at(struct fr_trainer *t, const struct fr_tensor *x, double norm, double length,
                      float *saved)
{
    struct fr_model *m = &t->model;
    size_t n = x ? x->rows * x->cols : 0;
    double loss;

    if (x) {
        memcpy(saved, m->w + x->at, n * sizeof *saved);
        for (size_t i = 0; i < n; i++)
            m->w[x->at + i] += (float)(length / norm * (double)m->g[x->at + i]);
    }
    loss = fr_trainer_loss(t);
    if (x)
        memcpy(m->w + x->at, saved, n * sizeof *saved);
    return loss;
}

int fr_gradcheck(struct fr_trainer *t, bool verbose, double *ret_worst)
{
    struct fr_model *m = &t->model;
    FR_CLEANUP(fr_freep) float *saved = fr_zalloc(m->params, sizeof *saved);
    bool lead = t->grid->world.index == 0;
    double norm, worst = 0;
    int bad = 0;

    for (int64_t step = 1; step <= TRAIN_STEPS; step++) {
        fr_trainer_load(t, FR_SPLIT_TRAIN, step);
        fr_trainer_gradient(t, &norm);
        fr_trainer_update(t, step, norm);
    }
    fr_trainer_gradient(t, &norm);

    for (int64_t layer = -1; layer < t->o->layers; layer++)
        for (enum fr_kind k = 0; k < FR_KINDS; k++) {
            const struct fr_tensor *x = find_tensor(m, k, layer);
            double n2 = 0, slope, error;

            if ((layer >= 0) != (k >= FR_LN1_W && k <= FR_FC2_B))
                continue;
            if (x && x->counted)
                n2 = fr_norm2(m->g + x->at, x->rows * x->cols);
            fr_sum_f64(&t->grid->tp, &n2, 1);
            fr_sum_f64(&t->grid->pp, &n2, 1);
            norm = sqrt(n2);
            slope = (loss_at(t, x, norm, STEP_LENGTH, saved) -
                     loss_at(t, x, norm, -STEP_LENGTH, saved)) /
                    (2 * STEP_LENGTH);
            error = fabs(slope - norm) / norm;
            worst = !(error <= worst) ? error : worst; /* a NaN stays */
            if (!(error <= FR_GRADCHECK_TOLERANCE))
                bad++;
            if (lead && (verbose || !(error <= FR_GRADCHECK_TOLERANCE)))
                printf("layer %3" PRId64 "  %-12s gradient %.6e  differences %.6e  error %.1e\n",
                       layer, fr_kind_name(k), norm, slope, error);
        }
    *ret_worst = worst;
    return bad;
}
