/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - see log.h
 *
 * The fields are found in the *format*, not in what it prints: each "key=" behind a space starts
 * one. The spaces between fields become SEPARATOR before anything is formatted, so that a value may
 * hold spaces and '=' and is quoted where it does.
 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"

#define SEPARATOR    '\x1f'
#define FORMAT_BYTES 1024
#define FIELDS_BYTES 8192 /* a longer line is cut */
#define EVENT_SLOTS  256  /* events that are counted at a time; the oldest gives way */
#define EVENT_PROBES 8
#define BURST        10
#define BURST_NS     (10ull * 1000000000ull)

static const char *const LEVELS[] = {"error", "warning", "notice", "info", "debug"};
enum { LEVEL_COUNT = sizeof LEVELS / sizeof LEVELS[0] };

static struct {
    enum fr_log_level level;
    bool json;
    char name[64];
} setup = {.level = FR_LOG_INFO, .name = "fullrank"};

/* How often an event was seen in its window; guarded by lock. */
struct event_count {
    uint64_t hash; /* 0: free */
    uint64_t since_ns;
    unsigned seen, held;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event_count counts[EVENT_SLOTS];

void fr_log_init(const char *name)
{
    const char *p = getenv("FULLRANK_LOG");

    snprintf(setup.name, sizeof setup.name, "%s", name);
    while (p && *p) {
        size_t n = strcspn(p, ",");

        if (n == 4 && memcmp(p, "json", 4) == 0)
            setup.json = true;
        for (int i = 0; i < LEVEL_COUNT; i++)
            if (strlen(LEVELS[i]) == n && memcmp(p, LEVELS[i], n) == 0)
                setup.level = (enum fr_log_level)i;
        p += n + (p[n] == ',');
    }
}

/* FNV-1a. Source: Fowler, Noll, Vo, IETF draft-eastlake-fnv, 64 bit. */
static uint64_t hash_of(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
    return h ? h : 1;
}

/* May this event be written now? Then *ret_held is how many of it were kept back before. */
static bool admit(const char *event, uint64_t now_ns, unsigned *ret_held)
{
    uint64_t hash = hash_of(event);
    struct event_count *c = NULL;
    bool yes;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < EVENT_PROBES; i++) {
        struct event_count *x = &counts[(hash + i) % EVENT_SLOTS];

        if (x->hash == hash) {
            c = x;
            break;
        }
        if (!c || x->since_ns < c->since_ns)
            c = x; /* the one to give way: free ones have time 0 */
    }
    if (c->hash != hash)
        *c = (struct event_count){.hash = hash, .since_ns = now_ns};
    if (now_ns - c->since_ns >= BURST_NS) {
        c->since_ns = now_ns;
        c->seen = 0;
    }
    yes = c->seen < BURST;
    c->seen += yes;
    *ret_held = yes ? c->held : 0;
    c->held = yes ? 0 : c->held + 1;
    pthread_mutex_unlock(&lock);
    return yes;
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* Length of "key=" at p, or 0. */
static size_t key_length(const char *p)
{
    size_t n = 0;

    while (is_key_char(p[n]))
        n++;
    return n && p[n] == '=' ? n + 1 : 0;
}

/* Copy the format with SEPARATOR between its fields. Bit i of the result: field i is one number. */
static uint64_t split_format(const char *fmt, char out[FORMAT_BYTES])
{
    size_t n = 0;
    uint64_t numbers = 0;
    int field = 0;

    for (const char *p = fmt; *p && n < FORMAT_BYTES - 1; p++) {
        bool starts = p == fmt;

        if (*p == ' ' && key_length(p + 1)) {
            out[n++] = SEPARATOR;
            p++;
            field++;
            starts = true;
        }
        if (starts && field < 64) {
            const char *v = p + key_length(p);
            size_t conversion = v[0] == '%' ? 1 + strspn(v + 1, "0123456789.lzjht+-") : 0;

            if (conversion && v[conversion] && strchr("diufge", v[conversion]) &&
                (v[conversion + 1] == ' ' || v[conversion + 1] == '\0'))
                numbers |= 1ull << field;
        }
        if (n < FORMAT_BYTES - 1)
            out[n++] = *p;
    }
    out[n] = '\0';
    return numbers;
}

static bool needs_quotes(const char *s)
{
    if (!*s)
        return true;
    for (; *s; s++)
        if ((unsigned char)*s <= ' ' || *s == '"' || *s == '\\' || *s == 0x7f)
            return true;
    return false;
}

static void text_field(struct fr_buf *line, const char *key, size_t key_n, const char *v)
{
    struct fr_jsonw w;

    fr_buf_putc(line, ' ');
    fr_buf_add(line, key, key_n);
    if (key_n)
        fr_buf_putc(line, '=');
    if (key_n && needs_quotes(v)) {
        fr_jsonw_init(&w, line);
        fr_jsonw_str(&w, NULL, v); /* quoted as JSON does it: no line end gets through */
    } else {
        for (; *v; v++) /* words without a key keep their spaces */
            fr_buf_putc(line, (unsigned char)*v < ' ' || *v == 0x7f ? '?' : *v);
    }
}

static void json_field(struct fr_jsonw *w, char *key, size_t key_n, const char *v, bool number)
{
    bool finite = (v[0] >= '0' && v[0] <= '9') || (v[0] == '-' && v[1] >= '0' && v[1] <= '9');

    if (!key_n) {
        fr_jsonw_str(w, "message", v);
        return;
    }
    key[key_n] = '\0'; /* over the '=' */
    if (!number)
        fr_jsonw_str(w, key, v);
    else if (finite)
        fr_jsonw_raw(w, key, v, strlen(v));
    else
        fr_jsonw_null(w, key); /* nan, inf */
}

/* One line of text or JSON; `fields` is cut up on the way. */
static void build_line(struct fr_buf *line, enum fr_log_level level, const char *event,
                       char *fields, uint64_t numbers, unsigned held)
{
    char when[32], *rest = fields;
    struct fr_jsonw w;

    fr_time_text(fr_unix_ns(), when, sizeof when);
    if (setup.json) {
        fr_jsonw_init(&w, line);
        fr_jsonw_obj(&w, NULL);
        fr_jsonw_str(&w, "time", when);
        fr_jsonw_str(&w, "level", LEVELS[level]);
        fr_jsonw_str(&w, "program", setup.name);
        fr_jsonw_str(&w, "event", event);
    } else {
        fr_buf_printf(line, "%s %s %s", when, LEVELS[level], event);
    }
    for (int i = 0; rest && *rest; i++) {
        char *field = rest, *end = strchr(rest, SEPARATOR);
        size_t key_n = key_length(field), n;

        rest = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        n = strlen(field);
        if (key_n && n >= key_n + 2 && field[key_n] == '"' && field[n - 1] == '"') {
            field[n - 1] = '\0'; /* why=\"%s\": quotes are put where they are needed, once */
            memmove(field + key_n, field + key_n + 1, n - key_n - 1);
        }
        if (setup.json)
            json_field(&w, field, key_n ? key_n - 1 : 0, field + key_n,
                       i < 64 && (numbers >> i & 1));
        else
            text_field(line, field, key_n ? key_n - 1 : 0, field + key_n);
    }
    if (setup.json) {
        if (held)
            fr_jsonw_uint(&w, "held", held);
        fr_jsonw_end_obj(&w);
    } else if (held) {
        fr_buf_printf(line, " held=%u", held);
    }
    fr_buf_putc(line, '\n');
}

void fr_log(enum fr_log_level level, const char *event, const char *fmt, ...)
{
    char format[FORMAT_BYTES], fields[FIELDS_BYTES];
    struct fr_buf line = FR_BUF_INIT;
    unsigned held;
    uint64_t numbers;
    va_list ap;

    if (level > setup.level || !admit(event, fr_mono_ns(), &held))
        return;
    numbers = split_format(fmt, format);
    va_start(ap, fmt);
    if (strlen(fmt) < FORMAT_BYTES)
        vsnprintf(fields, sizeof fields, format, ap);
    else
        snprintf(fields, sizeof fields, "%s", "(format too long)");
    va_end(ap);
    build_line(&line, level, event, fields, numbers, held);
    /* One write a line, so that lines of several threads and processes do not mix. Nowhere to
     * report a failure. */
    if (write(STDERR_FILENO, line.p, line.len) < 0)
        held = 0;
    fr_buf_fini(&line);
}

void fr_complain(const char *name, const char *fmt, ...)
{
    struct fr_buf line = FR_BUF_INIT;
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fr_buf_printf(&line, "%s: error: %s\n", name, text);
    fflush(stdout); /* keep the order when both go to one place */
    if (write(STDERR_FILENO, line.p, line.len) < 0)
        text[0] = '\0';
    fr_buf_fini(&line);
}
