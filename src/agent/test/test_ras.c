/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ras.c - reports of NCCL's RAS, and what is concluded from several of them
 *
 * The reports are those of the public user guide (sample output, JSON output), with hosts and
 * counts changed by the tests; what they must give is read off them by eye.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/ras.h"
#include "base/fs.h"
#include "base/rng.h"

#define S 1000000000ull

/* The text report of a job in which six ranks have launched one operation less. */
static const char MISMATCH[] =
    "NCCL version 2.28.3 compiled with CUDA 12.9\n"
    "CUDA runtime version 12090, driver version 12090\n\n"
    "Job summary\n===========\n\n"
    "  Nodes  Processes         GPUs  Processes     GPUs\n"
    "(total)   per node  per process    (total)  (total)\n"
    "      4          8            1         32       32\n\n"
    "Communicators... (0.00s)\n=============\n\n"
    "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
    "    #  in group  per comm  per node  per comm  in group\n"
    "    0         1         4         8        32        32   RUNNING  MISMATCH\n\n"
    "Errors\n======\n\n"
    "Warnings\n========\n\n"
    "#0-0 (27a079b828ff1a75) MISMATCH\n"
    "  Communicator ranks have different AllReduce operation counts\n"
    "  26 ranks have launched up to operation 6650\n"
    "  6 ranks have launched up to operation 6649\n"
    "  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n"
    "  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210\n"
    "  Rank 3 -- GPU 3 managed by process 483075 on node 172.16.64.210\n"
    "  Rank 4 -- GPU 4 managed by process 483076 on node 172.16.64.210\n"
    "  Rank 5 -- GPU 5 managed by process 483077 on node 172.16.64.210\n"
    "  Rank 7 -- GPU 7 managed by process 483079 on node 172.16.64.210\n\n";

static const char DEAD[] =
    "Errors\n======\n\n"
    "INCOMPLETE\n"
    "  Missing communicator data from 1 job process\n"
    "  Process 3487999 on node 172.16.64.214 managing GPU 6\n\n"
    "DEAD\n"
    "  1 job process is considered dead (unreachable via the RAS network)\n"
    "  Process 3487984 on node 172.16.64.213 managing GPU 5\n\n"
    "#0-0 (cf264af53edbe986) INCOMPLETE\n"
    "  Missing communicator data from 1 rank\n"
    "  The missing rank: 21\n\n"
    "Warnings\n========\n\n"
    "TIMEOUT\n"
    "  Encountered 2 communication timeouts while gathering communicator data\n\n";

/* A JSON report on one communicator: `ranks` with their AllReduce count, and missing ones. */
struct json_rank {
    int rank, pid;
    long count; /* < 0: missing; -1 not there, -2 unresponsive, -3 dead */
};

static size_t make_json(char *out, size_t room, const struct json_rank *r, size_t n)
{
    size_t at = 0, k = 0;

#define OUT(...) (at += (size_t)snprintf(out + at, room - at, __VA_ARGS__))
    OUT("{\n  \"nccl_version\": \"2.29.1\",\n  \"cuda_runtime_version\": 13000,\n"
        "  \"timestamp\": \"2025-12-19 13:06:53\",\n  \"communicators_count\": 1,\n"
        "  \"communicators\": [\n    {\n      \"hash\": \"0xae94423cfbb2ef4a\",\n"
        "      \"secondary_hash\": \"0xb7e7187447156001:0xb8242ed28a71381e\",\n"
        "      \"size\": %zu,\n      \"ranks\": [\n",
        n);
    for (size_t i = 0; i < n; i++)
        if (r[i].count >= 0)
            OUT("%s        {\"rank\": %d, \"host\": \"10.0.0.%d\", \"pid\": %d, \"cuda_dev\": 0,\n"
                "         \"status\": {\"init_state\": 0, \"async_error\": 0, "
                "\"finalize_called\": false, \"destroy_flag\": false, \"abort_flag\": false},\n"
                "         \"collective_counts\": {\"Broadcast\": 3, \"AllReduce\": %ld}}",
                k++ ? ",\n" : "", r[i].rank, 1 + r[i].rank / 8, r[i].pid, r[i].count);
    OUT("\n      ],\n      \"missing_ranks\": [\n");
    k = 0;
    for (size_t i = 0; i < n; i++)
        if (r[i].count < 0)
            OUT("%s{\"rank\": %d, \"host\": \"10.0.0.%d\", \"pid\": %d, \"status\": "
                "{\"unresponsive\": %s, \"considered_dead\": %s}}",
                k++ ? ", " : "", r[i].rank, 1 + r[i].rank / 8, r[i].pid,
                r[i].count <= -2 ? "true" : "false", r[i].count == -3 ? "true" : "false");
    OUT("\n      ]\n    }\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.000,\n"
        "    \"timeouts_count\": 2\n  }\n}\n");
#undef OUT
    assert_true(at < room);
    return at;
}

