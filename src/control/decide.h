/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.h - ask the policy about an incident, record what it chose, begin to act
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_DECIDE_H
#define FR_CONTROL_DECIDE_H

#include "control/state.h"

/* i: the gravest open incident of j, NULL: none. Also decides about an attempt that ended badly
 * with no incident. */
void fr_decide(struct fr_ctl *c, struct fr_cjob *j, struct fr_cincident *i);

#endif /* FR_CONTROL_DECIDE_H */
