/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - the last N values with their median at hand
 *
 * Step times and arrivals are judged against their own recent past; the values
 * are kept both in order of arrival and sorted, so that adding costs one
 * insertion and the median nothing.
 *
 * Range:   1 .. FR_WINDOW_MAX values.
 * Memory:  fixed, about 1 KiB; nothing here allocates.
 * Threads: none; one owner at a time.
 * Source:  Ekstrom, "Better Than Average", Embedded Systems Programming, 2000
 *          (running median by a sorted window).
 */
#ifndef FR_STATS_WINDOW_H
#define FR_STATS_WINDOW_H

#define FR_WINDOW_MAX 64

struct fr_window {
    unsigned cap, n; /* room, and how many values are there */
    unsigned next;   /* where the next value goes; the oldest one when full */
    double ring[FR_WINDOW_MAX];
    double sorted[FR_WINDOW_MAX]; /* the same n values, ascending */
};

/* Keep the last cap values; a cap out of range is brought into it. */
void fr_window_init(struct fr_window *w, unsigned cap);

/* Forget all values, keep the room. */
void fr_window_clear(struct fr_window *w);

/* Add one value, the oldest gives way. 0, or -EINVAL for NaN, which changes nothing. O(cap). */
int fr_window_add(struct fr_window *w, double v);

/* Value i in order of arrival, 0 the oldest; i < n. */
double fr_window_at(const struct fr_window *w, unsigned i);

/* 0, or -ENODATA when empty; the result is then as it was. */
int fr_window_median(const struct fr_window *w, double *ret);
int fr_window_mad(const struct fr_window *w, double *ret_median,
                  double *ret_mad); /* as fr_robust_mad */

/* As fr_robust_quantile. -EDOM, -ENODATA. */
int fr_window_quantile(const struct fr_window *w, double q, double *ret);

#endif /* FR_STATS_WINDOW_H */