static void the_text_of_the_guide_gives_the_ranks_that_lag(void **state)
{
    static const uint32_t PIDS[] = {483072, 483074, 483075, 483076, 483077, 483079};
    static struct fr_ras_report r;

    (void)state;
    assert_int_equal(fr_ras_parse(false, MISMATCH, sizeof MISMATCH - 1, &r, NULL), 0);
    assert_int_equal(r.nfacts, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(r.facts[i].what, FR_RAS_BEHIND_OTHERS);
        assert_int_equal(r.facts[i].pid, PIDS[i]);
        assert_int_equal(r.facts[i].behind, 1);
        assert_int_equal(r.facts[i].comm, 0x27a079b828ff1a75ull);
        assert_string_equal(r.facts[i].host, "172.16.64.210");
    }
}

static void the_text_tells_who_is_dead_and_who_does_not_answer(void **state)
{
    static struct fr_ras_report r;

    (void)state;
    assert_int_equal(fr_ras_parse(false, DEAD, sizeof DEAD - 1, &r, NULL), 0);
    assert_int_equal(r.nfacts, 2);
    assert_int_equal(r.facts[0].what, FR_RAS_UNRESPONSIVE);
    assert_int_equal(r.facts[0].pid, 3487999);
    assert_int_equal(r.facts[1].what, FR_RAS_DEAD);
    assert_int_equal(r.facts[1].pid, 3487984);
    assert_string_equal(r.facts[1].host, "172.16.64.213");
    assert_int_equal(r.timeouts, 2);
}

/* NCCL 2.24 and 2.25 count all operations together; a group of one is told in one line; those that
 * are ahead are listed when they are few, and are not behind. */
static void text_of_other_versions_and_of_single_ranks_is_read_too(void **state)
{
    static const char TEXT[] =
        "Warnings\n========\n\n"
        "#0-0 (1f) MISMATCH\n"
        "  Communicator ranks have different collective operation counts\n"
        "  30 ranks have launched up to operation 10\n"
        "  Rank 4 has launched up to operation 7 -- GPU 4 managed by process "
        "44 on node ::1\n"
        "  Rank 5 has not launched any operations -- GPU 5 managed by process "
        "55 on node ::1\n\n"
        "#0-1 (2f) MISMATCH\n"
        "  Communicator ranks have different Broadcast operation counts\n"
        "  30 ranks have launched up to operation 10\n"
        "  2 ranks have launched up to operation 11\n"
        "  Rank 1 -- GPU 4 managed by process 11 on node h1\n"
        "  Rank 2 -- GPU 4 managed by process 12 on node h1\n\n"
        "#0-2 (3f) MISMATCH\n"
        "  Communicator ranks have different status\n"
        "  4 ranks have status RUNNING\n"
        "  Rank 6 has status FINALIZE -- GPU 0 managed by process 66 on node h\n"
        "  Communicator ranks have different AllReduce operation counts\n"
        "  4 ranks have launched up to operation 9\n"
        "  Rank 7 has launched up to operation 8 -- GPU 0 managed by process "
        "77 on node h\n\n";
    static struct fr_ras_report r;

    (void)state;
    assert_int_equal(fr_ras_parse(false, TEXT, sizeof TEXT - 1, &r, NULL), 0);
    assert_int_equal(r.nfacts, 2); /* the last communicator is being torn down */
    assert_int_equal(r.facts[0].pid, 44);
    assert_int_equal(r.facts[0].behind, 3);
    assert_int_equal(r.facts[1].pid, 55);
    assert_int_equal(r.facts[1].behind, 10);
}

