/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - see owner.h */
#define _GNU_SOURCE 1 /* SOCK_CLOEXEC, O_NOFOLLOW */
#include "cli/owner.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "engine/local/procs.h"

#define OLD_S                                                                                      \
    (7 * 24 * 3600) /* then a folder of which we cannot say whether it is in use, is not */

/* Where a pid means what it says: this boot of this machine, this namespace of pids. A home may be
 * on a file server, /dev/shm shared with containers. */
static const char *here(void)
{
    static char text[128];
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    char ns[48] = "?";

    if (text[0])
        return text;
    fr_fs_read("/proc/sys/kernel/random/boot_id", 64, &b, NULL);
    if (readlink("/proc/self/ns/pid", ns, sizeof ns - 1) < 0)
        snprintf(ns, sizeof ns, "?");
    snprintf(text, sizeof text, "%.*s/%s", (int)strcspn(fr_buf_str(&b), "\n"), fr_buf_str(&b), ns);
    return text;
}

int fr_owner_add(const char *dir, pid_t pid, struct fr_err *err)
{
    struct fr_proc p;
    char path[400], line[224];
    int fd, n, rc = fr_proc_read(pid, &p);

    if (rc < 0)
        return fr_fail(err, rc, "process %d: %s", (int)pid, strerror(-rc));
    snprintf(path, sizeof path, "%s/owner", dir);
    n = snprintf(line, sizeof line, "%d %" PRIu64 " %s\n", (int)pid, p.starttime, here());
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        rc = fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* 1: an owner lives, 0: all are dead, -ENOENT: the folder names none, or one of elsewhere. */
static int lives(const char *dir)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    char path[400];
    const char *s;
    int rc = 0;

    snprintf(path, sizeof path, "%s/owner", dir);
    if (fr_fs_read(path, 4096, &b, NULL) < 0)
        return -ENOENT;
    s = fr_buf_str(&b);
    if (!strchr(s, '\n'))
        return -ENOENT;
    for (; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        struct fr_proc p;
        uint64_t starttime;
        char where[128];
        int pid;

        if (sscanf(s, "%d %" SCNu64 " %127s", &pid, &starttime, where) != 3 ||
            strcmp(where, here()) != 0)
            rc = -ENOENT;
        else if (fr_proc_read(pid, &p) == 0 && p.starttime == starttime && p.state != 'Z')
            return 1;
    }
    return rc;
}

struct left {
    char path[300];
    time_t at;
};

static int newest_first(const void *a, const void *b)
{
    const struct left *x = a, *y = b;

    return (x->at < y->at) - (x->at > y->at);
}

/* The folders PREFIX* of home that belong to this user; free() *ret. */
static size_t list(const char *home, const char *prefix, struct left **ret)
{
    DIR *d = opendir(home);
    size_t n = 0, cap = 0;
    struct dirent *e;

    *ret = NULL;
    while (d && (e = readdir(d))) {
        struct left l;
        struct stat st;

        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
            snprintf(l.path, sizeof l.path, "%s/%s", home, e->d_name) >= (int)sizeof l.path ||
            lstat(l.path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid())
            continue;
        l.at = st.st_mtime;
        if (n == cap) {
            cap = cap ? cap * 2 : 16;
            *ret = fr_xreallocarray(*ret, cap, sizeof **ret);
        }
        (*ret)[n++] = l;
    }
    if (d)
        closedir(d);
    return n;
}

void fr_owner_sweep(const char *home, const char *prefix, size_t keep)
{
    FR_CLEANUP(fr_freep) struct left *all = NULL;
    size_t n = list(home, prefix, &all);

    if (n)
        qsort(all, n, sizeof *all, newest_first);
    for (size_t i = 0; i < n; i++) {
        int rc = lives(all[i].path);

        if (rc == 1 || (rc < 0 && time(NULL) - all[i].at < OLD_S))
            continue;
        if (keep)
            keep--;
        else
            fr_fs_remove_tree(all[i].path, NULL);
    }
}

bool fr_owner_answers(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool answers = fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof a) == 0;

    if (fd >= 0)
        close(fd);
    return answers;
}

size_t fr_owner_find_runs(struct fr_owner_run *ret, char *text, size_t n)
{
    FR_CLEANUP(fr_freep) struct left *all = NULL;
    size_t count = 0, nall, at = 0;
    char home[200];

    *text = '\0';
    if (fr_cli_state_home(home, sizeof home, NULL) < 0)
        return 0;
    nall = list(home, "run-", &all);
    if (nall)
        qsort(all, nall, sizeof *all, newest_first);
    for (size_t i = 0; i < nall; i++) {
        FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
        char path[320];
        const char *s;
        int port;

        snprintf(path, sizeof path, "%s/port", all[i].path);
        if (lives(all[i].path) != 1 || fr_fs_read(path, 256, &b, NULL) < 0)
            continue;
        s = strrchr(fr_buf_str(&b), ':');
        port = atoi(s ? s + 1 : fr_buf_str(&b));
        if (port < 1 || port > 65535 || !fr_owner_answers(port))
            continue;
        if (at + 40 < n)
            at += (size_t)snprintf(text + at, n - at, "%shttp://127.0.0.1:%d", count ? ", " : "",
                                   port);
        if (count++ == 0) {
            snprintf(ret->server, sizeof ret->server, "http://127.0.0.1:%d", port);
            snprintf(ret->token_file, sizeof ret->token_file, "%.280s/token", all[i].path);
        }
    }
    return count;
}
