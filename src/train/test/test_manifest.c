/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "manifest.h"

static struct fr_shard_sum sums[4] = {
    {5268544, 0xb91c08d7c1c14500}, {64, 0}, {1, UINT64_MAX}, {UINT64_MAX, 1}};

static struct fr_manifest example(void)
{
    return (struct fr_manifest){.step = 50,
                                .dp = 2,
                                .pp = 2,
                                .tp = 2,
                                .layers = 8,
                                .d_model = 128,
                                .heads = 8,
                                .seq = 64,
                                .batch = 16,
                                .micro_batch = 4,
                                .seed = 1,
                                .data_hash = UINT64_MAX,
                                .peak_flops = 25521197907,
                                .shards = 4,
                                .shard = sums};
}

/* Parse a copy of exactly n bytes, so that a sanitizer sees one byte too far. */
static int parse(const char *text, size_t n, struct fr_manifest *ret, struct fr_err *err)
{
    uint8_t *copy = malloc(n ? n : 1);
    int rc;

    memcpy(copy, text, n);
    rc = fr_manifest_parse(copy, n, ret, err);
    free(copy);
    return rc;
}

static void a_manifest_reads_back_as_it_was_written(void **state)
{
    struct fr_manifest m = example(), back;
    char *text;
    size_t n = fr_manifest_format(&m, &text);

    (void)state;
    assert_int_equal(parse(text, n, &back, NULL), 0);
    assert_memory_equal(&m, &back, offsetof(struct fr_manifest, shard));
    assert_memory_equal(back.shard, sums, sizeof sums);
    fr_manifest_fini(&back);
    free(text);
}

static void a_manifest_cut_at_any_byte_is_refused(void **state)
{
    struct fr_manifest m = example(), back = {0};
    char *text;
    size_t n = fr_manifest_format(&m, &text);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct fr_err err = {{0}};

        assert_int_equal(parse(text, i, &back, &err), -EBADMSG);
        assert_true(err.text[0] != 0);
        assert_null(back.shard);
    }
    free(text);
}

static void a_manifest_with_any_bit_flipped_is_refused(void **state)
{
    struct fr_manifest m = example(), back = {0};
    char *text;
    size_t n = fr_manifest_format(&m, &text);

    (void)state;
    for (size_t i = 0; i < 8 * n; i++) {
        text[i / 8] = (char)(text[i / 8] ^ (1 << i % 8));
        assert_int_equal(parse(text, n, &back, NULL), -EBADMSG);
        text[i / 8] = (char)(text[i / 8] ^ (1 << i % 8));
    }
    free(text);
}

/* Give a body the right last line: what is left is the form itself. */
static int parse_signed(const char *body)
{
    struct fr_manifest back = {0};
    char text[4096];
    int n = snprintf(text, sizeof text, "%send %016llx\n", body,
                     (unsigned long long)fr_hash(body, strlen(body)));
    int rc = parse(text, (size_t)n, &back, NULL);

    fr_manifest_fini(&back);
    return rc;
}

#define HEAD                                                                                       \
    "fullrank-train checkpoint 1\nstep 1\ndp 1\npp 1\ntp 1\nlayers 1\nd_model 1\nheads 1\nseq 1\n" \
    "batch 1\nmicro_batch 1\nseed 1\ndata_hash 1\npeak_flops 1\n"

static void a_manifest_that_is_signed_but_malformed_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "fullrank-train checkpoint 1\n",
        "fullrank-train checkpoint 2\nstep 1\n",
        HEAD,
        HEAD "shards 0\n",
        HEAD "shards 1\n",
        HEAD "shards 2\n64 0123456789abcdef\n",
        HEAD "shards 18446744073709551615\n64 0123456789abcdef\n",
        HEAD "shards 18446744073709551616\n64 0123456789abcdef\n",
        HEAD "shards -1\n64 0123456789abcdef\n",
        HEAD "shards 1\n64 0123456789abcde\n",
        HEAD "shards 1\n64 0123456789abcdeg\n",
        HEAD "shards 1\n 64 0123456789abcdef\n",
        HEAD "shards 1\n6a 0123456789abcdef\n",
        HEAD "shards 1\n64 0123456789abcdef\n64 0123456789abcdef\n",
        HEAD "shards 1\n64 0123456789abcdef\nextra\n",
    };

    (void)state;
    assert_int_equal(parse_signed(HEAD "shards 1\n64 0123456789abcdef\n"), 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(parse_signed(bad[i]), -EBADMSG);
}

/* Known answer: XXH64 of nothing, seed 0, from the xxHash specification. */
static void the_checksum_is_xxh64(void **state)
{
    (void)state;
    assert_true(fr_hash("", 0) == 0xef46db3751d8e999);
}

enum { PARAMS = 8, SHARD_BYTES = FR_SHARD_HEADER_BYTES + 3 * 4 * PARAMS };

static void a_shard_is_good_only_whole_unchanged_and_in_its_place(void **state)
{
    const struct fr_shard_header h = {50, 3, PARAMS};
    const struct fr_shard_header others[] = {{51, 3, PARAMS}, {50, 2, PARAMS}, {50, 3, PARAMS + 1}};
    uint8_t p[SHARD_BYTES + 1];
    struct fr_shard_sum sum = {SHARD_BYTES, 0};

    (void)state;
    for (int i = 0; i < SHARD_BYTES + 1; i++)
        p[i] = (uint8_t)(i * 7);
    fr_shard_header_write(&h, p);
    sum.hash = fr_hash(p, SHARD_BYTES);
    assert_int_equal(fr_shard_verify(p, SHARD_BYTES, &sum, &h, NULL), 0);
    for (size_t n = 0; n <= SHARD_BYTES + 1; n++)
        if (n != SHARD_BYTES)
            assert_int_equal(fr_shard_verify(p, n, &sum, &h, NULL), -EBADMSG);
    for (int i = 0; i < 8 * SHARD_BYTES; i++) {
        p[i / 8] = (uint8_t)(p[i / 8] ^ (1 << i % 8));
        assert_int_equal(fr_shard_verify(p, SHARD_BYTES, &sum, &h, NULL), -EBADMSG);
        p[i / 8] = (uint8_t)(p[i / 8] ^ (1 << i % 8));
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(fr_shard_verify(p, SHARD_BYTES, &sum, &others[i], NULL), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_reads_back_as_it_was_written),
        cmocka_unit_test(a_manifest_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_manifest_with_any_bit_flipped_is_refused),
        cmocka_unit_test(a_manifest_that_is_signed_but_malformed_is_refused),
        cmocka_unit_test(the_checksum_is_xxh64),
        cmocka_unit_test(a_shard_is_good_only_whole_unchanged_and_in_its_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
