/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - the states of a job as one table, and the names of modes and phases */
#include "model/job.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define TO(s) (1u << FR_JOB_##s)
#define ENDS  (TO(DONE) | TO(FAILED) | TO(CANCELLED))

static const struct {
    const char *name;
    uint32_t next; /* states that may follow */
} FR_JOB_MOVES[FR_JOB_STATES] = {
    /* a job that waits can start, be given up (no node will ever fit) or be taken back */
    [FR_JOB_QUEUED] = {"queued", TO(STARTING) | TO(LOST) | TO(FAILED) | TO(CANCELLED)},
    /* QUEUED: a node was lost before the launch, the attempt waits again */
    [FR_JOB_STARTING] = {"starting",
                         TO(RUNNING) | TO(STUCK) | TO(STOPPING) | TO(QUEUED) | TO(LOST) | ENDS},
    [FR_JOB_RUNNING] = {"running", TO(STUCK) | TO(STOPPING) | TO(LOST) | ENDS},
    /* a hang that was named may dissolve by itself: back to where the attempt was */
    [FR_JOB_STUCK] = {"stuck", TO(RUNNING) | TO(STARTING) | TO(STOPPING) | TO(LOST) | ENDS},
    [FR_JOB_STOPPING] = {"stopping", TO(STARTING) | TO(QUEUED) | TO(LOST) | ENDS},
    /* the supervisor is heard again: the job is wherever it says */
    [FR_JOB_LOST] = {"lost",
                     TO(QUEUED) | TO(STARTING) | TO(RUNNING) | TO(STUCK) | TO(STOPPING) | ENDS},
    [FR_JOB_DONE] = {"done", 0},
    [FR_JOB_FAILED] = {"failed", 0},
    [FR_JOB_CANCELLED] = {"cancelled", 0},
};

static const char *const MODES[] = {
    [FR_MODE_OBSERVE] = "observe", [FR_MODE_ADVISE] = "advise", [FR_MODE_ACT] = "act"};
enum { NMODES = sizeof MODES / sizeof MODES[0] };

/* by enum fullrank_phase of include/fullrank/fullrank.h */
static const char *const PHASES[] = {"idle", "init", "restore", "step", "eval", "checkpoint"};
enum { NPHASES = sizeof PHASES / sizeof PHASES[0] };

static int known(enum fr_job_state s)
{
    return (uint32_t)s < FR_JOB_STATES;
}

int fr_job_may_move(enum fr_job_state from, enum fr_job_state to)
{
    return known(from) && known(to) && (FR_JOB_MOVES[from].next >> to & 1);
}

const char *fr_job_state_name(enum fr_job_state s)
{
    return known(s) ? FR_JOB_MOVES[s].name : "?";
}

int fr_job_state_is_end(enum fr_job_state s)
{
    return known(s) && FR_JOB_MOVES[s].next == 0;
}

const char *fr_mode_name(enum fr_mode m)
{
    return (uint32_t)m < NMODES ? MODES[m] : "?";
}

int fr_mode_parse(const char *text, enum fr_mode *ret)
{
    for (uint32_t m = 0; text && m < NMODES; m++)
        if (strcmp(text, MODES[m]) == 0) {
            *ret = (enum fr_mode)m;
            return 0;
        }
    return -EINVAL;
}

const char *fr_phase_name(uint32_t phase)
{
    return phase < NPHASES ? PHASES[phase] : "?";
}
