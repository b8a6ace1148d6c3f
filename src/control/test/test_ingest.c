/* SPDX-License-Identifier: Apache-2.0 */
/* test_ingest.c - reports and supervisors that are wrong, hostile, late or repeated */
#include <math.h>
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

#include "base/fs.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "control/act.h"
#include "control/api.h"
#include "control/fleet.h"
#include "control/incidents.h"
#include "control/ingest.h"
#include "control/jobs.h"
#include "control/ras.h"
#include "control/state.h"
#include "fullrank/fullrank.h"
#include "helper_world.h"
#include "model/config.h"
#include "wire/agent.pb-c.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/supervise.pb-c.h"

static void names_that_could_be_paths_or_markup_are_refused_with_one_sentence(void **state)
{
    static const char *const BAD[] = {
        "",          "..",  ".x",
        "a/b",       "<b>", "a b",
        "n\xc3\xa4", "\n",  "0123456789012345678901234567890123456789012345678901234567890123"};
    struct world *w = *state;

    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        Fullrank__Report r;
        Fullrank__NodeInfo info;
        char error[256] = "";

        base_report(w, &r, &info, BAD[i]);
        assert_int_equal(send_report(w, &r, error), 400);
        assert_non_null(strstr(error, "1 to 63 characters"));
    }
    assert_int_equal(w->c->nnodes, 0);
    assert_int_equal(w->c->counts.refused, 9);
}

static void garbage_bodies_are_refused_and_change_nothing(void **state)
{
    struct world *w = *state;
    struct fr_rng rng = {3};

    hear(w, "n1");
    for (int k = 0; k < 3000; k++) {
        uint8_t body[300];
        size_t n = fr_rng_below(&rng, sizeof body);
        struct fr_buf reply = FR_BUF_INIT;

        for (size_t i = 0; i < n; i++)
            body[i] = (uint8_t)fr_rng_u64(&rng);
        if (fr_ingest_report(w->c, body, n, &reply) == 200)
            assert_true(w->c->nnodes < 50);
        fr_buf_reset(&reply);
        fr_jobs_supervise(w->c, body, n, &reply);
        fr_buf_fini(&reply);
    }
    assert_int_equal(w->c->njobs, 0);
}

static void every_cut_of_a_good_report_is_harmless(void **state)
{
    struct world *w = *state;
    struct fr_buf body = FR_BUF_INIT;
    Fullrank__Report r;
    Fullrank__NodeInfo info;

    running_job(w);
    base_report(w, &r, &info, "n1");
    fr_message_pack(&r.base, &body);
    for (size_t n = 0; n < body.len; n++) {
        struct fr_buf reply = FR_BUF_INIT;
        char *copy = fr_xalloc(n + 1);

        memcpy(copy, body.p, n);
        fr_ingest_report(w->c, copy, n, &reply);
        free(copy);
        fr_buf_fini(&reply);
    }
    fr_buf_fini(&body);
}

static void a_body_that_unpacks_to_far_more_than_it_is_long_is_refused(void **state)
{
    struct world *w = *state;
    size_t n = 8u << 20;
    uint8_t *body = fr_xalloc(n);
    struct fr_buf reply = FR_BUF_INIT;

    for (size_t i = 0; i + 1 < n; i += 2)
        body[i] = 11 << 3 | 2; /* an empty Rank: two bytes here, hundreds in memory */
    assert_int_equal(fr_ingest_report(w->c, body, n, &reply), 400);
    fr_buf_fini(&reply);
    free(body);
}

