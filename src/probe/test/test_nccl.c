/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl.c - the NCCL plugin: whole sequences of all four versions, read as the agent reads */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper_nccl.h"

static const struct played ALLREDUCE = {.func = "AllReduce",
                                        .count = 1 << 20,
                                        .datatype = "ncclFloat32",
                                        .algo = "RING",
                                        .proto = "SIMPLE",
                                        .channels = 8};

/* --- one record a collective --- */

static int version_of_case;

static void play_and_read_collectives(void)
{
    enum { N = 300 };
    static uint64_t start[N], end[N];
    struct player p;
    struct reader r;
    const struct fr_seg_comm *c;

    player_init(&p, version_of_case, 0x1234, "dp", 8, 3);
    CHECK(p.context);
    CHECK(p.mask & FR_NCCL_COLL && p.mask & FR_NCCL_KERNEL_CH && p.mask & FR_NCCL_GROUP);
    CHECK(version_of_case > 4 || p.mask < 256);
    reader_open(&r);
    for (int i = 0; i < N; i++)
        play_call(&p, &ALLREDUCE, &start[i], &end[i]);
    reader_take(&r);
    CHECK(reader_dropped(&r) == 0 && r.lost == 0 && r.n == N);
    for (int i = 0; i < N; i++) {
        const struct fr_record *k = &r.r[i];

        CHECK(k->seq == (uint32_t)i + 1 && k->op == FR_OP_ALLREDUCE && k->bytes == 4u << 20);
        CHECK(k->dtype == FR_DTYPE_FLOAT32 && k->algo == FR_ALGO_RING);
        CHECK(k->proto == FR_PROTO_SIMPLE && k->channels == 8 && k->peer == -1);
        CHECK(k->flags == (FR_REC_GPU_CLOCK | FR_REC_NONBLOCKING));
        CHECK(k->t_start == start[i] && k->t_end == end[i]);
        CHECK(i == 0 || k->t_enq >= r.r[i - 1].t_enq);
    }
    c = reader_comm(&r, "dp", 0);
    CHECK(c && c->size == 8 && c->rank == 3 && c->nruns == 0 && c->members_hash);
    CHECK(c->enqueued == N && c->started == N && c->completed == N);
    CHECK(c->channels_started == 0 && c->channels_ended == 0);
    CHECK(c->flags == FR_COMM_GPU && !c->freed);
    /* The clocks' offset: never too small, and near, since the last stop was played at once. */
    CHECK(c->gpu_offset_ns + (int64_t)NCCL_EPOCH >= -1000);
    CHECK(c->gpu_offset_ns + (int64_t)NCCL_EPOCH < 1000000);
    player_fini(&p);
    reader_take(&r);
    CHECK(reader_comm(&r, "dp", 0)->freed);
    CHECK(reader_dropped(&r) == 0);
    reader_close(&r);
}

static void every_version_writes_one_right_record_a_collective(void **state)
{
    (void)state;
    for (version_of_case = 4; version_of_case <= 7; version_of_case++)
        assert_int_equal(nccl_child(play_and_read_collectives, NULL), 0);
}

/* --- bytes --- */

/* By the table of nccl-tests, from the counts that a Coll event brings. */
static const struct {
    const char *func, *datatype;
    uint64_t count, bytes; /* of 8 ranks */
    uint32_t op;
    int rooted;
} COUNTED[] = {
    {"AllReduce", "ncclBfloat16", 1000, 2000, FR_OP_ALLREDUCE, 0},
    {"AllReduce", "ncclFloat64", 3, 24, FR_OP_ALLREDUCE, 0},
    {"AllGather", "ncclInt8", 4096, 32768, FR_OP_ALLGATHER, 0}, /* bytes of one rank */
    {"ReduceScatter", "ncclFloat16", 512, 8192, FR_OP_REDUCE_SCATTER, 0},
    {"Broadcast", "ncclInt8", 77, 77, FR_OP_BCAST, 1},
    {"Reduce", "ncclInt64", 10, 80, FR_OP_REDUCE, 1},
    {"AllReduce", "ncclUint64", 2, 16, FR_OP_ALLREDUCE, 0},
    {"AllReduce", "ncclInt32", 2, 8, FR_OP_ALLREDUCE, 0},
    {"AllReduce", "ncclUint32", 2, 8, FR_OP_ALLREDUCE, 0},
    {"AllReduce", "ncclUint8", 2, 2, FR_OP_ALLREDUCE, 0},
    {"AllReduce", "ncclFloat8e4m3", 5, 5, FR_OP_ALLREDUCE, 0},
    {"AllReduce", "ncclFloat8e5m2", 5, 5, FR_OP_ALLREDUCE, 0},
};

