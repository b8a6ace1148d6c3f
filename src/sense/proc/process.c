/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h */
#include "sense/proc/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/xalloc.h"

struct fr_sense {
    int stat_fd, schedstat_fd, wchan_fd;
    int state_fd; /* the first thread's own stat: the same state, without a sum over all threads */
    uint64_t tick_ns, page_bytes;
};

/* struct pidfd_info of include/uapi/linux/pidfd.h, first published size. */
struct pidfd_info_v0 {
    uint64_t mask;
    uint64_t cgroupid;
    uint32_t pid, tgid, ppid;
    uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_v0) == 64, "PIDFD_INFO_SIZE_VER0");

#define PIDFD_ASK_EXIT  (1ull << 3)
#define PIDFD_ASK_IOCTL _IOWR(0xff, 11, struct pidfd_info_v0)

int fr_proc_stat_parse(const char *text, struct fr_proc_stat *ret)
{
    struct fr_proc_stat st;
    const char *p = strrchr(text, ')');
    uint64_t field[53] = {0};
    int n = 3;

    if (!p || p[1] != ' ' || !p[2])
        return -EINVAL;
    st.state = p[2];
    p += 3;
    for (n = 4; n <= 52; n++) {
        char *end;

        if (*p != ' ')
            break;
        /* Negative ones wrap and are cast back below. */
        field[n] = p[1] == '-' ? (uint64_t)strtoll(p + 1, &end, 10) : strtoull(p + 1, &end, 10);
        if (end == p + 1)
            return -EINVAL;
        p = end;
    }
    if (n <= 24) /* all kernels have these */
        return -EINVAL;
    st.session = (int32_t)field[6];
    st.major_faults = field[12];
    st.utime_ticks = field[14];
    st.stime_ticks = field[15];
    st.starttime = field[22];
    st.rss_pages = (int64_t)field[24];
    st.exit_code = (int32_t)field[52];
    *ret = st;
    return 0;
}

static int open_of(const char *root, uint32_t pid, const char *file)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/%s", pid, file);
    return fr_sense_open_at(root, path);
}

static int read_of(const char *root, uint32_t pid, const char *file, char *text, size_t n)
{
    int fd = open_of(root, pid, file), rc;

    if (fd < 0)
        return fd == -ENOENT ? -ESRCH : fd;
    rc = fr_sense_reread(fd, text, n);
    close(fd);
    return rc;
}

int fr_proc_stat_read(const char *root, uint32_t pid, struct fr_proc_stat *ret)
{
    char text[1024];
    int rc = read_of(root, pid, "stat", text, sizeof text);

    return rc < 0 ? rc : fr_proc_stat_parse(text, ret);
}

int fr_proc_uid(const char *root, uint32_t pid, uint32_t *ret_uid)
{
    char text[4096];
    uint64_t uid;
    int rc = read_of(root, pid, "status", text, sizeof text);

    if (rc < 0)
        return rc;
    /* The name on the first line has its blanks escaped, so it cannot look like this one. */
    if (!fr_sense_number(text, "Uid:", &uid) && !fr_sense_number(text, "Uid", &uid))
        return -EINVAL;
    *ret_uid = (uint32_t)uid;
    return 0;
}

int fr_proc_in_cgroup(const char *root, uint32_t pid, const char *path)
{
    char text[8192], *save = NULL;
    size_t n = strlen(path);

    if (n < 2 || path[0] != '/') /* the root cgroup holds everybody and says nothing */
        return 0;
    if (read_of(root, pid, "cgroup", text, sizeof text) < 0)
        return 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *p = strchr(line, ':');

        p = p ? strchr(p + 1, ':') : NULL;
        if (p && strncmp(p + 1, path, n) == 0 && (p[1 + n] == '\0' || p[1 + n] == '/'))
            return 1;
    }
    return 0;
}

int fr_pidfd_open(uint32_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

    return fd < 0 ? -errno : fd;
}

int fr_proc_exit_status(int pidfd, uint32_t pid, int *ret_status)
{
    struct pidfd_info_v0 info = {.mask = PIDFD_ASK_EXIT};
    struct fr_proc_stat st;

    if (pidfd >= 0 && ioctl(pidfd, PIDFD_ASK_IOCTL, &info) == 0 && (info.mask & PIDFD_ASK_EXIT)) {
        *ret_status = info.exit_code;
        return 0;
    }
    if (fr_proc_stat_read("", pid, &st) == 0 && st.state == 'Z') {
        *ret_status = st.exit_code;
        return 0;
    }
    return -ENODATA;
}

static void close_sensor(struct fr_sense *s)
{
    if (!s)
        return;
    if (s->stat_fd >= 0)
        close(s->stat_fd);
    if (s->state_fd >= 0)
        close(s->state_fd);
    if (s->schedstat_fd >= 0)
        close(s->schedstat_fd);
    if (s->wchan_fd >= 0)
        close(s->wchan_fd);
    free(s);
}

