/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - see api.h */
#include "control/api.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "base/xalloc.h"
#include "control/api_json.h"
#include "control/bundles.h"
#include "control/fleet.h"
#include "control/ingest.h"
#include "control/jobs.h"
#include "control/metrics.h"
#include "control/publish.h"
#include "wire/message.h"

#define TYPE_JSON    "application/json"
#define TYPE_PROBLEM "application/problem+json"
#define STEPS_MOST   10000
#define LIST_MOST    1000
#define BUNDLE_FILES 512

int fr_api_problem(struct fr_buf *out, int status, const char *detail)
{
    static const struct {
        int status;
        const char *title;
    } TITLES[] = {{400, "bad request"}, {401, "no token"},           {403, "not allowed"},
                  {404, "not found"},   {405, "method not allowed"}, {409, "conflict"},
                  {413, "too large"},   {429, "too many requests"},  {503, "not ready"}};
    const char *title = "error";
    struct fr_jsonw w;

    for (size_t i = 0; i < sizeof TITLES / sizeof TITLES[0]; i++)
        if (TITLES[i].status == status)
            title = TITLES[i].title;
    fr_buf_reset(out);
    fr_jsonw_init(&w, out);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "type", "about:blank");
    fr_jsonw_str(&w, "title", title);
    fr_jsonw_int(&w, "status", status);
    fr_jsonw_str(&w, "detail", detail);
    fr_jsonw_end_obj(&w);
    return status;
}

static int hex(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    ch = (char)(ch | 0x20);
    return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

int fr_api_decode(char *text)
{
    char *to = text;

    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            *to++ = *p;
            continue;
        }
        if (hex(p[1]) < 0 || hex(p[2]) < 0 || (hex(p[1]) == 0 && hex(p[2]) == 0))
            return -EINVAL;
        *to++ = (char)(hex(p[1]) << 4 | hex(p[2]));
        p += 2;
    }
    *to = '\0';
    return 0;
}

int fr_api_query(const char *query, const char *key, char *text, size_t n)
{
    size_t k = strlen(key);

    for (const char *p = query; p && *p; p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL)
        if (strncmp(p, key, k) == 0 && p[k] == '=') {
            size_t len = strcspn(p + k + 1, "&");

            if (len >= n)
                return 0;
            memcpy(text, p + k + 1, len);
            text[len] = '\0';
            return fr_api_decode(text) == 0;
        }
    return 0;
}

static uint64_t query_number(const char *query, const char *key, uint64_t def, uint64_t most)
{
    char text[32];
    uint64_t v;

    if (!fr_api_query(query, key, text, sizeof text) || fr_parse_uint(text, 0, UINT64_MAX / 2, &v))
        return def;
    return v > most ? most : v;
}

/* --- documents --- */

static int status_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_jsonw w;

    (void)call;
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_STATUS].schema);
    fr_json_status_members(c, &w);
    fr_jsonw_end_obj(&w);
    return 200;
}

static int jobs_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_jsonw w;

    (void)call;
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_JOBS].schema);
    fr_jsonw_arr(&w, "items");
    for (uint32_t i = 0; i < c->njobs; i++) {
        fr_jsonw_obj(&w, NULL);
        fr_json_job_members(c, &w, c->jobs[i]);
        fr_jsonw_end_obj(&w);
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_end_obj(&w);
    return 200;
}

static struct fr_cjob *the_job(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cjob *j = fr_ctl_job(c, call->arg);
    char text[160];

    if (!j) {
        snprintf(text, sizeof text, "there is no job %.63s", call->arg);
        fr_api_problem(out, 404, text);
    }
    return j;
}

static int job_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cjob *j = the_job(c, call, out);
    struct fr_jsonw w;

    if (!j)
        return 404;
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_JOB].schema);
    fr_json_job_members(c, &w, j);
    fr_jsonw_arr(&w, "attempts");
    for (uint32_t i = j->nattempts > LIST_MOST ? j->nattempts - LIST_MOST : 0; i < j->nattempts;
         i++)
        fr_json_attempt(&w, &j->attempts[i]);
    fr_jsonw_end_arr(&w);
    fr_json_groups(&w, "groups", j);
    fr_jsonw_obj(&w, "goodput");
    fr_json_goodput_members(&w, j);
    fr_jsonw_end_obj(&w);
    fr_jsonw_arr(&w, "incidents");
    for (size_t k = 0, i = c->nincidents; i-- > 0 && k < LIST_MOST;)
        if (c->incidents[i]->job == j) {
            fr_jsonw_obj(&w, NULL);
            fr_json_incident_members(c, &w, c->incidents[i]);
            fr_jsonw_end_obj(&w);
            k++;
        }
    fr_jsonw_end_arr(&w);
    fr_jsonw_end_obj(&w);
    return 200;
}

