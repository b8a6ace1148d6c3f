/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "scan/pickle.h"
#include "scan/stuck.h"

/* --- pickles: bytes written by hand after pickletools of CPython --- */

static int parse(const void *p, size_t n, struct fr_err *err)
{
    struct fr_values a = {0};
    struct fr_value *v = NULL;
    int rc = fr_pickle_parse(p, n, &a, &v, err);

    fr_values_fini(&a);
    return rc;
}

static void plain_values_are_read_as_python_reads_them(void **state)
{
    /* pickle.dumps({"a": [1, -2, 300, 2**40], "b": (True, None, 1.5)}, protocol=2) */
    static const uint8_t P[] =
        "\x80\x02}q\0(X\x01\0\0\0aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM\x2c\x01"
        "\x8a\x06\0\0\0\0\0\x01"
        "eX\x01\0\0\0bq\x03\x88NG\x3f\xf8\0\0\0\0\0\0\x87q\x04u.";
    struct fr_values a = {0};
    struct fr_value *v = NULL;
    const struct fr_value *list, *tuple;

    (void)state;
    assert_int_equal(fr_pickle_parse(P, sizeof P - 1, &a, &v, NULL), 0);
    list = fr_value_get(v, "a");
    tuple = fr_value_get(v, "b");
    assert_int_equal(list->n, 4);
    assert_int_equal(fr_value_int(fr_value_at(list, 1), 0), -2);
    assert_int_equal(fr_value_int(fr_value_at(list, 2), 0), 300);
    assert_int_equal(fr_value_int(fr_value_at(list, 3), 0), 1ll << 40);
    assert_true(fr_value_true(fr_value_at(tuple, 0)));
    assert_true(fr_value_at(tuple, 2)->u.num == 1.5);
    fr_values_fini(&a);
    for (size_t cut = 0; cut < sizeof P - 1; cut++) /* every truncation is refused */
        assert_true(parse(P, cut, NULL) < 0);
}

static void what_could_run_code_is_refused_with_its_offset(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *where;
    } BAD[] = {
        {"\x80\x02"
         "cos\nsystem\n.",
         14, "offset 2: opcode 0x63 (GLOBAL)"},
        {"\x80\x04\x8c\x02os\x8c\x06system\x93.", 16, "offset 14: opcode 0x93 (STACK_GLOBAL)"},
        {"\x80\x02NR.", 5, "offset 3: opcode 0x52 (REDUCE)"},
        {"\x80\x02Nb.", 5, "offset 3: opcode 0x62 (BUILD)"},
        {"\x80\x02)\x81.", 5, "offset 3: opcode 0x81 (NEWOBJ)"},
        {"\x80\x02\x82\x01.", 5, "offset 2: opcode 0x82 (EXT1)"},
        {"\x80\x02Px\n.", 6, "offset 2: opcode 0x50 (PERSID)"},
        {"\x80\x06N.", 4, "protocol 6"},
        {"(lp0\n.", 6, "offset 0"},
        {"\x80\x02N.N.", 6, "offset 4: 2 bytes behind the end"},
        {"\x80\x02h\x05.", 5, "offset 2: a place of the memo"},
        {"\x80\x02Nr\xff\xff\xff\x7f.", 9, "offset 3: a place of the memo"},
        {"\x80\x02X\xff\xff\xff\xff"
         "a.",
         9, "offset 2: a text longer"},
        {"\x80\x02\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01.", 14, "offset 2: a whole number"},
        {"\x80\x02Ne.", 5, "offset 3: no mark"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        struct fr_err err = FR_ERR_INIT;

        assert_true(parse(BAD[i].bytes, BAD[i].n, &err) < 0);
        if (!strstr(err.text, BAD[i].where))
            fail_msg("%zu: %s, not %s", i, err.text, BAD[i].where);
    }
}

/* --- dumps of made-up jobs, as JSON --- */

struct op {
    const char *name, *state, *group;
    int seq, numel;
};

