/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_broken.c - the NCCL plugin under defects of real releases, many threads, and noise */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper_nccl.h"
#include "probe/probe.h"
#include "wire/control.h"

static const struct played ALLREDUCE = {.func = "AllReduce",
                                        .count = 1 << 20,
                                        .datatype = "ncclFloat32",
                                        .algo = "TREE",
                                        .proto = "LL128",
                                        .channels = 4};

static uint64_t after(uint64_t start, uint64_t ns)
{
    uint64_t now;

    do {
        now = nccl_gpu_now();
    } while (now < start + ns);
    return now;
}

/* --- out of order, repeated, missing --- */

static void play_repeats(void)
{
    struct player p;
    struct reader r;
    void *coll, *other, *h[4];
    uint64_t start, end;

    player_init(&p, 5, 1, "x", 2, 0);
    reader_open(&r);
    coll = play_coll_start(&p, &ALLREDUCE);
    start = nccl_gpu_now();
    for (int i = 0; i < 4; i++)
        h[i] = play_channel_start(&p, coll, i, start);
    CHECK(!play_channel_start(&p, coll, 2, start + 5)); /* started twice */
    play_stop(&p, NULL);
    play_stop(&p, coll);
    play_stop(&p, coll);
    end = after(start, 3000);
    for (int k = 0; k < 3; k++)
        play_channel_stop(&p, h[0], end - 100);
    for (int i = 1; i < 4; i++)
        play_channel_stop(&p, h[i], end);
    for (int i = 0; i < 4; i++) /* of an operation that has ended, and whose slot is free */
        play_channel_stop(&p, h[i], end + 1000000);
    CHECK(!play_channel_start(&p, coll, 0, end));
    other = play_coll_start(&p, &ALLREDUCE);
    for (int i = 0; i < 4; i++)
        play_channel_stop(&p, h[i], end + 2000000);
    reader_take(&r);
    CHECK(r.n == 1 && r.r[0].t_start == start && r.r[0].t_end == end);
    CHECK(reader_comm(&r, "x", 0)->completed == 1 && reader_comm(&r, "x", 0)->enqueued == 2);
    /* Stop of a channel before its start: NCCL has no handle for it, or an old one. Then its start
     * comes, and never a stop: given up once enough later ones have ended. */
    play_channel_stop(&p, h[3], end + 3000000);
    for (int i = 0; i < 3; i++)
        h[i] = play_channel_start(&p, other, i, nccl_gpu_now());
    play_channel_start(&p, other, 3, nccl_gpu_now());
    for (int i = 0; i < 3; i++)
        play_channel_stop(&p, h[i], after(nccl_gpu_now(), 10));
    for (int i = 0; i < 200; i++)
        play_call(&p, &ALLREDUCE, NULL, NULL);
    reader_take(&r);
    CHECK(r.n == 201 && reader_dropped(&r) == 1);
    CHECK(reader_comm(&r, "x", 0)->completed == 202);
    for (uint64_t i = 1; i < r.n; i++)
        CHECK(r.r[i].seq == i + 2 && r.r[i].t_end - r.r[i].t_start < 1000000000);
    reader_close(&r);
}

static void repeated_late_and_missing_stops_lose_at_most_their_own_operation(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_repeats, NULL), 0);
}

/* --- times that cannot be --- */

