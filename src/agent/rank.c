/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c - a rank's process: claims, state, death, report; its records are in rank_records.c; see
 * rank.h */
#include "agent/rank.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "sense/proc/cgroup.h"

void fr_rank_tools_fini(struct fr_rank_tools *t)
{
    free(t->scratch);
    free(t->scratch_lane);
    free(t->scratch_index);
    t->scratch = NULL;
    t->scratch_lane = NULL;
    t->scratch_index = NULL;
    t->nscratch = t->scratch_cap = 0;
}

int fr_rank_claims(struct fr_rank *r, struct fr_err *err)
{
    const struct fr_seg_header *h;
    int rc = fr_segment_refresh(r->segment, err);

    if (rc < 0)
        return rc;
    h = fr_segment_header(r->segment);
    r->claims.pid = h->pid;
    r->claims.uid = h->uid;
    r->claims.starttime = h->starttime;
    r->claims.rank = h->rank;
    r->claims.world = h->world;
    r->claims.attempt = h->attempt;
    r->claims.epoch = h->epoch;
    memcpy(r->claims.job, h->job, sizeof r->claims.job);
    r->claims.job[sizeof r->claims.job - 1] = '\0';
    return 0;
}

void fr_rank_admit(struct fr_rank *r, bool alive, uint64_t now_ns)
{
    struct fr_sense_target target = {"", r->pid};
    struct fr_sense_value v[FR_CGROUP_COLUMNS];

    r->state = FR_RANK_LIVE;
    r->proc = r->proc_told = FULLRANK__PROC_STATE__PROC_UNKNOWN;
    r->proc_since_ns = now_ns;
    r->comms = fr_xcalloc(fr_segment_header(r->segment)->comm_count, sizeof *r->comms);
    fr_fold_init(&r->fold);
    if (!alive)
        return;
    if (FR_SENSOR_PROCESS.open(&target, &r->process, NULL) != 0)
        r->process = NULL;
    if (FR_SENSOR_CGROUP.open(&target, &r->cgroup, NULL) != 0)
        r->cgroup = NULL;
    if (r->cgroup && FR_SENSOR_CGROUP.sample(r->cgroup, v) == 0)
        r->throttled_base_ns = v[FR_CGROUP_THROTTLED].u;
}

static void close_sensors(struct fr_rank *r)
{
    FR_SENSOR_PROCESS.close(r->process);
    FR_SENSOR_CGROUP.close(r->cgroup);
    r->process = r->cgroup = NULL;
}

void fr_rank_fini(struct fr_rank *r)
{
    if (r->pidfd >= 0)
        close(r->pidfd);
    r->pidfd = -1;
    close_sensors(r);
    fr_segment_free(r->segment);
    r->segment = NULL;
    free(r->comms);
    r->comms = NULL;
    fr_fold_fini(&r->fold);
}

int fr_proc_state_of(char letter)
{
    switch (letter) {
    case 'R':
    case 'S':
    case 'I':
        return FULLRANK__PROC_STATE__PROC_RUNNING;
    case 'D':
        return FULLRANK__PROC_STATE__PROC_DISK;
    case 'T':
    case 't':
        return FULLRANK__PROC_STATE__PROC_STOPPED;
    case 'Z':
    case 'X':
        return FULLRANK__PROC_STATE__PROC_ZOMBIE;
    default:
        return FULLRANK__PROC_STATE__PROC_UNKNOWN;
    }
}

/* A stop that stands, and its end, are told at once; a process that is stopped and let go many
 * times a second (half a node's speed) is told by stopped_ratio in the ordinary reports. */
static void tell_stop(struct fr_rank *r, struct fr_rank_tools *t, uint64_t now_ns)
{
    bool stopped = r->proc == FULLRANK__PROC_STATE__PROC_STOPPED;
    bool told = r->proc_told == FULLRANK__PROC_STATE__PROC_STOPPED;
    Fullrank__ProcEvent *e;

    if (stopped == told || now_ns - r->proc_since_ns < FR_RANK_STOP_NS)
        return;
    r->proc_told = r->proc;
    e = fr_outbox_event(t->outbox);
    e->job =
        fr_arena_text(&t->outbox->arena,
                      r->claims.job); /* the rank may be forgotten before the report is packed */
    e->attempt = r->claims.attempt;
    e->epoch = r->claims.epoch;
    e->rank = (uint32_t)r->claims.rank;
    e->pid = r->pid;
    e->state = (Fullrank__ProcState)r->proc;
    e->t_ns = r->proc_since_ns;
    e->exit_signal = e->exit_code = -1;
    e->finalized = fr_segment_header(r->segment)->finalized != 0;
    t->outbox->urgent = true;
}

