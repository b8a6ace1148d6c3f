/* SPDX-License-Identifier: Apache-2.0 */
/* incidents.c - see incidents.h; the decisions about them are in decide.c */
#include "control/incidents.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "control/decide.h"
#include "control/fleet.h"
#include "control/jobs.h"
#include "control/publish.h"

#define CLOSE_NS 2000000000ull
/* A new finding is looked at closely: so many steps are forwarded whole, at most so often. */
#define BURST_STEPS    24
#define BURST_EVERY_NS 60000000000ull

/* By kind: how grave, and which kinds of findings are only its effects. */
#define KIND(k) (1u << FR_FINDING_##k)
static const struct {
    int gravity; /* the larger the graver */
    uint32_t effects;
} KINDS[FR_FINDING_KINDS] = {
    [FR_FINDING_DEAD] = {7, KIND(DEAD) | KIND(MISMATCH) | KIND(HANG) | KIND(STALL) | KIND(SLOW) |
                                KIND(JOB_SLOW) | KIND(STRUCTURAL) | KIND(SILENT)},
    [FR_FINDING_MISMATCH] = {6, KIND(HANG) | KIND(STALL) | KIND(JOB_SLOW)},
    [FR_FINDING_HANG] = {5, KIND(HANG) | KIND(STALL) | KIND(JOB_SLOW) | KIND(SLOW)},
    [FR_FINDING_SLOW] = {4, KIND(JOB_SLOW)},
    [FR_FINDING_STALL] = {3, KIND(JOB_SLOW)},
    [FR_FINDING_SILENT] = {2, 0},
    [FR_FINDING_JOB_SLOW] = {1, 0},
    [FR_FINDING_STRUCTURAL] = {1, 0},
};

struct fr_cincident *fr_incident_add(struct fr_ctl *c, uint64_t id)
{
    struct fr_cincident *i;

    if (c->nincidents == FR_INCIDENTS_MAX) {
        size_t k = 0;

        while (k < c->nincidents && (!c->incidents[k]->closed_unix_ns || c->incidents[k]->dirty))
            k++;
        if (k == c->nincidents)
            return NULL;
        free(c->incidents[k]->evidence);
        free(c->incidents[k]);
        memmove(&c->incidents[k], &c->incidents[k + 1],
                (c->nincidents - k - 1) * sizeof c->incidents[0]);
        c->nincidents--;
    }
    i = fr_xalloc(sizeof *i);
    i->id = id;
    i->f.rank = i->f.node = -1;
    c->incidents[c->nincidents++] = i;
    if (id > c->incident_id)
        c->incident_id = id;
    return i;
}

struct fr_cdecision *fr_decision_add(struct fr_ctl *c, uint64_t id)
{
    struct fr_cdecision *d;

    if (c->ndecisions == FR_INCIDENTS_MAX) {
        size_t k = 0;

        for (; k < c->ndecisions; k++) {
            const struct fr_cdecision *o = c->decisions[k];

            if (!o->dirty && (!o->job || o->job->act.decision != o))
                break;
        }
        if (k == c->ndecisions)
            return NULL;
        free(c->decisions[k]);
        memmove(&c->decisions[k], &c->decisions[k + 1],
                (c->ndecisions - k - 1) * sizeof c->decisions[0]);
        c->ndecisions--;
    }
    d = fr_xalloc(sizeof *d);
    d->id = id;
    d->cost_stay_s = d->cost_restart_s = (double)NAN;
    c->decisions[c->ndecisions++] = d;
    if (id > c->decision_id)
        c->decision_id = id;
    return d;
}

static int is_open_of(const struct fr_cincident *i, const struct fr_cjob *j)
{
    return i->job == j && !i->closed_unix_ns && i->epoch == j->epoch;
}

