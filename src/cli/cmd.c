/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.c - see cmd.h */
#include "cli/cmd.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "cli/client.h"
#include "cli/owner.h"
#include "model/config.h"

#define OPTS_MAX 48

const char *const FR_VERSION_TEXT = FR_VERSION;

/* --- options --- */

#define AT(member) offsetof(struct fr_cli, member)
#define OPT_END                                                                                    \
    {                                                                                              \
        0, NULL, FR_OPT_FLAG, 0, NULL, NULL                                                        \
    }
#define OPT_JOB                                                                                    \
    {                                                                                              \
        'j', "job", FR_OPT_STR, AT(job), "JOB", "the job (default: the only one that runs)"        \
    }
#define OPT_YES                                                                                    \
    {                                                                                              \
        'y', "yes", FR_OPT_FLAG, AT(yes), NULL,                                                    \
            "do not ask whether to act on several nodes (asks on a terminal only)"                 \
    }
#define OPT_DRY_RUN                                                                                \
    {                                                                                              \
        0, "dry-run", FR_OPT_FLAG, AT(dry_run), NULL, "say what would be done, and stop there"     \
    }
#define OPT_REASON                                                                                 \
    {                                                                                              \
        0, "reason", FR_OPT_STR, AT(reason), "TEXT", "kept in the ledger"                          \
    }
#define OPT_FOR                                                                                    \
    {                                                                                              \
        0, "for", FR_OPT_SECONDS, AT(for_s), "TIME", "end by itself after TIME, such as 20s"       \
    }
#define OPT_RANK                                                                                   \
    {                                                                                              \
        0, "rank", FR_OPT_INT, AT(rank), "R", "the victim"                                         \
    }
#define OPTS_JOB_SHAPE                                                                             \
    {'N', "nodes", FR_OPT_INT, AT(nodes), "N", "nodes of an attempt (default 1)"},                 \
        {'r',        "ranks-per-node",                                                             \
         FR_OPT_INT, AT(ranks_per_node),                                                           \
         "R",        "ranks on each node (default 1)"},                                            \
        {'s', "spares", FR_OPT_INT, AT(spares), "S", "nodes kept free for it (default 0)"},        \
        {0, "name", FR_OPT_STR, AT(name), "TEXT", "the job's name (default: the program's)"},      \
        {0, "engine", FR_OPT_STR, AT(engine), "NAME", "who starts processes: local"},              \
        {0, "mode", FR_OPT_STR, AT(mode), "MODE", "observe, advise or act (default act)"},         \
        {0, "probe", FR_OPT_STR, AT(level), "LEVEL", "off, hang, perf or full (default perf)"},    \
        {0,          "max-attempts",                                                               \
         FR_OPT_INT, AT(max_attempts),                                                             \
         "N",        "give up after N attempts (default: no limit)"},                              \
        {0,           "own-restarts",                                                              \
         FR_OPT_FLAG, AT(own_restarts),                                                            \
         NULL,        "start it again although something else does (torchrun, Slurm --requeue)"},  \
        {0,           "no-own-restarts",                                                           \
         FR_OPT_FLAG, AT(no_own_restarts),                                                         \
         NULL,        "never start it again, only advise"},                                        \
    {                                                                                              \
        0, "state-dir", FR_OPT_STR, AT(state_dir), "DIR", "where its state is kept"                \
    }

