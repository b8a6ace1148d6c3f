/* SPDX-License-Identifier: Apache-2.0 */
/* cross_main.c - ring, marks and the NCCL plugin without cmocka, for machines that are only
 * emulated here */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fullrank/fullrank.h"
#include "helper_nccl.h"
#include "helper_ring.h"
#include "probe/probe.h"
#include "wire/segment.h"

static int marks_are_read(const char *dir)
{
    const struct fullrank_step_result result = {1.5, 64};
    struct fr_seg_step step = {0};
    struct fr_err err = FR_ERR_INIT;
    struct fr_segment *s = NULL;
    char path[600];
    int rc;

    fullrank_step_begin(9);
    fullrank_step_end(&result);
    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    rc = fr_segment_open(AT_FDCWD, path, geteuid(), &s, &err);
    if (rc == 0)
        rc = fr_segment_step(s, 9, &step, &err);
    fr_segment_free(s);
    if (rc == 0 && step.loss == 1.5 && step.t_end >= step.t_begin)
        return 1;
    fprintf(stderr, "marks: %d %s\n", rc, err.text);
    return 0;
}

/* Collectives and an exchange by each version of the profiler interface. */
static void play_nccl(void)
{
    const struct played c = {.func = "AllGather",
                             .count = 1000,
                             .datatype = "ncclInt8",
                             .algo = "RING",
                             .proto = "LL",
                             .channels = 70};

    for (int v = 4; v <= 7; v++) {
        uint64_t start[20], end[20], now;
        struct player p;
        struct reader r;
        void *send;

        player_init(&p, v, (uint64_t)v, "x", 4, 0);
        CHECK(p.context);
        reader_open(&r);
        CHECK(fr_segment_skip(r.s, NULL) == 0);
        for (int i = 0; i < 20; i++)
            play_call(&p, &c, &start[i], &end[i]);
        now = nccl_gpu_now();
        send = play_p2p_start(&p, "Send", 1, 8, "ncclFloat64", 1, NULL);
        play_kernel(&p, send, 1, now, nccl_gpu_now() + 1);
        player_fini(&p);
        reader_take(&r);
        CHECK(r.n + reader_dropped(&r) >= 21 && r.n > 10);
        for (uint64_t i = 0; i < r.n; i++)
            CHECK(r.r[i].op == FR_OP_SEND ? r.r[i].bytes == 64
                                          : r.r[i].bytes == 4000 && r.r[i].channels == 70);
        reader_close(&r);
    }
}

int main(void)
{
    char dir[] = "/tmp/fr-cross-XXXXXX";
    struct ring_result r;
    int ok;

    if (!mkdtemp(dir))
        return 1;
    ok = nccl_child(play_nccl, NULL) == 0; /* first: a child of a watched process is not watched */
    setenv("FULLRANK_PROBE_DIR", dir, 1);
    ok &= marks_are_read(dir);
    /* The mark took the first record; the ring's own count starts behind it. */
    ring_run(dir, 2, 200000, 0, &r);
    rmdir(dir);
    printf("written %llu given %llu lost %llu wrong %llu %s\n", (unsigned long long)r.written,
           (unsigned long long)r.given, (unsigned long long)r.lost, (unsigned long long)r.wrong,
           r.error);
    return !(ok && !r.error[0] && r.wrong <= 1 && r.given + r.lost == r.written + 1);
}
