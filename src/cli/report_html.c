/* SPDX-License-Identifier: Apache-2.0 */
/* report_html.c - see report.h: the report as one HTML file; every foreign text goes through
 * fr_html_escape */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "base/xalloc.h"
#include "cli/report.h"
#include "cli/svg.h"
#include "cli/table.h"

#define WIDTH 960

/* Blue-green: good; amber: slower; vermilion: fault; grey: unknown; light blue: waiting. */
static const char STYLE[] =
    ":root{color-scheme:light "
    "dark;--bg:#fff;--fg:#1a1d21;--dim:#5c6670;--line:#d5dade;--ok:#00876c;--warn:#a86a00;--bad:#"
    "c33c00;--wait:#5a9fc9;"
    "--a0:#00876c;--a1:#3f6fb5;--a2:#8a5aa8;--a3:#6b7a00}"
    "@media(prefers-color-scheme:dark){:root{--bg:#15181b;--fg:#e4e8eb;--dim:#9aa5af;--line:#"
    "333a41;--ok:#35b597;--warn:#e0a030;--bad:#ff7a45;"
    "--wait:#7cc0ea;--a0:#35b597;--a1:#7aa5e6;--a2:#c293dd;--a3:#b4c24a}}"
    "body{margin:2rem auto;max-width:1000px;padding:0 "
    "1rem;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}"
    "h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:"
    "100%;font-size:.9rem}"
    "th,td{text-align:left;padding:.25rem .6rem .25rem 0;border-bottom:1px solid "
    "var(--line);vertical-align:top}.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".tiles{display:flex;flex-wrap:wrap;gap:1.5rem}.tiles b{display:block;font-size:1.4rem}.tiles "
    "span,.dim{color:var(--dim)}"
    "svg{width:100%;height:auto}svg text{font:11px "
    "system-ui,sans-serif;fill:var(--fg)}.tick,.title{fill:var(--dim)!important}"
    ".grid{stroke:var(--line);stroke-width:1}.mark{stroke-width:1.5;stroke-dasharray:4 "
    "3;fill:none}.mark.fault{stroke:var(--bad)}.mark.found{stroke:var(--warn)}"
    "text.fault{fill:var(--bad);font-weight:600}text.found{fill:var(--warn)}"
    ".a0{fill:var(--a0)}.a1{fill:var(--a1)}.a2{fill:var(--a2)}.a3{fill:var(--a3)}path{fill:none;"
    "stroke-width:1.6}path.loss{stroke:var(--a1)}"
    ".g-productive{fill:var(--ok)}.g-straggle{fill:var(--warn)}.g-hang_undetected{fill:var(--bad)}."
    "g-hang_detected{fill:#e57a4a}.g-rework{fill:#8a5aa8}"
    ".g-restore{fill:#3f6fb5}.g-checkpoint{fill:#5a9fc9}.g-launch{fill:#88a0b5}.g-teardown{fill:#"
    "a9b4bd}.g-queue{fill:#c5ccd2}.g-other{fill:#8f979e}"
    ".bad{fill:var(--bad)}.warn{fill:var(--warn)}.act{fill:var(--a1)}.ok{color:var(--ok)}.no{color:"
    "var(--bad);font-weight:700}";

void fr_html_escape(struct fr_buf *out, const char *s)
{
    for (; s && *s; s++) {
        unsigned char c = (unsigned char)*s;

        switch (c) {
        case '&':
            fr_buf_puts(out, "&amp;");
            break;
        case '<':
            fr_buf_puts(out, "&lt;");
            break;
        case '>':
            fr_buf_puts(out, "&gt;");
            break;
        case '"':
            fr_buf_puts(out, "&quot;");
            break;
        case '\'':
            fr_buf_puts(out, "&#39;");
            break;
        default:
            if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
                fr_buf_puts(out, "\xef\xbf\xbd");
            else
                fr_buf_putc(out, (char)c);
        }
    }
}

static void tile(struct fr_buf *out, const char *title, const char *value)
{
    fr_buf_puts(out, "<div><b>");
    fr_html_escape(out, value);
    fr_buf_puts(out, "</b><span>");
    fr_html_escape(out, title);
    fr_buf_puts(out, "</span></div>\n");
}

