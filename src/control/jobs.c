/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - the life of a job and of its attempts; see jobs.h. What supervisors say is in
 * supervise.c. */
#include "control/jobs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "control/account.h"
#include "control/act.h"
#include "control/fleet.h"
#include "control/incidents.h"
#include "control/nccl_series.h"
#include "control/publish.h"

#define SETTLE_AFTER_NS 450000000ll /* a report that was made after the end has come by then */
#define ABANDONED_NS                                                                               \
    60000000000ull /* silence of a supervisor after which its job, if nothing of it runs, is over  \
                    */
#define ENDED_WITH_DETAIL 16 /* ended jobs that keep judge and ranks in memory */

void fr_job_move(struct fr_ctl *c, struct fr_cjob *j, enum fr_job_state to)
{
    (void)c;
    if (j->state == to)
        return;
    if (!fr_job_may_move(j->state, to)) {
        fr_log(FR_LOG_WARNING, "job.refused", "job=%s from=%s to=%s", j->job,
               fr_job_state_name(j->state), fr_job_state_name(to));
        return;
    }
    fr_log(FR_LOG_NOTICE, "job.state", "job=%s from=%s to=%s", j->job, fr_job_state_name(j->state),
           fr_job_state_name(to));
    j->state = to;
    j->dirty = j->changed = true;
}

enum fr_job_state fr_job_natural_state(const struct fr_cjob *j)
{
    const struct fr_cattempt *a = j->nattempts ? &j->attempts[j->nattempts - 1] : NULL;

    if (!a)
        return FR_JOB_QUEUED;
    if (a->stop_unix_ns || a->end_unix_ns)
        return j->act.stage == FR_ACT_PLACE ? FR_JOB_QUEUED : FR_JOB_STOPPING;
    return a->first_step_unix_ns || (a->first_move_unix_ns && !fr_job_marks_steps(j))
               ? FR_JOB_RUNNING
               : FR_JOB_STARTING;
}

bool fr_job_marks_steps(const struct fr_cjob *j)
{
    return j->nsteps || j->total_steps;
}

bool fr_job_has_moved(const struct fr_cjob *j)
{
    for (uint32_t i = 0; i < j->nattempts; i++)
        if (j->attempts[i].first_move_unix_ns)
            return true;
    return false;
}

static void free_detail(struct fr_cjob *j)
{
    fr_judge_free(j->judge);
    j->judge = NULL;
    free(j->ranks);
    j->ranks = NULL;
    free(j->open_steps);
    j->open_steps = NULL;
    free(j->open_self);
    j->open_self = NULL;
    fr_nccl_free(j->nccl);
    j->nccl = NULL;
    free(j->comms);
    j->comms = NULL;
    j->ncomms = j->comms_cap = 0;
    j->judging = false;
}

void fr_job_free(struct fr_cjob *j)
{
    if (!j)
        return;
    free_detail(j);
    for (uint32_t i = 0; i < j->nattempts; i++)
        free(j->attempts[i].nodes);
    free(j->attempts);
    free(j->command);
    free(j->workdir);
    free(j->steps);
    free(j->step_info);
    free(j->spans);
    free(j->span_dirty);
    free(j);
}

/* An ended job leaves memory with all that points to it; its rows stay. */
static void evict(struct fr_ctl *c, uint32_t at)
{
    struct fr_cjob *j = c->jobs[at];
    size_t k = 0;

    for (size_t i = 0; i < c->nincidents; i++) {
        if (c->incidents[i]->job != j) {
            c->incidents[k++] = c->incidents[i];
            continue;
        }
        free(c->incidents[i]->evidence);
        free(c->incidents[i]);
    }
    c->nincidents = k;
    k = 0;
    for (size_t i = 0; i < c->ndecisions; i++) {
        if (c->decisions[i]->job != j)
            c->decisions[k++] = c->decisions[i];
        else
            free(c->decisions[i]);
    }
    c->ndecisions = k;
    for (uint32_t i = 0; i < c->nnodes; i++)
        for (uint32_t a = 0; a < FR_ACKS; a++)
            if (c->nodes[i]->acks[a].job == j)
                c->nodes[i]->acks[a].job = NULL;
    fr_job_free(j);
    memmove(&c->jobs[at], &c->jobs[at + 1], (c->njobs - at - 1) * sizeof c->jobs[0]);
    c->njobs--;
}

