/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spool.h - reports that could not be delivered, on disk, until they can
 *
 * A report comes in up to three parts, by how much they count: what must not be lost (steps,
 * events, spans, evidence), what shows progress, and single records. Each part is a frame of its
 * own, so that when the file is full the oldest detail can go first: records, then progress, and
 * only at last the rest. The parts of one report are put together again by plain concatenation,
 * which is how protobuf merges.
 *
 * One file, `spool`: frames {magic, class, length, report key, checksum, payload}. A frame that was
 * torn by a crash ends the readable part; it is cut off when the file is opened. When the file
 * would grow beyond its bound it is rewritten without the oldest detail, beside itself, and
 * renamed.
 *
 * Range:   payloads up to FR_SPOOL_FRAME_BYTES.
 * Threads: one owner; its calls block on the disk.
 */
#ifndef FR_AGENT_SPOOL_H
#define FR_AGENT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define FR_SPOOL_FRAME_BYTES (24u << 20)

enum fr_spool_class { FR_SPOOL_BASE = 0, FR_SPOOL_STATE, FR_SPOOL_DETAIL, FR_SPOOL_CLASSES };

struct fr_spool; /* open */

struct fr_spool_key {
    uint64_t instance; /* of the agent that made the report */
    uint64_t seq;
};

/* Open or make `dir`/spool, bounded to max_bytes; a torn tail is cut off. 0 or -errno. */
int fr_spool_open(const char *dir, uint64_t max_bytes, struct fr_spool **ret, struct fr_err *err);
void fr_spool_close(struct fr_spool *sp);
void fr_spool_closep(struct fr_spool **sp);

/* Append one part. 0; -ENOSPC or another -errno when the disk does not take it: the file is as
 * before then. */
int fr_spool_append(struct fr_spool *sp, struct fr_spool_key key, enum fr_spool_class cls,
                    const void *p, size_t n);

/* The next report behind the read position: all its parts, concatenated into out (emptied first),
 * the position moved behind it. 1, or 0 at the end, or -errno. */
int fr_spool_next(struct fr_spool *sp, struct fr_spool_key *ret_key, struct fr_buf *out);

/* Go back to the first report. */
void fr_spool_rewind(struct fr_spool *sp);

/* Everything up to the read position has been delivered: give its room back once nothing is behind
 * it. */
void fr_spool_delivered(struct fr_spool *sp);

bool fr_spool_is_empty(const struct fr_spool *sp); /* nothing behind the read position */
uint64_t fr_spool_bytes(const struct fr_spool *sp);
uint64_t fr_spool_dropped(
    const struct fr_spool *sp); /* parts given up for want of room, since it was opened */

#endif /* FR_AGENT_SPOOL_H */
