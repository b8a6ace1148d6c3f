/* SPDX-License-Identifier: Apache-2.0 */
/* test_mpi.c - real MPI jobs under the shim, judged from outside by what their segments say */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper_job.h"

static const int four[] = {0, 1, 2, 3};

/* Records of one kind of a rank, in order; op 0: all collectives. */
static int records_of(const struct job *j, int rank, int op, struct fr_record *ret, int room)
{
    int n = 0;

    for (int i = 0; i < j->nrec[rank] && n < room; i++)
        if (op ? j->rec[rank][i].op == op : j->rec[rank][i].op < FR_OP_SEND)
            ret[n++] = j->rec[rank][i];
    return n;
}

static void blocking_collectives_are_numbered_alike_with_the_bytes_of_nccl_tests(void **state)
{
    /* ops, bytes, types and roots as mpi_job.c calls them on 3 ranks */
    static const struct {
        int op, bytes, dtype, root;
    } want[] = {
        {FR_OP_BARRIER, 0, FR_DTYPE_OTHER, -1},
        {FR_OP_BCAST, 40, FR_DTYPE_INT32, 1},
        {FR_OP_REDUCE, 80, FR_DTYPE_FLOAT64, 0},
        {FR_OP_ALLREDUCE, 40, FR_DTYPE_FLOAT32, -1},
        {FR_OP_ALLREDUCE, 40, FR_DTYPE_FLOAT32, -1},
        {FR_OP_GATHER, 2 * 4 * 3, FR_DTYPE_INT32, 2},
        {FR_OP_ALLGATHER, 2 * 4 * 3, FR_DTYPE_INT32, -1},
        {FR_OP_ALLGATHER, (1 + 2 + 3) * 4, FR_DTYPE_INT32, -1},
        {FR_OP_SCATTER, 2 * 4 * 3, FR_DTYPE_INT32, 0},
        {FR_OP_REDUCE_SCATTER, (1 + 2 + 3) * 4, FR_DTYPE_FLOAT32, -1},
        {FR_OP_REDUCE_SCATTER, 2 * 4 * 3, FR_DTYPE_FLOAT32, -1},
        {FR_OP_ALLTOALL, 2 * 4 * 3, FR_DTYPE_INT32, -1},
        {FR_OP_SCAN, 80, FR_DTYPE_FLOAT64, -1},
    };
    enum { N = sizeof want / sizeof want[0] };
    struct fr_record got[N + 1];
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "blocking", 3, NULL);
    job_done(&j);
    for (int r = 0; r < 3; r++) {
        const struct fr_seg_header *h = fr_segment_header(j.seg[r]);
        const struct fr_seg_comm *c = job_comm(&j, r, job_hash(four, 3), 0);

        assert_int_equal(h->world, 3);
        assert_int_equal(h->attempt, 2);
        assert_int_equal(h->epoch, 5);
        assert_string_equal(h->job, "job-of-test");
        assert_non_null(c);
        assert_int_equal(c->rank, r);
        assert_int_equal(c->completed, N);
        assert_string_equal(c->name, "MPI_COMM_WORLD");
        assert_int_equal(records_of(&j, r, 0, got, N + 1), N);
        for (int i = 0; i < N; i++) {
            assert_int_equal(got[i].seq, i + 1);
            assert_int_equal(got[i].op, want[i].op);
            assert_int_equal(got[i].bytes, want[i].bytes);
            assert_int_equal(got[i].dtype, want[i].dtype);
            assert_int_equal(got[i].peer, want[i].root);
            assert_int_equal(got[i].flags, 0);
        }
    }
    assert_int_equal(job_end(&j), 0);
}

