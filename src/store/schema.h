/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - the numbered migrations, and what a file must be before one of them touches it
 *
 * PRAGMA user_version is the number of the newest migration in the file, PRAGMA application_id
 * marks it as a ledger. Migrations are only added: one that was released never changes.
 *
 * Threads: those of the connection.
 */
#ifndef FR_STORE_SCHEMA_H
#define FR_STORE_SCHEMA_H

#include <sqlite3.h>

#include "base/err.h"

#define FR_LEDGER_APPLICATION_ID 0x46524c47 /* "FRLG" */

/* The negative errno that fits the last failure of the connection (its own system call's, if it has
 * one). */
int fr_db_errno(sqlite3 *db, int rc);

/* Set what both kinds of connections have in common (limits, defences, waiting for locks). */
void fr_db_settle(sqlite3 *db);

/* Run a text of statements. Returns 0 or a negative errno with "PATH: cannot WHAT: WHY". */
int fr_db_exec(sqlite3 *db, const char *path, const char *what, const char *sql,
               struct fr_err *err);

/* Is the file a ledger that this program knows? Reads only. Returns its schema's number (0: an
 * empty file), -EPROTO for a newer one, -EMEDIUMTYPE for a foreign or no database, -EUCLEAN for a
 * damaged one. */
int fr_schema_check(sqlite3 *db, const char *path, struct fr_err *err);

/* Bring a file of this schema up to date, all migrations in one transaction. */
int fr_schema_migrate(sqlite3 *db, const char *path, int from, struct fr_err *err);

#endif /* FR_STORE_SCHEMA_H */
