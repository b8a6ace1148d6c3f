/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goodput.c - a sweep over the edges of all spans; each piece between two edges goes to one bucket
 *
 * What may overlap is ordered by the enum below; doc/explain/goodput.md gives the reasons.
 */
#include "judge/goodput.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/xalloc.h"
#include "stats/robust.h"

/* enum fullrank_phase, as far as it is an account of its own */
enum { PHASE_RESTORE = 2, PHASE_EVAL = 4, PHASE_CHECKPOINT = 5 };

/* What a moment can be covered by, strongest first. */
enum cover {
    COVER_TEARDOWN = 0, /* the end was ordered */
    COVER_HANG_DETECTED,
    COVER_HANG_UNDETECTED,
    COVER_RESTORE,
    COVER_CHECKPOINT,
    COVER_EVAL,
    COVER_KEPT,
    COVER_REDONE,
    COVER_TAIL, /* behind the last work of an attempt that ended without being ordered to */
    COVER_LAUNCH,
    COVER_ATTEMPT,
    COVER_SLOW, /* decides nothing, marks kept steps */
    COVERS
};

static const enum fr_bucket BUCKET_OF[COVER_SLOW] = {
    [COVER_TEARDOWN] = FR_BUCKET_TEARDOWN,
    [COVER_HANG_DETECTED] = FR_BUCKET_HANG_DETECTED,
    [COVER_HANG_UNDETECTED] = FR_BUCKET_HANG_UNDETECTED,
    [COVER_RESTORE] = FR_BUCKET_RESTORE,
    [COVER_CHECKPOINT] = FR_BUCKET_CHECKPOINT,
    [COVER_EVAL] = FR_BUCKET_OTHER,
    [COVER_KEPT] = FR_BUCKET_PRODUCTIVE,
    [COVER_REDONE] = FR_BUCKET_REWORK,
    [COVER_TAIL] = FR_BUCKET_TEARDOWN,
    [COVER_LAUNCH] = FR_BUCKET_LAUNCH,
    [COVER_ATTEMPT] = FR_BUCKET_OTHER,
};

static const struct {
    const char *name, *text;
} NAMES[FR_BUCKETS] = {
    [FR_BUCKET_PRODUCTIVE] = {"productive",
                              "Steps that count in the end, at the job's own good pace."},
    [FR_BUCKET_STRAGGLE] =
        {"straggle",
         "What those steps took beyond it, from the onset of a slow rank or node to its end."},
    [FR_BUCKET_HANG_UNDETECTED] =
        {"hang_undetected", "From the last movement to the moment the hang or death was named."},
    [FR_BUCKET_HANG_DETECTED] =
        {"hang_detected",
         "From the moment it was named until the attempt was ended or moved again."},
    [FR_BUCKET_REWORK] = {"rework",
                          "Steps that were lost with their attempt and made again later."},
    [FR_BUCKET_RESTORE] = {"restore", "Reading a checkpoint."},
    [FR_BUCKET_CHECKPOINT] = {"checkpoint", "Standing while a checkpoint is written."},
    [FR_BUCKET_LAUNCH] = {"launch",
                          "From the start of the processes to the first step, without restore."},
    [FR_BUCKET_TEARDOWN] = {"teardown", "From the end of work to the end of the processes."},
    [FR_BUCKET_QUEUE] = {"queue", "No processes: waiting for nodes or for the next attempt."},
    [FR_BUCKET_OTHER] = {"other", "Evaluation, idle time, and what nothing explains."},
};

struct edge {
    int64_t at;
    uint32_t step; /* COVER_KEPT: index into sweep.steps */
    uint8_t cover;
    int8_t open;
};

struct one_step {
    struct fr_gp_step s;
    int64_t owned_ns, slow_ns; /* its pieces; of these while a slow finding stood */
    int kept, troubled;
};

struct sweep {
    const struct fr_gp_input *in;
    struct edge *edges;
    size_t nedges;
    struct one_step *steps; /* in order of attempt, begin, step */
    struct window {
        int64_t begin, end;            /* of the attempt, inside the account */
        int64_t first_step, last_work; /* INT64_MAX, INT64_MIN: none */
    } * windows;
};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int by_order(const void *pa, const void *pb)
{
    const struct fr_gp_step *a = &((const struct one_step *)pa)->s;
    const struct fr_gp_step *b = &((const struct one_step *)pb)->s;

    if (a->attempt != b->attempt)
        return a->attempt < b->attempt ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return (a->step > b->step) - (a->step < b->step);
}

