/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see clock.h */
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/units.h"

uint64_t fr_mono_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * (uint64_t)FR_NS_PER_S + (uint64_t)ts.tv_nsec;
}

int64_t fr_unix_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * FR_NS_PER_S + ts.tv_nsec;
}

char *fr_time_text(int64_t t_unix_ns, char *text, size_t n)
{
    int64_t ns = t_unix_ns % FR_NS_PER_S;
    time_t s = (time_t)(t_unix_ns / FR_NS_PER_S);
    struct tm tm;

    if (ns < 0) { /* times before 1970 round down too */
        ns += FR_NS_PER_S;
        s--;
    }
    gmtime_r(&s, &tm);
    snprintf(text, n, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ns / 1000000));
    return text;
}

/* Read exactly `digits` digits at *p within lo..hi and step over them. */
static bool take_number(const char **p, int digits, int lo, int hi, int *ret)
{
    int v = 0;

    for (int i = 0; i < digits; i++) {
        char c = (*p)[i];

        if (c < '0' || c > '9')
            return false;
        v = v * 10 + (c - '0');
    }
    if (v < lo || v > hi)
        return false;
    *p += digits;
    *ret = v;
    return true;
}

static bool take_char(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

/* ".123456": nanoseconds; digits beyond the ninth are read and dropped. */
static bool take_fraction(const char **p, int64_t *ret_ns)
{
    int64_t scale = FR_NS_PER_S / 10, ns = 0;
    const char *from = *p;

    for (; **p >= '0' && **p <= '9'; (*p)++) {
        ns += scale * (**p - '0');
        scale /= 10;
    }
    *ret_ns = ns;
    return *p != from;
}

/* "Z", "+02:00" */
static bool take_zone(const char **p, int *ret_offset_s)
{
    int hours, minutes, sign;

    if (take_char(p, 'Z') || take_char(p, 'z')) {
        *ret_offset_s = 0;
        return true;
    }
    sign = **p == '-' ? -1 : 1;
    if (!take_char(p, '+') && !take_char(p, '-'))
        return false;
    if (!take_number(p, 2, 0, 23, &hours) || !take_char(p, ':') ||
        !take_number(p, 2, 0, 59, &minutes))
        return false;
    *ret_offset_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

static int days_of_month(int year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return DAYS[month - 1] + (month == 2 && leap);
}

int fr_time_parse(const char *text, int64_t now_unix_ns, int64_t *ret_unix_ns)
{
    int year, month, day, hour, minute, second = 0, offset_s;
    const char *p = text;
    int64_t ns = 0, t;
    struct tm tm = {0};
    double back_s;

    if (p[0] == '-') { /* relative: -6h */
        if (fr_parse_seconds(p + 1, &back_s) < 0 || back_s > 9e9)
            return -EINVAL;
        *ret_unix_ns = now_unix_ns - (int64_t)(back_s * 1e9);
        return 0;
    }
    if (!take_number(&p, 4, 1, 9999, &year) || !take_char(&p, '-') ||
        !take_number(&p, 2, 1, 12, &month) || !take_char(&p, '-') ||
        !take_number(&p, 2, 1, days_of_month(year, month), &day))
        return -EINVAL;
    if (!take_char(&p, 'T') && !take_char(&p, 't') && !take_char(&p, ' '))
        return -EINVAL;
    if (!take_number(&p, 2, 0, 23, &hour) || !take_char(&p, ':') ||
        !take_number(&p, 2, 0, 59, &minute))
        return -EINVAL;
    /* 60 is a leap second: it counts as the first second of the next minute. */
    if (take_char(&p, ':') && !take_number(&p, 2, 0, 60, &second))
        return -EINVAL;
    if (take_char(&p, '.') && !take_fraction(&p, &ns))
        return -EINVAL;
    if (!take_zone(&p, &offset_s) || *p != '\0')
        return -EINVAL;

    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    tm.tm_hour = hour;
    tm.tm_min = minute;
    tm.tm_sec = second;
    if (__builtin_mul_overflow((int64_t)timegm(&tm) - offset_s, FR_NS_PER_S, &t) ||
        __builtin_add_overflow(t, ns, &t))
        return -EINVAL; /* beyond 1677..2262 */
    *ret_unix_ns = t;
    return 0;
}
