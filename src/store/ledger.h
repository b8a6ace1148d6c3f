/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - what must not be lost: jobs, attempts, steps, phases, incidents, decisions, actions,
 * nodes
 *
 * The only owner of SQLite. Writers append rows; one thread commits them in groups
 * (synchronous=FULL, at most FR_LEDGER_COMMIT_MS after they came), and says up to where the rows
 * are durable. Rows are idempotent by their key: appending the same row again (after a restart,
 * from a spool) replaces it. Readers open the file read-only and see whole commits.
 *
 * Unit:    wall-clock ns of the controller in every _unix_ns.
 * Memory:  the queue of rows not yet committed is bounded; fr_ledger_append then waits
 * (back-pressure, counted). Threads: fr_ledger_append from any; the rest from the owner.
 */
#ifndef FR_STORE_LEDGER_H
#define FR_STORE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/job.h"

#define FR_LEDGER_COMMIT_MS 100
#define FR_LEDGER_SCHEMA    2

#define FR_LEDGER_GROUP_ROWS 1000 /* so many queued rows are committed at once, without waiting */
#define FR_LEDGER_QUEUE_ROWS                                                                       \
    65536 /* bounds of the queue; STEP and SPAN fill at most 3/4 of it, so that */
#define FR_LEDGER_QUEUE_BYTES (64u << 20) /* they never keep out what must not be dropped */
#define FR_LEDGER_BLOCK_MS    200         /* how long the append of a STEP or SPAN waits for room */

enum fr_row_kind {
    FR_ROW_JOB = 1,
    FR_ROW_ATTEMPT,
    FR_ROW_STEP,
    FR_ROW_SPAN,
    FR_ROW_INCIDENT,
    FR_ROW_DECISION,
    FR_ROW_ACTION,
    FR_ROW_NODE,
    FR_ROW_KINDS
};

struct fr_row_job { /* key: job */
    char job[FR_NAME_BYTES], name[FR_NAME_BYTES], user[FR_NAME_BYTES], engine[16];
    const char *command; /* JSON array */
    const char *workdir;
    uint32_t uid, nodes, ranks_per_node, spares, max_attempts, state /* enum fr_job_state */, mode;
    uint64_t supervisor_key, epoch;           /* newest epoch given out */
    int64_t submitted_unix_ns, ended_unix_ns; /* 0: not ended */
    int32_t exit_code;
    uint64_t total_steps, checkpoint_every;
    double tokens_per_step, flops_per_step, peak_flops_per_rank; /* NaN: not told */
};
struct fr_row_attempt { /* key: job, attempt */
    char job[FR_NAME_BYTES];
    uint32_t attempt;
    uint64_t epoch;
    const char *nodes;                                /* JSON array of names in rank order */
    int64_t start_unix_ns, stop_unix_ns, end_unix_ns; /* 0: not yet */
    int64_t first_step_unix_ns;
    uint64_t first_step, last_step, resumed_from;
    int32_t exit_code, exit_signal;
    const char *end_reason;
    uint64_t decision; /* that ended it, 0: none */
};
struct fr_row_step { /* key: job, attempt, step; job-wide */
    char job[FR_NAME_BYTES];
    uint32_t attempt;
    uint64_t step;
    int64_t begin_unix_ns, end_unix_ns;
    double loss, tokens;              /* NaN: not told */
    double self_max_s, self_median_s; /* over ranks */
    int32_t slowest_rank;
};
struct fr_row_span { /* key: job, attempt, phase, begin */
    char job[FR_NAME_BYTES];
    uint32_t attempt, phase;
    int64_t begin_unix_ns, end_unix_ns;
};
struct fr_row_incident { /* key: id */
    uint64_t id;
    char job[FR_NAME_BYTES]; /* "" for a node's own */
    uint32_t attempt;
    uint64_t epoch, finding_key;
    char kind[16], subject[16], cause[16], node[FR_NAME_BYTES];
    char group_key[32]; /* communicator concerned, "": none */
    int32_t rank;
    double confidence, ratio, cost_ratio;
    uint32_t witnesses, victims;
    int64_t onset_unix_ns, named_unix_ns, closed_unix_ns; /* closed 0: open */
    int64_t last_move_unix_ns;
    uint64_t onset_step, named_step;
    const char *evidence;        /* JSON array of sentences */
    const char *acknowledged_by; /* NULL or "": nobody */
    const char *bundle;          /* folder of the evidence bundle, "" none */
};
struct fr_row_decision { /* key: id */
    uint64_t id, incident;
    char job[FR_NAME_BYTES];
    uint32_t attempt;
    char choice[16], mode[16], node[FR_NAME_BYTES], actor[FR_NAME_BYTES];
    double cost_stay_s, cost_restart_s; /* NaN: not known */
    uint64_t wait_until_step;           /* the checkpoint that is waited for, 0: none */
    int64_t decided_unix_ns;
    const char *reason; /* what was weighed, in one sentence */
};
struct fr_row_action { /* key: decision, kind */
    uint64_t decision;
    char kind[24]; /* "drain", "stop", "start", "resume", "verify" */
    char target[FR_NAME_BYTES];
    char state[16]; /* "intended", "done", "failed", "refused" */
    int64_t started_unix_ns, ended_unix_ns;
    const char *detail;
};
struct fr_row_node { /* one state change of a node; key: node, at */
    char node[FR_NAME_BYTES];
    char state[16], actor[FR_NAME_BYTES];
    int64_t at_unix_ns;
    uint64_t incident;
    const char *reason;
};

