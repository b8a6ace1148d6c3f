/* SPDX-License-Identifier: Apache-2.0 */
/* units.c - see units.h */
#define _GNU_SOURCE
#include "base/units.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double scale;
};

/* v with three significant digits, so that 999.7 ms is called 1 s and not 1000 ms. */
static double three_digits(double v)
{
    double scale;

    if (v == 0)
        return 0;
    scale = pow(10, 2 - floor(log10(v)));
    return round(v * scale) / scale;
}

static const char *special(double v, struct fr_unit_text *t)
{
    snprintf(t->s, sizeof t->s, "%s", isnan(v) ? "-" : v < 0 ? "-inf" : "inf");
    return t->s;
}

const char *fr_fmt_seconds(double seconds, struct fr_unit_text *t)
{
    static const struct unit SMALL[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    const char *sign = seconds < 0 ? "-" : "";
    double v = fabs(seconds), r;
    size_t i = 0;

    if (!isfinite(v))
        return special(seconds, t);
    r = three_digits(v);
    if (r < 60) {
        while (i < 3 && r < SMALL[i].scale * (1 - 1e-9))
            i++;
        if (r == 0)
            i = 0;
        snprintf(t->s, sizeof t->s, "%s%.3g %s", sign, r / SMALL[i].scale, SMALL[i].name);
        return t->s;
    }
    if (round(v) < 3600) {
        v = round(v);
        snprintf(t->s, sizeof t->s, "%s%.0f min %.0f s", sign, floor(v / 60), fmod(v, 60));
    } else if (round(v / 60) < 24 * 60) {
        v = round(v / 60);
        snprintf(t->s, sizeof t->s, "%s%.0f h %.0f min", sign, floor(v / 60), fmod(v, 60));
    } else {
        v = round(v / 3600);
        snprintf(t->s, sizeof t->s, "%s%.4g d %.0f h", sign, floor(v / 24), fmod(v, 24));
    }
    return t->s;
}

const char *fr_fmt_bytes(double bytes, struct fr_unit_text *t)
{
    static const char *const NAMES[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = fabs(bytes);
    size_t i = 0;

    if (!isfinite(v))
        return special(bytes, t);
    if (round(v) >= 1024) {
        do {
            v /= 1024;
            i++;
        } while (i < 6 && round(v * 10) / 10 >= 1024);
    }
    if (v >= 1e9) /* no unit is left that fits */
        snprintf(t->s, sizeof t->s, "%s%.3g %s", bytes < 0 ? "-" : "", v, NAMES[i]);
    else
        snprintf(t->s, sizeof t->s, "%s%.*f %s", bytes < 0 ? "-" : "", i ? 1 : 0, v, NAMES[i]);
    return t->s;
}

const char *fr_fmt_si(double v, const char *unit, struct fr_unit_text *t)
{
    static const struct unit PREFIXES[] = {{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9},
                                           {"M", 1e6},  {"k", 1e3},  {"", 1},     {"m", 1e-3},
                                           {"u", 1e-6}, {"n", 1e-9}};
    enum { LAST = sizeof PREFIXES / sizeof PREFIXES[0] - 1, NONE = 6 };
    double r;
    size_t i = 0;

    if (!isfinite(v))
        return special(v, t);
    r = three_digits(fabs(v));
    while (i < LAST && r < PREFIXES[i].scale * (1 - 1e-9))
        i++;
    if (r == 0)
        i = NONE;
    snprintf(t->s, sizeof t->s, "%s%.3g %s%.12s", v < 0 ? "-" : "", r / PREFIXES[i].scale,
             PREFIXES[i].name, unit);
    return t->s;
}

const char *fr_fmt_ratio(double ratio, struct fr_unit_text *t)
{
    if (!isfinite(ratio))
        return special(ratio, t);
    if (fabs(ratio) < 1e7)
        snprintf(t->s, sizeof t->s, "%.1f %%", ratio * 100);
    else
        snprintf(t->s, sizeof t->s, "%.3g %%", ratio * 100);
    return t->s;
}

static locale_t c_locale;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* strtod for "12", "1.5", "1e-3" and nothing else: no sign, space, hex, inf or nan; '.' whatever
 * the locale. */
static int take_decimal(const char *text, double *ret, const char **ret_rest)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char *end;
    double v;

    if (!((text[0] >= '0' && text[0] <= '9') ||
          (text[0] == '.' && text[1] >= '0' && text[1] <= '9')))
        return -EINVAL;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return -EINVAL;
    pthread_once(&once, make_c_locale);
    if (!c_locale)
        return -ENOMEM;
    v = strtod_l(text, &end, c_locale);
    if (!isfinite(v))
        return -EINVAL;
    *ret = v;
    *ret_rest = end;
    return 0;
}

int fr_parse_num(const char *text, double *ret)
{
    bool minus = text[0] == '-';
    const char *rest;
    double v;
    int rc = take_decimal(text + minus, &v, &rest);

    if (rc < 0)
        return rc;
    if (*rest)
        return -EINVAL;
    *ret = minus ? -v : v;
    return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
    if (*name == ' ') /* as we print it ourselves */
        name++;
    for (; units->name; units++)
        if (strcmp(units->name, name) == 0)
            return units;
    return NULL;
}

int fr_parse_seconds(const char *text, double *ret_s)
{
    static const struct unit UNITS[] = {{"", 1},      {"s", 1},  {"ms", 1e-3}, {"us", 1e-6},
                                        {"ns", 1e-9}, {"m", 60}, {"min", 60},  {"h", 3600},
                                        {"d", 86400}, {NULL, 0}};
    const struct unit *u;
    const char *rest;
    double v;

    if (take_decimal(text, &v, &rest) < 0)
        return -EINVAL;
    u = find_unit(UNITS, rest);
    if (!u || !isfinite(v * u->scale))
        return -EINVAL;
    /* Divide where the scale is not a binary fraction: 250 ms is exactly 0.25 s. */
    *ret_s = u->scale < 1 ? v / round(1 / u->scale) : v * u->scale;
    return 0;
}

int fr_parse_bytes(const char *text, uint64_t *ret_bytes)
{
    static const struct unit UNITS[] = {
        {"", 1},         {"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
        {"TiB", 0x1p40}, {"PiB", 0x1p50}, {"EiB", 0x1p60}, {"kB", 1e3},     {"MB", 1e6},
        {"GB", 1e9},     {"TB", 1e12},    {"PB", 1e15},    {NULL, 0}};
    size_t digits = strspn(text, "0123456789");
    const struct unit *u;
    const char *rest;
    uint64_t whole, total;
    double v;

    if (take_decimal(text, &v, &rest) < 0)
        return -EINVAL;
    u = find_unit(UNITS, rest);
    if (!u)
        return -EINVAL;
    if (rest == text + digits) { /* a whole number: exact */
        char number[24];

        if (digits >= sizeof number)
            return -EINVAL;
        memcpy(number, text, digits);
        number[digits] = '\0';
        if (fr_parse_uint(number, 0, UINT64_MAX, &whole) < 0 ||
            __builtin_mul_overflow(whole, (uint64_t)u->scale, &total))
            return -EINVAL;
        *ret_bytes = total;
        return 0;
    }
    v = floor(v * u->scale); /* 1.5GiB */
    if (!(v < 0x1p64))
        return -EINVAL;
    *ret_bytes = (uint64_t)v;
    return 0;
}

int fr_parse_uint(const char *text, uint64_t lo, uint64_t hi, uint64_t *ret)
{
    uint64_t v = 0;

    if (!*text || text[strspn(text, "0123456789")] != '\0')
        return -EINVAL;
    for (; *text; text++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
            return -ERANGE;
    if (v < lo || v > hi)
        return -ERANGE;
    *ret = v;
    return 0;
}
