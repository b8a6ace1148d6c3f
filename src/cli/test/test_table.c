/* SPDX-License-Identifier: Apache-2.0 */
/* test_table.c - listings: alignment, the unknown, CSV quoting, hostile names */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "cli/table.h"

static const struct fr_column COLS[] = {
    {"name", "NAME", "name", FR_SHOW_TEXT, 8},  {"state", "STATE", "state", FR_SHOW_STATE, 0},
    {"t", "TIME", "a.t_s", FR_SHOW_SECONDS, 0}, {"r", "SHARE", "r", FR_SHOW_RATIO, 0},
    {"n", "NODES", "nodes", FR_SHOW_NODES, 0},  {0},
};

static const char ITEMS[] =
    "[{\"name\":\"one\",\"state\":\"healthy\",\"a\":{\"t_s\":1.5},\"r\":0.381,\"nodes\":[\"n0\","
    "\"n1\",\"n2\"]},"
    "{\"name\":\"a,\\\"b\\\"\",\"state\":\"\\u001b[31mred\",\"a\":{},\"r\":null,\"nodes\":[]}]";

static const char *print(struct fr_table_style st, const char *items, struct fr_buf *out)
{
    struct fr_json *json;

    fr_buf_reset(out);
    assert_int_equal(fr_json_parse(items, strlen(items), &json, NULL), 0);
    assert_int_equal(fr_table_print(COLS, json, &st, out, NULL), 0);
    fr_json_free(json);
    return fr_buf_str(out);
}

static void text_stands_left_numbers_right_the_unknown_is_a_dash(void **state)
{
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    print((struct fr_table_style){0}, ITEMS, &out);
    assert_string_equal(fr_buf_str(&out), "NAME   STATE      TIME   SHARE  NODES\n"
                                          "one    healthy   1.5 s  38.1 %  n[0-2]\n"
                                          "a,\"b\"  ?[31mred      -       -  -\n");
    fr_buf_fini(&out);
}

static void no_name_can_move_the_cursor(void **state)
{
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    fr_table_safe(&out, "a\033[2J\r\n\x7f\xc2\x9b"
                        "31m\xc3\xa9");
    assert_string_equal(fr_buf_str(&out), "a?[2J????31m\xc3\xa9");
    fr_buf_fini(&out);
}

static void csv_quotes_and_keeps_base_units_and_leaves_the_unknown_empty(void **state)
{
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    print((struct fr_table_style){.format = FR_FORMAT_CSV, .fields = "name,t,r"}, ITEMS, &out);
    assert_string_equal(fr_buf_str(&out), "name,t,r\none,1.5,0.381\n\"a,\"\"b\"\"\",,\n");
    fr_buf_fini(&out);
}

static void jsonl_is_one_item_a_line_unchanged(void **state)
{
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    print((struct fr_table_style){.format = FR_FORMAT_JSONL},
          "[{\"b\":1,\"a\":null},{\"x\":\"y\"}]", &out);
    assert_string_equal(fr_buf_str(&out), "{\"b\":1,\"a\":null}\n{\"x\":\"y\"}\n");
    fr_buf_fini(&out);
}

static void an_unknown_field_is_refused_and_the_known_ones_are_listed(void **state)
{
    struct fr_table_style st = {.fields = "name,nonsense"};
    struct fr_err err = FR_ERR_INIT;
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    assert_int_equal(fr_table_print(COLS, NULL, &st, &out, &err), -EINVAL);
    assert_non_null(strstr(err.text, "nonsense"));
    assert_non_null(strstr(err.text, "state"));
    fr_buf_fini(&out);
}

static void long_cells_are_cut_on_a_terminal_only(void **state)
{
    static const char LONG[] = "[{\"name\":"
                               "\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
                               "\xc3\xa9\"}]"; /* nine letters of two bytes */
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    print((struct fr_table_style){.fields = "name", .no_header = true}, LONG, &out);
    assert_string_equal(
        fr_buf_str(&out),
        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\n");
    print((struct fr_table_style){.fields = "name", .no_header = true, .cut = true}, LONG, &out);
    assert_string_equal(fr_buf_str(&out),
                        "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9~\n");
    fr_buf_fini(&out);
}

static void colour_is_only_where_it_was_asked_for(void **state)
{
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    assert_null(strchr(print((struct fr_table_style){0}, ITEMS, &out), '\033'));
    assert_non_null(strchr(print((struct fr_table_style){.color = true}, ITEMS, &out), '\033'));
    fr_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stands_left_numbers_right_the_unknown_is_a_dash),
        cmocka_unit_test(no_name_can_move_the_cursor),
        cmocka_unit_test(csv_quotes_and_keeps_base_units_and_leaves_the_unknown_empty),
        cmocka_unit_test(jsonl_is_one_item_a_line_unchanged),
        cmocka_unit_test(an_unknown_field_is_refused_and_the_known_ones_are_listed),
        cmocka_unit_test(long_cells_are_cut_on_a_terminal_only),
        cmocka_unit_test(colour_is_only_where_it_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
