/* SPDX-License-Identifier: Apache-2.0 */
/* test_hostlist.c - gpu[001-003,7] and back */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/rng.h"
#include "base/xalloc.h"

static void expect(const char *text, const char *const *names)
{
    FR_CLEANUP(fr_freep) char **got = NULL;
    struct fr_err err = FR_ERR_INIT;
    int n = fr_hostlist_expand(text, &got, &err), i;

    if (n < 0)
        fail_msg("%s", err.text);
    for (i = 0; names[i]; i++) {
        assert_true(i < n);
        assert_string_equal(got[i], names[i]);
    }
    assert_int_equal(n, i);
    assert_null(got[n]);
}

/* As `scontrol show hostnames` answers. */
static void lists_expand_as_slurm_does(void **state)
{
    (void)state;
    expect("gpu[001-003,7]", (const char *const[]){"gpu001", "gpu002", "gpu003", "gpu7", NULL});
    expect("a,b-1.site,c", (const char *const[]){"a", "b-1.site", "c", NULL});
    expect("n[8-11]", (const char *const[]){"n8", "n9", "n10", "n11", NULL});
    expect("n[08-10]-ib", (const char *const[]){"n08-ib", "n09-ib", "n10-ib", NULL});
    expect("r[1-2]n[1-2]", (const char *const[]){"r1n1", "r1n2", "r2n1", "r2n2", NULL});
    expect(" a ,\n b ", (const char *const[]){"a", "b", NULL});
    expect("a b", (const char *const[]){"a", "b", NULL});
    expect("", (const char *const[]){NULL});
    expect("[1-3]", (const char *const[]){"1", "2", "3", NULL});
}

static void broken_lists_are_refused(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } BAD[] = {{"a,,b", -EINVAL},
               {",a", -EINVAL},
               {"a,", -EINVAL},
               {"a[1", -EINVAL},
               {"a]", -EINVAL},
               {"a[3-1]", -EINVAL},
               {"a[]", -EINVAL},
               {"a[x]", -EINVAL},
               {"a[1-]", -EINVAL},
               {"a/b", -EINVAL},
               {"a[1,]", -EINVAL},
               {"\xc3\xa9", -EINVAL},
               {"a[0-999999]", -E2BIG},
               {"a[0-999]b[0-999]", -E2BIG},
               {"a[99999999999999999]", -EINVAL},
               {"a[1[2]]", -EINVAL},
               {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                -EINVAL}};
    char **ret = (char **)&BAD;
    struct fr_err err;

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fr_hostlist_expand(BAD[i].text, &ret, &err), BAD[i].rc);
        assert_true(strncmp(err.text, "host list '", 11) == 0);
    }
    assert_ptr_equal(ret, &BAD);
}

static void lists_fold_to_the_short_form(void **state)
{
    static char *const A[] = {"gpu001", "gpu002", "gpu003", "gpu7"};
    static char *const B[] = {"n9", "n10", "n11", "m1", "x", "n12", "n13-ib", "n14-ib"};
    static char *const C[] = {"n2", "n1", "n1", "n99999999999999999999"};
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    fr_hostlist_fold(A, 4, &out);
    assert_string_equal(fr_buf_str(&out), "gpu[001-003,7]");
    fr_buf_reset(&out);
    fr_hostlist_fold(B, 8, &out);
    assert_string_equal(fr_buf_str(&out), "n[9-11],m1,x,n12,n[13-14]-ib");
    fr_buf_reset(&out);
    fr_hostlist_fold(C, 4, &out);
    assert_string_equal(fr_buf_str(&out), "n[2,1,1],n99999999999999999999");
    fr_buf_reset(&out);
    fr_hostlist_fold(C, 0, &out);
    assert_string_equal(fr_buf_str(&out), "");
    fr_buf_fini(&out);
}

static void random_name(struct fr_rng *r, char *name, size_t n)
{
    static const char *const PREFIX[] = {"n", "gpu", "r1n", "a-", "b.c", ""};
    static const char *const SUFFIX[] = {"", "", "", "-ib", ".x2.y"};

    snprintf(name, n, "%s%0*d%s", PREFIX[fr_rng_below(r, 6)], (int)fr_rng_below(r, 4) + 1,
             (int)fr_rng_below(r, fr_rng_below(r, 2) ? 12 : 1200), SUFFIX[fr_rng_below(r, 5)]);
}

/* Property: folding then expanding gives the names back, in their order, whatever they are. */
static void random_lists_survive_the_round_trip(void **state)
{
    enum { MOST = 60 };
    static char names[MOST][48];
    char *list[MOST];
    struct fr_rng r = {23};
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        size_t n = fr_rng_below(&r, MOST) + 1;
        FR_CLEANUP(fr_freep) char **back = NULL;
        struct fr_err err = FR_ERR_INIT;

        for (size_t i = 0; i < n; i++) {
            unsigned v;
            int width = 0;

            list[i] = names[i];
            /* Often the next number of the one before, with its width or without. */
            if (i && fr_rng_below(&r, 3) && sscanf(names[i - 1], "n%n%u", &width, &v) == 1 &&
                strlen(names[i - 1]) < 9)
                snprintf(names[i], sizeof names[i], "n%0*u",
                         fr_rng_below(&r, 8) ? (int)strlen(names[i - 1]) - 1 : 1, v + 1);
            else
                random_name(&r, names[i], sizeof names[i]);
        }
        fr_buf_reset(&out);
        fr_hostlist_fold(list, n, &out);
        assert_int_equal(fr_hostlist_expand(fr_buf_str(&out), &back, &err), n);
        for (size_t i = 0; i < n; i++)
            assert_string_equal(back[i], list[i]);
    }
    fr_buf_fini(&out);
}

static void the_largest_list_is_handled(void **state)
{
    FR_CLEANUP(fr_freep) char **got = NULL;
    struct fr_buf out = FR_BUF_INIT;

    (void)state;
    assert_int_equal(fr_hostlist_expand("gpu[000000-131071]", &got, NULL), FR_HOSTLIST_MAX);
    assert_string_equal(got[131071], "gpu131071");
    fr_hostlist_fold(got, FR_HOSTLIST_MAX, &out);
    assert_string_equal(fr_buf_str(&out), "gpu[000000-131071]");
    fr_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_expand_as_slurm_does),
        cmocka_unit_test(broken_lists_are_refused),
        cmocka_unit_test(lists_fold_to_the_short_form),
        cmocka_unit_test(random_lists_survive_the_round_trip),
        cmocka_unit_test(the_largest_list_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
