/* SPDX-License-Identifier: Apache-2.0 */
/* test_segment.c - the reader before segments that are right, wrong, cut short or forged */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper_segment.h"
#include "wire/segment.h"

static char dir[64], path[80];

static int in_directory(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/fr-seg-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/fr-1.seg", dir);
    return 0;
}

static int out_of_directory(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

struct kept {
    int n;
    uint64_t first, last;
    struct fr_record newest;
};

static void keep(void *arg, uint32_t lane, uint64_t index, const struct fr_record *r)
{
    struct kept *k = arg;

    assert_int_equal(lane, 0);
    if (k->n++ == 0)
        k->first = index;
    k->last = index;
    k->newest = *r;
}

static int open_made(const struct made *m, struct fr_segment **s, struct fr_err *err)
{
    made_write(m, path, sizeof *m);
    return fr_segment_open(AT_FDCWD, path, geteuid(), s, err);
}

static void a_right_segment_is_read_whole(void **state)
{
    struct fr_segment *s = NULL;
    struct fr_err err = FR_ERR_INIT;
    struct kept k = {0};
    struct fr_seg_step step;
    struct made m;
    uint64_t lost = 9;

    (void)state;
    made_right(&m, 5);
    assert_int_equal(open_made(&m, &s, &err), 0);
    assert_string_equal(fr_segment_header(s)->job, "made");
    assert_int_equal(fr_segment_owner(s), geteuid());
    assert_int_equal(fr_segment_refresh(s, &err), 0);
    assert_int_equal(fr_segment_drain(s, keep, &k, &lost, &err), 5);
    assert_int_equal(lost, 0);
    assert_int_equal(k.last, 4);
    assert_int_equal(fr_segment_drain(s, keep, &k, &lost, &err), 0);
    assert_int_equal(fr_segment_comms(s, &err), 1);
    assert_int_equal(fr_segment_comm(s, 0)->enqueued, 9);
    assert_null(fr_segment_comm(s, 1));
    assert_int_equal(fr_segment_step(s, 3, &step, &err), 0);
    assert_int_equal(fr_segment_step(s, 11, &step, &err), -ENOENT);
    fr_segment_free(s);
}

static void an_overrun_ring_gives_the_newest_and_counts_the_rest(void **state)
{
    struct fr_segment *s = NULL;
    struct kept k = {0};
    struct made m;
    uint64_t lost;

    (void)state;
    made_right(&m, 100);
    assert_int_equal(open_made(&m, &s, NULL), 0);
    /* Of 16 slots one may be under the pen: 15 are sure. */
    assert_int_equal(fr_segment_drain(s, keep, &k, &lost, NULL), MADE_RECORDS - 1);
    assert_int_equal(k.first, 100 - (MADE_RECORDS - 1));
    assert_int_equal(k.last, 99);
    assert_int_equal(lost, 100 - (MADE_RECORDS - 1));
    fr_segment_free(s);
}

static void records_that_lie_are_lost_or_tamed(void **state)
{
    struct fr_segment *s = NULL;
    struct kept k = {0};
    struct made m;
    uint64_t lost;

    (void)state;
    made_right(&m, 3);
    m.lane[0].record[0].index = 16;  /* a later lap's */
    m.lane[0].record[2].comm = 1000; /* no such slot */
    m.lane[0].record[2].t_end = 0;
    assert_int_equal(open_made(&m, &s, NULL), 0);
    assert_int_equal(fr_segment_drain(s, keep, &k, &lost, NULL), 2);
    assert_int_equal(lost, 1);
    assert_int_equal(k.newest.comm, FR_COMM_NONE);
    assert_true(k.newest.t_end >= k.newest.t_start);
    fr_segment_free(s);
}

/* A head that jumps anywhere costs one lap at most. */
static void a_forged_head_is_bounded_work(void **state)
{
    static const uint64_t heads[] = {UINT64_MAX, 1ull << 63, 1000000007, 0};
    struct fr_segment *s = NULL;
    struct made m;

    (void)state;
    made_right(&m, 3);
    assert_int_equal(open_made(&m, &s, NULL), 0);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct kept k = {0};

        m.lane[0].head.head = heads[i];
        made_write(&m, path, sizeof m);
        assert_true(fr_segment_drain(s, keep, &k, NULL, NULL) < MADE_RECORDS);
    }
    fr_segment_free(s);
}

