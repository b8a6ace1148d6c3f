/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_metrics.c - /metrics as Prometheus reads it: the format by the letter, and NCCL's open names
 *
 * The format is checked by a strict reader below, written from the exposition format 0.0.4, and by
 * Prometheus's own promtool where there is one (FULLRANK_PROMTOOL, or in the PATH). Values are
 * computed here from what was sent, in another way.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/xalloc.h"
#include "control/api.h"
#include "control/ingest.h"
#include "control/jobs.h"
#include "control/nccl_series.h"
#include "helper_world.h"
#include "model/config.h"
#include "model/op.h"
#include "wire/agent.pb-c.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/ring.h"
#include "wire/supervise.pb-c.h"

#define KIB 1024ull

static void send_as(struct world *w, Fullrank__Report *r, const char *node)
{
    struct fr_buf body = FR_BUF_INIT, reply = FR_BUF_INIT;
    Fullrank__NodeInfo info = FULLRANK__NODE_INFO__INIT;

    r->node = TEXT(node);
    r->agent_instance = 7;
    r->seq = ++w->seq;
    r->mono_ns = w->c->now_ns;
    r->unix_ns = fr_ctl_now_unix(w->c);
    info.host = TEXT("h\"o\\s\nt"); /* to be escaped wherever it goes */
    info.probe_dir = TEXT("/p");
    r->info = &info;
    fr_message_pack(&r->base, &body);
    assert_int_equal(fr_ingest_report(w->c, body.p, body.len, &reply), 200);
    fr_buf_fini(&body);
    fr_buf_fini(&reply);
}

/* A job of two ranks on each of n1 and n2; its ranks write by `sources`, and know the world
 * communicator. */
static struct fr_cjob *nccl_job(struct world *w, uint32_t sources)
{
    Fullrank__SuperviseReport r = FULLRANK__SUPERVISE_REPORT__INIT;
    Fullrank__SuperviseOrder *o;

    for (int k = 0; k < 2; k++) {
        Fullrank__Report m = FULLRANK__REPORT__INIT;

        send_as(w, &m, k ? "n2" : "n1");
    }
    r.key = 11;
    r.nodes = r.ranks_per_node = 2;
    r.name = TEXT("gpt");
    r.first_dead_rank = -1;
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    fr_ctl_tick(w->c, w->c->now_ns + 50000000);
    assert_int_equal(fr_ledger_wait(w->lg, w->c->appended, 5, NULL), 0);
    r.job = TEXT("gpt-1");
    o = supervise(w, &r, NULL);
    assert_int_equal(o->what, FULLRANK__SUPERVISE_ORDER__WHAT__START);
    r.attempt = o->attempt;
    r.epoch = o->epoch;
    r.last_order = o->id;
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
    r.started_unix_ns = fr_ctl_now_unix(w->c);
    fullrank__supervise_order__free_unpacked(o, NULL);
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    for (uint32_t k = 0; k < 4; k++) {
        Fullrank__Report m = FULLRANK__REPORT__INIT;
        Fullrank__Rank rank = FULLRANK__RANK__INIT, *rp = &rank;
        Fullrank__Comm comm = FULLRANK__COMM__INIT, *cp = &comm;
        uint32_t runs[] = {0, 1, 4};

        rank.job = comm.job = TEXT("gpt-1");
        rank.epoch = comm.epoch = 1;
        rank.rank = comm.seen_by = k;
        rank.pid = 100 + k;
        rank.state = FULLRANK__PROC_STATE__PROC_RUNNING;
        rank.sources = sources;
        rank.dropped = k;
        comm.members_hash = 0xabcdef0123456789ull;
        comm.size = 4;
        comm.runs = runs;
        comm.n_runs = 3;
        comm.name = TEXT("dp\"\\\n"); /* a user's word */
        m.ranks = &rp;
        m.comms = &cp;
        m.n_ranks = m.n_comms = 1;
        send_as(w, &m, k < 2 ? "n1" : "n2");
    }
    w->c->now_ns += 1000000000; /* what is sent from here on began in this attempt */
    return w->c->jobs[0];
}

