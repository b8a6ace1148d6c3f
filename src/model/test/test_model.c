/* SPDX-License-Identifier: Apache-2.0 */
/* The model's tables: names, moves, factors, settings, metrics, routes. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/api.h"
#include "model/config.h"
#include "model/decision.h"
#include "model/finding.h"
#include "model/job.h"
#include "model/metrics.h"
#include "model/node.h"
#include "model/op.h"

/* nccl-tests: factor = ((double)(2 * (nranks - 1))) / ((double)nranks), likewise for the others. */
static void bus_factors_equal_those_of_nccl_tests_to_the_last_bit(void **state)
{
    (void)state;
    for (int n = 1; n <= 4096; n++) {
        double twice = ((double)(2 * (n - 1))) / ((double)n),
               once = ((double)(n - 1)) / ((double)n);
        uint32_t u = (uint32_t)n;

        assert_true(fr_op_busbw_factor(FR_OP_ALLREDUCE, u) == twice);
        assert_true(fr_op_busbw_factor(FR_OP_ALLGATHER, u) == once);
        assert_true(fr_op_busbw_factor(FR_OP_REDUCE_SCATTER, u) == once);
        assert_true(fr_op_busbw_factor(FR_OP_ALLTOALL, u) == once);
        assert_true(fr_op_busbw_factor(FR_OP_GATHER, u) == once);
        assert_true(fr_op_busbw_factor(FR_OP_SCATTER, u) == once);
        assert_true(fr_op_busbw_factor(FR_OP_BCAST, u) == 1);
        assert_true(fr_op_busbw_factor(FR_OP_REDUCE, u) == 1);
        assert_true(fr_op_busbw_factor(FR_OP_SENDRECV, u) == 1);
    }
    assert_true(isnan(fr_op_busbw_factor(FR_OP_BARRIER, 4)));
    assert_true(isnan(fr_op_busbw_factor(FR_OP_ALLREDUCE, 0)));
    assert_true(isnan(fr_op_busbw_factor(999, 4)));
}

/* Each operation as nccl-tests writes it down, from the count that its caller passes: integers are
 * multiplied first, then one conversion, two divisions and one product. */
enum fold { ONE, N_FOLD };
static const struct {
    uint32_t op;
    enum fold fold;
    int up, down; /* factor (up * (n - 1)) / n, down 0: 1 */
} NCCL_TESTS[] = {
    {FR_OP_ALLREDUCE, ONE, 2, 1},
    {FR_OP_ALLGATHER, N_FOLD, 1, 1},
    {FR_OP_REDUCE_SCATTER, N_FOLD, 1, 1},
    {FR_OP_ALLTOALL, N_FOLD, 1, 1},
    {FR_OP_GATHER, N_FOLD, 1, 1},
    {FR_OP_SCATTER, N_FOLD, 1, 1},
    {FR_OP_BCAST, ONE, 0, 0},
    {FR_OP_REDUCE, ONE, 0, 0},
    {FR_OP_SEND, ONE, 0, 0},
    {FR_OP_RECV, ONE, 0, 0},
    {FR_OP_SENDRECV, ONE, 0, 0},
};

