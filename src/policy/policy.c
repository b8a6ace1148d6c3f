/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - laws 2, 4, 5 and 9 as one short pipeline
 *
 * A weigher per kind of finding proposes a choice for an attempt that runs, as if everything were
 * allowed; then its end, the bounds (attempts, breaker), the owner of restarts and the mode have
 * their word. Each of them replaces the sentence of the one before.
 */
#include "policy/policy.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct weighing {
    const struct fr_policy_config *cfg;
    const struct fr_policy_input *in;
    struct fr_decision *d;
};

void fr_policy_defaults(struct fr_policy_config *cfg)
{
    *cfg = (struct fr_policy_config){
        .restart_cost_s = 15,
        .slow_min_gain_ratio = 1.2,
        .max_attempts = 0,
        .no_progress_attempts = 3,
        .breaker_nodes = 0,
        .breaker_window_s = 300,
    };
}

__attribute__((format(printf, 3, 4))) static void
choose(struct fr_decision *d, enum fr_choice choice, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(d->reason, sizeof d->reason, fmt, ap);
    va_end(ap);
    d->choice = choice;
}

static int is_positive(double v)
{
    return isfinite(v) && v > 0;
}

static uint32_t breaker_limit(const struct weighing *w)
{
    uint32_t fifth = w->in->nodes_total / 5;

    if (w->cfg->breaker_nodes)
        return w->cfg->breaker_nodes;
    return fifth > 2 ? fifth : 2;
}

static int breaker_is_open(const struct weighing *w)
{
    return w->in->isolated_in_window >= breaker_limit(w);
}

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

/* The attempt cannot go on: leave the node behind where that is possible, else take the same nodes
 * again. */
static void weigh_end_of_attempt(struct weighing *w, const char *why)
{
    const struct fr_finding *f = w->in->finding;
    int node = f ? f->node : -1;

    if (w->in->application_failure)
        choose(w->d, FR_CHOICE_RESTART, "%s; the application's own failure, no node is to blame",
               why);
    else if (node < 0)
        choose(w->d, FR_CHOICE_RESTART, "%s; no node is named", why);
    else if (w->in->nodes_free == 0)
        choose(w->d, FR_CHOICE_RESTART, "%s; no spare node is free, the same nodes are used again",
               why);
    else if (breaker_is_open(w))
        choose(w->d, FR_CHOICE_RESTART,
               "%s; breaker: %u node%s isolated within %.0f s (limit %u), the same nodes are used"
               " again",
               why, w->in->isolated_in_window, plural(w->in->isolated_in_window),
               w->cfg->breaker_window_s, breaker_limit(w));
    else {
        choose(w->d, FR_CHOICE_ISOLATE, "%s; %u spare node%s free", why, w->in->nodes_free,
               w->in->nodes_free == 1 ? " is" : "s are");
        w->d->node = node;
    }
}

static const char *who(const struct fr_finding *f, char *text, size_t n)
{
    if (f->rank >= 0)
        snprintf(text, n, "rank %d", f->rank);
    else
        snprintf(text, n, "a rank that is not named");
    return text;
}

static void weigh_dead(struct weighing *w)
{
    const struct fr_finding *f = w->in->finding;
    char why[200];

    if (f->rank >= 0)
        snprintf(why, sizeof why, "rank %d is dead: one witness is enough", f->rank);
    else if ((f->witnesses & FR_WITNESS_LAUNCHER) && f->nlines)
        snprintf(why, sizeof why, "%.150s", f->line[0]); /* the launcher's own words */
    else
        snprintf(why, sizeof why, "the attempt ended and no rank is named");
    weigh_end_of_attempt(w, why);
}

