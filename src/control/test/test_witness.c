/* SPDX-License-Identifier: Apache-2.0 */
/* test_witness.c - what agents are asked for when something is doubtful: RAS, dumps, whole steps */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "control/act.h"
#include "control/fleet.h"
#include "control/incidents.h"
#include "control/ingest.h"
#include "control/jobs.h"
#include "control/ras.h"
#include "helper_world.h"
#include "wire/message.h"

/* Ranks 0, 1 on n1 (10.0.0.1), 2, 3 on n2 (10.0.0.2); 1 and 3 have the same pid on their machines.
 */
static void ras_names_a_process_by_address_and_pid_or_nobody(void **state)
{
    static const uint32_t PIDS[] = {100, 200, 300, 200};
    static const struct {
        const char *host;
        uint32_t pid;
        bool here;
        int32_t rank;
    } CASES[] = {
        {"10.0.0.1", 100, true, 0},   {"10.0.0.2", 300, false, 2},  {"10.0.0.2", 200, false, 3},
        {"10.0.0.1", 200, true, 1},   {"127.0.0.1", 100, true, 0},  {"127.0.0.1", 300, true, -1},
        {"10.0.0.1", 300, false, -1}, {"10.0.0.2", 999, false, -1}, {"0.0.0.2", 300, false, -1},
        {"", 300, false, -1},         {"10.0.0", 300, false, -1},   {"unknown", 300, false, -1}};
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    struct fr_cnode *n1 = fr_ctl_node(w->c, "n1");

    for (uint32_t k = 0; k < 2; k++) {
        Fullrank__Rank m[2], *mp[2] = {&m[0], &m[1]};
        char *address[] = {k ? TEXT("10.0.0.2") : TEXT("10.0.0.1"), TEXT("fe80::1")};
        Fullrank__NodeInfo info;
        Fullrank__Report r;

        base_report(w, &r, &info, k ? "n2" : "n1");
        info.addresses = address;
        info.n_addresses = 2;
        for (uint32_t i = 0; i < 2; i++) {
            fullrank__rank__init(&m[i]);
            m[i].job = TEXT("j1");
            m[i].epoch = 1;
            m[i].rank = 2 * k + i;
            m[i].pid = PIDS[2 * k + i];
            m[i].state = FULLRANK__PROC_STATE__PROC_RUNNING;
        }
        r.ranks = mp;
        r.n_ranks = 2;
        assert_int_equal(send_report(w, &r, NULL), 200);
    }
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Fullrank__RasWord m = FULLRANK__RAS_WORD__INIT;

        m.host = TEXT(CASES[i].host);
        m.pid = CASES[i].pid;
        m.here = CASES[i].here;
        assert_int_equal(fr_ras_rank(j, n1, &m), CASES[i].rank);
    }
}

/* Three of four ranks wait in an operation that rank 3 has not entered; each node reports as its
 * agent would, and n1 may tell what RAS says of rank 3. */
static void report_hang(struct world *w, uint64_t since_ns, uint32_t ras_says)
{
    for (uint32_t k = 0; k < 2; k++) {
        Fullrank__Rank m[2], *mp[2] = {&m[0], &m[1]};
        Fullrank__Now now[2];
        Fullrank__Progress p[2], *pp[2] = {&p[0], &p[1]};
        Fullrank__Comm cm[2], *cmp[2] = {&cm[0], &cm[1]};
        Fullrank__RasWord ras = FULLRANK__RAS_WORD__INIT, *rasp = &ras;
        char *address[] = {k ? TEXT("10.0.0.2") : TEXT("10.0.0.1")};
        uint32_t runs[] = {0, 1, 4};
        Fullrank__NodeInfo info;
        Fullrank__Report r;

        base_report(w, &r, &info, k ? "n2" : "n1");
        r.agent_instance = 7 + k;
        info.addresses = address;
        info.n_addresses = 1;
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t rank = 2 * k + i, in = rank != 3;

            fullrank__rank__init(&m[i]);
            fullrank__now__init(&now[i]);
            fullrank__progress__init(&p[i]);
            fullrank__comm__init(&cm[i]);
            m[i].job = p[i].job = cm[i].job = TEXT("j1");
            m[i].epoch = p[i].epoch = cm[i].epoch = 1;
            m[i].rank = p[i].rank = cm[i].seen_by = rank;
            m[i].pid = 100 + rank;
            m[i].state = FULLRANK__PROC_STATE__PROC_RUNNING;
            m[i].observed_ns = r.mono_ns;
            m[i].now = &now[i];
            now[i].op = in ? 4 /* all-reduce */ : 0;
            now[i].since_ns = since_ns;
            now[i].members_hash = p[i].members_hash = cm[i].members_hash = 99;
            now[i].seq = p[i].enqueued = in ? 11 : 10;
            now[i].peer = -1;
            p[i].completed = 10;
            p[i].enqueued_ns = p[i].completed_ns = since_ns;
            p[i].op = 4;
            cm[i].size = 4;
            cm[i].runs = runs;
            cm[i].n_runs = 3;
            cm[i].name = TEXT("world");
        }
        ras.job = TEXT("j1");
        ras.epoch = 1;
        ras.host = TEXT("10.0.0.2");
        ras.pid = 103;
        ras.what = ras_says;
        ras.polls = 4;
        ras.since_ns = r.mono_ns - 2000000000;
        ras.observed_ns = r.mono_ns;
        r.ras = &rasp;
        r.n_ras = k == 0 && ras_says;
        r.comms = cmp;
        r.ranks = mp;
        r.progress = pp;
        r.n_comms = r.n_ranks = r.n_progress = 2;
        assert_int_equal(send_report(w, &r, NULL), 200);
    }
}

