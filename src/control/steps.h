/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - from what each rank did to what the job did
 *
 * A step of the job begins with its first rank and ends with its last one, and is recorded when all
 * ranks have ended it. A phase of the job (restore, evaluation, checkpoint) lasts while any rank is
 * in it.
 *
 * Memory:  FR_STEPS_OPEN steps are open at a time; a step that falls out of that window is given
 * up. Threads: the loop thread.
 */
#ifndef FR_CONTROL_STEPS_H
#define FR_CONTROL_STEPS_H

#include "control/state.h"

struct fr_rank_step { /* of the current attempt; times already on the controller's clock */
    uint32_t rank;
    uint64_t step, begin_ns, end_ns;
    double self_s, loss, tokens;
};
/* Returns 1 when it completed the job's step. */
int fr_steps_add(struct fr_ctl *c, struct fr_cjob *j, const struct fr_rank_step *s);

/* Rank was in the phase; grows the job's span or opens one. */
void fr_spans_add(struct fr_ctl *c, struct fr_cjob *j, uint32_t phase, int64_t begin_unix_ns,
                  int64_t end_unix_ns);

/* The rank has completed a collective, by then at the latest. Once all have, an attempt of a
 * program that marks no steps counts as running. */
void fr_steps_moved(struct fr_ctl *c, struct fr_cjob *j, uint32_t rank, uint64_t at_ns);

/* Append rows that were restored (no row is written again). */
void fr_steps_restore(struct fr_cjob *j, uint32_t attempt_index, const struct fr_row_step *r);
void fr_spans_restore(struct fr_cjob *j, uint32_t attempt_index, const struct fr_row_span *r);

/* Median duration of the newest n steps of the current attempt, NaN: none. */
double fr_steps_median_s(const struct fr_cjob *j, size_t n);

#endif /* FR_CONTROL_STEPS_H */
