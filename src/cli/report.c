/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h: gathering, the terminal, JSON */
#include "cli/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/units.h"
#include "base/xalloc.h"
#include "cli/table.h"

#define PAGE 5000

double fr_report_seconds(const struct fr_report *r, const char *text)
{
    int64_t t;

    if (!text || fr_time_parse(text, 0, &t) < 0)
        return NAN;
    return (double)(t - r->submitted_unix_ns) / 1e9;
}

static int load_steps(struct fr_client *c, const char *job, struct fr_report *r, struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;
    int64_t since = 0;
    size_t cap = 0;

    for (;;) {
        FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
        const struct fr_json *items;
        int64_t next;
        int rc;

        fr_client_path(&path, "/api/v1/jobs/%s/steps", job);
        fr_buf_printf(&path, "?since=%lld&limit=%d", (long long)since, PAGE);
        rc = fr_client_get(c, fr_buf_str(&path), &json, err);
        if (rc < 0)
            return rc;
        items = fr_json_get(json, "items");
        for (size_t i = 0; i < fr_json_len(items); i++) {
            const struct fr_json *s = fr_json_at(items, i);

            if (r->nsteps == cap) {
                cap = cap ? cap * 2 : 1024;
                r->steps = fr_xreallocarray(r->steps, cap, sizeof *r->steps);
            }
            r->steps[r->nsteps++] = (struct fr_report_step){
                .attempt = (uint32_t)fr_json_int(s, "attempt", 0),
                .step = (uint64_t)fr_json_int(s, "step", 0),
                .begin_s = fr_report_seconds(r, fr_json_str(s, "begin_at", NULL)),
                .end_s = fr_report_seconds(r, fr_json_str(s, "end_at", NULL)),
                .step_s = fr_json_num(s, "step_s", NAN),
                .loss = fr_json_num(s, "loss", NAN)};
        }
        next = fr_json_int(json, "next", 0);
        if (fr_json_len(items) == 0 || next <= since || r->nsteps >= FR_REPORT_STEPS_MAX)
            return 0;
        since = next;
    }
}

int fr_report_load(struct fr_client *c, const char *job, struct fr_report *ret, struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;
    struct fr_report r = {.loss_bit_exact = -1, .seed = -1, .title = "fullrank job report"};
    const struct fr_json *items;
    double end;
    int rc;

    rc = fr_client_get(c, fr_client_path(&path, "/api/v1/jobs/%s", job), &r.job, err);
    if (rc == 0 &&
        fr_time_parse(fr_json_str(r.job, "submitted_at", ""), 0, &r.submitted_unix_ns) < 0)
        r.submitted_unix_ns = fr_unix_ns();
    if (rc == 0)
        rc = fr_client_get(c, fr_client_path(&path, "/api/v1/incidents?limit=0&job=%s", job),
                           &r.incidents, err);
    if (rc == 0)
        rc = fr_client_get(c, fr_client_path(&path, "/api/v1/decisions?limit=0&job=%s", job),
                           &r.decisions, err);
    if (rc == 0)
        rc = load_steps(c, job, &r, err);
    items = fr_json_get(r.decisions, "items");
    r.decision = fr_xcalloc(fr_json_len(items) + 1, sizeof *r.decision);
    for (size_t i = 0; rc == 0 && i < fr_json_len(items); i++) {
        char id[24];

        snprintf(id, sizeof id, "%lld", (long long)fr_json_int(fr_json_at(items, i), "id", 0));
        rc = fr_client_get(c, fr_client_path(&path, "/api/v1/decisions/%s", id),
                           &r.decision[r.ndecision], err);
        r.ndecision += rc == 0;
    }
    if (rc < 0) {
        fr_report_fini(&r);
        return rc;
    }
    end = fr_report_seconds(&r, fr_json_str(r.job, "ended_at", NULL));
    r.wall_s = isnan(end) ? (double)(fr_unix_ns() - r.submitted_unix_ns) / 1e9 : end;
    *ret = r;
    return 0;
}

void fr_report_fini(struct fr_report *r)
{
    for (size_t i = 0; i < r->ndecision; i++)
        fr_json_free(r->decision[i]);
    free(r->decision);
    free(r->steps);
    fr_json_free(r->job);
    fr_json_free(r->incidents);
    fr_json_free(r->decisions);
    *r = (struct fr_report){0};
}

