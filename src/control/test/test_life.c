/* SPDX-License-Identifier: Apache-2.0 */
/* test_life.c - a simulated job with faults against the whole state, in virtual time */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fs.h"
#include "control/api.h"
#include "control/bundles.h"
#include "control/decide.h"
#include "control/incidents.h"
#include "control/ingest.h"
#include "control/jobs.h"
#include "control/restore.h"
#include "control/state.h"
#include "helper_fleet.h"
#include "model/config.h"

#define TICK_NS 50000000ull

struct world {
    char dir[64], db[96];
    struct fr_config cfg;
    struct fr_ledger *lg;
    struct fr_ctl *c;
    struct sim s;
    uint64_t now_ns;
};

static int post(void *arg, bool supervise, const struct fr_buf *body, struct fr_buf *reply)
{
    struct world *w = arg;

    return supervise ? fr_jobs_supervise(w->c, body->p, body->len, reply)
                     : fr_ingest_report(w->c, body->p, body->len, reply);
}

static void open_ctl(struct world *w)
{
    struct fr_err err = FR_ERR_INIT;

    if (fr_ledger_open(w->db, &w->lg, &err))
        fail_msg("%s", err.text);
    w->c = fr_ctl_new(&w->cfg, FR_MODE_ACT, w->dir, w->lg);
    if (w->now_ns) {
        w->c->unix_offset_ns = w->s.unix_offset_ns;
        w->c->now_ns = w->now_ns;
    } else {
        w->now_ns = w->c->now_ns;
    }
    if (fr_restore(w->c, w->db, &err))
        fail_msg("%s", err.text);
}

static void close_ctl(struct world *w)
{
    fr_ctl_free(w->c);
    fr_ledger_close(w->lg);
}

static void begin(struct world *w, uint32_t nodes, uint32_t job_nodes, uint32_t rpn, uint64_t steps)
{
    const char *none[] = {NULL};

    memset(w, 0, sizeof *w);
    snprintf(w->dir, sizeof w->dir, "/tmp/fr-life-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->db, sizeof w->db, "%s/ledger.db", w->dir);
    assert_int_equal(fr_config_load(FR_CONFIG_ROWS, &w->cfg, none, NULL), 0);
    open_ctl(w);
    sim_init(&w->s, nodes, job_nodes, rpn, steps);
    w->s.post = post;
    w->s.arg = w;
    w->s.unix_offset_ns = w->c->unix_offset_ns;
}

static void end(struct world *w)
{
    close_ctl(w);
    fr_fs_remove_tree(w->dir, NULL);
}

/* One tick of everything; rows are durable at once, as if the disk were infinitely fast. */
static void tick(struct world *w)
{
    w->now_ns += TICK_NS;
    if (w->now_ns > w->c->now_ns)
        w->c->now_ns = w->now_ns;
    sim_run(&w->s, w->now_ns);
    fr_ctl_tick(w->c, w->now_ns);
    if (w->c->appended)
        assert_int_equal(fr_ledger_wait(w->lg, w->c->appended, 5, NULL), 0);
}

static void run_until_step(struct world *w, uint64_t step)
{
    for (int k = 0; w->s.step < step; k++) {
        assert_true(k < 2000);
        tick(w);
    }
}

static void run_to_end(struct world *w)
{
    for (int k = 0; !w->s.finished; k++) {
        if (k >= 2000)
            fail_msg("not finished: job state %s, act %d, step %llu, error %s",
                     w->c->njobs ? fr_job_state_name(w->c->jobs[0]->state) : "none",
                     w->c->njobs ? (int)w->c->jobs[0]->act.stage : -1,
                     (unsigned long long)w->s.step, w->s.error);
        tick(w);
    }
    for (int k = 0; k < 30; k++)
        tick(w);
    assert_string_equal(w->s.error, "");
}

static void assert_books_balance(const struct fr_cjob *j)
{
    int64_t sum = 0;

    for (int b = 0; b < FR_BUCKETS; b++)
        sum += j->account.bucket_ns[b];
    assert_true(j->account_final);
    assert_int_equal(sum, j->account.wall_ns);
    assert_int_equal(j->account.wall_ns, j->ended_unix_ns - j->submitted_unix_ns);
}

static struct fr_cnode *node_of(struct world *w, const char *name)
{
    struct fr_cnode *n = fr_ctl_node(w->c, name);

    assert_non_null(n);
    return n;
}

static void a_job_without_faults_runs_to_its_end_in_one_attempt(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 3, 2, 2, 60);
    run_to_end(&w);
    assert_int_equal(w.c->njobs, 1);
    assert_string_equal(w.c->jobs[0]->job, "j1");
    assert_int_equal(w.c->jobs[0]->state, FR_JOB_DONE);
    assert_int_equal(w.c->jobs[0]->nattempts, 1);
    assert_int_equal(w.c->jobs[0]->nsteps, 60);
    assert_int_equal(w.c->ndecisions, 0);
    assert_int_equal(w.s.finish_code, 0);
    assert_books_balance(w.c->jobs[0]);
    for (uint32_t i = 0; i < 3; i++) /* what came last is acknowledged by the reply to the next
                                        report at the latest but one */
        assert_in_range(w.s.nodes[i].acked, w.s.nodes[i].seq - 2, w.s.nodes[i].seq);
    end(&w);
}