static void put_tiles(const struct fr_report *r, struct fr_buf *out)
{
    const struct fr_json *gp = fr_json_get(r->job, "goodput");
    struct fr_unit_text t;
    char s[64];

    fr_buf_puts(out, "<div class=\"tiles\">\n");
    tile(out, "state", fr_json_str(r->job, "state", "unknown"));
    fr_report_steps(r, s, sizeof s);
    tile(out, "steps", s);
    tile(out, "wall time", fr_fmt_seconds(r->wall_s, &t));
    tile(out, "goodput", fr_fmt_ratio(fr_json_num(gp, "goodput_ratio", NAN), &t));
    tile(out, "MFU", fr_fmt_ratio(fr_json_num(r->job, "mfu_ratio", NAN), &t));
    snprintf(s, sizeof s, "%lld", (long long)fr_json_int(r->job, "attempt", 0));
    tile(out, "attempts", s);
    if (r->loss_bit_exact >= 0)
        tile(out, "loss equals the undisturbed twin's, bit for bit",
             r->loss_bit_exact ? "yes" : "no");
    fr_buf_puts(out, "</div>\n");
}

static void put_fault_table(const struct fr_report *r, struct fr_buf *out)
{
    if (!r->nfaults)
        return;
    fr_buf_puts(
        out, "<h2>Faults made on purpose, and what was found</h2><table><tr><th>fault<th>node<th "
             "class=\"n\">rank<th>found as<th>node<th class=\"n\">"
             "rank<th>cause<th>right<th class=\"n\">found after<th class=\"n\">steps<th "
             "class=\"n\">next step after</tr>\n");
    for (size_t i = 0; i < r->nfaults; i++) {
        const struct fr_fault *f = &r->faults[i];
        struct fr_unit_text a, b;

        fr_buf_puts(out, "<tr><td>");
        fr_html_escape(out, f->kind);
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, f->node);
        fr_buf_puts(out, "<td class=\"n\">");
        if (f->rank >= 0)
            fr_buf_printf(out, "%d", (int)f->rank);
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, f->incident ? f->named_kind : "not found");
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, f->named_node);
        fr_buf_puts(out, "<td class=\"n\">");
        if (f->incident && f->named_rank >= 0)
            fr_buf_printf(out, "%d", (int)f->named_rank);
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, f->named_cause);
        fr_buf_printf(out, "<td class=\"%s\">%s<td class=\"n\">%s<td class=\"n\">",
                      f->correct ? "ok" : "no", f->correct ? "yes" : "no",
                      fr_fmt_seconds(f->detect_s, &a));
        if (!isnan(f->detect_steps))
            fr_buf_printf(out, "%.0f", f->detect_steps);
        fr_buf_printf(out, "<td class=\"n\">%s</tr>\n", fr_fmt_seconds(f->recover_s, &b));
    }
    fr_buf_puts(out, "</table>\n");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A top of the step time axis that one long step cannot spoil: above the 99th percentile; what lies
 * over it stands at the edge. */
static double step_top(const struct fr_report *r)
{
    FR_CLEANUP(fr_freep) double *v = fr_xcalloc(r->nsteps + 1, sizeof *v);
    size_t n = 0;

    for (size_t i = 0; i < r->nsteps; i++)
        if (r->steps[i].step_s > 0)
            v[n++] = r->steps[i].step_s;
    if (n == 0)
        return 1;
    qsort(v, n, sizeof *v, by_value);
    return v[(size_t)(0.99 * (double)(n - 1))] * 1.3;
}

static void mark_faults(const struct fr_report *r, struct fr_svg *s)
{
    for (size_t i = 0; i < r->nfaults; i++) {
        const struct fr_fault *f = &r->faults[i];
        double at = (double)(f->at_unix_ns - r->submitted_unix_ns) / 1e9;
        char label[120];

        if (f->rank >= 0)
            snprintf(label, sizeof label, "%s rank %d", f->kind, (int)f->rank);
        else
            snprintf(label, sizeof label, "%s %s", f->kind, f->node);
        /* two pairs of rows in turn: labels of neighbours stay apart */
        fr_svg_mark(s, at, (int)(i % 2) * 2, label, "fault");
        if (!isnan(f->detect_s))
            fr_svg_mark(s, at + f->detect_s, (int)(i % 2) * 2 + 1, "found", "found");
    }
}

