/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type { INT, REAL, TEXT, FLAG, LIST, RESUME, PAUSE };

struct option_row {
    const char *name;
    enum type type;
    size_t offset;        /* of the field in struct fr_options */
    const char *fallback; /* parsed like an argument; NULL: field stays 0 */
    double min, max;      /* INT and REAL */
    const char *argument, *help;
};

#define AT(field) offsetof(struct fr_options, field)
#define BIG       1e9

static const struct option_row table[] = {
    {"dp", INT, AT(dp), "1", 1, 65536, "N", "data-parallel replicas"},
    {"pp", INT, AT(pp), "1", 1, 65536, "N", "pipeline stages"},
    {"tp", INT, AT(tp), "1", 1, 65536, "N", "tensor-parallel shards"},
    {"layers", INT, AT(layers), "8", 1, 4096, "N", "transformer blocks"},
    {"d-model", INT, AT(d_model), "128", 1, 65536, "N", "model width"},
    {"heads", INT, AT(heads), "8", 1, 4096, "N", "attention heads"},
    {"seq", INT, AT(seq), "64", 1, 65536, "N", "tokens in a sequence"},
    {"batch", INT, AT(batch), "16", 1, BIG, "N", "sequences in a step of the whole job"},
    {"micro-batch", INT, AT(micro_batch), "4", 1, BIG, "N", "sequences in one micro-batch"},
    {"steps", INT, AT(steps), "300", 0, 1e15, "N", "the last step"},
    {"lr", REAL, AT(lr), "2e-3", 0, 1e3, "X", "learning rate after the warm-up"},
    {"min-lr", REAL, AT(min_lr), "2e-4", 0, 1e3, "X", "learning rate at the last step"},
    {"warmup", INT, AT(warmup), "20", 0, 1e15, "N", "steps of linear warm-up"},
    {"weight-decay", REAL, AT(weight_decay), "0.1", 0, 1e3, "X",
     "decoupled decay of matrices (not of norms and biases)"},
    {"clip", REAL, AT(clip), "1.0", 0, BIG, "X", "largest norm of the gradient; 0: no limit"},
    {"seed", INT, AT(seed), "1", 0, 9e15, "N", "of weights and data order"},
    {"data", LIST, 0, NULL, 0, 0, "PATH",
     "text file, or folder of them; repeatable (default /usr/share/common-licenses)"},
    {"eval-every", INT, AT(eval_every), "0", 0, 1e15, "N", "steps between evaluations; 0: none"},
    {"eval-batches", INT, AT(eval_batches), "2", 1, 1e6, "N", "batches in one evaluation"},
    {"checkpoint-dir", TEXT, AT(checkpoint_dir), NULL, 0, 0, "DIR",
     "where checkpoints are; seen by all ranks"},
    {"checkpoint-every", INT, AT(checkpoint_every), "50", 1, 1e15, "N",
     "steps between checkpoints; the last step has one too"},
    {"keep", INT, AT(keep), "3", 1, 1e6, "N", "checkpoints kept"},
    {"resume", RESUME, AT(resume), "auto", 0, 0, "auto|none",
     "start from the newest checkpoint that verifies, or from step 0"},
    {"loss-file", TEXT, AT(loss_file), NULL, 0, 0, "FILE", "one JSON line a step, by rank 0"},
    {"peak-flops", REAL, AT(peak_flops), "0", 0, 1e18, "X",
     "FLOP/s that one rank could reach; 0: measure at start"},
    {"log-every", INT, AT(log_every), "10", 1, 1e15, "N", "steps between two lines of output"},
    {"quiet", FLAG, AT(quiet), NULL, 0, 0, NULL, "print errors and warnings only"},
    {"grad-check", FLAG, AT(grad_check), NULL, 0, 0, NULL,
     "compare gradients with finite differences, exit 0 or 1"},
    {"pause", PAUSE, 0, NULL, 0, 0, "KIND:STEP:RANK|all:SECONDS",
     "stand still on purpose; KIND loader, compile, checkpoint, eval; repeatable"},
    {"help", FLAG, AT(help), NULL, 0, 0, NULL, "this text"},
    {"version", FLAG, AT(version), NULL, 0, 0, NULL, "the version"},
};
#define ROWS (sizeof table / sizeof table[0])

static const char *const pause_names[FR_PAUSE_KINDS] = {"loader", "compile", "checkpoint", "eval"};

