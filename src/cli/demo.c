/* SPDX-License-Identifier: Apache-2.0 */
/* demo.c - `fullrank demo`: a small fleet, a real training job, faults on purpose, the account of
 * it */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "cli/child.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/conduct.h"
#include "cli/fleet.h"
#include "cli/losses.h"
#include "cli/out.h"
#include "cli/report.h"
#include "cli/view.h"

enum { NODES = 4, RANKS_PER_NODE = 2, SPARES = 2 };

#define CHECKPOINT_EVERY "10" /* close together: a slow node is left at the next one (law 5) */
#define WATCHDOG_S       360.0
#define FAULT_S          75.0 /* more for each fault beyond the usual three */
#define LOOK_MS          100
/* Length of the job: steps before, with and after each fault. The slow one comes with enough work
 * behind it that a restart pays (law 5); the rest is made in ten to twenty seconds on two cores. */
#define STEPS_BASE  80
#define STEPS_SLOW  150
#define STEPS_OTHER 60

/* One machine plays six nodes that are broken on purpose: the breaker's default would rightly stop
 * at the second. And a small job on one machine starts again in three or four seconds, not in the
 * fifteen that are taken until a restart was measured. */
static const char *const DAEMON_ENV[] = {"FULLRANK_POLICY_BREAKER_NODES=1000",
                                         "FULLRANK_POLICY_RESTART_COST=4s", NULL};

static volatile sig_atomic_t got_signal;

static void on_signal(int sig)
{
    got_signal = sig;
}

struct demo {
    const struct fr_cli *cli;
    const char *kinds;
    int64_t seed;
    uint64_t steps;
    char dir[200], report[512];
    struct fr_fleet *fleet;
    struct fr_client *client;
    struct fr_child child;
    struct fr_view view;
    struct fr_conduct conduct;
    struct fr_buf output; /* of the job */
    int fd;               /* where progress goes */
    int exact;            /* 1, 0, -1: not compared */
    double limit_s;
    uint64_t began_ns;
};

static double age_s(const struct demo *d)
{
    return (double)(fr_mono_ns() - d->began_ns) / 1e9;
}

/* --- the job --- */

/* More cores, more work a step: a step stays near a tenth of a second, so that losing half of a
 * node costs more than a restart. */
static int work_factor(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores >= 8 ? 4 : cores >= 4 ? 2 : 1;
}

/* fullrank-train as it runs in the demo and in its twin: the same but for the folder. */
static int start_job(struct demo *d, struct fr_fleet *fleet, const char *dir, const char *level,
                     uint32_t spares, struct fr_child *ret, struct fr_err *err)
{
    char program[512], steps[24], seed[24], batch[16], micro[16], checkpoints[256], losses[256],
        job_dir[256];
    char *command[] = {program,
                       (char *)"--dp",
                       (char *)"2",
                       (char *)"--pp",
                       (char *)"2",
                       (char *)"--tp",
                       (char *)"2",
                       (char *)"--batch",
                       batch,
                       (char *)"--micro-batch",
                       micro,
                       (char *)"--steps",
                       steps,
                       (char *)"--seed",
                       seed,
                       (char *)"--checkpoint-dir",
                       checkpoints,
                       (char *)"--checkpoint-every",
                       (char *)CHECKPOINT_EVERY,
                       (char *)"--loss-file",
                       losses,
                       (char *)"--resume",
                       (char *)"auto",
                       NULL};
    struct fr_child_options opt = {.server = fr_fleet_server(fleet),
                                   .token_file = fr_fleet_token_file(fleet),
                                   .dir = job_dir,
                                   .name = "demo",
                                   .engine = "local",
                                   .mode = "act",
                                   .level = level,
                                   .nodes = NODES,
                                   .ranks_per_node = RANKS_PER_NODE,
                                   .spares = spares,
                                   .quiet = true,
                                   .command = command};
    int rc;

    if (fr_cli_beside("fullrank-train", program, sizeof program, err) < 0)
        return -ENOENT;
    snprintf(batch, sizeof batch, "%d", 16 * work_factor());
    snprintf(micro, sizeof micro, "%d", 4 * work_factor());
    snprintf(steps, sizeof steps, "%llu", (unsigned long long)d->steps);
    snprintf(seed, sizeof seed, "%lld", (long long)d->seed);
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", dir);
    snprintf(losses, sizeof losses, "%s/loss.jsonl", dir);
    snprintf(job_dir, sizeof job_dir, "%s/job", dir);
    rc = fr_child_start(&opt, ret, err);
    if (rc == 0)
        fr_fleet_share(fleet, ret->pid, NULL);
    return rc;
}

