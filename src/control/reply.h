/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply.h - what an agent is answered: what is durable, which processes are its ranks, what it is
 * asked to do
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_REPLY_H
#define FR_CONTROL_REPLY_H

#include "control/state.h"

/* A report was taken: acknowledge it once what it said is durable, the step of j (NULL: none)
 * included. */
void fr_reply_note(struct fr_ctl *c, struct fr_cnode *n, uint64_t seq, struct fr_cjob *j,
                   uint64_t step);
void fr_reply_make(struct fr_ctl *c, struct fr_cnode *n, struct fr_buf *reply);
/* Returns 400. */
int fr_reply_refuse(struct fr_ctl *c, const char *why, struct fr_buf *reply);

#endif /* FR_CONTROL_REPLY_H */
