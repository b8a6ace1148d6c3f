/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h - numbers for people: durations, sizes, rates; and back
 *
 * Output goes into a caller's buffer of FR_UNIT_TEXT_BYTES and is returned, so it
 * can stand in a printf argument.
 */
#ifndef FR_BASE_UNITS_H
#define FR_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#define FR_UNIT_TEXT_BYTES 32

struct fr_unit_text {
    char s[FR_UNIT_TEXT_BYTES];
};

const char *
fr_fmt_seconds(double seconds,
               struct fr_unit_text *t); /* 812 us, 1.42 s, 3 min 20 s, 2 h 5 min, "-" for NaN */
const char *fr_fmt_bytes(double bytes, struct fr_unit_text *t);            /* 2.9 TiB */
const char *fr_fmt_si(double v, const char *unit, struct fr_unit_text *t); /* 1.2 GFLOP/s */
const char *fr_fmt_ratio(double ratio, struct fr_unit_text *t);            /* 38.1 % */

/* "250ms", "10s", "5m" (also "min"), "2h", "7d", "us", "ns", or plain seconds; not negative.
 * -EINVAL otherwise. */
int fr_parse_seconds(const char *text, double *ret_s);
/* "64KiB", "2GiB", "1.5GiB" (rounded down), "10MB" (decimal), "1000". -EINVAL otherwise. */
int fr_parse_bytes(const char *text, uint64_t *ret_bytes);
/* "1.5", "-2e-3"; '.' in every locale, no infinity, NaN or hexadecimal. -EINVAL otherwise. */
int fr_parse_num(const char *text, double *ret);
/* Whole decimal number without sign within lo..hi. -EINVAL, -ERANGE. */
int fr_parse_uint(const char *text, uint64_t lo, uint64_t hi, uint64_t *ret);

#endif /* FR_BASE_UNITS_H */
