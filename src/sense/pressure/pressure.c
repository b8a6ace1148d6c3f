/* SPDX-License-Identifier: Apache-2.0 */
/* pressure.c - see pressure.h */
#include "sense/pressure/pressure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

struct fr_sense {
    int cpu_fd, memory_fd, io_fd, load_fd;
};

int fr_pressure_total(const char *text, const char *line, uint64_t *ret_us)
{
    size_t n = strlen(line);

    for (const char *p = text; p && *p; p = strchr(p, '\n'), p = p ? p + 1 : NULL) {
        const char *end = strchr(p, '\n'), *total;

        if (strncmp(p, line, n) != 0 || p[n] != ' ')
            continue;
        total = strstr(p, " total=");
        if (!total || (end && total > end))
            return -ENODATA;
        *ret_us = strtoull(total + 7, NULL, 10);
        return 0;
    }
    return -ENODATA;
}

static int open_sensor(const struct fr_sense_target *t, struct fr_sense **ret, struct fr_err *err)
{
    struct fr_sense *s = fr_xalloc(sizeof *s);

    (void)err; /* each file may be missing alone; its columns are unknown then */
    s->cpu_fd = fr_sense_open_at(t->root, "/proc/pressure/cpu");
    s->memory_fd = fr_sense_open_at(t->root, "/proc/pressure/memory");
    s->io_fd = fr_sense_open_at(t->root, "/proc/pressure/io");
    s->load_fd = fr_sense_open_at(t->root, "/proc/loadavg");
    *ret = s;
    return 0;
}

static int sample(struct fr_sense *s, struct fr_sense_value *v)
{
    char text[512];

    memset(v, 0, FR_PRESSURE_COLUMNS * sizeof *v);
    if (fr_sense_reread(s->cpu_fd, text, sizeof text) > 0)
        v[FR_PRESSURE_CPU_SOME].known =
            fr_pressure_total(text, "some", &v[FR_PRESSURE_CPU_SOME].u) == 0;
    if (fr_sense_reread(s->memory_fd, text, sizeof text) > 0) {
        v[FR_PRESSURE_MEMORY_SOME].known =
            fr_pressure_total(text, "some", &v[FR_PRESSURE_MEMORY_SOME].u) == 0;
        v[FR_PRESSURE_MEMORY_FULL].known =
            fr_pressure_total(text, "full", &v[FR_PRESSURE_MEMORY_FULL].u) == 0;
    }
    if (fr_sense_reread(s->io_fd, text, sizeof text) > 0)
        v[FR_PRESSURE_IO_SOME].known =
            fr_pressure_total(text, "some", &v[FR_PRESSURE_IO_SOME].u) == 0;
    if (fr_sense_reread(s->load_fd, text, sizeof text) > 0) {
        char *end;

        v[FR_PRESSURE_LOAD1].d = strtod(text, &end);
        v[FR_PRESSURE_LOAD1].known = end != text;
    }
    return 0;
}

static void close_sensor(struct fr_sense *s)
{
    if (!s)
        return;
    int fds[] = {s->cpu_fd, s->memory_fd, s->io_fd, s->load_fd};

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(s);
}

static const struct fr_sense_column COLUMNS[FR_PRESSURE_COLUMNS] = {
    {"cpu_some_us", FR_SENSE_TOTAL, "some task waited for a core"},
    {"memory_some_us", FR_SENSE_TOTAL, "some task waited for memory"},
    {"memory_full_us", FR_SENSE_TOTAL, "all tasks waited for memory"},
    {"io_some_us", FR_SENSE_TOTAL, "some task waited for a disk"},
    {"load1", FR_SENSE_REAL, "load average of one minute"},
};

const struct fr_sensor FR_SENSOR_PRESSURE = {
    .name = "pressure",
    .text = "pressure stall information of the machine",
    .needs = "kernel with PSI (CONFIG_PSI, psi=1)",
    .columns = COLUMNS,
    .ncolumns = FR_PRESSURE_COLUMNS,
    .open = open_sensor,
    .sample = sample,
    .close = close_sensor,
};
