/* SPDX-License-Identifier: Apache-2.0 */
/* procs.c - see procs.h */
#include "engine/local/procs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/xalloc.h"

int fr_proc_parse_stat(const char *text, size_t n, struct fr_proc *ret)
{
    char copy[1024];
    const char *end;
    int pid, ppid, session;
    char state;
    uint64_t starttime;

    if (n == 0 || n >= sizeof copy)
        return -EINVAL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    /* The name is whatever the process wants; only the last ')' ends it. */
    end = strrchr(copy, ')');
    if (!end || sscanf(copy, "%d (", &pid) != 1)
        return -EINVAL;
    if (sscanf(end + 1,
               " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
               &state, &ppid, &session, &starttime) != 4)
        return -EINVAL;
    if (pid <= 0)
        return -EINVAL;
    ret->pid = pid;
    ret->ppid = ppid;
    ret->session = session;
    ret->state = state;
    ret->starttime = starttime;
    return 0;
}

int fr_proc_read(pid_t pid, struct fr_proc *ret)
{
    char path[64], text[1024];
    struct fr_proc p = {0};
    struct stat st;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -ESRCH;
    if (fstat(fd, &st) == 0)
        p.uid = st.st_uid;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0 || fr_proc_parse_stat(text, (size_t)n, &p) < 0)
        return -ESRCH;
    *ret = p;
    return 0;
}

static int by_pid(const void *a, const void *b)
{
    const struct fr_proc *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Is p a descendant of root? A pid seen twice on the way up would be a torn snapshot: the depth is
 * bounded. */
static bool is_below(const struct fr_proc *all, size_t n, const struct fr_proc *p, pid_t root)
{
    for (int depth = 0; p && depth < 64; depth++) {
        struct fr_proc key = {.pid = p->ppid};

        if (p->ppid == root)
            return true;
        p = bsearch(&key, all, n, sizeof *all, by_pid);
    }
    return false;
}

int fr_procs_of_session(pid_t session, pid_t root, pid_t except, struct fr_proc **ret)
{
    FR_CLEANUP(fr_freep) struct fr_proc *all = NULL;
    struct fr_proc *found;
    size_t n = 0, cap = 0, nfound = 0;
    struct dirent *d;
    DIR *dir = opendir("/proc");

    if (!dir)
        return -errno;
    while ((d = readdir(dir))) {
        struct fr_proc p;

        if (!isdigit((unsigned char)d->d_name[0]) || fr_proc_read((pid_t)atoi(d->d_name), &p) < 0)
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : 256;
            all = fr_xreallocarray(all, cap, sizeof *all);
        }
        all[n++] = p;
    }
    closedir(dir);
    if (n)
        qsort(all, n, sizeof *all, by_pid);
    found = fr_xcalloc(n + 1, sizeof *found);
    for (size_t i = 0; i < n; i++) {
        const struct fr_proc *p = &all[i];

        if (p->pid == except || p->state == 'Z' || p->state == 'X')
            continue;
        if (p->session == session || (root > 0 && is_below(all, n, p, root)))
            found[nfound++] = *p;
    }
    *ret = found;
    return (int)nfound;
}

int fr_proc_open(const struct fr_proc *p)
{
    struct fr_proc now;
    int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);

    if (fd < 0)
        return -errno;
    if (fr_proc_read(p->pid, &now) < 0 || now.starttime != p->starttime) {
        close(fd);
        return -ESRCH;
    }
    return fd;
}

int fr_proc_signal(int pidfd, int sig)
{
    return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}
