/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's RAS as a witness: alone it names nobody, whatever it says; together with silence it
 * confirms. */
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

#define RANKS 8 /* on four nodes */

static struct lab lab;

static uint64_t at(double s)
{
    return LAB_T0_NS + (uint64_t)(s * 1e9);
}

static const struct fr_comm_key WORLD = {77, 0};

static void say(struct fr_judge *j, uint32_t rank, enum fr_ras_says says, double since, double now)
{
    fr_judge_ras(
        j, rank,
        &(struct fr_obs_ras){
            .says = says, .since_ns = at(since), .observed_ns = at(now), .behind = 1, .polls = 4});
}

static void hear(struct fr_judge *j, double now, int but)
{
    for (uint32_t n = 0; n < RANKS / 2; n++)
        if ((int)n != but)
            fr_judge_heard(j, n, at(now));
}

/* Seven wait in operation 11 since 1 s; `sink` is inside of nothing and has ended 10. */
static struct fr_judge *hanging(uint32_t sink)
{
    struct fr_judge_config cfg;
    struct fr_judge *j;
    uint32_t node_of[RANKS];

    fr_judge_defaults(&cfg);
    for (uint32_t r = 0; r < RANKS; r++)
        node_of[r] = r / 2;
    j = fr_judge_new(&cfg);
    fr_judge_begin(j, RANKS, node_of, RANKS / 2, at(0));
    fr_judge_comm(j, WORLD, RANKS, (uint32_t[]){0, 1, RANKS}, 1, "world");
    hear(j, 1, -1);
    for (uint32_t r = 0; r < RANKS; r++) {
        uint64_t seq = r == sink ? 10 : 11;

        fr_judge_progress(j, r, WORLD,
                          &(struct fr_obs_progress){.enqueued = seq,
                                                    .completed = 10,
                                                    .enqueued_ns = at(1),
                                                    .completed_ns = at(1),
                                                    .bytes = 64,
                                                    .op = FR_OP_ALLREDUCE});
        fr_judge_now(j, r,
                     &(struct fr_obs_now){.op = r == sink ? FR_OP_NONE : FR_OP_ALLREDUCE,
                                          .since_ns = at(1),
                                          .comm = WORLD,
                                          .seq = seq,
                                          .peer = -1,
                                          .observed_ns = at(1)});
        fr_judge_proc(
            j, r,
            &(struct fr_obs_proc){.state = FR_PROC_RUNNING, .exit_signal = -1, .exit_code = -1});
    }
    return j;
}

static enum fr_choice decide(const struct fr_finding *f)
{
    struct fr_policy_config cfg;
    struct fr_policy_input in = {.mode = FR_MODE_ACT,
                                 .owns_restarts = true,
                                 .finding = f,
                                 .attempts = 1,
                                 .nodes_total = 6,
                                 .nodes_free = 2,
                                 .act_on_silence_after_s = 30,
                                 .step_now_s = NAN,
                                 .step_baseline_s = NAN,
                                 .restart_cost_s = NAN};
    struct fr_decision d;

    fr_policy_defaults(&cfg);
    fr_policy_decide(&cfg, &in, &d);
    return d.choice;
}

/* A job that runs and stalls now and then, and a RAS that says the worst of everybody all the time.
 */
static void whatever_ras_says_alone_nobody_is_named(void **state)
{
    struct fr_rng rng = {17};

    (void)state;
    for (int i = 0; i < 60; i++) {
        lab_init(&lab, 2, 2, 2, 2, fr_rng_u64(&rng));
        lab.noise = 0.2;
        if (i % 2) { /* everybody writes a checkpoint for a while */
            lab.pause_step = 10;
            lab.pause_rank = -1;
            lab.pause_s = 6;
            lab.pause_phase = 5;
        }
        lab_start(&lab);
        while (lab.now_s < 14) {
            struct fr_finding f[16];
            size_t n;

            lab_tick(&lab);
            for (uint32_t r = 0; r < (uint32_t)lab.n; r++)
                if (fr_rng_below(&rng, 3))
                    fr_judge_ras(
                        lab.j, r,
                        &(struct fr_obs_ras){.says = (enum fr_ras_says)(1 + fr_rng_below(&rng, 3)),
                                             .since_ns = lab_now_ns(&lab) - 60 * 1000000000ull,
                                             .observed_ns = lab_now_ns(&lab),
                                             .behind = 9,
                                             .polls = 30});
            n = fr_judge_findings(lab.j, lab_now_ns(&lab), f, 16);
            for (size_t k = 0; k < n; k++) {
                assert_int_not_equal(f[k].kind, FR_FINDING_DEAD);
                assert_int_not_equal(f[k].kind, FR_FINDING_HANG);
                assert_int_not_equal(f[k].kind, FR_FINDING_MISMATCH);
                assert_int_equal(f[k].witnesses & (FR_WITNESS_RAS | FR_WITNESS_RAS_DEAD), 0);
            }
        }
        lab_fini(&lab);
    }
}