void fr_report_json(const struct fr_report *r, struct fr_buf *out)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    fr_jsonw_init(&w, out);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "schema", "fullrank.job-report/1");
    fr_json_write(r->job, &b);
    fr_jsonw_raw(&w, "job", b.p, b.len);
    fr_buf_reset(&b);
    fr_json_write(fr_json_get(r->incidents, "items"), &b);
    fr_jsonw_raw(&w, "incidents", b.p, b.len);
    fr_jsonw_arr(&w, "decisions");
    for (size_t i = 0; i < r->ndecision; i++) {
        fr_buf_reset(&b);
        fr_json_write(r->decision[i], &b);
        fr_jsonw_raw(&w, NULL, b.p, b.len);
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_uint(&w, "steps", r->nsteps);
    fr_jsonw_num(&w, "wall_s", r->wall_s);
    fr_jsonw_end_obj(&w);
    fr_buf_putc(out, '\n');
}

/* --- the terminal --- */

void fr_report_steps(const struct fr_report *r, char *text, size_t n)
{
    long long step = (long long)fr_json_int(r->job, "step", 0),
              total = (long long)fr_json_int(r->job, "total_steps", 0);

    if (total > 0)
        snprintf(text, n, "%lld of %lld", step, total);
    else if (step > 0)
        snprintf(text, n, "%lld", step);
    else
        snprintf(text, n, "-");
}

void fr_report_fixed(struct fr_buf *out, int digits, double x)
{
    if (isnan(x))
        fr_buf_putc(out, '-');
    else
        fr_buf_printf(out, "%.*f", digits, x);
}

static void put_head(const struct fr_report *r, struct fr_buf *out)
{
    const struct fr_json *gp = fr_json_get(r->job, "goodput");
    char steps[64];
    struct fr_unit_text a, b, c, d;

    fr_buf_puts(out, "Job ");
    fr_table_safe(out, fr_json_str(r->job, "job", "?"));
    fr_buf_puts(out, " (");
    fr_table_safe(out, fr_json_str(r->job, "name", "?"));
    fr_buf_printf(out, ") %s: ", fr_json_str(r->job, "state", "?"));
    fr_report_steps(r, steps, sizeof steps);
    fr_buf_printf(
        out, "%s steps in %s, %lld attempts, step time %s\n", steps, fr_fmt_seconds(r->wall_s, &a),
        (long long)fr_json_int(r->job, "attempt", 0),
        fr_fmt_seconds(fr_json_num(r->job, "baseline_step_s", fr_json_num(r->job, "step_s", NAN)),
                       &b));
    fr_buf_printf(
        out, "goodput %s, MFU %s (of the GEMM peak measured at start), loss ",
        fr_fmt_ratio(fr_json_num(gp, "goodput_ratio", fr_json_num(r->job, "goodput_ratio", NAN)),
                     &c),
        fr_fmt_ratio(fr_json_num(r->job, "mfu_ratio", NAN), &d));
    fr_report_fixed(out, 4, fr_json_num(r->job, "loss", NAN));
    fr_buf_putc(out, '\n');
}

static void put_faults(const struct fr_report *r, bool color, struct fr_buf *out)
{
    fr_buf_printf(out, "\n%-6s %-6s %4s  %-28s %-6s  %11s  %13s  %15s\n", "FAULT", "NODE", "RANK",
                  "FOUND AS", "RIGHT", "FOUND AFTER", "STEPS TO FIND", "NEXT STEP AFTER");
    for (size_t i = 0; i < r->nfaults; i++) {
        const struct fr_fault *f = &r->faults[i];
        char rank[16] = "-", found[120] = "not found", steps[16] = "-";
        struct fr_unit_text a, b;

        if (f->rank >= 0)
            snprintf(rank, sizeof rank, "%d", (int)f->rank);
        if (f->incident && f->named_rank >= 0)
            snprintf(found, sizeof found, "%s %s rank %d, %s", f->named_kind, f->named_node,
                     (int)f->named_rank, f->named_cause);
        else if (f->incident)
            snprintf(found, sizeof found, "%s %s, %s", f->named_kind, f->named_node,
                     f->named_cause);
        if (!isnan(f->detect_steps))
            snprintf(steps, sizeof steps, "%.0f", f->detect_steps);
        fr_buf_printf(out, "%-6s %-6s %4s  %-28s ", f->kind, f->node, rank, found);
        if (color)
            fr_buf_printf(out, "\033[%sm%-6s\033[0m", f->correct ? "38;5;36" : "38;5;202",
                          f->correct ? "yes" : "NO");
        else
            fr_buf_printf(out, "%-6s", f->correct ? "yes" : "NO");
        fr_buf_printf(out, "  %11s  %13s  %15s\n", fr_fmt_seconds(f->detect_s, &a), steps,
                      fr_fmt_seconds(f->recover_s, &b));
    }
}

