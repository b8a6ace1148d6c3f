/* SPDX-License-Identifier: Apache-2.0 */
#include "helper_numbers.h"

#include <math.h>
#include <stdint.h>

#include "err.h"

float *random_floats(size_t n, unsigned seed)
{
    float *x = fr_zalloc(n, sizeof *x);
    uint32_t s = 2 * seed + 1;

    for (size_t i = 0; i < n; i++) {
        s ^= s << 13; /* xorshift32: not the generator of the code under test */
        s ^= s >> 17;
        s ^= s << 5;
        x[i] = (float)((double)s / 2147483648.0 - 1.0);
    }
    return x;
}

double largest_difference(const float *a, const float *b, size_t n)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]) / (1 + fabs((double)b[i]));
        worst = !(d <= worst) ? d : worst;
    }
    return worst;
}

double dot_double(const float *a, const float *b, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}