static void together_with_silence_it_confirms_and_only_the_dead_are_acted_on(void **state)
{
    static const struct {
        enum fr_ras_says says;
        uint32_t witnesses;
        enum fr_choice choice;
    } CASES[] = {
        {FR_RAS_SAYS_NOTHING, FR_WITNESS_SILENCE, FR_CHOICE_WAIT},
        {FR_RAS_SAYS_BEHIND, FR_WITNESS_SILENCE | FR_WITNESS_RAS, FR_CHOICE_WAIT},
        {FR_RAS_SAYS_NO_ANSWER, FR_WITNESS_SILENCE | FR_WITNESS_RAS, FR_CHOICE_WAIT},
        {FR_RAS_SAYS_DEAD, FR_WITNESS_SILENCE | FR_WITNESS_RAS | FR_WITNESS_RAS_DEAD,
         FR_CHOICE_ISOLATE},
    };
    double before = 0;

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fr_judge *j = hanging(2);
        struct fr_finding f[8];

        hear(j, 9, -1);
        if (CASES[i].says)
            say(j, 2, CASES[i].says, 2, 9);
        assert_int_equal(fr_judge_findings(j, at(9.5), f, 8), 1);
        assert_int_equal(f[0].kind, FR_FINDING_HANG);
        assert_int_equal(f[0].rank, 2);
        assert_int_equal(f[0].witnesses, CASES[i].witnesses);
        assert_int_equal(decide(&f[0]), CASES[i].choice);
        if (i == 0)
            before = f[0].confidence;
        else
            assert_true(f[0].confidence > before && f[0].confidence <= 0.99);
        fr_judge_free(j);
    }
}

static void
a_word_on_another_rank_or_an_old_one_or_one_that_was_overtaken_confirms_nothing(void **s)
{
    struct fr_finding f[8];

    (void)s;
    for (int what = 0; what < 4; what++) {
        struct fr_judge *j = hanging(2);

        if (what == 0)
            say(j, 5, FR_RAS_SAYS_DEAD, 2, 39);
        else if (what == 1)
            say(j, 2, FR_RAS_SAYS_BEHIND, 2, 8); /* asked long ago */
        else if (what == 2)
            say(j, 2, FR_RAS_SAYS_BEHIND, 0.1, 39); /* it has moved since, at 1 s */
        else
            say(j, 2, (enum fr_ras_says)7, 2, 39);
        hear(j, 39, -1);
        assert_int_equal(fr_judge_findings(j, at(39.5), f, 8), 1);
        assert_int_equal(f[0].rank, 2);
        assert_int_equal(f[0].witnesses, FR_WITNESS_SILENCE);
        fr_judge_free(j);
    }
}

/* The agent of node 3 (ranks 6, 7) is not heard of any more. */
static void a_silent_node_whose_processes_are_all_dead_to_ras_is_named_and_no_other(void **state)
{
    struct fr_finding f[8];

    (void)state;
    for (int what = 0; what < 5; what++) {
        struct fr_judge *j = hanging(6);
        size_t n;
        int named = 0;

        hear(j, 70, what == 3 ? -1 : 3);
        say(j, 6, what == 1 ? FR_RAS_SAYS_NO_ANSWER : FR_RAS_SAYS_DEAD, 65, 70);
        if (what != 2)
            say(j, 7, FR_RAS_SAYS_DEAD, 65, what == 4 ? 40 : 70);
        n = fr_judge_findings(j, at(70.5), f, 8);
        for (size_t i = 0; i < n; i++)
            named += f[i].kind == FR_FINDING_DEAD;
        /* 0: both dead; 1: one gives no answer yet; 2: nothing is said of one; 3: the agent is
         * heard; 4: old news of one */
        assert_int_equal(named, what == 0);
        if (what == 0) {
            assert_int_equal(f[0].kind, FR_FINDING_DEAD);
            assert_int_equal(f[0].subject, FR_SUBJECT_NODE);
            assert_int_equal(f[0].node, 3);
            assert_int_equal(f[0].victims, 6);
            assert_int_equal(decide(&f[0]), FR_CHOICE_ISOLATE);
            assert_int_equal(fr_witness_count(f[0].witnesses), 2);
        }
        fr_judge_free(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_ras_says_alone_nobody_is_named),
        cmocka_unit_test(together_with_silence_it_confirms_and_only_the_dead_are_acted_on),
        cmocka_unit_test(
            a_word_on_another_rank_or_an_old_one_or_one_that_was_overtaken_confirms_nothing),
        cmocka_unit_test(a_silent_node_whose_processes_are_all_dead_to_ras_is_named_and_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