static void what_ras_says_on_one_node_confirms_the_silent_rank_of_another(void **state)
{
    for (uint32_t says = 0; says < 4; says += 3) {
        struct world *w;
        struct fr_cjob *j;
        uint64_t since;
        int before = 0;

        if (says)
            assert_int_equal(teardown(state) | setup(state), 0);
        w = *state;
        j = running_job(w);
        j->mode = FR_MODE_ADVISE;
        since = w->c->now_ns;
        for (int k = 0; k < 140; k++) { /* 7 s */
            report_hang(w, since, k > 80 ? says : 0);
            tick(w);
            if (k == 78)
                before = (int)w->c->nincidents;
        }
        assert_int_equal(before, 1); /* named by silence, with RAS or without */
        assert_int_equal(w->c->nincidents, 1);
        assert_int_equal(w->c->incidents[0]->f.kind, FR_FINDING_HANG);
        assert_int_equal(w->c->incidents[0]->f.rank, 3);
        assert_string_equal(w->c->incidents[0]->node, "n2");
        assert_int_equal(w->c->incidents[0]->f.witnesses,
                         says ? FR_WITNESS_SILENCE | FR_WITNESS_RAS | FR_WITNESS_RAS_DEAD
                              : FR_WITNESS_SILENCE);
        assert_int_equal(fr_witness_is_direct(w->c->incidents[0]->f.witnesses), says != 0);
    }
}

static double ras_poll_of(struct world *w, const char *node)
{
    struct fr_buf body = FR_BUF_INIT, reply = FR_BUF_INIT;
    Fullrank__NodeInfo info;
    Fullrank__Report r;
    Fullrank__Reply *a;
    double every;

    base_report(w, &r, &info, node);
    fr_message_pack(&r.base, &body);
    assert_int_equal(fr_ingest_report(w->c, body.p, body.len, &reply), 200);
    a = fullrank__reply__unpack(NULL, reply.len, (const uint8_t *)fr_buf_str(&reply));
    every = a->ras_poll_s;
    fullrank__reply__free_unpacked(a, NULL);
    fr_buf_fini(&body);
    fr_buf_fini(&reply);
    return every;
}

static void ras_is_asked_on_two_nodes_of_a_quiet_job_and_never_of_one_that_moves(void **state)
{
    struct world *w = *state;

    hear(w, "n3");
    running_job(w);
    assert_true(ras_poll_of(w, "n1") == 0);
    w->c->now_ns += 2000000000;
    assert_true(ras_poll_of(w, "n1") > 0);
    assert_true(ras_poll_of(w, "n2") > 0);
    assert_true(ras_poll_of(w, "n3") == 0); /* holds no rank of it */
}

static void send_part(struct world *w, const char *node, uint64_t incident, const char *name,
                      uint64_t offset, const char *data, size_t n, uint32_t wait_ms, bool last)
{
    Fullrank__Evidence e = FULLRANK__EVIDENCE__INIT, *ep = &e;
    Fullrank__NodeInfo info;
    Fullrank__Report r;

    base_report(w, &r, &info, node);
    e.incident = incident;
    e.job = TEXT("j1");
    e.epoch = 1;
    e.name = TEXT(name);
    e.offset = offset;
    e.data.data = (uint8_t *)(uintptr_t)data;
    e.data.len = n;
    e.wait_ms = wait_ms;
    e.last = last;
    r.evidence = &ep;
    r.n_evidence = 1;
    assert_int_equal(send_report(w, &r, NULL), 200);
}

