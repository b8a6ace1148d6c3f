/* SPDX-License-Identifier: Apache-2.0 */
/* The policy: each law in cases, and the laws as properties of random inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "policy/policy.h"

struct scene {
    struct fr_policy_config cfg;
    struct fr_policy_input in;
    struct fr_finding f;
    struct fr_decision d;
};

/* A job of 4 nodes in a fleet of 20 with 2 spares, at step 100 of 1000, checkpoint at 90, every 50
 * steps. */
static struct scene *scene(enum fr_finding_kind kind, uint32_t witnesses)
{
    static struct scene s;

    memset(&s, 0, sizeof s);
    fr_policy_defaults(&s.cfg);
    s.f = (struct fr_finding){.key = 1,
                              .kind = kind,
                              .subject = FR_SUBJECT_RANK,
                              .rank = 5,
                              .node = 2,
                              .witnesses = witnesses,
                              .confidence = 0.9};
    s.in = (struct fr_policy_input){.mode = FR_MODE_ACT,
                                    .owns_restarts = true,
                                    .finding = &s.f,
                                    .attempts = 1,
                                    .step = 100,
                                    .total_steps = 1000,
                                    .last_checkpoint = 90,
                                    .checkpoint_every = 50,
                                    .step_now_s = 2,
                                    .step_baseline_s = 1,
                                    .restart_cost_s = NAN,
                                    .act_on_silence_after_s = 30,
                                    .nodes_total = 20,
                                    .nodes_free = 2,
                                    .now_ns = 1};
    return &s;
}

static enum fr_choice decide(struct scene *s)
{
    fr_policy_decide(&s->cfg, &s->in, &s->d);
    return s->d.choice;
}

static void a_dead_rank_is_isolated_at_once_and_restarts_in_place_without_a_spare(void **state)
{
    struct scene *s = scene(FR_FINDING_DEAD, FR_WITNESS_GONE);

    (void)state;
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    assert_int_equal(s->d.node, 2);
    s->in.nodes_free = 0;
    assert_int_equal(decide(s), FR_CHOICE_RESTART);
    assert_int_equal(s->d.node, -1);
    s->in.nodes_free = 2;
    s->in.application_failure = true;
    assert_int_equal(decide(s), FR_CHOICE_RESTART);
    assert_int_equal(s->d.node, -1);
}

static void an_attempt_that_has_ended_is_never_waited_for(void **state)
{
    (void)state;
    for (int kind = FR_FINDING_NONE; kind < FR_FINDING_KINDS; kind++) {
        struct scene *s = scene((enum fr_finding_kind)kind, FR_WITNESS_SILENCE);

        s->in.attempt_ended = true;
        s->f.rank = s->f.node = -1;
        s->f.quiet_ns = 5000000000ull;
        assert_int_equal(decide(s), FR_CHOICE_RESTART);
        assert_int_equal(s->d.node, -1);
        s->in.attempts_without_step = 3;
        assert_int_equal(decide(s), FR_CHOICE_GIVE_UP);
    }
}

static void where_no_rank_is_named_the_reason_says_what_the_launcher_said(void **state)
{
    struct scene *s = scene(FR_FINDING_DEAD, FR_WITNESS_LAUNCHER);

    (void)state;
    s->f.rank = s->f.node = -1;
    s->in.attempt_ended = true;
    s->f.nlines = 1;
    snprintf(s->f.line[0], sizeof s->f.line[0], "the launcher ended with code 132");
    assert_int_equal(decide(s), FR_CHOICE_RESTART);
    assert_non_null(strstr(s->d.reason, "the launcher ended with code 132; no node is named"));
    s->f.nlines = 0;
    decide(s);
    assert_non_null(strstr(s->d.reason, "the attempt ended and no rank is named"));
    for (int kind = FR_FINDING_NONE; kind < FR_FINDING_KINDS; kind++) {
        s->f.kind = (enum fr_finding_kind)kind;
        for (uint32_t bit = 0; bit < 15; bit++) {
            s->f.witnesses = 1u << bit;
            decide(s);
            assert_null(strstr(s->d.reason, "rank -1"));
        }
    }
}

