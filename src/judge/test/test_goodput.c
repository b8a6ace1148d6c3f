/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goodput: cases worked out by hand, and random histories against a time line that is filled
 * nanosecond by nanosecond, by rules that are asked of each nanosecond alone.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "judge/goodput.h"

enum { RESTORE = 2, EVAL = 4, CHECKPOINT = 5 }; /* enum fullrank_phase */
#define MAX  40
#define LINE 1000

struct history {
    struct fr_gp_attempt attempts[MAX];
    struct fr_gp_step steps[MAX];
    struct fr_gp_span spans[MAX];
    struct fr_gp_trouble troubles[MAX];
    struct fr_gp_input in;
};

static void history_init(struct history *h, int64_t submitted, int64_t now, double base_ns)
{
    memset(h, 0, sizeof *h);
    h->in = (struct fr_gp_input){.submitted_ns = submitted,
                                 .now_ns = now,
                                 .attempts = h->attempts,
                                 .steps = h->steps,
                                 .spans = h->spans,
                                 .troubles = h->troubles,
                                 .baseline_step_s = base_ns * 1e-9};
}
static void attempt(struct history *h, int64_t start, int64_t stop, int64_t end)
{
    h->attempts[h->in.nattempts++] =
        (struct fr_gp_attempt){.start_ns = start, .end_ns = end, .stop_ns = stop};
}
static void step(struct history *h, uint32_t a, uint64_t s, int64_t begin, int64_t end)
{
    h->steps[h->in.nsteps++] = (struct fr_gp_step){a, s, begin, end};
}
static void span(struct history *h, uint32_t a, uint32_t phase, int64_t begin, int64_t end)
{
    h->spans[h->in.nspans++] = (struct fr_gp_span){a, phase, begin, end};
}
static void trouble(struct history *h, uint32_t a, int slow, int64_t begin, int64_t named,
                    int64_t end)
{
    h->troubles[h->in.ntroubles++] = (struct fr_gp_trouble){a, slow, begin, named, end};
}

static int64_t sum(const struct fr_gp_account *a)
{
    int64_t s = 0;

    for (int b = 0; b < FR_BUCKETS; b++)
        s += a->bucket_ns[b];
    return s;
}

/* Expected values in the order of enum fr_bucket. */
static void expect(const struct history *h, const int64_t want[FR_BUCKETS])
{
    struct fr_gp_account a;

    assert_int_equal(fr_goodput(&h->in, &a), 0);
    for (int b = 0; b < FR_BUCKETS; b++)
        if (a.bucket_ns[b] != want[b])
            fail_msg("%s: got %lld, want %lld", fr_bucket_name((enum fr_bucket)b),
                     (long long)a.bucket_ns[b], (long long)want[b]);
    assert_int_equal(a.wall_ns, h->in.now_ns - h->in.submitted_ns);
    assert_int_equal(sum(&a), a.wall_ns);
}

/* ---- the oracle: asks of each nanosecond alone what covers it ---- */

/* The attempt that runs at t, -1 none: a later start ends an earlier attempt. */
static int running_at(const struct history *h, int64_t t)
{
    for (size_t a = h->in.nattempts; a-- > 0;)
        if (t >= h->attempts[a].start_ns)
            return h->attempts[a].end_ns == 0 || t < h->attempts[a].end_ns ? (int)a : -1;
    return -1;
}

static int is_kept(const struct history *h, size_t i)
{
    const struct fr_gp_step *s = &h->steps[i];

    for (size_t k = 0; k < h->in.nsteps; k++) {
        const struct fr_gp_step *o = &h->steps[k];
        int later =
            o->attempt > s->attempt ||
            (o->attempt == s->attempt &&
             (o->begin_ns > s->begin_ns || (o->begin_ns == s->begin_ns && o->step > s->step)));

        if (later && o->step <= s->step)
            return 0;
    }
    return 1;
}

/* The first step of the wanted kind that runs at t, -1 none. The generator lays steps in order. */
static int step_at(const struct history *h, int a, int64_t t, int kept)
{
    for (size_t i = 0; i < h->in.nsteps; i++)
        if ((int)h->steps[i].attempt == a && t >= h->steps[i].begin_ns && t < h->steps[i].end_ns &&
            is_kept(h, i) == kept)
            return (int)i;
    return -1;
}

