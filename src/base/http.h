/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - one request over a kept connection
 *
 * The only user of libcurl. A client object belongs to one thread and keeps its
 * connection between calls.
 *
 * Memory:  a reply is refused beyond max_bytes.
 */
#ifndef FR_BASE_HTTP_H
#define FR_BASE_HTTP_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* A stream of events from which nothing came for so long is given up (-ETIMEDOUT); servers send a
 * comment every 15 s. */
#define FR_HTTP_SILENCE_S 60

struct fr_http; /* client */

struct fr_http_options {
    const char *base_url; /* "http://127.0.0.1:7880" */
    const char *token;    /* bearer token, NULL: none; kept out of every message */
    const char *ca_file;  /* TLS: NULL: the system's */
    double timeout_s;     /* whole request, default 5 */
    size_t max_bytes;     /* reply, default 16 MiB */
};

int fr_http_new(const struct fr_http_options *opt, struct fr_http **ret, struct fr_err *err);
void fr_http_free(struct fr_http *h);

/* method "GET", "POST", ...; body may be NULL; type is its media type. Returns the HTTP status (>=
 * 100), or a negative errno when no answer came (-ECONNREFUSED, -ETIMEDOUT, ...; -EFBIG beyond
 * max_bytes). Redirects are not followed. The body of the reply is put into reply (emptied first)
 * whatever the status. */
int fr_http_call(struct fr_http *h, const char *method, const char *path, const char *type,
                 const void *body, size_t body_bytes, struct fr_buf *reply, struct fr_err *err);

/* GET a stream of server-sent events; fn gets each event's name and data, and ends it by returning
 * non-zero. Blocks, without limit while something comes. Returns like fr_http_call. */
int fr_http_events(struct fr_http *h, const char *path,
                   int (*fn)(const char *event, const char *data, size_t n, void *arg), void *arg,
                   struct fr_err *err);

#endif /* FR_BASE_HTTP_H */
