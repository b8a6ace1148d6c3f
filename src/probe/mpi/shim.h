/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.h - what the MPI wrappers share: the real functions, communicators, requests, a call
 *
 * The library is preloaded into every process of a job script, most of which know no MPI. So
 * it links no MPI library: it finds the PMPI functions of whichever one the program brought
 * when the first wrapper runs.
 *
 * Unit:    ticks; ranks are ranks of the job (MPI_COMM_WORLD) unless the name says comm_rank.
 * Threads: any, up to MPI_THREAD_MULTIPLE. fr_mpi.multiple says whether more than one may
 *          come at a time; only then are read-modify-write instructions used.
 * Memory:  fixed arrays of this library (about 0.7 MiB, touched as used) and, at MPI_Init, two
 *          counters a peer.
 * Source:  MPI 3.1 chapter 14.2 (the profiling interface).
 */
#ifndef FR_PROBE_MPI_SHIM_H
#define FR_PROBE_MPI_SHIM_H

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include "probe/mpi/arguments.h"
#include "probe/probe.h"

#define FR_EXPORT __attribute__((visibility("default")))
#define FR_HIDDEN __attribute__((visibility("hidden")))

#define FR_NO_TYPE      ((MPI_Datatype)0)
#define FR_NO_REQUEST   UINT32_MAX
#define FR_REQUESTS     8192 /* requests that are followed at a time, a power of two */
#define FR_REQUEST_WAYS 8    /* of a bucket: eight keys are one cache line */
#define FR_COMM_REST_US                                                                            \
    1000000u /* a freed slot is left alone so long: the agent has read it by then */

