/* SPDX-License-Identifier: Apache-2.0 */
/* helper_ring.c - see helper_ring.h */
#define _GNU_SOURCE
#include "helper_ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe/probe.h"
#include "wire/segment.h"

#define MAX_THREADS 32

struct writer {
    pthread_t thread;
    uint64_t records;
    uint32_t id;
    int *done;
};

/* A cheap mixer: each field tells its number apart from every other one's. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ull;
    x ^= x >> 27;
    return x * 0x81dadef4bc2dd44dull;
}

static void *write_all(void *arg)
{
    struct writer *w = arg;
    struct fr_lane *l = fr_lane_begin();

    for (uint64_t i = 0; l && i < w->records; i++) {
        struct fr_record *r = fr_lane_record(l);
        uint64_t n = i << 8 | w->id;

        r->t_enq = n;
        r->t_start = n + (mix(n) & 0xffff);
        r->t_end = r->t_start + 1;
        r->bytes = mix(n + 1);
        r->seq = (uint32_t)mix(n + 2);
        r->comm = (uint16_t)(i % FR_SEG_COMMS);
        r->op = (uint8_t)mix(n + 3);
        r->dtype = (uint8_t)mix(n + 4);
        r->flags = 0;
        r->algo = r->proto = r->channels = (uint8_t)i;
        r->peer = (int32_t)mix(n + 5);
        fr_lane_commit(l);
    }
    __atomic_fetch_add(w->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void check(void *arg, uint32_t lane, uint64_t index, const struct fr_record *r)
{
    struct ring_result *ret = arg;
    uint64_t n = r->t_enq, i = n >> 8;

    (void)lane;
    /* With several threads a lane may be handed on; then each writer's numbers only go up. */
    if (ret->last[n & 0xff] > i || (ret->threads == 1 && i != index) ||
        r->t_start != n + (mix(n) & 0xffff) || r->t_end != r->t_start + 1 ||
        r->bytes != mix(n + 1) || r->seq != (uint32_t)mix(n + 2) || r->comm != i % FR_SEG_COMMS ||
        r->op != (uint8_t)mix(n + 3) || r->dtype != (uint8_t)mix(n + 4) ||
        r->channels != (uint8_t)i || r->peer != (int32_t)mix(n + 5))
        ret->wrong++;
    ret->last[n & 0xff] = i;
}

void ring_run(const char *dir, int threads, uint64_t records, int slow, struct ring_result *ret)
{
    struct writer w[MAX_THREADS];
    struct fr_segment *s = NULL;
    struct fr_err err = FR_ERR_INIT;
    int done = 0, all, rc;
    char path[600];

    memset(ret, 0, sizeof *ret);
    ret->threads = threads;
    setenv("FULLRANK_PROBE_DIR", dir, 1);
    if (threads > MAX_THREADS || !fr_probe_open()) {
        snprintf(ret->error, sizeof ret->error, "no segment below %s", dir);
        return;
    }
    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    rc = fr_segment_open(AT_FDCWD, path, geteuid(), &s, &err);
    if (rc < 0) {
        snprintf(ret->error, sizeof ret->error, "%s", err.text);
        return;
    }
    for (int i = 0; i < threads; i++) {
        w[i] = (struct writer){.records = records, .id = (uint32_t)i, .done = &done};
        pthread_create(&w[i].thread, NULL, write_all, &w[i]);
    }
    do {
        uint64_t lost = 0;
        int64_t given;

        all = __atomic_load_n(&done, __ATOMIC_ACQUIRE) == threads;
        rc = fr_segment_refresh(s, &err);
        given = rc < 0 ? rc : fr_segment_drain(s, check, ret, &lost, &err);
        if (given < 0) {
            snprintf(ret->error, sizeof ret->error, "%s", err.text);
            break;
        }
        ret->given += (uint64_t)given;
        ret->lost += lost;
        if (slow && !all)
            usleep(3000);
    } while (!all);
    for (int i = 0; i < threads; i++)
        pthread_join(w[i].thread, NULL);
    ret->written = records * (uint64_t)threads;
    ret->lanes = (int)fr_segment_header(s)->lanes_used;
    fr_segment_free(s);
    unlink(path);
}
