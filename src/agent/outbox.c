/* SPDX-License-Identifier: Apache-2.0 */
/* outbox.c - see outbox.h */
#include "agent/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "wire/message.h"

#define CHUNK_BYTES 16384u

struct fr_arena_chunk {
    struct fr_arena_chunk *older;
    size_t used, size;
    _Alignas(16) char p[];
};

void *fr_arena_get(struct fr_arena *a, size_t n)
{
    struct fr_arena_chunk *c = a->chunk;
    void *p;

    n = (n + 15) & ~(size_t)15;
    if (!c || c->size - c->used < n) {
        size_t size = n > CHUNK_BYTES ? n : CHUNK_BYTES;

        c = fr_xalloc(sizeof *c + size);
        c->size = size;
        c->older = a->chunk;
        a->chunk = c;
    }
    p = c->p + c->used;
    c->used += n;
    memset(p, 0, n);
    return p;
}

char *fr_arena_text(struct fr_arena *a, const char *text)
{
    size_t n = strlen(text) + 1;

    return memcpy(fr_arena_get(a, n), text, n);
}

void fr_arena_fini(struct fr_arena *a)
{
    while (a->chunk) {
        struct fr_arena_chunk *older = a->chunk->older;

        free(a->chunk);
        a->chunk = older;
    }
}

void fr_arena_reset(struct fr_arena *a)
{
    struct fr_arena_chunk *c = a->chunk;

    while (c && (c->older || c->size > CHUNK_BYTES)) { /* keep the first one, of the usual size */
        struct fr_arena_chunk *older = c->older;

        free(c);
        c = older;
    }
    if (c)
        c->used = 0;
    a->chunk = c;
}

static void add(struct fr_list *l, void *p)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 16;
        l->p = fr_xreallocarray(l->p, l->cap, sizeof *l->p);
    }
    l->p[l->n++] = p;
}

void fr_outbox_fini(struct fr_outbox *ob)
{
    struct fr_list *lists[] = {&ob->ranks,  &ob->comms,    &ob->progress, &ob->steps, &ob->spans,
                               &ob->events, &ob->evidence, &ob->tests,    &ob->ras};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        free(lists[i]->p);
    fr_buf_fini(&ob->records);
    fr_arena_fini(&ob->arena);
    memset(ob, 0, sizeof *ob);
}

/* Each function: take the message from the arena, give it its defaults, put it into its list. */
#define MAKE(list, type, init)                                                                     \
    do {                                                                                           \
        type *m_ = fr_arena_get(&ob->arena, sizeof *m_);                                           \
        init(m_);                                                                                  \
        add(&ob->list, m_);                                                                        \
        return m_;                                                                                 \
    } while (0)

Fullrank__Rank *fr_outbox_rank(struct fr_outbox *ob)
{
    MAKE(ranks, Fullrank__Rank, fullrank__rank__init);
}

Fullrank__Comm *fr_outbox_comm(struct fr_outbox *ob)
{
    MAKE(comms, Fullrank__Comm, fullrank__comm__init);
}

Fullrank__Progress *fr_outbox_progress(struct fr_outbox *ob)
{
    MAKE(progress, Fullrank__Progress, fullrank__progress__init);
}

Fullrank__Span *fr_outbox_span(struct fr_outbox *ob)
{
    MAKE(spans, Fullrank__Span, fullrank__span__init);
}

Fullrank__ProcEvent *fr_outbox_event(struct fr_outbox *ob)
{
    MAKE(events, Fullrank__ProcEvent, fullrank__proc_event__init);
}

Fullrank__TestResult *fr_outbox_test(struct fr_outbox *ob)
{
    MAKE(tests, Fullrank__TestResult, fullrank__test_result__init);
}

Fullrank__RasWord *fr_outbox_ras(struct fr_outbox *ob)
{
    MAKE(ras, Fullrank__RasWord, fullrank__ras_word__init);
}