static void add_rank(struct fr_recorder *rec, int rank, const char *config, const struct op *ops,
                     size_t n)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;

    fr_buf_printf(&b, "{\"version\": \"2.9\", \"pg_config\": {%s}, \"entries\": [", config);
    for (size_t i = 0; i < n; i++)
        fr_buf_printf(
            &b,
            "%s{\"process_group\": [\"%s\", \"g%s\"], \"collective_seq_id\": %d, \"p2p_seq_id\": "
            "0, "
            "\"profiling_name\": \"nccl:%s\", \"state\": \"%s\", \"input_sizes\": [[%d]], "
            "\"input_dtypes\": [\"Float\"], \"is_p2p\": false}",
            i ? "," : "", ops[i].group, ops[i].group, ops[i].seq, ops[i].name, ops[i].state,
            ops[i].numel);
    fr_buf_puts(&b, "]}");
    if (fr_recorder_add(rec, rank, (const uint8_t *)b.p, b.len, &err) < 0)
        fail_msg("%s", err.text);
}

#define WORLD "\"0\": {\"name\": \"0\", \"desc\": \"g0\", \"ranks\": \"[0, 1, 2, 3]\"}"
#define DONE                                                                                       \
    {                                                                                              \
        "all_reduce", "completed", "0", 1, 8                                                       \
    }
#define IN                                                                                         \
    {                                                                                              \
        "all_reduce", "scheduled", "0", 2, 8                                                       \
    }

static void the_rank_that_never_entered_is_named_and_nobody_else(void **state)
{
    static const struct op in[] = {DONE, IN}, out[] = {DONE};
    struct fr_recorder rec;
    struct fr_stuck s;

    (void)state;
    fr_recorder_init(&rec);
    for (int r = 0; r < 4; r++)
        add_rank(&rec, r, WORLD, r == 2 ? out : in, r == 2 ? 1 : 2);
    fr_recorder_finish(&rec);
    fr_stuck_judge(&rec, &s);
    assert_int_equal(s.nculprits, 1);
    assert_int_equal(s.culprits[0].rank, 2);
    assert_int_equal(s.culprits[0].rule, FR_STUCK_NEVER_ENTERED);
    assert_int_equal(s.culprits[0].sequence, 2);
    assert_int_equal(s.victims, 3);
    fr_stuck_fini(&s);
    fr_recorder_fini(&rec);
}

static void who_waits_in_an_inner_group_is_a_victim_of_the_outer_one(void **state)
{
    /* 0 and 1 wait in the world for 2, which waits in its pair for 3. */
#define PAIR WORLD ", \"1\": {\"name\": \"1\", \"desc\": \"g1\", \"ranks\": [2, 3]}"
    static const struct op in[] = {DONE, IN},
                           pair[] = {DONE, {"all_reduce", "scheduled", "1", 5, 8}},
                           out[] = {DONE, {"all_reduce", "completed", "1", 4, 8}};
    struct fr_recorder rec;
    struct fr_stuck s;

    (void)state;
    fr_recorder_init(&rec);
    add_rank(&rec, 0, WORLD, in, 2);
    add_rank(&rec, 1, WORLD, in, 2);
    add_rank(&rec, 2, PAIR, pair, 2);
    add_rank(&rec, 3, PAIR, out, 2);
    fr_recorder_finish(&rec);
    fr_stuck_judge(&rec, &s);
    assert_int_equal(s.nculprits, 1);
    assert_int_equal(s.culprits[0].rank, 3);
    fr_stuck_fini(&s);
    fr_recorder_fini(&rec);
}

static void other_calls_and_other_sizes_at_one_sequence_are_a_mismatch(void **state)
{
    static const struct op in[] = {DONE, IN};
    static const struct op odd[][2] = {{DONE, {"broadcast", "scheduled", "0", 2, 8}},
                                       {DONE, {"all_reduce", "scheduled", "0", 2, 9}},
                                       {DONE, {"all_reduce", "completed", "0", 2, 4}}};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct fr_recorder rec;
        struct fr_stuck s;

        fr_recorder_init(&rec);
        for (int r = 0; r < 4; r++)
            add_rank(&rec, r, WORLD, r == 1 ? odd[k] : in, 2);
        fr_recorder_finish(&rec);
        fr_stuck_judge(&rec, &s);
        assert_int_equal(s.nculprits, 1);
        assert_int_equal(s.culprits[0].rank, 1);
        assert_int_equal(s.culprits[0].rule, FR_STUCK_MISMATCH);
        fr_stuck_fini(&s);
        fr_recorder_fini(&rec);
    }
}

