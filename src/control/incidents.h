/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents.h - findings become incidents, incidents get decisions
 *
 * Each judgement gives all findings that stand; this compares them with the open incidents: a new
 * cause opens one, a finding of a known cause (the ranks that wait for a dead one, say) updates it,
 * and one whose finding is gone for two seconds closes. For the gravest open incident the policy is
 * asked each time; a decision is recorded when it changes.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_INCIDENTS_H
#define FR_CONTROL_INCIDENTS_H

#include "control/state.h"

void fr_incidents_tick(struct fr_ctl *c);
/* Fold one judgement of j into its incidents (the part of the tick that tests drive alone). */
void fr_incidents_fold(struct fr_ctl *c, struct fr_cjob *j, const struct fr_finding *f, size_t n);
/* Close all open incidents of the job. */
void fr_incidents_close_job(struct fr_ctl *c, struct fr_cjob *j, const char *why);
/* Put a restored row into the table; room is made by dropping the oldest closed one. NULL: full of
 * open ones. */
struct fr_cincident *fr_incident_add(struct fr_ctl *c, uint64_t id);
struct fr_cdecision *fr_decision_add(struct fr_ctl *c, uint64_t id);

#endif /* FR_CONTROL_INCIDENTS_H */
