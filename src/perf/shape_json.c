/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_json.c - a model's shape from JSON
 *
 * Publishers name the same thing differently; one table says which names mean which field, and the
 * rules below it say what the names alone do not: which layers have experts or a window, and
 * whether the feed-forward net is gated.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "perf/shape.h"

#define MAX_NAMES 9
#define AT(f)     offsetof(struct fr_shape, f)

static const struct {
    size_t field;
    const char *names[MAX_NAMES]; /* the first that is there wins */
} KEYS[] = {
    {AT(layers), {"layers", "num_hidden_layers", "num_layers", "n_layer", "n_layers"}},
    {AT(hidden), {"hidden", "hidden_size", "n_embd", "d_model", "dim"}},
    {AT(heads), {"heads", "num_attention_heads", "n_head", "n_heads", "num_heads"}},
    {AT(kv_heads),
     {"kv_heads", "num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv",
      "num_query_groups", "kv_n_heads"}},
    {AT(head_dim), {"head_dim", "kv_channels", "attention_head_dim"}},
    {AT(vocab), {"vocab", "vocab_size", "padded_vocab_size"}},
    {AT(ffn),
     {"ffn_dense", "ffn", "intermediate_size_mlp", "intermediate_size", "ffn_hidden_size",
      "n_inner", "ffn_dim", "inner_hidden_size"}},
    {AT(experts),
     {"experts", "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts",
      "num_moe_experts"}},
    {AT(experts_per_token),
     {"experts_per_token", "num_experts_per_tok", "num_experts_per_token", "num_selected_experts",
      "moe_top_k", "moe_topk", "moe_router_topk", "moe_k"}},
    {AT(expert_ffn), {"moe_ffn", "expert_ffn", "moe_intermediate_size", "moe_ffn_hidden_size"}},
    {AT(shared_ffn),
     {"shared_expert_ffn", "shared_expert_intermediate_size",
      "moe_shared_expert_intermediate_size"}},
    {AT(dense_layers), {"dense_layers", "first_k_dense_replace"}},
    {AT(q_lora), {"q_lora_rank"}},
    {AT(kv_lora), {"kv_lora_rank"}},
    {AT(nope_dim), {"qk_nope_head_dim"}},
    {AT(rope_dim), {"qk_rope_head_dim"}},
    {AT(v_dim), {"v_head_dim"}},
    {AT(window), {"sliding_window", "window"}},
    {AT(window_layers), {"window_layers"}},
    {AT(mtp), {"mtp_layers", "num_nextn_predict_layers", "mtp_num_layers", "mtp_num_hidden_layers"}},
    {AT(seq), {"seq", "seq_length", "seq_len"}},
};

/* Kinds whose layers are not all attention and feed-forward, or not one stack of them. */
static const char *const UNLIKE[] = {"hybrid_override_pattern", "mamba_d_state",
                                     "ssm_state_size",          "mamba_num_heads",
                                     "state_size",              "linear_num_value_heads",
                                     "num_decoder_layers",      "decoder_layers",
                                     "layers_block_type",       "lru_width", "ssm_cfg"};

/* Families of plain (two matrices) feed-forward nets; others of Hugging Face are gated. */
static const char *const PLAIN[] = {
    "gpt2",     "gpt_neo",  "gpt_neox", "gptj", "opt",       "bloom",     "falcon", "mpt",
    "phi",      "nemotron", "codegen",  "bert", "roberta",   "gpt_bigcode", "starcoder2",
    "persimmon", "stablelm_alpha", "xglm", "biogpt", "fuyu"};

static bool get_int(const struct fr_json *o, const char *key, int64_t *ret)
{
    double v = fr_json_value_num(fr_json_get(o, key), -1);

    if (v < 0 || v > 1e15)
        return false;
    *ret = (int64_t)v;
    return true;
}