static void play_times(void)
{
    struct player p;
    struct reader r;
    void *coll, *h;
    uint64_t now, start = 0, end = 0;

    player_init(&p, 7, 1, "x", 2, 0);
    reader_open(&r);
    for (int i = 0; i < 50; i++) /* so that the clocks' offset is known */
        play_call(&p, &ALLREDUCE, &start, &end);
    coll = play_coll_start(&p, &ALLREDUCE); /* stop before start */
    now = after(nccl_gpu_now(), 5000);
    play_kernel(&p, coll, 4, now, now - 3000);
    coll = play_coll_start(&p, &ALLREDUCE); /* longer than the host's wall time */
    now = after(nccl_gpu_now(), 5000);
    play_kernel(&p, coll, 4, now - 500000000, now);
    coll = play_coll_start(&p, &ALLREDUCE); /* long before it was enqueued */
    now = after(nccl_gpu_now(), 5000);
    play_kernel(&p, coll, 4, now - 900000000, now - 900000000 + 2000);
    coll = play_coll_start(&p, &ALLREDUCE); /* the slot of the one before, read again */
    after(nccl_gpu_now(), 5000);
    play_kernel(&p, coll, 4, start, end);
    coll = play_coll_start(&p, &ALLREDUCE); /* no stop time for one channel */
    for (int i = 0; i < 4; i++) {
        h = play_channel_start(&p, coll, i, nccl_gpu_now());
        if (i != 2)
            play_state(&p, h, FR_NCCL_KERNEL_CH_STOP, after(nccl_gpu_now(), 100));
        play_stop(&p, h);
    }
    coll = play_coll_start(&p, &ALLREDUCE); /* in an hour */
    now = nccl_gpu_now() + 3600000000000;
    play_kernel(&p, coll, 4, now, now + 10);
    reader_take(&r);
    CHECK(r.n == 50 && reader_dropped(&r) == 6);
    CHECK(reader_comm(&r, "x", 0)->completed == 56);
    for (int i = 0; i < 50; i++)
        play_call(&p, &ALLREDUCE, NULL, NULL);
    reader_take(&r);
    CHECK(r.n == 100 && reader_dropped(&r) == 6);
    reader_close(&r);
}

static void gpu_times_that_cannot_be_are_dropped_and_counted(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_times, NULL), 0);
}

/* --- foreign processes, missing names --- */

static void play_foreign(void)
{
    struct fr_nccl_descr_v7 d;
    struct player p, twin;
    struct reader r;
    struct played c = {.channels = 1};
    void *coll, *proxy;

    player_init(&p, 5, 1, NULL, 2, 0);
    player_init(&twin, 5, 2, "twin", 2, 0);
    reader_open(&r);
    coll = play_coll_start(&p, &ALLREDUCE);
    /* PXN: parent and context out of another address space */
    proxy = play_proxy_start(&p, (void *)(uintptr_t)0x7f1234567890, getpid() + 1, 0, 1);
    play_state(&p, proxy, FR_NCCL_OP_IN_PROGRESS, 0);
    play_stop(&p, proxy);
    proxy = play_proxy_start(&p, coll, getpid() + 1, 0, 1);
    play_stop(&p, proxy);
    memset(&d, 0xa5, sizeof d);
    d.type = FR_NCCL_PROXY_OP;
    for (uintptr_t a = 0; a < 4096; a++) {
        CHECK(!play_raw(&p, (void *)(0x7f0000000000u + a * 8), &d));
        CHECK(!play_raw(&p, (void *)((uintptr_t)p.context ^ (a + 1) << 40), &d));
    }
    d.type = FR_NCCL_KERNEL_CH;
    d.parent = coll;
    CHECK(!play_raw(&p, NULL, &d));
    CHECK(!play_raw(&twin, twin.context, &d)); /* a handle of another communicator */
    d.parent = NULL;
    CHECK(!play_raw(&p, p.context, &d));
    d.type = 1ull << 63; /* types of the future */
    CHECK(!play_raw(&p, p.context, &d));
    d.type = FR_NCCL_PROXY_CTRL;
    CHECK(!play_raw(&p, p.context, &d));
    CHECK(!play_coll_start(&p, &c)); /* no names at all */
    c.func = "FutureOperation";
    c.datatype = "ncclFloat4";
    CHECK(!play_coll_start(&p, &c));
    c.func = "AllReduce";
    c.datatype = "ncclFloat32";
    c.count = UINT64_MAX / 2; /* bytes do not fit */
    CHECK(!play_coll_start(&p, &c));
    CHECK(!play_p2p_start(&p, NULL, 0, 1, "ncclInt8", 1, NULL));
    CHECK(!play_p2p_start(&p, "Send", 99, 1, "ncclInt8", 1, NULL));
    CHECK(!play_p2p_start(&p, "Send", -1, 1, "ncclInt8", 1, NULL));
    play_state(&p, (void *)(uintptr_t)0x7f1234567890, FR_NCCL_KERNEL_CH_STOP, 5);
    play_stop(&p, (void *)(uintptr_t)0x7f1234567890);
    reader_take(&r);
    CHECK(r.n == 0 && reader_dropped(&r) == 6);
    CHECK(reader_comm(&r, "", 0)->enqueued == 4); /* numbered alike on every rank all the same */
    reader_close(&r);
}

