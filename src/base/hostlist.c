/* SPDX-License-Identifier: Apache-2.0 */
/* hostlist.c - see hostlist.h */
#define _GNU_SOURCE
#include "base/hostlist.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define NAME_MAX_BYTES 63
#define DIGITS_MAX     15 /* more would be a serial number, not a count */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '_' || c == '-';
}

static bool is_separator(char c)
{
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What is being expanded: where the text is read, the name as far as it is built, and the results
 * as NUL-terminated names one behind the other. */
struct expansion {
    const char *text; /* the whole, for messages */
    struct fr_buf names;
    size_t count;
    struct fr_err *err;
};

static int refuse(struct expansion *x, int rc, const char *why)
{
    return fr_fail(x->err, rc, "host list '%.80s': %s", x->text, why);
}

/* One "lo" or "lo-hi" of a bracket at *p, stepped over. */
static int take_range(struct expansion *x, const char **p, uint64_t *ret_lo, uint64_t *ret_hi,
                      int *ret_width)
{
    uint64_t v[2];
    int width = 0;

    for (int i = 0; i < 2; i++) {
        const char *from = *p;

        v[i] = 0;
        while (is_digit(**p) && *p - from <= DIGITS_MAX)
            v[i] = v[i] * 10 + (uint64_t)(*(*p)++ - '0');
        if (*p == from)
            return refuse(x, -EINVAL, "a number is missing in brackets");
        if (*p - from > DIGITS_MAX)
            return refuse(x, -EINVAL, "a number in brackets is too long");
        if (i == 0)
            width = (int)(*p - from);
        if (i == 0 && **p != '-') {
            v[1] = v[0];
            break;
        }
        if (i == 0)
            (*p)++;
    }
    if (v[1] < v[0])
        return refuse(x, -EINVAL, "a range in brackets runs backwards");
    if (v[1] - v[0] >= FR_HOSTLIST_MAX)
        return refuse(x, -E2BIG, "too many names");
    *ret_lo = v[0];
    *ret_hi = v[1];
    *ret_width = width;
    return 0;
}

/* Expand the item at p, whose first `len` bytes of name are built already. Recursion goes as deep
 * as there are brackets, each of which makes the name longer, so NAME_MAX_BYTES bounds it. */
static int expand_item(struct expansion *x, const char *p, char name[NAME_MAX_BYTES + 1],
                       size_t len)
{
    const char *rest;
    int rc;

    for (; is_name_char(*p); p++) {
        if (len >= NAME_MAX_BYTES)
            return refuse(x, -EINVAL, "a name is longer than 63 bytes");
        name[len++] = *p;
    }
    if (*p == '\0' || is_separator(*p)) {
        if (len == 0)
            return refuse(x, -EINVAL, "a name is empty");
        if (x->count >= FR_HOSTLIST_MAX)
            return refuse(x, -E2BIG, "too many names");
        name[len] = '\0';
        fr_buf_add(&x->names, name, len + 1);
        x->count++;
        return 0;
    }
    if (*p != '[')
        return refuse(x, -EINVAL, "names are made of letters, digits, '.', '_' and '-'");
    rest = strchr(p, ']');
    if (!rest)
        return refuse(x, -EINVAL, "a bracket is not closed");
    p++;
    for (;;) {
        uint64_t lo = 0, hi = 0;
        int width = 0;

        rc = take_range(x, &p, &lo, &hi, &width);
        if (rc < 0)
            return rc;
        if (*p != ',' && *p != ']')
            return refuse(x, -EINVAL, "brackets hold numbers and ranges, as in [001-003,7]");
        for (uint64_t v = lo; v <= hi; v++) {
            char number[DIGITS_MAX + 8];
            int n = snprintf(number, sizeof number, "%0*llu", width, (unsigned long long)v);

            if (len + (size_t)n > NAME_MAX_BYTES)
                return refuse(x, -EINVAL, "a name is longer than 63 bytes");
            memcpy(name + len, number, (size_t)n);
            rc = expand_item(x, rest + 1, name, len + (size_t)n);
            if (rc < 0)
                return rc;
        }
        if (*p++ == ']')
            return 0;
    }
}

/* Behind the item at p: brackets may hold commas. */
static const char *end_of_item(const char *p)
{
    bool inside = false;

    for (; *p && (inside || !is_separator(*p)); p++) {
        if (*p == '[')
            inside = true;
        else if (*p == ']')
            inside = false;
    }
    return p;
}

/* Pointers first, then the text they point to, in one allocation. */
static char **pack(const struct expansion *x)
{
    size_t table = (x->count + 1) * sizeof(char *);
    char **list = fr_xalloc(table + x->names.len + 1);
    char *text = (char *)list + table;

    if (x->names.len)
        memcpy(text, x->names.p, x->names.len);
    for (size_t i = 0; i < x->count; i++) {
        list[i] = text;
        text += strlen(text) + 1;
    }
    return list;
}

int fr_hostlist_expand(const char *text, char ***ret, struct fr_err *err)
{
    struct expansion x = {.text = text, .err = err};
    char name[NAME_MAX_BYTES + 1];
    const char *p = text;
    bool want = false; /* a comma asks for an item behind it */
    int rc = 0;

    for (;;) {
        while (is_separator(*p) && *p != ',')
            p++;
        if (*p == '\0' && !want)
            break;
        if (*p == '\0' || *p == ',') {
            rc = refuse(&x, -EINVAL, "a name is empty");
            break;
        }
        rc = expand_item(&x, p, name, 0);
        if (rc < 0)
            break;
        p = end_of_item(p);
        while (is_separator(*p) && *p != ',')
            p++;
        want = *p == ',';
        p += want;
    }
    if (rc == 0) {
        *ret = pack(&x);
        rc = (int)x.count;
    }
    fr_buf_fini(&x.names);
    return rc;
}

/* A name cut at its last run of digits. */
struct parts {
    const char *name;
    size_t prefix, digits; /* lengths; digits 0: nothing to fold */
    const char *suffix;
    uint64_t value;
};

static struct parts cut(const char *name)
{
    size_t end = strlen(name), from;
    struct parts p = {.name = name};

    while (end > 0 && !is_digit(name[end - 1]))
        end--;
    for (from = end; from > 0 && is_digit(name[from - 1]);)
        from--;
    p.suffix = name + end;
    p.prefix = from;
    if (end - from > DIGITS_MAX)
        return p;
    p.digits = end - from;
    for (size_t i = from; i < end; i++)
        p.value = p.value * 10 + (uint64_t)(name[i] - '0');
    return p;
}

static bool same_family(const struct parts *a, const struct parts *b)
{
    return a->digits && b->digits && a->prefix == b->prefix &&
           memcmp(a->name, b->name, a->prefix) == 0 && strcmp(a->suffix, b->suffix) == 0;
}

/* Does b stand where a range that starts with `width` digits goes on behind a? */
static bool follows(const struct parts *a, const struct parts *b, size_t width)
{
    char number[DIGITS_MAX + 8];
    int n = snprintf(number, sizeof number, "%0*llu", (int)width, (unsigned long long)a->value + 1);

    return b->digits == (size_t)n && memcmp(b->name + b->prefix, number, (size_t)n) == 0;
}

void fr_hostlist_fold(char *const *names, size_t n, struct fr_buf *out)
{
    for (size_t i = 0; i < n;) {
        struct parts first = cut(names[i]), lo = first, hi = first;
        bool open = false; /* the bracket was written */

        if (i)
            fr_buf_putc(out, ',');
        /* One family: ranges as long as they go, then the bracket is closed. */
        for (i++;; i++) {
            struct parts next = {0};
            bool more = i < n && (next = cut(names[i]), same_family(&first, &next));

            if (more && follows(&hi, &next, lo.digits)) {
                hi = next;
                continue;
            }
            if (!open && !more && lo.name == hi.name) {
                fr_buf_puts(out, first.name); /* alone */
                break;
            }
            if (!open)
                fr_buf_printf(out, "%.*s[", (int)first.prefix, first.name);
            open = true;
            fr_buf_add(out, lo.name + lo.prefix, lo.digits);
            if (hi.name != lo.name) {
                fr_buf_putc(out, '-');
                fr_buf_add(out, hi.name + hi.prefix, hi.digits);
            }
            if (!more) {
                fr_buf_printf(out, "]%s", first.suffix);
                break;
            }
            fr_buf_putc(out, ',');
            lo = hi = next;
        }
    }
}
