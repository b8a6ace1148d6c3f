/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - which operation a request stands for; see shim.h
 *
 * A fixed table of buckets of eight keys (one cache line), two buckets a key, no lock: a
 * slot is reserved with one exchange (with one store while MPI is not called by several threads
 * at once), filled, and shown by storing its key with release, which pairs with the
 * acquire in find(). MPI itself forbids two threads to complete one request; while one may be
 * completing it, the slot is reserved without a key. What finds no room is counted as dropped and
 * taken for complete at once.
 */
#include "probe/mpi/shim.h"

#define BUCKETS  (FR_REQUESTS / FR_REQUEST_WAYS)
#define RESERVED 1u

static uintptr_t keys[FR_REQUESTS] __attribute__((aligned(64)));
static struct fr_request requests[FR_REQUESTS];

static uint32_t bucket_of(uintptr_t key)
{
    return (uint32_t)((uint64_t)key * 0x9e3779b97f4a7c15ull >> 40) % BUCKETS;
}

struct fr_request *fr_request_at(uint32_t id)
{
    return &requests[id];
}

uint32_t fr_request_find(MPI_Request request)
{
    uintptr_t key = (uintptr_t)request;
    uint32_t b = bucket_of(key);

    for (int both = 0; both < 2; both++, b ^= 1)
        for (uint32_t i = b * FR_REQUEST_WAYS; i < (b + 1) * FR_REQUEST_WAYS; i++)
            if (__atomic_load_n(&keys[i], __ATOMIC_ACQUIRE) == key)
                return i;
    return FR_NO_REQUEST;
}

uint64_t fr_request_running(const struct fr_comm *m, uint64_t seq, uint64_t *ret_lowest,
                            uint64_t *ret_mask)
{
    uint64_t n = 0, lowest = UINT64_MAX, mask = 0;

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < FR_REQUESTS; i++) {
            const struct fr_request *q = &requests[i];

            if (__atomic_load_n(&keys[i], __ATOMIC_ACQUIRE) <= RESERVED || q->comm != m ||
                !q->active || q->op >= FR_OP_SEND || q->seq == seq)
                continue;
            if (pass == 0) {
                n++;
                lowest = q->seq < lowest ? q->seq : lowest;
            } else if (q->seq > lowest && q->seq - lowest <= 64) {
                mask |= 1ull << (q->seq - lowest - 1);
            }
        }
    *ret_lowest = lowest;
    *ret_mask = mask;
    return n;
}

int fr_request_holds(const struct fr_comm *m)
{
    for (uint32_t i = 0; i < FR_REQUESTS; i++)
        if (__atomic_load_n(&keys[i], __ATOMIC_ACQUIRE) > RESERVED && requests[i].comm == m)
            return 1;
    return 0;
}

static uint32_t reserve(uintptr_t key)
{
    uint32_t b = bucket_of(key);

    for (int both = 0; both < 2; both++, b ^= 1)
        for (uint32_t i = b * FR_REQUEST_WAYS; i < (b + 1) * FR_REQUEST_WAYS; i++) {
            uintptr_t empty = 0;

            if (__atomic_load_n(&keys[i], __ATOMIC_RELAXED) != 0)
                continue;
            if (!fr_mpi.multiple)
                return i;
            if (__atomic_compare_exchange_n(&keys[i], &empty, RESERVED, 0, __ATOMIC_ACQUIRE,
                                            __ATOMIC_RELAXED))
                return i;
        }
    return FR_NO_REQUEST;
}

static void complete(const struct fr_request *q, struct fr_lane *l, uint64_t t)
{
    if (q->comm && q->op < FR_OP_SEND)
        fr_comm_complete(q->comm, q->seq, t);
    fr_op_record(l, q, t);
}

void fr_request_add(MPI_Request request, const struct fr_request *q, struct fr_lane *l, uint64_t t)
{
    uint32_t id;

    /* Open MPI answers what was complete at once with one request for all. */
    if (request == fr_mpi.request_empty || request == fr_mpi.request_null) {
        if (q->active)
            complete(q, l, t);
        if (q->newcomm)
            fr_comm_created(*q->newcomm);
        return;
    }
    id = reserve((uintptr_t)request);
    if (fr_unlikely(id == FR_NO_REQUEST)) {
        fr_store(&l->seg->dropped, l->seg->dropped + 1);
        if (q->active && q->comm && q->op < FR_OP_SEND)
            fr_comm_complete(q->comm, q->seq, t);
        return;
    }
    requests[id] = *q;
    __atomic_store_n(&keys[id], (uintptr_t)request, __ATOMIC_RELEASE);
}

void fr_request_remove(uint32_t id)
{
    __atomic_store_n(&keys[id], 0, __ATOMIC_RELEASE);
}

void fr_request_hide(uint32_t id)
{
    __atomic_store_n(&keys[id], RESERVED, __ATOMIC_RELEASE);
}

void fr_request_show(uint32_t id, MPI_Request request)
{
    __atomic_store_n(&keys[id], (uintptr_t)request, __ATOMIC_RELEASE);
}

void fr_request_start(uint32_t id, uint64_t t)
{
    struct fr_request *q = &requests[id];

    q->t_enq = t;
    q->active = 1;
    if (q->op == FR_OP_SEND)
        q->seq = fr_pair_next(fr_mpi.sent, q->peer);
    else if (q->op == FR_OP_RECV)
        q->seq = fr_pair_next(fr_mpi.received, q->peer);
    else
        q->seq = q->comm ? fr_comm_enqueue(q->comm, t, q->op, q->dtype, q->peer, q->bytes) : 0;
}

void fr_request_end(uint32_t id, struct fr_lane *l, uint64_t t, int failed, int source)
{
    struct fr_request *q = &requests[id];
    struct fr_request done = *q;

    if (done.op == FR_OP_RECV && done.seq == 0 && source >= 0) {
        done.peer = fr_comm_peer(done.comm, source);
        done.seq = fr_pair_next(fr_mpi.received, done.peer);
    }
    if (failed)
        done.flags |= FR_REC_FAILED;
    complete(&done, l, t);
    if (done.newcomm)
        fr_comm_created(*done.newcomm);
    if (q->flags & FR_REC_PERSISTENT)
        q->active = 0;
    else
        fr_request_remove(id);
}
