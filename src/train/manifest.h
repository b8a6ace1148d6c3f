/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - what makes a folder of shards a checkpoint, as bytes
 *
 * A shard is a rank's parameters and moments behind a 64-byte header. The
 * manifest is text: what wrote the checkpoint, then each shard's size and
 * XXH64, then the XXH64 of all lines before. It is written last, so a
 * checkpoint whose manifest does not verify does not exist. Here is only the
 * form; checkpoint.h does the files.
 *
 * Unit:    bytes; hashes are XXH64 with seed 0 (libxxhash, header only).
 * Threads: none shared.
 */
#ifndef FR_TRAIN_MANIFEST_H
#define FR_TRAIN_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define FR_MANIFEST_BYTES_MAX  ((size_t)8 << 20)
#define FR_MANIFEST_SHARDS_MAX 65536
#define FR_SHARD_HEADER_BYTES  64

struct fr_shard_sum {
    uint64_t bytes, hash;
};

/* In this order in the file; all are written as whole numbers. */
struct fr_manifest {
    uint64_t step;
    uint64_t dp, pp, tp;
    uint64_t layers, d_model, heads, seq;
    uint64_t batch, micro_batch, seed;
    uint64_t data_hash;
    uint64_t peak_flops; /* of one rank, so that a restart need not measure */
    uint64_t shards;
    struct fr_shard_sum *shard; /* owned, [shards] */
};

/* The text of *m; the caller frees *ret_text. Returns its length. */
size_t fr_manifest_format(const struct fr_manifest *m, char **ret_text);

/* Returns 0 and fills *ret (the caller ends it with fr_manifest_fini), or
 * -EBADMSG and what is wrong with the text. */
int fr_manifest_parse(const uint8_t *p, size_t n, struct fr_manifest *ret, struct fr_err *err);
void fr_manifest_fini(struct fr_manifest *m);

/* The header of a shard: magic, step, shard number, elements of each of the
 * three arrays that follow. */
struct fr_shard_header {
    uint64_t step, number, params;
};
void fr_shard_header_write(const struct fr_shard_header *h, uint8_t ret[FR_SHARD_HEADER_BYTES]);

/* Does the file p[n] hold what the manifest and this rank expect? Returns 0,
 * or -EBADMSG and why not. */
int fr_shard_verify(const uint8_t *p, size_t n, const struct fr_shard_sum *sum,
                    const struct fr_shard_header *expected, struct fr_err *err);

uint64_t fr_hash(const void *p, size_t n);

#endif /* FR_TRAIN_MANIFEST_H */