static int make_room(struct fr_ctl *c)
{
    if (c->njobs < FR_JOBS_MAX)
        return 0;
    for (uint32_t i = 0; i < c->njobs; i++)
        if (fr_job_state_is_end(c->jobs[i]->state) && !c->jobs[i]->dirty) {
            evict(c, i);
            return 0;
        }
    return -ENOSPC;
}

struct fr_cjob *fr_job_new(struct fr_ctl *c, const char *job)
{
    struct fr_cjob *j;

    if (make_room(c))
        return NULL;
    j = fr_xalloc(sizeof *j);
    snprintf(j->job, sizeof j->job, "%s", job);
    j->command = fr_xstrdup("[]");
    j->workdir = fr_xstrdup("");
    j->tokens_per_step = j->flops_per_step = j->peak_flops_per_rank = (double)NAN;
    j->last_loss = j->restart_cost_s = (double)NAN;
    j->judge = fr_judge_new(&c->judge_cfg);
    j->exit_code = -1;
    c->jobs[c->njobs++] = j;
    return j;
}

int fr_job_size(struct fr_cjob *j, uint32_t nodes, uint32_t ranks_per_node, struct fr_err *err)
{
    if (nodes == 0 || nodes > FR_JOB_NODES_MAX)
        return fr_fail(err, -EINVAL, "nodes must be 1 to %d, not %u", FR_JOB_NODES_MAX, nodes);
    if (ranks_per_node == 0 || ranks_per_node > FR_JOB_RANKS_MAX / nodes)
        return fr_fail(err, -EINVAL, "%u nodes with %u ranks each: a job has 1 to %d ranks", nodes,
                       ranks_per_node, FR_JOB_RANKS_MAX);
    j->nodes = nodes;
    j->ranks_per_node = ranks_per_node;
    j->nranks = nodes * ranks_per_node;
    return 0;
}

static void release_nodes(struct fr_ctl *c, const struct fr_cjob *j)
{
    for (uint32_t i = 0; i < c->nnodes; i++)
        if (c->nodes[i]->job == j) {
            c->nodes[i]->job = NULL;
            fr_publish_node(c, c->nodes[i]);
        }
}

void fr_job_begin_judging(struct fr_ctl *c, struct fr_cjob *j)
{
    FR_CLEANUP(fr_freep) uint32_t *node_of = fr_xcalloc(j->nranks, sizeof *node_of);

    if (!j->ranks) {
        j->ranks = fr_xcalloc(j->nranks, sizeof *j->ranks);
        j->open_steps = fr_xcalloc(FR_STEPS_OPEN, sizeof *j->open_steps);
        j->open_self = fr_xcalloc((size_t)FR_STEPS_OPEN * j->nranks, sizeof *j->open_self);
        for (uint32_t i = 0; i < FR_STEPS_OPEN; i++)
            j->open_steps[i].self_s = j->open_self + (size_t)i * j->nranks;
    }
    memset(j->ranks, 0, j->nranks * sizeof *j->ranks);
    for (uint32_t r = 0; r < j->nranks; r++) {
        node_of[r] = r / j->ranks_per_node;
        j->ranks[r].exit_code = j->ranks[r].exit_signal = j->ranks[r].now_peer = -1;
        j->ranks[r].cpu.ratio = j->ranks[r].run_delay.ratio = (double)NAN;
        j->ranks[r].stopped_ratio = (double)NAN;
    }
    for (uint32_t i = 0; i < FR_STEPS_OPEN; i++)
        j->open_steps[i].step = 0;
    j->burst_until = j->burst_ns = 0;
    j->step_done = j->step_durable = j->pending_row = 0;
    j->attempt_checkpoint = 0;
    j->moved = 0;
    j->moved_ns = 0;
    j->begin_ns = c->now_ns;
    if (j->ncomms)
        memset(j->comms, 0, j->comms_cap * sizeof *j->comms);
    j->ncomms = 0;
    j->sources = 0;
    fr_nccl_reset(j);
    if (!j->judge)
        j->judge = fr_judge_new(&c->judge_cfg);
    fr_judge_begin(j->judge, j->nranks, node_of, j->nodes, c->now_ns);
    j->judging = true;
}

