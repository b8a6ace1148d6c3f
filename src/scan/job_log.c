/* SPDX-License-Identifier: Apache-2.0 */
/* job_log.c - see job_log.h */
#define _GNU_SOURCE /* memmem */
#include "scan/job_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "scan/job_prefix.h"
#include "scan/lines.h"

#define TABLE_SLOTS   8192u  /* of findings, a power of two */
#define WAITS_MAX     1024u  /* newest time-outs that are compared, a power of two */
#define PROCS_MAX     65536u /* processes whose rank NCCL told, a power of two */
#define PROGRESS_MAX  65536u
#define BLOCK_LINES   8 /* of a launcher's block */
#define JOINED_MAX    1024
#define SPEAKER_LINES 6 /* lines without a prefix that belong to the message before */

/* A collective that somebody's watchdog gave up on. */
struct wait {
    uint64_t key; /* group and sequence, 0: free */
    char op[32];
    int64_t numel;
    bool grouped; /* the group was told */
    struct fr_job_finding first;
};

struct process {
    uint64_t key; /* host and pid, 0: free */
    int32_t rank, nranks;
};

struct fr_job_log {
    const struct fr_job_rules *rules;
    struct fr_lines lines;
    struct fr_job_finding *findings;
    size_t nfindings;
    uint16_t *table; /* index + 1 by hash */
    struct fr_job_finding best;
    bool has_best;
    uint64_t dropped, nlines;
    struct wait *waits;
    struct process *processes;
    struct fr_job_progress *progress;
    size_t nprogress;
    /* stretches that are open, by name; one at a time is enough for those there are */
    char stretch[32];
    /* a launcher's block under way */
    struct fr_job_finding *block;
    unsigned block_lines;
    /* who printed the last message that has lines without a prefix behind it ("Last error:") */
    int64_t speaker_rank;
    char speaker_host[64];
    unsigned speaker_lines;
    /* a message that goes on in the next line */
    char joined[JOINED_MAX];
    size_t joined_n;
};

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n) /* FNV-1a */
{
    for (const unsigned char *b = p; n > 0; n--, b++)
        h = (h ^ *b) * 0x100000001b3ull;
    return h;
}

#define HASH_START 0xcbf29ce484222325ull

static void copy(char *to, size_t size, const char *p, size_t n)
{
    if (!p)
        n = 0;
    if (n > size - 1)
        n = size - 1;
    if (n)
        memcpy(to, p, n);
    to[n] = '\0';
}

/* The text behind `mark`, NULL: it is not there. */
static const char *behind(const char *p, size_t n, const char *mark)
{
    const char *at = memmem(p, n, mark, strlen(mark));

    return at ? at + strlen(mark) : NULL;
}

/* The whole number behind `mark`, -1: none. */
static int64_t number_behind(const char *p, size_t n, const char *mark)
{
    const char *at = behind(p, n, mark), *end = p + n;
    int64_t v = 0;

    if (!at || at == end || *at < '0' || *at > '9')
        return -1;
    for (; at < end && *at >= '0' && *at <= '9' && v < INT64_MAX / 16; at++)
        v = v * 10 + (*at - '0');
    return v;
}

/* --- findings --- */

/* Among victims, one that names a peer says more than one that does not; a component below torch
 * knows more than torch, and what a launcher saw comes after both. */
static int certainty(const struct fr_job_verdict *v)
{
    if (v->role == FR_JOB_VICTIM || v->role == FR_JOB_WEAK) {
        if (strncmp(v->family, "nccl", 4) == 0 || strcmp(v->family, "gloo") == 0 ||
            strcmp(v->family, "cuda") == 0)
            return strcmp(v->action, "follow_peer") == 0 ? 0 : 1;
        return strcmp(v->family, "process") == 0 ? 3 : 2;
    }
    return 0;
}

