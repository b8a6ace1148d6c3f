/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel.h - the data x pipeline x tensor grid and its communicators
 *
 * rank = (dp_index * pp + pp_index) * tp + tp_index: tensor shards are
 * neighbours, so that a node of two ranks holds one tensor pair, whose
 * collectives are the most frequent; then stages, then replicas.
 *
 * Each communicator is named ("world", "tp", "pp", "dp", "embed") for whoever
 * watches. A communicator of one rank is never called.
 *
 * Error:   sums come in the same order on every run of the same grid, and are
 *          the same bits on every rank of a communicator.
 * Threads: the one thread of the rank; all functions but the index ones block.
 * Source:  Megatron-LM, "Efficient Large-Scale Language Model Training on GPU
 *          Clusters Using Megatron-LM", 2021, section 3.
 */
#ifndef FR_TRAIN_PARALLEL_H
#define FR_TRAIN_PARALLEL_H

#include <mpi.h>
#include <stddef.h>

#include "err.h"
#include "options.h"

/* Ranks of one dimension, as this rank sees them. */
struct fr_group {
    MPI_Comm comm;
    int index, size;
};

struct fr_grid {
    struct fr_group world, tp, pp, dp;
    struct fr_group embed; /* first and last stage, which share the embedding; size 1 elsewhere */
};

/* Split the world; the product of the three must be its size. Collective. */
void fr_grid_init(struct fr_grid *grid, int dp, int pp, int tp);
void fr_grid_fini(struct fr_grid *grid);

/* The place of `rank` in a grid. */
void fr_grid_place(int rank, int pp, int tp, int *ret_dp, int *ret_pp, int *ret_tp);

/* Sum x[n] over the group in place. */
void fr_sum_f32(const struct fr_group *group, float *x, size_t n);
void fr_sum_f64(const struct fr_group *group, double *x, size_t n);

/* Give the `bytes` at p of the first rank of the group to all of it. */
void fr_share(const struct fr_group *group, void *p, size_t bytes);

/* Bring the `bytes` at `mine` of each rank to the first one: all[size][bytes]. */
void fr_collect(const struct fr_group *group, const void *mine, size_t bytes, void *all);

/* Do all ranks of the world agree that they can go on? `rc` is this rank's
 * result (0, or negative with err set). Returns 0 when all are 0; else the
 * result of the first rank that failed, and *err is its sentence on rank 0.
 * Collective. */
int fr_agree(const struct fr_grid *grid, int rc, struct fr_err *err);

#endif /* FR_TRAIN_PARALLEL_H */