static const struct fr_opt GLOBAL[] = {
    {0, "server", FR_OPT_STR, AT(server), "URL",
     "the controller (FULLRANK_SERVER; default " FR_CLI_SERVER ", else your only private run)"},
    {0, "token-file", FR_OPT_STR, AT(token_file), "FILE",
     "token for what changes something (FULLRANK_TOKEN_FILE)"},
    {'o', "output", FR_OPT_STR, AT(output), "FORMAT", "table, json, jsonl or csv"},
    {0, "color", FR_OPT_STR, AT(color), "WHEN", "auto, always or never"},
    {0, "config", FR_OPT_STR, AT(config_file), "FILE",
     "settings, after the system's and the user's files"},
    {'q', "quiet", FR_OPT_FLAG, AT(quiet), NULL, "results and errors only"},
    {'v', "verbose", FR_OPT_COUNT, AT(verbose), NULL, "say more; twice: much more"},
    {'h', "help", FR_OPT_FLAG, AT(help), NULL, "this text"},
    {0, "version", FR_OPT_FLAG, AT(version), NULL, "the version"},
    OPT_END,
};
static const struct fr_opt LIST[] = {
    {0, "fields", FR_OPT_STR, AT(fields), "A,B,..", "columns of table and csv"},
    {'n', "no-header", FR_OPT_FLAG, AT(no_header), NULL, "no line of titles"},
    OPT_END,
};
static const struct fr_opt LIST_JOB[] = {
    {'j', "job", FR_OPT_STR, AT(job), "JOB", "only this job's"},
    {0, "open", FR_OPT_FLAG, AT(open), NULL, "only what is open"},
    {0, "limit", FR_OPT_INT, AT(limit), "N", "at most N items, 0: all (default 50)"},
    {0, "fields", FR_OPT_STR, AT(fields), "A,B,..", "columns of table and csv"},
    {'n', "no-header", FR_OPT_FLAG, AT(no_header), NULL, "no line of titles"},
    OPT_END,
};
static const struct fr_opt ACT[] = {OPT_REASON, OPT_YES, OPT_DRY_RUN, OPT_END};
static const struct fr_opt SHAPE[] = {OPTS_JOB_SHAPE, OPT_END};
static const struct fr_opt INJECT_SLOW[] = {
    OPT_JOB,
    OPT_RANK,
    {0, "node", FR_OPT_STR, AT(node), "N", "all ranks of this node"},
    {0, "factor", FR_OPT_NUM, AT(factor), "X", "so many times slower (default 2)"},
    OPT_FOR,
    OPT_END,
};
static const struct fr_opt INJECT_HANG[] = {OPT_JOB, OPT_RANK, OPT_FOR, OPT_END};
static const struct fr_opt INJECT_KILL[] = {OPT_JOB, OPT_RANK, OPT_END};
static const struct fr_opt REPORT[] = {
    {0, "html", FR_OPT_STR, AT(html), "FILE", "write the report as one HTML file, too"},
    {0, "check", FR_OPT_FLAG, AT(check), NULL,
     "exit 3 when the books do not balance, 4 when the job ended badly"},
    OPT_END,
};
static const struct fr_opt WATCH[] = {
    {0, "every", FR_OPT_SECONDS, AT(watch_s), "TIME", "time between two pictures (default 1s)"},
    OPT_END,
};
static const struct fr_opt DEMO[] = {
    {0, "quick", FR_OPT_FLAG, AT(quick), NULL, "one fault, under 45 s"},
    {0, "no-faults", FR_OPT_FLAG, AT(no_faults), NULL, "an undisturbed run"},
    {0, "faults", FR_OPT_STR, AT(faults), "LIST", "which, in order (default slow,hang,kill)"},
    {0, "verify", FR_OPT_FLAG, AT(verify), NULL,
     "run an undisturbed twin afterwards and compare every loss"},
    {0, "seed", FR_OPT_INT, AT(seed), "N",
     "chooses victims and moments (default: random, printed)"},
    {0, "steps", FR_OPT_INT, AT(steps), "N", "length of the job (default: fits the faults)"},
    {0, "repeat", FR_OPT_INT, AT(repeat), "N", "do it all N times"},
    {0, "html", FR_OPT_STR, AT(html), "FILE",
     "where the report goes (default ./fullrank-demo.html)"},
    {0, "keep", FR_OPT_FLAG, AT(keep), NULL, "leave the state behind, and print where"},
    OPT_END,
};
static const struct fr_opt CONFIG[] = {
    {0, "all", FR_OPT_FLAG, AT(all), NULL, "every key: value, origin, default, text"},
    OPT_END,
};
static const struct fr_opt LEDGER[] = {
    {0, "state-dir", FR_OPT_STR, AT(state_dir), "DIR",
     "where the ledger lies (default: the controller's state_dir)"},
    {0, "limit", FR_OPT_INT, AT(limit), "N", "at most N rows, 0: all (default 50)"},
    {0, "fields", FR_OPT_STR, AT(fields), "A,B,..", "columns of table and csv"},
    {'n', "no-header", FR_OPT_FLAG, AT(no_header), NULL, "no line of titles"},
    OPT_END,
};
static const struct fr_opt SCAN_JOB_LOG[] = {
    {0, "rules", FR_OPT_STR, AT(rules), "FILE", "further rules, asked before the built-in ones"},
    OPT_END,
};
static const struct fr_opt SCAN_KERNEL_LOG[] = {
    {0, "rules", FR_OPT_STR, AT(rules), "FILE",
     "the site's own meaning of codes, lines \"xid|sxid CODE SEVERITY ACTION\""},
    {'n', "no-header", FR_OPT_FLAG, AT(no_header), NULL, "no line of titles"},
    OPT_END,
};
static const struct fr_opt MFU[] = {
    {'m', "model", FR_OPT_STR, AT(model), "NAME|FILE",
     "a built-in model, our own keys as JSON, or a Hugging Face config.json"},
    {0, "gpu", FR_OPT_STR, AT(gpu), "NAME", "the accelerator: H100, GB200, MI300X, ..."},
    {0, "precision", FR_OPT_STR, AT(precision), "P", "bf16, fp8 or fp4: which peak is meant"},
    {0, "gpus", FR_OPT_INT, AT(gpus), "N", "accelerators of the job"},
    {0, "step-time", FR_OPT_SECONDS, AT(step_time), "TIME", "of one step"},
    {0, "global-batch", FR_OPT_INT, AT(global_batch), "B", "sequences of one step"},
    {0, "seq", FR_OPT_INT, AT(seq), "L", "tokens of a sequence (default: the model's usual)"},
    {0, "attention", FR_OPT_STR, AT(attention), "KIND", "causal or full (default: both)"},
    {0, "peak", FR_OPT_NUM, AT(peak), "TFLOPS", "dense peak of one accelerator"},
    {0, "mtp", FR_OPT_INT, AT(mtp), "N",
     "layers that predict further tokens (default: the model's)"},
    {0, "vocab", FR_OPT_INT, AT(vocab), "V", "vocabulary, padded (default: the model's)"},
    OPT_END,
};
static const struct fr_opt NONE[] = {OPT_END};

