/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - life of a judge, and the order in which its rules are asked
 *
 * A dead rank explains everything that follows it, a mismatch and a stopped process explain a hang:
 * a rule that finds something silences those that would only describe its consequences.
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "judge/state.h"

void fr_judge_defaults(struct fr_judge_config *cfg)
{
    *cfg = (struct fr_judge_config){
        .hang_silence_s = 1.5,
        .hang_name_s = 3,
        .stop_confirm_s = 1,
        .stall_floor_s = 30,
        .stall_factor = 3,
        .agent_silent_s = 3,
        .slow_window_steps = 12,
        .slow_warmup_steps = 5,
        .slow_min_ratio = 1.10,
        .slow_fence = 5,
    };
}

struct fr_judge *fr_judge_new(const struct fr_judge_config *cfg)
{
    struct fr_judge *j = fr_xalloc(sizeof *j);
    uint32_t w = cfg->slow_window_steps;

    j->cfg = *cfg;
    j->cfg.slow_window_steps = w < 4 ? 4 : w > STEPS_KEPT / 2 ? STEPS_KEPT / 2 : w & ~1u;
    j->launcher_rank = -1;
    return j;
}

static void drop_attempt(struct fr_judge *j)
{
    for (uint32_t i = 0; i < j->ncomms; i++)
        fr_judge_comm_fini(&j->comms[i]);
    free(j->comms);
    free(j->table);
    free(j->ranks);
    free(j->nodes);
    free(j->scratch);
    free(j->order);
    free(j->waits);
}

void fr_judge_free(struct fr_judge *j)
{
    if (!j)
        return;
    drop_attempt(j);
    free(j);
}

void fr_judge_begin(struct fr_judge *j, uint32_t nranks, const uint32_t *node_of, uint32_t nnodes,
                    uint64_t now_ns)
{
    struct fr_judge kept = {.cfg = j->cfg,
                            .ignored = j->ignored,
                            .longest_stall_s = j->longest_stall_s,
                            .nbaselines = j->nbaselines};

    memcpy(kept.baselines, j->baselines, sizeof kept.baselines);
    drop_attempt(j);
    *j = kept;
    j->nranks = nranks;
    j->nnodes = nnodes ? nnodes : 1;
    j->begin_ns = j->last_move_ns = j->now_ns = now_ns;
    j->launcher_rank = -1;
    j->joins = nranks <= 1024 ? 64 : 16;
    j->ranks = fr_xcalloc(nranks, sizeof *j->ranks);
    j->nodes = fr_xcalloc(j->nnodes, sizeof *j->nodes);
    j->scratch = fr_xcalloc(2 * (size_t)nranks + STEPS_KEPT + POOL, sizeof *j->scratch);
    j->order = fr_xcalloc(nranks, sizeof *j->order);
    j->waits = fr_xcalloc(nranks, sizeof *j->waits);
    for (uint32_t i = 0; i < j->nnodes; i++)
        j->nodes[i].memory_share = NAN;
    for (uint32_t i = 0; i < nranks; i++) {
        struct rank *r = &j->ranks[i];

        r->node = node_of[i] < j->nnodes ? node_of[i] : 0;
        r->moved_ns = now_ns;
        r->proc.exit_signal = r->proc.exit_code = -1;
        r->half1_s = r->half2_s = r->ratio1 = r->ratio2 = NAN;
        for (int k = 0; k < STEPS_KEPT; k++)
            r->self_s[k] = NAN;
        fr_judge_arrival_reset(r);
        j->nodes[r->node].nranks++;
    }
}

/* --- findings --- */

struct fr_finding *fr_judge_add(struct findings *to, enum fr_finding_kind kind,
                                enum fr_subject_kind subject, uint64_t id)
{
    static __thread struct fr_finding spill; /* no room: written and forgotten */
    struct fr_finding *f = to->n < to->max ? &to->v[to->n++] : &spill;
    uint64_t key = 0xcbf29ce484222325ull;

    key = (key ^ (uint64_t)kind) * 0x100000001b3ull;
    key = (key ^ (uint64_t)subject) * 0x100000001b3ull;
    key = (key ^ (id + 1)) * 0x9e3779b97f4a7c15ull;
    *f = (struct fr_finding){
        .key = (key ^ key >> 31) | 1, .kind = kind, .subject = subject, .rank = -1, .node = -1};
    return f;
}

void fr_judge_say(struct fr_finding *f, const char *fmt, ...)
{
    va_list ap;

    if (f->nlines >= FR_FINDING_LINES)
        return;
    va_start(ap, fmt);
    vsnprintf(f->line[f->nlines++], FR_FINDING_LINE_BYTES, fmt, ap);
    va_end(ap);
}

size_t fr_judge_findings(struct fr_judge *j, uint64_t now_ns, struct fr_finding *ret, size_t max)
{
    struct findings to = {ret, 0, max};
    struct fr_finding stall;
    struct findings late = {&stall, 0, 1};
    int stuck;

    if (j->nranks == 0)
        return 0;
    if (now_ns > j->now_ns)
        j->now_ns = now_ns;
    if (j->last_move_ns > now_ns) /* nothing moves in the future */
        j->last_move_ns = now_ns;
    for (uint32_t i = 0; i < j->nranks; i++)
        if (fr_judge_rank_is_silent(j, i, now_ns))
            j->was_silent = true;

    fr_judge_learn_slow(j, now_ns);
    stuck = fr_judge_rule_dead(j, now_ns, &to);
    if (stuck == 0)
        stuck = fr_judge_rule_lost(j, now_ns, &to);
    if (stuck == 0) {
        stuck = fr_judge_rule_mismatch(j, now_ns, &to);
        stuck += fr_judge_rule_stopped(j, now_ns, &to);
        if (stuck == 0)
            stuck = fr_judge_rule_quiet(j, now_ns, &to, &late);
        if (fr_judge_rule_slow(j, now_ns, &to) == 0 && stuck == 0)
            fr_judge_rule_job_slow(j, &to);
    }
    for (size_t i = 0; i < to.n; i++)
        fr_judge_ras_confirm(j, &to.v[i], now_ns);
    if (late.n && to.n < max)
        to.v[to.n++] = stall;
    fr_judge_rule_silent(j, now_ns, &to);
    return to.n;
}

/* --- figures --- */

static uint64_t step_of_all(const struct fr_judge *j)
{
    uint64_t step = UINT64_MAX;

    for (uint32_t i = 0; i < j->nranks; i++)
        if (j->ranks[i].step_done < step)
            step = j->ranks[i].step_done;
    return j->nranks ? step : 0;
}

void fr_judge_summary(const struct fr_judge *j, struct fr_judge_summary *ret)
{
    *ret = (struct fr_judge_summary){
        .last_move_ns = j->last_move_ns,
        .step = step_of_all(j),
        .step_s = fr_judge_step_now_s(j),
        .baseline_step_s = fr_judge_baseline_s(j),
        .longest_stall_s = j->longest_stall_s,
        .act_on_silence_after_s = fr_judge_silence_limit_s(j),
        .ignored = j->ignored,
    };
}

int fr_judge_rank(const struct fr_judge *j, uint32_t rank, struct fr_judge_rank *ret)
{
    const struct rank *r;

    if (rank >= j->nranks)
        return -ENOENT;
    r = &j->ranks[rank];
    *ret = (struct fr_judge_rank){.self_s = r->half2_s,
                                  .peers_ratio = r->ratio2,
                                  .late_s = fr_judge_late_s(r),
                                  .wait_s = fr_judge_wait_s(r)};
    return 0;
}
