/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restore.h - the state as the ledger holds it, after a start
 *
 * Jobs with their attempts, steps and phases, open and closed incidents, decisions with their
 * actions, and the states of nodes. What was intended and not done is taken up again; orders get
 * the ids that they had. The wall clock of this controller begins behind everything that the ledger
 * holds.
 *
 * Threads: before the loop begins.
 */
#ifndef FR_CONTROL_RESTORE_H
#define FR_CONTROL_RESTORE_H

#include "control/state.h"

int fr_restore(struct fr_ctl *c, const char *ledger_path, struct fr_err *err);

#endif /* FR_CONTROL_RESTORE_H */
