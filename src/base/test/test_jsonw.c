/* SPDX-License-Identifier: Apache-2.0 */
/* test_jsonw.c - what the writer writes, jansson reads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/rng.h"

static json_t *parsed(const struct fr_buf *b)
{
    json_error_t why;
    json_t *root = json_loadb(fr_buf_str(b), b->len,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);

    if (!root)
        fail_msg("%s in: %.200s", why.text, fr_buf_str(b));
    return root;
}

/* Property: any bytes at all give a document that a strict parser takes, and well-formed text comes
 * back equal. */
static void hostile_bytes_give_valid_json(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_rng r = {11};
    struct fr_jsonw w;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char bytes[64];
        size_t n = fr_rng_below(&r, sizeof bytes);
        json_t *root;

        for (size_t i = 0; i < n; i++) /* half of them from where UTF-8 sequences begin and go on */
            bytes[i] =
                (char)(fr_rng_below(&r, 2) ? fr_rng_below(&r, 256) : 0x80 + fr_rng_below(&r, 0x80));
        fr_buf_reset(&b);
        fr_jsonw_init(&w, &b);
        fr_jsonw_arr(&w, NULL);
        fr_jsonw_strn(&w, NULL, bytes, n);
        fr_jsonw_end_arr(&w);
        root = parsed(&b);
        assert_true(json_is_string(json_array_get(root, 0)));
        json_decref(root);
    }
    fr_buf_fini(&b);
}

static size_t encode(uint32_t c, char *p)
{
    if (c < 0x80) {
        p[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        p[0] = (char)(0xc0 | c >> 6);
        p[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        p[0] = (char)(0xe0 | c >> 12);
        p[1] = (char)(0x80 | (c >> 6 & 63));
        p[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    p[0] = (char)(0xf0 | c >> 18);
    p[1] = (char)(0x80 | (c >> 12 & 63));
    p[2] = (char)(0x80 | (c >> 6 & 63));
    p[3] = (char)(0x80 | (c & 63));
    return 4;
}

static void every_unicode_character_comes_back_unchanged(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    (void)state;
    for (uint32_t from = 0; from < 0x110000; from += 4096) {
        static char text[4096 * 4];
        size_t n = 0;
        json_t *root, *v;

        for (uint32_t c = from; c < from + 4096; c++)
            if (c < 0xd800 || c > 0xdfff)
                n += encode(c, text + n);
        fr_buf_reset(&b);
        fr_jsonw_init(&w, &b);
        fr_jsonw_strn(&w, NULL, text, n);
        root = parsed(&b);
        v = root;
        assert_int_equal(json_string_length(v), n);
        assert_memory_equal(json_string_value(v), text, n);
        json_decref(root);
    }
    fr_buf_fini(&b);
}

static void bad_utf8_becomes_the_replacement_character(void **state)
{
    /* overlong, surrogate, beyond U+10FFFF, cut off, lone continuation */
    static const char *const BAD[] = {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82",
                                      "\x80"};
    struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        const char *p;
        json_t *v;

        fr_buf_reset(&b);
        fr_jsonw_init(&w, &b);
        fr_jsonw_str(&w, NULL, BAD[i]);
        v = parsed(&b);
        for (p = json_string_value(v); *p; p += 3)
            assert_memory_equal(p, "\xef\xbf\xbd", 3);
        json_decref(v);
    }
    fr_buf_fini(&b);
}

/* Property: every double reads back the same, and no shorter %g form does. */
static void doubles_are_exact_and_shortest(void **state)
{
    static const double SPECIAL[] = {
        0, -0.0, 1, -1, 0.1, 1e15, 1e16, 123456789012345678.0, 1e300, 5e-324, 0x1p53, 1.0 / 3};
    struct fr_buf b = FR_BUF_INIT;
    struct fr_rng r = {13};
    struct fr_jsonw w;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        double v;
        uint64_t bits = fr_rng_u64(&r);

        if (i < (int)(sizeof SPECIAL / sizeof SPECIAL[0]))
            v = SPECIAL[i];
        else if (i % 2)
            v = (double)(int64_t)(bits >> 40) / 1000;
        else
            memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        fr_buf_reset(&b);
        fr_jsonw_init(&w, &b);
        fr_jsonw_num(&w, NULL, v);
        assert_true(strtod(fr_buf_str(&b), NULL) == v);
        if (i < 5000) {
            char shorter[64];
            int digits = 1;

            while (snprintf(shorter, sizeof shorter, "%.*g", digits, v), strtod(shorter, NULL) != v)
                digits++;
            if (strchr(shorter, '.') || strchr(shorter, 'e'))
                assert_true(b.len <= strlen(shorter) || fabs(v) < 1e15);
        }
    }
    fr_buf_fini(&b);
}

static void numbers_keep_their_point_in_every_locale(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip();
    fr_jsonw_init(&w, &b);
    fr_jsonw_num(&w, NULL, 1.5);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(fr_buf_str(&b), "1.5");
    fr_buf_fini(&b);
}

static void every_kind_of_value_stands_in_the_document(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    (void)state;
    fr_jsonw_init(&w, &b);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "s\"k", "a\tb");
    fr_jsonw_str(&w, "none", NULL);
    fr_jsonw_int(&w, "min", INT64_MIN);
    fr_jsonw_uint(&w, "max", UINT64_MAX);
    fr_jsonw_num(&w, "nan", NAN);
    fr_jsonw_num(&w, "inf", -INFINITY);
    fr_jsonw_bool(&w, "yes", true);
    fr_jsonw_time(&w, "t", 1772366400123000000);
    fr_jsonw_time(&w, "never", 0);
    fr_jsonw_arr(&w, "a");
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_end_obj(&w);
    fr_jsonw_arr(&w, NULL);
    fr_jsonw_end_arr(&w);
    fr_jsonw_raw(&w, NULL, "{\"x\":1}", 7);
    fr_jsonw_end_arr(&w);
    fr_jsonw_null(&w, "end");
    fr_jsonw_end_obj(&w);
    assert_string_equal(
        fr_buf_str(&b),
        "{\"s\\\"k\":\"a\\tb\",\"none\":null,\"min\":-9223372036854775808,\"max\":"
        "18446744073709551615,"
        "\"nan\":null,\"inf\":null,\"yes\":true,\"t\":\"2026-03-01T12:00:00.123Z\",\"never\":null,"
        "\"a\":[{},[],{\"x\":1}],\"end\":null}");
    fr_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_bytes_give_valid_json),
        cmocka_unit_test(every_unicode_character_comes_back_unchanged),
        cmocka_unit_test(bad_utf8_becomes_the_replacement_character),
        cmocka_unit_test(doubles_are_exact_and_shortest),
        cmocka_unit_test(numbers_keep_their_point_in_every_locale),
        cmocka_unit_test(every_kind_of_value_stands_in_the_document),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