static int span_at(const struct history *h, int a, int64_t t, uint32_t phase)
{
    for (size_t i = 0; i < h->in.nspans; i++)
        if ((int)h->spans[i].attempt == a && h->spans[i].phase == phase &&
            t >= h->spans[i].begin_ns && t < h->spans[i].end_ns)
            return 1;
    return 0;
}

/* 's': slow, 'd': detected, 'u': undetected */
static int trouble_at(const struct history *h, int a, int64_t t, char what)
{
    for (size_t i = 0; i < h->in.ntroubles; i++) {
        const struct fr_gp_trouble *x = &h->troubles[i];
        int ended = x->end_ns != 0 && t >= x->end_ns;
        int covered = what == 's'   ? t >= x->begin_ns && !ended
                      : what == 'd' ? t >= x->named_ns && !ended
                                    : t >= x->begin_ns && t < x->named_ns;

        if ((int)x->attempt == a && x->slow == (what == 's') && covered)
            return 1;
    }
    return 0;
}

static int bucket_at(const struct history *h, int a, int64_t t)
{
    const struct fr_gp_attempt *at = &h->attempts[a];
    int64_t first = INT64_MAX, last = -1;

    if (at->stop_ns && t >= at->stop_ns)
        return FR_BUCKET_TEARDOWN;
    if (trouble_at(h, a, t, 'd'))
        return FR_BUCKET_HANG_DETECTED;
    if (trouble_at(h, a, t, 'u'))
        return FR_BUCKET_HANG_UNDETECTED;
    if (span_at(h, a, t, RESTORE))
        return FR_BUCKET_RESTORE;
    if (span_at(h, a, t, CHECKPOINT))
        return FR_BUCKET_CHECKPOINT;
    if (span_at(h, a, t, EVAL))
        return FR_BUCKET_OTHER;
    if (step_at(h, a, t, 1) >= 0)
        return FR_BUCKET_PRODUCTIVE;
    if (step_at(h, a, t, 0) >= 0)
        return FR_BUCKET_REWORK;
    for (size_t i = 0; i < h->in.nsteps; i++)
        if ((int)h->steps[i].attempt == a) {
            first = h->steps[i].begin_ns < first ? h->steps[i].begin_ns : first;
            last = h->steps[i].end_ns > last ? h->steps[i].end_ns : last;
        }
    for (size_t i = 0; i < h->in.nspans; i++)
        if ((int)h->spans[i].attempt == a && h->spans[i].end_ns > last)
            last = h->spans[i].end_ns;
    if (!at->stop_ns && at->end_ns && last >= 0 && t >= last)
        return FR_BUCKET_TEARDOWN;
    if (at->moved_ns && t >= at->moved_ns)
        return FR_BUCKET_OTHER;
    return t < first ? FR_BUCKET_LAUNCH : FR_BUCKET_OTHER;
}

/* The median by counting: the values with half of the others at or below them. */
static double brute_median(const double *v, size_t n)
{
    double lo = NAN, hi = NAN;

    for (size_t i = 0; i < n; i++) {
        size_t below = 0, equal = 0;

        for (size_t k = 0; k < n; k++) {
            below += v[k] < v[i];
            equal += v[k] == v[i];
        }
        if (below <= (n - 1) / 2 && (n - 1) / 2 < below + equal)
            lo = v[i];
        if (below <= n / 2 && n / 2 < below + equal)
            hi = v[i];
    }
    return 0.5 * (lo + hi);
}

static void brute_force(const struct history *h, struct fr_gp_account *acc)
{
    int64_t owned[MAX] = {0}, slow[MAX] = {0}, bad[MAX] = {0};
    double pace[MAX];
    size_t npace = 0;

    memset(acc, 0, sizeof *acc);
    for (int64_t t = h->in.submitted_ns; t < h->in.now_ns; t++) {
        int a = running_at(h, t), b, s;

        if (a < 0) {
            acc->bucket_ns[FR_BUCKET_QUEUE]++;
            continue;
        }
        b = bucket_at(h, a, t);
        acc->bucket_ns[b]++;
        s = step_at(h, a, t, 1);
        if (s < 0)
            continue;
        owned[s] += b == FR_BUCKET_PRODUCTIVE;
        slow[s] += b == FR_BUCKET_PRODUCTIVE && trouble_at(h, a, t, 's');
        bad[s] += trouble_at(h, a, t, 's') || b == FR_BUCKET_TEARDOWN ||
                  b == FR_BUCKET_HANG_DETECTED || b == FR_BUCKET_HANG_UNDETECTED;
    }
    for (size_t i = 0; i < h->in.nsteps; i++)
        if (is_kept(h, i)) {
            acc->steps_kept++;
            if (owned[i] > 0 && bad[i] == 0)
                pace[npace++] = (double)owned[i];
        }
    acc->baseline_step_s =
        isnan(h->in.baseline_step_s) ? brute_median(pace, npace) * 1e-9 : h->in.baseline_step_s;
    for (size_t i = 0; i < h->in.nsteps && isfinite(acc->baseline_step_s); i++)
        for (int64_t k = llround(acc->baseline_step_s * 1e9); k < owned[i] && slow[i] > 0; k++) {
            slow[i]--;
            acc->bucket_ns[FR_BUCKET_PRODUCTIVE]--;
            acc->bucket_ns[FR_BUCKET_STRAGGLE]++;
        }
}

