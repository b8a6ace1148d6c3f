/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - reading small documents */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/xalloc.h"

static const char DOC[] =
    "{\"s\": \"text\", \"i\": 9007199254740993, \"d\": 1.5, \"whole\": 2e3, \"b\": true,"
    " \"n\": null, \"a\": [1, \"x\", {\"deep\": -4}], \"o\": {\"k\": 1, \"l\": 2, \"m\": 3}}";

static void values_come_back_and_what_is_absent_gives_the_default(void **state)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *doc = NULL;
    const struct fr_json *a;

    (void)state;
    assert_int_equal(fr_json_parse(DOC, strlen(DOC), &doc, NULL), 0);
    assert_string_equal(fr_json_str(doc, "s", NULL), "text");
    assert_true(fr_json_int(doc, "i", 0) ==
                9007199254740993); /* 2^53 + 1: not by way of a double */
    assert_true(fr_json_num(doc, "d", 0) == 1.5);
    assert_int_equal(fr_json_int(doc, "whole", 0), 2000);
    assert_int_equal(fr_json_int(doc, "d", -1), -1);
    assert_true(fr_json_bool(doc, "b", false));
    assert_true(fr_json_is_null(fr_json_get(doc, "n")));
    assert_true(fr_json_is_null(fr_json_get(doc, "absent")));
    assert_false(fr_json_is_null(fr_json_get(doc, "b")));
    a = fr_json_get(doc, "a");
    assert_int_equal(fr_json_len(a), 3);
    assert_int_equal(fr_json_len(fr_json_get(doc, "o")), 3);
    assert_int_equal(fr_json_len(fr_json_get(doc, "s")), 0);
    assert_true(fr_json_value_num(fr_json_at(a, 0), 0) == 1);
    assert_string_equal(fr_json_value_str(fr_json_at(a, 1), ""), "x");
    assert_int_equal(fr_json_int(fr_json_at(a, 2), "deep", 0), -4);
    assert_null(fr_json_at(a, 3));
    /* another type, an absent key and an absent object alike */
    assert_string_equal(fr_json_str(doc, "i", "def"), "def");
    assert_int_equal(fr_json_int(doc, "s", 7), 7);
    assert_true(fr_json_bool(doc, "i", true));
    assert_string_equal(fr_json_str(NULL, "k", "def"), "def");
    assert_null(fr_json_get(NULL, "k"));
    assert_null(fr_json_at(NULL, 0));
    assert_int_equal(fr_json_len(NULL), 0);
    fr_json_free(NULL);
}

static int sum_until_m(const char *key, const struct fr_json *v, void *arg)
{
    *(double *)arg += fr_json_value_num(v, 100);
    return *key == 'm' ? 42 : 0;
}

static int count(const char *key, const struct fr_json *v, void *arg)
{
    (void)key;
    (void)v;
    ++*(int *)arg;
    return 0;
}

static void members_are_visited_until_told_to_stop(void **state)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *doc = NULL;
    double sum = 0;
    int n = 0;

    (void)state;
    assert_int_equal(fr_json_parse(DOC, strlen(DOC), &doc, NULL), 0);
    assert_int_equal(fr_json_each(fr_json_get(doc, "o"), sum_until_m, &sum), 42);
    assert_true(sum == 6);
    assert_int_equal(fr_json_each(doc, count, &n), 0);
    assert_int_equal(n, 8);
    assert_int_equal(fr_json_each(NULL, count, &n), 0);
    assert_int_equal(fr_json_each(fr_json_get(doc, "a"), count, &n), 0);
    assert_int_equal(n, 8);
}

static void a_broken_document_is_refused_with_its_place(void **state)
{
    static const char *const BAD[] = {
        "", "{", "{\"a\":1,}", "[1 2]", "nul", "{\"a\": \"\xff\"}", "1 2", "[\"\\u0000\"]"};
    struct fr_json *ret = (struct fr_json *)&BAD;
    struct fr_err err;

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fr_json_parse(BAD[i], strlen(BAD[i]), &ret, &err), -EINVAL);
        assert_ptr_equal(ret, &BAD); /* untouched */
    }
    assert_int_equal(fr_json_parse("{\n \"a\": x}", 10, &ret, &err), -EINVAL);
    assert_non_null(strstr(err.text, "line 2"));
}

static void a_too_long_or_too_deep_document_is_refused(void **state)
{
    size_t n = FR_JSON_MAX_BYTES + 1;
    FR_CLEANUP(fr_freep) char *text = fr_xalloc(n);
    struct fr_json *ret = NULL;

    (void)state;
    memset(text, ' ', n);
    assert_int_equal(fr_json_parse(text, n, &ret, NULL), -E2BIG);
    memset(text, '[', 1 << 20);
    assert_int_equal(fr_json_parse(text, 1 << 20, &ret, NULL), -EINVAL);
    assert_null(ret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back_and_what_is_absent_gives_the_default),
        cmocka_unit_test(members_are_visited_until_told_to_stop),
        cmocka_unit_test(a_broken_document_is_refused_with_its_place),
        cmocka_unit_test(a_too_long_or_too_deep_document_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
