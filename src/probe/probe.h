/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - the job's side of the shared segment: open it, claim a lane, stamp calls
 *
 * What every library that goes into a job has in common. The segment is made at the first mark
 * or at MPI_Init; from then on an event is a few stores into memory that is mapped, touched and
 * owned by the calling thread.
 *
 * Unit:    ticks (wire/ticks.h) unless the name says otherwise.
 * Memory:  one mapped file a process; nothing is allocated after a lane was claimed.
 * Threads: fr_probe is written once by whoever opens it; a lane belongs to its thread.
 *          A thread that finds no lane free writes into a private one and counts drops.
 * Cost:    enter, leave and one record: see bench/bench_probe.c. The only system call on an
 *          event's path is a read of the thread's run-queue wait: at most one each
 *          FR_READY_EVERY_NS per lane (about 1 us each 1,000 us), none at level hang.
 */
#ifndef FR_PROBE_PROBE_H
#define FR_PROBE_PROBE_H

#include <stdint.h>
#include <string.h>

#include "wire/ring.h"
#include "wire/ticks.h"

#define fr_likely(x)   __builtin_expect(!!(x), 1)
#define fr_unlikely(x) __builtin_expect(!!(x), 0)
#ifndef FR_TLS
#define FR_TLS __thread __attribute__((tls_model("initial-exec")))
#endif

#define FR_READY_EVERY_NS 1000000u /* run-queue wait is read at most this often */
#define FR_READY_CALL_NS  100000u  /* and after a call only if that call took this long */

enum fr_probe_state { FR_PROBE_NEW = 0, FR_PROBE_OPENING = 1, FR_PROBE_ON = 2, FR_PROBE_DEAD = 3 };

/* The process's segment. */
struct fr_probe {
    int state; /* enum fr_probe_state; loaded with acquire, pairs with the opener's release */
    uint32_t clock;
    uint32_t level;
    uint32_t mask;      /* records of a lane - 1 */
    uint32_t open_step; /* low half of the step that is open, 0: none */
    uint8_t *base;
    struct fr_seg_header *hdr;
    struct fr_seg_comm *comms;
    struct fr_seg_step *steps;
    /* Bettered once while lanes are in use: relaxed loads and stores. */
    uint64_t us_mult;     /* microseconds = ticks * us_mult >> 44 */
    uint64_t ready_every; /* FR_READY_EVERY_NS in ticks */
    uint64_t ready_call;  /* FR_READY_CALL_NS in ticks */
    char path[512];
};

/* What a thread keeps to itself about its lane. */
struct fr_lane {
    struct fr_seg_lane *seg; /* NULL: not claimed yet */
    struct fr_record *records;
    uint64_t head;
    uint32_t mask;
    uint8_t inside;         /* in a call: what it calls in turn is not counted again */
    uint8_t denied;         /* writes into its private lane */
    int ready_fd;           /* /proc/self/task/<tid>/schedstat, -1: not read */
    uint64_t t_last;        /* left the last call */
    uint64_t gap;           /* outside calls since the last record */
    uint64_t gap_unread;    /* outside calls since the last read of the run-queue wait */
    uint64_t t_read;        /* of that read */
    uint64_t ready_seen_ns; /* what it said */
    uint64_t ready_gap_ns;  /* run-queue wait of `gap` */
    uint64_t in_calls;
    uint64_t calls;
    uint64_t ready_ns;
    struct fr_seg_lane *spare; /* where a denied thread writes */
};

extern struct fr_probe fr_probe __attribute__((visibility("hidden")));
extern FR_TLS struct fr_lane fr_lane_self __attribute__((visibility("hidden")));

/* Open the segment if that was not tried yet. Returns 1 when there is one. Does not block on
 * another thread that is opening it: that caller gets 0. */
int fr_probe_open(void);

/* Add a source bit (enum fr_seg_source) to the header. */
void fr_probe_source(uint32_t source);

/* State rank and world size of this process. */
void fr_probe_rank(int32_t rank, int32_t world);

/* Better the estimate of the counter's rate from the time since the start. Off the hot path. */
void fr_probe_tune(void);

/* The program said goodbye: the file goes when the process ends. */
void fr_probe_finalized(void);

/* Claim a lane for the calling thread. Returns 1; 0 when there is no segment. */
int fr_lane_claim(struct fr_lane *l);

/* Claim a lane that belongs to no thread: whoever fills it sees to it that only one does at a time.
 * Returns 1; 0 when none is free. */
int fr_lane_share(struct fr_lane *l, uint64_t owner);

/* Read the run-queue wait; `in_gap` is 1 when it belongs to time outside calls. */
void fr_lane_read_ready(struct fr_lane *l, uint64_t now, int in_gap);

/* Count an event that has neither lane nor slot. */
void fr_probe_drop(void);

/* What was stored before is seen before what is stored after. ThreadSanitizer knows no fences;
 * the reader, another process, is not in its sight anyway. */
