/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.c - see fleet.h */
#include "control/fleet.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "control/publish.h"

struct fr_cnode *fr_fleet_node(struct fr_ctl *c, const char *name, struct fr_err *err)
{
    struct fr_cnode *n;

    if (!fr_ctl_name_ok(name)) {
        fr_fail(err, -EINVAL, "a node's name must be 1 to 63 characters of A-Z a-z 0-9 . _ -");
        return NULL;
    }
    n = fr_ctl_node(c, name);
    if (n)
        return n;
    if (c->nnodes == FR_NODES_MAX) {
        fr_fail(err, -ENOSPC, "node %s: this controller holds %d nodes already, which is its limit",
                name, FR_NODES_MAX);
        return NULL;
    }
    n = fr_xalloc(sizeof *n);
    snprintf(n->name, sizeof n->name, "%s", name);
    snprintf(n->host, sizeof n->host, "%s", name);
    n->acks = fr_xcalloc(FR_ACKS, sizeof *n->acks);
    n->since_unix_ns = fr_ctl_now_unix(c);
    n->want_full = true;
    n->silent = true;
    n->cpu.ratio = n->cpu_some.ratio = n->memory_some.ratio = n->load1 = (double)NAN;
    *fr_ctl_node_place(c, name) = n;
    c->nodes[c->nnodes++] = n;
    return n;
}

int fr_node_move(struct fr_ctl *c, struct fr_cnode *n, enum fr_node_state to, const char *actor,
                 uint64_t incident, const char *reason)
{
    struct fr_node_change *h = &n->history[n->nhistory % FR_NODE_HISTORY];
    int64_t now = fr_ctl_now_unix(c);

    if (n->state == to)
        return 0;
    if (!fr_node_may_move(n->state, to)) {
        fr_log(FR_LOG_WARNING, "node.refused", "node=%s from=%s to=%s reason=%s", n->name,
               fr_node_state_name(n->state), fr_node_state_name(to), reason);
        return -EPERM;
    }
    if (n->nhistory && now <= n->since_unix_ns)
        now = n->since_unix_ns + 1; /* (node, time) is the row's key */
    n->state = to;
    n->since_unix_ns = now;
    h->state = to;
    h->at_unix_ns = now;
    h->incident = incident;
    /* actor and reason may be the node's own: the history gets them first, the node from there */
    snprintf(h->actor, sizeof h->actor, "%s", actor);
    snprintf(h->reason, sizeof h->reason, "%s", reason);
    memcpy(n->actor, h->actor, sizeof n->actor);
    memcpy(n->reason, h->reason, sizeof n->reason);
    n->nhistory++;
    if (to == FR_NODE_PROBATION)
        n->probation_until_unix_ns = now + (int64_t)(c->cfg.controller_probation_s * 1e9);
    fr_log(FR_LOG_NOTICE, "node.state", "node=%s state=%s actor=%s reason=%s", n->name,
           fr_node_state_name(to), n->actor, n->reason);
    fr_publish_node(c, n);
    return 0;
}

int fr_node_drain(struct fr_ctl *c, struct fr_cnode *n, const char *actor, bool ours,
                  uint64_t incident, const char *reason)
{
    int rc;

    if (n->state == FR_NODE_DRAINED || n->state == FR_NODE_DRAINING)
        return 0;
    rc = fr_node_move(c, n, n->job ? FR_NODE_DRAINING : FR_NODE_DRAINED, actor, incident, reason);
    if (rc)
        return rc;
    n->ours = ours;
    n->incident = incident;
    n->test_id = 0;
    return 0;
}

void fr_node_expect_test(struct fr_cnode *n)
{
    n->test_id = (uint64_t)n->since_unix_ns; /* the same after a restart: it is in the row */
    n->test_passed = true;
    n->test_detail[0] = '\0';
}

static void begin_verify(struct fr_ctl *c, struct fr_cnode *n, const char *actor, const char *why)
{
    if (fr_node_move(c, n, FR_NODE_VERIFYING, actor, n->incident, why) == 0)
        fr_node_expect_test(n);
}