/* Law 2: named within seconds, acted on with a witness on the process or after a long silence. */
static void weigh_hang(struct weighing *w)
{
    const struct fr_finding *f = w->in->finding;
    double quiet_s = (double)f->quiet_ns * 1e-9, limit_s = w->in->act_on_silence_after_s;
    char why[200], names[120] = "", rank[40];

    if (fr_witness_is_direct(f->witnesses)) {
        snprintf(why, sizeof why, "%s holds the job up, direct witness (%s)",
                 who(f, rank, sizeof rank), fr_witness_names(f->witnesses, names, sizeof names));
        weigh_end_of_attempt(w, why);
    } else if (!is_positive(limit_s)) {
        choose(w->d, FR_CHOICE_WAIT,
               "silence only for %.1f s and the job's longest stall is not known", quiet_s);
    } else if (quiet_s < limit_s) {
        choose(w->d, FR_CHOICE_WAIT,
               "silence only: quiet for %.1f s, acted on after %.1f s; a checkpoint, an evaluation"
               " or a compile looks alike",
               quiet_s, limit_s);
    } else {
        snprintf(why, sizeof why, "%s: quiet for %.1f s, beyond the limit of %.1f s",
                 who(f, rank, sizeof rank), quiet_s, limit_s);
        weigh_end_of_attempt(w, why);
    }
}

static void weigh_mismatch(struct weighing *w)
{
    char rank[40];

    choose(w->d, FR_CHOICE_RESTART,
           "%s is in another call than its peers: software, no node is drained",
           who(w->in->finding, rank, sizeof rank));
}

/* Law 5. Returns NULL and the steps left and lost, or what is not known. */
static const char *what_is_unknown(const struct fr_policy_input *in, uint64_t *ret_left,
                                   uint64_t *ret_lost)
{
    if (in->total_steps == 0)
        return "the work that is left is not known";
    if (in->last_checkpoint == 0 && in->checkpoint_every == 0)
        return "the age of the newest checkpoint is not known";
    if (!is_positive(in->step_now_s) || !is_positive(in->step_baseline_s))
        return "the job's good step time is not known";
    *ret_left = in->total_steps > in->step ? in->total_steps - in->step : 0;
    *ret_lost = in->step > in->last_checkpoint ? in->step - in->last_checkpoint : 0;
    return NULL;
}

/* The next step with a checkpoint after the current one, 0: not known. */
static uint64_t next_checkpoint(const struct fr_policy_input *in)
{
    uint64_t every = in->checkpoint_every, next;

    if (every == 0)
        return 0;
    next = in->last_checkpoint + every;
    if (next <= in->step) /* its report is late, or one was left out */
        next = in->step - in->step % every + every;
    return next > in->step ? next : 0; /* wrapped around */
}

/* What a step loses to the slow rank: its own excess where it is the last to arrive (the others
 * wait for just that), or what steps have grown by, whichever is more: each misses what the other
 * sees (stops inside of calls; a job that was slow from the start, or a load that went away
 * meanwhile). NaN: neither shows anything, so what it costs is not known. */
static double excess_of(const struct fr_policy_input *in)
{
    double grown_s = in->step_now_s - in->step_baseline_s;
    double own_s = in->finding->witnesses & FR_WITNESS_ARRIVAL ? in->finding->excess_s : 0;

    double excess_s = fmax(grown_s, isfinite(own_s) ? own_s : 0);

    return excess_s > 0 ? excess_s : (double)NAN;
}

