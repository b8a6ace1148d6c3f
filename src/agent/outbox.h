/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox.h - what the next report will say, and the packing of it
 *
 * The loop adds what happened as it happens; a report takes all of it. It is packed in three
 * parts by how much they count (agent/spool.h): sent over the wire they simply follow each other.
 *
 * Memory:  messages and strings live in an arena that the packing resets; what is pointed to from
 * outside (names of a rank) must live until then. Threads: the loop's.
 */
#ifndef FR_AGENT_OUTBOX_H
#define FR_AGENT_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/spool.h"
#include "base/buf.h"
#include "wire/agent.pb-c.h"
#include "wire/record.h"

#define FR_OUTBOX_RECORD_BYTES                                                                     \
    (4u << 20) /* records of one report; steps beyond that are not forwarded */
#define FR_OUTBOX_EVIDENCE_BYTES (256u << 10)

/* Memory that is given back all at once. */
struct fr_arena {
    struct fr_arena_chunk *chunk;
};
void *fr_arena_get(struct fr_arena *a, size_t n); /* zeroed, aligned for anything */
char *fr_arena_text(struct fr_arena *a, const char *text);
void fr_arena_reset(struct fr_arena *a); /* keeps one chunk */
void fr_arena_fini(struct fr_arena *a);

/* A growing list of messages. */
struct fr_list {
    void **p;
    size_t n, cap;
};

struct fr_outbox {
    struct fr_arena arena;
    struct fr_list ranks, comms, progress, steps, spans, events, evidence, tests, ras;
    struct fr_buf records;
    uint64_t records_refused; /* records of kept steps that found no room */
    bool urgent;              /* do not wait for the interval */
};

/* One report, packed. Owner: whoever holds it. */
struct fr_outgoing {
    struct fr_outgoing *next;
    uint64_t seq;
    struct fr_buf part[FR_SPOOL_CLASSES];
};

void fr_outbox_fini(struct fr_outbox *ob);

/* A zeroed message of the outbox, already in its list; valid until the report is packed. */
Fullrank__Rank *fr_outbox_rank(struct fr_outbox *ob);
Fullrank__Comm *fr_outbox_comm(struct fr_outbox *ob);
Fullrank__Progress *fr_outbox_progress(struct fr_outbox *ob);
Fullrank__Step *fr_outbox_step(struct fr_outbox *ob, size_t ngroups);
Fullrank__Span *fr_outbox_span(struct fr_outbox *ob);
Fullrank__ProcEvent *fr_outbox_event(struct fr_outbox *ob);
Fullrank__TestResult *fr_outbox_test(struct fr_outbox *ob);
Fullrank__RasWord *fr_outbox_ras(struct fr_outbox *ob);
/* data is copied, cut at FR_OUTBOX_EVIDENCE_BYTES. */
Fullrank__Evidence *fr_outbox_evidence(struct fr_outbox *ob, const void *data, size_t n);

/* Forward the records of a whole step; 0 when there is no room for all of them. */
int fr_outbox_records(struct fr_outbox *ob, const struct fr_wire_record *r, size_t n);

/* Pack everything with the scalars of `head` (its lists are ignored) and empty the outbox. The
 * caller owns the result. */
struct fr_outgoing *fr_outbox_pack(struct fr_outbox *ob, const Fullrank__Report *head);

void fr_outgoing_free(struct fr_outgoing *o);
size_t fr_outgoing_bytes(const struct fr_outgoing *o);

#endif /* FR_AGENT_OUTBOX_H */
