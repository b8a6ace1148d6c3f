/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "kernels.h"

#define LINE 16 /* floats on a 64-byte line */

/* How the shards divide a tensor. */
enum split { SPLIT_NONE, SPLIT_ROWS, SPLIT_QKV, SPLIT_COLS };
enum init { INIT_ZERO, INIT_ONE, INIT_NORMAL, INIT_CLOSING };
enum unit { UNIT_1, UNIT_D, UNIT_3D, UNIT_4D, UNIT_V, UNIT_S, UNIT_COUNT };

static const struct kind_row {
    const char *name;
    enum unit rows, cols; /* of the whole tensor */
    enum split split;
    enum init init;
    bool decay;
} kinds[FR_KINDS] = {
    [FR_WTE] = {"wte", UNIT_V, UNIT_D, SPLIT_NONE, INIT_NORMAL, true},
    [FR_WPE] = {"wpe", UNIT_S, UNIT_D, SPLIT_NONE, INIT_NORMAL, true},
    [FR_LN1_W] = {"ln1.weight", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ONE, false},
    [FR_LN1_B] = {"ln1.bias", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ZERO, false},
    [FR_QKV_W] = {"qkv.weight", UNIT_3D, UNIT_D, SPLIT_QKV, INIT_NORMAL, true},
    [FR_QKV_B] = {"qkv.bias", UNIT_3D, UNIT_1, SPLIT_QKV, INIT_ZERO, false},
    [FR_PROJ_W] = {"proj.weight", UNIT_D, UNIT_D, SPLIT_COLS, INIT_CLOSING, true},
    [FR_PROJ_B] = {"proj.bias", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ZERO, false},
    [FR_LN2_W] = {"ln2.weight", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ONE, false},
    [FR_LN2_B] = {"ln2.bias", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ZERO, false},
    [FR_FC_W] = {"fc.weight", UNIT_4D, UNIT_D, SPLIT_ROWS, INIT_NORMAL, true},
    [FR_FC_B] = {"fc.bias", UNIT_4D, UNIT_1, SPLIT_ROWS, INIT_ZERO, false},
    [FR_FC2_W] = {"fc2.weight", UNIT_D, UNIT_4D, SPLIT_COLS, INIT_CLOSING, true},
    [FR_FC2_B] = {"fc2.bias", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ZERO, false},
    [FR_LNF_W] = {"lnf.weight", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ONE, false},
    [FR_LNF_B] = {"lnf.bias", UNIT_D, UNIT_1, SPLIT_NONE, INIT_ZERO, false},
};

const char *fr_kind_name(enum fr_kind kind)
{
    return kinds[kind].name;
}

static void fill_units(size_t unit[UNIT_COUNT], size_t d, size_t vocab, size_t seq)
{
    const size_t values[UNIT_COUNT] = {
        [UNIT_1] = 1,      [UNIT_D] = d,     [UNIT_3D] = 3 * d,
        [UNIT_4D] = 4 * d, [UNIT_V] = vocab, [UNIT_S] = seq,
    };

    memcpy(unit, values, sizeof values);
}

double fr_model_params_total(const struct fr_options *o)
{
    size_t unit[UNIT_COUNT];
    double total = 0;

    fill_units(unit, (size_t)o->d_model, FR_VOCAB, (size_t)o->seq);
    for (int k = 0; k < FR_KINDS; k++) {
        bool of_layer = k >= FR_LN1_W && k <= FR_FC2_B;
        total += (double)(unit[kinds[k].rows] * unit[kinds[k].cols]) *
                 (of_layer ? (double)o->layers : 1);
    }
    return total;
}

/* ---- tensors ---- */

/* Give the next tensor its place; returns it. */
static size_t add_tensor(struct fr_model *m, enum fr_kind kind, int64_t layer, bool counted)
{
    const struct kind_row *row = &kinds[kind];
    size_t unit[UNIT_COUNT], shards = (size_t)m->grid->tp.size, at = m->params;
    struct fr_tensor *t = &m->tensor[m->tensors++];

    fill_units(unit, m->d, m->vocab, m->seq);
    *t = (struct fr_tensor){kind, layer, at, unit[row->rows], unit[row->cols], counted, row->decay};
    if (row->split == SPLIT_ROWS || row->split == SPLIT_QKV)
        t->rows /= shards;
    else if (row->split == SPLIT_COLS)
        t->cols /= shards;
    else
        t->counted = counted && m->grid->tp.index == 0;
    m->params += (t->rows * t->cols + LINE - 1) / LINE * LINE;
    return at;
}

