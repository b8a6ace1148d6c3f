/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - see reply.h */
#include "control/reply.h"

#include <stdlib.h>

#include "base/xalloc.h"
#include "control/act.h"
#include "control/ras.h"
#include "wire/agent.pb-c.h"
#include "wire/message.h"

#define STEP_HOLD_NS                                                                               \
    10000000000ull /* a step that not all ranks end holds an acknowledgement back no longer */
#define BUDGET_NS     5000000000ull
#define KEEP_LOG2_MAX 16

void fr_reply_note(struct fr_ctl *c, struct fr_cnode *n, uint64_t seq, struct fr_cjob *j,
                   uint64_t step)
{
    struct fr_ack *a;

    if (n->nacks == FR_ACKS) { /* the oldest is acknowledged with the next one that can be */
        n->ack_first = (n->ack_first + 1) % FR_ACKS;
        n->nacks--;
    }
    a = &n->acks[(n->ack_first + n->nacks++) % FR_ACKS];
    *a = (struct fr_ack){.seq = seq,
                         .save = c->saves + 1,
                         .deadline_ns = c->now_ns + STEP_HOLD_NS,
                         .job = j,
                         .epoch = j ? j->epoch : 0,
                         .step = step};
}

static bool is_durable(const struct fr_ctl *c, const struct fr_ack *a)
{
    if (!c->ledger_ok || !fr_ctl_save_durable(c, a->save))
        return false;
    return !a->job || a->job->epoch != a->epoch || !a->job->judging ||
           a->step <= a->job->step_durable || c->now_ns > a->deadline_ns;
}

static void update_ack(struct fr_ctl *c, struct fr_cnode *n)
{
    while (n->nacks && is_durable(c, &n->acks[n->ack_first])) {
        n->acked_seq = n->acks[n->ack_first].seq;
        n->ack_first = (n->ack_first + 1) % FR_ACKS;
        n->nacks--;
    }
}

/* Keep the forwarded records within their budget: every step, every second one, every fourth ... */
static void update_budget(struct fr_ctl *c, struct fr_cjob *j)
{
    double rate, budget = (double)c->cfg.controller_record_budget_bytes;

    if (j->step_done < j->burst_until) { /* what a burst brings is no measure of the rest */
        j->record_window_ns = 0;
        return;
    }

    if (c->now_ns - j->record_window_ns < BUDGET_NS)
        return;
    rate = (double)j->record_bytes / ((double)(c->now_ns - j->record_window_ns) * 1e-9);
    if (j->record_window_ns && rate > budget && j->keep_log2 < KEEP_LOG2_MAX)
        j->keep_log2++;
    else if (j->record_window_ns && j->keep_log2 > 0 && rate < 0.4 * budget)
        j->keep_log2--;
    j->record_bytes = 0;
    j->record_window_ns = c->now_ns;
}

void fr_reply_make(struct fr_ctl *c, struct fr_cnode *n, struct fr_buf *reply)
{
    Fullrank__Reply r = FULLRANK__REPLY__INIT;
    Fullrank__Assignment as = FULLRANK__ASSIGNMENT__INIT, *asp = &as;
    Fullrank__Command commands[2], *cp[2];
    Fullrank__Collect collect = FULLRANK__COLLECT__INIT;
    Fullrank__Test test = FULLRANK__TEST__INIT;
    FR_CLEANUP(fr_freep) uint32_t *ranks = NULL;
    const struct fr_cincident *i = fr_act_collects(n);
    struct fr_cjob *j = n->job;

    update_ack(c, n);
    r.controller_instance = c->instance;
    r.acked_seq = n->acked_seq;
    r.want_full = n->want_full;
    if (j && j->nattempts) {
        const struct fr_cattempt *a = fr_job_current(j);

        update_budget(c, j);
        r.keep_log2 = j->keep_log2;
        r.ras_poll_s = fr_ras_wanted(c, n);
        r.burst_until_step = j->burst_until;
        /* Also when it has ended: its last steps and deaths are still to be told. */
        if (!fr_job_state_is_end(j->state)) {
            ranks = fr_xcalloc(j->ranks_per_node, sizeof *ranks);
            for (uint32_t k = 0; k < j->ranks_per_node; k++)
                ranks[k] = n->job_index * j->ranks_per_node + k;
            as.job = j->job;
            as.attempt = a->attempt;
            as.epoch = a->epoch;
            as.uid = j->uid;
            as.session = j->session;
            as.n_ranks = j->ranks_per_node;
            as.ranks = ranks;
            r.n_assignments = 1;
            r.assignments = &asp;
        }
    }
    if (i) {
        fullrank__command__init(&commands[r.n_commands]);
        collect.incident = i->id;
        collect.job = j->job;
        collect.epoch = j->epoch;
        collect.dumps = fr_act_wants_dumps(i);
        commands[r.n_commands].id = i->id;
        commands[r.n_commands].what_case = FULLRANK__COMMAND__WHAT_COLLECT;
        commands[r.n_commands].collect = &collect;
        cp[r.n_commands] = &commands[r.n_commands];
        r.n_commands++;
    }
    if (n->state == FR_NODE_VERIFYING && n->test_id) {
        fullrank__command__init(&commands[r.n_commands]);
        test.level = (char *)(uintptr_t) "verify";
        commands[r.n_commands].id = n->test_id;
        commands[r.n_commands].what_case = FULLRANK__COMMAND__WHAT_TEST;
        commands[r.n_commands].test = &test;
        cp[r.n_commands] = &commands[r.n_commands];
        r.n_commands++;
    }
    r.commands = cp;
    fr_message_pack(&r.base, reply);
}

int fr_reply_refuse(struct fr_ctl *c, const char *why, struct fr_buf *reply)
{
    Fullrank__Reply r = FULLRANK__REPLY__INIT;

    r.controller_instance = c->instance;
    r.error = (char *)(uintptr_t)why;
    fr_message_pack(&r.base, reply);
    return 400;
}