static void play_counted(void)
{
    enum { N = sizeof COUNTED / sizeof COUNTED[0] };
    struct player p;
    struct reader r;

    player_init(&p, 5, 9, NULL, 8, 0);
    reader_open(&r);
    for (int i = 0; i < N; i++) {
        struct played c = {.func = COUNTED[i].func,
                           .count = COUNTED[i].count,
                           .datatype = COUNTED[i].datatype,
                           .root = 5,
                           .channels = 1};
        play_call(&p, &c, NULL, NULL);
    }
    reader_take(&r);
    CHECK(r.n == N);
    for (int i = 0; i < N; i++) {
        CHECK(r.r[i].bytes == COUNTED[i].bytes && r.r[i].op == COUNTED[i].op);
        CHECK(r.r[i].peer == (COUNTED[i].rooted ? 5 : -1));
        CHECK(r.r[i].algo == FR_ALGO_UNKNOWN && r.r[i].proto == FR_PROTO_UNKNOWN);
    }
    reader_close(&r);
}

static void bytes_are_what_nccl_tests_counts(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_counted, NULL), 0);
}

/* --- under way --- */

static void play_stuck(void)
{
    struct player p;
    struct reader r;
    const struct fr_seg_comm *c;
    void *coll, *h[8], *proxy[3];

    player_init(&p, 6, 1, "tp", 4, 0);
    reader_open(&r);
    play_call(&p, &ALLREDUCE, NULL, NULL);
    coll = play_coll_start(&p, &ALLREDUCE);
    play_coll_start(&p, &ALLREDUCE);
    reader_take(&r);
    c = reader_comm(&r, "tp", 0);
    CHECK(c->enqueued == 3 && c->started == 1 && c->completed == 1);
    for (int i = 0; i < 8; i++)
        h[i] = play_channel_start(&p, coll, i, nccl_gpu_now());
    for (int i = 0; i < 5; i++)
        play_channel_stop(&p, h[i], nccl_gpu_now());
    for (int i = 0; i < 3; i++)
        proxy[i] = play_proxy_start(&p, coll, getpid(), i, i & 1);
    for (int i = 0; i < 2; i++)
        play_state(&p, proxy[i], FR_NCCL_OP_IN_PROGRESS, 0);
    play_stop(&p, proxy[0]);
    reader_take(&r);
    c = reader_comm(&r, "tp", 0);
    CHECK(c->enqueued == 3 && c->started == 2 && c->completed == 1);
    CHECK(c->channels_started == 8 && c->channels_ended == 5);
    CHECK(c->proxy_posted == 3 && c->proxy_sent == 2 && c->proxy_done == 1);
    for (int i = 5; i < 8; i++)
        play_channel_stop(&p, h[i], nccl_gpu_now());
    reader_take(&r);
    c = reader_comm(&r, "tp", 0);
    CHECK(c->completed == 2 && c->channels_started == 0 && r.n == 2);
    CHECK(reader_dropped(&r) == 0);
    player_fini(&p);
    CHECK(reader_dropped(&r) == 1); /* the third never ran */
    reader_close(&r);
}

static void a_stuck_kernel_is_seen_from_outside_channel_by_channel(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_stuck, NULL), 0);
}

/* --- groups of sends and receives --- */

static void *many(struct player *p, void *group, const char *func, int from, int to, int skip,
                  void **ret)
{
    int n = 0;

    for (int i = from; i < to; i++)
        if (i != skip)
            ret[n++] = play_p2p_start(p, func, i, 100, "ncclFloat32", 2, group);
    return ret;
}

static void end_of(struct player *p, void **h, int n)
{
    uint64_t start = nccl_gpu_now(), end;

    do {
        end = nccl_gpu_now();
    } while (end < start + 2000);
    for (int i = 0; i < n; i++)
        play_kernel(p, h[i], 2, start, end);
}

