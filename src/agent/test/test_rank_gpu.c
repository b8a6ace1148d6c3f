/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_gpu.c - a rank whose operations run on a GPU: what it is inside of, and its times */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rank.h"
#include "base/clock.h"
#include "base/xalloc.h"
#include "helper_writer.h"

#define EPOCH 1700000000000000000ull /* of the GPU's clock, before the node's */

struct scene {
    char dir[64];
    struct writer w;
    struct fr_rank *r;
    struct fr_outbox outbox;
    struct fr_rank_tools tools;
};

static int set_up(void **state)
{
    struct scene *s = fr_xcalloc(1, sizeof *s);
    const struct writer_claims claims = {"j", 1, 1, 0, 2};

    snprintf(s->dir, sizeof s->dir, "/tmp/fr-gpu-XXXXXX");
    if (!mkdtemp(s->dir))
        return -1;
    writer_open(&s->w, s->dir, &claims, 0, 1, 64);
    s->w.h->sources = FR_SOURCE_MARKS | FR_SOURCE_NCCL;
    writer_comm(&s->w, 0, 111, 2, 0, "dp");
    writer_comm(&s->w, 1, 222, 2, 0, "tp");
    writer_comm(&s->w, 2, 222, 2, 0, "tp");
    s->w.comms[2].instance = 1;
    for (int i = 0; i < 3; i++)
        s->w.comms[i].flags = FR_COMM_GPU | (i == 2 ? FR_COMM_P2P : 0u);
    s->r = fr_xcalloc(1, sizeof *s->r);
    s->r->pidfd = -1;
    if (fr_segment_open(AT_FDCWD, s->w.path, (uid_t)-1, &s->r->segment, NULL) != 0 ||
        fr_rank_claims(s->r, NULL) != 0)
        return -1;
    fr_rank_admit(s->r, false, fr_mono_ns());
    s->tools.outbox = &s->outbox;
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    fr_rank_fini(s->r);
    fr_rank_tools_fini(&s->tools);
    fr_outbox_fini(&s->outbox);
    writer_close(&s->w, 1);
    rmdir(s->dir);
    free(s->r);
    free(s);
    return 0;
}

static void progress(struct scene *s, int i, uint64_t enqueued, uint64_t started,
                     uint64_t completed, uint32_t op)
{
    struct fr_seg_comm *c = &s->w.comms[i];

    c->enqueued = enqueued;
    c->started = started;
    c->completed = completed;
    c->op = op;
    c->t_enqueued = fr_mono_ns() - 1000;
    c->t_completed = completed ? fr_mono_ns() - 2000000 : 0;
    c->version += 2;
}

static bool ask(struct scene *s, Fullrank__Now *now)
{
    fullrank__now__init(now);
    assert_true(fr_segment_refresh(s->r->segment, NULL) >= 0);
    assert_true(fr_segment_comms(s->r->segment, NULL) >= 0);
    return fr_rank_gpu_now(s->r, now);
}

static void a_gpu_is_inside_what_has_started_and_not_ended(void **state)
{
    struct scene *s = *state;
    Fullrank__Now now;

    assert_false(ask(s, &now)); /* nothing was ever enqueued */
    progress(s, 0, 9, 5, 5, FR_OP_ALLREDUCE);
    assert_false(ask(s, &now)); /* launched ahead: the GPU is in none of them */
    assert_true(now.since_ns > 0);
    progress(s, 1, 7, 7, 6, FR_OP_ALLGATHER);
    assert_true(ask(s, &now));
    assert_true(now.members_hash == 222 && now.instance == 0 && now.seq == 7);
    assert_true(now.op == FR_OP_ALLGATHER && !now.blind);
    s->w.comms[1].freed = 1;
    s->w.comms[1].version += 2;
    assert_false(ask(s, &now));
}

static void where_no_end_is_visible_it_says_so(void **state)
{
    struct scene *s = *state;
    Fullrank__Now now;

    s->w.comms[0].flags |= FR_COMM_BLIND;
    progress(s, 0, 9, 9, 0, FR_OP_ALLREDUCE);
    assert_true(ask(s, &now));
    assert_true(now.blind && now.seq == 9 && now.members_hash == 111);
    progress(s, 1, 7, 7, 6, FR_OP_ALLGATHER); /* what is seen goes before what is guessed */
    assert_true(ask(s, &now));
    assert_true(!now.blind && now.members_hash == 222);
}

static void a_send_under_way_is_no_operation_of_its_communicator(void **state)
{
    struct scene *s = *state;
    Fullrank__Now now;

    progress(s, 2, 3, 3, 2, FR_OP_RECV);
    s->w.comms[2].root = 1;
    s->w.comms[2].version += 2;
    assert_true(ask(s, &now));
    assert_true(now.op == FR_OP_RECV && now.peer == 1 && now.members_hash == 0);
    progress(s, 2, 4, 4, 3, FR_OP_ALLTOALL);
    assert_true(ask(s, &now));
    assert_true(now.op == FR_OP_ALLTOALL && now.members_hash == 222 && now.instance == 1);
    /* and its progress is told only for operations of all members */
    fr_rank_report(s->r, &s->tools, fr_mono_ns());
    assert_int_equal(s->outbox.progress.n, 1);
}

static void times_of_a_gpu_are_laid_on_the_clock_of_the_node(void **state)
{
    struct scene *s = *state;
    struct fr_seg_lane *lane = (struct fr_seg_lane *)(s->w.base + s->w.h->lane_off);
    struct fr_record *rec = (struct fr_record *)(lane + 1);
    uint64_t begin = fr_mono_ns();
    const struct fr_fold_step *f;

    s->r->fold.keep_log2 = 0;
    s->w.comms[0].gpu_offset_ns = -(int64_t)EPOCH;
    s->w.comms[0].version += 2;
    for (int i = 0; i < 2; i++)
        rec[i] = (struct fr_record){.t_enq = begin + (uint64_t)i * 5000,
                                    .t_start = begin + EPOCH + 10000 + (uint64_t)i * 30000,
                                    .t_end = begin + EPOCH + 35000 + (uint64_t)i * 30000,
                                    .seq = (uint32_t)i + 1,
                                    .step = 3,
                                    .comm = (uint16_t)i,
                                    .op = FR_OP_ALLREDUCE,
                                    .flags = FR_REC_GPU_CLOCK | FR_REC_NONBLOCKING,
                                    .peer = -1,
                                    .index = (uint32_t)i};
    __atomic_store_n(&lane->head, 2, __ATOMIC_RELEASE);
    s->tools.now_ns = fr_mono_ns();
    assert_int_equal(fr_rank_drain(s->r, &s->tools, NULL), 0);
    f = fr_fold_find(&s->r->fold, 3);
    assert_non_null(f);
    assert_int_equal(f->nrecords, 2);
    assert_true(f->records[0].start_ns >= begin + 9000 && f->records[0].start_ns < begin + 11000);
    assert_int_equal(f->records[0].end_ns - f->records[0].start_ns, 25000);
    /* no offset is known of the second one's clock: its duration stands behind the enqueueing */
    assert_true(f->records[1].start_ns == f->records[1].enq_ns);
    assert_int_equal(f->records[1].end_ns - f->records[1].start_ns, 25000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_gpu_is_inside_what_has_started_and_not_ended, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(where_no_end_is_visible_it_says_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_send_under_way_is_no_operation_of_its_communicator,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(times_of_a_gpu_are_laid_on_the_clock_of_the_node, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