static void json_gives_the_same_from_counts_and_missing_ranks(void **state)
{
    const struct json_rank ranks[] = {{0, 100, 50}, {1, 101, 50}, {2, 102, 48}, {3, 103, -1},
                                      {4, 104, -2}, {9, 109, -3}, {10, 110, 50}};
    static struct fr_ras_report r;
    char text[8192];
    size_t n = make_json(text, sizeof text, ranks, 7);

    (void)state;
    assert_int_equal(fr_ras_parse(true, text, n, &r, NULL), 0);
    assert_int_equal(r.comms, 1);
    assert_int_equal(r.timeouts, 2);
    assert_int_equal(r.nfacts, 3); /* rank 3 is reachable and no member any more */
    assert_int_equal(r.facts[0].what, FR_RAS_UNRESPONSIVE);
    assert_int_equal(r.facts[0].pid, 104);
    assert_int_equal(r.facts[1].what, FR_RAS_DEAD);
    assert_int_equal(r.facts[1].pid, 109);
    assert_int_equal(r.facts[1].comm_rank, 9);
    assert_string_equal(r.facts[1].host, "10.0.0.2");
    assert_int_equal(r.facts[2].what, FR_RAS_BEHIND_OTHERS);
    assert_int_equal(r.facts[2].pid, 102);
    assert_int_equal(r.facts[2].behind, 2);
    assert_int_equal(r.facts[2].comm, 0xae94423cfbb2ef4aull);
    assert_int_equal(r.facts[2].comm_size, 7);
}

static void pieces_of_any_size_give_what_the_whole_gives(void **state)
{
    const struct json_rank ranks[] = {{0, 100, 50}, {2, 102, 48}, {9, 109, -3}};
    static struct fr_ras_report whole, parts;
    struct fr_rng rng = {4};
    char json[8192];
    size_t njson = make_json(json, sizeof json, ranks, 3);

    (void)state;
    for (int round = 0; round < 400; round++) {
        bool is_json = round % 2;
        const char *text = is_json ? json : round % 4 ? DEAD : MISMATCH;
        size_t n = is_json ? njson : strlen(text);
        struct fr_ras_parser *p = fr_ras_parser_new(is_json);

        assert_int_equal(fr_ras_parse(is_json, text, n, &whole, NULL), 0);
        for (size_t at = 0, k; at < n; at += k) {
            k = 1 + fr_rng_below(&rng, round < 200 ? 7 : 300);
            k = k < n - at ? k : n - at;
            assert_int_equal(fr_ras_parser_feed(p, text + at, k, NULL), 0);
        }
        assert_int_equal(fr_ras_parser_end(p, &parts, NULL), 0);
        fr_ras_parser_free(p);
        assert_int_equal(parts.nfacts, whole.nfacts);
        for (size_t i = 0; i < whole.nfacts; i++) {
            assert_int_equal(parts.facts[i].pid, whole.facts[i].pid);
            assert_int_equal(parts.facts[i].digest, whole.facts[i].digest);
            assert_string_equal(parts.facts[i].host, whole.facts[i].host);
        }
    }
}

static void a_report_that_is_cut_or_is_none_is_refused(void **state)
{
    const struct json_rank ranks[] = {{0, 100, 50}, {2, 102, 48}};
    static struct fr_ras_report r;
    struct fr_err err = FR_ERR_INIT;
    char json[4096], deep[64];
    size_t n = make_json(json, sizeof json, ranks, 2);

    (void)state;
    for (size_t cut = 0; cut + 2 < n; cut++)
        assert_int_equal(fr_ras_parse(true, json, cut, &r, &err), -EBADMSG);
    assert_int_equal(fr_ras_parse(true, "HTTP/1.1 200 OK\r\n", 17, &r, &err), -EBADMSG);
    memset(deep, '[', sizeof deep);
    assert_int_equal(fr_ras_parse(true, deep, sizeof deep, &r, &err), -EBADMSG);
    assert_int_equal(fr_ras_parse(true, "{]", 2, &r, &err), -EBADMSG);
    assert_int_equal(fr_ras_parse(false, "", 0, &r, &err), -EBADMSG);
}

