/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c - the callbacks of the profiler interface, and its four tables
 *
 * One body serves all versions: what they have in common lies at the same place (abi.h asserts it),
 * and what a version does not have is not looked at. Every callback returns success whatever it
 * was given: an error would unload the library under the feet of other communicators.
 */
#include "probe/nccl/plugin.h"

/* Context of a live communicator, NULL: not watched, or out of another process. */
static inline struct fr_nccl_comm *context_of(const void *context)
{
    struct fr_nccl_comm *c;

    if (fr_unlikely(fr_h_kind(context) != FR_H_CONTEXT))
        return NULL;
    c = fr_nccl_comm_of(context);
    if (fr_unlikely(!c || fr_h_gen(context) != c->gen ||
                    fr_load(&fr_probe.state) != FR_PROBE_ON)) /* a child of fork */
        return NULL;
    return c;
}

static void *start_group(struct fr_nccl_comm *c)
{
    fr_nccl_look();
    return fr_handle(FR_H_GROUP, c->index, 0, 0,
                     __atomic_add_fetch(&c->group, 1, __ATOMIC_RELAXED));
}

static void *start_proxy(struct fr_nccl_comm *c, void *parent, const struct fr_nccl_proxy_op *d)
{
    /* Run here for another process (PXN): the parent is a name of that one. */
    if ((uint32_t)d->pid != fr_nccl.pid)
        parent = NULL;
    fr_nccl_proxy_start(c, parent);
    return fr_handle(FR_H_PROXY, c->index, fr_h_slot(parent), 0, parent ? fr_h_gen(parent) : 0);
}

/* Rarer than channels and proxy operations. */
static void *start_other(struct fr_nccl_comm *c, uint64_t type, const struct fr_nccl_descr_v7 *d,
                         uint32_t version)
{
    switch (type) {
    case FR_NCCL_GROUP:
        return start_group(c);
    case FR_NCCL_COLL:
        fr_nccl_look();
        return fr_nccl_coll_start(c, (const struct fr_nccl_coll_v4 *)(const void *)&d->coll);
    case FR_NCCL_P2P:
        fr_nccl_look();
        return fr_nccl_p2p_start(c, (const struct fr_nccl_p2p_v4 *)(const void *)&d->p2p,
                                 version >= 5 ? d->p2p.parent_group : d->parent);
    case FR_NCCL_CE_COLL:
        if (version >= 6)
            fr_nccl_ce_start(c, (const struct fr_nccl_ce_coll_v6 *)(const void *)&d->ce_coll);
        return NULL;
    default:
        return NULL;
    }
}

static inline void start(void *context, void **ret_handle, uint64_t type, const void *descr,
                         uint32_t version)
{
    const struct fr_nccl_descr_v7 *d = descr;
    struct fr_nccl_comm *c;

    if (fr_unlikely(!ret_handle))
        return;
    *ret_handle = NULL; /* always: some of NCCL's paths bring an uninitialised one */
    if (fr_unlikely(!d))
        return;
    if (fr_likely(type == FR_NCCL_KERNEL_CH)) {
        if (fr_unlikely(fr_h_kind(d->parent) != FR_H_OP || !(c = context_of(context)) ||
                        fr_h_comm(d->parent) != c->index))
            return;
        *ret_handle = fr_nccl_channel_start(c, d->parent, &d->kernel_ch);
        return;
    }
    if (type & ~(uint64_t)(FR_NCCL_GROUP | FR_NCCL_COLL | FR_NCCL_P2P | FR_NCCL_PROXY_OP |
                           FR_NCCL_PROXY_STEP | FR_NCCL_CE_COLL))
        return;
    if (fr_unlikely(!(c = context_of(context))))
        return;
    if (type == FR_NCCL_PROXY_STEP) {
        if (fr_h_kind(d->parent) == FR_H_PROXY && fr_load(&fr_nccl.level) >= FR_PROBE_FULL)
            *ret_handle = fr_handle(FR_H_STEP, c->index, 0, 0, c->gen);
    } else if (type == FR_NCCL_PROXY_OP) {
        *ret_handle = start_proxy(c, d->parent, &d->proxy_op);
    } else {
        *ret_handle = start_other(c, type, d, version);
    }
}

