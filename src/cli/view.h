/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - a job while it runs: a block that is redrawn on a terminal, plain lines elsewhere
 *
 * Threads: one owner.
 */
#ifndef FR_CLI_VIEW_H
#define FR_CLI_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/client.h"

struct fr_view {
    struct fr_client *client; /* borrowed */
    char job[64];             /* "" while not known: the newest job is taken */
    int fd;
    bool terminal, color;
    double every_s;       /* plain lines: at most one in so many seconds without news */
    struct fr_json *data; /* the job, as the API gives it; NULL while nothing came */
    struct fr_json *nodes, *incidents, *decisions;
    double fetched_s; /* age base: when the data came, monotonic seconds */
    int lines;        /* of the block on the screen */
    int64_t seen_incident, seen_decision, seen_attempt;
    double said_s;
};

void fr_view_init(struct fr_view *v, struct fr_client *c, int fd, bool terminal, bool color);
void fr_view_fini(struct fr_view *v);

/* Ask for the newest state: 0 or a negative errno; the old one is kept then. */
int fr_view_fetch(struct fr_view *v, struct fr_err *err);

/* Show it: news since the last call as lines, then the block. */
void fr_view_draw(struct fr_view *v);

/* A line of our own above the block. */
void fr_view_say(struct fr_view *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Take the block off the screen. */
void fr_view_clear(struct fr_view *v);

const char *fr_view_state(const struct fr_view *v); /* of the job, "" unknown */
bool fr_view_ended(const struct fr_view *v);

#endif /* FR_CLI_VIEW_H */