/* --- commands --- */

const struct fr_cmd FR_COMMANDS[] = {
    {"demo", NULL, "", 0, 0, DEMO, fr_cmd_demo,
     "train for real on this machine, break three things, show the recovery",
     "Starts a controller and six node agents in a temporary folder, trains a small GPT on 8 ranks "
     "of 4 nodes, slows a\n"
     "node down, stops a rank, kills a rank, and compares what fullrank found with what was done. "
     "Needs no GPU and\n"
     "leaves nothing behind but the report."},
    {"run", NULL, "-- COMMAND...", 1, -1, SHAPE, fr_cmd_run, "run a job under watch",
     "Without --server (or FULLRANK_SERVER) a private controller and agents are started on this "
     "machine and ended\n"
     "with the job. The job's own exit code is passed on."},
    {"supervise", NULL, "-- COMMAND...", 1, -1, SHAPE, fr_cmd_supervise,
     "the same for scripts: own the job's processes, obey the controller", NULL},
    {"status", NULL, "", 0, 0, LIST, fr_cmd_status, "the whole fleet in one screen", NULL},
    {"job", "list", "", 0, 0, LIST, fr_cmd_job_list, "all jobs", NULL},
    {"job", "show", "[JOB]", 0, 1, LIST, fr_cmd_job_show,
     "one job: attempts, groups, ranks, goodput", NULL},
    {"job", "watch", "[JOB]", 0, 1, WATCH, fr_cmd_job_watch, "follow a job until it ends", NULL},
    {"job", "report", "[JOB]", 0, 1, REPORT, fr_cmd_job_report,
     "what happened to a job, with an account of every second", NULL},
    {"node", "list", "", 0, 0, LIST, fr_cmd_node_list, "all nodes", NULL},
    {"node", "show", "NODE", 1, 1, LIST, fr_cmd_node_show, "one node with its history", NULL},
    {"node", "drain", "NODES", 1, -1, ACT, fr_cmd_node_drain, "let no new attempt onto nodes",
     NULL},
    {"node", "resume", "NODES", 1, -1, ACT, fr_cmd_node_resume, "take a drain back", NULL},
    {"incident", "list", "", 0, 0, LIST_JOB, fr_cmd_incident_list, "what was found, newest first",
     NULL},
    {"incident", "show", "ID", 1, 1, LIST, fr_cmd_incident_show,
     "one incident with evidence and decisions", NULL},
    {"incident", "ack", "ID", 1, 1, NONE, fr_cmd_incident_ack, "say that somebody has seen it",
     NULL},
    {"decision", "list", "", 0, 0, LIST_JOB, fr_cmd_decision_list, "what was decided, newest first",
     NULL},
    {"decision", "show", "ID", 1, 1, LIST, fr_cmd_decision_show,
     "one decision: what was weighed, what was done", NULL},
    {"inject", "slow", "", 0, 0, INJECT_SLOW, fr_cmd_inject_slow, "slow the ranks of a node down",
     NULL},
    {"inject", "hang", "", 0, 0, INJECT_HANG, fr_cmd_inject_hang, "stop a rank", NULL},
    {"inject", "kill", "", 0, 0, INJECT_KILL, fr_cmd_inject_kill, "kill a rank", NULL},
    {"ledger", "query", "SQL", 1, 1, LEDGER, fr_cmd_ledger_query, "ask the books by SQL, read-only",
     "Tables: job, attempt, step, span, incident, decision, action, node; their columns: SELECT "
     "sql "
     "SELECT sql FROM sqlite_schema."},
    {"scan", "job-log", "FILE|-", 1, 1, SCAN_JOB_LOG, fr_cmd_scan_job_log,
     "what a job's log says of its failure, the first cause before its followers", NULL},
    {"scan", "kernel-log", "FILE|-", 1, 1, SCAN_KERNEL_LOG, fr_cmd_scan_kernel_log,
     "what each line of a kernel log means: device, severity, action",
     "Reads dmesg in all its forms, syslog, the journal and raw /dev/kmsg. Tables and CSV list "
     "what "
     "matters, -o jsonl has one\n"
     "object for every line."},
    {"scan", "flight-recorder", "DIR", 1, 1, NONE, fr_cmd_scan_flight_recorder,
     "which ranks a hang is due to, from PyTorch's Flight Recorder dumps", NULL},
    {"mfu", NULL, "", 0, 0, MFU, fr_cmd_mfu,
     "model FLOPs utilisation of a step, by both ways to count attention", NULL},
    {"config", NULL, "", 0, 0, CONFIG, fr_cmd_config,
     "settings of the daemons and where they come from", NULL},
    {"version", NULL, "", 0, 0, NONE, fr_cmd_version, "the version", NULL},
    {"help", NULL, "[COMMAND]", 0, 2, NONE, fr_cmd_help, "this text, or a command's", NULL},
    {0},
};

