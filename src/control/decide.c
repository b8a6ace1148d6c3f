/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c - see decide.h */
#include "control/decide.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/act.h"
#include "control/fleet.h"
#include "control/incidents.h"
#include "control/jobs.h"
#include "control/publish.h"

#define DEAD_GRACE_NS 700000000ull  /* for the launcher to say how a process ended */
#define RAN_NS        10000000000ll /* an attempt that marks no steps got somewhere after so long */
#define SAY_AGAIN_NS  30000000000ll /* the same choice with other costs is told at most so often */

/* It made a step or, where none are ever marked, ran for a while. */
static bool got_somewhere(const struct fr_ctl *c, const struct fr_cjob *j,
                          const struct fr_cattempt *a)
{
    int64_t until = a->stop_unix_ns ? a->stop_unix_ns : fr_ctl_now_unix(c);

    if (a->first_step_unix_ns)
        return true;
    return !fr_job_marks_steps(j) && a->first_move_unix_ns &&
           until - a->first_move_unix_ns >= RAN_NS;
}

static uint32_t without_step(const struct fr_ctl *c, const struct fr_cjob *j)
{
    uint32_t n = 0;

    for (uint32_t k = j->nattempts; k-- > 0 && !got_somewhere(c, j, &j->attempts[k]);)
        n++;
    return n;
}

/* The rank whose process ended first; -1: none is known to have. */
static int32_t first_gone(const struct fr_cjob *j)
{
    int32_t first = -1;

    for (uint32_t r = 0; j->ranks && r < j->nranks; r++)
        if (j->ranks[r].gone_ns && !j->ranks[r].finalized &&
            (first < 0 || j->ranks[r].gone_ns < j->ranks[first].gone_ns))
            first = (int32_t)r;
    return first;
}

/* The same rank died at the same step on another node before: the program does it, wherever it
 * runs. */
static int repeats(const struct fr_ctl *c, const struct fr_cjob *j, const struct fr_cincident *i)
{
    for (size_t k = 0; i && i->f.rank >= 0 && k < c->nincidents; k++) {
        const struct fr_cincident *o = c->incidents[k];

        if (o->job == j && o->epoch < i->epoch && o->f.kind == FR_FINDING_DEAD &&
            i->f.kind == FR_FINDING_DEAD && o->f.rank == i->f.rank &&
            o->named_step == i->named_step && strcmp(o->node, i->node) != 0)
            return 1;
    }
    return 0;
}

/* It ended by a code of its own and nobody was killed before, or with its launcher: no node's
 * fault. */
static int is_application(const struct fr_ctl *c, const struct fr_cjob *j,
                          const struct fr_cincident *i)
{
    const struct fr_cattempt *a = &j->attempts[j->nattempts - 1];
    int32_t first = first_gone(j);

    if (repeats(c, j, i) || j->launcher_killed)
        return 1;
    if (i && i->f.kind != FR_FINDING_DEAD)
        return 0;
    if (first >= 0 && j->ranks[first].exit_signal > 0)
        return 0;
    if (first >= 0 && j->ranks[first].exit_code > 0)
        return 1;
    return a->end_unix_ns && a->exit_signal <= 0 && a->exit_code > 0 && a->exit_code < 128;
}

/* What a restart costs this job: as its last one did; before the first one, half as much again as
 * its launch took until the first step ended, which a restart has to repeat. NaN: not known. */
static double restart_cost_s(const struct fr_cjob *j)
{
    const struct fr_cattempt *a = &j->attempts[j->nattempts - 1];

    if (!isnan(j->restart_cost_s) || !a->first_step_unix_ns ||
        a->first_step_unix_ns <= a->start_unix_ns)
        return j->restart_cost_s;
    return 1.5e-9 * (double)(a->first_step_unix_ns - a->start_unix_ns);
}

