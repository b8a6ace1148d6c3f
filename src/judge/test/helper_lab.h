/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_lab.h - a small synchronous job that reports to a judge: grid, noise, faults, agents
 *
 * Each step of a rank: receive from the stage before, compute, tp all-reduce, compute, send to the
 * next stage, dp all-reduce, compute, all-reduce over everybody. Times follow from who waits for
 * whom; a rank that stops, dies or hangs has no event after that moment, and neither has who waits
 * for it. Agents read states every 50 ms and report every 200 ms, each at a phase of its own; a
 * death is reported at once. The judge sees reports only.
 */
#ifndef FR_JUDGE_TEST_HELPER_LAB_H
#define FR_JUDGE_TEST_HELPER_LAB_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "judge/judge.h"

#define LAB_RANKS  32
#define LAB_COMMS  40
#define LAB_TICK_S 0.05
#define LAB_T0_NS  1000000000000ull

enum lab_chunk { LAB_BEFORE_TP = 0, LAB_BEFORE_DP, LAB_BEFORE_ALL, LAB_CHUNKS };

struct lab_event;

struct lab {
    /* set by lab_init, may be changed before lab_start */
    int dp, pp, tp, n, nodes, per_node;
    double chunk_s[LAB_CHUNKS];
    double noise, sway,
        steady; /* sd of ln: per step; slow wandering of a rank, and how much of it stays a step */
    struct fr_judge_config cfg;
    bool records;
    /* faults; step 0: never */
    double freeze_s[LAB_RANKS];                 /* no event of the rank after this time */
    double stop_s[LAB_RANKS], die_s[LAB_RANKS]; /* INFINITY: never */
    int die_signal[LAB_RANKS];
    uint64_t hang_step;
    int hang_rank;
    enum lab_chunk hang_chunk;
    uint64_t pause_step;
    int pause_rank; /* -1: all */
    enum lab_chunk pause_chunk;
    double pause_s;
    uint32_t pause_phase; /* told before it, 0: none */
    uint64_t slow_step;
    int slow_node, slow_rank; /* -1: none */
    double slow_factor;
    bool duty_cycle;    /* the slow ones are seen stopped in half of the samples */
    uint64_t last_step; /* the job says goodbye after it, 0: never */
    bool silent_node[LAB_RANKS];
    /* state */
    struct fr_judge *j;
    struct fr_rng rng;
    double now_s, last_event_s, clock[LAB_RANKS], wander[LAB_RANKS];
    uint64_t step; /* newest that was generated */
    struct lab_event *events;
    size_t nevents, event;
    uint64_t enqueued[LAB_COMMS][LAB_RANKS], completed[LAB_COMMS][LAB_RANKS];
    double enqueued_s[LAB_COMMS][LAB_RANKS], completed_s[LAB_COMMS][LAB_RANKS];
    uint32_t op[LAB_COMMS][LAB_RANKS];
    uint64_t pair_seq[LAB_RANKS][LAB_RANKS];
    struct fr_obs_now now[LAB_RANKS];
    uint32_t phase[LAB_RANKS];
    double phase_s[LAB_RANKS];
    uint64_t step_begun[LAB_RANKS], step_ended[LAB_RANKS];
    double seen_stopped_s[LAB_RANKS];
    struct fr_obs_step held_steps[LAB_RANKS][256];
    uint32_t nheld_steps[LAB_RANKS];
    struct fr_obs_record held_records[LAB_RANKS][2048];
    uint32_t nheld_records[LAB_RANKS];
    bool dead_told[LAB_RANKS];
    uint64_t ticks;
};

void lab_init(struct lab *l, int dp, int pp, int tp, int per_node, uint64_t seed);
void lab_start(struct lab *l);
void lab_fini(struct lab *l);
/* One tick: events, reports. Ask the judge afterwards. */
void lab_tick(struct lab *l);
uint64_t lab_now_ns(const struct lab *l);
int lab_rank(const struct lab *l, int d, int p, int t);

#endif