static void what_is_foreign_unknown_or_unnamed_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_foreign, NULL), 0);
}

/* --- threads --- */

enum { THREADS = 4, CALLS = 3000, INITS = 24 };

static void *init_one(void *arg)
{
    struct player *p = arg;

    player_init(p, 4 + p->version % 4, (uint64_t)p->version + 100, "many", 4, 1);
    return NULL;
}

static void play_inits(void)
{
    static struct player p[INITS];
    pthread_t t[INITS];

    for (int i = 0; i < INITS; i++) {
        p[i].version = i;
        CHECK(pthread_create(&t[i], NULL, init_one, &p[i]) == 0);
    }
    for (int i = 0; i < INITS; i++)
        pthread_join(t[i], NULL);
    for (int i = 0; i < INITS; i++) {
        CHECK(p[i].context);
        for (int k = 0; k < i; k++)
            CHECK(p[i].context != p[k].context);
    }
    for (int i = 0; i < INITS; i++) {
        player_fini(&p[i]);
        player_fini(&p[i]); /* twice */
        CHECK(!play_coll_start(&p[i], &ALLREDUCE));
    }
}

static void communicators_that_initialise_at_once_are_all_watched(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_inits, NULL), 0);
}

struct worker {
    pthread_t thread;
    struct player p;
    int number, done;
};

/* Each operation's bytes tell its thread and number. */
static void *work(void *arg)
{
    struct worker *w = arg;
    struct played c = ALLREDUCE;

    c.datatype = "ncclInt8";
    for (int i = 0; i < CALLS; i++) {
        c.count = (uint64_t)w->number << 32 | (uint32_t)(i + 1);
        play_call(&w->p, &c, NULL, NULL);
    }
    __atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void play_threads(void)
{
    static struct worker w[THREADS];
    uint64_t got[THREADS] = {0}, total = 0;
    struct reader r;
    int all;

    for (int i = 0; i < THREADS; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        w[i].number = i;
        player_init(&w[i].p, 4 + i, (uint64_t)i + 1, name, 8, 0);
        CHECK(w[i].p.context);
    }
    reader_open(&r);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
    do {
        all = 1;
        for (int i = 0; i < THREADS; i++)
            all &= __atomic_load_n(&w[i].done, __ATOMIC_ACQUIRE);
        reader_take(&r);
    } while (!all);
    for (int i = 0; i < THREADS; i++)
        pthread_join(w[i].thread, NULL);
    reader_take(&r);
    for (uint64_t i = 0; i < r.n; i++) {
        const struct fr_record *k = &r.r[i];
        uint64_t from = k->bytes >> 32;

        CHECK(from < THREADS && (uint32_t)k->bytes == k->seq && k->t_end > k->t_start);
        CHECK(strcmp(fr_segment_comm(r.s, k->comm)->name, (char[]){'t', (char)('0' + from), 0}) ==
              0);
        got[from]++;
        total++;
    }
    CHECK(total + r.lost + reader_dropped(&r) == THREADS * CALLS);
    for (int i = 0; i < THREADS; i++) {
        char name[16];

        snprintf(name, sizeof name, "t%d", i);
        CHECK(got[i] > CALLS / 2);
        CHECK(reader_comm(&r, name, 0)->enqueued == CALLS);
        CHECK(reader_comm(&r, name, 0)->completed == CALLS);
    }
    reader_close(&r);
}

static void four_threads_on_four_communicators_lose_nothing_uncounted(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_threads, NULL), 0);
}

