/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - see ledger.h: reading rows back; SQL of a person's own is in query.c */
#include "store/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/xalloc.h"
#include "store/rows.h"
#include "store/schema.h"

static void closep(struct fr_ledger_reader **p)
{
    fr_ledger_reader_close(*p);
}

static void finalizep(sqlite3_stmt **p)
{
    sqlite3_finalize(*p);
}

int fr_reader_fail(const struct fr_ledger_reader *rd, int rc, struct fr_err *err)
{
    rc = fr_db_errno(rd->db, rc);
    return fr_fail(err, rc, "%s: cannot read the ledger: %s (%s)", rd->path, sqlite3_errmsg(rd->db),
                   strerror(-rc));
}

int fr_ledger_reader_open(const char *path, struct fr_ledger_reader **ret, struct fr_err *err)
{
    FR_CLEANUP(closep) struct fr_ledger_reader *rd = fr_xalloc(sizeof *rd);
    int rc;

    rd->path = fr_xstrdup(path);
    rc = sqlite3_open_v2(path, &rd->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK) {
        rc = fr_db_errno(rd->db, rc);
        return fr_fail(err, rc, "%s: cannot open the ledger: %s", path, strerror(-rc));
    }
    fr_db_settle(rd->db);
    rc = fr_schema_check(rd->db, path, err);
    if (rc < 0)
        return rc;
    if (rc < FR_LEDGER_SCHEMA)
        return fr_fail(
            err, -EPROTO,
            "%s: ledger has schema %d, this program reads %d (fullrank-controller brings it up to"
            " date when it opens it)",
            path, rc, FR_LEDGER_SCHEMA);
    *ret = rd;
    rd = NULL;
    return 0;
}

void fr_ledger_reader_close(struct fr_ledger_reader *rd)
{
    if (!rd)
        return;
    sqlite3_close(rd->db);
    free(rd->path);
    free(rd);
}

int fr_ledger_each(struct fr_ledger_reader *rd, enum fr_row_kind kind, const char *job,
                   uint64_t since, int (*fn)(const void *row, void *arg), void *arg,
                   struct fr_err *err)
{
    const struct fr_table *t = fr_table_of(kind);
    FR_CLEANUP(fr_buf_fini) struct fr_buf sql = FR_BUF_INIT;
    FR_CLEANUP(finalizep) sqlite3_stmt *st = NULL;
    FR_CLEANUP(fr_freep) void *row = NULL;
    int64_t after = since ? (int64_t)since : INT64_MIN; /* 0: all, those of 2^63 and above too */
    int rc;

    if (!t)
        return fr_fail(err, -EINVAL, "%s: no such kind of rows: %d", rd->path, (int)kind);
    fr_table_select_sql(t, !job, &sql);
    rc = sqlite3_prepare_v2(rd->db, fr_buf_str(&sql), -1, &st, NULL);
    if (rc != SQLITE_OK)
        return fr_reader_fail(rd, rc, err);
    if (job)
        sqlite3_bind_text(st, 1, job, -1, SQLITE_STATIC);
    if (t->since_col)
        sqlite3_bind_int64(st, 2, after);

    row = fr_xalloc(t->row_bytes);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        int said;

        fr_table_read(t, st, row);
        said = fn(row, arg);
        if (said)
            return said;
    }
    return rc == SQLITE_DONE ? 0 : fr_reader_fail(rd, rc, err);
}

uint64_t fr_ledger_last_id(struct fr_ledger_reader *rd, enum fr_row_kind kind)
{
    const struct fr_table *t = fr_table_of(kind);
    FR_CLEANUP(fr_buf_fini) struct fr_buf sql = FR_BUF_INIT;
    FR_CLEANUP(finalizep) sqlite3_stmt *st = NULL;

    if (!t || !t->since_col || strcmp(t->since_col, "id") != 0)
        return 0;
    fr_buf_printf(&sql, "SELECT max(id) FROM %s", t->name);
    if (sqlite3_prepare_v2(rd->db, fr_buf_str(&sql), -1, &st, NULL) != SQLITE_OK ||
        sqlite3_step(st) != SQLITE_ROW)
        return 0;
    return (uint64_t)sqlite3_column_int64(st, 0);
}
