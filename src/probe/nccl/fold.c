/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.c - the sends and receives of one group, told as one operation
 *
 * NCCL has no all-to-all of its own that a profiler would see: it comes as a send to and a receive
 * from every peer in one group. A group is told as what its peers make of it:
 *
 *   all peers both ways           AllToAll     S = one peer's block x ranks
 *   from all, to at most one      Gather       (at the root; the others tell a Send)
 *   to all, from at most one      Scatter      (likewise)
 *   one peer at most each way     Send, Recv   one record a direction, numbered per ordered pair
 *   anything between              Neighbor     bytes sent
 *
 * Blocks of no bytes make no events, so one rank's AllToAll may be another's Neighbor: both count
 * as the same number of the communicator's groups, which is why groups are numbered apart from
 * its collectives, in a slot of their own (instance 1).
 *
 * How many channels a send has is not known through NCCL's v4 interface (later releases leave
 * garbage there): such a group has ended when all channels that started have stopped, and it is
 * told only when a later operation has ended too.
 */
#include "probe/nccl/plugin.h"

static struct fr_nccl_fold *fold_of(const struct fr_nccl_comm *c, uint32_t group)
{
    return &c->folds[group & (FR_NCCL_FOLDS - 1)];
}

static int32_t job_rank(const struct fr_nccl_comm *c, int32_t peer)
{
    return c->world ? peer : -1;
}

static void drop(uint32_t n)
{
    while (n--)
        fr_probe_drop();
}

/* How many records the group makes. */
static uint32_t records_of(const struct fr_nccl_fold *f)
{
    return f->op != FR_OP_NONE ? 1u : (f->sends > 0) + (uint32_t)(f->recvs > 0);
}

static void write_one(struct fr_nccl_comm *c, const struct fr_nccl_fold *f, uint8_t op,
                      uint64_t bytes, uint32_t seq, int32_t peer)
{
    struct fr_record r = {.t_enq = f->t_enq,
                          .t_start = f->gpu_start,
                          .t_end = f->gpu_end,
                          .bytes = bytes,
                          .seq = seq,
                          .step = f->step,
                          .comm = fr_load(&c->p2p_seg),
                          .op = op,
                          .dtype = f->dtype,
                          .flags = FR_REC_NONBLOCKING | FR_REC_GPU_CLOCK,
                          .channels = f->channels,
                          .peer = peer};

    fr_nccl_write(c, &r);
}

static uint64_t blocks(uint64_t bytes, uint32_t peers, uint32_t ranks)
{
    return peers ? (uint64_t)((unsigned __int128)bytes * ranks / peers) : 0;
}

static uint64_t bytes_of(const struct fr_nccl_comm *c, const struct fr_nccl_fold *f)
{
    switch (f->op) {
    case FR_OP_ALLTOALL:
    case FR_OP_SCATTER:
        return blocks(f->send_bytes, f->send_peers, c->nranks);
    case FR_OP_GATHER:
        return blocks(f->recv_bytes, f->recv_peers, c->nranks);
    case FR_OP_NONE:
        return f->send_bytes ? f->send_bytes : f->recv_bytes;
    default:
        return f->send_bytes;
    }
}

static void tell(struct fr_nccl_comm *c, struct fr_nccl_fold *f)
{
    struct fr_nccl_fold copy = *f;
    uint64_t t = fr_ticks();
    int ended = __atomic_load_n(&f->pending, __ATOMIC_ACQUIRE) == 0;

    copy.gpu_start = fr_load(&f->gpu_start);
    copy.gpu_end = fr_load(&f->gpu_end);
    copy.bad = fr_load(&f->bad);
    __atomic_store_n(&f->state, (uint32_t)FR_FOLD_FREE, __ATOMIC_RELEASE);
    if (!ended || copy.bad || !fr_nccl_times_hold(c, t, copy.t_enq, copy.gpu_start, copy.gpu_end)) {
        drop(records_of(&copy));
        return;
    }
    if (copy.op != FR_OP_NONE) {
        write_one(c, &copy, copy.op, bytes_of(c, &copy), (uint32_t)copy.seq,
                  copy.op == FR_OP_GATHER || copy.op == FR_OP_SCATTER ? c->rank : -1);
        return;
    }
    if (copy.sends)
        write_one(c, &copy, FR_OP_SEND, copy.send_bytes, copy.send_seq,
                  job_rank(c, copy.send_peer));
    if (copy.recvs)
        write_one(c, &copy, FR_OP_RECV, copy.recv_bytes, copy.recv_seq,
                  job_rank(c, copy.recv_peer));
}