static int by_time(const void *pa, const void *pb)
{
    const struct edge *a = pa, *b = pb;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->open - b->open; /* ends first: one step hands over to the next */
}

static int input_can_be(const struct fr_gp_input *in)
{
    if (in->submitted_ns < 0 || in->now_ns < in->submitted_ns)
        return 0;
    for (size_t i = 0; i < in->nattempts; i++) {
        const struct fr_gp_attempt *a = &in->attempts[i];

        if (a->start_ns < 0 || (a->end_ns != 0 && a->end_ns < a->start_ns) ||
            (a->stop_ns != 0 && a->stop_ns < a->start_ns))
            return 0;
    }
    for (size_t i = 0; i < in->nsteps; i++)
        if (in->steps[i].attempt >= in->nattempts || in->steps[i].begin_ns < 0 ||
            in->steps[i].end_ns < in->steps[i].begin_ns)
            return 0;
    for (size_t i = 0; i < in->nspans; i++)
        if (in->spans[i].attempt >= in->nattempts || in->spans[i].begin_ns < 0 ||
            in->spans[i].end_ns < in->spans[i].begin_ns)
            return 0;
    for (size_t i = 0; i < in->ntroubles; i++) {
        const struct fr_gp_trouble *t = &in->troubles[i];

        if (t->attempt >= in->nattempts || t->named_ns < 0 ||
            (t->end_ns != 0 && t->end_ns < t->named_ns) || t->begin_ns < 0 ||
            t->begin_ns > t->named_ns)
            return 0;
    }
    return 1;
}

/* Add [begin, end), cut to its attempt's window. Returns what is left of it. */
static int64_t add_span(struct sweep *sw, uint32_t attempt, enum cover cover, int64_t begin,
                        int64_t end, uint32_t step)
{
    begin = max64(begin, sw->windows[attempt].begin);
    end = min64(end, sw->windows[attempt].end);
    if (begin >= end)
        return 0;
    sw->edges[sw->nedges++] = (struct edge){begin, step, (uint8_t)cover, 1};
    sw->edges[sw->nedges++] = (struct edge){end, step, (uint8_t)cover, 0};
    return end - begin;
}

/* An attempt is over, at the latest, when a later one starts. */
static void lay_windows(struct sweep *sw)
{
    const struct fr_gp_input *in = sw->in;
    int64_t later = in->now_ns;

    for (size_t i = in->nattempts; i-- > 0;) {
        const struct fr_gp_attempt *a = &in->attempts[i];
        struct window *w = &sw->windows[i];

        w->begin = max64(a->start_ns, in->submitted_ns);
        w->end = min64(a->end_ns ? a->end_ns : in->now_ns, later);
        later = min64(later, a->start_ns);
        w->first_step = INT64_MAX;
        w->last_work = INT64_MIN;
    }
}

/* A step counts unless a later one has its number or a smaller one: then the job went back behind
 * it. Of two that overlap the earlier owns the common part, so that what a step owns is the pace of
 * the job. */
static void lay_steps(struct sweep *sw, struct fr_gp_account *acc)
{
    size_t n = sw->in->nsteps;
    uint64_t lowest = UINT64_MAX;
    int64_t cursor[2] = {INT64_MIN, INT64_MIN};

    for (size_t i = 0; i < n; i++)
        sw->steps[i] = (struct one_step){.s = sw->in->steps[i]};
    if (n)
        qsort(sw->steps, n, sizeof *sw->steps, by_order);
    for (size_t i = n; i-- > 0;) {
        sw->steps[i].kept = i == n - 1 || sw->steps[i].s.step < lowest;
        if (sw->steps[i].s.step < lowest)
            lowest = sw->steps[i].s.step;
    }
    for (size_t i = 0; i < n; i++) {
        const struct fr_gp_step *s = &sw->steps[i].s;
        struct window *w = &sw->windows[s->attempt];
        int kept = sw->steps[i].kept;

        if (i == 0 || s->attempt != sw->steps[i - 1].s.attempt)
            cursor[0] = cursor[1] = INT64_MIN;
        add_span(sw, s->attempt, kept ? COVER_KEPT : COVER_REDONE, max64(s->begin_ns, cursor[kept]),
                 s->end_ns, (uint32_t)i);
        cursor[kept] = max64(cursor[kept], s->end_ns);
        w->first_step = min64(w->first_step, s->begin_ns);
        w->last_work = max64(w->last_work, s->end_ns);
        acc->steps_kept += (uint64_t)kept;
        acc->steps_redone += (uint64_t)!kept;
    }
}