static void nonblocking_collectives_end_where_they_are_waited_for(void **state)
{
    static const uint32_t order[] = {3, 1, 2, 4, 5};
    struct fr_record got[8];
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "nonblocking", 3, NULL);
    job_done(&j);
    for (int r = 0; r < 3; r++) {
        const struct fr_seg_comm *c = job_comm(&j, r, job_hash(four, 3), 0);

        assert_int_equal(c->enqueued, 5);
        assert_int_equal(c->completed, 5);
        assert_int_equal(records_of(&j, r, 0, got, 8), 5);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(got[i].flags, FR_REC_NONBLOCKING);
            assert_int_equal(got[i].seq, order[i]);
        }
    }
    assert_int_equal(job_end(&j), 0);
}

static void persistent_operations_count_each_start(void **state)
{
    struct fr_record got[8];
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "persistent", 3, NULL);
    job_done(&j);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(job_comm(&j, r, job_hash(four, 3), 0)->completed, 3);
        assert_int_equal(records_of(&j, r, FR_OP_ALLREDUCE, got, 8), 3);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(got[i].seq, i + 1);
            assert_true(got[i].flags & FR_REC_PERSISTENT);
        }
        assert_int_equal(records_of(&j, r, FR_OP_SEND, got, 8), 2);
        assert_int_equal(got[1].seq, 2);
        assert_int_equal(got[1].peer, (r + 1) % 3);
        assert_int_equal(records_of(&j, r, FR_OP_RECV, got, 8), 2);
        assert_int_equal(got[1].seq, 2);
        assert_int_equal(got[1].peer, (r + 2) % 3);
    }
    assert_int_equal(job_end(&j), 0);
}

static void sends_and_receives_of_a_pair_have_the_same_numbers_and_bytes(void **state)
{
    struct fr_record s[64], v[64];
    struct job j;
    int total = 0;

    (void)state;
    job_start(&j, "mpi_job", "p2p", 4, NULL);
    job_done(&j);
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            int ns = records_of(&j, a, FR_OP_SEND, s, 64),
                nv = records_of(&j, b, FR_OP_RECV, v, 64);
            uint64_t sent = 0, received = 0;
            uint32_t ks = 0, kv = 0;

            for (int i = 0; i < ns; i++)
                if (s[i].peer == b) {
                    sent += s[i].bytes * ++ks;
                    assert_true(s[i].seq >= 1);
                }
            for (int i = 0; i < nv; i++)
                if (v[i].peer == a) {
                    received += v[i].bytes * ++kv;
                    assert_int_equal(v[i].seq, kv);
                }
            assert_int_equal(ks, kv);
            assert_int_equal(sent, received);
            total += (int)ks;
        }
    /* send, sendrecv, sendrecv_replace, isend on each rank, and one across the reversed order */
    assert_int_equal(total, 4 * 4 + 1);
    assert_int_equal(job_end(&j), 0);
}

static void a_receive_from_anyone_has_its_sender_whatever_ends_it(void **state)
{
    struct fr_record v[64];
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "anyone", 4, NULL);
    job_done(&j);
    for (int r = 0; r < 4; r++) {
        int n = records_of(&j, r, FR_OP_RECV, v, 64), last = 0, before_last = 0;

        for (int i = 0; i < n; i++) {
            last += v[i].peer == (r + 3) % 4; /* it sends the first of the two, each time */
            before_last += v[i].peer == (r + 2) % 4;
        }
        assert_int_equal(last, 6);
        assert_int_equal(before_last, 6);
    }
    assert_int_equal(job_end(&j), 0);
}

