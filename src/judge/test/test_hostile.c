/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is thrown at the judge: no crash, and no accusation that rests on nonsense. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "helper_lab.h"
#include "model/op.h"

#define NS 1000000000ull

static uint64_t odd(struct fr_rng *r)
{
    static const uint64_t v[] = {0,
                                 1,
                                 2,
                                 63,
                                 64,
                                 65,
                                 1000000000,
                                 UINT32_MAX,
                                 UINT64_MAX,
                                 UINT64_MAX - 1,
                                 1ull << 63,
                                 LAB_T0_NS,
                                 LAB_T0_NS + 5000000000};

    return fr_rng_below(r, 3) ? v[fr_rng_below(r, sizeof v / sizeof v[0])]
                              : fr_rng_u64(r) >> fr_rng_below(r, 64);
}

/* Mostly small numbers, so that observations meet each other. */
static uint32_t odd32(struct fr_rng *r, uint32_t usual)
{
    return fr_rng_below(r, 8) ? (uint32_t)fr_rng_below(r, usual) : (uint32_t)odd(r);
}

static void throw_one(struct fr_judge *j, struct fr_rng *r)
{
    static char machine[] = "m";
    uint32_t rank = odd32(r, 10);
    struct fr_comm_key key = {fr_rng_below(r, 6), (uint32_t)fr_rng_below(r, 2)};

    switch (fr_rng_below(r, 14)) {
    case 0:
        fr_judge_proc(j, rank,
                      &(struct fr_obs_proc){(enum fr_proc_state)odd32(r, 6), odd(r), odd(r), odd(r),
                                            odd(r), odd(r), odd(r),
                                            fr_rng_below(r, 2) ? NAN : -INFINITY, (int32_t)odd(r),
                                            (int32_t)odd(r), fr_rng_below(r, 2) != 0});
        break;
    case 1:
        fr_judge_launcher(j, odd32(r, 10), (int32_t)odd(r), odd(r));
        break;
    case 2:
        fr_judge_phase(j, rank, odd32(r, 7), odd(r), odd(r));
        break;
    case 3: {
        int32_t index[5], size[5];

        for (int i = 0; i < 5; i++) {
            index[i] = (int32_t)odd32(r, 4);
            size[i] = (int32_t)odd32(r, 5);
        }
        fr_judge_grid(j, rank, index, size);
        break;
    }
    case 4: {
        uint32_t runs[12];

        for (int i = 0; i < 12; i++)
            runs[i] = odd32(r, 9);
        fr_judge_comm(j, key, odd32(r, 9), runs, (uint32_t)fr_rng_below(r, 5),
                      fr_rng_below(r, 2) ? "a name that is far too long" : NULL);
        break;
    }
    case 5:
        fr_judge_progress(j, rank, key,
                          &(struct fr_obs_progress){odd(r), odd(r), odd(r), odd(r), odd(r), odd(r),
                                                    odd32(r, 70), odd32(r, 12)});
        break;
    case 6:
        fr_judge_now(j, rank,
                     &(struct fr_obs_now){odd32(r, 70), odd32(r, 70), odd(r), key, odd(r), odd(r),
                                          (int32_t)odd32(r, 10), odd(r)});
        break;
    case 7:
        fr_judge_step(j, rank,
                      &(struct fr_obs_step){odd(r), odd(r), odd(r), odd(r), odd(r), odd(r)});
        break;
    case 8:
    case 9:
        fr_judge_record(j, rank,
                        &(struct fr_obs_record){key, odd(r), odd(r), odd(r), odd(r), odd(r), odd(r),
                                                odd32(r, 70), odd32(r, 12), (int32_t)odd(r)});
        break;
    case 10:
        fr_judge_heard(j, odd32(r, 5), odd(r));
        break;
    case 13:
        fr_judge_ras(j, rank,
                     &(struct fr_obs_ras){(enum fr_ras_says)odd32(r, 5), odd(r), odd(r), odd(r),
                                          odd32(r, 5)});
        break;
    case 12:
        fr_judge_comm_freed(j, key, rank);
        break;
    case 11:
        fr_judge_pressure(j, odd32(r, 5),
                          &(struct fr_obs_pressure){fr_rng_below(r, 2) != 0, odd(r), odd(r), odd(r),
                                                    odd(r), fr_rng_below(r, 2) ? machine : NULL},
                          odd(r));
        break;
    }
}

