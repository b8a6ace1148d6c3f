/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opt.h - command-line options as a table: parsing, help and completion come from it
 *
 *   static const struct fr_opt OPTS[] = {
 *       {'o', "output", FR_OPT_STR, offsetof(struct args, output), "FORMAT", "table, json, jsonl or
 * csv"}, {0}
 *   };
 *
 * Options and operands may be mixed; "--" ends options. An unknown option suggests the nearest one.
 */
#ifndef FR_BASE_OPT_H
#define FR_BASE_OPT_H

#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

enum fr_opt_kind {
    FR_OPT_FLAG,    /* bool */
    FR_OPT_STR,     /* const char * */
    FR_OPT_INT,     /* int64_t, not negative */
    FR_OPT_NUM,     /* double */
    FR_OPT_SECONDS, /* double, "250ms" */
    FR_OPT_BYTES,   /* uint64_t, "64KiB" */
    FR_OPT_COUNT    /* int, number of times given (-vv) */
};

struct fr_opt {
    char letter;      /* 0: none */
    const char *word; /* NULL ends the table */
    enum fr_opt_kind kind;
    size_t offset;   /* into the caller's struct */
    const char *arg; /* name of the argument in the help, NULL for flags */
    const char *help;
};

/* Parse argv[1..argc-1] into args; operands are moved to the front of argv[1..] and their number
 * put into ret_operands (those behind "--" included). *ret_dashdash (may be NULL) is the index in
 * argv of the first operand behind "--", or -1 without "--". -EINVAL on wrong usage: argv is then
 * as it was, args partly filled. */
int fr_opt_parse(const struct fr_opt *opts, void *args, int argc, char **argv, int *ret_operands,
                 int *ret_dashdash, struct fr_err *err);

/* The table as indented help lines. */
void fr_opt_help(const struct fr_opt *opts, FILE *to);

/* The word of `words` (NULL-terminated) nearest to `got` by edit distance <= 2 (1 when `got` has
 * three letters or less), or NULL. */
const char *fr_opt_nearest(const char *got, const char *const *words);

/* Put `text` into a field of that kind; a flag reads true/false, yes/no, on/off, 1/0; a string is
 * borrowed. 0, or -EINVAL with what was expected ("a duration such as ...") in *ret_expected (may
 * be NULL). */
int fr_opt_assign(enum fr_opt_kind kind, void *field, const char *text, const char **ret_expected);

/* Append a field's value as text that fr_opt_assign reads back. */
void fr_opt_text(enum fr_opt_kind kind, const void *field, struct fr_buf *out);

#endif /* FR_BASE_OPT_H */
