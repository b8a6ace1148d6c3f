/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "data.h"
#include "helper_files.h"

enum { LEN = 10000, SEQ = 20 };

/* Two bytes of the text give its position back: byte pairs are all different. */
static void fill_with_positions(uint8_t *p)
{
    for (int i = 0; i < LEN; i++)
        p[i] = (uint8_t)(i % 2 ? i / 256 : i % 256);
}

static struct fr_data open_positions(void)
{
    static uint8_t text[LEN];
    struct fr_data d;
    const char *path;

    fill_with_positions(text);
    put_file("positions", text, LEN);
    path = in_folder("positions");
    assert_int_equal(fr_data_open(&path, 1, SEQ, &d, NULL), 0);
    return d;
}

static void a_sample_is_a_run_of_the_corpus_in_its_own_split(void **state)
{
    struct fr_data d = open_positions();

    (void)state;
    for (uint64_t step = 0; step < 300; step++)
        for (uint64_t i = 0; i < 4; i++)
            for (int split = 0; split < 2; split++) {
                uint8_t t[SEQ + 1];
                const uint8_t *at = NULL;
                size_t from = split ? d.train_len : 0, to = split ? d.len : d.train_len;

                fr_data_sample(&d, (enum fr_split)split, 1, step, i, SEQ, t);
                for (size_t k = from; k + SEQ + 1 <= to && !at; k++)
                    if (memcmp(d.bytes + k, t, sizeof t) == 0)
                        at = d.bytes + k;
                assert_non_null(at);
            }
    fr_data_close(&d);
}

static void samples_depend_on_nothing_but_seed_split_step_and_index(void **state)
{
    struct fr_data d = open_positions();
    uint8_t a[SEQ + 1], b[SEQ + 1];
    int same = 0;

    (void)state;
    for (uint64_t step = 0; step < 100; step++) {
        fr_data_sample(&d, FR_SPLIT_TRAIN, 1, step, 3, SEQ, a);
        fr_data_sample(&d, FR_SPLIT_TRAIN, 1, step + 1, 3, SEQ, b);
        same += memcmp(a, b, sizeof a) == 0;
        fr_data_sample(&d, FR_SPLIT_TRAIN, 2, step, 3, SEQ, b);
        same += memcmp(a, b, sizeof a) == 0;
        fr_data_sample(&d, FR_SPLIT_TRAIN, 1, step, 4, SEQ, b);
        same += memcmp(a, b, sizeof a) == 0;
        fr_data_sample(&d, FR_SPLIT_TRAIN, 1, step, 3, SEQ, b);
        assert_memory_equal(a, b, sizeof a);
    }
    assert_true(same <= 3); /* by chance 300/9000 */
    fr_data_close(&d);
}

static void samples_are_spread_evenly_over_the_text(void **state)
{
    struct fr_data d = open_positions();
    int tenth[10] = {0};
    double chi2 = 0;

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        uint8_t t[SEQ + 1];
        size_t at;

        fr_data_sample(&d, FR_SPLIT_TRAIN, 1, i / 16, i % 16, SEQ, t);
        for (at = 0; memcmp(d.bytes + at, t, sizeof t) != 0; at++)
            ;
        tenth[at * 10 / (d.train_len - SEQ)]++;
    }
    for (int i = 0; i < 10; i++)
        chi2 += (tenth[i] - 1000.0) * (tenth[i] - 1000.0) / 1000;
    assert_true(chi2 < 27.9); /* 99.9 % of the chi-square law with 9 degrees */
    fr_data_close(&d);
}

static void a_folder_is_its_regular_files_in_the_order_of_their_names(void **state)
{
    const char *path;
    struct fr_data d;
    char text[1000];

    (void)state;
    assert_int_equal(mkdir(in_folder("texts"), 0700), 0);
    memset(text, 'b', sizeof text);
    put_file("texts/b", text, sizeof text);
    memset(text, 'A', sizeof text);
    put_file("texts/Z", text, sizeof text);
    put_file("texts/.hidden", text, sizeof text);
    assert_int_equal(symlink("b", in_folder("texts/link")), 0);
    path = in_folder("texts");
    assert_int_equal(fr_data_open(&path, 1, 10, &d, NULL), 0);
    assert_int_equal(d.len, 2000);
    assert_int_equal(d.bytes[0], 'A');
    assert_int_equal(d.bytes[1999], 'b');
    fr_data_close(&d);
}

static void data_that_cannot_be_used_is_refused_by_name(void **state)
{
    const char *path;
    struct fr_data d = {0};
    struct fr_err err;

    (void)state;
    path = in_folder("missing");
    assert_int_equal(fr_data_open(&path, 1, SEQ, &d, &err), -ENOENT);
    assert_non_null(strstr(err.text, "missing"));
    path = "/dev/null";
    assert_int_equal(fr_data_open(&path, 1, SEQ, &d, &err), -EINVAL);
    put_file("short", "0123456789", 10);
    path = in_folder("short");
    assert_int_equal(fr_data_open(&path, 1, SEQ, &d, &err), -ENODATA);
    assert_non_null(strstr(err.text, "--seq 20"));
    put_file("empty", "", 0);
    path = in_folder("empty");
    assert_int_equal(fr_data_open(&path, 1, SEQ, &d, &err), -ENODATA);
    assert_null(d.bytes); /* a failed call leaves its result alone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_a_run_of_the_corpus_in_its_own_split),
        cmocka_unit_test(samples_depend_on_nothing_but_seed_split_step_and_index),
        cmocka_unit_test(samples_are_spread_evenly_over_the_text),
        cmocka_unit_test(a_folder_is_its_regular_files_in_the_order_of_their_names),
        cmocka_unit_test(data_that_cannot_be_used_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