void fr_rank_sample(struct fr_rank *r, struct fr_rank_tools *t, uint64_t now_ns)
{
    uint64_t exec_ns = 0;
    char letter;
    int proc;

    if (r->state != FR_RANK_LIVE || !r->process)
        return;
    /* A process that is gone is told by its pidfd; until then its state is not known. */
    proc = fr_process_state(r->process, &letter) == 0 ? fr_proc_state_of(letter)
                                                      : FULLRANK__PROC_STATE__PROC_UNKNOWN;
    if (proc == FULLRANK__PROC_STATE__PROC_ZOMBIE && r->pidfd >= 0)
        return;
    if (proc == FULLRANK__PROC_STATE__PROC_STOPPED && fr_process_exec_ns(r->process, &exec_ns) != 0)
        exec_ns = 0;
    if (proc != r->proc ||
        (proc == FULLRANK__PROC_STATE__PROC_STOPPED && exec_ns != r->stop_exec_ns)) {
        r->proc = proc;
        r->proc_since_ns = now_ns;
        r->stop_exec_ns = exec_ns;
    }
    r->samples[r->nsamples % FR_RANK_SAMPLES].t_ns = now_ns;
    r->samples[r->nsamples % FR_RANK_SAMPLES].stopped = proc == FULLRANK__PROC_STATE__PROC_STOPPED;
    r->nsamples++;
    tell_stop(r, t, now_ns);
}

static double stopped_ratio(const struct fr_rank *r, uint64_t now_ns)
{
    uint32_t n = 0, stopped = 0;

    for (uint32_t i = 0; i < FR_RANK_SAMPLES && i < r->nsamples; i++) {
        if (now_ns - r->samples[i].t_ns > 1000000000u)
            continue;
        n++;
        stopped += r->samples[i].stopped;
    }
    return n ? (double)stopped / n : 0;
}

void fr_rank_died(struct fr_rank *r, struct fr_rank_tools *t, uint64_t now_ns)
{
    struct fr_err err = FR_ERR_INIT;
    Fullrank__ProcEvent *e;

    if (r->death_told)
        return;
    r->death_told = true;
    r->exit_known = fr_proc_exit_status(r->pidfd, r->pid, &r->exit_status) == 0;
    t->now_ns = now_ns;
    r->refreshed_ns = 0;
    fr_rank_drain(r, t, &err); /* its last words; what cannot be read is lost */
    r->state = FR_RANK_DEAD;
    r->proc = r->proc_told = FULLRANK__PROC_STATE__PROC_GONE;
    r->proc_since_ns = now_ns;
    close_sensors(r);
    e = fr_outbox_event(t->outbox);
    e->job =
        fr_arena_text(&t->outbox->arena,
                      r->claims.job); /* the rank may be forgotten before the report is packed */
    e->attempt = r->claims.attempt;
    e->epoch = r->claims.epoch;
    e->rank = (uint32_t)r->claims.rank;
    e->pid = r->pid;
    e->state = FULLRANK__PROC_STATE__PROC_GONE;
    e->t_ns = now_ns;
    e->exit_signal = e->exit_code = -1;
    if (r->exit_known) {
        e->exit_signal = WIFSIGNALED(r->exit_status) ? WTERMSIG(r->exit_status) : 0;
        e->exit_code = WIFEXITED(r->exit_status) ? WEXITSTATUS(r->exit_status) : -1;
    }
    e->finalized = fr_segment_header(r->segment)->finalized != 0;
    t->outbox->urgent = true;
    fr_log(FR_LOG_NOTICE, "agent.rank_ended",
           "job=%s epoch=%llu rank=%d pid=%u signal=%d code=%d finalized=%d", r->claims.job,
           (unsigned long long)r->claims.epoch, r->claims.rank, r->pid, e->exit_signal,
           e->exit_code, e->finalized);
}

static void sample_values(struct fr_rank *r, uint64_t now_ns)
{
    struct fr_sense_value v[FR_CGROUP_COLUMNS];

    /* 2 to 3 times a second is enough for totals. */
    if (!r->process || (r->values_ns && now_ns - r->values_ns < 290000000u))
        return;
    if (FR_SENSOR_PROCESS.sample(r->process, r->values) != 0)
        return;
    r->values_ns = now_ns;
    if (r->cgroup && FR_SENSOR_CGROUP.sample(r->cgroup, v) == 0 && v[FR_CGROUP_THROTTLED].known)
        r->throttled_ns = v[FR_CGROUP_THROTTLED].u - r->throttled_base_ns;
}