static void fill_input(struct fr_ctl *c, struct fr_cjob *j, const struct fr_cincident *i,
                       const struct fr_finding *f, struct fr_policy_input *in)
{
    const struct fr_cattempt *a = fr_job_current(j);
    struct fr_judge_summary sum;

    fr_judge_summary(j->judge, &sum);
    *in = (struct fr_policy_input){.mode = j->mode,
                                   .owns_restarts = !j->restarts_owner[0],
                                   .finding = f,
                                   .attempts = j->nattempts,
                                   .max_attempts = j->max_attempts,
                                   .attempts_without_step = without_step(c, j),
                                   .step = j->step_done,
                                   .total_steps = j->total_steps,
                                   .last_checkpoint = j->checkpoint_step,
                                   .checkpoint_every = j->checkpoint_every,
                                   .step_now_s = sum.step_s,
                                   .step_baseline_s = sum.baseline_step_s,
                                   .restart_cost_s = restart_cost_s(j),
                                   .act_on_silence_after_s = sum.act_on_silence_after_s,
                                   .attempt_ended = a->end_unix_ns != 0,
                                   .application_failure = is_application(c, j, i) != 0,
                                   .nodes_total = c->nnodes,
                                   .nodes_free = fr_fleet_free(c),
                                   .isolated_in_window = fr_fleet_isolated(c),
                                   .now_ns = c->now_ns};
}

static int differs(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) != isnan(b);
    return fabs(a - b) > 1.0 && (a > 2 * b || b > 2 * a);
}

/* A decision about the incident has waited for this checkpoint, or for a later one. */
static bool has_waited_for(const struct fr_ctl *c, const struct fr_cincident *i, uint64_t step)
{
    for (size_t k = c->ndecisions; k-- > 0;)
        if (c->decisions[k]->incident == i->id && c->decisions[k]->wait_until_step >= step)
            return true;
    return false;
}

/* Near the point where a restart begins to pay, each new step time tips the scales: "it does not
 * pay" and "wait for the checkpoint" alternate, and in both nothing is done. Only a checkpoint that
 * was not spoken of yet is news. */
static bool says_it_again(const struct fr_ctl *c, const struct fr_cincident *i,
                          const struct fr_cdecision *old, const struct fr_decision *d,
                          const char *node)
{
    if (old->nactions || old->choice != d->choice || strcmp(old->node, node) != 0)
        return false;
    if (d->wait_until_step != old->wait_until_step && !has_waited_for(c, i, d->wait_until_step))
        return false;
    return fr_ctl_now_unix(c) - old->decided_unix_ns < SAY_AGAIN_NS ||
           (!differs(old->cost_stay_s, d->cost_stay_s) &&
            !differs(old->cost_restart_s, d->cost_restart_s));
}

/* Record what was chosen unless it says what the incident's newest decision says. NULL: there is
 * no room for it. */
static struct fr_cdecision *record(struct fr_ctl *c, struct fr_cjob *j, struct fr_cincident *i,
                                   const struct fr_decision *d, const char *node)
{
    struct fr_cdecision *old = i->decision ? fr_ctl_decision(c, i->decision) : NULL, *now;

    if (old && says_it_again(c, i, old, d, node))
        return old;
    now = fr_decision_add(c, c->decision_id + 1);
    if (!now)
        return NULL;
    now->incident = i->id;
    now->job = j;
    now->attempt = fr_job_current(j)->attempt;
    now->choice = d->choice;
    snprintf(now->mode, sizeof now->mode, "%s", fr_mode_name(j->mode));
    snprintf(now->node, sizeof now->node, "%s", node);
    snprintf(now->actor, sizeof now->actor, "%s", FR_ACTOR_SELF);
    now->cost_stay_s = d->cost_stay_s;
    now->cost_restart_s = d->cost_restart_s;
    now->wait_until_step = d->wait_until_step;
    now->decided_unix_ns = fr_ctl_now_unix(c);
    snprintf(now->reason, sizeof now->reason, "%s", d->reason);
    now->dirty = true;
    c->choices[d->choice]++;
    i->decision = now->id;
    fr_log(FR_LOG_NOTICE, "decision",
           "decision=%llu incident=%llu job=%s choice=%s node=%s reason=%s",
           (unsigned long long)now->id, (unsigned long long)now->incident, j->job,
           fr_choice_name(now->choice), now->node, now->reason);
    fr_publish_decision(c, now);
    return now;
}

