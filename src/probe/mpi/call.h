/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - what a wrapper does before and after the real call, the same for C and Fortran
 *
 * A wrapper begins a call (shim.h), says what it is with one of the _enter functions, makes the
 * real call, and ends it with the matching _leave. All are inline: they are the hot path.
 *
 * Unit, Threads, Memory: as shim.h.
 */
#ifndef FR_PROBE_MPI_CALL_H
#define FR_PROBE_MPI_CALL_H

#include "probe/mpi/shim.h"

/* Byte counts for the table. */
static inline uint64_t flat(int n, MPI_Datatype t)
{
    return n < 0 ? 0 : (uint64_t)n * fr_mpi_type(t).size_bytes;
}

static inline uint64_t sum(const int *counts, MPI_Datatype t, uint64_t n)
{
    uint64_t total = 0;

    for (uint64_t i = 0; counts && i < n; i++)
        total += (uint64_t)counts[i];
    return total * fr_mpi_type(t).size_bytes;
}

static inline uint64_t sum_types(const int *counts, const MPI_Datatype *t, uint64_t n)
{
    uint64_t total = 0;

    for (uint64_t i = 0; counts && t && i < n; i++) /* Fortran: not told */
        total += flat(counts[i], t[i]);
    return total;
}

static inline uint32_t slot_of(const struct fr_comm *m)
{
    return m ? m->index : FR_COMM_NONE;
}

/* The call as the request that it makes. */
static inline struct fr_request request_of(const struct fr_call *k, uint8_t flags, uint8_t active)
{
    struct fr_request q = {k->t0, k->bytes, k->seq, k->comm, NULL, k->peer,
                           k->op, k->dtype, flags,  active,  0,    0};
    return q;
}

static inline void coll_describe(struct fr_call *k, uint8_t op, int root, uint64_t bytes,
                                 MPI_Datatype t)
{
    k->op = op;
    k->peer = root;
    k->bytes = bytes;
    k->dtype = fr_mpi_type(t).code;
    k->seq = 0;
    k->flags = 0;
}

static inline void coll_enqueue(struct fr_call *k)
{
    if (fr_likely(k->comm != NULL))
        k->seq = fr_comm_enqueue(k->comm, k->t0, k->op, k->dtype, k->peer, k->bytes);
}

static inline void coll_enter(struct fr_call *k, uint8_t op, int root, uint64_t bytes,
                              MPI_Datatype t)
{
    coll_describe(k, op, root, bytes, t);
    coll_enqueue(k);
    fr_lane_now(k->lane, k->t0, op, slot_of(k->comm), k->seq, bytes, root, 0);
}

static inline void coll_leave(struct fr_call *k, int rc)
{
    uint64_t t1 = fr_ticks();
    struct fr_request q = request_of(k, rc == MPI_SUCCESS ? 0 : FR_REC_FAILED, 1);

    if (fr_likely(k->comm != NULL))
        fr_comm_complete(k->comm, k->seq, t1);
    fr_op_record(k->lane, &q, t1);
    fr_lane_leave(k->lane, k->t0, t1);
}

/* A call that returns a request: the operation is under way, or (persistent) prepared. */
static inline void request_leave(struct fr_call *k, int rc, MPI_Request made, uint8_t flags,
                                 MPI_Comm *newcomm)
{
    uint64_t t1 = fr_ticks();
    struct fr_request q = request_of(k, flags, !(flags & FR_REC_PERSISTENT));

    q.newcomm = newcomm;
    if (fr_likely(rc == MPI_SUCCESS)) {
        fr_request_add(made, &q, k->lane, t1);
    } else if (q.active) {
        q.flags |= FR_REC_FAILED;
        if (k->comm && k->op < FR_OP_SEND)
            fr_comm_complete(k->comm, k->seq, t1);
        fr_op_record(k->lane, &q, t1);
    }
    fr_lane_leave_quietly(k->lane, k->t0, t1);
}