static void forged_headers_are_refused_with_a_sentence(void **state)
{
    static const struct {
        size_t at, bytes;
        uint64_t value;
        int rc;
        const char *says;
    } bad[] = {
#define FIELD(f) offsetof(struct fr_seg_header, f), sizeof(((struct fr_seg_header *)0)->f)
        {FIELD(magic), 0, -EPROTO, "not a fullrank segment"},
        {FIELD(version), 0, -EPROTO, "layout 0"},
        {FIELD(version), 7, -EPROTO, "layout 7"},
        {FIELD(header_bytes), 512, -EPROTO, "contradicts"},
        {FIELD(total_bytes), 1ull << 40, -EPROTO, "limit"},
        {FIELD(total_bytes), MADE_BYTES + 1, -ESTALE, "truncated"},
        {FIELD(total_bytes), 8192, -EPROTO, ""},
        {FIELD(step_off), 0, -EPROTO, "contradicts"},
        {FIELD(step_off), 0xffffffff, -EPROTO, "contradicts"},
        {FIELD(step_count), 0, -EPROTO, "contradicts"},
        {FIELD(step_count), 0xffffffff, -EPROTO, "contradicts"},
        {FIELD(step_bytes), 0, -EPROTO, "contradicts"},
        {FIELD(comm_off), 0xffffffc0, -EPROTO, "communicator table"},
        {FIELD(comm_count), 0, -EPROTO, "communicator table"},
        {FIELD(comm_count), 0xffffffff, -EPROTO, "communicator table"},
        {FIELD(comm_bytes), 1, -EPROTO, "contradicts"},
        {FIELD(lane_off), 64, -EPROTO, "lanes"},
        {FIELD(lane_off), 0xffffffc0, -EPROTO, "lanes"},
        {FIELD(lane_count), 0, -EPROTO, "lanes"},
        {FIELD(lane_count), 0xffffffff, -EPROTO, "lanes"},
        {FIELD(lane_records), 0, -EPROTO, "lanes"},
        {FIELD(lane_records), 15, -EPROTO, "lanes"},
        {FIELD(lane_records), 0x80000000, -EPROTO, "lanes"},
        {FIELD(lane_bytes), 0, -EPROTO, "lanes"},
        {FIELD(record_bytes), 0, -EPROTO, "contradicts"},
        {FIELD(clock), 9, -EPROTO, "counter 9"},
        {FIELD(clock_ticks0), 1, -EPROTO, "clock pair"},
        {FIELD(clock_mono0_ns), UINT64_MAX, -EPROTO, "clock pair"},
#undef FIELD
    };
    struct made m;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct fr_segment *s = NULL;
        struct fr_err err = FR_ERR_INIT;
        int rc;

        made_right(&m, 3);
        memcpy((char *)&m + bad[i].at, &bad[i].value, bad[i].bytes);
        rc = open_made(&m, &s, &err);
        if (rc != bad[i].rc || !strstr(err.text, bad[i].says))
            fail_msg("case %zu: %d, \"%s\"", i, rc, err.text);
        assert_null(s);
        assert_true(strchr(err.text, '\n') == NULL && err.text[0]);
    }
}

static void a_file_cut_at_any_byte_is_an_error_not_a_crash(void **state)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_segment *s = NULL;
    struct made m;

    (void)state;
    made_right(&m, 10);
    for (unsigned long n = 0; n < sizeof m; n += 13) {
        made_write(&m, path, n);
        assert_int_equal(fr_segment_open(AT_FDCWD, path, geteuid(), &s, &err), -ESTALE);
    }
    /* And under an open reader, between any two of its looks. */
    for (unsigned long n = 0; n < sizeof m; n += 97) {
        struct kept k = {0};
        struct fr_seg_step step;
        int64_t rc;

        assert_int_equal(open_made(&m, &s, &err), 0);
        assert_int_equal(truncate(path, (off_t)n), 0);
        rc = fr_segment_refresh(s, &err);
        assert_true(rc == 0 || rc == -ESTALE);
        rc = fr_segment_drain(s, keep, &k, NULL, &err);
        assert_true(rc == -ESTALE || rc == 10);
        rc = fr_segment_comms(s, &err);
        assert_true(rc == -ESTALE || rc == 1);
        rc = fr_segment_step(s, 3, &step, &err);
        assert_true(rc == -ESTALE || rc == 0);
        fr_segment_free(s);
        s = NULL;
    }
}

static void what_is_no_plain_file_of_the_owner_is_refused(void **state)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_segment *s = NULL;
    char other[80];
    struct made m;

    (void)state;
    made_right(&m, 1);
    made_write(&m, path, sizeof m);
    assert_int_equal(fr_segment_open(AT_FDCWD, path, geteuid() + 1, &s, &err), -EPERM);
    snprintf(other, sizeof other, "%s/link", dir);
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(fr_segment_open(AT_FDCWD, other, (uid_t)-1, &s, &err), -ELOOP);
    unlink(other);
    assert_int_equal(mkfifo(other, 0600), 0); /* must not block either */
    assert_int_equal(fr_segment_open(AT_FDCWD, other, (uid_t)-1, &s, &err), -EPERM);
    unlink(other);
    assert_int_equal(fr_segment_open(AT_FDCWD, dir, (uid_t)-1, &s, &err), -EPERM);
    assert_int_equal(fr_segment_open(AT_FDCWD, other, (uid_t)-1, &s, &err), -ENOENT);
    assert_null(s);
}