int fr_node_resume(struct fr_ctl *c, struct fr_cnode *n, const char *actor, const char *reason,
                   struct fr_err *err)
{
    switch (n->state) {
    case FR_NODE_DRAINING:
        return fr_node_move(c, n, FR_NODE_HEALTHY, actor, 0, reason);
    case FR_NODE_DRAINED:
        begin_verify(c, n, actor, reason);
        return 0;
    default:
        return fr_fail(err, -EPERM, "node %s is %s, not drained: there is nothing to take back",
                       n->name, fr_node_state_name(n->state));
    }
}

void fr_node_tested(struct fr_ctl *c, struct fr_cnode *n, bool passed, const char *detail)
{
    char reason[FR_TEXT_BYTES];

    if (n->state != FR_NODE_VERIFYING)
        return;
    snprintf(reason, sizeof reason, "fullrank: its own test %s%s%.180s",
             passed ? "passed" : "failed", detail[0] ? ": " : "", detail);
    fr_node_move(c, n, passed ? FR_NODE_PROBATION : FR_NODE_DRAINED, FR_ACTOR_SELF, n->incident,
                 reason);
    if (!passed)
        n->ours = false; /* it stays out until a person asks for another test */
}

void fr_node_heard(struct fr_ctl *c, struct fr_cnode *n)
{
    n->heard_ns = c->now_ns;
    n->silent = false;
    if (n->state == FR_NODE_UNKNOWN)
        fr_node_move(c, n, n->before_silence ? n->before_silence : FR_NODE_HEALTHY, FR_ACTOR_SELF,
                     0, n->before_silence ? "its agent is heard again" : "its agent is heard");
}

/* Only what is in use becomes unknown by silence; a drain stands. */
static int silence_shows(enum fr_node_state s)
{
    return s == FR_NODE_HEALTHY || s == FR_NODE_SUSPECT || s == FR_NODE_PROBATION;
}

int fr_node_is_free_for(const struct fr_ctl *c, const struct fr_cnode *n, const struct fr_cjob *j)
{
    (void)c;
    return fr_node_is_usable(n->state) && !n->silent && n->has_info && (!n->job || n->job == j) &&
           (n->ranks_max == 0 || n->ranks_max >= j->ranks_per_node);
}

/* n9 before n10: runs of digits compare as numbers. */
static int compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        if (*a >= '0' && *a <= '9' && *b >= '0' && *b <= '9') {
            size_t la, lb;

            a += strspn(a, "0");
            b += strspn(b, "0");
            la = strspn(a, "0123456789");
            lb = strspn(b, "0123456789");
            if (la != lb)
                return la < lb ? -1 : 1;
            for (; la > 0; la--, a++, b++)
                if (*a != *b)
                    return *a < *b ? -1 : 1;
            continue;
        }
        if (*a != *b)
            return *a < *b ? -1 : 1;
        a++;
        b++;
    }
    return (*a != 0) - (*b != 0);
}

static int order_of(enum fr_node_state s)
{
    return s == FR_NODE_HEALTHY ? 0 : s == FR_NODE_PROBATION ? 1 : 2;
}

static int by_name(const void *pa, const void *pb)
{
    const struct fr_cnode *a = *(struct fr_cnode *const *)pa, *b = *(struct fr_cnode *const *)pb;
    int numbers = compare_names(a->name, b->name);

    return numbers ? numbers : strcmp(a->name, b->name);
}

static int compare_nodes(const void *pa, const void *pb)
{
    const struct fr_cnode *a = *(struct fr_cnode *const *)pa, *b = *(struct fr_cnode *const *)pb;
    int oa = order_of(a->state), ob = order_of(b->state);

    return oa != ob ? oa - ob : by_name(pa, pb);
}

static int holds(struct fr_cnode *const *list, uint32_t n, const struct fr_cnode *x)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == x)
            return 1;
    return 0;
}

/* Spares that running jobs of others want kept free. */
static uint32_t kept_for_others(const struct fr_ctl *c, const struct fr_cjob *me)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < c->njobs; i++)
        if (c->jobs[i] != me && !fr_job_state_is_end(c->jobs[i]->state) && c->jobs[i]->nattempts)
            sum += c->jobs[i]->spares;
    return sum;
}

