/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - see steps.h */
#include "control/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "control/jobs.h"
#include "control/publish.h"
#include "fullrank/fullrank.h"

#define MEDIAN_MAX 64

static int compare_floats(const void *pa, const void *pb)
{
    float a = *(const float *)pa, b = *(const float *)pb;

    return (a > b) - (a < b);
}

static size_t push_step(struct fr_cjob *j)
{
    if (j->nsteps == j->steps_cap) {
        j->steps_cap = j->steps_cap ? 2 * j->steps_cap : 256;
        j->steps = fr_xreallocarray(j->steps, j->steps_cap, sizeof *j->steps);
        j->step_info = fr_xreallocarray(j->step_info, j->steps_cap, sizeof *j->step_info);
    }
    return j->nsteps++;
}

static void push_span(struct fr_cjob *j, struct fr_gp_span s, bool dirty)
{
    if (j->nspans == j->spans_cap) {
        j->spans_cap = j->spans_cap ? 2 * j->spans_cap : 64;
        j->spans = fr_xreallocarray(j->spans, j->spans_cap, sizeof *j->spans);
        j->span_dirty = fr_xreallocarray(j->span_dirty, j->spans_cap, sizeof *j->span_dirty);
    }
    j->spans[j->nspans] = s;
    j->span_dirty[j->nspans++] = dirty;
}

/* The step was recorded before this controller started: its ranks tell it again. */
static int is_recorded(const struct fr_cjob *j, uint64_t step)
{
    for (size_t i = j->nsteps; i-- > 0 && j->steps[i].attempt == j->nattempts - 1;)
        if (j->steps[i].step == step)
            return 1;
        else if (j->steps[i].step < step)
            return 0;
    return 0;
}

static void note_first_step(struct fr_ctl *c, struct fr_cjob *j, uint64_t step, int64_t end_unix_ns)
{
    struct fr_cattempt *a = fr_job_current(j);

    if (j->state == FR_JOB_STARTING)
        fr_job_move(c, j, FR_JOB_RUNNING);
    if (!a->first_step_unix_ns) {
        a->first_step_unix_ns = end_unix_ns;
        a->first_step = step;
        a->resumed_from = step - 1;
        a->dirty = true;
        if (j->nattempts > 1 && j->attempts[j->nattempts - 2].stop_unix_ns) {
            double cost = (double)(end_unix_ns - j->attempts[j->nattempts - 2].stop_unix_ns) * 1e-9;

            if (cost > 0)
                j->restart_cost_s = cost;
        }
    }
    if (step > a->last_step)
        a->last_step =
            step; /* written with the attempt's end; the step's own row says it until then */
}

static void record_step(struct fr_ctl *c, struct fr_cjob *j, struct fr_open_step *o)
{
    FR_CLEANUP(fr_freep) float *sorted = NULL;
    struct fr_cstep s = {.loss = o->loss, .tokens = o->tokens, .slowest_rank = -1};
    size_t i;

    if (j->nsteps >= FR_JOB_STEPS_MAX)
        return;
    s.self_max_s = -1;
    for (uint32_t r = 0; r < j->nranks; r++)
        if (o->self_s[r] > s.self_max_s) {
            s.self_max_s = o->self_s[r];
            s.slowest_rank = (int32_t)r;
        }
    sorted = fr_xcalloc(j->nranks, sizeof *sorted);
    memcpy(sorted, o->self_s, j->nranks * sizeof *sorted);
    qsort(sorted, j->nranks, sizeof *sorted, compare_floats);
    s.self_median_s = j->nranks % 2 ? sorted[j->nranks / 2]
                                    : (sorted[j->nranks / 2 - 1] + sorted[j->nranks / 2]) / 2;
    i = push_step(j);
    j->steps[i] = (struct fr_gp_step){.attempt = j->nattempts - 1,
                                      .step = o->step,
                                      .begin_ns = o->begin_unix_ns,
                                      .end_ns = o->end_unix_ns};
    j->step_info[i] = s;
    j->last_loss = o->loss;
    note_first_step(c, j, o->step, o->end_unix_ns);
    if (o->step > j->step_done)
        j->step_done = o->step;
    j->changed = true;
    fr_publish_step(c, j, i);
}

int fr_steps_add(struct fr_ctl *c, struct fr_cjob *j, const struct fr_rank_step *s)
{
    struct fr_open_step *o = &j->open_steps[s->step % FR_STEPS_OPEN];
    int64_t begin = fr_ctl_unix(c, s->begin_ns), end = fr_ctl_unix(c, s->end_ns);

    if (s->step == 0 || s->end_ns < s->begin_ns || s->end_ns > c->now_ns + FR_NS_PER_S)
        return 0;
    if (o->step != s->step) {
        if (o->step > s->step || is_recorded(j, s->step))
            return 0;
        o->step = s->step;
        o->count = 0;
        o->begin_unix_ns = begin;
        o->end_unix_ns = end;
        o->loss = o->tokens = (double)NAN;
        for (uint32_t r = 0; r < j->nranks; r++)
            o->self_s[r] = NAN;
    }
    if (!isnan(o->self_s[s->rank]))
        return 0; /* told before */
    o->self_s[s->rank] = (float)s->self_s;
    o->begin_unix_ns = begin < o->begin_unix_ns ? begin : o->begin_unix_ns;
    o->end_unix_ns = end > o->end_unix_ns ? end : o->end_unix_ns;
    if (!isnan(s->loss))
        o->loss = s->loss;
    if (!isnan(s->tokens))
        o->tokens = s->tokens;
    if (++o->count < j->nranks)
        return 0;
    record_step(c, j, o);
    return 1;
}

