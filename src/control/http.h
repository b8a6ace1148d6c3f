/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.h - the HTTP side: who may ask, how much, and who answers
 *
 * libmicrohttpd's own thread parses requests. What it can answer without the state (a fresh
 * document, a file of the page, the event stream, a refusal) it answers; everything else is
 * suspended and queued for the loop thread. Tokens are compared in constant time.
 *
 * Memory:  a body is bounded by its route, all bodies together by FR_HTTP_BODIES_BYTES, connections
 * by FR_HTTP_CONNECTIONS. Threads: new, free, take, answer: the loop thread; the rest inside.
 */
#ifndef FR_CONTROL_HTTP_H
#define FR_CONTROL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "control/api.h"
#include "control/events.h"
#include "control/snapshot.h"

#define FR_HTTP_CONNECTIONS  1024
#define FR_HTTP_BODIES_BYTES (256u << 20)

struct fr_server_options {
    const char *listen; /* "127.0.0.1:7880", "[::1]:0" */
    const char *token;  /* what changes need */
    const char *web_dir;
    const char *tls_cert, *tls_key; /* files, NULL: plain HTTP */
    bool token_given; /* the token was set by the operator: without it only loopback is allowed */
    size_t report_max_bytes;
    void (*wake)(void *arg); /* something was queued; called on HTTP threads */
    void *arg;
};

struct fr_server;
struct fr_ask { /* a queued request */
    struct fr_api_call call;
    char address[256]; /* for the cache, "" not cached */
};

/* Bind, listen, serve. -EADDRINUSE and others with a sentence; -EPERM for an address that needs TLS
 * and token. */
int fr_server_new(const struct fr_server_options *opt, struct fr_events *ev, struct fr_server **ret,
                  struct fr_err *err);
uint16_t fr_server_port(const struct fr_server *s);
/* The oldest queued request, NULL: none. It stays valid until it is answered. */
struct fr_ask *fr_server_take(struct fr_server *s);
/* Answer it; d: a reference is taken over. */
void fr_server_answer(struct fr_server *s, struct fr_ask *a, struct fr_doc *d);
struct fr_snapshots *fr_server_snapshots(struct fr_server *s);
/* Refuse what is queued and what comes, end streams, stop threads. */
void fr_server_free(struct fr_server *s);

#endif /* FR_CONTROL_HTTP_H */