void fr_nccl_tell_deferred(struct fr_nccl_comm *c)
{
    uint32_t before = __atomic_exchange_n(&c->deferred, 0, __ATOMIC_ACQ_REL);

    if (before)
        tell(c, &c->folds[before - 1]);
}

/* All parts of a closed group have ended. */
static void fold_done(struct fr_nccl_comm *c, struct fr_nccl_fold *f)
{
    uint32_t self = (uint32_t)(f - c->folds) + 1, before;
    struct fr_seg_comm *s = __atomic_load_n(&c->p2p, __ATOMIC_ACQUIRE);
    int known = f->op != FR_OP_NONE || f->sends || f->recvs;

    if (s && known) {
        fr_store_max(&s->started, f->seq);
        fr_store_max(&s->completed, f->seq);
        fr_store(&s->t_completed, fr_ticks());
        fr_nccl_touch(s);
    }
    if (f->mode == FR_MODE_KERNEL) {
        tell(c, f);
    } else if (f->mode == FR_MODE_QUIET) {
        before = __atomic_exchange_n(&c->deferred, self, __ATOMIC_ACQ_REL);
        if (before && before != self)
            tell(c, &c->folds[before - 1]);
    } else {
        __atomic_store_n(&f->state, (uint32_t)FR_FOLD_FREE, __ATOMIC_RELEASE);
    }
}

/* --- enqueueing --- */

static struct fr_nccl_fold *open_fold(struct fr_nccl_comm *c, uint32_t group, uint64_t t,
                                      uint8_t mode)
{
    struct fr_nccl_fold *f = fold_of(c, group);
    uint32_t state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE);

    if (state == FR_FOLD_OPENED)
        return f->group == group ? f : NULL;
    if (state != FR_FOLD_FREE)
        return NULL; /* an older group has not ended: this one cannot be followed */
    f->group = group;
    f->step = fr_nccl_step();
    f->t_enq = t;
    f->send_bytes = f->recv_bytes = f->seq = 0;
    fr_store(&f->gpu_start, UINT64_MAX);
    fr_store(&f->gpu_end, (uint64_t)0);
    f->sends = f->recvs = f->send_peers = f->recv_peers = 0;
    f->send_peer = f->recv_peer = -1;
    f->send_seq = f->recv_seq = 0;
    f->op = FR_OP_NONE;
    f->dtype = f->channels = 0;
    fr_store(&f->bad, (uint8_t)0);
    fr_store(&f->started, (uint8_t)0);
    f->mode = mode;
    fr_store(&f->pending, 1);
    __atomic_store_n(&f->state, (uint32_t)FR_FOLD_OPENED, __ATOMIC_RELEASE);
    return f;
}

static void add_part(struct fr_nccl_comm *c, struct fr_nccl_fold *f, int is_send, int32_t peer,
                     uint64_t bytes, uint32_t group)
{
    struct fr_nccl_peer *p = &c->peers[peer];

    if (is_send) {
        f->send_seq = fr_load(&p->sent) + 1;
        fr_store(&p->sent, f->send_seq);
        f->send_peers += fr_load(&p->send_group) != group;
        fr_store(&p->send_group, group);
        f->send_bytes += bytes;
        f->send_peer = peer;
        f->sends++;
    } else {
        f->recv_seq = fr_load(&p->received) + 1;
        fr_store(&p->received, f->recv_seq);
        f->recv_peers += fr_load(&p->recv_group) != group;
        fr_store(&p->recv_group, group);
        f->recv_bytes += bytes;
        f->recv_peer = peer;
        f->recvs++;
    }
}

