/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "model/op.h"

enum { PHASE_STEP = 3 };
enum event_kind { EV_BEGIN, EV_ENTER, EV_LEAVE, EV_END, EV_PHASE };

struct lab_event {
    double at_s;
    int rank;
    enum event_kind kind;
    uint32_t op, phase;
    int comm, peer;
    double from_s, self_s;
    uint64_t seq, step;
    size_t order; /* as they were laid: of one rank the earlier comes first */
};

#define EVENTS_MAX (LAB_RANKS * 24)
#define TRANSFER_S 2e-4

static int comm_tp(const struct lab *l, int d, int p)
{
    return d * l->pp + p;
}
static int comm_dp(const struct lab *l, int p, int t)
{
    return l->dp * l->pp + p * l->tp + t;
}
static int comm_all(const struct lab *l)
{
    return l->dp * l->pp + l->pp * l->tp;
}
static struct fr_comm_key key_of(int comm)
{
    return comm < 0 ? (struct fr_comm_key){0, 0} : (struct fr_comm_key){1000 + (uint64_t)comm, 0};
}

int lab_rank(const struct lab *l, int d, int p, int t)
{
    return (d * l->pp + p) * l->tp + t;
}

uint64_t lab_now_ns(const struct lab *l)
{
    return LAB_T0_NS + (uint64_t)(l->now_s * 1e9);
}

static uint64_t ns(double s)
{
    return LAB_T0_NS + (uint64_t)(s * 1e9);
}

void lab_init(struct lab *l, int dp, int pp, int tp, int per_node, uint64_t seed)
{
    memset(l, 0, sizeof *l);
    l->dp = dp;
    l->pp = pp;
    l->tp = tp;
    l->n = dp * pp * tp;
    l->per_node = per_node;
    l->nodes = (l->n + per_node - 1) / per_node;
    l->chunk_s[0] = 0.02;
    l->chunk_s[1] = 0.02;
    l->chunk_s[2] = 0.005;
    l->noise = 0.05;
    l->sway = 0.03;
    l->steady = 0.8;
    fr_judge_defaults(&l->cfg);
    l->records = true;
    for (int r = 0; r < LAB_RANKS; r++)
        l->freeze_s[r] = l->stop_s[r] = l->die_s[r] = INFINITY;
    l->slow_node = l->slow_rank = -1;
    l->rng.s = seed;
}

void lab_start(struct lab *l)
{
    uint32_t node_of[LAB_RANKS];
    char name[16];

    for (int r = 0; r < l->n; r++)
        node_of[r] = (uint32_t)(r / l->per_node);
    l->j = fr_judge_new(&l->cfg);
    l->events = fr_xcalloc(EVENTS_MAX, sizeof *l->events);
    fr_judge_begin(l->j, (uint32_t)l->n, node_of, (uint32_t)l->nodes, LAB_T0_NS);
    for (int d = 0; d < l->dp; d++)
        for (int p = 0; p < l->pp; p++)
            for (int t = 0; t < l->tp; t++) {
                int32_t index[5] = {t, 0, 0, d, p}, size[5] = {l->tp, 1, 1, l->dp, l->pp};

                fr_judge_grid(l->j, (uint32_t)lab_rank(l, d, p, t), index, size);
            }
    for (int d = 0; d < l->dp; d++)
        for (int p = 0; p < l->pp; p++) {
            uint32_t run[3] = {(uint32_t)lab_rank(l, d, p, 0), 1, (uint32_t)l->tp};

            snprintf(name, sizeof name, "tp%d", comm_tp(l, d, p));
            fr_judge_comm(l->j, key_of(comm_tp(l, d, p)), (uint32_t)l->tp, run, 1, name);
        }
    for (int p = 0; p < l->pp; p++)
        for (int t = 0; t < l->tp; t++) {
            uint32_t run[3] = {(uint32_t)lab_rank(l, 0, p, t), (uint32_t)(l->pp * l->tp),
                               (uint32_t)l->dp};

            snprintf(name, sizeof name, "dp%d", p * l->tp + t);
            fr_judge_comm(l->j, key_of(comm_dp(l, p, t)), (uint32_t)l->dp, run, 1, name);
        }
    fr_judge_comm(l->j, key_of(comm_all(l)), (uint32_t)l->n, (uint32_t[]){0, 1, (uint32_t)l->n}, 1,
                  "all");
}

