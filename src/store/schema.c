/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - see schema.h */
#include "store/schema.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "store/ledger.h"

/* MIGRATIONS[i] brings schema i to i + 1. STRICT, so that no value changes its type on the way in;
 * WITHOUT ROWID, so that a job's steps lie beside each other in key order. Integers are those of
 * the structs in ledger.h, times are wall-clock ns, NULL in a REAL is "not known". */
static const char *const MIGRATIONS[] = {
    "CREATE TABLE jobs ("
    " job TEXT PRIMARY KEY, name TEXT NOT NULL, user TEXT NOT NULL, engine TEXT NOT NULL,"
    " command TEXT NOT NULL, workdir TEXT NOT NULL, uid INTEGER NOT NULL, nodes INTEGER NOT NULL,"
    " ranks_per_node INTEGER NOT NULL, spares INTEGER NOT NULL, max_attempts INTEGER NOT NULL,"
    " state INTEGER NOT NULL, mode INTEGER NOT NULL, supervisor_key INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, submitted_unix_ns INTEGER NOT NULL, ended_unix_ns INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL, total_steps INTEGER NOT NULL, checkpoint_every INTEGER NOT NULL,"
    " tokens_per_step REAL, flops_per_step REAL, peak_flops_per_rank REAL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE attempts ("
    " job TEXT NOT NULL, attempt INTEGER NOT NULL, epoch INTEGER NOT NULL, nodes TEXT NOT NULL,"
    " start_unix_ns INTEGER NOT NULL, stop_unix_ns INTEGER NOT NULL, end_unix_ns INTEGER NOT NULL,"
    " first_step_unix_ns INTEGER NOT NULL, first_step INTEGER NOT NULL, last_step INTEGER NOT NULL,"
    " resumed_from INTEGER NOT NULL, exit_code INTEGER NOT NULL, exit_signal INTEGER NOT NULL,"
    " end_reason TEXT NOT NULL, decision INTEGER NOT NULL,"
    " PRIMARY KEY (job, attempt)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE steps ("
    " job TEXT NOT NULL, attempt INTEGER NOT NULL, step INTEGER NOT NULL,"
    " begin_unix_ns INTEGER NOT NULL, end_unix_ns INTEGER NOT NULL, loss REAL, tokens REAL,"
    " self_max_s REAL, self_median_s REAL, slowest_rank INTEGER NOT NULL,"
    " PRIMARY KEY (job, attempt, step)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE spans ("
    " job TEXT NOT NULL, attempt INTEGER NOT NULL, phase INTEGER NOT NULL,"
    " begin_unix_ns INTEGER NOT NULL, end_unix_ns INTEGER NOT NULL,"
    " PRIMARY KEY (job, attempt, phase, begin_unix_ns)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE incidents ("
    " id INTEGER PRIMARY KEY, job TEXT NOT NULL, attempt INTEGER NOT NULL, epoch INTEGER NOT NULL,"
    " finding_key INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, cause TEXT NOT NULL,"
    " node TEXT NOT NULL, rank INTEGER NOT NULL, confidence REAL, ratio REAL, cost_ratio REAL,"
    " witnesses INTEGER NOT NULL, onset_unix_ns INTEGER NOT NULL, named_unix_ns INTEGER NOT NULL,"
    " closed_unix_ns INTEGER NOT NULL, last_move_unix_ns INTEGER NOT NULL, onset_step INTEGER NOT "
    "NULL,"
    " named_step INTEGER NOT NULL, evidence TEXT NOT NULL, acknowledged_by TEXT NOT NULL,"
    " bundle TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX incidents_by_job ON incidents (job);"

    "CREATE TABLE decisions ("
    " id INTEGER PRIMARY KEY, incident INTEGER NOT NULL, job TEXT NOT NULL, attempt INTEGER NOT "
    "NULL,"
    " choice TEXT NOT NULL, mode TEXT NOT NULL, node TEXT NOT NULL, actor TEXT NOT NULL,"
    " cost_stay_s REAL, cost_restart_s REAL, decided_unix_ns INTEGER NOT NULL, reason TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX decisions_by_job ON decisions (job);"

    "CREATE TABLE actions ("
    " decision INTEGER NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL, state TEXT NOT NULL,"
    " started_unix_ns INTEGER NOT NULL, ended_unix_ns INTEGER NOT NULL, detail TEXT NOT NULL,"
    " PRIMARY KEY (decision, kind)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE node_changes ("
    " node TEXT NOT NULL, at_unix_ns INTEGER NOT NULL, state TEXT NOT NULL, actor TEXT NOT NULL,"
    " incident INTEGER NOT NULL, reason TEXT NOT NULL,"
    " PRIMARY KEY (node, at_unix_ns)"
    ") STRICT, WITHOUT ROWID;",

    "ALTER TABLE incidents ADD COLUMN group_key TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE incidents ADD COLUMN victims INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE decisions ADD COLUMN wait_until_step INTEGER NOT NULL DEFAULT 0;",
};

_Static_assert(sizeof MIGRATIONS / sizeof MIGRATIONS[0] == FR_LEDGER_SCHEMA,
               "one migration a schema");