static void play_folds(void)
{
    struct player p;
    struct reader r;
    void *h[16], *group;
    const struct fr_seg_comm *c;

    player_init(&p, version_of_case, 2, "ep", 4, 1);
    reader_open(&r);

    group = play_group_start(&p); /* all-to-all, own block included */
    many(&p, group, "Send", 0, 4, -1, h);
    many(&p, group, "Recv", 0, 4, -1, h + 4);
    play_stop(&p, group);
    reader_take(&r);
    c = reader_comm(&r, "ep", 1);
    CHECK(c && c->enqueued == 1 && c->completed == 0 && c->op == FR_OP_ALLTOALL);
    CHECK(c->op_bytes == 1600 && c->flags == (FR_COMM_GPU | FR_COMM_P2P));
    end_of(&p, h, 8);

    group = play_group_start(&p); /* the kernel may start before the group is closed */
    many(&p, group, "Send", 0, 4, 1, h);
    end_of(&p, h, 3);
    many(&p, group, "Recv", 0, 4, 1, h);
    end_of(&p, h, 3);
    play_stop(&p, group);

    group = play_group_start(&p); /* gather at the root */
    many(&p, group, "Recv", 0, 4, 1, h);
    play_stop(&p, group);
    end_of(&p, h, 3);

    group = play_group_start(&p); /* scatter at the root */
    many(&p, group, "Send", 0, 4, 1, h);
    play_stop(&p, group);
    end_of(&p, h, 3);

    group = play_group_start(&p); /* ring: to the next, from the one before, two tensors */
    for (int i = 0; i < 2; i++) {
        h[2 * i] = play_p2p_start(&p, "Send", 2, 100, "ncclFloat32", 2, group);
        h[2 * i + 1] = play_p2p_start(&p, "Recv", 0, 50, "ncclFloat32", 2, group);
    }
    play_stop(&p, group);
    end_of(&p, h, 4);

    group = play_group_start(&p); /* an all-to-all with an empty block */
    many(&p, group, "Send", 0, 3, 1, h);
    many(&p, group, "Recv", 0, 4, 1, h + 2);
    play_stop(&p, group);
    end_of(&p, h, 5);

    group = play_group_start(&p); /* one send, so that v4 tells the one before */
    h[0] = play_p2p_start(&p, "Send", 2, 1, "ncclInt8", 2, group);
    play_stop(&p, group);
    end_of(&p, h, 1);
    player_fini(&p); /* tells the last one */

    reader_take(&r);
    CHECK(reader_dropped(&r) == 0);
    CHECK(r.n == 8);
    CHECK(r.r[0].op == FR_OP_ALLTOALL && r.r[0].bytes == 1600 && r.r[0].seq == 1);
    CHECK(r.r[1].op == FR_OP_ALLTOALL && r.r[1].bytes == 1600 && r.r[1].seq == 2);
    CHECK(r.r[2].op == FR_OP_GATHER && r.r[2].bytes == 1600 && r.r[2].seq == 3);
    CHECK(r.r[2].peer == 1);
    CHECK(r.r[3].op == FR_OP_SCATTER && r.r[3].bytes == 1600 && r.r[3].seq == 4);
    CHECK(r.r[4].op == FR_OP_SEND && r.r[4].bytes == 800 && r.r[4].peer == 2);
    CHECK(r.r[4].seq == 3 + 2); /* sends to rank 2 so far: three groups before, two now */
    CHECK(r.r[5].op == FR_OP_RECV && r.r[5].bytes == 400 && r.r[5].peer == 0);
    CHECK(r.r[6].op == FR_OP_NEIGHBOR && r.r[6].bytes == 800 && r.r[6].seq == 6);
    CHECK(r.r[7].op == FR_OP_SEND && r.r[7].bytes == 1);
    for (uint64_t i = 0; i < r.n; i++)
        CHECK(r.r[i].t_end > r.r[i].t_start && r.r[i].flags & FR_REC_GPU_CLOCK);
    c = reader_comm(&r, "ep", 1);
    CHECK(c->enqueued == 7 && c->completed == 7 && c->freed);
    CHECK(reader_comm(&r, "ep", 0)->enqueued == 0);
    reader_close(&r);
}

static void sends_and_receives_of_a_group_are_one_operation(void **state)
{
    (void)state;
    for (version_of_case = 4; version_of_case <= 7; version_of_case++)
        assert_int_equal(nccl_child(play_folds, NULL), 0);
}

/* --- copy engine --- */

