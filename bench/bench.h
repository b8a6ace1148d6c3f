/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - one line per figure: name, median, unit, spread
 *
 * The spread is half the distance between the quartiles, in per cent of the median.
 */
#ifndef FR_BENCH_BENCH_H
#define FR_BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Print the figure of n repeats (sorts them) and return their median. */
static double bench_print(const char *name, double *v, int n, const char *unit)
{
    double median, spread;

    qsort(v, (size_t)n, sizeof *v, bench_compare);
    median = v[n / 2];
    spread = median > 0 ? 50.0 * (v[3 * n / 4] - v[n / 4]) / median : 0;
    printf("%-44s %12.2f %-12s +-%.1f%%\n", name, median, unit, spread);
    return median;
}

#endif /* FR_BENCH_BENCH_H */
