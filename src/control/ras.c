/* SPDX-License-Identifier: Apache-2.0 */
/* ras.c - see ras.h */
#include "control/ras.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* at first; a long silence is asked about less often, which costs the job less */
#define POLL_MIN_S  2.0
#define POLL_MAX_S  10.0
#define QUIET_PARTS 15.0
/* nodes of a job that ask: the second for the case that the first is the sick one */
#define ASKERS  2
#define ADDRESS 46

void fr_ras_addresses(struct fr_cnode *n, const Fullrank__NodeInfo *m)
{
    struct fr_buf b = FR_BUF_INIT;

    for (size_t i = 0; i < m->n_addresses && i < FR_NODE_ADDRESSES; i++)
        if (m->addresses[i][0] && strlen(m->addresses[i]) < ADDRESS &&
            !strchr(m->addresses[i], ' '))
            fr_buf_printf(&b, " %s", m->addresses[i]);
    free(n->addresses);
    n->addresses = b.len ? fr_xstrdup(fr_buf_str(&b)) : NULL;
    fr_buf_fini(&b);
}

static bool has_address(const struct fr_cnode *n, const char *host)
{
    size_t len = strlen(host);

    for (const char *at = n->addresses; at && len && (at = strstr(at, host)) != NULL; at += len)
        if (at[-1] == ' ' && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

static bool may_be_on(const struct fr_cnode *n, const struct fr_cnode *teller,
                      const Fullrank__RasWord *m)
{
    /* Nodes of one machine share its addresses; the pid tells them apart. */
    if (m->here && (n == teller || (n->machine[0] && strcmp(n->machine, teller->machine) == 0)))
        return true;
    return has_address(n, m->host);
}

int32_t fr_ras_rank(const struct fr_cjob *j, const struct fr_cnode *teller,
                    const Fullrank__RasWord *m)
{
    const struct fr_cattempt *a = &j->attempts[j->nattempts - 1];
    int32_t found = -1;

    for (uint32_t r = 0; j->ranks && r < j->nranks; r++) {
        if (!j->ranks[r].known || j->ranks[r].pid != m->pid ||
            !may_be_on(a->nodes[r / j->ranks_per_node], teller, m))
            continue;
        if (found >= 0)
            return -1;
        found = (int32_t)r;
    }
    return found;
}

/* The first nodes of the attempt that are heard of. */
static bool is_asker(const struct fr_cjob *j, const struct fr_cnode *n)
{
    const struct fr_cattempt *a = &j->attempts[j->nattempts - 1];
    int before = 0;

    for (uint32_t i = 0; i < a->nnodes && before < ASKERS; i++) {
        if (a->nodes[i] == n)
            return true;
        before += !a->nodes[i]->silent;
    }
    return false;
}

double fr_ras_wanted(const struct fr_ctl *c, const struct fr_cnode *n)
{
    const struct fr_cjob *j = n->job;
    struct fr_judge_summary sum;
    double quiet_s;

    if (!j || !j->judging || !j->judge || !j->nattempts || !is_asker(j, n))
        return 0;
    fr_judge_summary(j->judge, &sum);
    quiet_s = c->now_ns > sum.last_move_ns ? (double)(c->now_ns - sum.last_move_ns) * 1e-9 : 0;
    if (quiet_s <= c->judge_cfg.hang_silence_s)
        return 0;
    return fmin(fmax(quiet_s / QUIET_PARTS, POLL_MIN_S), POLL_MAX_S);
}
