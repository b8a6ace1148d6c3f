/* SPDX-License-Identifier: Apache-2.0 */
/* ingest.c - see ingest.h; the reply is made in reply.c */
#include "control/ingest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "control/act.h"
#include "control/fleet.h"
#include "control/nccl_series.h"
#include "control/ras.h"
#include "control/reply.h"
#include "control/steps.h"
#include "fullrank/fullrank.h"
#include "wire/agent.pb-c.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/ring.h"

#define OFFSET_WINDOW_NS 30000000000ull
#define MEETING_NS       5000000000ull
#define WALL_TRUST_NS    60000000000ll
#define COMM_RUNS_MAX    64

_Static_assert((int)FR_PROC_STOPPED == (int)FULLRANK__PROC_STATE__PROC_STOPPED &&
                   (int)FR_PROC_GONE == (int)FULLRANK__PROC_STATE__PROC_GONE,
               "the judge's process states are the wire's");

/* --- clocks --- */

static int64_t smallest_offset(const struct fr_cnode *n)
{
    if (!n->offset_known[0])
        return n->offset_ns[1];
    return n->offset_known[1] && n->offset_ns[1] < n->offset_ns[0] ? n->offset_ns[1]
                                                                   : n->offset_ns[0];
}

/* Find what is added to a time of this report. */
static void update_offset(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r)
{
    int64_t off = (int64_t)c->now_ns - (int64_t)r->mono_ns;
    int64_t by_wall = r->unix_ns - c->unix_offset_ns - (int64_t)r->mono_ns;

    if (r->spooled) { /* written long before it came: its arrival says nothing */
        bool known =
            (n->offset_known[0] || n->offset_known[1]) && strcmp(n->boot_id, r->boot_id) == 0;

        n->offset_now_ns =
            known ? smallest_offset(n) : r->unix_ns - c->unix_offset_ns - (int64_t)r->mono_ns;
        return;
    }
    if (c->now_ns - n->window_ns > OFFSET_WINDOW_NS) {
        n->offset_ns[1] = n->offset_ns[0];
        n->offset_known[1] = n->offset_known[0];
        n->offset_known[0] = false;
        n->window_ns = c->now_ns;
    }
    if (!n->offset_known[0] || off < n->offset_ns[0]) {
        n->offset_ns[0] = off;
        n->offset_known[0] = true;
    }
    n->offset_now_ns = smallest_offset(n);
    /* Just met, it may send what it held back while nobody answered: until a fresh report has come,
     * arrivals say too little, and the wall clocks, when they nearly agree, say more. */
    if (c->now_ns - n->met_ns < MEETING_NS && by_wall < n->offset_now_ns &&
        n->offset_now_ns - by_wall < WALL_TRUST_NS)
        n->offset_now_ns = by_wall;
}

static uint64_t map_ns(const struct fr_ctl *c, const struct fr_cnode *n, uint64_t t)
{
    int64_t at;

    if (t == 0 || t > INT64_MAX / 2 || n->offset_now_ns > INT64_MAX / 2 ||
        n->offset_now_ns < -INT64_MAX / 2)
        return 0;
    at = (int64_t)t + n->offset_now_ns;
    if (at <= 0)
        return 1;
    return (uint64_t)at > c->now_ns ? c->now_ns : (uint64_t)at;
}

/* --- who is who --- */

static struct fr_cjob *find_job(struct fr_ctl *c, const struct fr_cnode *n, const char *job,
                                uint64_t epoch)
{
    struct fr_cjob *j = n->job && strcmp(n->job->job, job) == 0 ? n->job : fr_ctl_job(c, job);

    if (!j)
        return NULL;
    if (epoch != j->epoch || !j->judging || !j->ranks) {
        j->stale++;
        c->counts.stale++;
        return NULL;
    }
    return j;
}