static bool is_plain(const struct fr_json *o)
{
    const char *type = fr_json_str(o, "model_type", "");

    for (size_t i = 0; i < sizeof PLAIN / sizeof PLAIN[0]; i++)
        if (strcmp(type, PLAIN[i]) == 0)
            return true;
    return false;
}

static void settle_gate(const struct fr_json *o, struct fr_shape *s)
{
    const char *own[] = {"gated_mlp", "gated", "gated_linear_unit"};

    s->gated = !is_plain(o);
    for (size_t i = 0; i < 3; i++)
        if (!fr_json_is_null(fr_json_get(o, own[i])))
            s->gated = fr_json_bool(o, own[i], s->gated);
}

/* Falcon: one pair of keys and values for all heads, or as many as are said. */
static void settle_heads(const struct fr_json *o, struct fr_shape *s)
{
    const struct fr_json *attn = fr_json_get(o, "attn_config"); /* DBRX, MPT */
    int64_t rotary;

    if (!s->kv_heads && attn)
        get_int(attn, "kv_n_heads", &s->kv_heads);
    if (strcmp(fr_json_str(o, "model_type", ""), "falcon") == 0 &&
        !fr_json_bool(o, "new_decoder_architecture", false))
        s->kv_heads = fr_json_bool(o, "multi_query", true) ? 1 : s->heads;
    if (strcmp(fr_json_str(o, "model_type", ""), "gpt_bigcode") == 0)
        s->kv_heads = fr_json_bool(o, "multi_query", true) ? 1 : s->heads;
    if (!s->kv_heads)
        s->kv_heads = s->heads;
    if (!s->head_dim && s->heads > 0)
        s->head_dim = s->hidden / s->heads;
    /* rope_dim alone (without latent attention) says how much of a head is rotated */
    if (!s->kv_lora && get_int(o, "qk_rope_head_dim", &rotary))
        s->rope_dim = s->nope_dim = 0;
}

/* Layers without experts. */
static void settle_experts(const struct fr_json *o, struct fr_shape *s)
{
    const struct fr_json *ffn = fr_json_get(o, "ffn_config"), *only, *freq;
    int64_t step = 0, shared = 0;

    if (ffn) { /* DBRX */
        get_int(ffn, "ffn_hidden_size", &s->ffn);
        get_int(ffn, "moe_num_experts", &s->experts);
        get_int(ffn, "moe_top_k", &s->experts_per_token);
    }
    if (s->experts <= 1 && s->experts_per_token <= 1 && !s->shared_ffn) {
        s->experts = s->experts_per_token = s->expert_ffn = s->dense_layers = 0;
        return;
    }
    if (!s->expert_ffn)
        get_int(o, "intermediate_size", &s->expert_ffn); /* Llama 4: beside intermediate_size_mlp */
    if (!s->expert_ffn)
        s->expert_ffn = s->ffn;
    if (!s->shared_ffn && (get_int(o, "n_shared_experts", &shared) ||
                           get_int(o, "num_shared_experts", &shared) ||
                           get_int(o, "moe_num_shared_experts", &shared)))
        s->shared_ffn = shared * s->expert_ffn;
    if (!s->shared_ffn && strncmp(fr_json_str(o, "model_type", ""), "llama4", 6) == 0)
        s->shared_ffn = s->expert_ffn; /* one shared expert, not said in the file */
    if (s->dense_layers == 0 &&
        (get_int(o, "interleave_moe_layer_step", &step) || get_int(o, "decoder_sparse_step", &step) ||
         get_int(o, "moe_layer_freq", &step)) &&
        step > 1)
        s->dense_layers = s->layers - s->layers / step;
    only = fr_json_get(o, "mlp_only_layers");
    if (step <= 1 && fr_json_len(only))
        s->dense_layers += (int64_t)fr_json_len(only);
    freq = fr_json_get(o, "moe_layer_freq"); /* a list of 0 and 1 */
    if (fr_json_len(freq)) {
        s->dense_layers = 0;
        for (size_t i = 0; i < fr_json_len(freq); i++)
            s->dense_layers += fr_json_value_num(fr_json_at(freq, i), 1) == 0;
    }
}

