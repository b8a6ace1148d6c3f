/* SPDX-License-Identifier: Apache-2.0 */
/* helper_fleet.c - see helper_fleet.h: a simulated fleet, for tests only */
#include "helper_fleet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/xalloc.h"
#include "fullrank/fullrank.h"
#include "model/op.h"
#include "wire/agent.pb-c.h"
#include "wire/message.h"
#include "wire/supervise.pb-c.h"

#define REPORT_NS    100000000ull
#define SUPERVISE_NS 50000000ull
#define WORLD        0x1234567890abcdefull

void sim_init(struct sim *s, uint32_t nnodes, uint32_t job_nodes, uint32_t ranks_per_node,
              uint64_t total_steps)
{
    memset(s, 0, sizeof *s);
    s->nnodes = nnodes;
    s->job_nodes = job_nodes;
    s->ranks_per_node = ranks_per_node;
    s->total_steps = total_steps;
    s->step_ns = 40000000;
    s->key = 0x5eed;
    s->dead_rank = s->victim = -1;
    s->exit_code = -1;
    for (uint32_t i = 0; i < nnodes; i++) {
        snprintf(s->nodes[i].name, sizeof s->nodes[i].name, "n%u", i + 1);
        s->nodes[i].instance = 100 + i;
        s->nodes[i].want_full = true;
    }
}

static bool lives(const struct sim *s)
{
    return s->state == FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
}

static bool ended_well(const struct sim *s) /* the last steps are still to be told */
{
    return s->state == FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED && s->exit_code == 0;
}

void sim_inject(struct sim *s, enum sim_fault f, int rank)
{
    s->fault = f;
    s->victim = rank;
    s->fault_ns = s->now_ns;
    for (uint32_t i = 0; i < s->nnodes; i++)
        s->nodes[i].event_due = f == SIM_KILL || f == SIM_EXIT;
}

static int64_t unix_now(const struct sim *s)
{
    return (int64_t)s->now_ns + s->unix_offset_ns;
}

static void end_attempt(struct sim *s, int code, int sig)
{
    s->state = FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED;
    s->ended_unix_ns = unix_now(s);
    s->exit_code = code;
    s->exit_signal = sig;
    s->sup_sent_ns = 0;
}

static void train(struct sim *s)
{
    if (s->state == FULLRANK__ATTEMPT_STATE__ATTEMPT_STARTING && s->now_ns >= s->busy_until_ns) {
        s->state = FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
        s->step = s->first_step = s->checkpoint;
        s->step_began_ns = s->now_ns;
        s->last_step_ns = s->now_ns;
    }
    if (s->state == FULLRANK__ATTEMPT_STATE__ATTEMPT_STOPPING && s->now_ns >= s->busy_until_ns) {
        end_attempt(s, -1, 9);
        s->fault = SIM_NONE;
        return;
    }
    if (!lives(s))
        return;
    if (s->fault == SIM_NONE) {
        while (s->now_ns - s->step_began_ns >= s->step_ns && s->step < s->total_steps) {
            s->step++;
            s->step_began_ns += s->step_ns;
            s->last_step_ns = s->step_began_ns;
            if (s->step % 10 == 0)
                s->checkpoint = s->step;
        }
        if (s->step == s->total_steps)
            end_attempt(s, 0, 0);
    } else if (s->fault != SIM_STOP && s->now_ns - s->fault_ns > 400000000ull) {
        s->dead_rank = s->victim;
        end_attempt(s, s->fault == SIM_KILL ? -1 : 3, s->fault == SIM_KILL ? 9 : 0);
        s->fault = SIM_NONE;
    }
}

/* --- agents --- */

static int place_of(const struct sim *s, uint32_t node)
{
    for (uint32_t p = 0; p < s->job_nodes; p++)
        if (s->where[p] == (int)node)
            return (int)p;
    return -1;
}

