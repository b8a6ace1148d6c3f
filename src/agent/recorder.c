/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.c - see recorder.h */
#define _GNU_SOURCE
#include "agent/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/environ.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/units.h"

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* --- where --- */

/* prefix + middle + rank + suffix; one that does not fit is no name. */
static void set_path(char *to, const char *prefix, const char *middle, int32_t rank,
                     const char *suffix)
{
    int n = snprintf(to, FR_RECORDER_PATH_BYTES, "%s%s%d%s", prefix, middle, rank, suffix);

    if (n < 0 || n >= FR_RECORDER_PATH_BYTES)
        to[0] = '\0';
}

static const char *first_of(const struct fr_buf *env, const char *a, const char *b)
{
    const char *v = fr_environ_get(env, a);

    if (!v || !*v)
        v = fr_environ_get(env, b);
    return v && *v ? v : NULL;
}

static void add_file(struct fr_recorder *r, const char *prefix, const char *middle)
{
    set_path(r->file[r->nfiles], prefix, middle, r->rank, "");
    r->nfiles += r->file[r->nfiles][0] != '\0';
}

static void name_files(struct fr_recorder *r, const struct fr_buf *env)
{
    const char *pipe =
        first_of(env, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE");
    const char *file = first_of(env, "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
    const char *cache = fr_environ_get(env, "XDG_CACHE_HOME"), *home = fr_environ_get(env, "HOME");

    if (pipe)
        set_path(r->pipe, pipe, "", r->rank, ".pipe");
    if (file) {
        add_file(r, file, "");
        return;
    }
    if (cache && *cache)
        add_file(r, cache, "/torch/comm_lib_trace_rank_");
    else
        add_file(r, home && *home ? home : "/tmp", "/.cache/torch/comm_lib_trace_rank_");
    add_file(r, "/tmp/nccl_trace_rank_", ""); /* until torch 2.7 */
}

/* When the process was started, by the wall clock; some 10 ms off, so a little earlier. */
static int64_t started_at(uint64_t starttime)
{
    struct timespec up;
    int64_t ticks = (int64_t)sysconf(_SC_CLK_TCK);

    clock_gettime(CLOCK_BOOTTIME, &up);
    return fr_unix_ns() - (up.tv_sec * FR_NS_PER_S + up.tv_nsec) +
           (int64_t)starttime * (FR_NS_PER_S / (ticks > 0 ? ticks : 100)) - 1 * FR_NS_PER_S;
}

int fr_recorder_init(struct fr_recorder *r, uint32_t pid, uint32_t uid, uint64_t starttime,
                     int32_t job_rank)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf env = FR_BUF_INIT;
    const char *rank;
    char path[64];
    uint64_t n;
    bool relative;
    int rc = fr_environ_read(pid, &env);

    if (rc < 0)
        return rc;
    memset(r, 0, sizeof *r);
    r->uid = uid;
    r->started_unix_ns = started_at(starttime);
    rank = fr_environ_get(&env, "RANK");
    r->rank = rank && fr_parse_uint(rank, 0, INT32_MAX, &n) == 0 ? (int32_t)n : job_rank;
    name_files(r, &env);
    relative = r->nfiles ? r->file[0][0] != '/' : r->pipe[0] && r->pipe[0] != '/';
    snprintf(path, sizeof path, "/proc/%u/%s", pid, relative ? "cwd" : "root");
    r->dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return r->dir_fd < 0 ? -errno : 0;
}

int fr_recorder_init_like(struct fr_recorder *r, const struct fr_recorder *of, int32_t rank)
{
    char number[16];
    size_t n = (size_t)snprintf(number, sizeof number, "%d", of->rank), len;

    *r = *of;
    r->rank = rank;
    r->pipe[0] = '\0';
    r->triggered = false;
    for (int i = 0; i < r->nfiles; i++) {
        len = strlen(r->file[i]);
        if (len < n || strcmp(r->file[i] + len - n, number) != 0 ||
            len - n + 12 >= FR_RECORDER_PATH_BYTES)
            r->file[i][0] = '\0';
        else
            snprintf(r->file[i] + len - n, 12, "%d", rank);
    }
    r->dir_fd = fcntl(of->dir_fd, F_DUPFD_CLOEXEC, 0);
    return r->dir_fd < 0 ? -errno : 0;
}

void fr_recorder_fini(struct fr_recorder *r)
{
    close_fd(&r->dir_fd);
    r->dir_fd = -1;
}

/* --- opening what a user has named --- */

/* Below dir_fd whatever the path says; not through a link at its end; only the user's own. */
static int open_own(const struct fr_recorder *r, const char *path, int flags, mode_t kind,
                    struct stat *st)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    FR_CLEANUP(close_fd) int fd = -1;
    int keep;

    if (!path[0])
        return -ENOENT;
    fd = (int)syscall(SYS_openat2, r->dir_fd, path, &how, sizeof how);
    if (fd < 0)
        return -errno; /* a kernel before 5.6 has no such call: then there are no dumps */
    if (fstat(fd, st) != 0)
        return -errno;
    if ((st->st_mode & S_IFMT) != kind || st->st_uid != r->uid)
        return -EPERM;
    keep = fd;
    fd = -1;
    return keep;
}

