/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_series.c - see nccl_series.h */
#include "control/nccl_series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "model/op.h"

struct fr_nccl {
    struct fr_nccl_series *v;  /* open addressing */
    uint32_t cap, used, ranks; /* ranks: of them of single ranks */
    uint64_t refused;
    uint64_t ranks_until_ns, swept;
};

void fr_nccl_free(struct fr_nccl *n)
{
    if (!n)
        return;
    free(n->v);
    free(n);
}

void fr_nccl_reset(struct fr_cjob *j)
{
    uint64_t until = j->nccl ? j->nccl->ranks_until_ns : 0;

    if (!j->nccl)
        return;
    fr_nccl_free(j->nccl);
    j->nccl = NULL;
    if (until) {
        j->nccl = fr_xalloc(sizeof *j->nccl);
        j->nccl->ranks_until_ns = until;
    }
}

void fr_nccl_want_ranks(struct fr_ctl *c, struct fr_cjob *j)
{
    if (!j->nccl)
        j->nccl = fr_xalloc(sizeof *j->nccl);
    j->nccl->ranks_until_ns = c->now_ns + FR_NCCL_RANKS_NS;
}

/* --- sizes --- */

uint64_t fr_nccl_size_low(uint64_t bytes)
{
    uint32_t shift = 0;

    while (bytes >> shift >= 1024 && shift < 40)
        shift += 10;
    return bytes >> shift << shift;
}

char *fr_nccl_size_text(uint64_t low, char *text, size_t n)
{
    static const char *const UNITS[] = {"B", "KB", "MB", "GB", "TB"};
    uint32_t unit = 0;

    while (low >= 1024 && unit < 4) {
        low >>= 10;
        unit++;
    }
    if (low == 0)
        snprintf(text, n, "0B");
    else
        snprintf(text, n, "%llu-%llu%s", (unsigned long long)low, (unsigned long long)low + 1,
                 UNITS[unit]);
    return text;
}

/* --- the table --- */

static uint32_t window_of(const struct fr_ctl *c)
{
    return (uint32_t)(c->now_ns / FR_NCCL_WINDOW_NS) + 1;
}

static uint32_t place_of(const struct fr_nccl *n, const struct fr_nccl_series *key)
{
    uint64_t h = key->hash ^ key->size_low * 0x9e3779b97f4a7c15ull;

    h ^= ((uint64_t)key->instance << 32 | key->op) * 0xff51afd7ed558ccdull;
    h = (h ^ (uint64_t)(uint32_t)key->rank) * 0xbf58476d1ce4e5b9ull;
    h ^= h >> 31;
    for (;; h++) {
        const struct fr_nccl_series *s = &n->v[h & (n->cap - 1)];

        if (!s->hash || (s->hash == key->hash && s->instance == key->instance &&
                         s->rank == key->rank && s->size_low == key->size_low && s->op == key->op))
            return (uint32_t)(h & (n->cap - 1));
    }
}

/* Into a table of cap places, without those of which nothing came in the last two windows. */
static void rebuild(struct fr_nccl *n, uint32_t cap, uint32_t window)
{
    struct fr_nccl_series *old = n->v;
    uint32_t count = n->cap;

    n->v = fr_xcalloc(cap, sizeof *n->v);
    n->cap = cap;
    n->used = n->ranks = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!old[i].hash || old[i].window + 1 < window)
            continue;
        n->v[place_of(n, &old[i])] = old[i];
        n->used++;
        n->ranks += old[i].rank >= 0;
    }
    free(old);
}

static struct fr_nccl_series *series_of(struct fr_nccl *n, const struct fr_nccl_series *key,
                                        uint32_t window)
{
    struct fr_nccl_series *s;

    if (n->cap == 0)
        rebuild(n, 64, window);
    s = &n->v[place_of(n, key)];
    if (s->hash)
        return s;
    if (key->rank >= 0 ? n->ranks >= FR_NCCL_RANK_SERIES : n->used - n->ranks >= FR_NCCL_SERIES) {
        if (n->swept != window) { /* make room, once a window */
            n->swept = window;
            rebuild(n, n->cap, window);
            return series_of(n, key, window);
        }
        n->refused++;
        return NULL;
    }
    if (2 * (n->used + 1) > n->cap) {
        rebuild(n, 2 * n->cap, window);
        s = &n->v[place_of(n, key)];
    }
    *s = *key;
    s->window = window;
    n->used++;
    n->ranks += key->rank >= 0;
    return s;
}

