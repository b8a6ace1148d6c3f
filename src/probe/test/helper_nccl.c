/* SPDX-License-Identifier: Apache-2.0 */
/* helper_nccl.c - see helper_nccl.h */
#define _GNU_SOURCE
#include "helper_nccl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe/probe.h"

extern const struct fr_nccl_profiler_v4 ncclProfiler_v4;
extern const struct fr_nccl_profiler_v5 ncclProfiler_v5;
extern const struct fr_nccl_profiler_v6 ncclProfiler_v6;
extern const struct fr_nccl_profiler_v7 ncclProfiler_v7;

static char dir[64];

int nccl_child(void (*fn)(void), const char *level)
{
    int status = -1;
    pid_t pid;
    char path[128];

    snprintf(dir, sizeof dir, "/tmp/fr-nccl-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        setenv("FULLRANK_PROBE_DIR", dir, 1);
        if (level)
            setenv("FULLRANK_PROBE", level, 1);
        else
            unsetenv("FULLRANK_PROBE");
        fn();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)pid);
    unlink(path);
    snprintf(path, sizeof path, "%s/fullrank.ctl", dir);
    unlink(path);
    rmdir(dir);
    return status;
}

uint64_t nccl_gpu_now(void)
{
    return fr_mono_ns() + NCCL_EPOCH;
}

void player_init(struct player *p, int version, uint64_t id, const char *name, int nranks, int rank)
{
    memset(p, 0, sizeof *p);
    p->version = version;
    p->mask = -1;
    switch (version) {
    case 4:
        ncclProfiler_v4.init(&p->context, &p->mask, name, id, 1, nranks, rank, NULL);
        break;
    case 5:
        ncclProfiler_v5.init(&p->context, id, &p->mask, name, 1, nranks, rank, NULL);
        break;
    case 6:
        ncclProfiler_v6.init(&p->context, id, &p->mask, name, 1, nranks, rank, NULL);
        break;
    default:
        ncclProfiler_v7.init(&p->context, id, &p->mask, name, 1, nranks, rank, NULL);
    }
}

void player_fini(struct player *p)
{
    ncclProfiler_v7.finalize(p->context);
}

/* A descriptor as it lies on NCCL's stack: what is not set is garbage. */
static void garbage(struct fr_nccl_descr_v7 *d)
{
    memset(d, 0xa5, sizeof *d);
}

void *play_raw(struct player *p, void *context, const struct fr_nccl_descr_v7 *d)
{
    struct fr_nccl_descr_v7 copy = *d;
    void *handle = (void *)(uintptr_t)0xdeadbeef; /* uninitialised, as in NCCL's ProxyCtrl path */

    switch (p->version) {
    case 4:
        ncclProfiler_v4.start_event(context, &handle, (void *)&copy);
        break;
    case 5:
        ncclProfiler_v5.start_event(context, &handle, (void *)&copy);
        break;
    case 6:
        ncclProfiler_v6.start_event(context, &handle, (void *)&copy);
        break;
    default:
        ncclProfiler_v7.start_event(context, &handle, &copy);
    }
    return handle;
}

static void set_head(struct player *p, struct fr_nccl_descr_v7 *d, uint64_t type, void *parent)
{
    garbage(d);
    if (p->version == 4)
        *(uint8_t *)&d->type = (uint8_t)type; /* the seven bytes behind it are not written */
    else
        d->type = type;
    d->parent = parent;
    d->rank = 0;
}

void *play_group_start(struct player *p)
{
    struct fr_nccl_descr_v7 d;

    set_head(p, &d, FR_NCCL_GROUP, NULL);
    return play_raw(p, p->context, &d);
}

void *play_coll_start(struct player *p, const struct played *c)
{
    struct fr_nccl_descr_v7 d;

    set_head(p, &d, FR_NCCL_COLL, p->version == 4 ? c->group : NULL);
    d.coll.seq = c->seq;
    d.coll.func = c->func;
    d.coll.count = c->count;
    d.coll.root = c->root;
    d.coll.datatype = c->datatype;
    d.coll.channels = (uint8_t)c->channels;
    d.coll.warps = 16;
    d.coll.algo = c->algo;
    d.coll.proto = c->proto;
    if (p->version > 4)
        d.coll.parent_group = c->group;
    return play_raw(p, p->context, &d);
}

void *play_p2p_start(struct player *p, const char *func, int peer, uint64_t count,
                     const char *datatype, int channels, void *group)
{
    struct fr_nccl_descr_v7 d;

    set_head(p, &d, FR_NCCL_P2P, p->version == 4 ? group : NULL);
    d.p2p.func = func;
    d.p2p.peer = peer;
    d.p2p.count = count;
    d.p2p.datatype = datatype;
    if (p->version > 4) { /* 2.28's v4 shim leaves garbage in channels */
        d.p2p.channels = (uint8_t)channels;
        d.p2p.parent_group = group;
    }
    return play_raw(p, p->context, &d);
}