static void look(const struct fr_recorder *r, const char *path, struct fr_recorder_look *ret)
{
    FR_CLEANUP(close_fd) int fd = -1;
    struct stat st;

    memset(ret, 0, sizeof *ret);
    fd = open_own(r, path, O_RDONLY, S_IFREG, &st);
    if (fd < 0)
        return;
    *ret =
        (struct fr_recorder_look){.there = true,
                                  .inode = st.st_ino,
                                  .bytes = (uint64_t)st.st_size,
                                  .mtime_ns = st.st_mtim.tv_sec * FR_NS_PER_S + st.st_mtim.tv_nsec};
}

static bool is_same(const struct fr_recorder_look *a, const struct fr_recorder_look *b)
{
    return a->there == b->there && a->inode == b->inode && a->bytes == b->bytes &&
           a->mtime_ns == b->mtime_ns;
}

int fr_recorder_trigger(struct fr_recorder *r)
{
    FR_CLEANUP(close_fd) int fd = -1;
    struct stat st;

    for (int i = 0; i < r->nfiles; i++)
        look(r, r->file[i], &r->before[i]);
    memcpy(r->last, r->before, sizeof r->last);
    fd = open_own(r, r->pipe, O_WRONLY, S_IFIFO, &st); /* ENXIO: nobody reads it */
    if (fd < 0)
        return fd;
    if (write(fd, "1", 1) != 1)
        return -errno;
    r->triggered = true;
    return 0;
}

/* Nothing says that a dump is whole; one that has not grown for so long is taken for it. */
#define WHOLE_NS 300000000u

int fr_recorder_ready(struct fr_recorder *r)
{
    int ready = 0;

    for (int i = 0; i < r->nfiles; i++) {
        struct fr_recorder_look now;

        look(r, r->file[i], &now);
        now.since_ns = is_same(&now, &r->last[i]) ? r->last[i].since_ns : fr_mono_ns();
        if (now.there && now.bytes && !is_same(&now, &r->before[i]) &&
            fr_mono_ns() - now.since_ns >= WHOLE_NS)
            ready = 1;
        r->last[i] = now;
    }
    return ready;
}

static int64_t read_file(int fd, const struct stat *st, size_t max, struct fr_buf *out)
{
    size_t left = (uint64_t)st->st_size < max ? (size_t)st->st_size : max;

    while (left) {
        ssize_t k = read(fd, fr_buf_room(out, left), left);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        if (k == 0)
            break;
        out->len += (size_t)k;
        left -= (size_t)k;
    }
    return st->st_size;
}

int64_t fr_recorder_read(struct fr_recorder *r, size_t max, struct fr_buf *out,
                         const char **ret_file)
{
    FR_CLEANUP(close_fd) int best = -1;
    int64_t newest = INT64_MIN, rc = -ENOENT;
    struct stat st = {0};

    if (max > FR_RECORDER_FILE_BYTES)
        max = FR_RECORDER_FILE_BYTES;
    *ret_file = r->nfiles ? r->file[0] : "";
    for (int i = 0; i < r->nfiles; i++) {
        struct stat got;
        int fd = open_own(r, r->file[i], O_RDONLY, S_IFREG, &got);
        int64_t mtime = fd < 0 ? 0 : got.st_mtim.tv_sec * FR_NS_PER_S + got.st_mtim.tv_nsec;

        if (fd < 0) {
            if (fd != -ENOENT && rc == -ENOENT)
                rc = fd;
            continue;
        }
        if (mtime < r->started_unix_ns) {
            rc = -ESTALE;
        } else if (mtime > newest) {
            close_fd(&best);
            best = fd;
            fd = -1;
            newest = mtime;
            st = got;
            *ret_file = r->file[i];
        }
        close_fd(&fd);
    }
    return best < 0 ? rc : read_file(best, &st, max, out);
}