/* --- help --- */

/* The commands of a noun, or all. */
static void print_rows(const char *noun, FILE *to)
{
    for (const struct fr_cmd *c = FR_COMMANDS; c->noun; c++) {
        char name[64];

        if (noun && strcmp(c->noun, noun) != 0)
            continue;
        snprintf(name, sizeof name, "%s%s%s %s", c->noun, c->verb ? " " : "",
                 c->verb ? c->verb : "", c->operands);
        fprintf(to, "  %-26s %s\n", name, c->text);
    }
}

static void print_usage(FILE *to)
{
    fprintf(to, "Usage: fullrank [OPTIONS] COMMAND [OPTIONS] [ARGUMENTS]\n\n"
                "Watches distributed training jobs, takes sick nodes out, accounts for every "
                "second.\n\nCommands:\n");
    print_rows(NULL, to);
    fprintf(to, "\nOptions of all commands:\n");
    fr_opt_help(GLOBAL, to);
    fprintf(to, "\nBegin with: fullrank demo\n");
}

static void print_command(const struct fr_cmd *c, FILE *to)
{
    fprintf(to, "Usage: fullrank %s%s%s [OPTIONS]%s%s\n\n%s\n", c->noun, c->verb ? " " : "",
            c->verb ? c->verb : "", *c->operands ? " " : "", c->operands, c->text);
    if (c->more)
        fprintf(to, "\n%s\n", c->more);
    if (c->opts->word) {
        fprintf(to, "\nOptions:\n");
        fr_opt_help(c->opts, to);
    }
    fprintf(to, "\nOptions of all commands:\n");
    fr_opt_help(GLOBAL, to);
}

