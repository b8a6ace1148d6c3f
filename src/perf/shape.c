/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c - see shape.h */
#include "perf/shape.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const struct fr_shape MODELS[] = {
#include "perf/models.def"
};

/* The next character of a name that counts, lower case; 0 at its end. */
static int next_letter(const char **p)
{
    while (**p && !isalnum((unsigned char)**p))
        (*p)++;
    return **p ? tolower((unsigned char)*(*p)++) : 0;
}

static bool is_same_name(const char *a, const char *b)
{
    int x, y;

    do {
        x = next_letter(&a);
        y = next_letter(&b);
        if (x != y)
            return false;
    } while (x);
    return true;
}

const struct fr_shape *fr_shape_at(size_t i)
{
    return i < sizeof MODELS / sizeof MODELS[0] ? &MODELS[i] : NULL;
}

const struct fr_shape *fr_shape_find(const char *name)
{
    for (size_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++)
        if (is_same_name(MODELS[i].name, name))
            return &MODELS[i];
    return NULL;
}

const char *fr_attention_name(enum fr_attention a)
{
    return a == FR_ATTENTION_FULL ? "full" : "causal";
}

int fr_shape_check(const struct fr_shape *s, struct fr_err *err)
{
    const struct {
        const char *name;
        int64_t value, least;
    } bounds[] = {
        {"layers", s->layers, 1},
        {"hidden", s->hidden, 1},
        {"heads", s->heads, 1},
        {"kv_heads", s->kv_heads, s->kv_lora ? 0 : 1},
        {"head_dim", s->head_dim, s->kv_lora ? 0 : 1},
        {"vocab", s->vocab, 1},
        {"ffn", s->ffn, s->experts && s->dense_layers == 0 ? 0 : 1},
        {"experts", s->experts, 0},
        {"experts_per_token", s->experts_per_token, s->experts ? 1 : 0},
        {"moe_ffn", s->expert_ffn, s->experts ? 1 : 0},
        {"shared_expert_ffn", s->shared_ffn, 0},
        {"dense_layers", s->dense_layers, 0},
        {"q_lora_rank", s->q_lora, 0},
        {"kv_lora_rank", s->kv_lora, 0},
        {"qk_nope_head_dim", s->nope_dim, 0},
        {"qk_rope_head_dim", s->rope_dim, 0},
        {"v_head_dim", s->v_dim, s->kv_lora ? 1 : 0},
        {"sliding_window", s->window, s->window_layers ? 1 : 0},
        {"window_layers", s->window_layers, 0},
        {"mtp_layers", s->mtp, 0},
        {"seq", s->seq, 0},
    };

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (bounds[i].value < bounds[i].least || bounds[i].value > 1000000000)
            return fr_fail(err, -EINVAL, "%s: %s must be from %lld to 1000000000, not %lld",
                           s->name, bounds[i].name, (long long)bounds[i].least,
                           (long long)bounds[i].value);
    if (s->dense_layers > s->layers || s->window_layers > s->layers)
        return fr_fail(err, -EINVAL, "%s: more dense or windowed layers than layers", s->name);
    if (s->experts && s->experts_per_token > s->experts)
        return fr_fail(err, -EINVAL, "%s: more experts for a token than there are", s->name);
    if (!s->kv_lora && s->kv_heads > s->heads)
        return fr_fail(err, -EINVAL, "%s: more kv_heads than heads", s->name);
    return 0;
}

/* How many scores a query has on average with a causal mask. */
static double keys_per_query(int64_t seq, int64_t window)
{
    double s = (double)seq, w = (double)window;

    return window && window < seq ? w - w * (w - 1) / (2 * s) : s / 2;
}

/* Multiply-adds of one layer's attention for one token, without the scores. */
static double projections(const struct fr_shape *s)
{
    double h = (double)s->hidden, a = (double)s->heads, d = (double)s->head_dim;
    double qk = (double)(s->nope_dim + s->rope_dim), v = (double)s->v_dim;
    double ql = (double)s->q_lora, kvl = (double)s->kv_lora;

    if (!s->kv_lora)
        return h * d * (a + 2 * (double)s->kv_heads) + a * d * h;
    return (s->q_lora ? ql * (h + a * qk + 1) : h * a * qk) +
           kvl * (h + a * ((double)s->nope_dim + v) + 1) + h * (double)s->rope_dim + a * v * h;
}

/* Multiply-adds of one layer's scores and weighted values for one token and key. */
static double scores(const struct fr_shape *s)
{
    double a = (double)s->heads;

    return s->kv_lora ? a * (double)(s->nope_dim + s->rope_dim + s->v_dim)
                      : 2 * a * (double)s->head_dim;
}

double fr_shape_flops_per_token(const struct fr_shape *s, int64_t seq, enum fr_attention a)
{
    double h = (double)s->hidden, layers = (double)(s->layers + s->mtp), mtp = (double)s->mtp;
    double matrices = s->gated ? 3 : 2, c = a == FR_ATTENTION_FULL ? 2 : 1;
    double dense = (double)(s->experts ? s->dense_layers : s->layers + s->mtp);
    double moe = layers - dense, windowed = (double)s->window_layers;
    double sum = layers * projections(s);

    sum += c * scores(s) *
           (windowed * keys_per_query(seq, s->window) + (layers - windowed) * keys_per_query(seq, 0));
    sum += matrices * h * (double)s->ffn * dense;
    sum += matrices * h * moe *
           ((double)s->expert_ffn * (double)s->experts_per_token + (double)s->shared_ffn);
    sum += mtp * (3 * h + 2 * h * h) + h * (double)s->vocab * (mtp + 1);
    return 6 * sum;
}