Fullrank__Step *fr_outbox_step(struct fr_outbox *ob, size_t ngroups)
{
    Fullrank__Step *s = fr_arena_get(&ob->arena, sizeof *s);

    fullrank__step__init(s);
    s->groups = fr_arena_get(&ob->arena, (ngroups + 1) * sizeof *s->groups);
    for (size_t i = 0; i < ngroups; i++) {
        s->groups[i] = fr_arena_get(&ob->arena, sizeof **s->groups);
        fullrank__group_sum__init(s->groups[i]);
    }
    s->n_groups = ngroups;
    add(&ob->steps, s);
    return s;
}

Fullrank__Evidence *fr_outbox_evidence(struct fr_outbox *ob, const void *data, size_t n)
{
    Fullrank__Evidence *e = fr_arena_get(&ob->arena, sizeof *e);

    fullrank__evidence__init(e);
    e->data.len = n < FR_OUTBOX_EVIDENCE_BYTES ? n : FR_OUTBOX_EVIDENCE_BYTES;
    e->data.data = fr_arena_get(&ob->arena, e->data.len + 1);
    if (e->data.len)
        memcpy(e->data.data, data, e->data.len);
    add(&ob->evidence, e);
    return e;
}

int fr_outbox_records(struct fr_outbox *ob, const struct fr_wire_record *r, size_t n)
{
    if (n * sizeof *r > FR_OUTBOX_RECORD_BYTES - ob->records.len) {
        ob->records_refused += n;
        return 0;
    }
    if (n)
        fr_buf_add(&ob->records, r, n * sizeof *r);
    return 1;
}

struct fr_outgoing *fr_outbox_pack(struct fr_outbox *ob, const Fullrank__Report *head)
{
    struct fr_outgoing *o = fr_xalloc(sizeof *o);
    Fullrank__Report base = *head, state = FULLRANK__REPORT__INIT, detail = FULLRANK__REPORT__INIT;
    struct fr_list *lists[] = {&ob->ranks,  &ob->comms,    &ob->progress, &ob->steps, &ob->spans,
                               &ob->events, &ob->evidence, &ob->tests,    &ob->ras};

    o->seq = head->seq;
    base.comms = (Fullrank__Comm **)ob->comms.p, base.n_comms = ob->comms.n;
    base.steps = (Fullrank__Step **)ob->steps.p, base.n_steps = ob->steps.n;
    base.spans = (Fullrank__Span **)ob->spans.p, base.n_spans = ob->spans.n;
    base.events = (Fullrank__ProcEvent **)ob->events.p, base.n_events = ob->events.n;
    base.evidence = (Fullrank__Evidence **)ob->evidence.p, base.n_evidence = ob->evidence.n;
    base.tests = (Fullrank__TestResult **)ob->tests.p, base.n_tests = ob->tests.n;
    state.ranks = (Fullrank__Rank **)ob->ranks.p, state.n_ranks = ob->ranks.n;
    state.progress = (Fullrank__Progress **)ob->progress.p, state.n_progress = ob->progress.n;
    state.ras = (Fullrank__RasWord **)ob->ras.p, state.n_ras = ob->ras.n;
    detail.records = (ProtobufCBinaryData){ob->records.len, (uint8_t *)ob->records.p};
    fr_message_pack(&base.base, &o->part[FR_SPOOL_BASE]);
    fr_message_pack(&state.base, &o->part[FR_SPOOL_STATE]);
    fr_message_pack(&detail.base, &o->part[FR_SPOOL_DETAIL]);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        lists[i]->n = 0;
    if (ob->records.cap > 1u << 16) /* a burst: do not hold its memory for ever */
        fr_buf_fini(&ob->records);
    fr_buf_reset(&ob->records);
    fr_arena_reset(&ob->arena);
    ob->urgent = false;
    return o;
}

void fr_outgoing_free(struct fr_outgoing *o)
{
    if (!o)
        return;
    for (int i = 0; i < FR_SPOOL_CLASSES; i++)
        fr_buf_fini(&o->part[i]);
    free(o);
}

size_t fr_outgoing_bytes(const struct fr_outgoing *o)
{
    size_t n = sizeof *o;

    for (int i = 0; i < FR_SPOOL_CLASSES; i++)
        n += o->part[i].len;
    return n;
}
