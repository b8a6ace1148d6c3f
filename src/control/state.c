/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - the state as a whole: made, freed, moved on by time, written down */
#include "control/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "control/account.h"
#include "control/bundles.h"
#include "control/fleet.h"
#include "control/incidents.h"
#include "control/jobs.h"
#include "control/publish.h"

#define NODE_TABLE        (2 * FR_NODES_MAX)
#define PRUNE_EVERY_NS    3600000000000ull
#define SAVE_STEPS_A_TICK 4096 /* rows of steps in one go: a backlog must not stop the loop */

int64_t fr_ctl_unix(const struct fr_ctl *c, uint64_t mono_ns)
{
    return (int64_t)mono_ns + c->unix_offset_ns;
}

int64_t fr_ctl_now_unix(const struct fr_ctl *c)
{
    return fr_ctl_unix(c, c->now_ns);
}

bool fr_ctl_durable(const struct fr_ctl *c, uint64_t row)
{
    return row == FR_ROW_RESTORED || (row != 0 && fr_ledger_durable(c->ledger) >= row);
}

bool fr_ctl_save_durable(const struct fr_ctl *c, uint64_t save)
{
    if (save == 0 || save > c->saves)
        return false;
    if (c->saves - save >= FR_SAVES)
        save = c->saves - FR_SAVES + 1;
    return fr_ledger_durable(c->ledger) >= c->save_rows[save % FR_SAVES];
}

int fr_ctl_name_ok(const char *name)
{
    size_t n = name ? strnlen(name, FR_NAME_BYTES) : 0;

    if (n == 0 || n >= FR_NAME_BYTES || name[0] == '.')
        return 0;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

void fr_ratio_update(struct fr_ratio *r, uint64_t at_ns, uint64_t total, double scale)
{
    if (r->at_ns == 0 || total < r->total || at_ns < r->at_ns) {
        r->at_ns = at_ns;
        r->total = total;
        r->ratio = NAN;
        return;
    }
    if (at_ns - r->at_ns < FR_NS_PER_S)
        return;
    r->ratio = (double)(total - r->total) / scale / ((double)(at_ns - r->at_ns) * 1e-9);
    r->at_ns = at_ns;
    r->total = total;
}

static void fill_judge(struct fr_judge_config *j, const struct fr_config *f)
{
    fr_judge_defaults(j);
    j->hang_silence_s = f->judge_hang_silence_s;
    j->hang_name_s = f->judge_hang_name_s;
    j->stop_confirm_s = f->judge_stop_confirm_s;
    j->stall_floor_s = f->judge_stall_floor_s;
    j->stall_factor = f->judge_stall_factor;
    j->agent_silent_s = f->judge_agent_silent_s;
    j->slow_window_steps = (uint32_t)f->judge_slow_window_steps;
    j->slow_warmup_steps = (uint32_t)f->judge_slow_warmup_steps;
    j->slow_min_ratio = f->judge_slow_min_ratio;
    j->slow_fence = f->judge_slow_fence;
}

static void fill_policy(struct fr_policy_config *p, const struct fr_config *f)
{
    fr_policy_defaults(p);
    p->restart_cost_s = f->policy_restart_cost_s;
    p->slow_min_gain_ratio = f->policy_slow_min_gain_ratio;
    p->max_attempts = (uint32_t)f->policy_max_attempts;
    p->no_progress_attempts = (uint32_t)f->policy_no_progress_attempts;
    p->breaker_nodes = (uint32_t)f->policy_breaker_nodes;
    p->breaker_window_s = f->policy_breaker_window_s;
}

struct fr_ctl *fr_ctl_new(const struct fr_config *cfg, enum fr_mode mode, const char *state_dir,
                          struct fr_ledger *lg)
{
    struct fr_ctl *c = fr_xalloc(sizeof *c);

    c->cfg = *cfg;
    c->mode = mode;
    fill_judge(&c->judge_cfg, cfg);
    fill_policy(&c->policy_cfg, cfg);
    snprintf(c->state_dir, sizeof c->state_dir, "%s", state_dir);
    c->ledger = lg;
    c->ledger_ok = true;
    c->now_ns = c->start_ns = fr_mono_ns();
    c->unix_offset_ns = fr_unix_ns() - (int64_t)c->now_ns;
    c->instance = (uint64_t)fr_unix_ns() ^ (c->now_ns << 20);
    c->nodes = fr_xcalloc(FR_NODES_MAX, sizeof *c->nodes);
    c->node_table = fr_xcalloc(NODE_TABLE, sizeof *c->node_table);
    c->jobs = fr_xcalloc(FR_JOBS_MAX, sizeof *c->jobs);
    c->incidents = fr_xcalloc(FR_INCIDENTS_MAX, sizeof *c->incidents);
    c->decisions = fr_xcalloc(FR_INCIDENTS_MAX, sizeof *c->decisions);
    return c;
}

void fr_ctl_free(struct fr_ctl *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->njobs; i++)
        fr_job_free(c->jobs[i]);
    for (uint32_t i = 0; i < c->nnodes; i++) {
        free(c->nodes[i]->acks);
        free(c->nodes[i]->addresses);
        free(c->nodes[i]);
    }
    for (size_t i = 0; i < c->nincidents; i++) {
        free(c->incidents[i]->evidence);
        free(c->incidents[i]);
    }
    for (size_t i = 0; i < c->ndecisions; i++)
        free(c->decisions[i]);
    free(c->nodes);
    free(c->node_table);
    free(c->jobs);
    free(c->incidents);
    free(c->decisions);
    free(c);
}