/* The processes are gone and nobody here may start them again: the job is over. */
static void end_unhelped(struct fr_ctl *c, struct fr_cjob *j, const struct fr_decision *d)
{
    if (c->now_ns >= j->verdict_ns)
        fr_job_end(c, j, FR_JOB_FAILED, fr_job_exit_code(fr_job_current(j)), d->reason);
}

/* An attempt that ended badly while nobody was named. */
static void make_verdict_finding(const struct fr_cjob *j, int application, struct fr_finding *f)
{
    const struct fr_cattempt *a = &j->attempts[j->nattempts - 1];
    char how[40];

    memset(f, 0, sizeof *f);
    f->key = 1;
    f->kind = FR_FINDING_DEAD;
    f->subject = FR_SUBJECT_JOB;
    f->rank = f->node = -1;
    f->cause = application ? FR_CAUSE_APPLICATION : FR_CAUSE_UNKNOWN;
    f->confidence = 0.5;
    f->witnesses = FR_WITNESS_LAUNCHER;
    f->nlines = 1;
    if (a->exit_signal <= 0 && a->exit_code < 0)
        snprintf(how, sizeof how, ", how is not known");
    else
        snprintf(how, sizeof how, " with %s %d", a->exit_signal > 0 ? "signal" : "code",
                 a->exit_signal > 0 ? a->exit_signal : a->exit_code);
    snprintf(f->line[0], sizeof f->line[0], "the launcher ended%s%s%.120s", how,
             a->end_reason[0] ? ": " : "", a->end_reason);
}

void fr_decide(struct fr_ctl *c, struct fr_cjob *j, struct fr_cincident *i)
{
    const struct fr_cattempt *a = fr_job_current(j);
    struct fr_policy_input in;
    struct fr_finding made;
    struct fr_decision d;
    struct fr_cdecision *row;
    struct fr_cnode *node = NULL;

    if (!j->supervisor_told)
        return; /* whose restarts are is not known yet, and nobody is there to obey */
    if (j->settle_ns)
        return; /* it ended well and waits for its last reports only */
    if (j->verdict_ns && (!i || i->f.kind != FR_FINDING_DEAD)) {
        /* Its processes are gone: a hang that stood before explains it as well as a death. */
        if (c->now_ns < j->verdict_ns)
            return;
        if (!i) {
            make_verdict_finding(j, is_application(c, j, NULL), &made);
            fr_incidents_fold(c, j, &made, 1);
            for (size_t k = c->nincidents; k-- > 0 && !i;)
                if (c->incidents[k]->job == j && c->incidents[k]->f.key == made.key)
                    i = c->incidents[k];
        }
    }
    if (!i)
        return;
    if (i->f.kind == FR_FINDING_DEAD && !a->end_unix_ns && i->f.rank >= 0 &&
        (uint32_t)i->f.rank < j->nranks && j->ranks[i->f.rank].exit_signal < 0 &&
        fr_ctl_now_unix(c) - i->named_unix_ns < (int64_t)DEAD_GRACE_NS)
        return;
    fill_input(c, j, i, &i->f, &in);
    fr_policy_decide(&c->policy_cfg, &in, &d);
    if (d.node >= 0 && (uint32_t)d.node < a->nnodes)
        node = a->nodes[d.node];
    if (!c->ledger_ok)
        return; /* what cannot be recorded is not done */
    row = record(c, j, i, &d, node ? node->name : "");
    if (!row)
        return;
    if (d.choice >= FR_CHOICE_ISOLATE)
        fr_act_begin(c, j, row, i, node);
    else if (j->verdict_ns)
        end_unhelped(c, j, &d);
}
