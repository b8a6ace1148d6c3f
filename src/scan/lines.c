/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - see lines.h */
#include "scan/lines.h"

#include <string.h>

#define CUT_BACK 4096u /* how far back a blank is looked for when a text is too long */

void fr_lines_init(struct fr_lines *l, fr_lines_fn fn, void *arg)
{
    *l = (struct fr_lines){.fn = fn, .arg = arg, .number = 1};
}

void fr_lines_fini(struct fr_lines *l)
{
    fr_buf_fini(&l->partial);
    fr_buf_fini(&l->clean);
}

static bool is_control(char c)
{
    return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* 8 bytes at a time: whether one of them is below 0x20 (a tab counts, and is sorted out later). */
static bool has_control(const char *p, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        uint64_t v;

        memcpy(&v, p + i, 8);
        /* Mycroft's test for a byte below 0x20 */
        if ((v - 0x2020202020202020ull) & ~v & 0x8080808080808080ull)
            return true;
    }
    for (; i < n; i++)
        if ((unsigned char)p[i] < 0x20)
            return true;
    return false;
}

/* The bytes of an escape sequence at p[0] == ESC. CSI (ESC [ ... letter), OSC (ESC ] ... BEL or
 * ESC \), else two bytes. An unfinished one is only its first two bytes, so that a lone ESC never
 * swallows the line. Source: ECMA-48, sections 5.3, 5.4 and 5.6. */
static size_t escape_bytes(const char *p, size_t n)
{
    size_t i = 2;

    if (n < 2)
        return n;
    if (p[1] == '[') {
        while (i < n && i < 64 && p[i] >= 0x20 && p[i] <= 0x3f)
            i++;
        return i < n && p[i] >= 0x40 && p[i] <= 0x7e ? i + 1 : 2;
    }
    if (p[1] == ']') {
        for (; i < n && i < 512; i++) {
            if (p[i] == '\a')
                return i + 1;
            if (p[i] == '\x1b' && i + 1 < n && p[i + 1] == '\\')
                return i + 2;
        }
        return 2;
    }
    return p[1] >= 0x20 && p[1] <= 0x7e ? 2 : 1;
}

/* Deliver one text, in pieces when it is too long. */
static int deliver(struct fr_lines *l, const char *p, size_t n)
{
    int rc;

    while (n > FR_LINES_MAX) {
        size_t cut = FR_LINES_MAX;

        while (cut > FR_LINES_MAX - CUT_BACK && p[cut] != ' ')
            cut--;
        if (p[cut] != ' ')
            cut = FR_LINES_MAX;
        rc = l->fn(p, cut, l->number, l->arg);
        if (rc)
            return rc;
        p += cut;
        n -= cut;
    }
    return l->fn(p, n, l->number, l->arg);
}

/* Take out what is not text; carriage returns part texts of one line. */
static int deliver_dirty(struct fr_lines *l, const char *p, size_t n)
{
    int rc;

    while (n && p[n - 1] == '\r')
        n--;
    fr_buf_reset(&l->clean);
    for (size_t i = 0; i < n;) {
        size_t from = i;

        while (i < n && !is_control(p[i]))
            i++;
        fr_buf_add(&l->clean, p + from, i - from);
        if (i == n)
            break;
        if (p[i] == '\x1b') {
            i += escape_bytes(p + i, n - i);
        } else if (p[i] == '\r') {
            if (l->clean.len) {
                rc = deliver(l, l->clean.p, l->clean.len);
                if (rc)
                    return rc;
            }
            fr_buf_reset(&l->clean);
            i++;
        } else {
            i++; /* NUL, bell, backspace, ... */
        }
    }
    return deliver(l, fr_buf_str(&l->clean), l->clean.len);
}

static int take(struct fr_lines *l, const char *p, size_t n)
{
    return has_control(p, n) ? deliver_dirty(l, p, n) : deliver(l, p, n);
}

int fr_lines_feed(struct fr_lines *l, const char *p, size_t n)
{
    l->bytes += n;
    while (n) {
        const char *lf = memchr(p, '\n', n);
        size_t len = lf ? (size_t)(lf - p) : n;
        int rc;

        if (!lf || l->partial.len) {
            size_t room = FR_LINES_MAX - l->partial.len, part = len < room ? len : room;

            fr_buf_add(&l->partial, p, part);
            if (!lf && part == len)
                return 0;
            rc = take(l, fr_buf_str(&l->partial), l->partial.len);
            fr_buf_reset(&l->partial);
            if (part < len || !lf) { /* the line goes on: the next piece */
                p += part;
                n -= part;
                if (rc)
                    return rc;
                continue;
            }
        } else {
            rc = take(l, p, len);
        }
        l->number++;
        if (rc)
            return rc;
        p += len + 1;
        n -= len + 1;
    }
    return 0;
}

int fr_lines_end(struct fr_lines *l)
{
    int rc = 0;

    if (l->partial.len)
        rc = take(l, l->partial.p, l->partial.len);
    fr_buf_reset(&l->partial);
    return rc;
}
