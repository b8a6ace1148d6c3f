/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrival.c - joins the records of one operation over its members: wait, transfer, lateness pushed
 * back
 *
 * Members of an all-reduce leave together, so its end is one moment on all clocks and every arrival
 * can be counted backwards from it: arrival = end - duration. The shortest duration is the
 * transfer, what others took beyond it is their wait for the last arrival.
 *
 * The last to arrive need not be the culprit: it may itself have waited before. So what counts is
 * not when a rank arrived but when it would have, had it waited for nobody: its arrival less all
 * the time that it has spent inside calls of this step before. With C = time inside calls from the
 * step's begin to this operation's end, a rank's own lateness is
 *
 *     late_r = median over members (C) - C_r
 *
 * free of clocks, and a rank that was held up by another one has that time in its C and comes out
 * innocent.
 *
 * Source:  detection.md of the design, sections 0.2, 0.5 and 3; on ByteDance's trace AR the plain
 * order names two innocent stages first.
 */
#include <math.h>
#include <string.h>

#include "judge/state.h"
#include "stats/robust.h"

void fr_judge_arrival_reset(struct rank *r)
{
    r->kept_step = 0;
    r->nlate = 0;
    r->late_known = false;
    r->in_calls_s = r->wait_s = r->late_s = 0;
}

static double median_of(const float *v, uint32_t n)
{
    double copy[KEPT_LATE], m = NAN;

    if (n > KEPT_LATE)
        n = KEPT_LATE;
    for (uint32_t i = 0; i < n; i++)
        copy[i] = (double)v[i];
    fr_robust_median(copy, n, copy, &m);
    return m;
}

double fr_judge_late_s(const struct rank *r)
{
    return median_of(r->late, r->nlate);
}

double fr_judge_wait_s(const struct rank *r)
{
    return median_of(r->wait, r->nlate);
}

/* The step of r's records changes: book the one that is over. */
static void turn_step(struct rank *r, uint64_t step)
{
    if (r->kept_step && r->late_known) {
        r->late[r->nlate % KEPT_LATE] = (float)r->late_s;
        r->wait[r->nlate % KEPT_LATE] = (float)r->wait_s;
        r->nlate++;
        if (r->nlate >= 2 * KEPT_LATE) /* keep the count small, the place in the ring the same */
            r->nlate -= KEPT_LATE;
    }
    r->kept_step = step;
    r->call_end_ns = 0;
    r->in_calls_s = r->wait_s = r->late_s = 0;
    r->late_known = false;
}

static struct op_account *account_of(struct comm *c, uint32_t op)
{
    for (int i = 0; i < COMM_OPS; i++)
        if (c->ops[i].op == op || c->ops[i].count == 0) {
            c->ops[i].op = op;
            return &c->ops[i];
        }
    return NULL;
}

/* All members of one operation are here. */
static void joined(struct fr_judge *j, struct comm *c, uint32_t slot0, struct join *jn)
{
    const float *dur = c->duration_s + (size_t)slot0 * c->size,
                *in = c->in_calls_s + (size_t)slot0 * c->size;
    struct op_account *a = account_of(c, jn->op);
    float transfer = INFINITY;
    double *v = j->scratch, mid, waits = 0;
    uint32_t last = 0, k;
    int rank;

    for (uint32_t i = 0; i < c->size; i++) {
        v[i] = (double)in[i];
        waits += (double)dur[i];
        if (dur[i] < transfer) {
            transfer = dur[i];
            last = i;
        }
    }
    waits = waits / c->size - (double)transfer;
    if (a) {
        k = a->count++ % OP_SAMPLES;
        a->transfer_s[k] = transfer;
        a->wait_s[k] = (float)waits;
        a->busbw[k] = transfer > 0 ? (float)((double)jn->bytes / (double)transfer *
                                             fr_op_busbw_factor(jn->op, c->size))
                                   : NAN;
        rank = fr_judge_member(c, last);
        if (a->votes == 0)
            a->last_rank = rank;
        a->votes += a->last_rank == rank ? 1 : a->votes ? (uint32_t)-1 : 0;
    }
    if (c->size < 2)
        return;
    mid = fr_robust_select(v, c->size, c->size / 2); /* of two members: the one that waited */
    for (uint32_t i = 0; i < c->size; i++) {
        struct rank *r;

        rank = fr_judge_member(c, i);
        if (rank < 0)
            continue;
        r = &j->ranks[rank];
        r->wait_s += (double)(dur[i] - transfer);
        /* the latest operation of the step covers most of it */
        r->late_s = mid - (double)in[i];
        r->late_known = true;
    }
}

