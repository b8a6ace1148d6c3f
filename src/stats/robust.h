/* SPDX-License-Identifier: Apache-2.0 */
/*
 * robust.h - location and scale that a few wild values cannot move
 *
 * A rank that is late must be seen against its peers without itself moving the
 * measure; median and MAD stand until half of the sample is wild.
 *
 * Unit:    that of the input.
 * Shape:   v and weights have n elements; scratch has n (weighted median: 2 n)
 *          and holds nothing of use afterwards; it may be v itself where v need
 *          not be kept.
 * Error:   exact.
 * Memory:  the caller's scratch; nothing here allocates.
 * Threads: any.
 * Source:  Hoare, "Algorithm 65: Find", CACM 4(7), 1961; Hyndman, Fan, "Sample
 *          Quantiles in Statistical Packages", Am. Stat. 50(4), 1996, definition
 *          7; Rousseeuw, Croux, "Alternatives to the Median Absolute Deviation",
 *          JASA 88, 1993, for the factor 1.4826.
 *
 * Every function returns 0 and sets its result; -ENODATA for n == 0; -EINVAL
 * when a value is NaN; and then leaves the result as it was.
 */
#ifndef FR_STATS_ROBUST_H
#define FR_STATS_ROBUST_H

#include <stddef.h>

/* MAD times this estimates the standard deviation of a normal sample: 1 / Phi^-1(3/4). */
#define FR_MAD_SCALE 1.482602218505602

int fr_robust_median(const double *v, size_t n, double *scratch, double *ret);

/* The q-quantile, 0 <= q <= 1, by linear interpolation; -EDOM when q is out of range. O(n) on
 * average. */
int fr_robust_quantile(const double *v, size_t n, double q, double *scratch, double *ret);

/* FR_MAD_SCALE x median of |v - median|, and the median itself (ret_median may be NULL). */
int fr_robust_mad(const double *v, size_t n, double *scratch, double *ret_median, double *ret_mad);

/* Mean without the floor(trim * n) smallest and as many largest; 0 <= trim < 0.5, else -EDOM. */
int fr_robust_trimmed_mean(const double *v, size_t n, double trim, double *scratch, double *ret);

/* The value at which half of the weight is reached; the middle of two when it is reached exactly
 * between them. scratch: 2 n. -EINVAL also for a negative, infinite or NaN weight, -ENODATA also
 * when all are zero. */
int fr_robust_weighted_median(const double *v, const double *weights, size_t n, double *scratch,
                              double *ret);

/* Reorder v so that v[k] is what sorting would put there, nothing before it larger, nothing behind
 * it smaller; k < n, no NaN. Returns v[k]. O(n) on average. */
double fr_robust_select(double *v, size_t n, size_t k);

#endif /* FR_STATS_ROBUST_H */
