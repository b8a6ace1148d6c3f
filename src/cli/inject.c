/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - see inject.h */
#include "cli/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/xalloc.h"

#define ENVIRON_MAX 131072

/* Does the environment of the process name this job? */
static bool belongs_to(pid_t pid, const char *job)
{
    FR_CLEANUP(fr_freep) char *env = fr_xalloc(ENVIRON_MAX + 1);
    char path[64], want[128];
    ssize_t n;
    size_t len = 0;
    int fd, want_n;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (len < ENVIRON_MAX && (n = read(fd, env + len, ENVIRON_MAX - len)) > 0)
        len += (size_t)n;
    close(fd);
    want_n = snprintf(want, sizeof want, "FULLRANK_JOB=%s", job) + 1; /* with its NUL */
    for (size_t at = 0; at + (size_t)want_n <= len; at += strnlen(env + at, len - at) + 1)
        if (memcmp(env + at, want, (size_t)want_n) == 0)
            return true;
    return false;
}

static int take(const char *job, const struct fr_json *rank, struct fr_victim *ret,
                struct fr_err *err)
{
    struct fr_victim v = {.pidfd = -1};
    int64_t pid = fr_json_int(rank, "pid", 0);

    v.rank = (int32_t)fr_json_int(rank, "rank", -1);
    snprintf(v.node, sizeof v.node, "%s", fr_json_str(rank, "node", ""));
    if (pid <= 1 || pid > FR_PROCS_MAX || fr_proc_read((pid_t)pid, &v.proc) < 0)
        return fr_fail(err, -ESRCH, "rank %d has no process on this machine (yet)", (int)v.rank);
    if (geteuid() != 0 && v.proc.uid != getuid())
        return fr_fail(err, -EPERM, "rank %d (pid %lld) is another user's process", (int)v.rank,
                       (long long)pid);
    v.pidfd = fr_proc_open(&v.proc);
    if (v.pidfd < 0)
        return fr_fail(err, -ESRCH, "rank %d (pid %lld) has just ended", (int)v.rank,
                       (long long)pid);
    if (v.proc.session == getsid(0) || !belongs_to((pid_t)pid, job)) {
        close(v.pidfd);
        return fr_fail(err, -EPERM, "pid %lld is not a process of job %s", (long long)pid, job);
    }
    *ret = v;
    return 0;
}

int fr_inject_find(struct fr_client *c, const char *job, int32_t rank, const char *node,
                   struct fr_victims *ret, struct fr_err *err)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;
    struct fr_victims vs = {0};
    const struct fr_json *items;
    int rc = fr_client_get(c, fr_client_path(&path, "/api/v1/jobs/%s/ranks", job), &json, err);

    if (rc < 0)
        return rc;
    items = fr_json_get(json, "items");
    vs.v = fr_xcalloc(fr_json_len(items) + 1, sizeof *vs.v);
    for (size_t i = 0; i < fr_json_len(items); i++) {
        const struct fr_json *r = fr_json_at(items, i);

        if (node ? strcmp(fr_json_str(r, "node", ""), node) != 0
                 : fr_json_int(r, "rank", -1) != rank)
            continue;
        rc = take(job, r, &vs.v[vs.n], err);
        if (rc == 0 && vs.n && vs.v[vs.n].proc.session != vs.v[0].proc.session) {
            close(vs.v[vs.n].pidfd);
            rc = fr_fail(err, -EPERM, "the ranks of node %s are not in one session",
                         node ? node : "?");
        }
        if (rc < 0) {
            fr_victims_fini(&vs);
            return rc;
        }
        vs.n++;
    }
    if (vs.n == 0) {
        fr_victims_fini(&vs);
        if (node)
            return fr_fail(err, -ENOENT, "job %s has no rank on node %s", job, node);
        return fr_fail(err, -ENOENT, "job %s has no rank %d", job, (int)rank);
    }
    *ret = vs;
    return 0;
}

void fr_victims_fini(struct fr_victims *vs)
{
    for (size_t i = 0; i < vs->n; i++)
        close(vs->v[i].pidfd);
    free(vs->v);
    *vs = (struct fr_victims){0};
}

int fr_inject_signal(const struct fr_victims *vs, int sig, int64_t *ret_unix_ns, struct fr_err *err)
{
    int64_t at = fr_unix_ns();

    for (size_t i = 0; i < vs->n; i++) {
        int rc = fr_proc_signal(vs->v[i].pidfd, sig);

        if (rc < 0)
            return fr_fail(err, rc, "rank %d (pid %d): %s", (int)vs->v[i].rank,
                           (int)vs->v[i].proc.pid, strerror(-rc));
    }
    if (ret_unix_ns)
        *ret_unix_ns = at;
    return 0;
}

/* Signal all that live; false when none does. */
static bool signal_all(const struct fr_victims *vs, int sig)
{
    bool any = false;

    for (size_t i = 0; i < vs->n; i++)
        any = fr_proc_signal(vs->v[i].pidfd, sig) == 0 || any;
    return any;
}

/* Sleep until the absolute time, less when a signal sets *quit. */
static void sleep_until(uint64_t t_ns, const volatile sig_atomic_t *quit)
{
    struct timespec ts = {.tv_sec = (time_t)(t_ns / FR_NS_PER_S),
                          .tv_nsec = (long)(t_ns % FR_NS_PER_S)};

    while (!*quit && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

void fr_inject_slow(const struct fr_victims *vs, double factor, double for_s,
                    const volatile sig_atomic_t *quit)
{
    uint64_t t = fr_mono_ns(), end = t + (uint64_t)(for_s * 1e9);
    uint64_t run_ns = (uint64_t)(FR_INJECT_TURN_S * 1e9),
             stop_ns = (uint64_t)(FR_INJECT_TURN_S * (factor - 1) * 1e9);
    bool alive = true;

    setpriority(
        PRIO_PROCESS, 0,
        -10); /* turns on time even on a full machine; without the right to, as well as it goes */
    while (alive && !*quit && (for_s <= 0 || fr_mono_ns() < end)) {
        alive = signal_all(vs, SIGSTOP);
        t += stop_ns;
        sleep_until(t, quit);
        signal_all(vs, SIGCONT);
        t += run_ns;
        if (t < fr_mono_ns()) /* fell behind: no burst of signals to catch up */
            t = fr_mono_ns() + run_ns;
        sleep_until(t, quit);
    }
    signal_all(vs, SIGCONT);
}

void fr_inject_release_after(const struct fr_victims *vs, double for_s,
                             const volatile sig_atomic_t *quit)
{
    sleep_until(fr_mono_ns() + (uint64_t)(for_s * 1e9), quit);
    signal_all(vs, SIGCONT);
}