static bool comes_first(const struct fr_job_finding *a, const struct fr_job_finding *b)
{
    int ca = certainty(&a->is), cb = certainty(&b->is);

    if (a->is.role != b->is.role)
        return a->is.role < b->is.role;
    if (ca != cb)
        return ca < cb;
    return a->line_number < b->line_number;
}

static bool is_same(const struct fr_job_finding *a, const struct fr_job_finding *b)
{
    return a->rank == b->rank && strcmp(a->rule, b->rule) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->peer, b->peer) == 0 && strcmp(a->is.signature, b->is.signature) == 0;
}

/* Take a finding: a new one, or one more of an old one. Returns where it is kept, NULL: counted
 * only. */
static struct fr_job_finding *add_finding(struct fr_job_log *log, const struct fr_job_finding *f)
{
    uint64_t h = hash_bytes(HASH_START, f->rule, strlen(f->rule));
    size_t at;

    h = hash_bytes(h, &f->rank, sizeof f->rank);
    h = hash_bytes(h, f->host, strlen(f->host));
    h = hash_bytes(h, f->peer, strlen(f->peer));
    for (at = h % TABLE_SLOTS; log->table[at]; at = (at + 1) % TABLE_SLOTS) {
        struct fr_job_finding *old = &log->findings[log->table[at] - 1];

        if (is_same(old, f)) {
            old->count++;
            old->last_line_number = f->last_line_number;
            return old;
        }
    }
    if (!log->has_best || comes_first(f, &log->best)) {
        log->best = *f;
        log->has_best = true;
    }
    if (log->nfindings == FR_JOB_FINDINGS_MAX) {
        log->dropped++;
        return NULL;
    }
    log->findings[log->nfindings] = *f;
    log->table[at] = (uint16_t)++log->nfindings;
    return &log->findings[log->nfindings - 1];
}

/* --- ranks of processes --- */

static struct process *process_of(struct fr_job_log *log, const struct fr_job_prefix *pre)
{
    uint64_t h = hash_bytes(HASH_START, pre->host, pre->host_n);
    size_t at, steps = 0;

    h = hash_bytes(h, &pre->pid, sizeof pre->pid) | 1;
    if (!log->processes)
        log->processes = fr_xcalloc(PROCS_MAX, sizeof *log->processes);
    for (at = h % PROCS_MAX; log->processes[at].key && steps < 64;
         at = (at + 1) % PROCS_MAX, steps++)
        if (log->processes[at].key == h)
            return &log->processes[at];
    if (log->processes[at].key)
        return NULL; /* full thereabouts */
    log->processes[at] = (struct process){.key = h, .rank = -1};
    return &log->processes[at];
}

/* "... rank 3 nranks 16 cudaDev 3 ...": the widest communicator's rank is the job's. */
static void learn_rank(struct fr_job_log *log, const struct fr_job_prefix *pre, const char *p,
                       size_t n)
{
    int64_t nranks = number_behind(p, n, " nranks "), rank = number_behind(p, n, " rank ");
    struct process *pr;

    if (nranks <= 0 || rank < 0 || rank >= nranks || nranks > INT32_MAX || pre->pid < 0)
        return;
    pr = process_of(log, pre);
    if (pr && nranks > pr->nranks) {
        pr->rank = (int32_t)rank;
        pr->nranks = (int32_t)nranks;
    }
}

static int64_t rank_of(struct fr_job_log *log, const struct fr_job_prefix *pre)
{
    struct process *pr;

    if (pre->rank >= 0)
        return pre->rank;
    if (pre->nccl && pre->pid >= 0 && log->processes) {
        pr = process_of(log, pre);
        if (pr && pr->rank >= 0)
            return pr->rank;
    }
    return pre->task;
}

/* --- what takes more than one line --- */