static void send_record(struct world *w, uint32_t rank, uint32_t op, uint64_t bytes, uint64_t seq,
                        uint64_t ns)
{
    Fullrank__Report m = FULLRANK__REPORT__INIT;
    struct fr_wire_record r = {.members_hash = 0xabcdef0123456789ull,
                               .seq = seq,
                               .start_ns = w->c->now_ns - ns,
                               .enq_ns = w->c->now_ns - ns,
                               .end_ns = w->c->now_ns,
                               .bytes = bytes,
                               .step = 1,
                               .rank = rank,
                               .peer = op == FR_OP_SEND ? 1 : -1,
                               .op = (uint8_t)op};

    m.records.data = (uint8_t *)&r;
    m.records.len = sizeof r;
    send_as(w, &m, rank < 2 ? "n1" : "n2");
}

static char *metrics(struct world *w, const char *query)
{
    struct fr_api_call call = {.route = FR_ROUTE_METRICS, .arg = "", .query = query};
    struct fr_buf out = FR_BUF_INIT;
    const char *type;

    assert_int_equal(fr_api_answer(w->c, &call, &out, &type), 200);
    assert_non_null(strstr(type, "version=0.0.4"));
    return out.p;
}

/* The value of a series given by its whole left side; NaN: it is not there. */
static double value(const char *text, const char *series)
{
    size_t n = strlen(series);

    for (const char *at = text; (at = strstr(at, series)) != NULL; at += n)
        if ((at == text || at[-1] == '\n') && at[n] == ' ')
            return strtod(at + n, NULL);
    return (double)NAN;
}

static int count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* --- the format, by the letter --- */

static const char *skip_name(const char *p, bool colon)
{
    if (!isalpha((unsigned char)*p) && *p != '_' && !(colon && *p == ':'))
        fail_msg("no name: %.60s", p);
    while (isalnum((unsigned char)*p) || *p == '_' || (colon && *p == ':'))
        p++;
    return p;
}

static const char *skip_labels(const char *p)
{
    if (*p != '{')
        return p;
    for (p++;; p++) {
        p = skip_name(p, false);
        if (p[0] != '=' || p[1] != '"')
            fail_msg("no value of a label: %.60s", p);
        for (p += 2; *p != '"'; p++) {
            if (*p == '\n' || *p == '\0')
                fail_msg("a label's value does not end");
            if (*p == '\\') {
                p++;
                if (*p != '\\' && *p != '"' && *p != 'n')
                    fail_msg("an escape that there is not: \\%c", *p);
            }
        }
        p++;
        if (*p == '}')
            return p + 1;
        if (*p != ',')
            fail_msg("neither , nor }: %.60s", p);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One group a metric, HELP and TYPE before its samples, each series once. */
static void check_format(const char *text)
{
    char current[128] = "", *seen[4096], *names[512];
    size_t nseen = 0, nnames = 0;

    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n'), *p;
        char *rest;

        assert_non_null(end); /* the last line ends, too */
        if (strncmp(line, "# HELP ", 7) == 0) {
            p = skip_name(line + 7, true);
            assert_int_equal(*p, ' ');
            snprintf(current, sizeof current, "%.*s", (int)(p - line - 7), line + 7);
            names[nnames++] = strdup(current);
            assert_true(nnames < 512);
            continue;
        }
        if (strncmp(line, "# TYPE ", 7) == 0) {
            size_t n = strlen(current);

            assert_int_equal(strncmp(line + 7, current, n), 0);
            assert_int_equal(line[7 + n], ' ');
            p = line + 8 + n;
            assert_true(strncmp(p, "counter\n", 8) == 0 || strncmp(p, "gauge\n", 6) == 0 ||
                        strncmp(p, "summary\n", 8) == 0);
            continue;
        }
        p = skip_name(line, true);
        if ((size_t)(p - line) != strlen(current) || strncmp(line, current, strlen(current)) != 0)
            fail_msg("a sample outside of its group: %.60s", line);
        p = skip_labels(p);
        assert_int_equal(*p, ' ');
        seen[nseen++] = strndup(line, (size_t)(p - line));
        assert_true(nseen < 4096);
        strtod(p + 1, &rest);
        assert_true(rest > p + 1 && rest == end);
    }
    qsort(seen, nseen, sizeof seen[0], by_text);
    qsort(names, nnames, sizeof names[0], by_text);
    for (size_t i = 1; i < nseen; i++)
        if (strcmp(seen[i], seen[i - 1]) == 0)
            fail_msg("twice: %s", seen[i]);
    for (size_t i = 1; i < nnames; i++)
        assert_string_not_equal(names[i], names[i - 1]);
    for (size_t i = 0; i < nseen; i++)
        free(seen[i]);
    for (size_t i = 0; i < nnames; i++)
        free(names[i]);
}

/* promtool check metrics: parses as the server does, and has opinions on names. Those on names that
 * are not ours to choose, and on totals that can fall, are known. */
static int promtool_complains(const char *text)
{
    const char *tool = getenv("FULLRANK_PROMTOOL");
    char path[64] = "/tmp/fr-promtool-XXXXXX", command[600], line[600];
    int fd = mkstemp(path), bad = 0, status;
    FILE *f;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    snprintf(command, sizeof command, "%s check metrics < %s 2>&1", tool ? tool : "promtool", path);
    f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        static const char *const KNOWN[] = {"nccl_", "fullrank_step_total",
                                            "fullrank_lost_seconds_total", "fullrank_node_count"};
        int known = 0;

        for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
            known |= strncmp(line, KNOWN[i], strlen(KNOWN[i])) == 0;
        if (!known) {
            print_message("%s", line);
            bad++;
        }
    }
    status = pclose(f);
    unlink(path);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return -1; /* not installed */
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3) ? bad : 1;
}

