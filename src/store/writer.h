/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the inside of a ledger: the queue of rows, and the thread that commits them in groups
 *
 * A row enters at the tail and stays queued until the transaction that holds it is on the disk; so
 * a failed commit loses nothing, and doing it again is harmless because rows are idempotent. The
 * numbers of rows rise in the order of the queue: "durable up to n" is one number.
 *
 * Threads: `mutex` guards everything below it; the connection and its statements belong to the
 * opener until fr_writer_start and to the writer thread from then on. The writer walks its group
 * without the mutex: rows in front of the tail are not touched by anybody else.
 */
#ifndef FR_STORE_WRITER_H
#define FR_STORE_WRITER_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/ledger.h"
#include "store/lock.h"

struct fr_queued {
    struct fr_queued *next;
    uint64_t n, came_ns;
    size_t bytes;
    enum fr_row_kind kind;
    _Alignas(16) char row[]; /* the struct, then its texts */
};

struct fr_ledger {
    char *path;
    struct fr_lock lock;
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *insert[FR_ROW_KINDS], *prune[2];
    pthread_t thread;
    int started;

    pthread_mutex_t mutex;
    pthread_cond_t work; /* to the writer: a row, a waiter, the end */
    pthread_cond_t room; /* to appends that wait for room */
    pthread_cond_t done; /* to fr_ledger_wait: a commit, or a failed try */
    struct fr_queued *head, *tail;
    uint64_t last_n, durable_n, wanted_n; /* newest row, newest on disk, newest waited for */
    uint64_t retry_ns;                    /* after a failed try: not before this time */
    int64_t prune_before_unix_ns;         /* 0: nothing to prune */
    int closing;
    int trouble; /* 0 or the negative errno of the last try */
    char why[256];
    void (*on_commit)(uint64_t durable, void *arg);
    void *on_commit_arg;
    struct fr_ledger_stats stats;
};

void fr_writer_init(struct fr_ledger *lg);
/* Prepare the statements and start the thread. */
int fr_writer_start(struct fr_ledger *lg, struct fr_err *err);
/* Commit what is queued (one last try when in trouble), end the thread, free the queue and the
 * statements. */
void fr_writer_stop(struct fr_ledger *lg);

#endif /* FR_STORE_WRITER_H */
