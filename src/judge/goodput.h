/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goodput.h - every nanosecond of a job's wall time in exactly one bucket
 *
 * Law 7: the buckets add up to wall time. The account is a partition of the time line
 * [submitted, ended or now): spans are cut at each other's edges and each piece goes to one
 * bucket, so the sum is exact by construction, in integers.
 *
 * Unit:    ns; all times on one clock (t_unix_ns of the controller).
 * Source:  definitions: doc/explain/goodput.md; neighbours': Google ml-goodput-measurement, Meta
 * ETTR.
 */
#ifndef FR_JUDGE_GOODPUT_H
#define FR_JUDGE_GOODPUT_H

#include <stddef.h>
#include <stdint.h>

enum fr_bucket {
    FR_BUCKET_PRODUCTIVE = 0, /* steps that count in the end, at the job's own good pace */
    FR_BUCKET_STRAGGLE, /* what those steps took beyond it from the onset of a slow finding to its
                           end */
    FR_BUCKET_HANG_UNDETECTED, /* from the last movement to the finding */
    FR_BUCKET_HANG_DETECTED,   /* from the finding to the end of the attempt */
    FR_BUCKET_REWORK,     /* steps that were done and lost with their attempt, done again later */
    FR_BUCKET_RESTORE,    /* reading a checkpoint */
    FR_BUCKET_CHECKPOINT, /* the job stands while a checkpoint is written */
    FR_BUCKET_LAUNCH, /* from the start of an attempt's processes to its first step, without restore
                       */
    FR_BUCKET_TEARDOWN, /* from the end of work to the end of the processes */
    FR_BUCKET_QUEUE,    /* waiting for nodes: before the first attempt and between attempts */
    FR_BUCKET_OTHER,    /* evaluation, idle and what nothing explains */
    FR_BUCKETS
};

struct fr_gp_attempt {
    int64_t start_ns; /* processes started */
    int64_t end_ns;   /* processes gone, 0: still running */
    int64_t stop_ns;  /* its end was ordered or it failed, 0: not (yet) */
    int64_t moved_ns; /* of a job that marks no steps: all ranks had completed a collective, 0: not
                       * (yet), or it marks steps. Launch ends here; what follows is other. */
};
struct fr_gp_step {   /* job-wide: begin = first rank's begin, end = last rank's end */
    uint32_t attempt; /* index into attempts */
    uint64_t step;
    int64_t begin_ns, end_ns;
};
struct fr_gp_span {          /* job-wide phase: restore, checkpoint, eval */
    uint32_t attempt, phase; /* enum fullrank_phase */
    int64_t begin_ns, end_ns;
};
struct fr_gp_trouble { /* a finding that stood: hang, dead or slow */
    uint32_t attempt;
    int slow;                 /* 1: slow, 0: hang or dead */
    int64_t begin_ns;         /* slow: its onset; hang, dead: newest movement before it */
    int64_t named_ns, end_ns; /* end 0: still standing */
};
struct fr_gp_input {
    int64_t submitted_ns, now_ns; /* now: the job's end when it has ended */
    const struct fr_gp_attempt *attempts;
    const struct fr_gp_step *steps; /* any order */
    const struct fr_gp_span *spans;
    const struct fr_gp_trouble *troubles;
    size_t nattempts, nsteps, nspans, ntroubles;
    double baseline_step_s; /* NaN: the median of kept steps outside of trouble is used */
};
struct fr_gp_account {
    int64_t bucket_ns[FR_BUCKETS];
    int64_t wall_ns; /* = the sum of all buckets */
    uint64_t steps_kept, steps_redone;
    double baseline_step_s;
    double goodput_ratio; /* productive / wall; NaN when wall is 0, or when it ran and marks no
                             steps */
};

/* Returns 0, or -EINVAL for an input that cannot be (an end before its begin, an attempt index out
 * of range); allocates scratch of the input's size and frees it. */
int fr_goodput(const struct fr_gp_input *in, struct fr_gp_account *ret);

const char *fr_bucket_name(enum fr_bucket b); /* "productive", "straggle", "hang_undetected", ... */
const char *fr_bucket_text(enum fr_bucket b); /* one sentence */

/* Model FLOPs utilisation: flops / (seconds x ranks x peak). NaN when something is not known. */
double fr_mfu(double flops, double seconds, uint32_t ranks, double peak_flops_per_rank);

#endif /* FR_JUDGE_GOODPUT_H */
