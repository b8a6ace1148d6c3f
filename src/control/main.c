/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - fullrank-controller: options, checks, start */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/xalloc.h"
#include "control/events.h"
#include "control/loop.h"
#include "control/restore.h"

#define NAME "fullrank-controller"

struct args {
    const char *listen, *state, *token_file, *mode, *engine, *web, *config, *port_file, *tls_cert,
        *tls_key;
    bool help, version;
};

static const struct fr_opt OPTS[] = {
    {'l', "listen", FR_OPT_STR, offsetof(struct args, listen), "HOST:PORT",
     "address of API and page (127.0.0.1:7880; port 0: any free one)"},
    {'s', "state", FR_OPT_STR, offsetof(struct args, state), "DIR",
     "ledger, token and evidence bundles (/var/lib/fullrank)"},
    {0, "token-file", FR_OPT_STR, offsetof(struct args, token_file), "FILE",
     "token that changes need, mode 0600, made when absent (DIR/token)"},
    {0, "port-file", FR_OPT_STR, offsetof(struct args, port_file), "FILE",
     "write the port there once it listens"},
    {'m', "mode", FR_OPT_STR, offsetof(struct args, mode), "MODE",
     "observe, advise or act (act on the local engine, else observe)"},
    {'e', "engine", FR_OPT_STR, offsetof(struct args, engine), "ENGINE",
     "engine that owns the nodes (local)"},
    {0, "web", FR_OPT_STR, offsetof(struct args, web), "DIR", "files of the page"},
    {'c', "config", FR_OPT_STR, offsetof(struct args, config), "FILE", "settings"},
    {0, "tls-cert", FR_OPT_STR, offsetof(struct args, tls_cert), "FILE",
     "certificate, PEM; needed for other addresses than loopback"},
    {0, "tls-key", FR_OPT_STR, offsetof(struct args, tls_key), "FILE", "its key, PEM"},
    {'h', "help", FR_OPT_FLAG, offsetof(struct args, help), NULL, "this text"},
    {0, "version", FR_OPT_FLAG, offsetof(struct args, version), NULL, "the version"},
    {0}};

struct paths {
    char ledger[PATH_MAX], token[PATH_MAX], listen[128], web[PATH_MAX];
};

static int load_config(const struct args *a, struct fr_config *cfg, struct fr_err *err)
{
    const char *files[] = {"/etc/fullrank/controller.conf", a->config, NULL};

    if (a->config && access(a->config, R_OK))
        return fr_fail(err, -errno, "settings %s: %s", a->config, strerror(errno));
    return fr_config_load(FR_CONFIG_ROWS, cfg, files, err);
}

static int choose_mode(const struct args *a, const struct fr_config *cfg, const char *engine,
                       enum fr_mode *ret, struct fr_err *err)
{
    const char *text = a->mode ? a->mode : cfg->controller_mode;

    if (strcmp(engine, "local") != 0)
        return fr_fail(err, -EINVAL, "engine %s: this controller drives the local engine only",
                       engine);
    if (!text[0])
        text = "act";
    if (fr_mode_parse(text, ret))
        return fr_fail(err, -EINVAL, "mode must be observe, advise or act, not %s", text);
    return 0;
}

/* Where the page is: installed beside the program, or in the source tree that it was built from. */
static void find_web(const struct args *a, char *path, size_t n)
{
    char exe[PATH_MAX];
    ssize_t k = readlink("/proc/self/exe", exe, sizeof exe - 1);
    char *slash;

    if (a->web) {
        snprintf(path, n, "%s", a->web);
        return;
    }
    exe[k > 0 ? k : 0] = '\0';
    slash = strrchr(exe, '/');
    if (slash)
        *slash = '\0';
    snprintf(path, n, "%.3800s/../share/fullrank/web", exe);
    if (access(path, R_OK))
        snprintf(path, n, "%s", FR_WEB_DIR);
}