static int ranks_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cjob *j = the_job(c, call, out);

    if (!j)
        return 404;
    fr_json_ranks_doc(c, j, out);
    return 200;
}

static int steps_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cjob *j = the_job(c, call, out);
    uint64_t since = query_number(call->query, "since", 0, UINT64_MAX / 2);
    uint64_t limit = query_number(call->query, "limit", 1000, STEPS_MOST), k = 0;
    size_t i = since < SIZE_MAX ? (size_t)since : SIZE_MAX;
    struct fr_jsonw w;

    if (!j)
        return 404;
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_STEPS].schema);
    fr_jsonw_arr(&w, "items");
    for (; i < j->nsteps && k < limit; i++, k++) {
        fr_jsonw_obj(&w, NULL);
        fr_json_step_members(&w, j, i);
        fr_jsonw_end_obj(&w);
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_uint(&w, "next", i < j->nsteps || since <= j->nsteps ? i : j->nsteps);
    fr_jsonw_end_obj(&w);
    return 200;
}

static int goodput_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cjob *j = the_job(c, call, out);
    struct fr_jsonw w;

    if (!j)
        return 404;
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_GOODPUT].schema);
    fr_json_goodput_members(&w, j);
    fr_jsonw_end_obj(&w);
    return 200;
}

static int nodes_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    FR_CLEANUP(fr_freep) struct fr_cnode **nodes = fr_xcalloc(c->nnodes + 1, sizeof *nodes);
    struct fr_jsonw w;

    (void)call;
    fr_fleet_list(c, nodes);
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_NODES].schema);
    fr_jsonw_arr(&w, "items");
    for (uint32_t i = 0; i < c->nnodes; i++) {
        fr_jsonw_obj(&w, NULL);
        fr_json_node_members(c, &w, nodes[i]);
        fr_jsonw_end_obj(&w);
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_end_obj(&w);
    return 200;
}

static int write_node(struct fr_ctl *c, const struct fr_cnode *n, struct fr_buf *out)
{
    struct fr_jsonw w;

    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_NODE].schema);
    fr_json_node_members(c, &w, n);
    fr_json_node_history(&w, n);
    fr_jsonw_end_obj(&w);
    return 200;
}

static struct fr_cnode *the_node(struct fr_ctl *c, const struct fr_api_call *call,
                                 struct fr_buf *out)
{
    struct fr_cnode *n = fr_ctl_node(c, call->arg);
    char text[160];

    if (!n) {
        snprintf(text, sizeof text, "there is no node %.63s", call->arg);
        fr_api_problem(out, 404, text);
    }
    return n;
}

static int node_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cnode *n = the_node(c, call, out);

    return n ? write_node(c, n, out) : 404;
}

static int incidents_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    char job[FR_NAME_BYTES] = "", open[4] = "";
    struct fr_jsonw w;

    fr_api_query(call->query, "job", job, sizeof job);
    fr_api_query(call->query, "open", open, sizeof open);
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_INCIDENTS].schema);
    fr_jsonw_arr(&w, "items");
    for (size_t k = 0, i = c->nincidents; i-- > 0 && k < LIST_MOST;) {
        const struct fr_cincident *x = c->incidents[i];

        if ((job[0] && (!x->job || strcmp(x->job->job, job) != 0)) ||
            (open[0] == '1' && x->closed_unix_ns))
            continue;
        fr_jsonw_obj(&w, NULL);
        fr_json_incident_members(c, &w, x);
        fr_jsonw_end_obj(&w);
        k++;
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_end_obj(&w);
    return 200;
}

