/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_gpu.c - what a rank's GPU is inside of
 *
 * A host thread that calls NCCL leaves at once; it is the GPU that stays inside an operation. Which
 * one is told by the progress of the rank's communicators: the oldest that has started and not
 * ended. Where no end is visible (level hang on one node, copy engines) the newest that was
 * enqueued is all that can be said, and that is said with it.
 */
#include "agent/rank.h"
#include "model/op.h"

enum inside { OUTSIDE = 0, BLIND, INSIDE };

static enum inside state_of(const struct fr_seg_comm *c)
{
    if (!(c->flags & FR_COMM_GPU) || c->freed || c->completed >= c->enqueued)
        return OUTSIDE;
    if (c->flags & FR_COMM_BLIND)
        return BLIND;
    return c->started > c->completed ? INSIDE : OUTSIDE;
}

static void fill(const struct fr_rank *r, const struct fr_seg_comm *c, enum inside how,
                 uint64_t since, Fullrank__Now *now)
{
    /* Only an all-to-all is an operation of the whole communicator. */
    bool whole = !(c->flags & FR_COMM_P2P) || c->op == FR_OP_ALLTOALL;

    now->op = c->op;
    now->since_ns = since ? fr_segment_ns(r->segment, since) : 0;
    now->members_hash = whole ? c->members_hash : 0;
    now->instance = c->instance;
    now->seq = how == BLIND ? c->enqueued : c->completed + 1;
    now->peer = (int32_t)c->root;
    now->waits_for = 0;
    now->bytes = c->op_bytes;
    now->blind = how == BLIND;
}

bool fr_rank_gpu_now(const struct fr_rank *r, Fullrank__Now *now)
{
    const struct fr_seg_header *h = fr_segment_header(r->segment);
    enum inside found = OUTSIDE;
    uint64_t since_found = 0, left = 0;

    for (uint32_t i = 0; i < h->comm_used; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(r->segment, i);
        enum inside how = c ? state_of(c) : OUTSIDE;
        uint64_t since;

        if (c && c->flags & FR_COMM_GPU && c->t_completed > left)
            left = c->t_completed;
        if (how == OUTSIDE || how < found)
            continue;
        /* Entered no earlier than the one before had ended, and it was enqueued. */
        since = c->t_completed;
        if (how == BLIND || (c->enqueued == c->completed + 1 && c->t_enqueued > since) || !since)
            since = c->t_enqueued;
        if (how == found && since >= since_found)
            continue;
        found = how;
        since_found = since;
        fill(r, c, how, since, now);
    }
    if (found == OUTSIDE && left && fr_segment_ns(r->segment, left) > now->since_ns)
        now->since_ns = fr_segment_ns(r->segment, left);
    return found != OUTSIDE;
}
