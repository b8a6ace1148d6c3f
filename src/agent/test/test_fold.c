/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold.c - folding against a brute-force refold of all records */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "agent/fold.h"
#include "base/rng.h"
#include "model/op.h"
#include "wire/ring.h"

static struct fr_wire_record random_record(struct fr_rng *g, uint64_t step)
{
    static const uint8_t ops[] = {FR_OP_ALLREDUCE, FR_OP_BCAST, FR_OP_SEND, FR_OP_RECV,
                                  FR_OP_BARRIER};
    struct fr_wire_record r = {0};

    r.members_hash = 100 + fr_rng_below(g, 3);
    r.instance = (uint32_t)fr_rng_below(g, 2);
    r.op = ops[fr_rng_below(g, sizeof ops)];
    r.step = step;
    r.bytes = fr_rng_below(g, 1u << 20);
    r.start_ns = 1000 + fr_rng_below(g, 1000000);
    r.end_ns = r.start_ns + fr_rng_below(g, 5000);
    return r;
}

static struct fr_wire_record end_of(uint64_t step)
{
    struct fr_wire_record r = {.op = FR_OP_STEP,
                               .seq = step,
                               .step = step,
                               .start_ns = step * 10,
                               .end_ns = step * 10 + 9};

    return r;
}

/* The oracle: for each (hash, instance, op) one pass over all records. */
static void check_against_refold(const struct fr_fold_step *s, const struct fr_wire_record *all,
                                 size_t n)
{
    size_t groups = 0;

    for (uint64_t hash = 100; hash < 103; hash++)
        for (uint32_t instance = 0; instance < 2; instance++)
            for (uint32_t op = 0; op <= FR_OP_MAX; op++) {
                uint64_t count = 0, bytes = 0, sum = 0, least = UINT64_MAX;
                const struct fr_fold_group *g = NULL;

                for (size_t i = 0; i < n; i++) {
                    const struct fr_wire_record *r = &all[i];

                    if (r->step != s->step || r->op == FR_OP_STEP || r->members_hash != hash ||
                        r->instance != instance || r->op != op)
                        continue;
                    count++;
                    bytes += r->bytes;
                    sum += r->end_ns - r->start_ns;
                    if (r->end_ns - r->start_ns < least)
                        least = r->end_ns - r->start_ns;
                }
                for (size_t i = 0; i < s->ngroups; i++)
                    if (s->groups[i].members_hash == hash && s->groups[i].instance == instance &&
                        s->groups[i].op == op)
                        g = &s->groups[i];
                if (!count) {
                    assert_null(g);
                    continue;
                }
                groups++;
                assert_non_null(g);
                assert_int_equal(g->count, count);
                assert_int_equal(g->bytes, bytes);
                assert_int_equal(g->duration_ns, sum);
                assert_int_equal(g->min_ns, least);
            }
    assert_int_equal(groups, s->ngroups);
}

static void sums_of_every_step_equal_a_brute_force_refold(void **state)
{
    enum { STEPS = 40, N = 4000 };
    static struct fr_wire_record all[N + STEPS];
    struct fr_rng g = {11};
    struct fr_fold f;
    size_t n = 0;

    (void)state;
    fr_fold_init(&f);
    fr_fold_keep(&f, 2, 0);
    for (uint64_t step = 1; step <= STEPS; step++) {
        for (int i = 0; i < N / STEPS; i++)
            all[n++] = random_record(&g, step > 1 && fr_rng_below(&g, 10) == 0 ? step - 1 : step);
        all[n++] = end_of(step);
    }
    for (size_t i = 0; i < n; i++)
        fr_fold_record(&f, &all[i]);
    for (uint64_t step = 1; step <= STEPS; step++) {
        const struct fr_fold_step *s = fr_fold_find(&f, step);
        size_t k = 0;

        assert_non_null(s);
        assert_true(s->ended && !s->torn);
        assert_int_equal(s->end_ns - s->begin_ns, 9);
        check_against_refold(s, all, n);
        if (step % 4 != 0) {
            assert_int_equal(s->nrecords, 0);
            continue;
        }
        for (size_t i = 0; i < n; i++) /* kept whole, in order */
            if (all[i].step == step)
                assert_memory_equal(&s->records[k++], &all[i], sizeof all[i]);
        assert_int_equal(k, s->nrecords);
    }
    assert_int_equal(f.records, n);
    fr_fold_close(&f, STEPS);
    assert_null(fr_fold_find(&f, STEPS));
    fr_fold_fini(&f);
}

