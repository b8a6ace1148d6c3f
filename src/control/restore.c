/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - see restore.h */
#include "control/restore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "control/act.h"
#include "control/fleet.h"
#include "control/incidents.h"
#include "control/jobs.h"
#include "control/steps.h"

#define JOBS_RESTORED 128 /* the newest ones; older ones stay in the ledger alone */
#define VERDICT_NS    3000000000ull
#define SETTLE_NS     1000000000ull
#define SEEN_GRACE_NS 5000000000ull /* for agents to tell again what an open incident stands on */

struct pick {
    char job[FR_NAME_BYTES];
    int64_t submitted;
    int ended;
};
struct picks {
    struct pick *v;
    size_t n, cap;
};
struct restore {
    struct fr_ctl *c;
    struct fr_cjob *j;
    const struct picks *picks;
    int64_t newest;
};

static void see(struct restore *s, int64_t t)
{
    if (t > s->newest)
        s->newest = t;
}

static uint32_t number_at_end(const char *name)
{
    size_t n = strlen(name), i = n;
    unsigned long v;

    while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9')
        i--;
    v = n - i > 0 && n - i < 9 ? strtoul(name + i, NULL, 10) : 0;
    return (uint32_t)v;
}

static int pick_job(const void *row, void *arg)
{
    const struct fr_row_job *r = row;
    struct restore *s = arg;
    struct picks *p = (struct picks *)(uintptr_t)s->picks;
    uint32_t number = number_at_end(r->job);

    if (number > s->c->job_number)
        s->c->job_number = number;
    if (p->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->v = fr_xreallocarray(p->v, p->cap, sizeof *p->v);
    }
    snprintf(p->v[p->n].job, FR_NAME_BYTES, "%s", r->job);
    p->v[p->n].submitted = r->submitted_unix_ns;
    p->v[p->n].ended = r->state < FR_JOB_STATES && fr_job_state_is_end((enum fr_job_state)r->state);
    p->n++;
    return 0;
}

static int by_worth(const void *pa, const void *pb)
{
    const struct pick *a = pa, *b = pb;

    if (a->ended != b->ended)
        return a->ended - b->ended;
    return (a->submitted < b->submitted) - (a->submitted > b->submitted);
}

static int by_age(const void *pa, const void *pb)
{
    const struct pick *a = pa, *b = pb;

    return (a->submitted > b->submitted) - (a->submitted < b->submitted);
}

static int take_job(const void *row, void *arg)
{
    const struct fr_row_job *r = row;
    struct restore *s = arg;
    struct fr_cjob *j;

    if (r->state >= FR_JOB_STATES || !fr_ctl_name_ok(r->job))
        return 0;
    j = fr_job_new(s->c, r->job);
    if (!j)
        return 0;
    if (fr_job_size(j, r->nodes, r->ranks_per_node, NULL)) {
        fr_job_free(j);
        s->c->njobs--;
        return 0;
    }
    snprintf(j->name, sizeof j->name, "%s", r->name);
    snprintf(j->user, sizeof j->user, "%s", r->user);
    snprintf(j->engine, sizeof j->engine, "%s", r->engine);
    free(j->command);
    j->command = fr_xstrdup(r->command && r->command[0] ? r->command : "[]");
    free(j->workdir);
    j->workdir = fr_xstrdup(r->workdir ? r->workdir : "");
    j->uid = r->uid;
    j->spares = r->spares;
    j->max_attempts = r->max_attempts;
    j->state = (enum fr_job_state)r->state;
    j->mode = r->mode <= FR_MODE_ACT ? (enum fr_mode)r->mode : FR_MODE_OBSERVE;
    j->key = r->supervisor_key;
    j->epoch = r->epoch;
    j->submitted_unix_ns = r->submitted_unix_ns;
    j->ended_unix_ns = r->ended_unix_ns;
    j->exit_code = r->exit_code;
    j->total_steps = r->total_steps;
    j->checkpoint_every = r->checkpoint_every;
    j->tokens_per_step = r->tokens_per_step;
    j->flops_per_step = r->flops_per_step;
    j->peak_flops_per_rank = r->peak_flops_per_rank;
    j->heard_ns = s->c->now_ns;
    j->row = FR_ROW_RESTORED;
    see(s, r->submitted_unix_ns);
    see(s, r->ended_unix_ns);
    s->j = j;
    return 0;
}

