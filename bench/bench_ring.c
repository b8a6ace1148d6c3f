/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ring.c - what the rank pays to write a record, and the agent to read one
 *
 * One thread each way, one after the other: the ring in the cache of one core. The callback is
 * what a wrapper does without its two clock reads: account, show, hide, record.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "probe/probe.h"
#include "wire/segment.h"

#define REPEATS 21
#define EVENTS  200000

static uint64_t seen;

static void count(void *arg, uint32_t lane, uint64_t index, const struct fr_record *r)
{
    (void)arg, (void)lane, (void)index;
    seen += r->bytes;
}

static void write_record(struct fr_lane *l, uint64_t i)
{
    struct fr_record *r = fr_lane_record(l);

    r->t_enq = r->t_start = i;
    r->t_end = i + 1;
    r->bytes = 1;
    r->seq = (uint32_t)i;
    r->comm = 0;
    r->op = FR_OP_ALLREDUCE;
    r->dtype = r->flags = r->algo = r->proto = r->channels = 0;
    r->peer = -1;
    fr_lane_commit(l);
}

int main(void)
{
    double clock_ns[REPEATS], tick_ns[REPEATS], write_ns[REPEATS], callback_ns[REPEATS];
    double drain_ns[REPEATS], idle_ns[REPEATS], ready_ns[REPEATS];
    char dir[] = "/dev/shm/fr-bench-XXXXXX", path[64];
    struct fr_err err = FR_ERR_INIT;
    struct fr_segment *s = NULL;
    volatile uint64_t sink = 0;
    struct fr_lane *l;

    if (!mkdtemp(dir))
        return 1;
    setenv("FULLRANK_PROBE_DIR", dir, 1);
    if (!fr_probe_open() || !(l = fr_lane_begin()))
        return 1;
    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    if (fr_segment_open(AT_FDCWD, path, geteuid(), &s, &err) < 0) {
        fprintf(stderr, "bench_ring: %s\n", err.text);
        return 1;
    }
    for (int r = 0; r < REPEATS; r++) {
        double t0 = bench_now_ns(), t1;

        for (int i = 0; i < EVENTS; i++)
            sink += (uint64_t)bench_now_ns();
        t1 = bench_now_ns();
        clock_ns[r] = (t1 - t0) / EVENTS;
        for (int i = 0; i < EVENTS; i++)
            sink += fr_ticks();
        t0 = bench_now_ns();
        tick_ns[r] = (t0 - t1) / EVENTS;
        for (uint64_t i = 0; i < EVENTS; i++)
            write_record(l, i);
        t1 = bench_now_ns();
        write_ns[r] = (t1 - t0) / EVENTS;
        for (uint64_t i = 0; i < EVENTS; i++) {
            fr_lane_enter(l, l->t_last + 10);
            fr_lane_now(l, i, FR_OP_ALLREDUCE, 0, i, 4, -1, 0);
            write_record(l, i);
            fr_lane_leave(l, l->t_last + 10, l->t_last + 20);
        }
        t0 = bench_now_ns();
        callback_ns[r] = (t0 - t1) / EVENTS;
    }
    for (int r = 0; r < REPEATS; r++) {
        double t0, t1;
        int64_t given = 0;

        fr_segment_refresh(s, &err);
        fr_segment_skip(s, &err);
        for (uint64_t i = 0; i < 4000; i++)
            write_record(l, i);
        t0 = bench_now_ns();
        given = fr_segment_drain(s, count, NULL, NULL, &err);
        t1 = bench_now_ns();
        drain_ns[r] = given > 0 ? (t1 - t0) / (double)given : 0;
        t0 = bench_now_ns();
        for (int i = 0; i < 1000; i++)
            fr_lane_read_ready(l, fr_ticks(), 0);
        ready_ns[r] = (bench_now_ns() - t0) / 1000;
        t0 = bench_now_ns();
        for (int i = 0; i < 1000; i++) {
            fr_segment_refresh(s, &err);
            fr_segment_drain(s, count, NULL, NULL, &err);
            fr_segment_comms(s, &err);
        }
        idle_ns[r] = (bench_now_ns() - t0) / 1000;
    }
    bench_print("clock_gettime", clock_ns, REPEATS, "ns");
    bench_print("probe_tick", tick_ns, REPEATS, "ns");
    bench_print("ring_write", write_ns, REPEATS, "ns/record");
    bench_print("probe_callback_without_clock", callback_ns, REPEATS, "ns/call");
    bench_print("ring_drain", drain_ns, REPEATS, "ns/record");
    bench_print("probe_run_queue_read_at_most_1_per_ms", ready_ns, REPEATS, "ns/read");
    bench_print("segment_look_at_idle_rank", idle_ns, REPEATS, "ns/look");
    fr_segment_free(s);
    unlink(path);
    rmdir(dir);
    return sink == 0 || seen == 0;
}
