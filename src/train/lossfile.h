/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lossfile.h - one JSON line a step, and no step twice after a restart
 *
 *   {"step":7,"loss":5.03125,"loss_bits":"4014200000000000","step_time_s":0.151}
 *
 * loss_bits is the double itself, so that two runs can be compared bit by bit.
 * A file that can no longer be written is reported once; the job goes on.
 */
#ifndef FR_TRAIN_LOSSFILE_H
#define FR_TRAIN_LOSSFILE_H

#include <stdint.h>
#include <stdio.h>

#include "err.h"

/* Open `path`, dropping every line after `step` and whatever is no such line.
 * Returns 0 and *ret (fclose it), or -errno and a sentence. */
int fr_lossfile_open(const char *path, int64_t step, FILE **ret, struct fr_err *err);

/* Returns 0, or -errno when the line could not be written. */
int fr_lossfile_add(FILE *file, int64_t step, double loss, double step_time_s);

#endif /* FR_TRAIN_LOSSFILE_H */