static void a_rank_is_believed_only_from_the_node_that_holds_it_and_only_in_its_epoch(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    static const struct {
        const char *node;
        uint64_t epoch;
        uint32_t rank;
        bool good;
    } CASES[] = {{"n1", 1, 0, true},  {"n1", 1, 1, true},  {"n2", 1, 0, false},
                 {"n1", 1, 2, false}, {"n2", 1, 3, true},  {"n2", 1, 4, false},
                 {"n1", 0, 0, false}, {"n1", 2, 0, false}, {"n1", 1, UINT32_MAX, false}};

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        Fullrank__Report r;
        Fullrank__NodeInfo info;
        Fullrank__Rank m = FULLRANK__RANK__INIT, *mp = &m;
        uint64_t dropped = j->stale + j->foreign;

        base_report(w, &r, &info, CASES[i].node);
        r.agent_instance = CASES[i].node[1] == '1' ? 7 : 8;
        m.job = TEXT("j1");
        m.epoch = CASES[i].epoch;
        m.rank = CASES[i].rank;
        m.pid = 4000 + (uint32_t)i;
        m.state = FULLRANK__PROC_STATE__PROC_RUNNING;
        r.ranks = &mp;
        r.n_ranks = 1;
        assert_int_equal(send_report(w, &r, NULL), 200);
        if (CASES[i].good)
            assert_int_equal(j->ranks[CASES[i].rank].pid, 4000 + i);
        else
            assert_int_equal(j->stale + j->foreign, dropped + 1);
    }
}

static void communicators_steps_and_records_with_impossible_numbers_are_dropped(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    struct fr_rng rng = {9};

    for (int k = 0; k < 2000; k++) {
        Fullrank__Report r;
        Fullrank__NodeInfo info;
        Fullrank__Comm cm = FULLRANK__COMM__INIT, *cmp = &cm;
        Fullrank__Step st = FULLRANK__STEP__INIT, *stp = &st;
        Fullrank__Span sp = FULLRANK__SPAN__INIT, *spp = &sp;
        Fullrank__Progress pr = FULLRANK__PROGRESS__INIT, *prp = &pr;
        struct fr_wire_record rec[2];
        uint32_t runs[7];

        base_report(w, &r, &info, "n1");
        for (int i = 0; i < 7; i++)
            runs[i] = (uint32_t)fr_rng_u64(&rng) >> fr_rng_below(&rng, 32);
        cm.job = st.job = sp.job = pr.job = TEXT("j1");
        cm.epoch = st.epoch = sp.epoch = pr.epoch = 1;
        cm.members_hash = fr_rng_u64(&rng);
        cm.size = (uint32_t)fr_rng_u64(&rng) >> fr_rng_below(&rng, 32);
        cm.runs = runs;
        cm.n_runs = fr_rng_below(&rng, 8);
        cm.name = TEXT("\"><script>");
        st.step = fr_rng_u64(&rng) >> fr_rng_below(&rng, 64);
        st.begin_ns = fr_rng_u64(&rng) >> fr_rng_below(&rng, 64);
        st.end_ns = fr_rng_u64(&rng) >> fr_rng_below(&rng, 64);
        sp.phase = (uint32_t)fr_rng_below(&rng, 9);
        sp.begin_ns = fr_rng_u64(&rng) >> fr_rng_below(&rng, 64);
        sp.end_ns = fr_rng_u64(&rng) >> fr_rng_below(&rng, 64);
        pr.members_hash = cm.members_hash;
        pr.enqueued = fr_rng_u64(&rng);
        for (size_t i = 0; i < sizeof rec; i++)
            ((uint8_t *)rec)[i] = (uint8_t)fr_rng_u64(&rng);
        r.comms = &cmp;
        r.steps = &stp;
        r.spans = &spp;
        r.progress = &prp;
        r.n_comms = r.n_steps = r.n_spans = r.n_progress = 1;
        r.records.data = (uint8_t *)rec;
        r.records.len = sizeof rec - (k % 10 == 0); /* every tenth has a torn last record */
        assert_int_equal(send_report(w, &r, NULL), k % 10 == 0 ? 400 : 200);
        if (k % 50 == 0)
            tick(w);
    }
    assert_int_equal(j->nsteps, 0); /* no step is the job's before all its ranks have told it */
}

