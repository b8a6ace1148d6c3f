/* SPDX-License-Identifier: Apache-2.0 */
/* helper_segment.c - see helper_segment.h */
#include "helper_segment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void made_right(struct made *m, unsigned records)
{
    struct timespec ts;

    memset(m, 0, sizeof *m);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    m->hdr.magic = FR_RING_MAGIC;
    m->hdr.version = FR_RING_VERSION;
    m->hdr.header_bytes = FR_SEG_HEADER_BYTES;
    m->hdr.total_bytes = MADE_BYTES;
    m->hdr.step_off = offsetof(struct made, step);
    m->hdr.step_bytes = 128;
    m->hdr.step_count = MADE_STEPS;
    m->hdr.comm_off = offsetof(struct made, comm);
    m->hdr.comm_bytes = 256;
    m->hdr.comm_count = MADE_COMMS;
    m->hdr.lane_off = offsetof(struct made, lane);
    m->hdr.lane_bytes = sizeof(struct made_lane);
    m->hdr.lane_count = MADE_LANES;
    m->hdr.lane_records = MADE_RECORDS;
    m->hdr.record_bytes = 64;
    m->hdr.level = FR_PROBE_PERF;
    m->hdr.sources = FR_SOURCE_MPI;
    m->hdr.clock = FR_CLOCK_MONOTONIC;
    m->hdr.clock_ticks0 = m->hdr.clock_mono0_ns =
        (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    m->hdr.pid = (uint32_t)getpid();
    m->hdr.rank = 0;
    m->hdr.world = 1;
    m->hdr.comm_used = 1;
    m->hdr.lanes_used = 1;
    m->hdr.step = 3;
    strcpy(m->hdr.job, "made");
    m->step[3].version = 2;
    m->step[3].step = 3;
    m->comm[0].version = 2;
    m->comm[0].members_hash = 77;
    m->comm[0].size = 4;
    m->comm[0].nruns = 1;
    m->comm[0].runs[0] = (struct fr_seg_run){0, 1, 4};
    m->comm[0].enqueued = 9;
    m->lane[0].head.head = records;
    m->lane[0].head.owner = 1;
    for (unsigned i = 0; i < records; i++) {
        struct fr_record *r = &m->lane[0].record[i % MADE_RECORDS];

        r->t_enq = r->t_start = 1000 + i;
        r->t_end = 2000 + i;
        r->seq = i;
        r->index = i;
    }
}

void made_write(const struct made *m, const char *path, unsigned long bytes)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

    if (fd < 0 || write(fd, m, bytes) != (ssize_t)bytes)
        abort();
    close(fd);
}
