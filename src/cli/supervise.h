/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.h - the owner of a job's processes, outside of every daemon
 *
 * One process a job, leader of its own session, subreaper of what the job leaves behind. It starts
 * and ends attempts as the controller orders, reports ten times a second, carries the job's error
 * output, and ends with the job's own exit code. When the controller is away the attempt runs on;
 * when an attempt ends meanwhile, the supervisor waits FR_SUPERVISE_AWAY_S for it and then starts
 * the next attempt by itself on the same nodes.
 *
 * On disk (state_dir/supervise.json, written whole before an order is acted on): key, job, newest
 * order done, attempt, exit status.
 *
 * Threads: one (and the link's).
 */
#ifndef FR_CLI_SUPERVISE_H
#define FR_CLI_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define FR_SUPERVISE_TICK_MS 100
#define FR_SUPERVISE_AWAY_S                                                                        \
    30.0 /* then an attempt that ended badly is started again without the controller */
#define FR_SUPERVISE_ALONE_MAX 3 /* so often */
#define FR_SUPERVISE_STOP_S    10.0

struct fr_supervise {
    const char *server;
    const char *token; /* may be NULL */
    const char *state_dir;
    const char *name, *mode, *engine, *level;
    const char *probe_lib;      /* NULL: none */
    const char *restarts_owner; /* what else starts the job again, "": nothing */
    char *const *command;       /* NULL-terminated */
    uint32_t nodes, ranks_per_node, spares, max_attempts;
    bool quiet; /* say nothing but errors */
};

/* Run the job to its end. The caller leads its own session (fr_supervise_lead). Returns the exit
 * code. */
int fr_supervise_run(const struct fr_supervise *s);

/* 1: this process leads its session already. 0: a copy of it (argv) was run in a session of its
 * own, signals passed on to it, and has ended with *ret_code. Negative errno: it could not be
 * started. */
int fr_supervise_lead(char *const *argv, const char *state_dir, int *ret_code, struct fr_err *err);

/* After the supervisor `pid`, dead by signal `sig` and not yet reaped: end what is left of its
 * session, remove the attempt's folder, say so. A job without an owner would hold the cores for
 * good. */
void fr_supervise_clean(pid_t pid, int sig, const char *state_dir);

#endif /* FR_CLI_SUPERVISE_H */