/* More in a row than are held at a time. n2 tells of the end behind n1, and each has two ranks. */
static void communicators_that_all_members_have_freed_are_forgotten(void **state)
{
    enum { ROUNDS = 120, EACH = 50 };
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    struct fr_judge_summary before, after;

    fr_judge_summary(j->judge, &before);
    for (uint32_t k = 0; k < ROUNDS; k++)
        for (uint32_t half = 0; half < 4; half++) {
            static Fullrank__Comm m[2 * EACH], *mp[2 * EACH];
            static Fullrank__Progress p[2 * EACH], *pp[2 * EACH];
            uint32_t runs[] = {0, 1, 4}, base = half % 2 * 2;
            Fullrank__Report r;
            Fullrank__NodeInfo info;

            base_report(w, &r, &info, half % 2 ? "n2" : "n1");
            r.agent_instance = 7 + half % 2;
            for (uint32_t i = 0; i < 2 * EACH; i++) {
                fullrank__comm__init(mp[i] = &m[i]);
                fullrank__progress__init(pp[i] = &p[i]);
                m[i].job = p[i].job = TEXT("j1");
                m[i].epoch = p[i].epoch = 1;
                m[i].members_hash = p[i].members_hash = 99;
                m[i].instance = p[i].instance = k * EACH + i / 2;
                m[i].size = 4;
                m[i].runs = runs;
                m[i].n_runs = 3;
                m[i].seen_by = p[i].rank = base + i % 2;
                m[i].freed = half >= 2;
                p[i].enqueued = p[i].completed = 1 + half / 2;
            }
            r.comms = mp;
            r.progress = pp;
            r.n_comms = r.n_progress = 2 * EACH;
            assert_int_equal(send_report(w, &r, NULL), 200);
            assert_int_equal(j->ncomms, half < 3 ? EACH : 0);
        }
    /* each one was held while any rank had something to say of it */
    fr_judge_summary(j->judge, &after);
    assert_int_equal(after.ignored, before.ignored);
    assert_true(j->comms_cap <= 256);
}

static void a_repeated_report_is_taken_once_and_a_step_is_recorded_once(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);

    for (int k = 0; k < 3; k++)
        for (uint32_t rank = 0; rank < 4; rank++) {
            Fullrank__Report r;
            Fullrank__NodeInfo info;
            Fullrank__Step st = FULLRANK__STEP__INIT, *stp = &st;

            base_report(w, &r, &info, rank < 2 ? "n1" : "n2");
            st.job = TEXT("j1");
            st.epoch = 1;
            st.rank = rank;
            st.step = 1;
            st.begin_ns = w->c->now_ns - 1000 - rank;
            st.end_ns = w->c->now_ns - 500 + rank;
            st.loss = rank == 0 ? 2.5 : (double)NAN;
            st.tokens = (double)NAN;
            r.steps = &stp;
            r.n_steps = 1;
            assert_int_equal(send_report(w, &r, NULL), 200);
        }
    assert_int_equal(j->nsteps, 1);
    assert_true(j->step_info[0].loss == 2.5);
    /* first begin to last end, over ranks: known from what was sent */
    assert_int_equal(j->steps[0].end_ns - j->steps[0].begin_ns, (500 + 3) + 3);
}

static void a_report_is_acknowledged_only_once_its_rows_are_durable(void **state)
{
    struct world *w = *state;
    struct fr_cnode *n;

    hear(w, "n1");
    n = fr_ctl_node(w->c, "n1");
    assert_int_equal(n->acked_seq, 0);
    hear(w, "n1"); /* nothing was saved in between */
    assert_int_equal(n->acked_seq, 0);
    tick(w);
    hear(w, "n1");
    assert_int_equal(n->acked_seq, 2);
}

/* 0.6 of each second of the node's own time is pressure, and 0.25 its agent's CPU; the second
 * report is held back by two seconds, so that the third comes right behind it. */
