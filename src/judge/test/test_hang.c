/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hangs and deaths: random jobs, random victims, random moments. The truth is what the lab was told
 * to do; each checker counts what went wrong, and a checker run with its rule switched off must
 * count (else it would check nothing).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_lab.h"
#include "model/op.h"
#include "policy/policy.h"

#ifdef FR_SANITIZED /* ten times slower; the full numbers run in the plain build */
#define CASES 60
#else
#define CASES 500
#endif

static struct lab lab;

static const int GRIDS[][3] = {{2, 2, 2}, {4, 1, 1}, {8, 1, 1}, {1, 4, 2}, {2, 4, 1},
                               {4, 2, 2}, {1, 1, 8}, {2, 2, 4}, {1, 8, 1}};
enum { NGRIDS = sizeof GRIDS / sizeof GRIDS[0] };

static void random_job(struct fr_rng *r, int must_have)
{
    const int *g;

    do
        g = GRIDS[fr_rng_below(r, NGRIDS)];
    while (must_have >= 0 && g[must_have] < 2);
    lab_init(&lab, g[0], g[1], g[2], g[2] > 1 && g[2] < 8 ? g[2] : 1 + (int)fr_rng_below(r, 2),
             fr_rng_u64(r));
    lab.noise = 0.05 + 0.3 * fr_rng_unit(r);
    lab.sway = 0.2 * fr_rng_unit(r);
}

static size_t ask(struct fr_finding *f)
{
    return fr_judge_findings(lab.j, lab_now_ns(&lab), f, 16);
}

static int is_accusation(const struct fr_finding *f)
{
    return f->kind == FR_FINDING_DEAD || f->kind == FR_FINDING_HANG ||
           f->kind == FR_FINDING_MISMATCH;
}

/* Run until limit_s after onset_s. Counts as wrong: an accusation before `earliest`, of another
 * kind or rank, none by `latest`. */
static int run_case(double onset_s, double earliest_s, double latest_s, enum fr_finding_kind kind,
                    int rank, struct fr_finding *ret)
{
    int wrong = 0, named = 0;

    lab_start(&lab);
    while (lab.now_s < onset_s + latest_s + 1 && wrong == 0) {
        struct fr_finding f[16];
        size_t n;

        lab_tick(&lab);
        n = ask(f);
        for (size_t i = 0; i < n; i++) {
            if (!is_accusation(&f[i]))
                continue;
            if (lab.now_s < onset_s + earliest_s || f[i].kind != kind || f[i].rank != rank ||
                f[i].node != rank / lab.per_node) {
                if (getenv("LAB_VERBOSE"))
                    printf("wrong at %.2f (onset %.2f): %s rank %d want %d | %s | %s\n", lab.now_s,
                           onset_s, fr_finding_kind_name(f[i].kind), f[i].rank, rank, f[i].line[0],
                           f[i].line[1]);
                wrong++;
            } else {
                named = 1;
                *ret = f[i];
            }
        }
        if (!named && lab.now_s > onset_s + latest_s)
            wrong++;
        if (named && lab.now_s > onset_s + latest_s)
            break;
    }
    lab_fini(&lab);
    return wrong;
}

/* --- stopped --- */

static int stopped_wrong(int cases, double stop_confirm_s)
{
    struct fr_rng r = {101};
    int wrong = 0;

    for (int i = 0; i < cases; i++) {
        struct fr_finding f = {0};
        double at = 0.3 + 4 * fr_rng_unit(&r);
        int victim;

        random_job(&r, -1);
        lab.cfg.stop_confirm_s = stop_confirm_s;
        victim = (int)fr_rng_below(&r, (uint64_t)lab.n);
        lab.stop_s[victim] = lab.freeze_s[victim] = at;
        if (run_case(at, 0.9, 2, FR_FINDING_HANG, victim, &f))
            wrong++;
        else if (!(f.witnesses & FR_WITNESS_STOPPED) || f.confidence < 0.95 ||
                 f.cause != FR_CAUSE_HOST)
            wrong++;
    }
    return wrong;
}

static void a_stopped_rank_is_named_within_two_seconds_and_nobody_else(void **state)
{
    (void)state;
    assert_int_equal(stopped_wrong(CASES, 1), 0);
}

static void without_the_stop_rule_that_check_fails(void **state)
{
    (void)state;
    assert_true(stopped_wrong(20, 1e9) > 10);
}

/* --- dead --- */

