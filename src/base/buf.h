/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - a growing string of bytes, always NUL-terminated behind its end
 *
 * Memory:  heap, doubled when full; fr_buf_fini frees it.
 * Threads: none; one owner at a time.
 */
#ifndef FR_BASE_BUF_H
#define FR_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct fr_buf {
    char *p;    /* NULL while nothing was added */
    size_t len; /* bytes in use, without the NUL */
    size_t cap;
};

#define FR_BUF_INIT                                                                                \
    {                                                                                              \
        NULL, 0, 0                                                                                 \
    }

void fr_buf_fini(struct fr_buf *b);
void fr_buf_reset(struct fr_buf *b); /* empty it, keep the memory */
void fr_buf_add(struct fr_buf *b, const void *p, size_t n);
void fr_buf_puts(struct fr_buf *b, const char *s);
void fr_buf_putc(struct fr_buf *b, char c);
void fr_buf_printf(struct fr_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Make room for n more bytes and return where they go; then raise len by hand. */
char *fr_buf_room(struct fr_buf *b, size_t n);
/* The text, never NULL. */
const char *fr_buf_str(const struct fr_buf *b);

#endif /* FR_BASE_BUF_H */
