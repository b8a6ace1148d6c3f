/* SPDX-License-Identifier: Apache-2.0 */
/* test_durable.c - what was said to be on the disk is there, after SIGKILL and after the disk was
 * full */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "helper.h"

static int is_whole(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *st;
    int ok;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL), SQLITE_OK);
    ok = sqlite3_step(st) == SQLITE_ROW &&
         strcmp((const char *)sqlite3_column_text(st, 0), "ok") == 0;
    sqlite3_finalize(st);
    sqlite3_close(db);
    return ok;
}

/* Append rows for ever; write each number to the pipe once it is said to be durable. Several rows
 * to a wait, so that the kill falls into groups too. */
static void append_until_killed(int out, uint64_t first, struct fr_rng *r)
{
    struct fr_ledger *lg = must_open(file);

    for (uint64_t s = first;;) {
        uint64_t last = s + 1 + fr_rng_below(r, 40), n = 0;

        for (; s < last; s++) {
            struct fr_row_step row = step_row("kill", s);
            struct fr_row_decision d = {.id = s, .job = "kill", .reason = "because"};

            fr_ledger_append(lg, FR_ROW_STEP, &row);
            n = fr_ledger_append(lg, FR_ROW_DECISION, &d);
        }
        if (fr_ledger_wait(lg, n, 30, NULL) < 0)
            _exit(1);
        s = last;
        last--;
        if (write(out, &last, sizeof last) != sizeof last)
            _exit(1);
    }
}

static void kill_9_at_any_moment_loses_nothing_that_was_acknowledged(void **state)
{
    struct fr_rng r = {99};
    uint64_t acknowledged = 0;

    (void)state;
    for (int repeat = 0; repeat < 30; repeat++) {
        uint64_t first = acknowledged + 1, got;
        int out[2], status;
        struct timespec moment = {.tv_nsec = (long)fr_rng_below(&r, 60000000)};
        pid_t pid;

        assert_int_equal(pipe(out), 0);
        pid = fork();
        if (pid == 0) {
            struct fr_rng mine = {(uint64_t)repeat};

            close(out[0]);
            append_until_killed(out[1], first, &mine);
        }
        close(out[1]);
        /* The first acknowledgement shows that it is at work (or, each fifth time, kill it even
         * while it opens). */
        if (repeat % 5 && read(out[0], &got, sizeof got) == sizeof got)
            acknowledged = got;
        nanosleep(&moment, NULL); /* the random moment itself: nothing is waited for */
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        while (read(out[0], &got, sizeof got) == sizeof got)
            acknowledged = got;
        close(out[0]);

        fr_ledger_close(must_open(file));
        assert_true(is_whole(file));
        /* Counting from 1 without a gap up to the acknowledged one, in both tables. */
        {
            char sql[200];

            snprintf(sql, sizeof sql, "SELECT count(*) FROM steps WHERE step <= %llu",
                     (unsigned long long)acknowledged);
            assert_int_equal(ask_integer(file, sql), acknowledged);
            snprintf(sql, sizeof sql, "SELECT count(*) FROM decisions WHERE id <= %llu",
                     (unsigned long long)acknowledged);
            assert_int_equal(ask_integer(file, sql), acknowledged);
        }
    }
    assert_true(acknowledged > 0);
}

static int is_in_trouble(void *arg)
{
    return fr_ledger_trouble(arg, NULL) != 0;
}

static uint64_t append_incident(struct fr_ledger *lg, uint64_t id, const char *evidence)
{
    struct fr_row_incident row = {.id = id, .job = "full", .kind = "hang", .evidence = evidence};

    return fr_ledger_append(lg, FR_ROW_INCIDENT, &row);
}

/* Append until the disk is full, take back the limit, and all that was queued arrives. */
static void fill_and_recover(struct fr_ledger *lg, int code, const char *words,
                             void (*make_room)(void *), void *arg)
{
    static char evidence[20001];
    struct fr_err err = FR_ERR_INIT;
    struct fr_ledger_stats stats;
    uint64_t n = 0, durable;

    memset(evidence, 'e', sizeof evidence - 1);
    while (!fr_ledger_trouble(lg, &err)) {
        n = append_incident(lg, n + 1, evidence);
        if (n % 8 == 0)
            fr_ledger_wait(lg, n, 30, NULL);
        assert_in_range(n, 1, 20000);
    }
    assert_int_equal(fr_ledger_trouble(lg, &err), code);
    if (!strstr(err.text, words) || !strstr(err.text, "runs.db") || strchr(err.text, '\n'))
        fail_msg("%s", err.text);
    durable = fr_ledger_durable(lg);
    assert_true(durable < n);
    for (int i = 0; i < 100; i++)
        n = append_incident(lg, n + 1, evidence);
    err.text[0] = '\0';
    assert_int_equal(fr_ledger_wait(lg, n, 10, &err), -EIO);
    assert_non_null(strstr(err.text, words));
    /* What was acknowledged can still be read. */
    assert_true(count_rows(file, FR_ROW_INCIDENT) >= durable);

    make_room(arg);
    while (fr_ledger_wait(lg, n, 10, NULL) == -EIO)
        ;
    assert_int_equal(fr_ledger_trouble(lg, NULL), 0);
    assert_int_equal(fr_ledger_durable(lg), n);
    assert_int_equal(count_rows(file, FR_ROW_INCIDENT), n);
    fr_ledger_stats(lg, &stats);
    assert_int_equal(stats.queued_rows, 0);
    assert_int_equal(stats.committed, n);
    assert_true(stats.failed_commits >= 2);
}