static int stop_event(void *handle)
{
    uint32_t kind = fr_h_kind(handle);
    struct fr_nccl_comm *c;

    if (kind == FR_H_OP || !handle)
        return FR_NCCL_SUCCESS; /* enqueued: no news */
    c = fr_nccl_comm_of(handle);
    if (fr_unlikely(!c))
        return FR_NCCL_SUCCESS;
    if (fr_likely(kind == FR_H_CHANNEL))
        fr_nccl_channel_stop(c, handle);
    else if (kind == FR_H_PROXY)
        fr_nccl_proxy_stop(c, handle);
    else if (kind == FR_H_STEP)
        fr_store(&c->slot->proxy_steps, fr_load(&c->slot->proxy_steps) + 1);
    else if (kind == FR_H_GROUP)
        fr_nccl_group_stop(c, fr_h_gen(handle));
    return FR_NCCL_SUCCESS;
}

static int record_event_state(void *handle, int state, union fr_nccl_state_args *args)
{
    struct fr_nccl_comm *c;
    uint32_t sent;

    if (state == FR_NCCL_KERNEL_CH_STOP) {
        if (fr_likely(args && fr_h_kind(handle) == FR_H_CHANNEL && (c = fr_nccl_comm_of(handle))))
            fr_nccl_channel_stamp(c, handle, args->kernel_ch.timer);
    } else if (state == FR_NCCL_OP_IN_PROGRESS && fr_h_kind(handle) == FR_H_PROXY &&
               (c = fr_nccl_comm_of(handle))) {
        sent = fr_load(&c->slot->proxy_sent);
        if (sent != fr_load(&c->slot->proxy_posted)) /* else one was told twice */
            fr_store(&c->slot->proxy_sent, sent + 1);
    }
    return FR_NCCL_SUCCESS;
}

/* --- the tables --- */

static int init_v4(void **ret_context, int *mask, const char *name, uint64_t hash, int nnodes,
                   int nranks, int rank, fr_nccl_logger logger)
{
    (void)nnodes, (void)logger;
    return fr_nccl_init(ret_context, 4, hash, mask, name, nranks, rank);
}

/* Of v4's type only the first byte was written. */
static int start_v4(void *context, void **ret_handle, struct fr_nccl_descr_v4 *d)
{
    start(context, ret_handle, d ? d->type : 0, d, 4);
    return FR_NCCL_SUCCESS;
}

#define SINCE_V5(v)                                                                                \
    static int init_v##v(void **ret_context, uint64_t id, int *mask, const char *name, int nnodes, \
                         int nranks, int rank, fr_nccl_logger logger)                              \
    {                                                                                              \
        (void)nnodes, (void)logger;                                                                \
        return fr_nccl_init(ret_context, v, id, mask, name, nranks, rank);                         \
    }                                                                                              \
                                                                                                   \
    static int start_v##v(void *context, void **ret_handle, struct fr_nccl_descr_v##v *d)          \
    {                                                                                              \
        start(context, ret_handle, d ? d->type : 0, d, v);                                         \
        return FR_NCCL_SUCCESS;                                                                    \
    }

SINCE_V5(5)
SINCE_V5(6)
SINCE_V5(7)

#define TABLE(v)                                                                                   \
    FR_NCCL_EXPORT extern const struct fr_nccl_profiler_v##v ncclProfiler_v##v;                    \
    const struct fr_nccl_profiler_v##v ncclProfiler_v##v = {                                       \
        "fullrank", init_v##v, start_v##v, stop_event, record_event_state, fr_nccl_finalize}

TABLE(4);
TABLE(5);
TABLE(6);
TABLE(7);