/* Two watchdogs gave up on one sequence of one group, in other operations. */
static void compare_waits(struct fr_job_log *log, const char *p, size_t n,
                          const struct fr_job_finding *f)
{
    int64_t seq = number_behind(p, n, "SeqNum="), numel = number_behind(p, n, "NumelIn=");
    const char *op = behind(p, n, "OpType="), *group = behind(p, n, "PG GUID "), *end = p + n,
               *stop;
    struct wait now = {.numel = numel, .first = *f}, *w;
    uint64_t h = HASH_START;

    if (seq < 0 || !op)
        return;
    if (!group)
        group = behind(p, n, "[PG ");
    stop = group ? memmem(group, (size_t)(end - group), " Rank ", 6) : NULL;
    if (stop && group[0] != 'I')
        h = hash_bytes(h, group, (size_t)(stop - group));
    now.grouped = stop != NULL;
    h = hash_bytes(h, &seq, sizeof seq) | 1;
    copy(now.op, sizeof now.op, op, strcspn(op, ",) "));
    if (!log->waits)
        log->waits = fr_xcalloc(WAITS_MAX, sizeof *log->waits);
    w = &log->waits[h % WAITS_MAX];
    if (w->key != h) {
        *w = now;
        w->key = h;
        return;
    }
    /* Sizes differ by right in some operations, and between groups that were not told apart. */
    if (strcmp(w->op, now.op) == 0 &&
        (!now.grouped || w->numel == now.numel || numel < 0 ||
         (strcmp(now.op, "ALLREDUCE") != 0 && strcmp(now.op, "BROADCAST") != 0)))
        return;
    now.first = w->first;
    copy(now.first.rule, sizeof now.first.rule, "torch.mismatch", 14);
    now.first.is = (struct fr_job_verdict){.role = FR_JOB_CAUSE,
                                           .family = "torch",
                                           .blame = "app",
                                           .signature = "collective_mismatch",
                                           .action = "fix_job"};
    now.first.last_line_number = f->line_number;
    snprintf(now.first.peer, sizeof now.first.peer, "rank %lld", (long long)f->rank);
    add_finding(log, &now.first);
}

static void note_progress(struct fr_job_log *log, const char *p, size_t n, int64_t rank)
{
    int64_t enqueued = number_behind(p, n, "last enqueued NCCL work: "),
            completed = number_behind(p, n, "last completed NCCL work: ");

    /* Only the widest group is compared over ranks. */
    if (memmem(p, n, "PG GUID ", 8) && !memmem(p, n, "(default_pg)", 12))
        return;
    if (enqueued < 0)
        enqueued = number_behind(p, n, "last enqueued work: ");
    if (completed < 0)
        completed = number_behind(p, n, "last completed work: ");
    if (rank < 0 || enqueued < 0)
        return;
    if (!log->progress)
        log->progress = fr_xcalloc(PROGRESS_MAX, sizeof *log->progress);
    for (size_t i = log->nprogress; i-- > 0 && log->nprogress - i < 256;)
        if (log->progress[i].rank == rank) {
            log->progress[i] = (struct fr_job_progress){rank, enqueued, completed};
            return;
        }
    if (log->nprogress < PROGRESS_MAX)
        log->progress[log->nprogress++] = (struct fr_job_progress){rank, enqueued, completed};
}

/* "host      : gpu-013", "rank      : 21 (local_rank: 5)": what follows a launcher's title. */
static void read_block(struct fr_job_log *log, const char *p, size_t n)
{
    const char *colon = memchr(p, ':', n), *v, *end = p + n;
    size_t word = strcspn(p, " :") < n ? strcspn(p, " :") : n;

    if (log->block_lines == 0)
        return;
    if (--log->block_lines == 0 || !colon || colon + 1 >= end) {
        if (log->block_lines == 0)
            log->block = NULL;
        return;
    }
    for (v = colon + 1; v < end && *v == ' '; v++)
        ;
    if (word == 4 && memcmp(p, "host", 4) == 0) {
        size_t len = 0;

        while (v + len < end && v[len] != ' ')
            len++;
        copy(log->block->host, sizeof log->block->host, v, len);
    } else if (word == 4 && memcmp(p, "rank", 4) == 0 && v < end && *v >= '0' && *v <= '9') {
        log->block->rank = number_behind(v - 1, (size_t)(end - v) + 1, v[-1] == ' ' ? " " : ":");
        log->block->last_line_number = log->nlines;
    }
}

