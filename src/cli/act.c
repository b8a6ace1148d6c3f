/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - commands that change the cluster: say what will be done, ask where it matters, do it */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/out.h"

static const char *actor(void)
{
    const struct passwd *pw = getpwuid(getuid());

    return pw ? pw->pw_name : "unknown";
}

static bool agreed(const struct fr_cli *cli, size_t n)
{
    char line[16];

    if (cli->yes || n <= 1)
        return true;
    if (!isatty(STDIN_FILENO)) {
        fr_complain("fullrank", "%zu nodes are concerned and nobody can be asked (say --yes)", n);
        return false;
    }
    fprintf(stderr, "Go on? [y/N] ");
    return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
}

static int post(const struct fr_cli *cli, struct fr_client *c, const char *path)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf body = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    struct fr_jsonw w;
    int rc;

    fr_jsonw_init(&w, &body);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "reason", cli->reason ? cli->reason : "");
    fr_jsonw_str(&w, "actor", actor());
    fr_jsonw_end_obj(&w);
    rc = fr_client_post(c, path, fr_buf_str(&body), &json, &err);
    if (rc < 0)
        return fr_cli_fail((enum fr_exit)fr_client_exit(rc), &err);
    if (cli->format == FR_FORMAT_JSON || cli->format == FR_FORMAT_JSONL) {
        printf("%s\n", fr_buf_str(fr_client_text(c)));
    } else if (!cli->quiet && fr_json_str(json, "node", NULL) && !fr_json_get(json, "kind")) {
        FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;

        fr_table_safe(&b, fr_json_str(json, "node", ""));
        printf("%s: %s\n", fr_buf_str(&b), fr_json_str(json, "state", "?"));
    }
    return 0;
}

static int act_on_nodes(struct fr_cli *cli, int n, char **operands, const char *verb,
                        const char *fmt)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT, list = FR_BUF_INIT;
    FR_CLEANUP(fr_freep) char **nodes = NULL;
    struct fr_err err = FR_ERR_INIT;
    int count, worst = 0;

    for (int i = 0; i < n; i++)
        fr_buf_printf(&list, "%s%s", i ? "," : "", operands[i]);
    count = fr_hostlist_expand(fr_buf_str(&list), &nodes, &err);
    if (count < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    if (!cli->quiet && (count > 1 || cli->dry_run))
        fprintf(stderr, "%s %d node%s: %s\n", verb, count, count == 1 ? "" : "s",
                fr_buf_str(&list));
    if (cli->dry_run)
        return 0;
    if (!agreed(cli, (size_t)count))
        return FR_EXIT_FAILED;
    if (fr_client_new(cli->server, cli->token_file, &c, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    for (int i = 0; i < count; i++) {
        int code = post(cli, c, fr_client_path(&path, fmt, nodes[i]));

        if (code == FR_EXIT_SERVER)
            return code;
        if (code)
            worst = code;
    }
    return worst;
}

int fr_cmd_node_drain(struct fr_cli *cli, int n, char **operands)
{
    return act_on_nodes(cli, n, operands, "drain", "/api/v1/nodes/%s/drain");
}

int fr_cmd_node_resume(struct fr_cli *cli, int n, char **operands)
{
    return act_on_nodes(cli, n, operands, "resume", "/api/v1/nodes/%s/resume");
}

int fr_cmd_incident_ack(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;

    (void)n;
    if (fr_client_new(cli->server, cli->token_file, &c, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    return post(cli, c, fr_client_path(&path, "/api/v1/incidents/%s/ack", operands[0]));
}
