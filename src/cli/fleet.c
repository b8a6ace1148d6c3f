/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.c - see fleet.h */
#include "cli/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/owner.h"

#define ARGS_MAX      24
#define READY_S       15.0
#define END_S         5.0
#define BACKOFF_MIN_S 0.1
#define BACKOFF_MAX_S 5.0
#define SHM_PREFIX    "fullrank-fleet-"
#define SETTLED_S     10.0 /* a daemon that lived so long starts again at once */

struct daemon {
    char name[32];
    char *argv[ARGS_MAX + 1];
    int argc;
    pid_t pid; /* 0: down */
    uint64_t started_ns, next_ns;
    double backoff_s;
};

struct fr_fleet {
    char dir[200], shm[200], server[64], token_file[256], token[256];
    struct daemon *daemons; /* [0]: the controller */
    size_t n;
    bool verbose;
    const char *const *env;
};

__attribute__((format(printf, 3, 4))) static void add(struct daemon *d, const char *word,
                                                      const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (d->argc + 2 > ARGS_MAX)
        return;
    d->argv[d->argc++] = fr_xstrdup(word);
    d->argv[d->argc++] = fr_xstrdup(text);
}

/* In the child: nothing of the parent but its environment. */
static void become(const struct fr_fleet *f, const struct daemon *d, pid_t parent)
{
    char log[300];
    sigset_t none;
    int fd;

    setsid(); /* Ctrl-C is for the parent, which ends us in order */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    snprintf(log, sizeof log, "%s/log/%s.log", f->dir, d->name);
    fd = open("/dev/null", O_RDWR);
    dup2(fd, 0);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    closefrom(3);
    for (const char *const *e = f->env; e && *e; e++)
        putenv((char *)*e);
    setenv("FULLRANK_LOG", f->verbose ? "info" : "notice", 0);
    execv(d->argv[0], d->argv);
    dprintf(2, "cannot start %s: %s\n", d->argv[0], strerror(errno));
    _exit(127);
}

static void start(const struct fr_fleet *f, struct daemon *d)
{
    pid_t parent = getpid(), pid = fork();

    d->started_ns = fr_mono_ns();
    if (pid == 0)
        become(f, d, parent);
    d->pid = pid > 0 ? pid : 0;
}

static double since_s(uint64_t t_ns)
{
    return (double)(fr_mono_ns() - t_ns) / 1e9;
}

void fr_fleet_tick(struct fr_fleet *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct daemon *d = &f->daemons[i];
        int status;

        if (d->pid && waitpid(d->pid, &status, WNOHANG) == d->pid) {
            d->pid = 0;
            d->backoff_s = since_s(d->started_ns) > SETTLED_S || d->backoff_s <= 0
                               ? BACKOFF_MIN_S
                               : d->backoff_s * 2;
            if (d->backoff_s > BACKOFF_MAX_S)
                d->backoff_s = BACKOFF_MAX_S;
            d->next_ns = fr_mono_ns() + (uint64_t)(d->backoff_s * 1e9);
        }
        if (!d->pid && fr_mono_ns() >= d->next_ns)
            start(f, d);
    }
}

/* The last lines of a daemon's log into err, for the person who must find out. */
static int blame(const struct fr_fleet *f, const struct daemon *d, const char *what,
                 struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    char path[300];
    const char *s, *line;

    snprintf(path, sizeof path, "%s/log/%s.log", f->dir, d->name);
    fr_fs_read(path, 1u << 20, &b, NULL);
    while (b.len && b.p[b.len - 1] == '\n')
        b.p[--b.len] = '\0';
    s = fr_buf_str(&b);
    line = strrchr(s, '\n');
    return fr_fail(err, -EIO, "%s %s: %.250s", d->name, what,
                   *s ? (line ? line + 1 : s) : "it said nothing");
}

