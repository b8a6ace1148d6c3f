/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see table.h */
#include "cli/table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/units.h"
#include "base/xalloc.h"

#define COLUMNS_MAX 40
#define CUT_MARK    "~"
#define WHOLE_MAX   9007199254740992.0 /* 2^53: up to here a double holds every whole number */

/* Palette safe for colour-blind eyes; every state is also a word. */
static const struct {
    const char *state, *sgr;
} COLORS[] = {
    {"healthy", "38;5;36"},   {"running", "38;5;36"},    {"done", "38;5;36"},
    {"suspect", "38;5;214"},  {"probation", "38;5;214"}, {"verifying", "38;5;214"},
    {"stuck", "38;5;202"},    {"draining", "38;5;202"},  {"drained", "38;5;202"},
    {"down", "38;5;202"},     {"failed", "38;5;202"},    {"gone", "38;5;202"},
    {"stopped", "38;5;202"},  {"zombie", "38;5;202"},    {"unknown", "38;5;245"},
    {"lost", "38;5;245"},     {"cancelled", "38;5;245"}, {"queued", "38;5;117"},
    {"starting", "38;5;117"}, {"stopping", "38;5;214"},
};

const char *fr_table_color(const char *state)
{
    for (size_t i = 0; state && i < sizeof COLORS / sizeof COLORS[0]; i++)
        if (strcmp(COLORS[i].state, state) == 0)
            return COLORS[i].sgr;
    return "";
}

const struct fr_json *fr_table_value(const struct fr_json *obj, const char *path)
{
    char key[64];

    while (obj && *path) {
        size_t n = strcspn(path, ".");

        if (n >= sizeof key)
            return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        obj = fr_json_get(obj, key);
        path += n + (path[n] == '.');
    }
    return fr_json_is_null(obj) ? NULL : obj;
}

void fr_table_safe(struct fr_buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        /* C0, DEL, and C1 as UTF-8 writes it (0xc2 0x80..0x9f): all that a terminal could obey */
        if (c == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] <= 0x9f) {
            fr_buf_putc(out, '?');
            s++;
        } else {
            fr_buf_putc(out, c < 0x20 || c == 0x7f ? '?' : (char)c);
        }
    }
}

static bool is_number(enum fr_show show)
{
    return show >= FR_SHOW_INT && show <= FR_SHOW_FACTOR;
}

static void put_time(const char *text, struct fr_buf *b)
{
    int64_t now = fr_unix_ns(), t;
    time_t ts, tn;
    struct tm tm, today;
    char s[40];

    if (fr_time_parse(text, now, &t) < 0) {
        fr_table_safe(b, text);
        return;
    }
    ts = (time_t)(t / FR_NS_PER_S);
    tn = (time_t)(now / FR_NS_PER_S);
    localtime_r(&ts, &tm);
    localtime_r(&tn, &today);
    strftime(s, sizeof s,
             tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year ? "%H:%M:%S"
                                                                        : "%Y-%m-%d %H:%M",
             &tm);
    fr_buf_puts(b, s);
}

static void put_list(const struct fr_json *v, bool nodes, struct fr_buf *b)
{
    size_t n = fr_json_len(v);
    FR_CLEANUP(fr_freep) char **names = fr_xcalloc(n + 1, sizeof *names);

    for (size_t i = 0; i < n; i++)
        names[i] = (char *)fr_json_value_str(fr_json_at(v, i), NULL);
    if (nodes) {
        struct fr_buf folded = FR_BUF_INIT;
        size_t k = 0;

        for (size_t i = 0; i < n; i++)
            if (names[i])
                names[k++] = names[i];
        fr_hostlist_fold(names, k, &folded);
        fr_table_safe(b, fr_buf_str(&folded));
        fr_buf_fini(&folded);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (i)
            fr_buf_putc(b, ' ');
        if (names[i])
            fr_table_safe(b, names[i]);
        else
            fr_json_write(fr_json_at(v, i), b);
    }
}

