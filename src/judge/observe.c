/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observe.c - takes observations in: checks them, keeps the newest, notes what moved
 *
 * Movement is a counter that rose, another call, a step or a phase that began; a time that changed
 * alone is none, or a rank that polls would never hang.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "judge/state.h"

#define MEMBER_SLOTS_A_RANK 64 /* communicators a rank is in, on average, at most */
#define COMMS_MAX           (1u << 20)
#define STEP_JUMP_MAX       1000000        /* a step further ahead of the job is nonsense */
#define SHARE_SPAN_NS       (2 * NS_PER_S) /* shares of a process's time are taken over 2-4 s */

static struct rank *known_rank(struct fr_judge *j, uint32_t rank)
{
    if (rank < j->nranks)
        return &j->ranks[rank];
    j->ignored++;
    return NULL;
}

void fr_judge_note_move(struct fr_judge *j, struct rank *r, uint64_t t_ns)
{
    if (t_ns > r->moved_ns)
        r->moved_ns = t_ns;
    if (t_ns <= j->last_move_ns)
        return;
    if (!j->was_silent &&
        t_ns <= j->now_ns + NS_PER_S) { /* a time from the future teaches nothing */
        double gap_s = (double)(t_ns - j->last_move_ns) * 1e-9;

        if (gap_s > j->cfg.hang_silence_s && gap_s > j->longest_stall_s)
            j->longest_stall_s = gap_s;
    }
    j->was_silent = false;
    j->last_move_ns = t_ns;
}

int fr_judge_rank_is_silent(const struct fr_judge *j, uint32_t rank, uint64_t now_ns)
{
    uint64_t heard = j->nodes[j->ranks[rank].node].heard_ns;

    return heard != 0 && now_ns > heard && (double)(now_ns - heard) * 1e-9 > j->cfg.agent_silent_s;
}

int fr_judge_rank_is_over(const struct rank *r)
{
    return r->proc_known && (r->proc.finalized ||
                             (r->dead_ns && r->proc.exit_code == 0 && r->proc.exit_signal == 0));
}

static void roll_totals(struct rank *r, const struct fr_obs_proc *o)
{
    if (r->old.at_ns && o->observed_ns < r->old.at_ns + SHARE_SPAN_NS)
        return;
    r->older = r->old;
    r->old = (struct totals){o->observed_ns, o->run_delay_ns, o->throttled_ns};
}

void fr_judge_proc(struct fr_judge *j, uint32_t rank, const struct fr_obs_proc *o)
{
    struct rank *r = known_rank(j, rank);
    bool dead = o->state == FR_PROC_GONE || o->state == FR_PROC_ZOMBIE, said_goodbye;
    int32_t signal, code;

    if (!r)
        return;
    if ((uint32_t)o->state > FR_PROC_GONE) {
        j->ignored++;
        return;
    }
    said_goodbye = r->proc.finalized || o->finalized;
    signal = o->exit_signal >= 0 || !r->proc_known ? o->exit_signal : r->proc.exit_signal;
    code = o->exit_code >= 0 || !r->proc_known ? o->exit_code : r->proc.exit_code;
    if (!dead)
        r->dead_ns = 0;
    else if (!r->dead_ns)
        r->dead_ns = o->state_since_ns ? o->state_since_ns : o->observed_ns ? o->observed_ns : 1;
    roll_totals(r, o);
    r->proc = *o;
    r->proc.finalized = said_goodbye;
    r->proc.exit_signal = signal;
    r->proc.exit_code = code;
    if (!isfinite(o->stopped_ratio) || o->stopped_ratio < 0 || o->stopped_ratio > 1)
        r->proc.stopped_ratio = 0;
    r->proc_known = true;
    fr_judge_note_seen(r);
}

void fr_judge_launcher(struct fr_judge *j, uint32_t rank, int32_t exit_signal, uint64_t now_ns)
{
    if (!known_rank(j, rank) || j->launcher_rank >= 0) /* its first word counts */
        return;
    j->launcher_rank = (int32_t)rank;
    j->launcher_signal = exit_signal;
    j->launcher_ns = now_ns;
}

void fr_judge_phase(struct fr_judge *j, uint32_t rank, uint32_t phase, uint64_t since_ns,
                    uint64_t step)
{
    struct rank *r = known_rank(j, rank);

    if (!r)
        return;
    if (phase != r->phase || since_ns != r->phase_since_ns || step != r->step_begun)
        fr_judge_note_move(j, r, since_ns);
    r->phase = phase;
    r->phase_since_ns = since_ns;
    r->step_begun = step;
}

