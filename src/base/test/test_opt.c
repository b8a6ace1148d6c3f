/* SPDX-License-Identifier: Apache-2.0 */
/* test_opt.c - options as a table */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"

struct args {
    bool quick;
    const char *output;
    int64_t nodes;
    double ratio, timeout_s;
    uint64_t size_bytes;
    int verbose;
};

static const struct fr_opt OPTS[] = {
    {'q', "quick", FR_OPT_FLAG, offsetof(struct args, quick), NULL, "one fault only"},
    {'o', "output", FR_OPT_STR, offsetof(struct args, output), "FORMAT",
     "table, json, jsonl or csv"},
    {'n', "nodes", FR_OPT_INT, offsetof(struct args, nodes), "N", "how many nodes"},
    {0, "ratio", FR_OPT_NUM, offsetof(struct args, ratio), "R", "a ratio"},
    {'t', "timeout", FR_OPT_SECONDS, offsetof(struct args, timeout_s), "TIME", "how long to wait"},
    {0, "size-of-the-whole-thing", FR_OPT_BYTES, offsetof(struct args, size_bytes), "BYTES",
     "how much"},
    {'v', "verbose", FR_OPT_COUNT, offsetof(struct args, verbose), NULL, "say more"},
    {0},
};

/* Parse a command line given as words; argv holds what is left. */
static char *argv[32];
static struct args args;
static struct fr_err err;
static int operands, dashdash;