static void add_plan(const struct sim *s, Fullrank__Rank *m)
{
    m->plan = fr_xalloc(sizeof *m->plan);
    fullrank__plan__init(m->plan);
    m->plan->first_step = s->first_step + 1;
    m->plan->total_steps = s->total_steps;
    m->plan->checkpoint_every = 10;
    m->plan->last_checkpoint = s->checkpoint;
    m->plan->tokens_per_step = 1024;
    m->plan->flops_per_step = 1e9;
    m->plan->peak_flops_per_rank = 1e10;
}

static Fullrank__Rank *make_rank(struct sim *s, uint32_t rank)
{
    Fullrank__Rank *m = fr_xalloc(sizeof *m);
    bool hit = (int)rank == s->victim && s->fault != SIM_NONE;
    bool waits = s->fault != SIM_NONE && !hit;

    fullrank__rank__init(m);
    m->job = s->job;
    m->attempt = s->attempt;
    m->epoch = s->epoch;
    m->rank = rank;
    m->world = s->job_nodes * s->ranks_per_node;
    m->pid = 1000 + rank + 100 * s->attempt;
    m->state = FULLRANK__PROC_STATE__PROC_RUNNING;
    m->state_since_ns = s->step_began_ns;
    if (hit) {
        m->state = s->fault == SIM_STOP ? FULLRANK__PROC_STATE__PROC_STOPPED
                                        : FULLRANK__PROC_STATE__PROC_GONE;
        m->state_since_ns = s->fault_ns;
        m->stopped_ratio = s->fault == SIM_STOP ? 1 : 0;
    }
    m->wchan = (char *)(uintptr_t) "";
    m->observed_ns = s->now_ns;
    m->level = 2;
    m->sources = 3;
    if (!s->unmarked) {
        m->phase = FULLRANK_PHASE_STEP;
        m->phase_since_ns = s->step_began_ns;
        m->step = s->step + 1;
        m->checkpoint_step = s->checkpoint;
        add_plan(s, m);
    }
    m->now = fr_xalloc(sizeof *m->now);
    fullrank__now__init(m->now);
    m->now->peer = -1;
    m->now->since_ns = s->fault ? s->fault_ns : s->step_began_ns;
    if (waits) {
        m->now->op = FR_OP_ALLREDUCE;
        m->now->members_hash = WORLD;
        m->now->seq = s->step + 1;
        m->now->bytes = 4096;
    }
    return m;
}

static Fullrank__Progress *make_progress(struct sim *s, uint32_t rank)
{
    Fullrank__Progress *m = fr_xalloc(sizeof *m);
    bool waits = s->fault != SIM_NONE && (int)rank != s->victim;

    fullrank__progress__init(m);
    m->job = s->job;
    m->epoch = s->epoch;
    m->rank = rank;
    m->members_hash = WORLD;
    m->completed = s->step;
    m->enqueued = m->started = s->step + waits;
    m->op = FR_OP_ALLREDUCE;
    m->dtype = FR_DTYPE_FLOAT32;
    m->bytes = 4096;
    m->enqueued_ns = waits ? s->fault_ns : s->last_step_ns;
    m->completed_ns = s->last_step_ns;
    return m;
}

static Fullrank__Step *make_step(struct sim *s, uint32_t rank, uint64_t step)
{
    Fullrank__Step *m = fr_xalloc(sizeof *m);

    fullrank__step__init(m);
    m->job = s->job;
    m->attempt = s->attempt;
    m->epoch = s->epoch;
    m->rank = rank;
    m->step = step;
    m->end_ns = s->last_step_ns - (s->step - step) * s->step_ns;
    m->begin_ns = m->end_ns - s->step_ns;
    m->self_ns = 20000000;
    m->in_calls_ns = 20000000;
    m->loss = rank == 0 ? 1.0 / (double)step : (double)NAN;
    m->tokens = rank == 0 ? 1024 : (double)NAN;
    return m;
}

