/* SPDX-License-Identifier: Apache-2.0 */
/* test_xalloc.c - memory or the end */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/xalloc.h"

static void memory_is_zeroed_and_never_null(void **state)
{
    unsigned char *p = fr_xcalloc(100, 7);
    void *none = fr_xalloc(0);

    (void)state;
    for (int i = 0; i < 700; i++)
        assert_int_equal(p[i], 0);
    assert_non_null(none);
    free(p);
    free(none);
}

static void growing_keeps_the_content(void **state)
{
    int *p = NULL;

    (void)state;
    for (size_t n = 1; n < 300; n++) {
        p = fr_xreallocarray(p, n, sizeof *p);
        p[n - 1] = (int)n;
    }
    for (int i = 0; i < 299; i++)
        assert_int_equal(p[i], i + 1);
    free(p);
}

static void text_is_copied_and_formatted(void **state)
{
    FR_CLEANUP(fr_freep) char *a = fr_xstrdup("rank");
    FR_CLEANUP(fr_freep) char *b = fr_xasprintf("%s %d", a, 7);

    (void)state;
    assert_string_equal(b, "rank 7");
}

/* Sizes no machine can give: the call must end its process, not come back. */
static void impossible_sizes_end_the_process(void **state)
{
    static const size_t SIZES[][2] = {
        {SIZE_MAX, 2}, {SIZE_MAX / 2, 3}, {1, SIZE_MAX}, {1ull << 33, 1ull << 33}};

    (void)state;
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        for (int grow = 0; grow < 2; grow++) {
            int status;
            pid_t pid = fork();

            assert_true(pid >= 0);
            if (pid == 0) {
                signal(SIGABRT, SIG_DFL);
                close(STDERR_FILENO);
                if (grow)
                    fr_xreallocarray(NULL, SIZES[i][0], SIZES[i][1]);
                else
                    fr_xcalloc(SIZES[i][0], SIZES[i][1]);
                _exit(0);
            }
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_never_null),
        cmocka_unit_test(growing_keeps_the_content),
        cmocka_unit_test(text_is_copied_and_formatted),
        cmocka_unit_test(impossible_sizes_end_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