static bool is_noun(const char *word)
{
    for (const struct fr_cmd *c = FR_COMMANDS; c->noun; c++)
        if (strcmp(c->noun, word) == 0)
            return true;
    return false;
}

/* What can be done with a noun. */
static void print_noun(const char *noun, FILE *to)
{
    fprintf(to, "Usage: fullrank %s VERB [OPTIONS] [ARGUMENTS]\n\nCommands:\n", noun);
    print_rows(noun, to);
    fprintf(to, "\nMore of each: fullrank %s VERB --help\n", noun);
}

static const struct fr_cmd *find(const char *noun, const char *verb)
{
    for (const struct fr_cmd *c = FR_COMMANDS; c->noun; c++)
        if (strcmp(c->noun, noun) == 0 && (!c->verb || (verb && strcmp(c->verb, verb) == 0)))
            return c;
    return NULL;
}

/* "fullrank: error: no command xyz (did you mean abc?)" */
static int unknown(const char *noun, const char *verb)
{
    const char *words[64];
    const char *near;
    bool known = is_noun(noun);
    size_t n = 0;

    for (const struct fr_cmd *c = FR_COMMANDS; c->noun && n < 63; c++) {
        const char *word = known ? c->verb : c->noun;

        if (known ? strcmp(c->noun, noun) == 0 : n == 0 || strcmp(words[n - 1], c->noun) != 0)
            words[n++] = word;
    }
    words[n] = NULL;
    if (known && !verb) {
        char list[200] = "";

        for (size_t i = 0, at = 0; i < n && at < sizeof list - 20; i++)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "", words[i]);
        fr_complain("fullrank", "%s: say what to do with it (%s)", noun, list);
        return FR_EXIT_USAGE;
    }
    near = fr_opt_nearest(known ? verb : noun, words);
    if (near)
        fr_complain("fullrank", "no command %s%s%.60s (did you mean %s?)", known ? noun : "",
                    known ? " " : "", known ? verb : noun, near);
    else
        fr_complain("fullrank", "no command %s%s%.60s (fullrank help lists all)", known ? noun : "",
                    known ? " " : "", known ? verb : noun);
    return FR_EXIT_USAGE;
}

int fr_cmd_help(struct fr_cli *cli, int n, char **operands)
{
    const struct fr_cmd *c;

    (void)cli;
    if (n == 0) {
        print_usage(stdout);
        return 0;
    }
    c = find(operands[0], n > 1 ? operands[1] : NULL);
    if (!c && n == 1 && is_noun(operands[0])) {
        print_noun(operands[0], stdout);
        return 0;
    }
    if (!c)
        return unknown(operands[0], n > 1 ? operands[1] : NULL);
    print_command(c, stdout);
    return 0;
}

int fr_cmd_version(struct fr_cli *cli, int n, char **operands)
{
    (void)n;
    (void)operands;
    if (cli->format == FR_FORMAT_TABLE)
        printf("fullrank %s\n", FR_VERSION_TEXT);
    else
        printf("{\"schema\": \"fullrank.version/1\", \"version\": \"%s\"}\n", FR_VERSION_TEXT);
    return 0;
}

/* --- settings --- */

int fr_cli_config(const struct fr_cli *cli, struct fr_config *cfg, struct fr_err *err)
{
    static char user[512];
    const char *files[4] = {"/etc/fullrank/fullrank.conf", user, cli->config_file, NULL};
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    snprintf(user, sizeof user, "%s%s/fullrank/config",
             xdg && *xdg ? xdg
             : home      ? home
                         : "",
             xdg && *xdg ? "" : "/.config");
    if (cli->config_file && access(cli->config_file, R_OK) < 0)
        return fr_fail(err, -errno, "%s: %s", cli->config_file, strerror(errno));
    return fr_config_load(FR_CONFIG_ROWS, cfg, files, err);
}