static void add_ranks(struct sim *s, uint32_t node, Fullrank__Report *r)
{
    struct sim_node *n = &s->nodes[node];
    int place = place_of(s, node);
    uint64_t from = n->reported_step > s->first_step ? n->reported_step : s->first_step;
    uint32_t rpn = s->ranks_per_node;

    if (place < 0 || !(lives(s) || ended_well(s)) || n->epoch != s->epoch)
        return;
    if (s->step - from > 128)
        from = s->step - 128;
    r->ranks = fr_xcalloc(rpn, sizeof *r->ranks);
    r->progress = fr_xcalloc(rpn, sizeof *r->progress);
    r->comms = fr_xcalloc(rpn, sizeof *r->comms);
    r->events = fr_xcalloc(rpn, sizeof *r->events);
    r->steps = fr_xcalloc(rpn * (size_t)(s->step - from) + 1, sizeof *r->steps);
    for (uint32_t k = 0; k < rpn; k++) {
        uint32_t rank = (uint32_t)place * rpn + k;

        r->ranks[r->n_ranks++] = make_rank(s, rank);
        r->progress[r->n_progress++] = make_progress(s, rank);
        if (k == 0) {
            Fullrank__Comm *m = fr_xalloc(sizeof *m);

            fullrank__comm__init(m);
            m->job = s->job;
            m->epoch = s->epoch;
            m->members_hash = WORLD;
            m->size = s->job_nodes * rpn;
            m->n_runs = 3;
            m->runs = fr_xcalloc(3, sizeof *m->runs);
            m->runs[1] = 1;
            m->runs[2] = m->size;
            m->name = (char *)(uintptr_t) "world";
            m->seen_by = rank;
            r->comms[r->n_comms++] = m;
        }
        for (uint64_t t = from + 1; t <= s->step && !s->unmarked; t++)
            r->steps[r->n_steps++] = make_step(s, rank, t);
        if (n->event_due && (int)rank == s->victim &&
            (s->fault == SIM_KILL || s->fault == SIM_EXIT)) {
            Fullrank__ProcEvent *m = fr_xalloc(sizeof *m);

            fullrank__proc_event__init(m);
            m->job = s->job;
            m->attempt = s->attempt;
            m->epoch = s->epoch;
            m->rank = rank;
            m->pid = 1000 + rank + 100 * s->attempt;
            m->state = FULLRANK__PROC_STATE__PROC_GONE;
            m->t_ns = s->fault_ns;
            m->exit_signal = m->exit_code = -1; /* an agent is not the parent */
            r->events[r->n_events++] = m;
        }
    }
}

void sim_pack_report(struct sim *s, uint32_t node, bool full, struct fr_buf *out)
{
    struct sim_node *n = &s->nodes[node];
    Fullrank__Report r = FULLRANK__REPORT__INIT;
    Fullrank__NodeInfo info = FULLRANK__NODE_INFO__INIT;
    Fullrank__AgentSelf self = FULLRANK__AGENT_SELF__INIT;
    Fullrank__Evidence ev = FULLRANK__EVIDENCE__INIT, *evp = &ev;
    Fullrank__TestResult test = FULLRANK__TEST_RESULT__INIT, *testp = &test;
    static uint8_t stack[] = "poll_schedule_timeout\n";

    r.node = n->name;
    r.agent_instance = n->instance;
    r.seq = n->seq;
    r.mono_ns = s->now_ns;
    r.unix_ns = unix_now(s);
    r.boot_id = (char *)(uintptr_t) "boot";
    r.version = (char *)(uintptr_t) "sim";
    r.full = full;
    info.host = (char *)(uintptr_t) "localhost";
    info.probe_dir = (char *)(uintptr_t) "/nowhere";
    info.machine_id = (char *)(uintptr_t) "m1";
    info.engine = (char *)(uintptr_t) "local";
    if (full)
        r.info = &info;
    self.rss_bytes = 1 << 20;
    r.self = &self;
    add_ranks(s, node, &r);
    if (n->collect) {
        ev.incident = n->collect;
        ev.job = s->job;
        ev.epoch = s->epoch;
        ev.name = (char *)(uintptr_t) "rank.stack";
        ev.data.data = stack;
        ev.data.len = sizeof stack - 1;
        ev.last = true;
        r.evidence = &evp;
        r.n_evidence = 1;
    }
    if (n->verify) {
        test.request = n->verify;
        test.name = (char *)(uintptr_t) "memory-bandwidth";
        test.passed = test.last = true;
        r.tests = &testp;
        r.n_tests = 1;
    }
    fr_message_pack(&r.base, out);
    for (size_t i = 0; i < r.n_ranks; i++) {
        free(r.ranks[i]->plan);
        free(r.ranks[i]->now);
        free(r.ranks[i]);
        free(r.progress[i]);
    }
    for (size_t i = 0; i < r.n_comms; i++) {
        free(r.comms[i]->runs);
        free(r.comms[i]);
    }
    for (size_t i = 0; i < r.n_steps; i++)
        free(r.steps[i]);
    for (size_t i = 0; i < r.n_events; i++)
        free(r.events[i]);
    free(r.ranks);
    free(r.progress);
    free(r.comms);
    free(r.steps);
    free(r.events);
}

