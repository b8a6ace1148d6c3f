/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - see view.h */
#include "cli/view.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/out.h"
#include "cli/table.h"

#define BAR 40

static double mono_s(void)
{
    return (double)fr_mono_ns() / 1e9;
}

void fr_view_init(struct fr_view *v, struct fr_client *c, int fd, bool terminal, bool color)
{
    *v =
        (struct fr_view){.client = c, .fd = fd, .terminal = terminal, .color = color, .every_s = 5};
}

void fr_view_fini(struct fr_view *v)
{
    fr_json_free(v->data);
    fr_json_free(v->nodes);
    fr_json_free(v->incidents);
    fr_json_free(v->decisions);
    v->data = v->nodes = v->incidents = v->decisions = NULL;
}

static int fetch_one(struct fr_client *c, const char *path, struct fr_json **at, struct fr_err *err)
{
    struct fr_json *json;
    int rc = fr_client_get(c, path, &json, err);

    if (rc == 0) {
        fr_json_free(*at);
        *at = json;
    }
    return rc;
}

/* While the job has no name yet: the newest of all. */
static int find_job(struct fr_view *v, struct fr_err *err)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
    const struct fr_json *items;
    const char *newest = "";
    int rc = fr_client_get(v->client, "/api/v1/jobs", &json, err);

    if (rc < 0)
        return rc;
    items = fr_json_get(json, "items");
    for (size_t i = 0; i < fr_json_len(items); i++) {
        const char *at = fr_json_str(fr_json_at(items, i), "submitted_at", "");

        if (strcmp(at, newest) >= 0) {
            newest = at;
            snprintf(v->job, sizeof v->job, "%s", fr_json_str(fr_json_at(items, i), "job", ""));
        }
    }
    return v->job[0] ? 0 : fr_fail(err, -ENOENT, "no job yet");
}

int fr_view_fetch(struct fr_view *v, struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;
    int rc = v->job[0] ? 0 : find_job(v, err);

    if (rc == 0)
        rc = fetch_one(v->client, fr_client_path(&path, "/api/v1/jobs/%s", v->job), &v->data, err);
    if (rc == 0)
        rc = fetch_one(v->client,
                       fr_client_path(&path, "/api/v1/incidents?limit=100&job=%s", v->job),
                       &v->incidents, err);
    if (rc == 0)
        rc = fetch_one(v->client,
                       fr_client_path(&path, "/api/v1/decisions?limit=100&job=%s", v->job),
                       &v->decisions, err);
    if (rc == 0)
        rc = fetch_one(v->client, "/api/v1/nodes", &v->nodes, err);
    if (rc == 0)
        v->fetched_s = mono_s();
    return rc;
}

const char *fr_view_state(const struct fr_view *v)
{
    return fr_json_str(v->data, "state", "");
}

bool fr_view_ended(const struct fr_view *v)
{
    static const char *const ENDS[] = {"done", "failed", "cancelled"};

    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++)
        if (strcmp(fr_view_state(v), ENDS[i]) == 0)
            return true;
    return false;
}

static void put(struct fr_view *v, const struct fr_buf *b)
{
    size_t at = 0;

    while (at < b->len) {
        ssize_t n = write(v->fd, b->p + at, b->len - at);

        if (n <= 0)
            return; /* nobody looks any more */
        at += (size_t)n;
    }
}

void fr_view_clear(struct fr_view *v)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;

    if (!v->lines)
        return;
    fr_buf_printf(&b, "\033[%dA\r\033[J", v->lines);
    put(v, &b);
    v->lines = 0;
}

void fr_view_say(struct fr_view *v, const char *fmt, ...)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    char text[1000], clock[16];
    time_t now = time(NULL);
    struct tm tm;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fr_view_clear(v);
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&now, &tm));
    fr_buf_printf(&b, "%s  ", clock);
    fr_table_safe(&b, text);
    fr_buf_putc(&b, '\n');
    put(v, &b);
}

