/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - one table a kind of row: which member of the struct is which column
 *
 * From it come the INSERT and SELECT texts, the binding, the reading and the copy into the queue,
 * so that a new column is one line here and one migration in schema.c; a test holds the two against
 * each other.
 *
 * How values are kept: unsigned 64-bit ones as the signed integer of the same bits (ids and steps
 * stay below 2^63, keys and hashes may be negative in SQL); NaN is NULL and NULL is NaN, whatever
 * its payload; -0.0 comes back as 0.0 (SQLite); a text that is NULL is kept as '' and comes back
 * so, never as NULL.
 *
 * Threads: the tables are constant; the functions belong to the thread of their statement.
 */
#ifndef FR_STORE_ROWS_H
#define FR_STORE_ROWS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/ledger.h"

#define FR_ROW_TEXT_BYTES (1u << 20) /* a longer text is cut there, at a character, and counted */

enum fr_col_type {
    FR_COL_NAME, /* char[bytes] */
    FR_COL_TEXT, /* const char * */
    FR_COL_U32,
    FR_COL_I32,
    FR_COL_U64,
    FR_COL_I64,
    FR_COL_F64
};

struct fr_col {
    const char *name; /* of the member and of the column */
    enum fr_col_type type;
    uint16_t offset, bytes;
};

struct fr_table {
    const char *name;
    const char *scope_sql; /* which rows fr_ledger_each(..., job = ?1, ...) means */
    const char *since_col; /* what its `since` is compared with; NULL: it is ignored */
    const struct fr_col *cols;
    uint16_t n_cols, n_keys; /* the first n_keys of the columns are the key, in order */
    uint16_t row_bytes;
};

/* NULL when there is no such kind. */
const struct fr_table *fr_table_of(enum fr_row_kind kind);

void fr_table_insert_sql(const struct fr_table *t, struct fr_buf *out);
/* ?1: the job (unless any_job), ?2: since. */
void fr_table_select_sql(const struct fr_table *t, int any_job, struct fr_buf *out);

/* Bind all columns of the row; texts are borrowed until the statement is reset. Returns an SQLite
 * code. */
int fr_table_bind(const struct fr_table *t, sqlite3_stmt *st, const void *row);
/* Fill the row from the statement's current line; texts live until the next step. */
void fr_table_read(const struct fr_table *t, sqlite3_stmt *st, void *ret_row);

/* Bytes that a copy of the row with its texts needs. */
size_t fr_table_copy_bytes(const struct fr_table *t, const void *row);
/* Copy it to `to` (aligned as malloc does): the struct, then its texts. Returns how many texts were
 * cut. */
unsigned fr_table_copy(const struct fr_table *t, const void *row, void *to);

#endif /* FR_STORE_ROWS_H */
