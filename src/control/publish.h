/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish.h - what changed, as events for the stream
 *
 * Each event carries the same object as the API. Nothing is rendered when the state has no stream
 * (tests).
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_PUBLISH_H
#define FR_CONTROL_PUBLISH_H

#include "control/state.h"

void fr_publish_node(struct fr_ctl *c, const struct fr_cnode *n);
void fr_publish_incident(struct fr_ctl *c, const struct fr_cincident *i);
void fr_publish_decision(struct fr_ctl *c, const struct fr_cdecision *d);
void fr_publish_step(struct fr_ctl *c, const struct fr_cjob *j, size_t step_index);
/* Jobs that changed (at most five times a second each) and, once a second while somebody listens,
 * the status. */
void fr_publish_tick(struct fr_ctl *c);

#endif /* FR_CONTROL_PUBLISH_H */
