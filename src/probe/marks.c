/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - the functions of include/fullrank/fullrank.h */
#define _GNU_SOURCE
#include "fullrank/fullrank.h"

#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/probe.h"

_Static_assert((int)FULLRANK_DIM_COUNT <= 8, "the header has room for eight dimensions");

/* What the marking thread remembers of the open step and phase. */
static struct {
    uint64_t step, t_begin; /* step 0: none open */
    uint64_t in_calls, ready_ns;
    uint32_t phase;
    uint64_t t_phase;
} open_mark;

static int watched(void)
{
    if (fr_likely(__atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE) == FR_PROBE_ON))
        return 1;
    if (!fr_probe_open())
        return 0;
    return 1;
}

/* The lane of a mark: like a call of no length, so that the time before it is accounted for. */
static struct fr_lane *mark_begin(uint64_t *ret_t)
{
    struct fr_lane *l;

    if (!watched() || !(l = fr_lane_begin()))
        return NULL;
    *ret_t = fr_ticks();
    fr_lane_enter(l, *ret_t);
    l->t_last = *ret_t;
    if (fr_unlikely(!(fr_probe.hdr->sources & FR_SOURCE_MARKS)))
        fr_probe_source(FR_SOURCE_MARKS);
    return l;
}

static void mark_end(struct fr_lane *l)
{
    l->inside = 0;
}

static void write_mark(struct fr_lane *l, uint8_t op, uint32_t seq, uint64_t t0, uint64_t t1)
{
    struct fr_record *r = fr_lane_record(l);

    r->t_enq = r->t_start = t0;
    r->t_end = t1;
    r->bytes = 0;
    r->seq = seq;
    r->comm = FR_COMM_NONE;
    r->op = op;
    r->dtype = r->flags = r->algo = r->proto = r->channels = 0;
    r->peer = -1;
    fr_lane_commit(l);
}

static void set_phase(struct fr_lane *l, uint32_t phase, uint64_t t)
{
    if (open_mark.t_phase)
        write_mark(l, FR_OP_PHASE, open_mark.phase, open_mark.t_phase, t);
    open_mark.phase = phase;
    open_mark.t_phase = t;
    fr_store(&fr_probe.hdr->phase, phase);
    fr_store(&fr_probe.hdr->t_phase, t);
}

FULLRANK_API int fullrank_watched(void)
{
    return watched();
}

FULLRANK_API void fullrank_grid(enum fullrank_dim dim, int index, int size)
{
    uint64_t v;

    if (!watched() || (unsigned)dim >= FULLRANK_DIM_COUNT || size < 1 || index < 0 || index >= size)
        return;
    fr_probe_source(FR_SOURCE_MARKS);
    v = fr_version_open(&fr_probe.hdr->marks_version);
    fr_store(&fr_probe.hdr->grid_index[dim], index);
    fr_store(&fr_probe.hdr->grid_size[dim], size);
    fr_version_close(&fr_probe.hdr->marks_version, v);
}

FULLRANK_API void fullrank_plan(const struct fullrank_plan *plan)
{
    struct fr_seg_header *h;
    uint64_t v;

    if (!watched() || !plan)
        return;
    fr_probe_source(FR_SOURCE_MARKS);
    h = fr_probe.hdr;
    v = fr_version_open(&h->marks_version);
    h->plan_first_step = plan->first_step;
    h->plan_total_steps = plan->total_steps;
    h->plan_checkpoint_every = plan->checkpoint_every;
    h->plan_last_checkpoint = plan->last_checkpoint;
    h->plan_tokens_per_step = plan->tokens_per_step;
    h->plan_flops_per_step = plan->flops_per_step;
    h->plan_peak_flops_per_rank = plan->peak_flops_per_rank;
    fr_version_close(&h->marks_version, v);
}

