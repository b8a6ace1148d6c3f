/* SPDX-License-Identifier: Apache-2.0 */
/* mfu.c - see mfu.h */
#include "perf/mfu.h"

void fr_mfu_compute(const struct fr_mfu_input *in, enum fr_attention a, struct fr_mfu_result *ret)
{
    double tokens = (double)in->seq * (double)in->global_batch, gpus = (double)in->gpus;
    double flops = fr_shape_flops_per_token(&in->shape, in->seq, a);

    ret->tflop_per_token = flops * 1e-12;
    ret->model_tflop_per_step = flops * tokens * 1e-12;
    ret->tokens_per_s = tokens / in->step_time_s;
    ret->tokens_per_s_per_gpu = ret->tokens_per_s / gpus;
    ret->achieved_tflops_per_gpu = ret->model_tflop_per_step / in->step_time_s / gpus;
    ret->mfu_ratio = ret->achieved_tflops_per_gpu / in->peak_tflops;
}
