/* SPDX-License-Identifier: Apache-2.0 */
/*
 * act.h - carrying out a decision: record, gather evidence, drain, stop, place, start
 *
 * One at a time for a job. Nothing is done before the decision and its intended actions are
 * durable; each action's end is recorded too, so that a controller that was killed in between goes
 * on where it was. An action is done at most once in effect: a drain is a state, and stop and start
 * are orders with ids of their own.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_ACT_H
#define FR_CONTROL_ACT_H

#include "control/state.h"
#include "wire/agent.pb-c.h"

/* Begin to carry out d (ISOLATE, RESTART, GIVE_UP); node: to be drained, NULL: none; incident may
 * be NULL. */
void fr_act_begin(struct fr_ctl *c, struct fr_cjob *j, struct fr_cdecision *d,
                  struct fr_cincident *incident, struct fr_cnode *node);
void fr_act_tick(struct fr_ctl *c, struct fr_cjob *j);
/* The attempt that was ordered runs. */
void fr_act_started(struct fr_ctl *c, struct fr_cjob *j);
/* After a restart: take up what was intended and not done. */
void fr_act_resume(struct fr_ctl *c, struct fr_cjob *j);
/* The incident whose evidence the agents of this node are to gather now, NULL: none. */
struct fr_cincident *fr_act_collects(const struct fr_cnode *n);
/* Whether the processes are to be asked for their own account of it. */
bool fr_act_wants_dumps(const struct fr_cincident *i);
/* A file of evidence, or a part of one, came. */
void fr_act_evidence(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Evidence *e);

#endif /* FR_CONTROL_ACT_H */
