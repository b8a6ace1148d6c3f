/* SPDX-License-Identifier: Apache-2.0 */
/* test_owner.c - folders of the living stay, of the dead only the newest few */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "cli/owner.h"

static char home[64];

static int make_home(void **state)
{
    (void)state;
    snprintf(home, sizeof home, "/tmp/fullrank-owner-XXXXXX");
    return mkdtemp(home) ? 0 : -1;
}

static int remove_home(void **state)
{
    (void)state;
    return fr_fs_remove_tree(home, NULL);
}

static const char *make(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", home, name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

static bool is_there(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", home, name);
    return access(path, F_OK) == 0;
}

/* Name a process as owner that is over when this returns. */
static void own_by_the_dead(const char *dir)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        pause();
        _exit(0);
    }
    assert_int_equal(fr_owner_add(dir, pid, NULL), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* So many seconds ago it was changed last. */
static void set_age(const char *name, long age_s)
{
    char path[128];
    struct timespec t[2] = {{.tv_nsec = UTIME_OMIT}, {0}};

    snprintf(path, sizeof path, "%s/%s", home, name);
    clock_gettime(CLOCK_REALTIME, &t[1]);
    t[1].tv_sec -= age_s;
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

static void of_dead_owners_the_newest_stay_and_the_living_are_left_alone(void **state)
{
    char name[16];

    (void)state;
    for (int i = 0; i < 4; i++) { /* run-0 is the oldest */
        snprintf(name, sizeof name, "run-%d", i);
        own_by_the_dead(make(name));
        set_age(name, 100 - 10 * i);
    }
    assert_int_equal(fr_owner_add(make("run-mine"), getpid(), NULL), 0);
    set_age("run-mine", 1000);
    make("run-unnamed");
    own_by_the_dead(make("other-0"));
    fr_owner_sweep(home, "run-", 2);
    assert_false(is_there("run-0"));
    assert_false(is_there("run-1"));
    assert_true(is_there("run-2"));
    assert_true(is_there("run-3"));
    assert_true(is_there("run-mine"));
    assert_true(is_there("run-unnamed"));
    assert_true(is_there("other-0"));
    fr_owner_sweep(home, "run-", 0);
    assert_false(is_there("run-2"));
    assert_true(is_there("run-mine"));
}

static void one_living_owner_among_dead_ones_is_enough(void **state)
{
    const char *dir = make("run-two");

    (void)state;
    own_by_the_dead(dir);
    assert_int_equal(fr_owner_add(dir, getpid(), NULL), 0);
    fr_owner_sweep(home, "run-", 0);
    assert_true(is_there("run-two"));
}

/* Its pid may be anybody's here: the file server's other clients live. */
static void a_folder_of_another_machine_is_left_until_it_is_old(void **state)
{
    static const char ELSEWHERE[] = "1 1 00000000-0000-0000-0000-000000000000/pid:[1]\n";
    char path[160];

    (void)state;
    snprintf(path, sizeof path, "%s/owner", make("run-far"));
    assert_int_equal(fr_fs_write_atomic(path, ELSEWHERE, strlen(ELSEWHERE), 0600, NULL), 0);
    fr_owner_sweep(home, "run-", 0);
    assert_true(is_there("run-far"));
    set_age("run-far", 8 * 24 * 3600);
    fr_owner_sweep(home, "run-", 0);
    assert_false(is_there("run-far"));
}

static void only_a_run_that_lives_and_answers_is_found(void **state)
{
    struct fr_owner_run run;
    char path[160], list[200];

    (void)state;
    setenv("FULLRANK_STATE_DIR", home, 1);
    snprintf(path, sizeof path, "%s/port", make("run-deaf"));
    assert_int_equal(fr_fs_write_atomic(path, "127.0.0.1:1\n", 12, 0600, NULL),
                     0); /* nobody there */
    snprintf(path, sizeof path, "%s/run-deaf", home);
    assert_int_equal(fr_owner_add(path, getpid(), NULL), 0);
    assert_int_equal(fr_owner_find_runs(&run, list, sizeof list), 0);
    assert_string_equal(list, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            of_dead_owners_the_newest_stay_and_the_living_are_left_alone, make_home, remove_home),
        cmocka_unit_test_setup_teardown(one_living_owner_among_dead_ones_is_enough, make_home,
                                        remove_home),
        cmocka_unit_test_setup_teardown(a_folder_of_another_machine_is_left_until_it_is_old,
                                        make_home, remove_home),
        cmocka_unit_test_setup_teardown(only_a_run_that_lives_and_answers_is_found, make_home,
                                        remove_home)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