/* Most ranks behind one that ran ahead: nobody lags, and the list has a bound. */
static void where_too_many_lag_nobody_is_told_on(void **state)
{
    enum { N = 300 };
    static struct json_rank ranks[N];
    static char text[N * 600];
    static struct fr_ras_report r;

    (void)state;
    for (int i = 0; i < N; i++)
        ranks[i] = (struct json_rank){i, 1000 + i, i == 7 ? 51 : 50};
    assert_int_equal(fr_ras_parse(true, text, make_json(text, sizeof text, ranks, N), &r, NULL), 0);
    assert_int_equal(r.nfacts, 0);
    assert_int_equal(r.dropped, 1);
}

static size_t ask(struct fr_ras_track *t, const struct json_rank *ranks, size_t n, uint64_t now,
                  const struct fr_ras_word **w)
{
    static struct fr_ras_report r;
    char text[8192];

    assert_int_equal(fr_ras_parse(true, text, make_json(text, sizeof text, ranks, n), &r, NULL), 0);
    fr_ras_track_take(t, &r, now);
    return fr_ras_track_words(t, w, FR_RAS_WORDS);
}

static void
a_difference_that_moves_is_never_told_and_one_that_stands_is_after_three_answers(void **s)
{
    struct json_rank r[] = {{0, 100, 50}, {1, 101, 49}, {2, 102, 50}};
    const struct fr_ras_word *w[FR_RAS_WORDS];
    static struct fr_ras_track t;

    (void)s;
    memset(&t, 0, sizeof t);
    for (uint64_t k = 0; k < 20; k++) { /* the same rank is always one behind, and all move */
        for (int i = 0; i < 3; i++)
            r[i].count++;
        assert_int_equal(ask(&t, r, 3, k * S, w), 0);
    }
    assert_int_equal(ask(&t, r, 3, 20 * S, w), 0); /* 19 and 20: two alike */
    assert_int_equal(ask(&t, r, 3, 21 * S, w), 1);
    assert_int_equal(w[0]->fact.pid, 101);
    assert_int_equal(w[0]->polls, 3);
    assert_int_equal(w[0]->since_ns, 19 * S);
    r[2].count++; /* anybody of the communicator moves: it begins anew */
    assert_int_equal(ask(&t, r, 3, 22 * S, w), 0);
    r[1].count = r[0].count = r[2].count;
    assert_int_equal(ask(&t, r, 3, 23 * S, w), 0);
    assert_int_equal(t.n, 0);
}

