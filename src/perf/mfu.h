/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mfu.h - MFU of a step: model FLOPs over what the accelerators could have done in that time
 *
 * Unit:    TFLOP (1e12), TFLOP/s, seconds, tokens.
 */
#ifndef FR_PERF_MFU_H
#define FR_PERF_MFU_H

#include "perf/shape.h"

struct fr_mfu_input {
    struct fr_shape shape;
    int64_t seq, global_batch; /* tokens of a sequence; sequences of a step */
    int64_t gpus;
    double step_time_s;
    double peak_tflops; /* of one accelerator; NaN: not known */
};

struct fr_mfu_result {
    double tflop_per_token, model_tflop_per_step, achieved_tflops_per_gpu;
    double tokens_per_s_per_gpu, tokens_per_s;
    double mfu_ratio; /* NaN without a peak */
};

/* The input must be positive throughout (the peak aside). */
void fr_mfu_compute(const struct fr_mfu_input *in, enum fr_attention a, struct fr_mfu_result *ret);

#endif /* FR_PERF_MFU_H */