static void start_block(struct fr_job_log *log, struct fr_job_finding *f)
{
    log->block = f;
    log->block_lines = f && strcmp(f->is.signature, "first_failure") == 0 ? BLOCK_LINES : 0;
}

/* --- a line --- */

static void judge(struct fr_job_log *log, const char *p, size_t n, uint64_t number)
{
    const struct fr_job_within *within;
    struct fr_job_prefix pre;
    struct fr_job_match m;
    struct fr_job_finding f;
    bool read;
    int fits;

    fits = fr_job_rules_match(log->rules, p, n, &pre, &read, &m);
    if (!read && (log->speaker_lines || log->block_lines))
        fr_job_prefix_read(p, n, &pre);
    if (log->speaker_lines)
        log->speaker_lines = pre.message || n == 0 ? 0 : log->speaker_lines - 1;
    if (log->block_lines)
        read_block(log, p + pre.message, n - pre.message);
    if (!fits || m.rule->is.role == FR_JOB_IGNORE)
        return;
    if (m.rule->is.role == FR_JOB_LEARN) {
        learn_rank(log, &pre, p + pre.message, n - pre.message);
        return;
    }
    if (m.rule->is.role == FR_JOB_OPEN || m.rule->is.role == FR_JOB_CLOSE) {
        if (m.rule->is.role == FR_JOB_OPEN)
            memcpy(log->stretch, m.rule->id, sizeof log->stretch);
        else if (strcmp(log->stretch, m.rule->id) == 0)
            log->stretch[0] = '\0';
        return;
    }
    f = (struct fr_job_finding){
        .is = m.rule->is, .line_number = number, .last_line_number = number, .count = 1};
    memcpy(f.rule, m.rule->id, sizeof f.rule);
    f.rank = m.rank >= 0 ? m.rank : rank_of(log, &pre);
    copy(f.host, sizeof f.host, m.host ? m.host : pre.host, m.host ? m.host_n : pre.host_n);
    copy(f.peer, sizeof f.peer, m.peer, m.peer_n);
    copy(f.text, sizeof f.text, p, n);
    if (log->speaker_lines && f.rank < 0)
        f.rank = log->speaker_rank;
    if (log->speaker_lines && !f.host[0])
        memcpy(f.host, log->speaker_host, sizeof f.host);
    if (pre.message) {
        log->speaker_lines = SPEAKER_LINES;
        log->speaker_rank = f.rank;
        memcpy(log->speaker_host, f.host, sizeof f.host);
    }
    if (strcmp(f.is.signature, "collective_timeout") == 0)
        compare_waits(log, p, n, &f);
    if (strcmp(f.is.signature, "watchdog_progress") == 0)
        note_progress(log, p, n, f.rank);
    within = log->stretch[0] ? fr_job_rules_within(log->rules, log->stretch, f.is.signature) : NULL;
    if (within) {
        char family[sizeof f.is.family];

        memcpy(family, f.is.family, sizeof family);
        f.is = within->is;
        memcpy(f.is.family, family, sizeof family);
    }
    start_block(log, add_finding(log, &f));
}

/* PRRTE breaks its sentence: "... on node gpu-2 exited on" / "signal 9 (Killed)." */
static bool goes_on(const char *p, size_t n)
{
    static const char END[] = " exited on";

    while (n && p[n - 1] == ' ')
        n--;
    return n > sizeof END && n < JOINED_MAX / 2 &&
           memcmp(p + n - (sizeof END - 1), END, sizeof END - 1) == 0;
}