/* One communicator: a caller and a graph's host callback enqueue, a third thread plays NCCL's
 * progress thread. */
enum { QUEUE = 64 };
static struct {
    void *slot[QUEUE];
    uint64_t head, tail;
    int done;
    struct player p;
} shared;

static void *enqueue_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < CALLS; i++) {
        void *group = play_group_start(&shared.p), *coll = play_coll_start(&shared.p, &ALLREDUCE);
        uint64_t at;

        play_stop(&shared.p, coll);
        play_stop(&shared.p, group);
        at = __atomic_fetch_add(&shared.head, 1, __ATOMIC_ACQ_REL);
        while (at - __atomic_load_n(&shared.tail, __ATOMIC_ACQUIRE) >= QUEUE)
            sched_yield();
        __atomic_store_n(&shared.slot[at % QUEUE], coll ? coll : (void *)-1, __ATOMIC_RELEASE);
    }
    __atomic_fetch_add(&shared.done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *progress_many(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < 2 * CALLS; i++) {
        uint64_t start;
        void *coll;

        while (!(coll = __atomic_load_n(&shared.slot[i % QUEUE], __ATOMIC_ACQUIRE)))
            sched_yield();
        shared.slot[i % QUEUE] = NULL;
        __atomic_store_n(&shared.tail, i + 1, __ATOMIC_RELEASE);
        start = nccl_gpu_now();
        play_kernel(&shared.p, coll, 4, start, after(start, 300));
    }
    return NULL;
}

static void play_replay(void)
{
    pthread_t t[3];
    struct reader r;

    player_init(&shared.p, 6, 1, "graph", 2, 0);
    reader_open(&r);
    pthread_create(&t[0], NULL, enqueue_many, NULL);
    pthread_create(&t[1], NULL, enqueue_many, NULL);
    pthread_create(&t[2], NULL, progress_many, NULL);
    while (__atomic_load_n(&shared.tail, __ATOMIC_ACQUIRE) < 2 * CALLS)
        reader_take(&r);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    reader_take(&r);
    CHECK(r.n + r.lost + reader_dropped(&r) == 2 * CALLS);
    CHECK(r.n > CALLS);
    CHECK(reader_comm(&r, "graph", 0)->enqueued == 2 * CALLS);
    player_fini(&shared.p);
    reader_close(&r);
}

static void callers_and_a_graph_replay_may_enqueue_on_one_communicator(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_replay, NULL), 0);
}

/* --- more under way than the ring holds --- */

static void play_flood(void)
{
    enum { N = 3000 };
    static void *h[N];
    struct player p;
    struct reader r;
    uint64_t got = 0, start;

    player_init(&p, 6, 1, "deep", 2, 0);
    reader_open(&r);
    for (int i = 0; i < N; i++)
        got += (h[i] = play_coll_start(&p, &ALLREDUCE)) != NULL;
    CHECK(got >= 512);
    for (int i = 0; i < N; i++) {
        start = nccl_gpu_now();
        play_kernel(&p, h[i], 4, start, after(start, 200));
    }
    reader_take(&r);
    CHECK(r.n == got && reader_dropped(&r) == N - got);
    play_call(&p, &ALLREDUCE, NULL, NULL);
    reader_take(&r);
    CHECK(r.n == got + 1 && r.r[got].seq == N + 1);
    CHECK(reader_comm(&r, "deep", 0)->completed == N + 1);
    reader_close(&r);
}

static void operations_beyond_the_ring_are_counted_as_dropped(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_flood, NULL), 0);
}

/* --- the agent's control page --- */

