/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c - see writer.h */
#include "store/writer.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "store/rows.h"
#include "store/schema.h"

#define NS_PER_MS 1000000ull
/* Half of what a row may wait is for gathering, half for the disk. */
#define GATHER_NS (FR_LEDGER_COMMIT_MS * NS_PER_MS / 2)
#define RETRY_NS  (1000 * NS_PER_MS)
/* One transaction: large enough to make the sync cheap, small enough to be felt by nobody. */
#define BATCH_ROWS 8192
#define PRUNE_ROWS 2000

/* Delete up to ?2 rows that ended before ?1 of jobs that ended before it too. */
#define PRUNE_SQL(TABLE, KEY)                                                                      \
    "DELETE FROM " TABLE " WHERE (" KEY ") IN (SELECT " KEY " FROM " TABLE                         \
    " WHERE end_unix_ns < ?1"                                                                      \
    " AND job IN (SELECT job FROM jobs WHERE ended_unix_ns > 0 AND ended_unix_ns < ?1) LIMIT ?2)"

static const char *const PRUNES[2] = {
    PRUNE_SQL("steps", "job, attempt, step"),
    PRUNE_SQL("spans", "job, attempt, phase, begin_unix_ns"),
};

static struct timespec at_ns(uint64_t mono_ns)
{
    return (struct timespec){.tv_sec = (time_t)(mono_ns / 1000000000ull),
                             .tv_nsec = (long)(mono_ns % 1000000000ull)};
}

/* Wait on a condition until a monotonic time, UINT64_MAX: for ever. Returns non-zero when the time
 * is over. */
static int wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t mono_ns)
{
    struct timespec ts = at_ns(mono_ns);

    if (mono_ns == UINT64_MAX)
        return pthread_cond_wait(cond, mutex);
    return pthread_cond_timedwait(cond, mutex, &ts) == ETIMEDOUT;
}