void fr_judge_record(struct fr_judge *j, uint32_t rank, const struct fr_obs_record *o)
{
    struct comm *c;
    struct join *jn;
    struct rank *r;
    uint32_t place;
    uint64_t from;
    int slot;

    if (rank >= j->nranks || o->end_ns < o->start_ns ||
        o->end_ns - o->start_ns > 100000 * NS_PER_S) {
        j->ignored++;
        return;
    }
    if (o->op == FR_OP_STEP || o->op == FR_OP_PHASE || o->op == FR_OP_NONE)
        return;
    r = &j->ranks[rank];
    if (o->step != r->kept_step)
        turn_step(r, o->step);
    /* union of the time inside calls: those that overlap are counted once */
    from = o->start_ns > r->call_end_ns ? o->start_ns : r->call_end_ns;
    if (o->end_ns > from) {
        r->in_calls_s += (double)(o->end_ns - from) * 1e-9;
        r->call_end_ns = o->end_ns;
    }
    if (!fr_op_ends_together(o->op))
        return;
    c = fr_judge_comm_find(j, o->comm);
    slot = c ? fr_judge_slot(j, c, rank, true) : -1;
    if (slot < 0) {
        j->ignored++;
        return;
    }
    place = (uint32_t)(o->seq & (j->joins - 1));
    jn = &c->joins[place];
    if (jn->seq != o->seq) {
        if (jn->have && jn->seq > o->seq)
            return; /* too old, its place is taken */
        *jn = (struct join){.seq = o->seq, .op = o->op, .bytes = o->bytes};
        for (uint32_t i = 0; i < c->size; i++)
            c->duration_s[(size_t)place * c->size + i] = NAN;
    }
    if (jn->have == 0) {
        jn->op = o->op;
        jn->bytes = o->bytes;
    }
    if (jn->op != o->op || !isnan(c->duration_s[(size_t)place * c->size + (uint32_t)slot]))
        return; /* another operation, or this record came before */
    c->duration_s[(size_t)place * c->size + (uint32_t)slot] =
        (float)((double)(o->end_ns - o->start_ns) * 1e-9);
    c->in_calls_s[(size_t)place * c->size + (uint32_t)slot] = (float)r->in_calls_s;
    if (++jn->have == c->size)
        joined(j, c, place, jn);
}

/* --- figures --- */

static double median_of_op(const float *v, uint32_t count)
{
    return median_of(v, count < OP_SAMPLES ? count : OP_SAMPLES);
}

size_t fr_judge_groups(const struct fr_judge *j, struct fr_judge_group *ret, size_t max)
{
    size_t n = 0;

    for (uint32_t i = 0; i < j->ncomms; i++)
        for (int k = 0; k < COMM_OPS && n < max; k++) {
            const struct comm *c = &j->comms[i];
            const struct op_account *a = &c->ops[k];

            if (a->count == 0)
                continue;
            ret[n] = (struct fr_judge_group){
                .key = c->key,
                .size = c->size,
                .op = a->op,
                .count = a->count,
                .busbw_bytes_per_s = median_of_op(a->busbw, a->count),
                .transfer_s = median_of_op(a->transfer_s, a->count),
                .wait_s = median_of_op(a->wait_s, a->count),
                .last_rank = a->last_rank,
            };
            memcpy(ret[n++].name, c->name, sizeof c->name);
        }
    return n;
}