static void busbw_is_that_of_nccl_tests_to_the_last_bit(void **state)
{
    uint64_t x = 88172645463325252ull;

    (void)state;
    for (size_t k = 0; k < sizeof NCCL_TESTS / sizeof NCCL_TESTS[0]; k++)
        for (int i = 0; i < 20000; i++) {
            size_t count, typesize = (size_t)1 << (i & 3), bytes;
            int nranks = 2 + (int)(x % 4095);
            double sec, base, factor, bus;

            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            count = (size_t)(x >> (24 + x % 38));
            sec = (double)(1 + (x >> 40)) * 1.0e-9;
            bytes = count * typesize * (NCCL_TESTS[k].fold == N_FOLD ? (size_t)nranks : 1);
            base = (double)bytes / 1.0E9 / sec;
            factor = NCCL_TESTS[k].down
                         ? ((double)(NCCL_TESTS[k].up * (nranks - 1))) / ((double)nranks)
                         : 1;
            bus = base * factor;
            assert_true(fr_op_algbw_gbs(bytes, sec) == base);
            assert_true(fr_op_busbw_gbs(NCCL_TESTS[k].op, (uint32_t)nranks, bytes, sec) == bus);
        }
    /* by hand: 8 ranks, 1 GiB in 5 ms; factor 14/8 */
    assert_true(fabs(fr_op_algbw_gbs(1u << 30, 0.005) - 214.7483648) < 1e-9);
    assert_true(fabs(fr_op_busbw_gbs(FR_OP_ALLREDUCE, 8, 1u << 30, 0.005) - 375.8096384) < 1e-9);
    assert_true(isnan(fr_op_busbw_gbs(FR_OP_BARRIER, 8, 1, 1)));
    assert_true(isnan(fr_op_busbw_gbs(FR_OP_ALLREDUCE, 8, 1, 0)));
}

static void every_name_is_there_and_unknown_numbers_get_one_too(void **state)
{
    (void)state;
    assert_string_equal(fr_op_name(FR_OP_ALLREDUCE), "AllReduce");
    for (uint32_t op = 0; op < 200; op++)
        assert_non_null(fr_op_name(op));
    assert_string_equal(fr_op_name(UINT32_MAX), "?");
    for (int i = 0; i < FR_FINDING_KINDS; i++)
        assert_string_not_equal(fr_finding_kind_name((enum fr_finding_kind)i), "?");
    assert_string_equal(fr_finding_kind_name((enum fr_finding_kind) - 1), "?");
    for (int i = 0; i < FR_CHOICES; i++)
        assert_string_not_equal(fr_choice_name((enum fr_choice)i), "?");
    assert_string_equal(fr_choice_name(FR_CHOICE_GIVE_UP), "give_up");
    assert_string_equal(fr_cause_name(FR_CAUSE_APPLICATION), "application");
    assert_string_equal(fr_subject_name(FR_SUBJECT_LINK), "link");
    assert_string_equal(fr_phase_name(5), "checkpoint");
    assert_string_equal(fr_phase_name(6), "?");
}

static void witness_names_are_listed_whole_and_never_overflow(void **state)
{
    char text[64] = "", small[8] = "";

    (void)state;
    fr_witness_names(FR_WITNESS_PEERS | FR_WITNESS_PAST | FR_WITNESS_ARRIVAL, text, sizeof text);
    assert_string_equal(text, "peers,past,arrival");
    fr_witness_names(FR_WITNESS_PEERS | FR_WITNESS_PAST, small, sizeof small);
    assert_string_equal(small, "peers");
    for (uint32_t n = 0; n < sizeof text; n++) {
        memset(text, 0, sizeof text);
        fr_witness_names(UINT32_MAX, text, n);
        assert_true(strlen(text) < (n ? n : 1));
    }
    assert_int_equal(fr_witness_count(FR_WITNESS_PEERS | FR_WITNESS_PAST | FR_WITNESS_ARRIVAL), 1);
    assert_int_equal(fr_witness_count(FR_WITNESS_PEERS | FR_WITNESS_THROTTLED), 2);
    assert_int_equal(fr_witness_count(FR_WITNESS_GONE | FR_WITNESS_LAUNCHER), 2);
    assert_int_equal(fr_witness_count(0), 0);
    assert_false(fr_witness_is_direct(FR_WITNESS_SILENCE | FR_WITNESS_IO));
    assert_true(fr_witness_is_direct(FR_WITNESS_SILENCE | FR_WITNESS_STOPPED));
}

