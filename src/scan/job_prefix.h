/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_prefix.h - what launchers, loggers and schedulers put in front of a message, and what it
 * tells
 *
 * Time stamps, ranks of torch, mpirun, MPICH and srun, hosts of NCCL, pdsh and syslog, pods of
 * kubectl, stern and compose, actors of Ray: taken off one after another, in any order.
 *
 * Memory:  none; texts are places in the line.
 * Threads: any.
 */
#ifndef FR_SCAN_JOB_PREFIX_H
#define FR_SCAN_JOB_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_job_prefix {
    size_t message;   /* where the message begins */
    int64_t rank;     /* -1: not told; the innermost that tells wins: the message's own "Rank N" */
    int64_t task;     /* a launcher's number (srun -l, mpirun): used where nothing else is told */
    int64_t pid;      /* NCCL, -1: not told */
    const char *host; /* NULL: not told */
    size_t host_n;
    bool nccl; /* the message is NCCL's own */
};

void fr_job_prefix_read(const char *p, size_t n, struct fr_job_prefix *ret);

#endif /* FR_SCAN_JOB_PREFIX_H */