static int64_t pick(struct fr_rng *r, int64_t lo, int64_t hi)
{
    return hi <= lo ? lo : lo + (int64_t)fr_rng_below(r, (uint64_t)(hi - lo + 1));
}

/* A history that could be, with rough edges: spans that overlap, stick out, or have no length. */
static void make_history(struct history *h, struct fr_rng *r)
{
    int64_t line = pick(r, 1, fr_rng_below(r, 4) ? 250 : 1000), t;
    int na = (int)pick(r, 0, 4);

    history_init(h, pick(r, 0, line / 8), 0, 0);
    h->in.now_ns = pick(r, fr_rng_below(r, 8) ? line - line / 8 : h->in.submitted_ns, line);
    h->in.baseline_step_s = fr_rng_below(r, 2) ? NAN : (double)pick(r, 1, 30) * 1e-9;
    t = pick(r, 0, line / 4);
    for (int a = 0; a < na; a++) {
        int64_t start = t, end = pick(r, start, line), s;
        int ns = (int)pick(r, 0, 7), open = a == na - 1 && fr_rng_below(r, 2);

        attempt(h, start, fr_rng_below(r, 2) ? pick(r, start, line) : 0, open ? 0 : end);
        if (fr_rng_below(r, 4) == 0)
            h->attempts[a].moved_ns = pick(r, 1, line);
        s = pick(r, start < 3 ? 0 : start - 3, start + 20);
        for (int i = 0, no = (int)pick(r, 0, 9); i < ns; i++) {
            int64_t e = pick(r, s, s + 25);

            step(h, (uint32_t)a, (uint64_t)no, s, e);
            no += fr_rng_below(r, 8) ? 1 : -1 * (no > 0);
            s = pick(r, s + 1, e + 5); /* strictly later, maybe before the last one ended */
        }
        for (int i = (int)pick(r, 0, 3); i > 0; i--) {
            static const uint32_t phases[] = {RESTORE, EVAL, CHECKPOINT};

            s = pick(r, 0, line);
            span(h, (uint32_t)a, phases[fr_rng_below(r, 3)], s, pick(r, s, s + 40));
        }
        for (int i = (int)pick(r, 0, 2); i > 0; i--) {
            int slow = (int)fr_rng_below(r, 2);
            int64_t named = pick(r, 1, line);

            trouble(h, (uint32_t)a, slow, pick(r, 0, named), named,
                    fr_rng_below(r, 3) ? pick(r, named, line) : 0);
        }
        t = pick(r, start,
                 fr_rng_below(r, 4) ? line : end); /* now and then before the last one ended */
    }
}

static void random_histories_agree_with_a_time_line_asked_nanosecond_by_nanosecond(void **state)
{
    struct fr_rng r = {20260301};
    uint64_t seen[FR_BUCKETS] = {0};

    (void)state;
    for (int n = 0; n < 20000; n++) {
        struct history h;
        struct fr_gp_account got, want;

        make_history(&h, &r);
        brute_force(&h, &want);
        assert_int_equal(fr_goodput(&h.in, &got), 0);
        for (int b = 0; b < FR_BUCKETS; b++) {
            assert_true(got.bucket_ns[b] >= 0);
            if (got.bucket_ns[b] != want.bucket_ns[b])
                fail_msg("history %d, %s: got %lld, want %lld", n,
                         fr_bucket_name((enum fr_bucket)b), (long long)got.bucket_ns[b],
                         (long long)want.bucket_ns[b]);
            seen[b] += got.bucket_ns[b] > 0;
        }
        assert_int_equal(sum(&got), got.wall_ns);
        assert_int_equal(got.wall_ns, h.in.now_ns - h.in.submitted_ns);
        assert_int_equal(got.steps_kept, want.steps_kept);
        assert_int_equal(got.steps_kept + got.steps_redone, h.in.nsteps);
    }
    for (int b = 0; b < FR_BUCKETS; b++)
        assert_true(seen[b] > 200); /* the generator reaches every bucket */
}