static int take_attempt(const void *row, void *arg)
{
    const struct fr_row_attempt *r = row;
    struct restore *s = arg;
    struct fr_cjob *j = s->j;
    FR_CLEANUP(fr_json_freep) struct fr_json *names = NULL;
    struct fr_cattempt *a;

    if (fr_json_parse(r->nodes, strlen(r->nodes), &names, NULL) || fr_json_len(names) != j->nodes)
        return 0;
    j->attempts = fr_xreallocarray(j->attempts, j->nattempts + 1, sizeof *j->attempts);
    a = &j->attempts[j->nattempts];
    memset(a, 0, sizeof *a);
    a->nnodes = j->nodes;
    a->nodes = fr_xcalloc(j->nodes, sizeof *a->nodes);
    for (uint32_t i = 0; i < j->nodes; i++) {
        a->nodes[i] = fr_fleet_node(s->c, fr_json_value_str(fr_json_at(names, i), ""), NULL);
        if (!a->nodes[i]) {
            free(a->nodes);
            return 0;
        }
    }
    j->nattempts++;
    a->row = FR_ROW_RESTORED;
    a->attempt = r->attempt;
    a->epoch = r->epoch;
    a->decision = r->decision;
    a->start_unix_ns = r->start_unix_ns;
    a->stop_unix_ns = r->stop_unix_ns;
    a->end_unix_ns = r->end_unix_ns;
    a->first_step_unix_ns = r->first_step_unix_ns;
    a->first_step = r->first_step;
    a->last_step = r->last_step;
    a->resumed_from = r->resumed_from;
    a->exit_code = r->exit_code;
    a->exit_signal = r->exit_signal;
    snprintf(a->end_reason, sizeof a->end_reason, "%.255s", r->end_reason);
    if (a->epoch > j->epoch)
        j->epoch = a->epoch;
    if (j->nattempts > 1 && a->first_step_unix_ns && a[-1].stop_unix_ns)
        j->restart_cost_s = (double)(a->first_step_unix_ns - a[-1].stop_unix_ns) * 1e-9;
    see(s, r->start_unix_ns);
    see(s, r->stop_unix_ns);
    see(s, r->end_unix_ns);
    return 0;
}

static int index_of(const struct fr_cjob *j, uint32_t attempt)
{
    for (uint32_t i = 0; i < j->nattempts; i++)
        if (j->attempts[i].attempt == attempt)
            return (int)i;
    return -1;
}

static int take_step(const void *row, void *arg)
{
    const struct fr_row_step *r = row;
    struct restore *s = arg;
    int i = index_of(s->j, r->attempt);

    if (i >= 0)
        fr_steps_restore(s->j, (uint32_t)i, r);
    see(s, r->end_unix_ns);
    return 0;
}

static int take_span(const void *row, void *arg)
{
    const struct fr_row_span *r = row;
    struct restore *s = arg;
    int i = index_of(s->j, r->attempt);

    if (i >= 0)
        fr_spans_restore(s->j, (uint32_t)i, r);
    see(s, r->end_unix_ns);
    return 0;
}

static uint32_t find_name(const char *name, const char *(*of)(uint32_t), uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (strcmp(of(k), name) == 0)
            return k;
    return 0;
}

static const char *kind_name(uint32_t k)
{
    return fr_finding_kind_name((enum fr_finding_kind)k);
}
static const char *subject_name(uint32_t k)
{
    return fr_subject_name((enum fr_subject_kind)k);
}
static const char *cause_name(uint32_t k)
{
    return fr_cause_name((enum fr_cause)k);
}
static const char *state_name(uint32_t k)
{
    return fr_node_state_name((enum fr_node_state)k);
}
static const char *choice_name(uint32_t k)
{
    return fr_choice_name((enum fr_choice)k);
}

