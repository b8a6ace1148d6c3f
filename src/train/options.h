/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line as one struct, filled from one table
 *
 * The table (options.c) gives parsing, limits, defaults and --help. What can
 * be refused without looking at the machine is refused here: all ranks read
 * the same command line, so all come to the same answer without a message.
 *
 * Threads: none shared.
 */
#ifndef FR_TRAIN_OPTIONS_H
#define FR_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

#define FR_DATA_MAX  64
#define FR_PAUSE_MAX 256
#define FR_VOCAB     256 /* a token is a byte */

/* Legitimate stalls for drills: where a rank stops for a while. */
enum fr_pause_kind {
    FR_PAUSE_LOADER,     /* sleeps before the batch is read */
    FR_PAUSE_COMPILE,    /* keeps its CPU busy before the batch is read */
    FR_PAUSE_CHECKPOINT, /* sleeps inside the checkpoint phase */
    FR_PAUSE_EVAL,       /* sleeps inside the evaluation phase */
    FR_PAUSE_KINDS
};

struct fr_pause {
    enum fr_pause_kind kind;
    int64_t step;
    int64_t rank; /* -1: all */
    double seconds;
};

struct fr_options {
    int64_t dp, pp, tp;
    int64_t layers, d_model, heads, seq;
    int64_t batch, micro_batch; /* sequences a step of the whole job; of one micro-batch */
    int64_t steps, warmup, seed;
    double lr, min_lr, weight_decay, clip;
    const char *data[FR_DATA_MAX];
    int data_count;
    int64_t eval_every, eval_batches;
    const char *checkpoint_dir; /* NULL: no checkpoints */
    int64_t checkpoint_every, keep;
    bool resume;
    const char *loss_file; /* NULL: none */
    double peak_flops;     /* of one rank; 0: measure */
    int64_t log_every;
    bool quiet, grad_check, help, version;
    struct fr_pause pause[FR_PAUSE_MAX];
    int pause_count;
};

/* Fill *ret from the command line; strings stay borrowed from argv. Returns 0,
 * or -EINVAL and a sentence. --help and --version win over everything. */
int fr_options_parse(int argc, char *const argv[], struct fr_options *ret, struct fr_err *err);

/* Refuse numbers that do not fit each other or a job of `world` ranks.
 * Returns 0, or -EINVAL and a sentence that says what to change. */
int fr_options_check(const struct fr_options *o, int64_t world, struct fr_err *err);

/* Write the text of --help to stdout. */
void fr_options_help(void);

/* Seconds that `rank` shall stand still at `step`; 0: none. */
double fr_options_pause_s(const struct fr_options *o, enum fr_pause_kind kind, int64_t step,
                          int64_t rank);

#endif /* FR_TRAIN_OPTIONS_H */