/* Law 5: acts only on what is known to pay. Law 2: needs a witness beside the timing. */
static void weigh_slow(struct weighing *w)
{
    const struct fr_policy_input *in = w->in;
    const struct fr_finding *f = in->finding;
    struct fr_decision *d = w->d;
    double excess_s, restart_s, stay_s, go_s, wait_s = INFINITY, gain = w->cfg->slow_min_gain_ratio;
    uint64_t left = 0, lost = 0, next;
    const char *unknown;
    int count = fr_witness_count(f->witnesses & ~(uint32_t)FR_WITNESS_SILENCE);

    if (count < 2) {
        choose(d, FR_CHOICE_ADVISE,
               "slow by the timing of its collectives alone: to act, an independent witness is"
               " needed");
        return;
    }
    if (f->node < 0 || (f->subject != FR_SUBJECT_NODE && f->subject != FR_SUBJECT_RANK)) {
        choose(d, FR_CHOICE_ADVISE, "slow, but no node is named");
        return;
    }
    if (f->cause == FR_CAUSE_APPLICATION || in->application_failure) {
        choose(d, FR_CHOICE_ADVISE,
               "slow, but the application's doing: another node would not help");
        return;
    }
    if (in->attempt_ended) {
        weigh_end_of_attempt(w, "the attempt has ended with a slow node in it");
        return;
    }
    d->node = f->node;
    unknown = what_is_unknown(in, &left, &lost);
    if (unknown) {
        choose(d, FR_CHOICE_ADVISE, "%s: a restart may not pay", unknown);
        return;
    }

    restart_s = is_positive(in->restart_cost_s) ? in->restart_cost_s : w->cfg->restart_cost_s;
    excess_s = excess_of(in);
    go_s = (double)lost * in->step_baseline_s + restart_s;
    d->cost_restart_s = go_s;
    if (isnan(excess_s)) {
        choose(d, FR_CHOICE_WAIT,
               "what staying costs is not known yet, a restart costs %.1f s (%llu steps lost)",
               go_s, (unsigned long long)lost);
        return;
    }
    stay_s = (double)left * excess_s;
    d->cost_stay_s = stay_s;
    next = next_checkpoint(in);
    if (next && next < in->total_steps)
        wait_s = (double)(next - in->step) * excess_s + restart_s;

    if (stay_s <= fmin(go_s, wait_s) * gain)
        choose(d, FR_CHOICE_WAIT,
               "staying costs %.1f s (%llu steps left), a restart %.1f s (%llu steps lost): it does"
               " not pay",
               stay_s, (unsigned long long)left, go_s, (unsigned long long)lost);
    else if (in->nodes_free == 0)
        choose(d, FR_CHOICE_ADVISE,
               "staying costs %.1f s, a restart %.1f s, but no spare node is free", stay_s, go_s);
    else if (breaker_is_open(w))
        choose(d, FR_CHOICE_ADVISE,
               "staying costs %.1f s, a restart %.1f s, but the breaker is open: %u node%s isolated"
               " within %.0f s (limit %u)",
               stay_s, go_s, in->isolated_in_window, plural(in->isolated_in_window),
               w->cfg->breaker_window_s, breaker_limit(w));
    else if (wait_s < go_s) {
        choose(d, FR_CHOICE_WAIT,
               "staying costs %.1f s, a restart %.1f s now and %.1f s after the checkpoint of step"
               " %llu: wait for it",
               stay_s, go_s, wait_s, (unsigned long long)next);
        d->wait_until_step = next;
    } else
        choose(d, FR_CHOICE_ISOLATE,
               "staying costs %.1f s (%llu steps left), a restart %.1f s (%llu steps lost): it"
               " pays",
               stay_s, (unsigned long long)left, go_s, (unsigned long long)lost);
}

static void weigh_job_slow(struct weighing *w)
{
    choose(w->d, FR_CHOICE_ADVISE, "the whole job is slower than its own past: nobody's fault");
}

static void weigh_stall(struct weighing *w)
{
    choose(w->d, FR_CHOICE_WAIT, "nothing has moved for %.1f s and nobody is to blame",
           (double)w->in->finding->quiet_ns * 1e-9);
}

static void weigh_structural(struct weighing *w)
{
    choose(w->d, FR_CHOICE_ADVISE,
           "a position of the grid is always slower: imbalance, no node is to blame");
}

static void weigh_silent(struct weighing *w)
{
    choose(w->d, FR_CHOICE_WAIT, "an agent is not heard of: unknown is not sick");
}

