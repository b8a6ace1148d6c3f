/* SPDX-License-Identifier: Apache-2.0 */
/* opt.c - see opt.h */
#include "base/opt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "base/xalloc.h"

#define HELP_COLUMN     30
#define NEAREST_MAX     2 /* edits */
#define SHORT_WORD      3
#define NEAREST_LEN_MAX 40 /* longer words are not typing errors of ours */

static bool takes_argument(enum fr_opt_kind kind)
{
    return kind != FR_OPT_FLAG && kind != FR_OPT_COUNT;
}

static int assign_flag(void *field, const char *text)
{
    static const struct {
        const char *word;
        bool v;
    } WORDS[] = {{"true", true},   {"yes", true}, {"on", true},   {"1", true},
                 {"false", false}, {"no", false}, {"off", false}, {"0", false}};

    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strcmp(text, WORDS[i].word) == 0) {
            *(bool *)field = WORDS[i].v;
            return 0;
        }
    }
    return -EINVAL;
}

int fr_opt_assign(enum fr_opt_kind kind, void *field, const char *text, const char **ret_expected)
{
    static const char *const EXPECTED[] = {
        [FR_OPT_FLAG] = "true or false",
        [FR_OPT_STR] = "a text",
        [FR_OPT_INT] = "a whole number that is not negative",
        [FR_OPT_NUM] = "a number",
        [FR_OPT_SECONDS] = "a duration such as 250ms, 10s, 5m, 2h or 7d",
        [FR_OPT_BYTES] = "a size such as 64KiB or 2GiB",
        [FR_OPT_COUNT] = "a whole number that is not negative",
    };
    uint64_t u;
    int rc = -EINVAL;

    switch (kind) {
    case FR_OPT_FLAG:
        rc = assign_flag(field, text);
        break;
    case FR_OPT_STR:
        *(const char **)field = text;
        rc = 0;
        break;
    case FR_OPT_INT:
        rc = fr_parse_uint(text, 0, INT64_MAX, &u);
        if (rc == 0)
            *(int64_t *)field = (int64_t)u;
        break;
    case FR_OPT_NUM:
        rc = fr_parse_num(text, field);
        break;
    case FR_OPT_SECONDS:
        rc = fr_parse_seconds(text, field);
        break;
    case FR_OPT_BYTES:
        rc = fr_parse_bytes(text, field);
        break;
    case FR_OPT_COUNT:
        rc = fr_parse_uint(text, 0, INT32_MAX, &u);
        if (rc == 0)
            *(int *)field = (int)u;
        break;
    }
    if (rc < 0 && ret_expected)
        *ret_expected = EXPECTED[kind];
    return rc < 0 ? -EINVAL : 0;
}

void fr_opt_text(enum fr_opt_kind kind, const void *field, struct fr_buf *out)
{
    switch (kind) {
    case FR_OPT_FLAG:
        fr_buf_puts(out, *(const bool *)field ? "true" : "false");
        break;
    case FR_OPT_STR:
        if (*(const char *const *)field)
            fr_buf_puts(out, *(const char *const *)field);
        break;
    case FR_OPT_INT:
        fr_buf_printf(out, "%" PRId64, *(const int64_t *)field);
        break;
    case FR_OPT_NUM:
        fr_buf_printf(out, "%.15g", *(const double *)field);
        break;
    case FR_OPT_SECONDS:
        fr_buf_printf(out, "%.15gs", *(const double *)field);
        break;
    case FR_OPT_BYTES:
        fr_buf_printf(out, "%" PRIu64, *(const uint64_t *)field);
        break;
    case FR_OPT_COUNT:
        fr_buf_printf(out, "%d", *(const int *)field);
        break;
    }
}

/* Optimal string alignment: insert, delete, replace, swap of neighbours.
 * Source: Damerau, "A technique for computer detection and correction of spelling errors", CACM
 * 7(3), 1964. */
