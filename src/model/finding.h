/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finding.h - what the judge concludes: kind, subject, cause, confidence, evidence, cost
 *
 * A finding names the narrowest subject that its evidence supports. It is a statement about now: it
 * stands as long as the judge returns it; (kind, subject) is its identity, kept in `key`.
 *
 * Unit:    times in ns on the clock that the judge's caller passes as `now` (one clock for all).
 */
#ifndef FR_MODEL_FINDING_H
#define FR_MODEL_FINDING_H

#include <stdint.h>

enum fr_finding_kind {
    FR_FINDING_NONE = 0,
    FR_FINDING_DEAD, /* a process of the job is gone */
    FR_FINDING_HANG, /* ranks wait for one that does not come, or for an operation that does not end
                      */
    FR_FINDING_MISMATCH,   /* ranks are in different operations at one sequence: software */
    FR_FINDING_SLOW,       /* a rank or node is slower than those that do the same work */
    FR_FINDING_JOB_SLOW,   /* the whole job is slower than its own past; nobody's fault so far */
    FR_FINDING_STALL,      /* nothing moves and nobody is to blame: a legitimate stall until proved
                              otherwise */
    FR_FINDING_STRUCTURAL, /* a position of the grid is always slower: imbalance, isolates nobody */
    FR_FINDING_SILENT,     /* a node's agent is not heard of: unknown */
    FR_FINDING_KINDS
};

enum fr_subject_kind {
    FR_SUBJECT_JOB = 0,
    FR_SUBJECT_GROUP,
    FR_SUBJECT_NODE,
    FR_SUBJECT_RANK,
    FR_SUBJECT_DEVICE,
    FR_SUBJECT_LINK
};

enum fr_cause {
    FR_CAUSE_UNKNOWN = 0,
    FR_CAUSE_GPU,
    FR_CAUSE_HOST,
    FR_CAUSE_NETWORK,
    FR_CAUSE_STORAGE,
    FR_CAUSE_APPLICATION
};

/* Independent witnesses of a finding; law 2 counts them. Bits. */
enum fr_witness {
    FR_WITNESS_SILENCE =
        1 << 0, /* the rank does not come (never enough to act before the long limit) */
    FR_WITNESS_GONE = 1 << 1,      /* process dead */
    FR_WITNESS_STOPPED = 1 << 2,   /* process stopped (T) */
    FR_WITNESS_MISMATCH = 1 << 3,  /* other call than its peers */
    FR_WITNESS_PEERS = 1 << 4,     /* self time against peers of the same position */
    FR_WITNESS_PAST = 1 << 5,      /* self time against its own past in this attempt */
    FR_WITNESS_ARRIVAL = 1 << 6,   /* last to arrive in its groups, after pushing lateness back */
    FR_WITNESS_THROTTLED = 1 << 7, /* cgroup CPU throttling */
    FR_WITNESS_STARVED = 1 << 8,   /* run-queue wait on this node only */
    FR_WITNESS_MEMORY = 1 << 9,    /* memory pressure on this node only */
    FR_WITNESS_IO = 1 << 10,       /* blocked in D */
    FR_WITNESS_LAUNCHER = 1 << 11, /* the launcher's own word names it */
    FR_WITNESS_GPU = 1 << 12,
    FR_WITNESS_LINK = 1 << 13,
    FR_WITNESS_RAS = 1 << 14,     /* NCCL's RAS names it, too */
    FR_WITNESS_RAS_DEAD = 1 << 15 /* and takes it for dead: a minute without a sign of life */
};

#define FR_FINDING_LINES      6
#define FR_FINDING_LINE_BYTES 200

struct fr_finding {
    uint64_t key; /* identity of (kind, subject) within the epoch; never 0 */
    enum fr_finding_kind kind;
    enum fr_subject_kind subject;
    int32_t rank;        /* -1: none; for a node: its worst rank */
    int32_t node;        /* index in the attempt's node list, -1: none */
    uint64_t group_hash; /* members_hash of the communicator concerned, 0: none */
    uint32_t group_instance;
    enum fr_cause cause;
    double confidence;   /* 0..1 */
    uint32_t witnesses;  /* enum fr_witness bits */
    uint64_t since_ns;   /* onset as far as it can be told */
    uint64_t since_step; /* step of the onset, 0: not known */
    uint64_t quiet_ns;   /* hang, stall: how long nothing has moved for */
    double ratio;        /* slow: self time over peers'; 0 otherwise */
    double cost_ratio;   /* slow: step time now over step time before */
    double excess_s;     /* slow: what its self time exceeds its peers' by, a step; 0 otherwise */
    uint32_t victims;    /* ranks that wait for it */
    uint32_t nlines;
    char line[FR_FINDING_LINES][FR_FINDING_LINE_BYTES]; /* evidence, one sentence each */
};

const char *fr_finding_kind_name(enum fr_finding_kind k);
const char *fr_subject_name(enum fr_subject_kind s);
const char *fr_cause_name(enum fr_cause c);
/* Append the names of the witnesses, comma-separated, into text; returns text. */
char *fr_witness_names(uint32_t witnesses, char *text, uint32_t n);
/* 1 when the bits hold at least one witness beyond silence that sits on the process itself. */
int fr_witness_is_direct(uint32_t witnesses);
/* Number of independent witnesses: peers, past and arrival all come from the same timing of
 * collectives and count as one, so that timing alone never isolates a node. */
int fr_witness_count(uint32_t witnesses);

#endif /* FR_MODEL_FINDING_H */