static void a_step_with_lost_records_has_no_sums_and_the_next_whole_one_has(void **state)
{
    struct fr_rng g = {5};
    struct fr_fold f;
    struct fr_wire_record r;

    (void)state;
    fr_fold_init(&f);
    fr_fold_keep(&f, 0, 0);
    r = random_record(&g, 1);
    fr_fold_record(&f, &r);
    fr_fold_lost(&f);
    r = random_record(&g, 2); /* its beginning may have been lost too */
    fr_fold_record(&f, &r);
    r = end_of(2);
    fr_fold_record(&f, &r);
    r = random_record(&g, 3);
    fr_fold_record(&f, &r);
    assert_true(fr_fold_find(&f, 1)->torn);
    assert_true(fr_fold_find(&f, 2)->torn);
    assert_int_equal(fr_fold_find(&f, 2)->ngroups, 0);
    assert_int_equal(fr_fold_find(&f, 2)->nrecords, 0);
    assert_false(fr_fold_find(&f, 3)->torn);
    assert_int_equal(fr_fold_find(&f, 3)->ngroups, 1);
    fr_fold_fini(&f);
}

static void a_closed_step_is_not_opened_by_a_late_record(void **state)
{
    struct fr_wire_record r = end_of(9);
    struct fr_fold f;

    (void)state;
    fr_fold_init(&f);
    fr_fold_record(&f, &r);
    fr_fold_close(&f, 9);
    r = end_of(8);
    fr_fold_record(&f, &r);
    assert_null(fr_fold_find(&f, 8));
    assert_null(fr_fold_find(&f, 9));
    fr_fold_fini(&f);
}

static void hostile_numbers_of_groups_steps_and_records_stay_within_bounds(void **state)
{
    struct fr_wire_record r = {0};
    struct fr_fold f;
    size_t open = 0;

    (void)state;
    fr_fold_init(&f);
    fr_fold_keep(&f, 0, 0);
    r.op = FR_OP_ALLREDUCE;
    r.step = 1;
    for (uint64_t i = 0; i < FR_FOLD_GROUPS + 5; i++) {
        r.members_hash = i;
        fr_fold_record(&f, &r);
    }
    assert_true(fr_fold_find(&f, 1)->torn);
    r.members_hash = 7;
    r.step = 2;
    for (size_t i = 0; i < FR_FOLD_RECORDS + 5; i++)
        fr_fold_record(&f, &r);
    assert_false(fr_fold_find(&f, 2)->torn);
    assert_int_equal(fr_fold_find(&f, 2)->nrecords, 0); /* too many to forward */
    assert_int_equal(fr_fold_find(&f, 2)->groups[0].count, FR_FOLD_RECORDS + 5);
    for (uint64_t i = 3; i < 3 + 4 * FR_FOLD_OPEN; i++) {
        r.step = i * 1000003;
        fr_fold_record(&f, &r);
    }
    for (size_t i = 0; i < FR_FOLD_OPEN; i++)
        open += f.open[i] != NULL;
    assert_int_equal(open, FR_FOLD_OPEN);
    assert_true(f.evicted > 0);
    r.end_ns = 1;
    r.start_ns = UINT64_MAX; /* ends before it starts: counts as no time */
    r.step = 5000000000ull;
    fr_fold_record(&f, &r);
    assert_int_equal(fr_fold_find(&f, 5000000000ull)->groups[0].duration_ns, 0);
    fr_fold_fini(&f);
}

