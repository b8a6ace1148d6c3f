/* SPDX-License-Identifier: Apache-2.0 */
/* Slowness: a victim is named in time and nobody else; noise, imbalance and a slow machine accuse
 * no node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_lab.h"
#include "model/op.h"

#ifdef FR_SANITIZED /* ten times slower; the full numbers run in the plain build */
#define CASES 60
#else
#define CASES 500
#endif

static struct lab lab;

static const int GRIDS[][3] = {{2, 2, 2}, {4, 1, 2}, {8, 1, 1}, {4, 2, 2},
                               {2, 4, 1}, {2, 2, 4}, {4, 4, 1}, {2, 1, 2}};
enum { NGRIDS = sizeof GRIDS / sizeof GRIDS[0] };

struct tally {
    int cases, named, false_names, one_witness, off_onset;
    uint64_t steps_to_name[64];
};

/* One job with one slow node or rank. loud: as on a machine with more ranks than cores. */
static void slow_case(struct fr_rng *r, bool whole_node, bool loud,
                      const struct fr_judge_config *cfg, struct tally *t)
{
    const int *g = GRIDS[fr_rng_below(r, NGRIDS)];
    int victim, done = 0;

    lab_init(&lab, g[0], g[1], g[2], g[2] > 1 ? g[2] : 1 + (g[1] > 1 ? 0 : (int)fr_rng_below(r, 2)),
             fr_rng_u64(r));
    if (cfg)
        lab.cfg = *cfg;
    lab.noise = loud ? 0.3 : 0.05 + 0.05 * fr_rng_unit(r);
    lab.sway = loud ? 0.15 : 0.03;
    lab.slow_factor =
        loud ? 2.4 + 2.4 * fr_rng_unit(r) : 2.0; /* what was measured on such a machine */
    lab.slow_step = 30 + fr_rng_below(r, 60);
    victim = (int)fr_rng_below(r, (uint64_t)lab.n);
    if (whole_node)
        lab.slow_node = victim / lab.per_node;
    else
        lab.slow_rank = victim;
    lab.duty_cycle = fr_rng_below(r, 2) != 0;
    lab_start(&lab);
    t->cases++;
    while (!done) {
        struct fr_finding f[16];
        struct fr_judge_summary s;
        size_t n;

        lab_tick(&lab);
        n = fr_judge_findings(lab.j, lab_now_ns(&lab), f, 16);
        fr_judge_summary(lab.j, &s);
        done = s.step > lab.slow_step + 30;
        for (size_t i = 0; i < n; i++) {
            if (f[i].kind != FR_FINDING_SLOW && f[i].kind != FR_FINDING_HANG)
                continue;
            if (f[i].kind != FR_FINDING_SLOW || s.step < lab.slow_step ||
                f[i].node != victim / lab.per_node || (!whole_node && f[i].rank != victim)) {
                if (getenv("LAB_VERBOSE"))
                    printf("false at step %llu (slow from %llu): node %d rank %d, victim %d | %s | "
                           "%s\n",
                           (unsigned long long)s.step, (unsigned long long)lab.slow_step, f[i].node,
                           f[i].rank, victim, f[i].line[0], f[i].line[1]);
                t->false_names++;
                done = 1;
                break;
            }
            t->named++;
            t->steps_to_name[s.step - lab.slow_step < 63 ? s.step - lab.slow_step : 63]++;
            t->one_witness += __builtin_popcount(f[i].witnesses) < 2;
            t->off_onset +=
                f[i].since_step + 3 < lab.slow_step || f[i].since_step > lab.slow_step + 3;
            done = 1;
            break;
        }
    }
    lab_fini(&lab);
}

static struct tally slow_cases(int cases, bool whole_node, bool loud,
                               const struct fr_judge_config *cfg, uint64_t seed)
{
    struct fr_rng r = {seed};
    struct tally t = {0};

    for (int i = 0; i < cases; i++)
        slow_case(&r, whole_node, loud, cfg, &t);
    return t;
}