void fr_json_bundle(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cincident *i)
{
    char dir[640];
    DIR *d;
    struct dirent *e;
    int n = 0;

    if (!i->has_bundle)
        return;
    fr_bundle_dir(c, i->id, dir, sizeof dir);
    fr_jsonw_obj(w, "bundle");
    fr_jsonw_str(w, "dir", dir);
    fr_jsonw_arr(w, "files");
    d = opendir(dir);
    while (d && n < BUNDLE_FILES && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.') {
            fr_jsonw_str(w, NULL, e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    fr_jsonw_end_arr(w);
    fr_jsonw_end_obj(w);
}

static uint64_t the_id(const struct fr_api_call *call, const char *what, struct fr_buf *out)
{
    uint64_t id = 0;
    char text[160];

    if (fr_parse_uint(call->arg, 1, UINT64_MAX / 2, &id)) {
        snprintf(text, sizeof text, "%.63s is no number of %s", call->arg, what);
        fr_api_problem(out, 404, text);
        return 0;
    }
    return id;
}

static struct fr_cincident *the_incident(struct fr_ctl *c, const struct fr_api_call *call,
                                         struct fr_buf *out)
{
    uint64_t id = the_id(call, "an incident", out);
    struct fr_cincident *i = id ? fr_ctl_incident(c, id) : NULL;

    if (id && !i)
        fr_api_problem(out, 404, "there is no such incident (older ones are in the ledger)");
    return i;
}

static int incident_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cincident *i = the_incident(c, call, out);

    if (!i)
        return 404;
    fr_json_incident_doc(c, i, out);
    return 200;
}

static int decisions_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    char job[FR_NAME_BYTES] = "";
    struct fr_jsonw w;

    fr_api_query(call->query, "job", job, sizeof job);
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_DECISIONS].schema);
    fr_jsonw_arr(&w, "items");
    for (size_t k = 0, i = c->ndecisions; i-- > 0 && k < LIST_MOST;) {
        const struct fr_cdecision *d = c->decisions[i];

        if (job[0] && (!d->job || strcmp(d->job->job, job) != 0))
            continue;
        fr_json_decision(c, &w, NULL, d);
        k++;
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_end_obj(&w);
    return 200;
}

static int decision_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    uint64_t id = the_id(call, "a decision", out);
    const struct fr_cdecision *d = id ? fr_ctl_decision(c, id) : NULL;
    struct fr_jsonw w;

    if (!id)
        return 404;
    if (!d)
        return fr_api_problem(out, 404, "there is no such decision (older ones are in the ledger)");
    fr_json_top(&w, out, FR_ROUTE_ROWS[FR_ROUTE_DECISION].schema);
    fr_json_decision_members(c, &w, d);
    fr_json_actions(&w, d);
    fr_jsonw_end_obj(&w);
    return 200;
}

static int readyz_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    uint32_t heard = 0;

    (void)call;
    for (uint32_t i = 0; i < c->nnodes; i++)
        heard += c->nodes[i]->instance != 0 && !c->nodes[i]->silent;
    if (!c->ledger_ok) {
        fr_buf_printf(out, "not ready: the ledger cannot be written: %s\n", c->ledger_error);
        return 503;
    }
    if (heard == 0) {
        fr_buf_puts(out, "not ready: no agent is heard of\n");
        return 503;
    }
    fr_buf_printf(out, "ready: the ledger is written, %u agent%s heard of\n", heard,
                  heard == 1 ? " is" : "s are");
    return 200;
}

/* --- changes --- */

struct said { /* who wants it and why */
    char actor[FR_NAME_BYTES], reason[FR_TEXT_BYTES];
};

static int read_said(const struct fr_api_call *call, struct said *ret, struct fr_buf *out)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *root = NULL;
    struct fr_err err = FR_ERR_INIT;
    const char *actor, *reason;

    memset(ret, 0, sizeof *ret);
    if (call->body_bytes && fr_json_parse(call->body, call->body_bytes, &root, &err))
        return fr_api_problem(out, 400, err.text);
    actor = fr_json_str(root, "actor", "somebody");
    reason = fr_json_str(root, "reason", "");
    if (strlen(actor) >= sizeof ret->actor || strlen(reason) >= sizeof ret->reason)
        return fr_api_problem(out, 400, "actor or reason is too long");
    snprintf(ret->actor, sizeof ret->actor, "%s", actor[0] ? actor : "somebody");
    snprintf(ret->reason, sizeof ret->reason, "%s", reason);
    if (strcmp(ret->actor, FR_ACTOR_SELF) == 0) /* what a person did must not pass for our own */
        return fr_api_problem(out, 400, "the actor's name is this program's own");
    return 0;
}

static int ledger_ready(const struct fr_ctl *c, struct fr_buf *out)
{
    return c->ledger_ok ? 0 : fr_api_problem(out, 503, c->ledger_error);
}

