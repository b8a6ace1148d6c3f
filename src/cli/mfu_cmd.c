/* SPDX-License-Identifier: Apache-2.0 */
/* mfu_cmd.c - `fullrank mfu`: model, accelerator and step time in, MFU in both conventions out */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/jsonw.h"
#include "cli/cmd.h"
#include "cli/out.h"
#include "perf/mfu.h"
#include "perf/peak.h"

#define CONFIG_MAX_BYTES (1u << 20)
#define PEAKS_MAX        8

struct question {
    struct fr_mfu_input in;
    const struct fr_peak *peaks[PEAKS_MAX];
    int npeaks; /* 0: the peak was given */
    bool both;
    enum fr_attention asked;
};

/* A file wins over a built-in name only when it is written as a path or no such model is built in. */
static int load_model(const char *model, struct fr_shape *ret, struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf text = FR_BUF_INIT;
    const struct fr_shape *s = strchr(model, '/') ? NULL : fr_shape_find(model);
    char names[400] = "";
    size_t at = 0;
    int rc;

    if (s) {
        *ret = *s;
        return 0;
    }
    if (access(model, F_OK) == 0) {
        rc = fr_fs_read(model, CONFIG_MAX_BYTES, &text, err);
        return rc < 0 ? rc : fr_shape_from_json(fr_buf_str(&text), text.len, model, ret, err);
    }
    for (size_t i = 0; (s = fr_shape_at(i)) && at < sizeof names - 70; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", s->name);
    return fr_fail(err, -ENOENT, "no model and no file '%.80s' (built in: %s)", model, names);
}

static int settle_peak(const struct fr_cli *cli, struct question *q, struct fr_err *err)
{
    if (!isnan(cli->peak)) {
        if (!(cli->peak > 0) || !isfinite(cli->peak))
            return fr_fail(err, -EINVAL, "--peak must be above 0");
        q->in.peak_tflops = cli->peak;
        return 0;
    }
    if (!cli->gpu || !cli->precision)
        return fr_fail(err, -EINVAL,
                       "say --gpu NAME and --precision bf16|fp8|fp4, or --peak TFLOPS: they are "
                       "never guessed");
    q->npeaks = fr_peak_find(cli->gpu, cli->precision, q->peaks, PEAKS_MAX, err);
    if (q->npeaks < 0)
        return q->npeaks;
    q->in.peak_tflops = q->peaks[0]->tflops;
    return 0;
}

static int settle(const struct fr_cli *cli, struct question *q, struct fr_err *err)
{
    struct fr_mfu_input *in = &q->in;
    int rc;

    if (!cli->model)
        return fr_fail(err, -EINVAL, "say --model NAME|FILE");
    rc = load_model(cli->model, &in->shape, err);
    if (rc < 0)
        return rc;
    if (cli->mtp >= 0)
        in->shape.mtp = cli->mtp;
    if (cli->vocab >= 0)
        in->shape.vocab = cli->vocab;
    in->seq = cli->seq >= 0 ? cli->seq : in->shape.seq;
    in->gpus = cli->gpus;
    in->global_batch = cli->global_batch;
    in->step_time_s = cli->step_time;
    rc = fr_shape_check(&in->shape, err);
    if (rc < 0)
        return rc;
    if (in->gpus < 1 || in->global_batch < 1)
        return fr_fail(err, -EINVAL, "--gpus and --global-batch must be given and above 0");
    if (in->seq < 1)
        return fr_fail(err, -EINVAL, "%s: the sequence length is not known: give --seq L",
                       in->shape.name);
    if (!(in->step_time_s > 0) || !isfinite(in->step_time_s))
        return fr_fail(err, -EINVAL, "--step-time must be given and above 0");
    q->both = !cli->attention;
    if (cli->attention && strcmp(cli->attention, "full") == 0)
        q->asked = FR_ATTENTION_FULL;
    else if (cli->attention && strcmp(cli->attention, "causal") != 0)
        return fr_fail(err, -EINVAL, "--attention must be causal or full, not '%.40s'",
                       cli->attention);
    return settle_peak(cli, q, err);
}

static void write_result(struct fr_jsonw *w, const struct question *q, enum fr_attention a)
{
    struct fr_mfu_result r;

    fr_mfu_compute(&q->in, a, &r);
    fr_jsonw_str(w, "attention", fr_attention_name(a));
    fr_jsonw_num(w, "tflop_per_token", r.tflop_per_token);
    fr_jsonw_num(w, "model_tflop_per_step", r.model_tflop_per_step);
    fr_jsonw_num(w, "achieved_tflops_per_gpu", r.achieved_tflops_per_gpu);
    fr_jsonw_num(w, "tokens_per_s_per_gpu", r.tokens_per_s_per_gpu);
    fr_jsonw_num(w, "tokens_per_s", r.tokens_per_s);
    fr_jsonw_num(w, "mfu_ratio", r.mfu_ratio);
}

static void write_json(const struct question *q, const struct fr_cli *cli, struct fr_buf *b)
{
    const struct fr_mfu_input *in = &q->in;
    struct fr_mfu_result r;
    struct fr_jsonw w;

    fr_mfu_compute(in, q->asked, &r);
    fr_jsonw_init(&w, b);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "schema", "fullrank.mfu/1");
    write_result(&w, q, q->asked);
    if (q->both) {
        fr_jsonw_arr(&w, "conventions");
        for (int a = 0; a < FR_ATTENTIONS; a++) {
            fr_jsonw_obj(&w, NULL);
            write_result(&w, q, (enum fr_attention)a);
            fr_jsonw_end_obj(&w);
        }
        fr_jsonw_end_arr(&w);
    }
    fr_jsonw_num(&w, "peak_tflops", in->peak_tflops);
    fr_jsonw_str(&w, "peak_source",
                 q->npeaks ? fr_peak_source_text(q->peaks[0]->source) : "--peak");
    fr_jsonw_arr(&w, "other_peaks"); /* the same step against what others state */
    for (int i = 1; i < q->npeaks; i++) {
        if (q->peaks[i]->tflops == in->peak_tflops)
            continue;
        fr_jsonw_obj(&w, NULL);
        fr_jsonw_num(&w, "peak_tflops", q->peaks[i]->tflops);
        fr_jsonw_str(&w, "peak_source", fr_peak_source_text(q->peaks[i]->source));
        fr_jsonw_num(&w, "mfu_ratio", r.achieved_tflops_per_gpu / q->peaks[i]->tflops);
        fr_jsonw_end_obj(&w);
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_str(&w, "model", in->shape.name);
    fr_jsonw_str(&w, "model_source", in->shape.source);
    fr_jsonw_str(&w, "gpu", q->npeaks ? q->peaks[0]->name : cli->gpu);
    fr_jsonw_str(&w, "precision", q->npeaks ? q->peaks[0]->precision : cli->precision);
    fr_jsonw_int(&w, "gpus", in->gpus);
    fr_jsonw_num(&w, "step_time_s", in->step_time_s);
    fr_jsonw_int(&w, "global_batch", in->global_batch);
    fr_jsonw_int(&w, "seq", in->seq);
    fr_jsonw_str(&w, "seq_source", cli->seq >= 0 ? "--seq" : "model");
    fr_jsonw_int(&w, "mtp_layers", in->shape.mtp);
    fr_jsonw_int(&w, "vocab", in->shape.vocab);
    fr_jsonw_bool(&w, "impossible", r.mfu_ratio > 1);
    fr_jsonw_end_obj(&w);
    fr_buf_putc(b, '\n');
}

static void print_people(const struct question *q, struct fr_buf *b)
{
    const struct fr_mfu_input *in = &q->in;
    bool above = false;

    fr_table_safe(b, in->shape.name);
    fr_buf_printf(b, ", %lld GPUs, %lld sequences of %lld tokens in %.6g s\n", (long long)in->gpus,
                  (long long)in->global_batch, (long long)in->seq, in->step_time_s);
    for (int a = 0; a < FR_ATTENTIONS; a++) {
        struct fr_mfu_result r;

        if (!q->both && a != (int)q->asked)
            continue;
        fr_mfu_compute(in, (enum fr_attention)a, &r);
        fr_buf_printf(b,
                      "%-6s attention: %.6g TFLOP/token, %.6g TFLOP/s/GPU, %.6g tokens/s/GPU, "
                      "MFU %.2f %%\n",
                      fr_attention_name((enum fr_attention)a), r.tflop_per_token,
                      r.achieved_tflops_per_gpu, r.tokens_per_s_per_gpu, 100 * r.mfu_ratio);
        above |= r.mfu_ratio > 1;
    }
    fr_buf_printf(b, "peak %.6g TFLOP/s (%s)\n", in->peak_tflops,
                  q->npeaks ? fr_peak_source_text(q->peaks[0]->source) : "--peak");
    if (above)
        fr_buf_puts(b, "above 100 %: impossible, look at peak, precision, batch and step time\n");
}

int fr_cmd_mfu(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    struct question q = {.asked = FR_ATTENTION_CAUSAL};

    (void)n;
    (void)operands;
    if (settle(cli, &q, &err) < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    if (cli->format == FR_FORMAT_TABLE)
        print_people(&q, &b);
    else
        write_json(&q, cli, &b);
    fr_out_write(&b);
    return 0;
}