/* The open incident that this finding belongs to: by its key, else as an effect of a graver one. */
static struct fr_cincident *find_cause(struct fr_ctl *c, struct fr_cjob *j,
                                       const struct fr_finding *f)
{
    struct fr_cincident *cause = NULL;

    for (size_t k = c->nincidents; k-- > 0;) {
        struct fr_cincident *i = c->incidents[k];

        if (!is_open_of(i, j))
            continue;
        if (i->f.key == f->key)
            return i;
        if (KINDS[i->f.kind].effects & (1u << f->kind))
            cause = i;
    }
    return cause;
}

/* The open incident that turns out to be this graver finding: a stall that has found its rank, say.
 */
static struct fr_cincident *find_effect(struct fr_ctl *c, struct fr_cjob *j,
                                        const struct fr_finding *f)
{
    for (size_t k = c->nincidents; k-- > 0;) {
        struct fr_cincident *i = c->incidents[k];

        if (is_open_of(i, j) && KINDS[i->f.kind].gravity < KINDS[f->kind].gravity &&
            (KINDS[f->kind].effects & (1u << i->f.kind)) && i->f.kind != FR_FINDING_SLOW &&
            i->f.kind != FR_FINDING_SILENT && i->f.kind != FR_FINDING_STRUCTURAL)
            return i;
    }
    return NULL;
}

static void write_evidence(struct fr_cincident *i)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    fr_jsonw_init(&w, &b);
    fr_jsonw_arr(&w, NULL);
    for (uint32_t k = 0; k < i->f.nlines && k < FR_FINDING_LINES; k++)
        fr_jsonw_str(&w, NULL, i->f.line[k]);
    fr_jsonw_end_arr(&w);
    free(i->evidence);
    i->evidence = fr_xstrdup(fr_buf_str(&b));
}

/* Take the finding as the incident's newest. Returns 1 when something that is shown has changed. */
static int take_finding(struct fr_ctl *c, struct fr_cjob *j, struct fr_cincident *i,
                        const struct fr_finding *f)
{
    const struct fr_cattempt *a = fr_job_current(j);
    const struct fr_finding *old = &i->f;
    int named = old->key != f->key;
    int changed = named || old->witnesses != f->witnesses || old->cause != f->cause ||
                  old->nlines != f->nlines || old->victims != f->victims || old->rank != f->rank ||
                  fabs(i->shown_confidence - f->confidence) > 0.05 ||
                  fabs(i->shown_ratio - f->ratio) > 0.1;

    i->seen_ns = c->now_ns;
    i->f = *f; /* what the policy weighs is always the newest */
    if (!changed)
        return 0;
    i->shown_confidence = f->confidence;
    i->shown_ratio = f->ratio;
    snprintf(i->kind, sizeof i->kind, "%s", fr_finding_kind_name(f->kind));
    snprintf(i->subject, sizeof i->subject, "%s", fr_subject_name(f->subject));
    snprintf(i->cause, sizeof i->cause, "%s", fr_cause_name(f->cause));
    i->node[0] = '\0';
    if (f->node >= 0 && (uint32_t)f->node < a->nnodes)
        snprintf(i->node, sizeof i->node, "%s", a->nodes[f->node]->name);
    i->group[0] = '\0';
    if (f->group_hash)
        snprintf(i->group, sizeof i->group, "%016llx.%u", (unsigned long long)f->group_hash,
                 f->group_instance);
    if (named) {
        struct fr_judge_summary sum;

        fr_judge_summary(j->judge, &sum);
        i->named_unix_ns = fr_ctl_now_unix(c);
        i->onset_unix_ns = f->since_ns ? fr_ctl_unix(c, f->since_ns) : i->named_unix_ns;
        if (i->onset_unix_ns > i->named_unix_ns)
            i->onset_unix_ns = i->named_unix_ns;
        i->last_move_unix_ns =
            sum.last_move_ns ? fr_ctl_unix(c, sum.last_move_ns) : i->onset_unix_ns;
        if (i->last_move_unix_ns > i->named_unix_ns)
            i->last_move_unix_ns = i->named_unix_ns;
        i->named_step = sum.step;
    }
    write_evidence(i);
    i->dirty = j->changed = true;
    return 1;
}