static void put_step_time(const struct fr_report *r, struct fr_buf *out)
{
    struct fr_svg s = {.out = out,
                       .width = WIDTH,
                       .height = 280,
                       .left = 52,
                       .right = 12,
                       .top = 24,
                       .bottom = 36};

    s.x1 = r->wall_s > 0 ? r->wall_s : 1;
    s.y1 = step_top(r);
    fr_buf_puts(out, "<h2>Step time</h2>\n");
    fr_svg_begin(&s, "step time over wall time, one dot a step, one colour an attempt");
    fr_svg_axes(&s, "seconds since the job was submitted",
                "seconds a step (above the edge: longer)");
    for (size_t i = 0; i < r->nsteps; i++) {
        char cls[4] = {'a', (char)('0' + (r->steps[i].attempt + 3) % 4), '\0'};

        fr_svg_dot(&s, r->steps[i].end_s, r->steps[i].step_s, cls);
    }
    mark_faults(r, &s);
    fr_svg_end(&s);
}

static void put_loss(const struct fr_report *r, struct fr_buf *out)
{
    struct fr_svg s = {.out = out,
                       .width = WIDTH,
                       .height = 220,
                       .left = 52,
                       .right = 12,
                       .top = 24,
                       .bottom = 36};
    FR_CLEANUP(fr_freep)
    double *x = fr_xcalloc(r->nsteps + 1, sizeof *x), *y = fr_xcalloc(r->nsteps + 1, sizeof *y);
    double top = 0, low = INFINITY;

    s.x1 = 1;
    for (size_t i = 0; i < r->nsteps; i++) {
        /* a step that was done again: a new line from there, over the old one when it is the same
         */
        x[i] = i && r->steps[i].attempt != r->steps[i - 1].attempt ? NAN : (double)r->steps[i].step;
        y[i] = r->steps[i].loss;
        if ((double)r->steps[i].step > s.x1)
            s.x1 = (double)r->steps[i].step;
        if (y[i] > top)
            top = y[i];
        if (y[i] < low)
            low = y[i];
    }
    if (!(top > 0))
        return;
    s.y1 = top * 1.05;
    s.y0 = 0;
    fr_buf_puts(out, "<h2>Loss</h2>\n");
    fr_svg_begin(&s, "loss over steps");
    fr_svg_axes(&s, "step", "nats a token");
    fr_svg_line(&s, x, y, r->nsteps, "loss");
    fr_svg_end(&s);
}

static void put_goodput(const struct fr_report *r, struct fr_buf *out)
{
    const struct fr_json *gp = fr_json_get(r->job, "goodput"),
                         *buckets = fr_json_get(gp, "buckets");
    struct fr_svg s = {
        .out = out, .width = WIDTH, .height = 60, .left = 6, .right = 6, .top = 4, .bottom = 26};
    double at = 0, sum = 0;

    if (fr_json_len(buckets) == 0)
        return;
    s.x1 = fr_json_num(gp, "wall_s", 1) > 0 ? fr_json_num(gp, "wall_s", 1) : 1;
    s.y1 = 1;
    fr_buf_puts(out, "<h2>Where time went</h2>\n");
    fr_svg_begin(&s, "goodput buckets as shares of wall time");
    fr_svg_axes(&s, "", NULL);
    for (size_t i = 0; i < fr_json_len(buckets); i++) {
        const struct fr_json *b = fr_json_at(buckets, i);
        double sec = fr_json_num(b, "seconds", 0);
        char cls[40], tip[120];

        snprintf(cls, sizeof cls, "g-%.30s", fr_json_str(b, "name", "other"));
        for (char *c = cls; *c; c++)
            if (!((*c >= 'a' && *c <= 'z') || *c == '_' || *c == '-'))
                *c = '_';
        snprintf(tip, sizeof tip, "%.60s: %.3f s", fr_json_str(b, "name", "?"), sec);
        if (sec > 0)
            fr_svg_bar(&s, at, at + sec, 4, 34, tip, cls);
        at += sec;
    }
    fr_svg_end(&s);
    fr_buf_puts(out,
                "<table><tr><th>bucket<th class=\"n\">seconds<th class=\"n\">share<th>what</tr>\n");
    for (size_t i = 0; i < fr_json_len(buckets); i++) {
        const struct fr_json *b = fr_json_at(buckets, i);
        struct fr_unit_text t;

        sum += fr_json_num(b, "seconds", 0);
        fr_buf_puts(out, "<tr><td>");
        fr_html_escape(out, fr_json_str(b, "name", "?"));
        fr_buf_printf(out, "<td class=\"n\">%.3f<td class=\"n\">%s<td>",
                      fr_json_num(b, "seconds", 0), fr_fmt_ratio(fr_json_num(b, "ratio", NAN), &t));
        fr_html_escape(out, fr_json_str(b, "text", ""));
        fr_buf_puts(out, "</tr>\n");
    }
    fr_buf_printf(out, "<tr><th>sum<th class=\"n\">%.3f<th><th class=\"dim\">of ", sum);
    fr_report_fixed(out, 3, fr_json_num(gp, "wall_s", NAN));
    fr_buf_puts(out, " s wall time; difference ");
    fr_report_fixed(out, 6, fr_json_num(gp, "error_s", NAN));
    fr_buf_puts(out, " s</tr></table>\n");
}

