/* SPDX-License-Identifier: Apache-2.0 */
/* helper.c - see helper.h */
#include "helper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"

char folder[256], file[300];

int make_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    snprintf(folder, sizeof folder, "%s/fr-store-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/runs.db", folder);
    return 0;
}

int remove_folder(void **state)
{
    (void)state;
    return fr_fs_remove_tree(folder, NULL);
}

/* Names of people, machines and attackers. */
static const char *const HOSTILE[] = {
    "",
    "n1",
    "Robert'); DROP TABLE jobs;--",
    "\"quoted\" `back` [brackets]",
    "gr\xc3\xbc\xc3\x9f dich \xe2\x98\x83 \xf0\x9f\x9a\x80",
    "line\nbreak\ttab\r\x01\x1b[31m",
    "\xff\xfe not UTF-8 \xc0\x80 \x80",
    "%s%n%d ?1 :name @x $y",
    "-1",
    "0x10",
    "1e308",
    "NULL",
};
#define N_HOSTILE (sizeof HOSTILE / sizeof HOSTILE[0])

static void fill_name(struct fr_rng *r, char *p, size_t bytes)
{
    size_t n = fr_rng_below(r, bytes);

    memset(p, 0, bytes);
    if (fr_rng_below(r, 2)) {
        strncpy(p, HOSTILE[fr_rng_below(r, N_HOSTILE)], bytes - 1);
        return;
    }
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(1 + fr_rng_below(r, 255));
}

static const char *fill_text(struct fr_rng *r)
{
    size_t n = fr_rng_below(r, 3) ? fr_rng_below(r, 40) : fr_rng_below(r, 20000);
    char *p = malloc(n + 1);

    if (fr_rng_below(r, 2)) {
        free(p);
        return strdup(HOSTILE[fr_rng_below(r, N_HOSTILE)]);
    }
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(1 + fr_rng_below(r, 255));
    p[n] = '\0';
    return p;
}

static double fill_double(struct fr_rng *r)
{
    static const double EDGES[] = {
        0, 1, -1, INFINITY, -INFINITY, 5e-324, 1.7976931348623157e308, 9007199254740993.0};
    uint64_t bits = fr_rng_u64(r);
    double d;

    if (fr_rng_below(r, 3) == 0)
        return (double)NAN;
    if (fr_rng_below(r, 3) == 0)
        return EDGES[fr_rng_below(r, sizeof EDGES / sizeof EDGES[0])];
    memcpy(&d, &bits, sizeof d); /* any bits that are a number */
    return isnan(d) ? 0.1 : d;
}

static uint64_t fill_integer(struct fr_rng *r)
{
    static const uint64_t EDGES[] = {
        0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, INT32_MAX, UINT32_MAX, 0x80000000u};

    return fr_rng_below(r, 2) ? EDGES[fr_rng_below(r, sizeof EDGES / sizeof EDGES[0])]
                              : fr_rng_u64(r);
}

/* clang-format off */
/* The members of each struct, written down a second time: a column that its table forgets shows as a difference.
 * N name, T text, D double, I integer. */