const char *fr_table_text(const struct fr_json *v, enum fr_show show, struct fr_buf *b)
{
    struct fr_unit_text t;
    const char *s = fr_json_value_str(v, NULL);
    double x = fr_json_value_num(v, NAN);

    fr_buf_reset(b);
    if (!v || (is_number(show) && isnan(x)) || (show == FR_SHOW_TIME && !s))
        return "-";
    switch (show) {
    case FR_SHOW_TIME:
        put_time(s, b);
        break;
    case FR_SHOW_INT:
        fr_buf_printf(b, "%.0f", x);
        break;
    case FR_SHOW_NUM:
        fr_buf_printf(b, "%.4g", x);
        break;
    case FR_SHOW_SECONDS:
        fr_buf_puts(b, fr_fmt_seconds(x, &t));
        break;
    case FR_SHOW_BYTES:
        fr_buf_puts(b, fr_fmt_bytes(x, &t));
        break;
    case FR_SHOW_RATE:
        fr_buf_printf(b, "%s/s", fr_fmt_bytes(x, &t));
        break;
    case FR_SHOW_RATIO:
        fr_buf_puts(b, fr_fmt_ratio(x, &t));
        break;
    case FR_SHOW_FACTOR:
        fr_buf_printf(b, "%.2fx", x);
        break;
    case FR_SHOW_LIST:
    case FR_SHOW_NODES:
        put_list(v, show == FR_SHOW_NODES, b);
        break;
    case FR_SHOW_COUNT:
        fr_buf_printf(b, "%zu", fr_json_len(v));
        break;
    default:
        if (s)
            fr_table_safe(b, s);
        else
            fr_json_write(v, b);
    }
    return b->len ? fr_buf_str(b) : "-";
}

/* Characters on the screen, UTF-8 counted by its first bytes. */
static size_t width_of(const char *s)
{
    size_t n = 0;

    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* The first n characters. */
static size_t bytes_of(const char *s, size_t n)
{
    size_t i = 0;

    while (s[i]) {
        if (((unsigned char)s[i] & 0xc0) != 0x80 && n-- == 0)
            break;
        i++;
    }
    return i;
}

static int choose(const struct fr_column *cols, const char *fields, const struct fr_column **ret,
                  size_t *ret_n, struct fr_err *err)
{
    size_t n = 0, all = 0;

    while (cols[all].name && all < COLUMNS_MAX) {
        if (!fields)
            ret[n++] = &cols[all];
        all++;
    }
    for (const char *f = fields; f && *f;) {
        char want[64];
        size_t len = strcspn(f, ","), i;

        snprintf(want, sizeof want, "%.*s", (int)(len < 63 ? len : 63), f);
        f += len + (f[len] == ',');
        for (i = 0; i < all && strcmp(cols[i].name, want) != 0; i++)
            ;
        if (i == all || n == COLUMNS_MAX) {
            struct fr_buf b = FR_BUF_INIT;

            for (i = 0; i < all; i++)
                fr_buf_printf(&b, "%s%s", i ? ", " : "", cols[i].name);
            fr_fail(err, -EINVAL, "--fields: no column %s (there are: %.300s)", want,
                    fr_buf_str(&b));
            fr_buf_fini(&b);
            return -EINVAL;
        }
        ret[n++] = &cols[i];
    }
    *ret_n = n;
    return 0;
}

static void put_csv(const char *s, struct fr_buf *out)
{
    if (!s[strcspn(s, ",\"\r\n")]) {
        fr_buf_puts(out, s);
        return;
    }
    fr_buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"')
            fr_buf_putc(out, '"');
        fr_buf_putc(out, *s);
    }
    fr_buf_putc(out, '"');
}

/* A whole number with all its digits, another with as many as were measured. */
static const char *number_text(double x, struct fr_buf *b)
{
    fr_buf_printf(b, x == floor(x) && fabs(x) < WHOLE_MAX ? "%.0f" : "%.9g", x);
    return fr_buf_str(b);
}

/* Base units, the unknown left empty. */
static void csv_value(const struct fr_json *v, enum fr_show show, struct fr_buf *out)
{
    const char *s = fr_json_value_str(v, NULL);
    struct fr_buf b = FR_BUF_INIT;

    if (v) {
        if (show == FR_SHOW_LIST || show == FR_SHOW_NODES || show == FR_SHOW_COUNT)
            put_csv(fr_table_text(v, show, &b), out);
        else if (s)
            put_csv(s, out);
        else if (!isnan(fr_json_value_num(v, NAN))) {
            put_csv(number_text(fr_json_value_num(v, NAN), &b), out);
        } else {
            fr_json_write(v, &b);
            put_csv(fr_buf_str(&b), out);
        }
    }
    fr_buf_fini(&b);
}

static void print_csv(const struct fr_column *const *cols, size_t ncols,
                      const struct fr_json *items, bool header, struct fr_buf *out)
{
    for (size_t c = 0; header && c < ncols; c++)
        fr_buf_printf(out, "%s%s", cols[c]->name, c + 1 < ncols ? "," : "\n");
    for (size_t i = 0; i < fr_json_len(items); i++)
        for (size_t c = 0; c < ncols; c++) {
            csv_value(fr_table_value(fr_json_at(items, i), cols[c]->path), cols[c]->show, out);
            fr_buf_putc(out, c + 1 < ncols ? ',' : '\n');
        }
}

