/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - communicators of NCCL: init, finalize, slots and lanes of the segment; see plugin.h */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probe/nccl/plugin.h"

struct fr_nccl fr_nccl;
struct fr_nccl_comm fr_nccl_comms[FR_NCCL_COMMS];

/* Lanes that all threads of NCCL share: one holds a lane for as long as it writes a record. */
static struct {
    uint32_t busy;
    uint32_t have;
    struct fr_lane lane;
} __attribute__((aligned(64))) lanes[FR_NCCL_LANES];

static uint32_t ready; /* 0: not tried, 1: one thread prepares, 2: watching, 3: not watching */

int fr_nccl_write(const struct fr_nccl_comm *c, const struct fr_record *from)
{
    for (uint32_t i = 0; i < 4 * FR_NCCL_LANES; i++) {
        uint32_t k = (c->index + i) % FR_NCCL_LANES, index;
        struct fr_lane *l = &lanes[k].lane;
        struct fr_record *r;

        if (!lanes[k].have || fr_load(&lanes[k].busy) ||
            __atomic_exchange_n(&lanes[k].busy, 1, __ATOMIC_ACQUIRE))
            continue;
        r = fr_lane_record(l);
        index = r->index;
        *r = *from;
        r->index = index;
        l->calls++;
        fr_lane_commit(l);
        fr_store(&l->seg->calls, l->calls);
        __atomic_store_n(&lanes[k].busy, 0, __ATOMIC_RELEASE);
        return 1;
    }
    fr_probe_drop(); /* all lanes are held by threads that were sent away in the middle */
    return 0;
}

/* Open the segment and take lanes, once. Another thread may be at it (its communicator initialises
 * beside ours): this is init, so it is waited for, and not for ever. */