/* Rows: attempts, faults, incidents, decisions, actions. */
static void put_timeline(const struct fr_report *r, struct fr_buf *out)
{
    enum { ROW = 26 };
    static const char *const ROWS[] = {"attempts", "faults", "incidents", "decisions", "actions"};
    struct fr_svg s = {.out = out,
                       .width = WIDTH,
                       .height = 30 + 5 * ROW + 30,
                       .left = 80,
                       .right = 12,
                       .top = 8,
                       .bottom = 36};
    const struct fr_json *items = fr_json_get(r->job, "attempts");
    char tip[300];

    s.x1 = r->wall_s > 0 ? r->wall_s : 1;
    s.y1 = 1;
    fr_buf_puts(out, "<h2>Incident, decision, action</h2>\n");
    fr_svg_begin(&s, "time line of attempts, faults, incidents, decisions and actions");
    fr_svg_axes(&s, "seconds since the job was submitted", NULL);
    for (int i = 0; i < 5; i++)
        fr_svg_text(&s, 74, 8 + ROW * i + 17, "end", ROWS[i], "tick");
    for (size_t i = 0; i < fr_json_len(items); i++) {
        const struct fr_json *a = fr_json_at(items, i);
        double from = fr_report_seconds(r, fr_json_str(a, "started_at", NULL)),
               to = fr_report_seconds(r, fr_json_str(a, "ended_at", NULL));
        char cls[4] = {'a', (char)('0' + ((uint64_t)fr_json_int(a, "attempt", 0) + 3) % 4), '\0'};

        snprintf(tip, sizeof tip, "attempt %lld: %.200s", (long long)fr_json_int(a, "attempt", 0),
                 fr_json_str(a, "end_reason", ""));
        fr_svg_bar(&s, from, isnan(to) ? r->wall_s : to, 8 + 4, 8 + ROW - 4, tip, cls);
    }
    for (size_t i = 0; i < r->nfaults; i++) {
        double at = (double)(r->faults[i].at_unix_ns - r->submitted_unix_ns) / 1e9;

        snprintf(tip, sizeof tip, "%s on %s at %.2f s", r->faults[i].kind, r->faults[i].node, at);
        fr_svg_bar(&s, at, at, 8 + ROW + 4, 8 + 2 * ROW - 4, tip, "bad");
    }
    items = fr_json_get(r->incidents, "items");
    for (size_t i = 0; i < fr_json_len(items); i++) {
        const struct fr_json *x = fr_json_at(items, i);
        double from = fr_report_seconds(r, fr_json_str(x, "named_at", NULL)),
               to = fr_report_seconds(r, fr_json_str(x, "closed_at", NULL));

        snprintf(tip, sizeof tip, "incident %lld: %.20s %.60s named at %.2f s",
                 (long long)fr_json_int(x, "id", 0), fr_json_str(x, "kind", "?"),
                 fr_json_str(x, "node", ""), from);
        fr_svg_bar(&s, from, isnan(to) ? r->wall_s : to, 8 + 2 * ROW + 4, 8 + 3 * ROW - 4, tip,
                   "warn");
    }
    for (size_t i = 0; i < r->ndecision; i++) {
        const struct fr_json *d = r->decision[i], *actions = fr_json_get(d, "actions");
        double at = fr_report_seconds(r, fr_json_str(d, "decided_at", NULL));

        snprintf(tip, sizeof tip, "decision %lld: %.20s %.60s: %.150s",
                 (long long)fr_json_int(d, "id", 0), fr_json_str(d, "choice", "?"),
                 fr_json_str(d, "node", ""), fr_json_str(d, "reason", ""));
        fr_svg_bar(&s, at, at, 8 + 3 * ROW + 4, 8 + 4 * ROW - 4, tip, "act");
        for (size_t k = 0; k < fr_json_len(actions); k++) {
            const struct fr_json *a = fr_json_at(actions, k);
            double from = fr_report_seconds(r, fr_json_str(a, "started_at", NULL)),
                   to = fr_report_seconds(r, fr_json_str(a, "ended_at", NULL));

            snprintf(tip, sizeof tip, "%.20s %.60s: %.20s", fr_json_str(a, "kind", "?"),
                     fr_json_str(a, "target", ""), fr_json_str(a, "state", "?"));
            fr_svg_bar(&s, from, isnan(to) ? from : to, 8 + 4 * ROW + 4, 8 + 5 * ROW - 4, tip,
                       "act");
        }
    }
    fr_svg_end(&s);
}