static void print_tally(const char *what, const struct tally *t)
{
    int n = 0, half = 0, last = 0, late = 0;

    for (int i = 0; i < 64; i++) {
        n += (int)t->steps_to_name[i];
        if (!half && 2 * n >= t->named)
            half = i;
        if (t->steps_to_name[i])
            last = i;
        late += i > 20 ? (int)t->steps_to_name[i] : 0;
    }
    print_message("%s: %d of %d named, median %d steps, last %d, %d later than 20; false %d, one "
                  "witness %d, onset off %d\n",
                  what, t->named, t->cases, half, last, late, t->false_names, t->one_witness,
                  t->off_onset);
}

static int later_than(const struct tally *t, int steps)
{
    int n = 0;

    for (int i = steps + 1; i < 64; i++)
        n += (int)t->steps_to_name[i];
    return n;
}

static void a_half_speed_node_is_named_within_twenty_steps_and_no_other(void **state)
{
    struct tally t = slow_cases(CASES, true, false, NULL, 1);

    (void)state;
    print_tally("quiet", &t);
    assert_int_equal(t.false_names, 0);
    assert_int_equal(t.named, t.cases);
    assert_int_equal(later_than(&t, 14), 0);
    assert_int_equal(t.one_witness, 0);
    assert_true(t.off_onset <= t.cases / 20);
}

static void a_half_speed_node_on_a_busy_machine_is_named_within_twenty_steps(void **state)
{
    struct tally t = slow_cases(CASES, true, true, NULL, 2);

    (void)state;
    print_tally("busy", &t);
    assert_int_equal(t.false_names, 0);
    assert_true(t.named >= t.cases * 95 / 100); /* the rest is within the noise of its own job */
    assert_true(later_than(&t, 20) <= t.cases / 25);
}

static void a_single_slow_rank_is_named_itself(void **state)
{
    struct tally t = slow_cases(CASES, false, false, NULL, 3);

    (void)state;
    print_tally("one rank", &t);
    assert_int_equal(t.false_names, 0);
    assert_int_equal(t.named, t.cases);
    assert_int_equal(later_than(&t, 20), 0);
}

static void with_a_threshold_out_of_reach_that_check_fails(void **state)
{
    struct fr_judge_config cfg;
    struct tally t;

    (void)state;
    fr_judge_defaults(&cfg);
    cfg.slow_min_ratio = 50;
    t = slow_cases(20, true, false, &cfg, 1);
    assert_int_equal(t.named, 0);
}

/* --- noise, without agents: only steps --- */

struct noise {
    double sd, sway, steady, spike; /* spike: chance of a pause in a step */
};

/* Findings of kind SLOW or HANG in `steps` steps of a clean job. */
static int clean_findings(const struct fr_judge_config *cfg, const struct noise *nz, int dp, int pp,
                          int tp, int steps, uint64_t seed, int *ret_job_wide)
{
    struct fr_rng r = {seed};
    int n = dp * pp * tp, found = 0;
    struct fr_judge *j = fr_judge_new(cfg);
    uint32_t node_of[64];
    double wander[64] = {0}, t = 0;

    for (int i = 0; i < n; i++)
        node_of[i] = (uint32_t)(i / tp);
    fr_judge_begin(j, (uint32_t)n, node_of, (uint32_t)(n / tp), LAB_T0_NS);
    for (int i = 0; i < n; i++) {
        int32_t index[5] = {i % tp, 0, 0, i / (pp * tp), i / tp % pp}, size[5] = {tp, 1, 1, dp, pp};

        fr_judge_grid(j, (uint32_t)i, index, size);
    }
    for (int s = 1; s <= steps; s++) {
        double self[64], longest = 0;
        struct fr_finding f[8];
        size_t k;

        for (int i = 0; i < n; i++) {
            wander[i] = nz->steady * wander[i] +
                        sqrt(1 - nz->steady * nz->steady) * nz->sway * fr_rng_normal(&r);
            self[i] =
                0.05 * (1 + 0.3 * (i / tp % pp)) * exp(nz->sd * fr_rng_normal(&r) + wander[i]);
            if (fr_rng_unit(&r) < nz->spike)
                self[i] += 0.5 * fr_rng_unit(&r);
            longest = fmax(longest, self[i]);
        }
        for (int i = 0; i < n; i++)
            fr_judge_step(
                j, (uint32_t)i,
                &(struct fr_obs_step){.step = (uint64_t)s,
                                      .begin_ns = LAB_T0_NS + (uint64_t)(t * 1e9),
                                      .end_ns = LAB_T0_NS + (uint64_t)((t + longest) * 1e9),
                                      .self_ns = (uint64_t)(self[i] * 1e9)});
        t += longest;
        k = fr_judge_findings(j, LAB_T0_NS + (uint64_t)(t * 1e9), f, 8);
        for (size_t i = 0; i < k; i++) {
            *ret_job_wide += f[i].kind == FR_FINDING_JOB_SLOW || f[i].kind == FR_FINDING_STALL;
            if (f[i].kind == FR_FINDING_SLOW || f[i].kind == FR_FINDING_HANG ||
                f[i].kind == FR_FINDING_DEAD) {
                if (found == 0 && getenv("LAB_VERBOSE"))
                    printf("false at step %d dp%d pp%d tp%d sd %.2f sway %.2f: rank %d | %s | %s\n",
                           s, dp, pp, tp, nz->sd, nz->sway, f[i].rank, f[i].line[0], f[i].line[1]);
                found++;
                break;
            }
        }
    }
    fr_judge_free(j);
    return found;
}