static void read_reply(struct sim *s, struct sim_node *n, const struct fr_buf *b, uint64_t told)
{
    Fullrank__Reply *r = fullrank__reply__unpack(NULL, b->len, (const uint8_t *)b->p);

    if (!r) {
        snprintf(s->error, sizeof s->error, "a reply that cannot be unpacked");
        return;
    }
    if (r->error[0])
        snprintf(s->error, sizeof s->error, "%s", r->error);
    n->acked = r->acked_seq;
    n->reported_step = told;
    n->event_due = false;
    n->want_full = r->want_full;
    if (r->controller_instance !=
        s->controller) { /* another one: tell everything again that is still held */
        s->controller = r->controller_instance;
        for (uint32_t i = 0; i < s->nnodes; i++) {
            s->nodes[i].reported_step = 0;
            s->nodes[i].event_due = true;
        }
    }
    n->collect = n->verify = 0;
    n->epoch = 0;
    for (size_t i = 0; i < r->n_assignments; i++)
        if (strcmp(r->assignments[i]->job, s->job) == 0) {
            n->epoch = r->assignments[i]->epoch;
            n->attempt = r->assignments[i]->attempt;
        }
    for (size_t i = 0; i < r->n_commands; i++) {
        if (r->commands[i]->what_case == FULLRANK__COMMAND__WHAT_COLLECT) {
            n->collect = r->commands[i]->collect->incident;
            n->collected++;
        }
        if (r->commands[i]->what_case == FULLRANK__COMMAND__WHAT_TEST) {
            n->verify = r->commands[i]->id;
            n->verified++;
        }
    }
    fullrank__reply__free_unpacked(r, NULL);
}

static void report(struct sim *s, uint32_t node)
{
    struct sim_node *n = &s->nodes[node];
    FR_CLEANUP(fr_buf_fini) struct fr_buf body = FR_BUF_INIT;
    FR_CLEANUP(fr_buf_fini) struct fr_buf reply = FR_BUF_INIT;
    uint64_t told = lives(s) || ended_well(s) ? s->step : n->reported_step;

    n->seq++;
    n->sent_ns = s->now_ns;
    sim_pack_report(s, node, n->want_full || n->seq == 1, &body);
    if (s->post(s->arg, false, &body, &reply) == 200)
        read_reply(s, n, &reply, told);
}

/* --- supervisor --- */

