/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ring.c - the segment reader before arbitrary memory of a rank
 *
 * First byte even: the rest is the file. Odd: the rest is patches (offset, length, bytes) over a
 * right segment, half of them before it is opened and half while it is read, as a hostile
 * rank would do it. Whatever the file says, a look takes at most one lap of each lane.
 *
 * fuzz links: fr_wire src/wire/test/helper_segment.c
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/wire/test/helper_segment.h"
#include "wire/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t records_seen;

static void count(void *arg, uint32_t lane, uint64_t index, const struct fr_record *r)
{
    (void)index;
    if (lane >= FR_SEG_MAX_LANES || r->t_end < r->t_start ||
        (r->comm != FR_COMM_NONE &&
         r->comm >= fr_segment_header((struct fr_segment *)arg)->comm_count))
        abort();
    records_seen++;
}

static void look(struct fr_segment *s)
{
    const struct fr_seg_header *h = fr_segment_header(s);
    struct fr_err err = FR_ERR_INIT;
    struct fr_seg_step step;
    struct fr_seg_lane lane;
    uint64_t lost;

    fr_segment_refresh(s, &err);
    records_seen = 0;
    fr_segment_drain(s, count, s, &lost, &err);
    if (records_seen > (uint64_t)h->lane_count * h->lane_records)
        abort();
    fr_segment_comms(s, &err);
    for (uint32_t i = 0; i < FR_SEG_MAX_COMMS; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(s, i);

        if (c && (memchr(c->name, 0, sizeof c->name) == NULL || c->nruns > FR_COMM_RUNS))
            abort();
    }
    for (uint32_t i = 0; i < FR_SEG_MAX_LANES; i++)
        if (fr_segment_lane(s, i, &lane) == 0)
            fr_segment_ns(s, lane.now.t_enter);
    fr_segment_step(s, h->step, &step, &err);
    fr_segment_step(s, UINT64_MAX, &step, &err);
}

/* Apply patches; returns how many bytes of them were used. */
static size_t patch(struct made *m, const uint8_t *p, size_t n)
{
    size_t used = 0;

    while (n - used >= 4) {
        size_t at = (p[used] | (size_t)p[used + 1] << 8) % sizeof *m, len = p[used + 2] % 16u + 1;

        used += 3;
        if (len > n - used)
            len = n - used;
        if (len > sizeof *m - at)
            len = sizeof *m - at;
        memcpy((char *)m + at, p + used, len);
        used += len;
    }
    return used;
}

static void write_file(const char *path, const void *p, size_t n)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    struct fr_segment *s = NULL;
    struct made m;
    size_t half = size / 2;

    if (size < 1)
        return 0;
    if (!path[0])
        snprintf(path, sizeof path, "/dev/shm/fr-fuzz-%d", (int)getpid());
    made_right(&m, 20);
    if (data[0] & 1)
        patch(&m, data + 1, half > 0 ? half - 1 : 0);
    if (data[0] & 1)
        write_file(path, &m, sizeof m);
    else
        write_file(path, data + 1, size - 1);
    if (fr_segment_open(AT_FDCWD, path, (uid_t)-1, &s, NULL) == 0) {
        look(s);
        if (data[0] & 1) {
            patch(&m, data + half, size - half);
            write_file(path, &m, data[0] & 2 ? sizeof m : size % sizeof m);
        }
        look(s);
        fr_segment_free(s);
    }
    unlink(path);
    return 0;
}
