/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_job.h - run an MPI program under the shim and read its segments from outside
 *
 * Memory: records of all ranks are kept; a job of a test is small.
 */
#ifndef FR_PROBE_TEST_HELPER_JOB_H
#define FR_PROBE_TEST_HELPER_JOB_H

#include <sys/types.h>

#include "wire/segment.h"

#define JOB_RANKS 4

struct job {
    char dir[64]; /* temporary; the segments are in dir/seg */
    int ranks;
    pid_t pid;                         /* of mpirun */
    struct fr_segment *seg[JOB_RANKS]; /* by rank */
    struct fr_record *rec[JOB_RANKS];
    int nrec[JOB_RANKS];
    uint64_t lost[JOB_RANKS];
};

/* Start `program` (in build/test) with one argument; `env` is NULL or one more NAME=value. */
void job_start(struct job *j, const char *program, const char *scenario, int ranks,
               const char *env);

/* Wait until all ranks said that they are done, and open and read all segments. */
void job_done(struct job *j);

/* Open the segments of ranks that are still at work (they must have started MPI). */
void job_open(struct job *j);

/* Read all segments again. */
void job_read(struct job *j);

/* Let the ranks go, wait for the end, and return mpirun's exit status. Removes everything; fails
 * when a segment was left behind or when the job wrote to stderr. */
int job_end(struct job *j);

/* The slot of a communicator by name, or by members and instance; NULL: none. */
const struct fr_seg_comm *job_comm(const struct job *j, int rank, uint64_t hash, uint32_t instance);

/* FNV-1a over member ranks, written down a second time from its published definition. */
uint64_t job_hash(const int *ranks, int n);

#endif /* FR_PROBE_TEST_HELPER_JOB_H */
