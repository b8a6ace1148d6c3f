/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sender.h - the one thread that talks to the controller and to the spool's disk
 *
 * The loop hands over packed reports and never waits. The sender delivers them in order, keeps each
 * until the controller has acknowledged it, and writes them to the spool when the controller does
 * not answer. When it is back the spool is sent in order, in slices between the live reports, so
 * that a long outage does not hide the present.
 *
 * Memory:  reports in memory up to FR_SENDER_MEMORY_BYTES; beyond that detail is given up first,
 * and counted. Threads: fr_sender_push, _take and _figures from the loop; everything else is the
 * sender's own. They meet in one mutex that is never held over a request or a write.
 */
#ifndef FR_AGENT_SENDER_H
#define FR_AGENT_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/orders.h"
#include "agent/outbox.h"
#include "base/err.h"

#define FR_SENDER_MEMORY_BYTES (4u << 20)
#define FR_SENDER_PATH         "/api/v1/agent/report"

struct fr_sender_options {
    const char *url, *token;
    const char *spool_dir;
    uint64_t spool_bytes;
    double timeout_s;
    uint64_t instance;         /* of this agent */
    void (*notify)(void *arg); /* from the sender's thread: there is something to take */
    void *arg;
};

struct fr_sender; /* running */

/* What the sender tells the loop. */
struct fr_sender_news {
    struct fr_orders *orders; /* newest, NULL: none new; the taker owns it (fr_orders_fini, free) */
    bool was_away;            /* reports went to the spool since the last news */
};

struct fr_sender_figures {
    uint64_t spool_bytes, spool_dropped, queue_bytes, delivered;
    bool online;
};

int fr_sender_start(const struct fr_sender_options *opt, struct fr_sender **ret,
                    struct fr_err *err);

/* Hand over a report (takes it). Never blocks. */
void fr_sender_push(struct fr_sender *s, struct fr_outgoing *o);

void fr_sender_take(struct fr_sender *s, struct fr_sender_news *ret);
void fr_sender_figures(struct fr_sender *s, struct fr_sender_figures *ret);

/* Deliver what is there for at most limit_s, write the rest to the spool, end the thread and free.
 * Should a request hang beyond that, the caller's thread writes the spool itself and the thread is
 * left behind (the process is ending): returns -ETIMEDOUT then. */
int fr_sender_stop(struct fr_sender *s, double limit_s);

#endif /* FR_AGENT_SENDER_H */
