/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "scan/lines.h"

/* Each text as "NUMBER:text|". */
static int note(const char *p, size_t n, uint64_t number, void *arg)
{
    fr_buf_printf(arg, "%u:%.*s|", (unsigned)number, (int)n, p);
    return 0;
}

static void lines_are_the_same_however_they_are_cut(void **state)
{
    static const char TEXT[] =
        "a\r\n\x1b[1;31mred\x1b[0m\tx\n\n10%\r20%\rend\0\a\n\x1b]0;title\alast";
    static const char WANT[] = "1:a|2:red\tx|3:|4:10%|4:20%|4:end|5:last|";

    (void)state;
    for (size_t piece = 1; piece <= sizeof TEXT; piece++) {
        struct fr_buf b = FR_BUF_INIT;
        struct fr_lines l;

        fr_lines_init(&l, note, &b);
        for (size_t at = 0; at < sizeof TEXT - 1; at += piece) {
            size_t left = sizeof TEXT - 1 - at;

            assert_int_equal(fr_lines_feed(&l, TEXT + at, left < piece ? left : piece), 0);
        }
        assert_int_equal(fr_lines_end(&l), 0);
        assert_string_equal(fr_buf_str(&b), WANT);
        fr_lines_fini(&l);
        fr_buf_fini(&b);
    }
}

static int measure(const char *p, size_t n, uint64_t number, void *arg)
{
    size_t *v = arg;

    (void)p;
    assert_true(n <= FR_LINES_MAX);
    v[0] += n;
    v[1] = (size_t)number;
    return 0;
}

static void a_line_without_an_end_is_delivered_in_pieces_and_held_in_bounded_memory(void **state)
{
    static char chunk[10000];
    struct fr_lines l;
    size_t got[2] = {0, 0};

    (void)state;
    memset(chunk, 'x', sizeof chunk);
    fr_lines_init(&l, measure, got);
    for (int i = 0; i < 100; i++) {
        fr_lines_feed(&l, chunk, sizeof chunk);
        assert_true(l.partial.cap <= 4 * FR_LINES_MAX);
    }
    fr_lines_feed(&l, "\ny", 2);
    fr_lines_end(&l);
    assert_int_equal(got[0], 100 * sizeof chunk + 1);
    assert_int_equal(got[1], 2);
    fr_lines_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_the_same_however_they_are_cut),
        cmocka_unit_test(a_line_without_an_end_is_delivered_in_pieces_and_held_in_bounded_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
