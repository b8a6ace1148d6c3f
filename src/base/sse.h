/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sse.h - take a stream of server-sent events apart, however it is cut into chunks
 *
 * Apart from http.c so that it can be tested and fuzzed without a socket.
 *
 * Memory:  one event; a longer one than max_bytes ends the stream.
 * Threads: none; one owner at a time.
 * Source:  WHATWG HTML Living Standard, section 9.2.6 "Interpreting an event stream".
 */
#ifndef FR_BASE_SSE_H
#define FR_BASE_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct fr_sse {
    struct fr_buf line, event, data;
    size_t max_bytes;
    bool after_cr;  /* the next LF belongs to the line end already seen */
    bool started;   /* the first line is behind us, and a byte order mark with it */
    bool have_data; /* a data line came; it may have been empty */
};

void fr_sse_init(struct fr_sse *s, size_t max_bytes);
void fr_sse_fini(struct fr_sse *s);

/* Feed n bytes; fn gets each finished event ("message" when it has no name; data is NUL-terminated
 * behind n). 0, or what fn returned when it was not 0, or -EFBIG for an event beyond max_bytes.
 * After a result other than 0 the object is only good for fini. */
int fr_sse_feed(struct fr_sse *s, const char *p, size_t n,
                int (*fn)(const char *event, const char *data, size_t n, void *arg), void *arg);

#endif /* FR_BASE_SSE_H */