static const struct fr_column ATTEMPTS[] = {
    {"attempt", "ATTEMPT", "attempt", FR_SHOW_INT, 0},
    {"nodes", "NODES", "nodes", FR_SHOW_LIST, 0},
    {"resumed_from", "FROM STEP", "resumed_from", FR_SHOW_INT, 0},
    {"first_step", "FIRST", "first_step", FR_SHOW_INT, 0},
    {"last_step", "LAST", "last_step", FR_SHOW_INT, 0},
    {"end_reason", "ENDED BY", "end_reason", FR_SHOW_TEXT, 60},
    {0},
};
static const struct fr_column INCIDENTS[] = {
    {"id", "INCIDENT", "id", FR_SHOW_INT, 0},
    {"named_at", "NAMED", "named_at", FR_SHOW_TIME, 0},
    {"kind", "KIND", "kind", FR_SHOW_TEXT, 0},
    {"node", "NODE", "node", FR_SHOW_TEXT, 0},
    {"rank", "RANK", "rank", FR_SHOW_INT, 0},
    {"cause", "CAUSE", "cause", FR_SHOW_TEXT, 0},
    {"confidence", "SURE", "confidence", FR_SHOW_RATIO, 0},
    {"witnesses", "WITNESSES", "witnesses", FR_SHOW_LIST, 0},
    {0},
};
static const struct fr_column DECISIONS[] = {
    {"id", "DECISION", "id", FR_SHOW_INT, 0},
    {"incident", "INCIDENT", "incident", FR_SHOW_INT, 0},
    {"choice", "CHOICE", "choice", FR_SHOW_TEXT, 0},
    {"node", "NODE", "node", FR_SHOW_TEXT, 0},
    {"reason", "WHY", "reason", FR_SHOW_TEXT, 110},
    {0},
};

static void put_list(const struct fr_column *cols, const struct fr_json *items, bool newest_first,
                     bool color, struct fr_buf *out)
{
    struct fr_table_style st = {
        .color = color, .cut = isatty(STDOUT_FILENO), .reverse = newest_first};

    if (fr_json_len(items) == 0)
        return;
    fr_buf_putc(out, '\n');
    fr_table_print(cols, items, &st, out, NULL);
}

static void put_goodput(const struct fr_report *r, struct fr_buf *out)
{
    const struct fr_json *gp = fr_json_get(r->job, "goodput"),
                         *buckets = fr_json_get(gp, "buckets");
    struct fr_unit_text a;
    double sum = 0;

    if (fr_json_len(buckets) == 0)
        return;
    fr_buf_printf(out, "\n%-16s %10s %8s\n", "WHERE TIME WENT", "SECONDS", "SHARE");
    for (size_t i = 0; i < fr_json_len(buckets); i++) {
        const struct fr_json *b = fr_json_at(buckets, i);
        double s = fr_json_num(b, "seconds", 0);

        sum += s;
        fr_buf_printf(out, "%-16s %10.3f %8s  ", fr_json_str(b, "name", "?"), s,
                      fr_fmt_ratio(fr_json_num(b, "ratio", NAN), &a));
        for (int k = 0; k < (int)(fr_json_num(b, "ratio", 0) * 40 + 0.5); k++)
            fr_buf_putc(out, '#');
        fr_buf_putc(out, '\n');
    }
    fr_buf_printf(out, "%-16s %10.3f  of ", "sum", sum);
    fr_report_fixed(out, 3, fr_json_num(gp, "wall_s", NAN));
    fr_buf_puts(out, " s wall time, error ");
    fr_report_fixed(out, 6, fr_json_num(gp, "error_s", NAN));
    fr_buf_puts(out, " s\n");
}

void fr_report_text(const struct fr_report *r, bool color, struct fr_buf *out)
{
    put_head(r, out);
    if (r->nfaults)
        put_faults(r, color, out);
    put_list(ATTEMPTS, fr_json_get(r->job, "attempts"), false, color, out);
    put_list(INCIDENTS, fr_json_get(r->incidents, "items"), true, color, out);
    put_list(DECISIONS, fr_json_get(r->decisions, "items"), true, color, out);
    put_goodput(r, out);
    if (r->loss_bit_exact >= 0)
        fr_buf_printf(out, "\nloss of every step equals the undisturbed twin's, bit for bit: %s\n",
                      r->loss_bit_exact ? "yes" : "NO");
}
