/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - micro-batches through the stages: one forward, one backward
 *
 * A stage that is k stages from the end starts k micro-batches ahead, then
 * alternates one forward and one backward pass, then drains: at most k + 1
 * micro-batches are in flight. Sends are non-blocking (a stage never waits to
 * be read), receives block. Gradients are summed over the replicas in buckets,
 * one a layer, started as soon as the last micro-batch has been through it.
 *
 * Unit:    nats (losses are sums over tokens until main.c divides them).
 * Threads: one owner.
 * Source:  Narayanan et al., "PipeDream", SOSP 2019; Megatron-LM 2021, section 2.2.
 */
#ifndef FR_TRAIN_PIPELINE_H
#define FR_TRAIN_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

struct fr_op {
    bool backward;
    int micro;
};

/* Write the 2 * micros operations of one stage, in order, to ret[]. */
void fr_schedule_1f1b(int stage, int stages, int micros, struct fr_op *ret);

/* The sequences of one replica for one step; row r of micro-batch i is
 * [(i * N + r)]. Both of micros * N bytes. */
struct fr_batch {
    uint8_t *inputs, *targets;
};

struct fr_slot {
    struct fr_act act;
    MPI_Request sent[2]; /* `out` onwards, `dx` backwards */
};

struct fr_pipeline {
    struct fr_model *model; /* borrowed */
    int micros, slots;
    struct fr_slot *slot;
    struct fr_op *op; /* [2 * micros] */
    MPI_Request *bucket;
    int buckets; /* started in this step */
};

void fr_pipeline_init(struct fr_pipeline *p, struct fr_model *model, int micros);
void fr_pipeline_fini(struct fr_pipeline *p);

/* Forward and backward: model->g becomes the gradient of scale * (sum of all
 * losses of all replicas). Returns this replica's sum of losses on the last
 * stage and 0 on the others. Collective over the grid. */
double fr_pipeline_train(struct fr_pipeline *p, const struct fr_batch *batch, float scale);

/* Forward only. Returns as fr_pipeline_train. */
double fr_pipeline_eval(struct fr_pipeline *p, const struct fr_batch *batch);

#endif /* FR_TRAIN_PIPELINE_H */
