/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - see child.h */
#define _GNU_SOURCE 1 /* POSIX_SPAWN_SETSID */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "cli/supervise.h"
#include "engine/local/procs.h"

extern char **environ;

static int open_log(const char *dir, const char *name, int *ret_read, struct fr_err *err)
{
    char path[400];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    *ret_read = open(path, O_RDONLY | O_CLOEXEC);
    if (*ret_read < 0) {
        close(fd);
        return fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    }
    return fd;
}

int fr_child_start(const struct fr_child_options *opt, struct fr_child *ret, struct fr_err *err)
{
    char number[4][16];
    size_t n = 0, ncommand = 0;
    FR_CLEANUP(fr_freep) char **argv = NULL;
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    sigset_t none, all;
    int out, errfd, rc;
    pid_t pid;

    rc = fr_fs_mkdirs(opt->dir, 0700, err);
    if (rc < 0)
        return rc;
    *ret = (struct fr_child){.fd = {-1, -1}};
    out = open_log(opt->dir, "stdout", &ret->fd[0], err);
    if (out < 0)
        return out;
    errfd = open_log(opt->dir, "stderr", &ret->fd[1], err);
    if (errfd < 0) {
        close(out);
        fr_child_close(ret);
        return errfd;
    }
    while (opt->command[ncommand])
        ncommand++;
    argv = fr_xcalloc(ncommand + 32, sizeof *argv);
    snprintf(number[0], 16, "%u", opt->nodes);
    snprintf(number[1], 16, "%u", opt->ranks_per_node);
    snprintf(number[2], 16, "%u", opt->spares);
    snprintf(number[3], 16, "%u", opt->max_attempts);
    {
        const char *const words[] = {"fullrank",
                                     "supervise",
                                     "--server",
                                     opt->server,
                                     "--token-file",
                                     opt->token_file,
                                     "--state-dir",
                                     opt->dir,
                                     "--nodes",
                                     number[0],
                                     "--ranks-per-node",
                                     number[1],
                                     "--spares",
                                     number[2],
                                     "--max-attempts",
                                     number[3],
                                     "--engine",
                                     opt->engine,
                                     "--mode",
                                     opt->mode,
                                     opt->name ? "--name" : NULL,
                                     opt->name,
                                     opt->level ? "--probe" : NULL,
                                     opt->level,
                                     opt->own_restarts ? "--own-restarts" : NULL,
                                     opt->no_own_restarts ? "--no-own-restarts" : NULL,
                                     opt->quiet ? "--quiet" : NULL};

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
            if (words[i] && strcmp(words[i], "--token-file") == 0 && !words[i + 1])
                i++; /* none: nothing to say */
            else if (words[i])
                argv[n++] = (char *)words[i];
        }
    }
    argv[n++] = (char *)"--";
    for (size_t i = 0; i < ncommand; i++)
        argv[n++] = opt->command[i];

    posix_spawn_file_actions_init(&fa);
    posix_spawnattr_init(&at);
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&at, &none);
    posix_spawnattr_setsigdefault(&at, &all);
    posix_spawnattr_setflags(&at,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, out, 1);
    posix_spawn_file_actions_adddup2(&fa, errfd, 2);
    rc = posix_spawn(&pid, fr_cli_self(), &fa, &at, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    posix_spawnattr_destroy(&at);
    close(out);
    close(errfd);
    if (rc) {
        fr_child_close(ret);
        return fr_fail(err, -rc, "cannot start the supervisor: %s", strerror(rc));
    }
    ret->pid = pid;
    snprintf(ret->dir, sizeof ret->dir, "%s", opt->dir);
    return 0;
}

void fr_child_follow(struct fr_child *c, struct fr_buf *into)
{
    char buf[8192];

    for (int i = 0; i < 2; i++) {
        ssize_t n;

        while (c->fd[i] >= 0 && (n = read(c->fd[i], buf, sizeof buf)) > 0) {
            if (into)
                fr_buf_add(into, buf, (size_t)n);
            else if (write(i + 1, buf, (size_t)n) < 0)
                break; /* our reader is gone; the job is not */
        }
    }
}

bool fr_child_alive(struct fr_child *c)
{
    siginfo_t si = {0};
    int status;

    if (!c->pid || waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || !si.si_pid)
        return c->pid != 0;
    if (si.si_code != CLD_EXITED) /* not yet reaped: its session is nobody else's */
        fr_supervise_clean(c->pid, si.si_status, c->dir);
    if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
        c->pid = 0;
        c->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return c->pid != 0;
}

int fr_child_cancel(struct fr_child *c, int sig, double limit_s)
{
    uint64_t until = fr_mono_ns() + (uint64_t)(limit_s * 1e9);

    if (fr_child_alive(c))
        kill(c->pid, sig);
    while (fr_child_alive(c) && fr_mono_ns() < until)
        poll(NULL, 0, 10);
    if (fr_child_alive(c)) {
        FR_CLEANUP(fr_freep) struct fr_proc *v = NULL;
        int n = fr_procs_of_session(c->pid, 0, 0, &v);

        for (int i = 0; i < n; i++) {
            int fd = fr_proc_open(&v[i]);

            if (fd >= 0) {
                fr_proc_signal(fd, SIGKILL);
                close(fd);
            }
        }
        while (fr_child_alive(c))
            poll(NULL, 0, 10);
    }
    return c->code;
}

void fr_child_close(struct fr_child *c)
{
    for (int i = 0; i < 2; i++)
        if (c->fd[i] >= 0) {
            close(c->fd[i]);
            c->fd[i] = -1;
        }
}