struct fr_cattempt *fr_job_add_attempt(struct fr_ctl *c, struct fr_cjob *j, uint32_t attempt,
                                       uint64_t epoch, struct fr_cnode *const *nodes)
{
    struct fr_cattempt *a;

    j->attempts = fr_xreallocarray(j->attempts, j->nattempts + 1, sizeof *j->attempts);
    a = &j->attempts[j->nattempts++];
    memset(a, 0, sizeof *a);
    a->attempt = attempt;
    a->epoch = epoch;
    a->exit_code = -1;
    a->nnodes = j->nodes;
    a->nodes = fr_xcalloc(j->nodes, sizeof *a->nodes);
    memcpy(a->nodes, nodes, j->nodes * sizeof *a->nodes);
    a->dirty = true;
    j->epoch = epoch;
    j->dirty = j->changed = true;
    j->verdict_ns = 0;
    j->launcher_told = j->launcher_killed = false;
    release_nodes(c, j);
    for (uint32_t i = 0; i < a->nnodes; i++) {
        a->nodes[i]->job = j;
        a->nodes[i]->job_index = i;
        a->nodes[i]->want_full = true;
        fr_publish_node(c, a->nodes[i]);
    }
    fr_job_begin_judging(c, j);
    return a;
}

static void give_order(struct fr_cjob *j, enum fr_order_what what, uint64_t epoch, uint32_t attempt,
                       uint64_t decision, const char *reason)
{
    struct fr_order *o = &j->order;

    memset(o, 0, sizeof *o);
    o->what = what;
    o->epoch = epoch;
    o->attempt = attempt;
    o->id = epoch * 4 + what;
    o->decision = decision;
    snprintf(o->reason, sizeof o->reason, "%s", reason);
}

uint32_t fr_job_start_next(struct fr_ctl *c, struct fr_cjob *j, uint64_t decision,
                           const char *reason)
{
    FR_CLEANUP(fr_freep) struct fr_cnode **nodes = fr_xcalloc(j->nodes, sizeof *nodes);
    const struct fr_cattempt *last = fr_job_current(j);
    struct fr_cattempt *a;
    uint32_t missing = fr_fleet_place(c, j, nodes);

    if (missing) {
        snprintf(j->note, sizeof j->note, "waiting for %u node%s of %u", missing,
                 missing == 1 ? "" : "s", j->nodes);
        return missing;
    }
    a = fr_job_add_attempt(c, j, last ? last->attempt + 1 : 1, j->epoch + 1, nodes);
    j->note[0] = '\0';
    give_order(j, FR_ORDER_START, a->epoch, a->attempt, decision, reason);
    fr_job_move(c, j, FR_JOB_STARTING);
    fr_log(FR_LOG_NOTICE, "attempt.ordered", "job=%s attempt=%u epoch=%llu decision=%llu", j->job,
           a->attempt, (unsigned long long)a->epoch, (unsigned long long)decision);
    return 0;
}

void fr_job_order_stop(struct fr_ctl *c, struct fr_cjob *j, uint64_t decision, const char *reason)
{
    struct fr_cattempt *a = fr_job_current(j);

    if (!a || a->end_unix_ns)
        return;
    if (!a->stop_unix_ns) {
        a->stop_unix_ns = fr_ctl_now_unix(c);
        a->decision = decision;
        snprintf(a->end_reason, sizeof a->end_reason, "%s", reason);
        a->dirty = true;
    }
    give_order(j, FR_ORDER_STOP, a->epoch, a->attempt, decision, reason);
    fr_job_move(c, j, FR_JOB_STOPPING);
}

int32_t fr_job_exit_code(const struct fr_cattempt *a)
{
    if (!a)
        return 1;
    if (a->exit_signal > 0)
        return 128 + a->exit_signal;
    return a->exit_code >= 0 ? a->exit_code : 1;
}