static void weigh_none(struct weighing *w)
{
    choose(w->d, FR_CHOICE_WAIT, "nothing is found");
}

static void (*const WEIGHERS[FR_FINDING_KINDS])(struct weighing *) = {
    [FR_FINDING_NONE] = weigh_none,     [FR_FINDING_DEAD] = weigh_dead,
    [FR_FINDING_HANG] = weigh_hang,     [FR_FINDING_MISMATCH] = weigh_mismatch,
    [FR_FINDING_SLOW] = weigh_slow,     [FR_FINDING_JOB_SLOW] = weigh_job_slow,
    [FR_FINDING_STALL] = weigh_stall,   [FR_FINDING_STRUCTURAL] = weigh_structural,
    [FR_FINDING_SILENT] = weigh_silent,
};

static int is_act(enum fr_choice c)
{
    return c == FR_CHOICE_ISOLATE || c == FR_CHOICE_RESTART || c == FR_CHOICE_GIVE_UP;
}

/* What has ended is not waited for, whatever stood open when it ended: a job whose ranks went down
 * before anybody saw one of them looks like a stall to the end of days. */
static void rule_out_staying(struct weighing *w)
{
    if (!w->in->attempt_ended || is_act(w->d->choice))
        return;
    choose(w->d, FR_CHOICE_RESTART, "the attempt has ended; no node is named");
    w->d->node = -1;
    w->d->wait_until_step = 0;
}

/* Law 4: a job that gets nowhere, or has had its attempts, is not started again. */
static void bound_attempts(struct weighing *w)
{
    const struct fr_policy_input *in = w->in;
    uint32_t limit = in->max_attempts ? in->max_attempts : w->cfg->max_attempts;
    uint32_t idle = w->cfg->no_progress_attempts;
    char why[100];

    if (!is_act(w->d->choice))
        return;
    if (limit && in->attempts >= limit)
        snprintf(why, sizeof why, "%u of %u attempts are used", in->attempts, limit);
    else if (idle && in->attempts_without_step >= idle)
        snprintf(why, sizeof why, "%u attempts in a row have made no progress (limit %u)",
                 in->attempts_without_step, idle);
    else
        return;
    if (in->finding && in->finding->kind == FR_FINDING_SLOW && !in->attempt_ended)
        choose(w->d, FR_CHOICE_ADVISE, "slow, but %s: it runs on", why);
    else {
        choose(w->d, FR_CHOICE_GIVE_UP, "%s", why);
        w->d->node = -1;
    }
}

/* Laws 4 and 9: in observe and advise mode, and where something else restarts the job, only say it.
 */
static void respect_owner(struct weighing *w)
{
    char would[sizeof w->d->reason];
    const char *name = fr_choice_name(w->d->choice);

    if (!is_act(w->d->choice) || (w->in->mode == FR_MODE_ACT && w->in->owns_restarts))
        return;
    snprintf(would, sizeof would, "%s", w->d->reason);
    if (w->in->mode != FR_MODE_ACT)
        choose(w->d, FR_CHOICE_ADVISE, "mode %s, would %s: %.300s", fr_mode_name(w->in->mode), name,
               would);
    else
        choose(w->d, FR_CHOICE_ADVISE, "something else owns restarts, would %s: %.300s", name,
               would);
}

void fr_policy_decide(const struct fr_policy_config *cfg, const struct fr_policy_input *in,
                      struct fr_decision *ret)
{
    struct weighing w = {cfg, in, ret};
    uint32_t kind = in->finding ? (uint32_t)in->finding->kind : FR_FINDING_NONE;

    *ret = (struct fr_decision){.node = -1, .cost_stay_s = NAN, .cost_restart_s = NAN};
    WEIGHERS[kind < FR_FINDING_KINDS ? kind : FR_FINDING_NONE](&w);
    rule_out_staying(&w);
    bound_attempts(&w);
    respect_owner(&w);
}
