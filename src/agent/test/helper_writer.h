/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_writer.h - a small writer of segments for tests and benchmarks
 *
 * It lays out a file as wire/ring.h says, by itself: an independent second writer beside the
 * probe's, with counts small enough to wrap in a test, and claims that can be forged.
 */
#ifndef FR_AGENT_HELPER_WRITER_H
#define FR_AGENT_HELPER_WRITER_H

#include <stdint.h>

#include "wire/ring.h"

struct writer {
    uint8_t *base;
    struct fr_seg_header *h;
    struct fr_seg_step *steps;
    struct fr_seg_comm *comms;
    char path[512];
};

struct writer_claims {
    const char *job;
    uint32_t attempt;
    uint64_t epoch;
    int32_t rank, world;
};

/* Make the segment of the calling process in dir, or of a pid that is given (0: own). Aborts on
 * failure. */
void writer_open(struct writer *w, const char *dir, const struct writer_claims *c, uint32_t pid,
                 uint32_t lanes, uint32_t records);

/* Slot i becomes a communicator of `size` ranks 0..size-1. */
void writer_comm(struct writer *w, uint32_t i, uint64_t hash, uint32_t size, uint32_t rank,
                 const char *name);

/* The communicator of slot i was freed, and its slot given to the next one with the same members.
 */
void writer_comm_next(struct writer *w, uint32_t i);

/* One finished collective of `ns` that ended now, of that slot, within that step; progress moves
 * with it. */
void writer_collective(struct writer *w, uint32_t lane, uint32_t comm, uint32_t op, uint64_t bytes,
                       uint64_t ns, uint64_t step);

/* The thread is inside an operation now (FR_OP_NONE: outside). */
void writer_now(struct writer *w, uint32_t lane, uint32_t comm, uint32_t op, uint64_t seq);

void writer_step_begin(struct writer *w, uint64_t step);
void writer_step_end(struct writer *w, uint64_t step, double loss);

void writer_finalize(struct writer *w);
void writer_close(struct writer *w, int remove_file);

#endif /* FR_AGENT_HELPER_WRITER_H */
