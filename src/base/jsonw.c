/* SPDX-License-Identifier: Apache-2.0 */
/* jsonw.c - see jsonw.h */
#include "base/jsonw.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char HEX[] = "0123456789abcdef";

/*
 * Length of the well-formed UTF-8 sequence at p (n > 0 bytes left), or 0.
 * Source: Unicode 15.0, table 3-7 (no overlong forms, no surrogates, <= U+10FFFF).
 */
static size_t utf8_length(const unsigned char *p, size_t n)
{
    unsigned char lo = 0x80, hi = 0xbf;
    size_t len;

    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        len = 2;
    else if (p[0] >= 0xe0 && p[0] <= 0xef)
        len = 3;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        len = 4;
    else
        return 0;
    if (len > n)
        return 0;
    if (p[0] == 0xe0)
        lo = 0xa0;
    else if (p[0] == 0xed)
        hi = 0x9f;
    else if (p[0] == 0xf0)
        lo = 0x90;
    else if (p[0] == 0xf4)
        hi = 0x8f;
    if (p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    return len;
}

static void put_control(struct fr_buf *out, unsigned char c)
{
    static const char SHORT[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                 ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    char text[6] = {'\\', 'u', '0', '0', HEX[c >> 4], HEX[c & 15]};

    if (c < sizeof SHORT && SHORT[c]) {
        text[1] = SHORT[c];
        fr_buf_add(out, text, 2);
    } else {
        fr_buf_add(out, text, sizeof text);
    }
}

static void put_string(struct fr_buf *out, const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + n, *from = p;

    fr_buf_putc(out, '"');
    while (p < end) {
        size_t len;

        if (*p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\') {
            p++; /* the usual case: copied in one piece below */
            continue;
        }
        len = utf8_length(p, (size_t)(end - p));
        if (len > 1) {
            p += len;
            continue;
        }
        fr_buf_add(out, from, (size_t)(p - from));
        if (len == 1)
            put_control(out, *p);
        else
            fr_buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD, one for each bad byte */
        from = ++p;
    }
    fr_buf_add(out, from, (size_t)(p - from));
    fr_buf_putc(out, '"');
}

/* The comma and the key in front of a value. */
static void before_value(struct fr_jsonw *w, const char *key)
{
    if (w->comma[w->depth])
        fr_buf_putc(w->out, ',');
    w->comma[w->depth] = true;
    if (key) {
        put_string(w->out, key, strlen(key));
        fr_buf_putc(w->out, ':');
    }
}

static void open_level(struct fr_jsonw *w, const char *key, char c)
{
    before_value(w, key);
    assert(w->depth < FR_JSONW_DEPTH);
    fr_buf_putc(w->out, c);
    w->comma[++w->depth] = false;
}

static void close_level(struct fr_jsonw *w, char c)
{
    assert(w->depth > 0);
    w->depth--;
    fr_buf_putc(w->out, c);
}

void fr_jsonw_init(struct fr_jsonw *w, struct fr_buf *out)
{
    *w = (struct fr_jsonw){.out = out};
}

void fr_jsonw_obj(struct fr_jsonw *w, const char *key)
{
    open_level(w, key, '{');
}

void fr_jsonw_arr(struct fr_jsonw *w, const char *key)
{
    open_level(w, key, '[');
}

void fr_jsonw_end_obj(struct fr_jsonw *w)
{
    close_level(w, '}');
}

void fr_jsonw_end_arr(struct fr_jsonw *w)
{
    close_level(w, ']');
}

void fr_jsonw_str(struct fr_jsonw *w, const char *key, const char *s)
{
    if (s)
        fr_jsonw_strn(w, key, s, strlen(s));
    else
        fr_jsonw_null(w, key);
}

void fr_jsonw_strn(struct fr_jsonw *w, const char *key, const char *s, size_t n)
{
    before_value(w, key);
    put_string(w->out, s, n);
}

static void put_uint(struct fr_buf *out, uint64_t v)
{
    char text[20], *p = text + sizeof text;

    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    fr_buf_add(out, p, (size_t)(text + sizeof text - p));
}

void fr_jsonw_int(struct fr_jsonw *w, const char *key, int64_t v)
{
    before_value(w, key);
    if (v < 0)
        fr_buf_putc(w->out, '-');
    put_uint(w->out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void fr_jsonw_uint(struct fr_jsonw *w, const char *key, uint64_t v)
{
    before_value(w, key);
    put_uint(w->out, v);
}

void fr_jsonw_num(struct fr_jsonw *w, const char *key, double v)
{
    char text[40], *comma;

    if (!isfinite(v)) {
        fr_jsonw_null(w, key);
        return;
    }
    if (v == floor(v) && fabs(v) < 1e15 && !(v == 0 && signbit(v))) {
        fr_jsonw_int(w, key, (int64_t)v);
        return;
    }
    before_value(w, key);
    /*
     * Any decimal of at most 15 digits survives the way through a double, so when 15 digits read
     * back the same, %g (which strips zeros) has given the shortest form; else one or two more do.
     */
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    comma = strchr(text, ','); /* a program may have set a locale */
    if (comma)
        *comma = '.';
    fr_buf_puts(w->out, text);
}

void fr_jsonw_bool(struct fr_jsonw *w, const char *key, bool v)
{
    before_value(w, key);
    fr_buf_puts(w->out, v ? "true" : "false");
}

void fr_jsonw_null(struct fr_jsonw *w, const char *key)
{
    before_value(w, key);
    fr_buf_puts(w->out, "null");
}

void fr_jsonw_time(struct fr_jsonw *w, const char *key, int64_t t_unix_ns)
{
    char text[32];

    if (t_unix_ns > 0)
        fr_jsonw_str(w, key, fr_time_text(t_unix_ns, text, sizeof text));
    else
        fr_jsonw_null(w, key);
}

void fr_jsonw_raw(struct fr_jsonw *w, const char *key, const char *json, size_t n)
{
    before_value(w, key);
    fr_buf_add(w->out, json, n);
}
