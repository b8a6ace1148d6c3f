/* SPDX-License-Identifier: Apache-2.0 */
/* test_ledger.c - which files are opened, which are refused and with what words, and that a refused
 * one is untouched */
#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "helper.h"

/* Opening fails with this code, the sentence holds `words` and the file's name, is one line, and
 * the result is untouched. */
static void assert_refused(const char *path, int code, const char *words)
{
    struct fr_ledger *lg = (void *)&lg;
    struct fr_err err = FR_ERR_INIT;
    int rc = fr_ledger_open(path, &lg, &err);

    if (rc != code || !strstr(err.text, words) || !strstr(err.text, path) || strchr(err.text, '\n'))
        fail_msg("got %d \"%s\", wanted %d \"%s\"", rc, err.text, code, words);
    assert_ptr_equal(lg, &lg);
}

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    fclose(f);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void assert_unchanged(const char *path, const struct fr_buf *before)
{
    struct fr_buf now = FR_BUF_INIT;

    assert_int_equal(fr_fs_read(path, 1 << 28, &now, NULL), 0);
    assert_int_equal(now.len, before->len);
    if (now.len)
        assert_memory_equal(now.p, before->p, now.len);
    fr_buf_fini(&now);
}

static void a_second_owner_in_the_same_process_is_refused_by_pid(void **state)
{
    struct fr_ledger *lg = must_open(file);
    char words[96], alias[400];

    (void)state;
    snprintf(words, sizeof words, "is in use by pid %ld (stop it, or give another --state)",
             (long)getpid());
    assert_refused(file, -EBUSY, words);
    snprintf(alias, sizeof alias, "%s/alias.db", folder);
    assert_int_equal(symlink(file, alias), 0);
    assert_refused(alias, -EBUSY, words); /* another name of the same file */
    fr_ledger_close(lg);
    fr_ledger_close(must_open(file)); /* free again */
}

static void
a_second_owner_in_another_process_is_refused_until_the_first_dies_however_it_dies(void **state)
{
    int up[2];
    char byte, words[96];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(up), 0);
    pid = fork();
    if (pid == 0) {
        struct fr_ledger *lg = must_open(file);

        (void)lg;
        if (write(up[1], "x", 1) != 1)
            _exit(1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(up[0], &byte, 1), 1);
    snprintf(words, sizeof words, "is in use by pid %ld", (long)pid);
    assert_refused(file, -EBUSY, words);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    fr_ledger_close(must_open(file));
    close(up[0]);
    close(up[1]);
}