/* Neither have steps grown nor is it known to be waited for. */
static void a_slow_node_of_unknown_cost_is_not_said_to_cost_nothing(void **state)
{
    struct scene *s = scene(FR_FINDING_SLOW, FR_WITNESS_PEERS | FR_WITNESS_THROTTLED);

    (void)state;
    s->in.step_now_s = s->in.step_baseline_s = 1;
    s->f.excess_s = NAN;
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
    assert_true(isnan(s->d.cost_stay_s));
    assert_true(fabs(s->d.cost_restart_s - 25) < 1e-9);
    assert_non_null(strstr(s->d.reason, "not known yet"));
    assert_null(strstr(s->d.reason, "costs 0.0 s"));
}

static void silence_alone_waits_for_the_limit_and_the_reason_names_both_numbers(void **state)
{
    struct scene *s = scene(FR_FINDING_HANG, FR_WITNESS_SILENCE);

    (void)state;
    s->f.quiet_ns = 29500000000;
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
    assert_non_null(strstr(s->d.reason, "29.5 s"));
    assert_non_null(strstr(s->d.reason, "30.0 s"));
    s->f.quiet_ns = 30500000000;
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    s->in.act_on_silence_after_s = NAN;
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
}

static void a_stopped_process_is_acted_on_without_waiting(void **state)
{
    struct scene *s = scene(FR_FINDING_HANG, FR_WITNESS_SILENCE | FR_WITNESS_STOPPED);

    (void)state;
    s->f.quiet_ns = 2000000000;
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
}

static void a_mismatch_never_drains_a_node(void **state)
{
    struct scene *s = scene(FR_FINDING_MISMATCH, FR_WITNESS_MISMATCH);

    (void)state;
    s->f.cause = FR_CAUSE_APPLICATION;
    assert_int_equal(decide(s), FR_CHOICE_RESTART);
    assert_int_equal(s->d.node, -1);
}

/* 900 steps left x (2 - 1) s = 900 s against 10 steps x 1 s + 15 s = 25 s now, 50 x 1 + 15 = 65 s
 * after the next checkpoint (step 150: 90 + 50 = 140, that is 40 steps: 55 s). */
static void a_slow_node_is_isolated_when_staying_costs_more_than_going(void **state)
{
    struct scene *s = scene(FR_FINDING_SLOW, FR_WITNESS_PEERS | FR_WITNESS_THROTTLED);

    (void)state;
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    assert_int_equal(s->d.node, 2);
    assert_true(fabs(s->d.cost_stay_s - 900) < 1e-9);
    assert_true(fabs(s->d.cost_restart_s - 25) < 1e-9);
    assert_non_null(strstr(s->d.reason, "900.0 s"));
    assert_non_null(strstr(s->d.reason, "25.0 s"));
    s->in.total_steps = 125; /* 25 s left to lose: not more than 25 x 1.2 */
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
    assert_int_equal(s->d.wait_until_step, 0);
    s->in.total_steps = 131; /* 31 > 30 */
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    s->in.restart_cost_s = 100; /* measured */
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
}

/* 45 steps lost: 45 + 15 = 60 s now. The next checkpoint is 5 steps away: 5 x 1 + 15 = 20 s. */
static void a_checkpoint_that_is_near_is_waited_for(void **state)
{
    struct scene *s = scene(FR_FINDING_SLOW, FR_WITNESS_PEERS | FR_WITNESS_THROTTLED);

    (void)state;
    s->in.last_checkpoint = 50;
    s->in.step = 95;
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
    assert_int_equal(s->d.wait_until_step, 100);
    assert_non_null(strstr(s->d.reason, "60.0 s"));
    assert_non_null(strstr(s->d.reason, "20.0 s"));
    s->in.step = 100; /* done, and its report is there */
    s->in.last_checkpoint = 100;
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    s->in.last_checkpoint = 0; /* none yet: 100 steps lost against 50 x 1 */
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
    assert_int_equal(s->d.wait_until_step, 150);
}

