/* SPDX-License-Identifier: Apache-2.0 */
/* op.c - collectives from their enqueueing to the last channel's stop; see plugin.h */
#include "probe/nccl/plugin.h"

#define WINDOW_US 100000u /* the GPU clock's offset is bettered so often */
#define SLACK_NS  2000    /* step of a GPU's clock, and the error of ours over one operation */
#define EARLY_NS  100000  /* a start may lie so long before its enqueueing, by the clocks' error */
#define JUMP_NS   1000000 /* no GPU clock is set back by so much */

static inline int takes(uint32_t *state, uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(state, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline uint32_t gen_of(uint64_t ticket)
{
    return fr_nccl.nonce + (uint32_t)ticket;
}

/* A slot that is not free is given up for another only if nothing can be said of it any more. */
struct fr_nccl_op *fr_nccl_op_new(struct fr_nccl_comm *c, uint32_t *ret_gen)
{
    uint64_t ticket = __atomic_fetch_add(&c->ticket, 1, __ATOMIC_RELAXED);
    struct fr_nccl_op *o = &c->ops[ticket & c->mask];

    if (fr_unlikely(__atomic_load_n(&o->state, __ATOMIC_ACQUIRE) == FR_OPS_LIVE)) {
        if (o->mode == FR_MODE_KERNEL || (o->mode == FR_MODE_QUIET && !fr_load(&o->quiet))) {
            __atomic_store_n(&o->refused, gen_of(ticket), __ATOMIC_RELEASE);
            return NULL;
        }
        fr_store(&o->state, (uint32_t)FR_OPS_FREE);
    }
    *ret_gen = gen_of(ticket);
    /* No handle names it while it is filled; pairs with the second look in passes(). */
    fr_store(&o->gen, *ret_gen - 1);
    fr_fence_release();
    fr_store(&o->gpu_start, UINT64_MAX);
    fr_store(&o->gpu_end, (uint64_t)0);
    fr_store(&o->unstamped, (uint8_t)0);
    fr_store(&o->quiet, (uint8_t)0);
    fr_store(&o->nstarted, 0u);
    fr_store(&o->nended, 0u);
    fr_store(&o->proxies, 0u);
    fr_store(&o->proxies_done, 0u);
    for (int i = 0; i < 4; i++) {
        fr_store(&o->ch[i].started, (uint64_t)0);
        fr_store(&o->ch[i].stamped, (uint64_t)0);
        fr_store(&o->ch[i].ended, (uint64_t)0);
    }
    return o;
}

void fr_nccl_op_ready(struct fr_nccl_op *o, uint32_t gen)
{
    fr_store(&o->state, (uint32_t)FR_OPS_LIVE);
    __atomic_store_n(&o->gen, gen, __ATOMIC_RELEASE); /* pairs with fr_nccl_op_of */
}

static uint64_t enqueue(struct fr_nccl_comm *c, uint64_t t, const struct fr_nccl_names *n,
                        uint64_t bytes, int root, int seen_at_once, int blind)
{
    uint64_t seq = __atomic_add_fetch(&c->enqueued, 1, __ATOMIC_RELAXED);
    struct fr_seg_comm *s = c->slot;
    uint32_t flags = FR_COMM_GPU | (blind ? FR_COMM_BLIND : 0u);

    fr_store_max(&s->enqueued, seq);
    if (seen_at_once)
        fr_store_max(&s->started, seq);
    fr_store(&s->t_enqueued, t);
    fr_store(&s->op_bytes, bytes);
    fr_store(&s->op, (uint32_t)n->op);
    fr_store(&s->dtype, (uint32_t)n->dtype);
    fr_store(&s->root, n->rooted ? (uint32_t)root : UINT32_MAX);
    if (fr_unlikely(fr_load(&s->flags) != flags))
        fr_store(&s->flags, flags);
    fr_nccl_touch(s);
    return seq;
}

void *fr_nccl_coll_start(struct fr_nccl_comm *c, const struct fr_nccl_coll_v4 *d)
{
    struct fr_nccl_names n = {0};
    int timed = fr_load(&fr_nccl.level) >= FR_PROBE_PERF;
    uint64_t t = fr_ticks(), bytes = 0, seq;
    uint32_t size = fr_nccl_dtype(d->datatype, &n.dtype), gen;
    struct fr_nccl_op *o;
    int known;

    { /* the name table does not know the type */
        uint8_t dtype = n.dtype;

        known = fr_nccl_func(d->func, &n) == 0;
        n.dtype = dtype;
    }
    if (known && fr_nccl_bytes(d->count, size, n.per_rank ? c->nranks : 1, &bytes) != 0)
        known = 0;
    seq = enqueue(c, t, &n, bytes, d->root, !timed, !timed && !fr_load(&c->seen_proxy));
    o = known ? fr_nccl_op_new(c, &gen) : NULL;
    if (fr_unlikely(!o)) { /* it has its number, alike on every rank, and no record */
        if (timed)
            fr_probe_drop();
        return NULL;
    }
    fr_store(&o->seq, seq);
    o->t_enq = t;
    o->bytes = bytes;
    o->step = fr_nccl_step();
    o->peer = n.rooted ? d->root : -1;
    o->op = n.op;
    o->dtype = n.dtype;
    o->algo = fr_nccl_algo(d->algo);
    o->proto = fr_nccl_proto(d->proto);
    o->channels = d->channels;
    fr_store(&o->mode, (uint8_t)(!timed        ? FR_MODE_PROXY
                                 : d->channels ? FR_MODE_KERNEL
                                               : FR_MODE_QUIET));
    fr_store(&o->fold, (uint16_t)FR_NCCL_FOLDS);
    fr_nccl_op_ready(o, gen);
    return fr_handle(FR_H_OP, c->index, (uint32_t)(o - c->ops), 0, gen);
}

/* A copy-engine collective has no kernel, and its stop means that it was enqueued: it counts, and
 * its times are not known. */
void fr_nccl_ce_start(struct fr_nccl_comm *c, const struct fr_nccl_ce_coll_v6 *d)
{
    struct fr_nccl_names n = {0};
    struct fr_record r = {0};
    uint64_t t = fr_ticks(), bytes = 0, seq;
    uint8_t dtype;
    uint32_t size = fr_nccl_dtype(d->datatype, &dtype);
    int known = fr_nccl_func(d->func, &n) == 0;

    n.dtype = dtype;
    if (known && fr_nccl_bytes(d->count, size, n.per_rank ? c->nranks : 1, &bytes) != 0)
        known = 0;
    seq = enqueue(c, t, &n, bytes, d->root, 1, 1);
    if (fr_load(&fr_nccl.level) < FR_PROBE_PERF)
        return;
    if (!known) {
        fr_probe_drop();
        return;
    }
    r.t_enq = r.t_start = r.t_end = t;
    r.bytes = bytes;
    r.seq = (uint32_t)seq;
    r.step = fr_nccl_step();
    r.comm = c->seg;
    r.op = n.op;
    r.dtype = n.dtype;
    r.flags = FR_REC_UNTIMED | FR_REC_NONBLOCKING;
    r.algo = FR_ALGO_COPY_ENGINE;
    r.peer = n.rooted ? d->root : -1;
    fr_nccl_write(c, &r);
}

/* --- times --- */

static void show_offset(struct fr_nccl_comm *c, int64_t offset)
{
    struct fr_seg_comm *p2p = __atomic_load_n(&c->p2p, __ATOMIC_ACQUIRE);

    fr_store(&c->slot->gpu_offset_ns, offset ? offset : 1);
    if (p2p)
        fr_store(&p2p->gpu_offset_ns, offset ? offset : 1);
}

/* Begin a new window: what the last one found is the offset now. */
static void turn_window(struct fr_nccl_comm *c, uint64_t t)
{
    int64_t found = fr_load(&c->offset_now);

    if (found != INT64_MAX) {
        fr_store(&c->offset, found ? found : 1);
        show_offset(c, found);
    }
    fr_store(&c->offset_now, INT64_MAX);
    fr_store(&c->ref_ns, fr_mono_ns());
    fr_store(&c->ref_ticks, t);
}

/* 1 when the GPU's times can be those of this operation. They come out of a short ring that a later
 * operation may have overwritten, and the counters of host and device may have come apart. The end
 * is seen by the host after it was: so now - end is the clocks' offset or more, and the smallest of
 * many is near it. */
int fr_nccl_times_hold(struct fr_nccl_comm *c, uint64_t t, uint64_t t_enq, uint64_t start,
                       uint64_t end)
{
    uint64_t wall_ns = (int64_t)(t - t_enq) > 0 ? fr_ticks_ns(t - t_enq) : 0, since;
    int64_t now_ns, off, best = fr_load(&c->offset), seen;

    if (start == 0 || end < start || end - start > wall_ns + (wall_ns >> 10) + SLACK_NS)
        return 0;
    if (start == fr_load(&c->last_start) && end == fr_load(&c->last_end))
        return 0; /* both are those of another one */
    since = t - fr_load(&c->ref_ticks);
    if (fr_unlikely(fr_load(&c->ref_ticks) == 0 || (int64_t)since < 0 ||
                    fr_ticks_us(since) > WINDOW_US)) {
        turn_window(c, t);
        best = fr_load(&c->offset);
        since = 0;
    }
    now_ns = (int64_t)(fr_load(&c->ref_ns) + fr_ticks_ns(since));
    off = (int64_t)((uint64_t)now_ns - end);
    if (fr_unlikely(best &&
                    off < best - JUMP_NS)) { /* it ended in the future, or the clock jumped */
        fr_store(&c->offset, (int64_t)0);
        return 0;
    }
    seen = fr_load(&c->offset_now);
    if (off < seen) {
        fr_store(&c->offset_now, off);
        seen = off;
        if (!best || off < best) {
            fr_store(&c->offset, off ? off : 1);
            show_offset(c, off);
        }
    }
    if (!best || seen < best)
        best = seen;
    if ((int64_t)(start + (uint64_t)best) < now_ns - (int64_t)wall_ns - EARLY_NS)
        return 0; /* before it was enqueued */
    fr_store(&c->last_start, start);
    fr_store(&c->last_end, end);
    return 1;
}

/* --- channels --- */

static void show_oldest(struct fr_nccl_comm *c, const struct fr_nccl_op *o)
{
    fr_store(&c->slot->channels_started, o ? fr_load(&o->nstarted) : 0u);
    fr_store(&c->slot->channels_ended, o ? fr_load(&o->nended) : 0u);
}

static void coll_done(struct fr_nccl_comm *c, struct fr_nccl_op *o)
{
    uint64_t t = fr_ticks(), seq = o->seq, start = fr_load(&o->gpu_start),
             end = fr_load(&o->gpu_end);
    struct fr_record r;

    r.t_enq = o->t_enq;
    r.t_start = start;
    r.t_end = end;
    r.bytes = o->bytes;
    r.seq = (uint32_t)seq;
    r.step = o->step;
    r.gap_us = r.ready_us = 0;
    r.comm = c->seg;
    r.op = o->op;
    r.dtype = o->dtype;
    r.flags = FR_REC_NONBLOCKING | FR_REC_GPU_CLOCK;
    r.algo = o->algo;
    r.proto = o->proto;
    r.channels = o->channels;
    r.peer = o->peer;
    if (o->mode == FR_MODE_KERNEL || o->mode == FR_MODE_QUIET) {
        /* A collective that did not say how many channels it has may have more of them. */
        int good = o->mode == FR_MODE_KERNEL && !fr_load(&o->unstamped) &&
                   fr_nccl_times_hold(c, t, r.t_enq, start, end);

        if (!takes(&o->state, FR_OPS_LIVE, FR_OPS_DONE))
            return;
        if (good)
            fr_nccl_write(c, &r);
        else
            fr_probe_drop();
    } else if (!takes(&o->state, FR_OPS_LIVE, FR_OPS_DONE)) {
        return;
    }
    fr_store_max(&c->newest_done, seq);
    fr_store(&c->slot->t_completed, t);
    if (fr_load(&c->deferred))
        fr_nccl_tell_deferred(c);
    fr_nccl_walk(c);
}

/* 1 when nothing more will come of an operation that is older than others that have ended. */
static int is_past(const struct fr_nccl_comm *c, const struct fr_nccl_op *o, uint64_t ticket)
{
    uint64_t newest = fr_load(&c->newest_done);

    if (fr_load(&o->fold) < FR_NCCL_FOLDS)
        return fr_load(&o->quiet) || fr_load(&c->newest_ticket) > ticket + c->mask / 4;
    switch (fr_load(&o->mode)) {
    case FR_MODE_BLIND:
    case FR_MODE_PROXY:
        return newest > fr_load(&o->seq);
    default:
        return newest >=
               fr_load(&o->seq) + (fr_load(&o->nstarted) ? FR_NCCL_LAG : FR_NCCL_LAG_UNSEEN);
    }
}

/* Returns 1 when the walk may go past that ticket. */
static int passes(struct fr_nccl_comm *c, uint64_t ticket)
{
    struct fr_nccl_op *o = &c->ops[ticket & c->mask];
    uint32_t gen = __atomic_load_n(&o->gen, __ATOMIC_ACQUIRE), state = fr_load(&o->state);
    int32_t newer = (int32_t)(gen - gen_of(ticket));
    uint64_t seq = fr_load(&o->seq);
    int part = fr_load(&o->fold) < FR_NCCL_FOLDS;

    if (newer < 0) /* it found its slot taken, else it is being filled: wait for it */
        return (int32_t)(__atomic_load_n(&o->refused, __ATOMIC_ACQUIRE) - gen_of(ticket)) >= 0;
    if (newer > 0)
        return 1;
    if (state == FR_OPS_LIVE) {
        if (!is_past(c, o, ticket))
            return 0;
        if (part) {
            if (!fr_load(&o->quiet)) {
                fr_store(&o->unstamped, (uint8_t)1);
                fr_nccl_part_done(c, o);
            }
        } else if (takes(&o->state, FR_OPS_LIVE, FR_OPS_DONE) &&
                   fr_load(&o->mode) <= FR_MODE_QUIET) {
            fr_probe_drop();
        }
    }
    if (!part && __atomic_load_n(&o->gen, __ATOMIC_ACQUIRE) == gen) /* else it is another's */
        fr_store_max(&c->completed, seq);
    return 1;
}

/* Move `completed` up to the oldest operation that is under way. One thread does; another that
 * finds it walking leaves its work to it, so the walker looks again after it has let go. */
void fr_nccl_walk(struct fr_nccl_comm *c)
{
    uint64_t tail;

    do {
        const struct fr_nccl_op *o = NULL;

        if (__atomic_exchange_n(&c->walking, 1, __ATOMIC_ACQUIRE))
            return;
        tail = fr_load(&c->tail);
        if (fr_load(&c->ticket) - tail > c->ops_cap) /* what is older has lost its slot long ago */
            tail = fr_load(&c->ticket) - c->ops_cap;
        while (tail < __atomic_load_n(&c->ticket, __ATOMIC_ACQUIRE) && passes(c, tail))
            tail++;
        fr_store(&c->tail, tail);
        if (tail < fr_load(&c->ticket)) {
            o = &c->ops[tail & c->mask];
            if (fr_load(&o->state) != FR_OPS_LIVE || fr_load(&o->fold) < FR_NCCL_FOLDS)
                o = NULL;
        }
        fr_store_max(&c->slot->completed, fr_load(&c->completed));
        show_oldest(c, o);
        fr_nccl_touch(c->slot);
        __atomic_store_n(&c->walking, 0, __ATOMIC_RELEASE);
    } while (tail < __atomic_load_n(&c->ticket, __ATOMIC_ACQUIRE) && passes(c, tail));
}

static inline int is_oldest(const struct fr_nccl_comm *c, const struct fr_nccl_op *o)
{
    return o == &c->ops[fr_load(&c->tail) & c->mask];
}

void *fr_nccl_channel_start(struct fr_nccl_comm *c, void *parent, const struct fr_nccl_kernel_ch *d)
{
    struct fr_nccl_op *o = fr_nccl_op_of(c, parent);
    uint32_t channel = d->channel, n;
    struct fr_nccl_channels *w;
    uint64_t bit = 1ull << (channel & 63u), started;

    if (fr_unlikely(!o || fr_load(&o->mode) > FR_MODE_QUIET))
        return NULL;
    w = &o->ch[channel >> 6];
    started = fr_load(&w->started);
    if (fr_unlikely(started & bit))
        return NULL; /* it was told before */
    fr_store(&w->started, started | bit);
    if (d->timer < fr_load(&o->gpu_start))
        fr_store(&o->gpu_start, d->timer);
    n = fr_load(&o->nstarted) + 1;
    fr_store(&o->nstarted, n);
    if (fr_unlikely(fr_load(&o->quiet))) {
        fr_store(&o->quiet, (uint8_t)0);
        fr_nccl_part_again(c, o);
    }
    if (o->fold < FR_NCCL_FOLDS) {
        if (n == 1)
            fr_nccl_part_started(c, o);
    } else {
        if (n == 1 && o->seq > fr_load(&c->started)) {
            fr_store(&c->started, o->seq);
            fr_store_max(&c->slot->started, o->seq);
            fr_nccl_touch(c->slot);
        }
        if (is_oldest(c, o))
            fr_store(&c->slot->channels_started, n);
    }
    return fr_handle(FR_H_CHANNEL, c->index, (uint32_t)(o - c->ops), channel, fr_h_gen(parent));
}

void fr_nccl_channel_stamp(struct fr_nccl_comm *c, void *handle, uint64_t timer)
{
    struct fr_nccl_op *o = fr_nccl_op_of(c, handle);
    struct fr_nccl_channels *w;
    uint64_t bit = 1ull << (fr_h_channel(handle) & 63u);

    if (fr_unlikely(!o))
        return;
    w = &o->ch[fr_h_channel(handle) >> 6];
    if (fr_unlikely((fr_load(&w->ended) | fr_load(&w->stamped)) & bit))
        return;
    fr_store(&w->stamped, fr_load(&w->stamped) | bit);
    if (timer > fr_load(&o->gpu_end))
        fr_store(&o->gpu_end, timer);
}

void fr_nccl_channel_stop(struct fr_nccl_comm *c, void *handle)
{
    struct fr_nccl_op *o = fr_nccl_op_of(c, handle);
    struct fr_nccl_channels *w;
    uint64_t bit = 1ull << (fr_h_channel(handle) & 63u), ended;
    uint32_t n;

    if (fr_unlikely(!o))
        return;
    w = &o->ch[fr_h_channel(handle) >> 6];
    ended = fr_load(&w->ended);
    if (fr_unlikely(ended & bit || !(fr_load(&w->started) & bit)))
        return; /* stopped before, or never started */
    fr_store(&w->ended, ended | bit);
    if (fr_unlikely(!(fr_load(&w->stamped) & bit)))
        fr_store(&o->unstamped, (uint8_t)1);
    n = fr_load(&o->nended) + 1;
    fr_store(&o->nended, n);
    if (o->mode == FR_MODE_KERNEL) {
        if (n >= o->channels) {
            if (o->fold < FR_NCCL_FOLDS)
                fr_nccl_part_done(c, o);
            else
                coll_done(c, o);
            return;
        }
    } else if (n == fr_load(&o->nstarted)) {
        fr_store(&o->quiet, (uint8_t)1);
        if (o->fold < FR_NCCL_FOLDS)
            fr_nccl_part_done(c, o);
        else
            coll_done(c, o);
        return;
    }
    if (o->fold >= FR_NCCL_FOLDS && is_oldest(c, o))
        fr_store(&c->slot->channels_ended, n);
}

/* --- network operations --- */

void fr_nccl_proxy_start(struct fr_nccl_comm *c, void *parent)
{
    struct fr_nccl_op *o = fr_h_kind(parent) == FR_H_OP ? fr_nccl_op_of(c, parent) : NULL;

    if (!fr_load(&c->seen_proxy))
        fr_store(&c->seen_proxy, (uint64_t)1);
    fr_store(&c->slot->proxy_posted, fr_load(&c->slot->proxy_posted) + 1);
    if (o)
        fr_store(&o->proxies, fr_load(&o->proxies) + 1);
}

void fr_nccl_proxy_stop(struct fr_nccl_comm *c, void *handle)
{
    struct fr_nccl_op *o = fr_nccl_op_of(c, handle);
    uint32_t done = fr_load(&c->slot->proxy_done);

    if (done != fr_load(&c->slot->proxy_posted)) /* else one was stopped twice */
        fr_store(&c->slot->proxy_done, done + 1);
    if (!o)
        return;
    done = fr_load(&o->proxies_done) + 1;
    if (fr_unlikely(done > fr_load(&o->proxies)))
        return;
    fr_store(&o->proxies_done, done);
    if (fr_load(&o->mode) != FR_MODE_PROXY || done != fr_load(&o->proxies))
        return;
    if (o->fold < FR_NCCL_FOLDS) {
        fr_store(&o->quiet, (uint8_t)1);
        fr_nccl_part_done(c, o);
    } else {
        coll_done(c, o);
    }
}