static int parse_int(const char *text, double min, double max, int64_t *ret)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(text, &end, 10);
    if (end == text || *end || errno || (double)v < min || (double)v > max)
        return -EINVAL;
    *ret = v;
    return 0;
}

static int parse_real(const char *text, double min, double max, double *ret)
{
    char *end;
    double v = strtod(text, &end);

    if (end == text || *end || !(v >= min && v <= max)) /* also catches NaN */
        return -EINVAL;
    *ret = v;
    return 0;
}

/* KIND:STEP:RANK|all:SECONDS */
static int parse_pause(const char *text, struct fr_pause *ret)
{
    char copy[128], *part[4], *save = NULL;
    struct fr_pause p = {FR_PAUSE_KINDS, 0, -1, 0};
    int n = 0;

    if (strlen(text) >= sizeof copy)
        return -EINVAL;
    strcpy(copy, text);
    for (char *t = strtok_r(copy, ":", &save); t; t = strtok_r(NULL, ":", &save)) {
        if (n == 4)
            return -EINVAL;
        part[n++] = t;
    }
    if (n != 4)
        return -EINVAL;
    for (int k = 0; k < FR_PAUSE_KINDS; k++)
        if (strcmp(part[0], pause_names[k]) == 0)
            p.kind = (enum fr_pause_kind)k;
    if (p.kind == FR_PAUSE_KINDS || parse_int(part[1], 1, 1e15, &p.step) < 0 ||
        (strcmp(part[2], "all") != 0 && parse_int(part[2], 0, BIG, &p.rank) < 0) ||
        parse_real(part[3], 0, 1e6, &p.seconds) < 0)
        return -EINVAL;
    *ret = p;
    return 0;
}

static int set_option(struct fr_options *o, const struct option_row *row, const char *text,
                      struct fr_err *err)
{
    void *field = (char *)o + row->offset;

    switch (row->type) {
    case INT:
        if (parse_int(text, row->min, row->max, field) == 0)
            return 0;
        return fr_fail(err, -EINVAL, "--%s %s: not a whole number from %.0f to %.0f", row->name,
                       text, row->min, row->max);
    case REAL:
        if (parse_real(text, row->min, row->max, field) == 0)
            return 0;
        return fr_fail(err, -EINVAL, "--%s %s: not a number from %g to %g", row->name, text,
                       row->min, row->max);
    case TEXT:
        if (*text == '\0')
            return fr_fail(err, -EINVAL, "--%s: empty (give a path)", row->name);
        *(const char **)field = text;
        return 0;
    case FLAG:
        *(bool *)field = true;
        return 0;
    case LIST:
        if (o->data_count == FR_DATA_MAX)
            return fr_fail(err, -EINVAL, "--data: more than %d paths (put the files in one folder)",
                           FR_DATA_MAX);
        o->data[o->data_count++] = text;
        return 0;
    case RESUME:
        o->resume = strcmp(text, "auto") == 0;
        if (o->resume || strcmp(text, "none") == 0)
            return 0;
        return fr_fail(err, -EINVAL, "--resume %s: unknown (choose auto or none)", text);
    case PAUSE:
        if (o->pause_count == FR_PAUSE_MAX)
            return fr_fail(err, -EINVAL, "--pause: more than %d pauses", FR_PAUSE_MAX);
        if (parse_pause(text, &o->pause[o->pause_count]) < 0)
            return fr_fail(err, -EINVAL,
                           "--pause %s: not understood (write KIND:STEP:RANK|all:SECONDS with KIND"
                           " loader, compile, checkpoint or eval)",
                           text);
        o->pause_count++;
        return 0;
    }
    return -EINVAL;
}

/* The row of "--name" or "--name=value"; *ret_value is the part after '='. */
static const struct option_row *find_row(const char *arg, const char **ret_value)
{
    const char *name = arg + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);

    *ret_value = equals ? equals + 1 : NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(table[i].name) == len && strncmp(table[i].name, name, len) == 0)
            return &table[i];
    return NULL;
}