/* The lane of the thread that makes the marks; without marks the main thread's. */
static int marking_lane(const struct fr_rank *r, struct fr_seg_lane *ret)
{
    const struct fr_seg_header *h = fr_segment_header(r->segment);
    uint64_t tid = h->rank_tid ? h->rank_tid : r->pid;

    for (uint32_t i = 0; i < h->lanes_used; i++)
        if (fr_segment_lane(r->segment, i, ret) == 0 && ret->owner == tid)
            return 0;
    return fr_segment_lane(r->segment, 0, ret);
}

static void report_now(const struct fr_rank *r, const struct fr_seg_lane *lane, Fullrank__Now *now)
{
    const struct fr_seg_comm *c = fr_segment_comm(r->segment, lane->now.comm);

    fullrank__now__init(now);
    now->op = lane->now.op;
    now->since_ns = lane->now.t_enter ? fr_segment_ns(r->segment, lane->now.t_enter) : 0;
    now->members_hash = c ? c->members_hash : 0;
    now->instance = c ? c->instance : 0;
    now->seq = lane->now.seq;
    now->peer = lane->now.peer;
    now->waits_for = lane->now.waits_for;
    now->bytes = lane->now.bytes;
}

static void report_totals(const struct fr_rank *r, Fullrank__Rank *m)
{
    const struct fr_seg_header *h = fr_segment_header(r->segment);
    struct fr_seg_lane lane;

    m->dropped = h->dropped;
    for (uint32_t i = 0; i < h->lanes_used; i++)
        if (fr_segment_lane(r->segment, i, &lane) == 0) {
            m->dropped += lane.dropped;
            m->calls += lane.calls;
        }
}

static void report_plan(struct fr_outbox *ob, const struct fr_seg_header *h, Fullrank__Rank *m)
{
    Fullrank__Plan *p;

    if (!h->plan_total_steps && !(h->plan_tokens_per_step > 0) && !h->plan_checkpoint_every)
        return;
    p = fr_arena_get(&ob->arena, sizeof *p);
    fullrank__plan__init(p);
    p->first_step = h->plan_first_step;
    p->total_steps = h->plan_total_steps;
    p->checkpoint_every = h->plan_checkpoint_every;
    p->last_checkpoint = h->plan_last_checkpoint;
    p->tokens_per_step = h->plan_tokens_per_step;
    p->flops_per_step = h->plan_flops_per_step;
    p->peak_flops_per_rank = h->plan_peak_flops_per_rank;
    m->plan = p;
}

static void report_grid(struct fr_outbox *ob, const struct fr_seg_header *h, Fullrank__Rank *m)
{
    const size_t n = sizeof h->grid_size / sizeof h->grid_size[0];
    size_t told = 0;

    for (size_t i = 0; i < n; i++)
        told += h->grid_size[i] > 0;
    if (!told)
        return;
    m->grid_index = fr_arena_get(&ob->arena, sizeof h->grid_index);
    m->grid_size = fr_arena_get(&ob->arena, sizeof h->grid_size);
    memcpy(m->grid_index, h->grid_index, sizeof h->grid_index);
    memcpy(m->grid_size, h->grid_size, sizeof h->grid_size);
    m->n_grid_index = m->n_grid_size = n;
}

static void report_process(struct fr_rank *r, Fullrank__Rank *m, uint64_t now_ns)
{
    m->state = (Fullrank__ProcState)r->proc;
    m->state_since_ns = r->proc_since_ns;
    m->observed_ns = r->state == FR_RANK_DEAD ? r->proc_since_ns : now_ns;
    m->wchan = r->values[FR_PROCESS_WCHAN].text;
    m->cpu_ns = r->values[FR_PROCESS_CPU].u;
    m->run_delay_ns = r->values[FR_PROCESS_RUN_DELAY].u;
    m->rss_bytes = r->values[FR_PROCESS_RSS].u;
    m->major_faults = r->values[FR_PROCESS_MAJOR_FAULTS].u;
    m->throttled_ns = r->throttled_ns;
    m->stopped_ratio = stopped_ratio(r, now_ns);
}