static void rates_of_a_node_are_those_of_its_own_time_however_late_a_report_comes(void **state)
{
    struct world *w = *state;
    static const double SENT_S[] = {0, 1.5, 3.5, 5}, CAME_S[] = {0, 3.5, 4.6, 6.1};
    uint64_t began = w->c->now_ns;
    Fullrank__NodePressure p;
    Fullrank__AgentSelf self;
    Fullrank__NodeInfo info;
    Fullrank__Report r;

    for (int k = 0; k < 4; k++) {
        uint64_t at = began + (uint64_t)(SENT_S[k] * 1e9);

        w->c->now_ns = began + (uint64_t)(CAME_S[k] * 1e9);
        base_report(w, &r, &info, "n1");
        fullrank__node_pressure__init(&p);
        fullrank__agent_self__init(&self);
        r.mono_ns = at;
        r.unix_ns = fr_ctl_unix(w->c, at);
        r.pressure = &p;
        r.self = &self;
        p.readable = true;
        p.observed_ns = at - 300000000; /* read a little before the report was made */
        p.cpu_some_us = 1000000 + (uint64_t)((SENT_S[k] - 0.3) * 0.6e6);
        self.cpu_ns = 1000000000 + (uint64_t)(SENT_S[k] * 0.25e9);
        assert_int_equal(send_report(w, &r, NULL), 200);
        if (k == 0)
            continue;
        assert_true(fabs(fr_ctl_node(w->c, "n1")->cpu_some.ratio - 0.6) < 1e-5);
        assert_true(fabs(fr_ctl_node(w->c, "n1")->cpu.ratio - 0.25) < 1e-5);
    }
}

static void a_report_with_impossible_times_is_refused(void **state)
{
    static const struct {
        uint64_t mono_ns;
        int64_t unix_ns;
    } BAD[] = {{UINT64_MAX, 1}, {1ull << 63, 1}, {1, INT64_MIN}, {1, INT64_MAX}};
    struct world *w = *state;
    Fullrank__NodeInfo info;
    Fullrank__Report r;

    for (size_t k = 0; k < sizeof BAD / sizeof BAD[0]; k++) {
        base_report(w, &r, &info, "n1");
        r.mono_ns = BAD[k].mono_ns;
        r.unix_ns = BAD[k].unix_ns;
        assert_int_equal(send_report(w, &r, NULL), 400);
        assert_null(fr_ctl_node(w->c, "n1"));
    }
}

static void send_seq(struct world *w, uint64_t seq, bool spooled, uint64_t instance)
{
    Fullrank__Report r;
    Fullrank__NodeInfo info;

    base_report(w, &r, &info, "n1");
    r.seq = seq;
    r.spooled = spooled;
    r.agent_instance = instance;
    assert_int_equal(send_report(w, &r, NULL), 200);
}

static void
what_an_agent_sends_again_after_a_restart_is_taken_before_the_newest_is_acknowledged(void **state)
{
    struct world *w = *state;
    struct fr_cnode *n;

    send_seq(w, 50, false, 7); /* the first contact; 47..49 are still held by the agent */
    n = fr_ctl_node(w->c, "n1");
    tick(w);
    send_seq(w, 47, false, 7);
    tick(w);
    send_seq(w, 48, false, 7);
    assert_int_equal(n->acked_seq, 47);
    tick(w);
    send_seq(w, 49, false, 7);
    tick(w);
    send_seq(w, 50, false, 7);
    assert_int_equal(n->acked_seq, 49);
    tick(w);
    send_seq(w, 51, false, 7);
    assert_int_equal(n->acked_seq, 50);
    assert_int_equal(w->c->counts.reports, 5);
    assert_int_equal(w->c->counts.repeated, 1);
}

static void spooled_reports_of_an_older_agent_do_not_disturb_the_one_that_lives(void **state)
{
    struct world *w = *state;
    struct fr_cnode *n;

    send_seq(w, 1, false, 7);
    n = fr_ctl_node(w->c, "n1");
    for (uint64_t k = 0; k < 10; k++) {
        send_seq(w, 900 + k, true, 6);
        send_seq(w, 2 + k, false, 7);
        tick(w);
    }
    assert_int_equal(n->instance, 7);
    assert_int_equal(n->last_seq, 11);
    send_seq(w, 12, false, 7);
    assert_int_equal(n->acked_seq, 11);
}