static inline void fr_fence_release(void)
{
#if defined(__SANITIZE_THREAD__)
    __atomic_signal_fence(__ATOMIC_RELEASE);
#else
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

#define fr_load(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define fr_store(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static inline uint64_t fr_ticks(void)
{
    return fr_ticks_of(fr_probe.clock);
}

static inline uint32_t fr_ticks_us(uint64_t ticks)
{
    uint64_t us = (uint64_t)((unsigned __int128)ticks * fr_load(&fr_probe.us_mult) >> 44);

    return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static inline uint64_t fr_ticks_ns(uint64_t ticks)
{
    return (uint64_t)((unsigned __int128)ticks * fr_load(&fr_probe.us_mult) * 1000u >> 44);
}

/* Between two versions the agent's copy does not count. Pairs with the reader's two loads. */
static inline uint64_t fr_version_open(uint64_t *version)
{
    uint64_t v = *version;

    fr_store(version, v + 1);
    fr_fence_release();
    return v + 2;
}

static inline void fr_version_close(uint64_t *version, uint64_t v)
{
    __atomic_store_n(version, v, __ATOMIC_RELEASE);
}

/* The calling thread's lane for one call, or NULL: not watched, or inside another call. */
static inline struct fr_lane *fr_lane_begin(void)
{
    struct fr_lane *l = &fr_lane_self;

    if (fr_unlikely(!l->seg) && !fr_lane_claim(l))
        return NULL;
    if (fr_unlikely(l->inside))
        return NULL;
    l->inside = 1;
    return l;
}

/* Account for the time outside calls that ends at t0. */
static inline void fr_lane_enter(struct fr_lane *l, uint64_t t0)
{
    uint64_t gap = t0 - l->t_last;

    if (fr_unlikely((int64_t)gap < 0)) /* another core's counter is a hair behind */
        gap = 0;
    l->gap += gap;
    l->gap_unread += gap;
    if (fr_unlikely(l->gap_unread >= fr_load(&fr_probe.ready_every)))
        fr_lane_read_ready(l, t0, 1);
}

/* Account for the call t0..t1 and show that the thread is outside again. */
static inline void fr_lane_leave(struct fr_lane *l, uint64_t t0, uint64_t t1)
{
    struct fr_seg_now *now = &l->seg->now;
    uint64_t took = t1 - t0, v;

    if (fr_unlikely((int64_t)took < 0))
        took = 0;
    l->in_calls += took;
    l->calls++;
    l->t_last = t1;
    v = fr_version_open(&now->version);
    fr_store(&now->t_enter, t1);
    fr_store(&now->op, (uint32_t)FR_OP_NONE);
    fr_version_close(&now->version, v);
    fr_store(&l->seg->in_calls_ticks, l->in_calls);
    fr_store(&l->seg->calls, l->calls);
    if (fr_unlikely(took >= fr_load(&fr_probe.ready_call)) &&
        t1 - l->t_read >= fr_load(&fr_probe.ready_every))
        fr_lane_read_ready(l, t1, 0);
    l->inside = 0;
}

/* The call never showed itself (a test that does not wait): only account for it. */
static inline void fr_lane_leave_quietly(struct fr_lane *l, uint64_t t0, uint64_t t1)
{
    l->in_calls += (int64_t)(t1 - t0) < 0 ? 0 : t1 - t0;
    l->calls++;
    l->t_last = t1;
    fr_store(&l->seg->in_calls_ticks, l->in_calls);
    fr_store(&l->seg->calls, l->calls);
    l->inside = 0;
}

/* Show what the thread is in. */
static inline void fr_lane_now(struct fr_lane *l, uint64_t t0, uint32_t op, uint32_t comm,
                               uint64_t seq, uint64_t bytes, int32_t peer, uint32_t waits_for)
{
    struct fr_seg_now *now = &l->seg->now;
    uint64_t v = fr_version_open(&now->version);

    fr_store(&now->t_enter, t0);
    fr_store(&now->bytes, bytes);
    fr_store(&now->seq, seq);
    fr_store(&now->comm, comm);
    fr_store(&now->peer, peer);
    fr_store(&now->op, op);
    fr_store(&now->waits_for, waits_for);
    fr_version_close(&now->version, v);
}

/* The next record of the lane, to be filled in by the caller (but gap, step and index). */
static inline struct fr_record *fr_lane_record(struct fr_lane *l)
{
    struct fr_record *r = &l->records[l->head & l->mask];

    /* The last head must be seen before this slot changes: pairs with the reader's second
     * look at head. Free on x86-64. */
    fr_fence_release();
    r->index = (uint32_t)l->head;
    r->step = __atomic_load_n(&fr_probe.open_step, __ATOMIC_RELAXED);
    r->gap_us = fr_ticks_us(l->gap);
    r->ready_us = 0;
    l->gap = 0;
    if (fr_unlikely(l->ready_gap_ns)) {
        uint64_t us = l->ready_gap_ns / 1000u;

        r->ready_us = us > r->gap_us ? r->gap_us : (uint32_t)us;
        l->ready_gap_ns = 0;
    }
    return r;
}

/* Publish the record: the reader's acquire of head pairs with this release. */
static inline void fr_lane_commit(struct fr_lane *l)
{
    l->head++;
    __atomic_store_n(&l->seg->head, l->head, __ATOMIC_RELEASE);
    if (fr_unlikely(l->denied))
        fr_probe_drop();
}

#endif /* FR_PROBE_PROBE_H */
