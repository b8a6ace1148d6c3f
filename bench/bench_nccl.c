/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_nccl.c - what the NCCL plugin costs a callback and a collective
 *
 * Plays the callbacks of ungrouped all-reduces of 8 channels, in NCCL's order, into an empty plugin
 * and into libfullrank-nccl.so; the difference counts, beside a clock read in the same run. At
 * level hang NCCL sends no kernel events, so none are played. A run in which an operation was
 * dropped is no figure.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "probe/nccl/abi.h"
#include "wire/ring.h"

#define REPEATS  15
#define CALLS    5000
#define CHANNELS 8

static int empty_start(void *context, void **ret, struct fr_nccl_descr_v6 *d)
{
    (void)context, (void)d;
    *ret = ret;
    return 0;
}

static int empty_stop(void *handle)
{
    (void)handle;
    return 0;
}

static int empty_record(void *handle, int state, union fr_nccl_state_args *args)
{
    (void)handle, (void)state, (void)args;
    return 0;
}

static const struct fr_nccl_profiler_v6 empty = {"empty",    NULL,         empty_start,
                                                 empty_stop, empty_record, NULL};

/* One call; returns how many callbacks it made. */
static int play(const struct fr_nccl_profiler_v6 *p, void *context, int channels, uint64_t seq)
{
    struct fr_nccl_descr_v6 d = {.type = FR_NCCL_GROUP_API, .group_api = {.depth = 1}};
    union fr_nccl_state_args args = {{0}};
    void *api, *call, *group, *coll, *h[CHANNELS];
    uint64_t now = (uint64_t)bench_now_ns();

    p->start_event(context, &api, &d);
    p->record_event_state(api, FR_NCCL_GROUP_START_API_STOP, &args);
    d.type = FR_NCCL_COLL_API;
    d.parent = api;
    p->start_event(context, &call, &d);
    p->stop_event(call);
    p->record_event_state(api, FR_NCCL_GROUP_END_API_START, &args);
    d.type = FR_NCCL_GROUP;
    p->start_event(context, &group, &d);
    d = (struct fr_nccl_descr_v6){.type = FR_NCCL_COLL, .parent = call};
    d.coll = (struct fr_nccl_coll_v5){.seq = seq,
                                      .func = "AllReduce",
                                      .count = 1 << 20,
                                      .datatype = "ncclFloat32",
                                      .channels = CHANNELS,
                                      .algo = "RING",
                                      .proto = "SIMPLE",
                                      .parent_group = group};
    p->start_event(context, &coll, &d);
    p->stop_event(coll);
    p->stop_event(group);
    p->stop_event(api);
    d = (struct fr_nccl_descr_v6){.type = FR_NCCL_KERNEL_CH, .parent = coll};
    for (int i = 0; i < channels; i++) {
        d.kernel_ch = (struct fr_nccl_kernel_ch){(uint8_t)i, now + (uint64_t)i};
        p->start_event(context, &h[i], &d);
    }
    for (int i = 0; i < channels; i++) {
        args.kernel_ch.timer = now + 20 + (uint64_t)i;
        p->record_event_state(h[i], FR_NCCL_KERNEL_CH_STOP, &args);
        p->stop_event(h[i]);
    }
    return 11 + 3 * channels;
}

static double repeat(const struct fr_nccl_profiler_v6 *p, void *context, int channels, int *ret_n)
{
    double t0 = bench_now_ns();

    for (uint64_t i = 0; i < CALLS; i++)
        *ret_n = play(p, context, channels, i);
    return (bench_now_ns() - t0) / CALLS;
}

/* Events that the plugin dropped, -1: not known. */
static int64_t dropped(const char *dir)
{
    struct fr_seg_header h;
    char path[128];
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    fd = open(path, O_RDONLY);
    n = fd >= 0 ? read(fd, &h, sizeof h) : -1;
    if (fd >= 0)
        close(fd);
    return n == (ssize_t)sizeof h ? (int64_t)h.dropped : -1;
}

static int measure(const char *level, int channels, const char *dir)
{
    double call[REPEATS], callback[REPEATS], call_clocks[REPEATS], clocks[REPEATS], sink = 0;
    const struct fr_nccl_profiler_v6 *ours;
    void *library, *context = NULL;
    char line[64];
    int mask = 0, n = 0;

    setenv("FULLRANK_PROBE", level, 1);
    library = dlopen(FR_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ours = library ? dlsym(library, FR_NCCL_SYMBOL_V6) : NULL;
    if (!ours || ours->init(&context, 1, &mask, "bench", 1, 8, 0, NULL) != 0 || !context)
        return 1;
    for (int r = 0; r < REPEATS; r++) {
        double base = repeat(&empty, NULL, channels, &n), t0, clock_ns;

        call[r] = repeat(ours, context, channels, &n) - base;
        t0 = bench_now_ns();
        for (int i = 0; i < 100000; i++)
            sink += bench_now_ns();
        clock_ns = (bench_now_ns() - t0) / 100000;
        callback[r] = call[r] / n;
        clocks[r] = callback[r] / clock_ns;
        call_clocks[r] = call[r] / clock_ns;
    }
    snprintf(line, sizeof line, "nccl_%s_callback", level);
    bench_print(line, callback, REPEATS, "ns");
    snprintf(line, sizeof line, "nccl_%s_callback_in_clock_reads", level);
    bench_print(line, clocks, REPEATS, "clock_gettime");
    snprintf(line, sizeof line, "nccl_%s_collective", level);
    bench_print(line, call, REPEATS, "ns");
    snprintf(line, sizeof line, "nccl_%s_collective_in_clock_reads", level);
    bench_print(line, call_clocks, REPEATS, "clock_gettime");
    if (dropped(dir) != 0)
        fprintf(stderr, "bench_nccl: %lld operations were dropped\n", (long long)dropped(dir));
    return dropped(dir) != 0 || sink == 0;
}

/* bench_nccl [hang|perf]: one level a process, since a process has one segment. */
int main(int argc, char **argv)
{
    const char *level = argc > 1 ? argv[1] : "perf";
    char dir[] = "/dev/shm/fr-bench-XXXXXX", path[128];
    int rc;

    if (!mkdtemp(dir))
        return 1;
    setenv("FULLRANK_PROBE_DIR", dir, 1);
    rc = measure(level, strcmp(level, "hang") == 0 ? 0 : CHANNELS, dir);
    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    unlink(path);
    rmdir(dir);
    return rc;
}
