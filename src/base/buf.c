/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - see buf.h */
#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define FIRST_CAP 64

void fr_buf_fini(struct fr_buf *b)
{
    free(b->p);
    *b = (struct fr_buf)FR_BUF_INIT;
}

void fr_buf_reset(struct fr_buf *b)
{
    b->len = 0;
    if (b->p)
        b->p[0] = '\0';
}

char *fr_buf_room(struct fr_buf *b, size_t n)
{
    size_t need, cap = b->cap ? b->cap : FIRST_CAP;

    if (__builtin_add_overflow(b->len, n, &need) || need > PTRDIFF_MAX - 1)
        need = SIZE_MAX; /* refused by the allocator below */
    else
        need += 1; /* the NUL */
    if (need > b->cap) {
        while (cap < need && cap <= SIZE_MAX / 2)
            cap *= 2;
        b->p = fr_xreallocarray(b->p, cap < need ? need : cap, 1);
        b->cap = cap < need ? need : cap;
        b->p[b->len] = '\0';
    }
    return b->p + b->len;
}

void fr_buf_add(struct fr_buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    memcpy(fr_buf_room(b, n), p, n);
    b->len += n;
    b->p[b->len] = '\0';
}

void fr_buf_puts(struct fr_buf *b, const char *s)
{
    fr_buf_add(b, s, strlen(s));
}

void fr_buf_putc(struct fr_buf *b, char c)
{
    fr_buf_add(b, &c, 1);
}

void fr_buf_printf(struct fr_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    size_t room = b->cap - b->len; /* 0 when nothing was added yet */
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(room ? b->p + b->len : NULL, room, fmt, ap);
    va_end(ap);
    assert(n >= 0); /* a broken format string is our own mistake */
    if ((size_t)n >= room)
        vsnprintf(fr_buf_room(b, (size_t)n), (size_t)n + 1, fmt, again);
    va_end(again);
    b->len += (size_t)n;
}

const char *fr_buf_str(const struct fr_buf *b)
{
    if (!b->p)
        return "";
    b->p[b->len] = '\0'; /* len may have been raised by hand */
    return b->p;
}