static void duplicates_splits_and_freed_communicators_stay_apart_and_agree(void **state)
{
    static const int halves[2][2] = {{2, 0}, {3, 1}};
    static const uint64_t completed[] = {0, 1, 5, 7}; /* by instance; 0 is the world */
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "comms", 4, NULL);
    job_done(&j);
    for (int r = 0; r < 4; r++) {
        const struct fr_seg_comm *c;

        for (uint32_t i = 1; i <= 3; i++) {
            c = job_comm(&j, r, job_hash(four, 4), i);
            assert_non_null(c);
            assert_int_equal(c->size, 4);
            assert_int_equal(c->completed, completed[i]);
            assert_int_equal(c->freed, i == 1);
        }
        assert_string_equal(job_comm(&j, r, job_hash(four, 4), 2)->name, "gradients");
        c = job_comm(&j, r, job_hash(halves[r % 2], 2), 0);
        assert_non_null(c);
        assert_int_equal(c->completed, 2 + r % 2);
        assert_int_equal(c->nruns, 1);
        assert_int_equal(c->runs[0].first, halves[r % 2][0]);
        assert_int_equal(c->runs[0].first + c->runs[0].stride, halves[r % 2][1]);
        c = job_comm(&j, r, job_hash(&r, 1), 1); /* as MPI_COMM_SELF, but not it */
        assert_non_null(c);
        assert_int_equal(c->completed, 1);
        /* dup, dup, split, idup, split on the world itself */
        assert_int_equal(job_comm(&j, r, job_hash(four, 4), 0)->completed, 5);
    }
    assert_int_equal(job_end(&j), 0);
}

static void fortran_calls_are_seen_under_all_their_names(void **state)
{
    struct fr_record got[8];
    struct job j;

    (void)state;
    job_start(&j, "mpi_fortran_job", "", 3, NULL);
    job_done(&j);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(job_comm(&j, r, job_hash(four, 3), 0)->completed, 3);
        assert_int_equal(job_comm(&j, r, job_hash(four, 3), 1)->completed, 3);
        assert_int_equal(records_of(&j, r, FR_OP_ALLREDUCE, got, 8), 3);
        assert_int_equal(got[0].bytes, 48);
        assert_int_equal(got[0].dtype, FR_DTYPE_FLOAT64);
        assert_int_equal(got[2].flags, FR_REC_NONBLOCKING);
        assert_int_equal(records_of(&j, r, FR_OP_BCAST, got, 8), 1);
        assert_int_equal(got[0].peer, 1);
    }
    assert_int_equal(job_end(&j), 0);
}

static void four_threads_that_call_at_once_lose_nothing(void **state)
{
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "threads", 2, NULL);
    job_done(&j);
    for (int r = 0; r < 2; r++) {
        const struct fr_seg_header *h = fr_segment_header(j.seg[r]);
        uint64_t seen[5] = {0}, seqs[5] = {0};

        for (uint32_t i = 1; i <= 4; i++)
            assert_int_equal(job_comm(&j, r, job_hash(four, 2), i)->completed, 1000);
        assert_int_equal(h->dropped, 0);
        assert_true(h->lanes_used >= 2);
        assert_int_equal(j.lost[r], 0);
        for (int i = 0; i < j.nrec[r]; i++)
            if (j.rec[r][i].op == FR_OP_ALLREDUCE) {
                const struct fr_seg_comm *c = fr_segment_comm(j.seg[r], j.rec[r][i].comm);

                assert_true(c->instance >= 1 && c->instance <= 4);
                seen[c->instance]++;
                seqs[c->instance] += j.rec[r][i].seq;
            }
        for (int i = 1; i <= 4; i++) {
            assert_int_equal(seen[i], 1000);
            assert_int_equal(seqs[i], 1000 * 1001 / 2);
        }
    }
    assert_int_equal(job_end(&j), 0);
}

/* Read until every lane 0 shows the wanted operation. */
static void await_ops(struct job *j, const uint32_t *op, struct fr_seg_now *ret)
{
    for (time_t since = time(NULL);; nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL)) {
        int n = 0;

        job_read(j);
        for (int r = 0; r < j->ranks; r++) {
            struct fr_seg_lane lane;

            if (fr_segment_lane(j->seg[r], 0, &lane) == 0) {
                ret[r] = lane.now;
                n += lane.now.op == op[r];
            }
        }
        if (n == j->ranks)
            return;
        if (time(NULL) - since > 20)
            fail_msg("ranks are in %u %u %u %u", ret[0].op, ret[1].op, ret[2].op, ret[3].op);
    }
}