static void the_same_key_gives_the_same_job_and_another_key_is_refused(void **state)
{
    struct world *w = *state;
    Fullrank__SuperviseReport r;
    Fullrank__SuperviseOrder *a, *b;

    base_supervise(w, &r, "", 11);
    a = supervise(w, &r, NULL);
    b = supervise(w, &r, NULL);
    assert_string_equal(a->job, "j1");
    assert_string_equal(b->job, "j1");
    assert_int_equal(w->c->njobs, 1);
    fullrank__supervise_order__free_unpacked(a, NULL);
    fullrank__supervise_order__free_unpacked(b, NULL);
    base_supervise(w, &r, "j1", 12);
    a = supervise(w, &r, NULL);
    assert_non_null(strstr(a->error, "another supervisor"));
    fullrank__supervise_order__free_unpacked(a, NULL);
    base_supervise(w, &r, "", 13);
    r.name = TEXT("gpt");
    a = supervise(w, &r, NULL);
    assert_string_equal(a->job, "gpt-2");
    fullrank__supervise_order__free_unpacked(a, NULL);
}

static void jobs_that_are_too_large_or_of_no_size_are_refused(void **state)
{
    static const struct {
        uint32_t nodes, rpn;
    } BAD[] = {{0, 1}, {1, 0}, {5000, 1}, {4096, 5}, {UINT32_MAX, UINT32_MAX}, {65536, 65536}};
    struct world *w = *state;

    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        Fullrank__SuperviseReport r;
        Fullrank__SuperviseOrder *o;

        base_supervise(w, &r, "", 50 + i);
        r.nodes = BAD[i].nodes;
        r.ranks_per_node = BAD[i].rpn;
        o = supervise(w, &r, NULL);
        assert_true(o->error[0] != '\0');
        fullrank__supervise_order__free_unpacked(o, NULL);
    }
    assert_int_equal(w->c->njobs, 0);
}

static void an_unknown_job_that_runs_is_adopted_with_its_attempt(void **state)
{
    struct world *w = *state;
    char *nodes[] = {TEXT("n2"), TEXT("n1")};
    Fullrank__SuperviseReport r;
    struct fr_cjob *j;

    hear(w, "n1");
    hear(w, "n2");
    base_supervise(w, &r, "old-7", 77);
    r.attempt = 3;
    r.epoch = 9;
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
    r.node_list = nodes;
    r.n_node_list = 2;
    r.started_unix_ns = fr_ctl_now_unix(w->c) - 1000;
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    j = fr_ctl_job(w->c, "old-7");
    assert_non_null(j);
    assert_int_equal(j->nattempts, 1);
    assert_int_equal(j->attempts[0].attempt, 3);
    assert_int_equal(j->epoch, 9);
    assert_string_equal(j->attempts[0].nodes[0]->name, "n2");
    tick(w);
    assert_int_equal(j->nattempts, 1); /* no second one is started beside it */
}

static void a_supervisor_that_went_on_alone_is_followed(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    char *nodes[] = {TEXT("n2"), TEXT("n1")};
    Fullrank__SuperviseReport r;

    base_supervise(w, &r, "j1", 11);
    r.attempt = 2;
    r.epoch = 2;
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
    r.node_list = nodes;
    r.n_node_list = 2;
    r.started_unix_ns = fr_ctl_now_unix(w->c);
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    assert_int_equal(j->nattempts, 2);
    assert_int_equal(j->epoch, 2);
    assert_string_equal(j->attempts[1].nodes[0]->name, "n2");
    assert_int_equal(j->attempts[1].nodes[0]->job_index, 0);
}

static void a_number_of_an_attempt_is_not_given_twice(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    char *nodes[] = {TEXT("n2"), TEXT("n1")};
    Fullrank__SuperviseReport r;
    Fullrank__SuperviseOrder *o;

    base_supervise(w, &r, "j1", 11);
    r.attempt = 1; /* as the one that runs, under an epoch that nobody gave */
    r.epoch = 2;
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
    r.node_list = nodes;
    r.n_node_list = 2;
    o = supervise(w, &r, NULL);
    assert_non_null(strstr(o->error, "attempt 1 has been"));
    fullrank__supervise_order__free_unpacked(o, NULL);
    assert_int_equal(j->nattempts, 1);
    assert_int_equal(j->epoch, 1);
}

