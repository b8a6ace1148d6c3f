/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peak.h - dense peak rates of accelerators, each with who states it
 *
 * Sources differ by up to 7 %, which is more than the margins that are fought over, so every row
 * names its source and a report names the one it used.
 *
 * Unit:    TFLOP/s of one accelerator, without sparsity.
 */
#ifndef FR_PERF_PEAK_H
#define FR_PERF_PEAK_H

#include <stddef.h>

#include "base/err.h"

enum fr_peak_source { FR_PEAK_VENDOR = 0, FR_PEAK_DGXC, FR_PEAK_STAS, FR_PEAK_TITAN, FR_PEAK_SOURCES };

struct fr_peak {
    const char *name, *precision; /* "GB200", "fp8" */
    double tflops;
    enum fr_peak_source source;
};

/* All rows of an accelerator and precision (bf16, fp16, fp8, mxfp8, fp4, nvfp4, int8), the default
 * first, at most n; returns how many there are. -ENOENT with the names that are known. Names are
 * compared without case and punctuation; "H100" and "NVIDIA H100 80GB HBM3" are H100-SXM. */
int fr_peak_find(const char *gpu, const char *precision, const struct fr_peak **ret, size_t n,
                 struct fr_err *err);

/* Publication, file and column. */
const char *fr_peak_source_text(enum fr_peak_source s);

/* The highest rate of any row. */
double fr_peak_highest(void);

#endif /* FR_PERF_PEAK_H */