uint32_t fr_fleet_place(struct fr_ctl *c, struct fr_cjob *j, struct fr_cnode **out)
{
    FR_CLEANUP(fr_freep) struct fr_cnode **pool = fr_xcalloc(c->nnodes + 1, sizeof *pool);
    const struct fr_cattempt *last = fr_job_current(j);
    uint32_t npool = 0, next = 0, missing = 0, held = 0, keep;

    memset(out, 0, j->nodes * sizeof *out);
    for (uint32_t i = 0; last && i < j->nodes && i < last->nnodes; i++)
        if (fr_node_is_free_for(c, last->nodes[i], j)) {
            out[i] = last->nodes[i];
            held++;
        }
    for (uint32_t i = 0; i < c->nnodes; i++)
        if (fr_node_is_free_for(c, c->nodes[i], j) && !holds(out, j->nodes, c->nodes[i]))
            pool[npool++] = c->nodes[i];
    qsort(pool, npool, sizeof *pool, compare_nodes);
    /* A first attempt leaves the spares of running jobs alone; a restart is what spares are for. */
    keep = last ? 0 : kept_for_others(c, j);
    npool = npool > keep ? npool - keep : 0;
    for (uint32_t i = 0; i < j->nodes; i++) {
        if (out[i])
            continue;
        if (next < npool)
            out[i] = pool[next++];
        else
            missing++;
    }
    return missing;
}

void fr_fleet_list(const struct fr_ctl *c, struct fr_cnode **out)
{
    if (!c->nnodes)
        return;
    memcpy(out, c->nodes, c->nnodes * sizeof *out);
    qsort(out, c->nnodes, sizeof *out, by_name);
}

uint32_t fr_fleet_free(const struct fr_ctl *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->nnodes; i++)
        n += fr_node_is_usable(c->nodes[i]->state) && !c->nodes[i]->silent && !c->nodes[i]->job;
    return n;
}

uint32_t fr_fleet_isolated(const struct fr_ctl *c)
{
    int64_t since = fr_ctl_now_unix(c) - (int64_t)(c->policy_cfg.breaker_window_s * 1e9);
    uint32_t n = 0;

    for (size_t i = c->ndecisions; i-- > 0;) {
        const struct fr_cdecision *d = c->decisions[i];

        if (d->decided_unix_ns < since)
            break;
        n += d->choice == FR_CHOICE_ISOLATE && d->nactions > 0;
    }
    return n;
}

void fr_fleet_tick(struct fr_ctl *c)
{
    uint64_t limit_ns = (uint64_t)(c->cfg.judge_agent_silent_s * 1e9);
    int64_t now = fr_ctl_now_unix(c);

    for (uint32_t i = 0; i < c->nnodes; i++) {
        struct fr_cnode *n = c->nodes[i];

        if (!n->silent && c->now_ns - n->heard_ns > limit_ns) {
            n->silent = true;
            if (silence_shows(n->state)) {
                n->before_silence = n->state;
                fr_node_move(c, n, FR_NODE_UNKNOWN, FR_ACTOR_SELF, 0,
                             "its agent is not heard of: neither healthy nor sick");
            }
        }
        if (n->state == FR_NODE_DRAINING && !n->job)
            fr_node_move(c, n, FR_NODE_DRAINED, n->actor[0] ? n->actor : FR_ACTOR_SELF, n->incident,
                         n->reason);
        if (n->state == FR_NODE_DRAINED && n->ours && !n->job && !n->silent &&
            now - n->since_unix_ns > (int64_t)(c->cfg.controller_verify_after_s * 1e9))
            begin_verify(c, n, FR_ACTOR_SELF, "fullrank: its own test runs");
        if (n->state == FR_NODE_PROBATION && now >= n->probation_until_unix_ns)
            fr_node_move(c, n, FR_NODE_HEALTHY, FR_ACTOR_SELF, 0,
                         "probation ended without a finding");
    }
}