static void the_dead_are_told_at_once_and_the_gravest_word_on_a_process_counts(void **state)
{
    struct json_rank r[] = {{0, 100, 50}, {1, 101, -2}, {2, 102, -3}};
    const struct fr_ras_word *w[FR_RAS_WORDS];
    static struct fr_ras_track t;

    (void)state;
    memset(&t, 0, sizeof t);
    assert_int_equal(ask(&t, r, 3, 1 * S, w), 1);
    assert_int_equal(w[0]->fact.pid, 102);
    assert_int_equal(w[0]->fact.what, FR_RAS_DEAD);
    assert_int_equal(ask(&t, r, 3, 2 * S, w), 1);
    assert_int_equal(ask(&t, r, 3, 3 * S, w), 2); /* who does not answer, three times */
    r[1].count = -3;
    assert_int_equal(ask(&t, r, 3, 4 * S, w), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(w[i]->fact.what, FR_RAS_DEAD);
    r[1].count = 50;
    assert_int_equal(ask(&t, r, 3, 5 * S, w), 1);
}

static void only_places_on_loopback_are_asked(void **state)
{
    struct fr_ras_place p;

    (void)state;
    assert_int_equal(fr_ras_place_parse(NULL, &p), 0);
    assert_int_equal(p.port, 28028);
    assert_int_equal(fr_ras_place_parse("localhost:12345", &p), 0);
    assert_int_equal(p.port, 12345);
    assert_false(p.v6);
    assert_int_equal(fr_ras_place_parse("127.0.0.1", &p), 0);
    assert_int_equal(p.port, 28028);
    assert_int_equal(fr_ras_place_parse("[::1]:77", &p), 0);
    assert_int_equal(p.port, 77);
    assert_true(p.v6);
    assert_int_equal(fr_ras_place_parse("10.1.2.3:28028", &p), -EINVAL);
    assert_int_equal(fr_ras_place_parse("head.example:28028", &p), -EINVAL);
    assert_int_equal(fr_ras_place_parse("localhost:0", &p), -EINVAL);
    assert_int_equal(fr_ras_place_parse("localhost:99999", &p), -EINVAL);
    assert_int_equal(
        fr_ras_place_parse("localhostlocalhostlocalhostlocalhostlocalhostlocalhost:1", &p),
        -EINVAL);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void who_listens_must_be_one_of_the_ranks(void **state)
{
    static const char TCP[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                              "retrnsmt   uid  timeout "
                              "inode\n"
                              "   0: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 "
                              "00000000  1000        0 "
                              "424242 1 0000 100 0 0 10 0\n"
                              "   1: 0100007F:6D7C 0100007F:9999 01 00000000:00000000 00:00000000 "
                              "00000000  1000        0 "
                              "777 1 0000 100 0 0 10 0\n";
    static const char STAT[] =
        "12 (python) S 1 12 12 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5555 0 0 0 0 0 "
        "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    const struct fr_ras_place at = {.port = 28028};
    struct fr_ras_rank rank = {12, 5555};
    char root[] = "/tmp/fr-test-ras-XXXXXX", path[128];
    uint32_t pid = 0;

    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(path, sizeof path, "%s/proc/12/fd", root);
    assert_int_equal(fr_fs_mkdirs(path, 0700, NULL), 0);
    snprintf(path, sizeof path, "%s/proc/net", root);
    assert_int_equal(fr_fs_mkdirs(path, 0700, NULL), 0);
    assert_int_equal(fr_ras_listener(root, &at, &rank, 1, &pid), -ENOENT); /* nobody */
    snprintf(path, sizeof path, "%s/proc/net/tcp", root);
    write_text(path, TCP);
    snprintf(path, sizeof path, "%s/proc/12/stat", root);
    write_text(path, STAT);
    assert_int_equal(fr_ras_listener(root, &at, &rank, 1, &pid), -EPERM); /* a stranger */
    snprintf(path, sizeof path, "%s/proc/12/fd/5", root);
    assert_int_equal(symlink("socket:[424242]", path), 0);
    assert_int_equal(fr_ras_listener(root, &at, &rank, 1, &pid), 0);
    assert_int_equal(pid, 12);
    rank.starttime = 6666; /* another process under that pid */
    assert_int_equal(fr_ras_listener(root, &at, &rank, 1, &pid), -EPERM);
    assert_int_equal(fr_ras_listener(root, &(struct fr_ras_place){.port = 28029}, &rank, 1, &pid),
                     -ENOENT);
    fr_fs_remove_tree(root, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_of_the_guide_gives_the_ranks_that_lag),
        cmocka_unit_test(the_text_tells_who_is_dead_and_who_does_not_answer),
        cmocka_unit_test(text_of_other_versions_and_of_single_ranks_is_read_too),
        cmocka_unit_test(json_gives_the_same_from_counts_and_missing_ranks),
        cmocka_unit_test(pieces_of_any_size_give_what_the_whole_gives),
        cmocka_unit_test(a_report_that_is_cut_or_is_none_is_refused),
        cmocka_unit_test(where_too_many_lag_nobody_is_told_on),
        cmocka_unit_test(
            a_difference_that_moves_is_never_told_and_one_that_stands_is_after_three_answers),
        cmocka_unit_test(the_dead_are_told_at_once_and_the_gravest_word_on_a_process_counts),
        cmocka_unit_test(only_places_on_loopback_are_asked),
        cmocka_unit_test(who_listens_must_be_one_of_the_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