/* One line of the block, cut to the terminal. */
static void line(struct fr_view *v, struct fr_buf *out, const struct fr_buf *text)
{
    size_t width = (size_t)fr_out_width(v->fd), shown = 0;

    for (const char *s = fr_buf_str(text); *s; s++) {
        if (*s == '\033') { /* a colour takes no room */
            size_t n = strcspn(s, "m");

            fr_buf_add(out, s, n + 1);
            s += n;
            continue;
        }
        shown += ((unsigned char)*s & 0xc0) != 0x80;
        if (shown < width)
            fr_buf_putc(out, *s);
    }
    fr_buf_puts(out, v->color ? "\033[0m\n" : "\n");
    v->lines++;
}

static void put_state(const struct fr_view *v, const char *state, struct fr_buf *b)
{
    const char *sgr = v->color ? fr_table_color(state) : "";

    if (*sgr)
        fr_buf_printf(b, "\033[%sm", sgr);
    fr_table_safe(b, state);
    if (*sgr)
        fr_buf_puts(b, "\033[0m");
}

/* "step 7/80", "step 7" of a job that does not tell its length, "step -" of one that tells none. */
static void put_steps(const struct fr_json *j, struct fr_buf *b)
{
    int64_t step = fr_json_int(j, "step", 0), total = fr_json_int(j, "total_steps", 0);

    if (step <= 0 && total <= 0)
        fr_buf_puts(b, "step -");
    else
        fr_buf_printf(b, "step %lld", (long long)step);
    if (total > 0)
        fr_buf_printf(b, "/%lld", (long long)total);
}

static void put_numbers(const struct fr_view *v, struct fr_buf *b)
{
    const struct fr_json *j = v->data;
    struct fr_unit_text t;

    put_steps(j, b);
    if (!isnan(fr_json_num(j, "loss", NAN)))
        fr_buf_printf(b, "  loss %.4f", fr_json_num(j, "loss", NAN));
    fr_buf_printf(b, "  step time %s", fr_fmt_seconds(fr_json_num(j, "step_s", NAN), &t));
    fr_buf_printf(b, "  MFU %s", fr_fmt_ratio(fr_json_num(j, "mfu_ratio", NAN), &t));
    fr_buf_printf(b, "  goodput %s", fr_fmt_ratio(fr_json_num(j, "goodput_ratio", NAN), &t));
}

static void draw_block(struct fr_view *v, struct fr_buf *out)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    const struct fr_json *j = v->data, *groups = fr_json_get(j, "groups"),
                         *nodes = fr_json_get(v->nodes, "items");
    double total = fr_json_num(j, "total_steps", 0),
           done = total > 0 ? fr_json_num(j, "step", 0) / total : 0;
    struct fr_unit_text t;

    fr_table_safe(&b, v->job);
    fr_buf_puts(&b, "  ");
    put_state(v, fr_view_state(v), &b);
    fr_buf_printf(&b, "  attempt %lld  ", (long long)fr_json_int(j, "attempt", 0));
    put_numbers(v, &b);
    if (mono_s() - v->fetched_s > 2)
        fr_buf_printf(&b, "  (%.0f s old: the controller does not answer)",
                      mono_s() - v->fetched_s);
    line(v, out, &b);

    fr_buf_reset(&b);
    fr_buf_putc(&b, '[');
    for (int i = 0; i < BAR; i++)
        fr_buf_putc(&b, i < (int)(done * BAR) ? '#' : '.');
    if (total > 0)
        fr_buf_printf(&b, "] %3.0f %%", done * 100);
    else
        fr_buf_puts(&b, "]   -");
    line(v, out, &b);

    fr_buf_reset(&b);
    fr_buf_puts(&b, "busbw ");
    for (size_t i = 0; i < fr_json_len(groups) && i < 6; i++) {
        const struct fr_json *g = fr_json_at(groups, i);

        fr_buf_printf(&b, "%s%s %s ", i ? " | " : " ", fr_json_str(g, "name", "?"),
                      fr_json_str(g, "op", "?"));
        fr_buf_printf(&b, "%s/s", fr_fmt_bytes(fr_json_num(g, "busbw_bytes_per_s", NAN), &t));
    }
    line(v, out, &b);

    fr_buf_reset(&b);
    fr_buf_puts(&b, "nodes ");
    for (size_t i = 0; i < fr_json_len(nodes); i++) {
        const struct fr_json *n = fr_json_at(nodes, i), *ranks = fr_json_get(n, "ranks");

        fr_buf_puts(&b, i ? " | " : " ");
        fr_table_safe(&b, fr_json_str(n, "node", "?"));
        fr_buf_putc(&b, ' ');
        put_state(v, fr_json_str(n, "state", "unknown"), &b);
        for (size_t k = 0; k < fr_json_len(ranks); k++)
            fr_buf_printf(&b, "%s%.0f", k ? "," : " ",
                          fr_json_value_num(fr_json_at(ranks, k), NAN));
    }
    line(v, out, &b);
}