static int dead_wrong(int cases, int know_signals, int launcher)
{
    struct fr_rng r = {202};
    int wrong = 0;

    for (int i = 0; i < cases; i++) {
        struct fr_finding f = {0};
        double at = 0.3 + 4 * fr_rng_unit(&r);
        int victim;

        random_job(&r, -1);
        victim = (int)fr_rng_below(&r, (uint64_t)lab.n);
        for (int k = 0; k < lab.n; k++) {
            lab.die_s[k] = lab.freeze_s[k] =
                k == victim ? at : at + 0.001 + 0.049 * fr_rng_unit(&r);
            lab.die_signal[k] = !know_signals ? -1 : k == victim ? 9 : 15;
        }
        (void)launcher;
        wrong += run_case(at, 0, 1, FR_FINDING_DEAD, victim, &f);
        if (!(f.witnesses & FR_WITNESS_GONE) || (int)f.victims != lab.n - 1)
            wrong++;
    }
    return wrong;
}

static void
the_rank_that_died_first_is_named_within_a_second_not_those_killed_after_it(void **state)
{
    (void)state;
    assert_int_equal(dead_wrong(CASES, 0, 0), 0);
    assert_int_equal(dead_wrong(CASES, 1, 0), 0);
}

static struct fr_judge *plain_judge(uint32_t nranks)
{
    struct fr_judge_config cfg;
    struct fr_judge *j;
    uint32_t node_of[64];

    for (uint32_t i = 0; i < nranks; i++)
        node_of[i] = i / 2;
    fr_judge_defaults(&cfg);
    j = fr_judge_new(&cfg);
    fr_judge_begin(j, nranks, node_of, (nranks + 1) / 2, LAB_T0_NS);
    return j;
}

static uint64_t at(double s)
{
    return LAB_T0_NS + (uint64_t)(s * 1e9);
}

static void gone(struct fr_judge *j, uint32_t rank, double when, int32_t sig, int32_t code,
                 bool finalized)
{
    fr_judge_proc(j, rank,
                  &(struct fr_obs_proc){.state = FR_PROC_GONE,
                                        .state_since_ns = at(when),
                                        .observed_ns = at(when),
                                        .exit_signal = sig,
                                        .exit_code = code,
                                        .finalized = finalized});
}

/* Agents may date deaths alike: then signals tell (launchers send TERM), and the launcher's word
 * settles it. */
static void ties_are_settled_by_signals_and_by_the_launchers_word(void **state)
{
    struct fr_finding f[4];
    struct fr_judge *j = plain_judge(8);

    (void)state;
    for (uint32_t r = 0; r < 8; r++)
        gone(j, r, 1.0, r == 5 ? 11 : 15, -1, false);
    assert_int_equal(fr_judge_findings(j, at(1.4), f, 4), 1);
    assert_int_equal(f[0].rank, 5);
    fr_judge_launcher(j, 3, 9, at(1.5));
    fr_judge_launcher(j, 6, 9, at(1.6)); /* its first word counts */
    fr_judge_findings(j, at(1.7), f, 4);
    assert_int_equal(f[0].rank, 3);
    assert_int_equal(f[0].witnesses, FR_WITNESS_GONE | FR_WITNESS_LAUNCHER);
    fr_judge_free(j);
}

static void a_job_that_said_goodbye_is_no_death_and_no_hang(void **state)
{
    struct fr_rng r = {7};

    (void)state;
    for (int i = 0; i < 50; i++) {
        struct fr_finding f[16];

        random_job(&r, -1);
        lab.last_step = 20 + fr_rng_below(&r, 40);
        lab_start(&lab);
        while (lab.now_s < 12) {
            lab_tick(&lab);
            for (size_t n = ask(f); n > 0; n--)
                assert_false(is_accusation(&f[n - 1]));
        }
        lab_fini(&lab);
    }
}

/* --- silent hangs --- */