static int take_incident(const void *row, void *arg)
{
    const struct fr_row_incident *r = row;
    struct restore *s = arg;
    struct fr_cjob *j = fr_ctl_job(s->c, r->job);
    struct fr_cincident *i;
    FR_CLEANUP(fr_json_freep) struct fr_json *lines = NULL;

    if (!j)
        return 0;
    i = fr_incident_add(s->c, r->id);
    if (!i)
        return 0;
    i->row = FR_ROW_RESTORED;
    i->job = j;
    i->attempt = r->attempt;
    i->epoch = r->epoch;
    snprintf(i->kind, sizeof i->kind, "%s", r->kind);
    snprintf(i->subject, sizeof i->subject, "%s", r->subject);
    snprintf(i->cause, sizeof i->cause, "%s", r->cause);
    snprintf(i->node, sizeof i->node, "%s", r->node);
    snprintf(i->group, sizeof i->group, "%s", r->group_key);
    i->f.key = r->finding_key;
    i->f.kind = (enum fr_finding_kind)find_name(r->kind, kind_name, FR_FINDING_KINDS);
    i->f.subject = (enum fr_subject_kind)find_name(r->subject, subject_name, FR_SUBJECT_LINK + 1);
    i->f.cause = (enum fr_cause)find_name(r->cause, cause_name, FR_CAUSE_APPLICATION + 1);
    i->f.rank = r->rank;
    i->f.confidence = i->shown_confidence = r->confidence;
    i->f.ratio = i->shown_ratio = r->ratio;
    i->f.cost_ratio = r->cost_ratio;
    i->f.witnesses = r->witnesses;
    i->f.victims = r->victims;
    i->f.since_step = r->onset_step;
    i->onset_unix_ns = r->onset_unix_ns;
    i->named_unix_ns = r->named_unix_ns;
    i->closed_unix_ns = r->closed_unix_ns;
    i->last_move_unix_ns = r->last_move_unix_ns;
    i->named_step = r->named_step;
    i->evidence = fr_xstrdup(r->evidence && r->evidence[0] ? r->evidence : "[]");
    if (fr_json_parse(i->evidence, strlen(i->evidence), &lines, NULL) == 0)
        for (; i->f.nlines < fr_json_len(lines) && i->f.nlines < FR_FINDING_LINES; i->f.nlines++)
            snprintf(i->f.line[i->f.nlines], FR_FINDING_LINE_BYTES, "%s",
                     fr_json_value_str(fr_json_at(lines, i->f.nlines), ""));
    snprintf(i->acknowledged_by, sizeof i->acknowledged_by, "%.63s",
             r->acknowledged_by ? r->acknowledged_by : "");
    i->has_bundle = r->bundle && r->bundle[0];
    i->seen_ns = s->c->now_ns + SEEN_GRACE_NS;
    see(s, r->named_unix_ns);
    see(s, r->closed_unix_ns);
    return 0;
}

static int take_decision(const void *row, void *arg)
{
    const struct fr_row_decision *r = row;
    struct restore *s = arg;
    struct fr_cjob *j = fr_ctl_job(s->c, r->job);
    struct fr_cincident *i = fr_ctl_incident(s->c, r->incident);
    struct fr_cdecision *d;

    if (!j)
        return 0;
    d = fr_decision_add(s->c, r->id);
    if (!d)
        return 0;
    d->row = FR_ROW_RESTORED;
    d->incident = r->incident;
    d->job = j;
    d->attempt = r->attempt;
    d->choice = (enum fr_choice)find_name(r->choice, choice_name, FR_CHOICES);
    snprintf(d->mode, sizeof d->mode, "%s", r->mode);
    snprintf(d->node, sizeof d->node, "%s", r->node);
    snprintf(d->actor, sizeof d->actor, "%s", r->actor);
    d->cost_stay_s = r->cost_stay_s;
    d->cost_restart_s = r->cost_restart_s;
    d->wait_until_step = r->wait_until_step;
    d->decided_unix_ns = r->decided_unix_ns;
    snprintf(d->reason, sizeof d->reason, "%.399s", r->reason);
    s->c->choices[d->choice]++;
    if (i)
        i->decision = d->id;
    see(s, r->decided_unix_ns);
    return 0;
}

/* Order in which the actions of one decision are shown, whatever order the rows come in. */
static int rank_of_action(const char *kind)
{
    static const char *const ORDER[] = {"drain", "stop", "start"};

    for (int k = 0; k < 3; k++)
        if (strcmp(kind, ORDER[k]) == 0)
            return k;
    return 3;
}

