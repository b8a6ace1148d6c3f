/* SPDX-License-Identifier: Apache-2.0 */
/* rng.h - splitmix64: a seeded generator for simulations and tests, the same on every machine.
 * Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
#ifndef FR_BASE_RNG_H
#define FR_BASE_RNG_H

#include <math.h>
#include <stdint.h>

struct fr_rng {
    uint64_t s;
};

static inline uint64_t fr_rng_u64(struct fr_rng *r)
{
    uint64_t z = (r->s += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* 0 <= x < 1 */
static inline double fr_rng_unit(struct fr_rng *r)
{
    return (double)(fr_rng_u64(r) >> 11) * 0x1.0p-53;
}

/* 0 <= x < n, n > 0; the bias of at most n/2^64 is of no account here */
static inline uint64_t fr_rng_below(struct fr_rng *r, uint64_t n)
{
    return fr_rng_u64(r) % n;
}

/* Standard normal, Box-Muller. */
static inline double fr_rng_normal(struct fr_rng *r)
{
    double u = 1.0 - fr_rng_unit(r), v = fr_rng_unit(r);

    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

#endif /* FR_BASE_RNG_H */