/* The sum stays exact when times are those of a real clock and the list is long and out of order.
 */
static void a_six_week_job_in_any_order_still_adds_up_to_the_nanosecond(void **state)
{
    enum { N = 50000 };
    struct fr_gp_step *s = calloc(N, sizeof *s);
    const int64_t t0 = 1790000000123456789;
    struct fr_gp_attempt a = {.start_ns = t0 + 7};
    struct fr_gp_input in = {.submitted_ns = t0,
                             .attempts = &a,
                             .steps = s,
                             .nattempts = 1,
                             .nsteps = N,
                             .baseline_step_s = NAN};
    struct fr_gp_account acc;
    struct fr_rng r = {3};
    int64_t t = t0 + 1000000007;

    (void)state;
    assert_non_null(s);
    for (int i = 0; i < N; i++) {
        int64_t d = 70000000000 + (int64_t)fr_rng_below(&r, 1000000000);

        s[i] = (struct fr_gp_step){0, (uint64_t)i + 1, t, t + d};
        t += d;
    }
    for (int i = N - 1; i > 0; i--) {
        size_t k = (size_t)fr_rng_below(&r, (uint64_t)i + 1);
        struct fr_gp_step x = s[i];

        s[i] = s[k];
        s[k] = x;
    }
    in.now_ns = t + 5;
    assert_int_equal(fr_goodput(&in, &acc), 0);
    assert_int_equal(sum(&acc), in.now_ns - t0);
    assert_int_equal(acc.bucket_ns[FR_BUCKET_QUEUE], 7);
    assert_int_equal(acc.bucket_ns[FR_BUCKET_LAUNCH], 1000000000);
    assert_int_equal(acc.bucket_ns[FR_BUCKET_OTHER], 5);
    assert_int_equal(acc.steps_kept, N);
    free(s);
}

/* order of the wanted values: productive, straggle, undetected, detected, rework, restore,
 * checkpoint, launch, teardown, queue, other */

/* 0..10 queue; attempt 0 10..100: launch 10..20, steps 1-4 of 10 each to 60, dies at 60 (stop) and
 * is gone at 70: teardown
 * 10. Queue 70..80. Attempt 1 80..: launch 80..85, restore 85..90, step 3 90..100, step 4 100..110,
 * now 112. Steps 3, 4 of attempt 0 are redone: rework 20. Kept: 1, 2 and the new 3, 4: 40. Other
 * 110..112: 2. */
static void a_restart_at_an_older_step_makes_the_steps_between_rework(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 112, 10);
    attempt(&h, 10, 60, 70);
    for (int i = 0; i < 4; i++)
        step(&h, 0, (uint64_t)i + 1, 20 + 10 * i, 30 + 10 * i);
    attempt(&h, 80, 0, 0);
    span(&h, 1, RESTORE, 85, 90);
    step(&h, 1, 3, 90, 100);
    step(&h, 1, 4, 100, 110);
    expect(&h, (int64_t[]){40, 0, 0, 0, 20, 5, 0, 15, 10, 20, 2});
}

/* Attempt 0: launch 0..5, steps 1, 2, 3 5..35, over at 35. Attempt 1: launch 40..50, steps 1..
 * again: all three rework. */
static void a_restart_from_the_beginning_makes_all_steps_rework(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 60, 10);
    attempt(&h, 0, 35, 40);
    for (int i = 0; i < 3; i++)
        step(&h, 0, (uint64_t)i + 1, 5 + 10 * i, 15 + 10 * i);
    attempt(&h, 40, 0, 0);
    step(&h, 1, 1, 50, 60);
    expect(&h, (int64_t[]){10, 0, 0, 0, 30, 0, 0, 15, 5, 0, 0});
}

/* Attempt 1 and 2 make no step: attempt 1 is launch 30..40 and teardown 40..45, attempt 2
 * launch 50..70, over without an order at 70. Attempt 3 goes on with step 3 behind step 2: nothing
 * is lost. */
