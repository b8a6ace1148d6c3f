/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - finished documents that several threads may read: immutable, counted references
 *
 * The loop thread renders a document and puts it into the cache under its address; HTTP threads
 * take it from there while it is fresh. A reader that is slow keeps its own reference and nothing
 * else.
 *
 * Threads: any.
 * Memory:  FR_SNAPSHOTS newest documents; older ones live as long as somebody reads them.
 */
#ifndef FR_CONTROL_SNAPSHOT_H
#define FR_CONTROL_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FR_SNAPSHOTS         64
#define FR_SNAPSHOT_FRESH_NS 200000000ull

struct fr_doc {
    _Atomic uint32_t refs;
    int status;
    const char *type; /* static */
    size_t len;
    char *p;
};
/* Takes the bytes out of b, which is empty then. One reference. */
struct fr_doc *fr_doc_new(struct fr_buf *b, int status, const char *type);
struct fr_doc *fr_doc_ref(struct fr_doc *d);
void fr_doc_unref(struct fr_doc *d);

struct fr_snapshots;
struct fr_snapshots *fr_snapshots_new(void);
void fr_snapshots_free(struct fr_snapshots *s);
/* Keep d (a reference is taken) as the newest one for the address. */
void fr_snapshots_put(struct fr_snapshots *s, const char *address, struct fr_doc *d,
                      uint64_t now_ns);
/* A reference to the document of that address when it is fresh, else NULL. */
struct fr_doc *fr_snapshots_get(struct fr_snapshots *s, const char *address, uint64_t now_ns);

/* None of those that were put is fresh any more: what a person has just changed shows in the next
 * answer. */
void fr_snapshots_outdate(struct fr_snapshots *s);

#endif /* FR_CONTROL_SNAPSHOT_H */
