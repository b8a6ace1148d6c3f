/* SPDX-License-Identifier: Apache-2.0 */
#include "err.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fr_fail(struct fr_err *err, int code, const char *format, ...)
{
    va_list args;

    if (err) {
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return code;
}

void *fr_zalloc(size_t n, size_t size)
{
    void *p = NULL;
    size_t bytes;

    /* One line of slack, so that n = 0 has an address too. */
    if (__builtin_mul_overflow(n ? n : 1, size ? size : 1, &bytes) || bytes > SIZE_MAX - 64 ||
        !(p = aligned_alloc(64, (bytes + 63) / 64 * 64))) {
        fprintf(stderr,
                "fullrank-train: error: memory: no room for %zu x %zu bytes"
                " (choose a smaller model or batch)\n",
                n, size);
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

void fr_freep(void *pointer_to_pointer)
{
    void *p;

    memcpy(&p, pointer_to_pointer, sizeof p);
    free(p);
}

void fr_closep(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
