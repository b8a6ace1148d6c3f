/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras_parse.h - what NCCL's RAS says of a job, read as it comes
 *
 * A report on a large job has megabytes, comes from a socket that any process of the node may have
 * opened, and a few lines of it matter: who does not answer, who is taken for dead, and who has
 * launched fewer operations than the others of its communicator. The report is fed in pieces of any
 * size and only one communicator's counts are held at a time.
 *
 * Two formats: JSON (NCCL 2.28.7 and later) and the text that is written for people. The text lists
 * only the smaller groups of ranks: where those that lag are the larger one, it names none of them.
 *
 * Range:   strings are cut at 63 bytes; FR_RAS_RANKS ranks a communicator, FR_RAS_OPS operations;
 *          beyond that a communicator says nothing. At most FR_RAS_FACTS facts; FR_RAS_BEHIND of
 *          one communicator: where more lag than that, it is not they who lag.
 * Memory:  104 bytes a rank of the largest communicator, given back at the end.
 * Threads: none; one owner at a time.
 * Source:  NCCL user guide, "RAS" (sample output, JSON output); the protocol's words as observed in
 *          NCCL 2.24 to 2.30.
 */
#ifndef FR_AGENT_RAS_PARSE_H
#define FR_AGENT_RAS_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define FR_RAS_HOST_BYTES 64
#define FR_RAS_RANKS      65536u
#define FR_RAS_OPS        8
#define FR_RAS_FACTS      512
#define FR_RAS_BEHIND     64
#define FR_RAS_DEPTH      16

enum fr_ras_what { /* by rising gravity; the numbers are those of RasWord.what */
                   FR_RAS_NONE = 0,
                   FR_RAS_BEHIND_OTHERS,
                   FR_RAS_UNRESPONSIVE,
                   FR_RAS_DEAD
};

struct fr_ras_fact {
    enum fr_ras_what what;
    char host[FR_RAS_HOST_BYTES]; /* an address, as RAS gives it */
    uint32_t pid;                 /* as the process itself sees it */
    uint64_t comm;                /* NCCL's hash, 0: not said */
    int32_t comm_rank;            /* -1: not said */
    uint32_t comm_size;           /* 0: not said */
    uint64_t behind;              /* operations less than those that are furthest */
    uint64_t digest;              /* of all counts of that communicator: unchanged = no progress */
};

struct fr_ras_report {
    uint32_t comms, timeouts;
    uint32_t dropped; /* facts and communicators that were too many or too large */
    size_t nfacts;
    struct fr_ras_fact facts[FR_RAS_FACTS];
};

struct fr_ras_parser; /* in the middle of a report */

struct fr_ras_parser *fr_ras_parser_new(bool json);
void fr_ras_parser_free(struct fr_ras_parser *p);
void fr_ras_parser_freep(struct fr_ras_parser **p);

/* The next n bytes. 0, or -EBADMSG: it is no such report. */
int fr_ras_parser_feed(struct fr_ras_parser *p, const void *data, size_t n, struct fr_err *err);

/* The report has ended. 0 and *ret, or -EBADMSG when it ended in the middle. */
int fr_ras_parser_end(struct fr_ras_parser *p, struct fr_ras_report *ret, struct fr_err *err);

/* A whole report at once. */
int fr_ras_parse(bool json, const void *data, size_t n, struct fr_ras_report *ret,
                 struct fr_err *err);

#endif /* FR_AGENT_RAS_PARSE_H */
