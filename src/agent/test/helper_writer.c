/* SPDX-License-Identifier: Apache-2.0 */
/* helper_writer.c - see helper_writer.h */
#define _GNU_SOURCE
#include "helper_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "sense/proc/process.h"

static void need(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

static struct fr_seg_lane *lane_of(struct writer *w, uint32_t lane)
{
    return (struct fr_seg_lane *)(w->base + w->h->lane_off + (size_t)lane * w->h->lane_bytes);
}

static uint64_t open_version(uint64_t *version)
{
    uint64_t v = __atomic_load_n(version, __ATOMIC_RELAXED);

    __atomic_store_n(version, v + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return v + 2;
}

static void close_version(uint64_t *version, uint64_t v)
{
    __atomic_store_n(version, v, __ATOMIC_RELEASE);
}

void writer_open(struct writer *w, const char *dir, const struct writer_claims *c, uint32_t pid,
                 uint32_t lanes, uint32_t records)
{
    struct fr_proc_stat st = {0};
    uint32_t step_off = FR_SEG_HEADER_BYTES,
             comm_off = step_off + FR_SEG_STEPS * (uint32_t)sizeof(struct fr_seg_step);
    uint32_t lane_off = comm_off + 32 * (uint32_t)sizeof(struct fr_seg_comm);
    uint32_t lane_bytes =
        (uint32_t)(sizeof(struct fr_seg_lane) + records * sizeof(struct fr_record));
    size_t total = lane_off + (size_t)lanes * lane_bytes;
    char temporary[600];
    int fd;

    memset(w, 0, sizeof *w);
    if (!pid)
        pid = (uint32_t)getpid();
    fr_proc_stat_read("", pid, &st);
    snprintf(w->path, sizeof w->path, "%.400s/fr-%u.seg", dir, pid);
    snprintf(temporary, sizeof temporary, "%s.new", w->path);
    fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    need(fd >= 0, temporary);
    need(ftruncate(fd, (off_t)total) == 0, "ftruncate");
    w->base = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(w->base != MAP_FAILED, "mmap");
    close(fd);
    w->h = (struct fr_seg_header *)w->base;
    w->steps = (struct fr_seg_step *)(w->base + step_off);
    w->comms = (struct fr_seg_comm *)(w->base + comm_off);
    *w->h = (struct fr_seg_header){.magic = FR_RING_MAGIC,
                                   .version = FR_RING_VERSION,
                                   .header_bytes = FR_SEG_HEADER_BYTES,
                                   .total_bytes = total,
                                   .step_off = step_off,
                                   .step_bytes = sizeof(struct fr_seg_step),
                                   .step_count = FR_SEG_STEPS,
                                   .comm_off = comm_off,
                                   .comm_bytes = sizeof(struct fr_seg_comm),
                                   .comm_count = 32,
                                   .lane_off = lane_off,
                                   .lane_bytes = lane_bytes,
                                   .lane_count = lanes,
                                   .lane_records = records,
                                   .record_bytes = sizeof(struct fr_record),
                                   .level = FR_PROBE_PERF,
                                   .sources = FR_SOURCE_MARKS | FR_SOURCE_MPI,
                                   .clock = FR_CLOCK_MONOTONIC,
                                   .pid = pid,
                                   .uid = (uint32_t)getuid(),
                                   .starttime = st.starttime,
                                   .rank = c->rank,
                                   .world = c->world,
                                   .attempt = c->attempt,
                                   .epoch = c->epoch,
                                   .rank_tid = pid,
                                   .lanes_used = lanes};
    w->h->clock_ticks0 = w->h->clock_mono0_ns = fr_mono_ns();
    w->h->start_unix_ns = fr_unix_ns();
    snprintf(w->h->job, sizeof w->h->job, "%s", c->job);
    for (uint32_t i = 0; i < lanes; i++)
        lane_of(w, i)->owner = i ? pid + i : pid;
    need(rename(temporary, w->path) == 0, "rename");
}

void writer_comm(struct writer *w, uint32_t i, uint64_t hash, uint32_t size, uint32_t rank,
                 const char *name)
{
    struct fr_seg_comm *c = &w->comms[i];
    uint64_t v = open_version(&c->version);

    c->members_hash = hash;
    c->size = size;
    c->rank = rank;
    c->nruns = 1;
    c->runs[0] = (struct fr_seg_run){0, 1, size};
    snprintf(c->name, sizeof c->name, "%s", name);
    close_version(&c->version, v);
    if (w->h->comm_used <= i)
        __atomic_store_n(&w->h->comm_used, i + 1, __ATOMIC_RELEASE);
}

void writer_comm_next(struct writer *w, uint32_t i)
{
    struct fr_seg_comm *c = &w->comms[i];
    uint64_t v = open_version(&c->version);

    c->instance++;
    c->t_since = fr_mono_ns();
    c->enqueued = c->started = c->completed = c->t_enqueued = c->t_completed = 0;
    close_version(&c->version, v);
}

static void put(struct writer *w, uint32_t lane, const struct fr_record *r)
{
    struct fr_seg_lane *l = lane_of(w, lane);
    struct fr_record *slot = (struct fr_record *)(l + 1) + l->head % w->h->lane_records;

    __atomic_thread_fence(__ATOMIC_RELEASE);
    *slot = *r;
    slot->index = (uint32_t)l->head;
    __atomic_store_n(&l->head, l->head + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&l->calls, l->calls + 1, __ATOMIC_RELAXED);
}

void writer_collective(struct writer *w, uint32_t lane, uint32_t comm, uint32_t op, uint64_t bytes,
                       uint64_t ns, uint64_t step)
{
    struct fr_seg_comm *c = &w->comms[comm];
    struct fr_record r = {.bytes = bytes,
                          .step = (uint32_t)step,
                          .comm = (uint16_t)comm,
                          .op = (uint8_t)op,
                          .dtype = FR_DTYPE_FLOAT32,
                          .peer = -1};
    uint64_t v = open_version(&c->version);

    c->enqueued++;
    c->started = c->completed = c->enqueued;
    c->t_completed = fr_mono_ns();
    c->t_enqueued = c->t_completed - ns;
    c->op = op;
    c->op_bytes = bytes;
    r.seq = (uint32_t)c->enqueued;
    r.t_enq = r.t_start = c->t_enqueued;
    r.t_end = c->t_completed;
    close_version(&c->version, v);
    put(w, lane, &r);
}

void writer_now(struct writer *w, uint32_t lane, uint32_t comm, uint32_t op, uint64_t seq)
{
    struct fr_seg_now *n = &lane_of(w, lane)->now;
    uint64_t v = open_version(&n->version);

    n->t_enter = fr_mono_ns();
    n->comm = comm;
    n->op = op;
    n->seq = seq;
    n->peer = -1;
    close_version(&n->version, v);
}

void writer_step_begin(struct writer *w, uint64_t step)
{
    struct fr_seg_step *s = &w->steps[step % FR_SEG_STEPS];
    uint64_t v = open_version(&w->h->marks_version), u = open_version(&s->version);

    s->step = step;
    s->t_begin = fr_mono_ns();
    s->t_end = 0;
    close_version(&s->version, u);
    w->h->step = step;
    w->h->phase = 3;
    close_version(&w->h->marks_version, v);
}

void writer_step_end(struct writer *w, uint64_t step, double loss)
{
    struct fr_seg_step *s = &w->steps[step % FR_SEG_STEPS];
    struct fr_record r = {.seq = (uint32_t)step,
                          .step = (uint32_t)step,
                          .comm = FR_COMM_NONE,
                          .op = FR_OP_STEP,
                          .peer = -1};
    uint64_t u = open_version(&s->version);

    s->t_end = fr_mono_ns();
    s->loss = loss;
    s->tokens = 1024;
    s->self_ns = (s->t_end - s->t_begin) / 2;
    s->in_calls_ns = (s->t_end - s->t_begin) - s->self_ns;
    close_version(&s->version, u);
    r.t_enq = r.t_start = s->t_begin;
    r.t_end = s->t_end;
    put(w, 0, &r);
}

void writer_finalize(struct writer *w)
{
    uint64_t v = open_version(&w->h->marks_version);

    w->h->finalized = 1;
    close_version(&w->h->marks_version, v);
}

void writer_close(struct writer *w, int remove_file)
{
    munmap(w->base, w->h->total_bytes);
    if (remove_file)
        unlink(w->path);
}
