/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "helper_files.h"
#include "lossfile.h"

/* Open at `step`, add `step + 1`, and give the whole text back. */
static const char *reopen(int64_t step)
{
    static char text[4096];
    FILE *f;
    size_t n;

    assert_int_equal(fr_lossfile_open(in_folder("losses"), step, &f, NULL), 0);
    assert_int_equal(fr_lossfile_add(f, step + 1, 1.5, 0.25), 0);
    fclose(f);
    f = fopen(in_folder("losses"), "r");
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    return text;
}

#define L(step)                                                                                    \
    "{\"step\":" step ",\"loss\":1.5,\"loss_bits\":\"3ff8000000000000\",\"step_time_s\":0.250000}" \
    "\n"

static void a_line_has_the_loss_and_its_bits(void **state)
{
    (void)state;
    remove(in_folder("losses"));
    assert_string_equal(reopen(0), L("1"));
}

static void steps_after_the_resumed_one_are_dropped(void **state)
{
    (void)state;
    put_file("losses", L("1") L("2") L("3") L("4"), strlen(L("1") L("2") L("3") L("4")));
    assert_string_equal(reopen(2), L("1") L("2") L("3"));
    assert_string_equal(reopen(0), L("1"));
}

static void a_torn_last_line_is_dropped(void **state)
{
    (void)state;
    put_file("losses", L("1") L("2") "{\"step\":3,\"lo", strlen(L("1") L("2")) + 13);
    assert_string_equal(reopen(2), L("1") L("2") L("3"));
    put_file("losses", L("1") "garbage\n" L("2"), strlen(L("1") "garbage\n" L("2")));
    assert_string_equal(reopen(1), L("1") L("2"));
}

static void a_file_that_cannot_be_opened_is_named(void **state)
{
    struct fr_err err;
    FILE *f = NULL;

    (void)state;
    assert_int_equal(fr_lossfile_open("/nonexistent/losses", 0, &f, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/losses"));
    assert_null(f);
}

static void a_line_that_cannot_be_written_is_an_error(void **state)
{
    FILE *f = fopen("/dev/full", "w");

    (void)state;
    assert_non_null(f);
    setvbuf(f, NULL, _IOLBF, 0);
    assert_int_equal(fr_lossfile_add(f, 1, 1.5, 0.25), -ENOSPC);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_loss_and_its_bits),
        cmocka_unit_test(steps_after_the_resumed_one_are_dropped),
        cmocka_unit_test(a_torn_last_line_is_dropped),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_named),
        cmocka_unit_test(a_line_that_cannot_be_written_is_an_error),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