static int silent_wrong(int cases, int dim, enum lab_chunk where, double name_s)
{
    struct fr_rng r = {303 + (uint64_t)dim * 10 + (uint64_t)where};
    int wrong = 0;

    for (int i = 0; i < cases; i++) {
        struct fr_finding f = {0};
        int victim, p;

        random_job(&r, dim);
        lab.cfg.hang_name_s = name_s;
        do {
            victim = (int)fr_rng_below(&r, (uint64_t)lab.n);
            p = victim / lab.tp % lab.pp;
        } while (dim == 1 && p == lab.pp - 1); /* p2p: one that somebody receives from */
        lab.hang_rank = victim;
        lab.hang_step = 3 + fr_rng_below(&r, 40);
        lab.hang_chunk = where;
        {
            struct lab probe = lab; /* when does everything stand still? the same seed tells */

            lab_start(&lab);
            do
                lab_tick(&lab);
            while (lab.step < lab.hang_step || lab.nevents > 0);
            {
                double still = lab.last_event_s;

                lab_fini(&lab);
                lab = probe;
                wrong += run_case(still, 2.8, 4, FR_FINDING_HANG, victim, &f);
            }
        }
        if (f.kind && (f.witnesses != FR_WITNESS_SILENCE || f.confidence < 0.5 ||
                       f.confidence > 0.7001 || (int)f.victims != lab.n - 1)) {
            wrong++;
        }
    }
    return wrong;
}

static void a_rank_that_does_not_come_is_named_after_three_seconds_in_any_group(void **state)
{
    (void)state;
    assert_int_equal(silent_wrong(CASES, 2, LAB_BEFORE_TP, 3), 0);   /* tp */
    assert_int_equal(silent_wrong(CASES, 1, LAB_BEFORE_DP, 3), 0);   /* p2p: before its send */
    assert_int_equal(silent_wrong(CASES, 0, LAB_BEFORE_DP, 3), 0);   /* dp (and p2p) */
    assert_int_equal(silent_wrong(CASES, -1, LAB_BEFORE_ALL, 3), 0); /* all */
}

static void without_the_silence_rule_that_check_fails(void **state)
{
    (void)state;
    assert_true(silent_wrong(10, 2, LAB_BEFORE_TP, 1e9) >= 10);
    assert_true(silent_wrong(10, 2, LAB_BEFORE_TP, 1.5) >= 10); /* named too early */
}

/* --- legitimate stalls --- */

/* Acts that the policy would take, with a job whose remaining work and checkpoints are known. */
static int acts_of_policy(void)
{
    struct fr_policy_config pcfg;
    struct fr_judge_summary s;
    struct fr_finding f[16];
    size_t n = ask(f);
    int acts = 0;

    fr_policy_defaults(&pcfg);
    fr_judge_summary(lab.j, &s);
    for (size_t i = 0; i < n; i++) {
        struct fr_policy_input in = {.mode = FR_MODE_ACT,
                                     .owns_restarts = true,
                                     .finding = &f[i],
                                     .attempts = 1,
                                     .step = s.step,
                                     .total_steps = 1000000,
                                     .last_checkpoint = s.step,
                                     .checkpoint_every = 10,
                                     .step_now_s = s.step_s,
                                     .step_baseline_s = s.baseline_step_s,
                                     .restart_cost_s = 5,
                                     .act_on_silence_after_s = s.act_on_silence_after_s,
                                     .nodes_total = 10,
                                     .nodes_free = 2,
                                     .now_ns = lab_now_ns(&lab)};
        struct fr_decision d;

        fr_policy_decide(&pcfg, &in, &d);
        if (d.choice != FR_CHOICE_WAIT && d.choice != FR_CHOICE_ADVISE) {
            acts++;
            if (getenv("LAB_VERBOSE"))
                printf("act at %.1f: %s rank %d: %s | %s\n", lab.now_s,
                       fr_finding_kind_name(f[i].kind), f[i].rank, d.reason, f[i].line[0]);
        }
    }
    return acts;
}

/* Slow checkpoint, evaluation, sleeping loader, compile-like pause; one rank or all; 2 to 29 s. */
static int stall_acts(int cases, double floor_s)
{
    static const uint32_t phases[] = {5, 4, 0, 0, 2, 1};
    struct fr_rng r = {404};
    int acts = 0;

    for (int i = 0; i < cases; i++) {
        random_job(&r, -1);
        lab.cfg.stall_floor_s = floor_s;
        lab.pause_step = 10 + fr_rng_below(&r, 40);
        lab.pause_phase = phases[i % 6];
        lab.pause_rank = fr_rng_below(&r, 2) ? -1 : (int)fr_rng_below(&r, (uint64_t)lab.n);
        lab.pause_chunk = (enum lab_chunk)fr_rng_below(&r, LAB_CHUNKS);
        lab.pause_s = 2 + 27 * fr_rng_unit(&r);
        lab_start(&lab);
        while (lab.step < lab.pause_step + 60) {
            lab_tick(&lab);
            acts += acts_of_policy();
        }
        {
            struct fr_judge_summary s;

            fr_judge_summary(lab.j, &s); /* it has learnt how long it stood, to a report's length */
            if (s.longest_stall_s < lab.pause_s * 0.8 - 0.5)
                acts++;
        }
        lab_fini(&lab);
    }
    return acts;
}

