/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ewma.h - a mean that forgets, over samples at any distance in time
 *
 * For rates and utilisations that arrive when they arrive: the weight of a sample
 * falls by half every half-life. The start is unbiased: after one sample the mean is
 * that sample, not a part of it.
 *
 * Memory:  fixed; nothing here allocates.
 * Threads: none; one owner at a time.
 * Source:  West, "Updating Mean and Variance Estimates: An Improved Method", CACM
 *          22(9), 1979 (weighted update), with weights 2^(-age / half-life).
 */
#ifndef FR_STATS_EWMA_H
#define FR_STATS_EWMA_H

struct fr_ewma {
    double half_life_s;
    double weight; /* sum of all weights, as of the last sample */
    double mean, m2;
};

/* half_life_s > 0 and finite, else -EINVAL. */
int fr_ewma_init(struct fr_ewma *e, double half_life_s);

/* Add x, dt_s (>= 0) after the sample before (ignored for the first). -EINVAL changes nothing. */
int fr_ewma_add(struct fr_ewma *e, double x, double dt_s);

/* Mean and standard deviation (of the weighted sample; 0 after one). -ENODATA when empty. ret_sd
 * may be NULL. */
int fr_ewma_value(const struct fr_ewma *e, double *ret_mean, double *ret_sd);

#endif /* FR_STATS_EWMA_H */