static void a_lost_job_holds_its_nodes_while_anything_of_it_may_run_and_no_longer(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);

    for (int k = 0; k < 20 * 90; k++)
        tick(w);
    assert_int_equal(j->state, FR_JOB_LOST);
    assert_ptr_equal(fr_ctl_node(w->c, "n1")->job, j);
    for (uint32_t rank = 0; rank < 4; rank++) {
        Fullrank__Report r;
        Fullrank__NodeInfo info;
        Fullrank__ProcEvent e = FULLRANK__PROC_EVENT__INIT, *ep = &e;

        base_report(w, &r, &info, rank < 2 ? "n1" : "n2");
        e.job = TEXT("j1");
        e.epoch = 1;
        e.rank = rank;
        e.state = FULLRANK__PROC_STATE__PROC_GONE;
        e.t_ns = w->c->now_ns;
        e.exit_signal = e.exit_code = -1;
        r.events = &ep;
        r.n_events = 1;
        assert_int_equal(send_report(w, &r, NULL), 200);
        tick(w);
    }
    assert_int_equal(j->state, FR_JOB_FAILED);
    assert_null(fr_ctl_node(w->c, "n1")->job);
}

static void nodes_are_placed_healthy_first_by_number_and_probation_last(void **state)
{
    struct world *w = *state;
    struct fr_cnode *out[3];
    struct fr_cjob *j;

    for (int i = 12; i >= 8; i--) {
        char name[16];

        snprintf(name, sizeof name, "n%d", i);
        hear(w, name);
    }
    j = fr_job_new(w->c, "x");
    assert_int_equal(fr_job_size(j, 3, 2, NULL), 0);
    fr_ctl_node(w->c, "n9")->state = FR_NODE_PROBATION;
    fr_ctl_node(w->c, "n8")->ranks_max = 1; /* too small */
    assert_int_equal(fr_fleet_place(w->c, j, out), 0);
    assert_string_equal(out[0]->name, "n10");
    assert_string_equal(out[1]->name, "n11");
    assert_string_equal(out[2]->name, "n12");
    fr_ctl_node(w->c, "n11")->state = FR_NODE_DRAINED;
    assert_int_equal(fr_fleet_place(w->c, j, out), 0);
    assert_string_equal(out[2]->name, "n9");
    fr_ctl_node(w->c, "n12")->silent = true; /* unknown is not healthy */
    assert_int_equal(fr_fleet_place(w->c, j, out), 1);
}

static void an_end_that_names_no_rank_is_told_in_the_launchers_words(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    Fullrank__SuperviseReport r;

    base_supervise(w, &r, "j1", 11);
    r.attempt = 1;
    r.epoch = 1;
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED;
    r.ended_unix_ns = fr_ctl_now_unix(w->c);
    r.exit_code = 132;
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    for (int k = 0; k < 80 && !w->c->ndecisions; k++)
        tick(w);
    assert_int_equal(j->attempts[0].exit_code, 132);
    assert_int_equal(w->c->ndecisions, 1);
    assert_non_null(
        strstr(w->c->decisions[0]->reason, "the launcher ended with code 132; no node is named"));
}

static void what_something_else_restarts_is_advised_about_and_ends_with_its_own_code(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    const struct fr_cattempt *a = &j->attempts[0];
    Fullrank__SuperviseReport r;

    base_supervise(w, &r, "j1", 11);
    r.attempt = a->attempt;
    r.epoch = a->epoch;
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED;
    r.ended_unix_ns = fr_ctl_now_unix(w->c);
    r.exit_code = -1;
    r.exit_signal = 9;
    r.first_dead_rank = 2; /* on n2: a spare could take its place */
    r.restarts_owner = TEXT("Slurm (--requeue)");
    hear(w, "n3");
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    for (int k = 0; k < 80 && !fr_job_state_is_end(j->state); k++)
        tick(w);
    assert_int_equal(j->state, FR_JOB_FAILED);
    assert_int_equal(j->exit_code, 128 + 9);
    assert_int_equal(j->nattempts, 1);
    assert_int_equal(w->c->ndecisions, 1);
    assert_int_equal(w->c->decisions[0]->choice, FR_CHOICE_ADVISE);
    assert_int_equal(w->c->decisions[0]->nactions, 0);
    assert_non_null(strstr(w->c->decisions[0]->reason, "something else owns restarts"));
}