static void end_all(struct fr_fleet *f)
{
    uint64_t from = fr_mono_ns();
    bool killed = false;

    for (size_t i = f->n; i-- > 0;) /* agents first: their last report finds the controller */
        if (f->daemons[i].pid)
            kill(f->daemons[i].pid, SIGTERM);
    for (;;) {
        size_t left = 0;

        for (size_t i = 0; i < f->n; i++) {
            struct daemon *d = &f->daemons[i];
            int status;

            if (d->pid && waitpid(d->pid, &status, WNOHANG) != 0)
                d->pid = 0;
            left += d->pid != 0;
        }
        if (!left)
            return;
        if (!killed && since_s(from) > END_S) {
            killed = true;
            for (size_t i = 0; i < f->n; i++)
                if (f->daemons[i].pid)
                    kill(f->daemons[i].pid, SIGKILL);
        }
        poll(NULL, 0, 10);
    }
}

void fr_fleet_stop(struct fr_fleet *f)
{
    if (!f)
        return;
    end_all(f);
    fr_fs_remove_tree(f->shm, NULL);
    for (size_t i = 0; i < f->n; i++)
        for (int k = 0; k < f->daemons[i].argc; k++)
            free(f->daemons[i].argv[k]);
    free(f->daemons);
    free(f);
}

/* Where segments lie: in memory, so that no disk is written for every record. */
static int make_shm(struct fr_fleet *f, struct fr_err *err)
{
    snprintf(f->shm, sizeof f->shm, "/dev/shm/" SHM_PREFIX "XXXXXX");
    if (access("/dev/shm", W_OK | X_OK) < 0)
        snprintf(f->shm, sizeof f->shm, "%.150s/probe-XXXXXX", f->dir);
    else
        fr_owner_sweep("/dev/shm", SHM_PREFIX, 0); /* of fleets that were killed */
    if (!mkdtemp(f->shm))
        return fr_fail(err, -errno, "%s: %s", f->shm, strerror(errno));
    return fr_owner_add(f->shm, getpid(), err);
}

static int init_controller(struct fr_fleet *f, const struct fr_fleet_options *opt,
                           struct fr_err *err)
{
    struct daemon *d = &f->daemons[0];
    char path[PATH_MAX], web[PATH_MAX + 32], *slash;
    static const char *const WEB[] = {"/../../web", "/../share/fullrank/web"};

    if (fr_cli_beside("fullrank-controller", path, sizeof path, err) < 0)
        return -ENOENT;
    snprintf(d->name, sizeof d->name, "controller");
    d->argv[d->argc++] = fr_xstrdup(path);
    add(d, "--listen", "127.0.0.1:0");
    add(d, "--port-file", "%s/port", f->dir);
    add(d, "--state", "%s/controller", f->dir);
    add(d, "--token-file", "%s", f->token_file);
    add(d, "--mode", "%s", opt->mode);
    add(d, "--engine", "local");
    slash = strrchr(path, '/');
    *slash = '\0';
    for (size_t i = 0; i < sizeof WEB / sizeof WEB[0]; i++) {
        snprintf(web, sizeof web, "%s%s", path, WEB[i]);
        if (access(web, R_OK | X_OK) == 0) {
            add(d, "--web", "%s", web);
            break;
        }
    }
    return 0;
}

static int init_agent(struct fr_fleet *f, size_t i, const char *machine, struct fr_err *err)
{
    struct daemon *d = &f->daemons[i + 1];
    char path[PATH_MAX], folder[256];

    if (fr_cli_beside("fullrank-agent", path, sizeof path, err) < 0)
        return -ENOENT;
    snprintf(d->name, sizeof d->name, "n%zu", i);
    snprintf(folder, sizeof folder, "%s/%s", f->shm, d->name);
    if (fr_fs_mkdirs(folder, 0700, err) < 0)
        return -EIO;
    d->argv[d->argc++] = fr_xstrdup(path);
    add(d, "--node", "%s", d->name);
    add(d, "--server", "%s", f->server);
    add(d, "--token-file", "%s", f->token_file);
    add(d, "--probe-dir", "%s", folder);
    add(d, "--spool", "%s/spool/%s", f->dir, d->name);
    add(d, "--machine-id", "%s", machine);
    add(d, "--engine", "local");
    return 0;
}

/* Wait for the port file, then fix the port: a controller that is started again must be found where
 * it was. */
