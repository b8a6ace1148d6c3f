/* SPDX-License-Identifier: Apache-2.0 */
/* test_levels.c - the control page: asked, taken back, and left alone when it is somebody else's */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/levels.h"

static char dir[64], path[128];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/fr-levels-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/" FR_CONTROL_FILE, dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static struct fr_control read_page(void)
{
    struct fr_control c;
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, &c, sizeof c), sizeof c);
    close(fd);
    return c;
}

static void a_level_is_seen_by_its_process_alone_and_ends_in_time(void **state)
{
    static struct fr_levels l;
    struct fr_err err = FR_ERR_INIT;
    struct fr_control c;
    struct stat st;

    (void)state;
    umask(077);
    assert_int_equal(fr_levels_open(&l, dir, &err), 0);
    umask(022);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(st.st_size, sizeof c);
    fr_levels_set(&l, 4242, 3, 1000);
    c = read_page();
    assert_true(c.magic == FR_CONTROL_MAGIC && c.version == 1);
    assert_int_equal(fr_control_level(c.entry[4242 % FR_CONTROL_ENTRIES], 4242, 1), 3);
    assert_int_equal(
        fr_control_level(c.entry[4242 % FR_CONTROL_ENTRIES], 4242 + FR_CONTROL_ENTRIES, 1), 1);
    fr_levels_tick(&l, 999);
    c = read_page();
    assert_int_equal(fr_control_level(c.entry[4242 % FR_CONTROL_ENTRIES], 4242, 1), 3);
    fr_levels_tick(&l, 1000);
    c = read_page();
    assert_int_equal(fr_control_level(c.entry[4242 % FR_CONTROL_ENTRIES], 4242, 1), 1);
    fr_levels_set(&l, 7, 2, 2000);
    fr_levels_close(&l, NULL); /* what it had asked for ends with it */
    c = read_page();
    assert_int_equal(fr_control_level(c.entry[7], 7, 1), 1);
}

static void a_new_agent_keeps_the_file_and_takes_back_what_a_dead_one_asked(void **state)
{
    static struct fr_levels l;
    struct fr_control c;
    struct stat before, after;

    (void)state;
    assert_int_equal(fr_levels_open(&l, dir, NULL), 0);
    fr_levels_set(&l, 7, 2, 2000);
    l.page = NULL; /* it died */
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(fr_levels_open(&l, dir, NULL), 0);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    c = read_page();
    assert_int_equal(c.entry[7], 0);
    fr_levels_close(&l, dir);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_file_of_somebody_else_is_left_alone(void **state)
{
    static struct fr_levels l;
    struct fr_err err = FR_ERR_INIT;
    struct stat st;
    int fd;

    (void)state;
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && fchmod(fd, 0666) == 0);
    close(fd);
    assert_int_equal(fr_levels_open(&l, dir, &err), -EPERM);
    assert_non_null(strstr(err.text, "own file"));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0);
    fr_levels_set(&l, 1, 1, 1); /* without a page nothing happens */
    fr_levels_tick(&l, 1);
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(fr_levels_open(&l, dir, NULL), -ELOOP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_level_is_seen_by_its_process_alone_and_ends_in_time,
                                        make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(
            a_new_agent_keeps_the_file_and_takes_back_what_a_dead_one_asked, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(a_file_of_somebody_else_is_left_alone, make_dir,
                                        remove_dir),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