/* --- tests --- */

static void make_traffic(struct world *w)
{
    static const uint64_t US[] = {1000, 1500, 2000, 4000};

    for (uint32_t r = 0; r < 4; r++)
        send_record(w, r, FR_OP_ALLREDUCE, 9 * KIB * KIB + 5, 1, US[r] * 1000);
    for (uint32_t r = 0; r < 4; r++) /* S is 4 x what a rank puts in */
        send_record(w, r, FR_OP_ALLGATHER, 4 * 700 * KIB, 2, 500 * 1000);
    send_record(w, 0, FR_OP_SEND, 3000, 3, 30 * 1000);
    send_record(w, 2, FR_OP_SEND, 3000, 4, 10 * 1000);
}

#define COLL                                                                                       \
    "node=\"all\",gpu=\"all\",comm_name=\"dp\\\"\\\\\\n:abcdef01.0\",n_nodes=\"2\",nranks=\"4\","

static void nccl_has_the_names_labels_and_values_of_the_open_inspector(void **state)
{
    struct world *w = *state;
    char *text, *series;
    double bytes = 9.0 * 1024 * 1024 + 5, product = 1;

    nccl_job(w, FR_SOURCE_NCCL | FR_SOURCE_MARKS);
    make_traffic(w);
    text = metrics(w, "");
    check_format(text);
    assert_true(asprintf(&series,
                         "nccl_collective_exec_time_microseconds{version=\"%s\",slurm_job_id="
                         "\"gpt-1\"," COLL "collective=\"AllReduce\",message_size=\"9-10MB\","
                         "algo_proto=\"unknown\"}",
                         FR_VERSION) > 0);
    assert_true(fabs(value(text, series) - (1000 + 1500 + 2000 + 4000) / 4.0) < 1e-6);
    free(series);
    for (int i = 0; i < 4; i++) { /* nccl-tests: S / t x 2(n-1)/n */
        static const double S[] = {1e-3, 1.5e-3, 2e-3, 4e-3};

        product *= bytes / S[i] * 1e-9 * 2 * 3 / 4;
    }
    assert_true(asprintf(&series,
                         "nccl_bus_bandwidth_gbs{version=\"%s\",slurm_job_id=\"gpt-1\"," COLL
                         "collective=\"AllReduce\",message_size=\"9-10MB\",algo_proto=\"unknown\"}",
                         FR_VERSION) > 0);
    assert_true(fabs(value(text, series) / pow(product, 0.25) - 1) < 1e-9);
    free(series);
    assert_int_equal(count(text, "collective=\"AllGather\",message_size=\"700-701KB\""), 2);
    assert_true(
        asprintf(&series,
                 "nccl_p2p_exec_time_microseconds{version=\"%s\",slurm_job_id=\"gpt-1\"," COLL
                 "p2p_operation=\"Send\",message_size=\"2-3KB\"}",
                 FR_VERSION) > 0);
    assert_true(fabs(value(text, series) - 20) < 1e-9);
    free(series);
    assert_int_equal(count(text, "gpu=\"GPU"), 0); /* no single ranks unless asked for */
    free(text);
}

