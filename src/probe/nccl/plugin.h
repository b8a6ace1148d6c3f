/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h - what the NCCL plugin keeps of communicators and of operations under way
 *
 * NCCL tells an operation in pieces: it is enqueued by one thread, its channels start and stop in
 * another, its network operations in a third, and any of them may be missing, repeated or late.
 * The pieces are gathered in a slot of a fixed ring; the last one writes one record into the
 * shared segment. What has no slot, no end or no believable time is counted as dropped.
 *
 * A handle given to NCCL is no pointer but a name: kind, communicator, slot, channel and the slot's
 * generation. So a handle that comes back twice, late, or out of another process finds nothing
 * instead of somebody else's memory.
 *
 *   names.c    strings of NCCL as numbers, bytes by nccl-tests' rules
 *   level.c    level, activation mask, the agent's control page
 *   comm.c     communicators: init, finalize, slots of the segment
 *   op.c       collectives and their channels: start, stop, record
 *   fold.c     sends and receives of one group as one operation
 *   event.c    the callbacks; ncclProfiler_v4 to _v7
 *
 * Unit:    ticks (wire/ticks.h) on the host, nanoseconds on the GPU.
 * Threads: any, at any time. Words that two threads may touch are atomics; the order that matters
 *          is that of fr_nccl_op.gen (stored with release when a slot is filled) and of
 *          fr_nccl_fold.pending. No thread ever waits for another.
 * Memory:  ring of slots, one a communicator, mapped and touched at init: 192 bytes x 512 to 4096.
 */
#ifndef FR_PROBE_NCCL_PLUGIN_H
#define FR_PROBE_NCCL_PLUGIN_H

#include "probe/nccl/abi.h"
#include "probe/probe.h"

#define FR_NCCL_HIDDEN __attribute__((visibility("hidden")))
#define FR_NCCL_EXPORT __attribute__((visibility("default")))

#define FR_NCCL_COMMS      256 /* at a time; as many as the segment has slots */
#define FR_NCCL_OPS_LEAST  512
#define FR_NCCL_OPS_MOST   4096
#define FR_NCCL_FOLDS      128 /* groups of sends and receives under way, a power of two */
#define FR_NCCL_LANES      4   /* of the segment, shared by all threads of NCCL */
#define FR_NCCL_LAG        64  /* so many newer ones have ended: an older one never will */
#define FR_NCCL_LAG_UNSEEN 4   /* the same for one of which no channel was ever seen */
#define FR_NCCL_REST_US    1000000u

enum fr_nccl_kind {
    FR_H_CONTEXT = 1,
    FR_H_GROUP,
    FR_H_OP,      /* a collective, or one send or receive */
    FR_H_CHANNEL, /* a channel's part of it */
    FR_H_PROXY,
    FR_H_STEP
};

enum fr_nccl_mode {
    FR_MODE_KERNEL = 0, /* ends when all of its channels have stopped */
    FR_MODE_QUIET,      /* how many channels is not known: when those that started have stopped */
    FR_MODE_PROXY,      /* level hang: when its network operations have ended */
    FR_MODE_BLIND       /* its end is not visible */
};

enum fr_op_state { FR_OPS_FREE = 0, FR_OPS_LIVE = 1, FR_OPS_DONE = 2 };

/* 64 channels of an operation. */
struct fr_nccl_channels {
    uint64_t started, stamped, ended;
};

struct fr_nccl_op {
    uint32_t gen;   /* of the handles that name this slot; stored last, with release */
    uint32_t state; /* enum fr_op_state */
    uint64_t seq;   /* collectives: of the communicator; else the group that it is of */
    uint64_t t_enq, bytes;
    uint64_t gpu_start, gpu_end;
    uint32_t step;
    int32_t peer; /* root of a rooted one, -1 */
    uint8_t op, dtype, algo, proto;
    uint8_t channels; /* expected */
    uint8_t mode;     /* enum fr_nccl_mode */
    uint8_t unstamped;
    uint8_t quiet; /* FR_MODE_QUIET: all that started have stopped */
    /* second line */
    uint32_t nstarted, nended;
    uint32_t proxies, proxies_done;
    uint32_t refused; /* newest generation that found the slot taken */
    uint16_t fold;    /* FR_NCCL_FOLDS: a collective */
    struct fr_nccl_channels ch[4];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct fr_nccl_op) == 192, "three cache lines");

enum fr_fold_state { FR_FOLD_FREE = 0, FR_FOLD_OPENED, FR_FOLD_CLOSED };

/* Sends and receives of one group. */
struct fr_nccl_fold {
    uint32_t state; /* enum fr_fold_state */
    uint32_t group;
    int32_t pending; /* parts that run, and 1 until the group is closed */
    uint32_t step;
    uint64_t t_enq, send_bytes, recv_bytes;
    uint64_t gpu_start, gpu_end;
    uint32_t sends, recvs, send_peers, recv_peers;
    int32_t send_peer, recv_peer; /* the newest */
    uint32_t send_seq, recv_seq;
    uint64_t seq; /* of the communicator's groups, once closed */
    uint8_t dtype, op, channels, bad, mode, started;
} __attribute__((aligned(64)));

