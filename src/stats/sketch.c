/* SPDX-License-Identifier: Apache-2.0 */
/* sketch.c - see sketch.h */
#include "stats/sketch.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

/* g = (1 + ALPHA) / (1 - ALPHA): the ends of a bucket are this far apart (Definition 3 of the
 * paper). */
#define GAMMA     ((1 + FR_SKETCH_ALPHA) / (1 - FR_SKETCH_ALPHA))
#define LOG_GAMMA 0.020000666706669543 /* log(GAMMA); the test compares */

static int bucket_of(double seconds)
{
    double i = ceil(log(seconds / FR_SKETCH_MIN_S) / LOG_GAMMA);

    if (i < 0)
        return 0;
    return i < FR_SKETCH_BUCKETS ? (int)i : FR_SKETCH_BUCKETS - 1;
}

/* The value whose relative distance to both ends of bucket i is ALPHA. */
static double middle_of(int i)
{
    return FR_SKETCH_MIN_S * exp(i * LOG_GAMMA) * 2 / (GAMMA + 1);
}

void fr_sketch_init(struct fr_sketch *sk)
{
    memset(sk, 0, sizeof *sk);
}

int fr_sketch_add(struct fr_sketch *sk, double seconds)
{
    if (!(seconds >= 0) || isinf(seconds)) /* also catches NaN */
        return -EINVAL;
    if (sk->total == 0 || seconds < sk->min_s)
        sk->min_s = seconds;
    if (sk->total == 0 || seconds > sk->max_s)
        sk->max_s = seconds;
    sk->total++;
    if (seconds < FR_SKETCH_MIN_S)
        sk->zeros++;
    else
        sk->n[bucket_of(seconds)]++;
    return 0;
}

void fr_sketch_merge(struct fr_sketch *into, const struct fr_sketch *from)
{
    assert(into != from);
    if (from->total == 0)
        return;
    if (into->total == 0 || from->min_s < into->min_s)
        into->min_s = from->min_s;
    if (into->total == 0 || from->max_s > into->max_s)
        into->max_s = from->max_s;
    into->total += from->total;
    into->zeros += from->zeros;
    for (int i = 0; i < FR_SKETCH_BUCKETS; i++)
        into->n[i] += from->n[i];
}

int fr_sketch_quantile(const struct fr_sketch *sk, double q, double *ret_s)
{
    uint64_t rank, seen;

    if (!(q >= 0 && q <= 1)) /* also catches NaN */
        return -EDOM;
    if (sk->total == 0)
        return -ENODATA;

    rank = (uint64_t)(q * (double)(sk->total - 1));
    seen = sk->zeros;
    if (seen > rank) {
        *ret_s = 0;
        return 0;
    }
    for (int i = 0; i < FR_SKETCH_BUCKETS; i++) {
        seen += sk->n[i];
        if (seen > rank) {
            /* The true extremes are known: never answer outside them. */
            *ret_s = fmin(fmax(middle_of(i), sk->min_s), sk->max_s);
            return 0;
        }
    }
    *ret_s = sk->max_s;
    return 0;
}