static void what_is_not_known_is_only_advised(void **state)
{
    struct scene *s = scene(FR_FINDING_SLOW, FR_WITNESS_PEERS | FR_WITNESS_THROTTLED);

    (void)state;
    s->in.total_steps = 0;
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    s->in.total_steps = 1000;
    s->in.last_checkpoint = s->in.checkpoint_every = 0;
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    s->in.last_checkpoint = 90;
    s->in.step_baseline_s = NAN;
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    assert_true(isnan(s->d.cost_stay_s));
}

/* 900 steps left x 0.2 s of own excess = 180 s, against 10 lost steps x 1 s + 15 s = 25 s. */
static void its_own_excess_counts_where_it_is_the_last_to_arrive(void **state)
{
    struct scene *s =
        scene(FR_FINDING_SLOW, FR_WITNESS_PEERS | FR_WITNESS_THROTTLED | FR_WITNESS_ARRIVAL);

    (void)state;
    s->in.step_now_s = 0.9; /* a load went away meanwhile: steps are even shorter than before */
    s->f.excess_s = 0.2;
    s->in.checkpoint_every = 100; /* the next one is 90 steps away: 18 s + 15 s */
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    assert_true(fabs(s->d.cost_stay_s - 180) < 1e-9 && fabs(s->d.cost_restart_s - 25) < 1e-9);
    s->f.witnesses &= ~(uint32_t)FR_WITNESS_ARRIVAL; /* slow where nobody waits for it */
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
    s->f.witnesses |= FR_WITNESS_ARRIVAL;
    s->f.excess_s = NAN;
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
}

static void slowness_needs_two_witnesses(void **state)
{
    struct scene *s = scene(FR_FINDING_SLOW, FR_WITNESS_PEERS);

    (void)state;
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    s->f.witnesses |= FR_WITNESS_SILENCE; /* is none */
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    s->f.witnesses |=
        FR_WITNESS_ARRIVAL | FR_WITNESS_PAST; /* the same timing, looked at twice more */
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    s->f.witnesses |= FR_WITNESS_THROTTLED;
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
}

static void what_is_nobodys_fault_is_never_acted_on(void **state)
{
    static const enum fr_finding_kind kinds[] = {FR_FINDING_JOB_SLOW, FR_FINDING_STALL,
                                                 FR_FINDING_STRUCTURAL, FR_FINDING_SILENT};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct scene *s = scene(kinds[i], UINT32_MAX);

        s->f.quiet_ns = UINT64_MAX;
        s->f.confidence = 1;
        assert_true(decide(s) == FR_CHOICE_WAIT || s->d.choice == FR_CHOICE_ADVISE);
    }
}

static void observe_and_advise_only_say_what_would_be_done(void **state)
{
    struct scene *s = scene(FR_FINDING_DEAD, FR_WITNESS_GONE);

    (void)state;
    s->in.mode = FR_MODE_OBSERVE;
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    assert_int_equal(s->d.node, 2);
    assert_non_null(strstr(s->d.reason, "would isolate"));
    s->in.mode = FR_MODE_ACT;
    s->in.owns_restarts = false;
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    assert_non_null(strstr(s->d.reason, "something else owns restarts"));
}

static void the_breaker_stops_isolation_but_not_the_restart_of_a_dead_job(void **state)
{
    struct scene *s = scene(FR_FINDING_DEAD, FR_WITNESS_GONE);

    (void)state;
    s->in.isolated_in_window = 3; /* a fifth of 20 is 4 */
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    s->in.isolated_in_window = 4;
    assert_int_equal(decide(s), FR_CHOICE_RESTART);
    s->in.nodes_total = 5;
    s->in.isolated_in_window = 1; /* at least 2 */
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    s->cfg.breaker_nodes = 1;
    assert_int_equal(decide(s), FR_CHOICE_RESTART);
    s = scene(FR_FINDING_SLOW, FR_WITNESS_PEERS | FR_WITNESS_THROTTLED);
    s->in.isolated_in_window = 4;
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
    assert_non_null(strstr(s->d.reason, "breaker"));
}