void fr_judge_grid(struct fr_judge *j, uint32_t rank, const int32_t *index, const int32_t *size)
{
    struct rank *r = known_rank(j, rank);

    if (!r)
        return;
    for (int d = 0; d < GRID_DIMS; d++)
        if (size[d] < 0 || index[d] < 0 || (size[d] > 0 && index[d] >= size[d])) {
            j->ignored++;
            return;
        }
    memcpy(r->index, index, sizeof r->index);
    memcpy(r->size, size, sizeof r->size);
}

/* --- communicators --- */

static uint64_t hash_key(struct fr_comm_key key)
{
    uint64_t z = key.members_hash ^ ((uint64_t)key.instance * 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    return z ^ (z >> 31);
}

struct comm *fr_judge_comm_find(const struct fr_judge *j, struct fr_comm_key key)
{
    if (j->table_cap == 0 || key.members_hash == 0)
        return NULL;
    for (uint64_t i = hash_key(key);; i++) {
        uint32_t k = j->table[i & (j->table_cap - 1)];

        if (k == 0)
            return NULL;
        if (j->comms[k - 1].key.members_hash == key.members_hash &&
            j->comms[k - 1].key.instance == key.instance)
            return &j->comms[k - 1];
    }
}

static void table_put(struct fr_judge *j, uint32_t index)
{
    uint64_t i = hash_key(j->comms[index].key);

    while (j->table[i & (j->table_cap - 1)])
        i++;
    j->table[i & (j->table_cap - 1)] = index + 1;
}

static struct comm *comm_new(struct fr_judge *j)
{
    if (j->ncomms == j->comms_cap) {
        j->comms_cap = j->comms_cap ? 2 * j->comms_cap : 16;
        j->comms = fr_xreallocarray(j->comms, j->comms_cap, sizeof *j->comms);
    }
    if (2 * (j->ncomms + 1) > j->table_cap) {
        free(j->table);
        j->table_cap = j->table_cap ? 2 * j->table_cap : 64;
        j->table = fr_xcalloc(j->table_cap, sizeof *j->table);
        for (uint32_t i = 0; i < j->ncomms; i++)
            table_put(j, i);
    }
    memset(&j->comms[j->ncomms], 0, sizeof j->comms[0]);
    return &j->comms[j->ncomms];
}

/* 1 when the runs name `size` known ranks. */
static int runs_can_be(const struct fr_judge *j, uint32_t size, const uint32_t *runs,
                       uint32_t nruns)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < nruns; i++) {
        const uint32_t *r = runs + 3 * (size_t)i;

        if (r[2] == 0 || r[2] > j->nranks || (r[2] > 1 && r[1] == 0) ||
            r[0] + (uint64_t)r[1] * (r[2] - 1) >= j->nranks)
            return 0;
        total += r[2];
    }
    return total == size;
}

void fr_judge_comm(struct fr_judge *j, struct fr_comm_key key, uint32_t size, const uint32_t *runs,
                   uint32_t nruns, const char *name)
{
    struct comm *c;

    if (key.members_hash == 0 || size == 0 || size > j->nranks || nruns > COMM_RUNS_MAX ||
        j->ncomms >= COMMS_MAX ||
        j->member_slots + size > (uint64_t)MEMBER_SLOTS_A_RANK * j->nranks ||
        (nruns && !runs_can_be(j, size, runs, nruns))) {
        j->ignored++;
        return;
    }
    if (fr_judge_comm_find(j, key))
        return;
    c = comm_new(j);
    c->key = key;
    c->size = size;
    c->nruns = nruns;
    if (name)
        strncpy(c->name, name, sizeof c->name - 1);
    if (nruns) {
        c->runs = fr_xcalloc(3 * (size_t)nruns, sizeof *c->runs);
        memcpy(c->runs, runs, 3 * (size_t)nruns * sizeof *runs);
    } else {
        c->slot_of = fr_xcalloc(j->nranks, sizeof *c->slot_of);
        memset(c->slot_of, 0xff, j->nranks * sizeof *c->slot_of);
        c->rank_of = fr_xcalloc(size, sizeof *c->rank_of);
    }
    c->members = fr_xcalloc(size, sizeof *c->members);
    c->joins = fr_xcalloc(j->joins, sizeof *c->joins);
    c->duration_s = fr_xcalloc((size_t)j->joins * size, sizeof *c->duration_s);
    c->in_calls_s = fr_xcalloc((size_t)j->joins * size, sizeof *c->in_calls_s);
    for (int i = 0; i < COMM_OPS; i++)
        c->ops[i].last_rank = -1;
    j->member_slots += size;
    table_put(j, j->ncomms++);
}

