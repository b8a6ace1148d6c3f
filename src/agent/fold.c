/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - see fold.h */
#include "agent/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "model/op.h"
#include "wire/ring.h"

void fr_fold_init(struct fr_fold *f)
{
    memset(f, 0, sizeof *f);
    f->keep_log2 = 63; /* none until the controller has spoken */
}

static void free_step(struct fr_fold_step **sp)
{
    if (*sp) {
        free((*sp)->records);
        free((*sp)->gpu);
    }
    free(*sp);
    *sp = NULL;
}

void fr_fold_fini(struct fr_fold *f)
{
    for (size_t i = 0; i < FR_FOLD_OPEN; i++)
        free_step(&f->open[i]);
}

void fr_fold_keep(struct fr_fold *f, uint32_t keep_log2, uint64_t burst_until)
{
    f->keep_log2 = keep_log2 > 63 ? 63 : keep_log2;
    f->burst_until = burst_until;
}

int fr_fold_is_kept(const struct fr_fold *f, uint64_t step)
{
    return step != 0 && ((step & ((1ull << f->keep_log2) - 1)) == 0 || step <= f->burst_until);
}

static size_t find(const struct fr_fold *f, uint64_t step)
{
    for (size_t i = 0; i < FR_FOLD_OPEN; i++)
        if (f->open[i] && f->open[i]->step == step)
            return i;
    return FR_FOLD_OPEN;
}

const struct fr_fold_step *fr_fold_find(const struct fr_fold *f, uint64_t step)
{
    size_t i = find(f, step);

    return i < FR_FOLD_OPEN ? f->open[i] : NULL;
}

/* The step, opened if it is new; NULL for one that was closed already. */
static struct fr_fold_step *step_of(struct fr_fold *f, uint64_t step)
{
    size_t i = find(f, step), oldest = 0, at = FR_FOLD_OPEN;

    if (i < FR_FOLD_OPEN)
        return f->open[i];
    if (step <= f->closed)
        return NULL;
    for (i = 0; i < FR_FOLD_OPEN; i++) {
        if (!f->open[i]) {
            at = i;
            break;
        }
        if (f->open[i]->step < f->open[oldest]->step)
            oldest = i;
    }
    if (at == FR_FOLD_OPEN) { /* the oldest goes without sums; its slot in the segment still tells
                                 of it */
        free_step(&f->open[oldest]);
        f->evicted++;
        at = oldest;
    }
    f->open[at] = fr_xalloc(sizeof *f->open[at]);
    f->open[at]->step = step;
    f->open[at]->torn = f->torn;
    f->open[at]->kept = fr_fold_is_kept(f, step);
    return f->open[at];
}

static void tear(struct fr_fold_step *s)
{
    s->torn = true;
    s->ngroups = s->nrecords = s->cap = s->ngpu = s->gpu_cap = 0;
    free(s->records);
    free(s->gpu);
    s->records = NULL;
    s->gpu = NULL;
}

static void add_span(struct fr_fold_step *s, const struct fr_wire_record *r)
{
    if (s->ngpu == FR_FOLD_RECORDS)
        return;
    if (s->ngpu == s->gpu_cap) {
        s->gpu_cap = s->gpu_cap ? s->gpu_cap * 2 : 64;
        s->gpu = fr_xreallocarray(s->gpu, s->gpu_cap, sizeof *s->gpu);
    }
    s->gpu[s->ngpu++] = (struct fr_fold_span){r->start_ns, r->end_ns};
}

static int by_begin(const void *a, const void *b)
{
    const struct fr_fold_span *x = a, *y = b;

    return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

uint64_t fr_fold_gpu_ns(const struct fr_fold_step *s)
{
    uint64_t total = 0, end = 0;

    if (s->ngpu)
        qsort(s->gpu, s->ngpu, sizeof *s->gpu, by_begin);
    for (size_t i = 0; i < s->ngpu; i++) {
        uint64_t from = s->gpu[i].begin_ns > end ? s->gpu[i].begin_ns : end;

        if (s->gpu[i].end_ns > from) {
            total += s->gpu[i].end_ns - from;
            end = s->gpu[i].end_ns;
        }
    }
    return total;
}

static void add_to_group(struct fr_fold_step *s, const struct fr_wire_record *r)
{
    uint64_t took = r->end_ns > r->start_ns ? r->end_ns - r->start_ns : 0;
    struct fr_fold_group *g = s->groups, *end = g + s->ngroups;

    while (g < end &&
           (g->members_hash != r->members_hash || g->instance != r->instance || g->op != r->op))
        g++;
    if (g == end) {
        if (s->ngroups == FR_FOLD_GROUPS) {
            tear(s);
            return;
        }
        s->ngroups++;
        *g = (struct fr_fold_group){r->members_hash, r->instance, r->op, 0, 0, 0, UINT64_MAX};
    }
    g->count++;
    g->bytes += r->bytes;
    g->duration_ns += took;
    if (took < g->min_ns && !(r->flags & FR_REC_UNTIMED))
        g->min_ns = took;
}

static void keep(struct fr_fold_step *s, const struct fr_wire_record *r)
{
    if (s->nrecords == FR_FOLD_RECORDS) {
        s->kept = false; /* too many to forward: the sums stay */
        free(s->records);
        s->records = NULL;
        s->nrecords = s->cap = 0;
        return;
    }
    if (s->nrecords == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 128;
        s->records = fr_xreallocarray(s->records, s->cap, sizeof *s->records);
    }
    s->records[s->nrecords++] = *r;
}

void fr_fold_record(struct fr_fold *f, const struct fr_wire_record *r)
{
    struct fr_fold_step *s;

    f->records++;
    if (r->step == 0 || r->op == FR_OP_PHASE)
        return;
    s = step_of(f, r->step);
    if (r->op == FR_OP_STEP)
        f->torn = false; /* what comes now belongs to steps that began after the loss */
    if (!s)
        return;
    if (r->op == FR_OP_STEP) {
        s->ended = true;
        s->begin_ns = r->start_ns;
        s->end_ns = r->end_ns;
    }
    if (s->torn)
        return;
    if (r->op != FR_OP_STEP)
        add_to_group(s, r);
    if (r->flags & FR_REC_GPU_CLOCK && !s->torn)
        add_span(s, r);
    /* without an end it can be joined with nothing */
    if (s->kept && !s->torn && !(r->flags & FR_REC_UNTIMED))
        keep(s, r);
}

void fr_fold_lost(struct fr_fold *f)
{
    f->torn = true;
    for (size_t i = 0; i < FR_FOLD_OPEN; i++)
        if (f->open[i] && !f->open[i]->ended)
            tear(f->open[i]);
}

void fr_fold_close(struct fr_fold *f, uint64_t step)
{
    for (size_t i = 0; i < FR_FOLD_OPEN; i++)
        if (f->open[i] && f->open[i]->step <= step)
            free_step(&f->open[i]);
    if (step > f->closed)
        f->closed = step;
}
