/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_records.c - a rank's records, from its segment into the fold and the outbox
 *
 * A step is told once its slot says that it has ended and its records are here. The slots (the
 * newest 256 steps) are the backbone: when the agent was away they still tell every step; sums by
 * communicator and whole records are added where the ring still holds all of the step.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rank.h"
#include "base/xalloc.h"
#include "model/op.h"

#define REFRESH_NS 180000000ull
/* Launches run ahead of the GPU: records of a step come behind its end. Until so many newer ones
 * have begun, or so much time has gone by. */
#define GPU_BEHIND_STEPS 2
#define GPU_BEHIND_NS    1000000000ull

/* The 64-bit number nearest to `near` that ends in the 32 bits `low`. */
static uint64_t widen(uint64_t near, uint32_t low)
{
    return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

static void take(void *arg, uint32_t lane, uint64_t index, const struct fr_record *record)
{
    struct fr_rank_tools *t = arg;

    if (t->nscratch == t->scratch_cap) {
        if (t->scratch_cap >= FR_RANK_SCRATCH)
            return; /* shows as a gap in the indexes: counted as lost */
        t->scratch_cap = t->scratch_cap ? 2 * t->scratch_cap : 512;
        t->scratch = fr_xreallocarray(t->scratch, t->scratch_cap, sizeof *t->scratch);
        t->scratch_lane =
            fr_xreallocarray(t->scratch_lane, t->scratch_cap, sizeof *t->scratch_lane);
        t->scratch_index =
            fr_xreallocarray(t->scratch_index, t->scratch_cap, sizeof *t->scratch_index);
    }
    t->scratch[t->nscratch] = *record;
    t->scratch_lane[t->nscratch] = lane;
    t->scratch_index[t->nscratch] = index;
    t->nscratch++;
}

/* Communicators that were made since the table was read last. With all slots handed out a new one
 * may have got the slot of a freed one: then the table is read behind each batch of records, so
 * that it is never older than they are. */
static void know_comms(struct fr_rank *r)
{
    const struct fr_seg_header *h = fr_segment_header(r->segment);
    uint32_t used = h->comm_used;

    if (r->comms_known == used && used < h->comm_count)
        return;
    if (fr_segment_comms(r->segment, NULL) < 0)
        return;
    for (uint32_t i = r->comms_known; i < used; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(r->segment, i);

        if (!c) { /* handed out, not written yet: look again */
            r->comms_known = i;
            return;
        }
        r->comms[i].seq_near = c->enqueued;
    }
    r->comms_known = used;
}

static void add_span(const struct fr_rank *r, struct fr_outbox *ob, const struct fr_record *rec)
{
    Fullrank__Span *m;

    if (rec->seq > 64) /* no phase that anyone knows */
        return;
    m = fr_outbox_span(ob);
    m->job = fr_arena_text(&ob->arena, r->claims.job);
    m->attempt = r->claims.attempt;
    m->epoch = r->claims.epoch;
    m->rank = (uint32_t)r->claims.rank;
    m->phase = rec->seq;
    m->begin_ns = fr_segment_ns(r->segment, rec->t_start);
    m->end_ns = fr_segment_ns(r->segment, rec->t_end);
}

/* The GPU's clock as the node's own, by the offset that the probe found. Where none is known only
 * the duration is: it is laid behind the enqueueing. */
static void place_gpu_times(const struct fr_seg_comm *c, const struct fr_record *rec,
                            struct fr_wire_record *w)
{
    uint64_t took = rec->t_end - rec->t_start, off = c ? (uint64_t)c->gpu_offset_ns : 0;

    w->start_ns = off ? rec->t_start + off : w->enq_ns;
    if (w->start_ns < w->enq_ns) /* by the clocks' error */
        w->start_ns = w->enq_ns;
    w->end_ns = w->start_ns + took;
    if (w->end_ns < w->start_ns)
        w->end_ns = w->start_ns;
}

static void fold_record(struct fr_rank *r, const struct fr_record *rec, struct fr_outbox *ob)
{
    const struct fr_seg_comm *c = fr_segment_comm(r->segment, rec->comm);
    uint64_t step_near = fr_segment_header(r->segment)->step;
    struct fr_wire_record w = {0};

    if (rec->op == FR_OP_PHASE) {
        add_span(r, ob, rec);
        return;
    }
    if (rec->op > FR_OP_MAX)
        return;
    if (c && rec->t_enq < c->t_since)
        c = NULL; /* of the one that had this slot before: it is not known any more */
    w.op = rec->op;
    w.dtype = rec->dtype;
    w.flags = rec->flags;
    w.bytes = rec->bytes;
    w.rank = (uint32_t)r->claims.rank;
    w.peer = rec->peer;
    w.step = rec->op == FR_OP_STEP ? widen(step_near, rec->seq)
             : rec->step           ? widen(step_near, rec->step)
                                   : 0;
    if (c) {
        struct fr_rank_comm *k = &r->comms[rec->comm];

        w.members_hash = c->members_hash;
        w.instance = c->instance;
        w.seq = rec->seq;
        if (fr_op_is_collective(rec->op)) {
            w.seq = widen(k->seq_near, rec->seq);
            k->seq_near = w.seq;
        }
    } else {
        w.seq = rec->op == FR_OP_STEP ? w.step : rec->seq;
    }
    w.enq_ns = fr_segment_ns(r->segment, rec->t_enq);
    if (rec->flags & FR_REC_GPU_CLOCK) {
        place_gpu_times(c, rec, &w);
    } else {
        w.start_ns =
            rec->t_start == rec->t_enq ? w.enq_ns : fr_segment_ns(r->segment, rec->t_start);
        w.end_ns = fr_segment_ns(r->segment, rec->t_end);
    }
    fr_fold_record(&r->fold, &w);
}

static void tell_step(struct fr_rank *r, struct fr_outbox *ob, const struct fr_seg_step *slot)
{
    const struct fr_fold_step *f = fr_fold_find(&r->fold, slot->step);
    bool whole = f && f->ended && !f->torn;
    Fullrank__Step *m = fr_outbox_step(ob, whole ? f->ngroups : 0);
    uint64_t gpu_ns;

    m->job = fr_arena_text(&ob->arena, r->claims.job);
    m->attempt = r->claims.attempt;
    m->epoch = r->claims.epoch;
    m->rank = (uint32_t)r->claims.rank;
    m->step = slot->step;
    m->begin_ns = fr_segment_ns(r->segment, slot->t_begin);
    m->end_ns = fr_segment_ns(r->segment, slot->t_end);
    /* Operations on a GPU run while the host is outside of calls: the time that any of them took is
     * no time of the rank's own, since it may have been a wait for another rank. */
    gpu_ns = whole ? fr_fold_gpu_ns(f) : 0;
    if (gpu_ns > slot->self_ns)
        gpu_ns = slot->self_ns;
    m->self_ns = slot->self_ns - gpu_ns;
    m->ready_ns = slot->ready_ns;
    m->in_calls_ns = slot->in_calls_ns + gpu_ns;
    m->loss = slot->loss;
    m->tokens = slot->tokens;
    for (size_t i = 0; whole && i < f->ngroups; i++) {
        const struct fr_fold_group *g = &f->groups[i];
        Fullrank__GroupSum *s = m->groups[i];

        s->members_hash = g->members_hash;
        s->instance = g->instance;
        s->op = g->op;
        s->count = g->count;
        s->bytes = g->bytes;
        s->duration_ns = g->duration_ns;
        s->min_ns = g->min_ns == UINT64_MAX ? 0 : g->min_ns; /* none had an end */
    }
    if (whole && f->kept)
        fr_outbox_records(ob, f->records, f->nrecords);
}

/* All steps that have ended since, from their slots. */
static void tell_steps(struct fr_rank *r, struct fr_outbox *ob, uint64_t now_ns)
{
    const struct fr_seg_header *h = fr_segment_header(r->segment);
    uint64_t newest = h->step, from = r->step_told + 1, ended_before = r->step_ended;
    bool wait = false;

    if (newest >= h->step_count && from < newest - h->step_count + 1)
        from = newest - h->step_count + 1; /* older slots are overwritten */
    for (uint64_t step = from; step != 0 && step <= newest; step++) {
        const struct fr_fold_step *f = fr_fold_find(&r->fold, step);
        struct fr_seg_step slot;
        int rc;

        /* The open step: its end will come through the ring, unless that was overrun. */
        if (step == newest && !(f && f->ended) && !r->fold.torn && r->records)
            return;
        rc = fr_segment_step(r->segment, step, &slot, NULL);
        if (rc == -ENOENT) { /* never marked here, e.g. after a resume: not ours to tell */
            if (!wait)
                r->step_told = step;
            continue;
        }
        if (rc < 0 || slot.t_end == 0) /* -EAGAIN: being written, the next tick */
            return;
        r->step_ended = step;
        /* The end is written into the slot before the ring, and another thread's lane may have been
         * read before this one's: give the records of a step one more tick. */
        if (step > ended_before && (!f || !f->ended || h->lanes_used > 1))
            wait = true;
        if (h->sources & FR_SOURCE_NCCL && step + GPU_BEHIND_STEPS > newest &&
            now_ns - fr_segment_ns(r->segment, slot.t_end) < GPU_BEHIND_NS)
            wait = true;
        if (wait)
            continue;
        tell_step(r, ob, &slot);
        r->step_told = step;
        fr_fold_close(&r->fold, step);
    }
}

/* The header tells of marks, new lanes and new communicators: it is read a few times a second, and
 * when a record says that a step or phase has ended. Returns 0 or -errno. */
static int refresh(struct fr_rank *r, const struct fr_rank_tools *t, struct fr_err *err)
{
    int rc = fr_segment_refresh(r->segment, err);

    r->refreshed_ns = t->now_ns;
    return rc < 0 ? rc : 0;
}

int fr_rank_drain(struct fr_rank *r, struct fr_rank_tools *t, struct fr_err *err)
{
    bool fresh = false, marks = false;
    uint64_t lost = 0;
    int64_t n;
    int rc = 0;

    if (t->now_ns - r->refreshed_ns > REFRESH_NS) {
        rc = refresh(r, t, err);
        fresh = true;
    }
    if (rc < 0)
        return rc;
    t->nscratch = 0;
    n = fr_segment_drain(r->segment, take, t, &lost, err);
    if (n < 0)
        return (int)n;
    r->lost += lost;
    for (size_t i = 0; i < t->nscratch && !marks; i++)
        marks = t->scratch[i].op >= FR_OP_STEP ||
                (t->scratch[i].comm != FR_COMM_NONE && t->scratch[i].comm >= r->comms_known);
    if (marks) { /* also when it is fresh: what ended may have begun since */
        rc = refresh(r, t, err);
        if (rc < 0)
            return rc;
    }
    if (marks || (t->nscratch && r->comms_known == fr_segment_header(r->segment)->comm_count))
        know_comms(r);
    for (size_t i = 0; i < t->nscratch; i++) {
        uint32_t lane = t->scratch_lane[i];

        if (t->scratch_index[i] != r->next_index[lane])
            fr_fold_lost(&r->fold);
        r->next_index[lane] = t->scratch_index[i] + 1;
        fold_record(r, &t->scratch[i], t->outbox);
        r->records++;
    }
    if (fresh || marks || r->step_told < r->step_ended)
        tell_steps(r, t->outbox, t->now_ns);
    return 0;
}
