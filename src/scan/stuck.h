/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck.h - who a hang is due to, from the dumps of its ranks
 *
 * The rules are those of the judge's stuck ranks, in the same order, asked of one standing picture
 * in place of a running job: dumps hold several operations under way at once and no state of the
 * process, which the judge's observations cannot carry. Pure: no input, no output, no clock.
 *
 * no_dump:            a rank left no readable dump, and others wait in an operation of a group that
 *                     it is a member of. Silence is evidence, with less confidence than the rest.
 * mismatch:           ranks are in different operations (or sizes, or types) at one sequence.
 * never_entered:      a member has not entered the oldest operation that others wait in, and waits
 *                     for nobody itself.
 * oldest_incomplete:  a member is still inside an operation that others have left; everybody
 * entered it. never_started:      all entered, and the operation has started on the GPUs of others
 * only.
 *
 * Point-to-point operations are numbered apart on each side, so they speak only where no collective
 * does: a send without a receive, or the other way round.
 *
 * Memory:  a few dozen bytes a member of a group with something incomplete.
 * Source:  detection rules of the design (never entered, oldest incomplete), exact on the four
 *          labelled runs of NVIDIA/nvidia-resiliency-ext, tests/attribution/unit/fr_traces.
 */
#ifndef FR_SCAN_STUCK_H
#define FR_SCAN_STUCK_H

#include "scan/recorder.h"

enum fr_stuck_rule {
    FR_STUCK_NONE = 0,
    FR_STUCK_NO_DUMP,
    FR_STUCK_MISMATCH,
    FR_STUCK_NEVER_ENTERED,
    FR_STUCK_OLDEST_INCOMPLETE,
    FR_STUCK_NEVER_STARTED,
    FR_STUCK_RULES
};

/* What the picture as a whole is. */
enum fr_stuck_state {
    FR_STUCK_IDLE = 0,    /* no operation is incomplete: the hang, if any, is outside of them */
    FR_STUCK_NAMED,       /* culprits were found */
    FR_STUCK_ALL_ENTERED, /* everybody is in, nobody leaves: the transport, or what lies under it */
    FR_STUCK_CIRCULAR /* ranks wait for each other in a circle: the order of operations differs */
};

#define FR_STUCK_EVIDENCE_BYTES 400

struct fr_stuck_culprit {
    int32_t rank;
    enum fr_stuck_rule rule;
    uint32_t group;   /* index in the recorder, UINT32_MAX: none */
    int64_t sequence; /* of the operation that others wait in, -1: none */
    double confidence;
    char evidence[FR_STUCK_EVIDENCE_BYTES]; /* one sentence */
};

struct fr_stuck_group { /* a group with an operation that does not end */
    uint32_t group;
    int64_t sequence; /* its oldest incomplete one */
    uint32_t op;      /* index in the recorder's names */
    uint32_t waiting, members;
};

struct fr_stuck {
    enum fr_stuck_state state;
    struct fr_stuck_culprit *culprits; /* most certain first, then rising rank */
    size_t nculprits, culprits_cap;
    struct fr_stuck_group *groups; /* oldest operation of their ranks first */
    size_t ngroups;
    uint32_t victims; /* ranks inside an operation that are no culprits */
};

const char *fr_stuck_rule_name(enum fr_stuck_rule rule);
const char *fr_stuck_state_name(enum fr_stuck_state state);

/* Judge a finished recorder. */
void fr_stuck_judge(const struct fr_recorder *rec, struct fr_stuck *ret);
void fr_stuck_fini(struct fr_stuck *s);

#endif /* FR_SCAN_STUCK_H */