struct fr_ledger;

/* Open or make the file, bring its schema up to date, take the lock that keeps a second controller
 * out (-EBUSY). */
int fr_ledger_open(const char *path, struct fr_ledger **ret, struct fr_err *err);
/* Commit what is queued and close. */
void fr_ledger_close(struct fr_ledger *lg);

/* Queue a row (it is copied, strings too). Returns its number, a positive count that rises by one a
 * row. While the queue is full it waits; a STEP or SPAN waits at most FR_LEDGER_BLOCK_MS (not at
 * all while the ledger is in trouble), is then dropped and counted, and 0 is returned. A text over
 * 1 MiB is cut; a NULL text is kept as "". */
uint64_t fr_ledger_append(struct fr_ledger *lg, enum fr_row_kind kind, const void *row);
/* All rows up to this number are durable. */
uint64_t fr_ledger_durable(struct fr_ledger *lg);
/* Wait until row n is durable; its group is committed at once. -ETIMEDOUT, -EIO (with the reason)
 * when the ledger cannot be written: told after the first failed try that ends while waiting; the
 * row stays queued. -EIO for n = 0, a dropped row. */
int fr_ledger_wait(struct fr_ledger *lg, uint64_t n, double limit_s, struct fr_err *err);
/* Called on the writer thread after each commit (e.g. to wake a loop); it must not append. Set
 * before the first append. */
void fr_ledger_on_commit(struct fr_ledger *lg, void (*fn)(uint64_t durable, void *arg), void *arg);
/* 0 while rows can be written; else the errno and the sentence ("disk full: ..."); rows stay queued
 * and are tried again. */
int fr_ledger_trouble(struct fr_ledger *lg, struct fr_err *err);

struct fr_ledger_stats { /* counts since the ledger was opened */
    uint64_t appended, committed, commits, failed_commits;
    uint64_t waits; /* appends that found the queue full (back-pressure) */
    double waited_s;
    uint64_t dropped_steps, dropped_spans, cut_texts, pruned;
    uint64_t queued_rows, queued_bytes; /* now */
    bool pruning;                       /* a fr_ledger_prune is not done yet */
};
/* From any thread. */
void fr_ledger_stats(struct fr_ledger *lg, struct fr_ledger_stats *ret);

/* Retention: delete the steps and spans that ended before the time and whose job ended before it
 * too. Returns at once; the writer thread deletes in small groups between its commits
 * (stats.pruned, stats.pruning). Jobs, attempts, incidents, decisions, actions and node changes are
 * never deleted. The file keeps its size; the room in it is used again. */
void fr_ledger_prune(struct fr_ledger *lg, int64_t older_than_unix_ns);

/* --- reading (own read-only connection; from any thread, one object a thread) --- */
struct fr_ledger_reader;
int fr_ledger_reader_open(const char *path, struct fr_ledger_reader **ret, struct fr_err *err);
void fr_ledger_reader_close(struct fr_ledger_reader *rd);

/* Call fn for each row of the kind in key order; job NULL: all (nodes, or all jobs); since: only
 * rows with step > since (steps) or id > since (incidents, decisions). Strings live for the call.
 * Stops when fn returns non-zero and returns that. For FR_ROW_NODE `job` names a node; for
 * FR_ROW_ACTION it is the job of the decision. One call sees one state of the file. */
int fr_ledger_each(struct fr_ledger_reader *rd, enum fr_row_kind kind, const char *job,
                   uint64_t since, int (*fn)(const void *row, void *arg), void *arg,
                   struct fr_err *err);

/* Largest id of incidents, decisions; 0 when none. (Ids and steps stay below 2^63.) */
uint64_t fr_ledger_last_id(struct fr_ledger_reader *rd, enum fr_row_kind kind);

/* --- SQL for people: `fullrank ledger query` --- */
struct fr_ledger_value {
    enum {
        FR_VALUE_NULL,
        FR_VALUE_INTEGER,
        FR_VALUE_REAL,
        FR_VALUE_TEXT
    } type; /* a blob is a text */
    int64_t integer;
    double real;
    const char *text; /* NUL-terminated, lives for the call; NULL unless a text */
    size_t text_bytes;
};
struct fr_ledger_limits {
    double time_s; /* 0: FR_LEDGER_QUERY_S */
    uint64_t rows; /* 0: no limit */
};
#define FR_LEDGER_QUERY_S 10.0

/* Run one SELECT (WITH and VALUES too) and call fn for each line of its result. Anything that would
 * write, change a setting or open another file is refused: -EPERM; SQL that is wrong: -EINVAL;
 * longer than time_s: -ETIMEDOUT. A result that has more rows than the limit is cut there, and
 * *ret_cut (may be NULL) says so. Stops when fn returns non-zero and returns that. */
int fr_ledger_query(struct fr_ledger_reader *rd, const char *sql,
                    const struct fr_ledger_limits *limits,
                    int (*fn)(int n, const char *const *names, const struct fr_ledger_value *values,
                              void *arg),
                    void *arg, bool *ret_cut, struct fr_err *err);

#endif /* FR_STORE_LEDGER_H */