static void fill_paths(const struct args *a, const struct fr_config *cfg, const char *state,
                       struct paths *p)
{
    snprintf(p->ledger, sizeof p->ledger, "%s/ledger.db", state);
    if (a->token_file || cfg->controller_token_file[0])
        snprintf(p->token, sizeof p->token, "%s",
                 a->token_file ? a->token_file : cfg->controller_token_file);
    else
        snprintf(p->token, sizeof p->token, "%s/token", state);
    if (a->listen)
        snprintf(p->listen, sizeof p->listen, "%s", a->listen);
    else
        snprintf(p->listen, sizeof p->listen, "%.100s:%lld", cfg->controller_listen,
                 (long long)cfg->controller_port);
    find_web(a, p->web, sizeof p->web);
}

static int say_ready(uint16_t port, void *arg, struct fr_err *err)
{
    const struct args *a = arg;
    char text[16];
    int n = snprintf(text, sizeof text, "%u\n", port);

    fr_log(FR_LOG_NOTICE, "listen", "port=%u", port);
    return a->port_file ? fr_fs_write_atomic(a->port_file, text, (size_t)n, 0644, err) : 0;
}

static void raise_limits(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

static int run(struct args *a, struct fr_err *err)
{
    struct fr_server_options opt = {.tls_cert = a->tls_cert, .tls_key = a->tls_key};
    struct fr_ledger *lg = NULL;
    struct fr_events *ev;
    struct fr_ctl *c;
    struct fr_config cfg = {0};
    enum fr_mode mode = FR_MODE_OBSERVE;
    static struct paths p;
    const char *state;
    char token[128];
    int rc = load_config(a, &cfg, err);

    if (rc)
        return rc;
    rc = choose_mode(a, &cfg, a->engine ? a->engine : cfg.controller_engine, &mode, err);
    if (rc)
        return rc;
    state = a->state ? a->state : cfg.controller_state_dir;
    if (strlen(state) > 400)
        return fr_fail(err, -ENAMETOOLONG, "state folder %.40s...: the path is too long", state);
    fill_paths(a, &cfg, state, &p);
    rc = fr_fs_mkdirs(state, 0700, err);
    if (!rc)
        rc = fr_fs_token(p.token, 1, token, sizeof token, err);
    if (!rc)
        rc = fr_ledger_open(p.ledger, &lg, err);
    if (rc)
        return rc;
    c = fr_ctl_new(&cfg, mode, state, lg);
    rc = fr_restore(c, p.ledger, err);
    ev = fr_events_new((uint64_t)(fr_ctl_now_unix(c) / 1000000)); /* ms: fits a script's number */
    if (!rc) {
        c->events = ev;
        opt.listen = p.listen;
        opt.token = token;
        opt.token_given = a->token_file || cfg.controller_token_file[0];
        opt.web_dir = p.web;
        opt.report_max_bytes = cfg.controller_report_max_bytes < (16u << 20)
                                   ? (size_t)cfg.controller_report_max_bytes
                                   : 16u << 20;
        rc = fr_loop_run(c, &opt, ev, say_ready, a, err);
    }
    c->events = NULL;
    fr_ctl_free(c);
    fr_events_free(ev);
    fr_ledger_close(lg);
    return rc;
}

int main(int argc, char **argv)
{
    struct args a = {0};
    struct fr_err err = FR_ERR_INIT;
    int operands = 0, dashdash = -1;

    setlocale(LC_CTYPE, "C.UTF-8");
    fr_log_init(NAME);
    if (fr_opt_parse(OPTS, &a, argc, argv, &operands, &dashdash, &err) || operands) {
        if (!err.text[0])
            fr_fail(&err, 0, "%s takes no operands", NAME);
        fr_complain(NAME, "%s", err.text);
        return 2;
    }
    if (a.help) {
        printf("usage: %s [OPTIONS]\n\nThe controller of fullrank: takes reports of agents, "
               "judges, decides, keeps the ledger,\n"
               "serves API, page and metrics.\n\n",
               NAME);
        fr_opt_help(OPTS, stdout);
        return 0;
    }
    if (a.version) {
        printf("%s %s\n", NAME, FR_VERSION);
        return 0;
    }
    raise_limits();
    if (run(&a, &err)) {
        fr_complain(NAME, "%s", err.text);
        return 1;
    }
    return 0;
}