static void a_layout_that_changes_later_is_refused(void **state)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_segment *s = NULL;
    struct made m;

    (void)state;
    made_right(&m, 1);
    assert_int_equal(open_made(&m, &s, &err), 0);
    m.hdr.lane_off += 64;
    made_write(&m, path, sizeof m);
    assert_int_equal(fr_segment_refresh(s, &err), -EPROTO);
    fr_segment_free(s);
}

static void a_slot_that_is_being_written_keeps_its_older_content(void **state)
{
    struct fr_segment *s = NULL;
    struct fr_seg_lane lane;
    struct kept k = {0};
    struct made m;

    (void)state;
    made_right(&m, 1);
    m.lane[0].head.now = (struct fr_seg_now){.version = 2, .op = FR_OP_RECV, .peer = 3};
    assert_int_equal(open_made(&m, &s, NULL), 0);
    assert_int_equal(fr_segment_drain(s, keep, &k, NULL, NULL), 1);
    assert_int_equal(fr_segment_comms(s, NULL), 1);
    m.lane[0].head.now = (struct fr_seg_now){.version = 3, .op = FR_OP_SEND, .peer = 4};
    m.lane[0].head.calls = 5;
    m.comm[0].version = 3;
    m.comm[0].enqueued = 10;
    m.hdr.marks_version = 1;
    m.hdr.step = 99;
    m.hdr.lanes_used = 1000; /* tamed */
    made_write(&m, path, sizeof m);
    assert_int_equal(fr_segment_refresh(s, NULL), 1);
    assert_int_equal(fr_segment_header(s)->step, 3);
    assert_int_equal(fr_segment_header(s)->lanes_used, MADE_LANES);
    assert_int_equal(fr_segment_drain(s, keep, &k, NULL, NULL), 0);
    assert_int_equal(fr_segment_lane(s, 0, &lane), 0);
    assert_int_equal(lane.now.op, FR_OP_RECV);
    assert_int_equal(lane.now.peer, 3);
    assert_int_equal(lane.calls, 5);
    assert_int_equal(fr_segment_lane(s, MADE_LANES, &lane), -ENOENT);
    assert_int_equal(fr_segment_comms(s, NULL), 1);
    assert_int_equal(fr_segment_comm(s, 0)->enqueued, 9);
    fr_segment_free(s);
}

/* Read-like system calls of this process, from the kernel's own count; -1: not told. */
static long reads_so_far(void)
{
    FILE *f = fopen("/proc/self/io", "r");
    char line[128];
    long n = -1;

    while (f && fgets(line, sizeof line, f))
        sscanf(line, "syscr: %ld", &n);
    if (f)
        fclose(f);
    return n;
}

static void an_idle_rank_costs_two_reads_a_look(void **state)
{
    struct fr_segment *s = NULL;
    struct kept k = {0};
    long own, reads, a_hundred;
    int zero = open("/dev/zero", O_RDONLY);
    struct made m;
    char byte;

    (void)state;
    made_right(&m, 5);
    assert_int_equal(open_made(&m, &s, NULL), 0);
    fr_segment_refresh(s, NULL);
    fr_segment_drain(s, keep, &k, NULL, NULL);
    fr_segment_comms(s, NULL);
    own = reads_so_far();
    own = reads_so_far() - own; /* what asking costs */
    if (own < 0)
        skip();
    reads = reads_so_far();
    for (int i = 0; i < 100; i++)
        assert_int_equal(pread(zero, &byte, 1, 0), 1);
    a_hundred = reads_so_far() - reads - own; /* 100, and under valgrind, which reads too, 200 */
    close(zero);
    reads = reads_so_far();
    for (int i = 0; i < 100; i++) {
        fr_segment_refresh(s, NULL);
        fr_segment_drain(s, keep, &k, NULL, NULL);
        fr_segment_comms(s, NULL);
    }
    assert_int_equal(reads_so_far() - reads - own, 2 * a_hundred);
    fr_segment_free(s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, in_directory, out_of_directory)
    const struct CMUnitTest tests[] = {
        TEST(a_right_segment_is_read_whole),
        TEST(an_overrun_ring_gives_the_newest_and_counts_the_rest),
        TEST(records_that_lie_are_lost_or_tamed),
        TEST(a_forged_head_is_bounded_work),
        TEST(forged_headers_are_refused_with_a_sentence),
        TEST(a_file_cut_at_any_byte_is_an_error_not_a_crash),
        TEST(what_is_no_plain_file_of_the_owner_is_refused),
        TEST(a_layout_that_changes_later_is_refused),
        TEST(an_idle_rank_costs_two_reads_a_look),
        TEST(a_slot_that_is_being_written_keeps_its_older_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
