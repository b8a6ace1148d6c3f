/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.h - the agent's reader of one rank's shared segment
 *
 * The segment belongs to a process that may write anything into it, cut it short or die
 * in the middle of a store. So nothing is mapped: each look is a pread into memory of ours, checked
 * there, and taken only when two looks agree. The writer is never waited for.
 *
 * Unit:    nanoseconds are CLOCK_MONOTONIC; ticks are the segment's own counter.
 * Range:   offsets and counts are checked at open and may not change afterwards; of the rest
 *          only what is named at each function is checked.
 * Error:   a time is within the time between two counter reads (< 1 us) plus 1e-6 of its age.
 * Memory:  one allocation at open: 26 KiB + 256 bytes a communicator slot (90 KiB by default).
 * Threads: none; one owner at a time.
 * Cost:    a rank that did nothing since: one pread by refresh, one a used lane by drain, none
 *          by comms.
 */
#ifndef FR_WIRE_SEGMENT_H
#define FR_WIRE_SEGMENT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/ring.h"

#define FR_SEG_MAX_LANES 64 /* a reader refuses more */
#define FR_SEG_MAX_COMMS 1024

struct fr_segment;

/* Called for each record, oldest first within a lane; `record` is good for the call. Its comm is
 * a slot below comm_count or FR_COMM_NONE, and t_enq <= t_start <= t_end holds unless
 * FR_REC_GPU_CLOCK is set (then only t_start <= t_end). Other fields are as the rank wrote them. */
typedef void fr_segment_record_fn(void *arg, uint32_t lane, uint64_t index,
                                  const struct fr_record *record);

/* Open the segment `name` of the directory `dirfd` and check it. `owner` is the uid that the file
 * must have, (uid_t)-1: any. Returns 0; -ENOENT, -EACCES and others of openat; -EPERM: another
 * owner or no plain file; -EPROTO: no segment, a version that is not read here, or a layout that
 * contradicts itself; -ESTALE: shorter than it says. */
int fr_segment_open(int dirfd, const char *name, uid_t owner, struct fr_segment **ret,
                    struct fr_err *err);

/* Close and free; NULL is fine. */
void fr_segment_free(struct fr_segment *s);

/* Read the header again and take a new pair of clocks. Returns 0; 1 when the marks were being
 * written each time (the older ones are kept); -ESTALE, -EPROTO: truncated or its layout changed.
 */
int fr_segment_refresh(struct fr_segment *s, struct fr_err *err);

/* The newest header; strings are terminated, counts in use are within the layout. */
const struct fr_seg_header *fr_segment_header(const struct fr_segment *s);

/* The file's owner, which the rank cannot forge. */
uid_t fr_segment_owner(const struct fr_segment *s);

/* Give all records since the last drain to fn. *ret_lost (may be NULL) receives how many were
 * overwritten before they could be read. Returns how many were given, or -ESTALE. */
int64_t fr_segment_drain(struct fr_segment *s, fr_segment_record_fn *fn, void *arg,
                         uint64_t *ret_lost, struct fr_err *err);

/* Go on from the newest records, without those that are there. Returns 0 or -ESTALE. */
int fr_segment_skip(struct fr_segment *s, struct fr_err *err);

/* A lane as drain saw it last. Its `now` is whole: an older one stays when the thread was too
 * fast to be caught. Returns 0, -ENOENT when the lane was never used. */
int fr_segment_lane(const struct fr_segment *s, uint32_t lane, struct fr_seg_lane *ret);

/* Read the communicator table again, if a lane moved since. Returns how many slots are in use,
 * or -ESTALE. A slot that could not be read whole keeps its older content. */
int fr_segment_comms(struct fr_segment *s, struct fr_err *err);

/* A slot as comms() saw it last, NULL: not in use. The name is terminated; nruns is within
 * FR_COMM_RUNS and the runs add up to size, or nruns is 0. */
const struct fr_seg_comm *fr_segment_comm(const struct fr_segment *s, uint32_t slot);

/* Read one step. Returns 0; -ENOENT: not (or no longer) held; -EAGAIN: being written; -ESTALE. */
int fr_segment_step(struct fr_segment *s, uint64_t step, struct fr_seg_step *ret,
                    struct fr_err *err);

/* Ticks of this segment as CLOCK_MONOTONIC; 0 for ticks before the clock's start. */
uint64_t fr_segment_ns(const struct fr_segment *s, uint64_t ticks);

#endif /* FR_WIRE_SEGMENT_H */
