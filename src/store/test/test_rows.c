/* SPDX-License-Identifier: Apache-2.0 */
/* test_rows.c - what goes in comes out, bit for bit */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helper.h"
#include "store/rows.h"

enum { N = 300 };

struct expected {
    enum fr_row_kind kind;
    union any_row *rows;
    char found[N];
    unsigned seen;
};

static int find_row(const void *row, void *arg)
{
    struct expected *e = arg;
    union any_row got = {0};

    memcpy(&got, row, row_bytes(e->kind));
    for (unsigned i = 0; i < N; i++) {
        if (e->found[i] || !rows_equal(e->kind, &got, &e->rows[i]))
            continue;
        e->found[i] = 1;
        e->seen++;
        return 0;
    }
    fail_msg("a row of kind %d came back that was not written", (int)e->kind);
    return 1;
}

static void read_them_all(struct expected *e)
{
    struct fr_ledger_reader *rd = must_read(file);
    struct fr_err err = FR_ERR_INIT;

    memset(e->found, 0, sizeof e->found);
    e->seen = 0;
    assert_int_equal(fr_ledger_each(rd, e->kind, NULL, 0, find_row, e, &err), 0);
    assert_int_equal(e->seen, N);
    fr_ledger_reader_close(rd);
}

/* Property: random rows of every kind are read back as they were, also after the file was closed
 * and opened; written again they replace themselves, and changed ones their old content. */
static void every_kind_comes_back_bit_for_bit_and_replaces_its_old_self(void **state)
{
    struct fr_rng r = {20261130};

    (void)state;
    for (int k = 1; k < FR_ROW_KINDS; k++) {
        struct expected e = {.kind = (enum fr_row_kind)k, .rows = calloc(N, sizeof *e.rows)};
        struct fr_ledger *lg = must_open(file);
        uint64_t n = 0;

        for (unsigned i = 0; i < N; i++) {
            fill_row(&r, e.kind, i, &e.rows[i]);
            n = fr_ledger_append(lg, e.kind, &e.rows[i]);
            assert_int_equal(n, i + 1);
        }
        assert_int_equal(fr_ledger_wait(lg, n, 30, NULL), 0);
        read_them_all(&e);
        for (unsigned i = 0; i < N; i++)
            fr_ledger_append(lg, e.kind, &e.rows[N - 1 - i]);
        fr_ledger_close(lg);
        read_them_all(&e);
        for (unsigned i = 0; i < N; i++)
            free_texts(e.kind, &e.rows[i]);
        free(e.rows);
    }
}

static int take_row(const void *row, void *arg)
{
    memcpy(arg, row, sizeof(struct fr_row_step));
    return 0;
}

static void a_row_written_again_with_the_same_key_replaces_the_first(void **state)
{
    struct fr_row_step row = step_row("j", 7), got = {0};
    struct fr_ledger *lg = must_open(file);
    struct fr_ledger_reader *rd;

    (void)state;
    fr_ledger_append(lg, FR_ROW_STEP, &row);
    row.loss = 0.25;
    row.slowest_rank = -3;
    fr_ledger_append(lg, FR_ROW_STEP, &row);
    fr_ledger_close(lg);
    assert_int_equal(count_rows(file, FR_ROW_STEP), 1);
    rd = must_read(file);
    assert_int_equal(fr_ledger_each(rd, FR_ROW_STEP, "j", 0, take_row, &got, NULL), 0);
    fr_ledger_reader_close(rd);
    assert_true(got.loss == 0.25);
    assert_int_equal(got.slowest_rank, -3);
    assert_true(isnan(got.tokens));
}

struct list {
    uint64_t v[64];
    unsigned n, stop_at;
};

static int list_step(const void *row, void *arg)
{
    struct list *l = arg;

    l->v[l->n++] = ((const struct fr_row_step *)row)->step;
    return l->n == l->stop_at ? 77 : 0;
}

static void each_filters_by_job_and_since_in_key_order_and_stops_when_told(void **state)
{
    struct fr_ledger *lg = must_open(file);
    struct fr_ledger_reader *rd;
    struct list l = {0};

    (void)state;
    for (uint64_t s = 20; s > 0; s--) { /* backwards: order must come from the key */
        struct fr_row_step a = step_row("a", s), b = step_row("b", s + 100);

        fr_ledger_append(lg, FR_ROW_STEP, &a);
        fr_ledger_append(lg, FR_ROW_STEP, &b);
    }
    fr_ledger_close(lg);
    rd = must_read(file);
    assert_int_equal(fr_ledger_each(rd, FR_ROW_STEP, "a", 15, list_step, &l, NULL), 0);
    assert_int_equal(l.n, 5);
    for (unsigned i = 0; i < l.n; i++)
        assert_int_equal(l.v[i], 16 + i);
    l = (struct list){0};
    assert_int_equal(fr_ledger_each(rd, FR_ROW_STEP, NULL, 0, list_step, &l, NULL), 0);
    assert_int_equal(l.n, 40);
    l = (struct list){.stop_at = 3};
    assert_int_equal(fr_ledger_each(rd, FR_ROW_STEP, "b", 0, list_step, &l, NULL), 77);
    assert_int_equal(l.n, 3);
    l = (struct list){0};
    assert_int_equal(fr_ledger_each(rd, FR_ROW_STEP, "' OR 1 --", 0, list_step, &l, NULL), 0);
    assert_int_equal(l.n, 0);
    assert_int_equal(fr_ledger_each(rd, FR_ROW_KINDS, NULL, 0, list_step, &l, NULL), -EINVAL);
    fr_ledger_reader_close(rd);
}

