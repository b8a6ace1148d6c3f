/* SPDX-License-Identifier: Apache-2.0 */
/* ewma.c - see ewma.h */
#include "stats/ewma.h"

#include <errno.h>
#include <math.h>

int fr_ewma_init(struct fr_ewma *e, double half_life_s)
{
    if (!(half_life_s > 0) || isinf(half_life_s))
        return -EINVAL;
    *e = (struct fr_ewma){.half_life_s = half_life_s};
    return 0;
}

int fr_ewma_add(struct fr_ewma *e, double x, double dt_s)
{
    double decay, delta;

    if (!isfinite(x) || !(dt_s >= 0))
        return -EINVAL;
    decay = exp2(-dt_s / e->half_life_s);
    e->weight = e->weight * decay + 1;
    e->m2 *= decay;
    delta = x - e->mean;
    e->mean += delta / e->weight;
    e->m2 += delta * (x - e->mean);
    return 0;
}

int fr_ewma_value(const struct fr_ewma *e, double *ret_mean, double *ret_sd)
{
    if (e->weight <= 0)
        return -ENODATA;
    *ret_mean = e->mean;
    if (ret_sd)
        *ret_sd = sqrt(fmax(e->m2, 0) / e->weight);
    return 0;
}
