/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit.h - is this segment the rank that it claims to be? (law 11)
 *
 * A segment is a file that any user could have written. It is believed only when the kernel's word
 * about its owner and its process agrees with an assignment of the controller, and its own claims
 * agree with both. The decision is a pure function of claims, facts and assignments; reading the
 * facts is apart.
 *
 * Threads: none.
 */
#ifndef FR_AGENT_ADMIT_H
#define FR_AGENT_ADMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/orders.h"

/* What the segment says of itself. */
struct fr_claims {
    uint32_t pid, uid;
    uint64_t starttime;
    int32_t rank, world; /* -1: not known yet */
    uint32_t attempt;
    uint64_t epoch;
    char job[FR_NAME_BYTES]; /* NUL-terminated */
};

/* What the kernel says. */
struct fr_facts {
    uint32_t file_pid; /* from the name of the file */
    uint32_t file_uid; /* owner of the file */
    bool alive;        /* there is such a process now, and it did not end while the rest was read */
    uint32_t uid;      /* of the process; these three only when alive */
    uint32_t session;
    uint64_t starttime;
    uint64_t cgroup_of; /* bit i: the process is in the cgroup of assignment i (i < 64) */
};

enum fr_verdict {
    FR_ADMIT_YES = 0,
    FR_ADMIT_DEAD,  /* believed, but its process has ended (the agent was away): a death to be told
                     */
    FR_ADMIT_LATER, /* says nothing against it, but no assignment or no rank is there yet */
    FR_ADMIT_STALE, /* left behind by an older epoch of a job that is assigned */
    /* refused: */
    FR_ADMIT_UID,
    FR_ADMIT_SESSION,
    FR_ADMIT_STARTTIME,
    FR_ADMIT_PID,
    FR_ADMIT_EPOCH,
    FR_ADMIT_RANK,
    FR_ADMIT_VERDICTS
};

/* Decide; on YES, DEAD and STALE *ret_assignment is the index of the assignment that covers it. */
enum fr_verdict fr_admit(const struct fr_claims *c, const struct fr_facts *f,
                         const struct fr_assignment *a, size_t n, size_t *ret_assignment);

/* "the owner of the file, ..." for the log. */
const char *fr_verdict_text(enum fr_verdict v);

static inline bool fr_verdict_is_refusal(enum fr_verdict v)
{
    return v >= FR_ADMIT_UID;
}

/* Read the facts about the process of a segment. The order of reading makes a reused pid show:
 * starttime is read last. */
void fr_facts_read(uint32_t pid, uint32_t file_uid, const struct fr_assignment *a, size_t n,
                   struct fr_facts *ret);

#endif /* FR_AGENT_ADMIT_H */
