/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sensor.h - one interface for everything that can be read of a node or of a process
 *
 * A sensor declares its columns once and then only fills in values, so that what is measured can
 * be listed, documented and replayed without reading its code. What could not be read
 * is marked unknown: missing is not zero (law 3).
 *
 * Unit:    of each column, in its row of the table.
 * Memory:  one small object an open sensor; sampling allocates nothing.
 * Threads: an open sensor belongs to one thread. A sensor whose `blocks` is set may wait for a
 * device or a network and gets a thread of its own; the others read /proc and /sys only.
 */
#ifndef FR_SENSE_SENSOR_H
#define FR_SENSE_SENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define FR_SENSE_TEXT_BYTES 48
#define FR_SENSE_COLUMNS    16 /* most columns of one sensor */

enum fr_sense_kind {
    FR_SENSE_TOTAL, /* u: counts up since the target's start */
    FR_SENSE_GAUGE, /* u: now */
    FR_SENSE_REAL,  /* d: now */
    FR_SENSE_TEXT   /* text */
};

struct fr_sense_column {
    const char *name; /* with its unit, as in style.md */
    enum fr_sense_kind kind;
    const char *text; /* one sentence for the manual */
};

struct fr_sense_value {
    bool known;
    uint64_t u;
    double d;
    char text[FR_SENSE_TEXT_BYTES];
};

/* What is to be read. root is "" on a live machine, or a folder that holds a captured proc/ and
 * sys/. */
struct fr_sense_target {
    const char *root;
    uint32_t pid; /* sensors of a process; 0 for those of the node */
};

struct fr_sense; /* an open sensor */

struct fr_sensor {
    const char *name;
    const char *text;  /* what it is for */
    const char *needs; /* kernel options, capabilities; "" nothing */
    bool of_process;   /* target.pid is used */
    bool blocks;
    const struct fr_sense_column *columns;
    size_t ncolumns;
    int (*open)(const struct fr_sense_target *t, struct fr_sense **ret, struct fr_err *err);
    /* Fill values[ncolumns]. 0, or -ESRCH when the target is gone (values are unknown then). */
    int (*sample)(struct fr_sense *s, struct fr_sense_value *values);
    void (*close)(struct fr_sense *s);
};

/* All sensors of this build, ended by NULL. */
extern const struct fr_sensor *const FR_SENSORS[];

/* The sensor of that name, or NULL. */
const struct fr_sensor *fr_sensor_find(const char *name);

/* The value of a column by name in a sample of that sensor, or NULL. */
const struct fr_sense_value *fr_sense_get(const struct fr_sensor *s,
                                          const struct fr_sense_value *values, const char *column);

/* --- for the sensors themselves --- */

/* Open root + path for reading, or -errno. */
int fr_sense_open_at(const char *root, const char *path);

/* Read an open file of /proc or /sys again from its start into text, NUL-terminated. Returns its
 * length or -errno. */
int fr_sense_reread(int fd, char *text, size_t n);

/* The number behind "key " or "key=" at the start of a line or a word. Returns 1 when found. */
int fr_sense_number(const char *text, const char *key, uint64_t *ret);

#endif /* FR_SENSE_SENSOR_H */