static int open_sensor(const struct fr_sense_target *t, struct fr_sense **ret, struct fr_err *err)
{
    struct fr_sense *s;
    char own[40];
    int fd = open_of(t->root, t->pid, "stat");

    if (fd < 0)
        return fr_fail(err, fd == -ENOENT ? -ESRCH : fd, "process %u: cannot read its state: %s",
                       t->pid, strerror(-fd));
    s = fr_xalloc(sizeof *s);
    s->stat_fd = fd;
    /* These may be missing (kernel options, another user's process): their columns are unknown
     * then. */
    snprintf(own, sizeof own, "task/%u/stat", t->pid);
    s->state_fd = open_of(t->root, t->pid, own);
    s->schedstat_fd = open_of(t->root, t->pid, "schedstat");
    s->wchan_fd = open_of(t->root, t->pid, "wchan");
    s->tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);
    s->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    *ret = s;
    return 0;
}

int fr_process_stat(struct fr_sense *s, struct fr_proc_stat *ret)
{
    char text[1024];

    if (fr_sense_reread(s->stat_fd, text, sizeof text) <= 0)
        return -ESRCH;
    return fr_proc_stat_parse(text, ret) == 0 ? 0 : -ESRCH;
}

int fr_process_state(struct fr_sense *s, char *ret)
{
    char text[128]; /* the name before the state has at most 64 bytes */
    const char *p;
    int fd = s->state_fd >= 0 ? s->state_fd : s->stat_fd;

    if (fr_sense_reread(fd, text, sizeof text) <= 0 || !(p = strrchr(text, ')')) || p[1] != ' ' ||
        !p[2])
        return -ESRCH;
    *ret = p[2];
    return 0;
}

/* "exec_ns run_delay_ns timeslices" */
static int read_schedstat(struct fr_sense *s, uint64_t *ret_exec_ns, uint64_t *ret_delay_ns)
{
    char text[128], *end;
    int rc = fr_sense_reread(s->schedstat_fd, text, sizeof text);

    if (rc <= 0)
        return rc < 0 ? rc : -ESRCH;
    *ret_exec_ns = strtoull(text, &end, 10);
    if (*end != ' ')
        return -EINVAL;
    *ret_delay_ns = strtoull(end + 1, NULL, 10);
    return 0;
}

int fr_process_exec_ns(struct fr_sense *s, uint64_t *ret_ns)
{
    uint64_t exec_ns, delay_ns;
    int rc = read_schedstat(s, &exec_ns, &delay_ns);

    if (rc == 0)
        *ret_ns = exec_ns;
    return rc;
}

static void set_u(struct fr_sense_value *v, uint64_t u)
{
    v->known = true;
    v->u = u;
}

static int sample(struct fr_sense *s, struct fr_sense_value *v)
{
    struct fr_proc_stat st;
    uint64_t exec_ns, delay_ns;

    memset(v, 0, FR_PROCESS_COLUMNS * sizeof *v);
    if (fr_process_stat(s, &st) != 0)
        return -ESRCH;
    set_u(&v[FR_PROCESS_STATE], (uint64_t)(unsigned char)st.state);
    set_u(&v[FR_PROCESS_CPU], (st.utime_ticks + st.stime_ticks) * s->tick_ns);
    set_u(&v[FR_PROCESS_RSS], st.rss_pages > 0 ? (uint64_t)st.rss_pages * s->page_bytes : 0);
    set_u(&v[FR_PROCESS_MAJOR_FAULTS], st.major_faults);
    if (read_schedstat(s, &exec_ns, &delay_ns) == 0)
        set_u(&v[FR_PROCESS_RUN_DELAY], delay_ns);
    if (fr_sense_reread(s->wchan_fd, v[FR_PROCESS_WCHAN].text, FR_SENSE_TEXT_BYTES) > 0) {
        v[FR_PROCESS_WCHAN].known = true;
        if (strcmp(v[FR_PROCESS_WCHAN].text, "0") == 0) /* it runs, or the kernel does not tell */
            v[FR_PROCESS_WCHAN].text[0] = '\0';
    }
    return 0;
}

static const struct fr_sense_column COLUMNS[FR_PROCESS_COLUMNS] = {
    {"state", FR_SENSE_GAUGE, "letter of proc(5): R S D T t Z X I"},
    {"cpu_ns", FR_SENSE_TOTAL, "CPU time of all threads, user and system"},
    {"run_delay_ns", FR_SENSE_TOTAL, "time that the main thread waited for a core"},
    {"rss_bytes", FR_SENSE_GAUGE, "resident memory"},
    {"major_faults", FR_SENSE_TOTAL, "page faults that needed the disk"},
    {"wchan", FR_SENSE_TEXT, "kernel function in which the main thread sleeps"},
};

const struct fr_sensor FR_SENSOR_PROCESS = {
    .name = "process",
    .text = "state, CPU time, run-queue wait, memory and wait channel of a rank's process",
    .needs = "wchan of another user's process: CAP_SYS_PTRACE",
    .of_process = true,
    .columns = COLUMNS,
    .ncolumns = FR_PROCESS_COLUMNS,
    .open = open_sensor,
    .sample = sample,
    .close = close_sensor,
};