static void a_newer_schema_is_refused_with_what_to_do(void **state)
{
    struct fr_buf before = FR_BUF_INIT;
    struct fr_ledger_reader *rd = NULL;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    fr_ledger_close(must_open(file));
    run_sql(file, "PRAGMA user_version = 9; PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(fr_fs_read(file, 1 << 28, &before, NULL), 0);
    assert_refused(file, -EPROTO,
                   "runs.db: ledger has schema 9, this program knows up to 2 (upgrade "
                   "fullrank-controller, or give"
                   " another --state)");
    assert_int_equal(fr_ledger_reader_open(file, &rd, &err), -EPROTO);
    assert_null(rd);
    assert_unchanged(file, &before);
    fr_buf_fini(&before);
}

static void what_is_no_ledger_is_refused_and_left_as_it_was(void **state)
{
    static const char TEXT[] = "step 1 loss 3.2\nstep 2 loss 3.1\n";
    struct fr_buf before = FR_BUF_INIT;
    char *noise = malloc(100000), other[400];
    struct fr_rng r = {5};

    (void)state;
    write_file(file, TEXT, sizeof TEXT - 1);
    assert_refused(file, -EMEDIUMTYPE,
                   "is no ledger, nor any SQLite database (give another --state)");
    assert_int_equal(fr_fs_read(file, 1 << 20, &before, NULL), 0);
    assert_string_equal(fr_buf_str(&before), TEXT);
    fr_buf_fini(&before);

    for (int i = 0; i < 100000; i++)
        noise[i] = (char)fr_rng_u64(&r);
    for (size_t n = 1; n <= 100000; n = n * 3 + 1) {
        write_file(file, noise, n);
        assert_refused(file, -EMEDIUMTYPE, "is no ledger");
        assert_int_equal(fr_fs_read(file, 1 << 20, &before, NULL), 0);
        assert_int_equal(before.len, n);
        assert_memory_equal(before.p, noise, n);
        fr_buf_fini(&before);
    }
    free(noise);

    snprintf(other, sizeof other, "%s/other.db", folder);
    run_sql(other, "CREATE TABLE bookmarks (url)");
    assert_int_equal(fr_fs_read(other, 1 << 20, &before, NULL), 0);
    assert_refused(other, -EMEDIUMTYPE, "is a database of another program (give another --state)");
    assert_unchanged(other, &before);
    fr_buf_fini(&before);
    assert_refused(folder, -EMEDIUMTYPE, "is no file");
}

/* Property: with some of its bytes overwritten the ledger is refused in one sentence, or it opens
 * and its rows can be read or fail to be read; nothing crashes, and a refused file keeps its bytes.
 */
static void a_damaged_ledger_is_refused_in_one_sentence_and_left_as_it_was(void **state)
{
    struct fr_buf whole = FR_BUF_INIT;
    struct fr_ledger *lg = must_open(file);
    struct fr_rng r = {11};
    int refused = 0;

    (void)state;
    for (uint64_t s = 1; s <= 2000; s++) {
        struct fr_row_step row = step_row("job", s);

        fr_ledger_append(lg, FR_ROW_STEP, &row);
    }
    fr_ledger_close(lg);
    assert_int_equal(fr_fs_read(file, 1 << 28, &whole, NULL), 0);
    for (int i = 0; i < 40; i++) {
        struct fr_err err = FR_ERR_INIT;
        struct fr_buf before = FR_BUF_INIT;
        char name[400];
        int rc;

        /* A new name each time: no WAL of the last one may be applied. */
        snprintf(name, sizeof name, "%s/damaged%d.db", folder, i);
        fr_buf_add(&before, whole.p, whole.len);
        if (i % 4 == 0)
            before.len -= 4096 * (1 + fr_rng_below(&r, whole.len / 4096 - 2)); /* cut */
        else
            memset(before.p + 4096 * fr_rng_below(&r, whole.len / 4096), (int)fr_rng_u64(&r), 4096);
        write_file(name, before.p, before.len);
        rc = fr_ledger_open(name, &lg, &err);
        if (rc == 0) {
            fr_ledger_close(lg);
        } else {
            refused++;
            assert_non_null(strstr(err.text, name));
            assert_null(strchr(err.text, '\n'));
            assert_true(rc == -EUCLEAN || rc == -EMEDIUMTYPE || rc == -EPROTO);
            assert_unchanged(name, &before);
        }
        fr_buf_fini(&before);
    }
    assert_in_range(refused, 36, 40); /* a whole page is hardly ever overwritten with sense */
    fr_buf_fini(&whole);
}

static void an_unwritable_or_absent_folder_is_told(void **state)
{
    char path[400];
    pid_t pid;
    int status = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/absent/runs.db", folder);
    assert_refused(path, -ENOENT, "No such file or directory");
    assert_int_equal(chmod(folder, 0555), 0);
    pid = fork();
    if (pid == 0) { /* root may write everywhere */
        if (geteuid() == 0 && setreuid(65534, 65534) < 0)
            _exit(2);
        assert_refused(file, -EACCES, "Permission denied (give another --state)");
        _exit(0);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(access(file, F_OK), -1);
}

static void a_file_of_schema_0_is_brought_up_to_date_once(void **state)
{
    (void)state;
    write_file(file, "", 0); /* what a crash right after creation leaves behind */
    fr_ledger_close(must_open(file));
    assert_int_equal(ask_integer(file, "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"),
                     FR_ROW_KINDS - 1);
    fr_ledger_close(must_open(file));
    remove(file);
    run_sql(file, "PRAGMA journal_mode = WAL"); /* a crash before the migration's commit */
    fr_ledger_close(must_open(file));
    assert_int_equal(count_rows(file, FR_ROW_JOB), 0);
}

static int see_incident(const void *row, void *arg)
{
    const struct fr_row_incident *r = row;

    if (r->id != 7)
        return 0;
    assert_string_equal(r->kind, "hang");
    assert_int_equal(r->named_step, 41);
    assert_string_equal(r->group_key, "");
    assert_int_equal(r->victims, 0);
    ++*(int *)arg;
    return 0;
}

static void a_ledger_of_schema_1_keeps_its_rows_and_gets_the_new_columns(void **state)
{
    struct fr_row_incident old = {.id = 7, .kind = "hang", .named_step = 41, .victims = 5};
    struct fr_row_incident new = {.id = 8, .kind = "slow", .group_key = "tp.0", .victims = 6};
    struct fr_ledger_reader *rd = NULL;
    struct fr_ledger *lg = must_open(file);
    int seen = 0;

    (void)state;
    fr_ledger_append(lg, FR_ROW_INCIDENT, &old);
    fr_ledger_close(lg);
    run_sql(file, "ALTER TABLE incidents DROP COLUMN group_key;"
                  "ALTER TABLE incidents DROP COLUMN victims;"
                  "ALTER TABLE decisions DROP COLUMN wait_until_step; PRAGMA user_version = 1");
    lg = must_open(file);
    fr_ledger_append(lg, FR_ROW_INCIDENT, &new);
    fr_ledger_close(lg);
    assert_int_equal(
        ask_integer(file, "SELECT victims FROM incidents WHERE group_key = 'tp.0' AND id = 8"), 6);
    assert_int_equal(fr_ledger_reader_open(file, &rd, NULL), 0);
    assert_int_equal(fr_ledger_each(rd, FR_ROW_INCIDENT, NULL, 0, see_incident, &seen, NULL), 0);
    assert_int_equal(seen, 1);
    fr_ledger_reader_close(rd);
}

static void a_reader_is_refused_what_is_not_there_or_not_yet_a_ledger(void **state)
{
    struct fr_ledger_reader *rd = NULL;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_int_equal(fr_ledger_reader_open(file, &rd, &err), -ENOENT);
    assert_non_null(strstr(err.text, "No such file or directory"));
    assert_int_equal(access(file, F_OK), -1); /* reading makes nothing */
    write_file(file, "", 0);
    assert_int_equal(fr_ledger_reader_open(file, &rd, &err), -EPROTO);
    assert_non_null(strstr(err.text, "ledger has schema 0"));
    assert_null(rd);
}

/* Someone who may read the file and not write its folder can still read the ledger, also after its
 * owner is gone. */
static void a_reader_needs_no_right_to_write(void **state)
{
    struct fr_row_step row = step_row("j", 1);
    struct fr_ledger *lg = must_open(file);
    int status = 0;

    (void)state;
    fr_ledger_append(lg, FR_ROW_STEP, &row);
    fr_ledger_close(lg);
    assert_int_equal(chmod(folder, 0555), 0);
    if (fork() == 0) {
        if (geteuid() == 0 && setreuid(65534, 65534) < 0)
            _exit(2);
        _exit(count_rows(file, FR_ROW_STEP) == 1 ? 0 : 1);
    }
    wait(&status);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(status, 0);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_second_owner_in_the_same_process_is_refused_by_pid),
        IN_A_FOLDER(
            a_second_owner_in_another_process_is_refused_until_the_first_dies_however_it_dies),
        IN_A_FOLDER(a_newer_schema_is_refused_with_what_to_do),
        IN_A_FOLDER(what_is_no_ledger_is_refused_and_left_as_it_was),
        IN_A_FOLDER(a_damaged_ledger_is_refused_in_one_sentence_and_left_as_it_was),
        IN_A_FOLDER(an_unwritable_or_absent_folder_is_told),
        IN_A_FOLDER(a_file_of_schema_0_is_brought_up_to_date_once),
        IN_A_FOLDER(a_ledger_of_schema_1_keeps_its_rows_and_gets_the_new_columns),
        IN_A_FOLDER(a_reader_is_refused_what_is_not_there_or_not_yet_a_ledger),
        IN_A_FOLDER(a_reader_needs_no_right_to_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