#define ROW_MEMBERS(KIND, N, T, D, I)                                                              \
    switch (KIND) {                                                                                \
    case FR_ROW_JOB:                                                                               \
        N(job.job) N(job.name) N(job.user) N(job.engine) T(job.command) T(job.workdir) I(job.uid)  \
        I(job.nodes) I(job.ranks_per_node) I(job.spares) I(job.max_attempts) I(job.state)          \
        I(job.mode) I(job.supervisor_key) I(job.epoch) I(job.submitted_unix_ns)                    \
        I(job.ended_unix_ns) I(job.exit_code) I(job.total_steps) I(job.checkpoint_every)           \
        D(job.tokens_per_step) D(job.flops_per_step) D(job.peak_flops_per_rank) break;             \
    case FR_ROW_ATTEMPT:                                                                           \
        N(attempt.job) I(attempt.attempt) I(attempt.epoch) T(attempt.nodes)                        \
        I(attempt.start_unix_ns) I(attempt.stop_unix_ns) I(attempt.end_unix_ns)                    \
        I(attempt.first_step_unix_ns) I(attempt.first_step) I(attempt.last_step)                   \
        I(attempt.resumed_from) I(attempt.exit_code) I(attempt.exit_signal) T(attempt.end_reason)  \
        I(attempt.decision) break;                                                                 \
    case FR_ROW_STEP:                                                                              \
        N(step.job) I(step.attempt) I(step.step) I(step.begin_unix_ns) I(step.end_unix_ns)         \
        D(step.loss) D(step.tokens) D(step.self_max_s) D(step.self_median_s) I(step.slowest_rank)  \
        break;                                                                                     \
    case FR_ROW_SPAN:                                                                              \
        N(span.job) I(span.attempt) I(span.phase) I(span.begin_unix_ns) I(span.end_unix_ns) break; \
    case FR_ROW_INCIDENT:                                                                          \
        I(incident.id) N(incident.job) I(incident.attempt) I(incident.epoch)                       \
        I(incident.finding_key) N(incident.kind) N(incident.subject) N(incident.cause)             \
        N(incident.node) N(incident.group_key) I(incident.victims) I(incident.rank)                \
        D(incident.confidence) D(incident.ratio)                                                   \
        D(incident.cost_ratio) I(incident.witnesses) I(incident.onset_unix_ns)                     \
        I(incident.named_unix_ns) I(incident.closed_unix_ns) I(incident.last_move_unix_ns)         \
        I(incident.onset_step) I(incident.named_step) T(incident.evidence)                         \
        T(incident.acknowledged_by) T(incident.bundle) break;                                      \
    case FR_ROW_DECISION:                                                                          \
        I(decision.id) I(decision.incident) N(decision.job) I(decision.attempt)                    \
        N(decision.choice) N(decision.mode) N(decision.node) N(decision.actor)                     \
        D(decision.cost_stay_s) D(decision.cost_restart_s) I(decision.wait_until_step)             \
        I(decision.decided_unix_ns) T(decision.reason) break;                                                                  \
    case FR_ROW_ACTION:                                                                            \
        I(action.decision) N(action.kind) N(action.target) N(action.state)                         \
        I(action.started_unix_ns) I(action.ended_unix_ns) T(action.detail) break;                  \
    case FR_ROW_NODE:                                                                              \
        N(node.node) N(node.state) N(node.actor) I(node.at_unix_ns) I(node.incident)               \
        T(node.reason) break;                                                                      \
    default:                                                                                       \
        fail_msg("no such kind: %d", (int)(KIND));                                                 \
    }
/* clang-format on */

size_t row_bytes(enum fr_row_kind kind)
{
    static const size_t BYTES[FR_ROW_KINDS] = {
        [FR_ROW_JOB] = sizeof(struct fr_row_job),
        [FR_ROW_ATTEMPT] = sizeof(struct fr_row_attempt),
        [FR_ROW_STEP] = sizeof(struct fr_row_step),
        [FR_ROW_SPAN] = sizeof(struct fr_row_span),
        [FR_ROW_INCIDENT] = sizeof(struct fr_row_incident),
        [FR_ROW_DECISION] = sizeof(struct fr_row_decision),
        [FR_ROW_ACTION] = sizeof(struct fr_row_action),
        [FR_ROW_NODE] = sizeof(struct fr_row_node),
    };

    return BYTES[kind];
}

void fill_row(struct fr_rng *r, enum fr_row_kind kind, unsigned i, union any_row *ret)
{
    memset(ret, 0, sizeof *ret);
#define N(m) fill_name(r, ret->m, sizeof ret->m);
#define T(m) ret->m = fill_text(r);
#define D(m) ret->m = fill_double(r);
#define I(m) ret->m = (__typeof__(ret->m))fill_integer(r);
    ROW_MEMBERS(kind, N, T, D, I)
#undef N
#undef T
#undef D
#undef I
    switch (kind) { /* the last member of each key: unlike those of other rows */
    case FR_ROW_JOB:
        snprintf(ret->job.job, sizeof ret->job.job, "%u'%.40s", i,
                 HOSTILE[fr_rng_below(r, N_HOSTILE)]);
        /* not what lay behind a longer name before */
        memset(ret->job.job + strlen(ret->job.job), 0, sizeof ret->job.job - strlen(ret->job.job));
        break;
    case FR_ROW_ATTEMPT:
        ret->attempt.attempt = i;
        break;
    case FR_ROW_STEP:
        ret->step.step = i + 1ull;
        break;
    case FR_ROW_SPAN:
        ret->span.begin_unix_ns = INT64_MIN + (int64_t)i;
        break;
    case FR_ROW_INCIDENT:
        ret->incident.id = UINT64_MAX - i;
        break;
    case FR_ROW_DECISION:
        ret->decision.id = i + 1ull;
        break;
    case FR_ROW_ACTION:
        ret->action.decision = (uint64_t)INT64_MAX - 5 + i;
        break;
    case FR_ROW_NODE:
        ret->node.at_unix_ns = INT64_MAX - (int64_t)i;
        break;
    default:
        break;
    }
}

