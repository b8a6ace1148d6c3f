/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - see rows.h */
#include "store/rows.h"

#include <math.h>
#include <string.h>

/* The compiler tells the type of a column from its member, so a table cannot disagree with its
 * struct. */
#define TYPE_OF(member)                                                                            \
    _Generic((member),                                                                             \
        char *: FR_COL_NAME,                                                                       \
        const char *: FR_COL_TEXT,                                                                 \
        uint32_t: FR_COL_U32,                                                                      \
        int32_t: FR_COL_I32,                                                                       \
        uint64_t: FR_COL_U64,                                                                      \
        int64_t: FR_COL_I64,                                                                       \
        double: FR_COL_F64)
#define COL(m)                                                                                     \
    {                                                                                              \
#m, TYPE_OF(((struct ROW *)0)->m), offsetof(struct ROW, m), sizeof(((struct ROW *)0)->m)   \
    }

#define ROW fr_row_job
static const struct fr_col JOB[] = {
    COL(job),
    COL(name),
    COL(user),
    COL(engine),
    COL(command),
    COL(workdir),
    COL(uid),
    COL(nodes),
    COL(ranks_per_node),
    COL(spares),
    COL(max_attempts),
    COL(state),
    COL(mode),
    COL(supervisor_key),
    COL(epoch),
    COL(submitted_unix_ns),
    COL(ended_unix_ns),
    COL(exit_code),
    COL(total_steps),
    COL(checkpoint_every),
    COL(tokens_per_step),
    COL(flops_per_step),
    COL(peak_flops_per_rank),
};
#undef ROW

#define ROW fr_row_attempt
static const struct fr_col ATTEMPT[] = {
    COL(job),           COL(attempt),      COL(epoch),        COL(nodes),
    COL(start_unix_ns), COL(stop_unix_ns), COL(end_unix_ns),  COL(first_step_unix_ns),
    COL(first_step),    COL(last_step),    COL(resumed_from), COL(exit_code),
    COL(exit_signal),   COL(end_reason),   COL(decision),
};
#undef ROW

#define ROW fr_row_step
static const struct fr_col STEP[] = {
    COL(job),  COL(attempt), COL(step),       COL(begin_unix_ns), COL(end_unix_ns),
    COL(loss), COL(tokens),  COL(self_max_s), COL(self_median_s), COL(slowest_rank),
};
#undef ROW

#define ROW fr_row_span
static const struct fr_col SPAN[] = {
    COL(job), COL(attempt), COL(phase), COL(begin_unix_ns), COL(end_unix_ns),
};
#undef ROW

#define ROW fr_row_incident
static const struct fr_col INCIDENT[] = {
    COL(id),
    COL(job),
    COL(attempt),
    COL(epoch),
    COL(finding_key),
    COL(kind),
    COL(subject),
    COL(cause),
    COL(node),
    COL(rank),
    COL(confidence),
    COL(ratio),
    COL(cost_ratio),
    COL(witnesses),
    COL(onset_unix_ns),
    COL(named_unix_ns),
    COL(closed_unix_ns),
    COL(last_move_unix_ns),
    COL(onset_step),
    COL(named_step),
    COL(evidence),
    COL(acknowledged_by),
    COL(bundle),
    COL(group_key),
    COL(victims),
};
#undef ROW

#define ROW fr_row_decision
static const struct fr_col DECISION[] = {
    COL(id),
    COL(incident),
    COL(job),
    COL(attempt),
    COL(choice),
    COL(mode),
    COL(node),
    COL(actor),
    COL(cost_stay_s),
    COL(cost_restart_s),
    COL(decided_unix_ns),
    COL(reason),
    COL(wait_until_step),
};
#undef ROW

#define ROW fr_row_action
static const struct fr_col ACTION[] = {
    COL(decision),        COL(kind),          COL(target), COL(state),
    COL(started_unix_ns), COL(ended_unix_ns), COL(detail),
};
#undef ROW

#define ROW fr_row_node
static const struct fr_col NODE[] = {
    COL(node), COL(at_unix_ns), COL(state), COL(actor), COL(incident), COL(reason),
};
#undef ROW

#define TABLE(NAME, COLS, ROW, KEYS, SCOPE, SINCE)                                                 \
    {                                                                                              \
        NAME, SCOPE, SINCE, COLS, sizeof(COLS) / sizeof((COLS)[0]), KEYS, sizeof(struct ROW)       \
    }

#define BY_JOB      "job = ?1"
#define BY_DECISION "decision IN (SELECT id FROM decisions WHERE job = ?1)"

static const struct fr_table TABLES[FR_ROW_KINDS] = {
    [FR_ROW_JOB] = TABLE("jobs", JOB, fr_row_job, 1, BY_JOB, NULL),
    [FR_ROW_ATTEMPT] = TABLE("attempts", ATTEMPT, fr_row_attempt, 2, BY_JOB, NULL),
    [FR_ROW_STEP] = TABLE("steps", STEP, fr_row_step, 3, BY_JOB, "step"),
    [FR_ROW_SPAN] = TABLE("spans", SPAN, fr_row_span, 4, BY_JOB, NULL),
    [FR_ROW_INCIDENT] = TABLE("incidents", INCIDENT, fr_row_incident, 1, BY_JOB, "id"),
    [FR_ROW_DECISION] = TABLE("decisions", DECISION, fr_row_decision, 1, BY_JOB, "id"),
    [FR_ROW_ACTION] = TABLE("actions", ACTION, fr_row_action, 2, BY_DECISION, NULL),
    [FR_ROW_NODE] = TABLE("node_changes", NODE, fr_row_node, 2, "node = ?1", NULL),
};

