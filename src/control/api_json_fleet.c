/* SPDX-License-Identifier: Apache-2.0 */
/* api_json_fleet.c - the controller, nodes, incidents, decisions as JSON; see api_json.h */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/api_json.h"
#include "control/self.h"

void fr_json_status_members(struct fr_ctl *c, struct fr_jsonw *w)
{
    uint32_t by_state[FR_NODE_STATES] = {0};
    uint64_t open = 0;
    char text[20];
    struct fr_self self;

    fr_self_read(&self);
    fr_jsonw_obj(w, "controller");
    fr_jsonw_str(w, "version", FR_VERSION);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)c->instance);
    fr_jsonw_str(w, "instance", text);
    fr_jsonw_num(w, "uptime_s", (double)(c->now_ns - c->start_ns) * 1e-9);
    fr_jsonw_str(w, "mode", fr_mode_name(c->mode));
    fr_jsonw_num(w, "cpu_s", self.cpu_s);
    fr_jsonw_uint(w, "rss_bytes", self.rss_bytes);
    fr_jsonw_bool(w, "ledger_ok", c->ledger_ok);
    if (!c->ledger_ok)
        fr_jsonw_str(w, "ledger_error", c->ledger_error);
    fr_jsonw_end_obj(w);
    fr_jsonw_arr(w, "jobs");
    for (uint32_t i = 0; i < c->njobs; i++) {
        fr_jsonw_obj(w, NULL);
        fr_json_job_members(c, w, c->jobs[i]);
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
    for (uint32_t i = 0; i < c->nnodes; i++)
        by_state[c->nodes[i]->state]++;
    fr_jsonw_uint(w, "nodes_total", c->nnodes);
    fr_jsonw_obj(w, "nodes_by_state");
    for (int s = 0; s < FR_NODE_STATES; s++)
        if (by_state[s])
            fr_jsonw_uint(w, fr_node_state_name((enum fr_node_state)s), by_state[s]);
    fr_jsonw_end_obj(w);
    for (size_t i = 0; i < c->nincidents; i++)
        open += c->incidents[i]->closed_unix_ns == 0;
    fr_jsonw_uint(w, "incidents_open", open);
}

static void write_agent(struct fr_jsonw *w, const struct fr_cnode *n)
{
    fr_jsonw_obj(w, "agent");
    fr_jsonw_str(w, "version", n->version);
    fr_jsonw_num(w, "cpu_ratio", n->cpu.ratio);
    fr_jsonw_uint(w, "rss_bytes", n->rss_bytes);
    fr_jsonw_uint(w, "records", n->records);
    fr_jsonw_uint(w, "lost_records", n->lost_records);
    fr_jsonw_uint(w, "spool_bytes", n->spool_bytes);
    fr_jsonw_end_obj(w);
}

void fr_json_node_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cnode *n)
{
    fr_jsonw_str(w, "node", n->name);
    fr_jsonw_str(w, "host", n->host);
    if (n->rack[0])
        fr_jsonw_str(w, "rack", n->rack);
    fr_jsonw_str(w, "state", fr_node_state_name(n->state));
    if (n->reason[0])
        fr_jsonw_str(w, "reason", n->reason);
    fr_jsonw_time(w, "since", n->since_unix_ns);
    if (n->instance)
        fr_jsonw_num(w, "last_heard_s", (double)(c->now_ns - n->heard_ns) * 1e-9);
    if (n->job) {
        fr_jsonw_str(w, "job", n->job->job);
        fr_jsonw_arr(w, "ranks");
        for (uint32_t k = 0; k < n->job->ranks_per_node; k++)
            fr_jsonw_uint(w, NULL, n->job_index * n->job->ranks_per_node + k);
        fr_jsonw_end_arr(w);
    }
    if (n->engine[0])
        fr_jsonw_str(w, "engine", n->engine);
    if (n->instance)
        write_agent(w, n);
    if (n->pressure_known) {
        fr_jsonw_obj(w, "pressure");
        fr_jsonw_num(w, "cpu_some_ratio", n->cpu_some.ratio);
        fr_jsonw_num(w, "memory_some_ratio", n->memory_some.ratio);
        fr_jsonw_num(w, "load1", n->load1);
        fr_jsonw_end_obj(w);
    }
    if (n->state == FR_NODE_PROBATION)
        fr_jsonw_time(w, "probation_until", n->probation_until_unix_ns);
}