void lab_fini(struct lab *l)
{
    fr_judge_free(l->j);
    free(l->events);
}

/* --- one step --- */

static void put(struct lab *l, struct lab_event e)
{
    if (isfinite(e.at_s) && l->nevents < EVENTS_MAX && e.at_s <= l->freeze_s[e.rank]) {
        e.order = l->nevents;
        l->events[l->nevents++] = e;
    }
}

static double chunk(struct lab *l, int r, enum lab_chunk k, double *self_s)
{
    double s = l->chunk_s[k] * exp(l->noise * fr_rng_normal(&l->rng) + l->wander[r]),
           t = l->clock[r];
    bool slow = l->slow_step && l->step >= l->slow_step &&
                (l->slow_node == r / l->per_node || l->slow_rank == r);

    if (slow)
        s *= l->slow_factor;
    if (l->step == l->pause_step && k == l->pause_chunk &&
        (l->pause_rank < 0 || l->pause_rank == r)) {
        if (l->pause_phase) {
            put(l, (struct lab_event){
                       .at_s = t, .rank = r, .kind = EV_PHASE, .phase = l->pause_phase});
            put(l, (struct lab_event){
                       .at_s = t + l->pause_s, .rank = r, .kind = EV_PHASE, .phase = PHASE_STEP});
        }
        s += l->pause_s;
    }
    if (l->hang_step && l->step >= l->hang_step && r == l->hang_rank && k >= l->hang_chunk)
        s = INFINITY;
    *self_s += s;
    return t + s > l->freeze_s[r] ? INFINITY : t + s;
}

static void enter(struct lab *l, int r, uint32_t op, int comm, int peer, uint64_t seq)
{
    put(l, (struct lab_event){.at_s = l->clock[r],
                              .rank = r,
                              .kind = EV_ENTER,
                              .op = op,
                              .comm = comm,
                              .peer = peer,
                              .seq = seq,
                              .step = l->step});
}

static void leave(struct lab *l, int r, uint32_t op, int comm, int peer, uint64_t seq, double end_s)
{
    put(l, (struct lab_event){.at_s = end_s,
                              .rank = r,
                              .kind = EV_LEAVE,
                              .op = op,
                              .comm = comm,
                              .peer = peer,
                              .seq = seq,
                              .step = l->step,
                              .from_s = l->clock[r]});
    l->clock[r] = end_s > l->freeze_s[r] ? INFINITY : end_s;
}

/* An all-reduce of n ranks from `first` with `stride`. The sequence is the step: one each a step.
 */
static void allreduce(struct lab *l, int comm, int first, int stride, int n)
{
    double end = 0;

    for (int i = 0; i < n; i++) {
        int r = first + i * stride;

        enter(l, r, FR_OP_ALLREDUCE, comm, -1, l->step);
        end = fmax(end, l->clock[r]);
    }
    for (int i = 0; i < n; i++)
        leave(l, first + i * stride, FR_OP_ALLREDUCE, comm, -1, l->step, end + TRANSFER_S);
}