static void obey(struct sim *s, const Fullrank__SuperviseOrder *o)
{
    s->last_order = o->id;
    switch (o->what) {
    case FULLRANK__SUPERVISE_ORDER__WHAT__START:
        if (o->epoch <= s->epoch) {
            s->old_orders++;
            return;
        }
        s->starts[o->epoch % SIM_EPOCHS]++;
        s->epoch = o->epoch;
        s->attempt = o->attempt;
        for (size_t p = 0; p < o->n_placements; p++)
            s->where[p] = atoi(o->placements[p]->node + 1) - 1;
        s->state = FULLRANK__ATTEMPT_STATE__ATTEMPT_STARTING;
        s->started_unix_ns = unix_now(s);
        s->busy_until_ns = s->now_ns + 300000000ull;
        s->fault = SIM_NONE;
        s->victim = s->dead_rank = -1;
        s->exit_code = -1;
        s->exit_signal = 0;
        for (uint32_t i = 0; i < s->nnodes; i++)
            s->nodes[i].reported_step = 0;
        break;
    case FULLRANK__SUPERVISE_ORDER__WHAT__STOP:
        if (o->epoch != s->epoch || !lives(s)) {
            s->old_orders++;
            return;
        }
        s->stops[o->epoch % SIM_EPOCHS]++;
        s->state = FULLRANK__ATTEMPT_STATE__ATTEMPT_STOPPING;
        s->busy_until_ns = s->now_ns + 200000000ull;
        break;
    case FULLRANK__SUPERVISE_ORDER__WHAT__FINISH:
        s->finished = true;
        s->finish_code = o->exit_code;
        break;
    default:
        break;
    }
}

static void supervise(struct sim *s)
{
    Fullrank__SuperviseReport r = FULLRANK__SUPERVISE_REPORT__INIT;
    FR_CLEANUP(fr_buf_fini) struct fr_buf body = FR_BUF_INIT;
    FR_CLEANUP(fr_buf_fini) struct fr_buf reply = FR_BUF_INIT;
    char *command[] = {(char *)(uintptr_t) "train", (char *)(uintptr_t) "<script>\"x\"</script>"};
    char *nodes[SIM_NODES];
    Fullrank__SuperviseOrder *o;

    s->sup_sent_ns = s->now_ns;
    for (uint32_t i = 0; i < s->job_nodes; i++)
        nodes[i] = s->nodes[s->where[i]].name;
    r.job = s->job;
    r.key = s->key;
    r.n_command = 2;
    r.command = command;
    r.user = (char *)(uintptr_t) "somebody";
    r.engine = (char *)(uintptr_t) "local";
    r.nodes = s->job_nodes;
    r.ranks_per_node = s->ranks_per_node;
    r.mode = (char *)(uintptr_t) "act";
    r.submitted_unix_ns = unix_now(s);
    r.attempt = s->attempt;
    r.epoch = s->epoch;
    r.state = s->state;
    if (s->epoch) {
        r.n_node_list = s->job_nodes;
        r.node_list = nodes;
    }
    r.started_unix_ns = s->started_unix_ns;
    r.ended_unix_ns = s->ended_unix_ns;
    r.exit_code = s->exit_code;
    r.exit_signal = s->exit_signal;
    r.first_dead_rank = s->dead_rank;
    r.last_order = s->last_order;
    fr_message_pack(&r.base, &body);
    if (s->post(s->arg, true, &body, &reply) != 200)
        return;
    o = fullrank__supervise_order__unpack(NULL, reply.len, (const uint8_t *)reply.p);
    if (!o)
        return;
    if (o->error[0])
        snprintf(s->error, sizeof s->error, "%s", o->error);
    if (!s->job[0])
        snprintf(s->job, sizeof s->job, "%s", o->job);
    if (o->id > s->last_order)
        obey(s, o);
    fullrank__supervise_order__free_unpacked(o, NULL);
}

void sim_run(struct sim *s, uint64_t now_ns)
{
    s->now_ns = now_ns;
    train(s);
    for (uint32_t i = 0; i < s->nnodes; i++)
        if (!s->nodes[i].away &&
            (s->now_ns - s->nodes[i].sent_ns >= REPORT_NS || s->nodes[i].event_due))
            report(s, i);
    if (!s->finished && s->now_ns - s->sup_sent_ns >= SUPERVISE_NS)
        supervise(s);
}