static const struct noise NOISES[] = {
    {0.03, 0.02, 0.8, 0.001}, {0.10, 0.05, 0.8, 0.01}, {0.30, 0.10, 0.8, 0.02},
    {0.30, 0.15, 0.9, 0.05},  {0.60, 0.10, 0.5, 0.10},
};
enum { NNOISES = sizeof NOISES / sizeof NOISES[0] };

static int clean_run(const struct fr_judge_config *cfg, int steps, int *ret_job_wide,
                     uint64_t *ret_rank_steps)
{
    int found = 0;
    uint64_t seed = 9;

    for (int z = 0; z < NNOISES; z++)
        for (int g = 0; g < NGRIDS; g++)
            for (int rep = 0; rep < 4;
                 rep++) { /* short attempts too: the young spread is the hard one */
                int n = steps >> rep;

                found += clean_findings(cfg, &NOISES[z], GRIDS[g][0], GRIDS[g][1], GRIDS[g][2], n,
                                        seed++, ret_job_wide);
                *ret_rank_steps +=
                    (uint64_t)n * (uint64_t)(GRIDS[g][0] * GRIDS[g][1] * GRIDS[g][2]);
            }
    return found;
}

static void clean_noise_names_nobody_in_two_million_rank_steps(void **state)
{
    struct fr_judge_config cfg;
    int job_wide = 0, found;
    uint64_t rank_steps = 0;

    (void)state;
    fr_judge_defaults(&cfg);
    found = clean_run(&cfg, CASES * 34 / 5, &job_wide, &rank_steps);
    print_message("clean: %llu rank-steps, %d false, %d job-wide\n", (unsigned long long)rank_steps,
                  found, job_wide);
    assert_true(rank_steps >= 4000 * CASES); /* two million */
    assert_int_equal(found, 0);
}

static void with_a_fence_that_ignores_the_spread_that_check_fails(void **state)
{
    struct fr_judge_config cfg;
    int job_wide = 0;
    uint64_t rank_steps = 0;

    (void)state;
    fr_judge_defaults(&cfg);
    cfg.slow_fence = 0.3;
    assert_true(clean_run(&cfg, 400, &job_wide, &rank_steps) > 0);
}

/* A few slow steps and then a stop for good: the stop is no witness of what was before it. */
static void a_rank_that_has_just_been_stopped_is_not_slow(void **state)
{
    struct fr_rng r = {31};
    int hangs = 0, cases = 200;

    (void)state;
    for (int i = 0; i < cases; i++) {
        const int *g = GRIDS[fr_rng_below(&r, NGRIDS)];
        bool hang = false;
        double at = INFINITY;
        int victim;

        lab_init(&lab, g[0], g[1], g[2], g[2], fr_rng_u64(&r));
        victim = (int)fr_rng_below(&r, (uint64_t)lab.n);
        lab.slow_rank = victim;
        lab.slow_factor = 3;
        lab.slow_step = 60;
        lab_start(&lab);
        while (lab.now_s < at + 4) {
            struct fr_finding f[16];

            lab_tick(&lab);
            if (isinf(at) && lab.step >= lab.slow_step + 6)
                lab.stop_s[victim] = lab.freeze_s[victim] = at = lab.now_s;
            for (size_t n = fr_judge_findings(lab.j, lab_now_ns(&lab), f, 16); n > 0; n--) {
                if (f[n - 1].kind == FR_FINDING_SLOW)
                    fail_msg("job %d: node %d named slow %.2f s after the stop", i, f[n - 1].node,
                             lab.now_s - at);
                hang |= f[n - 1].kind == FR_FINDING_HANG && f[n - 1].rank == victim;
            }
        }
        hangs += hang;
        lab_fini(&lab);
    }
    assert_int_equal(hangs, cases);
}

