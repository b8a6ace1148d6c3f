/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ledger.c - rows a second that are on the disk, how long one row waits for it, what an
 * append costs its caller
 *
 * The file lies in TMPDIR (else the current folder): the figures are those of that file system's
 * sync.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "bench.h"
#include "store/ledger.h"

enum { REPEATS = 21, GROUP = 20000, SINGLES = 50 };

static uint64_t append_step(struct fr_ledger *lg, uint64_t step)
{
    struct fr_row_step row = {
        .job = "gpt-small-20261130", .attempt = 1, .step = step, .loss = 2.5, .tokens = 524288};

    return fr_ledger_append(lg, FR_ROW_STEP, &row);
}

static void fail(const struct fr_err *err)
{
    fprintf(stderr, "bench_ledger: error: %s\n", err->text);
    exit(1);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    char folder[256], path[300];
    struct fr_ledger *lg = NULL;
    struct fr_err err = FR_ERR_INIT;
    double rows_a_s[REPEATS], append_ns[REPEATS], wait_ms[SINGLES];
    uint64_t step = 0, n = 0;

    snprintf(folder, sizeof folder, "%s/fr-bench-ledger-XXXXXX", tmp ? tmp : ".");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof path, "%s/runs.db", folder);
    if (fr_ledger_open(path, &lg, &err) < 0)
        fail(&err);
    for (int r = 0; r < REPEATS; r++) {
        uint64_t start_ns = fr_mono_ns(), appended_ns;

        for (int i = 0; i < GROUP; i++)
            n = append_step(lg, ++step);
        appended_ns = fr_mono_ns();
        if (fr_ledger_wait(lg, n, 60, &err) < 0)
            fail(&err);
        append_ns[r] = (double)(appended_ns - start_ns) / GROUP;
        rows_a_s[r] = GROUP / ((double)(fr_mono_ns() - start_ns) * 1e-9);
    }
    for (int r = 0; r < SINGLES; r++) {
        uint64_t start_ns = fr_mono_ns();

        if (fr_ledger_wait(lg, append_step(lg, ++step), 60, &err) < 0)
            fail(&err);
        wait_ms[r] = (double)(fr_mono_ns() - start_ns) * 1e-6;
    }
    fr_ledger_close(lg);
    bench_print("ledger_durable_rows", rows_a_s, REPEATS, "rows/s");
    bench_print("ledger_append", append_ns, REPEATS, "ns");
    bench_print("ledger_wait_one_row", wait_ms, SINGLES, "ms");
    return fr_fs_remove_tree(folder, &err) < 0;
}
