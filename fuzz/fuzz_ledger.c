/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ledger.c - the bytes are a person's SQL: it may fail, it must neither crash nor change the
 * ledger fuzz links: fr_store fr_base */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "store/ledger.h"

static char folder[] = "/tmp/fr-fuzz-ledger-XXXXXX";
static struct fr_ledger_reader *rd;

static void tidy(void)
{
    fr_ledger_reader_close(rd);
    fr_fs_remove_tree(folder, NULL);
}

static void make_ledger(void)
{
    struct fr_ledger *lg = NULL;
    struct fr_err err = FR_ERR_INIT;
    char path[64];

    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/l.db", folder);
    if (fr_ledger_open(path, &lg, &err) < 0)
        abort();
    for (uint64_t step = 1; step <= 3; step++) {
        struct fr_row_step row = {.job = "j", .step = step};

        fr_ledger_append(lg, FR_ROW_STEP, &row);
    }
    fr_ledger_close(lg);
    if (fr_ledger_reader_open(path, &rd, &err) < 0)
        abort();
    atexit(tidy);
}

static int count(const void *row, void *arg)
{
    (void)row;
    ++*(int *)arg;
    return 0;
}

static int take(int n, const char *const *names, const struct fr_ledger_value *values, void *arg)
{
    for (int i = 0; i < n; i++) {
        *(size_t *)arg += strlen(names[i]);
        if (values[i].type == FR_VALUE_TEXT)
            *(size_t *)arg += values[i].text_bytes + (values[i].text[values[i].text_bytes] != '\0');
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fr_ledger_limits limits = {.time_s = 0.02, .rows = 100};
    struct fr_err err = FR_ERR_INIT;
    char *sql;
    size_t bytes = 0;
    int steps = 0, rc;

    if (!rd)
        make_ledger();
    sql = calloc(1, n + 1);
    if (!sql)
        abort();
    if (n)
        memcpy(sql, p, n);
    rc = fr_ledger_query(rd, sql, &limits, take, &bytes, NULL, &err);
    free(sql);
    if (rc < 0 && !err.text[0])
        abort(); /* a refusal has a sentence */
    if (fr_ledger_each(rd, FR_ROW_STEP, NULL, 0, count, &steps, &err) < 0 || steps != 3)
        abort();
    return 0;
}
