/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - a supervisor as a detached child whose output is followed
 *
 * The supervisor gets a session of its own and writes into two files of its state folder: closing
 * the terminal, or killing whoever follows, does not touch the job.
 *
 * Threads: one owner.
 */
#ifndef FR_CLI_CHILD_H
#define FR_CLI_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct fr_child_options {
    const char *server, *token_file, *dir; /* dir: made; holds stdout, stderr, supervise.json */
    const char *name, *engine, *mode, *level;
    uint32_t nodes, ranks_per_node, spares, max_attempts;
    bool own_restarts, no_own_restarts;
    bool quiet;
    char *const *command;
};

struct fr_child {
    pid_t pid; /* 0: it has ended */
    int code;  /* exit code, once ended */
    int fd[2]; /* stdout, stderr of the job, as files to read on */
    char dir[300];
};

int fr_child_start(const struct fr_child_options *opt, struct fr_child *ret, struct fr_err *err);

/* Copy what the job has written since the last call: to our stdout and stderr, or with `into`
 * append both there. */
void fr_child_follow(struct fr_child *c, struct fr_buf *into);

/* true while it runs. When it was killed, what it left of the job is ended here. */
bool fr_child_alive(struct fr_child *c);

/* Ask it to cancel (SIGTERM), wait up to limit_s, then SIGKILL it and its session. Returns its
 * code. */
int fr_child_cancel(struct fr_child *c, int sig, double limit_s);
void fr_child_close(struct fr_child *c);

#endif /* FR_CLI_CHILD_H */
