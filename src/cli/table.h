/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - print objects of the API as a table, as CSV, or one JSON object a line
 *
 * A listing is a table of columns: name, title, path into the object, how it is shown. Text stands
 * left, numbers right, the unknown is "-" (in CSV: nothing). Control characters of foreign names
 * are shown as "?".
 *
 * Unit:    as the API: base units; people get scaled ones, CSV gets them unscaled.
 */
#ifndef FR_CLI_TABLE_H
#define FR_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"

enum fr_show {
    FR_SHOW_TEXT = 0,
    FR_SHOW_STATE, /* text with a colour of its own */
    FR_SHOW_INT,
    FR_SHOW_NUM, /* %.4g */
    FR_SHOW_SECONDS,
    FR_SHOW_BYTES,
    FR_SHOW_RATE, /* bytes/s */
    FR_SHOW_RATIO,
    FR_SHOW_FACTOR, /* 1.9x */
    FR_SHOW_TIME,   /* 12:00:03, local; the date too when it is another day */
    FR_SHOW_LIST,   /* joined by spaces */
    FR_SHOW_NODES,  /* folded: n[0-3] */
    FR_SHOW_COUNT   /* members of an array */
};

struct fr_column {
    const char *name; /* of --fields; NULL ends the table */
    const char *title;
    const char *path; /* "agent.version" */
    enum fr_show show;
    size_t max; /* most characters on a terminal, 0: no limit */
};

struct fr_table_style {
    enum fr_format format; /* not JSON */
    const char *fields;    /* comma-separated names, NULL: all */
    bool no_header, color, cut;
    bool reverse; /* the last item first (table only) */
};

/* The value at a path of an object, NULL when absent. */
const struct fr_json *fr_table_value(const struct fr_json *obj, const char *path);

/* One value for people. Returns what is in b (emptied first). */
const char *fr_table_text(const struct fr_json *v, enum fr_show show, struct fr_buf *b);

/* Append the listing. -EINVAL when --fields names a column that is not there. */
int fr_table_print(const struct fr_column *cols, const struct fr_json *items,
                   const struct fr_table_style *st, struct fr_buf *out, struct fr_err *err);

/* Append "title: value" lines of one object, absent ones left out. */
void fr_table_card(const struct fr_column *cols, const struct fr_json *obj, bool color,
                   struct fr_buf *out);

/* Append text with control characters as "?", so that a name cannot move the cursor. */
void fr_table_safe(struct fr_buf *out, const char *s);

/* The SGR code for a state of a node or job, "" for none. */
const char *fr_table_color(const char *state);

#endif /* FR_CLI_TABLE_H */
