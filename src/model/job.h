/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - states of a job, and limits that every room shares
 *
 * The machine of states is the table FR_JOB_MOVES in job.c; fr_job_may_move is the only
 * judge of a move.
 */
#ifndef FR_MODEL_JOB_H
#define FR_MODEL_JOB_H

#include <stdint.h>

#define FR_NAME_BYTES                                                                              \
    64 /* job, node, rack, group names, with NUL; longer ones are refused at the door */

enum fr_job_state {
    FR_JOB_QUEUED = 0, /* known, waiting for nodes */
    FR_JOB_STARTING, /* an attempt is being launched: no step yet; of a job that marks none: not all
                        ranks have communicated */
    FR_JOB_RUNNING,  /* steps are made */
    FR_JOB_STUCK,    /* a hang was named, nothing was done yet */
    FR_JOB_STOPPING, /* the attempt is being ended to start another one */
    FR_JOB_LOST,     /* its supervisor is not heard of (unknown is not healthy) */
    FR_JOB_DONE,     /* ended well */
    FR_JOB_FAILED,   /* ended badly */
    FR_JOB_CANCELLED,
    FR_JOB_STATES
};

enum fr_mode { FR_MODE_OBSERVE = 0, FR_MODE_ADVISE, FR_MODE_ACT };

/* 1 when the table holds the move. */
int fr_job_may_move(enum fr_job_state from, enum fr_job_state to);
const char *fr_job_state_name(enum fr_job_state s); /* "queued", ... */
int fr_job_state_is_end(enum fr_job_state s);
const char *fr_mode_name(enum fr_mode m);
int fr_mode_parse(const char *text, enum fr_mode *ret); /* -EINVAL */
const char *fr_phase_name(uint32_t phase); /* enum fullrank_phase: "idle", "init", "restore",
                                              "step", "eval", "checkpoint" */

#endif /* FR_MODEL_JOB_H */