static void report_rank(struct fr_rank *r, struct fr_outbox *ob, uint64_t now_ns)
{
    const struct fr_seg_header *h = fr_segment_header(r->segment);
    Fullrank__Rank *m = fr_outbox_rank(ob);
    struct fr_seg_lane lane;

    m->job = r->claims.job;
    m->attempt = r->claims.attempt;
    m->epoch = r->claims.epoch;
    m->rank = (uint32_t)r->claims.rank;
    m->world = h->world > 0 ? (uint32_t)h->world : 0;
    m->pid = r->pid;
    m->starttime = r->claims.starttime;
    report_process(r, m, now_ns);
    m->level = h->level;
    m->sources = h->sources;
    m->phase = h->phase;
    m->phase_since_ns = h->t_phase ? fr_segment_ns(r->segment, h->t_phase) : 0;
    m->step = h->step;
    m->checkpoint_step = h->checkpoint_step;
    m->finalized = h->finalized != 0;
    report_grid(ob, h, m);
    report_plan(ob, h, m);
    report_totals(r, m);
    if (marking_lane(r, &lane) == 0) {
        m->now = fr_arena_get(&ob->arena, sizeof *m->now);
        report_now(r, &lane, m->now);
        if (h->sources & FR_SOURCE_NCCL && lane.now.op == FR_OP_NONE)
            fr_rank_gpu_now(r, m->now);
    }
}

static void define_comm(struct fr_rank *r, const struct fr_seg_comm *c, struct fr_outbox *ob)
{
    Fullrank__Comm *m = fr_outbox_comm(ob);

    m->job = r->claims.job;
    m->epoch = r->claims.epoch;
    m->members_hash = c->members_hash;
    m->instance = c->instance;
    m->size = c->size;
    m->n_runs = c->nruns * 3u;
    m->runs = fr_arena_get(&ob->arena, (m->n_runs + 1) * sizeof *m->runs);
    for (uint32_t i = 0; i < c->nruns; i++) {
        m->runs[3 * i] = c->runs[i].first;
        m->runs[3 * i + 1] = c->runs[i].stride;
        m->runs[3 * i + 2] = c->runs[i].count;
    }
    m->name = fr_arena_text(&ob->arena, c->name);
    m->seen_by = (uint32_t)r->claims.rank;
    m->freed = c->freed != 0;
}

/* The slot was given away before its end was told: whoever had it was freed. */
static void tell_freed(struct fr_rank *r, const struct fr_rank_comm *k, struct fr_outbox *ob)
{
    Fullrank__Comm *m = fr_outbox_comm(ob);

    m->job = r->claims.job;
    m->epoch = r->claims.epoch;
    m->members_hash = k->members_hash;
    m->instance = k->instance;
    m->size = k->size;
    m->name = (char *)"";
    m->seen_by = (uint32_t)r->claims.rank;
    m->freed = true;
}

static void report_comms(struct fr_rank *r, struct fr_outbox *ob, bool full)
{
    int n = fr_segment_comms(r->segment, NULL);

    for (int i = 0; i < n; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(r->segment, (uint32_t)i);
        struct fr_rank_comm *k = &r->comms[i];
        Fullrank__Progress *p;
        bool known;

        if (!c)
            continue;
        known = k->members_hash == c->members_hash && k->instance == c->instance;
        if (!known && k->members_hash && !k->freed)
            tell_freed(r, k, ob);
        if (known && k->freed)
            continue; /* told once, also when everything is told: who forgot it may not learn of it
                         again */
        known = known && !full;
        if (!known || k->freed != (c->freed != 0))
            define_comm(r, c, ob);
        if (known && k->freed == (c->freed != 0) && k->enqueued == c->enqueued &&
            k->started == c->started && k->completed == c->completed &&
            k->channels == c->channels_started + c->channels_ended &&
            k->proxies == c->proxy_posted + c->proxy_sent + c->proxy_done)
            continue;
        k->members_hash = c->members_hash;
        k->instance = c->instance;
        k->size = c->size;
        k->freed = c->freed != 0;
        k->enqueued = c->enqueued;
        k->started = c->started;
        k->completed = c->completed;
        k->seq_near = c->enqueued;
        k->channels = c->channels_started + c->channels_ended;
        k->proxies = c->proxy_posted + c->proxy_sent + c->proxy_done;
        /* Groups of sends and receives have a number alike on all ranks only if all take part. */
        if (c->enqueued == 0 || (c->flags & FR_COMM_P2P && c->op != FR_OP_ALLTOALL))
            continue;
        p = fr_outbox_progress(ob);
        p->job = r->claims.job;
        p->epoch = r->claims.epoch;
        p->rank = (uint32_t)r->claims.rank;
        p->members_hash = c->members_hash;
        p->instance = c->instance;
        p->enqueued = c->enqueued;
        p->started = c->started;
        p->completed = c->completed;
        p->op = c->op;
        p->dtype = c->dtype;
        p->bytes = c->op_bytes;
        p->enqueued_ns = c->t_enqueued ? fr_segment_ns(r->segment, c->t_enqueued) : 0;
        p->flags = c->flags;
        p->channels_started = c->channels_started;
        p->channels_ended = c->channels_ended;
        p->proxy_posted = c->proxy_posted;
        p->proxy_sent = c->proxy_sent;
        p->proxy_done = c->proxy_done;
        p->completed_ns = c->t_completed ? fr_segment_ns(r->segment, c->t_completed) : 0;
    }
}