void fr_json_node_history(struct fr_jsonw *w, const struct fr_cnode *n)
{
    uint32_t held = n->nhistory < FR_NODE_HISTORY ? n->nhistory : FR_NODE_HISTORY;

    fr_jsonw_arr(w, "history");
    for (uint32_t k = n->nhistory - held; k < n->nhistory; k++) {
        const struct fr_node_change *h = &n->history[k % FR_NODE_HISTORY];

        fr_jsonw_obj(w, NULL);
        fr_jsonw_str(w, "state", fr_node_state_name(h->state));
        fr_jsonw_time(w, "at", h->at_unix_ns);
        fr_jsonw_str(w, "actor", h->actor);
        fr_jsonw_str(w, "reason", h->reason);
        if (h->incident)
            fr_jsonw_uint(w, "incident", h->incident);
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
}

/* The witnesses of the mask as an array of their names. */
static void write_witnesses(struct fr_jsonw *w, uint32_t bits)
{
    fr_jsonw_arr(w, "witnesses");
    for (uint32_t b = 0; b < 32; b++) {
        char name[64] = "";

        if (!(bits >> b & 1))
            continue;
        fr_witness_names(1u << b, name, sizeof name);
        if (name[0])
            fr_jsonw_str(w, NULL, name);
    }
    fr_jsonw_end_arr(w);
}

void fr_json_incident_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cincident *i)
{
    const struct fr_cdecision *d = i->decision ? fr_ctl_decision(c, i->decision) : NULL;
    const char *evidence = i->evidence ? i->evidence : "[]";

    fr_jsonw_uint(w, "id", i->id);
    if (i->job)
        fr_jsonw_str(w, "job", i->job->job);
    fr_jsonw_uint(w, "attempt", i->attempt);
    fr_jsonw_uint(w, "epoch", i->epoch);
    fr_jsonw_str(w, "kind", i->kind);
    fr_jsonw_str(w, "subject", i->subject);
    if (i->node[0])
        fr_jsonw_str(w, "node", i->node);
    if (i->f.rank >= 0)
        fr_jsonw_int(w, "rank", i->f.rank);
    if (i->group[0])
        fr_jsonw_str(w, "group", i->group);
    fr_jsonw_str(w, "cause", i->cause);
    fr_jsonw_num(w, "confidence", i->f.confidence);
    write_witnesses(w, i->f.witnesses);
    fr_jsonw_time(w, "onset_at", i->onset_unix_ns);
    fr_jsonw_time(w, "named_at", i->named_unix_ns);
    fr_jsonw_time(w, "closed_at", i->closed_unix_ns);
    if (i->f.since_step)
        fr_jsonw_uint(w, "onset_step", i->f.since_step);
    fr_jsonw_uint(w, "named_step", i->named_step);
    fr_jsonw_time(w, "last_move_at", i->last_move_unix_ns);
    if (i->f.ratio > 0)
        fr_jsonw_num(w, "ratio", i->f.ratio);
    if (i->f.cost_ratio > 0)
        fr_jsonw_num(w, "cost_ratio", i->f.cost_ratio);
    if (i->f.victims)
        fr_jsonw_uint(w, "victims", i->f.victims);
    fr_jsonw_raw(w, "evidence", evidence, strlen(evidence));
    if (i->acknowledged_by[0])
        fr_jsonw_str(w, "acknowledged_by", i->acknowledged_by);
    if (d)
        fr_json_decision(c, w, "decision", d);
    fr_jsonw_bool(w, "open", i->closed_unix_ns == 0);
}

void fr_json_decision_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cdecision *d)
{
    (void)c;
    fr_jsonw_uint(w, "id", d->id);
    if (d->incident)
        fr_jsonw_uint(w, "incident", d->incident);
    if (d->job)
        fr_jsonw_str(w, "job", d->job->job);
    fr_jsonw_uint(w, "attempt", d->attempt);
    fr_jsonw_str(w, "choice", fr_choice_name(d->choice));
    fr_jsonw_str(w, "mode", d->mode);
    if (d->node[0])
        fr_jsonw_str(w, "node", d->node);
    fr_jsonw_str(w, "actor", d->actor);
    fr_jsonw_num(w, "cost_stay_s", d->cost_stay_s);
    fr_jsonw_num(w, "cost_restart_s", d->cost_restart_s);
    if (d->wait_until_step)
        fr_jsonw_uint(w, "wait_until_step", d->wait_until_step);
    fr_jsonw_time(w, "decided_at", d->decided_unix_ns);
    fr_jsonw_str(w, "reason", d->reason);
}

void fr_json_actions(struct fr_jsonw *w, const struct fr_cdecision *d)
{
    fr_jsonw_arr(w, "actions");
    for (uint32_t k = 0; k < d->nactions; k++) {
        const struct fr_caction *a = &d->actions[k];

        fr_jsonw_obj(w, NULL);
        fr_jsonw_str(w, "kind", a->kind);
        fr_jsonw_str(w, "target", a->target);
        fr_jsonw_str(w, "state", a->state);
        fr_jsonw_time(w, "started_at", a->started_unix_ns);
        fr_jsonw_time(w, "ended_at", a->ended_unix_ns);
        fr_jsonw_str(w, "detail", a->detail);
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
}

void fr_json_decision(struct fr_ctl *c, struct fr_jsonw *w, const char *key,
                      const struct fr_cdecision *d)
{
    fr_jsonw_obj(w, key);
    fr_json_decision_members(c, w, d);
    fr_json_actions(w, d);
    fr_jsonw_end_obj(w);
}

void fr_json_incident_doc(struct fr_ctl *c, const struct fr_cincident *i, struct fr_buf *out)
{
    struct fr_jsonw w;

    fr_json_top(&w, out, "fullrank.incident/1");
    fr_json_incident_members(c, &w, i);
    fr_jsonw_arr(&w, "decisions");
    for (size_t k = 0; k < c->ndecisions; k++)
        if (c->decisions[k]->incident == i->id)
            fr_json_decision(c, &w, NULL, c->decisions[k]);
    fr_jsonw_end_arr(&w);
    fr_json_bundle(c, &w, i);
    fr_jsonw_end_obj(&w);
}