static void put_cell(const char *s, size_t width, size_t max, bool right, bool last,
                     const char *sgr, struct fr_buf *out)
{
    size_t w = width_of(s), pad;
    bool cut = max && w > max;

    if (cut)
        w = max;
    pad = width > w ? width - w : 0;
    if (right)
        fr_buf_printf(out, "%*s", (int)pad, "");
    if (*sgr)
        fr_buf_printf(out, "\033[%sm", sgr);
    if (cut) {
        fr_buf_add(out, s, bytes_of(s, max - 1));
        fr_buf_puts(out, CUT_MARK);
    } else {
        fr_buf_puts(out, s);
    }
    if (*sgr)
        fr_buf_puts(out, "\033[0m");
    if (!right && !last)
        fr_buf_printf(out, "%*s", (int)pad, "");
    fr_buf_puts(out, last ? "\n" : "  ");
}

static void print_table(const struct fr_column *const *cols, size_t ncols,
                        const struct fr_json *items, const struct fr_table_style *st,
                        struct fr_buf *out)
{
    size_t rows = fr_json_len(items);
    FR_CLEANUP(fr_freep) char **cell = fr_xcalloc(rows * ncols + 1, sizeof *cell);
    size_t width[COLUMNS_MAX];
    struct fr_buf b = FR_BUF_INIT;

    for (size_t c = 0; c < ncols; c++) {
        size_t max = st->cut ? cols[c]->max : 0;

        width[c] = st->no_header ? 0 : width_of(cols[c]->title);
        for (size_t r = 0; r < rows; r++) {
            size_t w;

            cell[r * ncols + c] = fr_xstrdup(fr_table_text(
                fr_table_value(fr_json_at(items, st->reverse ? rows - 1 - r : r), cols[c]->path),
                cols[c]->show, &b));
            w = width_of(cell[r * ncols + c]);
            if (max && w > max)
                w = max;
            if (w > width[c])
                width[c] = w;
        }
    }
    for (size_t c = 0; !st->no_header && c < ncols; c++)
        put_cell(cols[c]->title, width[c], 0, is_number(cols[c]->show), c + 1 == ncols,
                 st->color ? "1" : "", out);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < ncols; c++) {
            char *s = cell[r * ncols + c];

            put_cell(s, width[c], st->cut ? cols[c]->max : 0, is_number(cols[c]->show),
                     c + 1 == ncols,
                     st->color && cols[c]->show == FR_SHOW_STATE ? fr_table_color(s) : "", out);
            free(s);
        }
    fr_buf_fini(&b);
}

int fr_table_print(const struct fr_column *cols, const struct fr_json *items,
                   const struct fr_table_style *st, struct fr_buf *out, struct fr_err *err)
{
    const struct fr_column *chosen[COLUMNS_MAX];
    size_t n = 0;
    int rc = choose(cols, st->fields, chosen, &n, err);

    if (rc < 0)
        return rc;
    if (st->format == FR_FORMAT_JSONL) {
        for (size_t i = 0; i < fr_json_len(items); i++) {
            fr_json_write(fr_json_at(items, i), out);
            fr_buf_putc(out, '\n');
        }
    } else if (st->format == FR_FORMAT_CSV) {
        print_csv(chosen, n, items, !st->no_header, out);
    } else if (n) {
        print_table(chosen, n, items, st, out);
    }
    return 0;
}

void fr_table_card(const struct fr_column *cols, const struct fr_json *obj, bool color,
                   struct fr_buf *out)
{
    struct fr_buf b = FR_BUF_INIT;
    size_t width = 0;

    for (const struct fr_column *c = cols; c->name; c++)
        if (strlen(c->title) > width)
            width = strlen(c->title);
    for (const struct fr_column *c = cols; c->name; c++) {
        const struct fr_json *v = fr_table_value(obj, c->path);
        const char *s = fr_table_text(v, c->show, &b), *sgr;

        if (!v || strcmp(s, "-") == 0)
            continue;
        sgr = color && c->show == FR_SHOW_STATE ? fr_table_color(s) : "";
        fr_buf_printf(out, "%-*s  %s%s%s%s%s\n", (int)width, c->title, *sgr ? "\033[" : "", sgr,
                      *sgr ? "m" : "", s, *sgr ? "\033[0m" : "");
    }
    fr_buf_fini(&b);
}
