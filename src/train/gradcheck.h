/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradcheck.h - is the gradient of the grid the slope of its loss?
 *
 * For each tensor of the model, all its shards are moved a little along the
 * gradient, up and down, and the change of the loss is compared with the
 * gradient's norm. A wrong, missing or doubled contribution, also one between
 * ranks, shows as a ratio that is not 1.
 *
 * Error:   float32 losses are good to about 1e-7, which is 1e-3 of the change
 *          that a step of 1e-2 makes; FR_GRADCHECK_TOLERANCE leaves room.
 */
#ifndef FR_TRAIN_GRADCHECK_H
#define FR_TRAIN_GRADCHECK_H

#include "trainer.h"

#define FR_GRADCHECK_TOLERANCE 0.02

/* Trains a few steps first (at the start attention is uniform and its gradients
 * are next to nothing), then checks every tensor. Returns how many tensors
 * disagree, alike on all ranks; rank 0 prints each of them, and all when
 * `verbose`; *ret_worst is the largest relative error. Collective. */
int fr_gradcheck(struct fr_trainer *t, bool verbose, double *ret_worst);

#endif /* FR_TRAIN_GRADCHECK_H */