static int parse(const char *const *words)
{
    int argc = 1;

    argv[0] = "prog";
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    argv[argc] = NULL;
    memset(&args, 0, sizeof args);
    operands = dashdash = -7;
    return fr_opt_parse(OPTS, &args, argc, argv, &operands, &dashdash, &err);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void every_kind_and_spelling_is_understood(void **state)
{
    (void)state;
    assert_int_equal(PARSE("a", "-q", "--output=json", "b", "-n", "5", "--timeout", "250ms", "-vv",
                           "--ratio=-0.5", "--size-of-the-whole-thing", "64KiB", "-", "-v"),
                     0);
    assert_true(args.quick);
    assert_string_equal(args.output, "json");
    assert_int_equal(args.nodes, 5);
    assert_true(args.ratio == -0.5 && args.timeout_s == 0.25);
    assert_int_equal(args.size_bytes, 65536);
    assert_int_equal(args.verbose, 3);
    assert_int_equal(operands, 3);
    assert_int_equal(dashdash, -1);
    assert_string_equal(argv[1], "a");
    assert_string_equal(argv[2], "b");
    assert_string_equal(argv[3], "-");
    assert_null(argv[4]);
}

static void letters_may_stand_together_and_carry_their_argument(void **state)
{
    (void)state;
    assert_int_equal(PARSE("-qvojson", "-n12"), 0);
    assert_true(args.quick);
    assert_int_equal(args.verbose, 1);
    assert_string_equal(args.output, "json");
    assert_int_equal(args.nodes, 12);
    assert_int_equal(operands, 0);
    assert_int_equal(PARSE("--output", "--quick"), 0); /* an argument may look like an option */
    assert_string_equal(args.output, "--quick");
}

static void a_double_dash_ends_the_options(void **state)
{
    (void)state;
    assert_int_equal(PARSE("run", "-q", "--", "cmd", "-v", "--", "x"), 0);
    assert_true(args.quick);
    assert_int_equal(args.verbose, 0);
    assert_int_equal(operands, 5);
    assert_int_equal(dashdash, 2);
    assert_string_equal(argv[dashdash], "cmd");
    assert_string_equal(argv[3], "-v");
    assert_string_equal(argv[4], "--");
    assert_int_equal(fr_opt_parse(OPTS, &args, 1, argv, &operands, NULL, &err), 0);
    assert_int_equal(operands, 0);
}

static void wrong_usage_is_refused_with_what_would_be_right(void **state)
{
    static const struct {
        const char *words[3], *says;
    } BAD[] = {
        {{"--outptu=json"}, "unknown option --outptu (did you mean --output?)"},
        {{"--quikc"}, "did you mean --quick?"},
        {{"--nothing-like-it"}, "unknown option --nothing-like-it (see --help)"},
        {{"-x"}, "unknown option -x"},
        {{"-qx"}, "unknown option -x"},
        {{"--output"}, "option --output needs an argument: FORMAT"},
        {{"-n"}, "option -n needs an argument: N"},
        {{"--quick=yes"}, "option --quick takes no argument"},
        {{"-n", "-3"}, "option --nodes: '-3' is not a whole number that is not negative"},
        {{"--ratio", "x"}, "'x' is not a number"},
        {{"-t", "5 weeks"}, "is not a duration such as 250ms"},
        {{"--size-of-the-whole-thing=1K"}, "is not a size such as 64KiB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(parse(BAD[i].words), -EINVAL);
        if (!strstr(err.text, BAD[i].says))
            fail_msg("'%s' lacks '%s'", err.text, BAD[i].says);
        assert_int_equal(operands, -7); /* results are untouched */
    }
}

static void the_nearest_word_is_within_two_edits_or_none(void **state)
{
    static const char *const WORDS[] = {"status", "top", "demo", "job", NULL};

    (void)state;
    assert_string_equal(fr_opt_nearest("stauts", WORDS), "status");
    assert_string_equal(fr_opt_nearest("staus", WORDS), "status");
    assert_string_equal(fr_opt_nearest("demp", WORDS), "demo");
    assert_string_equal(fr_opt_nearest("jobs", WORDS), "job");
    assert_null(fr_opt_nearest("ledger", WORDS));
    assert_null(fr_opt_nearest("x", WORDS));
    assert_null(fr_opt_nearest("foo", WORDS)); /* two changes from job */
    assert_string_equal(fr_opt_nearest("jib", WORDS), "job");
    assert_null(fr_opt_nearest("", WORDS));
    assert_null(
        fr_opt_nearest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", WORDS));
}

static void the_help_names_every_option_once(void **state)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);

    (void)state;
    fr_opt_help(OPTS, f);
    fclose(f);
    assert_non_null(strstr(text, "  -q, --quick                 one fault only\n"));
    assert_non_null(strstr(
        text, "      --size-of-the-whole-thing BYTES\n                              how much\n"));
    for (const struct fr_opt *o = OPTS; o->word; o++)
        assert_non_null(strstr(text, o->help));
    free(text);
}

static void a_value_written_as_text_reads_back(void **state)
{
    struct args a = {true, "x", 5, 0.1, 0.25, 1 << 20, 3}, b = {0};

    (void)state;
    for (const struct fr_opt *o = OPTS; o->word; o++) {
        struct fr_buf text = FR_BUF_INIT;

        fr_opt_text(o->kind, (char *)&a + o->offset, &text);
        assert_int_equal(fr_opt_assign(o->kind, (char *)&b + o->offset, fr_buf_str(&text), NULL),
                         0);
        if (o->kind == FR_OPT_STR) {
            assert_string_equal(b.output, a.output);
            b.output = a.output;
        }
        fr_buf_fini(&text);
    }
    assert_true(a.quick == b.quick && a.nodes == b.nodes && a.ratio == b.ratio &&
                a.timeout_s == b.timeout_s && a.size_bytes == b.size_bytes &&
                a.verbose == b.verbose);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_and_spelling_is_understood),
        cmocka_unit_test(letters_may_stand_together_and_carry_their_argument),
        cmocka_unit_test(a_double_dash_ends_the_options),
        cmocka_unit_test(wrong_usage_is_refused_with_what_would_be_right),
        cmocka_unit_test(the_nearest_word_is_within_two_edits_or_none),
        cmocka_unit_test(the_help_names_every_option_once),
        cmocka_unit_test(a_value_written_as_text_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