static int drain_node(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cnode *n = the_node(c, call, out);
    struct said s;
    int rc;

    if (!n)
        return 404;
    rc = read_said(call, &s, out);
    if (rc || (rc = ledger_ready(c, out)))
        return rc;
    if (fr_node_drain(c, n, s.actor, false, 0, s.reason[0] ? s.reason : "drained by hand"))
        return fr_api_problem(out, 409, "the node's state does not allow a drain");
    return write_node(c, n, out);
}

static int resume_node(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cnode *n = the_node(c, call, out);
    struct fr_err err = FR_ERR_INIT;
    struct said s;
    int rc;

    if (!n)
        return 404;
    rc = read_said(call, &s, out);
    if (rc || (rc = ledger_ready(c, out)))
        return rc;
    if (fr_node_resume(c, n, s.actor, s.reason[0] ? s.reason : "resumed by hand", &err))
        return fr_api_problem(out, 409, err.text);
    return write_node(c, n, out);
}

static int ack_incident(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    struct fr_cincident *i = the_incident(c, call, out);
    struct said s;
    int rc;

    if (!i)
        return 404;
    rc = read_said(call, &s, out);
    if (rc || (rc = ledger_ready(c, out)))
        return rc;
    snprintf(i->acknowledged_by, sizeof i->acknowledged_by, "%s", s.actor);
    i->dirty = true;
    fr_publish_incident(c, i);
    fr_json_incident_doc(c, i, out);
    return 200;
}

static int report(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    return fr_ingest_report(c, call->body, call->body_bytes, out);
}

static int supervise(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    return fr_jobs_supervise(c, call->body, call->body_bytes, out);
}

static int metrics_doc(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out)
{
    char ranks_of[FR_NAME_BYTES] = "";

    fr_api_query(call->query, "ranks", ranks_of, sizeof ranks_of);
    fr_metrics_write(c, out, ranks_of);
    return 200;
}

static const struct {
    int (*fn)(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out);
    const char *type;
} ANSWERS[FR_ROUTES] = {
    [FR_ROUTE_STATUS] = {status_doc, TYPE_JSON},
    [FR_ROUTE_JOBS] = {jobs_doc, TYPE_JSON},
    [FR_ROUTE_JOB] = {job_doc, TYPE_JSON},
    [FR_ROUTE_RANKS] = {ranks_doc, TYPE_JSON},
    [FR_ROUTE_STEPS] = {steps_doc, TYPE_JSON},
    [FR_ROUTE_GOODPUT] = {goodput_doc, TYPE_JSON},
    [FR_ROUTE_NODES] = {nodes_doc, TYPE_JSON},
    [FR_ROUTE_NODE] = {node_doc, TYPE_JSON},
    [FR_ROUTE_INCIDENTS] = {incidents_doc, TYPE_JSON},
    [FR_ROUTE_INCIDENT] = {incident_doc, TYPE_JSON},
    [FR_ROUTE_DECISIONS] = {decisions_doc, TYPE_JSON},
    [FR_ROUTE_DECISION] = {decision_doc, TYPE_JSON},
    [FR_ROUTE_NODE_DRAIN] = {drain_node, TYPE_JSON},
    [FR_ROUTE_NODE_RESUME] = {resume_node, TYPE_JSON},
    [FR_ROUTE_INCIDENT_ACK] = {ack_incident, TYPE_JSON},
    [FR_ROUTE_AGENT_REPORT] = {report, FR_MESSAGE_TYPE},
    [FR_ROUTE_SUPERVISE] = {supervise, FR_MESSAGE_TYPE},
    [FR_ROUTE_READYZ] = {readyz_doc, "text/plain; charset=utf-8"},
    [FR_ROUTE_METRICS] = {metrics_doc, "text/plain; version=0.0.4; charset=utf-8"},
};

int fr_api_answer(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out,
                  const char **ret_type)
{
    int status;

    if ((unsigned)call->route >= FR_ROUTES || !ANSWERS[call->route].fn) {
        *ret_type = TYPE_PROBLEM;
        return fr_api_problem(out, 404, "there is nothing here");
    }
    status = ANSWERS[call->route].fn(c, call, out);
    *ret_type = ANSWERS[call->route].type;
    if (status >= 400 && strcmp(*ret_type, TYPE_JSON) == 0)
        *ret_type = TYPE_PROBLEM;
    return status;
}