void fr_rank_report(struct fr_rank *r, struct fr_rank_tools *t, uint64_t now_ns)
{
    if (r->state != FR_RANK_LIVE && r->state != FR_RANK_DEAD)
        return;
    if (r->state == FR_RANK_DEAD && !t->full && !t->outbox->urgent)
        return; /* nothing changes any more */
    if (r->state == FR_RANK_LIVE && !r->segment_broken)
        fr_segment_refresh(r->segment, NULL); /* what cannot be read stays as it was */
    sample_values(r, now_ns);
    report_rank(r, t->outbox, now_ns);
    report_comms(r, t->outbox, t->full);
}

void fr_rank_table(struct fr_rank *r, struct fr_jsonw *w, uint64_t now_ns)
{
    const struct fr_seg_header *h = fr_segment_header(r->segment);
    int n = fr_segment_comms(r->segment, NULL);
    struct fr_seg_lane lane;

    fr_jsonw_obj(w, NULL);
    fr_jsonw_int(w, "rank", r->claims.rank);
    fr_jsonw_uint(w, "pid", r->pid);
    fr_jsonw_uint(w, "step", h->step);
    fr_jsonw_uint(w, "phase", h->phase);
    fr_jsonw_arr(w, "threads");
    for (uint32_t i = 0; i < h->lanes_used; i++) {
        if (fr_segment_lane(r->segment, i, &lane) != 0)
            continue;
        fr_jsonw_obj(w, NULL);
        fr_jsonw_uint(w, "thread", lane.owner);
        fr_jsonw_str(w, "op", lane.now.op ? fr_op_name(lane.now.op) : "none");
        if (lane.now.t_enter) {
            uint64_t since = fr_segment_ns(r->segment, lane.now.t_enter);

            fr_jsonw_num(w, "for_s", now_ns > since ? (double)(now_ns - since) * 1e-9 : 0);
        }
        fr_jsonw_uint(w, "seq", lane.now.seq);
        fr_jsonw_int(w, "peer", lane.now.peer);
        fr_jsonw_uint(w, "slot", lane.now.comm);
        fr_jsonw_uint(w, "bytes", lane.now.bytes);
        fr_jsonw_str(w, "waits_for", lane.now.waits_for ? fr_op_name(lane.now.waits_for) : NULL);
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
    fr_jsonw_arr(w, "communicators");
    for (int i = 0; i < n; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(r->segment, (uint32_t)i);

        if (!c)
            continue;
        fr_jsonw_obj(w, NULL);
        fr_jsonw_int(w, "slot", i);
        fr_jsonw_str(w, "name", c->name);
        fr_jsonw_uint(w, "size", c->size);
        fr_jsonw_uint(w, "instance", c->instance);
        fr_jsonw_uint(w, "enqueued", c->enqueued);
        fr_jsonw_uint(w, "started", c->started);
        fr_jsonw_uint(w, "completed", c->completed);
        fr_jsonw_str(w, "op", c->op ? fr_op_name(c->op) : NULL);
        fr_jsonw_uint(w, "bytes", c->op_bytes);
        if (c->flags & FR_COMM_GPU) {
            fr_jsonw_bool(w, "end_visible", !(c->flags & FR_COMM_BLIND));
            fr_jsonw_uint(w, "channels_started", c->channels_started);
            fr_jsonw_uint(w, "channels_ended", c->channels_ended);
            fr_jsonw_uint(w, "proxy_posted", c->proxy_posted);
            fr_jsonw_uint(w, "proxy_sent", c->proxy_sent);
            fr_jsonw_uint(w, "proxy_done", c->proxy_done);
        }
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
    fr_jsonw_end_obj(w);
}