void fr_spans_add(struct fr_ctl *c, struct fr_cjob *j, uint32_t phase, int64_t begin, int64_t end)
{
    uint32_t attempt = j->nattempts - 1;

    if (begin > end || end > fr_ctl_now_unix(c) + FR_NS_PER_S || j->nspans >= FR_JOB_STEPS_MAX)
        return;
    for (size_t k = 0, i = j->nspans; i-- > 0 && k < 64; k++) {
        struct fr_gp_span *s = &j->spans[i];

        if (s->attempt != attempt || s->phase != phase || end < s->begin_ns || begin > s->end_ns)
            continue;
        /* It overlaps: only what lies outside is new. The begin is the row's key and stays. */
        if (begin < s->begin_ns) {
            int64_t until = s->begin_ns;

            if (end > s->end_ns) {
                s->end_ns = end;
                j->span_dirty[i] = true;
            }
            push_span(j, (struct fr_gp_span){attempt, phase, begin, until}, true);
            return;
        }
        if (end > s->end_ns) {
            s->end_ns = end;
            j->span_dirty[i] = true;
        }
        return;
    }
    push_span(j, (struct fr_gp_span){attempt, phase, begin, end}, true);
}

void fr_steps_moved(struct fr_ctl *c, struct fr_cjob *j, uint32_t rank, uint64_t at_ns)
{
    struct fr_cattempt *a = fr_job_current(j);

    if (j->ranks[rank].moved)
        return;
    j->ranks[rank].moved = true;
    j->moved_ns = at_ns > j->moved_ns ? at_ns : j->moved_ns;
    if (++j->moved < j->nranks)
        return;
    if (!a->first_move_unix_ns && j->nspans < FR_JOB_STEPS_MAX) {
        int64_t at = fr_ctl_unix(c, j->moved_ns), start = a->start_unix_ns;

        a->first_move_unix_ns = at > start ? at : start;
        push_span(j,
                  (struct fr_gp_span){j->nattempts - 1, FULLRANK_PHASE_INIT,
                                      start ? start : a->first_move_unix_ns, a->first_move_unix_ns},
                  true);
    }
    if (j->state == FR_JOB_STARTING && !fr_job_marks_steps(j))
        fr_job_move(c, j, FR_JOB_RUNNING);
}

void fr_steps_restore(struct fr_cjob *j, uint32_t attempt_index, const struct fr_row_step *r)
{
    struct fr_cattempt *a = &j->attempts[attempt_index];
    size_t i;

    if (j->nsteps >= FR_JOB_STEPS_MAX)
        return;
    i = push_step(j);
    j->steps[i] = (struct fr_gp_step){.attempt = attempt_index,
                                      .step = r->step,
                                      .begin_ns = r->begin_unix_ns,
                                      .end_ns = r->end_unix_ns};
    j->step_info[i] = (struct fr_cstep){.loss = r->loss,
                                        .tokens = r->tokens,
                                        .self_max_s = (float)r->self_max_s,
                                        .self_median_s = (float)r->self_median_s,
                                        .slowest_rank = r->slowest_rank};
    j->steps_saved = j->nsteps;
    if (r->step > a->last_step)
        a->last_step = r->step;
    if (!a->first_step_unix_ns) {
        a->first_step_unix_ns = r->end_unix_ns;
        a->first_step = r->step;
        a->resumed_from = r->step - 1;
    }
    if (attempt_index == j->nattempts - 1 && r->step > j->step_done)
        j->step_done = r->step;
    j->last_loss = r->loss;
}

void fr_spans_restore(struct fr_cjob *j, uint32_t attempt_index, const struct fr_row_span *r)
{
    if (r->phase == FULLRANK_PHASE_INIT)
        j->attempts[attempt_index].first_move_unix_ns = r->end_unix_ns;
    if (j->nspans < FR_JOB_STEPS_MAX)
        push_span(j, (struct fr_gp_span){attempt_index, r->phase, r->begin_unix_ns, r->end_unix_ns},
                  false);
    j->spans_saved = j->nspans;
}

double fr_steps_median_s(const struct fr_cjob *j, size_t n)
{
    float v[MEDIAN_MAX];
    size_t k = 0;

    for (size_t i = j->nsteps;
         i-- > 0 && k < n && k < MEDIAN_MAX && j->steps[i].attempt == j->nattempts - 1;)
        v[k++] = (float)((double)(j->steps[i].end_ns - j->steps[i].begin_ns) * 1e-9);
    if (k == 0)
        return (double)NAN;
    qsort(v, k, sizeof v[0], compare_floats);
    return (double)(k % 2 ? v[k / 2] : (v[k / 2 - 1] + v[k / 2]) / 2);
}
