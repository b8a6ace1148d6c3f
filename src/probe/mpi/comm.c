/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c - communicators: who is in them, which instance, how far this rank is; see shim.h */
#include "probe/mpi/shim.h"

struct fr_comm fr_comms[FR_SEG_COMMS];
uint16_t fr_comm_cache[FR_COMM_CACHE];

#define NOT_FOLLOWED ((void *)(uintptr_t)UINT32_MAX)
#define LISTS        512 /* different member lists that are counted */
#define CHUNK        256 /* ranks translated at a time: no allocation whatever the size */

/* The member list being read: its hash and its arithmetic runs. */
struct members {
    uint64_t hash;
    struct fr_seg_run runs[FR_COMM_RUNS];
    uint32_t nruns;
    int too_many;
};

static void add_member(struct members *m, uint32_t job_rank)
{
    struct fr_seg_run *r = m->nruns ? &m->runs[m->nruns - 1] : NULL;

    for (int i = 0; i < 4; i++) {
        m->hash ^= job_rank >> (8 * i) & 0xffu;
        m->hash *= 0x100000001b3ull; /* FNV-1a, 64 bits */
    }
    if (m->too_many)
        return;
    if (r && r->count == 1) {
        r->stride = job_rank - r->first; /* modulo 2^32: may run downwards */
        r->count = 2;
    } else if (r && job_rank == r->first + r->stride * r->count) {
        r->count++;
    } else if (m->nruns < FR_COMM_RUNS) {
        m->runs[m->nruns++] = (struct fr_seg_run){job_rank, 1, 1};
    } else {
        m->too_many = 1;
        m->nruns = 0;
    }
}

/* Returns 0, or -1 when a member is no rank of MPI_COMM_WORLD (a spawned process). */
static int read_members(MPI_Group g, int size, struct members *ret)
{
    int theirs[CHUNK], ours[CHUNK];

    memset(ret, 0, sizeof *ret);
    ret->hash = 0xcbf29ce484222325ull;
    for (int base = 0; base < size; base += CHUNK) {
        int n = size - base < CHUNK ? size - base : CHUNK;

        for (int i = 0; i < n; i++)
            theirs[i] = base + i;
        if (fr_pmpi.Group_translate_ranks(g, n, theirs, fr_mpi.world_group, ours) != MPI_SUCCESS)
            return -1;
        for (int i = 0; i < n; i++) {
            if (ours[i] < 0)
                return -1;
            add_member(ret, (uint32_t)ours[i]);
        }
    }
    return 0;
}

/* n-th with that list: the members create communicators in one order, so they agree. Counted for
 * all that are created, followed or not. Returns UINT32_MAX when no more lists can be counted. */
