/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_log.h - what a job's log says of its failure: findings, and which of them came first
 *
 * Lines are judged one by one by the table (job_rules.h). What one line cannot say is added here:
 * two time-outs at one sequence of one group with other operations are a mismatch; a time-out while
 * a checkpoint is written is that; a launcher's block of lines is one finding; NCCL's lines get the
 * rank that its own lines at start gave to their process.
 *
 * The first cause is the finding with the lowest role (cause before origin before victims, see
 * job_log.rules); among equals the one that names a peer or the more certain component, then the
 * earlier line. Lines of one rule, rank, host and peer are one finding with a count.
 *
 * Range:   FR_JOB_FINDINGS_MAX findings; what is beyond is counted, and the first cause is kept in
 *          any case.
 * Memory:  bounded, 3 MiB and the rules, whatever is fed.
 * Threads: none; one owner at a time.
 */
#ifndef FR_SCAN_JOB_LOG_H
#define FR_SCAN_JOB_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "scan/job_rules.h"

#define FR_JOB_FINDINGS_MAX 4096u

struct fr_job_finding {
    char rule[32];
    struct fr_job_verdict is;
    uint64_t line_number, last_line_number; /* from 1 */
    uint64_t count;
    int64_t rank;            /* who printed it, or whom it is said of; -1: not told */
    char host[64], peer[64]; /* "": not told */
    char text[240];          /* the line, cut */
};

/* How far a rank was in its collectives when it gave up, by its own word. */
struct fr_job_progress {
    int64_t rank, enqueued, completed;
};

struct fr_job_log;

/* Borrows rules. */
struct fr_job_log *fr_job_log_new(const struct fr_job_rules *rules);
void fr_job_log_free(struct fr_job_log *log);
/* Any bytes, in any pieces. Always 0. */
int fr_job_log_feed(struct fr_job_log *log, const char *p, size_t n);
/* Everything is in: the last line is judged, the first cause found, the findings put in order: the
 * first cause, then the others by line. */
void fr_job_log_end(struct fr_job_log *log);

const struct fr_job_finding *fr_job_log_findings(const struct fr_job_log *log, size_t *ret_n);
/* NULL: nothing in the log tells of a failure; a note when there is nothing but notes. */
const struct fr_job_finding *fr_job_log_first(const struct fr_job_log *log);
/* The ranks whose progress was told for the widest group, lowest enqueued first. */
const struct fr_job_progress *fr_job_log_progress(const struct fr_job_log *log, size_t *ret_n);
uint64_t fr_job_log_lines(const struct fr_job_log *log);
uint64_t fr_job_log_dropped(const struct fr_job_log *log);

#endif /* FR_SCAN_JOB_LOG_H */