static int take_action(const void *row, void *arg)
{
    const struct fr_row_action *r = row;
    struct restore *s = arg;
    struct fr_cdecision *d = fr_ctl_decision(s->c, r->decision);
    uint32_t at;

    if (!d || d->nactions == FR_DECISION_ACTIONS)
        return 0;
    for (at = d->nactions;
         at > 0 && rank_of_action(d->actions[at - 1].kind) > rank_of_action(r->kind); at--)
        d->actions[at] = d->actions[at - 1];
    d->actions[at] = (struct fr_caction){.started_unix_ns = r->started_unix_ns,
                                         .ended_unix_ns = r->ended_unix_ns};
    snprintf(d->actions[at].kind, sizeof d->actions[at].kind, "%s", r->kind);
    snprintf(d->actions[at].target, sizeof d->actions[at].target, "%s", r->target);
    snprintf(d->actions[at].state, sizeof d->actions[at].state, "%s", r->state);
    snprintf(d->actions[at].detail, sizeof d->actions[at].detail, "%.255s",
             r->detail ? r->detail : "");
    d->nactions++;
    see(s, r->started_unix_ns);
    see(s, r->ended_unix_ns);
    return 0;
}

static int take_node(const void *row, void *arg)
{
    const struct fr_row_node *r = row;
    struct restore *s = arg;
    struct fr_cnode *n = fr_fleet_node(s->c, r->node, NULL);
    struct fr_node_change *h;

    if (!n)
        return 0;
    h = &n->history[n->nhistory % FR_NODE_HISTORY];
    h->state = (enum fr_node_state)find_name(r->state, state_name, FR_NODE_STATES);
    h->at_unix_ns = r->at_unix_ns;
    h->incident = r->incident;
    snprintf(h->actor, sizeof h->actor, "%s", r->actor);
    snprintf(h->reason, sizeof h->reason, "%.255s", r->reason);
    n->nhistory++;
    n->nsaved = n->nhistory;
    n->state = h->state;
    n->since_unix_ns = h->at_unix_ns;
    n->incident = r->incident;
    snprintf(n->reason, sizeof n->reason, "%s", h->reason);
    snprintf(n->actor, sizeof n->actor, "%s", h->actor);
    see(s, r->at_unix_ns);
    return 0;
}

/* Nobody is heard yet: what was in use is unknown until its agent speaks; what was out stays out.
 */
static void settle_node(struct fr_ctl *c, struct fr_cnode *n)
{
    n->ours = strcmp(n->actor, FR_ACTOR_SELF) == 0 && strstr(n->reason, "test failed") == NULL;
    if (n->state == FR_NODE_VERIFYING)
        fr_node_expect_test(n);
    if (n->state == FR_NODE_PROBATION)
        n->probation_until_unix_ns =
            n->since_unix_ns + (int64_t)(c->cfg.controller_probation_s * 1e9);
    if (n->state == FR_NODE_UNKNOWN && n->nhistory > 1)
        n->before_silence = n->history[(n->nhistory - 2) % FR_NODE_HISTORY].state;
    n->heard_ns = c->now_ns; /* the limit of silence runs from here */
    n->silent = false;
}

static void settle_job(struct fr_ctl *c, struct fr_cjob *j)
{
    struct fr_cattempt *a = fr_job_current(j);
    struct fr_order *o = &j->order;

    if (fr_job_state_is_end(j->state)) {
        *o = (struct fr_order){.what = FR_ORDER_FINISH,
                               .epoch = j->epoch,
                               .attempt = a ? a->attempt : 0,
                               .id = j->epoch * 4 + FR_ORDER_FINISH,
                               .exit_code = j->exit_code};
        return;
    }
    if (!a)
        return;
    for (uint32_t i = 0; i < a->nnodes; i++) {
        a->nodes[i]->job = j;
        a->nodes[i]->job_index = i;
    }
    if (a->stop_unix_ns && !a->end_unix_ns)
        o->what = FR_ORDER_STOP;
    else if (!a->start_unix_ns)
        o->what = FR_ORDER_START;
    o->epoch = a->epoch;
    o->attempt = a->attempt;
    o->id = o->what ? a->epoch * 4 + o->what : 0;
    o->decision = a->decision;
    snprintf(o->reason, sizeof o->reason, "%s", a->end_reason);
    fr_act_resume(c, j);
    if (a->end_unix_ns && a->exit_code == 0 && a->exit_signal <= 0 && j->act.stage == FR_ACT_NONE)
        j->settle_ns = c->now_ns + SETTLE_NS;
    else if (a->end_unix_ns && j->act.stage == FR_ACT_NONE)
        j->verdict_ns = c->now_ns + VERDICT_NS;
    j->step_durable = j->step_done;
}

static int each(struct restore *s, struct fr_ledger_reader *rd, enum fr_row_kind kind,
                const char *job, int (*fn)(const void *, void *), struct fr_err *err)
{
    return fr_ledger_each(rd, kind, job, 0, fn, s, err);
}

