/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - a growing string of bytes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rng.h"

static void an_empty_buffer_is_an_empty_text(void **state)
{
    struct fr_buf b = FR_BUF_INIT;

    (void)state;
    assert_string_equal(fr_buf_str(&b), "");
    fr_buf_reset(&b);
    fr_buf_add(&b, "", 0);
    fr_buf_printf(&b, "%s", "");
    assert_string_equal(fr_buf_str(&b), "");
    fr_buf_fini(&b);
}

/* Property: whatever is added in whatever way, the buffer holds what a plain array would hold. */
static void any_mix_of_additions_equals_a_plain_array(void **state)
{
    static char plain[1 << 18];
    struct fr_buf b = FR_BUF_INIT;
    struct fr_rng r = {7};

    (void)state;
    for (int round = 0; round < 30; round++) {
        size_t n = 0;

        fr_buf_reset(&b);
        for (int i = 0; i < 200; i++) {
            char piece[600];
            size_t len = fr_rng_below(&r, sizeof piece - 1);

            for (size_t k = 0; k < len; k++)
                piece[k] = (char)('a' + fr_rng_below(&r, 26));
            piece[len] = '\0';
            switch (fr_rng_below(&r, 5)) {
            case 0:
                fr_buf_add(&b, piece, len);
                break;
            case 1:
                fr_buf_puts(&b, piece);
                break;
            case 2:
                fr_buf_printf(&b, "%s", piece);
                break;
            case 3:
                memcpy(fr_buf_room(&b, len + 50), piece, len); /* more room than is used */
                b.len += len;
                break;
            default:
                fr_buf_putc(&b, 'x');
                piece[0] = 'x';
                len = 1;
            }
            memcpy(plain + n, piece, len);
            n += len;
        }
        assert_int_equal(b.len, n);
        assert_memory_equal(fr_buf_str(&b), plain, n);
        assert_int_equal(fr_buf_str(&b)[n], '\0');
    }
    fr_buf_fini(&b);
    assert_null(b.p);
}

static void a_long_error_is_cut_and_a_prefix_goes_in_front(void **state)
{
    struct fr_err err = FR_ERR_INIT;
    char text[2 * FR_ERR_TEXT_BYTES];

    (void)state;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(fr_fail(NULL, -5, "%s", text), -5);
    assert_int_equal(fr_fail(&err, -5, "%s", text), -5);
    assert_int_equal(strlen(err.text), FR_ERR_TEXT_BYTES - 1);
    assert_int_equal(fr_fail_in(&err, -6, "file %d", 3), -6);
    assert_memory_equal(err.text, "file 3: aaa", 11);
    assert_true(strlen(err.text) < FR_ERR_TEXT_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_text),
        cmocka_unit_test(any_mix_of_additions_equals_a_plain_array),
        cmocka_unit_test(a_long_error_is_cut_and_a_prefix_goes_in_front),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
