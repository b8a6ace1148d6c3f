/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - see window.h */
#include "stats/window.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "stats/robust.h"

void fr_window_init(struct fr_window *w, unsigned cap)
{
    *w = (struct fr_window){.cap = cap < 1 ? 1 : cap > FR_WINDOW_MAX ? FR_WINDOW_MAX : cap};
}

void fr_window_clear(struct fr_window *w)
{
    w->n = w->next = 0;
}

/* First place in sorted whose value is not below v. */
static unsigned place_of(const struct fr_window *w, double v)
{
    unsigned lo = 0, hi = w->n;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (w->sorted[mid] < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int fr_window_add(struct fr_window *w, double v)
{
    unsigned at;

    if (isnan(v))
        return -EINVAL;
    if (w->n == w->cap) {
        at = place_of(w, w->ring[w->next]);
        w->n--;
        memmove(&w->sorted[at], &w->sorted[at + 1], (w->n - at) * sizeof w->sorted[0]);
    }
    at = place_of(w, v);
    memmove(&w->sorted[at + 1], &w->sorted[at], (w->n - at) * sizeof w->sorted[0]);
    w->sorted[at] = v;
    w->n++;
    w->ring[w->next] = v;
    w->next = (w->next + 1) % w->cap;
    return 0;
}

double fr_window_at(const struct fr_window *w, unsigned i)
{
    assert(i < w->n);
    return w->ring[(w->next + w->cap - w->n + i) % w->cap];
}

int fr_window_median(const struct fr_window *w, double *ret)
{
    return fr_window_quantile(w, 0.5, ret);
}

int fr_window_mad(const struct fr_window *w, double *ret_median, double *ret_mad)
{
    double scratch[FR_WINDOW_MAX];

    return fr_robust_mad(w->sorted, w->n, scratch, ret_median, ret_mad);
}

int fr_window_quantile(const struct fr_window *w, double q, double *ret)
{
    double at, share;
    unsigned k;

    if (!(q >= 0 && q <= 1))
        return -EDOM;
    if (w->n == 0)
        return -ENODATA;
    at = q * (w->n - 1);
    k = (unsigned)at;
    share = at - k;
    *ret = share > 0 ? w->sorted[k] * (1 - share) + w->sorted[k + 1] * share : w->sorted[k];
    return 0;
}
