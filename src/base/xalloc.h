/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xalloc.h - memory or the end: for daemons, the CLI and tests, never for the probe
 *
 * A daemon that is out of memory cannot do its work; it ends and is started
 * again. What a peer controls is bounded before it is allocated.
 */
#ifndef FR_BASE_XALLOC_H
#define FR_BASE_XALLOC_H

#include <stddef.h>

/* Zeroed memory of n bytes (n may be 0); ends the process when there is none. */
void *fr_xalloc(size_t n) __attribute__((malloc, returns_nonnull));

/* Zeroed array of n elements of size bytes; checks the product. */
void *fr_xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));

/* Grow p to n elements of size bytes; what is new is not zeroed. */
void *fr_xreallocarray(void *p, size_t n, size_t size) __attribute__((returns_nonnull));

char *fr_xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *fr_xasprintf(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), malloc, returns_nonnull));

/* For FR_CLEANUP(fr_freep): frees what the pointer variable points to. */
void fr_freep(void *pp);

#endif /* FR_BASE_XALLOC_H */
