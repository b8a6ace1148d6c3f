/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - the measurements behind the table of tests
 *
 * Each takes well under a second, checks its deadline, and leaves nothing behind.
 * Units as in the table of diag.c.
 */
#ifndef FR_DIAG_MEASURE_H
#define FR_DIAG_MEASURE_H

#include "diag/test.h"

void fr_diag_measure_arithmetic(const struct fr_diag_context *cx, struct fr_diag_sample *ret);
void fr_diag_measure_checksum(const struct fr_diag_context *cx, struct fr_diag_sample *ret);
void fr_diag_measure_scheduling(const struct fr_diag_context *cx, struct fr_diag_sample *ret);
void fr_diag_measure_memory(const struct fr_diag_context *cx, struct fr_diag_sample *ret);
void fr_diag_measure_disk(const struct fr_diag_context *cx, struct fr_diag_sample *ret);
void fr_diag_measure_loopback(const struct fr_diag_context *cx, struct fr_diag_sample *ret);

#endif /* FR_DIAG_MEASURE_H */
