/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.h - a private fleet: one controller and the agents of N nodes, on this machine, in one
 * folder
 *
 * For `run` without a server and for `demo`. Daemons are children of the caller, each in a session
 * of its own, and end with it; one that dies is started again, later and later. A job is never
 * among them: its supervisor owns it, so that the end of any of these, or of all, leaves the job
 * running.
 *
 * Threads: one owner; the caller must not have started threads.
 */
#ifndef FR_CLI_FLEET_H
#define FR_CLI_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct fr_fleet;

struct fr_fleet_options {
    const char *dir;        /* made, 0700; the owner removes it after fr_fleet_stop */
    uint32_t nodes;         /* n0 .. */
    const char *mode;       /* "act", ... */
    bool verbose;           /* daemons log at level info */
    const char *const *env; /* NAME=VALUE for the daemons, NULL-terminated, must live as long as the
                               fleet; may be NULL */
};

/* Start all and wait until every node is known, at most 15 s. On failure nothing is left running.
 */
int fr_fleet_start(const struct fr_fleet_options *opt, struct fr_fleet **ret, struct fr_err *err);

/* Start again what died. Call it a few times a second. */
void fr_fleet_tick(struct fr_fleet *f);

/* End all: SIGTERM, and SIGKILL after 5 s; frees f. NULL is fine. */
void fr_fleet_stop(struct fr_fleet *f);

/* The process needs the fleet's folders, even when the fleet's own end is a sudden one: a job's
 * supervisor. */
int fr_fleet_share(const struct fr_fleet *f, pid_t pid, struct fr_err *err);

const char *fr_fleet_server(const struct fr_fleet *f);
const char *fr_fleet_token_file(const struct fr_fleet *f);
const char *fr_fleet_token(const struct fr_fleet *f);

/* The pid of "controller" or of a node's agent, 0 while it is down. */
pid_t fr_fleet_pid(const struct fr_fleet *f, const char *name);

#endif /* FR_CLI_FLEET_H */
