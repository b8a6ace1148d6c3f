/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fullrank.h - what a training program may tell fullrank: steps, phases, place in the grid
 *
 * All of it is optional: without a single call fullrank still sees every
 * collective. With these marks it also knows where a step begins, what a rank
 * is doing between steps, how much work is left, and who does the same work.
 * Link with -lfullrank. When nothing watches (FULLRANK_PROBE_DIR unset, or
 * FULLRANK_PROBE=off) each call returns after one test of a variable. No call
 * blocks, allocates after the first, writes to stdout or stderr, or fails.
 *
 * Unit:    tokens, model FLOPs (forward and backward, no recompute), nats.
 * Threads: step and phase marks from one thread of a rank; the rest from any,
 *          before the first step.
 * Memory:  one shared segment a process, fixed in size (see src/wire/ring.h).
 */
#ifndef FULLRANK_FULLRANK_H
#define FULLRANK_FULLRANK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FULLRANK_API __attribute__((visibility("default")))

/* What a rank says it is doing between steps. */
enum fullrank_phase {
    FULLRANK_PHASE_IDLE = 0,
    FULLRANK_PHASE_INIT = 1,       /* start-up: communicators, data, compile */
    FULLRANK_PHASE_RESTORE = 2,    /* reading a checkpoint */
    FULLRANK_PHASE_STEP = 3,       /* set by fullrank_step_begin itself */
    FULLRANK_PHASE_EVAL = 4,       /* evaluation */
    FULLRANK_PHASE_CHECKPOINT = 5, /* writing a checkpoint, the job waits */
    FULLRANK_PHASE_COUNT = 6
};

/* Dimensions of the parallel grid. */
enum fullrank_dim {
    FULLRANK_DIM_TP = 0, /* tensor */
    FULLRANK_DIM_CP = 1, /* context */
    FULLRANK_DIM_EP = 2, /* expert */
    FULLRANK_DIM_DP = 3, /* data */
    FULLRANK_DIM_PP = 4, /* pipeline */
    FULLRANK_DIM_COUNT = 5
};

/* The plan of the job, alike on all ranks; a value that is not known is 0. */
struct fullrank_plan {
    uint64_t first_step;        /* the first step that this process will run */
    uint64_t total_steps;       /* the job ends after this many steps */
    uint64_t checkpoint_every;  /* steps between two checkpoints */
    uint64_t last_checkpoint;   /* step that this process resumed from, 0: none */
    double tokens_per_step;     /* of the whole job */
    double flops_per_step;      /* model FLOPs of the whole job */
    double peak_flops_per_rank; /* FLOP/s that one rank could reach */
};

/* What a finished step reports; a value that is not known is NaN. */
struct fullrank_step_result {
    double loss;   /* nats per token */
    double tokens; /* of the whole job in this step */
};

/* State this process's place in one dimension: index 0..size-1 of size. */
FULLRANK_API void fullrank_grid(enum fullrank_dim dim, int index, int size);

/* State the plan; may be repeated when it changes. */
FULLRANK_API void fullrank_plan(const struct fullrank_plan *plan);

/* A step begins; `step` counts from 1 and is alike on all ranks. */
FULLRANK_API void fullrank_step_begin(uint64_t step);

/* The step that was begun last is done; `result` may be NULL. */
FULLRANK_API void fullrank_step_end(const struct fullrank_step_result *result);

/* Say what happens now, until the next mark. */
FULLRANK_API void fullrank_phase(enum fullrank_phase phase);

/* The checkpoint of `step` is complete and durable on all ranks. */
FULLRANK_API void fullrank_checkpoint_done(uint64_t step);

/* 1 when a segment is open and somebody may watch, 0 when every call is a no-op. */
FULLRANK_API int fullrank_watched(void);

#ifdef __cplusplus
}
#endif

#endif /* FULLRANK_FULLRANK_H */