static uint32_t instance_of(uint64_t hash)
{
    static struct {
        uint64_t hash;
        uint32_t made;
    } lists[LISTS];

    for (uint32_t i = (uint32_t)(hash >> 32) % LISTS, tries = 0; tries < LISTS;
         i = (i + 1) % LISTS, tries++) {
        uint64_t seen = 0;

        if (__atomic_compare_exchange_n(&lists[i].hash, &seen, hash, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            seen == hash)
            return __atomic_fetch_add(&lists[i].made, 1, __ATOMIC_RELAXED);
    }
    return UINT32_MAX;
}

/* A slot that was never used; then the one that was freed longest ago, if that is long enough for
 * the agent to have read its end and nothing refers to it any more. FR_SEG_COMMS: none. *ret_since
 * is when it was freed, 0: never used. */
static uint32_t claim_slot(uint64_t *ret_since)
{
    uint32_t i = __atomic_load_n(&fr_probe.hdr->comm_used, __ATOMIC_RELAXED);
    uint64_t now, t_last = 0;

    while (i < FR_SEG_COMMS)
        if (__atomic_compare_exchange_n(&fr_probe.hdr->comm_used, &i, i + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            *ret_since = 0;
            return i;
        }
    now = fr_ticks();
    for (;;) {
        uint64_t t = UINT64_MAX;

        for (uint32_t k = 0; k < FR_SEG_COMMS; k++) {
            uint64_t t_freed = __atomic_load_n(&fr_comms[k].t_freed, __ATOMIC_ACQUIRE);

            if (t_freed > t_last && t_freed < t) {
                t = t_freed;
                i = k;
            }
        }
        if (t == UINT64_MAX || t > now || fr_ticks_us(now - t) < FR_COMM_REST_US)
            return FR_SEG_COMMS;
        /* MPI lets requests outlive their communicator. */
        t_last = t;
        if (fr_comms[i].outstanding == 0 && !fr_request_holds(&fr_comms[i]) &&
            __atomic_compare_exchange_n(&fr_comms[i].t_freed, &t, 0, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED)) {
            *ret_since = t_last;
            return i;
        }
    }
}

static void copy_name(struct fr_seg_comm *s, MPI_Comm c)
{
    char name[MPI_MAX_OBJECT_NAME];
    int n = 0;

    if (fr_pmpi.Comm_get_name(c, name, &n) != MPI_SUCCESS || n < 0)
        return;
    if (n > (int)sizeof s->name - 1)
        n = (int)sizeof s->name - 1;
    memset(s->name, 0, sizeof s->name); /* also when it is set again, to a shorter one */
    memcpy(s->name, name, (size_t)n);
}

static struct fr_comm *follow(MPI_Comm c)
{
    struct members mem;
    struct fr_seg_comm *s;
    struct fr_comm *m;
    MPI_Group g;
    uint32_t i = FR_SEG_COMMS, instance;
    uint64_t v, since = 0;
    int size, rank;

    if (fr_pmpi.Comm_size(c, &size) != MPI_SUCCESS || fr_pmpi.Comm_rank(c, &rank) != MPI_SUCCESS ||
        fr_pmpi.Comm_group(c, &g) != MPI_SUCCESS)
        return NULL;
    if (read_members(g, size, &mem) == 0) {
        mem.hash = mem.hash ? mem.hash : 1;
        instance = instance_of(mem.hash);
        if (instance != UINT32_MAX)
            i = claim_slot(&since);
    }
    if (i >= FR_SEG_COMMS) {
        fr_pmpi.Group_free(&g);
        fr_probe_drop();
        return NULL;
    }
    m = &fr_comms[i];
    s = m->slot = &fr_probe.comms[i];
    m->index = i;
    m->size = (uint32_t)size;
    m->rank = (uint32_t)rank;
    m->enqueued = m->completed = m->done_mask = m->outstanding = m->beyond = 0;
    if (mem.too_many) {
        m->group = g; /* kept: peers are looked up in it */
        m->has_group = 1;
    } else {
        fr_pmpi.Group_free(&g);
    }
    v = fr_version_open(&s->version);
    memset((char *)s + sizeof s->version, 0, sizeof *s - sizeof s->version);
    fr_store(&s->t_since, since);
    fr_store(&s->instance, instance);
    fr_store(&s->size, m->size);
    fr_store(&s->rank, m->rank);
    fr_store(&s->nruns, mem.nruns);
    memcpy(s->runs, mem.runs, sizeof s->runs);
    copy_name(s, c);
    fr_store(&s->root, UINT32_MAX);
    fr_store(&s->members_hash, mem.hash);
    fr_version_close(&s->version, v);
    return m;
}

static void remember(struct fr_comm *m, MPI_Comm c)
{
    __atomic_store_n(&m->handle, c, __ATOMIC_RELEASE);
    __atomic_store_n(&fr_comm_cache[fr_comm_hash(c)], (uint16_t)(m->index + 1), __ATOMIC_RELEASE);
}

static void mark_freed(struct fr_comm *m)
{
    uint64_t v;

    if (!m->handle)
        return;
    __atomic_store_n(&m->handle, (MPI_Comm)0, __ATOMIC_RELEASE);
    if (m->has_group) {
        m->has_group = 0;
        fr_pmpi.Group_free(&m->group);
    }
    v = fr_slot_open(m->slot);
    fr_store(&m->slot->freed, (uint64_t)1);
    fr_version_close(&m->slot->version, v);
    /* Pairs with claim_slot: whoever sees the time sees all of the above. */
    __atomic_store_n(&m->t_freed, fr_ticks(), __ATOMIC_RELEASE);
}

/* MPI tells of each end of a communicator here, whoever freed it. Its handle may be used again
 * for another at once. At MPI_Finalize it also tells of those that were never freed. */
static int attribute_deleted(MPI_Comm c, int keyval, void *value, void *extra)
{
    (void)c, (void)keyval, (void)extra;
    if (fr_mpi.state == FR_MPI_WATCHING && value != NOT_FOLLOWED)
        mark_freed(&fr_comms[(uintptr_t)value - 1]);
    return MPI_SUCCESS;
}

/* A copy of a communicator is another one: the attribute stays behind. */
static int attribute_copied(MPI_Comm c, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)c, (void)keyval, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static struct fr_comm *adopt(MPI_Comm c)
{
    struct fr_comm *m = NULL;
    int inter = 0;

    if (fr_pmpi.Comm_test_inter(c, &inter) != MPI_SUCCESS)
        return NULL;
    if (!inter)
        m = follow(c);
    fr_pmpi.Comm_set_attr(c, fr_mpi.keyval, m ? (void *)(uintptr_t)(m->index + 1) : NOT_FOLLOWED);
    if (m)
        remember(m, c);
    return m;
}

void fr_comm_setup(void)
{
    fr_pmpi.Comm_create_keyval(attribute_copied, attribute_deleted, &fr_mpi.keyval, NULL);
    adopt(fr_mpi.comm_world);
    adopt(fr_mpi.comm_self);
}

struct fr_comm *fr_comm_find_slow(MPI_Comm c)
{
    void *value = NULL;
    int found = 0;

    if (!c || c == fr_mpi.comm_null)
        return NULL;
    if (fr_pmpi.Comm_get_attr(c, fr_mpi.keyval, &value, &found) != MPI_SUCCESS)
        return NULL;
    if (!found)
        return adopt(c);
    if (value == NOT_FOLLOWED)
        return NULL;
    remember(&fr_comms[(uintptr_t)value - 1], c);
    return &fr_comms[(uintptr_t)value - 1];
}

void fr_comm_created(MPI_Comm c)
{
    if (c && c != fr_mpi.comm_null)
        fr_comm_find(c);
}

void fr_comm_named(MPI_Comm c)
{
    struct fr_comm *m = fr_comm_find(c);
    uint64_t v;

    if (!m)
        return;
    v = fr_slot_open(m->slot);
    copy_name(m->slot, c);
    fr_version_close(&m->slot->version, v);
}

int32_t fr_comm_peer(const struct fr_comm *m, int comm_rank)
{
    uint32_t r = (uint32_t)comm_rank;
    int ours = -1;

    if (!m || comm_rank < 0 || r >= m->size)
        return -1;
    if (fr_likely(m->index == 0))
        return comm_rank;
    for (uint32_t i = 0; i < m->slot->nruns && i < FR_COMM_RUNS; i++) {
        if (r < m->slot->runs[i].count)
            return (int32_t)(m->slot->runs[i].first + m->slot->runs[i].stride * r);
        r -= m->slot->runs[i].count;
    }
    if (m->has_group && fr_pmpi.Group_translate_ranks(m->group, 1, &comm_rank, fr_mpi.world_group,
                                                      &ours) == MPI_SUCCESS)
        return ours < 0 ? -1 : ours;
    return -1;
}

/* The window lost completions, so it cannot say how far this rank is once the oldest operation is
 * complete. What still runs says it, if the requests are all that runs (another thread may be
 * inside a blocking call): `completed` would else stay behind until nothing runs. */
static void catch_up(struct fr_comm *m, uint64_t seq, uint64_t left)
{
    uint64_t lowest, running, window;

    if (fr_request_running(m, seq, &lowest, &running) != left || lowest <= m->completed)
        return;
    m->completed = lowest - 1;
    window = m->enqueued - lowest; /* operations behind the lowest one */
    m->done_mask = ~running & (window < 64 ? (1ull << window) - 1 : UINT64_MAX);
    m->beyond = window > 64;
}

void fr_comm_complete_slow(struct fr_comm *m, uint64_t seq, uint64_t t)
{
    struct fr_seg_comm *s = m->slot;
    uint64_t v = fr_slot_open(s), ahead = seq - m->completed, left;

    if (fr_mpi.multiple)
        left = __atomic_sub_fetch(&m->outstanding, 1, __ATOMIC_ACQ_REL);
    else
        left = --m->outstanding;
    if (fr_likely(left == 0)) {
        /* Nothing is under way: whatever the window below could not hold is complete too. */
        m->completed = m->enqueued;
        m->done_mask = m->beyond = 0;
    } else if (ahead == 1) {
        do {
            m->completed++;
            ahead = m->done_mask & 1;
            m->done_mask >>= 1;
        } while (ahead);
        if (fr_unlikely(m->beyond))
            catch_up(m, seq, left);
    } else if (ahead > 1 && ahead <= 65) {
        m->done_mask |= 1ull << (ahead - 2);
    } else if (seq > m->completed && ahead > 65) {
        m->beyond++;
    }
    fr_store(&s->completed, m->completed);
    fr_store(&s->t_completed, t);
    fr_version_close(&s->version, v);
}
