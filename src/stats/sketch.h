/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch.h - quantiles of durations, mergeable, with a bounded relative error
 *
 * Each rank keeps one sketch per phase of the step; an agent merges the
 * sketches of its node and the controller those of the job. Merging is exact:
 * it gives the same sketch as if one owner had seen every value.
 *
 * Unit:    seconds (double), everywhere in this file.
 * Range:   FR_SKETCH_MIN_S .. FR_SKETCH_MAX_S; below counts as zero,
 *          above counts in the last bucket (max_s still holds the true value).
 * Error:   a quantile is within FR_SKETCH_ALPHA (relative) of a value whose
 *          rank is the asked one.
 * Memory:  fixed, about 9 KiB; nothing here allocates, so it may be used
 *          inside a job.
 * Threads: none; one owner at a time.
 * Source:  Masson, Rim, Lee, "DDSketch: A Fast and Fully-Mergeable Quantile
 *          Sketch with Relative-Error Guarantees", PVLDB 12(12), 2019, sec. 2.
 */
#ifndef FR_STATS_SKETCH_H
#define FR_STATS_SKETCH_H

#include <stdint.h>

#define FR_SKETCH_ALPHA   0.01
#define FR_SKETCH_MIN_S   1e-6
#define FR_SKETCH_MAX_S   1e4
#define FR_SKETCH_BUCKETS 1153

struct fr_sketch {
    uint64_t total;                /* values added, zeros included */
    uint64_t zeros;                /* values below FR_SKETCH_MIN_S */
    double min_s;                  /* smallest value added; meaningless while total == 0 */
    double max_s;                  /* largest value added; likewise */
    uint64_t n[FR_SKETCH_BUCKETS]; /* n[i]: values in (MIN*g^(i-1), MIN*g^i] */
};

void fr_sketch_init(struct fr_sketch *sk);

/* Add one duration. Returns 0, or -EINVAL for a negative value, NaN or
 * infinity, and then leaves *sk as it was. */
int fr_sketch_add(struct fr_sketch *sk, double seconds);

/* Add all that `from` has seen to `into`; they must not be the same object. */
void fr_sketch_merge(struct fr_sketch *into, const struct fr_sketch *from);

/* Estimate the q-quantile, 0 <= q <= 1 (0.5 is the median). Returns 0 and sets
 * *ret_s; -EDOM when q is out of range; -ENODATA when the sketch is empty. */
int fr_sketch_quantile(const struct fr_sketch *sk, double q, double *ret_s);

#endif /* FR_STATS_SKETCH_H */