int fr_cmd_config(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_config cfg = {0};

    (void)n;
    (void)operands;
    if (fr_cli_config(cli, &cfg, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    fr_config_print(FR_CONFIG_ROWS, &cfg, stdout);
    return 0;
}

/* Nobody said where the controller is and none is at the usual address: the one private run of this
 * user that lives. */
static int find_private(struct fr_cli *cli, struct fr_err *err)
{
    static struct fr_owner_run run;
    char all[400];
    size_t n = fr_owner_answers(FR_CLI_PORT) ? 0 : fr_owner_find_runs(&run, all, sizeof all);

    if (n > 1)
        return fr_fail(err, -EINVAL,
                       "%zu private runs are under way (%s): say which one (--server)", n, all);
    if (n == 1) {
        cli->server = run.server;
        if (!cli->token_file)
            cli->token_file = run.token_file;
    }
    return 0;
}

/* Option, environment, file, default: the first that is there. */
static int settle(struct fr_cli *cli, bool asks, struct fr_err *err)
{
    static const char *const FORMATS[] = {"table", "json", "jsonl", "csv", NULL};
    const char *server = getenv("FULLRANK_SERVER"), *token = getenv("FULLRANK_TOKEN_FILE");
    const char *no_color = getenv("NO_COLOR");
    struct fr_config cfg = {0};
    size_t f = 0;
    int rc;

    if (!cli->server && server && *server)
        cli->server = server;
    if (!cli->token_file && token && *token)
        cli->token_file = token;
    if (!cli->server || !cli->token_file) {
        rc = fr_cli_config(cli, &cfg, err);
        if (rc < 0)
            return rc;
        if (!cli->server && strcmp(cfg.agent_controller, FR_CLI_SERVER) != 0)
            cli->server = cfg.agent_controller;
        if (!cli->token_file && cfg.agent_token_file[0])
            cli->token_file = cfg.agent_token_file;
    }
    fr_client_tell_details(cli->verbose > 0);
    cli->server_given = cli->server != NULL;
    if (!cli->server && asks && find_private(cli, err) < 0)
        return -EINVAL;
    if (!cli->server)
        cli->server = FR_CLI_SERVER;
    while (cli->output && FORMATS[f] && strcmp(FORMATS[f], cli->output) != 0)
        f++;
    if (!FORMATS[f])
        return fr_fail(err, -EINVAL, "--output %.40s: not a format (table, json, jsonl, csv)",
                       cli->output);
    cli->format = (enum fr_format)f;
    if (!cli->color)
        cli->color = no_color && *no_color ? "never" : "auto";
    if (strcmp(cli->color, "auto") != 0 && strcmp(cli->color, "always") != 0 &&
        strcmp(cli->color, "never") != 0)
        return fr_fail(err, -EINVAL, "--color %.40s: not one of auto, always, never", cli->color);
    return 0;
}

/* --- the program --- */

/* How many of argv[at..] belong to the option at argv[at]; 0: it is no option. */
static int option_words(char *const *argv, int argc, int at)
{
    const char *a = argv[at];

    if (a[0] != '-' || a[1] == '\0' || strcmp(a, "--") == 0)
        return 0;
    if (strchr(a, '='))
        return 1;
    for (const struct fr_opt *o = GLOBAL; o->word; o++)
        if ((a[1] == '-' && strcmp(a + 2, o->word) == 0) || (a[1] == o->letter && a[2] == '\0'))
            return o->kind != FR_OPT_FLAG && o->kind != FR_OPT_COUNT && at + 1 < argc ? 2 : 1;
    return 1;
}

/* The number of words of options from `at` on. */
static int skip_options(char *const *argv, int argc, int at)
{
    int from = at, n;

    while (at < argc && (n = option_words(argv, argc, at)) > 0)
        at += n;
    return at - from;
}

static void defaults(struct fr_cli *cli)
{
    *cli = (struct fr_cli){.limit = 50,
                           .gpus = -1,
                           .global_batch = -1,
                           .seq = -1,
                           .mtp = -1,
                           .vocab = -1,
                           .peak = (double)NAN,
                           .rank = -1,
                           .seed = -1,
                           .repeat = 1,
                           .nodes = 1,
                           .ranks_per_node = 1,
                           .factor = 2,
                           .watch_s = 1,
                           .engine = "local",
                           .mode = "act",
                           .level = NULL};
}

static int parse(struct fr_cli *cli, const struct fr_cmd *c, int argc, char **argv, int *ret_n,
                 struct fr_err *err)
{
    struct fr_opt opts[OPTS_MAX] = {0};
    size_t n = 0;

    for (const struct fr_opt *o = GLOBAL; o->word; o++)
        opts[n++] = *o;
    for (const struct fr_opt *o = c ? c->opts : NONE; o->word && n < OPTS_MAX - 1; o++)
        opts[n++] = *o;
    return fr_opt_parse(opts, cli, argc, argv, ret_n, NULL, err);
}

/* true: the command asks a controller that is there already. */
static bool asks(const struct fr_cmd *c)
{
    static const char *const READ_FILES[] = {"ledger", "mlperf", "scan", "sim"};

    for (size_t i = 0; i < sizeof READ_FILES / sizeof *READ_FILES; i++)
        if (strcmp(c->noun, READ_FILES[i]) == 0)
            return false;
    return c->verb || c->run == fr_cmd_status;
}

int fr_cmd_main(int argc, char **argv)
{
    FR_CLEANUP(fr_freep) char **rest = fr_xcalloc((size_t)argc + 2, sizeof *rest);
    struct fr_err err = FR_ERR_INIT;
    const struct fr_cmd *c = NULL;
    struct fr_cli cli;
    int first, second, n = 0, operands = 0;
    const char *verb;

    fr_log_init("fullrank");
    defaults(&cli);
    /* The command's words may stand behind and between global options. */
    first = 1 + skip_options(argv, argc, 1);
    if (first >= argc) {
        if (parse(&cli, NULL, argc, argv, &operands, &err) < 0)
            return fr_cli_fail(FR_EXIT_USAGE, &err);
        if (cli.version)
            return fr_cmd_version(&cli, 0, NULL);
        print_usage(cli.help ? stdout : stderr);
        return cli.help ? 0 : FR_EXIT_USAGE;
    }
    c = find(argv[first], NULL);
    second = first + 1 + skip_options(argv, argc, first + 1);
    verb = !c && second < argc && strcmp(argv[second], "--") != 0 ? argv[second] : NULL;
    if (!c)
        c = find(argv[first], verb);
    if (!c && !verb && is_noun(argv[first])) {
        for (int i = 0; i < argc; i++)
            if (i != first)
                rest[n++] = argv[i];
        if (parse(&cli, NULL, n, rest, &operands, &err) == 0 && cli.help) {
            print_noun(argv[first], stdout);
            return 0;
        }
    }
    if (!c)
        return unknown(argv[first], verb);
    for (int i = 0; i < argc; i++)
        if (i != first && !(c->verb && i == second))
            rest[n++] = argv[i];
    if (parse(&cli, c, n, rest, &operands, &err) < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    if (cli.help) {
        print_command(c, stdout);
        return 0;
    }
    if (cli.version)
        return fr_cmd_version(&cli, 0, NULL);
    if (operands < c->min || (c->max >= 0 && operands > c->max)) {
        bool few = operands < c->min;

        fr_complain("fullrank", "%s%s%s: %s%s (usage: fullrank %s%s%s%s%s)", c->noun,
                    c->verb ? " " : "", c->verb ? c->verb : "",
                    few ? "give " : "too many arguments", few ? c->operands : "", c->noun,
                    c->verb ? " " : "", c->verb ? c->verb : "", *c->operands ? " " : "",
                    c->operands);
        return FR_EXIT_USAGE;
    }
    if (settle(&cli, asks(c), &err) < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    rest[1 + operands] = NULL;
    return c->run(&cli, operands, rest + 1);
}
