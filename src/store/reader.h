/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - the inside of a reader: a read-only connection of its own, used by one thread */
#ifndef FR_STORE_READER_H
#define FR_STORE_READER_H

#include <sqlite3.h>

#include "store/ledger.h"

struct fr_ledger_reader {
    char *path;
    sqlite3 *db;
    bool denied; /* the query that runs asked for more than reading */
};

/* What a failed statement means to the reader's person. */
int fr_reader_fail(const struct fr_ledger_reader *rd, int rc, struct fr_err *err);

#endif /* FR_STORE_READER_H */