void *fr_nccl_p2p_start(struct fr_nccl_comm *c, const struct fr_nccl_p2p_v4 *d, void *parent)
{
    int timed = fr_load(&fr_nccl.level) >= FR_PROBE_PERF, alone;
    uint8_t dtype, mode;
    uint32_t size = fr_nccl_dtype(d->datatype, &dtype), group, gen;
    struct fr_nccl_names n = {0};
    struct fr_nccl_fold *f = NULL;
    struct fr_nccl_op *o = NULL;
    uint64_t bytes = 0;
    void *handle = NULL;

    alone = fr_h_kind(parent) != FR_H_GROUP || fr_h_comm(parent) != c->index;
    group = alone ? __atomic_add_fetch(&c->group, 1, __ATOMIC_RELAXED) : fr_h_gen(parent);
    mode = !timed ? FR_MODE_PROXY : c->version < 5 || !d->channels ? FR_MODE_QUIET : FR_MODE_KERNEL;
    fr_nccl_p2p_slot(c);
    if (fr_nccl_func(d->func, &n) == 0 && (n.op == FR_OP_SEND || n.op == FR_OP_RECV) &&
        d->peer >= 0 && (uint32_t)d->peer < c->nranks &&
        fr_nccl_bytes(d->count, size, 1, &bytes) == 0)
        f = open_fold(c, group, fr_ticks(), mode);
    if (fr_unlikely(!f)) {
        if (timed)
            fr_probe_drop();
        return NULL;
    }
    f->dtype = dtype;
    if (mode == FR_MODE_QUIET)
        f->mode = f->mode == FR_MODE_PROXY ? FR_MODE_PROXY : FR_MODE_QUIET;
    else if (d->channels > f->channels)
        f->channels = d->channels;
    add_part(c, f, n.op == FR_OP_SEND, d->peer, bytes, group);
    o = fr_nccl_op_new(c, &gen);
    if (fr_unlikely(!o)) {
        fr_store(&f->bad, (uint8_t)1); /* its part of the time will be missing */
    } else {
        fr_store(&o->seq, (uint64_t)group);
        o->channels = d->channels;
        fr_store(&o->mode, mode);
        fr_store(&o->fold, (uint16_t)(f - c->folds));
        __atomic_fetch_add(&f->pending, 1, __ATOMIC_RELAXED);
        fr_nccl_op_ready(o, gen);
        handle = fr_handle(FR_H_OP, c->index, (uint32_t)(o - c->ops), 0, gen);
    }
    if (alone)
        fr_nccl_group_stop(c, group);
    return handle;
}

static uint8_t shape_of(const struct fr_nccl_comm *c, const struct fr_nccl_fold *f)
{
    uint32_t all = c->nranks - 1;

    if (f->send_peers <= 1 && f->recv_peers <= 1)
        return FR_OP_NONE;
    if (f->send_peers >= all && f->recv_peers >= all)
        return FR_OP_ALLTOALL;
    if (f->recv_peers >= all && f->send_peers <= 1)
        return FR_OP_GATHER;
    if (f->send_peers >= all && f->recv_peers <= 1)
        return FR_OP_SCATTER;
    return FR_OP_NEIGHBOR;
}

static void show_group(struct fr_nccl_comm *c, const struct fr_nccl_fold *f)
{
    struct fr_seg_comm *s = __atomic_load_n(&c->p2p, __ATOMIC_ACQUIRE);
    uint8_t op = f->op                  ? f->op
                 : f->sends && f->recvs ? (uint8_t)FR_OP_SENDRECV
                 : f->sends             ? (uint8_t)FR_OP_SEND
                                        : (uint8_t)FR_OP_RECV;
    int blind = f->mode == FR_MODE_PROXY && !fr_load(&c->seen_proxy);

    if (!s)
        return;
    fr_store_max(&s->enqueued, f->seq);
    if (f->mode == FR_MODE_PROXY || fr_load(&f->started))
        fr_store_max(&s->started, f->seq);
    fr_store(&s->t_enqueued, f->t_enq);
    fr_store(&s->op_bytes, bytes_of(c, f));
    fr_store(&s->op, (uint32_t)op);
    fr_store(&s->dtype, (uint32_t)f->dtype);
    fr_store(&s->root,
             f->op ? UINT32_MAX : (uint32_t)job_rank(c, f->recvs ? f->recv_peer : f->send_peer));
    fr_store(&s->flags, FR_COMM_GPU | FR_COMM_P2P | (blind ? (uint32_t)FR_COMM_BLIND : 0u));
    fr_nccl_touch(s);
}

