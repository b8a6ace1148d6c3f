/* SPDX-License-Identifier: Apache-2.0 */
/* test_fs.c - files: whole or not at all */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[4][128];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/fullrank-fs-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return fr_fs_remove_tree(dir, NULL);
}

static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = -2; /* "." and ".." */

    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static void a_written_file_reads_back_with_its_mode(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    struct stat st;

    (void)state;
    umask(077); /* the mode asked for counts, not the caller's mask */
    assert_int_equal(fr_fs_write_atomic(in_dir("f"), "abc\0def", 7, 0640, NULL), 0);
    assert_int_equal(fr_fs_write_atomic(in_dir("f"), "xyz\0", 4, 0644, NULL), 0);
    fr_buf_puts(&b, "in front: ");
    assert_int_equal(fr_fs_read(in_dir("f"), 4, &b, NULL), 0);
    assert_int_equal(b.len, 14);
    assert_memory_equal(b.p, "in front: xyz\0", 14);
    assert_int_equal(stat(in_dir("f"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(fr_fs_read(in_dir("f"), 3, &b, NULL), -EFBIG);
    assert_int_equal(fr_fs_read(in_dir("absent"), 3, &b, NULL), -ENOENT);
    assert_int_equal(fr_fs_read(dir, 3, &b, NULL), -EISDIR);
    assert_int_equal(b.len, 14); /* a failed read adds nothing */
    fr_buf_fini(&b);
}

static void a_file_of_unknown_size_is_read_to_its_end(void **state)
{
    struct fr_buf b = FR_BUF_INIT;

    (void)state;
    assert_int_equal(fr_fs_read("/proc/self/status", 1 << 20, &b, NULL), 0); /* st_size is 0 */
    assert_non_null(strstr(fr_buf_str(&b), "VmRSS"));
    fr_buf_reset(&b);
    assert_int_equal(fr_fs_read("/dev/zero", 100000, &b, NULL), -EFBIG);
    assert_int_equal(b.len, 0);
    fr_buf_fini(&b);
}

/* In a child, because a limit cannot be raised again by everyone. */
static void a_write_that_fails_leaves_the_old_file(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    int status;
    pid_t pid;

    (void)state;
    assert_int_equal(fr_fs_write_atomic(in_dir("kept"), "old", 3, 0600, NULL), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static char big[65536];
        struct rlimit limit = {4096, 4096};
        struct fr_err err = FR_ERR_INIT;

        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        if (fr_fs_write_atomic(in_dir("kept"), big, sizeof big, 0600, &err) != -EFBIG)
            _exit(1);
        _exit(strstr(err.text, "kept") ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(fr_fs_read(in_dir("kept"), 100, &b, NULL), 0);
    assert_string_equal(fr_buf_str(&b), "old");
    fr_buf_fini(&b);
}

static void a_failed_write_leaves_no_temporary_file(void **state)
{
    struct fr_err err = FR_ERR_INIT;
    int before;

    (void)state;
    assert_int_equal(mkdir(in_dir("folder"), 0700), 0);
    assert_int_equal(fr_fs_write_atomic(in_dir("folder/x"), "1", 1, 0600, NULL), 0);
    before = entries(dir);
    assert_int_equal(fr_fs_write_atomic(in_dir("folder"), "abc", 3, 0600, &err),
                     -EISDIR); /* rename refuses */
    assert_int_equal(entries(dir), before);
    assert_int_equal(fr_fs_write_atomic(in_dir("no/such"), "abc", 3, 0600, &err), -ENOENT);
    assert_int_equal(entries(dir), before);
}

static void folders_are_made_with_their_parents(void **state)
{
    struct fr_err err = FR_ERR_INIT;
    struct stat st;

    (void)state;
    umask(022);
    assert_int_equal(fr_fs_mkdirs(in_dir("a/b//c/"), 0750, &err), 0);
    assert_int_equal(fr_fs_mkdirs(in_dir("a/b/c"), 0750, &err), 0);
    assert_int_equal(stat(in_dir("a/b/c"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0750);
    assert_int_equal(fr_fs_mkdirs("/", 0755, &err), 0);
    assert_int_equal(fr_fs_write_atomic(in_dir("a/file"), "", 0, 0600, NULL), 0);
    assert_int_equal(fr_fs_mkdirs(in_dir("a/file"), 0755, &err), -ENOTDIR);
    assert_int_equal(fr_fs_mkdirs(in_dir("a/file/x"), 0755, &err), -ENOTDIR);
    assert_int_equal(fr_fs_mkdirs("", 0755, &err), -ENOENT);
}

static void removing_a_tree_never_follows_a_link(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(fr_fs_mkdirs(in_dir("victim/deep"), 0755, NULL), 0);
    assert_int_equal(fr_fs_write_atomic(in_dir("victim/f"), "x", 1, 0600, NULL), 0);
    assert_int_equal(fr_fs_mkdirs(in_dir("tree/a/b"), 0755, NULL), 0);
    assert_int_equal(fr_fs_write_atomic(in_dir("tree/a/f"), "x", 1, 0600, NULL), 0);
    assert_int_equal(symlink(in_dir("victim"), in_dir("tree/a/link")), 0);
    assert_int_equal(symlink(in_dir("victim"), in_dir("top")), 0);
    assert_int_equal(fr_fs_remove_tree(in_dir("tree"), NULL), 0);
    assert_int_equal(fr_fs_remove_tree(in_dir("top"), NULL), 0);
    assert_int_equal(lstat(in_dir("tree"), &st), -1);
    assert_int_equal(lstat(in_dir("top"), &st), -1);
    assert_int_equal(stat(in_dir("victim/f"), &st), 0);
    assert_int_equal(stat(in_dir("victim/deep"), &st), 0);
    assert_int_equal(fr_fs_remove_tree(in_dir("tree"), NULL), 0); /* nothing there */
}

static void a_token_is_made_once_and_only_its_owner_reads_it(void **state)
{
    char a[128] = "", b[128] = "", small[8] = "keep";
    struct fr_err err = FR_ERR_INIT;
    struct stat st;
    int before = entries(dir);

    (void)state;
    umask(0);
    assert_int_equal(fr_fs_token(in_dir("token"), 0, a, sizeof a, &err), -ENOENT);
    assert_int_equal(fr_fs_token(in_dir("token"), 1, a, sizeof a, &err), 0);
    assert_int_equal(fr_fs_token(in_dir("token"), 1, b, sizeof b, &err), 0);
    assert_string_equal(a, b);
    assert_int_equal(strlen(a), 64);
    assert_int_equal(strspn(a, "0123456789abcdef"), 64);
    assert_int_equal(entries(dir), before + 1); /* no temporary name is left */
    assert_int_equal(stat(in_dir("token"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(fr_fs_token(in_dir("token"), 0, small, sizeof small, &err), -EFBIG);
    assert_string_equal(small, "keep");
    assert_null(strstr(err.text, a)); /* a secret stays out of messages */
    assert_int_equal(fr_fs_token(in_dir("other"), 1, b, sizeof b, &err), 0);
    assert_string_not_equal(a, b);
    for (mode_t mode = 0; mode < 0100; mode++) {
        assert_int_equal(chmod(in_dir("token"), 0600 | mode), 0);
        assert_int_equal(fr_fs_token(in_dir("token"), 0, b, sizeof b, &err), mode ? -EACCES : 0);
    }
}

static void a_broken_token_file_is_refused(void **state)
{
    static const struct {
        const char *text;
        int rc;
    } FILES[] = {{"", -EINVAL},       {"\n", -EINVAL}, {"a b\n", -EINVAL}, {"a\r\nX: y\n", -EINVAL},
                 {"\xff\n", -EINVAL}, {"good\r\n", 0}};
    char token[16];
    struct fr_err err;

    (void)state;
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        assert_int_equal(
            fr_fs_write_atomic(in_dir("t"), FILES[i].text, strlen(FILES[i].text), 0600, NULL), 0);
        assert_int_equal(fr_fs_token(in_dir("t"), 0, token, sizeof token, &err), FILES[i].rc);
    }
    assert_string_equal(token, "good");
    assert_int_equal(fr_fs_token(dir, 0, token, sizeof token, &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_written_file_reads_back_with_its_mode, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_file_of_unknown_size_is_read_to_its_end, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_write_that_fails_leaves_the_old_file, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_failed_write_leaves_no_temporary_file, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(folders_are_made_with_their_parents, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(removing_a_tree_never_follows_a_link, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_token_is_made_once_and_only_its_owner_reads_it, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(a_broken_token_file_is_refused, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
