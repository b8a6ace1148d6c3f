/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - every record of one rank, folded into sums of its step
 *
 * Few records can be forwarded, but self time and blame need them all: the agent adds each one
 * to the sums of (communicator, operation) of its step, and keeps the records themselves only for
 * steps that the controller wants whole. A step whose records were lost in part says nothing: it
 * has no sums.
 *
 * Unit:    nanoseconds, bytes.
 * Range:   at most FR_FOLD_OPEN steps open and FR_FOLD_GROUPS sums a step; beyond that a step
 * counts as torn. Memory:  about 3 KiB an open step, taken when it opens; records only of kept
 * steps. Threads: none; one owner at a time.
 */
#ifndef FR_AGENT_FOLD_H
#define FR_AGENT_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

#define FR_FOLD_OPEN    64 /* after an outage a whole ring of steps is read at once */
#define FR_FOLD_GROUPS  64
#define FR_FOLD_RECORDS 8192 /* records of one kept step */

struct fr_fold_group {
    uint64_t members_hash;
    uint32_t instance, op, count;
    uint64_t bytes, duration_ns, min_ns;
};

/* When an operation ran on a GPU. */
struct fr_fold_span {
    uint64_t begin_ns, end_ns;
};

struct fr_fold_step {
    uint64_t step;
    bool ended; /* its end was seen */
    bool torn;  /* some of its records are missing: sums and records say nothing */
    bool kept;
    uint64_t begin_ns, end_ns; /* meaningful once ended */
    size_t ngroups, nrecords, cap;
    struct fr_fold_group groups[FR_FOLD_GROUPS];
    struct fr_wire_record *records; /* of a kept step that is not torn */
    struct fr_fold_span *gpu;       /* of a step that is not torn, at most FR_FOLD_RECORDS */
    size_t ngpu, gpu_cap;
};

struct fr_fold {
    struct fr_fold_step *open[FR_FOLD_OPEN]; /* no order; NULL: free */
    bool torn;            /* records were lost, and no end of a step was seen since */
    uint64_t closed;      /* newest step that was closed; older ones are not opened again */
    uint32_t keep_log2;   /* keep the records of steps n with n mod 2^keep_log2 == 0 */
    uint64_t burst_until; /* and of all steps up to here */
    uint64_t records;     /* folded or seen outside of steps */
    uint64_t evicted;     /* steps given up for want of room */
};

void fr_fold_init(struct fr_fold *f);
void fr_fold_fini(struct fr_fold *f);

/* From now on steps are kept by this rule; a step that is open already keeps what was said when it
 * opened. */
void fr_fold_keep(struct fr_fold *f, uint32_t keep_log2, uint64_t burst_until);

/* 1 when the records of that step are kept. */
int fr_fold_is_kept(const struct fr_fold *f, uint64_t step);

/* Add one record; FR_OP_STEP (seq = step) ends its step. Records of no step are only counted. */
void fr_fold_record(struct fr_fold *f, const struct fr_wire_record *r);

/* Records before the next one were lost. */
void fr_fold_lost(struct fr_fold *f);

/* The open step of that number, or NULL. Valid until the next call that changes f. */
const struct fr_fold_step *fr_fold_find(const struct fr_fold *f, uint64_t step);

/* Time in which at least one operation ran on a GPU. */
uint64_t fr_fold_gpu_ns(const struct fr_fold_step *s);

/* Drop that step and all older ones; they will not open again. */
void fr_fold_close(struct fr_fold *f, uint64_t step);

#endif /* FR_AGENT_FOLD_H */