static void turn(struct fr_nccl_series *s, uint32_t window)
{
    if (s->window == window)
        return;
    s->before = s->window + 1 == window ? s->now : (struct fr_nccl_window){0};
    s->now = (struct fr_nccl_window){0};
    s->window = window;
}

static void add(struct fr_nccl *n, const struct fr_nccl_series *key, uint32_t window, double us,
                double busbw_gbs)
{
    struct fr_nccl_series *s = series_of(n, key, window);

    if (!s)
        return;
    turn(s, window);
    s->now.count++;
    s->now.us += us;
    if (busbw_gbs > 0) {
        s->now.nlog++;
        s->now.log_bw += log(busbw_gbs);
    }
}

/* --- records --- */

/* Inspector's message size is what one rank puts in; S of nccl-tests is n-fold for these. */
static uint64_t message_bytes(const struct fr_obs_record *o, uint32_t size)
{
    switch (o->op) {
    case FR_OP_ALLGATHER:
    case FR_OP_REDUCE_SCATTER:
    case FR_OP_ALLTOALL:
    case FR_OP_GATHER:
    case FR_OP_SCATTER:
        return size ? o->bytes / size : o->bytes;
    default:
        return o->bytes;
    }
}

void fr_nccl_record(struct fr_ctl *c, struct fr_cjob *j, const struct fr_ccomm *comm, uint32_t rank,
                    const struct fr_obs_record *o)
{
    double us = (double)(o->end_ns - o->start_ns) * 1e-3, busbw;
    uint32_t size = comm ? comm->size : 0, window = window_of(c);
    struct fr_nccl_series key = {
        .hash = o->comm.members_hash, .instance = o->comm.instance, .rank = -1, .op = o->op};
    bool p2p = o->op == FR_OP_SEND || o->op == FR_OP_RECV;

    if (!comm || (!p2p && !fr_op_is_collective(o->op)) || o->end_ns <= o->start_ns)
        return;
    if (!j->nccl)
        j->nccl = fr_xalloc(sizeof *j->nccl);
    key.size_low = fr_nccl_size_low(message_bytes(o, size));
    busbw = (double)o->bytes / us * 1e-3 * fr_op_busbw_factor(o->op, size); /* NaN: has none */
    add(j->nccl, &key, window, us, busbw);
    if (c->now_ns < j->nccl->ranks_until_ns) {
        key.rank = (int32_t)rank;
        add(j->nccl, &key, window, us, busbw);
    }
}

uint64_t fr_nccl_refused(const struct fr_cjob *j)
{
    return j->nccl ? j->nccl->refused : 0;
}

int fr_nccl_at(const struct fr_ctl *c, const struct fr_cjob *j, size_t i,
               const struct fr_nccl_series **ret, struct fr_nccl_figures *figures)
{
    const struct fr_nccl_series *s;
    struct fr_nccl_window w;
    uint32_t window = window_of(c);

    if (!j->nccl || i >= j->nccl->cap)
        return -1;
    s = &j->nccl->v[i];
    if (!s->hash || s->window + 1 < window)
        return 0;
    w = s->now;
    if (s->window == window) {
        w.count += s->before.count;
        w.nlog += s->before.nlog;
        w.us += s->before.us;
        w.log_bw += s->before.log_bw;
    }
    *ret = s;
    *figures = (struct fr_nccl_figures){
        .us = w.count ? w.us / w.count : (double)NAN,
        .busbw_gbs = w.nlog ? exp(w.log_bw / w.nlog) : (double)NAN,
    };
    return 1;
}