/* Incidents and decisions that came since the last look, oldest first. */
static bool draw_news(struct fr_view *v)
{
    const struct fr_json *items = fr_json_get(v->incidents, "items");
    int64_t attempt = fr_json_int(v->data, "attempt", 0);
    bool news = false;

    for (size_t i = fr_json_len(items); i-- > 0;) {
        const struct fr_json *x = fr_json_at(items, i), *lines = fr_json_get(x, "evidence");
        struct fr_unit_text sure;
        char rank[24] = "";

        if (fr_json_int(x, "id", 0) <= v->seen_incident)
            continue;
        v->seen_incident = fr_json_int(x, "id", 0);
        if (fr_json_int(x, "rank", -1) >= 0)
            snprintf(rank, sizeof rank, " rank %lld", (long long)fr_json_int(x, "rank", -1));
        fr_view_say(v, "FOUND    %s %s%s, cause %s, sure %s: %s", fr_json_str(x, "kind", "?"),
                    fr_json_str(x, "node", "the job"), rank, fr_json_str(x, "cause", "unknown"),
                    fr_fmt_ratio(fr_json_num(x, "confidence", NAN), &sure),
                    fr_json_value_str(fr_json_at(lines, 0), ""));
        news = true;
    }
    items = fr_json_get(v->decisions, "items");
    for (size_t i = fr_json_len(items); i-- > 0;) {
        const struct fr_json *d = fr_json_at(items, i);

        if (fr_json_int(d, "id", 0) <= v->seen_decision)
            continue;
        v->seen_decision = fr_json_int(d, "id", 0);
        fr_view_say(v, "DECIDED  %s%s%s: %s", fr_json_str(d, "choice", "?"),
                    *fr_json_str(d, "node", "") ? " " : "", fr_json_str(d, "node", ""),
                    fr_json_str(d, "reason", ""));
        news = true;
    }
    if (attempt > v->seen_attempt) {
        FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;

        v->seen_attempt = attempt;
        fr_view_say(v, "ATTEMPT  %lld on %s", (long long)attempt,
                    fr_table_text(fr_json_get(v->data, "node_list"), FR_SHOW_LIST, &b));
        news = true;
    }
    return news;
}

void fr_view_draw(struct fr_view *v)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf out = FR_BUF_INIT;
    bool news;

    if (!v->data)
        return;
    news = draw_news(v);
    if (v->terminal) {
        if (v->lines)
            fr_buf_printf(&out, "\033[%dA\r\033[J", v->lines);
        v->lines = 0;
        draw_block(v, &out);
        put(v, &out);
    } else if (news || mono_s() - v->said_s >= v->every_s) {
        v->said_s = mono_s();
        fr_buf_printf(&out, "%s  ", fr_view_state(v));
        put_numbers(v, &out);
        fr_view_say(v, "%s", fr_buf_str(&out));
    }
}