/* Take the entry at `hole` out: what was put behind it for want of its place moves up. */
static void table_close_gap(struct fr_judge *j, uint64_t hole)
{
    uint64_t mask = j->table_cap - 1;

    for (uint64_t i = (hole + 1) & mask; j->table[i]; i = (i + 1) & mask) {
        uint64_t home = hash_key(j->comms[j->table[i] - 1].key) & mask;

        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* its own place lies behind the hole */
        j->table[hole] = j->table[i];
        hole = i;
    }
    j->table[hole] = 0;
}

static uint64_t table_place(const struct fr_judge *j, uint32_t index)
{
    uint64_t mask = j->table_cap - 1, i = hash_key(j->comms[index].key) & mask;

    while (j->table[i] != index + 1)
        i = (i + 1) & mask;
    return i;
}

static void comm_remove(struct fr_judge *j, struct comm *c)
{
    uint32_t index = (uint32_t)(c - j->comms), last = j->ncomms - 1;

    table_close_gap(j, table_place(j, index));
    j->member_slots -= c->size;
    fr_judge_comm_fini(c);
    if (index != last) {
        j->table[table_place(j, last)] = index + 1;
        j->comms[index] = j->comms[last];
    }
    j->ncomms = last;
}

int fr_judge_comm_freed(struct fr_judge *j, struct fr_comm_key key, uint32_t rank)
{
    struct comm *c = fr_judge_comm_find(j, key);
    int slot = c ? fr_judge_slot(j, c, rank, true) : -1;

    if (slot < 0)
        return -ENOENT;
    c->nfreed += !c->members[slot].freed;
    c->members[slot].freed = true;
    if (c->nfreed < c->size)
        return 0;
    comm_remove(j, c);
    return 1;
}

void fr_judge_comm_fini(struct comm *c)
{
    free(c->runs);
    free(c->slot_of);
    free(c->rank_of);
    free(c->members);
    free(c->joins);
    free(c->duration_s);
    free(c->in_calls_s);
}

int fr_judge_slot(struct fr_judge *j, struct comm *c, uint32_t rank, bool make)
{
    uint32_t base = 0;

    if (rank >= j->nranks)
        return -1;
    if (c->slot_of) {
        if (c->slot_of[rank] < 0 && make && c->nslots < c->size) {
            c->rank_of[c->nslots] = rank;
            c->slot_of[rank] = (int32_t)c->nslots++;
        }
        return c->slot_of[rank];
    }
    for (uint32_t i = 0; i < c->nruns; i++) {
        const uint32_t *r = c->runs + 3 * (size_t)i;

        if (rank >= r[0] &&
            (r[2] == 1 ? rank == r[0] : (rank - r[0]) % r[1] == 0 && (rank - r[0]) / r[1] < r[2]))
            return (int)(base + (r[2] == 1 ? 0 : (rank - r[0]) / r[1]));
        base += r[2];
    }
    return -1;
}

int fr_judge_member(const struct comm *c, uint32_t slot)
{
    if (c->slot_of)
        return slot < c->nslots ? (int)c->rank_of[slot] : -1;
    for (uint32_t i = 0; i < c->nruns; i++) {
        const uint32_t *r = c->runs + 3 * (size_t)i;

        if (slot < r[2])
            return (int)(r[0] + slot * r[1]);
        slot -= r[2];
    }
    return -1;
}

void fr_judge_progress(struct fr_judge *j, uint32_t rank, struct fr_comm_key key,
                       const struct fr_obs_progress *o)
{
    struct rank *r = known_rank(j, rank);
    struct comm *c = r ? fr_judge_comm_find(j, key) : NULL;
    int slot = c ? fr_judge_slot(j, c, rank, true) : -1;
    struct member *m;

    if (!r)
        return;
    if (slot < 0 || o->completed > o->enqueued) {
        j->ignored++;
        return;
    }
    m = &c->members[slot];
    if (o->enqueued < m->enqueued || o->completed < m->completed) {
        j->ignored++; /* an old report, or nonsense: counters only rise */
        return;
    }
    if (o->enqueued > m->enqueued)
        fr_judge_note_move(j, r, o->enqueued_ns);
    if (o->completed > m->completed)
        fr_judge_note_move(j, r, o->completed_ns);
    *m = (struct member){.enqueued = o->enqueued,
                         .started = o->started,
                         .completed = o->completed,
                         .bytes = o->bytes,
                         .enqueued_ns = o->enqueued_ns,
                         .op = o->op,
                         .dtype = o->dtype,
                         .freed = m->freed};
}