/* The real functions. */
struct fr_pmpi {
#define COLLECTIVE(Name, lower, UPPER, op, root, bytes, type, ...)                                 \
    int (*Name)(FR_LIST(FR_C_DECL, __VA_ARGS__));                                                  \
    int (*I##lower)(FR_LIST(FR_C_DECL, __VA_ARGS__), MPI_Request *);                               \
    int (*lower##_init)(FR_LIST(FR_C_DECL, __VA_ARGS__), MPI_Info, MPI_Request *);                 \
    void *f_##lower;                                                                               \
    void *f_i##lower;                                                                              \
    void *f_##lower##_init;
#define SEND(Name, lower, UPPER)                                                                   \
    int (*Name)(const void *, int, MPI_Datatype, int, int, MPI_Comm);                              \
    int (*I##lower)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);           \
    int (*Name##_init)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);        \
    void *f_##lower;                                                                               \
    void *f_i##lower;                                                                              \
    void *f_##lower##_init;
#define CREATE(Name, lower, UPPER, ...)                                                            \
    int (*Name)(FR_LIST(FR_C_DECL, __VA_ARGS__));                                                  \
    void *f_##lower;
#define CREATE_GROUP CREATE
#include "probe/mpi/calls.def"
#undef COLLECTIVE
#undef SEND
#undef CREATE
#undef CREATE_GROUP
#define PLAIN(Name, lower, UPPER)                                                                  \
    __typeof__(&PMPI_##Name) Name;                                                                 \
    void *f_##lower;
#define QUERY(Name) __typeof__(&PMPI_##Name) Name;
#include "probe/mpi/plain.def"
#undef PLAIN
#undef QUERY
};

enum fr_mpi_state {
    FR_MPI_UNRESOLVED = 0, /* the real functions are not known yet */
    FR_MPI_WAITING = 1,    /* known; MPI has not started */
    FR_MPI_WATCHING = 2,
    FR_MPI_OFF = 3
};

/* A communicator, as this process follows it. */
struct fr_comm {
    MPI_Comm handle; /* null: freed */
    struct fr_seg_comm *slot;
    uint32_t index; /* of the slot */
    uint32_t size, rank;
    uint64_t enqueued, completed;
    uint64_t done_mask;   /* bit i: operation completed + 2 + i is complete, ahead of others */
    uint64_t outstanding; /* enqueued and not complete */
    uint64_t beyond;      /* completions that done_mask could not hold */
    uint64_t t_freed;     /* ticks; 0: not freed, or the slot is in use again */
    MPI_Group group;      /* only when the members do not fit in the slot's runs */
    int has_group;
};

/* A request that is followed. */
struct fr_request {
    uint64_t t_enq;
    uint64_t bytes;
    uint64_t seq; /* 0: a receive from anyone, numbered when it ends */
    struct fr_comm *comm;
    MPI_Comm *newcomm; /* MPI_Comm_idup: where the communicator will stand */
    int32_t peer;      /* job rank or root */
    uint8_t op, dtype, flags, active;
    uint32_t next; /* the wait that looks at it keeps its requests in a list through here */
    int pos;       /* and where in its array this one stands */
};

struct fr_mpi {
    int state; /* enum fr_mpi_state */
    int multiple;
    int keyval;
    int32_t rank, world;
    uint32_t *sent, *received; /* p2p operations per peer */
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Request request_null, request_empty;
    MPI_Group world_group;
};

/* One call in progress. */
struct fr_call {
    struct fr_lane *lane; /* NULL: not watched */
    struct fr_comm *comm; /* NULL: none, or not followed */
    uint64_t t0, bytes, seq;
    int32_t peer;
    uint8_t op, dtype, flags;
    uint64_t n; /* the communicator's size */
    int r;      /* this rank in it */
};

struct fr_type {
    uint32_t size_bytes;
    uint8_t code; /* enum fr_dtype */
};

extern struct fr_pmpi fr_pmpi FR_HIDDEN;
extern struct fr_mpi fr_mpi FR_HIDDEN;

/* shim.c */
int fr_mpi_start(void) FR_HIDDEN; /* find the functions, open the segment; 1 when watching */
void fr_mpi_initialized(void) FR_HIDDEN;
void fr_mpi_finalizing(void) FR_HIDDEN;
void fr_mpi_stopped(void) FR_HIDDEN;
struct fr_type fr_type_slow(MPI_Datatype t) FR_HIDDEN;

/* comm.c */
void fr_comm_setup(void) FR_HIDDEN;
struct fr_comm *fr_comm_find_slow(MPI_Comm c) FR_HIDDEN;
void fr_comm_created(MPI_Comm c) FR_HIDDEN;
void fr_comm_named(MPI_Comm c) FR_HIDDEN;
int32_t fr_comm_peer(const struct fr_comm *m, int comm_rank) FR_HIDDEN;
void fr_comm_complete_slow(struct fr_comm *m, uint64_t seq, uint64_t t) FR_HIDDEN;

/* The slot's progress is written by whoever calls on it: one at a time, but for a completion in
 * one thread beside a call in another. Only then does the writer wait for its turn, and not
 * for long: rather a torn copy, which the agent reads again a moment later. */
static inline uint64_t fr_slot_open(struct fr_seg_comm *s)
{
    if (fr_unlikely(fr_mpi.multiple))
        for (int i = 0; i < 1000; i++) {
            uint64_t v = __atomic_load_n(&s->version, __ATOMIC_RELAXED);

            if (!(v & 1) && __atomic_compare_exchange_n(&s->version, &v, v + 1, 0, __ATOMIC_ACQUIRE,
                                                        __ATOMIC_RELAXED)) {
                fr_fence_release();
                return v + 2;
            }
        }
    return fr_version_open(&s->version);
}

/* Take the next number on a communicator and show that the operation is under way. */
static inline uint64_t fr_comm_enqueue(struct fr_comm *m, uint64_t t, uint8_t op, uint8_t dtype,
                                       int32_t root, uint64_t bytes)
{
    struct fr_seg_comm *s = m->slot;
    uint64_t v = fr_slot_open(s), seq;

    if (fr_unlikely(fr_mpi.multiple))
        __atomic_fetch_add(&m->outstanding, 1, __ATOMIC_ACQ_REL);
    else
        m->outstanding++;
    seq = ++m->enqueued;
    fr_store(&s->enqueued, seq);
    fr_store(&s->started, seq);
    fr_store(&s->t_enqueued, t);
    fr_store(&s->op_bytes, bytes);
    fr_store(&s->op, (uint32_t)op);
    fr_store(&s->dtype, (uint32_t)dtype);
    fr_store(&s->root, (uint32_t)root);
    fr_version_close(&s->version, v);
    return seq;
}

/* The next number of the ordered pair with `peer`. */
static inline uint64_t fr_pair_next(uint32_t *pairs, int32_t peer)
{
    if (peer < 0 || peer >= fr_mpi.world)
        return 0;
    if (fr_unlikely(fr_mpi.multiple))
        return __atomic_add_fetch(&pairs[peer], 1, __ATOMIC_RELAXED);
    return ++pairs[peer];
}

/* request.c */
void fr_request_add(MPI_Request key, const struct fr_request *r, struct fr_lane *l,
                    uint64_t t) FR_HIDDEN;
uint32_t fr_request_find(MPI_Request key) FR_HIDDEN;
void fr_request_start(uint32_t id, uint64_t t) FR_HIDDEN;
void fr_request_end(uint32_t id, struct fr_lane *l, uint64_t t, int failed, int source) FR_HIDDEN;
void fr_request_remove(uint32_t id) FR_HIDDEN;
/* While a thread is in the call that may end a request, its entry has no key: MPI may give the
 * handle to another thread's request before the call returns. */
void fr_request_hide(uint32_t id) FR_HIDDEN;
void fr_request_show(uint32_t id, MPI_Request key) FR_HIDDEN; /* it was not ended */
struct fr_request *fr_request_at(uint32_t id) FR_HIDDEN;
/* The running collectives of a communicator but `seq`: how many are followed, and their numbers
 * (the lowest, and those of the 64 behind it as done_mask counts them). Looks at the whole table.
 */
uint64_t fr_request_running(const struct fr_comm *m, uint64_t seq, uint64_t *ret_lowest,
                            uint64_t *ret_mask) FR_HIDDEN;
/* 1 when a request of this communicator is followed, running or prepared. */
int fr_request_holds(const struct fr_comm *m) FR_HIDDEN;

#define FR_COMM_CACHE 512
extern uint16_t fr_comm_cache[FR_COMM_CACHE] FR_HIDDEN; /* index + 1 of fr_comms */
extern struct fr_comm fr_comms[FR_SEG_COMMS] FR_HIDDEN;

static inline uint32_t fr_comm_hash(MPI_Comm c)
{
    return (uint32_t)(((uint64_t)(uintptr_t)c * 0x9e3779b97f4a7c15ull) >> 55) % FR_COMM_CACHE;
}

/* The communicator behind a handle; NULL when it is not followed. */
static inline struct fr_comm *fr_comm_find(MPI_Comm c)
{
    uint32_t i = __atomic_load_n(&fr_comm_cache[fr_comm_hash(c)], __ATOMIC_ACQUIRE);

    if (fr_likely(i) && fr_likely(__atomic_load_n(&fr_comms[i - 1].handle, __ATOMIC_RELAXED) == c))
        return &fr_comms[i - 1];
    return fr_comm_find_slow(c);
}

/* Operation `seq` is complete. Inline: the one blocking operation of a communicator. */
static inline void fr_comm_complete(struct fr_comm *m, uint64_t seq, uint64_t t)
{
    struct fr_seg_comm *s = m->slot;
    uint64_t v;

    if (fr_unlikely(fr_mpi.multiple || m->outstanding != 1)) {
        fr_comm_complete_slow(m, seq, t);
        return;
    }
    m->outstanding = 0;
    m->completed = m->enqueued;
    m->done_mask = 0;
    v = fr_version_open(&s->version);
    fr_store(&s->completed, m->completed);
    fr_store(&s->t_completed, t);
    fr_version_close(&s->version, v);
}

/* Write the record of an operation that ended. */
static inline void fr_op_record(struct fr_lane *l, const struct fr_request *q, uint64_t t_end)
{
    struct fr_record *r = fr_lane_record(l);

    r->t_enq = r->t_start = q->t_enq;
    r->t_end = t_end;
    r->bytes = q->bytes;
    r->seq = (uint32_t)q->seq;
    r->comm = q->comm ? (uint16_t)q->comm->index : (uint16_t)FR_COMM_NONE;
    r->op = q->op;
    r->dtype = q->dtype;
    r->flags = q->flags;
    r->algo = r->proto = r->channels = 0;
    r->peer = q->peer;
    fr_lane_commit(l);
}

/* Predefined types are remembered: their handles are never freed. */
#define FR_TYPES 256
struct fr_type_slot {
    MPI_Datatype handle;
    struct fr_type type;
};
extern struct fr_type_slot fr_types[FR_TYPES] FR_HIDDEN;

static inline uint32_t fr_type_hash(MPI_Datatype t)
{
    return (uint32_t)(((uint64_t)(uintptr_t)t * 0x9e3779b97f4a7c15ull) >> 56);
}

static inline struct fr_type fr_mpi_type(MPI_Datatype t)
{
    const struct fr_type_slot *s = &fr_types[fr_type_hash(t)];

    return fr_likely(s->handle == t) ? s->type : fr_type_slow(t);
}

/* Begin a wrapper. Returns 1 when the call is to be watched. */
static inline int fr_call_begin(struct fr_call *k)
{
    k->lane = NULL;
    if (fr_unlikely(__atomic_load_n(&fr_mpi.state, __ATOMIC_ACQUIRE) != FR_MPI_WATCHING) &&
        !fr_mpi_start())
        return 0;
    k->lane = fr_lane_begin();
    if (fr_unlikely(!k->lane))
        return 0;
    k->comm = NULL;
    k->n = 1;
    k->r = 0;
    k->t0 = fr_ticks();
    fr_lane_enter(k->lane, k->t0);
    return 1;
}

static inline int fr_call_begin_on(struct fr_call *k, MPI_Comm c)
{
    if (fr_unlikely(!fr_call_begin(k)))
        return 0;
    k->comm = fr_comm_find(c);
    if (fr_likely(k->comm != NULL)) {
        k->n = k->comm->size;
        k->r = (int)k->comm->rank;
    }
    return 1;
}

#endif /* FR_PROBE_MPI_SHIM_H */
