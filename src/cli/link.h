/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - the supervisor's line to the controller: one request at a time, on a thread of its own
 *
 * The supervisor carries the job's error output and must notice the end of its processes at once;
 * it may never wait for a controller that is slow, stopped or gone. So requests are made by a
 * thread, and the supervisor's loop only hands over a packed report and picks up the answer when
 * the eventfd says so.
 *
 * Threads: fr_link_* from one thread, the owner.
 */
#ifndef FR_CLI_LINK_H
#define FR_CLI_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define FR_LINK_TIMEOUT_S 2.0

struct fr_link;

/* token may be NULL. */
int fr_link_new(const char *server, const char *token, struct fr_link **ret, struct fr_err *err);
/* Waits for a request under way, at most its timeout. */
void fr_link_free(struct fr_link *l);

int fr_link_fd(const struct fr_link *l); /* readable when an answer waits */
bool fr_link_idle(const struct fr_link *l);

/* Post n bytes to /api/v1/supervise; only when idle. */
void fr_link_post(struct fr_link *l, const void *p, size_t n);

/* Pick up the answer: the HTTP status, a negative errno when none came, 0 when there is nothing
 * yet. */
int fr_link_take(struct fr_link *l, struct fr_buf *reply, struct fr_err *err);

#endif /* FR_CLI_LINK_H */
