/* SPDX-License-Identifier: Apache-2.0 */
/* test_spool.c - what was written is read, torn tails are cut, the bound holds, detail goes first
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool.h"
#include "base/fs.h"
#include "base/rng.h"

static char dir[64], file[80];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/fr-test-spool-XXXXXX");
    snprintf(file, sizeof file, "%s/spool", mkdtemp(dir) ? dir : "");
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    return fr_fs_remove_tree(dir, NULL);
}

static struct fr_spool *open_spool(uint64_t max)
{
    struct fr_spool *sp = NULL;

    assert_int_equal(fr_spool_open(dir, max, &sp, NULL), 0);
    return sp;
}

/* The payload of a part is a function of its key and class alone. */
static size_t payload(uint64_t seq, int cls, char *p)
{
    struct fr_rng g = {seq * 4 + (uint64_t)cls};
    size_t n = (size_t)fr_rng_below(&g, 200) + 1;

    for (size_t i = 0; i < n; i++)
        p[i] = (char)fr_rng_u64(&g);
    return n;
}

static void append(struct fr_spool *sp, uint64_t seq, int cls)
{
    char p[256];
    size_t n = payload(seq, cls, p);

    assert_int_equal(
        fr_spool_append(sp, (struct fr_spool_key){9, seq}, (enum fr_spool_class)cls, p, n), 0);
}

/* 1 when b is the concatenation of the parts in `classes` (bits). */
static int holds(const struct fr_buf *b, uint64_t seq, unsigned classes)
{
    size_t at = 0;

    for (int c = 0; c < 3; c++) {
        char p[256];
        size_t n = payload(seq, c, p);

        if (!(classes >> c & 1u))
            continue;
        if (b->len - at < n || memcmp(b->p + at, p, n) != 0)
            return 0;
        at += n;
    }
    return at == b->len;
}

static void reports_come_back_in_order_with_their_parts_joined(void **state)
{
    struct fr_spool *sp = open_spool(1u << 20);
    struct fr_buf b = FR_BUF_INIT;
    struct fr_spool_key k;

    (void)state;
    for (uint64_t seq = 1; seq <= 50; seq++)
        for (int c = 0; c < 3; c++)
            append(sp, seq, c);
    for (int round = 0; round < 2; round++) { /* and again by another agent */
        for (uint64_t seq = 1; seq <= 50; seq++) {
            assert_int_equal(fr_spool_next(sp, &k, &b), 1);
            assert_int_equal(k.seq, seq);
            assert_int_equal(k.instance, 9);
            assert_true(holds(&b, seq, 7));
        }
        assert_int_equal(fr_spool_next(sp, &k, &b), 0);
        fr_spool_close(sp);
        sp = open_spool(1u << 20);
    }
    while (fr_spool_next(sp, &k, &b) == 1)
        ;
    fr_spool_delivered(sp);
    assert_int_equal(fr_spool_bytes(sp), 0);
    fr_spool_close(sp);
    fr_buf_fini(&b);
}

static void a_file_torn_at_any_byte_gives_all_whole_parts_before_it(void **state)
{
    struct fr_spool *sp = open_spool(1u << 20);
    struct fr_buf b = FR_BUF_INIT, whole = FR_BUF_INIT;
    uint64_t ends[4] = {0};
    struct fr_spool_key k;

    (void)state;
    for (uint64_t seq = 1; seq <= 3; seq++) {
        append(sp, seq, 0);
        ends[seq] = fr_spool_bytes(sp);
    }
    fr_spool_close(sp);
    assert_int_equal(fr_fs_read(file, 1u << 20, &whole, NULL), 0);
    assert_int_equal(whole.len, ends[3]);
    for (size_t n = 0; n <= whole.len; n++)
        for (int flip = 0; flip < 2; flip++) {
            uint64_t seq = 0, expected = 0;

            /* Cut behind byte n, or byte n turned over. */
            if (flip && n == whole.len)
                continue;
            for (int i = 1; i <= 3; i++)
                expected += ends[i] <= n;
            if (flip)
                whole.p[n] = (char)~whole.p[n];
            assert_int_equal(fr_fs_write_atomic(file, whole.p, flip ? whole.len : n, 0600, NULL),
                             0);
            if (flip)
                whole.p[n] = (char)~whole.p[n];
            sp = open_spool(1u << 20);
            while (fr_spool_next(sp, &k, &b) == 1) {
                seq++;
                assert_int_equal(k.seq, seq);
                assert_true(holds(&b, seq, 1));
            }
            assert_int_equal(seq, expected);
            assert_int_equal(fr_spool_bytes(sp), ends[expected]);
            append(sp, 77, 1); /* and it goes on behind */
            fr_spool_rewind(sp);
            for (seq = 0; fr_spool_next(sp, &k, &b) == 1; seq++)
                ;
            assert_int_equal(seq, expected + 1);
            fr_spool_close(sp);
        }
    fr_buf_fini(&b);
    fr_buf_fini(&whole);
}

