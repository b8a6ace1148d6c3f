/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.h - sharded checkpoints that are whole or do not exist
 *
 *   DIR/step-00000050/rank-00000.shard ...  one a rank of the first replica
 *   DIR/step-00000050/manifest              written last
 *
 * Every file is written under a temporary name, fsynced, renamed, and its
 * folder fsynced. The replicas hold the same state, so the first one writes
 * and all of them read: DIR must be a file system that all ranks see. Data
 * order is a function of the step, so there is nothing else to save.
 *
 * Error:   a failed write leaves the older checkpoints alone and the job goes
 *          on; a checkpoint that does not verify is named and passed over.
 * Threads: one owner; save and restore are collective and block on the disk.
 */
#ifndef FR_TRAIN_CHECKPOINT_H
#define FR_TRAIN_CHECKPOINT_H

#include "manifest.h"
#include "model.h"

struct fr_checkpoint {
    const struct fr_options *o; /* borrowed, like the next two */
    const struct fr_grid *grid;
    struct fr_model *model;
    struct fr_manifest stamp; /* of this job; step, peak and shards filled when saved */
};

void fr_checkpoint_init(struct fr_checkpoint *ck, const struct fr_options *o,
                        const struct fr_grid *grid, struct fr_model *model, uint64_t data_hash);

/* Make DIR if it is not there. Returns 0 or -errno, alike on all ranks. */
int fr_checkpoint_prepare(const struct fr_checkpoint *ck, struct fr_err *err);

/* Write the state after `step` and drop checkpoints before the last `keep`.
 * Returns 0 when it is durable on all ranks, or -errno alike on all ranks with
 * the sentence on rank 0. */
int fr_checkpoint_save(struct fr_checkpoint *ck, int64_t step, struct fr_err *err);

/* Load the newest checkpoint that verifies. Rank 0 says on stderr which ones
 * it refuses. *ret_step is 0 when there is none. Returns 0, or -EINVAL when the
 * newest good one is of another grid or model. */
int fr_checkpoint_restore(struct fr_checkpoint *ck, int64_t *ret_step, struct fr_err *err);

#endif /* FR_TRAIN_CHECKPOINT_H */