static void play_control(void)
{
    struct fr_control *page;
    struct player p;
    struct reader r;
    char path[128];
    uint32_t pid = (uint32_t)getpid();
    int fd;

    snprintf(path, sizeof path, "%s/" FR_CONTROL_FILE, getenv("FULLRANK_PROBE_DIR"));
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
    CHECK(fd >= 0 && ftruncate(fd, sizeof *page) == 0);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(page != MAP_FAILED);
    page->magic = FR_CONTROL_MAGIC;
    page->version = 1;
    player_init(&p, 6, 1, "c", 2, 0);
    reader_open(&r);
    CHECK(!(p.mask & FR_NCCL_KERNEL_CH));
    __atomic_store_n(&page->entry[pid % FR_CONTROL_ENTRIES], fr_control_word(pid, FR_PROBE_FULL),
                     __ATOMIC_RELAXED);
    play_stop(&p, play_group_start(&p));
    CHECK(p.mask & FR_NCCL_KERNEL_CH && p.mask & FR_NCCL_PROXY_STEP);
    play_call(&p, &ALLREDUCE, NULL, NULL);
    reader_take(&r);
    CHECK(r.n == 1 && fr_segment_header(r.s)->level == FR_PROBE_FULL);
    /* another process's word is not ours: back to the level of the environment */
    __atomic_store_n(&page->entry[pid % FR_CONTROL_ENTRIES],
                     fr_control_word(pid + FR_CONTROL_ENTRIES, FR_PROBE_PERF), __ATOMIC_RELAXED);
    play_call(&p, &ALLREDUCE, NULL, NULL);
    CHECK(!(p.mask & FR_NCCL_KERNEL_CH) && p.mask & FR_NCCL_COLL);
    __atomic_store_n(&page->entry[pid % FR_CONTROL_ENTRIES], fr_control_word(pid, FR_PROBE_OFF),
                     __ATOMIC_RELAXED);
    play_stop(&p, play_group_start(&p));
    CHECK(p.mask == FR_NCCL_GROUP); /* enough to be turned on again */
    __atomic_store_n(&page->entry[pid % FR_CONTROL_ENTRIES], (uint64_t)0, __ATOMIC_RELAXED);
    play_stop(&p, play_group_start(&p));
    CHECK(p.mask & FR_NCCL_COLL);
    reader_close(&r);
}

static void play_writable_control(void)
{
    struct fr_control page = {.magic = FR_CONTROL_MAGIC, .version = 1};
    struct player p;
    char path[128];
    int fd;

    page.entry[(uint32_t)getpid() % FR_CONTROL_ENTRIES] =
        fr_control_word((uint32_t)getpid(), FR_PROBE_FULL);
    snprintf(path, sizeof path, "%s/" FR_CONTROL_FILE, getenv("FULLRANK_PROBE_DIR"));
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    CHECK(fd >= 0 && write(fd, &page, sizeof page) == sizeof page && fchmod(fd, 0666) == 0);
    player_init(&p, 6, 1, "c", 2, 0);
    CHECK(!(p.mask & FR_NCCL_PROXY_STEP));
}

static void the_control_page_changes_the_level_while_the_job_runs(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_control, "hang"), 0);
    assert_int_equal(nccl_child(play_writable_control, NULL), 0);
}

/* --- noise --- */

static uint64_t rng = 88172645463325252ull;

static uint64_t random_u64(void)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    return rng ^= rng << 17;
}

/* Any callback with any handle, parent and context that was ever seen, or noise: nothing but the
 * pool of handles has an order. Strings are NCCL's: they are valid or NULL. */