/* The job when the rank is one that this node holds in the current attempt, else NULL. */
static struct fr_cjob *find_rank(struct fr_ctl *c, const struct fr_cnode *n, const char *job,
                                 uint64_t epoch, uint32_t rank)
{
    struct fr_cjob *j = find_job(c, n, job, epoch);
    const struct fr_cattempt *a = j ? fr_job_current(j) : NULL;

    if (!j)
        return NULL;
    if (rank >= j->nranks || a->nodes[rank / j->ranks_per_node] != n) {
        j->foreign++;
        return NULL;
    }
    return j;
}

/* --- communicators --- */

static struct fr_ccomm *comm_slot(const struct fr_cjob *j, uint64_t hash, uint32_t instance)
{
    uint32_t i =
        (uint32_t)((hash ^ instance * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull >> 33);

    for (i &= j->comms_cap - 1; j->comms[i].hash; i = (i + 1) & (j->comms_cap - 1))
        if (j->comms[i].hash == hash && j->comms[i].instance == instance)
            break;
    return &j->comms[i];
}

const struct fr_ccomm *fr_job_comm(const struct fr_cjob *j, uint64_t hash, uint32_t instance)
{
    const struct fr_ccomm *s = j->comms_cap && hash ? comm_slot(j, hash, instance) : NULL;

    return s && s->hash ? s : NULL;
}

static struct fr_ccomm *add_comm(struct fr_cjob *j, uint64_t hash, uint32_t instance)
{
    struct fr_ccomm *s;

