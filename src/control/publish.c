/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - see publish.h */
#include "control/publish.h"

#include "control/api_json.h"
#include "control/events.h"

#define JOB_EVERY_NS    200000000ull
#define STATUS_EVERY_NS 1000000000ull

static void begin(struct fr_jsonw *w, struct fr_buf *b)
{
    fr_jsonw_init(w, b);
    fr_jsonw_obj(w, NULL);
}

static void send(struct fr_ctl *c, const char *event, struct fr_jsonw *w)
{
    fr_jsonw_end_obj(w);
    fr_events_publish(c->events, event, w->out->p, w->out->len);
}

void fr_publish_node(struct fr_ctl *c, const struct fr_cnode *n)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    if (!c->events)
        return;
    begin(&w, &b);
    fr_json_node_members(c, &w, n);
    send(c, "node", &w);
}

void fr_publish_incident(struct fr_ctl *c, const struct fr_cincident *i)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    if (!c->events)
        return;
    begin(&w, &b);
    fr_json_incident_members(c, &w, i);
    send(c, "incident", &w);
}

void fr_publish_decision(struct fr_ctl *c, const struct fr_cdecision *d)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    if (!c->events)
        return;
    begin(&w, &b);
    fr_json_decision_members(c, &w, d);
    fr_json_actions(&w, d);
    send(c, "decision", &w);
}

void fr_publish_step(struct fr_ctl *c, const struct fr_cjob *j, size_t step_index)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    if (!c->events)
        return;
    begin(&w, &b);
    fr_jsonw_str(&w, "job", j->job);
    fr_json_step_members(&w, j, step_index);
    send(c, "step", &w);
}

static void publish_job(struct fr_ctl *c, struct fr_cjob *j)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    begin(&w, &b);
    fr_json_job_members(c, &w, j);
    send(c, "job", &w);
    j->changed = false;
    j->told_ns = c->now_ns;
}

void fr_publish_tick(struct fr_ctl *c)
{
    if (!c->events)
        return;
    for (uint32_t i = 0; i < c->njobs; i++)
        if (c->jobs[i]->changed && c->now_ns - c->jobs[i]->told_ns >= JOB_EVERY_NS)
            publish_job(c, c->jobs[i]);
    if (fr_events_take_new(c->events))
        c->status_ns = 0; /* a new reader sees the state at once */
    fr_events_tick(c->events, c->now_ns);
    if (c->now_ns - c->status_ns >= STATUS_EVERY_NS && fr_events_clients(c->events) > 0) {
        FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
        struct fr_jsonw w;

        c->status_ns = c->now_ns;
        begin(&w, &b);
        fr_json_status_members(c, &w);
        send(c, "status", &w);
    }
}