static int sum_decisions(const void *row, void *arg)
{
    *(uint64_t *)arg += ((const struct fr_row_action *)row)->decision;
    return 0;
}

static void actions_are_found_by_the_job_of_their_decision_and_last_ids_are_told(void **state)
{
    struct fr_ledger *lg = must_open(file);
    struct fr_ledger_reader *rd;
    uint64_t sum = 0;

    (void)state;
    for (uint64_t id = 1; id <= 4; id++) {
        struct fr_row_decision d = {.id = id};
        struct fr_row_action a = {.decision = id, .kind = "drain", .state = "done"};

        strcpy(d.job, id % 2 ? "odd" : "even");
        fr_ledger_append(lg, FR_ROW_DECISION, &d);
        fr_ledger_append(lg, FR_ROW_ACTION, &a);
    }
    fr_ledger_close(lg);
    rd = must_read(file);
    assert_int_equal(fr_ledger_last_id(rd, FR_ROW_DECISION), 4);
    assert_int_equal(fr_ledger_last_id(rd, FR_ROW_INCIDENT), 0);
    assert_int_equal(fr_ledger_last_id(rd, FR_ROW_STEP), 0);
    fr_ledger_reader_close(rd);
    assert_int_equal(ask_integer(file, "SELECT count(*) FROM actions"), 4);
    rd = must_read(file);
    assert_int_equal(fr_ledger_each(rd, FR_ROW_ACTION, "odd", 0, sum_decisions, &sum, NULL), 0);
    assert_int_equal(sum, 1 + 3);
    fr_ledger_reader_close(rd);
}

static int take_job(const void *row, void *arg)
{
    const struct fr_row_job *job = row;

    assert_string_equal(job->workdir, "");
    assert_true(job->tokens_per_step == 0);
    *(size_t *)arg = strlen(job->command);
    return 0;
}

static void
a_text_that_is_null_comes_back_empty_and_an_endless_one_is_cut_at_a_character(void **state)
{
    size_t bytes = FR_ROW_TEXT_BYTES + 100, kept = 0;
    char *text = malloc(bytes + 1);
    struct fr_row_job row = {.job = "j", .workdir = NULL, .tokens_per_step = -0.0};
    struct fr_ledger *lg = must_open(file);
    struct fr_ledger_reader *rd;
    struct fr_ledger_stats stats;

    (void)state;
    text[0] = 'x'; /* then two-byte characters, so that the limit falls into one */
    for (size_t i = 1; i < bytes; i++)
        text[i] = (char)(i % 2 ? 0xc3 : 0xa4);
    text[bytes] = '\0';
    row.command = text;
    assert_int_equal(fr_ledger_wait(lg, fr_ledger_append(lg, FR_ROW_JOB, &row), 30, NULL), 0);
    fr_ledger_stats(lg, &stats);
    assert_int_equal(stats.cut_texts, 1);
    fr_ledger_close(lg);
    rd = must_read(file);
    assert_int_equal(fr_ledger_each(rd, FR_ROW_JOB, NULL, 0, take_job, &kept, NULL), 0);
    fr_ledger_reader_close(rd);
    assert_int_equal(kept, FR_ROW_TEXT_BYTES - 1);
    free(text);
}

static void the_migrations_make_the_columns_of_the_tables(void **state)
{
    sqlite3 *db;

    (void)state;
    fr_ledger_close(must_open(file));
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    for (int k = 1; k < FR_ROW_KINDS; k++) {
        const struct fr_table *t = fr_table_of((enum fr_row_kind)k);
        sqlite3_stmt *st;
        int i = 0;

        assert_int_equal(
            sqlite3_prepare_v2(db, "SELECT name, pk FROM pragma_table_info(?1) ORDER BY cid", -1,
                               &st, NULL),
            SQLITE_OK);
        sqlite3_bind_text(st, 1, t->name, -1, SQLITE_STATIC);
        for (; sqlite3_step(st) == SQLITE_ROW; i++) {
            assert_in_range(i, 0, t->n_cols - 1);
            assert_string_equal((const char *)sqlite3_column_text(st, 0), t->cols[i].name);
            if (i < t->n_keys)
                assert_int_equal(sqlite3_column_int(st, 1), i + 1);
        }
        assert_int_equal(i, t->n_cols);
        sqlite3_finalize(st);
    }
    sqlite3_close(db);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(every_kind_comes_back_bit_for_bit_and_replaces_its_old_self),
        IN_A_FOLDER(a_row_written_again_with_the_same_key_replaces_the_first),
        IN_A_FOLDER(each_filters_by_job_and_since_in_key_order_and_stops_when_told),
        IN_A_FOLDER(actions_are_found_by_the_job_of_their_decision_and_last_ids_are_told),
        IN_A_FOLDER(a_text_that_is_null_comes_back_empty_and_an_endless_one_is_cut_at_a_character),
        IN_A_FOLDER(the_migrations_make_the_columns_of_the_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