static void ask_for_burst(struct fr_ctl *c, struct fr_cjob *j)
{
    uint64_t newest = j->step_done;

    if (j->burst_ns && c->now_ns - j->burst_ns < BURST_EVERY_NS)
        return;
    for (uint32_t r = 0; j->ranks && r < j->nranks; r++)
        if (j->ranks[r].step > newest)
            newest = j->ranks[r].step;
    j->burst_until = newest + BURST_STEPS;
    j->burst_ns = c->now_ns;
}

static void open_incident(struct fr_ctl *c, struct fr_cjob *j, const struct fr_finding *f)
{
    const struct fr_cattempt *a = fr_job_current(j);
    struct fr_cincident *i = fr_incident_add(c, c->incident_id + 1);

    if (!i) {
        fr_log(FR_LOG_ERROR, "incident.full", "job=%s more than %d incidents are open", j->job,
               FR_INCIDENTS_MAX);
        return;
    }
    i->job = j;
    i->attempt = a->attempt;
    i->epoch = a->epoch;
    take_finding(c, j, i, f);
    ask_for_burst(c, j);
    fr_log(FR_LOG_NOTICE, "incident.open",
           "incident=%llu job=%s kind=%s subject=%s rank=%d node=%s cause=%s evidence=%s",
           (unsigned long long)i->id, j->job, i->kind, i->subject, i->f.rank, i->node, i->cause,
           f->nlines ? f->line[0] : "");
    fr_publish_incident(c, i);
}

static void close_incident(struct fr_ctl *c, struct fr_cincident *i, const char *why)
{
    i->closed_unix_ns = fr_ctl_now_unix(c);
    i->dirty = true;
    if (i->job) {
        i->job->changed = true;
        if (i->job->act.incident == i && i->job->act.stage > FR_ACT_RECORD)
            i->job->act.incident = NULL;
    }
    fr_log(FR_LOG_NOTICE, "incident.closed", "incident=%llu why=%s", (unsigned long long)i->id,
           why);
    fr_publish_incident(c, i);
}

void fr_incidents_close_job(struct fr_ctl *c, struct fr_cjob *j, const char *why)
{
    for (size_t k = 0; k < c->nincidents; k++)
        if (c->incidents[k]->job == j && !c->incidents[k]->closed_unix_ns)
            close_incident(c, c->incidents[k], why);
}

void fr_incidents_fold(struct fr_ctl *c, struct fr_cjob *j, const struct fr_finding *f, size_t n)
{
    bool acting = j->act.stage != FR_ACT_NONE;

    for (size_t k = 0; k < n; k++) {
        struct fr_cincident *i = find_cause(c, j, &f[k]);

        if (i && i->f.key == f[k].key) {
            if (take_finding(c, j, i, &f[k]))
                fr_publish_incident(c, i);
            continue;
        }
        if (i || acting)
            continue; /* an effect of what is known, or of our own stop */
        i = find_effect(c, j, &f[k]);
        if (i) {
            take_finding(c, j, i, &f[k]);
            fr_publish_incident(c, i);
        } else {
            open_incident(c, j, &f[k]);
        }
    }
    if (acting && j->act.stage != FR_ACT_RECORD)
        return;
    for (size_t k = 0; k < c->nincidents; k++) {
        struct fr_cincident *i = c->incidents[k];

        if (i->job != j || i->closed_unix_ns)
            continue;
        if (i->epoch != j->epoch)
            close_incident(c, i, "its attempt ended");
        else if (c->now_ns > i->seen_ns && c->now_ns - i->seen_ns > CLOSE_NS && !j->verdict_ns)
            close_incident(c, i, "the finding stands no more");
    }
}

/* What it was before it became suspect. Probation begins anew: it asks for a time without a
 * finding. */
