/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticks.h - the counter that job libraries stamp with, read alike on both sides
 *
 * clock_gettime costs 20 to 45 ns, twice per call too much. Where the
 * processor's own counter runs at a constant rate on all cores the stamps come from
 * it, and the agent, on the same machine, turns them into CLOCK_MONOTONIC.
 *
 * Unit:    ticks of the counter named by enum fr_seg_clock; nanoseconds of CLOCK_MONOTONIC.
 * Threads: any; nothing here has state.
 * Memory:  none; allocation-free, libc and vDSO only (used inside a job).
 * Source:  Intel SDM vol. 3B section 18.17 (invariant TSC: CPUID 80000007h EDX bit 8);
 *          Arm ARM D11.2 (generic timer: CNTVCT_EL0 runs at CNTFRQ_EL0).
 */
#ifndef FR_WIRE_TICKS_H
#define FR_WIRE_TICKS_H

#include <stdint.h>
#include <time.h>

#include "wire/ring.h"

#if defined(__x86_64__)
#include <cpuid.h>
#define FR_TICKS_NATIVE FR_CLOCK_TSC
#elif defined(__aarch64__)
#define FR_TICKS_NATIVE FR_CLOCK_CNTVCT
#else
#define FR_TICKS_NATIVE FR_CLOCK_MONOTONIC
#endif

static inline uint64_t fr_mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The processor's counter; not ordered against neighbouring loads, which costs more than
 * the few nanoseconds that it could be off. */
static inline uint64_t fr_ticks_native(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return fr_mono_ns();
#endif
}

static inline uint64_t fr_ticks_of(uint32_t clock)
{
    return clock == FR_CLOCK_MONOTONIC ? fr_mono_ns() : fr_ticks_native();
}

/* 1 when the processor says that its counter has a constant rate. Whether the kernel trusts it
 * too (a virtual machine may migrate) is in /sys/devices/system/clocksource. */
static inline int fr_ticks_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d >> 8 & 1u);
#elif defined(__aarch64__)
    return 1; /* architected */
#else
    return 0;
#endif
}

/* One moment in both clocks: the pair of several whose reading took least. */
static inline void fr_ticks_pair(uint32_t clock, uint64_t *ret_ticks, uint64_t *ret_mono_ns)
{
    uint64_t best = UINT64_MAX;

    *ret_ticks = *ret_mono_ns = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t a = fr_ticks_of(clock), m = fr_mono_ns(), b = fr_ticks_of(clock);

        if (b - a < best) {
            best = b - a;
            *ret_ticks = clock == FR_CLOCK_MONOTONIC ? m : a + (b - a) / 2;
            *ret_mono_ns = m;
        }
    }
}

#endif /* FR_WIRE_TICKS_H */
