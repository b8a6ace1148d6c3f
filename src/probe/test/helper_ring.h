/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_ring.h - a writer at full speed against a reader, without a test library
 *
 * Used by test_ring.c, and as a program of its own where cmocka is not at hand (cross builds).
 */
#ifndef FR_PROBE_TEST_HELPER_RING_H
#define FR_PROBE_TEST_HELPER_RING_H

#include <stdint.h>

struct ring_result {
    uint64_t written, given, lost, wrong;
    uint64_t last[256]; /* newest number of each writer */
    int lanes, threads;
    char error[600]; /* empty: the reader never failed */
};

/* Write `records` from each of `threads` threads into a segment of this process below `dir` (it
 * opens the probe: once a process), reading all the while; slow != 0 makes the reader fall
 * behind. Every record is made from its number, so that a wrong one is seen. */
void ring_run(const char *dir, int threads, uint64_t records, int slow, struct ring_result *ret);

#endif /* FR_PROBE_TEST_HELPER_RING_H */