struct fr_cnode *fr_ctl_node(struct fr_ctl *c, const char *name)
{
    return *fr_ctl_node_place(c, name);
}

struct fr_cnode **fr_ctl_node_place(struct fr_ctl *c, const char *name)
{
    uint64_t h =
        0xcbf29ce484222325ull; /* FNV-1a; a hostile name costs one walk over the table at worst */
    uint32_t i;

    for (const char *p = name; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3ull;
    for (i = (uint32_t)(h % NODE_TABLE); c->node_table[i]; i = (i + 1) % NODE_TABLE)
        if (strcmp(c->node_table[i]->name, name) == 0)
            break;
    return &c->node_table[i];
}

struct fr_cjob *fr_ctl_job(struct fr_ctl *c, const char *name)
{
    for (uint32_t i = 0; i < c->njobs; i++)
        if (strcmp(c->jobs[i]->job, name) == 0)
            return c->jobs[i];
    return NULL;
}

struct fr_cincident *fr_ctl_incident(struct fr_ctl *c, uint64_t id)
{
    for (size_t i = c->nincidents; i-- > 0;)
        if (c->incidents[i]->id == id)
            return c->incidents[i];
    return NULL;
}

struct fr_cdecision *fr_ctl_decision(struct fr_ctl *c, uint64_t id)
{
    for (size_t i = c->ndecisions; i-- > 0;)
        if (c->decisions[i]->id == id)
            return c->decisions[i];
    return NULL;
}

struct fr_cattempt *fr_job_current(struct fr_cjob *j)
{
    return j->nattempts ? &j->attempts[j->nattempts - 1] : NULL;
}

/* --- writing down --- */

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

static uint64_t append(struct fr_ctl *c, enum fr_row_kind kind, const void *row)
{
    uint64_t n = fr_ledger_append(c->ledger, kind, row);

    if (n)
        c->appended = n;
    return n;
}

static void save_job(struct fr_ctl *c, struct fr_cjob *j)
{
    struct fr_row_job r = {.command = j->command,
                           .workdir = j->workdir,
                           .uid = j->uid,
                           .nodes = j->nodes,
                           .ranks_per_node = j->ranks_per_node,
                           .spares = j->spares,
                           .max_attempts = j->max_attempts,
                           .state = j->state,
                           .mode = j->mode,
                           .supervisor_key = j->key,
                           .epoch = j->epoch,
                           .submitted_unix_ns = j->submitted_unix_ns,
                           .ended_unix_ns = j->ended_unix_ns,
                           .exit_code = j->exit_code,
                           .total_steps = j->total_steps,
                           .checkpoint_every = j->checkpoint_every,
                           .tokens_per_step = j->tokens_per_step,
                           .flops_per_step = j->flops_per_step,
                           .peak_flops_per_rank = j->peak_flops_per_rank};

    COPY(r.job, j->job);
    COPY(r.name, j->name);
    COPY(r.user, j->user);
    COPY(r.engine, j->engine);
    j->row = append(c, FR_ROW_JOB, &r);
    j->dirty = false;
    j->changed = true;
}

static void save_attempt(struct fr_ctl *c, const struct fr_cjob *j, struct fr_cattempt *a)
{
    struct fr_row_attempt r = {.attempt = a->attempt,
                               .epoch = a->epoch,
                               .start_unix_ns = a->start_unix_ns,
                               .stop_unix_ns = a->stop_unix_ns,
                               .end_unix_ns = a->end_unix_ns,
                               .first_step_unix_ns = a->first_step_unix_ns,
                               .first_step = a->first_step,
                               .last_step = a->last_step,
                               .resumed_from = a->resumed_from,
                               .exit_code = a->exit_code,
                               .exit_signal = a->exit_signal,
                               .end_reason = a->end_reason,
                               .decision = a->decision};
    FR_CLEANUP(fr_buf_fini) struct fr_buf names = FR_BUF_INIT;
    struct fr_jsonw w;

    fr_jsonw_init(&w, &names);
    fr_jsonw_arr(&w, NULL);
    for (uint32_t i = 0; i < a->nnodes; i++)
        fr_jsonw_str(&w, NULL, a->nodes[i]->name);
    fr_jsonw_end_arr(&w);
    r.nodes = fr_buf_str(&names);
    COPY(r.job, j->job);
    a->row = append(c, FR_ROW_ATTEMPT, &r);
    a->dirty = false;
}

static void save_steps(struct fr_ctl *c, struct fr_cjob *j)
{
    for (int k = 0; j->steps_saved < j->nsteps && k < SAVE_STEPS_A_TICK; k++) {
        size_t i = j->steps_saved++;
        const struct fr_gp_step *g = &j->steps[i];
        const struct fr_cstep *s = &j->step_info[i];
        struct fr_row_step r = {.attempt = j->attempts[g->attempt].attempt,
                                .step = g->step,
                                .begin_unix_ns = g->begin_ns,
                                .end_unix_ns = g->end_ns,
                                .loss = s->loss,
                                .tokens = s->tokens,
                                .self_max_s = (double)s->self_max_s,
                                .self_median_s = (double)s->self_median_s,
                                .slowest_rank = s->slowest_rank};

        COPY(r.job, j->job);
        j->step_row = append(c, FR_ROW_STEP, &r);
        if (!j->step_row) { /* the ledger has no room: tried again with the next saving */
            j->steps_saved--;
            return;
        }
    }
}

static void save_spans(struct fr_ctl *c, struct fr_cjob *j)
{
    size_t from = j->spans_saved > 64 ? j->spans_saved - 64 : 0; /* older ones grow no more */

    for (size_t i = from; i < j->nspans; i++) {
        const struct fr_gp_span *g = &j->spans[i];
        struct fr_row_span r = {.attempt = j->attempts[g->attempt].attempt,
                                .phase = g->phase,
                                .begin_unix_ns = g->begin_ns,
                                .end_unix_ns = g->end_ns};

        if (!j->span_dirty[i])
            continue;
        COPY(r.job, j->job);
        if (append(c, FR_ROW_SPAN, &r))
            j->span_dirty[i] = false;
    }
    j->spans_saved = j->nspans;
}

static void save_incident(struct fr_ctl *c, struct fr_cincident *i)
{
    struct fr_row_incident r = {.id = i->id,
                                .attempt = i->attempt,
                                .epoch = i->epoch,
                                .finding_key = i->f.key,
                                .rank = i->f.rank,
                                .confidence = i->f.confidence,
                                .ratio = i->f.ratio,
                                .cost_ratio = i->f.cost_ratio,
                                .witnesses = i->f.witnesses,
                                .victims = i->f.victims,
                                .onset_unix_ns = i->onset_unix_ns,
                                .named_unix_ns = i->named_unix_ns,
                                .closed_unix_ns = i->closed_unix_ns,
                                .last_move_unix_ns = i->last_move_unix_ns,
                                .onset_step = i->f.since_step,
                                .named_step = i->named_step,
                                .evidence = i->evidence ? i->evidence : "[]",
                                .acknowledged_by = i->acknowledged_by};
    char bundle[32] = "";

    if (i->has_bundle)
        snprintf(bundle, sizeof bundle, "bundles/%llu", (unsigned long long)i->id);
    r.bundle = bundle;
    COPY(r.job, i->job ? i->job->job : "");
    COPY(r.kind, i->kind);
    COPY(r.subject, i->subject);
    COPY(r.cause, i->cause);
    COPY(r.node, i->node);
    COPY(r.group_key, i->group);
    i->row = append(c, FR_ROW_INCIDENT, &r);
    i->dirty = false;
}

static void save_decision(struct fr_ctl *c, struct fr_cdecision *d)
{
    if (d->dirty) {
        struct fr_row_decision r = {.id = d->id,
                                    .incident = d->incident,
                                    .attempt = d->attempt,
                                    .cost_stay_s = d->cost_stay_s,
                                    .cost_restart_s = d->cost_restart_s,
                                    .wait_until_step = d->wait_until_step,
                                    .decided_unix_ns = d->decided_unix_ns,
                                    .reason = d->reason};

        COPY(r.job, d->job ? d->job->job : "");
        COPY(r.choice, fr_choice_name(d->choice));
        COPY(r.mode, d->mode);
        COPY(r.node, d->node);
        COPY(r.actor, d->actor);
        d->row = append(c, FR_ROW_DECISION, &r);
        d->dirty = false;
    }
    for (uint32_t k = 0; k < d->nactions; k++) {
        struct fr_caction *a = &d->actions[k];
        struct fr_row_action r = {.decision = d->id,
                                  .started_unix_ns = a->started_unix_ns,
                                  .ended_unix_ns = a->ended_unix_ns,
                                  .detail = a->detail};

        if (!a->dirty)
            continue;
        COPY(r.kind, a->kind);
        COPY(r.target, a->target);
        COPY(r.state, a->state);
        d->row = append(c, FR_ROW_ACTION, &r);
        a->dirty = false;
    }
}

static void save_node(struct fr_ctl *c, struct fr_cnode *n)
{
    if (n->nhistory - n->nsaved > FR_NODE_HISTORY)
        n->nsaved = n->nhistory - FR_NODE_HISTORY;
    for (; n->nsaved < n->nhistory; n->nsaved++) {
        const struct fr_node_change *h = &n->history[n->nsaved % FR_NODE_HISTORY];
        struct fr_row_node r = {
            .at_unix_ns = h->at_unix_ns, .incident = h->incident, .reason = h->reason};

        COPY(r.node, n->name);
        COPY(r.state, fr_node_state_name(h->state));
        COPY(r.actor, h->actor);
        n->row = append(c, FR_ROW_NODE, &r);
    }
}

static void check_ledger(struct fr_ctl *c)
{
    struct fr_err err = FR_ERR_INIT;
    bool ok = fr_ledger_trouble(c->ledger, &err) == 0;

    if (ok != c->ledger_ok) {
        if (ok)
            fr_log(FR_LOG_NOTICE, "ledger.ok", "rows are written again");
        else
            fr_log(FR_LOG_ERROR, "ledger.trouble", "error=%s", err.text);
    }
    c->ledger_ok = ok;
    snprintf(c->ledger_error, sizeof c->ledger_error, "%.255s", ok ? "" : err.text);
}

void fr_ctl_save(struct fr_ctl *c)
{
    check_ledger(c);
    if (!c->ledger_ok)
        return;
    for (uint32_t i = 0; i < c->nnodes; i++)
        save_node(c, c->nodes[i]);
    /* Incidents come before the decisions about them, those before the attempts that follow from
     * them. */
    for (size_t i = 0; i < c->nincidents; i++)
        if (c->incidents[i]->dirty)
            save_incident(c, c->incidents[i]);
    for (size_t i = 0; i < c->ndecisions; i++)
        save_decision(c, c->decisions[i]);
    for (uint32_t i = 0; i < c->njobs; i++) {
        struct fr_cjob *j = c->jobs[i];

        if (j->dirty)
            save_job(c, j);
        for (uint32_t k = 0; k < j->nattempts; k++)
            if (j->attempts[k].dirty)
                save_attempt(c, j, &j->attempts[k]);
        if (j->steps_saved < j->nsteps)
            save_steps(c, j);
        save_spans(c, j);
        if (j->pending_row && fr_ctl_durable(c, j->pending_row)) {
            j->step_durable = j->pending_step;
            j->pending_row = 0;
        }
        if (!j->pending_row && j->steps_saved == j->nsteps && j->step_done > j->step_durable) {
            j->pending_row = j->step_row;
            j->pending_step = j->step_done;
        }
    }
    c->saves++;
    c->save_rows[c->saves % FR_SAVES] = c->appended;
}

void fr_ctl_tick(struct fr_ctl *c, uint64_t now_ns)
{
    if (now_ns > c->now_ns)
        c->now_ns = now_ns;
    check_ledger(c);
    fr_fleet_tick(c);
    if (c->now_ns - c->judged_ns >= (uint64_t)(c->cfg.controller_judge_interval_s * 1e9)) {
        c->judged_ns = c->now_ns;
        fr_incidents_tick(c);
    }
    fr_jobs_tick(c);
    fr_ctl_save(c);
    if (!c->pruned_ns || c->now_ns - c->pruned_ns > PRUNE_EVERY_NS) {
        c->pruned_ns = c->now_ns;
        fr_ledger_prune(c->ledger,
                        fr_ctl_now_unix(c) - (int64_t)(c->cfg.controller_retain_steps_s * 1e9));
        fr_bundles_trim(c);
    }
    fr_publish_tick(c);
}
