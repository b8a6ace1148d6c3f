/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.h - compare two loss files of fullrank-train, step by step, bit by bit
 */
#ifndef FR_CLI_LOSSES_H
#define FR_CLI_LOSSES_H

#include <stdint.h>

#include "base/err.h"

/* Each file has lines {"step": n, "loss_bits": "16 hex digits"}; a step that was done again has
 * several, and all must agree. Returns 1: every step 1..steps is in both and alike; 0: not, err
 * says where first; negative errno: a file cannot be read. */
int fr_losses_compare(const char *path_a, const char *path_b, uint64_t steps, struct fr_err *err);

#endif /* FR_CLI_LOSSES_H */
