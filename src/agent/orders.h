/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orders.h - what the controller last told this agent, checked and copied out of its Reply
 *
 * A Reply comes from outside: everything in it is bounded here once, so that no other file has
 * to doubt it. An order that breaks a bound is refused as a whole, and the old ones stay in force.
 *
 * Memory:  copies on the heap; fr_orders_fini frees them.
 * Threads: none; one owner at a time.
 */
#ifndef FR_AGENT_ORDERS_H
#define FR_AGENT_ORDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/job.h"

#define FR_ORDERS_REPLY_BYTES  (4u << 20)
#define FR_ORDERS_MEMORY_BYTES (16u << 20)
#define FR_ORDERS_ASSIGNMENTS  256
#define FR_ORDERS_RANKS        4096 /* on one node */
#define FR_ORDERS_COMMANDS     64
#define FR_ORDERS_LOOKS        64 /* ranks in one command */
#define FR_CGROUP_BYTES        512

/* Which processes are ranks of which job. */
struct fr_assignment {
    char job[FR_NAME_BYTES];
    uint32_t attempt;
    uint64_t epoch;
    uint32_t uid, session; /* session 0: told by cgroup */
    char cgroup[FR_CGROUP_BYTES];
    uint32_t *ranks;
    size_t nranks;
};

enum fr_command_kind { FR_COMMAND_COLLECT = 1, FR_COMMAND_TEST, FR_COMMAND_LOOK };

struct fr_command {
    uint64_t id;
    enum fr_command_kind kind;
    uint64_t incident, epoch; /* collect; look: epoch */
    bool dumps;               /* collect: ask processes for them */
    char job[FR_NAME_BYTES];
    char level[16];                  /* test */
    uint32_t probe_level;            /* look */
    double seconds;                  /* look */
    uint32_t ranks[FR_ORDERS_LOOKS]; /* look: these, or with none all */
    size_t nranks;
};

struct fr_orders {
    uint64_t controller_instance;
    uint64_t acked_seq;
    bool want_full;
    uint32_t keep_log2;
    uint64_t burst_until;
    double interval_s; /* 0: as before */
    double ras_poll_s; /* 0: RAS is not asked */
    struct fr_assignment *assignments;
    size_t nassignments;
    struct fr_command *commands;
    size_t ncommands;
    char error[256]; /* the controller refused the report: why; "" it did not */
};

void fr_orders_fini(struct fr_orders *o);

/* Unpack and check a Reply of n bytes. 0, or -EPROTO, -E2BIG with a sentence. */
int fr_orders_parse(const uint8_t *p, size_t n, struct fr_orders *ret, struct fr_err *err);

#endif /* FR_AGENT_ORDERS_H */
