/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras.h - NCCL's RAS asked as a second witness, on loopback, only when the controller wants to know
 *
 * RAS is a thread in each NCCL process; one process of a node listens for questions and answers for
 * the whole job. An answer costs the job a round of messages through all of its processes, so an
 * agent asks only while it is told to (Reply.ras_poll_s: the job is quiet, and this is one of two
 * nodes that ask). That nobody listens is the normal case and is not spoken of.
 *
 * Whose word it is: the port alone says nothing, anybody may listen there. The listening socket
 * must be one of an admitted rank (its inode among the rank's open files); then its report is that
 * rank's job's own word on itself, which is a witness and never names anybody alone.
 *
 * One question proves little: counts differ all the time while ranks move. What is told on is what
 * stood in FR_RAS_POLLS answers in a row with no count of the communicator moving meanwhile, or
 * what RAS itself takes for final (it calls a process dead after a minute without a sign).
 *
 * Range:   FR_RAS_LIMITS; FR_RAS_WORDS processes.
 * Memory:  what ras_parse.h says, while an answer comes; the first FR_RAS_KEPT_BYTES of the newest
 *          report, for evidence.
 * Threads: fr_ras_query on any one thread; the track has one owner at a time.
 * Source:  NCCL user guide, "RAS" (client protocol) and NCCL_RAS_ADDR.
 */
#ifndef FR_AGENT_RAS_H
#define FR_AGENT_RAS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/ras_parse.h"
#include "base/buf.h"

#define FR_RAS_PORT        28028
#define FR_RAS_POLLS       3
#define FR_RAS_WORDS       64
#define FR_RAS_KEPT_BYTES  65536u
#define FR_RAS_LEG_S       3 /* what RAS itself is told to wait for its peers */
#define FR_RAS_RANKS_ASKED 256

/* --- where --- */

struct fr_ras_place {
    uint16_t port;
    bool v6;
};

/* The value of NCCL_RAS_ADDR ("localhost:28028", "127.0.0.1:1", "[::1]:1"); NULL or "": the
 * default. 0, or -EINVAL for what is not a place on loopback: such a one is not asked. */
int fr_ras_place_parse(const char *text, struct fr_ras_place *ret);

/* --- one question --- */

struct fr_ras_rank {
    uint32_t pid;
    uint64_t starttime;
};

struct fr_ras_limits {
    double line_s;   /* for a connection, and for each line of the handshake */
    double answer_s; /* for the report */
    uint64_t bytes;  /* of the report */
};
extern const struct fr_ras_limits FR_RAS_LIMITS; /* 1 s, 12 s, 256 MiB */

/* Asked and found; its owner frees it with fr_ras_answer_fini. */
struct fr_ras_answer {
    bool json;
    uint32_t owner; /* pid of the rank that listens */
    struct fr_ras_report report;
    struct fr_buf kept; /* the head of the report, as it came */
};

/* The pid among `ranks` that listens at that place. 0: found, -ENOENT: nobody listens, -EPERM: it
 * is none of them (or their open files may not be read). root: "" or a test's. */
int fr_ras_listener(const char *root, const struct fr_ras_place *at,
                    const struct fr_ras_rank *ranks, size_t n, uint32_t *ret_pid);

/* Ask. Blocks for at most some 16 s. 0, -ENOENT when nobody listens, or another -errno with a
 * sentence. */
int fr_ras_query(const struct fr_ras_place *at, const struct fr_ras_rank *ranks, size_t n,
                 const struct fr_ras_limits *limits, struct fr_ras_answer *ret, struct fr_err *err);
void fr_ras_answer_fini(struct fr_ras_answer *a);

/* --- over several answers --- */

struct fr_ras_word {
    struct fr_ras_fact fact;
    uint32_t polls;    /* answers in a row in which it stood */
    uint64_t since_ns; /* the first of them */
    bool seen;         /* in the newest answer */
};

struct fr_ras_track {
    struct fr_ras_word word[FR_RAS_FACTS];
    size_t n;
    uint64_t asked_ns; /* the newest answer */
};

/* Take an answer in. */
void fr_ras_track_take(struct fr_ras_track *t, const struct fr_ras_report *r, uint64_t now_ns);

/* What is to be told, one word a process, the gravest and longest that stands. Returns their number
 * (<= max). */
size_t fr_ras_track_words(const struct fr_ras_track *t, const struct fr_ras_word **ret, size_t max);

#endif /* FR_AGENT_RAS_H */