/* Against a plain list: which communicators are held, and how far rank 0 is in each, after any
 * order of making and freeing. */
static void a_communicator_is_held_until_its_last_member_has_freed_it(void **state)
{
    enum { COMMS = 300, RANKS = 4 };
    bool made[COMMS] = {0}, freed[COMMS][RANKS] = {{0}};
    struct fr_judge_config cfg;
    struct fr_judge *j;
    struct fr_rng r = {5};
    uint32_t node_of[RANKS] = {0, 0, 1, 1}, held = 0;

    (void)state;
    fr_judge_defaults(&cfg);
    j = fr_judge_new(&cfg);
    fr_judge_begin(j, RANKS, node_of, 2, NS);
    for (int i = 0; i < 60000; i++) {
        uint32_t c = (uint32_t)fr_rng_below(&r, COMMS), rank = (uint32_t)fr_rng_below(&r, RANKS);
        /* keys that often share their place in a small table */
        struct fr_comm_key key = {1 + c / 3, c % 3};
        uint32_t runs[] = {0, 1, RANKS};
        struct fr_judge_summary before, after;
        int rc, all = 1;

        if (!made[c] && held < 60) {
            fr_judge_comm(j, key, RANKS, runs, c % 2, "x");
            made[c] = true;
            memset(freed[c], 0, sizeof freed[c]);
            held++;
            continue;
        }
        if (fr_rng_below(&r, 2)) { /* known: taken; not known: counted as ignored */
            fr_judge_summary(j, &before);
            fr_judge_progress(j, 0, key, &(struct fr_obs_progress){.enqueued = 1});
            fr_judge_summary(j, &after);
            assert_int_equal(after.ignored - before.ignored, !made[c]);
            continue;
        }
        rc = fr_judge_comm_freed(j, key, rank);
        if (!made[c]) {
            assert_int_equal(rc, -ENOENT);
            continue;
        }
        freed[c][rank] = true;
        for (int k = 0; k < RANKS; k++)
            all &= freed[c][k];
        assert_int_equal(rc, all);
        if (all) {
            made[c] = false;
            held--;
        }
    }
    fr_judge_free(j);
}

static void no_observation_however_odd_breaks_the_judge(void **state)
{
    struct fr_rng r = {99};

    (void)state;
    for (int i = 0; i < 300; i++) {
        struct fr_judge_config cfg;
        struct fr_judge *j;
        uint32_t node_of[10];

        fr_judge_defaults(&cfg);
        cfg.slow_window_steps = odd32(&r, 40);
        j = fr_judge_new(&cfg);
        for (int a = 0; a < 3; a++) {
            for (int k = 0; k < 10; k++)
                node_of[k] = odd32(&r, 5);
            fr_judge_begin(j, (uint32_t)fr_rng_below(&r, 11), node_of,
                           (uint32_t)fr_rng_below(&r, 6), odd(&r));
            for (int k = 0; k < 1000; k++) {
                struct fr_finding f[8];
                struct fr_judge_group g[8];
                struct fr_judge_rank jr;
                struct fr_judge_summary s;

                throw_one(j, &r);
                if (k % 16)
                    continue;
                for (size_t n = fr_judge_findings(j, odd(&r), f, fr_rng_below(&r, 9)); n > 0; n--) {
                    assert_in_range(f[n - 1].kind, 1, FR_FINDING_KINDS - 1);
                    assert_true(f[n - 1].key != 0 && f[n - 1].nlines <= FR_FINDING_LINES);
                    assert_true(f[n - 1].rank >= -1 && f[n - 1].rank < 10);
                    assert_true(f[n - 1].confidence >= 0 && f[n - 1].confidence <= 1);
                }
                fr_judge_summary(j, &s);
                fr_judge_groups(j, g, 8);
                fr_judge_rank(j, odd32(&r, 10), &jr);
            }
        }
        fr_judge_free(j);
    }
}