static void an_ended_job_never_moves_again_and_every_other_can_end(void **state)
{
    (void)state;
    for (int from = 0; from < FR_JOB_STATES; from++) {
        int end = fr_job_state_is_end((enum fr_job_state)from), moves = 0;

        for (int to = 0; to < FR_JOB_STATES; to++)
            moves += fr_job_may_move((enum fr_job_state)from, (enum fr_job_state)to);
        if (end)
            assert_int_equal(moves, 0);
        else
            assert_true(fr_job_may_move((enum fr_job_state)from, FR_JOB_CANCELLED));
        assert_false(fr_job_may_move((enum fr_job_state)from, (enum fr_job_state)from));
    }
    assert_true(fr_job_state_is_end(FR_JOB_DONE));
    assert_true(fr_job_may_move(FR_JOB_RUNNING, FR_JOB_STOPPING));
    assert_false(fr_job_may_move(FR_JOB_RUNNING, FR_JOB_STARTING));
    assert_false(fr_job_may_move((enum fr_job_state)77, FR_JOB_DONE));
}

/* While heard, a drained node reaches a usable state only through VERIFYING. */
static void a_drained_node_takes_no_job_before_its_test_has_passed(void **state)
{
    (void)state;
    for (int to = 0; to < FR_NODE_STATES; to++)
        if (fr_node_is_usable((enum fr_node_state)to)) {
            assert_false(fr_node_may_move(FR_NODE_DRAINED, (enum fr_node_state)to));
            assert_false(fr_node_may_move(FR_NODE_DOWN, (enum fr_node_state)to));
        }
    assert_true(fr_node_may_move(FR_NODE_DRAINED, FR_NODE_VERIFYING));
    assert_true(fr_node_may_move(FR_NODE_VERIFYING, FR_NODE_PROBATION));
    assert_false(fr_node_may_move(FR_NODE_VERIFYING, FR_NODE_HEALTHY));
    for (int from = 1; from < FR_NODE_STATES; from++)
        assert_true(fr_node_may_move((enum fr_node_state)from, FR_NODE_UNKNOWN));
    assert_false(fr_node_is_usable(FR_NODE_UNKNOWN));
    assert_false(fr_node_is_usable(FR_NODE_DRAINING));
    assert_true(fr_node_is_usable(FR_NODE_PROBATION));
}

static void modes_are_read_back_from_their_names(void **state)
{
    enum fr_mode m = FR_MODE_ADVISE;

    (void)state;
    for (int i = FR_MODE_OBSERVE; i <= FR_MODE_ACT; i++) {
        assert_int_equal(fr_mode_parse(fr_mode_name((enum fr_mode)i), &m), 0);
        assert_int_equal(m, i);
    }
    assert_int_equal(fr_mode_parse("ACT", &m), -EINVAL);
    assert_int_equal(fr_mode_parse(NULL, &m), -EINVAL);
    assert_int_equal(m, FR_MODE_ACT);
}

static void settings_have_unique_keys_members_of_their_own_and_a_sentence(void **state)
{
    size_t n = 0;

    (void)state;
    for (const struct fr_config_row *a = FR_CONFIG_ROWS; a->section; a++, n++) {
        assert_true(strlen(a->text) > 10 && a->text[strlen(a->text) - 1] == '.');
        for (const struct fr_config_row *b = a + 1; b->section; b++) {
            assert_true(strcmp(a->section, b->section) != 0 || strcmp(a->key, b->key) != 0);
            assert_true(a->offset != b->offset);
        }
    }
    assert_true(n > 40);
}

static void metrics_follow_the_naming_rules(void **state)
{
    (void)state;
    for (int i = 0; i < FR_METRICS; i++) {
        const struct fr_metric_row *m = &FR_METRIC_ROWS[i];
        size_t len = strlen(m->name);

        /* ours, or a name that others gave and dashboards know */
        assert_true(strncmp(m->name, "fullrank_", 9) == 0 || strncmp(m->name, "nccl_", 5) == 0);
        assert_int_equal(strspn(m->name, "abcdefghijklmnopqrstuvwxyz_2"), len);
        /* The account's totals are totals, but a restart or a finding moves what is past. */
        if (i == FR_METRIC_STEP_TOTAL || i == FR_METRIC_LOST_SECONDS)
            assert_int_equal(m->type, FR_METRIC_TYPE_GAUGE);
        else
            assert_int_equal(len > 6 && strcmp(m->name + len - 6, "_total") == 0,
                             m->type == FR_METRIC_TYPE_COUNTER);
        if (m->unit[0])
            assert_non_null(strstr(m->name, m->unit));
        assert_true(m->help[strlen(m->help) - 1] == '.');
        for (int k = 0; k < i; k++)
            assert_string_not_equal(m->name, FR_METRIC_ROWS[k].name);
    }
}