/* Layers that look back at a window only. */
static void settle_window(const struct fr_json *o, struct fr_shape *s)
{
    const struct fr_json *types = fr_json_get(o, "layer_types");
    int64_t pattern = 0, from = 0;

    if (s->window_layers)
        return;
    if (!s->window)
        get_int(o, "attention_chunk_size", &s->window);
    if (!s->window || (!fr_json_is_null(fr_json_get(o, "use_sliding_window")) &&
                       !fr_json_bool(o, "use_sliding_window", true))) {
        s->window = 0;
        return;
    }
    if (fr_json_len(types)) {
        for (size_t i = 0; i < fr_json_len(types); i++) {
            const char *t = fr_json_value_str(fr_json_at(types, i), "");

            s->window_layers += strstr(t, "sliding") || strstr(t, "chunked");
        }
        return;
    }
    if (get_int(o, "sliding_window_pattern", &pattern) && pattern > 1)
        s->window_layers = s->layers - s->layers / pattern; /* every n-th sees all */
    else if (strcmp(fr_json_str(o, "model_type", ""), "gemma3_text") == 0)
        s->window_layers = s->layers - s->layers / 6;
    else if (strcmp(fr_json_str(o, "model_type", ""), "gemma2") == 0 ||
             strcmp(fr_json_str(o, "model_type", ""), "gpt_oss") == 0)
        s->window_layers = (s->layers + 1) / 2;
    else if (strncmp(fr_json_str(o, "model_type", ""), "llama4", 6) == 0)
        s->window_layers = s->layers - s->layers / 4;
    else if (get_int(o, "max_window_layers", &from) &&
             strncmp(fr_json_str(o, "model_type", ""), "qwen", 4) == 0)
        s->window_layers = from < s->layers ? s->layers - from : 0;
    else
        s->window_layers = s->layers;
}

static const char *unlike(const struct fr_json *o)
{
    for (size_t i = 0; i < sizeof UNLIKE / sizeof UNLIKE[0]; i++)
        if (!fr_json_is_null(fr_json_get(o, UNLIKE[i])))
            return UNLIKE[i];
    return fr_json_bool(o, "is_encoder_decoder", false) ? "is_encoder_decoder" : NULL;
}

int fr_shape_from_json(const char *text, size_t n, const char *name, struct fr_shape *ret,
                       struct fr_err *err)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *doc = NULL;
    struct fr_shape s = {.layers = 0};
    const struct fr_json *o;
    const char *odd;
    int rc = fr_json_parse(text, n, &doc, err);

    if (rc < 0)
        return fr_fail_in(err, rc, "%.100s", name);
    /* models that also see or hear keep the transformer's shape in a part of their own */
    o = fr_json_get(doc, "text_config");
    if (!o)
        o = fr_json_get(doc, "llm_config");
    if (!o)
        o = doc;
    odd = unlike(o);
    if (odd)
        return fr_fail(err, -EINVAL,
                       "%.100s: has %s: not a plain decoder, its FLOPs are not known here"
                       " (give tokens and TFLOP yourself)",
                       name, odd);
    snprintf(s.name, sizeof s.name, "%s", fr_json_str(doc, "name", name));
    snprintf(s.source, sizeof s.source, "%.150s", name);
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        for (size_t k = 0; k < MAX_NAMES && KEYS[i].names[k]; k++)
            if (get_int(o, KEYS[i].names[k], (int64_t *)(void *)((char *)&s + KEYS[i].field)))
                break;
    settle_gate(o, &s);
    settle_heads(o, &s);
    settle_experts(o, &s);
    settle_window(o, &s);
    if (!s.ffn && !s.experts)
        s.ffn = 4 * s.hidden; /* GPT-2 and its kin say nothing when it is four times */
    rc = fr_shape_check(&s, err);
    if (rc == 0)
        *ret = s;
    return rc;
}
