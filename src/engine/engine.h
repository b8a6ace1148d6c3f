/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - what a site's scheduler can do for us: one table of functions a driver
 *
 * A driver fills struct fr_engine_ops; what it cannot do stays NULL, and fr_engine_cannot says so
 * in a sentence. The two sides that call it: the controller (discover, drain, resume, mark down)
 * and the supervisor (launch, stop), which owns the processes.
 *
 * Threads: an engine object belongs to one thread.
 */
#ifndef FR_ENGINE_ENGINE_H
#define FR_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "model/job.h"

#define FR_ENGINE_REASON_PREFIX                                                                    \
    "fullrank:" /* drains that we set, and the only ones that we undo                              \
                 */

struct fr_engine; /* an open driver */

/* One node of an attempt and the ranks on it, in rank order. */
struct fr_placement {
    char node[FR_NAME_BYTES];
    char host[FR_NAME_BYTES];
    char probe_dir[256];
    uint32_t first_rank, nranks;
};

struct fr_launch {
    const char *job;
    uint32_t attempt;
    uint64_t epoch;
    const struct fr_placement *placements;
    size_t nplacements;
    char *const *command;  /* NULL-terminated */
    const char *probe_lib; /* libfullrank-mpi.so to preload, NULL: none */
    const char *level;     /* FULLRANK_PROBE */
    const char *work_dir;  /* the job's working directory */
    const char
        *attempt_dir; /* private to this attempt: logs, launcher's scratch; removed by the caller */
    int stdout_fd, stderr_fd;
};

/* A started attempt. */
struct fr_attempt_proc {
    pid_t launcher; /* child of the caller */
    pid_t session;  /* all processes of the attempt are in this session */
};

struct fr_engine_ops {
    const char *name; /* "local", "slurm", "k8s" */
    int (*open)(const char *state_dir, struct fr_engine **ret, struct fr_err *err);
    void (*close)(struct fr_engine *e);
    /* Start the attempt's processes; returns at once. The launcher is a child of the caller. */
    int (*launch)(struct fr_engine *e, const struct fr_launch *l, struct fr_attempt_proc *ret,
                  struct fr_err *err);
    /* End every process of the attempt, stopped ones too, and wait for their end up to limit_s.
     * -ETIMEDOUT names who is left. */
    int (*stop)(struct fr_engine *e, const struct fr_attempt_proc *p, double limit_s,
                struct fr_err *err);
    /* Remove what dead processes left behind (shared memory, scratch). */
    void (*sweep)(struct fr_engine *e, const struct fr_launch *l);
    int (*drain)(struct fr_engine *e, const char *node, const char *reason, struct fr_err *err);
    int (*resume)(struct fr_engine *e, const char *node, struct fr_err *err);
    int (*mark_down)(struct fr_engine *e, const char *node, const char *reason, struct fr_err *err);
};

/* The driver of that name, or NULL. */
const struct fr_engine_ops *fr_engine_find(const char *name);

/* "engine local cannot mark a node down (it has no scheduler to tell)" */
void fr_engine_cannot(const struct fr_engine_ops *ops, const char *what, struct fr_err *err);

#endif /* FR_ENGINE_ENGINE_H */