static void nodes_are_listed_by_name_and_number_whoever_was_heard_first(void **state)
{
    static const char *const HEARD[] = {"n10", "n2", "login", "n1"};
    static const char *const LISTED[] = {"\"login\"", "\"n1\"", "\"n2\"", "\"n10\""};
    struct world *w = *state;
    struct fr_api_call call = {.route = FR_ROUTE_NODES, .arg = "", .query = ""};
    FR_CLEANUP(fr_buf_fini) struct fr_buf out = FR_BUF_INIT;
    const char *type, *at;

    for (size_t i = 0; i < sizeof HEARD / sizeof HEARD[0]; i++)
        hear(w, HEARD[i]);
    assert_int_equal(fr_api_answer(w->c, &call, &out, &type), 200);
    at = fr_buf_str(&out);
    for (size_t i = 0; i < sizeof LISTED / sizeof LISTED[0]; i++) {
        char member[32];

        snprintf(member, sizeof member, "\"node\":%s", LISTED[i]);
        at = strstr(at, member);
        assert_non_null(at);
    }
}

static void one_cause_is_one_incident_from_suspicion_to_end(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    struct fr_finding f[3];

    f[0] = finding(FR_FINDING_STALL, 1, -1);
    fr_incidents_fold(w->c, j, f, 1);
    assert_int_equal(w->c->nincidents, 1);
    f[0] = finding(FR_FINDING_HANG, 2, 3); /* the stall has found its rank */
    fr_incidents_fold(w->c, j, f, 1);
    assert_int_equal(w->c->nincidents, 1);
    assert_string_equal(w->c->incidents[0]->kind, "hang");
    f[0] = finding(FR_FINDING_DEAD, 3, 3); /* which then dies, and takes another with it */
    f[1] = finding(FR_FINDING_DEAD, 4, 2);
    f[2] = finding(FR_FINDING_HANG, 5, 0);
    fr_incidents_fold(w->c, j, f, 3);
    assert_int_equal(w->c->nincidents, 1);
    assert_string_equal(w->c->incidents[0]->kind, "dead");
    assert_int_equal(w->c->incidents[0]->f.rank, 3);
    w->c->now_ns += 1500000000; /* a gap that is shorter than the limit closes nothing */
    fr_incidents_fold(w->c, j, f, 0);
    assert_int_equal(w->c->incidents[0]->closed_unix_ns, 0);
    w->c->now_ns += 1000000000;
    fr_incidents_fold(w->c, j, f, 0);
    assert_int_not_equal(w->c->incidents[0]->closed_unix_ns, 0);
}

static void two_slow_nodes_are_two_incidents(void **state)
{
    struct world *w = *state;
    struct fr_cjob *j = running_job(w);
    struct fr_finding f[2] = {finding(FR_FINDING_SLOW, 1, 0), finding(FR_FINDING_SLOW, 2, 3)};

    fr_incidents_fold(w->c, j, f, 2);
    assert_int_equal(w->c->nincidents, 2);
}

static void a_suspicion_does_not_end_probation(void **state)
{
    static const enum fr_node_state BEFORE[] = {FR_NODE_HEALTHY, FR_NODE_PROBATION};
    struct world *w = *state;
    struct fr_cnode *n;
    int64_t until;

    hear(w, "n1");
    n = fr_ctl_node(w->c, "n1");
    for (int k = 0; k < 2; k++) {
        if (BEFORE[k] == FR_NODE_PROBATION) {
            fr_node_drain(w->c, n, "ann", false, 0, "to be tested");
            fr_node_resume(w->c, n, "ann", "test it", NULL);
            fr_node_tested(w->c, n, true, "");
        }
        assert_int_equal(n->state, BEFORE[k]);
        until = n->probation_until_unix_ns;
        fr_node_move(w->c, n, FR_NODE_SUSPECT, FR_ACTOR_SELF, 1, "incident 1 names it");
        w->c->now_ns += FR_NS_PER_S;
        fr_incidents_tick(w->c);
        assert_int_equal(n->state, BEFORE[k]);
        if (BEFORE[k] == FR_NODE_PROBATION) /* its time without a finding counts from now */
            assert_true(n->probation_until_unix_ns > until + FR_NS_PER_S / 2);
    }
}

