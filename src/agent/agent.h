/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent.h - the daemon of one node: one loop thread that owns everything but the sender
 *
 *   tick (about 20 times a second)   watch.c: new and gone segments; rank*.c: drain, fold, state
 *   a pidfd is readable              a rank has ended: told at once
 *   interval, or something urgent    report.c: pack what there is, hand it to the sender
 *   news from the sender             orders: assignments, what to keep, commands (command.c)
 *
 * The loop never waits for the network or for the disk of the spool; what may block runs on libuv's
 * worker threads (evidence, node tests).
 *
 * Threads: all fields are the loop's.
 */
#ifndef FR_AGENT_AGENT_H
#define FR_AGENT_AGENT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <uv.h>

#include "agent/levels.h"
#include "agent/orders.h"
#include "agent/outbox.h"
#include "agent/rank.h"
#include "agent/sender.h"
#include "base/err.h"
#include "base/rng.h"

#define FR_AGENT_SEGMENTS      1024 /* files looked at in one folder */
#define FR_AGENT_SEEN          128  /* commands remembered */
#define FR_AGENT_ADDRESSES     32
#define FR_AGENT_DRAIN_LIMIT_S 1.3 /* SIGTERM: time for the last reports */
#define FR_AGENT_GRACE_NS                                                                          \
    5000000000ull /* a new controller is given so long to know the jobs again */
#define FR_AGENT_REFUSE_NS 2000000000ull /* a segment that nobody assigns is refused after this */

struct fr_agent_options {
    const char *node, *rack, *machine_id, *engine;
    const char *url, *token; /* token NULL: none */
    const char *probe_dir, *spool_dir;
    uint64_t spool_bytes;
    double interval_s, drain_s, timeout_s;
    uint32_t ranks_max;
};

struct fr_agent {
    struct fr_agent_options opt;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_async_t news;
    uv_signal_t sigterm, sigint;
    bool stopping;
    struct fr_sender *sender;
    struct fr_outbox outbox;
    struct fr_rank_tools tools;
    struct fr_rng rng; /* of the tick: regular looks at a process that is stopped and let go
                          regularly would see one half only */

    int dir_fd;
    struct timespec dir_mtime;
    uint64_t dir_scanned_ns, checked_ns;
    struct fr_rank *ranks;
    uint32_t nranks;
    uint32_t refused; /* segments refused since the start */

    struct fr_orders orders; /* in force */
    bool has_orders, orders_changed;
    uint64_t grace_until_ns;
    uint64_t seen[FR_AGENT_SEEN];
    size_t nseen; /* counts up */
    int working;  /* jobs on worker threads */

    struct fr_levels levels;

    uint64_t instance, seq, interval_ns, report_at_ns;
    bool want_full;
    char boot_id[48], host[64];
    uint64_t records_gone, lost_gone; /* of ranks that are no longer held */
    struct fr_sense *pressure;
    struct fr_sense_value pressure_values[8];
    uint64_t pressure_ns, self_ns, rss_bytes;
    struct fr_ras_watch *ras;                           /* NULL until RAS was asked */
    char address[FR_AGENT_ADDRESSES][INET6_ADDRSTRLEN]; /* of this node's interfaces */
    size_t naddresses;
};

/* Run until SIGTERM or SIGINT. 0, or -errno with a sentence when it could not start. */
int fr_agent_run(const struct fr_agent_options *opt, struct fr_err *err);

/* watch.c */
void fr_watch_tick(struct fr_agent *a, uint64_t now_ns); /* files, admission, retirement */
void fr_watch_close(struct fr_agent *a);

/* report.c */
void fr_report_make(struct fr_agent *a, uint64_t now_ns);

/* ras_watch.c */
void fr_ras_watch_tick(struct fr_agent *a, uint64_t now_ns);
/* Put what stands into the outbox. */
void fr_ras_watch_report(struct fr_agent *a);
/* The head of RAS's newest report on that job, NULL: none; *ret_json: its format. */
const struct fr_buf *fr_ras_watch_kept(const struct fr_agent *a, const char *job, uint64_t epoch,
                                       bool *ret_json);
void fr_ras_watch_free(struct fr_agent *a);

/* command.c */
void fr_command_start(struct fr_agent *a, const struct fr_command *c);

#endif /* FR_AGENT_AGENT_H */