/* Standard normal number `index` of a stream (Box, Muller 1958). */
static double normal(uint64_t stream, uint64_t index)
{
    double u1 = (double)(fr_mix2(stream, 2 * index) >> 11) * 0x1p-53;
    double u2 = (double)(fr_mix2(stream, 2 * index + 1) >> 11) * 0x1p-53;

    return sqrt(-2 * log(1 - u1)) * cos(2 * M_PI * u2);
}

static void init_tensor(struct fr_model *m, const struct fr_tensor *t, uint64_t seed)
{
    const struct kind_row *row = &kinds[t->kind];
    size_t shard = (size_t)m->grid->tp.index, shards = (size_t)m->grid->tp.size;
    size_t cols_total = row->split == SPLIT_COLS ? t->cols * shards : t->cols;
    uint64_t stream = fr_mix2(fr_mix2(seed, 0x77656967687473), /* apart from the data's */
                              (uint64_t)(t->layer + 1) * FR_KINDS + t->kind);
    /* branches that add to the residual stream start smaller, as GPT-2's */
    double std = row->init == INIT_CLOSING ? 0.02 / sqrt(2.0 * (double)m->layers_total) : 0.02;

    for (size_t r = 0; r < t->rows; r++)
        for (size_t c = 0; c < t->cols; c++) {
            size_t row_total = r, col_total = c;
            float *w = &m->w[t->at + r * t->cols + c];

            if (row->split == SPLIT_ROWS)
                row_total = shard * t->rows + r;
            else if (row->split == SPLIT_QKV) /* q, k and v are split each for itself */
                row_total = r / m->dt * m->d + shard * m->dt + r % m->dt;
            else if (row->split == SPLIT_COLS)
                col_total = shard * t->cols + c;
            if (row->init == INIT_ONE)
                *w = 1;
            else if (row->init != INIT_ZERO)
                *w = (float)(std * normal(stream, row_total * cols_total + col_total));
        }
}

void fr_model_init(struct fr_model *m, const struct fr_options *o, const struct fr_grid *grid)
{
    *m = (struct fr_model){
        .grid = grid,
        .d = (size_t)o->d_model,
        .heads = (size_t)(o->heads / grid->tp.size),
        .seq = (size_t)o->seq,
        .vocab = FR_VOCAB,
        .micro_batch = (size_t)o->micro_batch,
        .dt = (size_t)(o->d_model / grid->tp.size),
        .n = (size_t)(o->micro_batch * o->seq),
        .layers = (size_t)(o->layers / grid->pp.size),
        .layers_total = (size_t)o->layers,
        .first = grid->pp.index == 0,
        .last = grid->pp.index == grid->pp.size - 1,
    };
    m->tensor = fr_zalloc(m->layers * FR_KINDS + 8, sizeof *m->tensor);
    m->layer = fr_zalloc(m->layers, sizeof *m->layer);
    if (m->first) {
        m->wte = add_tensor(m, FR_WTE, -1, true);
        m->wpe = add_tensor(m, FR_WPE, -1, true);
    }
    for (size_t l = 0; l < m->layers; l++)
        for (enum fr_kind k = FR_LN1_W; k <= FR_FC2_B; k++)
            m->layer[l].at[k] =
                add_tensor(m, k, (int64_t)((size_t)grid->pp.index * m->layers + l), true);
    if (m->last) {
        m->lnf_w = add_tensor(m, FR_LNF_W, -1, true);
        m->lnf_b = add_tensor(m, FR_LNF_B, -1, true);
    }
    if (m->last && !m->first)
        m->wte = add_tensor(m, FR_WTE, -1, false);

    m->w = fr_zalloc(m->params, sizeof *m->w);
    m->g = fr_zalloc(m->params, sizeof *m->g);
    m->m = fr_zalloc(m->params, sizeof *m->m);
    m->v = fr_zalloc(m->params, sizeof *m->v);
    for (size_t i = 0; i < m->tensors; i++)
        init_tensor(m, &m->tensor[i], (uint64_t)o->seed);

    m->branch = fr_zalloc(m->n * m->d, sizeof *m->branch);
    m->dqkv = fr_zalloc(m->n * 3 * m->dt, sizeof *m->dqkv);
    m->dheads = fr_zalloc(m->n * m->dt, sizeof *m->dheads);
    m->dln = fr_zalloc(m->n * m->d, sizeof *m->dln);
    m->dfc = fr_zalloc(m->n * 4 * m->dt, sizeof *m->dfc);
    m->scores = fr_zalloc(m->seq * m->seq, sizeof *m->scores);
}