static int read_job(struct restore *s, struct fr_ledger_reader *rd, const char *job,
                    struct fr_err *err)
{
    int rc = 0;

    s->j = NULL;
    rc = each(s, rd, FR_ROW_JOB, job, take_job, err);
    if (rc || !s->j)
        return rc;
    rc = each(s, rd, FR_ROW_ATTEMPT, job, take_attempt, err);
    if (rc)
        return rc;
    if (s->j->nattempts && !fr_job_state_is_end(s->j->state))
        fr_job_begin_judging(s->c, s->j);
    rc = each(s, rd, FR_ROW_STEP, job, take_step, err);
    if (!rc)
        rc = each(s, rd, FR_ROW_SPAN, job, take_span, err);
    if (!rc)
        rc = each(s, rd, FR_ROW_INCIDENT, job, take_incident, err);
    if (!rc)
        rc = each(s, rd, FR_ROW_DECISION, job, take_decision, err);
    if (!rc)
        rc = each(s, rd, FR_ROW_ACTION, job, take_action, err);
    return rc;
}

static int by_incident_id(const void *pa, const void *pb)
{
    const struct fr_cincident *a = *(struct fr_cincident *const *)pa,
                              *b = *(struct fr_cincident *const *)pb;

    return (a->id > b->id) - (a->id < b->id);
}

static int by_decision_id(const void *pa, const void *pb)
{
    const struct fr_cdecision *a = *(struct fr_cdecision *const *)pa,
                              *b = *(struct fr_cdecision *const *)pb;

    return (a->id > b->id) - (a->id < b->id);
}

static int read_all(struct restore *s, struct fr_ledger_reader *rd, struct picks *picks,
                    struct fr_err *err)
{
    struct fr_ctl *c = s->c;
    int rc = each(s, rd, FR_ROW_JOB, NULL, pick_job, err);

    if (rc)
        return rc;
    if (picks->n)
        qsort(picks->v, picks->n, sizeof *picks->v, by_worth);
    if (picks->n > JOBS_RESTORED)
        picks->n = JOBS_RESTORED;
    if (picks->n)
        qsort(picks->v, picks->n, sizeof *picks->v, by_age);
    rc = each(s, rd, FR_ROW_NODE, NULL, take_node, err);
    for (size_t i = 0; i < picks->n && !rc; i++)
        rc = read_job(s, rd, picks->v[i].job, err);
    if (rc)
        return rc;
    qsort(c->incidents, c->nincidents, sizeof *c->incidents, by_incident_id);
    qsort(c->decisions, c->ndecisions, sizeof *c->decisions, by_decision_id);
    if (fr_ledger_last_id(rd, FR_ROW_INCIDENT) > c->incident_id)
        c->incident_id = fr_ledger_last_id(rd, FR_ROW_INCIDENT);
    if (fr_ledger_last_id(rd, FR_ROW_DECISION) > c->decision_id)
        c->decision_id = fr_ledger_last_id(rd, FR_ROW_DECISION);
    return 0;
}

int fr_restore(struct fr_ctl *c, const char *ledger_path, struct fr_err *err)
{
    struct picks picks = {0};
    struct restore s = {.c = c, .picks = &picks};
    struct fr_ledger_reader *rd = NULL;
    int rc = fr_ledger_reader_open(ledger_path, &rd, err);

    if (rc)
        return rc;
    rc = read_all(&s, rd, &picks, err);
    fr_ledger_reader_close(rd);
    free(picks.v);
    if (rc)
        return rc;
    if (s.newest >= fr_ctl_now_unix(c)) {
        fr_log(FR_LOG_WARNING, "clock",
               "the wall clock is %.3f s behind the ledger: counting on from the ledger",
               (double)(s.newest - fr_ctl_now_unix(c)) * 1e-9);
        c->unix_offset_ns += s.newest - fr_ctl_now_unix(c) + 1;
    }
    for (uint32_t i = 0; i < c->nnodes; i++)
        settle_node(c, c->nodes[i]);
    for (uint32_t i = 0; i < c->njobs; i++)
        settle_job(c, c->jobs[i]);
    if (c->njobs)
        fr_log(FR_LOG_NOTICE, "restored", "jobs=%u nodes=%u incidents=%zu decisions=%zu", c->njobs,
               c->nnodes, c->nincidents, c->ndecisions);
    return 0;
}