/* --- nobody's fault --- */

/* Seconds from the onset until the slow node is named, by timing alone. */
static double seconds_to_name(bool one_machine)
{
    double from_s = INFINITY;

    lab_init(&lab, 2, 2, 2, 2, 21);
    lab.slow_node = 1;
    lab.slow_step = 60;
    lab.slow_factor = 2;
    lab_start(&lab);
    for (;;) {
        struct fr_finding f[16];
        size_t n;

        for (uint32_t i = 0; i < (uint32_t)lab.nodes; i++) {
            char machine[16] = "m";

            snprintf(machine + 1, sizeof machine - 1, "%u", one_machine ? 0 : i);
            fr_judge_pressure(lab.j, i, &(struct fr_obs_pressure){.machine = machine},
                              lab_now_ns(&lab));
        }
        lab_tick(&lab);
        if (lab.step >= lab.slow_step && isinf(from_s))
            from_s = lab.now_s;
        n = fr_judge_findings(lab.j, lab_now_ns(&lab), f, 16);
        for (size_t i = 0; i < n; i++)
            if (f[i].kind == FR_FINDING_SLOW) {
                double took_s = lab.now_s - from_s;

                assert_int_equal(f[i].node, 1);
                lab_fini(&lab);
                return took_s;
            }
        assert_true(lab.step < lab.slow_step + 1000);
    }
}

static void on_a_shared_machine_timing_alone_must_stand_ten_seconds(void **state)
{
    (void)state;
    assert_true(seconds_to_name(false) < 5);
    assert_true(seconds_to_name(true) >= 10);
    assert_true(seconds_to_name(true) < 15);
}

/* All ranks rise alike at step 60. */
static void a_machine_that_slows_all_ranks_alike_is_job_wide(void **state)
{
    struct fr_rng r = {11};

    (void)state;
    for (int i = 0; i < 50; i++) {
        const int *g = GRIDS[fr_rng_below(&r, NGRIDS)];
        int job_slow = 0;
        struct fr_judge_summary s = {0};

        lab_init(&lab, g[0], g[1], g[2], g[2], fr_rng_u64(&r));
        lab_start(&lab);
        while (s.step < 120) {
            struct fr_finding f[16];

            if (lab.step == 60)
                for (int k = 0; k < LAB_CHUNKS; k++)
                    lab.chunk_s[k] = (double[]){0.044, 0.044, 0.011}[k];
            lab_tick(&lab);
            for (size_t n = fr_judge_findings(lab.j, lab_now_ns(&lab), f, 16); n > 0; n--) {
                assert_int_not_equal(f[n - 1].kind, FR_FINDING_SLOW);
                job_slow += f[n - 1].kind == FR_FINDING_JOB_SLOW;
            }
            fr_judge_summary(lab.j, &s);
        }
        assert_true(job_slow > 0);
        lab_fini(&lab);
    }
}

/* A stage that does twice the work is an imbalance, its ranks are not slow. */
static void a_heavier_pipeline_stage_is_structural_and_isolates_nobody(void **state)
{
    struct fr_judge_config cfg;
    struct fr_judge *j;
    uint32_t node_of[8];
    struct fr_rng r = {12};
    int structural = 0;

    (void)state;
    fr_judge_defaults(&cfg);
    j = fr_judge_new(&cfg);
    for (uint32_t i = 0; i < 8; i++)
        node_of[i] = i / 2;
    fr_judge_begin(j, 8, node_of, 4, LAB_T0_NS);
    for (int i = 0; i < 8; i++)
        fr_judge_grid(j, (uint32_t)i, (int32_t[]){i % 2, 0, 0, i / 4, i / 2 % 2},
                      (int32_t[]){2, 1, 1, 2, 2});
    for (uint64_t s = 1; s < 200; s++) {
        struct fr_finding f[8];

        for (int i = 0; i < 8; i++)
            fr_judge_step(
                j, (uint32_t)i,
                &(struct fr_obs_step){.step = s,
                                      .begin_ns = LAB_T0_NS + s * 200000000,
                                      .end_ns = LAB_T0_NS + s * 200000000 + 190000000,
                                      .self_ns = (uint64_t)(((i / 2 % 2) ? 0.16 : 0.08) * 1e9 *
                                                            exp(0.03 * fr_rng_normal(&r)))});
        for (size_t n = fr_judge_findings(j, LAB_T0_NS + s * 200000000 + 200000000, f, 8); n > 0;
             n--) {
            assert_int_equal(f[n - 1].kind, FR_FINDING_STRUCTURAL);
            structural++;
        }
    }
    assert_true(structural > 0);
    fr_judge_free(j);
}

