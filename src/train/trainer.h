/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h - one rank of the job: model, pipeline and data put together
 *
 * main.c is the loop; here is what one turn of it does. All functions are
 * collective over the grid.
 *
 * Unit:    nats per token.
 * Threads: one owner.
 */
#ifndef FR_TRAIN_TRAINER_H
#define FR_TRAIN_TRAINER_H

#include "data.h"
#include "model.h"
#include "options.h"
#include "pipeline.h"

struct fr_trainer {
    const struct fr_options *o; /* borrowed, like the grid and the data */
    const struct fr_grid *grid;
    const struct fr_data *data;
    struct fr_model model;
    struct fr_pipeline pipeline;
    struct fr_batch batch;
    size_t batch_local; /* sequences a step of this replica */
};

void fr_trainer_init(struct fr_trainer *t, const struct fr_options *o, const struct fr_grid *grid,
                     const struct fr_data *data);
void fr_trainer_fini(struct fr_trainer *t);

/* Read the sequences of this replica in `step` into t->batch. */
void fr_trainer_load(struct fr_trainer *t, enum fr_split split, int64_t step);

/* Forward and backward of t->batch into the gradient; returns the mean loss and
 * sets *ret_norm to the norm of the gradient over the whole grid, each
 * parameter once. Both are the same bits on all ranks of a replica and the loss
 * on all ranks. */
double fr_trainer_gradient(struct fr_trainer *t, double *ret_norm);

/* AdamW with the clipped gradient. */
void fr_trainer_update(struct fr_trainer *t, int64_t step, double norm);

/* Mean loss of t->batch, forward only. */
double fr_trainer_loss(struct fr_trainer *t);

/* Mean loss of the first --eval-batches batches of the evaluation text. */
double fr_trainer_eval(struct fr_trainer *t);

#endif /* FR_TRAIN_TRAINER_H */