static int edit_distance(const char *a, const char *b)
{
    int d[NEAREST_LEN_MAX + 1][NEAREST_LEN_MAX + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > NEAREST_LEN_MAX || m > NEAREST_LEN_MAX)
        return NEAREST_MAX + 1;
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            int best;

            if (i == 0 || j == 0) {
                d[i][j] = (int)(i + j);
                continue;
            }
            best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *fr_opt_nearest(const char *got, const char *const *words)
{
    const char *best = NULL;
    /* Of three letters two changed is another word. */
    int best_d = (strlen(got) <= SHORT_WORD ? 1 : NEAREST_MAX) + 1;

    for (; *words; words++) {
        int d = edit_distance(got, *words);

        /* A word that would be changed all over is no suggestion. */
        if (d < best_d && (size_t)d < strlen(*words) && (size_t)d < strlen(got)) {
            best_d = d;
            best = *words;
        }
    }
    return best;
}

static int unknown_word(const struct fr_opt *opts, const char *word, size_t n, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *got = fr_xasprintf("%.*s", (int)n, word);
    FR_CLEANUP(fr_freep) const char **words = NULL;
    const char *near;
    size_t count = 0;

    while (opts[count].word)
        count++;
    words = fr_xcalloc(count + 1, sizeof *words);
    for (size_t i = 0; i < count; i++)
        words[i] = opts[i].word;
    near = fr_opt_nearest(got, words);
    if (near)
        return fr_fail(err, -EINVAL, "unknown option --%s (did you mean --%s?)", got, near);
    return fr_fail(err, -EINVAL, "unknown option --%s (see --help)", got);
}

static const struct fr_opt *find_word(const struct fr_opt *opts, const char *word, size_t n)
{
    for (; opts->word; opts++)
        if (strlen(opts->word) == n && memcmp(opts->word, word, n) == 0)
            return opts;
    return NULL;
}

static const struct fr_opt *find_letter(const struct fr_opt *opts, char letter)
{
    for (; opts->word; opts++)
        if (opts->letter == letter)
            return opts;
    return NULL;
}

static int set_option(const struct fr_opt *o, void *args, const char *value, struct fr_err *err)
{
    void *field = (char *)args + o->offset;
    const char *expected = NULL;

    if (o->kind == FR_OPT_FLAG)
        *(bool *)field = true;
    else if (o->kind == FR_OPT_COUNT)
        ++*(int *)field;
    else if (fr_opt_assign(o->kind, field, value, &expected) < 0)
        return fr_fail(err, -EINVAL, "option --%s: '%s' is not %s", o->word, value, expected);
    return 0;
}

/* "--word", "--word=value" or "--word value"; *i may step to the value. */
static int parse_word(const struct fr_opt *opts, void *args, int argc, char **argv, int *i,
                      struct fr_err *err)
{
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    const struct fr_opt *o = find_word(opts, word, n);
    const char *value = equals ? equals + 1 : NULL;

    if (!o)
        return unknown_word(opts, word, n, err);
    if (!takes_argument(o->kind) && value)
        return fr_fail(err, -EINVAL, "option --%s takes no argument", o->word);
    if (takes_argument(o->kind) && !value) {
        if (*i + 1 >= argc)
            return fr_fail(err, -EINVAL, "option --%s needs an argument: %s", o->word, o->arg);
        value = argv[++*i];
    }
    return set_option(o, args, value, err);
}

/* "-o", "-ovalue", "-o value", "-vv", "-ab"; *i may step to the value. */
static int parse_letters(const struct fr_opt *opts, void *args, int argc, char **argv, int *i,
                         struct fr_err *err)
{
    for (const char *p = argv[*i] + 1; *p; p++) {
        const struct fr_opt *o = find_letter(opts, *p);
        const char *value = NULL;
        int rc;

        if (!o)
            return fr_fail(err, -EINVAL, "unknown option -%c (see --help)", *p);
        if (takes_argument(o->kind)) {
            if (p[1])
                value = p + 1;
            else if (*i + 1 < argc)
                value = argv[++*i];
            else
                return fr_fail(err, -EINVAL, "option -%c needs an argument: %s", *p, o->arg);
        }
        rc = set_option(o, args, value, err);
        if (rc < 0 || value)
            return rc;
    }
    return 0;
}

int fr_opt_parse(const struct fr_opt *opts, void *args, int argc, char **argv, int *ret_operands,
                 int *ret_dashdash, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char **operands = fr_xcalloc((size_t)argc + 1, sizeof *operands);
    int n = 0, dashdash = -1, rc;

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];

        if (dashdash >= 0 || a[0] != '-' || a[1] == '\0') { /* "-" is standard input or output */
            operands[n++] = argv[i];
            continue;
        }
        if (strcmp(a, "--") == 0) {
            dashdash = n + 1; /* index in argv, where operands start at 1 */
            continue;
        }
        rc = a[1] == '-' ? parse_word(opts, args, argc, argv, &i, err)
                         : parse_letters(opts, args, argc, argv, &i, err);
        if (rc < 0)
            return rc;
    }
    for (int i = 0; i < n; i++)
        argv[1 + i] = operands[i];
    if (n + 1 < argc)
        argv[1 + n] = NULL;
    *ret_operands = n;
    if (ret_dashdash)
        *ret_dashdash = dashdash;
    return 0;
}

void fr_opt_help(const struct fr_opt *opts, FILE *to)
{
    for (; opts->word; opts++) {
        FR_CLEANUP(fr_buf_fini) struct fr_buf left = FR_BUF_INIT;

        if (opts->letter)
            fr_buf_printf(&left, "  -%c, --%s", opts->letter, opts->word);
        else
            fr_buf_printf(&left, "      --%s", opts->word);
        if (takes_argument(opts->kind) && opts->arg)
            fr_buf_printf(&left, " %s", opts->arg);
        if (left.len + 2 > HELP_COLUMN)
            fprintf(to, "%s\n%*s%s\n", fr_buf_str(&left), HELP_COLUMN, "", opts->help);
        else
            fprintf(to, "%-*s%s\n", HELP_COLUMN, fr_buf_str(&left), opts->help);
    }
}
