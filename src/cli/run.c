/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `run` and `supervise`: a job from the command line to its exit code */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "cli/child.h"
#include "cli/cmd.h"
#include "cli/fleet.h"
#include "cli/owner.h"
#include "cli/restarts.h"
#include "cli/supervise.h"
#include "model/job.h"

#define CANCEL_S   15.0
#define NAME_CHARS 48 /* as the controller takes them */

static volatile sig_atomic_t got_signal;

static void note_signal(int sig)
{
    got_signal = sig;
}

static int check(struct fr_cli *cli, struct fr_err *err)
{
    static const char *const LEVELS[] = {"off", "hang", "perf", "full"};
    enum fr_mode mode;
    const char *level = getenv("FULLRANK_PROBE");

    if (cli->nodes < 1 || cli->nodes > 100000 || cli->ranks_per_node < 1 ||
        cli->ranks_per_node > 1024 || cli->spares > 100000)
        return fr_fail(
            err, -EINVAL,
            "--nodes takes 1 to 100000, --ranks-per-node 1 to 1024, --spares up to 100000");
    if (cli->own_restarts && cli->no_own_restarts)
        return fr_fail(err, -EINVAL, "--own-restarts and --no-own-restarts exclude each other");
    if (fr_mode_parse(cli->mode, &mode) < 0)
        return fr_fail(err, -EINVAL, "--mode %.40s: not one of observe, advise, act", cli->mode);
    if (strcmp(cli->engine, "local") != 0)
        return fr_fail(err, -EINVAL, "--engine %.40s: this program knows the engine local",
                       cli->engine);
    if (!cli->level)
        cli->level = level && *level ? level : "perf";
    for (size_t i = 0; i < sizeof LEVELS / sizeof LEVELS[0]; i++)
        if (strcmp(cli->level, LEVELS[i]) == 0)
            return 0;
    return fr_fail(err, -EINVAL, "--probe %.40s: not one of off, hang, perf, full", cli->level);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* A job's name from that of its program, which may be longer and hold other characters. */
static const char *name_job(const struct fr_cli *cli, const char *program)
{
    static char name[NAME_CHARS + 1];

    if (cli->name)
        return cli->name;
    snprintf(name, sizeof name, "%s", base_name(program));
    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            *c = '_';
    return *name ? name : "job";
}

/* A command with a slash is a file: that it cannot be started is said before anything is. 0, or
 * what a shell would end with. */
static int check_command(const char *program, struct fr_err *err)
{
    struct stat st;

    if (!strchr(program, '/'))
        return 0;
    if (stat(program, &st) < 0) {
        int code = errno == ENOENT || errno == ENOTDIR ? 127 : 126;

        fr_fail(err, -errno, "%.200s: %s", program, strerror(errno));
        return code;
    }
    if (S_ISREG(st.st_mode) && access(program, X_OK) == 0)
        return 0;
    fr_fail(err, -EACCES, "%.200s: not an executable file", program);
    return 126;
}

/* A new folder below the user's state folder. */
static int make_state_dir(const char *kind, char *ret, size_t n, struct fr_err *err)
{
    char home[200];
    int rc = fr_cli_state_home(home, sizeof home, err);

    if (rc == 0)
        rc = fr_fs_mkdirs(home, 0700, err);
    if (rc < 0)
        return rc;
    snprintf(ret, n, "%s/%s-", home, kind);
    fr_owner_sweep(home, strrchr(ret, '/') + 1, FR_OWNER_KEEP_RUNS);
    snprintf(ret, n, "%s/%s-XXXXXX", home, kind);
    if (!mkdtemp(ret))
        return fr_fail(err, -errno, "%s: %s", ret, strerror(errno));
    return fr_owner_add(ret, getpid(), err);
}

static const char *env(const char *name)
{
    return getenv(name);
}

int fr_cmd_supervise(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;
    char dir[256], number[4][16], token[256] = "", owner[128];
    const char *words[40];
    struct fr_supervise s = {0};
    size_t k = 0;
    int code = 0, rc;

    if (check(cli, &err) < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    code = check_command(operands[0], &err);
    if (code)
        return fr_cli_fail((enum fr_exit)code, &err);
    if (cli->state_dir)
        snprintf(dir, sizeof dir, "%s", cli->state_dir);
    else if (make_state_dir("job", dir, sizeof dir, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    for (int i = 0; i < 4; i++) {
        const int64_t v[] = {cli->nodes, cli->ranks_per_node, cli->spares, cli->max_attempts};

        snprintf(number[i], sizeof number[i], "%lld", (long long)v[i]);
    }
    /* The same command once more, for a session of its own. */
    {
        const char *const pairs[][2] = {
            {"--server", cli->server}, {"--token-file", cli->token_file},
            {"--nodes", number[0]},    {"--ranks-per-node", number[1]},
            {"--spares", number[2]},   {"--max-attempts", number[3]},
            {"--name", cli->name},     {"--engine", cli->engine},
            {"--mode", cli->mode},     {"--probe", cli->level},
            {"--state-dir", dir}};
        FR_CLEANUP(fr_freep) char **argv = fr_xcalloc((size_t)n + 40, sizeof *argv);

        words[k++] = "fullrank";
        words[k++] = "supervise";
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
            if (pairs[i][1]) {
                words[k++] = pairs[i][0];
                words[k++] = pairs[i][1];
            }
        if (cli->quiet)
            words[k++] = "--quiet";
        if (cli->own_restarts)
            words[k++] = "--own-restarts";
        if (cli->no_own_restarts)
            words[k++] = "--no-own-restarts";
        words[k++] = "--";
        memcpy(argv, words, k * sizeof *words);
        memcpy(argv + k, operands, (size_t)n * sizeof *operands);
        rc = fr_supervise_lead(argv, dir, &code, &err);
    }
    if (rc < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    if (rc == 0)
        return code;

    fr_owner_add(dir, getpid(), NULL); /* who made the folder is our parent, which may be killed */
    if (cli->token_file && fr_fs_token(cli->token_file, 0, token, sizeof token, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    fr_restarts_owner(operands, env, owner, sizeof owner);
    if (!owner[0] && !cli->own_restarts && env("SLURM_JOB_ID") &&
        fr_restarts_ask_slurm(env("SLURM_JOB_ID")))
        snprintf(owner, sizeof owner, "Slurm (--requeue)");
    if (owner[0] && !cli->own_restarts && !cli->no_own_restarts && !cli->quiet)
        fprintf(stderr,
                "fullrank: %s restarts this job, so fullrank only advises (--own-restarts: it "
                "restarts itself)\n",
                owner);
    if (cli->no_own_restarts && !owner[0])
        snprintf(owner, sizeof owner, "somebody else (--no-own-restarts)");
    s = (struct fr_supervise){.server = cli->server,
                              .restarts_owner = cli->own_restarts ? "" : owner,
                              .token = token[0] ? token : NULL,
                              .state_dir = dir,
                              .name = name_job(cli, operands[0]),
                              .mode = cli->mode,
                              .engine = cli->engine,
                              .level = cli->level,
                              .probe_lib =
                                  strcmp(cli->level, "off") == 0 ? NULL : fr_cli_probe_lib(),
                              .command = operands,
                              .nodes = (uint32_t)cli->nodes,
                              .ranks_per_node = (uint32_t)cli->ranks_per_node,
                              .spares = (uint32_t)cli->spares,
                              .max_attempts = (uint32_t)cli->max_attempts,
                              .quiet = cli->quiet};
    return fr_supervise_run(&s);
}

/* Follow the supervisor until it ends; the first Ctrl-C cancels in order. */
static int follow(struct fr_child *c, struct fr_fleet *fleet)
{
    while (fr_child_alive(c)) {
        fr_child_follow(c, NULL);
        if (fleet)
            fr_fleet_tick(fleet);
        if (got_signal) {
            int sig = got_signal;

            fr_child_cancel(c, sig, CANCEL_S);
            fr_child_follow(c, NULL);
            return 128 + sig;
        }
        poll(NULL, 0, 30);
    }
    fr_child_follow(c, NULL);
    return c->code;
}

int fr_cmd_run(struct fr_cli *cli, int n, char **operands)
{
    struct sigaction sa = {.sa_handler = note_signal};
    struct fr_err err = FR_ERR_INIT;
    struct fr_fleet *fleet = NULL;
    struct fr_child child;
    char dir[256], job_dir[280];
    bool own_dir = cli->state_dir == NULL;
    int code, rc;

    (void)n;
    if (check(cli, &err) < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    code = check_command(operands[0], &err);
    if (code)
        return fr_cli_fail((enum fr_exit)code, &err);
    code = FR_EXIT_FAILED;
    if (!own_dir)
        snprintf(dir, sizeof dir, "%s", cli->state_dir);
    else if (make_state_dir("run", dir, sizeof dir, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    snprintf(job_dir, sizeof job_dir, "%s/job", dir);
    rc = 0;
    if (!cli->server_given) {
        struct fr_fleet_options opt = {.dir = dir,
                                       .nodes = (uint32_t)(cli->nodes + cli->spares),
                                       .mode = cli->mode,
                                       .verbose = cli->verbose > 0};

        rc = fr_fleet_start(&opt, &fleet, &err);
        if (rc == 0 && !cli->quiet)
            fprintf(stderr,
                    "fullrank: private controller for this run: %s\n"
                    "fullrank: from another terminal: fullrank status; where several runs are "
                    "under way, first:\n"
                    "export FULLRANK_SERVER=%s FULLRANK_TOKEN_FILE='%s'\n",
                    fr_fleet_server(fleet), fr_fleet_server(fleet), fr_fleet_token_file(fleet));
    }
    if (rc == 0) {
        struct fr_child_options opt = {.server = fleet ? fr_fleet_server(fleet) : cli->server,
                                       .token_file =
                                           fleet ? fr_fleet_token_file(fleet) : cli->token_file,
                                       .dir = job_dir,
                                       .name = name_job(cli, operands[0]),
                                       .engine = cli->engine,
                                       .mode = cli->mode,
                                       .level = cli->level,
                                       .nodes = (uint32_t)cli->nodes,
                                       .ranks_per_node = (uint32_t)cli->ranks_per_node,
                                       .spares = (uint32_t)cli->spares,
                                       .max_attempts = (uint32_t)cli->max_attempts,
                                       .own_restarts = cli->own_restarts,
                                       .no_own_restarts = cli->no_own_restarts,
                                       .quiet = cli->quiet,
                                       .command = operands};

        rc = fr_child_start(&opt, &child, &err);
        if (rc == 0 && fleet)
            fr_fleet_share(fleet, child.pid, NULL); /* it outlives us when we are killed */
        else if (rc == 0 && own_dir)
            fr_owner_add(dir, child.pid, NULL);
    }
    if (rc < 0) {
        code = fr_cli_fail(FR_EXIT_FAILED, &err);
    } else {
        code = follow(&child, fleet);
        fr_child_close(&child);
    }
    fr_fleet_stop(fleet);
    if (own_dir && (code == 0 || rc < 0 || got_signal))
        fr_fs_remove_tree(dir, NULL);
    else if (!cli->quiet && own_dir)
        fprintf(stderr, "fullrank: what it left is in %s\n", dir);
    return code;
}
