/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_judge.c - records a second that the judge joins on one core, and what one look at a large
 * job costs
 *
 * 64 ranks in groups of 8 (tp), 8 (dp) and all; each step brings every rank's records as an agent
 * forwards them: rank by rank, so that the operations of a whole step are open at a time. Claim: >=
 * 1 M joined records/s.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "bench.h"
#include "judge/judge.h"
#include "model/op.h"

enum { RANKS = 64, GROUP = 8, TP_OPS = 24, REPEATS = 15, STEPS = 40, MANY = 16384 };

static struct fr_comm_key key(uint32_t n)
{
    return (struct fr_comm_key){100 + n, 0};
}

static struct fr_judge *make_judge(uint32_t nranks)
{
    struct fr_judge_config cfg;
    struct fr_judge *j;
    uint32_t *node_of = fr_xcalloc(nranks, sizeof *node_of);

    fr_judge_defaults(&cfg);
    j = fr_judge_new(&cfg);
    for (uint32_t i = 0; i < nranks; i++)
        node_of[i] = i / GROUP;
    fr_judge_begin(j, nranks, node_of, nranks / GROUP, 1);
    free(node_of);
    for (uint32_t g = 0; g < nranks / GROUP; g++)
        fr_judge_comm(j, key(g), GROUP, (uint32_t[]){g * GROUP, 1, GROUP}, 1, "tp");
    for (uint32_t g = 0; g < GROUP; g++)
        fr_judge_comm(j, key(nranks + g), nranks / GROUP, (uint32_t[]){g, GROUP, nranks / GROUP}, 1,
                      "dp");
    fr_judge_comm(j, key(2 * nranks), nranks, (uint32_t[]){0, 1, nranks}, 1, "all");
    return j;
}

static uint64_t feed_step(struct fr_judge *j, uint64_t step, struct fr_rng *rng)
{
    uint64_t n = 0;

    for (uint32_t r = 0; r < RANKS; r++) {
        uint64_t t = step * 100000000;

        for (uint32_t i = 0; i < TP_OPS + 2; i++) {
            uint32_t comm = i < TP_OPS ? r / GROUP : i == TP_OPS ? RANKS + r % GROUP : 2 * RANKS;
            uint64_t seq = i < TP_OPS ? step * TP_OPS + i + 1 : step + 1,
                     d = 100000 + fr_rng_below(rng, 50000);

            fr_judge_record(j, r,
                            &(struct fr_obs_record){.comm = key(comm),
                                                    .seq = seq,
                                                    .enq_ns = t,
                                                    .start_ns = t,
                                                    .end_ns = t + d,
                                                    .bytes = 65536,
                                                    .step = step + 1,
                                                    .op = FR_OP_ALLREDUCE,
                                                    .dtype = FR_DTYPE_FLOAT32,
                                                    .peer = -1});
            t += d + 1000000;
            n++;
        }
    }
    return n;
}

int main(void)
{
    struct fr_judge *j = make_judge(RANKS);
    struct fr_rng rng = {1};
    struct fr_finding f[16];
    struct fr_judge_group g[64];
    double joined[REPEATS], look[REPEATS];
    uint64_t step = 0, fed = 0, counted = 0;

    for (int k = 0; k < REPEATS; k++) {
        uint64_t from = fr_mono_ns(), n = 0;

        for (int s = 0; s < STEPS; s++)
            n += feed_step(j, step++, &rng);
        joined[k] = (double)n / ((double)(fr_mono_ns() - from) * 1e-9) * 1e-6;
        fed += n;
    }
    for (size_t i = fr_judge_groups(j, g, 64); i-- > 0;)
        counted += (uint64_t)g[i].count * g[i].size;
    if (counted != fed) {
        fprintf(stderr, "bench_judge: %llu of %llu records were joined\n",
                (unsigned long long)counted, (unsigned long long)fed);
        return 1;
    }
    fr_judge_free(j);
    bench_print("judge.joined_records", joined, REPEATS, "M/s");

    j = make_judge(MANY);
    for (int k = 0; k < REPEATS; k++) {
        uint64_t from;

        for (uint64_t s = 1; s <= 12; s++)
            for (uint32_t r = 0; r < MANY; r++)
                fr_judge_step(
                    j, r,
                    &(struct fr_obs_step){.step = 12 * (uint64_t)k + s,
                                          .begin_ns = 1000 * s,
                                          .end_ns = 1000 * s + 100000000,
                                          .self_ns = 50000000 + fr_rng_below(&rng, 5000000)});
        from = fr_mono_ns();
        fr_judge_findings(j, (uint64_t)(k + 1) * 1000000000, f, 16);
        look[k] = (double)(fr_mono_ns() - from) * 1e-6;
    }
    fr_judge_free(j);
    bench_print("judge.window_of_16384_ranks", look, REPEATS, "ms");
    return 0;
}
