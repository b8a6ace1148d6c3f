/* SPDX-License-Identifier: Apache-2.0 */
/* test_units.c - numbers for people, and back */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/units.h"

static void durations_read_like_a_person_writes_them(void **state)
{
    static const struct {
        double v;
        const char *text;
    } KNOWN[] = {{812e-6, "812 us"},  {1.42, "1.42 s"},     {200, "3 min 20 s"},
                 {7500, "2 h 5 min"}, {0, "0 s"},           {0.9997, "1 s"},
                 {3e-9, "3 ns"},      {59.96, "1 min 0 s"}, {3599.7, "1 h 0 min"},
                 {86399, "1 d 0 h"},  {-1.5, "-1.5 s"},     {100000, "1 d 4 h"},
                 {NAN, "-"},          {INFINITY, "inf"}};
    struct fr_unit_text t;

    (void)state;
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        assert_string_equal(fr_fmt_seconds(KNOWN[i].v, &t), KNOWN[i].text);
}

static void sizes_rates_and_ratios_are_scaled(void **state)
{
    struct fr_unit_text t;

    (void)state;
    assert_string_equal(fr_fmt_bytes(2.9 * 0x1p40, &t), "2.9 TiB");
    assert_string_equal(fr_fmt_bytes(812, &t), "812 B");
    assert_string_equal(fr_fmt_bytes(1023.9, &t), "1.0 KiB");
    assert_string_equal(fr_fmt_bytes(0x1p20 - 1, &t), "1.0 MiB");
    assert_string_equal(fr_fmt_si(1.2e9, "FLOP/s", &t), "1.2 GFLOP/s");
    assert_string_equal(fr_fmt_si(999.7e3, "B/s", &t), "1 MB/s");
    assert_string_equal(fr_fmt_si(0, "W", &t), "0 W");
    assert_string_equal(fr_fmt_ratio(0.381, &t), "38.1 %");
    assert_string_equal(fr_fmt_ratio(NAN, &t), "-");
}

/* Property: what is shown, read back, is the value to the digits shown; and it always fits. */
static void a_shown_duration_or_size_reads_back_within_its_rounding(void **state)
{
    struct fr_rng r = {19};
    struct fr_unit_text t;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        double v = pow(10, -8 + 16 * fr_rng_unit(&r)), back = 0;
        char copy[FR_UNIT_TEXT_BYTES], *p;

        strcpy(copy, fr_fmt_seconds(v, &t));
        p = copy; /* "3 min 20 s" is two durations */
        for (int part = 0; part < 2 && p && *p; part++) {
            char *blank = strchr(p, ' '), *second = blank ? strchr(blank + 1, ' ') : NULL;
            double s;

            if (second)
                *second = '\0';
            assert_int_equal(fr_parse_seconds(p, &s), 0);
            back += s;
            p = second ? second + 1 : NULL;
        }
        assert_true(fabs(back - v) <= (v < 60      ? 0.006 * v
                                       : v < 3600  ? 0.51
                                       : v < 86400 ? 31
                                                   : 1801) +
                                          5e-10);
    }
    for (int i = 0; i < 200000; i++) {
        double v = pow(2, 60 * fr_rng_unit(&r));
        uint64_t back;

        assert_int_equal(fr_parse_bytes(fr_fmt_bytes(v, &t), &back), 0);
        assert_true(fabs((double)back - v) <= (v < 1024 ? 1.0 : 0.051 * v));
    }
}

static void extremes_fit_into_the_text(void **state)
{
    static const double WILD[] = {1e308, -1e308, 1e18, -1e18, 5e-324, -5e-324, 1e24, 123456789e12};
    struct fr_unit_text t;

    (void)state;
    for (size_t i = 0; i < sizeof WILD / sizeof WILD[0]; i++) {
        assert_true(strlen(fr_fmt_seconds(WILD[i], &t)) < FR_UNIT_TEXT_BYTES - 1);
        assert_true(strlen(fr_fmt_bytes(WILD[i], &t)) < FR_UNIT_TEXT_BYTES - 1);
        assert_true(strlen(fr_fmt_si(WILD[i], "FLOP/s", &t)) < FR_UNIT_TEXT_BYTES - 1);
        assert_true(strlen(fr_fmt_ratio(WILD[i], &t)) < FR_UNIT_TEXT_BYTES - 1);
    }
}

static void every_duration_unit_is_read(void **state)
{
    static const struct {
        const char *text;
        double s;
    } KNOWN[] = {{"250ms", 0.25}, {"10s", 10}, {"5m", 300},   {"2h", 7200}, {"7d", 604800},
                 {"1.5", 1.5},    {"0", 0},    {"3us", 3e-6}, {".5s", 0.5}, {"1e3", 1000}};
    static const char *const BAD[] = {"",    "s",     "-1s",   "1 0s", "10sec", "0x10", "inf",
                                      "nan", "1e999", "1..2s", "ms5",  "+1s",   " 1s"};
    double s = -7;

    (void)state;
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        assert_int_equal(fr_parse_seconds(KNOWN[i].text, &s), 0);
        assert_true(s == KNOWN[i].s);
    }
    s = -7;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_int_equal(fr_parse_seconds(BAD[i], &s), -EINVAL);
    assert_true(s == -7);
}

static void every_size_unit_is_read_exactly(void **state)
{
    static const struct {
        const char *text;
        uint64_t n;
    } KNOWN[] = {{"1000", 1000},         {"64KiB", 65536},   {"2GiB", 2ull << 30},
                 {"1.5GiB", 3ull << 29}, {"10MB", 10000000}, {"18446744073709551615", UINT64_MAX},
                 {"15EiB", 15ull << 60}, {"7B", 7}};
    static const char *const BAD[] = {"",
                                      "-1",
                                      "1K",
                                      "16EiB",
                                      "18446744073709551616",
                                      "1 2",
                                      "KiB",
                                      "99999999999999999999999999"};
    uint64_t n = 7;

    (void)state;
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        assert_int_equal(fr_parse_bytes(KNOWN[i].text, &n), 0);
        assert_true(n == KNOWN[i].n);
    }
    n = 7;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_int_equal(fr_parse_bytes(BAD[i], &n), -EINVAL);
    assert_true(n == 7);
}

static void whole_numbers_are_bounded(void **state)
{
    uint64_t n = 7;

    (void)state;
    assert_int_equal(fr_parse_uint("42", 0, 100, &n), 0);
    assert_int_equal(n, 42);
    assert_int_equal(fr_parse_uint("101", 0, 100, &n), -ERANGE);
    assert_int_equal(fr_parse_uint("4", 5, 100, &n), -ERANGE);
    assert_int_equal(fr_parse_uint("18446744073709551616", 0, UINT64_MAX, &n), -ERANGE);
    assert_int_equal(fr_parse_uint("", 0, 100, &n), -EINVAL);
    assert_int_equal(fr_parse_uint("-1", 0, 100, &n), -EINVAL);
    assert_int_equal(fr_parse_uint("1.0", 0, 100, &n), -EINVAL);
    assert_int_equal(n, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_read_like_a_person_writes_them),
        cmocka_unit_test(sizes_rates_and_ratios_are_scaled),
        cmocka_unit_test(a_shown_duration_or_size_reads_back_within_its_rounding),
        cmocka_unit_test(extremes_fit_into_the_text),
        cmocka_unit_test(every_duration_unit_is_read),
        cmocka_unit_test(every_size_unit_is_read_exactly),
        cmocka_unit_test(whole_numbers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