static void restarts_without_a_step_lose_no_step(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 90, 10);
    attempt(&h, 0, 25, 30);
    step(&h, 0, 1, 5, 15);
    step(&h, 0, 2, 15, 25);
    attempt(&h, 30, 40, 45);
    attempt(&h, 50, 0, 70);
    attempt(&h, 75, 0, 0);
    step(&h, 3, 3, 80, 90);
    /* launch 5 + 10 + 20 + 5, teardown 5 + 5, queue 45..50 and 70..75 */
    expect(&h, (int64_t[]){30, 0, 0, 0, 0, 0, 0, 40, 10, 10, 0});
}

/* Attempt 0: launch 0..5, ran 5..25, teardown 25..30. Attempt 1: launch 40..50, runs until now. */
static void a_job_that_marks_no_steps_is_launched_until_its_first_collective(void **state)
{
    struct history h;
    struct fr_gp_account a;

    (void)state;
    history_init(&h, 0, 90, NAN);
    attempt(&h, 0, 25, 30);
    attempt(&h, 40, 0, 0);
    h.attempts[0].moved_ns = 5;
    h.attempts[1].moved_ns = 50;
    expect(&h, (int64_t[]){0, 0, 0, 0, 0, 0, 0, 15, 5, 10, 60});
    assert_int_equal(fr_goodput(&h.in, &a), 0);
    assert_true(isnan(a.goodput_ratio)); /* not known, which is not 0 */
}

/* Killed while it saves: the save 20..30 is cut by the death, last movement 22, named 25, stop 26,
 * gone 28. Checkpoint 20..22, undetected 22..25, detected 25..26, teardown 26..28. */
static void a_job_killed_during_a_save_has_the_save_until_its_last_movement(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 28, 10);
    attempt(&h, 0, 26, 28);
    step(&h, 0, 1, 0, 10);
    step(&h, 0, 2, 10, 20);
    span(&h, 0, CHECKPOINT, 20, 30);
    trouble(&h, 0, 0, 22, 25, 0);
    expect(&h, (int64_t[]){20, 0, 3, 1, 0, 0, 2, 0, 2, 0, 0});
}

/* Steps 1 (0..12) and 2 (8..20) overlap, a save 5..7 lies in step 1 and an evaluation 18..25 over
 * the end of step 2 and the save 24..26. No end of the job: now 30. Productive 0..5, 7..18;
 * save 5..7, 24..26; other 18..24, 26..30. */
static void overlapping_spans_are_counted_once(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 30, 10);
    attempt(&h, 0, 0, 0);
    step(&h, 0, 1, 0, 12);
    step(&h, 0, 2, 8, 20);
    span(&h, 0, CHECKPOINT, 5, 7);
    span(&h, 0, EVAL, 18, 25);
    span(&h, 0, CHECKPOINT, 24, 26);
    expect(&h, (int64_t[]){16, 0, 0, 0, 0, 0, 4, 0, 0, 0, 10});
}

/* Step 1 0..10; hang: last movement 10, named 15, the attempt is stopped at 20 and gone at 24. */
static void a_hang_is_split_where_it_was_named(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 24, 10);
    attempt(&h, 0, 20, 24);
    step(&h, 0, 1, 0, 10);
    trouble(&h, 0, 0, 10, 15, 0);
    expect(&h, (int64_t[]){10, 0, 5, 5, 0, 0, 0, 0, 4, 0, 0});
}

/* Step 2 10..40 holds a hang that passed: moved last at 12, named 20, over at 35. Productive 10 + 2
 * + 5. */
static void a_hang_that_passed_is_taken_out_of_its_step(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 40, 10);
    attempt(&h, 0, 0, 0);
    step(&h, 0, 1, 0, 10);
    step(&h, 0, 2, 10, 40);
    trouble(&h, 0, 0, 12, 20, 35);
    expect(&h, (int64_t[]){17, 0, 8, 15, 0, 0, 0, 0, 0, 0, 0});
}

/* Pace 10. Step 2 (10..30) is 10 over it, the finding stands from 15: 10 straggle. Step 3
 * (30..50): 10. Step 4 (50..75) is 15 over it, but the finding ended at 56: only 6. Step 5 (75..95)
 * is slow without a finding: productive. */