static void play_copies(void)
{
    struct player p;
    struct reader r;

    player_init(&p, 6, 3, "ce", 4, 0);
    CHECK(p.mask & FR_NCCL_CE_COLL);
    reader_open(&r);
    CHECK(!play_ce(&p, "AllGather", 64, "ncclFloat32", 0));
    play_ce(&p, "AlltoAll", 64, "ncclFloat32", 0);
    play_ce(&p, "Scatter", 64, "ncclFloat32", 2);
    reader_take(&r);
    CHECK(r.n == 3);
    for (int i = 0; i < 3; i++) {
        CHECK(r.r[i].bytes == 64 * 4 * 4 && r.r[i].seq == (uint32_t)i + 1);
        CHECK(r.r[i].algo == FR_ALGO_COPY_ENGINE && r.r[i].flags & FR_REC_UNTIMED);
        CHECK(r.r[i].t_enq == r.r[i].t_end);
    }
    CHECK(r.r[1].op == FR_OP_ALLTOALL && r.r[2].peer == 2);
    CHECK(reader_comm(&r, "ce", 0)->flags & FR_COMM_BLIND);
    play_call(&p, &ALLREDUCE, NULL, NULL); /* a kernel is seen again, and takes the copies along */
    reader_take(&r);
    CHECK(reader_comm(&r, "ce", 0)->completed == 4);
    CHECK(!(reader_comm(&r, "ce", 0)->flags & FR_COMM_BLIND));
    player_fini(&p);
    CHECK(reader_dropped(&r) == 0);
    reader_close(&r);
}

static void copy_engine_collectives_count_without_times(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_copies, NULL), 0);
}

/* --- levels --- */

static void play_hang(void)
{
    struct player p;
    struct reader r;
    const struct fr_seg_comm *c;
    void *coll, *proxy[4];

    player_init(&p, 6, 4, "h", 2, 0);
    CHECK(!(p.mask & FR_NCCL_KERNEL_CH) && p.mask & FR_NCCL_PROXY_OP);
    reader_open(&r);
    coll = play_coll_start(&p, &ALLREDUCE);
    reader_take(&r);
    c = reader_comm(&r, "h", 0);
    CHECK(c->enqueued == 1 && c->started == 1 && c->completed == 0 && c->flags & FR_COMM_BLIND);
    for (int i = 0; i < 4; i++)
        proxy[i] = play_proxy_start(&p, coll, getpid(), i, 1);
    coll = play_coll_start(&p, &ALLREDUCE); /* now the network is known to tell of the end */
    for (int i = 0; i < 4; i++)
        play_stop(&p, proxy[i]);
    reader_take(&r);
    c = reader_comm(&r, "h", 0);
    CHECK(c->enqueued == 2 && c->completed == 1 && !(c->flags & FR_COMM_BLIND));
    CHECK(!play_channel_start(&p, coll, 0, nccl_gpu_now()));
    for (int i = 0; i < 5000; i++) /* more than the ring holds: no end is ever seen */
        CHECK(play_coll_start(&p, &ALLREDUCE));
    reader_take(&r);
    CHECK(reader_comm(&r, "h", 0)->enqueued == 5002);
    player_fini(&p);
    reader_take(&r);
    CHECK(r.n == 0 && reader_dropped(&r) == 0);
    reader_close(&r);
}

static void level_hang_shows_progress_and_writes_no_records(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_hang, "hang"), 0);
}

static void play_off(void)
{
    struct player p;

    player_init(&p, 6, 4, "h", 2, 0);
    CHECK(!p.context && p.mask == 0);
    CHECK(!play_coll_start(&p, &ALLREDUCE));
    play_stop(&p, NULL);
    player_fini(&p);
}

static void level_off_asks_for_nothing_and_gives_no_context(void **state)
{
    (void)state;
    assert_int_equal(nccl_child(play_off, "off"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_writes_one_right_record_a_collective),
        cmocka_unit_test(bytes_are_what_nccl_tests_counts),
        cmocka_unit_test(a_stuck_kernel_is_seen_from_outside_channel_by_channel),
        cmocka_unit_test(sends_and_receives_of_a_group_are_one_operation),
        cmocka_unit_test(copy_engine_collectives_count_without_times),
        cmocka_unit_test(level_hang_shows_progress_and_writes_no_records),
        cmocka_unit_test(level_off_asks_for_nothing_and_gives_no_context),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