static void check_isolated(struct world *w, const char *kind, const char *node, int rank)
{
    struct fr_cjob *j = w->c->jobs[0];
    struct fr_cincident *i = w->c->incidents[0];
    struct fr_cdecision *d = NULL;

    assert_int_equal(j->state, FR_JOB_DONE);
    assert_int_equal(j->nattempts, 2);
    assert_int_equal(w->c->nincidents, 1);
    assert_string_equal(i->kind, kind);
    assert_string_equal(i->node, node);
    assert_int_equal(i->f.rank, rank);
    for (size_t k = 0; k < w->c->ndecisions; k++)
        if (w->c->decisions[k]->choice == FR_CHOICE_ISOLATE)
            d = w->c->decisions[k];
    assert_non_null(d);
    assert_string_equal(d->node, node);
    for (uint32_t k = 0; k < d->nactions; k++)
        assert_string_equal(d->actions[k].state, "done");
    assert_int_equal(w->s.starts[1], 1);
    assert_int_equal(w->s.starts[2], 1);
    assert_true(w->s.stops[1] <= 1);
    assert_int_equal(w->s.old_orders, 0);
    assert_non_null(strstr(node_of(w, node)->history[1].reason, "names it"));
    for (uint32_t k = 2; k < node_of(w, node)->nhistory; k++) { /* every change says who and why */
        assert_string_equal(node_of(w, node)->history[k].actor, "fullrank");
        assert_non_null(strstr(node_of(w, node)->history[k].reason, "fullrank:"));
    }
    for (uint32_t k = 0; k < j->nodes; k++)
        assert_string_not_equal(j->attempts[1].nodes[k]->name, node);
    assert_books_balance(j);
}

static void a_stopped_rank_is_named_and_its_node_replaced(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5, 4, 2, 120);
    run_until_step(&w, 45);
    sim_inject(&w.s, SIM_STOP, 5);
    run_to_end(&w);
    check_isolated(&w, "hang", "n3", 5);
    assert_int_equal(w.s.stops[1], 1);
    assert_true(w.c->incidents[0]->has_bundle);
    assert_true(w.s.nodes[0].collected > 0);
    /* named within 5 s of the fault, first step of the next attempt within 4 s of that */
    assert_true(w.c->incidents[0]->named_unix_ns - w.c->jobs[0]->attempts[0].stop_unix_ns <
                5000000000);
    assert_true(w.c->jobs[0]->attempts[1].first_step_unix_ns - w.c->incidents[0]->named_unix_ns <
                4000000000);
    end(&w);
}

static void a_killed_rank_is_named_and_its_node_replaced(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5, 4, 2, 120);
    run_until_step(&w, 45);
    sim_inject(&w.s, SIM_KILL, 2);
    run_to_end(&w);
    check_isolated(&w, "dead", "n2", 2);
    end(&w);
}

static void a_drained_node_is_verified_and_comes_back_on_probation_and_is_used_last(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5, 4, 2, 400);
    run_until_step(&w, 45);
    sim_inject(&w.s, SIM_STOP, 0);
    for (int k = 0; node_of(&w, "n1")->state != FR_NODE_PROBATION; k++) {
        assert_true(k < 600);
        tick(&w);
    }
    assert_true(w.s.nodes[0].verified > 0);
    assert_true(fr_node_is_usable(node_of(&w, "n1")->state));
    run_to_end(&w);
    end(&w);
}

