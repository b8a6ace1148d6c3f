/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_series.h - figures of NCCL's operations under the open names that dashboards know already
 *
 * NVIDIA's Inspector exports nccl_bus_bandwidth_gbs and its kin as text files of each process;
 * dashboards are built on these names and labels. Here they come out of the records that agents
 * forward, over all ranks of a communicator; the series of single ranks, which are many, only for a
 * job that somebody has asked about just now (/metrics?ranks=JOB).
 *
 * What they mean is Inspector's: the time that an operation took on a rank, with its waiting for
 * later ranks in it. So the bandwidth of a rank says how late the others were as much as how fast
 * the network is; the true one is fullrank_group_bus_bandwidth_bytes_per_second.
 *
 * Unit:    microseconds; GB/s of 1e9 bytes; message sizes in powers of 1024 with a "KB" (as
 * Inspector writes them). Range:   FR_NCCL_SERIES of a job, and FR_NCCL_RANK_SERIES more while
 * ranks are asked for; what finds no room is counted. A value is over the newest 30 to 60 s of
 * forwarded steps; then the series ends. Memory:  72 bytes a series; nothing for a job without
 * NCCL. Threads: the loop thread. Source:  NVIDIA/nccl, plugins/profiler/inspector, README (names,
 * labels) and the Grafana template beside it.
 */
#ifndef FR_CONTROL_NCCL_SERIES_H
#define FR_CONTROL_NCCL_SERIES_H

#include <stdint.h>

#include "control/state.h"
#include "judge/judge.h"

#define FR_NCCL_SERIES      2048
#define FR_NCCL_RANK_SERIES 65536
#define FR_NCCL_WINDOW_NS   30000000000ull
#define FR_NCCL_RANKS_NS                                                                           \
    300000000000ull /* single ranks are kept so long after they were asked for */

struct fr_nccl_window {
    uint32_t count, nlog;
    double us;     /* sum of times */
    double log_bw; /* sum of logarithms of bus bandwidths: their mean is the geometric one */
};

struct fr_nccl_series {
    uint64_t hash; /* 0: free place */
    uint32_t instance;
    int32_t rank;      /* -1: all of the communicator */
    uint64_t size_low; /* lower end of the message size's range */
    uint32_t op, window;
    struct fr_nccl_window now, before;
};

struct fr_nccl; /* of one job */
void fr_nccl_free(struct fr_nccl *n);

/* A record of a job whose ranks use NCCL. comm may be NULL: not known by name. */
void fr_nccl_record(struct fr_ctl *c, struct fr_cjob *j, const struct fr_ccomm *comm, uint32_t rank,
                    const struct fr_obs_record *o);

/* Operations that found no room. */
uint64_t fr_nccl_refused(const struct fr_cjob *j);

/* A new attempt: its communicators are others. */
void fr_nccl_reset(struct fr_cjob *j);

/* From now on, for a while, keep single ranks as well. */
void fr_nccl_want_ranks(struct fr_ctl *c, struct fr_cjob *j);

/* What is shown of a series; NaN where nothing is. */
struct fr_nccl_figures {
    double us, busbw_gbs;
};
/* The i-th place: 1 and its figures, 0: nothing there, -1: behind the last one. */
int fr_nccl_at(const struct fr_ctl *c, const struct fr_cjob *j, size_t i,
               const struct fr_nccl_series **ret, struct fr_nccl_figures *figures);

/* "4-5MB": the range of sizes that begins at low. Returns text. */
char *fr_nccl_size_text(uint64_t low, char *text, size_t n);
uint64_t fr_nccl_size_low(uint64_t bytes);

#endif /* FR_CONTROL_NCCL_SERIES_H */
