/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what happened to a job: gathered from the API, for the terminal, as JSON, as one HTML
 * file
 *
 * `job report` and `demo` write the same report; the demo adds the faults that it made, so that
 * each stands beside what was found.
 *
 * Memory:  one report a call; steps are bounded by FR_REPORT_STEPS_MAX (the newest stay).
 * Threads: one owner.
 */
#ifndef FR_CLI_REPORT_H
#define FR_CLI_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/client.h"

#define FR_REPORT_STEPS_MAX 2000000

/* A fault that was made on purpose, and what the controller said of it. */
struct fr_fault {
    char kind[8]; /* "slow", "hang", "kill" */
    int64_t at_unix_ns;
    uint64_t at_step;
    char node[64];
    int32_t rank;     /* -1: a whole node */
    uint32_t attempt; /* that it struck */
    /* found; empty or NaN until then */
    int64_t incident; /* 0: none yet */
    char named_kind[16], named_node[64], named_cause[16];
    int32_t named_rank;         /* -1: none */
    bool correct;               /* kind, node and (where one rank was hit) rank */
    bool isolated;              /* the node was taken out by the decision */
    double detect_s, recover_s; /* from the fault; NaN: not (yet) */
    double detect_steps;
};

struct fr_report_step {
    uint32_t attempt;
    uint64_t step;
    double begin_s, end_s; /* since the job was submitted */
    double step_s, loss;
};

struct fr_report {
    struct fr_json *job, *incidents, *decisions;
    struct fr_json **decision; /* each with its actions */
    size_t ndecision;
    struct fr_report_step *steps;
    size_t nsteps;
    int64_t submitted_unix_ns;
    double wall_s;
    const struct fr_fault *faults; /* borrowed, may be NULL */
    size_t nfaults;
    const char *title;
    int loss_bit_exact; /* 1, 0, -1: not compared */
    int64_t seed;       /* of the demo, -1: none */
};

int fr_report_load(struct fr_client *c, const char *job, struct fr_report *ret, struct fr_err *err);
void fr_report_fini(struct fr_report *r);

/* The whole, for a terminal. */
void fr_report_text(const struct fr_report *r, bool color, struct fr_buf *out);
/* {"schema": "fullrank.job-report/1", "job": .., "incidents": .., "decisions": ..} */
void fr_report_json(const struct fr_report *r, struct fr_buf *out);
/* One file without any external request. */
void fr_report_html(const struct fr_report *r, struct fr_buf *out);

/* "7 of 80", "7" of a job that does not tell its length, "-" of one that tells none. */
void fr_report_steps(const struct fr_report *r, char *text, size_t n);

/* A number with so many digits behind the point; NaN is "-". */
void fr_report_fixed(struct fr_buf *out, int digits, double x);

/* Seconds since the job was submitted of an RFC 3339 text; NaN when absent. */
double fr_report_seconds(const struct fr_report *r, const char *text);

/* Append text with &, <, >, " and ' as entities and control characters as U+FFFD. */
void fr_html_escape(struct fr_buf *out, const char *s);

#endif /* FR_CLI_REPORT_H */