static void legitimate_stalls_of_every_kind_are_never_acted_on_and_are_learnt_from(void **state)
{
    (void)state;
    assert_int_equal(stall_acts(CASES, 30), 0);
}

static void with_a_short_limit_for_silence_that_check_fails(void **state)
{
    (void)state;
    assert_true(stall_acts(60, 3) > 0);
}

static void a_long_stall_raises_the_limit_for_the_next_one_across_attempts(void **state)
{
    struct fr_judge *j = plain_judge(2);
    struct fr_judge_summary s;
    uint32_t node_of[2] = {0, 1};

    (void)state;
    fr_judge_summary(j, &s);
    assert_true(fabs(s.act_on_silence_after_s - 30) < 1e-9);
    fr_judge_phase(j, 0, 3, at(1), 1);
    fr_judge_findings(j, at(41), (struct fr_finding[4]){0}, 4);
    fr_judge_phase(j, 0, 3, at(41), 2); /* stood for 40 s, came back by itself */
    fr_judge_summary(j, &s);
    assert_true(fabs(s.longest_stall_s - 40) < 0.01);
    assert_true(fabs(s.act_on_silence_after_s - 120) < 0.1);
    fr_judge_begin(j, 2, node_of, 2,
                   at(300)); /* the stall that ended the attempt teaches nothing */
    fr_judge_summary(j, &s);
    assert_true(fabs(s.longest_stall_s - 40) < 0.01);
    fr_judge_free(j);
}

/* --- mismatch, transport, silence of agents, suspension --- */

static void in_call(struct fr_judge *j, uint32_t rank, uint64_t seq, uint32_t op, uint64_t bytes,
                    uint64_t completed)
{
    struct fr_comm_key key = {77, 0};

    fr_judge_progress(j, rank, key,
                      &(struct fr_obs_progress){.enqueued = seq,
                                                .started = seq,
                                                .completed = completed,
                                                .enqueued_ns = at(1),
                                                .completed_ns = at(1),
                                                .bytes = bytes,
                                                .op = op,
                                                .dtype = FR_DTYPE_FLOAT32});
    fr_judge_now(j, rank,
                 &(struct fr_obs_now){.op = completed < seq ? op : FR_OP_NONE,
                                      .since_ns = at(1),
                                      .comm = key,
                                      .seq = seq,
                                      .bytes = bytes,
                                      .peer = -1,
                                      .observed_ns = at(1)});
}

static struct fr_judge *judge_with_world(uint32_t n)
{
    struct fr_judge *j = plain_judge(n);

    fr_judge_comm(j, (struct fr_comm_key){77, 0}, n, (uint32_t[]){0, 1, n}, 1, "world");
    return j;
}

static void a_member_in_another_operation_is_named_after_a_second_as_software(void **state)
{
    struct fr_finding f[8];

    (void)state;
    for (int what = 0; what < 3; what++) {
        struct fr_judge *j = judge_with_world(8);

        for (uint32_t r = 0; r < 8; r++)
            in_call(j, r, 10, r == 6 && what == 0 ? FR_OP_BCAST : FR_OP_ALLREDUCE,
                    r == 6 && what == 1 ? 8 : 4096, 9);
        assert_int_equal(fr_judge_findings(j, at(1.6), f, 8), 0);
        assert_int_equal(fr_judge_findings(j, at(2.5), f, 8), 0);
        if (what < 2) {
            assert_int_equal(fr_judge_findings(j, at(2.7), f, 8), 1);
            assert_int_equal(f[0].kind, FR_FINDING_MISMATCH);
            assert_int_equal(f[0].rank, 6);
            assert_int_equal(f[0].cause, FR_CAUSE_APPLICATION);
        } else { /* all alike and none leaves: the group's transport, nobody's fault */
            assert_int_equal(fr_judge_findings(j, at(4.2), f, 8), 1);
            assert_int_equal(f[0].kind, FR_FINDING_HANG);
            assert_int_equal(f[0].subject, FR_SUBJECT_GROUP);
            assert_int_equal(f[0].rank, -1);
        }
        fr_judge_free(j);
    }
}