static void a_slow_window_takes_only_what_was_beyond_the_pace_while_it_stood(void **state)
{
    struct history h;

    (void)state;
    history_init(&h, 0, 95, 10);
    attempt(&h, 0, 0, 0);
    step(&h, 0, 1, 0, 10);
    step(&h, 0, 2, 10, 30);
    step(&h, 0, 3, 30, 50);
    step(&h, 0, 4, 50, 75);
    step(&h, 0, 5, 75, 95);
    trouble(&h, 0, 1, 15, 40, 56); /* named at 40, but it began at 15 */
    expect(&h, (int64_t[]){69, 26, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    h.in.baseline_step_s = NAN; /* median of the untouched steps 1 and 5: 15. Straggle 5, 5, 6. */
    expect(&h, (int64_t[]){79, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

static void a_job_without_any_attempt_only_waits(void **state)
{
    struct history h;
    struct fr_gp_account a;

    (void)state;
    history_init(&h, 5, 25, 10);
    expect(&h, (int64_t[]){0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0});
    h.in.now_ns = 5;
    assert_int_equal(fr_goodput(&h.in, &a), 0);
    assert_true(isnan(a.goodput_ratio));
}

static void an_input_that_cannot_be_is_refused_and_leaves_the_result_alone(void **state)
{
    struct fr_gp_account a, before;

    (void)state;
    memset(&a, 0x5a, sizeof a);
    before = a;
    for (int i = 0; i < 9; i++) {
        struct history h;

        history_init(&h, 10, 100, NAN);
        attempt(&h, 10, 0, 0);
        step(&h, 0, 1, 20, 30);
        span(&h, 0, EVAL, 30, 40);
        trouble(&h, 0, 0, 40, 50, 60);
        assert_int_equal(fr_goodput(&h.in, &(struct fr_gp_account){0}), 0);
        switch (i) {
        case 0:
            h.in.now_ns = 9;
            break;
        case 1:
            h.attempts[0].end_ns = 9;
            break;
        case 2:
            h.attempts[0].stop_ns = 9;
            break;
        case 3:
            h.steps[0].end_ns = 19;
            break;
        case 4:
            h.steps[0].attempt = 1;
            break;
        case 5:
            h.spans[0].attempt = UINT32_MAX;
            break;
        case 6:
            h.troubles[0].end_ns = 49;
            break;
        case 7:
            h.in.submitted_ns = INT64_MIN;
            break;
        case 8:
            h.troubles[0].begin_ns = 51;
            break;
        }
        assert_int_equal(fr_goodput(&h.in, &a), -EINVAL);
        assert_memory_equal(&a, &before, sizeof a);
    }
}

/* 8 ranks of 1e12 FLOP/s for 2 s could do 1.6e13: 4e12 are a quarter. */
static void mfu_is_work_over_what_could_be_done_and_nan_when_unknown(void **state)
{
    (void)state;
    assert_true(fabs(fr_mfu(4e12, 2, 8, 1e12) - 0.25) < 1e-15);
    assert_true(isnan(fr_mfu(NAN, 2, 8, 1e12)));
    assert_true(isnan(fr_mfu(1, 0, 8, 1e12)));
    assert_true(isnan(fr_mfu(1, 1, 0, 1e12)));
    assert_true(isnan(fr_mfu(1, 1, 8, 0)));
    assert_true(isnan(fr_mfu(-1, 1, 8, 1)));
    assert_true(isnan(fr_mfu(1, INFINITY, 8, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_agree_with_a_time_line_asked_nanosecond_by_nanosecond),
        cmocka_unit_test(a_six_week_job_in_any_order_still_adds_up_to_the_nanosecond),
        cmocka_unit_test(a_restart_at_an_older_step_makes_the_steps_between_rework),
        cmocka_unit_test(a_restart_from_the_beginning_makes_all_steps_rework),
        cmocka_unit_test(restarts_without_a_step_lose_no_step),
        cmocka_unit_test(a_job_that_marks_no_steps_is_launched_until_its_first_collective),
        cmocka_unit_test(a_job_killed_during_a_save_has_the_save_until_its_last_movement),
        cmocka_unit_test(overlapping_spans_are_counted_once),
        cmocka_unit_test(a_hang_is_split_where_it_was_named),
        cmocka_unit_test(a_hang_that_passed_is_taken_out_of_its_step),
        cmocka_unit_test(a_slow_window_takes_only_what_was_beyond_the_pace_while_it_stood),
        cmocka_unit_test(a_job_without_any_attempt_only_waits),
        cmocka_unit_test(an_input_that_cannot_be_is_refused_and_leaves_the_result_alone),
        cmocka_unit_test(mfu_is_work_over_what_could_be_done_and_nan_when_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
