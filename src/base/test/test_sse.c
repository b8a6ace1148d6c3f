/* SPDX-License-Identifier: Apache-2.0 */
/* test_sse.c - server-sent events, cut anywhere */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/sse.h"

/* The examples of the standard, section 9.2.6, and what it says about them. */
static const char STREAM[] = "\xef\xbb\xbf: test stream\n\n"
                             "data: first event\nid: 1\n\n"
                             "data:second event\nid\n\n"
                             "data:  third event\r\n\r\n"
                             "event: add\rdata: 73857293\r\r"
                             "data\n\ndata\ndata\n\n"
                             "event: nothing\n\n"
                             "data: YHOO\ndata: +2\ndata: 10\nunknown: x\n\n"
                             "data: never finished\n";
static const char EXPECTED[] =
    "message|first event\nmessage|second event\nmessage| third event\nadd|73857293\n"
    "message|\nmessage|\\n\nmessage|YHOO\\n+2\\n10\n";

static int collect(const char *event, const char *data, size_t n, void *arg)
{
    struct fr_buf *out = arg;

    assert_int_equal(data[n], '\0');
    fr_buf_puts(out, event);
    fr_buf_putc(out, '|');
    for (size_t i = 0; i < n; i++)
        fr_buf_puts(out, data[i] == '\n' ? "\\n" : (char[]){data[i], '\0'});
    fr_buf_putc(out, '\n');
    return 0;
}

static void the_standards_examples_come_out_at_every_cut(void **state)
{
    struct fr_buf out = FR_BUF_INIT;
    size_t n = strlen(STREAM);

    (void)state;
    for (size_t a = 0; a <= n; a++) {
        for (size_t b = a; b <= n; b += 7) {
            struct fr_sse s;

            fr_buf_reset(&out);
            fr_sse_init(&s, 1000);
            assert_int_equal(fr_sse_feed(&s, STREAM, a, collect, &out), 0);
            assert_int_equal(fr_sse_feed(&s, STREAM + a, b - a, collect, &out), 0);
            assert_int_equal(fr_sse_feed(&s, STREAM + b, n - b, collect, &out), 0);
            fr_sse_fini(&s);
            assert_string_equal(fr_buf_str(&out), EXPECTED);
        }
    }
    fr_buf_fini(&out);
}

/* Property: the cuts make no difference, whatever the bytes. */
static void random_bytes_in_random_pieces_equal_the_whole(void **state)
{
    struct fr_rng r = {29};
    struct fr_buf whole = FR_BUF_INIT, pieces = FR_BUF_INIT;

    (void)state;
    for (int round = 0; round < 5000; round++) {
        static const char ALPHABET[] = "\r\n\n: data:event:x";
        char text[400];
        struct fr_sse s;

        for (size_t i = 0; i < sizeof text; i++)
            text[i] = ALPHABET[fr_rng_below(&r, sizeof ALPHABET - 1)];
        fr_buf_reset(&whole);
        fr_buf_reset(&pieces);
        fr_sse_init(&s, 1000);
        assert_int_equal(fr_sse_feed(&s, text, sizeof text, collect, &whole), 0);
        fr_sse_fini(&s);
        fr_sse_init(&s, 1000);
        for (size_t i = 0, n; i < sizeof text; i += n) {
            n = fr_rng_below(&r, 9) + 1;
            n = n < sizeof text - i ? n : sizeof text - i;
            assert_int_equal(fr_sse_feed(&s, text + i, n, collect, &pieces), 0);
        }
        fr_sse_fini(&s);
        assert_string_equal(fr_buf_str(&pieces), fr_buf_str(&whole));
    }
    fr_buf_fini(&whole);
    fr_buf_fini(&pieces);
}

static void an_endless_line_or_event_is_refused(void **state)
{
    char x[256];
    struct fr_buf out = FR_BUF_INIT;
    struct fr_sse s;
    int rc = 0, fed = 0;

    (void)state;
    memset(x, 'x', sizeof x);
    fr_sse_init(&s, 1000);
    while (rc == 0 && fed++ < 100)
        rc = fr_sse_feed(&s, x, sizeof x, collect, &out);
    assert_int_equal(rc, -EFBIG);
    assert_true(s.line.len < 1500);
    fr_sse_fini(&s);
    fr_sse_init(&s, 1000);
    for (rc = 0, fed = 0; rc == 0 && fed < 100; fed++)
        rc = fr_sse_feed(&s, "data: 0123456789012345678901234567890123456789\n", 47, collect, &out);
    assert_int_equal(rc, -EFBIG);
    fr_sse_fini(&s);
    fr_buf_fini(&out);
}

static int stop(const char *event, const char *data, size_t n, void *arg)
{
    (void)event;
    (void)data;
    (void)n;
    return ++*(int *)arg == 2 ? 42 : 0;
}

static void the_function_can_end_the_stream(void **state)
{
    struct fr_sse s;
    int calls = 0;

    (void)state;
    fr_sse_init(&s, 1000);
    assert_int_equal(fr_sse_feed(&s, STREAM, strlen(STREAM), stop, &calls), 42);
    assert_int_equal(calls, 2);
    fr_sse_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_standards_examples_come_out_at_every_cut),
        cmocka_unit_test(random_bytes_in_random_pieces_equal_the_whole),
        cmocka_unit_test(an_endless_line_or_event_is_refused),
        cmocka_unit_test(the_function_can_end_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