int fr_options_parse(int argc, char *const argv[], struct fr_options *ret, struct fr_err *err)
{
    struct fr_options o = {0};
    int rc;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            o.help = true;
        if (strcmp(argv[i], "--version") == 0)
            o.version = true;
    }
    if (o.help || o.version) {
        *ret = o;
        return 0;
    }
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].fallback && (rc = set_option(&o, &table[i], table[i].fallback, err)) < 0)
            return rc;
    for (int i = 1; i < argc; i++) {
        const struct option_row *row = NULL;
        const char *value = NULL;

        if (strncmp(argv[i], "--", 2) == 0)
            row = find_row(argv[i], &value);
        if (!row)
            return fr_fail(err, -EINVAL, "%s: unknown option (see --help)", argv[i]);
        if (row->type == FLAG && value)
            return fr_fail(err, -EINVAL, "--%s: takes no value", row->name);
        if (row->type != FLAG && !value) {
            if (i + 1 == argc)
                return fr_fail(err, -EINVAL, "--%s: value missing (write --%s %s)", row->name,
                               row->name, row->argument);
            value = argv[++i];
        }
        if ((rc = set_option(&o, row, value, err)) < 0)
            return rc;
    }
    if (o.data_count == 0)
        o.data[o.data_count++] = "/usr/share/common-licenses";
    *ret = o;
    return 0;
}

/* "must be a multiple of" is the shape of nearly every bad combination. */
static int must_divide(const char *what, int64_t n, const char *by, int64_t d, const char *advice,
                       struct fr_err *err)
{
    if (d > 0 && n % d == 0)
        return 0;
    return fr_fail(err, -EINVAL, "%s %" PRId64 ": not a multiple of %s %" PRId64 " (%s)", what, n,
                   by, d, advice);
}

int fr_options_check(const struct fr_options *o, int64_t world, struct fr_err *err)
{
    int rc;

    if (o->dp * o->pp * o->tp != world)
        return fr_fail(err, -EINVAL,
                       "grid: --dp %" PRId64 " x --pp %" PRId64 " x --tp %" PRId64 " is %" PRId64
                       " ranks but the job has %" PRId64 " (make the product equal to mpirun -np)",
                       o->dp, o->pp, o->tp, o->dp * o->pp * o->tp, world);
    if ((rc = must_divide("--layers", o->layers, "--pp", o->pp,
                          "each stage holds the same number of layers", err)) < 0 ||
        (rc = must_divide("--heads", o->heads, "--tp", o->tp,
                          "each shard holds the same number of heads", err)) < 0 ||
        (rc = must_divide("--d-model", o->d_model, "--heads", o->heads,
                          "all heads have the same width", err)) < 0 ||
        (rc = must_divide("--batch", o->batch, "--dp x --micro-batch", o->dp * o->micro_batch,
                          "each replica runs whole micro-batches", err)) < 0)
        return rc;
    if (o->min_lr > o->lr)
        return fr_fail(err, -EINVAL, "--min-lr %g: above --lr %g (lower it)", o->min_lr, o->lr);
    for (int i = 0; i < o->pause_count; i++)
        if (o->pause[i].rank >= world)
            return fr_fail(err, -EINVAL,
                           "--pause: rank %" PRId64 " is not in a job of %" PRId64
                           " ranks (ranks count from 0)",
                           o->pause[i].rank, world);
    return 0;
}

void fr_options_help(void)
{
    printf(
        "usage: mpirun -np N fullrank-train [OPTION]...\n\n"
        "Trains a byte-level GPT on N = dp x pp x tp ranks. The reference workload of fullrank:\n"
        "deterministic, checkpointed, bit-exact after a restart.\n\n");
    for (size_t i = 0; i < ROWS; i++) {
        char left[64];

        snprintf(left, sizeof left, "--%s%s%s", table[i].name, table[i].argument ? " " : "",
                 table[i].argument ? table[i].argument : "");
        printf("  %-28s%s%s", left, strlen(left) >= 28 ? "\n                              " : "",
               table[i].help);
        if (table[i].fallback)
            printf(" [%s]", table[i].fallback);
        printf("\n");
    }
    printf("\nexit status: 0 done; 1 it could not run; 2 the command line is wrong\n");
}

double fr_options_pause_s(const struct fr_options *o, enum fr_pause_kind kind, int64_t step,
                          int64_t rank)
{
    double seconds = 0;

    for (int i = 0; i < o->pause_count; i++)
        if (o->pause[i].kind == kind && o->pause[i].step == step &&
            (o->pause[i].rank == rank || o->pause[i].rank < 0))
            seconds += o->pause[i].seconds;
    return seconds;
}
