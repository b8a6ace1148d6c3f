/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - the corpus, and which bytes of it each step reads
 *
 * All files are read into one array, in the order given; a folder gives its
 * regular files by name (links are left out: they would repeat a text). The
 * last tenth is kept for evaluation. Which bytes sample i of step n holds is a
 * pure function of (seed, split, n, i): there is no reader's state to save,
 * and neither the grid nor a restart can change the order.
 *
 * Unit:    bytes = tokens.
 * Memory:  the whole corpus, at most FR_DATA_BYTES_MAX.
 * Threads: read only after fr_data_open.
 */
#ifndef FR_TRAIN_DATA_H
#define FR_TRAIN_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define FR_DATA_BYTES_MAX ((size_t)1 << 31)

enum fr_split { FR_SPLIT_TRAIN = 0, FR_SPLIT_EVAL = 1 };

struct fr_data {
    uint8_t *bytes; /* owned */
    size_t len;
    size_t train_len; /* bytes [0, train_len) train, the rest evaluate */
    uint64_t hash;    /* XXH64 of all bytes */
};

/* Read `paths`; each split must hold a sequence of seq + 1 bytes. Returns 0;
 * -errno of the file that failed; -ENODATA when there is too little text;
 * -EFBIG. Blocks on the disk. */
int fr_data_open(const char *const *paths, int count, size_t seq, struct fr_data *ret,
                 struct fr_err *err);
void fr_data_close(struct fr_data *data);

/* Copy sample `index` of `step` (seq + 1 bytes: inputs and, one on, targets). */
void fr_data_sample(const struct fr_data *data, enum fr_split split, uint64_t seed, uint64_t step,
                    uint64_t index, size_t seq, uint8_t *ret_tokens);

/* A fixed bijection that scrambles 64 bits, and the mixing of it with a second
 * number: the only source of randomness in the trainer. */
uint64_t fr_mix(uint64_t x);
uint64_t fr_mix2(uint64_t a, uint64_t b);

#endif /* FR_TRAIN_DATA_H */
