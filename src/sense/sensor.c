/* SPDX-License-Identifier: Apache-2.0 */
/* sensor.c - the list of sensors, and what they share; see sensor.h */
#include "sense/sensor.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sense/pressure/pressure.h"
#include "sense/proc/cgroup.h"
#include "sense/proc/process.h"

const struct fr_sensor *const FR_SENSORS[] = {
    &FR_SENSOR_PROCESS,
    &FR_SENSOR_CGROUP,
    &FR_SENSOR_PRESSURE,
    NULL,
};

const struct fr_sensor *fr_sensor_find(const char *name)
{
    for (size_t i = 0; FR_SENSORS[i]; i++)
        if (strcmp(FR_SENSORS[i]->name, name) == 0)
            return FR_SENSORS[i];
    return NULL;
}

const struct fr_sense_value *fr_sense_get(const struct fr_sensor *s,
                                          const struct fr_sense_value *values, const char *column)
{
    for (size_t i = 0; i < s->ncolumns; i++)
        if (strcmp(s->columns[i].name, column) == 0)
            return &values[i];
    return NULL;
}

int fr_sense_open_at(const char *root, const char *path)
{
    char full[1024];
    int n = snprintf(full, sizeof full, "%s%s", root ? root : "", path), fd;

    if (n < 0 || (size_t)n >= sizeof full)
        return -ENAMETOOLONG;
    fd = open(full, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int fr_sense_reread(int fd, char *text, size_t n)
{
    ssize_t got;

    if (fd < 0)
        return -EBADF;
    got = pread(fd, text, n - 1, 0);
    if (got < 0)
        return -errno;
    text[got] = '\0';
    return (int)got;
}

int fr_sense_number(const char *text, const char *key, uint64_t *ret)
{
    size_t n = strlen(key);

    for (const char *p = strstr(text, key); p; p = strstr(p + 1, key)) {
        char *end;

        if (p != text && !isspace((unsigned char)p[-1]))
            continue;
        if (p[n] != ' ' && p[n] != '=' && p[n] != '\t' && p[n] != ':')
            continue;
        p += n + 1;
        while (*p == ' ' || *p == '\t')
            p++;
        if (!isdigit((unsigned char)*p))
            return 0;
        *ret = strtoull(p, &end, 10);
        return 1;
    }
    return 0;
}