/* Sends to and receives from one peer. */
struct fr_nccl_peer {
    uint32_t sent, received;
    uint32_t send_group, recv_group; /* newest group in which it had any */
};

enum fr_nccl_comm_state { FR_NCCL_FREE = 0, FR_NCCL_OPENING, FR_NCCL_ON, FR_NCCL_CLOSED };

struct fr_nccl_comm {
    uint32_t state; /* enum fr_nccl_comm_state */
    uint32_t gen;
    uint32_t index, version; /* own number; ABI version */
    uint32_t nranks;
    int32_t rank;
    uint32_t ops_cap, peers_cap; /* of what is mapped */
    struct fr_nccl_op *ops;
    uint32_t mask;
    uint16_t seg, p2p_seg; /* slots of the segment, FR_COMM_NONE */
    uint8_t world;         /* its ranks are those of the job */
    uint8_t p2p_tried;
    struct fr_seg_comm *slot, *p2p;
    struct fr_nccl_fold *folds;
    struct fr_nccl_peer *peers;
    uint64_t hash, t_freed;
    char name[16];
    /* written where operations are enqueued */
    uint64_t ticket __attribute__((aligned(64)));
    uint64_t enqueued, p2p_enqueued;
    uint32_t group;
    /* written where they end */
    uint64_t tail __attribute__((aligned(64))); /* oldest ticket that may be under way */
    uint32_t walking;
    uint32_t deferred; /* FR_MODE_QUIET: fold that has ended, told when the next one does; + 1 */
    uint64_t started, completed, newest_done, newest_ticket;
    uint64_t p2p_started, p2p_completed;
    uint64_t last_start, last_end; /* GPU times of the operation before */
    uint64_t ref_ticks, ref_ns;    /* one moment in ticks and CLOCK_MONOTONIC */
    int64_t offset, offset_now;    /* of the window before, and of this one so far */
    uint64_t seen_proxy;
} __attribute__((aligned(64)));

struct fr_nccl {
    uint32_t level;  /* enum fr_probe_level in force */
    uint32_t level0; /* of the environment */
    uint32_t nonce;  /* first generation: differs from process to process */
    uint32_t pid;
    int *mask;               /* NCCL's own word, the newest that was handed in */
    uint32_t version;        /* of whoever handed it in */
    const uint64_t *control; /* this process's word of the control page */
    uint64_t control_seen;
};

extern struct fr_nccl fr_nccl FR_NCCL_HIDDEN;
extern struct fr_nccl_comm fr_nccl_comms[FR_NCCL_COMMS] FR_NCCL_HIDDEN;

/* --- handles: kind 3 bits, communicator 8, slot 12, channel 8, generation 32 --- */

static inline void *fr_handle(uint32_t kind, uint32_t comm, uint32_t slot, uint32_t channel,
                              uint32_t gen)
{
    return (void *)(uintptr_t)((uint64_t)kind | (uint64_t)comm << 3 | (uint64_t)slot << 11 |
                               (uint64_t)channel << 23 | (uint64_t)gen << 31);
}

#define fr_h_kind(h)    ((uint32_t)((uintptr_t)(h)&7u))
#define fr_h_comm(h)    ((uint32_t)((uintptr_t)(h) >> 3 & 0xffu))
#define fr_h_slot(h)    ((uint32_t)((uintptr_t)(h) >> 11 & 0xfffu))
#define fr_h_channel(h) ((uint32_t)((uintptr_t)(h) >> 23 & 0xffu))
#define fr_h_gen(h)     ((uint32_t)((uint64_t)(uintptr_t)(h) >> 31))

/* The communicator behind a context or a handle, NULL: none of ours, or closed. */
static inline struct fr_nccl_comm *fr_nccl_comm_of(const void *h)
{
    struct fr_nccl_comm *c = &fr_nccl_comms[fr_h_comm(h)];

    if (fr_unlikely((uint64_t)(uintptr_t)h >> 63 ||
                    __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) != FR_NCCL_ON))
        return NULL;
    return c;
}

/* The slot that a handle names, if it still holds that operation. */
static inline struct fr_nccl_op *fr_nccl_op_of(const struct fr_nccl_comm *c, const void *h)
{
    struct fr_nccl_op *o = &c->ops[fr_h_slot(h) & c->mask];

    if (fr_unlikely(__atomic_load_n(&o->gen, __ATOMIC_ACQUIRE) != fr_h_gen(h) ||
                    fr_load(&o->state) != FR_OPS_LIVE))
        return NULL;
    return o;
}

/* A change that the agent is to see. Several threads do this: a lost one is made up by the next,
 * and the reader compares what it read anyway. Stays even. */
static inline void fr_nccl_touch(struct fr_seg_comm *s)
{
    __atomic_store_n(&s->version, fr_load(&s->version) + 2, __ATOMIC_RELEASE);
}

