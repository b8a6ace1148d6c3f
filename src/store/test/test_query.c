/* SPDX-License-Identifier: Apache-2.0 */
/* test_query.c - a person's SQL reads the ledger and can do nothing else */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "helper.h"

struct result {
    unsigned lines;
    int n;
    char names[4][32];
    struct fr_ledger_value values[4]; /* of the last line; texts are gone */
    char text[64];
    unsigned stop_at;
};

static int keep(int n, const char *const *names, const struct fr_ledger_value *values, void *arg)
{
    struct result *r = arg;

    r->lines++;
    r->n = n;
    for (int i = 0; i < n && i < 4; i++) {
        snprintf(r->names[i], sizeof r->names[i], "%s", names[i]);
        r->values[i] = values[i];
        if (values[i].type == FR_VALUE_TEXT)
            snprintf(r->text, sizeof r->text, "%s", values[i].text);
    }
    return r->lines == r->stop_at ? 5 : 0;
}

static struct fr_ledger_reader *make_and_read(void)
{
    struct fr_ledger *lg = must_open(file);

    for (uint64_t s = 1; s <= 1000; s++) {
        struct fr_row_step row = step_row("it's", s);

        fr_ledger_append(lg, FR_ROW_STEP, &row);
    }
    fr_ledger_close(lg);
    return must_read(file);
}

static void a_select_gives_names_and_values_by_type(void **state)
{
    struct fr_ledger_reader *rd = make_and_read();
    struct result r = {0};
    struct fr_err err = FR_ERR_INIT;
    bool cut = true;

    (void)state;
    assert_int_equal(
        fr_ledger_query(rd,
                        "SELECT job, count(*) AS n, max(loss) AS worst, tokens FROM steps; -- all",
                        NULL, keep, &r, &cut, &err),
        0);
    assert_false(cut);
    assert_int_equal(r.lines, 1);
    assert_int_equal(r.n, 4);
    assert_string_equal(r.names[0], "job");
    assert_string_equal(r.names[2], "worst");
    assert_string_equal(r.text, "it's");
    assert_int_equal(r.values[1].type, FR_VALUE_INTEGER);
    assert_int_equal(r.values[1].integer, 1000);
    assert_int_equal(r.values[2].type, FR_VALUE_REAL);
    assert_true(r.values[2].real == 0.5); /* step 1 of 1 / (step + 1) */
    assert_int_equal(r.values[3].type, FR_VALUE_NULL);
    r = (struct result){.stop_at = 3};
    assert_int_equal(fr_ledger_query(rd, "SELECT step FROM steps", NULL, keep, &r, &cut, &err), 5);
    assert_int_equal(r.lines, 3);
    fr_ledger_reader_close(rd);
}

static void everything_but_one_select_is_refused_with_a_sentence(void **state)
{
    static const struct {
        const char *sql;
        int code;
    } CASES[] = {
        {"DELETE FROM steps", -EPERM},
        {"INSERT INTO jobs (job) VALUES ('x')", -EPERM},
        {"UPDATE steps SET loss = 0", -EPERM},
        {"DROP TABLE steps", -EPERM},
        {"CREATE TEMP TABLE t AS SELECT 1", -EPERM},
        {"PRAGMA user_version = 7", -EPERM},
        {"PRAGMA journal_mode = DELETE", -EPERM},
        {"PRAGMA writable_schema = 1", -EPERM},
        {"ATTACH '/etc/passwd' AS p", -EPERM},
        {"VACUUM INTO '/tmp/fr-stolen.db'", -EPERM},
        {"BEGIN EXCLUSIVE", -EPERM},
        {"SELECT load_extension('/tmp/x.so')", -EPERM},
        {"SELECT 1; DELETE FROM steps", -EPERM},
        {"SELECT 1; SELECT 2", -EINVAL},
        {"", -EINVAL},
        {" ; -- nothing", -EINVAL},
        {"SELEKT 1", -EINVAL},
        {"SELECT * FROM absent", -EINVAL},
        {"SELECT abs(-9223372036854775808)", -EINVAL},
    };
    struct fr_ledger_reader *rd = make_and_read();

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fr_err err = FR_ERR_INIT;
        struct result r = {0};
        int rc = fr_ledger_query(rd, CASES[i].sql, NULL, keep, &r, NULL, &err);

        if (rc != CASES[i].code || strncmp(err.text, "query: ", 7) != 0 || strchr(err.text, '\n'))
            fail_msg("%s: got %d \"%s\"", CASES[i].sql, rc, err.text);
    }
    assert_int_equal(access("/tmp/fr-stolen.db", F_OK), -1);
    fr_ledger_reader_close(rd);
    assert_int_equal(count_rows(file, FR_ROW_STEP), 1000);
}

static void a_long_query_is_stopped_and_a_long_result_is_cut(void **state)
{
    struct fr_ledger_reader *rd = make_and_read();
    struct fr_ledger_limits limits = {.time_s = 0.05};
    struct fr_err err = FR_ERR_INIT;
    struct result r = {0};
    bool cut = false;

    (void)state;
    assert_int_equal(fr_ledger_query(rd,
                                     "WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                                     "FROM c) SELECT count(*) FROM c",
                                     &limits, keep, &r, &cut, &err),
                     -ETIMEDOUT);
    assert_non_null(strstr(err.text, "stopped after 0.05 s"));
    limits = (struct fr_ledger_limits){.rows = 10};
    assert_int_equal(fr_ledger_query(rd, "SELECT * FROM steps", &limits, keep, &r, &cut, &err), 0);
    assert_true(cut);
    assert_int_equal(r.lines, 10);
    limits.rows = 1000; /* exactly all: not cut */
    assert_int_equal(fr_ledger_query(rd, "SELECT * FROM steps", &limits, keep, &r, &cut, &err), 0);
    assert_false(cut);
    /* The reader is as good as before. */
    assert_int_equal(fr_ledger_each(rd, FR_ROW_JOB, NULL, 0, NULL, NULL, &err), 0);
    fr_ledger_reader_close(rd);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_select_gives_names_and_values_by_type),
        IN_A_FOLDER(everything_but_one_select_is_refused_with_a_sentence),
        IN_A_FOLDER(a_long_query_is_stopped_and_a_long_result_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
