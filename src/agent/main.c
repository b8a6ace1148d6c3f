/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - fullrank-agent: options and settings, then the loop */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/opt.h"
#include "model/config.h"

#define SYSTEM_CONFIG  "/etc/fullrank/fullrank.conf"
#define TIMEOUT_MOST_S 1.5 /* an end by SIGTERM takes less than 2 s, whatever the network does */

struct args {
    bool help, version;
    const char *node, *server, *token_file, *probe_dir, *spool, *rack, *machine_id, *engine,
        *config;
    double interval_s;
    int64_t ranks_max;
};

static const struct fr_opt OPTS[] = {
    {'h', "help", FR_OPT_FLAG, offsetof(struct args, help), NULL, "show this help"},
    {'V', "version", FR_OPT_FLAG, offsetof(struct args, version), NULL, "show the version"},
    {'n', "node", FR_OPT_STR, offsetof(struct args, node), "NAME",
     "name of this node (agent.node; default: the host's)"},
    {'s', "server", FR_OPT_STR, offsetof(struct args, server), "URL",
     "the controller (agent.controller)"},
    {0, "token-file", FR_OPT_STR, offsetof(struct args, token_file), "FILE",
     "token for the controller, mode 0600 (agent.token_file)"},
    {0, "probe-dir", FR_OPT_STR, offsetof(struct args, probe_dir), "DIR",
     "where ranks put their segments (agent.probe_dir)"},
    {0, "spool", FR_OPT_STR, offsetof(struct args, spool), "DIR",
     "where reports wait while the controller is away (agent.state_dir)"},
    {0, "rack", FR_OPT_STR, offsetof(struct args, rack), "NAME",
     "rack or placement block (agent.rack)"},
    {0, "interval", FR_OPT_SECONDS, offsetof(struct args, interval_s), "TIME",
     "between two reports (agent.report_interval)"},
    {0, "machine-id", FR_OPT_STR, offsetof(struct args, machine_id), "ID",
     "alike for nodes of one machine (default: /etc/machine-id)"},
    {0, "engine", FR_OPT_STR, offsetof(struct args, engine), "NAME",
     "local, slurm or k8s (default local)"},
    {0, "ranks-max", FR_OPT_INT, offsetof(struct args, ranks_max), "N",
     "most ranks of this node, 0: no limit (agent.ranks_max)"},
    {0, "config", FR_OPT_STR, offsetof(struct args, config), "FILE",
     "settings (default " SYSTEM_CONFIG ")"},
    {0},
};

static int complain(const struct fr_err *err, int code)
{
    fr_complain("fullrank-agent", "%s", err->text);
    return code;
}

static int check_name(const char *what, const char *name, struct fr_err *err)
{
    size_t n = strlen(name);

    if (n == 0 || n >= FR_NAME_BYTES)
        return fr_fail(err, -EINVAL, "%s \"%.80s\": 1 to %d characters are possible", what, name,
                       FR_NAME_BYTES - 1);
    if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != n)
        return fr_fail(err, -EINVAL,
                       "%s \"%s\": only letters, digits, '.', '_' and '-' are possible", what,
                       name);
    return 0;
}

static int load(const struct args *args, struct fr_config *cfg, struct fr_err *err)
{
    const char *files[] = {args->config ? args->config : SYSTEM_CONFIG, NULL};

    if (args->config && access(args->config, R_OK) != 0)
        return fr_fail(err, -errno, "%s: cannot read the settings: %s", args->config,
                       strerror(errno));
    return fr_config_load(FR_CONFIG_ROWS, cfg, files, err);
}

static const char *or_else(const char *a, const char *b)
{
    return a && *a ? a : b;
}

static void machine_id(char *text, size_t n)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;

    if (fr_fs_read("/etc/machine-id", 128, &b, NULL) != 0 && gethostname(text, n) == 0)
        return;
    snprintf(text, n, "%.40s", fr_buf_str(&b));
    text[strcspn(text, "\n")] = '\0';
}

/* Options first, then settings, then what the machine says. */
static int choose(const struct args *args, const struct fr_config *cfg, struct fr_agent_options *o,
                  struct fr_err *err)
{
    static char host[FR_NAME_BYTES], machine[64], token[512];
    const char *token_file = or_else(args->token_file, cfg->agent_token_file);
    int rc;

    if (gethostname(host, sizeof host - 1) != 0)
        snprintf(host, sizeof host, "localhost");
    machine_id(machine, sizeof machine);
    o->node = or_else(args->node, or_else(cfg->agent_node, host));
    o->rack = or_else(args->rack, cfg->agent_rack);
    o->machine_id = or_else(args->machine_id, machine);
    o->engine = or_else(args->engine, "local");
    o->url = or_else(args->server, cfg->agent_controller);
    o->probe_dir = or_else(args->probe_dir, cfg->agent_probe_dir);
    o->spool_dir = or_else(args->spool, cfg->agent_state_dir);
    o->spool_bytes = cfg->agent_spool_bytes;
    o->interval_s = args->interval_s > 0 ? args->interval_s : cfg->agent_report_interval_s;
    o->drain_s = cfg->agent_drain_interval_s;
    o->timeout_s = cfg->agent_request_timeout_s < TIMEOUT_MOST_S ? cfg->agent_request_timeout_s
                                                                 : TIMEOUT_MOST_S;
    o->ranks_max = (uint32_t)(args->ranks_max > 0 ? args->ranks_max : cfg->agent_ranks_max);
    rc = check_name("node", o->node, err);
    if (rc == 0 && o->rack && *o->rack)
        rc = check_name("rack", o->rack, err);
    if (rc == 0 && !(o->interval_s >= 0.02 && o->interval_s <= 60))
        rc = fr_fail(err, -EINVAL, "interval of %g s: 20ms to 60s are possible", o->interval_s);
    if (rc == 0 && !(o->drain_s >= 0.005 && o->drain_s <= 1))
        rc = fr_fail(err, -EINVAL, "drain interval of %g s: 5ms to 1s are possible", o->drain_s);
    if (rc == 0 && o->spool_bytes < 65536)
        rc = fr_fail(err, -EINVAL, "spool of %llu bytes: at least 64KiB",
                     (unsigned long long)o->spool_bytes);
    if (rc == 0 && token_file && *token_file) {
        rc = fr_fs_token(token_file, 0, token, sizeof token, err);
        o->token = token;
    }
    return rc < 0 ? rc : 0;
}

int main(int argc, char **argv)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_agent_options o = {0};
    static struct fr_config cfg;
    struct args args = {0};
    int operands = 0, dashdash = -1;

    umask(077);
    fr_log_init("fullrank-agent");
    if (fr_opt_parse(OPTS, &args, argc, argv, &operands, &dashdash, &err) < 0)
        return complain(&err, 2);
    if (operands > 0) {
        fr_fail(&err, -EINVAL, "%s: it takes options only (see --help)", argv[1]);
        return complain(&err, 2);
    }
    if (args.help) {
        printf("Usage: fullrank-agent [OPTION]...\n"
               "Watches the ranks of this node and reports to the controller. Runs in the "
               "foreground.\n\n");
        fr_opt_help(OPTS, stdout);
        return 0;
    }
    if (args.version) {
        printf("fullrank-agent %s\n", FR_VERSION);
        return 0;
    }
    if (load(&args, &cfg, &err) < 0 || choose(&args, &cfg, &o, &err) < 0)
        return complain(&err, 1);
    if (fr_agent_run(&o, &err) < 0)
        return complain(&err, 1);
    return 0;
}