static void a_job_that_gets_nowhere_is_given_up(void **state)
{
    struct scene *s = scene(FR_FINDING_DEAD, FR_WITNESS_GONE);

    (void)state;
    s->in.attempts_without_step = 3;
    assert_int_equal(decide(s), FR_CHOICE_GIVE_UP);
    s->in.attempts_without_step = 2;
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    s->in.attempts = s->in.max_attempts = 7;
    assert_int_equal(decide(s), FR_CHOICE_GIVE_UP);
    s->in.max_attempts = 0;
    s->cfg.max_attempts = 7;
    assert_int_equal(decide(s), FR_CHOICE_GIVE_UP);
    s->in.max_attempts = 8; /* the job's own limit wins */
    assert_int_equal(decide(s), FR_CHOICE_ISOLATE);
    s = scene(FR_FINDING_SLOW, FR_WITNESS_PEERS | FR_WITNESS_THROTTLED);
    s->in.attempts = s->in.max_attempts = 7; /* slow, but alive: never ended for want of attempts */
    assert_int_equal(decide(s), FR_CHOICE_ADVISE);
}

static void an_attempt_that_has_ended_is_started_again(void **state)
{
    struct scene *s = scene(FR_FINDING_NONE, 0);

    (void)state;
    s->in.finding = NULL;
    assert_int_equal(decide(s), FR_CHOICE_WAIT);
    s->in.attempt_ended = true;
    assert_int_equal(decide(s), FR_CHOICE_RESTART);
}

static void one_node_is_spoken_of_as_one(void **state)
{
    struct scene *s = scene(FR_FINDING_DEAD, FR_WITNESS_GONE);

    (void)state;
    s->in.nodes_free = 1;
    decide(s);
    assert_non_null(strstr(s->d.reason, "1 spare node is free"));
    s->in.nodes_free = 2;
    decide(s);
    assert_non_null(strstr(s->d.reason, "2 spare nodes are free"));
    s->cfg.breaker_nodes = s->in.isolated_in_window = 1;
    decide(s);
    assert_non_null(strstr(s->d.reason, "1 node isolated"));
}

static double odd_number(struct fr_rng *r)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e-300, 1e300, 1, 30};

    return fr_rng_below(r, 3) ? fr_rng_unit(r) * 100 : odd[fr_rng_below(r, 9)];
}
static uint64_t odd_count(struct fr_rng *r)
{
    static const uint64_t odd[] = {0, 1, 2, UINT64_MAX, UINT64_MAX - 1, 1ull << 63};

    return fr_rng_below(r, 2) ? fr_rng_below(r, 500) : odd[fr_rng_below(r, 6)];
}

