/* SPDX-License-Identifier: Apache-2.0 */
/* test_clock.c - the two clocks and how times are written */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"

static void clocks_run_forward_and_agree_with_the_system(void **state)
{
    uint64_t a = fr_mono_ns(), b = fr_mono_ns();
    int64_t now = fr_unix_ns() / FR_NS_PER_S;
    time_t t = time(NULL);

    (void)state;
    assert_true(b >= a);
    assert_true(now <= t + 1 && now >= t - 2);
}

/* Known instants: RFC 3339 section 5.8, and `date -u -d @N`. */
static void known_instants_are_read_and_written(void **state)
{
    static const struct {
        const char *in, *out;
        int64_t t_unix_ns;
    } KNOWN[] = {
        {"1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z", 0},
        {"1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520Z", 482196050520000000},
        {"1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57.000Z", 851042397000000000},
        {"1990-12-31T23:59:60Z", "1991-01-01T00:00:00.000Z", 662688000000000000},
        {"1937-01-01T12:00:27.87+00:20", "1937-01-01T11:40:27.870Z", -1041337172130000000},
        {"2026-03-01T12:00Z", "2026-03-01T12:00:00.000Z", 1772366400000000000},
        {"2024-02-29T00:00:00.1234567894Z", "2024-02-29T00:00:00.123Z", 1709164800123456789},
    };
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        int64_t t = 1;

        assert_int_equal(fr_time_parse(KNOWN[i].in, 0, &t), 0);
        assert_true(t == KNOWN[i].t_unix_ns);
        assert_string_equal(fr_time_text(t, text, sizeof text), KNOWN[i].out);
    }
}

static void any_time_survives_the_way_through_text_to_the_millisecond(void **state)
{
    struct fr_rng r = {17};

    (void)state;
    for (int i = 0; i < 100000; i++) {
        int64_t t = (int64_t)fr_rng_u64(&r) / 1000000 * 1000000, back;
        char text[32];

        if (t < INT64_MIN + 1000 * FR_NS_PER_S || t > INT64_MAX - 1000 * FR_NS_PER_S)
            continue;
        assert_int_equal(fr_time_parse(fr_time_text(t, text, sizeof text), 0, &back), 0);
        assert_true(back == t);
    }
}

static void a_relative_time_counts_back_from_now(void **state)
{
    int64_t t;

    (void)state;
    assert_int_equal(fr_time_parse("-6h", 100000 * FR_NS_PER_S, &t), 0);
    assert_true(t == (100000 - 6 * 3600) * FR_NS_PER_S);
}

static void what_is_no_time_is_refused(void **state)
{
    static const char *const BAD[] = {"",
                                      "now",
                                      "6h",
                                      "-",
                                      "-6x",
                                      "2026-03-01",
                                      "2026-02-29T00:00Z",
                                      "2026-13-01T00:00Z",
                                      "2026-03-01T24:00Z",
                                      "2026-03-01T12:00",
                                      "2026-03-01T12:00:00.Z",
                                      "2026-03-01T12:00Zx",
                                      "2026-03-01T12:00+25:00",
                                      "26-03-01T12:00Z",
                                      "2026-3-1T12:00Z",
                                      "9999-01-01T00:00Z",
                                      "2026-03-01T12:00+0200"};
    int64_t t = 5;

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_int_equal(fr_time_parse(BAD[i], 0, &t), -EINVAL);
    assert_true(t == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_run_forward_and_agree_with_the_system),
        cmocka_unit_test(known_instants_are_read_and_written),
        cmocka_unit_test(any_time_survives_the_way_through_text_to_the_millisecond),
        cmocka_unit_test(a_relative_time_counts_back_from_now),
        cmocka_unit_test(what_is_no_time_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