    if (2 * j->ncomms >= j->comms_cap) {
        struct fr_ccomm *old = j->comms;
        uint32_t n = j->comms_cap;

        if (j->ncomms >= FR_JOB_COMMS_MAX)
            return NULL;
        j->comms_cap = n ? 2 * n : 64;
        j->comms = fr_xcalloc(j->comms_cap, sizeof *j->comms);
        for (uint32_t i = 0; i < n; i++)
            if (old[i].hash)
                *comm_slot(j, old[i].hash, old[i].instance) = old[i];
        free(old);
    }
    s = comm_slot(j, hash, instance);
    if (!s->hash) {
        s->hash = hash;
        s->instance = instance;
        j->ncomms++;
    }
    return s;
}

static void remove_comm(struct fr_cjob *j, uint64_t hash, uint32_t instance)
{
    struct fr_ccomm *s = j->comms_cap ? comm_slot(j, hash, instance) : NULL;
    uint32_t mask = j->comms_cap - 1, i = s ? (uint32_t)(s - j->comms) : 0;

    if (!s || !s->hash)
        return;
    memset(s, 0, sizeof *s);
    j->ncomms--;
    /* what stands behind it in a row may have been put there for want of its place */
    for (i = (i + 1) & mask; j->comms[i].hash; i = (i + 1) & mask) {
        struct fr_ccomm moved = j->comms[i];

        memset(&j->comms[i], 0, sizeof moved);
        *comm_slot(j, moved.hash, moved.instance) = moved;
    }
}

/* A rank has freed its part. When all have, or the judge did not hold it, it is forgotten here. */
static void take_freed(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r)
{
    for (size_t i = 0; i < r->n_comms; i++) {
        const Fullrank__Comm *m = r->comms[i];
        struct fr_cjob *j = m->freed ? find_rank(c, n, m->job, m->epoch, m->seen_by) : NULL;
        struct fr_comm_key key = {m->members_hash, m->instance};

        if (j && key.members_hash && fr_judge_comm_freed(j->judge, key, m->seen_by) != 0)
            remove_comm(j, key.members_hash, key.instance);
    }
}

/* How many nodes the members are on; they were checked. */
static uint32_t nodes_of(const struct fr_cjob *j, const Fullrank__Comm *m)
{
    FR_CLEANUP(fr_freep) bool *on = fr_xcalloc(j->nodes, sizeof *on);
    uint32_t n = 0, members = 0;

    for (size_t i = 0; i < m->n_runs; i += 3)
        for (uint32_t k = 0; k < m->runs[i + 2] && members < m->size; k++, members++) {
            uint32_t node = (m->runs[i] + k * m->runs[i + 1]) / j->ranks_per_node;

            if (node < j->nodes && !on[node]) {
                on[node] = true;
                n++;
            }
        }
    return n;
}

static void take_comm(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Comm *m)
{
    struct fr_cjob *j = find_rank(c, n, m->job, m->epoch, m->seen_by);
    struct fr_comm_key key = {m->members_hash, m->instance};
    struct fr_ccomm *s;

    if (!j)
        return;
    if (m->members_hash == 0 || m->size == 0 || m->size > j->nranks || m->n_runs % 3 != 0 ||
        m->n_runs > 3 * COMM_RUNS_MAX) {
        j->foreign++;
        return;
    }
    for (size_t i = 0; i < m->n_runs; i += 3) {
        uint64_t last =
            m->runs[i] + (uint64_t)m->runs[i + 1] * (m->runs[i + 2] ? m->runs[i + 2] - 1 : 0);

        if (m->runs[i + 2] == 0 || m->runs[i + 2] > m->size || last >= j->nranks) {
            j->foreign++;
            return;
        }
    }
    s = add_comm(j, m->members_hash, m->instance);
    if (!s)
        return;
    s->size = m->size;
    if (!s->nodes && m->n_runs)
        s->nodes = nodes_of(j, m);
    if (m->name[0])
        snprintf(s->name, sizeof s->name, "%.15s", m->name);
    fr_judge_comm(j->judge, key, m->size, m->runs, (uint32_t)(m->n_runs / 3), s->name);
}

/* --- ranks --- */

static void tell_proc(struct fr_cjob *j, uint32_t rank)
{
    const struct fr_crank *k = &j->ranks[rank];
    struct fr_obs_proc o = {.state = (enum fr_proc_state)k->state,
                            .state_since_ns = k->state_since_ns,
                            .observed_ns = k->observed_ns,
                            .cpu_ns = k->cpu_ns,
                            .run_delay_ns = k->run_delay_ns,
                            .throttled_ns = k->throttled_ns,
                            .major_faults = k->major_faults,
                            .stopped_ratio = k->stopped_ratio,
                            .exit_signal = k->exit_signal,
                            .exit_code = k->exit_code,
                            .finalized = k->finalized};

    fr_judge_proc(j->judge, rank, &o);
}

static double known(double v)
{
    return v > 0 ? v : (double)NAN; /* 0 is the wire's "not known" */
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void take_plan(struct fr_cjob *j, const Fullrank__Plan *p)
{
    double flops = known(p->flops_per_step), tokens = known(p->tokens_per_step);
    double peak = known(p->peak_flops_per_rank);

    if (p->last_checkpoint > j->attempt_checkpoint)
        j->checkpoint_step = j->attempt_checkpoint = p->last_checkpoint;
    if (j->total_steps == p->total_steps && j->checkpoint_every == p->checkpoint_every &&
        same(j->flops_per_step, flops) && same(j->tokens_per_step, tokens) &&
        same(j->peak_flops_per_rank, peak))
        return;
    j->total_steps = p->total_steps;
    j->checkpoint_every = p->checkpoint_every;
    j->flops_per_step = flops;
    j->tokens_per_step = tokens;
    j->peak_flops_per_rank = peak;
    j->dirty = true;
}

static void take_grid(struct fr_cjob *j, uint32_t rank, const Fullrank__Rank *m)
{
    struct fr_crank *k = &j->ranks[rank];
    int32_t index[5] = {0}, size[5] = {0};

    if (m->n_grid_index != m->n_grid_size || m->n_grid_size == 0)
        return;
    for (size_t d = 0; d < m->n_grid_size && d < 5; d++) {
        if (m->grid_size[d] < 0 || m->grid_index[d] < 0 ||
            (m->grid_size[d] > 0 && m->grid_index[d] >= m->grid_size[d]))
            return;
        index[d] = m->grid_index[d];
        size[d] = m->grid_size[d];
    }
    if (memcmp(index, k->grid_index, sizeof index) == 0 &&
        memcmp(size, k->grid_size, sizeof size) == 0)
        return;
    memcpy(k->grid_index, index, sizeof index);
    memcpy(k->grid_size, size, sizeof size);
    fr_judge_grid(j->judge, rank, index, size);
}

static void take_now(struct fr_ctl *c, struct fr_cnode *n, struct fr_cjob *j, uint32_t rank,
                     const Fullrank__Now *m, uint64_t observed_ns)
{
    struct fr_crank *k = &j->ranks[rank];
    struct fr_obs_now o = {.op = m->op,
                           .waits_for = m->waits_for,
                           .since_ns = map_ns(c, n, m->since_ns),
                           .comm = {m->members_hash, m->instance},
                           .seq = m->seq,
                           .bytes = m->bytes,
                           .peer = m->peer,
                           .blind = m->blind,
                           .observed_ns = observed_ns};

    k->now_op = m->op;
    k->now_since_ns = o.since_ns;
    k->now_hash = m->members_hash;
    k->now_instance = m->instance;
    k->now_seq = m->seq;
    k->now_peer = m->peer;
    fr_judge_now(j->judge, rank, &o);
}

static void take_rank(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Rank *m)
{
    struct fr_cjob *j = find_rank(c, n, m->job, m->epoch, m->rank);
    struct fr_crank *k;

    if (!j)
        return;
    k = &j->ranks[m->rank];
    if (k->state == FR_PROC_GONE && m->state != FULLRANK__PROC_STATE__PROC_GONE && k->pid == m->pid)
        return; /* read before it ended, told after */
    k->pid = m->pid;
    k->state = m->state <= FULLRANK__PROC_STATE__PROC_GONE ? (uint32_t)m->state : FR_PROC_UNKNOWN;
    k->state_since_ns = map_ns(c, n, m->state_since_ns);
    k->observed_ns = map_ns(c, n, m->observed_ns);
    k->cpu_ns = m->cpu_ns;
    k->run_delay_ns = m->run_delay_ns;
    k->throttled_ns = m->throttled_ns;
    k->major_faults = m->major_faults;
    k->stopped_ratio = m->stopped_ratio;
    k->rss_bytes = m->rss_bytes;
    k->finalized = m->finalized;
    k->dropped = m->dropped;
    j->sources |= m->sources;
    if (k->state == FR_PROC_GONE && !k->gone_ns)
        k->gone_ns = k->state_since_ns ? k->state_since_ns : c->now_ns;
    fr_ratio_update(&k->cpu, k->observed_ns, k->cpu_ns, 1e9);
    fr_ratio_update(&k->run_delay, k->observed_ns, k->run_delay_ns, 1e9);
    k->phase = m->phase;
    k->phase_since_ns = map_ns(c, n, m->phase_since_ns);
    k->step = m->step;
    k->checkpoint_step = m->checkpoint_step;
    if (m->checkpoint_step > j->attempt_checkpoint)
        j->checkpoint_step = j->attempt_checkpoint = m->checkpoint_step;
    tell_proc(j, m->rank);
    fr_judge_phase(j->judge, m->rank, m->phase, k->phase_since_ns, m->step);
    take_grid(j, m->rank, m);
    if (m->now)
        take_now(c, n, j, m->rank, m->now, k->observed_ns);
    if (m->plan)
        take_plan(j, m->plan);
    k->known = true;
}

static void take_event(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__ProcEvent *m)
{
    struct fr_cjob *j = find_rank(c, n, m->job, m->epoch, m->rank);
    struct fr_crank *k;

    if (!j || m->state > FULLRANK__PROC_STATE__PROC_GONE)
        return;
    k = &j->ranks[m->rank];
    if (k->state == FR_PROC_GONE && m->state != FULLRANK__PROC_STATE__PROC_GONE)
        return;
    k->known = true;
    k->pid = m->pid;
    k->state = (uint32_t)m->state;
    k->state_since_ns = k->observed_ns = map_ns(c, n, m->t_ns);
    if (m->state == FULLRANK__PROC_STATE__PROC_GONE) {
        k->exit_signal = m->exit_signal;
        k->exit_code = m->exit_code;
        k->finalized = m->finalized;
        if (!k->gone_ns)
            k->gone_ns = k->state_since_ns;
    }
    tell_proc(j, m->rank);
}

static void take_progress(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Progress *m)
{
    struct fr_cjob *j = find_rank(c, n, m->job, m->epoch, m->rank);
    struct fr_comm_key key = {m->members_hash, m->instance};
    struct fr_obs_progress o = {.enqueued = m->enqueued,
                                .started = m->started,
                                .completed = m->completed,
                                .enqueued_ns = map_ns(c, n, m->enqueued_ns),
                                .completed_ns = map_ns(c, n, m->completed_ns),
                                .bytes = m->bytes,
                                .op = m->op,
                                .dtype = m->dtype};

    if (!j)
        return;
    fr_judge_progress(j->judge, m->rank, key, &o);
    if (m->completed)
        fr_steps_moved(c, j, m->rank, o.completed_ns ? o.completed_ns : c->now_ns);
}

static void take_ras(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__RasWord *m)
{
    struct fr_cjob *j = n->job ? find_job(c, n, m->job, m->epoch) : NULL;
    int32_t rank;

    if (!j)
        return;
    /* about the job that runs on the node, not about anybody else's */
    rank = j == n->job ? fr_ras_rank(j, n, m) : -1;
    if (rank < 0 || m->what > FR_RAS_SAYS_DEAD) {
        j->foreign++;
        return;
    }
    fr_judge_ras(j->judge, (uint32_t)rank,
                 &(struct fr_obs_ras){.says = (enum fr_ras_says)m->what,
                                      .since_ns = map_ns(c, n, m->since_ns),
                                      .observed_ns = map_ns(c, n, m->observed_ns),
                                      .behind = m->behind,
                                      .polls = m->polls});
}

static void count_operations(struct fr_cnode *n, const struct fr_cjob *j, const Fullrank__Step *m)
{
    if (n->job_epoch != j->epoch) {
        n->job_epoch = j->epoch;
        n->job_colls = n->job_p2ps = 0;
        n->job_lost0 = n->lost_records;
    }
    for (size_t i = 0; i < m->n_groups; i++) {
        if (fr_op_is_collective(m->groups[i]->op))
            n->job_colls += m->groups[i]->count;
        else if (m->groups[i]->op == FR_OP_SEND || m->groups[i]->op == FR_OP_RECV)
            n->job_p2ps += m->groups[i]->count;
    }
}

/* Returns the newest step of the report, for its acknowledgement. late: told behind newer ones, for
 * the record only. */
static uint64_t take_steps(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r,
                           bool late, struct fr_cjob **ret_job)
{
    uint64_t newest = 0;

    for (size_t i = 0; i < r->n_steps; i++) {
        const Fullrank__Step *m = r->steps[i];
        struct fr_cjob *j = find_rank(c, n, m->job, m->epoch, m->rank);
        struct fr_obs_step o = {.step = m->step,
                                .begin_ns = map_ns(c, n, m->begin_ns),
                                .end_ns = map_ns(c, n, m->end_ns),
                                .self_ns = m->self_ns,
                                .ready_ns = m->ready_ns,
                                .in_calls_ns = m->in_calls_ns};
        struct fr_rank_step s = {.rank = m->rank,
                                 .step = m->step,
                                 .begin_ns = o.begin_ns,
                                 .end_ns = o.end_ns,
                                 .self_s = (double)m->self_ns * 1e-9,
                                 .loss = m->loss,
                                 .tokens = m->tokens};

        if (!j)
            continue;
        if (!late)
            fr_judge_step(j->judge, m->rank, &o);
        fr_steps_add(c, j, &s);
        if (!late)
            count_operations(n, j, m);
        if (m->step > newest) {
            newest = m->step;
            *ret_job = j;
        }
    }
    return newest;
}

static void take_span(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Span *m)
{
    struct fr_cjob *j = find_rank(c, n, m->job, m->epoch, m->rank);

    if (j && (m->phase == FULLRANK_PHASE_RESTORE || m->phase == FULLRANK_PHASE_EVAL ||
              m->phase == FULLRANK_PHASE_CHECKPOINT))
        fr_spans_add(c, j, m->phase, fr_ctl_unix(c, map_ns(c, n, m->begin_ns)),
                     fr_ctl_unix(c, map_ns(c, n, m->end_ns)));
}

/* Records bear no epoch: what began before this attempt was judged belongs to another one. */
static void take_records(struct fr_ctl *c, struct fr_cnode *n, const ProtobufCBinaryData *d)
{
    struct fr_cjob *j = n->job;
    const struct fr_cattempt *a = j ? fr_job_current(j) : NULL;
    size_t count = d->len / sizeof(struct fr_wire_record);

    if (!j || !j->judging || !j->ranks || count * sizeof(struct fr_wire_record) != d->len)
        return;
    c->counts.records += count;
    j->record_bytes += d->len;
    for (size_t i = 0; i < count; i++) {
        struct fr_wire_record w;
        struct fr_obs_record o;

        memcpy(&w, d->data + i * sizeof w, sizeof w);
        o = (struct fr_obs_record){.comm = {w.members_hash, w.instance},
                                   .seq = w.seq,
                                   .enq_ns = map_ns(c, n, w.enq_ns),
                                   .start_ns = map_ns(c, n, w.start_ns),
                                   .end_ns = map_ns(c, n, w.end_ns),
                                   .bytes = w.bytes,
                                   .step = w.step,
                                   .op = w.op,
                                   .dtype = w.dtype,
                                   .peer = w.peer};
        if (w.rank >= j->nranks || a->nodes[w.rank / j->ranks_per_node] != n ||
            o.start_ns < j->begin_ns || o.end_ns < o.start_ns) {
            j->foreign++;
            continue;
        }
        fr_judge_record(j->judge, w.rank, &o);
        if (j->sources & FR_SOURCE_NCCL)
            fr_nccl_record(c, j, fr_job_comm(j, w.members_hash, w.instance), w.rank, &o);
    }
}

/* --- the node --- */

static void take_info(struct fr_cnode *n, const Fullrank__NodeInfo *m)
{
    snprintf(n->host, sizeof n->host, "%.63s", m->host[0] ? m->host : n->name);
    snprintf(n->rack, sizeof n->rack, "%.63s", m->rack);
    snprintf(n->engine, sizeof n->engine, "%.15s", m->engine);
    snprintf(n->machine, sizeof n->machine, "%.63s", m->machine_id);
    snprintf(n->probe_dir, sizeof n->probe_dir, "%.255s", m->probe_dir);
    n->ranks_max = m->ranks_max;
    fr_ras_addresses(n, m);
    n->has_info = true;
}

/* Rates are taken over the agent's own times: reports may be held back and come in a heap. */
static void take_self(struct fr_cnode *n, const Fullrank__AgentSelf *m, uint64_t mono_ns)
{
    n->cpu_ns = m->cpu_ns;
    n->rss_bytes = m->rss_bytes;
    n->records = m->records;
    n->lost_records = m->lost_records;
    n->spool_bytes = m->spool_bytes;
    fr_ratio_update(&n->cpu, mono_ns, m->cpu_ns, 1e9);
}

static void take_pressure(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__NodePressure *m,
                          uint64_t mono_ns)
{
    uint64_t read_ns = m->observed_ns ? m->observed_ns : mono_ns;
    struct fr_obs_pressure o = {.readable = m->readable,
                                .cpu_some_us = m->cpu_some_us,
                                .memory_some_us = m->memory_some_us,
                                .memory_full_us = m->memory_full_us,
                                .io_some_us = m->io_some_us,
                                .machine = n->machine};

    n->pressure_known = m->readable;
    n->load1 = m->load1;
    if (m->readable) {
        fr_ratio_update(&n->cpu_some, read_ns, m->cpu_some_us, 1e6);
        fr_ratio_update(&n->memory_some, read_ns, m->memory_some_us, 1e6);
    }
    if (n->job && n->job->judging)
        fr_judge_pressure(n->job->judge, n->job_index, &o, map_ns(c, n, read_ns));
}

static void take_test(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__TestResult *m)
{
    if (n->state != FR_NODE_VERIFYING || m->request != n->test_id)
        return;
    if (!m->passed && n->test_passed) {
        n->test_passed = false;
        snprintf(n->test_detail, sizeof n->test_detail, "%.40s: %.80s", m->name, m->detail);
    }
    if (m->last)
        fr_node_tested(c, n, n->test_passed, n->test_detail);
}

/* What one report said that its acknowledgement waits for. */
struct told {
    struct fr_cjob *job;
    uint64_t step;
};

static void take_answers(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r)
{
    for (size_t i = 0; i < r->n_evidence; i++)
        fr_act_evidence(c, n, r->evidence[i]);
    for (size_t i = 0; i < r->n_tests; i++)
        take_test(c, n, r->tests[i]);
}

/* A report of the past, out of a spool or sent again behind newer ones: what it says of how things
 * stand is outdated; what has happened has happened. */
static struct told take_history(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r)
{
    struct told t = {0};

    for (size_t i = 0; i < r->n_comms; i++)
        take_comm(c, n, r->comms[i]);
    for (size_t i = 0; i < r->n_events; i++)
        if (r->events[i]->state == FULLRANK__PROC_STATE__PROC_GONE)
            take_event(c, n, r->events[i]);
    for (size_t i = 0; i < r->n_spans; i++)
        take_span(c, n, r->spans[i]);
    t.step = take_steps(c, n, r, true, &t.job);
    take_freed(c, n, r);
    take_answers(c, n, r);
    return t;
}

static struct told take_all(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r)
{
    struct told t = {0};

    if (r->info)
        take_info(n, r->info);
    if (n->job && n->job->judging)
        fr_judge_heard(n->job->judge, n->job_index, c->now_ns);
    for (size_t i = 0; i < r->n_comms; i++)
        take_comm(c, n, r->comms[i]);
    for (size_t i = 0; i < r->n_ranks; i++)
        take_rank(c, n, r->ranks[i]);
    for (size_t i = 0; i < r->n_events; i++)
        take_event(c, n, r->events[i]);
    for (size_t i = 0; i < r->n_progress; i++)
        take_progress(c, n, r->progress[i]);
    for (size_t i = 0; i < r->n_spans; i++)
        take_span(c, n, r->spans[i]);
    for (size_t i = 0; i < r->n_ras; i++)
        take_ras(c, n, r->ras[i]);
    take_records(c, n, &r->records);
    t.step = take_steps(c, n, r, false, &t.job);
    take_freed(c, n, r);
    take_answers(c, n, r);
    if (r->self)
        take_self(n, r->self, r->mono_ns);
    if (r->pressure)
        take_pressure(c, n, r->pressure, r->mono_ns);
    return t;
}

/*
 * An agent that meets a new controller sends its newest report first, learns that the controller is
 * another one, and then sends again, in order, what the old one had not acknowledged: first..N-1, N
 * itself, N+1. So N may be acknowledged only when it comes again or something newer comes: then
 * everything before it is here.
 */
static void settle(struct fr_ctl *c, struct fr_cnode *n)
{
    if (n->settled)
        return;
    n->settled = true;
    fr_reply_note(c, n, n->first_seq, n->job, n->first_step);
}

static void take_in_order(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r)
{
    struct told t;

    if (r->spooled) { /* the agent deletes it by itself; its numbers are not those of the live ones
                       */
        c->counts.reports++;
        take_history(c, n, r);
        return;
    }
    if (r->seq > n->last_seq) {
        bool first = n->last_seq == 0;

        if (!first)
            settle(c, n);
        if (r->full)
            n->want_full = false;
        n->last_seq = r->seq;
        c->counts.reports++;
        t = take_all(c, n, r);
        if (first) {
            n->first_seq = r->seq;
            n->first_step = t.step;
        } else {
            fr_reply_note(c, n, r->seq, t.job, t.step);
        }
    } else if (!n->settled && r->seq < n->first_seq && r->seq > n->resent_seq) {
        n->resent_seq = r->seq;
        c->counts.reports++;
        t = take_history(c, n, r);
        fr_reply_note(c, n, r->seq, t.job, t.step);
    } else {
        c->counts.repeated++; /* its answer was lost: acknowledged again, taken once */
        if (r->seq == n->first_seq)
            settle(c, n);
    }
}

static void meet(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Report *r)
{
    n->instance = r->agent_instance;
    n->met_ns = c->now_ns;
    n->last_seq = n->acked_seq = n->first_seq = n->resent_seq = n->first_step = 0;
    n->settled = false;
    n->nacks = 0;
    n->want_full = true;
    n->cpu.at_ns = n->cpu_some.at_ns = n->memory_some.at_ns = 0;
    n->offset_known[0] = n->offset_known[1] = false;
}

static int check(const Fullrank__Report *r, struct fr_err *err)
{
    if (!fr_ctl_name_ok(r->node))
        return fr_fail(err, -EINVAL,
                       "a node's name must be 1 to 63 characters of A-Z a-z 0-9 . _ -");
    if (r->agent_instance == 0 || r->seq == 0)
        return fr_fail(err, -EINVAL, "node %s: instance and sequence of a report count from 1",
                       r->node);
    if (r->mono_ns > INT64_MAX / 2 || r->unix_ns < 0 || r->unix_ns > INT64_MAX / 2)
        return fr_fail(err, -EINVAL, "node %s: the report's own times cannot be", r->node);
    if (r->records.len % sizeof(struct fr_wire_record) != 0)
        return fr_fail(err, -EINVAL, "node %s: %zu bytes of records are not a multiple of %zu",
                       r->node, r->records.len, sizeof(struct fr_wire_record));
    return 0;
}

int fr_ingest_report(struct fr_ctl *c, const void *body, size_t n, struct fr_buf *reply)
{
    struct fr_message_memory mem;
    struct fr_err err = FR_ERR_INIT;
    struct fr_cnode *node = NULL;
    Fullrank__Report *r;
    int rc;

    c->counts.report_bytes += n;
    fr_message_memory_init(&mem, FR_MESSAGE_MEMORY_MAX);
    r = fullrank__report__unpack(&mem.alloc, n, body);
    if (!r) {
        c->counts.refused++;
        return fr_reply_refuse(c, "the body is not a Report, or unpacks to too much", reply);
    }
    rc = check(r, &err);
    if (!rc)
        node = fr_fleet_node(c, r->node, &err);
    if (!node) {
        c->counts.refused++;
        fullrank__report__free_unpacked(r, &mem.alloc);
        return fr_reply_refuse(c, err.text, reply);
    }
    if (!r->spooled) {
        if (node->instance != r->agent_instance)
            meet(c, node, r);
        snprintf(node->version, sizeof node->version, "%.31s", r->version);
        snprintf(node->boot_id, sizeof node->boot_id, "%.47s", r->boot_id);
    }
    update_offset(c, node, r);
    fr_node_heard(c, node);
    take_in_order(c, node, r);
    fr_reply_make(c, node, reply);
    fullrank__report__free_unpacked(r, &mem.alloc);
    return 200;
}