/* Rule B: seven have left operation 10 and wait in 11, rank 2 is still inside 10. */
static void a_rank_whose_oldest_operation_is_older_than_its_peers_is_named(void **state)
{
    struct fr_judge *j = judge_with_world(8);
    struct fr_finding f[8];

    (void)state;
    for (uint32_t r = 0; r < 8; r++)
        in_call(j, r, r == 2 ? 10 : 11, FR_OP_ALLREDUCE, 64, r == 2 ? 9 : 10);
    assert_int_equal(fr_judge_findings(j, at(4.2), f, 8), 1);
    assert_int_equal(f[0].kind, FR_FINDING_HANG);
    assert_int_equal(f[0].rank, 2);
    assert_int_equal(f[0].victims, 7);
    fr_judge_free(j);
}

static void a_silent_agent_is_named_as_silent_and_its_ranks_are_accused_of_nothing(void **state)
{
    struct fr_rng r = {505};

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct fr_finding f[16];
        int gone_node, seen = 0, all = i % 4 == 0;

        do
            random_job(&r, -1);
        while (lab.nodes < 2);
        gone_node = (int)fr_rng_below(&r, (uint64_t)lab.nodes);
        lab_start(&lab);
        while (lab.now_s < 12) {
            size_t n;

            if (lab.now_s > 3 && lab.now_s < 8)
                for (int k = 0; k < lab.nodes; k++)
                    lab.silent_node[k] = all || k == gone_node;
            else
                memset(lab.silent_node, 0, sizeof lab.silent_node);
            lab_tick(&lab);
            n = ask(f);
            for (size_t k = 0; k < n; k++) {
                assert_false(is_accusation(&f[k]));
                assert_int_not_equal(f[k].kind, FR_FINDING_SLOW);
                if (f[k].kind == FR_FINDING_SILENT) {
                    seen++;
                    assert_true(all || f[k].node == gone_node);
                    assert_true(lab.now_s > 5.9 && lab.now_s < 8.5);
                }
            }
        }
        assert_true(seen > 20);
        lab_fini(&lab);
    }
}

static void a_suspended_job_accuses_nobody(void **state)
{
    struct fr_rng r = {606};

    (void)state;
    for (int i = 0; i < 60; i++) {
        struct fr_finding f[16];

        random_job(&r, -1);
        for (int k = 0; k < lab.n; k++)
            lab.stop_s[k] = lab.freeze_s[k] = 2 + 0.1 * fr_rng_unit(&r);
        lab_start(&lab);
        while (lab.now_s < 10) {
            lab_tick(&lab);
            for (size_t n = ask(f); n > 0; n--)
                assert_false(is_accusation(&f[n - 1]));
        }
        lab_fini(&lab);
    }
}

/* A process in 20 ms turns is not stopped: its samples alternate and its steps go on. */
static void a_stop_in_turns_is_never_a_hang(void **state)
{
    struct fr_rng r = {707};

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct fr_finding f[16];

        random_job(&r, -1);
        lab.slow_step = 5;
        lab.slow_node = (int)fr_rng_below(&r, (uint64_t)lab.nodes);
        lab.slow_factor = 2;
        lab.duty_cycle = true;
        lab_start(&lab);
        while (lab.now_s < 20) {
            lab_tick(&lab);
            for (size_t n = ask(f); n > 0; n--)
                assert_false(is_accusation(&f[n - 1]));
        }
        lab_fini(&lab);
    }
}

static void findings_of_an_old_attempt_are_dropped_at_the_next_begin(void **state)
{
    struct fr_judge *j = plain_judge(8);
    struct fr_finding f[4];
    uint32_t node_of[8] = {0};

    (void)state;
    gone(j, 3, 1, 9, -1, false);
    assert_int_equal(fr_judge_findings(j, at(2), f, 4), 1);
    fr_judge_begin(j, 8, node_of, 1, at(3));
    assert_int_equal(fr_judge_findings(j, at(3.1), f, 4), 0);
    fr_judge_free(j);
}

/* --- operations on a GPU: hosts have launched ahead --- */