static int await_controller(struct fr_fleet *f, struct fr_err *err)
{
    struct daemon *d = &f->daemons[0];
    uint64_t from = fr_mono_ns();
    char path[300];

    snprintf(path, sizeof path, "%s/port", f->dir);
    for (;;) {
        FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
        const char *s;
        int port, status;

        if (fr_fs_read(path, 256, &b, NULL) == 0) {
            s = strrchr(fr_buf_str(&b), ':');
            port = atoi(s ? s + 1 : fr_buf_str(&b));
            if (port > 0 && port < 65536) {
                snprintf(f->server, sizeof f->server, "http://127.0.0.1:%d", port);
                free(d->argv[2]); /* behind --listen */
                d->argv[2] = fr_xasprintf("127.0.0.1:%d", port);
                return 0;
            }
        }
        if (waitpid(d->pid, &status, WNOHANG) == d->pid) {
            d->pid = 0;
            return blame(f, d, "did not start", err);
        }
        if (since_s(from) > READY_S)
            return blame(f, d, "did not get ready", err);
        poll(NULL, 0, 10);
    }
}

static int await_nodes(struct fr_fleet *f, uint32_t nodes, struct fr_err *err)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    uint64_t from = fr_mono_ns();
    int rc = fr_client_new(f->server, f->token_file, &c, err);

    if (rc < 0)
        return rc;
    for (;;) {
        FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
        uint32_t known = 0;

        if (fr_client_get(c, "/api/v1/nodes", &json, NULL) == 0) {
            const struct fr_json *items = fr_json_get(json, "items");

            for (size_t i = 0; i < fr_json_len(items); i++)
                known +=
                    strcmp(fr_json_str(fr_json_at(items, i), "state", "unknown"), "unknown") != 0;
        }
        if (known >= nodes)
            return 0;
        fr_fleet_tick(f);
        if (since_s(from) > READY_S)
            return blame(f, &f->daemons[1], "and its like did not all report", err);
        poll(NULL, 0, 50);
    }
}

int fr_fleet_start(const struct fr_fleet_options *opt, struct fr_fleet **ret, struct fr_err *err)
{
    struct fr_fleet *f = fr_xalloc(sizeof *f);
    FR_CLEANUP(fr_buf_fini) struct fr_buf machine = FR_BUF_INIT;
    char log[256];
    int rc;

    snprintf(f->dir, sizeof f->dir, "%s", opt->dir);
    snprintf(f->token_file, sizeof f->token_file, "%s/token", f->dir);
    snprintf(log, sizeof log, "%s/log", f->dir);
    f->verbose = opt->verbose;
    f->env = opt->env;
    f->n = 1; /* the controller alone, so far */
    f->daemons = fr_xcalloc((size_t)opt->nodes + 1, sizeof *f->daemons);
    fr_fs_read("/proc/sys/kernel/random/boot_id", 64, &machine, NULL);
    while (machine.len && machine.p[machine.len - 1] == '\n')
        machine.p[--machine.len] = '\0';

    rc = fr_fs_mkdirs(log, 0700, err);
    if (rc == 0)
        rc = fr_fs_token(f->token_file, 1, f->token, sizeof f->token, err);
    if (rc == 0)
        rc = make_shm(f, err);
    if (rc == 0)
        rc = init_controller(f, opt, err);
    if (rc == 0) {
        start(f, &f->daemons[0]);
        rc = await_controller(f, err);
    }
    for (size_t i = 0; rc == 0 && i < opt->nodes; i++) {
        rc = init_agent(f, i, machine.len ? machine.p : "this", err);
        if (rc == 0) {
            f->n++;
            start(f, &f->daemons[i + 1]);
        }
    }
    if (rc == 0)
        rc = await_nodes(f, opt->nodes, err);
    if (rc < 0) {
        fr_fleet_stop(f);
        return rc;
    }
    *ret = f;
    return 0;
}

int fr_fleet_share(const struct fr_fleet *f, pid_t pid, struct fr_err *err)
{
    int rc = fr_owner_add(f->dir, pid, err);

    return rc < 0 ? rc : fr_owner_add(f->shm, pid, err);
}

const char *fr_fleet_server(const struct fr_fleet *f)
{
    return f->server;
}

const char *fr_fleet_token_file(const struct fr_fleet *f)
{
    return f->token_file;
}

const char *fr_fleet_token(const struct fr_fleet *f)
{
    return f->token;
}

pid_t fr_fleet_pid(const struct fr_fleet *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->daemons[i].name, name) == 0)
            return f->daemons[i].pid;
    return 0;
}