void fr_job_end(struct fr_ctl *c, struct fr_cjob *j, enum fr_job_state how, int32_t exit_code,
                const char *reason)
{
    struct fr_cattempt *a = fr_job_current(j);

    if (fr_job_state_is_end(j->state))
        return;
    if (a && a->end_unix_ns == 0 && a->start_unix_ns) {
        a->end_unix_ns = fr_ctl_now_unix(c);
        if (!a->stop_unix_ns)
            a->stop_unix_ns = a->end_unix_ns;
        a->dirty = true;
    }
    /* What came after the end of a good attempt was only the wait for its last reports. */
    j->ended_unix_ns =
        how == FR_JOB_DONE && a && a->end_unix_ns ? a->end_unix_ns : fr_ctl_now_unix(c);
    j->settle_ns = 0;
    j->exit_code = exit_code;
    j->verdict_ns = 0;
    snprintf(j->note, sizeof j->note, "%s", reason);
    fr_job_move(c, j, how);
    give_order(j, FR_ORDER_FINISH, j->epoch, a ? a->attempt : 0, a ? a->decision : 0, reason);
    j->order.exit_code = exit_code;
    fr_incidents_close_job(c, j, "the job ended");
    j->act.stage = FR_ACT_NONE;
    j->judging = false;
    release_nodes(c, j);
    j->dirty = j->changed = true;
}

static void trim_ended(struct fr_ctl *c)
{
    uint32_t held = 0;

    for (uint32_t i = c->njobs; i-- > 0;) {
        struct fr_cjob *j = c->jobs[i];

        if (!fr_job_state_is_end(j->state) || !j->ranks)
            continue;
        if (++held > ENDED_WITH_DETAIL)
            free_detail(j);
    }
}

/* Everything that its agents had to tell is here. */
static bool has_settled(const struct fr_ctl *c, const struct fr_cjob *j)
{
    const struct fr_cattempt *a = &j->attempts[j->nattempts - 1];

    if (c->now_ns >= j->settle_ns || (j->total_steps && j->step_done >= j->total_steps))
        return true;
    for (uint32_t i = 0; i < a->nnodes; i++)
        if (!a->nodes[i]->silent &&
            fr_ctl_unix(c, a->nodes[i]->heard_ns) < a->end_unix_ns + SETTLE_AFTER_NS)
            return false;
    return true;
}

/* No process of the job is left as far as its agents can tell; what is unknown may run. */
static bool nothing_runs(const struct fr_cjob *j)
{
    const struct fr_cattempt *a = j->nattempts ? &j->attempts[j->nattempts - 1] : NULL;

    if (!a || a->end_unix_ns || !a->start_unix_ns)
        return true;
    for (uint32_t r = 0; r < j->nranks; r++)
        if (!j->ranks || !j->ranks[r].known || j->ranks[r].state != FR_PROC_GONE)
            return false;
    return true;
}

static void tick_job(struct fr_ctl *c, struct fr_cjob *j)
{
    uint64_t lost_ns = (uint64_t)(c->cfg.controller_supervisor_lost_s * 1e9);

    if (fr_job_state_is_end(j->state))
        return;
    if (c->now_ns - j->heard_ns > lost_ns) {
        if (j->state != FR_JOB_LOST) {
            snprintf(j->note, sizeof j->note, "its supervisor is not heard of");
            fr_job_move(c, j, FR_JOB_LOST);
        }
        if (c->now_ns - j->heard_ns > ABANDONED_NS && c->ledger_ok && nothing_runs(j))
            fr_job_end(c, j, FR_JOB_FAILED, fr_job_exit_code(fr_job_current(j)),
                       "its supervisor is gone, and so are its processes");
        return; /* nothing is decided for a job whose owner is away */
    }
    if (!c->ledger_ok)
        return;
    if (j->settle_ns) {
        if (has_settled(c, j))
            fr_job_end(c, j, FR_JOB_DONE, 0, "");
        return;
    }
    if (j->act.stage != FR_ACT_NONE)
        fr_act_tick(c, j);
    else if (j->nattempts == 0)
        fr_job_start_next(c, j, 0, "first attempt");
}

void fr_jobs_tick(struct fr_ctl *c)
{
    for (uint32_t i = 0; i < c->njobs; i++) {
        tick_job(c, c->jobs[i]);
        fr_account_tick(c, c->jobs[i]);
    }
    trim_ended(c);
}