void fr_model_fini(struct fr_model *m)
{
    void *all[] = {m->tensor, m->layer, m->w,      m->g,   m->m,   m->v,
                   m->branch, m->dqkv,  m->dheads, m->dln, m->dfc, m->scores};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    *m = (struct fr_model){0};
}

/* ---- activations ---- */

static float *carve(float *memory, size_t *at, size_t n)
{
    float *p = memory ? memory + *at : NULL;

    *at += (n + LINE - 1) / LINE * LINE;
    return p;
}

/* Lay the activations out in `memory`, or only count them when it is NULL. */
static size_t lay_out(struct fr_act *a, const struct fr_model *m, float *memory)
{
    size_t at = 0, nd = m->n * m->d, ndt = m->n * m->dt;

    for (size_t l = 0; l < m->layers; l++) {
        struct fr_layer_act *y = &a->layer[l];

        y->x = carve(memory, &at, nd);
        y->ln1 = carve(memory, &at, nd);
        y->mean1 = carve(memory, &at, m->n);
        y->rstd1 = carve(memory, &at, m->n);
        y->qkv = carve(memory, &at, 3 * ndt);
        y->probs = carve(memory, &at, m->micro_batch * m->heads * m->seq * m->seq);
        y->heads = carve(memory, &at, ndt);
        y->mid = carve(memory, &at, nd);
        y->ln2 = carve(memory, &at, nd);
        y->mean2 = carve(memory, &at, m->n);
        y->rstd2 = carve(memory, &at, m->n);
        y->fc = carve(memory, &at, 4 * ndt);
        y->gelu = carve(memory, &at, 4 * ndt);
    }
    a->out = carve(memory, &at, nd);
    a->dx = carve(memory, &at, nd);
    if (m->last) {
        a->lnf = carve(memory, &at, nd);
        a->meanf = carve(memory, &at, m->n);
        a->rstdf = carve(memory, &at, m->n);
        a->logits = carve(memory, &at, m->n * m->vocab);
    }
    return at;
}

void fr_act_init(struct fr_act *a, const struct fr_model *m)
{
    *a = (struct fr_act){.layer = fr_zalloc(m->layers, sizeof *a->layer)};
    a->memory = fr_zalloc(lay_out(a, m, NULL), sizeof *a->memory);
    lay_out(a, m, a->memory);
}

void fr_act_fini(struct fr_act *a)
{
    free(a->memory);
    free(a->layer);
    *a = (struct fr_act){0};
}

/* ---- passes ---- */

static struct fr_attention attention_of(const struct fr_model *m)
{
    return (struct fr_attention){m->micro_batch, m->seq, m->heads, m->dt / m->heads};
}

/* x -> out: out = mid + MLP(LN2(mid)), mid = x + attention(LN1(x)) */
static void layer_forward(const struct fr_model *m, const struct fr_layer *at,
                          struct fr_layer_act *y, float *out)
{
    const struct fr_attention shape = attention_of(m);
    const float *w[FR_KINDS] = {0};

    for (int k = FR_LN1_W; k <= FR_FC2_B; k++)
        w[k] = m->w + at->at[k];

    fr_layernorm_forward(y->ln1, y->mean1, y->rstd1, y->x, w[FR_LN1_W], w[FR_LN1_B], m->n, m->d);
    fr_linear_forward(y->qkv, y->ln1, w[FR_QKV_W], w[FR_QKV_B], m->n, m->d, 3 * m->dt);
    fr_attention_forward(&shape, y->heads, y->probs, y->qkv);
    /* each shard has the part of its heads: the branch is the sum over shards */
    fr_linear_forward(m->branch, y->heads, w[FR_PROJ_W], NULL, m->n, m->dt, m->d);
    fr_sum_f32(&m->grid->tp, m->branch, m->n * m->d);
    fr_residual(y->mid, y->x, m->branch, w[FR_PROJ_B], m->n, m->d);

    fr_layernorm_forward(y->ln2, y->mean2, y->rstd2, y->mid, w[FR_LN2_W], w[FR_LN2_B], m->n, m->d);
    fr_linear_forward(y->fc, y->ln2, w[FR_FC_W], w[FR_FC_B], m->n, m->d, 4 * m->dt);
    fr_gelu_forward(y->gelu, y->fc, m->n * 4 * m->dt);
    fr_linear_forward(m->branch, y->gelu, w[FR_FC2_W], NULL, m->n, 4 * m->dt, m->d);
    fr_sum_f32(&m->grid->tp, m->branch, m->n * m->d);
    fr_residual(out, y->mid, m->branch, w[FR_FC2_B], m->n, m->d);
}