static void a_full_spool_gives_up_the_oldest_detail_first(void **state)
{
    enum { MAX = 65536, N = 400 };
    struct fr_spool *sp = open_spool(MAX);
    struct fr_buf b = FR_BUF_INIT;
    struct fr_spool_key k;
    unsigned parts = 0, left = 0;
    uint64_t last = 0, first_detail = 0, first_state = 0, first = 0;

    (void)state;
    for (uint64_t seq = 1; seq <= N; seq++)
        for (int c = 0; c < 3; c++, parts++) {
            append(sp, seq, c);
            assert_true(fr_spool_bytes(sp) <= MAX);
        }
    fr_spool_rewind(sp);
    while (fr_spool_next(sp, &k, &b) == 1) {
        unsigned found = 0;

        assert_true(k.seq > last); /* still in order */
        last = k.seq;
        for (unsigned classes = 1; classes < 8 && !found; classes++)
            if (holds(&b, k.seq, classes))
                found = classes;
        assert_true(found & 1u); /* what counts most is in each that is left */
        left += (unsigned)__builtin_popcount(found);
        if (!first)
            first = k.seq;
        if ((found & 2u) && !first_state)
            first_state = k.seq;
        if ((found & 4u) && !first_detail)
            first_detail = k.seq;
    }
    assert_int_equal(last, N);
    assert_true(first <= first_state && first_state <= first_detail);
    assert_int_equal(fr_spool_dropped(sp), parts - left); /* each one is counted */
    assert_true(fr_spool_bytes(sp) > MAX / 3);            /* and not more than needed */
    fr_spool_close(sp);
    fr_buf_fini(&b);
}

static void the_read_position_survives_a_rewriting(void **state)
{
    struct fr_spool *sp = open_spool(65536);
    struct fr_buf b = FR_BUF_INIT;
    struct fr_spool_key k;
    uint64_t written = 0, read = 0;

    (void)state;
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 20; i++) {
            append(sp, ++written, 0);
            append(sp, written, 2);
        }
        for (int i = 0; i < 19;
             i++) { /* the reader is a little slower, and meets no report twice */
            if (fr_spool_next(sp, &k, &b) != 1)
                break;
            assert_true(k.seq > read);
            read = k.seq;
        }
    }
    assert_true(read > 600);
    fr_spool_close(sp);
    fr_buf_fini(&b);
}

static void a_full_disk_is_an_error_and_leaves_the_file_as_it_was(void **state)
{
    struct fr_spool *sp = open_spool(1u << 20);
    struct rlimit old, small = {8192, 8192};
    struct fr_buf b = FR_BUF_INIT;
    struct fr_spool_key k;
    char big[3000] = {1};
    uint64_t n = 0, seq = 0;
    int rc = 0;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    setrlimit(RLIMIT_FSIZE, &small);
    while (n < 10 && (rc = fr_spool_append(sp, (struct fr_spool_key){1, n + 1}, FR_SPOOL_BASE, big,
                                           sizeof big)) == 0)
        n++;
    assert_int_equal(rc, -EFBIG);
    assert_int_equal(n, 2);
    assert_int_equal(fr_spool_dropped(sp), 1);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(
        fr_spool_append(sp, (struct fr_spool_key){1, 3}, FR_SPOOL_BASE, big, sizeof big), 0);
    fr_spool_rewind(sp);
    while (fr_spool_next(sp, &k, &b) == 1)
        assert_int_equal(k.seq, ++seq);
    assert_int_equal(seq, 3);
    fr_spool_close(sp);
    fr_buf_fini(&b);
}

static void a_second_agent_is_refused_the_spool_of_the_first(void **state)
{
    struct fr_spool *first = open_spool(65536), *second = NULL;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_int_equal(fr_spool_open(dir, 65536, &second, &err), -EBUSY);
    assert_null(second);
    assert_non_null(strstr(err.text, "another agent uses this spool"));
    fr_spool_close(first);
    first = open_spool(65536);
    fr_spool_close(first);
}

static void what_is_no_plain_file_is_refused(void **state)
{
    struct fr_spool *sp = NULL;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_int_equal(symlink("/etc/passwd", file), 0);
    assert_true(fr_spool_open(dir, 65536, &sp, &err) < 0);
    assert_non_null(strstr(err.text, file));
    assert_null(sp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reports_come_back_in_order_with_their_parts_joined,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_file_torn_at_any_byte_gives_all_whole_parts_before_it,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_full_spool_gives_up_the_oldest_detail_first, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(the_read_position_survives_a_rewriting, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_full_disk_is_an_error_and_leaves_the_file_as_it_was,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_second_agent_is_refused_the_spool_of_the_first, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(what_is_no_plain_file_is_refused, make_dir, remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