/* Point-to-point. `comm_rank` may be MPI_ANY_SOURCE; with MPI_PROC_NULL nothing happens. */
static inline void p2p_describe(struct fr_call *k, uint8_t op, int n, MPI_Datatype t, int comm_rank)
{
    struct fr_type type = fr_mpi_type(t);

    k->op = comm_rank == MPI_PROC_NULL ? FR_OP_NONE : op;
    k->peer = fr_comm_peer(k->comm, comm_rank);
    k->bytes = n < 0 ? 0 : (uint64_t)n * type.size_bytes;
    k->dtype = type.code;
    k->seq = 0;
    k->flags = 0;
}

static inline void p2p_number(struct fr_call *k)
{
    k->seq = fr_pair_next(k->op == FR_OP_SEND ? fr_mpi.sent : fr_mpi.received, k->peer);
}

static inline void p2p_enter(struct fr_call *k, uint8_t op, int n, MPI_Datatype t, int comm_rank)
{
    p2p_describe(k, op, n, t, comm_rank);
    p2p_number(k);
    fr_lane_now(k->lane, k->t0, k->op, slot_of(k->comm), k->seq, k->bytes, k->peer, 0);
}

static inline void p2p_record(struct fr_call *k, int rc, int source, uint64_t t1)
{
    struct fr_request q = request_of(k, rc == MPI_SUCCESS ? 0 : FR_REC_FAILED, 1);

    if (k->op == FR_OP_NONE)
        return;
    if (k->op == FR_OP_RECV && k->seq == 0 && source >= 0) {
        q.peer = fr_comm_peer(k->comm, source);
        q.seq = fr_pair_next(fr_mpi.received, q.peer);
    }
    fr_op_record(k->lane, &q, t1);
}

static inline void p2p_leave(struct fr_call *k, int rc, int source)
{
    uint64_t t1 = fr_ticks();

    p2p_record(k, rc, source, t1);
    fr_lane_leave(k->lane, k->t0, t1);
}

static inline void p2p_request_leave(struct fr_call *k, int rc, MPI_Request made, uint8_t flags)
{
    if (k->op == FR_OP_NONE)
        fr_lane_leave_quietly(k->lane, k->t0, fr_ticks());
    else
        request_leave(k, rc, made, flags, NULL);
}

/* Sendrecv: shown as one call that waits for its source; recorded as a send and a receive. */
struct pair {
    int dest, source;
    int sent_n, received_n;
    MPI_Datatype sent_type, received_type;
};

static inline void pair_enter(struct fr_call *k, const struct pair *p)
{
    p2p_describe(k, FR_OP_RECV, p->received_n, p->received_type, p->source);
    fr_lane_now(k->lane, k->t0, FR_OP_SENDRECV, slot_of(k->comm), 0, k->bytes,
                p->source == MPI_PROC_NULL ? fr_comm_peer(k->comm, p->dest) : k->peer, 0);
}

static inline void pair_leave(struct fr_call *k, const struct pair *p, int rc, int source)
{
    uint64_t t1 = fr_ticks();

    p2p_number(k);
    p2p_record(k, rc, source, t1);
    p2p_describe(k, FR_OP_SEND, p->sent_n, p->sent_type, p->dest);
    p2p_number(k);
    p2p_record(k, rc, -1, t1);
    fr_lane_leave(k->lane, k->t0, t1);
}

/* Completion. The requests are C's or Fortran's; which ones are ours is noted before the call,
 * because their handles are gone after it. The list runs through the entries: no
 * number of requests needs memory here. */
struct waits {
    const MPI_Request *c;
    const MPI_Fint *f;
    int n;
    uint32_t first; /* entry, in array order */
    uint32_t found;
    int anyone; /* one of them is a receive from anyone: its status tells from whom */
};

/* Where the caller wants no statuses, ours tell who sent what was received from anyone; they lie on
 * the stack of the call, so their number has a bound. */
#define FR_OWN_STATUSES 64

static inline MPI_Request waits_at(const struct waits *w, int i)
{
    return w->c ? w->c[i] : fr_pmpi.Request_f2c(w->f[i]);
}