/* The culprit of the pipeline (stage 0 of replica 0): stages behind it arrive late in their dp
 * groups too, having waited for it. Pushed back, only the culprit is late. */
static void lateness_is_pushed_back_to_the_stage_it_came_from(void **state)
{
    struct fr_rng r = {13};

    (void)state;
    for (int i = 0; i < 30; i++) {
        struct fr_judge_rank jr;
        double culprit;

        lab_init(&lab, 4, 4, 1, 1, fr_rng_u64(&r));
        lab.slow_step = 1;
        lab.slow_rank = 0;
        lab.slow_factor = 2;
        lab_start(&lab);
        while (lab.step < 60) {
            lab_tick(&lab);
            fr_judge_findings(lab.j, lab_now_ns(&lab), (struct fr_finding[4]){0}, 4);
        }
        assert_int_equal(fr_judge_rank(lab.j, 0, &jr), 0);
        culprit = jr.late_s;
        assert_true(culprit > 0.03); /* it takes 45 ms more a step than it should */
        for (uint32_t k = 1; k < 16; k++) {
            assert_int_equal(fr_judge_rank(lab.j, k, &jr), 0);
            assert_true(jr.late_s < culprit / 2);
        }
        lab_fini(&lab);
    }
}

/* 4096 bytes in 200 us among n ranks, whatever the waiting: nccl-tests' all-reduce factor is 2 (n -
 * 1) / n. */
static void the_bus_bandwidth_of_a_group_is_free_of_waiting(void **state)
{
    struct fr_judge_group g[64];
    size_t n;
    int seen = 0;

    (void)state;
    lab_init(&lab, 2, 2, 2, 2, 5);
    lab.noise = 0.3;
    lab_start(&lab);
    while (lab.step < 40)
        lab_tick(&lab);
    n = fr_judge_groups(lab.j, g, 64);
    for (size_t i = 0; i < n; i++) {
        double want = 4096 / 2e-4 * 2 * (g[i].size - 1) / g[i].size;

        assert_int_equal(g[i].op, FR_OP_ALLREDUCE);
        assert_true(fabs(g[i].busbw_bytes_per_s / want - 1) < 1e-3);
        assert_true(g[i].count > 30 && g[i].wait_s >= 0);
        seen++;
    }
    assert_int_equal(seen, 4 + 4 + 1);
    lab_fini(&lab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_half_speed_node_is_named_within_twenty_steps_and_no_other),
        cmocka_unit_test(a_half_speed_node_on_a_busy_machine_is_named_within_twenty_steps),
        cmocka_unit_test(a_single_slow_rank_is_named_itself),
        cmocka_unit_test(with_a_threshold_out_of_reach_that_check_fails),
        cmocka_unit_test(clean_noise_names_nobody_in_two_million_rank_steps),
        cmocka_unit_test(with_a_fence_that_ignores_the_spread_that_check_fails),
        cmocka_unit_test(a_rank_that_has_just_been_stopped_is_not_slow),
        cmocka_unit_test(on_a_shared_machine_timing_alone_must_stand_ten_seconds),
        cmocka_unit_test(a_machine_that_slows_all_ranks_alike_is_job_wide),
        cmocka_unit_test(a_heavier_pipeline_stage_is_structural_and_isolates_nobody),
        cmocka_unit_test(lateness_is_pushed_back_to_the_stage_it_came_from),
        cmocka_unit_test(the_bus_bandwidth_of_a_group_is_free_of_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
