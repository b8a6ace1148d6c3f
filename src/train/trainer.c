/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "optim.h"

void fr_trainer_init(struct fr_trainer *t, const struct fr_options *o, const struct fr_grid *grid,
                     const struct fr_data *data)
{
    *t = (struct fr_trainer){.o = o, .grid = grid, .data = data};
    t->batch_local = (size_t)(o->batch / o->dp);
    fr_model_init(&t->model, o, grid);
    fr_pipeline_init(&t->pipeline, &t->model, (int)(o->batch / o->dp / o->micro_batch));
    t->batch.inputs = fr_zalloc(t->batch_local * t->model.seq, 1);
    t->batch.targets = fr_zalloc(t->batch_local * t->model.seq, 1);
}

void fr_trainer_fini(struct fr_trainer *t)
{
    free(t->batch.inputs);
    free(t->batch.targets);
    fr_pipeline_fini(&t->pipeline);
    fr_model_fini(&t->model);
}

void fr_trainer_load(struct fr_trainer *t, enum fr_split split, int64_t step)
{
    size_t seq = t->model.seq;
    FR_CLEANUP(fr_freep) uint8_t *tokens = fr_zalloc(seq + 1, 1);

    for (size_t i = 0; i < t->batch_local; i++) {
        uint64_t index = (uint64_t)t->grid->dp.index * t->batch_local + i;

        fr_data_sample(t->data, split, (uint64_t)t->o->seed, (uint64_t)step, index, seq, tokens);
        memcpy(t->batch.inputs + i * seq, tokens, seq);
        memcpy(t->batch.targets + i * seq, tokens + 1, seq);
    }
}

/* Sums over a whole model replica: x[0] counts each tensor shard, x[1] is known
 * on the last stage. */
static void sum_over_replica(const struct fr_trainer *t, double x[2])
{
    fr_sum_f64(&t->grid->tp, &x[0], 1);
    fr_sum_f64(&t->grid->pp, x, 2);
}

static double tokens_per_step(const struct fr_trainer *t)
{
    return (double)(t->o->batch * t->o->seq);
}

double fr_trainer_gradient(struct fr_trainer *t, double *ret_norm)
{
    struct fr_model *m = &t->model;
    double x[2] = {0, 0};

    x[1] = fr_pipeline_train(&t->pipeline, &t->batch, (float)(1 / tokens_per_step(t)));
    if (m->last)
        fr_sum_f64(&t->grid->dp, &x[1], 1);
    for (size_t i = 0; i < m->tensors; i++)
        if (m->tensor[i].counted)
            x[0] += fr_norm2(m->g + m->tensor[i].at, m->tensor[i].rows * m->tensor[i].cols);
    sum_over_replica(t, x);
    *ret_norm = sqrt(x[0]);
    return x[1] / tokens_per_step(t);
}

void fr_trainer_update(struct fr_trainer *t, int64_t step, double norm)
{
    const struct fr_options *o = t->o;
    struct fr_model *m = &t->model;
    struct fr_adamw a = {
        .lr = fr_lr_at(step, o->steps, o->warmup, o->lr, o->min_lr),
        .scale = o->clip > 0 && norm > o->clip ? o->clip / norm : 1,
        .step = step,
    };

    for (size_t i = 0; i < m->tensors; i++) {
        size_t at = m->tensor[i].at;

        a.decay = m->tensor[i].decay ? o->weight_decay : 0;
        fr_adamw_step(&a, m->w + at, m->g + at, m->m + at, m->v + at,
                      m->tensor[i].rows * m->tensor[i].cols);
    }
}

double fr_trainer_loss(struct fr_trainer *t)
{
    double x[2] = {0, fr_pipeline_eval(&t->pipeline, &t->batch)};

    if (t->model.last)
        fr_sum_f64(&t->grid->dp, &x[1], 1);
    fr_sum_f64(&t->grid->pp, &x[1], 1);
    return x[1] / tokens_per_step(t);
}

double fr_trainer_eval(struct fr_trainer *t)
{
    double loss = 0;

    for (int64_t i = 0; i < t->o->eval_batches; i++) {
        fr_trainer_load(t, FR_SPLIT_EVAL, i);
        loss += fr_trainer_loss(t);
    }
    return loss / (double)t->o->eval_batches;
}
