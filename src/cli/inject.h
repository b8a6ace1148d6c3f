/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - faults for drills: slow, stopped and killed ranks, by signals and nothing else
 *
 * It speaks to no detector: the API is asked for pids alone, the rest is the kernel. A victim must
 * be a process of the named job (its environment says so), of our own user unless we are root, in
 * one session with the others; it is held by a pidfd, so that no signal ever reaches another
 * process.
 *
 * Threads: one owner.
 */
#ifndef FR_CLI_INJECT_H
#define FR_CLI_INJECT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "cli/client.h"
#include "engine/local/procs.h"

#define FR_INJECT_TURN_S 0.02 /* how long a slowed rank runs between two stops */

struct fr_victim {
    struct fr_proc proc;
    int pidfd;
    int32_t rank;
    char node[64];
};

struct fr_victims {
    struct fr_victim *v;
    size_t n;
};

/* The rank (node NULL), or all ranks of the node (rank -1), of the job's current attempt. -ENOENT,
 * -EPERM, -ESRCH with the reason. */
int fr_inject_find(struct fr_client *c, const char *job, int32_t rank, const char *node,
                   struct fr_victims *ret, struct fr_err *err);
void fr_victims_fini(struct fr_victims *vs);

/* Signal all; sets *ret_unix_ns to the moment before the first (may be NULL). */
int fr_inject_signal(const struct fr_victims *vs, int sig, int64_t *ret_unix_ns,
                     struct fr_err *err);

/* Stop and continue all in turns, so that they get 1/factor of their time, for for_s (0: no limit),
 * until *quit is set or all are gone. Leaves them continued. Blocks. */
void fr_inject_slow(const struct fr_victims *vs, double factor, double for_s,
                    const volatile sig_atomic_t *quit);

/* Wait for_s or until *quit, then continue all. Blocks. */
void fr_inject_release_after(const struct fr_victims *vs, double for_s,
                             const volatile sig_atomic_t *quit);

#endif /* FR_CLI_INJECT_H */