static void lay_spans(struct sweep *sw)
{
    for (size_t i = 0; i < sw->in->nspans; i++) {
        const struct fr_gp_span *s = &sw->in->spans[i];
        struct window *w = &sw->windows[s->attempt];
        enum cover cover = s->phase == PHASE_RESTORE      ? COVER_RESTORE
                           : s->phase == PHASE_CHECKPOINT ? COVER_CHECKPOINT
                           : s->phase == PHASE_EVAL       ? COVER_EVAL
                                                          : COVERS;

        if (cover == COVERS)
            continue; /* idle, init and step say nothing that is not known otherwise */
        add_span(sw, s->attempt, cover, s->begin_ns, s->end_ns, 0);
        w->last_work = max64(w->last_work, s->end_ns);
    }
}

static void lay_troubles(struct sweep *sw)
{
    for (size_t i = 0; i < sw->in->ntroubles; i++) {
        const struct fr_gp_trouble *t = &sw->in->troubles[i];
        int64_t end = t->end_ns ? t->end_ns : INT64_MAX;

        if (t->slow) {
            add_span(sw, t->attempt, COVER_SLOW, t->begin_ns, end, 0);
            continue;
        }
        add_span(sw, t->attempt, COVER_HANG_UNDETECTED, t->begin_ns, t->named_ns, 0);
        add_span(sw, t->attempt, COVER_HANG_DETECTED, t->named_ns, end, 0);
    }
}

static void lay_attempts(struct sweep *sw)
{
    for (size_t i = 0; i < sw->in->nattempts; i++) {
        const struct fr_gp_attempt *a = &sw->in->attempts[i];
        const struct window *w = &sw->windows[i];
        uint32_t k = (uint32_t)i;

        add_span(sw, k, COVER_ATTEMPT, w->begin, w->end, 0);
        add_span(sw, k, COVER_LAUNCH, w->begin,
                 a->moved_ns ? min64(a->moved_ns, w->first_step) : w->first_step, 0);
        if (a->stop_ns)
            add_span(sw, k, COVER_TEARDOWN, a->stop_ns, INT64_MAX, 0);
        else if (a->end_ns && w->last_work != INT64_MIN)
            add_span(sw, k, COVER_TAIL, w->last_work, INT64_MAX, 0);
    }
}

static void run_sweep(struct sweep *sw, struct fr_gp_account *acc)
{
    int64_t open[COVERS] = {0}, at = sw->in->submitted_ns;
    uint32_t owner = 0;

    if (sw->nedges)
        qsort(sw->edges, sw->nedges, sizeof *sw->edges, by_time);
    for (size_t i = 0; i < sw->nedges; i++) {
        const struct edge *e = &sw->edges[i];
        int64_t piece = e->at - at;

        if (piece > 0) {
            int c = 0;

            while (c < COVER_SLOW && !open[c])
                c++;
            acc->bucket_ns[c < COVER_SLOW ? BUCKET_OF[c] : FR_BUCKET_QUEUE] += piece;
            if (c == COVER_KEPT) {
                sw->steps[owner].owned_ns += piece;
                sw->steps[owner].slow_ns += open[COVER_SLOW] ? piece : 0;
            }
            /* a step that trouble has touched says nothing of the good pace */
            if (open[COVER_KEPT] && (open[COVER_SLOW] || c < COVER_RESTORE))
                sw->steps[owner].troubled = 1;
            at = e->at;
        }
        open[e->cover] += e->open ? 1 : -1;
        if (e->cover == COVER_KEPT && e->open)
            owner = e->step;
    }
    acc->bucket_ns[FR_BUCKET_QUEUE] += sw->in->now_ns - at;
}

