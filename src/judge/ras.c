/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras.c - NCCL's RAS as a second witness, and the node that is lost to both
 *
 * RAS sees what this side cannot: whether a process on a node whose agent is silent still answers
 * its peers. And it errs where this side does not: counts are launches, not completions; they
 * differ while ranks move and while one of them writes a checkpoint; a dead process and a broken
 * route look alike. So its word is added to a finding that stands without it, and to silence:
 *
 * confirm: a rank that is named for another reason, and of which RAS says the same, gets the
 * witness. "Dead" sits on the process itself and lets act; "behind" and "no answer" only raise
 * confidence. lost:    the agent of a node is silent and RAS takes every process of it for dead:
 * two that do not share a path say the same. Silence alone is a stall, RAS alone is nothing.
 */
#include <math.h>

#include "judge/state.h"

#define FRESH_NS                                                                                   \
    (30 * NS_PER_S) /* asked for every 10 s at most, and an answer may take RAS 10 s               \
                     */
#define SLACK_NS (NS_PER_S / 2)

void fr_judge_ras(struct fr_judge *j, uint32_t rank, const struct fr_obs_ras *o)
{
    if (rank >= j->nranks || (uint32_t)o->says > FR_RAS_SAYS_DEAD ||
        o->observed_ns < j->ranks[rank].ras.observed_ns) {
        j->ignored++;
        return;
    }
    j->ranks[rank].ras = *o;
}

enum fr_ras_says fr_judge_ras_says(const struct fr_judge *j, const struct rank *r, uint64_t now_ns)
{
    const struct fr_obs_ras *o = &r->ras;
    /* dead since it was last seen to be, which was a minute before: what counts is who moved after
     * the answer */
    uint64_t moved_after = o->says == FR_RAS_SAYS_DEAD ? o->observed_ns : o->since_ns;

    (void)j;
    if (o->says == FR_RAS_SAYS_NOTHING || now_ns > o->observed_ns + FRESH_NS ||
        r->moved_ns > moved_after + SLACK_NS)
        return FR_RAS_SAYS_NOTHING;
    return o->says;
}

void fr_judge_ras_confirm(const struct fr_judge *j, struct fr_finding *f, uint64_t now_ns)
{
    const struct rank *r =
        f->rank >= 0 && (uint32_t)f->rank < j->nranks ? &j->ranks[f->rank] : NULL;

    if (!r || (f->witnesses & FR_WITNESS_RAS) ||
        (f->kind != FR_FINDING_DEAD && f->kind != FR_FINDING_HANG &&
         f->kind != FR_FINDING_MISMATCH))
        return;
    switch (fr_judge_ras_says(j, r, now_ns)) {
    case FR_RAS_SAYS_BEHIND:
        fr_judge_say(f,
                     "NCCL's RAS sees it %llu operations behind its peers, unchanged in %u answers",
                     (unsigned long long)r->ras.behind, r->ras.polls);
        break;
    case FR_RAS_SAYS_NO_ANSWER:
        fr_judge_say(f, "its RAS thread gave no answer %u times in a row", r->ras.polls);
        break;
    case FR_RAS_SAYS_DEAD:
        f->witnesses |= FR_WITNESS_RAS_DEAD;
        fr_judge_say(f, "NCCL's RAS takes its process for dead: no sign of it for a minute");
        break;
    default:
        return;
    }
    f->witnesses |= FR_WITNESS_RAS;
    f->confidence = fmin(fmax(f->confidence, 0.99), f->confidence + 0.15);
}

/* The node is silent and all of its ranks that have not ended well are dead to RAS. */
static int is_lost(const struct fr_judge *j, uint32_t node, uint64_t now_ns, int *ret_rank)
{
    int first = -1;

    for (uint32_t i = 0; i < j->nranks; i++) {
        const struct rank *r = &j->ranks[i];

        if (r->node != node || fr_judge_rank_is_over(r))
            continue;
        if (!fr_judge_rank_is_silent(j, i, now_ns) ||
            fr_judge_ras_says(j, r, now_ns) != FR_RAS_SAYS_DEAD)
            return 0;
        if (first < 0)
            first = (int)i;
    }
    *ret_rank = first;
    return first >= 0;
}

int fr_judge_rule_lost(struct fr_judge *j, uint64_t now_ns, struct findings *to)
{
    int found = 0;

    for (uint32_t n = 0; n < j->nnodes; n++) {
        struct fr_finding *f;
        int rank;

        if (!is_lost(j, n, now_ns, &rank))
            continue;
        f = j->nodes[n].nranks > 1
                ? fr_judge_add(to, FR_FINDING_DEAD, FR_SUBJECT_NODE, n)
                : fr_judge_add(to, FR_FINDING_DEAD, FR_SUBJECT_RANK, (uint64_t)rank);
        f->rank = rank;
        f->node = (int32_t)n;
        f->cause = FR_CAUSE_UNKNOWN;
        f->witnesses = FR_WITNESS_SILENCE | FR_WITNESS_RAS | FR_WITNESS_RAS_DEAD;
        f->confidence = 0.95;
        f->since_ns = j->nodes[n].heard_ns;
        f->since_step = j->ranks[rank].step_begun;
        f->quiet_ns = now_ns > j->last_move_ns ? now_ns - j->last_move_ns : 0;
        f->victims = j->nranks - j->nodes[n].nranks;
        fr_judge_say(f, "its agent was last heard %.1f s ago",
                     (double)(now_ns - j->nodes[n].heard_ns) * 1e-9);
        fr_judge_say(f, "NCCL's RAS takes %s for dead: no sign for a minute, asked on another node",
                     j->nodes[n].nranks > 1 ? "all processes on it" : "its process");
        found++;
    }
    return found;
}
