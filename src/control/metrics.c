/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - see metrics.h */
#include "control/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/account.h"
#include "control/ingest.h"
#include "control/nccl_series.h"
#include "control/self.h"
#include "control/steps.h"
#include "model/metrics.h"
#include "model/op.h"
#include "wire/ring.h"

#define GROUPS 64
#define WINDOW 64

static void head(struct fr_buf *out, enum fr_metric m)
{
    const struct fr_metric_row *r = &FR_METRIC_ROWS[m];

    fr_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", r->name, r->help, r->name,
                  fr_metric_type_name(r->type));
}

/* One label and its value, escaped as the format asks. */
static void label(struct fr_buf *out, const char *sep, const char *key, const char *value)
{
    fr_buf_printf(out, "%s%s=\"", sep, key);
    for (; *value; value++) {
        if (*value == '\\' || *value == '"')
            fr_buf_putc(out, '\\');
        if (*value == '\n')
            fr_buf_puts(out, "\\n");
        else
            fr_buf_putc(out, *value);
    }
    fr_buf_putc(out, '"');
}

/* values: in the order of the table's labels; NaN: not exported. */
static void sample(struct fr_buf *out, enum fr_metric m, double v, const char *const values[],
                   int n)
{
    const struct fr_metric_row *r = &FR_METRIC_ROWS[m];
    const char *key = r->labels;

    if (isnan(v))
        return;
    fr_buf_puts(out, r->name);
    for (int i = 0; i < n; i++) {
        char name[32];
        size_t len = strcspn(key, ",");

        snprintf(name, sizeof name, "%.*s", (int)len, key);
        label(out, i ? "," : "{", name, values[i]);
        key += len + (key[len] == ',');
    }
    fr_buf_printf(out, "%s %.17g\n", n ? "}" : "", v);
}

