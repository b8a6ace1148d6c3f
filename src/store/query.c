/* SPDX-License-Identifier: Apache-2.0 */
/* query.c - see ledger.h, fr_ledger_query: a person's SQL, which may read the ledger and nothing
 * else */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"
#include "store/reader.h"
#include "store/schema.h"

#define STEPS_A_LOOK  1000 /* virtual machine steps between two looks at the clock */
#define MAX_SQL_BYTES (64 << 10)

static void finalizep(sqlite3_stmt **p)
{
    sqlite3_finalize(*p);
}

/* The connection is read-only already; this refuses, with a sentence, what would still reach
 * outside of the ledger: ATTACH, settings, loadable code. */
static int allow_reading(void *arg, int action, const char *a, const char *b, const char *c,
                         const char *d)
{
    struct fr_ledger_reader *rd = arg;

    (void)a;
    (void)c;
    (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        if (b && sqlite3_stricmp(b, "load_extension") != 0)
            return SQLITE_OK;
        break;
    }
    rd->denied = true; /* SQLite's own code for it gets lost on some ways */
    return SQLITE_DENY;
}

static int is_over(void *arg)
{
    return fr_mono_ns() > *(const uint64_t *)arg;
}

/* Nothing but blanks, comments and semicolons? Those compile to no statement. */
static int is_empty(sqlite3 *db, const char *sql)
{
    while (*sql) {
        FR_CLEANUP(finalizep) sqlite3_stmt *st = NULL;
        const char *tail = NULL;

        if (sqlite3_prepare_v2(db, sql, -1, &st, &tail) != SQLITE_OK || st)
            return 0;
        if (tail == sql)
            return 0;
        sql = tail;
    }
    return 1;
}

static int prepare_select(struct fr_ledger_reader *rd, const char *sql, sqlite3_stmt **ret,
                          struct fr_err *err)
{
    FR_CLEANUP(finalizep) sqlite3_stmt *st = NULL;
    const char *tail = "";
    int rc;

    if (strlen(sql) > MAX_SQL_BYTES)
        return fr_fail(err, -EINVAL, "query: longer than %d bytes", MAX_SQL_BYTES);
    rc = sqlite3_prepare_v2(rd->db, sql, -1, &st, &tail);
    if (rc == SQLITE_OK && st && !sqlite3_stmt_readonly(st))
        rd->denied = true;
    if (rd->denied)
        return -EPERM; /* fr_ledger_query says it */
    if (rc == SQLITE_ERROR)
        return fr_fail(err, -EINVAL, "query: %s", sqlite3_errmsg(rd->db));
    if (rc != SQLITE_OK)
        return fr_reader_fail(rd, rc, err);
    if (!st)
        return fr_fail(err, -EINVAL, "query: is empty (give a SELECT)");
    if (!is_empty(rd->db, tail))
        return fr_fail(err, -EINVAL, "query: more than one statement (give one SELECT)");
    *ret = st;
    st = NULL;
    return 0;
}

static void read_values(sqlite3_stmt *st, int n, struct fr_ledger_value *values)
{
    memset(values, 0, (size_t)n * sizeof *values);
    for (int i = 0; i < n; i++) {
        struct fr_ledger_value *v = &values[i];

        switch (sqlite3_column_type(st, i)) {
        case SQLITE_INTEGER:
            v->type = FR_VALUE_INTEGER;
            v->integer = sqlite3_column_int64(st, i);
            break;
        case SQLITE_FLOAT:
            v->type = FR_VALUE_REAL;
            v->real = sqlite3_column_double(st, i);
            break;
        case SQLITE_NULL:
            break;
        default:
            v->type = FR_VALUE_TEXT;
            v->text = (const char *)sqlite3_column_text(st, i);
            v->text_bytes = (size_t)sqlite3_column_bytes(st, i);
            if (!v->text) /* an empty blob, or no memory */
                v->text = "";
        }
    }
}

static int run_query(struct fr_ledger_reader *rd, const char *sql, uint64_t max_rows,
                     int (*fn)(int n, const char *const *names,
                               const struct fr_ledger_value *values, void *arg),
                     void *arg, bool *ret_cut, struct fr_err *err)
{
    FR_CLEANUP(finalizep) sqlite3_stmt *st = NULL;
    FR_CLEANUP(fr_freep) const char **names = NULL;
    FR_CLEANUP(fr_freep) struct fr_ledger_value *values = NULL;
    int n, rc = prepare_select(rd, sql, &st, err);

    if (rc < 0)
        return rc;
    n = sqlite3_column_count(st);
    names = fr_xcalloc((size_t)n, sizeof *names);
    values = fr_xcalloc((size_t)n, sizeof *values);
    for (int i = 0; i < n; i++)
        names[i] = sqlite3_column_name(st, i);

    for (uint64_t row = 0; (rc = sqlite3_step(st)) == SQLITE_ROW; row++) {
        int said;

        if (max_rows && row == max_rows) {
            if (ret_cut)
                *ret_cut = true;
            return 0;
        }
        read_values(st, n, values);
        said = fn(n, names, values, arg);
        if (said)
            return said;
    }
    if (rc == SQLITE_DONE) {
        if (ret_cut)
            *ret_cut = false;
        return 0;
    }
    if ((rc & 0xff) == SQLITE_ERROR) /* e.g. an overflow, a wrong argument of a function */
        return fr_fail(err, -EINVAL, "query: %s", sqlite3_errmsg(rd->db));
    return fr_reader_fail(rd, rc, err);
}

int fr_ledger_query(struct fr_ledger_reader *rd, const char *sql,
                    const struct fr_ledger_limits *limits,
                    int (*fn)(int n, const char *const *names, const struct fr_ledger_value *values,
                              void *arg),
                    void *arg, bool *ret_cut, struct fr_err *err)
{
    double time_s = limits && limits->time_s > 0 ? fmin(limits->time_s, 1e6) : FR_LEDGER_QUERY_S;
    uint64_t limit_ns = fr_mono_ns() + (uint64_t)(time_s * 1e9);
    int rc;

    rd->denied = false;
    sqlite3_set_authorizer(rd->db, allow_reading, rd);
    sqlite3_progress_handler(rd->db, STEPS_A_LOOK, is_over, &limit_ns);
    rc = run_query(rd, sql, limits ? limits->rows : 0, fn, arg, ret_cut, err);
    sqlite3_progress_handler(rd->db, 0, NULL, NULL);
    sqlite3_set_authorizer(rd->db, NULL, NULL);
    if (rd->denied)
        return fr_fail(err, -EPERM, "query: only SELECT is allowed (the ledger is only read here)");
    if (rc == -EINTR && is_over(&limit_ns))
        return fr_fail(err, -ETIMEDOUT,
                       "query: stopped after %g s (ask for less, or raise the limit)", time_s);
    return rc;
}
