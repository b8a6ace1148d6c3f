/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - one rank's part of the transformer: its tensors, forward, backward
 *
 * A rank holds the layers of its stage and, of each, its tensor shard: rows of
 * the QKV and first MLP matrices (whole heads), columns of the two matrices
 * that close a branch. Norms, closing biases and the embedding are the same on
 * all shards: a vocabulary of 256 is too small to be worth splitting. First and
 * last stage both hold the (tied) embedding when they are not the same rank.
 *
 * An initial weight is a function of the seed, its tensor and its index in the
 * whole tensor, so every grid starts from the same model.
 *
 * Shape:   N = micro_batch * S rows; D model width; T tensor shards; weights
 *          [out, in]. All tensors of a rank lie in one array, in the order of
 *          the pass, each on a 64-byte line; gradient and moments likewise.
 * Memory:  4 arrays of parameters, one set of activations a micro-batch in flight.
 * Threads: one owner.
 * Source:  llm.c; Shoeybi et al., "Megatron-LM", 2019, section 3.
 */
#ifndef FR_TRAIN_MODEL_H
#define FR_TRAIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "parallel.h"

enum fr_kind {
    FR_WTE, /* token embedding [V, D], also the unembedding */
    FR_WPE, /* position embedding [S, D] */
    FR_LN1_W,
    FR_LN1_B,
    FR_QKV_W,  /* [3, D/T, D] here */
    FR_QKV_B,  /* [3, D/T] */
    FR_PROJ_W, /* [D, D/T] */
    FR_PROJ_B,
    FR_LN2_W,
    FR_LN2_B,
    FR_FC_W,  /* [4D/T, D] */
    FR_FC_B,  /* [4D/T] */
    FR_FC2_W, /* [D, 4D/T] */
    FR_FC2_B,
    FR_LNF_W,
    FR_LNF_B,
    FR_KINDS
};

struct fr_tensor {
    enum fr_kind kind;
    int64_t layer;     /* in the whole model; -1: not of a layer */
    size_t at;         /* first element in the parameter array */
    size_t rows, cols; /* as held here */
    bool counted;      /* this rank stands for it in sums over the grid */
    bool decay;
};

struct fr_layer {
    size_t at[FR_KINDS]; /* of the kinds that a layer has */
};

/* What the forward pass of one micro-batch leaves for the backward pass. */
struct fr_layer_act {
    float *x; /* [N, D] input */
    float *ln1, *mean1, *rstd1;
    float *qkv;   /* [N, 3, D/T] */
    float *probs; /* [B, H/T, S, S] */
    float *heads; /* [N, D/T] */
    float *mid;   /* [N, D] after attention */
    float *ln2, *mean2, *rstd2;
    float *fc, *gelu; /* [N, 4D/T] */
};
struct fr_act {
    float *memory;              /* owned; all below point into it */
    struct fr_layer_act *layer; /* owned */
    float *out;                 /* [N, D] of the last layer here */
    float *lnf, *meanf, *rstdf;
    float *logits; /* [N, V], after the loss its gradient */
    float *dx;     /* [N, D] gradient of `out`, after the backward pass of `layer[0].x` */
};

struct fr_model {
    const struct fr_grid *grid; /* borrowed */
    size_t d, heads, seq, vocab, micro_batch;
    size_t dt;           /* D/T */
    size_t n;            /* rows of a micro-batch */
    size_t layers;       /* of this stage */
    size_t layers_total; /* of the model */
    bool first, last;
    struct fr_tensor *tensor;
    size_t tensors;
    struct fr_layer *layer;
    size_t wte, wpe, lnf_w, lnf_b; /* where they are here, if they are */
    size_t params;                 /* elements of the arrays below */
    float *w, *g, *m, *v;
    float *branch, *dqkv, *dheads, *dln, *dfc, *scores; /* scratch */
};

/* Called as soon as g[at .. at + count) is final. */
struct fr_ready {
    void (*call)(void *context, size_t at, size_t count);
    void *context;
};

void fr_model_init(struct fr_model *model, const struct fr_options *o, const struct fr_grid *grid);
void fr_model_fini(struct fr_model *model);

void fr_act_init(struct fr_act *act, const struct fr_model *model);
void fr_act_fini(struct fr_act *act);

/* Parameters of the whole model, each once. */
double fr_model_params_total(const struct fr_options *o);
const char *fr_kind_name(enum fr_kind kind);

/* tokens[N] -> act->out on the first stage, act->layer[0].x -> act->out on the
 * others. Collective over tp. */
void fr_model_forward(const struct fr_model *model, struct fr_act *act, const uint8_t *tokens);

/* Last stage: sum of the losses of the N rows; with `scale` not 0 leaves the
 * gradient of scale * loss for the backward pass. */
double fr_model_loss(const struct fr_model *model, struct fr_act *act, const uint8_t *targets,
                     float scale);

/* Add the gradients of this micro-batch to model->g; act->dx is the gradient of
 * act->out (the last stage makes it itself) and becomes that of the input.
 * `ready` (NULL: nobody waits) is told of each range in turn, the same ranges
 * in the same order on all ranks of a stage. Collective over tp. */
void fr_model_backward(struct fr_model *model, struct fr_act *act, const uint8_t *tokens,
                       const struct fr_ready *ready);

#endif /* FR_TRAIN_MODEL_H */
