/* SPDX-License-Identifier: Apache-2.0 */
#include "flops.h"

#include <stdlib.h>
#include <time.h>

#include "err.h"
#include "kernels.h"

double fr_flops_per_token(int64_t layers, int64_t d_model, int64_t seq, int64_t vocab)
{
    double h = (double)d_model, s = (double)seq;
    double qkv = 3 * h * h, proj = h * h, mlp = 2 * h * 4 * h, scores = h * s;

    return 6 * ((double)layers * (qkv + proj + mlp + scores) + h * (double)vocab);
}

double fr_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double fr_flops_burn(double seconds)
{
    enum { N = 256 };
    const struct fr_gemm g = {FR_N, FR_N, N, N, N, N, N, N, 1.0f, 0.0f};
    FR_CLEANUP(fr_freep) float *m = fr_zalloc(3 * N * N, sizeof *m);
    double start, flops = 0;

    for (int i = 0; i < 2 * N * N; i++)
        m[i] = (float)(i % 7) - 3.0f;
    start = fr_now_s();
    do {
        fr_gemm(&g, m, m + N * N, m + 2 * N * N);
        flops += 2.0 * N * N * N;
    } while (fr_now_s() - start < seconds);
    return flops;
}