/* A healthy job, and between its reports a liar's: unknown ranks, empty groups, times from nowhere,
 * jumps by 1e9. */
static void nonsense_beside_a_healthy_job_accuses_nobody(void **state)
{
    static struct lab lab;
    struct fr_rng r = {5};

    (void)state;
    for (int i = 0; i < 30; i++) {
        struct fr_judge_summary s;

        lab_init(&lab, 2, 2, 2, 2, fr_rng_u64(&r));
        lab_start(&lab);
        while (lab.now_s < 15) {
            struct fr_finding f[16];
            uint32_t nobody = 8 + (uint32_t)fr_rng_below(&r, 1000);

            lab_tick(&lab);
            fr_judge_proc(lab.j, nobody,
                          &(struct fr_obs_proc){.state = FR_PROC_GONE, .exit_signal = 9});
            fr_judge_launcher(lab.j, nobody, 9, lab_now_ns(&lab));
            fr_judge_comm(lab.j, (struct fr_comm_key){5, 5}, 0, NULL, 0, "empty");
            fr_judge_comm(lab.j, (struct fr_comm_key){6, 5}, 9, NULL, 0, "too large");
            fr_judge_comm(lab.j, (struct fr_comm_key){7, 5}, 4,
                          (uint32_t[]){UINT32_MAX, UINT32_MAX, 4}, 1, "outside");
            fr_judge_step(
                lab.j, 1,
                &(struct fr_obs_step){
                    .step = 1000000000000, .begin_ns = 5, .end_ns = 6, .self_ns = UINT64_MAX});
            fr_judge_step(lab.j, 1, &(struct fr_obs_step){.step = 1, .begin_ns = 9, .end_ns = 6});
            fr_judge_progress(lab.j, 1, (struct fr_comm_key){12345, 1},
                              &(struct fr_obs_progress){.enqueued = 1000000000});
            fr_judge_progress(
                lab.j, 1, (struct fr_comm_key){1008, 0},
                &(struct fr_obs_progress){.enqueued = 1,
                                          .completed = 1000000000}); /* completed more than begun */
            fr_judge_record(lab.j, 2,
                            &(struct fr_obs_record){.comm = {1008, 0},
                                                    .seq = 3,
                                                    .start_ns = 10,
                                                    .end_ns = 2,
                                                    .op = FR_OP_ALLREDUCE});
            fr_judge_pressure(lab.j, 77, &(struct fr_obs_pressure){.readable = true}, 1);
            fr_judge_heard(lab.j, 77, 1);
            assert_int_equal(fr_judge_findings(lab.j, lab_now_ns(&lab), f, 16), 0);
        }
        fr_judge_summary(lab.j, &s);
        assert_true(s.ignored > 1000);
        lab_fini(&lab);
    }
}

static void findings_fit_into_the_room_that_is_given(void **state)
{
    struct fr_judge_config cfg;
    struct fr_judge *j;
    uint32_t node_of[2] = {0, 1};
    struct fr_finding f[2];

    (void)state;
    fr_judge_defaults(&cfg);
    j = fr_judge_new(&cfg);
    assert_int_equal(fr_judge_findings(j, 5, f, 2), 0); /* before any attempt */
    fr_judge_begin(j, 2, node_of, 2, LAB_T0_NS);
    fr_judge_proc(j, 0,
                  &(struct fr_obs_proc){
                      .state = FR_PROC_GONE, .state_since_ns = LAB_T0_NS, .exit_signal = 9});
    assert_int_equal(fr_judge_findings(j, LAB_T0_NS + NS, f, 0), 0);
    assert_int_equal(fr_judge_findings(j, LAB_T0_NS + NS, f, 2), 1);
    fr_judge_free(j);
    fr_judge_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_communicator_is_held_until_its_last_member_has_freed_it),
        cmocka_unit_test(no_observation_however_odd_breaks_the_judge),
        cmocka_unit_test(nonsense_beside_a_healthy_job_accuses_nobody),
        cmocka_unit_test(findings_fit_into_the_room_that_is_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