void fr_judge_now(struct fr_judge *j, uint32_t rank, const struct fr_obs_now *o)
{
    struct rank *r = known_rank(j, rank);
    const struct fr_obs_now *was;

    if (!r)
        return;
    was = &r->now;
    if (r->now_known && o->observed_ns < was->observed_ns) {
        j->ignored++;
        return;
    }
    r->inside = o->op != FR_OP_NONE;
    if (!r->inside) {
        if (!r->left || !r->now_known)
            fr_judge_note_move(j, r, o->since_ns);
        r->left = true;
        r->now.observed_ns =
            o->observed_ns; /* the call it left stays: the same one again is a poll */
        r->now.since_ns = o->since_ns;
    } else {
        if (!r->now_known || o->seq != was->seq || o->op != was->op || o->peer != was->peer ||
            o->comm.members_hash != was->comm.members_hash ||
            o->comm.instance != was->comm.instance) {
            fr_judge_note_move(j, r, o->since_ns);
            r->left = false;
        }
        r->now = *o;
    }
    r->now_known = true;
}

void fr_judge_step(struct fr_judge *j, uint32_t rank, const struct fr_obs_step *o)
{
    struct rank *r = known_rank(j, rank);
    struct job_step *js;
    double took_s, self_s;

    if (!r)
        return;
    if (o->step == 0 || o->end_ns < o->begin_ns || o->step <= r->step_done ||
        (j->judged_step && o->step > j->judged_step + STEP_JUMP_MAX) ||
        (r->step_begun && o->step > r->step_begun + STEP_JUMP_MAX)) {
        j->ignored++;
        return;
    }
    took_s = (double)(o->end_ns - o->begin_ns) * 1e-9;
    self_s = (double)o->self_ns * 1e-9;
    fr_judge_note_move(j, r, o->end_ns);
    if (r->step_done == 0)
        r->first_step = o->step;
    else
        for (uint64_t s = r->step_done + 1, n = 0; s < o->step && n < STEPS_KEPT; s++, n++)
            r->self_s[s % STEPS_KEPT] = NAN; /* left out: not known, not the one of 64 steps ago */
    /* more self time than time is a broken clock */
    r->self_s[o->step % STEPS_KEPT] =
        self_s > 0 && self_s <= took_s * 1.05 + 1e-3 ? (float)self_s : NAN;
    r->step_done = o->step;

    js = &j->steps[o->step % STEPS_KEPT];
    if (o->step > js->step)
        *js = (struct job_step){.step = o->step};
    if (o->step == js->step) {
        js->n++;
        js->sum_s += took_s;
        if (o->end_ns > js->end_ns)
            js->end_ns = o->end_ns;
    }
}

void fr_judge_heard(struct fr_judge *j, uint32_t node, uint64_t now_ns)
{
    if (node >= j->nnodes) {
        j->ignored++;
        return;
    }
    if (now_ns > j->nodes[node].heard_ns)
        j->nodes[node].heard_ns = now_ns;
}

static void put_on_machine(struct fr_judge *j, uint32_t node, const char *name)
{
    uint64_t machine = 0;

    for (const char *p = name; p && *p; p++)
        machine = (machine ^ (uint8_t)*p) * 0x100000001b3ull + 1;
    if (machine == j->nodes[node].machine)
        return;
    j->nodes[node].machine = machine;
    j->nodes[node].shares = false;
    for (uint32_t i = 0; i < j->nnodes; i++)
        if (machine && i != node && j->nodes[i].machine == machine)
            j->nodes[i].shares = j->nodes[node].shares = true;
}

void fr_judge_pressure(struct fr_judge *j, uint32_t node, const struct fr_obs_pressure *o,
                       uint64_t now_ns)
{
    struct node *n;

    if (node >= j->nnodes) {
        j->ignored++;
        return;
    }
    n = &j->nodes[node];
    put_on_machine(j, node, o->machine);
    if (!o->readable) {
        n->memory_share = NAN;
        n->pressure_ns = 0;
        return;
    }
    if (n->pressure_ns && now_ns < n->pressure_ns + SHARE_SPAN_NS)
        return;
    if (n->pressure_ns && o->memory_some_us >= n->pressure.memory_some_us)
        n->memory_share = (double)(o->memory_some_us - n->pressure.memory_some_us) * 1e3 /
                          (double)(now_ns - n->pressure_ns);
    n->pressure = *o;
    n->pressure.machine = NULL; /* the caller's string */
    n->pressure_ns = now_ns;
}