static void a_rank_inside_what_others_have_left_is_named(void **state)
{
    static const struct op ahead[] = {DONE,
                                      {"all_reduce", "completed", "0", 2, 8},
                                      {"all_reduce", "scheduled", "0", 3, 8}},
                           stuck[] = {DONE, IN, {"all_reduce", "scheduled", "0", 3, 8}};
    struct fr_recorder rec;
    struct fr_stuck s;

    (void)state;
    fr_recorder_init(&rec);
    for (int r = 0; r < 4; r++)
        add_rank(&rec, r, WORLD, r == 3 ? stuck : ahead, 3);
    fr_recorder_finish(&rec);
    fr_stuck_judge(&rec, &s);
    assert_int_equal(s.nculprits, 1);
    assert_int_equal(s.culprits[0].rank, 3);
    assert_int_equal(s.culprits[0].rule, FR_STUCK_OLDEST_INCOMPLETE);
    fr_stuck_fini(&s);
    fr_recorder_fini(&rec);
}

static void a_missing_dump_is_evidence_and_all_entered_names_nobody(void **state)
{
    static const struct op in[] = {DONE, IN};

    (void)state;
    for (int without = 3; without <= 4; without++) {
        struct fr_recorder rec;
        struct fr_stuck s;

        fr_recorder_init(&rec);
        for (int r = 0; r < without; r++)
            add_rank(&rec, r, WORLD, in, 2);
        fr_recorder_finish(&rec);
        fr_stuck_judge(&rec, &s);
        assert_int_equal(s.nculprits, without == 3);
        if (without == 3) {
            assert_int_equal(s.culprits[0].rank, 3);
            assert_int_equal(s.culprits[0].rule, FR_STUCK_NO_DUMP);
        } else {
            assert_int_equal(s.state, FR_STUCK_ALL_ENTERED);
        }
        fr_stuck_fini(&s);
        fr_recorder_fini(&rec);
    }
}

static void the_public_dumps_give_their_known_ranks_and_no_other(void **state)
{
    static const struct {
        const char *name;
        int32_t ranks[2];
    } CASES[] = {{"gpu_error_1st", {12, 14}}, {"lock_gil_2nd", {10, 15}}};
    const char *shared = getenv("FULLRANK_SHARED");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fr_recorder rec;
        struct fr_stuck s;
        char path[512];

        snprintf(path, sizeof path, "%s/data/nvrx-fr-traces/%s",
                 shared ? shared : FR_SOURCE_DIR "/../shared", CASES[i].name);
        if (access(path, R_OK) < 0) {
            print_message("%s is not there (FULLRANK_SHARED): skipped\n", path);
            skip();
        }
        fr_recorder_init(&rec);
        assert_int_equal(fr_recorder_read(&rec, path, NULL), 0);
        assert_int_equal(rec.ndumps, 16);
        fr_stuck_judge(&rec, &s);
        assert_int_equal(s.nculprits, 2);
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(s.culprits[k].rank, CASES[i].ranks[k]);
        fr_stuck_fini(&s);
        fr_recorder_fini(&rec);
    }
}

static void the_rank_is_at_the_end_of_a_files_name(void **state)
{
    size_t prefix = 0;

    (void)state;
    assert_int_equal(fr_recorder_file_rank("nccl_trace_rank_3", &prefix), 3);
    assert_int_equal(prefix, 16);
    assert_int_equal(fr_recorder_file_rank("_dump_12", NULL), 12);
    assert_int_equal(fr_recorder_file_rank("rank00.json", NULL), 0);
    assert_int_equal(fr_recorder_file_rank("comm_lib_trace_rank_1023.pickle", NULL), 1023);
    assert_int_equal(fr_recorder_file_rank("truth.txt", NULL), -1);
    assert_int_equal(fr_recorder_file_rank("x99999999999999", NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values_are_read_as_python_reads_them),
        cmocka_unit_test(what_could_run_code_is_refused_with_its_offset),
        cmocka_unit_test(the_rank_that_never_entered_is_named_and_nobody_else),
        cmocka_unit_test(who_waits_in_an_inner_group_is_a_victim_of_the_outer_one),
        cmocka_unit_test(other_calls_and_other_sizes_at_one_sequence_are_a_mismatch),
        cmocka_unit_test(a_rank_inside_what_others_have_left_is_named),
        cmocka_unit_test(a_missing_dump_is_evidence_and_all_entered_names_nobody),
        cmocka_unit_test(the_public_dumps_give_their_known_ranks_and_no_other),
        cmocka_unit_test(the_rank_is_at_the_end_of_a_files_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