static int start(struct demo *d, struct fr_err *err)
{
    struct fr_fleet_options opt = {.dir = d->dir,
                                   .nodes = NODES + SPARES,
                                   .mode = "act",
                                   .verbose = d->cli->verbose > 0,
                                   .env = DAEMON_ENV};
    const char *tmp = getenv("TMPDIR");
    int rc;

    snprintf(d->dir, sizeof d->dir, "%s/fullrank-demo-XXXXXX",
             tmp && *tmp && strlen(tmp) < 100 ? tmp : "/tmp");
    if (!mkdtemp(d->dir))
        return fr_fail(err, -errno, "%s: %s", d->dir, strerror(errno));
    rc = fr_fleet_start(&opt, &d->fleet, err);
    if (rc == 0)
        rc = fr_client_new(fr_fleet_server(d->fleet), fr_fleet_token_file(d->fleet), &d->client,
                           err);
    if (rc == 0)
        rc = start_job(d, d->fleet, d->dir, "perf", SPARES, &d->child, err);
    if (rc < 0)
        return rc;
    fr_view_init(&d->view, d->client, d->fd, !d->cli->quiet && fr_out_is_terminal(d->fd),
                 fr_out_color(d->cli, d->fd));
    fr_view_say(&d->view, "page     %s/  (another terminal: FULLRANK_SERVER=%s fullrank status)",
                fr_fleet_server(d->fleet), fr_fleet_server(d->fleet));
    fr_view_say(&d->view,
                "job      fullrank-train, data 2 x pipeline 2 x tensor 2, %d nodes x %d ranks + %d "
                "spares, %llu steps, seed %lld",
                NODES, RANKS_PER_NODE, SPARES, (unsigned long long)d->steps, (long long)d->seed);
    return 0;
}

/* Until the job has ended, a signal came, or time is up. */
static void watch(struct demo *d)
{
    while (!got_signal && age_s(d) < d->limit_s) {
        bool alive = fr_child_alive(&d->child), fresh;

        fr_fleet_tick(d->fleet);
        fr_child_follow(&d->child, &d->output);
        fresh = fr_view_fetch(&d->view, NULL) == 0;
        if (!d->cli->quiet)
            fr_view_draw(&d->view);
        if (fresh)
            fr_conduct_tick(&d->conduct, &d->view);
        if (!alive && (fr_view_ended(&d->view) || d->child.code != 0))
            break;
        poll(NULL, 0, LOOK_MS);
    }
    fr_conduct_fini(&d->conduct);
    fr_child_follow(&d->child, &d->output);
}

/* --- the twin --- */

/* The same job once more without probe, faults or spares; then every loss of every step, bit for
 * bit. */
static int run_twin(struct demo *d, struct fr_err *err)
{
    char dir[230], mine[256], twin[256];
    struct fr_fleet_options opt = {.dir = dir, .nodes = NODES, .mode = "observe"};
    struct fr_fleet *fleet = NULL;
    struct fr_child child = {.fd = {-1, -1}};
    uint64_t from = fr_mono_ns();
    int rc;

    snprintf(dir, sizeof dir, "%s/twin", d->dir);
    fr_view_say(&d->view, "VERIFY   the same job once more, undisturbed and unwatched");
    rc = fr_fleet_start(&opt, &fleet, err);
    if (rc == 0)
        rc = start_job(d, fleet, dir, "off", 0, &child, err);
    while (rc == 0 && fr_child_alive(&child)) {
        fr_fleet_tick(fleet);
        fr_child_follow(&child, &d->output);
        if (got_signal || (double)(fr_mono_ns() - from) / 1e9 > WATCHDOG_S) {
            fr_child_cancel(&child, SIGTERM, 10);
            rc = fr_fail(err, -ETIMEDOUT, "the twin run was not finished");
        }
        poll(NULL, 0, LOOK_MS);
    }
    fr_child_close(&child);
    fr_fleet_stop(fleet);
    if (rc < 0)
        return rc;
    snprintf(mine, sizeof mine, "%s/loss.jsonl", d->dir);
    snprintf(twin, sizeof twin, "%s/loss.jsonl", dir);
    rc = fr_losses_compare(mine, twin, d->steps, err);
    if (rc >= 0)
        d->exact = rc;
    return rc < 0 ? rc : 0;
}

/* --- the account --- */