static void put_evidence(const struct fr_report *r, struct fr_buf *out)
{
    const struct fr_json *items = fr_json_get(r->incidents, "items");

    if (fr_json_len(items) == 0)
        return;
    fr_buf_puts(out, "<h2>Incidents</h2><table><tr><th class=\"n\">id<th>kind<th>node<th "
                     "class=\"n\">rank<th>cause<th>named<th>evidence</tr>\n");
    for (size_t i = fr_json_len(items); i-- > 0;) { /* oldest first */
        const struct fr_json *x = fr_json_at(items, i), *lines = fr_json_get(x, "evidence");

        fr_buf_printf(out, "<tr><td class=\"n\">%lld<td>", (long long)fr_json_int(x, "id", 0));
        fr_html_escape(out, fr_json_str(x, "kind", "?"));
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, fr_json_str(x, "node", ""));
        fr_buf_puts(out, "<td class=\"n\">");
        if (fr_json_int(x, "rank", -1) >= 0)
            fr_buf_printf(out, "%lld", (long long)fr_json_int(x, "rank", -1));
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, fr_json_str(x, "cause", ""));
        fr_buf_printf(out, "<td>%.2f s<td>",
                      fr_report_seconds(r, fr_json_str(x, "named_at", NULL)));
        for (size_t k = 0; k < fr_json_len(lines); k++) {
            fr_html_escape(out, fr_json_value_str(fr_json_at(lines, k), ""));
            fr_buf_puts(out, "<br>");
        }
        fr_buf_puts(out, "</tr>\n");
    }
    fr_buf_puts(out, "</table>\n<h2>Decisions</h2><table><tr><th class=\"n\">id<th "
                     "class=\"n\">incident<th>choice<th>node<th>why</tr>\n");
    for (size_t i = r->ndecision; i-- > 0;) {
        const struct fr_json *d = r->decision[i];

        fr_buf_printf(out, "<tr><td class=\"n\">%lld<td class=\"n\">%lld<td>",
                      (long long)fr_json_int(d, "id", 0), (long long)fr_json_int(d, "incident", 0));
        fr_html_escape(out, fr_json_str(d, "choice", "?"));
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, fr_json_str(d, "node", ""));
        fr_buf_puts(out, "<td>");
        fr_html_escape(out, fr_json_str(d, "reason", ""));
        fr_buf_puts(out, "</tr>\n");
    }
    fr_buf_puts(out, "</table>\n");
}

void fr_report_html(const struct fr_report *r, struct fr_buf *out)
{
    char when[40];

    fr_buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    fr_html_escape(out, r->title);
    fr_buf_printf(out, "</title>\n<style>%s</style></head><body>\n<h1>", STYLE);
    fr_html_escape(out, r->title);
    fr_buf_puts(out, "</h1>\n<p class=\"dim\">job ");
    fr_html_escape(out, fr_json_str(r->job, "job", "?"));
    fr_buf_puts(out, " (");
    fr_html_escape(out, fr_json_str(r->job, "name", "?"));
    fr_buf_printf(out, "), submitted %s", fr_time_text(r->submitted_unix_ns, when, sizeof when));
    if (r->seed >= 0)
        fr_buf_printf(out, ", seed %lld", (long long)r->seed);
    fr_buf_puts(out, "</p>\n");
    put_tiles(r, out);
    put_fault_table(r, out);
    put_step_time(r, out);
    put_timeline(r, out);
    put_goodput(r, out);
    put_loss(r, out);
    put_evidence(r, out);
    fr_buf_puts(out, "</body></html>\n");
}
