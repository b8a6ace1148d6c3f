/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - see account.h */
#include "control/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "control/jobs.h"
#include "control/steps.h"
#include "fullrank/fullrank.h"

#define COST_FACTOR 50 /* at most a fiftieth of the loop's time goes into one account */

static size_t fill_attempts(const struct fr_cjob *j, struct fr_gp_attempt *out, int64_t now)
{
    for (uint32_t i = 0; i < j->nattempts; i++) {
        const struct fr_cattempt *a = &j->attempts[i];

        out[i].start_ns = a->start_unix_ns ? a->start_unix_ns : now;
        out[i].end_ns = a->end_unix_ns ? a->end_unix_ns : j->ended_unix_ns ? now : 0;
        out[i].stop_ns = a->stop_unix_ns;
        out[i].moved_ns = fr_job_marks_steps(j) ? 0 : a->first_move_unix_ns;
        if (out[i].end_ns && out[i].end_ns < out[i].start_ns)
            out[i].end_ns = out[i].start_ns;
    }
    return j->nattempts;
}

static uint32_t attempt_index(const struct fr_cjob *j, uint32_t attempt)
{
    for (uint32_t i = j->nattempts; i-- > 0;)
        if (j->attempts[i].attempt == attempt)
            return i;
    return 0;
}

static size_t fill_troubles(const struct fr_ctl *c, const struct fr_cjob *j,
                            struct fr_gp_trouble *out)
{
    size_t n = 0;

    for (size_t k = 0; k < c->nincidents; k++) {
        const struct fr_cincident *i = c->incidents[k];
        int slow = i->f.kind == FR_FINDING_SLOW;

        if (i->job != j || !(slow || i->f.kind == FR_FINDING_HANG || i->f.kind == FR_FINDING_DEAD ||
                             i->f.kind == FR_FINDING_MISMATCH))
            continue;
        out[n++] =
            (struct fr_gp_trouble){.attempt = attempt_index(j, i->attempt),
                                   .slow = slow,
                                   .begin_ns = slow ? i->onset_unix_ns : i->last_move_unix_ns,
                                   .named_ns = i->named_unix_ns,
                                   .end_ns = i->closed_unix_ns};
    }
    return n;
}

static int phase_counts(uint32_t phase)
{
    return phase == FULLRANK_PHASE_RESTORE || phase == FULLRANK_PHASE_EVAL ||
           phase == FULLRANK_PHASE_CHECKPOINT;
}

/* Phases that have not ended are told by nobody yet: they last until now. */
static size_t add_open_spans(const struct fr_ctl *c, const struct fr_cjob *j,
                             struct fr_gp_span *out, int64_t now)
{
    uint64_t since[FULLRANK_PHASE_COUNT] = {0};
    size_t n = 0;

    for (uint32_t r = 0; j->judging && j->ranks && r < j->nranks; r++) {
        const struct fr_crank *k = &j->ranks[r];

        if (k->known && phase_counts(k->phase) &&
            (!since[k->phase] || k->phase_since_ns < since[k->phase]))
            since[k->phase] = k->phase_since_ns;
    }
    for (uint32_t p = 0; p < FULLRANK_PHASE_COUNT; p++)
        if (since[p] && fr_ctl_unix(c, since[p]) < now)
            out[n++] = (struct fr_gp_span){j->nattempts - 1, p, fr_ctl_unix(c, since[p]), now};
    return n;
}

static void make_account(struct fr_ctl *c, struct fr_cjob *j)
{
    int64_t now = j->ended_unix_ns ? j->ended_unix_ns : fr_ctl_now_unix(c);
    FR_CLEANUP(fr_freep)
    struct fr_gp_attempt *attempts = fr_xcalloc(j->nattempts + 1, sizeof *attempts);
    FR_CLEANUP(fr_freep)
    struct fr_gp_trouble *troubles = fr_xcalloc(c->nincidents + 1, sizeof *troubles);
    FR_CLEANUP(fr_freep)
    struct fr_gp_span *spans = fr_xcalloc(j->nspans + FULLRANK_PHASE_COUNT, sizeof *spans);
    struct fr_gp_input in = {.submitted_ns = j->submitted_unix_ns,
                             .now_ns = now,
                             .attempts = attempts,
                             .steps = j->steps,
                             .spans = spans,
                             .troubles = troubles,
                             .nsteps = j->nsteps,
                             .baseline_step_s = (double)NAN};

    in.nattempts = fill_attempts(j, attempts, now);
    in.ntroubles = fill_troubles(c, j, troubles);
    if (j->nspans)
        memcpy(spans, j->spans, j->nspans * sizeof *spans);
    in.nspans = j->nspans + add_open_spans(c, j, spans + j->nspans, now);
    if (fr_goodput(&in, &j->account))
        fr_log(FR_LOG_WARNING, "account",
               "job=%s its times contradict each other: no account is made", j->job);
}

void fr_account_tick(struct fr_ctl *c, struct fr_cjob *j)
{
    uint64_t wait = FR_NS_PER_S, began;
    bool ended = fr_job_state_is_end(j->state) != 0;

    if (j->account_final)
        return;
    if (COST_FACTOR * j->account_cost_ns > wait)
        wait = COST_FACTOR * j->account_cost_ns;
    if (!ended && j->account_ns && c->now_ns - j->account_ns < wait)
        return;
    began = fr_mono_ns();
    make_account(c, j);
    j->account_cost_ns = fr_mono_ns() - began;
    j->account_ns = c->now_ns;
    j->account_final = ended;
    j->changed = true;
}

double fr_account_mfu(const struct fr_cjob *j)
{
    return fr_mfu(j->flops_per_step, fr_steps_median_s(j, 12), j->nranks, j->peak_flops_per_rank);
}