static inline void fr_store_max(uint64_t *p, uint64_t v)
{
    if (fr_load(p) < v)
        fr_store(p, v);
}

/* --- names.c --- */
struct fr_nccl_names {
    uint8_t op, dtype, algo, proto;
    uint8_t per_rank; /* the count is one rank's block: S is n of them */
    uint8_t rooted;
};
int fr_nccl_func(const char *func, struct fr_nccl_names *ret) FR_NCCL_HIDDEN;
uint32_t fr_nccl_dtype(const char *name, uint8_t *ret_code) FR_NCCL_HIDDEN;
uint8_t fr_nccl_algo(const char *name) FR_NCCL_HIDDEN;
uint8_t fr_nccl_proto(const char *name) FR_NCCL_HIDDEN;
int fr_nccl_bytes(uint64_t count, uint32_t size, uint64_t n, uint64_t *ret) FR_NCCL_HIDDEN;

/* --- level.c --- */
void fr_nccl_open_control(const char *dir) FR_NCCL_HIDDEN;
int fr_nccl_mask_for(uint32_t level, uint32_t version) FR_NCCL_HIDDEN;
void fr_nccl_new_level(uint64_t word) FR_NCCL_HIDDEN;

static inline void fr_nccl_look(void)
{
    const uint64_t *p = __atomic_load_n(&fr_nccl.control, __ATOMIC_ACQUIRE);
    uint64_t word;

    if (!p)
        return;
    word = fr_load(p);
    if (fr_unlikely(word != fr_load(&fr_nccl.control_seen)))
        fr_nccl_new_level(word);
}

/* --- comm.c --- */
int fr_nccl_init(void **ret_context, uint32_t version, uint64_t id, int *mask, const char *name,
                 int nranks, int rank) FR_NCCL_HIDDEN;
int fr_nccl_finalize(void *context) FR_NCCL_HIDDEN;
void fr_nccl_p2p_slot(struct fr_nccl_comm *c) FR_NCCL_HIDDEN;
int fr_nccl_write(const struct fr_nccl_comm *c, const struct fr_record *r) FR_NCCL_HIDDEN;

/* The step that is open, 0: none. The marks are another library's. */
static inline uint32_t fr_nccl_step(void)
{
    uint64_t step = fr_load(&fr_probe.hdr->step);
    const struct fr_seg_step *s = &fr_probe.steps[step % FR_SEG_STEPS];

    return step && fr_load(&s->step) == step && !fr_load(&s->t_end) ? (uint32_t)step : 0;
}

/* --- op.c --- */
struct fr_nccl_op *fr_nccl_op_new(struct fr_nccl_comm *c, uint32_t *ret_gen) FR_NCCL_HIDDEN;
void fr_nccl_op_ready(struct fr_nccl_op *o, uint32_t gen) FR_NCCL_HIDDEN;
void *fr_nccl_coll_start(struct fr_nccl_comm *c, const struct fr_nccl_coll_v4 *d) FR_NCCL_HIDDEN;
void fr_nccl_ce_start(struct fr_nccl_comm *c, const struct fr_nccl_ce_coll_v6 *d) FR_NCCL_HIDDEN;
void *fr_nccl_channel_start(struct fr_nccl_comm *c, void *parent,
                            const struct fr_nccl_kernel_ch *d) FR_NCCL_HIDDEN;
void fr_nccl_channel_stamp(struct fr_nccl_comm *c, void *handle, uint64_t timer) FR_NCCL_HIDDEN;
void fr_nccl_channel_stop(struct fr_nccl_comm *c, void *handle) FR_NCCL_HIDDEN;
void fr_nccl_proxy_start(struct fr_nccl_comm *c, void *parent) FR_NCCL_HIDDEN;
void fr_nccl_proxy_stop(struct fr_nccl_comm *c, void *handle) FR_NCCL_HIDDEN;
void fr_nccl_walk(struct fr_nccl_comm *c) FR_NCCL_HIDDEN;
int fr_nccl_times_hold(struct fr_nccl_comm *c, uint64_t t, uint64_t t_enq, uint64_t start,
                       uint64_t end) FR_NCCL_HIDDEN;

/* --- fold.c --- */
void *fr_nccl_p2p_start(struct fr_nccl_comm *c, const struct fr_nccl_p2p_v4 *d,
                        void *group) FR_NCCL_HIDDEN;
void fr_nccl_group_stop(struct fr_nccl_comm *c, uint32_t group) FR_NCCL_HIDDEN;
void fr_nccl_part_started(struct fr_nccl_comm *c, struct fr_nccl_op *o) FR_NCCL_HIDDEN;
void fr_nccl_part_done(struct fr_nccl_comm *c, struct fr_nccl_op *o) FR_NCCL_HIDDEN;
void fr_nccl_part_again(struct fr_nccl_comm *c, struct fr_nccl_op *o) FR_NCCL_HIDDEN;
void fr_nccl_tell_deferred(struct fr_nccl_comm *c) FR_NCCL_HIDDEN;

#endif /* FR_PROBE_NCCL_PLUGIN_H */
