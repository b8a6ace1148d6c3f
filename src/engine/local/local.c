/* SPDX-License-Identifier: Apache-2.0 */
/* local.c - see local.h */
#define _GNU_SOURCE 1 /* posix_spawn_file_actions_addchdir_np */
#include "engine/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/xalloc.h"
#include "engine/local/procs.h"

#define LAUNCHER      "mpirun"
#define SCAN_EVERY_MS 2 /* a dying process may have been forking while we looked: look again */

struct fr_engine {
    char state_dir[256];
};

/* A growing NULL-terminated list of strings that it owns. */
struct words {
    char **v;
    size_t n, cap;
};

static void words_take(struct words *w, char *s)
{
    if (w->n + 1 >= w->cap) {
        w->cap = w->cap ? w->cap * 2 : 64;
        w->v = fr_xreallocarray(w->v, w->cap, sizeof *w->v);
    }
    w->v[w->n++] = s;
    w->v[w->n] = NULL;
}

static void words_add(struct words *w, const char *s)
{
    words_take(w, fr_xstrdup(s));
}

static void words_fini(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->v[i]);
    free(w->v);
}

extern char **environ;

static int local_open(const char *state_dir, struct fr_engine **ret, struct fr_err *err)
{
    struct fr_engine *e = fr_xalloc(sizeof *e);

    (void)err;
    snprintf(e->state_dir, sizeof e->state_dir, "%s", state_dir ? state_dir : "");
    *ret = e;
    return 0;
}

static void local_close(struct fr_engine *e)
{
    free(e);
}

/* The environment of mpirun: ours, without what would be taken for an outer MPI job, and the job's
 * identity. */
