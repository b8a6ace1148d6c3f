/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the two clocks and how times are written
 *
 * Unit:    t_unix_ns is wall-clock time, _ns is CLOCK_MONOTONIC; never mixed.
 * Threads: any.
 */
#ifndef FR_BASE_CLOCK_H
#define FR_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define FR_NS_PER_S 1000000000ll

uint64_t fr_mono_ns(void);
int64_t fr_unix_ns(void);

/* "2026-03-01T12:00:00.123Z" into text (>= 32 bytes); returns text. */
char *fr_time_text(int64_t t_unix_ns, char *text, size_t n);

/* Parse RFC 3339 with Z or offset, or "-6h" relative to now. -EINVAL otherwise. */
int fr_time_parse(const char *text, int64_t now_unix_ns, int64_t *ret_unix_ns);

#endif /* FR_BASE_CLOCK_H */