static void single_ranks_are_shown_only_on_demand_and_only_of_that_job(void **state)
{
    struct world *w = *state;
    char *text;

    nccl_job(w, FR_SOURCE_NCCL);
    make_traffic(w);
    text = metrics(w, "ranks=gpt-1"); /* from now on */
    assert_int_equal(count(text, "gpu=\"GPU"), 0);
    free(text);
    make_traffic(w);
    text = metrics(w, "ranks=gpt-1");
    check_format(text);
    /* two figures for each of four ranks in two collectives, and for two senders */
    assert_int_equal(count(text, "gpu=\"GPU"), 2 * (4 * 2 + 2));
    assert_int_equal(count(text, "node=\"n2\",gpu=\"GPU1\""), 2 * 2);
    free(text);
    text = metrics(w, "ranks=other");
    assert_int_equal(count(text, "gpu=\"GPU"), 0);
    free(text);
    w->c->now_ns += FR_NCCL_RANKS_NS + FR_NCCL_WINDOW_NS * 3;
    make_traffic(w); /* nobody has asked for a while */
    text = metrics(w, "ranks=gpt-1");
    assert_int_equal(count(text, "gpu=\"GPU"), 0);
    free(text);
}

static void a_job_without_nccl_has_none_of_these_names_and_old_figures_end(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j;
    char *text;

    j = nccl_job(w, FR_SOURCE_MPI);
    make_traffic(w);
    text = metrics(w, "ranks=gpt-1");
    check_format(text);
    assert_int_equal(count(text, "\nnccl_"), 0);
    free(text);
    j->sources |= FR_SOURCE_NCCL;
    make_traffic(w);
    w->c->now_ns += FR_NCCL_WINDOW_NS;
    text = metrics(w, "");
    assert_int_equal(count(text, "\nnccl_bus_bandwidth_gbs{"), 2);
    free(text);
    w->c->now_ns += FR_NCCL_WINDOW_NS;
    text = metrics(w, "");
    assert_int_equal(count(text, "\nnccl_bus_bandwidth_gbs{"), 0);
    free(text);
}

static void operations_are_counted_by_node_from_whole_steps(void **state)
{
    struct world *w = *state;
    Fullrank__Report m = FULLRANK__REPORT__INIT;
    Fullrank__Step s = FULLRANK__STEP__INIT, *sp = &s;
    Fullrank__GroupSum g[3], *gp[3] = {&g[0], &g[1], &g[2]};
    static const uint32_t OPS[] = {FR_OP_ALLREDUCE, FR_OP_SEND, FR_OP_ALLGATHER};
    char *text, *series;

    nccl_job(w, FR_SOURCE_NCCL);
    for (uint32_t i = 0; i < 3; i++) {
        fullrank__group_sum__init(&g[i]);
        g[i].op = OPS[i];
        g[i].count = 10 + i;
    }
    s.job = TEXT("gpt-1");
    s.epoch = 1;
    s.rank = 1;
    s.step = 1;
    s.begin_ns = w->c->now_ns - 1000;
    s.end_ns = w->c->now_ns;
    s.groups = gp;
    s.n_groups = 3;
    m.steps = &sp;
    m.n_steps = 1;
    send_as(w, &m, "n1");
    text = metrics(w, "");
    check_format(text);
    assert_true(
        asprintf(&series,
                 "nccl_collectives_total{version=\"%s\",slurm_job_id=\"gpt-1\",node=\"n1\"}",
                 FR_VERSION) > 0);
    assert_true(value(text, series) == 10 + 12);
    free(series);
    assert_true(asprintf(&series,
                         "nccl_p2p_total{version=\"%s\",slurm_job_id=\"gpt-1\",node=\"n1\"}",
                         FR_VERSION) > 0);
    assert_true(value(text, series) == 11);
    free(series);
    assert_true(asprintf(&series,
                         "nccl_collectives_dropped_total{version=\"%s\",slurm_job_id=\"gpt-1\","
                         "node=\"n1\"}",
                         FR_VERSION) > 0);
    assert_true(value(text, series) == 0 + 1); /* of ranks 0 and 1 */
    free(series);
    free(text);
}