#define SAMPLE(out, m, v, ...)                                                                     \
    sample(out, m, v, (const char *const[]){__VA_ARGS__},                                          \
           (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

static int compare(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

static void write_durations(struct fr_buf *out, const struct fr_cjob *j)
{
    static const struct {
        double q;
        const char *text;
    } Q[] = {{0.5, "0.5"}, {0.9, "0.9"}, {0.99, "0.99"}};
    double v[WINDOW];
    size_t n = 0;

    for (size_t i = j->nsteps; i-- > 0 && n < WINDOW && j->steps[i].attempt == j->nattempts - 1;)
        v[n++] = (double)(j->steps[i].end_ns - j->steps[i].begin_ns) * 1e-9;
    if (!n)
        return;
    qsort(v, n, sizeof v[0], compare);
    for (size_t k = 0; k < sizeof Q / sizeof Q[0]; k++)
        SAMPLE(out, FR_METRIC_STEP_DURATION, v[(size_t)(Q[k].q * (double)(n - 1) + 0.5)], j->job,
               Q[k].text);
}

#define EACH_JOB(c, j)                                                                             \
    for (uint32_t i_ = 0; i_ < (c)->njobs; i_++)                                                   \
        for (const struct fr_cjob *j = (c)->jobs[i_]; j; j = NULL)

static double slowest_ratio(const struct fr_cjob *j)
{
    double worst = (double)NAN;
    struct fr_judge_rank f;

    for (uint32_t r = 0; j->judge && r < j->nranks; r++)
        if (fr_judge_rank(j->judge, r, &f) == 0 && !(f.peers_ratio <= worst) &&
            !isnan(f.peers_ratio))
            worst = f.peers_ratio;
    return worst;
}

static void write_jobs(struct fr_ctl *c, struct fr_buf *out)
{
    head(out, FR_METRIC_STEP_DURATION);
    EACH_JOB(c, j)
    write_durations(out, j);
    head(out, FR_METRIC_STEP_TOTAL);
    EACH_JOB(c, j)
    {
        SAMPLE(out, FR_METRIC_STEP_TOTAL, (double)j->account.steps_kept, j->job, "kept");
        SAMPLE(out, FR_METRIC_STEP_TOTAL, (double)j->account.steps_redone, j->job, "redone");
    }
    head(out, FR_METRIC_JOB_STEP);
    EACH_JOB(c, j)
    SAMPLE(out, FR_METRIC_JOB_STEP, (double)j->step_done, j->job);
    head(out, FR_METRIC_JOB_GOODPUT);
    EACH_JOB(c, j)
    SAMPLE(out, FR_METRIC_JOB_GOODPUT, j->account_ns ? j->account.goodput_ratio : (double)NAN,
           j->job);
    head(out, FR_METRIC_JOB_MFU);
    EACH_JOB(c, j)
    {
        const struct fr_gp_account *g = &j->account;

        SAMPLE(out, FR_METRIC_JOB_MFU, fr_account_mfu(j), j->job, "step");
        SAMPLE(out, FR_METRIC_JOB_MFU,
               j->account_ns && g->wall_ns > 0
                   ? fr_mfu(j->flops_per_step * (double)g->steps_kept, (double)g->wall_ns * 1e-9,
                            j->nranks, j->peak_flops_per_rank)
                   : (double)NAN,
               j->job, "wall");
    }
    head(out, FR_METRIC_LOST_SECONDS);
    EACH_JOB(c, j)
    for (int b = FR_BUCKET_PRODUCTIVE + 1; j->account_ns && b < FR_BUCKETS; b++)
        SAMPLE(out, FR_METRIC_LOST_SECONDS, (double)j->account.bucket_ns[b] * 1e-9, j->job,
               fr_bucket_name((enum fr_bucket)b));
    head(out, FR_METRIC_JOB_INFO);
    EACH_JOB(c, j)
    SAMPLE(out, FR_METRIC_JOB_INFO, 1, j->job, j->engine, fr_job_state_name(j->state),
           fr_mode_name(j->mode));
    head(out, FR_METRIC_ATTEMPTS);
    EACH_JOB(c, j)
    SAMPLE(out, FR_METRIC_ATTEMPTS, (double)j->nattempts, j->job);
    head(out, FR_METRIC_STALL_LIMIT);
    EACH_JOB(c, j)
    {
        struct fr_judge_summary sum = {.act_on_silence_after_s = (double)NAN};

        if (j->judge)
            fr_judge_summary(j->judge, &sum);
        SAMPLE(out, FR_METRIC_STALL_LIMIT, sum.act_on_silence_after_s, j->job);
    }
    head(out, FR_METRIC_LATE_BUSY);
    EACH_JOB(c, j)
    SAMPLE(out, FR_METRIC_LATE_BUSY, slowest_ratio(j), j->job);
    head(out, FR_METRIC_INGEST_IGNORED);
    EACH_JOB(c, j)
    {
        struct fr_judge_summary sum = {.ignored = 0};

        if (j->judge)
            fr_judge_summary(j->judge, &sum);
        SAMPLE(out, FR_METRIC_INGEST_IGNORED, (double)(sum.ignored + j->foreign), j->job);
    }
}

static void write_groups(struct fr_ctl *c, struct fr_buf *out, enum fr_metric m)
{
    static struct fr_judge_group g[GROUPS]; /* one loop thread */

    head(out, m);
    EACH_JOB(c, j)
    {
        size_t n = j->judge ? fr_judge_groups(j->judge, g, GROUPS) : 0;

        for (size_t i = 0; i < n; i++) {
            char name[48];

            /* the name alone is not unique: every tensor group may be called tp */
            snprintf(name, sizeof name, "%s:%08llx.%u", g[i].name,
                     (unsigned long long)g[i].key.members_hash >> 32, g[i].key.instance);
            SAMPLE(out, m, m == FR_METRIC_GROUP_BUSBW ? g[i].busbw_bytes_per_s : g[i].wait_s,
                   j->job, name, fr_op_name(g[i].op));
        }
    }
}

/* --- the open names --- */

static bool uses_nccl(const struct fr_cjob *j)
{
    return j->nattempts && (j->sources & FR_SOURCE_NCCL) != 0;
}

struct labels {
    char node[FR_NAME_BYTES], gpu[16], comm[32], nodes[12], ranks[12], size[32];
};

static void fill_labels(struct fr_cjob *j, const struct fr_nccl_series *s, struct labels *l)
{
    const struct fr_ccomm *c = fr_job_comm(j, s->hash, s->instance);
    const struct fr_cattempt *a = fr_job_current(j);

    snprintf(l->node, sizeof l->node, "all");
    snprintf(l->gpu, sizeof l->gpu, "all");
    if (s->rank >= 0 && (uint32_t)s->rank / j->ranks_per_node < a->nnodes) {
        snprintf(l->node, sizeof l->node, "%s",
                 a->nodes[(uint32_t)s->rank / j->ranks_per_node]->name);
        snprintf(l->gpu, sizeof l->gpu, "GPU%u", (uint32_t)s->rank % j->ranks_per_node);
    }
    /* the name alone is not unique, and two series may not be alike in all labels */
    snprintf(l->comm, sizeof l->comm, "%s:%08llx.%u", c && c->name[0] ? c->name : "unknown",
             (unsigned long long)s->hash >> 32, s->instance);
    snprintf(l->nodes, sizeof l->nodes, "%u", c ? c->nodes : 0);
    snprintf(l->ranks, sizeof l->ranks, "%u", c ? c->size : 0);
    fr_nccl_size_text(s->size_low, l->size, sizeof l->size);
}

static void write_nccl_metric(struct fr_ctl *c, struct fr_buf *out, const char *ranks_of,
                              enum fr_metric m, bool p2p, bool bandwidth)
{
    head(out, m);
    for (uint32_t k = 0; k < c->njobs; k++) {
        struct fr_cjob *j = c->jobs[k];
        const struct fr_nccl_series *s;
        struct fr_nccl_figures f;
        int there;

        for (size_t i = 0; uses_nccl(j) && (there = fr_nccl_at(c, j, i, &s, &f)) >= 0; i++) {
            struct labels l;

            if (!there || fr_op_is_collective(s->op) == p2p ||
                (s->rank >= 0 && strcmp(ranks_of, j->job) != 0))
                continue;
            fill_labels(j, s, &l);
            if (p2p)
                SAMPLE(out, m, bandwidth ? f.busbw_gbs : f.us, FR_VERSION, j->job, l.node, l.gpu,
                       l.comm, l.nodes, l.ranks, fr_op_name(s->op), l.size);
            else
                SAMPLE(out, m, bandwidth ? f.busbw_gbs : f.us, FR_VERSION, j->job, l.node, l.gpu,
                       l.comm, l.nodes, l.ranks, fr_op_name(s->op), l.size, "unknown");
        }
    }
}

/* Records that the job's ranks on that node had no room for, and those that its agent came too late
 * for. */
static uint64_t lost_of(const struct fr_cjob *j, const struct fr_cnode *n)
{
    uint64_t sum = n->lost_records > n->job_lost0 ? n->lost_records - n->job_lost0 : 0;

    for (uint32_t r = 0; j->ranks && r < j->ranks_per_node; r++)
        sum += j->ranks[n->job_index * j->ranks_per_node + r].dropped;
    return sum;
}

static void write_nccl_counter(struct fr_ctl *c, struct fr_buf *out, enum fr_metric m)
{
    head(out, m);
    for (uint32_t i = 0; i < c->nnodes; i++) {
        const struct fr_cnode *n = c->nodes[i];
        const struct fr_cjob *j = n->job;

        if (!j || !uses_nccl(j) || !j->judging || n->job_epoch != j->epoch)
            continue;
        SAMPLE(out, m,
               (double)(m == FR_METRIC_NCCL_COLLS  ? n->job_colls
                        : m == FR_METRIC_NCCL_P2PS ? n->job_p2ps
                                                   : lost_of(j, n)),
               FR_VERSION, j->job, n->name);
    }
}

static void write_nccl(struct fr_ctl *c, struct fr_buf *out, const char *ranks_of)
{
    write_nccl_metric(c, out, ranks_of, FR_METRIC_NCCL_BUSBW, false, true);
    write_nccl_metric(c, out, ranks_of, FR_METRIC_NCCL_COLL_TIME, false, false);
    write_nccl_metric(c, out, ranks_of, FR_METRIC_NCCL_P2P_BUSBW, true, true);
    write_nccl_metric(c, out, ranks_of, FR_METRIC_NCCL_P2P_TIME, true, false);
    write_nccl_counter(c, out, FR_METRIC_NCCL_COLLS);
    write_nccl_counter(c, out, FR_METRIC_NCCL_P2PS);
    write_nccl_counter(c, out, FR_METRIC_NCCL_DROPPED);
    head(out, FR_METRIC_NCCL_REFUSED);
    EACH_JOB(c, j)
    if (uses_nccl(j))
        SAMPLE(out, FR_METRIC_NCCL_REFUSED, (double)fr_nccl_refused(j), j->job);
}

static const char *severity(uint32_t kind)
{
    switch (kind) {
    case FR_FINDING_DEAD:
    case FR_FINDING_HANG:
    case FR_FINDING_MISMATCH:
        return "error";
    case FR_FINDING_SLOW:
    case FR_FINDING_SILENT:
        return "warning";
    default:
        return "notice";
    }
}

static void write_fleet(struct fr_ctl *c, struct fr_buf *out)
{
    uint32_t kinds[FR_FINDING_KINDS] = {0}, states[FR_NODE_STATES] = {0};

    for (size_t i = 0; i < c->nincidents; i++)
        if (!c->incidents[i]->closed_unix_ns)
            kinds[c->incidents[i]->f.kind]++;
    head(out, FR_METRIC_INCIDENT_OPEN);
    for (uint32_t k = FR_FINDING_NONE + 1; k < FR_FINDING_KINDS; k++)
        SAMPLE(out, FR_METRIC_INCIDENT_OPEN, (double)kinds[k],
               fr_finding_kind_name((enum fr_finding_kind)k), severity(k));
    head(out, FR_METRIC_DECISION_TOTAL);
    for (int k = 0; k < FR_CHOICES; k++)
        SAMPLE(out, FR_METRIC_DECISION_TOTAL, (double)c->choices[k],
               fr_choice_name((enum fr_choice)k));
    for (uint32_t i = 0; i < c->nnodes; i++)
        states[c->nodes[i]->state]++;
    head(out, FR_METRIC_NODES);
    for (int k = 0; k < FR_NODE_STATES; k++)
        SAMPLE(out, FR_METRIC_NODES, (double)states[k], fr_node_state_name((enum fr_node_state)k));
}

static double node_value(const struct fr_ctl *c, const struct fr_cnode *n, enum fr_metric m)
{
    switch (m) {
    case FR_METRIC_NODE_HEARD:
        return (double)(c->now_ns - n->heard_ns) * 1e-9;
    case FR_METRIC_PROBE_DROPPED:
        return (double)n->lost_records;
    case FR_METRIC_AGENT_CPU:
        return (double)n->cpu_ns * 1e-9;
    case FR_METRIC_AGENT_RSS:
        return (double)n->rss_bytes;
    case FR_METRIC_AGENT_RECORDS:
        return (double)n->records;
    default:
        return (double)n->spool_bytes;
    }
}

static void write_nodes(struct fr_ctl *c, struct fr_buf *out)
{
    static const enum fr_metric M[] = {FR_METRIC_NODE_HEARD,    FR_METRIC_PROBE_DROPPED,
                                       FR_METRIC_AGENT_CPU,     FR_METRIC_AGENT_RSS,
                                       FR_METRIC_AGENT_RECORDS, FR_METRIC_AGENT_SPOOL};

    for (size_t k = 0; k < sizeof M / sizeof M[0]; k++) {
        head(out, M[k]);
        for (uint32_t i = 0; i < c->nnodes; i++)
            if (c->nodes[i]->instance)
                SAMPLE(out, M[k], node_value(c, c->nodes[i], M[k]), c->nodes[i]->name);
    }
}

static void write_self(struct fr_ctl *c, struct fr_buf *out)
{
    struct fr_self self;

    fr_self_read(&self);
    head(out, FR_METRIC_INGEST_REPORTS);
    SAMPLE(out, FR_METRIC_INGEST_REPORTS, (double)c->counts.reports, "taken");
    SAMPLE(out, FR_METRIC_INGEST_REPORTS, (double)c->counts.repeated, "repeated");
    SAMPLE(out, FR_METRIC_INGEST_REPORTS, (double)c->counts.stale, "stale");
    SAMPLE(out, FR_METRIC_INGEST_REPORTS, (double)c->counts.refused, "refused");
    head(out, FR_METRIC_INGEST_BYTES);
    sample(out, FR_METRIC_INGEST_BYTES, (double)c->counts.report_bytes, NULL, 0);
    head(out, FR_METRIC_INGEST_RECORDS);
    sample(out, FR_METRIC_INGEST_RECORDS, (double)c->counts.records, NULL, 0);
    head(out, FR_METRIC_CONTROLLER_CPU);
    sample(out, FR_METRIC_CONTROLLER_CPU, self.cpu_s, NULL, 0);
    head(out, FR_METRIC_CONTROLLER_RSS);
    sample(out, FR_METRIC_CONTROLLER_RSS, self.rss_bytes ? (double)self.rss_bytes : (double)NAN,
           NULL, 0);
    head(out, FR_METRIC_LEDGER_OK);
    sample(out, FR_METRIC_LEDGER_OK, c->ledger_ok ? 1 : 0, NULL, 0);
    head(out, FR_METRIC_BUILD_INFO);
    SAMPLE(out, FR_METRIC_BUILD_INFO, 1, FR_VERSION, "");
}

void fr_metrics_write(struct fr_ctl *c, struct fr_buf *out, const char *ranks_of)
{
    struct fr_cjob *j = ranks_of[0] ? fr_ctl_job(c, ranks_of) : NULL;

    if (j && !fr_job_state_is_end(j->state))
        fr_nccl_want_ranks(c, j);
    write_jobs(c, out);
    write_groups(c, out, FR_METRIC_GROUP_BUSBW);
    write_groups(c, out, FR_METRIC_GROUP_WAIT);
    write_nccl(c, out, ranks_of);
    write_fleet(c, out);
    write_nodes(c, out);
    write_self(c, out);
}