static void what_a_person_drained_is_not_taken_back_by_silence_or_by_a_test_of_our_own(void **state)
{
    struct world *w = *state;
    struct fr_api_call call = {.route = FR_ROUTE_NODE_DRAIN, .arg = "n1", .query = ""};
    static const char body[] = "{\"reason\": \"fan\", \"actor\": \"ann\"}";
    struct fr_buf out = FR_BUF_INIT;
    const char *type;
    struct fr_cnode *n;

    hear(w, "n1");
    n = fr_ctl_node(w->c, "n1");
    call.body = body;
    call.body_bytes = sizeof body - 1;
    assert_int_equal(fr_api_answer(w->c, &call, &out, &type), 200);
    assert_int_equal(n->state, FR_NODE_DRAINED);
    for (int k = 0; k < 400; k++)
        tick(w);
    hear(w, "n1");
    assert_int_equal(n->state, FR_NODE_DRAINED);
    assert_string_equal(n->reason, "fan");
    call.body = "{\"actor\": \"fullrank\"}";
    call.body_bytes = strlen(call.body);
    fr_buf_reset(&out);
    assert_int_equal(fr_api_answer(w->c, &call, &out, &type), 400); /* nobody may pass for us */
    call.body = "{]";
    call.body_bytes = 2;
    fr_buf_reset(&out);
    assert_int_equal(fr_api_answer(w->c, &call, &out, &type), 400);
    fr_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(names_that_could_be_paths_or_markup_are_refused_with_one_sentence),
        WORLD_TEST(garbage_bodies_are_refused_and_change_nothing),
        WORLD_TEST(every_cut_of_a_good_report_is_harmless),
        WORLD_TEST(a_body_that_unpacks_to_far_more_than_it_is_long_is_refused),
        WORLD_TEST(a_rank_is_believed_only_from_the_node_that_holds_it_and_only_in_its_epoch),
        WORLD_TEST(communicators_steps_and_records_with_impossible_numbers_are_dropped),
        WORLD_TEST(communicators_that_all_members_have_freed_are_forgotten),
        WORLD_TEST(a_repeated_report_is_taken_once_and_a_step_is_recorded_once),
        WORLD_TEST(a_report_is_acknowledged_only_once_its_rows_are_durable),
        WORLD_TEST(rates_of_a_node_are_those_of_its_own_time_however_late_a_report_comes),
        WORLD_TEST(a_report_with_impossible_times_is_refused),
        WORLD_TEST(
            what_an_agent_sends_again_after_a_restart_is_taken_before_the_newest_is_acknowledged),
        WORLD_TEST(spooled_reports_of_an_older_agent_do_not_disturb_the_one_that_lives),
        WORLD_TEST(the_same_key_gives_the_same_job_and_another_key_is_refused),
        WORLD_TEST(jobs_that_are_too_large_or_of_no_size_are_refused),
        WORLD_TEST(an_unknown_job_that_runs_is_adopted_with_its_attempt),
        WORLD_TEST(a_number_of_an_attempt_is_not_given_twice),
        WORLD_TEST(a_supervisor_that_went_on_alone_is_followed),
        WORLD_TEST(a_lost_job_holds_its_nodes_while_anything_of_it_may_run_and_no_longer),
        WORLD_TEST(nodes_are_placed_healthy_first_by_number_and_probation_last),
        WORLD_TEST(an_end_that_names_no_rank_is_told_in_the_launchers_words),
        WORLD_TEST(what_something_else_restarts_is_advised_about_and_ends_with_its_own_code),
        WORLD_TEST(nodes_are_listed_by_name_and_number_whoever_was_heard_first),
        WORLD_TEST(a_suspicion_does_not_end_probation),
        WORLD_TEST(one_cause_is_one_incident_from_suspicion_to_end),
        WORLD_TEST(two_slow_nodes_are_two_incidents),
        WORLD_TEST(what_a_person_drained_is_not_taken_back_by_silence_or_by_a_test_of_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