const struct fr_table *fr_table_of(enum fr_row_kind kind)
{
    unsigned k = (unsigned)kind;

    return k < FR_ROW_KINDS && TABLES[k].name ? &TABLES[k] : NULL;
}

static void add_columns(const struct fr_table *t, unsigned n, struct fr_buf *out)
{
    for (unsigned i = 0; i < n; i++)
        fr_buf_printf(out, "%s%s", i ? ", " : "", t->cols[i].name);
}

void fr_table_insert_sql(const struct fr_table *t, struct fr_buf *out)
{
    fr_buf_printf(out, "INSERT OR REPLACE INTO %s (", t->name);
    add_columns(t, t->n_cols, out);
    fr_buf_puts(out, ") VALUES (");
    for (unsigned i = 1; i <= t->n_cols; i++)
        fr_buf_printf(out, "%s?%u", i > 1 ? ", " : "", i);
    fr_buf_putc(out, ')');
}

void fr_table_select_sql(const struct fr_table *t, int any_job, struct fr_buf *out)
{
    fr_buf_puts(out, "SELECT ");
    add_columns(t, t->n_cols, out);
    fr_buf_printf(out, " FROM %s WHERE %s", t->name, any_job ? "1" : t->scope_sql);
    if (t->since_col)
        fr_buf_printf(out, " AND %s > ?2", t->since_col);
    fr_buf_puts(out, " ORDER BY ");
    add_columns(t, t->n_keys, out);
}

/* The member at p, whose type is the column's. */
#define AT(type, p) (*(type *)(p))

static int bind_column(const struct fr_col *c, sqlite3_stmt *st, int i, const char *p)
{
    const char *text = p;

    switch (c->type) {
    case FR_COL_U32:
        return sqlite3_bind_int64(st, i, AT(const uint32_t, p));
    case FR_COL_I32:
        return sqlite3_bind_int64(st, i, AT(const int32_t, p));
    case FR_COL_U64: /* the same bits */
        return sqlite3_bind_int64(st, i, (sqlite3_int64)AT(const uint64_t, p));
    case FR_COL_I64:
        return sqlite3_bind_int64(st, i, AT(const int64_t, p));
    case FR_COL_F64: /* SQLite itself keeps NaN as NULL */
        return sqlite3_bind_double(st, i, AT(const double, p));
    case FR_COL_NAME:
        return sqlite3_bind_text(st, i, text, (int)strnlen(text, c->bytes - 1u), SQLITE_STATIC);
    case FR_COL_TEXT:
        text = AT(const char *const, p);
        return sqlite3_bind_text(st, i, text ? text : "", -1, SQLITE_STATIC);
    }
    return SQLITE_MISUSE;
}

int fr_table_bind(const struct fr_table *t, sqlite3_stmt *st, const void *row)
{
    for (int i = 0; i < t->n_cols; i++) {
        int rc = bind_column(&t->cols[i], st, i + 1, (const char *)row + t->cols[i].offset);

        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

static void read_column(const struct fr_col *c, sqlite3_stmt *st, int i, char *p)
{
    sqlite3_int64 v = 0;
    const char *text;

    switch (c->type) {
    case FR_COL_U32:
    case FR_COL_I32:
    case FR_COL_U64:
    case FR_COL_I64:
        v = sqlite3_column_int64(st, i);
        if (c->bytes == 4)
            AT(uint32_t, p) = (uint32_t)v; /* also right for an int32_t: two's complement */
        else
            AT(uint64_t, p) = (uint64_t)v;
        return;
    case FR_COL_F64:
        AT(double, p) =
            sqlite3_column_type(st, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(st, i);
        return;
    case FR_COL_NAME:
        text = (const char *)sqlite3_column_text(st, i);
        strncpy(p, text ? text : "", c->bytes - 1u); /* pads with NUL */
        p[c->bytes - 1u] = '\0';
        return;
    case FR_COL_TEXT:
        text = (const char *)sqlite3_column_text(st, i);
        AT(const char *, p) = text ? text : "";
        return;
    }
}

void fr_table_read(const struct fr_table *t, sqlite3_stmt *st, void *ret_row)
{
    memset(ret_row, 0, t->row_bytes);
    for (int i = 0; i < t->n_cols; i++)
        read_column(&t->cols[i], st, i, (char *)ret_row + t->cols[i].offset);
}

/* Length of the text as it is kept: cut in front of the character that crosses the limit. */
static size_t kept_bytes(const char *text)
{
    size_t n = strnlen(text, FR_ROW_TEXT_BYTES + 1);

    if (n <= FR_ROW_TEXT_BYTES)
        return n;
    n = FR_ROW_TEXT_BYTES;
    while (n > FR_ROW_TEXT_BYTES - 4 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

size_t fr_table_copy_bytes(const struct fr_table *t, const void *row)
{
    size_t n = t->row_bytes;

    for (unsigned i = 0; i < t->n_cols; i++) {
        const char *p = (const char *)row + t->cols[i].offset;

        if (t->cols[i].type == FR_COL_TEXT && AT(const char *const, p))
            n += kept_bytes(AT(const char *const, p)) + 1;
    }
    return n;
}

unsigned fr_table_copy(const struct fr_table *t, const void *row, void *to)
{
    char *end = (char *)to + t->row_bytes;
    unsigned cut = 0;

    memcpy(to, row, t->row_bytes);
    for (unsigned i = 0; i < t->n_cols; i++) {
        char *p = (char *)to + t->cols[i].offset;
        const char *text;
        size_t n;

        if (t->cols[i].type != FR_COL_TEXT || !AT(const char *, p))
            continue;
        text = AT(const char *, p);
        n = kept_bytes(text);
        cut += text[n] != '\0';
        memcpy(end, text, n);
        end[n] = '\0';
        AT(const char *, p) = end;
        end += n + 1;
    }
    return cut;
}