static int by_time(const void *pa, const void *pb)
{
    const struct lab_event *a = pa, *b = pb;

    if (a->at_s != b->at_s)
        return a->at_s < b->at_s ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static void make_step(struct lab *l)
{
    double begin[LAB_RANKS], self[LAB_RANKS] = {0};

    l->step++;
    l->nevents = l->event = 0;
    for (int r = 0; r < l->n; r++) {
        l->wander[r] = l->steady * l->wander[r] +
                       sqrt(1 - l->steady * l->steady) * l->sway * fr_rng_normal(&l->rng);
        begin[r] = l->clock[r];
        put(l, (struct lab_event){.at_s = begin[r], .rank = r, .kind = EV_BEGIN, .step = l->step});
    }
    for (int p = 0; p < l->pp; p++)
        for (int d = 0; d < l->dp; d++) {
            for (int t = 0; t < l->tp; t++) {
                int r = lab_rank(l, d, p, t);

                if (p > 0) { /* sent is the clock of the stage before, after its send */
                    int from = lab_rank(l, d, p - 1, t);

                    enter(l, r, FR_OP_RECV, -1, from, l->step);
                    leave(l, r, FR_OP_RECV, -1, from, l->step,
                          fmax(l->clock[r], l->clock[from]) + 1e-5);
                }
                l->clock[r] = chunk(l, r, LAB_BEFORE_TP, &self[r]);
            }
            if (l->tp > 1)
                allreduce(l, comm_tp(l, d, p), lab_rank(l, d, p, 0), 1, l->tp);
            for (int t = 0; t < l->tp; t++) {
                int r = lab_rank(l, d, p, t);

                l->clock[r] = chunk(l, r, LAB_BEFORE_DP, &self[r]);
                if (p < l->pp - 1) {
                    enter(l, r, FR_OP_SEND, -1, lab_rank(l, d, p + 1, t), l->step);
                    leave(l, r, FR_OP_SEND, -1, lab_rank(l, d, p + 1, t), l->step,
                          l->clock[r] + 1e-5);
                }
            }
        }
    for (int p = 0; p < l->pp; p++)
        for (int t = 0; t < l->tp && l->dp > 1; t++)
            allreduce(l, comm_dp(l, p, t), lab_rank(l, 0, p, t), l->pp * l->tp, l->dp);
    for (int r = 0; r < l->n; r++)
        l->clock[r] = chunk(l, r, LAB_BEFORE_ALL, &self[r]);
    allreduce(l, comm_all(l), 0, 1, l->n);
    for (int r = 0; r < l->n; r++)
        put(l, (struct lab_event){.at_s = l->clock[r],
                                  .rank = r,
                                  .kind = EV_END,
                                  .step = l->step,
                                  .from_s = begin[r],
                                  .self_s = self[r]});
    qsort(l->events, l->nevents, sizeof *l->events, by_time);
}

/* --- what the agents see --- */

static void apply(struct lab *l, const struct lab_event *e)
{
    int r = e->rank, c = e->comm;

    switch (e->kind) {
    case EV_PHASE:
        l->phase[r] = e->phase;
        l->phase_s[r] = e->at_s;
        break;
    case EV_BEGIN:
        l->phase[r] = PHASE_STEP;
        l->phase_s[r] = e->at_s;
        l->step_begun[r] = e->step;
        break;
    case EV_ENTER:
        l->now[r] = (struct fr_obs_now){.op = e->op,
                                        .since_ns = ns(e->at_s),
                                        .comm = key_of(c),
                                        .seq = e->seq,
                                        .bytes = 4096,
                                        .peer = e->peer};
        if (c >= 0) {
            l->enqueued[c][r] = e->seq;
            l->enqueued_s[c][r] = e->at_s;
            l->op[c][r] = e->op;
        }
        break;
    case EV_LEAVE:
        l->now[r] = (struct fr_obs_now){.op = FR_OP_NONE, .since_ns = ns(e->at_s), .peer = -1};
        if (c >= 0) {
            l->completed[c][r] = e->seq;
            l->completed_s[c][r] = e->at_s;
        }
        if (l->records && l->nheld_records[r] < 2048)
            l->held_records[r][l->nheld_records[r]++] =
                (struct fr_obs_record){.comm = key_of(c),
                                       .seq = e->seq,
                                       .enq_ns = ns(e->from_s),
                                       .start_ns = ns(e->from_s),
                                       .end_ns = ns(e->at_s),
                                       .bytes = 4096,
                                       .step = e->step,
                                       .op = e->op,
                                       .peer = e->peer};
        break;
    case EV_END:
        l->step_ended[r] = e->step;
        if (l->nheld_steps[r] < 256)
            l->held_steps[r][l->nheld_steps[r]++] =
                (struct fr_obs_step){.step = e->step,
                                     .begin_ns = ns(e->from_s),
                                     .end_ns = ns(e->at_s),
                                     .self_ns = (uint64_t)(e->self_s * 1e9)};
        break;
    }
}

static void report_proc(struct lab *l, int r)
{
    bool duty = l->duty_cycle && l->slow_step && l->step_begun[r] >= l->slow_step &&
                (l->slow_node == r / l->per_node || l->slow_rank == r);
    struct fr_obs_proc o = {.state = FR_PROC_RUNNING,
                            .state_since_ns = LAB_T0_NS,
                            .observed_ns = lab_now_ns(l),
                            .exit_signal = -1,
                            .exit_code = -1,
                            .stopped_ratio = duty ? 0.5 : 0};

    if (l->last_step && l->step_ended[r] >= l->last_step) {
        o.state = FR_PROC_GONE;
        o.finalized = true;
    } else if (l->die_s[r] <= l->now_s) {
        o.state = FR_PROC_GONE;
        o.state_since_ns = ns(l->die_s[r]);
        o.exit_signal = l->die_signal[r];
    } else if (l->stop_s[r] <= l->now_s) {
        o.state = FR_PROC_STOPPED;
        if (l->seen_stopped_s[r] == 0)
            l->seen_stopped_s[r] = l->now_s;
        o.state_since_ns = ns(l->seen_stopped_s[r]);
        o.stopped_ratio = fmin(l->now_s - l->stop_s[r], 1); /* of the last second */
    } else if (duty && fr_rng_below(&l->rng, 2)) {          /* 20 ms turns: each sample is new */
        o.state = FR_PROC_STOPPED;
        o.state_since_ns = lab_now_ns(l) - fr_rng_below(&l->rng, 20000000);
    }
    fr_judge_proc(l->j, (uint32_t)r, &o);
}

static void report(struct lab *l, int node)
{
    for (int r = node * l->per_node; r < (node + 1) * l->per_node && r < l->n; r++) {
        uint32_t u = (uint32_t)r;

        report_proc(l, r);
        if (l->step_begun[r])
            fr_judge_phase(l->j, u, l->phase[r], ns(l->phase_s[r]), l->step_begun[r]);
        for (int c = 0; c <= comm_all(l); c++)
            if (l->enqueued[c][r])
                fr_judge_progress(
                    l->j, u, key_of(c),
                    &(struct fr_obs_progress){.enqueued = l->enqueued[c][r],
                                              .started = l->enqueued[c][r],
                                              .completed = l->completed[c][r],
                                              .enqueued_ns = ns(l->enqueued_s[c][r]),
                                              .completed_ns = ns(l->completed_s[c][r]),
                                              .bytes = 4096,
                                              .op = l->op[c][r],
                                              .dtype = FR_DTYPE_FLOAT32});
        l->now[r].observed_ns = lab_now_ns(l);
        fr_judge_now(l->j, u, &l->now[r]);
        for (uint32_t i = 0; i < l->nheld_steps[r]; i++)
            fr_judge_step(l->j, u, &l->held_steps[r][i]);
        for (uint32_t i = 0; i < l->nheld_records[r]; i++)
            fr_judge_record(l->j, u, &l->held_records[r][i]);
        l->nheld_steps[r] = l->nheld_records[r] = 0;
    }
    fr_judge_heard(l->j, (uint32_t)node, lab_now_ns(l));
}

void lab_tick(struct lab *l)
{
    l->now_s = (double)++l->ticks * LAB_TICK_S;
    for (;;) {
        while (l->event < l->nevents && l->events[l->event].at_s <= l->now_s) {
            l->last_event_s = l->events[l->event].at_s;
            apply(l, &l->events[l->event++]);
        }
        if (l->event < l->nevents || (l->last_step && l->step >= l->last_step))
            break;
        if (l->step && l->nevents == 0)
            break; /* nothing will ever happen again */
        make_step(l);
    }
    for (int r = 0; r < l->n; r++) {
        if (l->stop_s[r] <= l->now_s && l->seen_stopped_s[r] == 0)
            l->seen_stopped_s[r] = l->now_s;
        if (l->die_s[r] <= l->now_s && !l->dead_told[r] && !l->silent_node[r / l->per_node]) {
            l->dead_told[r] = true;
            report_proc(l, r);
        }
    }
    for (int i = 0; i < l->nodes; i++)
        if ((l->ticks + (uint64_t)i) % 4 == 0 && !l->silent_node[i])
            report(l, i);
}
