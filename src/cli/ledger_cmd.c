/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger_cmd.c - `fullrank ledger query SQL`: the books by anybody's own question
 *
 * Reads the file itself, read-only, beside a running controller or without one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/jsonw.h"
#include "base/xalloc.h"
#include "cli/cmd.h"
#include "cli/out.h"
#include "store/ledger.h"

#define COLUMNS_MAX 40
#define ROWS_LIMIT  50
#define SCHEMA      "fullrank.ledger-query/1"

struct result {
    struct fr_buf text; /* the items, as the API would answer */
    struct fr_jsonw w;
    char *names[COLUMNS_MAX]; /* of the first row */
    int ncols;
};

static int take_row(int n, const char *const *names, const struct fr_ledger_value *v, void *arg)
{
    struct result *r = arg;

    if (r->ncols == 0)
        for (; r->ncols < n && r->ncols < COLUMNS_MAX; r->ncols++)
            r->names[r->ncols] = fr_xstrdup(names[r->ncols]);
    fr_jsonw_obj(&r->w, NULL);
    for (int i = 0; i < n; i++)
        switch (v[i].type) {
        case FR_VALUE_NULL:
            fr_jsonw_null(&r->w, names[i]);
            break;
        case FR_VALUE_INTEGER:
            fr_jsonw_int(&r->w, names[i], v[i].integer);
            break;
        case FR_VALUE_REAL:
            fr_jsonw_num(&r->w, names[i], v[i].real);
            break;
        case FR_VALUE_TEXT:
            fr_jsonw_strn(&r->w, names[i], v[i].text, v[i].text_bytes);
            break;
        }
    fr_jsonw_end_obj(&r->w);
    return 0;
}

/* Tables and CSV: the columns that the question named. */
static int print_rows(const struct fr_cli *cli, const struct result *r, struct fr_err *err)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *doc = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf out = FR_BUF_INIT;
    struct fr_table_style st = fr_out_style(cli);
    struct fr_column cols[COLUMNS_MAX + 1] = {0};
    int rc = fr_json_parse(fr_buf_str(&r->text), r->text.len, &doc, err);

    for (int i = 0; rc == 0 && i < r->ncols; i++)
        cols[i] = (struct fr_column){r->names[i], r->names[i], r->names[i], FR_SHOW_TEXT, 0};
    if (rc == 0 && r->ncols)
        rc = fr_table_print(cols, fr_json_get(doc, "items"), &st, &out, err);
    if (rc == 0)
        fr_out_write(&out);
    return rc;
}

int fr_cmd_ledger_query(struct fr_cli *cli, int n, char **operands)
{
    struct fr_ledger_limits limits = {.rows = cli->limit < 0 ? ROWS_LIMIT : (uint64_t)cli->limit};
    struct fr_ledger_reader *rd = NULL;
    struct result r = {.text = FR_BUF_INIT};
    struct fr_err err = FR_ERR_INIT;
    struct fr_config cfg = {0};
    const char *dir = cli->state_dir;
    bool cut = false;
    char file[4200];
    int rc = 0;

    (void)n;
    if (!dir && (rc = fr_cli_config(cli, &cfg, &err)) == 0)
        dir = cfg.controller_state_dir;
    if (rc == 0) {
        snprintf(file, sizeof file, "%s/ledger.db", dir);
        rc = fr_ledger_reader_open(file, &rd, &err);
    }
    if (rc == 0) {
        fr_jsonw_init(&r.w, &r.text);
        fr_jsonw_obj(&r.w, NULL);
        fr_jsonw_str(&r.w, "schema", SCHEMA);
        fr_jsonw_arr(&r.w, "items");
        rc = fr_ledger_query(rd, operands[0], &limits, take_row, &r, &cut, &err);
        fr_jsonw_end_arr(&r.w);
        fr_jsonw_bool(&r.w, "cut", cut);
        fr_jsonw_end_obj(&r.w);
        fr_buf_putc(&r.text, '\n');
    }
    if (rc == 0 && cli->format == FR_FORMAT_JSON)
        fr_out_write(&r.text);
    else if (rc == 0)
        rc = print_rows(cli, &r, &err);
    if (rc == 0 && cut && !cli->quiet)
        fprintf(stderr, "fullrank: the result has more rows than %llu (--limit N, 0: all)\n",
                (unsigned long long)limits.rows);
    for (int i = 0; i < r.ncols; i++)
        free(r.names[i]);
    fr_buf_fini(&r.text);
    if (rd)
        fr_ledger_reader_close(rd);
    if (rc == -EINVAL || rc == -EPERM)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    if (rc == -ETIMEDOUT)
        return fr_cli_fail(FR_EXIT_TIME, &err);
    return rc ? fr_cli_fail(rc == -ENOENT ? FR_EXIT_NOT_FOUND : FR_EXIT_FAILED, &err) : 0;
}
