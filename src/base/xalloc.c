/* SPDX-License-Identifier: Apache-2.0 */
/* xalloc.c - see xalloc.h */
#define _GNU_SOURCE
#include "base/xalloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void out_of_memory(size_t n, size_t size)
{
    char text[96];
    int len = snprintf(text, sizeof text, "out of memory: %zu x %zu bytes\n", n, size);

    /* write, not stdio: stdio may want memory itself. Nothing can be done about a failure here. */
    if (write(STDERR_FILENO, text, (size_t)len) < 0)
        abort();
    abort();
}

void *fr_xalloc(size_t n)
{
    return fr_xcalloc(1, n);
}

void *fr_xcalloc(size_t n, size_t size)
{
    size_t total;
    void *p;

    if (__builtin_mul_overflow(n, size, &total) || total > PTRDIFF_MAX)
        out_of_memory(n, size);
    p = calloc(1, total ? total : 1);
    if (!p)
        out_of_memory(n, size);
    return p;
}

void *fr_xreallocarray(void *p, size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total) || total > PTRDIFF_MAX)
        out_of_memory(n, size);
    p = realloc(p, total ? total : 1);
    if (!p)
        out_of_memory(n, size);
    return p;
}

char *fr_xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;

    return memcpy(fr_xalloc(n), s, n);
}

char *fr_xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *p = NULL;
    int n;

    va_start(ap, fmt);
    n = vasprintf(&p, fmt, ap);
    va_end(ap);
    if (n < 0)
        out_of_memory(1, strlen(fmt));
    return p;
}

void fr_freep(void *pp)
{
    void *p;

    memcpy(&p, pp, sizeof p); /* pp is the address of a pointer of any type */
    free(p);
}