static void routes_are_found_with_their_argument(void **state)
{
    char arg[64];

    (void)state;
    assert_int_equal(fr_route_find("GET", "/api/v1/jobs", arg, sizeof arg), FR_ROUTE_JOBS);
    assert_string_equal(arg, "");
    assert_int_equal(fr_route_find("GET", "/api/v1/jobs/j-7", arg, sizeof arg), FR_ROUTE_JOB);
    assert_string_equal(arg, "j-7");
    assert_int_equal(fr_route_find("GET", "/api/v1/jobs/j-7/steps", arg, sizeof arg),
                     FR_ROUTE_STEPS);
    assert_string_equal(arg, "j-7");
    assert_int_equal(fr_route_find("POST", "/api/v1/nodes/n3/drain", arg, sizeof arg),
                     FR_ROUTE_NODE_DRAIN);
    assert_int_equal(fr_route_find("GET", "/api/v1/nodes/n3/drain", arg, sizeof arg), -EPERM);
    assert_int_equal(fr_route_find("GET", "/api/v1/jobs/", arg, sizeof arg), -ENOENT);
    assert_int_equal(fr_route_find("GET", "/api/v1/jobs/a/b/c", arg, sizeof arg), -ENOENT);
    assert_int_equal(fr_route_find("GET", "/api/v1/jobs/abcdef", arg, 4), -ENAMETOOLONG);
    for (int i = 0; i < FR_ROUTES; i++)
        if (FR_ROUTE_ROWS[i].access == FR_ACCESS_READ)
            assert_string_equal(FR_ROUTE_ROWS[i].method, "GET");
}

/* doc/api.md is written by hand: each route must stand there. */
static void every_route_is_in_the_written_api(void **state)
{
    static char doc[1 << 16];
    FILE *f = fopen(FR_SOURCE_DIR "/doc/api.md", "r");
    size_t n;

    (void)state;
    assert_non_null(f);
    n = fread(doc, 1, sizeof doc - 1, f);
    fclose(f);
    doc[n] = 0;
    for (int i = 0; i < FR_ROUTES; i++) {
        char head[128];
        size_t len = strcspn(FR_ROUTE_ROWS[i].path, "{");

        snprintf(head, sizeof head, "%.*s", (int)len, FR_ROUTE_ROWS[i].path);
        assert_non_null(strstr(doc, head));
        if (FR_ROUTE_ROWS[i].schema[0])
            assert_non_null(strstr(doc, FR_ROUTE_ROWS[i].schema));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busbw_is_that_of_nccl_tests_to_the_last_bit),
        cmocka_unit_test(bus_factors_equal_those_of_nccl_tests_to_the_last_bit),
        cmocka_unit_test(every_name_is_there_and_unknown_numbers_get_one_too),
        cmocka_unit_test(witness_names_are_listed_whole_and_never_overflow),
        cmocka_unit_test(an_ended_job_never_moves_again_and_every_other_can_end),
        cmocka_unit_test(a_drained_node_takes_no_job_before_its_test_has_passed),
        cmocka_unit_test(modes_are_read_back_from_their_names),
        cmocka_unit_test(settings_have_unique_keys_members_of_their_own_and_a_sentence),
        cmocka_unit_test(metrics_follow_the_naming_rules),
        cmocka_unit_test(routes_are_found_with_their_argument),
        cmocka_unit_test(every_route_is_in_the_written_api),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
