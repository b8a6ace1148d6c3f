/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - the goodput account of a job, from what the ledger holds
 *
 * Threads: the loop thread. The account is made anew at most once a second, and rarer when making
 * it takes long.
 */
#ifndef FR_CONTROL_ACCOUNT_H
#define FR_CONTROL_ACCOUNT_H

#include "control/state.h"

void fr_account_tick(struct fr_ctl *c, struct fr_cjob *j);
/* Model FLOPs utilisation over the newest steps; NaN: not known. */
double fr_account_mfu(const struct fr_cjob *j);

#endif /* FR_CONTROL_ACCOUNT_H */