void fr_nccl_group_stop(struct fr_nccl_comm *c, uint32_t group)
{
    struct fr_nccl_fold *f = fold_of(c, group);

    if (__atomic_load_n(&f->state, __ATOMIC_ACQUIRE) != FR_FOLD_OPENED || f->group != group)
        return; /* a group of collectives, or one that was stopped before */
    f->op = shape_of(c, f);
    fr_store(&f->seq, __atomic_add_fetch(&c->p2p_enqueued, 1, __ATOMIC_RELAXED));
    __atomic_store_n(&f->state, (uint32_t)FR_FOLD_CLOSED, __ATOMIC_RELEASE);
    show_group(c, f);
    /* Whoever brings it to zero has seen everything: pairs with fr_nccl_part_done. */
    if (__atomic_sub_fetch(&f->pending, 1, __ATOMIC_ACQ_REL) == 0)
        fold_done(c, f);
}

/* --- parts --- */

/* The group of a part, if it is still followed. */
static struct fr_nccl_fold *whole_of(const struct fr_nccl_comm *c, const struct fr_nccl_op *o)
{
    struct fr_nccl_fold *f = &c->folds[o->fold & (FR_NCCL_FOLDS - 1)];

    if (__atomic_load_n(&f->state, __ATOMIC_ACQUIRE) == FR_FOLD_FREE ||
        f->group != (uint32_t)o->seq)
        return NULL;
    return f;
}

void fr_nccl_part_started(struct fr_nccl_comm *c, struct fr_nccl_op *o)
{
    struct fr_nccl_fold *f = whole_of(c, o);
    struct fr_seg_comm *s = __atomic_load_n(&c->p2p, __ATOMIC_ACQUIRE);

    if (!f || fr_load(&f->started))
        return;
    fr_store(&f->started, (uint8_t)1);
    if (s && fr_load(&f->seq)) {
        fr_store_max(&s->started, fr_load(&f->seq));
        fr_nccl_touch(s);
    }
}

/* A part has ended, as far as one can tell. */
void fr_nccl_part_done(struct fr_nccl_comm *c, struct fr_nccl_op *o)
{
    struct fr_nccl_fold *f = whole_of(c, o);
    uint64_t now = fr_load(&c->ticket), start = fr_load(&o->gpu_start), end = fr_load(&o->gpu_end);
    uint32_t low = fr_load(&o->gen) - fr_nccl.nonce, live = FR_OPS_LIVE;

    fr_store_max(&c->newest_ticket, now - (uint32_t)((uint32_t)now - low));
    if (f) {
        if (start < fr_load(&f->gpu_start))
            fr_store(&f->gpu_start, start);
        if (end > fr_load(&f->gpu_end))
            fr_store(&f->gpu_end, end);
        if (fr_load(&o->unstamped))
            fr_store(&f->bad, (uint8_t)1);
    }
    if (o->mode != FR_MODE_QUIET &&
        !__atomic_compare_exchange_n(&o->state, &live, FR_OPS_DONE, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (f && __atomic_sub_fetch(&f->pending, 1, __ATOMIC_ACQ_REL) == 0)
        fold_done(c, f);
}

/* It has not: another channel started. */
void fr_nccl_part_again(struct fr_nccl_comm *c, struct fr_nccl_op *o)
{
    struct fr_nccl_fold *f = o->fold < FR_NCCL_FOLDS ? whole_of(c, o) : NULL;

    if (f)
        __atomic_fetch_add(&f->pending, 1, __ATOMIC_RELAXED);
}