static void an_application_that_exits_by_its_own_code_drains_no_node(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 5, 4, 2, 60);
    run_until_step(&w, 20);
    sim_inject(&w.s, SIM_EXIT, 3);
    run_to_end(&w);
    for (uint32_t i = 0; i < w.c->nnodes; i++)
        assert_true(w.c->nodes[i]->state == FR_NODE_HEALTHY ||
                    w.c->nodes[i]->state == FR_NODE_SUSPECT);
    assert_true(w.c->ndecisions > 0);
    for (size_t k = 0; k < w.c->ndecisions; k++)
        assert_int_not_equal(w.c->decisions[k]->choice, FR_CHOICE_ISOLATE);
    end(&w);
}

/* Excess times on both sides of the point where a restart pays, tick for tick: the ledger gets one
 * row of each kind, not one a tick. */
static void choices_that_waver_between_two_ways_of_waiting_are_written_once(void **state)
{
    struct world w;
    struct fr_cjob *j;
    struct fr_cincident *i;
    struct fr_judge_summary sum;
    uint64_t next, lost;

    (void)state;
    begin(&w, 5, 4, 2, 1000000);
    run_until_step(&w, 45);
    j = w.c->jobs[0];
    while (j->step_done - j->checkpoint_step < 3)
        tick(&w);
    fr_judge_summary(j->judge, &sum);
    assert_true(sum.baseline_step_s > 0);
    lost = j->step_done - j->checkpoint_step;
    next = j->checkpoint_step + j->checkpoint_every;
    i = fr_incident_add(w.c, 1);
    i->job = j;
    i->epoch = j->epoch;
    i->f = (struct fr_finding){.key = 1,
                               .kind = FR_FINDING_SLOW,
                               .subject = FR_SUBJECT_NODE,
                               .rank = 2,
                               .node = 1,
                               .witnesses =
                                   FR_WITNESS_PEERS | FR_WITNESS_ARRIVAL | FR_WITNESS_THROTTLED};
    for (int k = 0; k < 20; k++) {
        w.c->now_ns += TICK_NS;
        i->f.excess_s =
            k % 2 ? 0.5 * (double)lost * sum.baseline_step_s / (double)(next - j->step_done) : 0;
        fr_decide(w.c, j, i);
    }
    assert_int_equal(w.c->ndecisions, 2);
    assert_int_equal(w.c->decisions[0]->choice, FR_CHOICE_WAIT);
    assert_int_equal(w.c->decisions[0]->wait_until_step, 0);
    assert_int_equal(w.c->decisions[1]->choice, FR_CHOICE_WAIT);
    assert_int_equal(w.c->decisions[1]->wait_until_step, next);
    end(&w);
}

static void run_ticks(struct world *w, int ticks)
{
    while (ticks-- > 0)
        tick(w);
}

static void run_until_moving(struct world *w)
{
    for (int k = 0; w->c->njobs == 0 || w->c->jobs[0]->state != FR_JOB_RUNNING; k++) {
        assert_true(k < 600);
        tick(w);
    }
}

/* A plain MPI program: collectives, and not one step, phase or plan told. */
static void
a_program_that_marks_no_steps_runs_and_is_not_given_up_while_it_runs_for_a_while(void **state)
{
    struct world w;
    struct fr_cjob *j;
    int64_t moved, other, launch;

    (void)state;
    begin(&w, 4, 2, 2, 1000000);
    w.s.unmarked = true;
    run_until_moving(&w);
    run_ticks(&w, 60);
    j = w.c->jobs[0];
    moved = j->attempts[0].first_move_unix_ns;
    assert_true(moved > j->attempts[0].start_unix_ns);
    launch = j->account.bucket_ns[FR_BUCKET_LAUNCH];
    other = j->account.bucket_ns[FR_BUCKET_OTHER];
    assert_int_equal(launch, moved - j->attempts[0].start_unix_ns);
    assert_in_range(other, 2 * FR_NS_PER_S, 3 * FR_NS_PER_S); /* 60 ticks, and a second's lag */
    assert_true(isnan(j->account.goodput_ratio));
    fr_ctl_save(w.c);
    close_ctl(&w); /* a restarted controller knows since when it has run */
    open_ctl(&w);
    j = w.c->jobs[0];
    assert_int_equal(j->attempts[0].first_move_unix_ns, moved);
    assert_int_equal(j->state, FR_JOB_RUNNING);
    for (uint32_t fault = 1; fault <= 5; fault++) { /* one every 12 s */
        run_ticks(&w, 240);
        assert_int_equal(w.s.attempt, fault);
        sim_inject(&w.s, SIM_KILL, 1);
        run_ticks(&w, 80);
        run_until_moving(&w);
    }
    assert_int_equal(j->nattempts, 6);
    end(&w);
}