static void print_json(const struct demo *d, const struct fr_report *r, bool ok)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    const struct fr_json *gp = fr_json_get(r->job, "goodput");
    struct fr_jsonw w;

    fr_jsonw_init(&w, &b);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "schema", "fullrank.demo/1");
    fr_jsonw_arr(&w, "faults");
    for (size_t i = 0; i < d->conduct.nfaults; i++) {
        const struct fr_fault *f = &d->conduct.faults[i];

        fr_jsonw_obj(&w, NULL);
        fr_jsonw_str(&w, "kind", f->kind);
        fr_jsonw_str(&w, "node", f->node[0] ? f->node : NULL);
        if (f->rank >= 0)
            fr_jsonw_int(&w, "rank", f->rank);
        else
            fr_jsonw_null(&w, "rank");
        fr_jsonw_str(&w, "named_node", f->incident ? f->named_node : NULL);
        if (f->incident && f->named_rank >= 0)
            fr_jsonw_int(&w, "named_rank", f->named_rank);
        else
            fr_jsonw_null(&w, "named_rank");
        fr_jsonw_str(&w, "named_cause", f->incident ? f->named_cause : NULL);
        fr_jsonw_bool(&w, "correct", f->correct);
        fr_jsonw_bool(&w, "isolated", f->isolated);
        fr_jsonw_num(&w, "detect_s", f->detect_s);
        fr_jsonw_num(&w, "detect_steps", f->detect_steps);
        fr_jsonw_num(&w, "recover_s", f->recover_s);
        fr_jsonw_end_obj(&w);
    }
    fr_jsonw_end_arr(&w);
    if (d->exact >= 0)
        fr_jsonw_bool(&w, "loss_bit_exact", d->exact);
    else
        fr_jsonw_null(&w, "loss_bit_exact");
    fr_jsonw_int(&w, "steps", fr_json_int(r->job, "step", 0));
    fr_jsonw_num(&w, "goodput_ratio", fr_json_num(gp, "goodput_ratio", NAN));
    fr_jsonw_num(&w, "mfu_ratio", fr_json_num(r->job, "mfu_ratio", NAN));
    fr_jsonw_num(&w, "ledger_error_s", fr_json_num(gp, "error_s", NAN));
    fr_jsonw_str(&w, "report", d->report[0] ? d->report : NULL);
    fr_jsonw_int(&w, "seed", d->seed);
    fr_jsonw_uint(&w, "wrong_drains", d->conduct.wrong_drains);
    fr_jsonw_bool(&w, "ok", ok);
    fr_jsonw_end_obj(&w);
    fr_buf_putc(&b, '\n');
    fr_out_write(&b);
}