static void play_noise(void)
{
    static const char *const names[] = {NULL,          "AllReduce", "AllGather", "Send",
                                        "Recv",        "Broadcast", "ncclInt8",  "ncclFloat32",
                                        "ncclFloat16", "RING",      "LL",        ""};
    enum { POOL = 256, EVENTS = 3000000, PLAYERS = 6 };
    static void *pool[POOL];
    struct player p[PLAYERS];
    struct reader r;

    for (int i = 0; i < PLAYERS; i++)
        player_init(&p[i], 4 + i % 4, (uint64_t)i, "noise", 1 + i, 0);
    reader_open(&r);
    for (int i = 0; i < EVENTS; i++) {
        uint64_t x = random_u64();
        struct player *q = &p[x % PLAYERS];
        void *h = x >> 8 & 31 ? pool[x >> 16 & (POOL - 1)] : (void *)(uintptr_t)random_u64();
        struct fr_nccl_descr_v7 d;
        union fr_nccl_state_args args = {.kernel_ch = {random_u64() >> (x & 63)}};

        switch (x >> 24 & 7) {
        case 0:
            play_stop(q, h);
            break;
        case 1:
            play_state(q, h, (int)(x >> 32 & 31), args.kernel_ch.timer);
            break;
        case 2:
            play_channel_stop(q, h, nccl_gpu_now());
            break;
        case 3:
            if ((x >> 32 & 0xffff) == 0) {
                player_fini(q);
                player_init(q, q->version, x, "noise", 1 + (int)(x >> 48 & 15), 0);
            }
            break;
        default:
            memset(&d, (int)x, sizeof d);
            d.type = 1ull << (x >> 32 & 15);
            if (q->version == 4)
                *(uint8_t *)&d.type = (uint8_t)(1u << (x >> 32 & 7));
            d.parent = pool[x >> 40 & (POOL - 1)];
            if (d.type & FR_NCCL_COLL || (uint8_t)d.type == FR_NCCL_COLL) {
                d.coll.func = names[x >> 48 & 7];
                d.coll.datatype = names[6 + (x >> 52 & 3)];
                d.coll.algo = names[9];
                d.coll.proto = NULL;
                d.coll.count = x >> 32;
                d.coll.parent_group = pool[x >> 56];
            } else if (d.type & FR_NCCL_P2P || (uint8_t)d.type == FR_NCCL_P2P) {
                d.p2p.func = names[3 + (x >> 48 & 1)];
                d.p2p.datatype = names[6 + (x >> 52 & 3)];
                d.p2p.peer = (int)(x >> 53 & 7);
                d.p2p.count = x >> 40;
                d.p2p.parent_group = pool[x >> 56];
            } else if (d.type & FR_NCCL_CE_COLL) {
                d.ce_coll.func = names[x >> 48 & 7];
                d.ce_coll.datatype = names[6 + (x >> 52 & 3)];
            } else if (d.type & FR_NCCL_PROXY_OP || (uint8_t)d.type == FR_NCCL_PROXY_OP) {
                d.proxy_op.pid = x >> 60 & 1 ? getpid() : 1;
            }
            if ((uint8_t)d.type == FR_NCCL_KERNEL_CH)
                d.kernel_ch.timer = x >> 60 ? nccl_gpu_now() : random_u64();
            pool[x >> 16 & (POOL - 1)] = play_raw(
                q, x >> 61 ? q->context : (void *)(uintptr_t)(random_u64() >> (x & 31)), &d);
        }
        if ((i & 0xffff) == 0)
            reader_take(&r);
    }
    reader_take(&r);
    for (uint64_t i = 0; i < r.n; i++)
        CHECK(r.r[i].flags & FR_REC_UNTIMED || r.r[i].t_end >= r.r[i].t_start);
    for (uint32_t i = 0; i < FR_SEG_COMMS; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(r.s, i);

        CHECK(!c || (c->completed <= c->enqueued && c->started <= c->enqueued &&
                     c->proxy_done - c->proxy_posted + c->proxy_posted == c->proxy_done));
    }
    reader_close(&r);
}

static void noise_does_not_crash_it(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_noise, "full"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeated_late_and_missing_stops_lose_at_most_their_own_operation),
        cmocka_unit_test(gpu_times_that_cannot_be_are_dropped_and_counted),
        cmocka_unit_test(what_is_foreign_unknown_or_unnamed_is_left_alone),
        cmocka_unit_test(communicators_that_initialise_at_once_are_all_watched),
        cmocka_unit_test(four_threads_on_four_communicators_lose_nothing_uncounted),
        cmocka_unit_test(callers_and_a_graph_replay_may_enqueue_on_one_communicator),
        cmocka_unit_test(operations_beyond_the_ring_are_counted_as_dropped),
        cmocka_unit_test(the_control_page_changes_the_level_while_the_job_runs),
        cmocka_unit_test(noise_does_not_crash_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