static void a_program_that_marks_no_steps_and_fails_at_once_is_given_up(void **state)
{
    struct world w;

    (void)state;
    begin(&w, 4, 2, 2, 1000000);
    w.s.unmarked = true;
    for (uint32_t fault = 1; fault <= 3; fault++) {
        run_until_moving(&w);
        assert_int_equal(w.s.attempt, fault);
        sim_inject(&w.s, SIM_KILL, 1);
        run_ticks(&w, 60);
    }
    run_ticks(&w, 40);
    assert_int_equal(w.c->jobs[0]->state, FR_JOB_FAILED);
    assert_int_equal(w.c->jobs[0]->nattempts, 3);
    assert_non_null(strstr(w.c->jobs[0]->note, "made no progress"));
    end(&w);
}

static int bundle_is_there(struct world *w, int incident)
{
    char path[160];

    snprintf(path, sizeof path, "%s/bundles/%d/stack.txt", w->dir, incident);
    return access(path, F_OK) == 0;
}

static void bundles_over_their_budget_go_oldest_first_but_not_those_of_open_incidents(void **state)
{
    static char evidence[256 << 10];
    struct world w;

    (void)state;
    begin(&w, 2, 1, 1, 10);
    memset(evidence, 'x', sizeof evidence);
    for (int id = 8; id <= 12; id++) { /* 9 before 10: they are numbers, not names */
        char path[160];

        snprintf(path, sizeof path, "%s/bundles/%d", w.dir, id);
        assert_int_equal(fr_fs_mkdirs(path, 0700, NULL), 0);
        snprintf(path, sizeof path, "%s/bundles/%d/stack.txt", w.dir, id);
        assert_int_equal(fr_fs_write_atomic(path, evidence, sizeof evidence, 0600, NULL), 0);
    }
    fr_incident_add(w.c, 8)->has_bundle = true; /* open */
    fr_incident_add(w.c, 9)->closed_unix_ns = 1;
    w.c->incidents[1]->has_bundle = true;
    w.c->cfg.controller_retain_bundles_bytes = 6 * sizeof evidence;
    fr_bundles_trim(w.c);
    assert_true(bundle_is_there(&w, 9));
    w.c->cfg.controller_retain_bundles_bytes = 3 * sizeof evidence + sizeof evidence / 2;
    fr_bundles_trim(w.c);
    assert_true(bundle_is_there(&w, 8) && bundle_is_there(&w, 11) && bundle_is_there(&w, 12));
    assert_false(bundle_is_there(&w, 9) || bundle_is_there(&w, 10));
    assert_true(w.c->incidents[0]->has_bundle);
    assert_false(w.c->incidents[1]->has_bundle);
    end(&w);
}

/* The documents that say what is durable; ages and rates left out by comparing what the ledger
 * bears. */
static void durable_state(struct world *w, struct fr_buf *out)
{
    static const enum fr_route R[] = {FR_ROUTE_INCIDENTS, FR_ROUTE_DECISIONS, FR_ROUTE_STEPS};

    for (size_t i = 0; i < sizeof R / sizeof R[0]; i++) {
        struct fr_api_call call = {.route = R[i], .arg = "j1", .query = ""};
        struct fr_buf b = FR_BUF_INIT;
        const char *type;

        assert_int_equal(fr_api_answer(w->c, &call, &b, &type), 200);
        fr_buf_add(out, b.p, b.len);
        fr_buf_putc(out, '\n');
        fr_buf_fini(&b);
    }
    for (uint32_t i = 0; i < w->c->nnodes; i++)
        fr_buf_printf(out, "%s %s %s\n", w->c->nodes[i]->name,
                      fr_node_state_name(w->c->nodes[i]->state), w->c->nodes[i]->reason);
    for (uint32_t i = 0; i < w->c->njobs; i++) {
        const struct fr_cjob *j = w->c->jobs[i];

        fr_buf_printf(out, "%s %s %u epoch %llu order %d %llu\n", j->job,
                      fr_job_state_name(j->state), j->nattempts, (unsigned long long)j->epoch,
                      (int)j->order.what, (unsigned long long)j->order.id);
        for (uint32_t k = 0; k < j->nattempts; k++)
            fr_buf_printf(out, "  %u %lld %lld %lld %d\n", j->attempts[k].attempt,
                          (long long)j->attempts[k].start_unix_ns,
                          (long long)j->attempts[k].stop_unix_ns,
                          (long long)j->attempts[k].end_unix_ns, j->attempts[k].exit_code);
    }
}

