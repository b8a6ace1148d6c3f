/* SPDX-License-Identifier: Apache-2.0 */
/* inject_cmd.c - `fullrank inject slow|hang|kill` */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "cli/cmd.h"
#include "cli/inject.h"
#include "cli/jobref.h"
#include "cli/out.h"

static volatile sig_atomic_t quit;

static void on_signal(int sig)
{
    quit = sig;
}

static int begin(struct fr_cli *cli, bool node_allowed, struct fr_victims *ret)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    struct sigaction sa = {.sa_handler = on_signal};
    struct fr_err err = FR_ERR_INIT;
    char job[FR_JOBREF_BYTES];
    int code, rc;

    if ((cli->rank < 0) == (cli->node == NULL)) {
        fr_fail(&err, -EINVAL,
                node_allowed ? "say who: --rank R or --node N" : "say who: --rank R");
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    }
    code = fr_jobref(cli, cli->job, job);
    if (code)
        return code;
    rc = fr_client_new(cli->server, cli->token_file, &c, &err);
    if (rc == 0)
        rc = fr_inject_find(c, job, (int32_t)cli->rank, cli->node, ret, &err);
    if (rc == -EPERM || rc == -ESRCH)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    if (rc < 0)
        return fr_cli_fail((enum fr_exit)fr_client_exit(rc), &err);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    return 0;
}

static void tell(const struct fr_cli *cli, const char *kind, const struct fr_victims *vs,
                 int64_t at)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;

    if (cli->format != FR_FORMAT_TABLE) {
        struct fr_jsonw w;

        fr_jsonw_init(&w, &b);
        fr_jsonw_obj(&w, NULL);
        fr_jsonw_str(&w, "schema", "fullrank.inject/1");
        fr_jsonw_str(&w, "kind", kind);
        fr_jsonw_time(&w, "at", at);
        fr_jsonw_arr(&w, "victims");
        for (size_t i = 0; i < vs->n; i++) {
            fr_jsonw_obj(&w, NULL);
            fr_jsonw_int(&w, "rank", vs->v[i].rank);
            fr_jsonw_str(&w, "node", vs->v[i].node);
            fr_jsonw_int(&w, "pid", vs->v[i].proc.pid);
            fr_jsonw_end_obj(&w);
        }
        fr_jsonw_end_arr(&w);
        fr_jsonw_end_obj(&w);
        fr_buf_putc(&b, '\n');
    } else if (!cli->quiet) {
        for (size_t i = 0; i < vs->n; i++)
            fr_buf_printf(&b, "%s: rank %d, node %s, pid %d\n", kind, (int)vs->v[i].rank,
                          vs->v[i].node, (int)vs->v[i].proc.pid);
    }
    fr_out_write(&b);
}

int fr_cmd_inject_kill(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_victims vs = {0};
    int64_t at;
    int code = begin(cli, false, &vs);

    (void)n;
    (void)operands;
    if (code)
        return code;
    if (fr_inject_signal(&vs, SIGKILL, &at, &err) < 0)
        code = fr_cli_fail(FR_EXIT_FAILED, &err);
    else
        tell(cli, "kill", &vs, at);
    fr_victims_fini(&vs);
    return code;
}

int fr_cmd_inject_hang(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_victims vs = {0};
    int64_t at;
    int code = begin(cli, false, &vs);

    (void)n;
    (void)operands;
    if (code)
        return code;
    if (fr_inject_signal(&vs, SIGSTOP, &at, &err) < 0) {
        code = fr_cli_fail(FR_EXIT_FAILED, &err);
    } else {
        tell(cli, "hang", &vs, at);
        if (cli->for_s > 0)
            fr_inject_release_after(&vs, cli->for_s, &quit);
    }
    fr_victims_fini(&vs);
    return quit ? 128 + quit : code;
}

int fr_cmd_inject_slow(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_victims vs = {0};
    int code;

    (void)n;
    (void)operands;
    if (!(cli->factor > 1 && cli->factor <= 100)) {
        fr_fail(&err, -EINVAL, "--factor %g: takes more than 1, up to 100", cli->factor);
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    }
    code = begin(cli, true, &vs);
    if (code)
        return code;
    tell(cli, "slow", &vs, fr_unix_ns());
    fr_inject_slow(&vs, cli->factor, cli->for_s, &quit);
    fr_victims_fini(&vs);
    return quit ? 128 + quit : 0;
}
