/* SPDX-License-Identifier: Apache-2.0 */
/* changepoint.c - see changepoint.h */
#include "stats/changepoint.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "stats/robust.h"

#define SPIKE_REACH  3   /* a neighbourhood is this many on each side */
#define SPIKE_NOISES 5.0 /* farther from its median is a spike */
#define Z_CAP        1e6

int fr_cusum_init(struct fr_cusum *c, double mean, double sd, double slack, double limit)
{
    if (!isfinite(mean) || !isfinite(sd) || !isfinite(slack) || !isfinite(limit))
        return -EINVAL;
    if (!(sd > 0 && slack > 0 && limit > 0))
        return -EINVAL;
    *c = (struct fr_cusum){.mean = mean, .sd = sd, .slack = slack, .limit = limit};
    return 0;
}

static void accumulate(double *sum, uint64_t *n, double step)
{
    *sum += step;
    *n += 1;
    if (*sum <= 0) {
        *sum = 0;
        *n = 0;
    }
}

int fr_cusum_add(struct fr_cusum *c, double x)
{
    double z;

    if (!isfinite(x))
        return -EINVAL;
    z = (x - c->mean) / c->sd;
    c->n++;
    accumulate(&c->up, &c->n_up, z - c->slack);
    accumulate(&c->down, &c->n_down, -z - c->slack);
    if (c->up > c->limit && c->up >= c->down)
        return 1;
    return c->down > c->limit ? -1 : 0;
}

uint64_t fr_cusum_since(const struct fr_cusum *c, int direction)
{
    return c->n - (direction > 0 ? c->n_up : c->n_down);
}

void fr_cusum_reset(struct fr_cusum *c)
{
    c->up = c->down = 0;
    c->n_up = c->n_down = 0;
}

/* The split of y with the largest two-sample statistic. With the total variation fixed, t grows
 * with the variation between the sides, so that one pass over running sums decides; values are
 * taken from their mean to keep them small. */
static size_t best_split(const double *y, size_t n, double *ret_z)
{
    double mean = 0, total = 0, left = 0, best = -1, within;
    size_t at = 1;

    for (size_t i = 0; i < n; i++)
        mean += (y[i] - mean) / (double)(i + 1);
    for (size_t i = 0; i < n; i++)
        total += (y[i] - mean) * (y[i] - mean);
    for (size_t i = 1; i < n; i++) {
        double between;

        left += y[i - 1] - mean;
        /* n1 n2 / n (m2 - m1)^2, where the right sum is minus the left one */
        between = left * left * (double)n / ((double)i * (double)(n - i));
        if (between > best) {
            best = between;
            at = i;
        }
    }
    within = total - best;
    if (best <= 0)
        *ret_z = 0;
    else if (within <= best * (double)(n - 2) / (Z_CAP * Z_CAP))
        *ret_z = Z_CAP;
    else
        *ret_z = sqrt(best / (within / (double)(n - 2)));
    return at;
}

/* Copy x to y without its spikes: a value far from the median of its neighbourhood is replaced by
 * that median, which leaves a lasting step where it is. The noise comes from the differences of
 * neighbours: a step is in one of them only. n > 1. */
static void take_without_spikes(const double *x, size_t n, double *y)
{
    double near[2 * SPIKE_REACH + 1], noise;

    for (size_t i = 0; i + 1 < n; i++)
        y[i] = fabs(x[i + 1] - x[i]);
    noise = FR_MAD_SCALE / sqrt(2) * fr_robust_select(y, n - 1, (n - 1) / 2);
    for (size_t i = 0; i < n; i++) {
        size_t lo = i < SPIKE_REACH ? 0 : i - SPIKE_REACH,
               hi = i + SPIKE_REACH < n ? i + SPIKE_REACH : n - 1;
        double median;

        memcpy(near, x + lo, (hi - lo + 1) * sizeof *x);
        median = fr_robust_select(near, hi - lo + 1, (hi - lo) / 2);
        y[i] = fabs(x[i] - median) > SPIKE_NOISES * noise ? median : x[i];
    }
}

int fr_shift_find(const double *x, size_t n, const struct fr_shift_rule *rule, double *scratch,
                  struct fr_shift *ret)
{
    size_t least = rule->samples_min < 1 ? 1 : rule->samples_min, from = 0, to = n;
    struct fr_shift s = {0};

    for (size_t i = 0; i < n; i++)
        if (!(x[i] > 0) || isinf(x[i]))
            return -EINVAL;
    if (n < 3)
        return 0;

    take_without_spikes(x, n, scratch);
    for (;;) {
        if (to - from < 2 * least || to - from < 3)
            return 0;
        s.at = from + best_split(scratch + from, to - from, &s.z);
        if (s.z < rule->z_min)
            return 0;
        /* A level that has not lasted at either end is no change yet; what is between may hold one.
         */
        if (s.at - from < least)
            from = s.at;
        else if (to - s.at < least)
            to = s.at;
        else
            break;
    }
    fr_robust_median(x + from, s.at - from, scratch, &s.before);
    fr_robust_median(x + s.at, to - s.at, scratch, &s.after);
    s.ratio = s.after / s.before - 1;
    if (!(fabs(s.ratio) > rule->ratio_min))
        return 0;
    *ret = s;
    return 1;
}
