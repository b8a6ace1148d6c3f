/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flops.h - model FLOPs of a step, and what this machine could do at best
 *
 * MFU = model FLOPs per second of the job / (ranks x peak of one rank). The peak of a
 * rank is that of a core, or its share of one where a machine has more ranks than cores.
 * Conventions, without which the number means nothing: forward and backward is
 * 3 x forward; no recompute counted; causal attention (half of the full score
 * matrix); logits over the 256 bytes counted; reading the embedding is free;
 * float32. What a rank repeats because of the grid (logits on each tensor
 * shard) is not counted twice.
 *
 * Unit:    FLOP, FLOP/s; a multiply-add is 2.
 * Source:  Megatron-LM num_floating_point_operations (causal since 2025):
 *          6 [ L (h d (a + 2 kv) + a d h + ex h f k + c a d s) + h V ] a token,
 *          here kv = a, a d = h, ex = 2, f = 4 h, k = 1, c = 1.
 */
#ifndef FR_TRAIN_FLOPS_H
#define FR_TRAIN_FLOPS_H

#include <stdint.h>

/* Model FLOPs of one token, forward and backward. */
double fr_flops_per_token(int64_t layers, int64_t d_model, int64_t seq, int64_t vocab);

/* What one core does at best: float32 GEMMs of 256^3 through cblas, FLOPs per second of
 * CPU time (so that other work on the machine does not make the peak look smaller), best
 * of `slices` slices of 8 GEMMs, about 3 ms each. Blocks. */
double fr_flops_core(int slices);

/* Cores that this process may run on, at least 1. */
int fr_cores(void);

/* Seconds of the monotonic clock; for reports, never for the mathematics. */
double fr_now_s(void);

#endif /* FR_TRAIN_FLOPS_H */