static void take_back_limit(void *arg)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, arg), 0);
}

static void
a_file_size_limit_is_told_and_after_it_is_gone_everything_queued_is_committed(void **state)
{
    struct rlimit old, small;
    struct fr_ledger *lg = must_open(file);

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    fill_and_recover(lg, -EFBIG, "File too large", take_back_limit, &old);
    fr_ledger_close(lg);
    assert_true(is_whole(file));
}

static void free_ballast(void *arg)
{
    assert_int_equal(unlink(arg), 0);
}

/* In a process of its own: 77 when it may not mount. */
static int fill_a_tiny_disk(void)
{
    char ballast[300], block[4096] = {1};
    struct fr_ledger *lg;
    FILE *f;

    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("fullrank-test", folder, "tmpfs", 0, "size=24m") < 0)
        return 77;
    snprintf(ballast, sizeof ballast, "%s/b", folder);
    f = fopen(ballast, "w");
    for (int i = 0; i < 22 << 8; i++) /* 22 MiB */
        assert_int_equal(fwrite(block, sizeof block, 1, f), 1);
    fclose(f);
    lg = must_open(file);
    fill_and_recover(lg, -ENOSPC, "disk full: ledger", free_ballast, ballast);
    fr_ledger_close(lg);
    assert_true(is_whole(file));
    return 0;
}

static void a_full_disk_is_told_and_after_room_is_made_everything_queued_is_committed(void **state)
{
    int status = 0;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(fill_a_tiny_disk());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("skipped: no right to mount a file system here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* While nothing can be written and the queue is full: steps are dropped and counted after a bounded
 * time, an incident waits, and enters when there is room again. */
struct late {
    struct fr_ledger *lg;
    struct rlimit *old;
    uint64_t n;
};

static void *append_late(void *arg)
{
    struct late *l = arg;

    for (int i = 0; i < FR_LEDGER_QUEUE_ROWS; i++) /* more than there is room for */
        l->n = append_incident(l->lg, 1000 + (uint64_t)i, "late");
    return NULL;
}

static int has_waited(void *arg)
{
    struct fr_ledger_stats stats;

    fr_ledger_stats(arg, &stats);
    return stats.waits > 1 && stats.queued_rows == FR_LEDGER_QUEUE_ROWS;
}

static void a_full_queue_drops_only_steps_and_counts_them(void **state)
{
    struct rlimit old, none;
    struct fr_ledger *lg = must_open(file);
    struct fr_ledger_stats stats;
    struct late late = {.lg = lg, .old = &old};
    struct fr_err err = FR_ERR_INIT;
    uint64_t steps = 0, kept = 0, start_ns;
    pthread_t thread;

    (void)state;
    signal(SIGXFSZ, SIG_DFL); /* the writer must not depend on its program's care */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    append_incident(lg, 1, "first");
    wait_for(is_in_trouble, lg);
    start_ns = fr_mono_ns();
    for (; steps - kept < 10; steps++) {
        struct fr_row_step row = step_row("full", steps + 1);

        kept += fr_ledger_append(lg, FR_ROW_STEP, &row) != 0;
    }
    assert_true(kept >= FR_LEDGER_QUEUE_ROWS / 2 && kept < FR_LEDGER_QUEUE_ROWS);
    assert_true((double)(fr_mono_ns() - start_ns) * 1e-9 < 30);
    assert_int_equal(fr_ledger_wait(lg, 0, 1, &err), -EIO);
    assert_non_null(strstr(err.text, "dropped"));

    assert_int_equal(pthread_create(&thread, NULL, append_late, &late), 0);
    wait_for(has_waited, lg); /* incidents fill the rest of the queue, then wait */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    pthread_join(thread, NULL);
    while (fr_ledger_wait(lg, late.n, 10, NULL) == -EIO)
        ;
    fr_ledger_stats(lg, &stats);
    assert_int_equal(stats.dropped_steps, 10);
    assert_int_equal(stats.dropped_spans, 0);
    assert_true(stats.waits > 0 && stats.waited_s > 0);
    fr_ledger_close(lg);
    assert_int_equal(count_rows(file, FR_ROW_STEP), kept);
    assert_int_equal(count_rows(file, FR_ROW_INCIDENT), FR_LEDGER_QUEUE_ROWS + 1);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(kill_9_at_any_moment_loses_nothing_that_was_acknowledged),
        IN_A_FOLDER(a_file_size_limit_is_told_and_after_it_is_gone_everything_queued_is_committed),
        IN_A_FOLDER(a_full_disk_is_told_and_after_room_is_made_everything_queued_is_committed),
        IN_A_FOLDER(a_full_queue_drops_only_steps_and_counts_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
