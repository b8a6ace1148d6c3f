/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_rules.h - the table by which lines of a job's log are judged, and the search for them
 *
 * The built-in table is job_log.rules, which says how it reads. Each pattern is expanded into plain
 * ones; the longest fixed text of each goes into one automaton (Aho and Corasick) that runs once
 * over a line; only patterns whose text occurs are tried. Most lines end there.
 *
 * Range:   FR_JOB_ROWS_MAX rows, 256 ways of a pattern; {} stands for at most 4,096 bytes.
 * Memory:  some MiB for the automaton, whatever is read.
 * Threads: read-only after fr_job_rules_new: any.
 * Source:  Aho, Corasick, "Efficient string matching: an aid to bibliographic search", CACM 18(6),
 *          1975.
 */
#ifndef FR_SCAN_JOB_RULES_H
#define FR_SCAN_JOB_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "scan/job_prefix.h"

#define FR_JOB_ROWS_MAX  4096u
#define FR_JOB_RULES_MAX (1u << 20) /* bytes of a rules file */

enum fr_job_role { /* the lower, the nearer to the cause */
                   FR_JOB_CAUSE = 0,
                   FR_JOB_ORIGIN,
                   FR_JOB_PAIR,
                   FR_JOB_VICTIM,
                   FR_JOB_WEAK,
                   FR_JOB_NOTE,
                   FR_JOB_IGNORE,
                   FR_JOB_OPEN, /* begins a stretch of the log */
                   FR_JOB_CLOSE,
                   FR_JOB_LEARN /* tells the rank of a process */
};

struct fr_job_verdict {
    enum fr_job_role role;
    char family[16], blame[16], signature[32], action[20];
};

struct fr_job_rule {
    char id[32]; /* OPEN, CLOSE: the stretch's name */
    struct fr_job_verdict is;
};

struct fr_job_within { /* what a signature means inside of a stretch */
    char stretch[32], signature[32];
    struct fr_job_verdict is;
};

struct fr_job_match {
    const struct fr_job_rule *rule;
    int64_t rank;            /* -1: the pattern kept none */
    const char *host, *peer; /* into the line, NULL: none */
    size_t host_n, peer_n;
};

struct fr_job_rules;

extern const char *const FR_JOB_RULES_TEXT; /* the built-in table */

/* The built-in table, with a site's own before it (own NULL: none). -EINVAL with the line's number
 * for a row that cannot be read; the built-in table cannot fail. */
int fr_job_rules_new(const char *own, size_t own_n, const char *own_name, struct fr_job_rules **ret,
                     struct fr_err *err);
void fr_job_rules_free(struct fr_job_rules *rules);

/* The first row that fits the text. 1 with *ret, or 0. *pre is read (job_prefix.h) when a text of
 * the table occurs at all, which most lines have none of; *ret_read says whether. */
int fr_job_rules_match(const struct fr_job_rules *rules, const char *text, size_t n,
                       struct fr_job_prefix *pre, bool *ret_read, struct fr_job_match *ret);
/* What a signature means inside of a stretch, NULL: nothing else. */
const struct fr_job_within *fr_job_rules_within(const struct fr_job_rules *rules,
                                                const char *stretch, const char *signature);
size_t fr_job_rules_count(const struct fr_job_rules *rules); /* rows */

#endif /* FR_SCAN_JOB_RULES_H */
