/* SPDX-License-Identifier: Apache-2.0 */
/* helper.h - what the tests of the ledger share: a folder of one's own, rows of any kind with any
 * content */
#ifndef FR_STORE_TEST_HELPER_H
#define FR_STORE_TEST_HELPER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "store/ledger.h"

/* The folder of the running test and a file in it; made and removed by setup and teardown. */
extern char folder[256], file[300];
int make_folder(void **state);
int remove_folder(void **state);

/* Room for a row of any kind. */
union any_row {
    struct fr_row_job job;
    struct fr_row_attempt attempt;
    struct fr_row_step step;
    struct fr_row_span span;
    struct fr_row_incident incident;
    struct fr_row_decision decision;
    struct fr_row_action action;
    struct fr_row_node node;
};

size_t row_bytes(enum fr_row_kind kind);
/* Every member gets random content; members that are the key make it unlike the rows of other i. */
void fill_row(struct fr_rng *r, enum fr_row_kind kind, unsigned i, union any_row *ret);
/* Equal in every byte of every member; padding and where a text lies do not count. */
int rows_equal(enum fr_row_kind kind, const union any_row *a, const union any_row *b);
void free_texts(enum fr_row_kind kind, union any_row *row);

struct fr_row_step step_row(const char *job, uint64_t step);
struct fr_ledger *must_open(const char *path);
struct fr_ledger_reader *must_read(const char *path);
uint64_t count_rows(const char *path, enum fr_row_kind kind);
/* Wait until ask(arg) is true, at most 30 s. */
void wait_for(int (*ask)(void *arg), void *arg);
/* The one integer that a query yields. */
int64_t ask_integer(const char *path, const char *sql);

#endif /* FR_STORE_TEST_HELPER_H */