static void a_restarted_controller_holds_the_same_state(void **state)
{
    static const int AT[] = {5, 30, 60, 75, 90, 110, 140};

    (void)state;
    for (size_t k = 0; k < sizeof AT / sizeof AT[0]; k++) {
        struct fr_buf before = FR_BUF_INIT, after = FR_BUF_INIT;
        struct world w;

        begin(&w, 5, 4, 2, 200);
        for (int t = 0; t < AT[k]; t++) {
            if (t == 60)
                sim_inject(&w.s, SIM_STOP, 6);
            tick(&w);
        }
        fr_ctl_save(w.c);
        durable_state(&w, &before);
        close_ctl(&w);
        open_ctl(&w);
        durable_state(&w, &after);
        if (strcmp(fr_buf_str(&before), fr_buf_str(&after)) != 0) {
            size_t d = 0;

            while (before.p[d] == after.p[d])
                d++;
            d = d > 100 ? d - 100 : 0;
            fail_msg("tick %d: before ...%.300s... after ...%.300s...", AT[k], before.p + d,
                     after.p + d);
        }
        if (AT[k] > 60)
            run_to_end(&w);
        end(&w);
        fr_buf_fini(&before);
        fr_buf_fini(&after);
    }
}

static void a_restart_of_the_controller_at_any_moment_leads_to_the_same_end(void **state)
{
    (void)state;
    for (int at = 60; at < 150; at += 3) {
        struct world w;

        begin(&w, 5, 4, 2, 120);
        for (int t = 0; t < at; t++) {
            if (t == 60)
                sim_inject(&w.s, SIM_STOP, 6);
            tick(&w);
        }
        close_ctl(&w);
        open_ctl(&w);
        if (at == 60)
            sim_inject(&w.s, SIM_STOP, 6);
        run_to_end(&w);
        assert_int_equal(w.c->jobs[0]->state, FR_JOB_DONE);
        assert_int_equal(w.c->jobs[0]->nattempts, 2);
        assert_int_equal(w.s.starts[1], 1);
        assert_int_equal(w.s.starts[2], 1);
        assert_int_equal(w.s.stops[1], 1);
        assert_int_equal(w.s.old_orders, 0);
        assert_books_balance(w.c->jobs[0]);
        for (uint32_t i = 0; i < w.c->nnodes; i++) {
            enum fr_node_state st = w.c->nodes[i]->state;
            int out = st == FR_NODE_DRAINED || st == FR_NODE_VERIFYING || st == FR_NODE_PROBATION;

            assert_int_equal(out, strcmp(w.c->nodes[i]->name, "n4") == 0);
        }
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_without_faults_runs_to_its_end_in_one_attempt),
        cmocka_unit_test(a_stopped_rank_is_named_and_its_node_replaced),
        cmocka_unit_test(a_killed_rank_is_named_and_its_node_replaced),
        cmocka_unit_test(a_drained_node_is_verified_and_comes_back_on_probation_and_is_used_last),
        cmocka_unit_test(an_application_that_exits_by_its_own_code_drains_no_node),
        cmocka_unit_test(
            a_program_that_marks_no_steps_runs_and_is_not_given_up_while_it_runs_for_a_while),
        cmocka_unit_test(a_program_that_marks_no_steps_and_fails_at_once_is_given_up),
        cmocka_unit_test(choices_that_waver_between_two_ways_of_waiting_are_written_once),
        cmocka_unit_test(bundles_over_their_budget_go_oldest_first_but_not_those_of_open_incidents),
        cmocka_unit_test(a_restarted_controller_holds_the_same_state),
        cmocka_unit_test(a_restart_of_the_controller_at_any_moment_leads_to_the_same_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