static int write_html(struct demo *d, const struct fr_report *r)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf html = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    const char *path = d->cli->html ? d->cli->html : "fullrank-demo.html";
    char *full;

    fr_report_html(r, &html);
    if (fr_fs_write_atomic(path, html.p, html.len, 0644, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    full = realpath(path, NULL);
    snprintf(d->report, sizeof d->report, "%s", full ? full : path);
    free(full);
    return 0;
}

/* The last lines that the job wrote, when it did not end well. */
static void show_output(const struct demo *d)
{
    const char *s = fr_buf_str(&d->output), *from = s + d->output.len;

    for (int lines = 0; from > s && lines < 12; from--)
        lines += from[-1] == '\n' && from < s + d->output.len;
    fprintf(stderr, "fullrank: the job's last lines:\n%s\n", from);
}

static int account(struct demo *d)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf text = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    struct fr_report r;
    bool ok, ended_well;
    int code = 0;

    fr_view_clear(&d->view);
    ended_well =
        d->child.pid == 0 && d->child.code == 0 && strcmp(fr_view_state(&d->view), "done") == 0;
    ok = fr_conduct_judge(&d->conduct, &d->view) && ended_well;
    if (!d->view.job[0]) {
        show_output(d);
        fr_fail(&err, -EIO, "the job was never seen by the controller");
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    }
    if (fr_report_load(d->client, d->view.job, &r, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    if (d->cli->verify && ended_well && run_twin(d, &err) < 0)
        code = fr_cli_fail(FR_EXIT_FAILED, &err);
    if (d->cli->verify && d->exact != 1)
        ok = false;
    r.faults = d->conduct.faults;
    r.nfaults = d->conduct.nfaults;
    r.title = "fullrank demo";
    r.seed = d->seed;
    r.loss_bit_exact = d->exact;
    if (write_html(d, &r))
        code = FR_EXIT_FAILED;
    if (d->cli->format == FR_FORMAT_TABLE) {
        fr_buf_putc(&text, '\n');
        fr_report_text(&r, fr_out_color(d->cli, STDOUT_FILENO), &text);
        if (d->conduct.wrong_drains)
            fr_buf_printf(&text, "\n%u nodes without a fault were drained\n",
                          d->conduct.wrong_drains);
        fr_buf_printf(&text, "\nreport: %s\n", d->report);
        fr_out_write(&text);
    } else {
        print_json(d, &r, ok);
    }
    fr_report_fini(&r);
    if (!ended_well)
        show_output(d);
    if (!ok && !code)
        fr_complain("fullrank", "%s (repeat it: fullrank demo --seed %lld)",
                    ended_well ? "not every fault was found, named and isolated as it should"
                               : "the job did not end well",
                    (long long)d->seed);
    return code ? code : ok ? 0 : FR_EXIT_FAILED;
}

static int run_once(const struct fr_cli *cli, const char *kinds, int64_t seed, uint64_t steps,
                    double limit_s)
{
    FR_CLEANUP(fr_freep) struct demo *d = fr_xalloc(sizeof *d);
    struct fr_err err = FR_ERR_INIT;
    int code;

    *d = (struct demo){.cli = cli,
                       .kinds = kinds,
                       .seed = seed,
                       .steps = steps,
                       .exact = -1,
                       .limit_s = limit_s,
                       .began_ns = fr_mono_ns(),
                       .fd = cli->format == FR_FORMAT_TABLE ? STDOUT_FILENO : STDERR_FILENO,
                       .child = {.fd = {-1, -1}}};
    if (fr_conduct_init(&d->conduct, kinds, (uint64_t)seed, &err) < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    if (start(d, &err) < 0) {
        code = fr_cli_fail(FR_EXIT_FAILED, &err);
    } else {
        watch(d);
        if (got_signal) {
            fr_view_clear(&d->view);
            code = 128 + got_signal;
        } else if (age_s(d) >= d->limit_s) {
            fr_view_clear(&d->view);
            show_output(d);
            fr_fail(&err, -ETIMEDOUT, "the demo was not over after %.0f s; ended", d->limit_s);
            code = fr_cli_fail(FR_EXIT_TIME, &err);
        } else {
            code = account(d);
        }
    }
    if (fr_child_alive(&d->child))
        fr_child_cancel(&d->child, SIGTERM, 10);
    fr_child_close(&d->child);
    fr_view_fini(&d->view);
    fr_client_free(d->client);
    fr_fleet_stop(d->fleet);
    fr_buf_fini(&d->output);
    if (cli->keep)
        fprintf(stderr, "fullrank: state kept in %s\n", d->dir);
    else if (d->dir[0])
        fr_fs_remove_tree(d->dir, NULL);
    return code;
}

static uint64_t default_steps(const char *kinds)
{
    uint64_t steps = STEPS_BASE;

    for (const char *k = kinds; *k; k += strcspn(k, ","), k += *k == ',')
        steps += strncmp(k, "slow", 4) == 0 ? STEPS_SLOW : STEPS_OTHER;
    return steps;
}

int fr_cmd_demo(struct fr_cli *cli, int n, char **operands)
{
    struct sigaction sa = {.sa_handler = on_signal};
    const char *kinds = cli->no_faults ? ""
                        : cli->faults  ? cli->faults
                        : cli->quick   ? "kill"
                                       : "slow,hang,kill";
    uint64_t steps = cli->steps ? (uint64_t)cli->steps : default_steps(kinds);
    struct fr_err err = FR_ERR_INIT;
    double limit_s = WATCHDOG_S;
    size_t nfaults = *kinds != '\0';
    int worst = 0;

    (void)n;
    (void)operands;
    if (cli->format != FR_FORMAT_TABLE && cli->format != FR_FORMAT_JSON &&
        cli->format != FR_FORMAT_JSONL) {
        fr_fail(&err, -EINVAL, "demo writes table or json");
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    }
    for (const char *k = kinds; *k; k++)
        nfaults += *k == ',';
    if (nfaults > 3)
        limit_s += FAULT_S * (double)(nfaults - 3);
    if (cli->steps) /* a length of the caller's own: half a second a step and more is no fault of
                       ours */
        limit_s += (double)cli->steps;
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    for (int64_t i = 0; i < cli->repeat && !got_signal; i++) {
        uint32_t random = 1;
        int64_t seed = cli->seed >= 0 ? cli->seed + i : 0;
        int code;

        if (cli->seed < 0 && getrandom(&random, sizeof random, 0) == (ssize_t)sizeof random)
            seed = random % 1000000;
        code = run_once(cli, kinds, seed, steps, limit_s);
        if (code)
            worst = code;
    }
    return got_signal ? 128 + got_signal : worst;
}