static int watching(void)
{
    uint32_t state = 0;

    if (!__atomic_compare_exchange_n(&ready, &state, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        for (int i = 0; state == 1 && i < 20000; i++) {
            usleep(100);
            state = __atomic_load_n(&ready, __ATOMIC_ACQUIRE);
        }
        return state == 2;
    }
    if (fr_probe_open()) {
        fr_nccl.pid = (uint32_t)getpid();
        fr_nccl.level = fr_nccl.level0 = fr_probe.level;
        fr_nccl.nonce = (uint32_t)(fr_ticks() >> 4) * 2654435761u ^ fr_nccl.pid << 16;
        for (uint32_t i = 0; i < FR_NCCL_LANES; i++)
            lanes[i].have = (uint32_t)fr_lane_share(&lanes[i].lane, FR_LANE_SHARED | (i + 1));
        fr_probe_source(FR_SOURCE_NCCL);
        __atomic_store_n(&ready, 2, __ATOMIC_RELEASE);
        return 1;
    }
    __atomic_store_n(&ready, 3, __ATOMIC_RELEASE);
    return 0;
}

/* Memory of a communicator; kept when it ends, for the next one. Returns 0 or -1. */
static int take_memory(struct fr_nccl_comm *c)
{
    uint32_t want = FR_NCCL_OPS_LEAST;
    void *p;

    while (want < FR_NCCL_OPS_MOST && want < 8 * (uint64_t)c->nranks)
        want *= 2;
    if (c->ops_cap < want) {
        p = mmap(NULL, want * sizeof *c->ops, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (p == MAP_FAILED)
            return -1;
        /* The smaller one stays mapped: a handle of the communicator before may look into it. */
        c->ops = p;
        c->ops_cap = want;
    }
    c->mask = c->ops_cap - 1;
    if (!c->folds) {
        p = mmap(NULL, FR_NCCL_FOLDS * sizeof *c->folds, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (p == MAP_FAILED)
            return -1;
        c->folds = p;
    }
    if (c->peers_cap < c->nranks) {
        p = mmap(NULL, c->nranks * sizeof *c->peers, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (p == MAP_FAILED)
            return -1;
        c->peers = p;
        c->peers_cap = c->nranks;
    }
    return 0;
}

/* Slots of the segment that our communicators have given back. */
static struct {
    uint64_t t_freed; /* ticks; 0: none */
    uint32_t slot;
} rested[2 * FR_NCCL_COMMS];

static void rest_slot(uint16_t slot)
{
    for (uint32_t i = 0; slot != FR_COMM_NONE && i < 2 * FR_NCCL_COMMS; i++) {
        uint64_t none = 0;

        if (fr_load(&rested[i].t_freed) ||
            !__atomic_compare_exchange_n(&rested[i].t_freed, &none, UINT64_MAX, 0, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        rested[i].slot = slot;
        __atomic_store_n(&rested[i].t_freed, fr_ticks(), __ATOMIC_RELEASE);
        return;
    }
}

/* One that was never used, else one that has rested long enough for the agent to have read its
 * end. */
static uint16_t claim_slot(uint64_t *ret_since)
{
    uint32_t i = __atomic_load_n(&fr_probe.hdr->comm_used, __ATOMIC_RELAXED);
    uint64_t now = fr_ticks();

    *ret_since = 0;
    while (i < FR_SEG_COMMS)
        if (__atomic_compare_exchange_n(&fr_probe.hdr->comm_used, &i, i + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return (uint16_t)i;
    for (i = 0; i < 2 * FR_NCCL_COMMS; i++) {
        uint64_t t = __atomic_load_n(&rested[i].t_freed, __ATOMIC_ACQUIRE);
        uint32_t slot = fr_load(&rested[i].slot);

        if (t == 0 || t > now || fr_ticks_us(now - t) < FR_NCCL_REST_US)
            continue;
        if (__atomic_compare_exchange_n(&rested[i].t_freed, &t, 0, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            *ret_since = t;
            return (uint16_t)slot;
        }
    }
    return FR_COMM_NONE;
}

static void define(struct fr_seg_comm *s, const struct fr_nccl_comm *c, uint32_t instance,
                   uint32_t flags, uint64_t since)
{
    uint64_t v = fr_version_open(&s->version);

    fr_store(&s->members_hash, (uint64_t)0);
    fr_store(&s->instance, instance);
    fr_store(&s->size, c->nranks);
    fr_store(&s->rank, (uint32_t)c->rank);
    fr_store(&s->nruns, 0u);
    memset(s->runs, 0, sizeof s->runs);
    memcpy(s->name, c->name, sizeof s->name);
    fr_store(&s->freed, (uint64_t)0);
    fr_store(&s->enqueued, (uint64_t)0);
    fr_store(&s->started, (uint64_t)0);
    fr_store(&s->completed, (uint64_t)0);
    fr_store(&s->t_enqueued, (uint64_t)0);
    fr_store(&s->t_completed, (uint64_t)0);
    fr_store(&s->op_bytes, (uint64_t)0);
    fr_store(&s->op, 0u);
    fr_store(&s->dtype, 0u);
    fr_store(&s->root, UINT32_MAX);
    fr_store(&s->channels_started, 0u);
    fr_store(&s->channels_ended, 0u);
    fr_store(&s->flags, flags);
    fr_store(&s->t_since, since);
    fr_store(&s->gpu_offset_ns, (int64_t)0);
    fr_store(&s->proxy_posted, 0u);
    fr_store(&s->proxy_sent, 0u);
    fr_store(&s->proxy_done, 0u);
    fr_store(&s->proxy_steps, 0u);
    fr_store(&s->members_hash, c->hash);
    fr_version_close(&s->version, v);
}

void fr_nccl_p2p_slot(struct fr_nccl_comm *c)
{
    uint64_t since;
    uint16_t i;

    if (__atomic_exchange_n(&c->p2p_tried, 1, __ATOMIC_ACQ_REL))
        return;
    i = claim_slot(&since);
    if (i == FR_COMM_NONE)
        return;
    define(&fr_probe.comms[i], c, 1, FR_COMM_GPU | FR_COMM_P2P, since);
    fr_store(&fr_probe.comms[i].gpu_offset_ns, fr_load(&c->slot->gpu_offset_ns));
    fr_store(&c->p2p_seg, i);
    __atomic_store_n(&c->p2p, &fr_probe.comms[i], __ATOMIC_RELEASE);
}

/* The library's own id is all that there is to tell a communicator by: no member list comes with
 * it. FNV-1a over it, so that it does not meet the hash of a member list. */
static uint64_t hash_of(uint64_t id)
{
    uint64_t hash = 0xcbf29ce484222325ull;

    for (const char *p = "nccl"; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 0x100000001b3ull;
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (id >> (8 * i) & 0xffu)) * 0x100000001b3ull;
    return hash ? hash : 1;
}

/* Rank and world, where the environment did not say: those of the largest communicator. */
static void learn_rank(int nranks, int rank)
{
    int32_t world = fr_load(&fr_probe.hdr->world);

    if (fr_load(&fr_probe.hdr->rank) < 0 || world < nranks)
        fr_probe_rank(rank, nranks);
}

static struct fr_nccl_comm *claim_comm(void)
{
    for (uint32_t i = 0; i < FR_NCCL_COMMS; i++) {
        struct fr_nccl_comm *c = &fr_nccl_comms[i];
        uint32_t state = __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);

        if (state == FR_NCCL_CLOSED && fr_ticks_us(fr_ticks() - c->t_freed) < FR_NCCL_REST_US)
            continue;
        if ((state == FR_NCCL_FREE || state == FR_NCCL_CLOSED) &&
            __atomic_compare_exchange_n(&c->state, &state, FR_NCCL_OPENING, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            c->index = i;
            return c;
        }
    }
    return NULL;
}

static int set_up(struct fr_nccl_comm *c, uint64_t id, const char *name)
{
    uint64_t since = 0;

    memset(c->name, 0, sizeof c->name);
    for (size_t i = 0; name && name[i] && i < sizeof c->name - 1; i++)
        c->name[i] = name[i];
    c->hash = hash_of(id);
    if (take_memory(c) != 0 || (c->seg = claim_slot(&since)) == FR_COMM_NONE)
        return -1;
    memset(c->folds, 0, FR_NCCL_FOLDS * sizeof *c->folds);
    memset(c->peers, 0, c->nranks * sizeof *c->peers);
    for (uint32_t i = 0; i < c->ops_cap; i++) {
        uint32_t older = fr_nccl.nonce + (uint32_t)c->ticket - 1;

        fr_store(&c->ops[i].state, (uint32_t)FR_OPS_FREE);
        fr_store(&c->ops[i].gen, older);
        fr_store(&c->ops[i].refused, older);
    }
    c->slot = &fr_probe.comms[c->seg];
    c->p2p = NULL;
    c->p2p_seg = FR_COMM_NONE;
    c->p2p_tried = 0;
    c->tail = c->ticket; /* goes on: handles of the communicator before name nothing */
    c->group++;
    c->gen = c->gen ? c->gen + 1 : fr_nccl.nonce;
    c->enqueued = c->p2p_enqueued = c->started = c->completed = c->newest_done = 0;
    c->newest_ticket = c->ticket;
    c->p2p_started = c->p2p_completed = c->last_start = c->last_end = 0;
    c->ref_ticks = c->ref_ns = c->seen_proxy = 0;
    c->offset = 0;
    c->offset_now = INT64_MAX;
    c->deferred = 0;
    define(c->slot, c, 0, FR_COMM_GPU, since);
    return 0;
}

int fr_nccl_init(void **ret_context, uint32_t version, uint64_t id, int *mask, const char *name,
                 int nranks, int rank)
{
    struct fr_nccl_comm *c;
    int saved = errno;

    *ret_context = NULL;
    /* An error would unload the library while others use it: silence instead. */
    if (nranks < 1 || rank < 0 || rank >= nranks || nranks > 1 << 20 || !watching()) {
        if (mask && fr_load(&ready) == 3)
            fr_store(mask, 0);
        errno = saved;
        return FR_NCCL_SUCCESS;
    }
    fr_nccl_open_control(getenv("FULLRANK_PROBE_DIR"));
    if (mask) {
        fr_store(&fr_nccl.version, version);
        __atomic_store_n(&fr_nccl.mask, mask, __ATOMIC_RELEASE);
        fr_nccl_look();
        fr_store(mask, fr_nccl_mask_for(fr_load(&fr_nccl.level), version));
    }
    c = claim_comm();
    if (c) {
        c->version = version;
        c->nranks = (uint32_t)nranks;
        c->rank = rank;
        learn_rank(nranks, rank);
        c->world = fr_load(&fr_probe.hdr->world) == nranks && fr_load(&fr_probe.hdr->rank) == rank;
        if (set_up(c, id, name) == 0) {
            *ret_context = fr_handle(FR_H_CONTEXT, c->index, 0, 0, c->gen);
            __atomic_store_n(&c->state, FR_NCCL_ON, __ATOMIC_RELEASE);
        } else {
            __atomic_store_n(&c->state, FR_NCCL_FREE, __ATOMIC_RELEASE);
            c = NULL;
        }
    }
    if (!c)
        fr_probe_drop();
    fr_probe_tune();
    errno = saved;
    return FR_NCCL_SUCCESS;
}

static void mark_freed(struct fr_seg_comm *s)
{
    fr_store(&s->freed, (uint64_t)1);
    fr_nccl_touch(s);
}

/* What is still under way will not be told any more. */
static void drop_rest(struct fr_nccl_comm *c)
{
    for (uint32_t i = 0; i < c->ops_cap; i++) {
        struct fr_nccl_op *o = &c->ops[i];
        uint32_t live = FR_OPS_LIVE;

        if (fr_load(&o->state) == FR_OPS_LIVE && o->fold >= FR_NCCL_FOLDS &&
            __atomic_compare_exchange_n(&o->state, &live, FR_OPS_DONE, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED) &&
            o->mode <= FR_MODE_QUIET)
            fr_probe_drop();
    }
    for (uint32_t i = 0; i < FR_NCCL_FOLDS; i++)
        if (fr_load(&c->folds[i].state) != FR_FOLD_FREE && c->folds[i].mode <= FR_MODE_QUIET)
            fr_probe_drop();
}

int fr_nccl_finalize(void *context)
{
    struct fr_nccl_comm *c = fr_h_kind(context) == FR_H_CONTEXT ? fr_nccl_comm_of(context) : NULL;
    uint32_t on = FR_NCCL_ON;

    if (!c || fr_h_gen(context) != c->gen)
        return FR_NCCL_SUCCESS;
    fr_nccl_tell_deferred(c);
    c->t_freed = fr_ticks();
    if (!__atomic_compare_exchange_n(&c->state, &on, FR_NCCL_CLOSED, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return FR_NCCL_SUCCESS;
    drop_rest(c);
    mark_freed(c->slot);
    rest_slot(c->seg);
    if (c->p2p) {
        mark_freed(c->p2p);
        rest_slot(c->p2p_seg);
    }
    return FR_NCCL_SUCCESS;
}
