/* SPDX-License-Identifier: Apache-2.0 */
/* robust.c - see robust.h */
#include "stats/robust.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void swap(double *a, double *b)
{
    double t = *a;

    *a = *b;
    *b = t;
}

/* The middle one of three: sorted and equal inputs stay linear. */
static double pivot_of(const double *v, size_t lo, size_t hi)
{
    double a = v[lo], b = v[lo + (hi - lo) / 2], c = v[hi];

    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

double fr_robust_select(double *v, size_t n, size_t k)
{
    size_t lo = 0, hi = n - 1;

    while (lo < hi) {
        double pivot = pivot_of(v, lo, hi);
        size_t i = lo, j = hi;

        /* Hoare's partition; both ends stop at values equal to the pivot, which keeps the halves
         * even. */
        for (;;) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i >= j)
                break;
            swap(&v[i], &v[j]);
            i++;
            j--;
        }
        if (i == j) { /* v[i] is the pivot, in its place */
            if (k == i)
                return v[k];
            if (k < i)
                hi = i - 1;
            else
                lo = i + 1;
        } else if (k <= j) {
            hi = j;
        } else {
            lo = i;
        }
    }
    return v[k];
}

/* Copy to scratch what may be used; 0, -ENODATA or -EINVAL. */
static int take(const double *v, size_t n, double *scratch)
{
    if (n == 0)
        return -ENODATA;
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i]))
            return -EINVAL;
    if (scratch != v)
        memcpy(scratch, v, n * sizeof *v);
    return 0;
}

static double smallest(const double *v, size_t n)
{
    double m = v[0];

    for (size_t i = 1; i < n; i++)
        m = fmin(m, v[i]);
    return m;
}

/* a + share * (b - a) without NaN for infinities: only where a share is taken of both. */
static double between(double a, double b, double share)
{
    return a == b || share == 0 ? a : a * (1 - share) + b * share;
}

static double quantile_in_place(double *v, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t k = (size_t)at;
    double lower = fr_robust_select(v, n, k);

    if (k + 1 >= n)
        return lower;
    return between(lower, smallest(v + k + 1, n - k - 1), at - (double)k);
}

int fr_robust_median(const double *v, size_t n, double *scratch, double *ret)
{
    return fr_robust_quantile(v, n, 0.5, scratch, ret);
}

int fr_robust_quantile(const double *v, size_t n, double q, double *scratch, double *ret)
{
    int rc;

    if (!(q >= 0 && q <= 1))
        return -EDOM;
    rc = take(v, n, scratch);
    if (rc < 0)
        return rc;
    *ret = quantile_in_place(scratch, n, q);
    return 0;
}

int fr_robust_mad(const double *v, size_t n, double *scratch, double *ret_median, double *ret_mad)
{
    double median;
    int rc = take(v, n, scratch);

    if (rc < 0)
        return rc;
    median = quantile_in_place(scratch, n, 0.5);
    for (size_t i = 0; i < n; i++) /* the order does not matter, so scratch serves again */
        scratch[i] = scratch[i] == median ? 0 : fabs(scratch[i] - median);
    *ret_mad = FR_MAD_SCALE * quantile_in_place(scratch, n, 0.5);
    if (ret_median)
        *ret_median = median;
    return 0;
}

int fr_robust_trimmed_mean(const double *v, size_t n, double trim, double *scratch, double *ret)
{
    size_t cut;
    double sum = 0;
    int rc;

    if (!(trim >= 0 && trim < 0.5))
        return -EDOM;
    rc = take(v, n, scratch);
    if (rc < 0)
        return rc;
    cut = (size_t)(trim * (double)n);
    if (cut > 0) {
        fr_robust_select(scratch, n, cut);
        fr_robust_select(scratch + cut, n - cut, n - 2 * cut - 1);
    }
    for (size_t i = cut; i < n - cut; i++)
        sum += scratch[i];
    *ret = sum / (double)(n - 2 * cut);
    return 0;
}

/* Move what is smaller than the pivot to the front, then what equals it; weights go along. */
static void split_three(double *v, double *w, size_t n, double pivot, size_t *ret_smaller,
                        size_t *ret_not_larger)
{
    size_t a = 0, i = 0, b = n;

    while (i < b) {
        if (v[i] < pivot) {
            swap(&v[i], &v[a]);
            swap(&w[i], &w[a]);
            a++;
            i++;
        } else if (v[i] > pivot) {
            b--;
            swap(&v[i], &v[b]);
            swap(&w[i], &w[b]);
        } else {
            i++;
        }
    }
    *ret_smaller = a;
    *ret_not_larger = b;
}

static double sum_of(const double *w, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += w[i];
    return sum;
}

/* The smallest value above x with a weight, or x when there is none. */
static double next_above(const double *v, const double *weights, size_t n, double x)
{
    double best = x;

    for (size_t i = 0; i < n; i++)
        if (weights[i] > 0 && v[i] > x && (best == x || v[i] < best))
            best = v[i];
    return best;
}

int fr_robust_weighted_median(const double *v, const double *weights, size_t n, double *scratch,
                              double *ret)
{
    double *x = scratch, *w = scratch + n, half, before = 0;
    size_t lo = 0, hi = n;
    int rc;

    for (size_t i = 0; i < n; i++)
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return -EINVAL;
    memcpy(w, weights, n * sizeof *w);
    rc = take(v, n, x);
    if (rc < 0)
        return rc;
    half = sum_of(w, n) / 2;
    if (!(half > 0))
        return -ENODATA;
    for (;;) { /* the answer is in x[lo..hi); `before` is the weight of all smaller values */
        double pivot = pivot_of(x, lo, hi - 1), smaller, equal;
        size_t a, b;

        split_three(x + lo, w + lo, hi - lo, pivot, &a, &b);
        smaller = sum_of(w + lo, a);
        equal = sum_of(w + lo + a, b - a);
        if (a > 0 && before + smaller >= half) {
            hi = lo + a;
        } else if (before + smaller + equal >= half || b == hi - lo) {
            *ret = before + smaller + equal == half
                       ? between(pivot, next_above(v, weights, n, pivot), 0.5)
                       : pivot;
            return 0;
        } else {
            before += smaller + equal;
            lo += b;
        }
    }
}