/* Whatever comes in, the laws hold for what comes out. */
static void the_laws_hold_for_random_and_nonsensical_inputs(void **state)
{
    struct fr_rng r = {42};
    uint64_t seen[FR_CHOICES] = {0};

    (void)state;
    for (int i = 0; i < 200000; i++) {
        struct scene *s = scene((enum fr_finding_kind)fr_rng_below(&r, FR_FINDING_KINDS + 2),
                                (uint32_t)fr_rng_u64(&r) & (uint32_t)fr_rng_u64(&r) & 0x7fff);
        int acts, silence_only;

        s->f.node = (int32_t)fr_rng_below(&r, 6) - 1;
        s->f.quiet_ns = odd_count(&r) * 1000000000;
        s->f.subject = (enum fr_subject_kind)fr_rng_below(&r, 6);
        s->in.mode = (enum fr_mode)fr_rng_below(&r, 3);
        s->in.owns_restarts = fr_rng_below(&r, 4) != 0;
        s->in.step = odd_count(&r);
        s->in.total_steps = odd_count(&r);
        s->in.last_checkpoint = odd_count(&r);
        s->in.checkpoint_every = odd_count(&r);
        s->in.step_now_s = odd_number(&r);
        s->in.step_baseline_s = odd_number(&r);
        s->in.restart_cost_s = odd_number(&r);
        s->in.act_on_silence_after_s = odd_number(&r);
        s->in.attempts = (uint32_t)fr_rng_below(&r, 5);
        s->in.max_attempts = (uint32_t)fr_rng_below(&r, 5);
        s->in.attempts_without_step = (uint32_t)fr_rng_below(&r, 5);
        s->in.attempt_ended = fr_rng_below(&r, 4) == 0;
        s->in.application_failure = fr_rng_below(&r, 4) == 0;
        s->in.nodes_free = (uint32_t)fr_rng_below(&r, 3);
        s->in.isolated_in_window = (uint32_t)fr_rng_below(&r, 6);
        decide(s);

        assert_in_range(s->d.choice, 0, FR_CHOICES - 1);
        assert_null(strstr(s->d.reason, "law ")); /* our own numbering says nothing to a reader */
        assert_true(s->d.reason[0] != 0 && memchr(s->d.reason, 0, sizeof s->d.reason) != NULL);
        seen[s->d.choice]++;
        acts = s->d.choice != FR_CHOICE_WAIT && s->d.choice != FR_CHOICE_ADVISE;
        if (s->in.mode != FR_MODE_ACT || !s->in.owns_restarts)
            assert_false(acts);
        if (s->d.choice == FR_CHOICE_ISOLATE) {
            assert_true(s->d.node >= 0 && s->in.nodes_free > 0 && s->in.isolated_in_window < 4);
            assert_false(s->in.application_failure);
        }
        if (!acts || s->in.attempt_ended)
            continue;
        silence_only = s->f.kind == FR_FINDING_HANG && !fr_witness_is_direct(s->f.witnesses);
        if (silence_only)
            assert_true((double)s->f.quiet_ns * 1e-9 >= s->in.act_on_silence_after_s);
        if (s->f.kind == FR_FINDING_SLOW) {
            assert_true(s->d.choice == FR_CHOICE_ISOLATE || s->d.choice == FR_CHOICE_GIVE_UP);
            assert_true(fr_witness_count(s->f.witnesses & ~1u) >= 2);
            assert_true(s->in.total_steps > s->in.step);
        }
        assert_true(s->f.kind == FR_FINDING_DEAD || s->f.kind == FR_FINDING_HANG ||
                    s->f.kind == FR_FINDING_MISMATCH || s->f.kind == FR_FINDING_SLOW);
    }
    for (int c = 0; c < FR_CHOICES; c++)
        assert_true(seen[c] > 500); /* the inputs reach all of them */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_rank_is_isolated_at_once_and_restarts_in_place_without_a_spare),
        cmocka_unit_test(an_attempt_that_has_ended_is_never_waited_for),
        cmocka_unit_test(where_no_rank_is_named_the_reason_says_what_the_launcher_said),
        cmocka_unit_test(a_slow_node_of_unknown_cost_is_not_said_to_cost_nothing),
        cmocka_unit_test(silence_alone_waits_for_the_limit_and_the_reason_names_both_numbers),
        cmocka_unit_test(a_stopped_process_is_acted_on_without_waiting),
        cmocka_unit_test(a_mismatch_never_drains_a_node),
        cmocka_unit_test(a_slow_node_is_isolated_when_staying_costs_more_than_going),
        cmocka_unit_test(a_checkpoint_that_is_near_is_waited_for),
        cmocka_unit_test(what_is_not_known_is_only_advised),
        cmocka_unit_test(its_own_excess_counts_where_it_is_the_last_to_arrive),
        cmocka_unit_test(slowness_needs_two_witnesses),
        cmocka_unit_test(what_is_nobodys_fault_is_never_acted_on),
        cmocka_unit_test(observe_and_advise_only_say_what_would_be_done),
        cmocka_unit_test(the_breaker_stops_isolation_but_not_the_restart_of_a_dead_job),
        cmocka_unit_test(a_job_that_gets_nowhere_is_given_up),
        cmocka_unit_test(an_attempt_that_has_ended_is_started_again),
        cmocka_unit_test(one_node_is_spoken_of_as_one),
        cmocka_unit_test(the_laws_hold_for_random_and_nonsensical_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
