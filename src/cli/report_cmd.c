/* SPDX-License-Identifier: Apache-2.0 */
/* report_cmd.c - `job report` and `job watch` */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/jobref.h"
#include "cli/out.h"
#include "cli/report.h"
#include "cli/view.h"

#define BOOKS_S 0.001 /* law 7 */

int fr_cmd_job_report(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf out = FR_BUF_INIT, html = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    char job[FR_JOBREF_BYTES];
    struct fr_report r;
    int code, rc;

    if (cli->format == FR_FORMAT_CSV) {
        fr_fail(&err, -EINVAL,
                "job report writes table or json (as csv: job list, incident list, decision list)");
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    }
    code = fr_jobref(cli, n ? operands[0] : NULL, job);
    if (code)
        return code;
    rc = fr_client_new(cli->server, cli->token_file, &c, &err);
    if (rc == 0)
        rc = fr_report_load(c, job, &r, &err);
    if (rc < 0)
        return fr_cli_fail((enum fr_exit)fr_client_exit(rc), &err);
    if (cli->format == FR_FORMAT_TABLE)
        fr_report_text(&r, fr_out_color(cli, STDOUT_FILENO), &out);
    else
        fr_report_json(&r, &out);
    fr_out_write(&out);
    if (cli->html) {
        fr_report_html(&r, &html);
        if (fr_fs_write_atomic(cli->html, html.p, html.len, 0644, &err) < 0)
            code = fr_cli_fail(FR_EXIT_FAILED, &err);
    }
    if (!code && cli->check && fr_json_int(r.job, "exit_code", 0) != 0)
        code = FR_EXIT_FAULT;
    if (!code && cli->check &&
        !(fabs(fr_json_num(fr_json_get(r.job, "goodput"), "error_s", NAN)) < BOOKS_S)) {
        fr_complain("fullrank", "job %s: the goodput buckets do not add up to wall time", job);
        code = FR_EXIT_WARNING;
    }
    fr_report_fini(&r);
    return code;
}

static volatile sig_atomic_t watch_quit;

static void on_watch_signal(int sig)
{
    watch_quit = sig;
}

int fr_cmd_job_watch(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    struct sigaction sa = {.sa_handler = on_watch_signal};
    struct fr_err err = FR_ERR_INIT;
    char job[FR_JOBREF_BYTES];
    struct fr_view v;
    int code = fr_jobref(cli, n ? operands[0] : NULL, job), rc;

    if (code)
        return code;
    rc = fr_client_new(cli->server, cli->token_file, &c, &err);
    if (rc < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    fr_view_init(&v, c, STDOUT_FILENO, fr_out_is_terminal(STDOUT_FILENO),
                 fr_out_color(cli, STDOUT_FILENO));
    v.every_s = cli->watch_s;
    snprintf(v.job, sizeof v.job, "%s", job);
    while (!watch_quit) {
        rc = fr_view_fetch(&v, &err);
        if (rc < 0 && !v.data) {
            code = fr_cli_fail((enum fr_exit)fr_client_exit(rc), &err);
            break;
        }
        fr_view_draw(&v);
        if (fr_view_ended(&v))
            break;
        poll(NULL, 0, (int)(cli->watch_s * 1e3));
    }
    fr_view_fini(&v);
    return watch_quit ? 128 + watch_quit : code;
}