void *play_channel_start(struct player *p, void *parent, int channel, uint64_t timer)
{
    struct fr_nccl_descr_v7 d;

    set_head(p, &d, FR_NCCL_KERNEL_CH, parent);
    d.kernel_ch.channel = (uint8_t)channel;
    d.kernel_ch.timer = timer;
    return play_raw(p, p->context, &d);
}

void play_state(struct player *p, void *handle, int state, uint64_t timer)
{
    union fr_nccl_state_args args = {.kernel_ch = {timer}};

    (void)p;
    ncclProfiler_v7.record_event_state(handle, state, &args);
}

void play_stop(struct player *p, void *handle)
{
    (void)p;
    ncclProfiler_v7.stop_event(handle);
}

void play_channel_stop(struct player *p, void *handle, uint64_t timer)
{
    play_state(p, handle, FR_NCCL_KERNEL_CH_STOP, timer);
    play_stop(p, handle);
}

void *play_proxy_start(struct player *p, void *parent, int pid, int channel, int is_send)
{
    struct fr_nccl_descr_v7 d;

    set_head(p, &d, FR_NCCL_PROXY_OP, parent);
    d.proxy_op.pid = pid;
    d.proxy_op.channel = (uint8_t)channel;
    d.proxy_op.peer = 1;
    d.proxy_op.steps = 4;
    d.proxy_op.is_send = is_send;
    return play_raw(p, p->context, &d);
}

void *play_ce(struct player *p, const char *func, uint64_t count, const char *datatype, int root)
{
    struct fr_nccl_descr_v7 d;

    set_head(p, &d, FR_NCCL_CE_COLL, NULL);
    d.ce_coll.func = func;
    d.ce_coll.count = count;
    d.ce_coll.datatype = datatype;
    d.ce_coll.root = root;
    return play_raw(p, p->context, &d);
}

void play_kernel(struct player *p, void *handle, int channels, uint64_t start, uint64_t end)
{
    void *h[256];

    for (int i = 0; i < channels; i++)
        h[i] = play_channel_start(p, handle, i, start + (uint64_t)(channels - 1 - i));
    for (int i = 0; i < channels; i++)
        play_channel_stop(p, h[i], end - (uint64_t)(channels - 1 - i));
}

void play_call(struct player *p, const struct played *c, uint64_t *ret_start, uint64_t *ret_end)
{
    struct played call = *c;
    struct fr_nccl_descr_v7 d;
    void *api = NULL, *coll_api = NULL, *group, *coll;
    uint64_t start, end;

    if (p->version > 4) { /* come along although nobody asked */
        set_head(p, &d, FR_NCCL_GROUP_API, NULL);
        api = play_raw(p, p->context, &d);
        set_head(p, &d, FR_NCCL_COLL_API, api);
        coll_api = play_raw(p, p->context, &d);
        play_stop(p, coll_api);
    }
    group = play_group_start(p);
    call.group = group;
    coll = play_coll_start(p, &call);
    play_stop(p, coll);
    play_stop(p, group);
    play_stop(p, api);
    play_stop(p, coll_api); /* the stale handle, once more */
    start = nccl_gpu_now();
    do {
        end = nccl_gpu_now();
    } while (end < start + 1500);
    play_kernel(p, coll, c->channels, start, end);
    if (ret_start)
        *ret_start = start;
    if (ret_end)
        *ret_end = end;
}

/* --- reader --- */

static void take(void *arg, uint32_t lane, uint64_t index, const struct fr_record *record)
{
    struct reader *r = arg;

    (void)lane, (void)index;
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 1024;
        r->r = realloc(r->r, r->cap * sizeof *r->r);
        CHECK(r->r);
    }
    r->r[r->n++] = *record;
}

void reader_open(struct reader *r)
{
    struct fr_err err = FR_ERR_INIT;
    char path[128];

    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    if (fr_segment_open(AT_FDCWD, path, geteuid(), &r->s, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        _exit(1);
    }
}

void reader_take(struct reader *r)
{
    uint64_t lost = 0;

    CHECK(fr_segment_refresh(r->s, NULL) >= 0);
    CHECK(fr_segment_drain(r->s, take, r, &lost, NULL) >= 0);
    r->lost += lost;
    CHECK(fr_segment_comms(r->s, NULL) >= 0);
}

void reader_close(struct reader *r)
{
    fr_segment_free(r->s);
    free(r->r);
}

uint64_t reader_dropped(struct reader *r)
{
    CHECK(fr_segment_refresh(r->s, NULL) >= 0);
    return fr_segment_header(r->s)->dropped;
}

const struct fr_seg_comm *reader_comm(struct reader *r, const char *name, uint32_t instance)
{
    for (uint32_t i = 0; i < FR_SEG_COMMS; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(r->s, i);

        if (c && strcmp(c->name, name) == 0 && c->instance == instance)
            return c;
    }
    return NULL;
}