/* dx[N,D]: gradient of the layer's output in, of its input out */
static void layer_backward(const struct fr_model *m, const struct fr_layer *at,
                           const struct fr_layer_act *y, float *dx)
{
    const struct fr_attention shape = attention_of(m);
    const float *w[FR_KINDS] = {0};
    float *g[FR_KINDS] = {0};

    for (int k = FR_LN1_W; k <= FR_FC2_B; k++) {
        w[k] = m->w + at->at[k];
        g[k] = m->g + at->at[k];
    }

    fr_linear_backward(m->dfc, g[FR_FC2_W], g[FR_FC2_B], dx, y->gelu, w[FR_FC2_W], m->n, 4 * m->dt,
                       m->d);
    fr_gelu_backward(m->dfc, m->dfc, y->fc, m->n * 4 * m->dt);
    fr_linear_backward(m->dln, g[FR_FC_W], g[FR_FC_B], m->dfc, y->ln2, w[FR_FC_W], m->n, m->d,
                       4 * m->dt);
    /* all shards read the same LN2(mid): its gradient is the sum over shards */
    fr_sum_f32(&m->grid->tp, m->dln, m->n * m->d);
    fr_layernorm_backward(dx, g[FR_LN2_W], g[FR_LN2_B], m->dln, y->mid, y->mean2, y->rstd2,
                          w[FR_LN2_W], m->n, m->d);

    fr_linear_backward(m->dheads, g[FR_PROJ_W], g[FR_PROJ_B], dx, y->heads, w[FR_PROJ_W], m->n,
                       m->dt, m->d);
    fr_attention_backward(&shape, m->dqkv, m->scores, m->dheads, y->probs, y->qkv);
    fr_linear_backward(m->dln, g[FR_QKV_W], g[FR_QKV_B], m->dqkv, y->ln1, w[FR_QKV_W], m->n, m->d,
                       3 * m->dt);
    fr_sum_f32(&m->grid->tp, m->dln, m->n * m->d);
    fr_layernorm_backward(dx, g[FR_LN1_W], g[FR_LN1_B], m->dln, y->x, y->mean1, y->rstd1,
                          w[FR_LN1_W], m->n, m->d);
}

void fr_model_forward(const struct fr_model *m, struct fr_act *a, const uint8_t *tokens)
{
    if (m->first)
        fr_embed_forward(a->layer[0].x, m->w + m->wte, m->w + m->wpe, tokens, m->n, m->seq, m->d);
    for (size_t l = 0; l < m->layers; l++)
        layer_forward(m, &m->layer[l], &a->layer[l],
                      l + 1 < m->layers ? a->layer[l + 1].x : a->out);
}

double fr_model_loss(const struct fr_model *m, struct fr_act *a, const uint8_t *targets,
                     float scale)
{
    fr_layernorm_forward(a->lnf, a->meanf, a->rstdf, a->out, m->w + m->lnf_w, m->w + m->lnf_b, m->n,
                         m->d);
    fr_linear_forward(a->logits, a->lnf, m->w + m->wte, NULL, m->n, m->d, m->vocab);
    return fr_cross_entropy(a->logits, targets, m->n, m->vocab, scale);
}

static void tell(const struct fr_ready *ready, size_t at, size_t end)
{
    if (ready && end > at)
        ready->call(ready->context, at, end - at);
}

void fr_model_backward(struct fr_model *m, struct fr_act *a, const uint8_t *tokens,
                       const struct fr_ready *ready)
{
    size_t end = m->params;

    if (m->last) {
        memset(a->dx, 0, m->n * m->d * sizeof *a->dx);
        fr_linear_backward(m->dln, m->g + m->wte, NULL, a->logits, a->lnf, m->w + m->wte, m->n,
                           m->d, m->vocab);
        fr_layernorm_backward(a->dx, m->g + m->lnf_w, m->g + m->lnf_b, m->dln, a->out, a->meanf,
                              a->rstdf, m->w + m->lnf_w, m->n, m->d);
        tell(ready, m->lnf_w, end);
        end = m->lnf_w;
    }
    for (size_t l = m->layers; l-- > 0;) {
        layer_backward(m, &m->layer[l], &a->layer[l], a->dx);
        tell(ready, m->layer[l].at[FR_LN1_W], end);
        end = m->layer[l].at[FR_LN1_W];
    }
    if (m->first) {
        fr_embed_backward(m->g + m->wte, m->g + m->wpe, a->dx, tokens, m->n, m->seq, m->d);
        tell(ready, 0, end);
    }
}