FULLRANK_API void fullrank_step_begin(uint64_t step)
{
    struct fr_seg_header *h;
    struct fr_seg_step *s;
    struct fr_lane *l;
    uint64_t t, v;

    if (step == 0 || !(l = mark_begin(&t)))
        return;
    h = fr_probe.hdr;
    if (fr_unlikely(!h->rank_tid)) {
        fr_store(&h->rank_tid, (uint32_t)syscall(SYS_gettid));
        fr_probe_tune();
    }
    open_mark.step = step;
    open_mark.t_begin = t;
    open_mark.in_calls = l->in_calls;
    open_mark.ready_ns = l->ready_ns;
    v = fr_version_open(&h->marks_version);
    fr_store(&h->step, step);
    if (open_mark.phase != FULLRANK_PHASE_STEP)
        set_phase(l, FULLRANK_PHASE_STEP, t);
    fr_version_close(&h->marks_version, v);
    fr_store(&fr_probe.open_step, (uint32_t)step);

    s = &fr_probe.steps[step % FR_SEG_STEPS];
    v = fr_version_open(&s->version);
    fr_store(&s->step, step);
    fr_store(&s->t_begin, t);
    fr_store(&s->t_end, (uint64_t)0);
    s->loss = s->tokens = NAN;
    fr_store(&s->self_ns, (uint64_t)0);
    fr_store(&s->ready_ns, (uint64_t)0);
    fr_store(&s->in_calls_ns, (uint64_t)0);
    fr_version_close(&s->version, v);
    mark_end(l);
}

FULLRANK_API void fullrank_step_end(const struct fullrank_step_result *result)
{
    uint64_t t, v, wall_ns, in_calls_ns, ready_ns, other_ns;
    struct fr_seg_step *s;
    struct fr_lane *l;

    if (!open_mark.step || !(l = mark_begin(&t)))
        return;
    wall_ns = fr_ticks_ns(t - open_mark.t_begin);
    /* A step that begins or ends between two reads of the run-queue wait may be given a little
     * of its neighbour's: what is left is never below zero. */
    in_calls_ns = fr_ticks_ns(l->in_calls - open_mark.in_calls);
    if (in_calls_ns > wall_ns)
        in_calls_ns = wall_ns;
    other_ns = wall_ns - in_calls_ns;
    ready_ns = l->ready_ns - open_mark.ready_ns;
    if (ready_ns > other_ns)
        ready_ns = other_ns;

    s = &fr_probe.steps[open_mark.step % FR_SEG_STEPS];
    v = fr_version_open(&s->version);
    fr_store(&s->t_end, t);
    s->loss = result ? result->loss : NAN;
    s->tokens = result ? result->tokens : NAN;
    fr_store(&s->self_ns, other_ns - ready_ns);
    fr_store(&s->ready_ns, ready_ns);
    fr_store(&s->in_calls_ns, in_calls_ns);
    fr_version_close(&s->version, v);
    write_mark(l, FR_OP_STEP, (uint32_t)open_mark.step, open_mark.t_begin, t);
    open_mark.step = 0;
    fr_store(&fr_probe.open_step, 0u);
    mark_end(l);
}

FULLRANK_API void fullrank_phase(enum fullrank_phase phase)
{
    struct fr_lane *l;
    uint64_t t, v;

    if ((unsigned)phase >= FULLRANK_PHASE_COUNT || !(l = mark_begin(&t)))
        return;
    if (phase != (enum fullrank_phase)open_mark.phase || !open_mark.t_phase) {
        v = fr_version_open(&fr_probe.hdr->marks_version);
        set_phase(l, (uint32_t)phase, t);
        fr_version_close(&fr_probe.hdr->marks_version, v);
    }
    mark_end(l);
}

FULLRANK_API void fullrank_checkpoint_done(uint64_t step)
{
    uint64_t v;

    if (!watched())
        return;
    v = fr_version_open(&fr_probe.hdr->marks_version);
    fr_store(&fr_probe.hdr->checkpoint_step, step);
    fr_version_close(&fr_probe.hdr->marks_version, v);
}