static int on_line(const char *p, size_t n, uint64_t number, void *arg)
{
    struct fr_job_log *log = arg;

    log->nlines = number;
    if (log->joined_n) {
        struct fr_job_prefix pre;
        size_t at = log->joined_n, len;

        fr_job_prefix_read(p, n, &pre);
        len = n - pre.message < JOINED_MAX - at - 1 ? n - pre.message : JOINED_MAX - at - 1;
        log->joined[at++] = ' ';
        memcpy(log->joined + at, p + pre.message, len);
        log->joined_n = 0;
        judge(log, log->joined, at + len, number - 1);
        return 0;
    }
    if (n && goes_on(p, n)) {
        while (n && p[n - 1] == ' ')
            n--;
        memcpy(log->joined, p, n);
        log->joined_n = n;
        return 0;
    }
    judge(log, p, n, number);
    return 0;
}

/* --- the whole --- */

struct fr_job_log *fr_job_log_new(const struct fr_job_rules *rules)
{
    struct fr_job_log *log = fr_xalloc(sizeof *log);

    log->rules = rules;
    log->findings = fr_xcalloc(FR_JOB_FINDINGS_MAX, sizeof *log->findings);
    log->table = fr_xcalloc(TABLE_SLOTS, sizeof *log->table);
    fr_lines_init(&log->lines, on_line, log);
    return log;
}

void fr_job_log_free(struct fr_job_log *log)
{
    if (!log)
        return;
    fr_lines_fini(&log->lines);
    free(log->findings);
    free(log->table);
    free(log->waits);
    free(log->processes);
    free(log->progress);
    free(log);
}

int fr_job_log_feed(struct fr_job_log *log, const char *p, size_t n)
{
    return fr_lines_feed(&log->lines, p, n);
}

static int by_line(const void *a, const void *b)
{
    const struct fr_job_finding *x = a, *y = b;

    return (x->line_number > y->line_number) - (x->line_number < y->line_number);
}

static int by_enqueued(const void *a, const void *b)
{
    const struct fr_job_progress *x = a, *y = b;

    if (x->enqueued != y->enqueued)
        return x->enqueued < y->enqueued ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

void fr_job_log_end(struct fr_job_log *log)
{
    size_t first = FR_JOB_FINDINGS_MAX;

    fr_lines_end(&log->lines);
    if (log->joined_n) {
        judge(log, log->joined, log->joined_n, log->nlines);
        log->joined_n = 0;
    }
    log->block = NULL;
    log->block_lines = 0;
    if (log->nfindings)
        qsort(log->findings, log->nfindings, sizeof *log->findings, by_line);
    for (size_t i = 0; i < log->nfindings; i++)
        if (first == FR_JOB_FINDINGS_MAX || comes_first(&log->findings[i], &log->findings[first]))
            first = i;
    if (log->dropped && comes_first(&log->best, &log->findings[first])) {
        first = log->nfindings - 1; /* the last makes room for what counts */
        log->findings[first] = log->best;
    }
    if (first < FR_JOB_FINDINGS_MAX) {
        struct fr_job_finding f = log->findings[first];

        memmove(log->findings + 1, log->findings, first * sizeof f);
        log->findings[0] = f;
    }
    if (log->nprogress)
        qsort(log->progress, log->nprogress, sizeof *log->progress, by_enqueued);
}

const struct fr_job_finding *fr_job_log_findings(const struct fr_job_log *log, size_t *ret_n)
{
    *ret_n = log->nfindings;
    return log->findings;
}

const struct fr_job_finding *fr_job_log_first(const struct fr_job_log *log)
{
    return log->nfindings ? &log->findings[0] : NULL;
}

const struct fr_job_progress *fr_job_log_progress(const struct fr_job_log *log, size_t *ret_n)
{
    *ret_n = log->nprogress;
    return log->progress;
}

uint64_t fr_job_log_lines(const struct fr_job_log *log)
{
    return log->nlines;
}

uint64_t fr_job_log_dropped(const struct fr_job_log *log)
{
    return log->dropped;
}