static void kept_steps_nest_and_a_burst_keeps_all(void **state)
{
    struct fr_fold f;

    (void)state;
    fr_fold_init(&f);
    assert_false(fr_fold_is_kept(&f, 4096));
    for (uint32_t k = 0; k < 10; k++)
        for (uint64_t n = 1; n < 2048; n++) {
            fr_fold_keep(&f, k, 0);
            assert_int_equal(fr_fold_is_kept(&f, n), n % (1u << k) == 0);
        }
    fr_fold_keep(&f, 9, 100);
    assert_true(fr_fold_is_kept(&f, 100));
    assert_false(fr_fold_is_kept(&f, 101));
    assert_false(fr_fold_is_kept(&f, 0));
    fr_fold_keep(&f, 4000000000u, 0);
    assert_false(fr_fold_is_kept(&f, 1));
}

/* Against a count of the nanoseconds one by one. */
static void time_on_a_gpu_is_the_union_of_its_operations(void **state)
{
    static uint8_t covered[4096];
    struct fr_rng g = {.s = 11};
    struct fr_fold f;
    uint64_t want = 0;

    (void)state;
    fr_fold_init(&f);
    for (int i = 0; i < 200; i++) {
        struct fr_wire_record r = {.members_hash = 1, .op = FR_OP_ALLREDUCE, .step = 5};

        r.start_ns = fr_rng_below(&g, 4000);
        r.end_ns = r.start_ns + fr_rng_below(&g, 20);
        r.flags = i & 1 ? FR_REC_GPU_CLOCK : 0; /* calls of the host are counted elsewhere */
        for (uint64_t t = r.start_ns; r.flags && t < r.end_ns; t++)
            covered[t] = 1;
        fr_fold_record(&f, &r);
    }
    for (size_t t = 0; t < sizeof covered; t++)
        want += covered[t];
    assert_true(want > 0);
    assert_int_equal(fr_fold_gpu_ns(fr_fold_find(&f, 5)), want);
    fr_fold_fini(&f);
}

/* A copy-engine collective: it counts with its bytes, and says nothing of time. */
static void an_operation_without_an_end_counts_and_has_no_time(void **state)
{
    struct fr_wire_record timed = {.members_hash = 1,
                                   .op = FR_OP_ALLGATHER,
                                   .step = 4,
                                   .bytes = 10,
                                   .start_ns = 100,
                                   .end_ns = 130},
                          untimed = timed;
    struct fr_fold f;
    const struct fr_fold_step *s;

    (void)state;
    untimed.end_ns = untimed.start_ns;
    untimed.flags = FR_REC_UNTIMED;
    fr_fold_init(&f);
    fr_fold_keep(&f, 0, 0);
    fr_fold_record(&f, &untimed);
    fr_fold_record(&f, &timed);
    s = fr_fold_find(&f, 4);
    assert_int_equal(s->groups[0].count, 2);
    assert_int_equal(s->groups[0].bytes, 20);
    assert_int_equal(s->groups[0].duration_ns, 30);
    assert_int_equal(s->groups[0].min_ns, 30);
    assert_int_equal(s->nrecords, 1);
    fr_fold_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_on_a_gpu_is_the_union_of_its_operations),
        cmocka_unit_test(an_operation_without_an_end_counts_and_has_no_time),
        cmocka_unit_test(sums_of_every_step_equal_a_brute_force_refold),
        cmocka_unit_test(a_step_with_lost_records_has_no_sums_and_the_next_whole_one_has),
        cmocka_unit_test(a_closed_step_is_not_opened_by_a_late_record),
        cmocka_unit_test(hostile_numbers_of_groups_steps_and_records_stay_within_bounds),
        cmocka_unit_test(kept_steps_nest_and_a_burst_keeps_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
