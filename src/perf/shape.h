/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h - the shape of a transformer and the FLOPs of one training token
 *
 * MFU needs model FLOPs, and model FLOPs need a shape: one struct that holds dense models, grouped
 * queries, experts, latent attention (MLA), sliding windows and layers that predict further tokens
 * (MTP). The same struct is filled from the built-in table (models.def), from a file of our own
 * keys, or from a Hugging Face config.json.
 *
 * Counted: forward and backward of all matrix products (3 x forward), logits included. Not counted:
 * recomputation, reading the embedding table, norms, router, softmax.
 * Causal counts what the mask leaves of a head's scores (half of them), full counts all.
 *
 * Unit:    FLOP per token.
 * Source:  formulas: NVIDIA-NeMo/Megatron-Bridge@067f987 training/utils/flop_utils.py; PaLM
 * (arXiv 2204.02311) appendix B for the full convention.
 */
#ifndef FR_PERF_SHAPE_H
#define FR_PERF_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

enum fr_attention { FR_ATTENTION_CAUSAL = 0, FR_ATTENTION_FULL, FR_ATTENTIONS };

struct fr_shape {
    char name[64];
    char source[160];
    int64_t layers, hidden, heads, kv_heads, head_dim, vocab;
    int64_t ffn; /* width of the feed-forward net of a dense layer */
    bool gated;  /* three matrices in it instead of two */
    /* experts: 0 none */
    int64_t experts, experts_per_token, expert_ffn;
    int64_t shared_ffn;   /* width of all shared experts together */
    int64_t dense_layers; /* layers without experts; all of them when experts is 0 */
    /* latent attention: kv_lora 0: none; q_lora 0: queries are not compressed */
    int64_t q_lora, kv_lora, nope_dim, rope_dim, v_dim;
    int64_t window, window_layers; /* so many layers look back at most window tokens */
    int64_t mtp;                   /* further layers that predict further tokens */
    int64_t seq;                   /* usual length in training, 0: not told */
};

/* Find a built-in model; case, '-', '_', '.' and blanks do not matter. NULL: none. */
const struct fr_shape *fr_shape_find(const char *name);
/* The i-th built-in model, NULL behind the last. */
const struct fr_shape *fr_shape_at(size_t i);

/* From a JSON file: our own keys (those of this struct) or a Hugging Face config.json. -EINVAL with
 * the reason: a key is missing, or the model is of a kind whose FLOPs are not known here. */
int fr_shape_from_json(const char *text, size_t n, const char *name, struct fr_shape *ret,
                       struct fr_err *err);

/* 0, or -EINVAL with what is wrong with a shape. */
int fr_shape_check(const struct fr_shape *s, struct fr_err *err);

/* FLOPs of one token of a sequence of seq tokens, forward and backward. */
double fr_shape_flops_per_token(const struct fr_shape *s, int64_t seq, enum fr_attention a);

const char *fr_attention_name(enum fr_attention a);

#endif /* FR_PERF_SHAPE_H */