static void sizes_fall_into_inspectors_ranges(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } CASES[] = {{0, "0B"},
                 {1, "1-2B"},
                 {1023, "1023-1024B"},
                 {1024, "1-2KB"},
                 {2047, "1-2KB"},
                 {1024 * 1024 - 1, "1023-1024KB"},
                 {1024 * 1024, "1-2MB"},
                 {512ull << 20, "512-513MB"},
                 {(4ull << 30) + 77, "4-5GB"},
                 {5000ull << 40, "5000-5001TB"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        assert_string_equal(fr_nccl_size_text(fr_nccl_size_low(CASES[i].bytes), text, sizeof text),
                            CASES[i].text);
}

/* More kinds of operations than are held: the rest is counted, old ones make room, none is wrong.
 */
static void the_table_has_a_bound_and_says_what_found_no_room(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = nccl_job(w, FR_SOURCE_NCCL);
    struct fr_ccomm comm = {.hash = 1, .size = 4, .nodes = 2};
    struct fr_obs_record o = {.comm = {1, 0}, .op = FR_OP_ALLREDUCE, .start_ns = 1, .end_ns = 1001};
    size_t there = 0;

    for (int round = 0; round < 2; round++) {
        uint64_t before = fr_nccl_refused(j);

        for (uint32_t i = 0; i < 3000; i++) {
            o.comm.instance = 3000 * (uint32_t)round + i;
            fr_nccl_record(w->c, j, &comm, 0, &o);
        }
        assert_int_equal(fr_nccl_refused(j) - before, 3000 - FR_NCCL_SERIES);
        w->c->now_ns += 3 * FR_NCCL_WINDOW_NS;
    }
    w->c->now_ns -= 3 * FR_NCCL_WINDOW_NS;
    for (size_t i = 0;; i++) {
        const struct fr_nccl_series *s;
        struct fr_nccl_figures f;
        int rc = fr_nccl_at(w->c, j, i, &s, &f);

        if (rc < 0)
            break;
        there += (size_t)rc;
        if (rc)
            assert_true(s->instance >= 3000 && f.us == 1);
    }
    assert_int_equal(there, FR_NCCL_SERIES);
}

static void prometheus_itself_takes_all_of_it(void **state)
{
    struct world *w = *state;
    char *text;
    int bad;

    nccl_job(w, FR_SOURCE_NCCL | FR_SOURCE_MPI);
    free(metrics(w, "ranks=gpt-1"));
    make_traffic(w);
    text = metrics(w, "ranks=gpt-1");
    check_format(text);
    bad = promtool_complains(text);
    free(text);
    if (bad < 0) {
        print_message("no promtool here (Debian: prometheus); the strict reader has passed it\n");
        skip();
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(nccl_has_the_names_labels_and_values_of_the_open_inspector),
        WORLD_TEST(single_ranks_are_shown_only_on_demand_and_only_of_that_job),
        WORLD_TEST(a_job_without_nccl_has_none_of_these_names_and_old_figures_end),
        WORLD_TEST(operations_are_counted_by_node_from_whole_steps),
        WORLD_TEST(sizes_fall_into_inspectors_ranges),
        WORLD_TEST(the_table_has_a_bound_and_says_what_found_no_room),
        WORLD_TEST(prometheus_itself_takes_all_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
