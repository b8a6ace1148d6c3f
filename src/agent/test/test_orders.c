/* SPDX-License-Identifier: Apache-2.0 */
/* test_orders.c - a Reply is read whole or refused, and never takes more memory than it may */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/orders.h"
#include "base/rng.h"
#include "wire/agent.pb-c.h"

static uint32_t ranks[3] = {4, 5, 6};
static Fullrank__Assignment a = FULLRANK__ASSIGNMENT__INIT;
static Fullrank__Assignment *as[] = {&a};

static Fullrank__Reply sample(void)
{
    Fullrank__Reply r = FULLRANK__REPLY__INIT;

    fullrank__assignment__init(&a);
    a.job = (char *)"job-9";
    a.attempt = 3;
    a.epoch = 12;
    a.uid = 1000;
    a.session = 77;
    a.ranks = ranks;
    a.n_ranks = 3;
    r.controller_instance = 0xabcdef;
    r.acked_seq = 41;
    r.keep_log2 = 4;
    r.interval_s = 0.5;
    r.assignments = as;
    r.n_assignments = 1;
    return r;
}

static int parse(const Fullrank__Reply *r, struct fr_orders *o, struct fr_err *err)
{
    size_t n = fullrank__reply__get_packed_size(r);
    uint8_t *p = malloc(n + 1);
    int rc;

    fullrank__reply__pack(r, p);
    rc = fr_orders_parse(p, n, o, err);
    free(p);
    return rc;
}

static void a_reply_is_read_whole(void **state)
{
    Fullrank__Reply r = sample();
    struct fr_orders o;

    (void)state;
    assert_int_equal(parse(&r, &o, NULL), 0);
    assert_int_equal(o.controller_instance, 0xabcdef);
    assert_int_equal(o.acked_seq, 41);
    assert_int_equal(o.keep_log2, 4);
    assert_true(o.interval_s == 0.5);
    assert_int_equal(o.nassignments, 1);
    assert_string_equal(o.assignments[0].job, "job-9");
    assert_int_equal(o.assignments[0].nranks, 3);
    assert_int_equal(o.assignments[0].ranks[2], 6);
    fr_orders_fini(&o);
}

static void what_breaks_a_bound_is_refused_as_a_whole(void **state)
{
    Fullrank__Reply r = sample();
    struct fr_orders o;
    struct fr_err err = FR_ERR_INIT;
    char longer[200];
    static uint32_t many[FR_ORDERS_RANKS + 1];

    (void)state;
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    a.job = longer;
    assert_int_equal(parse(&r, &o, &err), -EPROTO);
    a.job = (char *)"job\n9"; /* would break a log line */
    assert_int_equal(parse(&r, &o, &err), -EPROTO);
    a.job = (char *)"";
    assert_int_equal(parse(&r, &o, &err), -EPROTO);
    r = sample();
    a.session = 0; /* and no cgroup: would cover every process */
    assert_int_equal(parse(&r, &o, &err), -EPROTO);
    r = sample();
    a.ranks = many;
    a.n_ranks = FR_ORDERS_RANKS + 1;
    assert_int_equal(parse(&r, &o, &err), -E2BIG);
    assert_true(strlen(err.text) > 10);
    r = sample();
    r.interval_s = NAN; /* left as it was */
    assert_int_equal(parse(&r, &o, &err), 0);
    assert_true(o.interval_s == 0);
    fr_orders_fini(&o);
    r.interval_s = 1e-9;
    assert_int_equal(parse(&r, &o, &err), 0);
    assert_true(o.interval_s == 0);
    fr_orders_fini(&o);
}

static void small_bytes_cannot_take_large_memory(void **state)
{
    size_t n = 2u << 20;
    uint8_t *p = malloc(n);
    struct fr_orders o;

    (void)state;
    for (size_t i = 0; i + 1 < n; i += 2) { /* a million empty assignments: field 6, length 0 */
        p[i] = 6 << 3 | 2;
        p[i + 1] = 0;
    }
    assert_int_equal(fr_orders_parse(p, n, &o, NULL), -EPROTO);
    free(p);
    assert_int_equal(fr_orders_parse((const uint8_t *)"", FR_ORDERS_REPLY_BYTES + 1, &o, NULL), -E2BIG);
}

static void damaged_replies_are_refused_or_read_and_never_more(void **state)
{
    Fullrank__Reply r = sample();
    size_t n = fullrank__reply__get_packed_size(&r);
    uint8_t p[512], q[512];
    struct fr_rng g = {3};

    (void)state;
    assert_true(n < sizeof p);
    fullrank__reply__pack(&r, p);
    for (int i = 0; i < 20000; i++) {
        size_t len = 1 + fr_rng_below(&g, n);
        struct fr_orders o;

        memcpy(q, p, n);
        for (uint64_t k = fr_rng_below(&g, 4); k > 0; k--)
            q[fr_rng_below(&g, n)] = (uint8_t)fr_rng_u64(&g);
        if (fr_orders_parse(q, len, &o, NULL) == 0)
            fr_orders_fini(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_read_whole),
        cmocka_unit_test(what_breaks_a_bound_is_refused_as_a_whole),
        cmocka_unit_test(small_bytes_cannot_take_large_memory),
        cmocka_unit_test(damaged_replies_are_refused_or_read_and_never_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
