/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changepoint.h - since when is it different, and by how much
 *
 * Two tools. The CUSUM watches a stream against a level that is known and raises
 * its hand soon after a small lasting shift; it remembers where the shift began.
 * The shift search looks back over a finished series for the one place that
 * splits it best, and lets only those through that a person would call a change:
 * long enough, large enough, and clear of the noise.
 *
 * Unit:    that of the input; positions are indices from the first sample, from 0.
 * Memory:  fixed, or the caller's scratch; nothing here allocates.
 * Threads: none; one owner at a time.
 * Source:  Page, "Continuous Inspection Schemes", Biometrika 41, 1954; Montgomery,
 *          "Introduction to Statistical Quality Control", 7th ed., section 9.1.2
 *          (tabular CUSUM, onset from the counters N+ and N-); Hawkins, "Testing a
 *          Sequence of Observations for a Shift in Location", JASA 72, 1977
 *          (largest two-sample statistic over all splits); Davies, Gather, "The
 *          Identification of Multiple Outliers", JASA 88, 1993 (Hampel's identifier,
 *          for the spikes); the validation by 10 %
 *          and 10 samples from Wu et al., "Greyhound", USENIX ATC 2025.
 */
#ifndef FR_STATS_CHANGEPOINT_H
#define FR_STATS_CHANGEPOINT_H

#include <stddef.h>
#include <stdint.h>

/* ---- a stream against a known level ---- */

struct fr_cusum {
    double mean, sd;       /* the level, and the noise of one sample (> 0) */
    double slack, limit;   /* in sd: half the shift to be found; where to raise the hand */
    double up, down;       /* sums, in sd */
    uint64_t n;            /* samples seen */
    uint64_t n_up, n_down; /* samples since the sum was last zero */
};

/* Usual: slack 0.5, limit 5: one false alarm in about 465 samples of normal noise (a sample run of
 * both sides), a shift of 1 sd seen after about 10. -EINVAL unless all are finite, sd, slack and
 * limit above 0. */
int fr_cusum_init(struct fr_cusum *c, double mean, double sd, double slack, double limit);

/* Add a sample. +1: the level is higher, -1: lower, 0: neither; -EINVAL for NaN or infinity, which
 * changes nothing. The answer stays until the sum falls again or fr_cusum_reset. */
int fr_cusum_add(struct fr_cusum *c, double x);

/* The index of the first sample of the shift that fr_cusum_add told of (direction +1 or -1). */
uint64_t fr_cusum_since(const struct fr_cusum *c, int direction);

/* Forget the sums, keep level and count. */
void fr_cusum_reset(struct fr_cusum *c);

/* ---- looking back over a series ---- */

struct fr_shift_rule {
    size_t samples_min; /* each side must have so many */
    double ratio_min;   /* |after / before - 1| must exceed it */
    double z_min; /* two-sample statistic; 5 keeps false alarms on 1,000 samples of noise below 1 in
                     1,000 */
};

#define FR_SHIFT_RULE_DEFAULT                                                                      \
    {                                                                                              \
        .samples_min = 10, .ratio_min = 0.10, .z_min = 5.0                                         \
    }

struct fr_shift {
    size_t at;            /* first sample of the new level */
    double before, after; /* medians of the two sides */
    double ratio;         /* after / before - 1 */
    double z;             /* how clear of the noise; capped at 1e6 for noiseless series */
};

/* Find the split of x[0..n) with the largest two-sample statistic. scratch: n. Spikes shorter than
 * half of seven samples count as their surroundings; a level at either end that has not lasted
 * samples_min is left out until it has. 1 and *ret when the split passes the rule; 0 when nothing
 * does; -EINVAL for a value that is not finite or not above 0 (ratios have no meaning then). O(n),
 * or O(n^2 / samples_min) when many ends are left out. */
int fr_shift_find(const double *x, size_t n, const struct fr_shift_rule *rule, double *scratch,
                  struct fr_shift *ret);

#endif /* FR_STATS_CHANGEPOINT_H */