static void on_gpu(struct fr_judge *j, uint32_t rank, uint64_t enqueued, uint64_t started,
                   uint64_t completed, bool blind)
{
    struct fr_comm_key key = {78, 0};

    fr_judge_progress(j, rank, key,
                      &(struct fr_obs_progress){.enqueued = enqueued,
                                                .started = started,
                                                .completed = completed,
                                                .enqueued_ns = at(1),
                                                .completed_ns = at(1),
                                                .bytes = 4096,
                                                .op = FR_OP_ALLREDUCE,
                                                .dtype = FR_DTYPE_FLOAT32});
    fr_judge_now(j, rank,
                 &(struct fr_obs_now){.op = started > completed ? FR_OP_ALLREDUCE : FR_OP_NONE,
                                      .since_ns = at(1),
                                      .comm = key,
                                      .seq = blind ? enqueued : completed + 1,
                                      .bytes = 4096,
                                      .peer = -1,
                                      .blind = blind,
                                      .observed_ns = at(1)});
}

static struct fr_judge *judge_with_gpus(uint32_t n)
{
    struct fr_judge *j = plain_judge(n);

    fr_judge_comm(j, (struct fr_comm_key){78, 0}, n, NULL, 0, "dp"); /* NCCL tells no members */
    return j;
}

static void a_rank_whose_gpu_has_not_come_is_named_though_its_host_launched_ahead(void **state)
{
    struct fr_judge *j = judge_with_gpus(4);
    struct fr_finding f[8];
    size_t n;

    (void)state;
    for (uint32_t r = 0; r < 4; r++)
        on_gpu(j, r, 14, r == 2 ? 9 : 10, 9, false);
    n = fr_judge_findings(j, at(6), f, 8);
    assert_true(n >= 1);
    assert_int_equal(f[0].kind, FR_FINDING_HANG);
    assert_int_equal(f[0].rank, 2);
    fr_judge_free(j);
}

static void where_no_end_is_visible_an_idle_job_is_no_hang_but_who_is_behind_is_named(void **state)
{
    struct fr_judge *j = judge_with_gpus(4);
    struct fr_finding f[8];
    size_t n;

    (void)state;
    for (uint32_t r = 0; r < 4; r++)
        on_gpu(j, r, 14, 14, 0, true);
    n = fr_judge_findings(j, at(6), f, 8);
    for (size_t i = 0; i < n; i++)
        assert_false(is_accusation(&f[i]));
    fr_judge_free(j);

    j = judge_with_gpus(4);
    for (uint32_t r = 0; r < 4; r++)
        on_gpu(j, r, r == 1 ? 13 : 14, r == 1 ? 13 : 14, 0, true);
    n = fr_judge_findings(j, at(6), f, 8);
    assert_true(n >= 1);
    assert_int_equal(f[0].kind, FR_FINDING_HANG);
    assert_int_equal(f[0].rank, 1);
    fr_judge_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_whose_gpu_has_not_come_is_named_though_its_host_launched_ahead),
        cmocka_unit_test(where_no_end_is_visible_an_idle_job_is_no_hang_but_who_is_behind_is_named),
        cmocka_unit_test(a_stopped_rank_is_named_within_two_seconds_and_nobody_else),
        cmocka_unit_test(without_the_stop_rule_that_check_fails),
        cmocka_unit_test(
            the_rank_that_died_first_is_named_within_a_second_not_those_killed_after_it),
        cmocka_unit_test(ties_are_settled_by_signals_and_by_the_launchers_word),
        cmocka_unit_test(a_job_that_said_goodbye_is_no_death_and_no_hang),
        cmocka_unit_test(a_rank_that_does_not_come_is_named_after_three_seconds_in_any_group),
        cmocka_unit_test(without_the_silence_rule_that_check_fails),
        cmocka_unit_test(legitimate_stalls_of_every_kind_are_never_acted_on_and_are_learnt_from),
        cmocka_unit_test(with_a_short_limit_for_silence_that_check_fails),
        cmocka_unit_test(a_long_stall_raises_the_limit_for_the_next_one_across_attempts),
        cmocka_unit_test(a_member_in_another_operation_is_named_after_a_second_as_software),
        cmocka_unit_test(a_rank_whose_oldest_operation_is_older_than_its_peers_is_named),
        cmocka_unit_test(a_silent_agent_is_named_as_silent_and_its_ranks_are_accused_of_nothing),
        cmocka_unit_test(a_suspended_job_accuses_nobody),
        cmocka_unit_test(a_stop_in_turns_is_never_a_hang),
        cmocka_unit_test(findings_of_an_old_attempt_are_dropped_at_the_next_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