/* It ran and marked nothing: what of it was productive is not known, which is not "none". */
static int is_unmarked(const struct fr_gp_input *in)
{
    for (size_t i = 0; i < in->nattempts; i++)
        if (in->attempts[i].moved_ns && !in->nsteps)
            return 1;
    return 0;
}

/* Median time that an untroubled kept step owns; NaN: there is none. */
static double good_pace_s(const struct sweep *sw)
{
    FR_CLEANUP(fr_freep) double *v = fr_xcalloc(sw->in->nsteps, sizeof *v);
    double median_ns = NAN;
    size_t n = 0;

    for (size_t i = 0; i < sw->in->nsteps; i++)
        if (sw->steps[i].kept && !sw->steps[i].troubled && sw->steps[i].owned_ns > 0)
            v[n++] = (double)sw->steps[i].owned_ns;
    fr_robust_median(v, n, v, &median_ns);
    return median_ns * 1e-9;
}

/* Move what kept steps took beyond the good pace, as far as a slow finding stood, to straggle. */
static void split_straggle(const struct sweep *sw, struct fr_gp_account *acc)
{
    double pace_ns = acc->baseline_step_s * 1e9;
    int64_t base;

    if (!(pace_ns > 0) || pace_ns > 9e18)
        return;
    base = (int64_t)llround(pace_ns);
    for (size_t i = 0; i < sw->in->nsteps; i++) {
        int64_t excess = min64(sw->steps[i].owned_ns - base, sw->steps[i].slow_ns);

        if (excess <= 0)
            continue;
        acc->bucket_ns[FR_BUCKET_PRODUCTIVE] -= excess;
        acc->bucket_ns[FR_BUCKET_STRAGGLE] += excess;
    }
}

int fr_goodput(const struct fr_gp_input *in, struct fr_gp_account *ret)
{
    FR_CLEANUP(fr_freep) void *edges = NULL;
    FR_CLEANUP(fr_freep) void *steps = NULL;
    FR_CLEANUP(fr_freep) void *windows = NULL;
    struct fr_gp_account acc = {.wall_ns = 0};
    struct sweep sw = {.in = in};

    if (!input_can_be(in))
        return -EINVAL;
    /* two edges a span: one a step and phase, up to two a trouble, up to three an attempt */
    edges = fr_xcalloc(2 * (in->nsteps + in->nspans + 2 * in->ntroubles + 3 * in->nattempts),
                       sizeof *sw.edges);
    steps = fr_xcalloc(in->nsteps, sizeof *sw.steps);
    windows = fr_xcalloc(in->nattempts, sizeof *sw.windows);
    sw.edges = edges;
    sw.steps = steps;
    sw.windows = windows;

    lay_windows(&sw);
    lay_steps(&sw, &acc);
    lay_spans(&sw);
    lay_troubles(&sw);
    lay_attempts(&sw);
    run_sweep(&sw, &acc);

    acc.wall_ns = in->now_ns - in->submitted_ns;
    acc.baseline_step_s = isfinite(in->baseline_step_s) && in->baseline_step_s > 0
                              ? in->baseline_step_s
                              : good_pace_s(&sw);
    split_straggle(&sw, &acc);
    acc.goodput_ratio = acc.wall_ns > 0 && !is_unmarked(in)
                            ? (double)acc.bucket_ns[FR_BUCKET_PRODUCTIVE] / (double)acc.wall_ns
                            : NAN;
    *ret = acc;
    return 0;
}

const char *fr_bucket_name(enum fr_bucket b)
{
    return (uint32_t)b < FR_BUCKETS ? NAMES[b].name : "?";
}

const char *fr_bucket_text(enum fr_bucket b)
{
    return (uint32_t)b < FR_BUCKETS ? NAMES[b].text : "?";
}

double fr_mfu(double flops, double seconds, uint32_t ranks, double peak_flops_per_rank)
{
    double able = seconds * ranks * peak_flops_per_rank;

    if (!isfinite(flops) || flops < 0 || !(seconds > 0) || !(able > 0) || !isfinite(able))
        return NAN;
    return flops / able;
}