static int64_t bundle_file(struct world *w, uint64_t incident, const char *name)
{
    char path[300];
    struct stat st;

    snprintf(path, sizeof path, "%s/bundles/%llu/%s", w->dir, (unsigned long long)incident, name);
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* A hang is being acted on: n1 says that its processes were asked for dumps, n2 that it is done. */
static void a_large_dump_comes_in_parts_and_is_waited_for_longer(void **state)
{
    static char part[200 << 10];
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    struct fr_finding f = finding(FR_FINDING_HANG, 2, 3);
    struct fr_cincident *i;
    struct fr_cdecision *d;
    uint64_t since;

    memset(part, 'x', sizeof part);
    fr_incidents_fold(w->c, j, &f, 1);
    i = w->c->incidents[0];
    assert_true(fr_act_wants_dumps(i));
    d = fr_decision_add(w->c, 1);
    d->job = j;
    d->choice = FR_CHOICE_RESTART;
    d->dirty = true;
    fr_act_begin(w->c, j, d, i, NULL);
    for (int k = 0; k < 50 && j->act.stage != FR_ACT_COLLECT; k++) {
        fr_incidents_fold(w->c, j, &f, 1);
        fr_act_tick(w->c, j);
        tick(w);
    }
    assert_int_equal(j->act.stage, FR_ACT_COLLECT);
    since = j->act.since_ns;
    send_part(w, "n2", i->id, "rank-2.stack", 0, "s", 1, 0, true);
    send_part(w, "n1", i->id, "rank-0.stack", 0, "s", 1, 4500, false);
    w->c->now_ns = since + 2000000000; /* beyond the usual wait */
    fr_act_tick(w->c, j);
    assert_int_equal(j->act.stage, FR_ACT_COLLECT);
    send_part(w, "n1", i->id, "nccl_trace_rank_0", 0, part, sizeof part, 0, false);
    send_part(w, "n1", i->id, "nccl_trace_rank_0", 2 * sizeof part, part, 9, 0, false); /* a gap */
    assert_int_equal(bundle_file(w, i->id, "n1.nccl_trace_rank_0"), sizeof part);
    send_part(w, "n1", i->id, "nccl_trace_rank_0", sizeof part, part, 77, 0, true);
    assert_int_equal(bundle_file(w, i->id, "n1.nccl_trace_rank_0"), sizeof part + 77);
    assert_int_equal(bundle_file(w, i->id, "n2.rank-2.stack"), 1);
    send_part(w, "n1", i->id, "huge", (4u << 20) - 1, part, 2, 0, false);
    send_part(w, "n1", i->id, "huge", UINT64_MAX, part, 2, 0, false);
    assert_int_equal(bundle_file(w, i->id, "n1.huge"), -1);
    fr_act_tick(w->c, j);
    assert_int_equal(j->act.stage, FR_ACT_STOP);
}

static uint64_t burst_of(struct world *w, uint64_t step)
{
    struct fr_buf body = FR_BUF_INIT, reply = FR_BUF_INIT;
    Fullrank__Rank m = FULLRANK__RANK__INIT, *mp = &m;
    Fullrank__NodeInfo info;
    Fullrank__Report r;
    Fullrank__Reply *a;
    uint64_t until;

    base_report(w, &r, &info, "n1");
    m.job = TEXT("j1");
    m.epoch = 1;
    m.pid = 1;
    m.step = step;
    m.state = FULLRANK__PROC_STATE__PROC_RUNNING;
    r.ranks = &mp;
    r.n_ranks = 1;
    fr_message_pack(&r.base, &body);
    assert_int_equal(fr_ingest_report(w->c, body.p, body.len, &reply), 200);
    a = fullrank__reply__unpack(NULL, reply.len, (const uint8_t *)fr_buf_str(&reply));
    until = a->burst_until_step;
    fullrank__reply__free_unpacked(a, NULL);
    fr_buf_fini(&body);
    fr_buf_fini(&reply);
    return until;
}

static void a_new_finding_asks_for_whole_steps_once_a_minute(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    struct fr_finding f = {.kind = FR_FINDING_JOB_SLOW, .key = 1, .rank = -1, .node = -1};
    uint64_t first;

    assert_int_equal(burst_of(w, 100), 0);
    fr_incidents_fold(w->c, j, &f, 1);
    first = burst_of(w, 100);
    assert_true(first > 100 && first <= 100 + 64);
    f.key = 2;
    fr_incidents_fold(w->c, j, &f, 1);
    assert_int_equal(burst_of(w, 150), first); /* too soon */
    w->c->now_ns += 61000000000ull;
    assert_int_equal(burst_of(w, 1000), first);
    f.key = 3;
    fr_incidents_fold(w->c, j, &f, 1);
    assert_true(burst_of(w, 1000) > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(ras_names_a_process_by_address_and_pid_or_nobody),
        WORLD_TEST(ras_is_asked_on_two_nodes_of_a_quiet_job_and_never_of_one_that_moves),
        WORLD_TEST(a_large_dump_comes_in_parts_and_is_waited_for_longer),
        WORLD_TEST(what_ras_says_on_one_node_confirms_the_silent_rank_of_another),
        WORLD_TEST(a_new_finding_asks_for_whole_steps_once_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
