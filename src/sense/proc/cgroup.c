/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - see cgroup.h */
#include "sense/proc/cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

struct fr_sense {
    int fd;
};

/* "cpu" as a whole word of a comma-separated list of n bytes. */
static int lists_cpu(const char *list, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = i;

        while (k < n && list[k] != ',')
            k++;
        if (k - i == 3 && memcmp(list + i, "cpu", 3) == 0)
            return 1;
        i = k + 1;
    }
    return 0;
}

int fr_cgroup_cpu_stat_path(const char *text, int v2_is_unified, char *path, size_t n)
{
    int found = 0;

    /* Lines are "id:controllers:/path"; id 0 with no controllers is version 2. */
    for (const char *line = text; line && *line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *a = strchr(line, ':'), *b = a ? strchr(a + 1, ':') : NULL, *end;
        int len = -1;

        if (!b || b[1] != '/')
            continue;
        end = b + 1 + strcspn(b + 1, "\n");
        if (lists_cpu(a + 1, (size_t)(b - a - 1))) {
            len = snprintf(path, n, "/sys/fs/cgroup/%.*s%.*s/cpu.stat", (int)(b - a - 1), a + 1,
                           (int)(end - b - 1), b + 1);
            found = 2;
        } else if (b == a + 1 && !found) {
            len = snprintf(path, n, "/sys/fs/cgroup%s%.*s/cpu.stat",
                           v2_is_unified ? "" : "/unified", (int)(end - b - 1), b + 1);
            found = 1;
        } else {
            continue;
        }
        if (len < 0 || (size_t)len >= n)
            return -ENAMETOOLONG;
        if (found == 2)
            break;
    }
    return found ? 0 : -ENOENT;
}

int fr_cgroup_throttled(const char *text, uint64_t *ret_ns)
{
    uint64_t v;

    if (fr_sense_number(text, "throttled_time", &v)) {
        *ret_ns = v;
        return 0;
    }
    if (fr_sense_number(text, "throttled_usec", &v)) {
        *ret_ns = v * 1000u;
        return 0;
    }
    return -ENODATA;
}

static int open_sensor(const struct fr_sense_target *t, struct fr_sense **ret, struct fr_err *err)
{
    char text[8192], path[768], file[64];
    int fd, rc, v2;

    snprintf(file, sizeof file, "/proc/%u/cgroup", t->pid);
    fd = fr_sense_open_at(t->root, file);
    if (fd < 0)
        return fr_fail(err, fd == -ENOENT ? -ESRCH : fd, "process %u: cannot read its cgroups: %s",
                       t->pid, strerror(-fd));
    rc = fr_sense_reread(fd, text, sizeof text);
    close(fd);
    if (rc < 0)
        return fr_fail(err, rc, "process %u: cannot read its cgroups: %s", t->pid, strerror(-rc));
    fd = fr_sense_open_at(t->root, "/sys/fs/cgroup/cgroup.controllers");
    v2 = fd >= 0;
    if (fd >= 0)
        close(fd);
    rc = fr_cgroup_cpu_stat_path(text, v2, path, sizeof path);
    if (rc < 0)
        return fr_fail(err, rc, "process %u: no cgroup with a CPU controller", t->pid);
    fd = fr_sense_open_at(t->root, path);
    if (fd < 0)
        return fr_fail(err, fd, "%s: %s", path, strerror(-fd));
    *ret = fr_xalloc(sizeof **ret);
    (*ret)->fd = fd;
    return 0;
}

static int sample(struct fr_sense *s, struct fr_sense_value *v)
{
    char text[1024];

    memset(v, 0, FR_CGROUP_COLUMNS * sizeof *v);
    if (fr_sense_reread(s->fd, text, sizeof text) <= 0)
        return -ESRCH;
    /* A root cgroup has no such line: it cannot be throttled, and says nothing. */
    v[FR_CGROUP_THROTTLED].known = fr_cgroup_throttled(text, &v[FR_CGROUP_THROTTLED].u) == 0;
    return 0;
}

static void close_sensor(struct fr_sense *s)
{
    if (!s)
        return;
    close(s->fd);
    free(s);
}

static const struct fr_sense_column COLUMNS[FR_CGROUP_COLUMNS] = {
    {"throttled_ns", FR_SENSE_TOTAL,
     "time that tasks of the cgroup were held back by its CPU limit"},
};

const struct fr_sensor FR_SENSOR_CGROUP = {
    .name = "cgroup",
    .text = "CPU throttling of the cgroup that holds a rank",
    .needs = "/sys/fs/cgroup with the cpu controller",
    .of_process = true,
    .columns = COLUMNS,
    .ncolumns = FR_CGROUP_COLUMNS,
    .open = open_sensor,
    .sample = sample,
    .close = close_sensor,
};