static inline struct fr_request *waits_look(struct waits *w)
{
    struct fr_request *oldest = NULL;

    w->first = FR_NO_REQUEST;
    w->found = 0;
    w->anyone = 0;
    for (int i = w->n - 1; i >= 0; i--) {
        MPI_Request r = waits_at(w, i);
        struct fr_request *q;
        uint32_t id;

        if (r == fr_mpi.request_null || r == fr_mpi.request_empty)
            continue;
        id = fr_request_find(r);
        if (id == FR_NO_REQUEST)
            continue;
        q = fr_request_at(id);
        q->next = w->first;
        q->pos = i;
        w->first = id;
        w->found++;
        w->anyone |= q->op == FR_OP_RECV && q->peer < 0;
        if (q->active && (!oldest || q->t_enq <= oldest->t_enq))
            oldest = q;
    }
    return oldest;
}

/* What a blocking wait shows: the oldest operation that it still waits for. */
static inline void waits_show(struct fr_call *k, const struct fr_request *oldest)
{
    if (oldest)
        fr_lane_now(k->lane, k->t0, FR_OP_WAIT, slot_of(oldest->comm), oldest->seq, oldest->bytes,
                    oldest->peer, oldest->op);
    else
        fr_lane_now(k->lane, k->t0, FR_OP_WAIT, FR_COMM_NONE, 0, 0, -1, 0);
}

/* Where the statuses of the call go: `given`, or `own` when they are needed and have room. */
static inline MPI_Status *waits_statuses(const struct waits *w, MPI_Status *given, MPI_Status *own)
{
    return given == MPI_STATUSES_IGNORE && w->anyone && w->n <= FR_OWN_STATUSES ? own : given;
}

/* The place in `which` that names position pos, -1: none. */
static inline int named_at(const int *which, int n, int pos, int first)
{
    for (int i = 0; which && i < n; i++)
        if (which[i] - first == pos)
            return i;
    return -1;
}

/* End what the call completed. `which` (n of them, counted from `first`) names them where the
 * call does; NULL: all. A request that is no more is complete; a persistent one stays and has to
 * be named. `statuses` name the senders, or are NULL: one in all, or one a request, in the order of
 * `which` where there is one, else of the requests. */
static inline void waits_end(struct fr_call *k, struct waits *w, uint64_t t1, int rc,
                             const int *which, int n, int first, const MPI_Status *statuses,
                             int one_status)
{
    for (uint32_t id = w->first, next; id != FR_NO_REQUEST; id = next) {
        struct fr_request *q = fr_request_at(id);
        int place = which ? named_at(which, n, q->pos, first) : q->pos;

        next = q->next;
        if (!q->active)
            continue;
        if (waits_at(w, q->pos) != fr_mpi.request_null &&
            !((q->flags & FR_REC_PERSISTENT) && place >= 0))
            continue;
        fr_request_end(id, k->lane, t1, rc != MPI_SUCCESS,
                       !statuses || place < 0 ? -1 : statuses[one_status ? 0 : place].MPI_SOURCE);
    }
}

/* MPI_Request_free: what it stood for goes on, but nobody will see its end. */
static inline void request_freed(struct fr_call *k, uint32_t id, uint64_t t1)
{
    struct fr_request *q = fr_request_at(id);

    if (q->active) {
        q->flags &= (uint8_t)~FR_REC_PERSISTENT; /* ended, and removed with that */
        fr_request_end(id, k->lane, t1, 0, -1);
    } else {
        fr_request_remove(id);
    }
}

/* MPI_Start and MPI_Startall: prepared operations get their number and begin. */
static inline void starts_enter(struct fr_call *k, struct waits *w)
{
    waits_look(w);
    for (uint32_t id = w->first; id != FR_NO_REQUEST; id = fr_request_at(id)->next)
        fr_request_start(id, k->t0);
}

/* A wait that completed nothing that we follow still took its time. */
static inline void wait_record(struct fr_call *k, uint64_t t1)
{
    struct fr_request q = {k->t0, 0, 0, NULL, NULL, -1, FR_OP_WAIT, 0, 0, 0, 0, 0};

    if (fr_ticks_us(t1 - k->t0) > 0)
        fr_op_record(k->lane, &q, t1);
}

#endif /* FR_PROBE_MPI_CALL_H */