static void make_env(const struct fr_launch *l, struct words *env)
{
    static const char *const DROP[] = {
        "FULLRANK_JOB=",       "FULLRANK_ATTEMPT=",   "FULLRANK_EPOCH=",  "FULLRANK_PROBE=",
        "FULLRANK_NODE=",      "FULLRANK_PROBE_DIR=", "OMPI_COMM_WORLD_", "PMIX_",
        "FULLRANK_TOKEN_FILE="};

    for (char **e = environ; *e; e++) {
        bool drop = false;

        for (size_t i = 0; i < sizeof DROP / sizeof DROP[0]; i++)
            drop = drop || strncmp(*e, DROP[i], strlen(DROP[i])) == 0;
        if (!drop)
            words_add(env, *e);
    }
    words_take(env, fr_xasprintf("FULLRANK_JOB=%s", l->job));
    words_take(env, fr_xasprintf("FULLRANK_ATTEMPT=%u", l->attempt));
    words_take(env, fr_xasprintf("FULLRANK_EPOCH=%llu", (unsigned long long)l->epoch));
    words_take(env, fr_xasprintf("FULLRANK_PROBE=%s", l->level ? l->level : "off"));
    if (geteuid() == 0) { /* a container's root, a laboratory: the user knows who he is */
        words_add(env, "OMPI_ALLOW_RUN_AS_ROOT=1");
        words_add(env, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    }
}

/* mpirun OPTIONS -np R -x NODE.. CMD : -np R -x NODE.. CMD */
static void make_argv(const struct fr_launch *l, struct words *argv)
{
    const char *outer = getenv("LD_PRELOAD");

    words_add(argv, LAUNCHER);
    words_add(argv, "--oversubscribe");
    words_add(argv, "--bind-to"); /* the ranks share the cores: the kernel spreads them better than
                                     a fixed map */
    words_add(argv, "none");
    words_add(argv, "--mca");
    words_add(argv, "mpi_yield_when_idle"); /* a waiting rank must leave the core to the one that it
                                               waits for */
    words_add(argv, "1");
    words_add(argv, "--mca");
    words_add(argv, "orte_tmpdir_base");
    words_add(argv, l->attempt_dir);
    words_add(argv, "--mca");
    words_add(argv, "btl_vader_backing_directory");
    words_add(argv, l->attempt_dir);
    words_add(argv, "--mca");
    words_add(argv, "btl"); /* one machine: no listening TCP sockets for data */
    words_add(argv, "self,vader");
    words_add(argv, "--mca");
    words_add(argv, "pml"); /* without this, MPI probes every fabric at start */
    words_add(argv, "ob1");
    for (size_t i = 0; i < l->nplacements; i++) {
        const struct fr_placement *p = &l->placements[i];

        if (i)
            words_add(argv, ":");
        words_add(argv, "-np");
        words_take(argv, fr_xasprintf("%u", p->nranks));
        words_add(argv, "-x");
        words_take(argv, fr_xasprintf("FULLRANK_NODE=%s", p->node));
        if (p->probe_dir[0]) {
            words_add(argv, "-x");
            words_take(argv, fr_xasprintf("FULLRANK_PROBE_DIR=%s", p->probe_dir));
        }
        if (l->probe_lib) {
            words_add(argv, "-x");
            words_take(argv, outer && *outer ? fr_xasprintf("LD_PRELOAD=%s:%s", l->probe_lib, outer)
                                             : fr_xasprintf("LD_PRELOAD=%s", l->probe_lib));
        }
        for (char *const *c = l->command; *c; c++)
            words_add(argv, *c);
    }
}

static int check(const struct fr_launch *l, struct fr_err *err)
{
    if (l->nplacements == 0 || !l->command || !l->command[0])
        return fr_fail(err, -EINVAL, "nothing to launch: no node or no command");
    for (char *const *c = l->command; *c; c++)
        if (strcmp(*c, ":") == 0)
            return fr_fail(err, -EINVAL,
                           "the command holds the word \":\", which " LAUNCHER
                           " takes for its own (wrap the command in a script)");
    if (l->command[0][0] == '-')
        return fr_fail(err, -EINVAL, "%s: a program's name cannot begin with \"-\"", l->command[0]);
    if (l->attempt_dir[0] != '/')
        return fr_fail(err, -EINVAL, "%s: the attempt's folder must be an absolute path",
                       l->attempt_dir);
    return 0;
}

static int local_launch(struct fr_engine *e, const struct fr_launch *l, struct fr_attempt_proc *ret,
                        struct fr_err *err)
{
    struct words argv = {0}, env = {0};
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all;
    pid_t pid = 0;
    int rc;

    (void)e;
    rc = check(l, err);
    if (rc < 0)
        return rc;
    rc = fr_fs_mkdirs(l->attempt_dir, 0700, err);
    if (rc < 0)
        return rc;

    make_argv(l, &argv);
    make_env(l, &env);
    posix_spawn_file_actions_init(&fa);
    posix_spawnattr_init(&at);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setsigdefault(&at, &all);
    posix_spawnattr_setpgroup(&at, 0); /* own group, same session */
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                      POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    if (l->stdout_fd >= 0)
        posix_spawn_file_actions_adddup2(&fa, l->stdout_fd, 1);
    if (l->stderr_fd >= 0)
        posix_spawn_file_actions_adddup2(&fa, l->stderr_fd, 2);
    if (l->work_dir)
        posix_spawn_file_actions_addchdir_np(&fa, l->work_dir);
    rc = posix_spawnp(&pid, LAUNCHER, &fa, &at, argv.v, env.v);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    words_fini(&argv);
    words_fini(&env);
    if (rc == ENOENT)
        return fr_fail(err, -ENOENT,
                       LAUNCHER
                       " was not found, or the folder %s is gone (install Open MPI: openmpi-bin)",
                       l->work_dir ? l->work_dir : ".");
    if (rc)
        return fr_fail(err, -rc, "cannot start " LAUNCHER ": %s", strerror(rc));
    ret->launcher = pid;
    ret->session = getsid(0);
    return 0;
}

/* Kill all that is found, ranks before the launcher, so that it cannot start anything for them;
 * returns how many were found. */
static int kill_round(const struct fr_attempt_proc *p, double wait_s, struct fr_proc **ret)
{
    FR_CLEANUP(fr_freep) struct pollfd *fds = NULL;
    struct fr_proc *v = NULL;
    uint64_t until = fr_mono_ns() + (uint64_t)(wait_s * 1e9);
    int n = fr_procs_of_session(p->session, getpid(), getpid(), &v);

    if (n <= 0) {
        free(v);
        return n;
    }
    fds = fr_xcalloc((size_t)n, sizeof *fds);
    for (int i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = fr_proc_open(&v[i]), .events = POLLIN};
    for (int launcher = 0; launcher < 2; launcher++)
        for (int i = 0; i < n; i++)
            if ((v[i].pid == p->launcher) == launcher && fds[i].fd >= 0)
                fr_proc_signal(fds[i].fd, SIGKILL);
    for (;;) {
        int left = 0, left_ms = (int)(((int64_t)until - (int64_t)fr_mono_ns()) / 1000000);

        for (int i = 0; i < n; i++)
            left += fds[i].fd >= 0;
        if (left == 0 || left_ms <= 0 || poll(fds, (nfds_t)n, left_ms) < 0)
            break;
        for (int i = 0; i < n; i++)
            if (fds[i].fd >= 0 && fds[i].revents) {
                close(fds[i].fd);
                fds[i].fd = -1;
            }
    }
    for (int i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
    *ret = v;
    return n;
}

static int local_stop(struct fr_engine *e, const struct fr_attempt_proc *p, double limit_s,
                      struct fr_err *err)
{
    uint64_t until = fr_mono_ns() + (uint64_t)(limit_s * 1e9);

    (void)e;
    if (p->session <= 1 || p->session != getpid())
        return fr_fail(err, -EPERM, "will not end session %d: it is not led by this process",
                       (int)p->session);
    for (;;) {
        FR_CLEANUP(fr_freep) struct fr_proc *v = NULL;
        double left_s = (double)((int64_t)until - (int64_t)fr_mono_ns()) / 1e9;
        int n = kill_round(p, left_s > 0 ? left_s : 0, &v);

        if (n <= 0)
            return n;
        if (left_s <= 0) {
            char who[200] = "";
            size_t at = 0;

            for (int i = 0; i < n && i < 8 && at < sizeof who - 24; i++)
                at += (size_t)snprintf(who + at, sizeof who - at, " %d(%c)", (int)v[i].pid,
                                       v[i].state);
            return fr_fail(err, -ETIMEDOUT,
                           "%d processes of session %d did not end within %.1f s:%s (D: they wait "
                           "for a disk or device)",
                           n, (int)p->session, limit_s, who);
        }
        poll(NULL, 0, SCAN_EVERY_MS);
    }
}

static void local_sweep(struct fr_engine *e, const struct fr_launch *l)
{
    (void)e;
    fr_fs_remove_tree(l->attempt_dir,
                      NULL); /* what cannot be removed is under the job's own folder: harmless */
}

const struct fr_engine_ops fr_engine_local = {
    .name = "local",
    .open = local_open,
    .close = local_close,
    .launch = local_launch,
    .stop = local_stop,
    .sweep = local_sweep,
    /* drain, resume, mark_down: the controller's own state is all there is */
};
