/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers with a fixed seed, and how far two arrays are apart. */
#ifndef FR_TRAIN_HELPER_NUMBERS_H
#define FR_TRAIN_HELPER_NUMBERS_H

#include <stddef.h>

/* n numbers in [-1, 1) that repeat for the same seed; the caller frees them. */
float *random_floats(size_t n, unsigned seed);

/* Largest |a - b| / (1 + |b|). */
double largest_difference(const float *a, const float *b, size_t n);

/* Sum of a[i] * b[i] in double. */
double dot_double(const float *a, const float *b, size_t n);

#endif