static enum fr_node_state before_suspicion(const struct fr_cnode *n)
{
    uint32_t k = n->nhistory;

    while (k > 0 && n->nhistory - k < FR_NODE_HISTORY) {
        enum fr_node_state s = n->history[--k % FR_NODE_HISTORY].state;

        if (s != FR_NODE_SUSPECT && s != FR_NODE_UNKNOWN)
            return s == FR_NODE_PROBATION ? s : FR_NODE_HEALTHY;
    }
    return FR_NODE_HEALTHY;
}

/* A node that an open incident names is suspect; it is what it was before when the incident is
 * gone. */
static void mark_suspects(struct fr_ctl *c)
{
    for (uint32_t k = 0; k < c->nnodes; k++) {
        struct fr_cnode *n = c->nodes[k];
        const struct fr_cincident *by = NULL;

        if (n->state != FR_NODE_HEALTHY && n->state != FR_NODE_PROBATION &&
            n->state != FR_NODE_SUSPECT)
            continue;
        for (size_t i = c->nincidents; n->job && i-- > 0 && !by;)
            if (!c->incidents[i]->closed_unix_ns && c->incidents[i]->job == n->job &&
                KINDS[c->incidents[i]->f.kind].gravity >= KINDS[FR_FINDING_SLOW].gravity &&
                strcmp(c->incidents[i]->node, n->name) == 0)
                by = c->incidents[i];
        if (by && n->state != FR_NODE_SUSPECT) {
            char reason[FR_TEXT_BYTES];

            snprintf(reason, sizeof reason, "incident %llu (%s) names it",
                     (unsigned long long)by->id, by->kind);
            fr_node_move(c, n, FR_NODE_SUSPECT, FR_ACTOR_SELF, by->id, reason);
        } else if (!by && n->state == FR_NODE_SUSPECT) {
            fr_node_move(c, n, before_suspicion(n), FR_ACTOR_SELF, 0, "no open incident names it");
        }
    }
}

static struct fr_cincident *gravest(struct fr_ctl *c, const struct fr_cjob *j)
{
    struct fr_cincident *g = NULL;

    for (size_t k = 0; k < c->nincidents; k++) {
        struct fr_cincident *i = c->incidents[k];

        if (is_open_of(i, j) && i->seen_ns == c->now_ns &&
            (!g || KINDS[i->f.kind].gravity > KINDS[g->f.kind].gravity))
            g = i;
    }
    return g;
}

static void show_stuck(struct fr_ctl *c, struct fr_cjob *j, const struct fr_cincident *g)
{
    bool stuck = g && (g->f.kind == FR_FINDING_HANG || g->f.kind == FR_FINDING_MISMATCH);

    if (stuck && (j->state == FR_JOB_RUNNING || j->state == FR_JOB_STARTING))
        fr_job_move(c, j, FR_JOB_STUCK);
    else if (!stuck && j->state == FR_JOB_STUCK && j->act.stage == FR_ACT_NONE)
        fr_job_move(c, j, fr_job_natural_state(j));
}

void fr_incidents_tick(struct fr_ctl *c)
{
    static struct fr_finding
        found[FR_FINDINGS_MAX]; /* 1.3 kB each: too much for the stack; one loop thread */

    for (uint32_t k = 0; k < c->njobs; k++) {
        struct fr_cjob *j = c->jobs[k];
        struct fr_cincident *g;
        const struct fr_cattempt *a = fr_job_current(j);
        size_t n;

        if (!j->judging || !a || !a->start_unix_ns || fr_job_state_is_end(j->state))
            continue;
        n = fr_judge_findings(j->judge, c->now_ns, found, FR_FINDINGS_MAX);
        fr_incidents_fold(c, j, found, n);
        g = gravest(c, j);
        show_stuck(c, j, g);
        if (j->act.stage == FR_ACT_NONE && j->state != FR_JOB_LOST && !j->settle_ns)
            fr_decide(c, j, g);
    }
    mark_suspects(c);
}