static void a_blocked_rank_shows_what_it_waits_for_and_in_what(void **state)
{
    static const uint32_t op[] = {FR_OP_RECV, FR_OP_NONE, FR_OP_ALLREDUCE, FR_OP_WAIT};
    const struct fr_seg_comm *c;
    struct fr_seg_now now[4];
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "blocked", 4, NULL);
    job_open(&j);
    await_ops(&j, op, now);
    assert_int_equal(now[0].peer, 1);
    assert_int_equal(now[0].seq, 1);
    assert_int_equal(now[0].bytes, 4);
    assert_int_equal(now[3].peer, 1);
    assert_int_equal(now[3].waits_for, FR_OP_RECV);
    assert_int_equal(now[3].seq, 1);
    assert_int_equal(now[2].seq, 1);
    c = fr_segment_comm(j.seg[2], now[2].comm);
    assert_non_null(c);
    assert_int_equal(c->instance, 1);
    assert_int_equal(c->enqueued, 1);
    assert_int_equal(c->completed, 0);
    assert_true(fr_segment_ns(j.seg[2], now[2].t_enter) > 0);
    assert_int_equal(job_end(&j), 0);
}

static void a_child_of_fork_does_not_write_into_its_parents_segment(void **state)
{
    struct fr_record got[4];
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "forks", 2, NULL);
    job_done(&j);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(fr_segment_header(j.seg[r])->step, 3);
        assert_int_equal(fr_segment_header(j.seg[r])->sources, FR_SOURCE_MPI | FR_SOURCE_MARKS);
        assert_int_equal(records_of(&j, r, FR_OP_STEP, got, 4), 1);
        assert_int_equal(job_comm(&j, r, job_hash(four, 2), 0)->completed, 2);
    }
    assert_int_equal(job_end(&j), 0);
}

/* job_end also checks that the job was silent and that no segment is left. */
static void a_job_that_nobody_watches_runs_as_if_there_were_no_shim(void **state)
{
    static const char *const envs[] = {"FULLRANK_PROBE_DIR", "FULLRANK_PROBE=off",
                                       "FULLRANK_PROBE_DIR=/proc/no/such/place"};
    struct job j;

    (void)state;
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) {
        job_start(&j, "mpi_job", "blocking", 3, envs[i]);
        j.ranks = 0; /* there is nothing to open */
        assert_int_equal(job_end(&j), 0);
    }
}

static void what_finds_no_room_is_counted_and_the_rest_stays_right(void **state)
{
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "overflow", 2, NULL);
    job_done(&j);
    for (int r = 0; r < 2; r++) {
        const struct fr_seg_comm *w = job_comm(&j, r, job_hash(four, 2), 0);
        const struct fr_seg_header *h = fr_segment_header(j.seg[r]);
        struct fr_seg_lane lane;

        /* 150 collectives waited for backwards, 300 duplicates, a barrier: all complete. */
        assert_int_equal(w->enqueued, 150 + 300 + 1);
        assert_int_equal(w->completed, 150 + 300 + 1);
        assert_int_equal(h->comm_used, FR_SEG_COMMS);
        assert_int_equal(h->dropped, 300 + 2 - FR_SEG_COMMS); /* + the world and self */
        assert_int_equal(fr_segment_lane(j.seg[r], 0, &lane), 0);
        assert_true(lane.dropped >= 9000 - 8192); /* receives beyond the table */
        /* Each operation is a record that was read, one that was overwritten, or a drop. */
        assert_int_equal((uint64_t)j.nrec[r] + j.lost[r] + lane.dropped,
                         150 + 2 * 9000 + 2 * 300 + 1);
    }
    assert_int_equal(job_end(&j), 0);
}

static void operations_that_end_far_out_of_order_leave_progress_exact(void **state)
{
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "window", 2, NULL);
    job_done(&j);
    for (int r = 0; r < 2; r++) {
        const struct fr_seg_comm *w = job_comm(&j, r, job_hash(four, 2), 0);

        assert_int_equal(w->enqueued, 200);
        assert_int_equal(w->completed, 180 - 1); /* the 180th is the oldest that runs */
    }
    assert_int_equal(job_end(&j), 0);
}

