/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - one controller a ledger: an flock'd file "LEDGER.lock" beside it that holds the owner's
 * pid
 *
 * The kernel lets go of the lock when its owner ends, however it ends; a file that is left behind
 * locks nothing. SQLite's own locks are no help: they let two writers take turns.
 */
#ifndef FR_STORE_LOCK_H
#define FR_STORE_LOCK_H

#include "base/err.h"

struct fr_lock {
    int fd; /* -1: not held */
    char *path;
};

/* Take it without waiting; -EBUSY when another one (in this process too) has it. Links are
 * followed, so that two names of one ledger are one lock. */
int fr_lock_take(struct fr_lock *lock, const char *ledger, struct fr_err *err);
void fr_lock_drop(struct fr_lock *lock);

#endif /* FR_STORE_LOCK_H */
