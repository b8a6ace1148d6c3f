/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "flops.h"

#include <sched.h>
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

static double cpu_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double fr_flops_core(int slices)
{
    enum { N = 256, GEMMS = 8 };
    const struct fr_gemm g = {FR_N, FR_N, N, N, N, N, N, N, 1.0f, 0.0f};
    FR_CLEANUP(fr_freep) float *m = fr_zalloc(3 * N * N, sizeof *m);
    double best = 0;

    for (int i = 0; i < 2 * N * N; i++)
        m[i] = (float)(i % 7) - 3.0f;
    fr_gemm(&g, m, m + N * N, m + 2 * N * N); /* the first call pays for page faults */
    for (int i = 0; i < slices; i++) {
        double start = cpu_now_s(), rate;

        for (int k = 0; k < GEMMS; k++)
            fr_gemm(&g, m, m + N * N, m + 2 * N * N);
        rate = GEMMS * 2.0 * N * N * N / (cpu_now_s() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

int fr_cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}