/* What an SQLite code means to the operating system; codes that are not here are EIO. */
static const struct {
    int rc, errnum;
} ERRNOS[] = {
    {SQLITE_FULL, ENOSPC},     {SQLITE_CORRUPT, EUCLEAN}, {SQLITE_NOTADB, EMEDIUMTYPE},
    {SQLITE_READONLY, EROFS},  {SQLITE_PERM, EACCES},     {SQLITE_AUTH, EPERM},
    {SQLITE_BUSY, EBUSY},      {SQLITE_LOCKED, EBUSY},    {SQLITE_CANTOPEN, ENOENT},
    {SQLITE_NOMEM, ENOMEM},    {SQLITE_TOOBIG, EFBIG},    {SQLITE_MISUSE, EINVAL},
    {SQLITE_INTERRUPT, EINTR}, {SQLITE_ERROR, EINVAL},
};

/* The errno of the last system call that failed on the WAL or on the file itself;
 * sqlite3_system_errno is often overwritten on the way up. */
static int errno_of_files(sqlite3 *db)
{
    sqlite3_file *wal = NULL;
    int errnum = 0;

    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) == SQLITE_OK && wal &&
        wal->pMethods)
        wal->pMethods->xFileControl(wal, SQLITE_FCNTL_LAST_ERRNO, &errnum);
    if (errnum <= 0)
        sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &errnum);
    return errnum;
}

int fr_db_errno(sqlite3 *db, int rc)
{
    int errnum = 0;

    rc &= 0xff;
    /* The system's number says more than EIO, but is stale unless this failure was a system call's.
     */
    if (db && rc == SQLITE_IOERR)
        errnum = errno_of_files(db);
    if (db && errnum <= 0 && (rc == SQLITE_IOERR || rc == SQLITE_CANTOPEN))
        errnum = sqlite3_system_errno(db);
    if (errnum > 0)
        return -errnum;
    for (size_t i = 0; i < sizeof ERRNOS / sizeof ERRNOS[0]; i++)
        if (ERRNOS[i].rc == rc)
            return -ERRNOS[i].errnum;
    return -EIO;
}

void fr_db_settle(sqlite3 *db)
{
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, 5000);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL); /* the file may be hostile */
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
}

int fr_db_exec(sqlite3 *db, const char *path, const char *what, const char *sql, struct fr_err *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

    if (rc == SQLITE_OK)
        return 0;
    rc = fr_db_errno(db, rc);
    return fr_fail(err, rc, "%s: cannot %s: %s (%s)", path, what, sqlite3_errmsg(db),
                   strerror(-rc));
}

/* One number that a statement yields; what fails is said about the file. */
static int ask_number(sqlite3 *db, const char *path, const char *sql, int64_t *ret,
                      struct fr_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    if (rc == SQLITE_ROW)
        return 0;
    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return fr_fail(err, -EMEDIUMTYPE,
                       "%s: is no ledger, nor any SQLite database (give another --state)", path);
    case SQLITE_CORRUPT:
        return fr_fail(
            err, -EUCLEAN,
            "%s: ledger is damaged (%s); nothing was changed (restore a copy, or give another"
            " --state)",
            path, sqlite3_errmsg(db));
    default:
        rc = fr_db_errno(db, rc);
        return fr_fail(err, rc, "%s: cannot read the ledger: %s (%s)", path, sqlite3_errmsg(db),
                       strerror(-rc));
    }
}

int fr_schema_check(sqlite3 *db, const char *path, struct fr_err *err)
{
    int64_t version = 0, application = 0, things = 0;
    int rc;

    if ((rc = ask_number(db, path, "PRAGMA user_version", &version, err)) < 0 ||
        (rc = ask_number(db, path, "PRAGMA application_id", &application, err)) < 0 ||
        (rc = ask_number(db, path, "SELECT count(*) FROM sqlite_schema", &things, err)) < 0)
        return rc;

    if (application == 0 && version == 0 && things == 0)
        return 0;
    if (version > FR_LEDGER_SCHEMA && (application == 0 || application == FR_LEDGER_APPLICATION_ID))
        return fr_fail(err, -EPROTO,
                       "%s: ledger has schema %d, this program knows up to %d (upgrade"
                       " fullrank-controller, or give another --state)",
                       path, (int)version, FR_LEDGER_SCHEMA);
    if (application != FR_LEDGER_APPLICATION_ID || version < 1)
        return fr_fail(err, -EMEDIUMTYPE,
                       "%s: is a database of another program (give another --state)", path);
    return (int)version;
}

int fr_schema_migrate(sqlite3 *db, const char *path, int from, struct fr_err *err)
{
    char mark[96];
    int rc;

    if (from >= FR_LEDGER_SCHEMA)
        return 0;
    rc = fr_db_exec(db, path, "write the ledger", "BEGIN IMMEDIATE", err);
    if (rc < 0)
        return rc;

    for (int i = from; i < FR_LEDGER_SCHEMA && rc == 0; i++)
        rc = fr_db_exec(db, path, "bring the ledger's schema up to date", MIGRATIONS[i], err);
    snprintf(mark, sizeof mark, "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
             FR_LEDGER_APPLICATION_ID, FR_LEDGER_SCHEMA);
    if (rc == 0)
        rc = fr_db_exec(db, path, "bring the ledger's schema up to date", mark, err);
    if (rc < 0 && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