void fr_writer_init(struct fr_ledger *lg)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&lg->mutex, NULL);
    pthread_cond_init(&lg->work, &monotonic);
    pthread_cond_init(&lg->room, &monotonic);
    pthread_cond_init(&lg->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* --- the writer thread --- */

static int run(sqlite3_stmt *st)
{
    int rc = sqlite3_step(st), rc2 = sqlite3_reset(st);

    return rc == SQLITE_DONE ? rc2 : rc;
}

static int insert_rows(struct fr_ledger *lg, const struct fr_queued *q,
                       const struct fr_queued *last)
{
    for (;; q = q->next) {
        sqlite3_stmt *st = lg->insert[q->kind];
        int rc = fr_table_bind(fr_table_of(q->kind), st, q->row);

        if (rc == SQLITE_OK)
            rc = run(st);
        if (rc != SQLITE_OK || q == last)
            return rc;
    }
}

static int delete_rows(struct fr_ledger *lg, int64_t before_unix_ns, uint64_t *ret_deleted)
{
    uint64_t deleted = 0;

    for (size_t i = 0; i < 2; i++) {
        int rc;

        sqlite3_bind_int64(lg->prune[i], 1, before_unix_ns);
        sqlite3_bind_int64(lg->prune[i], 2, PRUNE_ROWS);
        rc = run(lg->prune[i]);
        if (rc != SQLITE_OK)
            return rc;
        deleted += (uint64_t)sqlite3_changes(lg->db);
    }
    *ret_deleted = deleted;
    return SQLITE_OK;
}

/* End the transaction by what became of its statements. Returns 0 or a negative errno with the
 * reason in why. */
static int end_transaction(struct fr_ledger *lg, int rc, char *why, size_t why_bytes)
{
    int errnum;

    if (rc == SQLITE_OK)
        rc = run(lg->commit);
    if (rc == SQLITE_OK)
        return 0;
    errnum = -fr_db_errno(lg->db, rc);
    snprintf(why, why_bytes, "%s, %s", strerror(errnum), sqlite3_errmsg(lg->db));
    if (!sqlite3_get_autocommit(lg->db)) /* some errors have rolled back already */
        sqlite3_exec(lg->db, "ROLLBACK", NULL, NULL, NULL);
    return -errnum;
}

static void begin_trouble(struct fr_ledger *lg, int rc, const char *why)
{
    /* Once a trouble, not once a try; the object's own log line, as nobody calls us here. */
    if (!lg->trouble)
        fr_log(FR_LOG_ERROR, "ledger.trouble", "ledger=%s errno=%d queued=%llu why=%s", lg->path,
               -rc, (unsigned long long)lg->stats.queued_rows, why);
    lg->trouble = rc;
    snprintf(lg->why, sizeof lg->why, "%s", why);
    lg->stats.failed_commits++;
    lg->retry_ns = fr_mono_ns() + RETRY_NS;
}

static void end_trouble(struct fr_ledger *lg)
{
    if (lg->trouble)
        fr_log(FR_LOG_NOTICE, "ledger.recovered", "ledger=%s queued=%llu", lg->path,
               (unsigned long long)lg->stats.queued_rows);
    lg->trouble = 0;
    lg->retry_ns = 0;
}

/* Commit the first rows of the queue. With the mutex held on entry and exit, not in between. */
static int commit_group(struct fr_ledger *lg)
{
    struct fr_queued *first = lg->head, *last = first, *rest;
    uint64_t rows = 1, bytes = first->bytes, durable;
    char why[256];
    int rc;

    for (; last != lg->tail && rows < BATCH_ROWS; rows++) {
        last = last->next;
        bytes += last->bytes;
    }
    pthread_mutex_unlock(&lg->mutex);
    rc = run(lg->begin);
    if (rc == SQLITE_OK)
        rc = insert_rows(lg, first, last);
    rc = end_transaction(lg, rc, why, sizeof why);
    pthread_mutex_lock(&lg->mutex);

    if (rc < 0) {
        begin_trouble(lg, rc, why);
        pthread_cond_broadcast(&lg->done);
        pthread_cond_broadcast(&lg->room); /* droppable rows stop waiting */
        return rc;
    }
    lg->head = last == lg->tail ? NULL : last->next;
    if (!lg->head)
        lg->tail = NULL;
    durable = lg->durable_n = last->n;
    lg->stats.queued_rows -= rows;
    lg->stats.queued_bytes -= bytes;
    lg->stats.committed += rows;
    lg->stats.commits++;
    end_trouble(lg);
    pthread_cond_broadcast(&lg->done);
    pthread_cond_broadcast(&lg->room);
    pthread_mutex_unlock(&lg->mutex);

    if (lg->on_commit)
        lg->on_commit(durable, lg->on_commit_arg);
    for (; first != last; first = rest) {
        rest = first->next;
        free(first);
    }
    free(last);
    pthread_mutex_lock(&lg->mutex);
    return 0;
}

static void prune_group(struct fr_ledger *lg)
{
    int64_t before_unix_ns = lg->prune_before_unix_ns;
    uint64_t deleted = 0;
    char why[256];
    int rc;

    pthread_mutex_unlock(&lg->mutex);
    rc = run(lg->begin);
    if (rc == SQLITE_OK)
        rc = delete_rows(lg, before_unix_ns, &deleted);
    rc = end_transaction(lg, rc, why, sizeof why);
    pthread_mutex_lock(&lg->mutex);

    if (rc < 0) {
        begin_trouble(lg, rc, why);
        return;
    }
    end_trouble(lg);
    lg->stats.pruned += deleted;
    if (deleted == 0 && lg->prune_before_unix_ns == before_unix_ns)
        lg->prune_before_unix_ns = 0;
}

/* When the next group is to be committed: 0 at once, UINT64_MAX when there is none. */
static uint64_t due_ns(const struct fr_ledger *lg)
{
    if (lg->closing)
        return 0;
    if (lg->retry_ns)
        return lg->retry_ns;
    if (!lg->head)
        return UINT64_MAX;
    if (lg->wanted_n > lg->durable_n || lg->stats.queued_rows >= FR_LEDGER_GROUP_ROWS)
        return 0;
    return lg->head->came_ns + GATHER_NS;
}

static void *write_rows(void *arg)
{
    struct fr_ledger *lg = arg;

    pthread_mutex_lock(&lg->mutex);
    for (;;) {
        uint64_t due = due_ns(lg);

        if (due > fr_mono_ns()) {
            if (lg->prune_before_unix_ns && !lg->retry_ns)
                prune_group(lg);
            else
                wait_until(&lg->work, &lg->mutex, due);
        } else if (lg->head) {
            int rc = commit_group(lg);

            if (lg->closing && rc < 0)
                break; /* that was the last try */
            if (rc == 0 && lg->prune_before_unix_ns && !lg->closing)
                prune_group(lg); /* it must not starve under load */
        } else if (lg->closing) {
            break;
        } else { /* a prune is tried again */
            lg->retry_ns = 0;
            if (!lg->prune_before_unix_ns)
                end_trouble(lg);
        }
    }
    pthread_mutex_unlock(&lg->mutex);
    return NULL;
}

static int prepare(struct fr_ledger *lg, const char *sql, sqlite3_stmt **ret, struct fr_err *err)
{
    int rc = sqlite3_prepare_v3(lg->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);

    if (rc == SQLITE_OK)
        return 0;
    return fr_fail(
        err, fr_db_errno(lg->db, rc),
        "%s: ledger has not the tables of its schema (%s); nothing was changed (restore a copy, or"
        " give another --state)",
        lg->path, sqlite3_errmsg(lg->db));
}

static int prepare_all(struct fr_ledger *lg, struct fr_err *err)
{
    int rc;

    if ((rc = prepare(lg, "BEGIN IMMEDIATE", &lg->begin, err)) < 0 ||
        (rc = prepare(lg, "COMMIT", &lg->commit, err)) < 0)
        return rc;
    for (size_t i = 0; i < 2; i++)
        if ((rc = prepare(lg, PRUNES[i], &lg->prune[i], err)) < 0)
            return rc;
    for (int kind = 0; kind < FR_ROW_KINDS; kind++) {
        const struct fr_table *t = fr_table_of((enum fr_row_kind)kind);
        FR_CLEANUP(fr_buf_fini) struct fr_buf sql = FR_BUF_INIT;

        if (!t)
            continue;
        fr_table_insert_sql(t, &sql);
        if ((rc = prepare(lg, fr_buf_str(&sql), &lg->insert[kind], err)) < 0)
            return rc;
    }
    return 0;
}

int fr_writer_start(struct fr_ledger *lg, struct fr_err *err)
{
    sigset_t all, old;
    int rc = prepare_all(lg, err);

    if (rc < 0)
        return rc;
    /* No signal is for this thread: the program's handlers run elsewhere, and a file size limit is
     * then an error of a write instead of the end of the program (SIGXFSZ). */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&lg->thread, NULL, write_rows, lg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        return fr_fail(err, -rc, "%s: cannot start the ledger's thread: %s", lg->path,
                       strerror(rc));
    lg->started = 1;
    return 0;
}

void fr_writer_stop(struct fr_ledger *lg)
{
    if (lg->started) {
        pthread_mutex_lock(&lg->mutex);
        lg->closing = 1;
        pthread_cond_signal(&lg->work);
        pthread_mutex_unlock(&lg->mutex);
        pthread_join(lg->thread, NULL);
        lg->started = 0;
    }
    if (lg->stats.queued_rows)
        fr_log(FR_LOG_ERROR, "ledger.lost", "ledger=%s rows=%llu why=%s", lg->path,
               (unsigned long long)lg->stats.queued_rows, lg->why);
    while (lg->head) {
        struct fr_queued *next = lg->head->next;

        free(lg->head);
        lg->head = next;
    }
    sqlite3_finalize(lg->begin);
    sqlite3_finalize(lg->commit);
    for (size_t i = 0; i < 2; i++)
        sqlite3_finalize(lg->prune[i]);
    for (int kind = 0; kind < FR_ROW_KINDS; kind++)
        sqlite3_finalize(lg->insert[kind]);
}

/* --- its callers --- */

static bool may_drop(enum fr_row_kind kind)
{
    return kind == FR_ROW_STEP || kind == FR_ROW_SPAN;
}

static bool has_room(const struct fr_ledger *lg, const struct fr_queued *q)
{
    uint64_t rows = FR_LEDGER_QUEUE_ROWS, bytes = FR_LEDGER_QUEUE_BYTES;

    if (may_drop(q->kind)) {
        rows -= rows / 4;
        bytes -= bytes / 4;
    }
    return !lg->head ||
           (lg->stats.queued_rows < rows && lg->stats.queued_bytes + q->bytes <= bytes);
}

/* Wait for room by the rules of the row's kind. Returns whether the row may enter. */
static bool wait_for_room(struct fr_ledger *lg, const struct fr_queued *q)
{
    uint64_t start_ns, limit_ns = UINT64_MAX;

    if (has_room(lg, q))
        return true;
    start_ns = fr_mono_ns();
    if (may_drop(q->kind))
        limit_ns = start_ns + FR_LEDGER_BLOCK_MS * NS_PER_MS;
    lg->stats.waits++;
    while (!has_room(lg, q)) {
        if (may_drop(q->kind) && lg->trouble)
            break;
        if (wait_until(&lg->room, &lg->mutex, limit_ns))
            break;
    }
    lg->stats.waited_s += (double)(fr_mono_ns() - start_ns) * 1e-9;
    return has_room(lg, q);
}

uint64_t fr_ledger_append(struct fr_ledger *lg, enum fr_row_kind kind, const void *row)
{
    const struct fr_table *t = fr_table_of(kind);
    struct fr_queued *q;
    size_t bytes;
    unsigned cut;
    uint64_t n;

    assert(t);
    bytes = sizeof *q + fr_table_copy_bytes(t, row);
    q = fr_xalloc(bytes);
    cut = fr_table_copy(t, row, q->row);
    q->kind = kind;
    q->bytes = bytes;
    pthread_mutex_lock(&lg->mutex);
    if (!wait_for_room(lg, q)) {
        ++*(kind == FR_ROW_STEP ? &lg->stats.dropped_steps : &lg->stats.dropped_spans);
        pthread_mutex_unlock(&lg->mutex);
        free(q);
        return 0;
    }
    n = q->n = ++lg->last_n;
    q->came_ns = fr_mono_ns();
    if (lg->tail)
        lg->tail->next = q;
    else
        lg->head = q;
    lg->tail = q;
    lg->stats.appended++;
    lg->stats.cut_texts += cut;
    lg->stats.queued_rows++;
    lg->stats.queued_bytes += bytes;
    /* Only a first row or a full group changes when the writer is due. */
    if (lg->head == q || lg->stats.queued_rows == FR_LEDGER_GROUP_ROWS)
        pthread_cond_signal(&lg->work);
    pthread_mutex_unlock(&lg->mutex);
    return n;
}

uint64_t fr_ledger_durable(struct fr_ledger *lg)
{
    uint64_t n;

    pthread_mutex_lock(&lg->mutex);
    n = lg->durable_n;
    pthread_mutex_unlock(&lg->mutex);
    return n;
}

/* With the mutex held. */
static int say_trouble(const struct fr_ledger *lg, int rc, struct fr_err *err)
{
    unsigned long long rows = lg->stats.queued_rows;

    if (lg->trouble == -ENOSPC || lg->trouble == -EDQUOT)
        return fr_fail(
            err, rc,
            "disk full: ledger %s cannot grow, %llu rows wait and are tried again each second (make"
            " room on its file system)",
            lg->path, rows);
    return fr_fail(err, rc,
                   "cannot write: ledger %s, %llu rows wait and are tried again each second: %s",
                   lg->path, rows, lg->why);
}

int fr_ledger_wait(struct fr_ledger *lg, uint64_t n, double limit_s, struct fr_err *err)
{
    uint64_t limit_ns = UINT64_MAX, failed;
    int rc = 0;

    if (n == 0)
        return fr_fail(err, -EIO, "ledger %s: the row was dropped, its queue was full", lg->path);
    if (limit_s < 1e9) /* else for ever */
        limit_ns = fr_mono_ns() + (limit_s > 0 ? (uint64_t)(limit_s * 1e9) : 0);
    pthread_mutex_lock(&lg->mutex);
    failed = lg->stats.failed_commits;
    if (n > lg->wanted_n) {
        lg->wanted_n = n;
        pthread_cond_signal(&lg->work);
    }
    while (lg->durable_n < n && rc == 0) {
        if (lg->trouble && lg->stats.failed_commits != failed)
            rc = say_trouble(lg, -EIO, err);
        else if (wait_until(&lg->done, &lg->mutex, limit_ns) && lg->durable_n < n)
            rc = lg->trouble ? say_trouble(lg, -EIO, err)
                             : fr_fail(err, -ETIMEDOUT, "ledger %s: not on the disk within %g s",
                                       lg->path, limit_s);
    }
    pthread_mutex_unlock(&lg->mutex);
    return rc;
}

void fr_ledger_on_commit(struct fr_ledger *lg, void (*fn)(uint64_t durable, void *arg), void *arg)
{
    pthread_mutex_lock(&lg->mutex); /* the first append's lock publishes it to the writer */
    lg->on_commit = fn;
    lg->on_commit_arg = arg;
    pthread_mutex_unlock(&lg->mutex);
}

int fr_ledger_trouble(struct fr_ledger *lg, struct fr_err *err)
{
    int rc;

    pthread_mutex_lock(&lg->mutex);
    rc = lg->trouble;
    if (rc)
        say_trouble(lg, rc, err);
    pthread_mutex_unlock(&lg->mutex);
    return rc;
}

void fr_ledger_stats(struct fr_ledger *lg, struct fr_ledger_stats *ret)
{
    pthread_mutex_lock(&lg->mutex);
    *ret = lg->stats;
    ret->pruning = lg->prune_before_unix_ns != 0;
    pthread_mutex_unlock(&lg->mutex);
}

void fr_ledger_prune(struct fr_ledger *lg, int64_t older_than_unix_ns)
{
    pthread_mutex_lock(&lg->mutex);
    lg->prune_before_unix_ns = older_than_unix_ns;
    pthread_cond_signal(&lg->work);
    pthread_mutex_unlock(&lg->mutex);
}