static int same_double(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

int rows_equal(enum fr_row_kind kind, const union any_row *a, const union any_row *b)
{
    int equal = 1;

#define N(m) equal &= memcmp(a->m, b->m, sizeof a->m) == 0;
#define T(m) equal &= strcmp(a->m, b->m) == 0;
#define D(m) equal &= same_double(a->m, b->m);
#define I(m) equal &= a->m == b->m;
    ROW_MEMBERS(kind, N, T, D, I)
#undef N
#undef T
#undef D
#undef I
    return equal;
}

void free_texts(enum fr_row_kind kind, union any_row *row)
{
#define NONE(m)
#define T(m) free((void *)(uintptr_t)row->m);
    ROW_MEMBERS(kind, NONE, T, NONE, NONE)
#undef T
#undef NONE
}

struct fr_row_step step_row(const char *job, uint64_t step)
{
    struct fr_row_step row = {
        .step = step, .loss = 1.0 / (double)(step + 1), .tokens = (double)NAN};

    snprintf(row.job, sizeof row.job, "%s", job);
    row.end_unix_ns = (int64_t)step;
    return row;
}

struct fr_ledger *must_open(const char *path)
{
    struct fr_ledger *lg = NULL;
    struct fr_err err = FR_ERR_INIT;
    int rc = fr_ledger_open(path, &lg, &err);

    if (rc < 0)
        fail_msg("%s", err.text);
    return lg;
}

struct fr_ledger_reader *must_read(const char *path)
{
    struct fr_ledger_reader *rd = NULL;
    struct fr_err err = FR_ERR_INIT;

    if (fr_ledger_reader_open(path, &rd, &err) < 0)
        fail_msg("%s", err.text);
    return rd;
}

static int count_one(const void *row, void *arg)
{
    (void)row;
    ++*(uint64_t *)arg;
    return 0;
}

uint64_t count_rows(const char *path, enum fr_row_kind kind)
{
    struct fr_ledger_reader *rd = must_read(path);
    struct fr_err err = FR_ERR_INIT;
    uint64_t n = 0;

    if (fr_ledger_each(rd, kind, NULL, 0, count_one, &n, &err) < 0)
        fail_msg("%s", err.text);
    fr_ledger_reader_close(rd);
    return n;
}

void wait_for(int (*ask)(void *arg), void *arg)
{
    uint64_t limit_ns = fr_mono_ns() + 30ull * 1000000000ull;

    while (!ask(arg)) {
        struct timespec pause = {.tv_nsec = 2000000};

        if (fr_mono_ns() > limit_ns)
            fail_msg("waited for 30 s");
        nanosleep(&pause, NULL);
    }
}

static int take_integer(int n, const char *const *names, const struct fr_ledger_value *values,
                        void *arg)
{
    (void)names;
    assert_int_equal(n, 1);
    assert_int_equal(values[0].type, FR_VALUE_INTEGER);
    *(int64_t *)arg = values[0].integer;
    return 0;
}

int64_t ask_integer(const char *path, const char *sql)
{
    struct fr_ledger_reader *rd = must_read(path);
    struct fr_err err = FR_ERR_INIT;
    int64_t v = INT64_MIN;

    if (fr_ledger_query(rd, sql, NULL, take_integer, &v, NULL, &err) < 0)
        fail_msg("%s", err.text);
    fr_ledger_reader_close(rd);
    return v;
}