static void slots_of_freed_communicators_are_given_to_later_ones(void **state)
{
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "turnover", 2, NULL);
    job_done(&j);
    for (int r = 0; r < 2; r++) {
        const struct fr_seg_header *h = fr_segment_header(j.seg[r]);
        const struct fr_seg_comm *c;
        struct fr_record got[4];

        assert_int_equal(h->comm_used, FR_SEG_COMMS);
        assert_int_equal(h->dropped, 0);
        /* The 500th: instance 501 of that list, with 1 + 499 % 3 barriers. */
        c = job_comm(&j, r, job_hash(four, 2), 501);
        assert_non_null(c);
        assert_int_equal(c->completed, 2);
        assert_int_equal(c->freed, 1);
        assert_true(c->t_since > 0);
        assert_null(
            job_comm(&j, r, job_hash(four, 2), 2)); /* freed long ago: its slot is another's */
        c = job_comm(&j, r, job_hash(four, 2), 1);  /* a request held on to this one */
        assert_non_null(c);
        assert_int_equal(records_of(&j, r, FR_OP_RECV, got, 4), 1);
        assert_ptr_equal(fr_segment_comm(j.seg[r], got[0].comm), c);
        assert_int_equal(got[0].peer, 1 - r);
    }
    assert_int_equal(job_end(&j), 0);
}

static void preloaded_into_a_program_without_mpi_it_does_nothing(void **state)
{
    char dir[] = "/tmp/fr-none-XXXXXX", cmd[1200];

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(cmd, sizeof cmd,
             "test -z \"$(FULLRANK_DEBUG=1 FULLRANK_PROBE_DIR=%s LD_BIND_NOW=1 "
             "LD_PRELOAD=%s/lib/libfullrank-mpi.so cat /dev/null 2>&1)\"",
             dir, FR_BUILD_DIR);
    assert_int_equal(system(cmd), 0);
    assert_int_equal(rmdir(dir), 0); /* empty */
}

static void level_hang_still_numbers_everything_but_reads_no_run_queue(void **state)
{
    struct job j;

    (void)state;
    job_start(&j, "mpi_job", "blocking", 3, "FULLRANK_PROBE=hang");
    job_done(&j);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(fr_segment_header(j.seg[r])->level, FR_PROBE_HANG);
        assert_int_equal(job_comm(&j, r, job_hash(four, 3), 0)->completed, 13);
        for (int i = 0; i < j.nrec[r]; i++)
            assert_int_equal(j.rec[r][i].ready_us, 0);
    }
    assert_int_equal(job_end(&j), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocking_collectives_are_numbered_alike_with_the_bytes_of_nccl_tests),
        cmocka_unit_test(nonblocking_collectives_end_where_they_are_waited_for),
        cmocka_unit_test(persistent_operations_count_each_start),
        cmocka_unit_test(sends_and_receives_of_a_pair_have_the_same_numbers_and_bytes),
        cmocka_unit_test(a_receive_from_anyone_has_its_sender_whatever_ends_it),
        cmocka_unit_test(duplicates_splits_and_freed_communicators_stay_apart_and_agree),
        cmocka_unit_test(fortran_calls_are_seen_under_all_their_names),
        cmocka_unit_test(four_threads_that_call_at_once_lose_nothing),
        cmocka_unit_test(a_blocked_rank_shows_what_it_waits_for_and_in_what),
        cmocka_unit_test(a_child_of_fork_does_not_write_into_its_parents_segment),
        cmocka_unit_test(a_job_that_nobody_watches_runs_as_if_there_were_no_shim),
        cmocka_unit_test(what_finds_no_room_is_counted_and_the_rest_stays_right),
        cmocka_unit_test(operations_that_end_far_out_of_order_leave_progress_exact),
        cmocka_unit_test(slots_of_freed_communicators_are_given_to_later_ones),
        cmocka_unit_test(preloaded_into_a_program_without_mpi_it_does_nothing),
        cmocka_unit_test(level_hang_still_numbers_everything_but_reads_no_run_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
