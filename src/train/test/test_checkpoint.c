/* SPDX-License-Identifier: Apache-2.0 */
/* One rank saves and restores; every damage must fall back to the one before. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "checkpoint.h"
#include "helper_files.h"

static struct fr_options o;
static struct fr_grid alone;
static struct fr_model model;
static struct fr_checkpoint ck;

static int start(void **state)
{
    static char dir[4096];

    if (make_folder(state) < 0)
        return -1;
    strcpy(dir, in_folder("ck"));
    o = (struct fr_options){.dp = 1,
                            .pp = 1,
                            .tp = 1,
                            .layers = 1,
                            .d_model = 8,
                            .heads = 2,
                            .seq = 8,
                            .batch = 1,
                            .micro_batch = 1,
                            .seed = 3,
                            .keep = 2,
                            .checkpoint_dir = dir};
    alone = (struct fr_grid){.world = {MPI_COMM_NULL, 0, 1},
                             .tp = {MPI_COMM_NULL, 0, 1},
                             .pp = {MPI_COMM_NULL, 0, 1},
                             .dp = {MPI_COMM_NULL, 0, 1},
                             .embed = {MPI_COMM_NULL, 0, 1}};
    fr_model_init(&model, &o, &alone);
    return 0;
}

static int stop(void **state)
{
    fr_model_fini(&model);
    return remove_folder(state);
}

/* A state that tells its step. */
static void set_state(int64_t step)
{
    for (size_t i = 0; i < model.params; i++) {
        model.w[i] = (float)step + (float)i;
        model.m[i] = (float)step * 2;
        model.v[i] = (float)step * 3;
    }
}

static void save(int64_t step)
{
    struct fr_err err = {{0}};

    set_state(step);
    if (fr_checkpoint_save(&ck, step, &err) < 0)
        fail_msg("%s", err.text);
}

/* Restore from nothing; returns the step, or -1. What the trainer says on
 * stderr goes to `said`. */
static int64_t restore(char *said, size_t size)
{
    struct fr_err err = {{0}};
    int64_t step = -1;
    int saved = dup(STDERR_FILENO), fd = open(in_folder("said"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ssize_t n;
    int rc;

    memset(model.w, 0, model.params * sizeof *model.w);
    dup2(fd, STDERR_FILENO);
    rc = fr_checkpoint_restore(&ck, &step, &err);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    n = pread(fd, said, size - 1, 0);
    close(fd);
    said[n > 0 ? n : 0] = 0;
    if (rc < 0) {
        snprintf(said, size, "%s", err.text);
        return -1;
    }
    if (step > 0) {
        assert_true(model.w[1] == (float)step + 1);
        assert_true(model.m[1] == (float)step * 2);
        assert_true(model.v[1] == (float)step * 3);
    }
    return step;
}

static char said[8192];

static int clean(void **state)
{
    char command[8300];

    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", o.checkpoint_dir);
    assert_int_equal(system(command), 0);
    fr_checkpoint_init(&ck, &o, &alone, &model, 99);
    assert_int_equal(fr_checkpoint_prepare(&ck, NULL), 0);
    return 0;
}

static void without_a_checkpoint_training_starts_at_the_beginning(void **state)
{
    (void)state;
    assert_int_equal(restore(said, sizeof said), 0);
    assert_string_equal(said, "");
}

static void the_newest_checkpoint_is_taken_and_only_the_last_ones_are_kept(void **state)
{
    (void)state;
    for (int64_t step = 10; step <= 50; step += 10)
        save(step);
    assert_int_equal(restore(said, sizeof said), 50);
    assert_string_equal(said, "");
    assert_int_equal(access(in_folder("ck/step-00000030"), F_OK), -1);
    assert_int_equal(access(in_folder("ck/step-00000040"), F_OK), 0);
}

/* What damage does, and the word that its refusal must have. */
static void cut_manifest(void)
{
    assert_int_equal(truncate(in_folder("ck/step-00000020/manifest"), 100), 0);
}
static void drop_manifest(void)
{
    assert_int_equal(unlink(in_folder("ck/step-00000020/manifest")), 0);
}
static void cut_shard(void)
{
    assert_int_equal(truncate(in_folder("ck/step-00000020/rank-00000.shard"), 1000), 0);
}
static void empty_shard(void)
{
    assert_int_equal(truncate(in_folder("ck/step-00000020/rank-00000.shard"), 0), 0);
}
static void drop_shard(void)
{
    assert_int_equal(unlink(in_folder("ck/step-00000020/rank-00000.shard")), 0);
}
static void flip_bit(void)
{
    int fd = open(in_folder("ck/step-00000020/rank-00000.shard"), O_RDWR);
    uint8_t b;

    assert_int_equal(pread(fd, &b, 1, 777), 1);
    b ^= 4;
    assert_int_equal(pwrite(fd, &b, 1, 777), 1);
    close(fd);
}
static void folder_for_shard(void)
{
    drop_shard();
    assert_int_equal(mkdir(in_folder("ck/step-00000020/rank-00000.shard"), 0700), 0);
}
static void older_manifest(void)
{
    char from[4096];

    strcpy(from, in_folder("ck/step-00000010/manifest"));
    drop_manifest();
    assert_int_equal(link(from, in_folder("ck/step-00000020/manifest")), 0);
}

static void any_damage_is_refused_by_name_and_the_one_before_is_used(void **state)
{
    static const struct {
        void (*damage)(void);
        const char *name;
    } cases[] = {
        {cut_manifest, "step-00000020/manifest"},
        {drop_manifest, "step-00000020/manifest"},
        {older_manifest, "step-00000020/manifest"},
        {cut_shard, "step-00000020/rank-00000.shard"},
        {empty_shard, "step-00000020/rank-00000.shard"},
        {drop_shard, "step-00000020/rank-00000.shard"},
        {flip_bit, "step-00000020/rank-00000.shard"},
        {folder_for_shard, "step-00000020/rank-00000.shard"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clean(state);
        save(10);
        save(20);
        cases[i].damage();
        assert_int_equal(restore(said, sizeof said), 10);
        assert_non_null(strstr(said, cases[i].name));
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
        if (cases[i].damage == folder_for_shard)
            continue; /* not our file: it is left there */
        save(20);     /* the step can be written again over what was refused */
        assert_int_equal(restore(said, sizeof said), 20);
    }
}

static void a_checkpoint_of_another_model_is_an_error(void **state)
{
    (void)state;
    save(10);
    ck.stamp.layers = 7;
    assert_int_equal(restore(said, sizeof said), -1);
    assert_non_null(strstr(said, "step-00000010"));
    assert_non_null(strstr(said, "layers 1"));
}

static void a_checkpoint_of_another_grid_is_an_error(void **state)
{
    (void)state;
    save(10);
    ck.stamp.dp = 2;
    assert_int_equal(restore(said, sizeof said), -1);
    assert_non_null(strstr(said, "grid"));
}

static void a_write_that_fails_leaves_the_older_checkpoints(void **state)
{
    struct rlimit before, small = {4096, RLIM_INFINITY};
    struct fr_err err = {{0}};

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    save(10);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    set_state(20);
    assert_int_equal(fr_checkpoint_save(&ck, 20, &err), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(err.text, "step-00000020"));
    assert_int_equal(access(in_folder("ck/step-00000020"), F_OK), -1);
    assert_int_equal(restore(said, sizeof said), 10);
    assert_string_equal(said, "");
}

static void files_of_others_are_left_alone(void **state)
{
    (void)state;
    save(10);
    put_file("ck/step-00000010/notes", "mine", 4);
    put_file("ck/step-7x", "", 0);
    save(20);
    save(30);
    save(40);
    assert_int_equal(access(in_folder("ck/step-00000010/notes"), F_OK), 0);
    assert_int_equal(access(in_folder("ck/step-00000010/manifest"), F_OK), -1);
    assert_int_equal(access(in_folder("ck/step-7x"), F_OK), 0);
}

#define CASE(f) cmocka_unit_test_setup(f, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(without_a_checkpoint_training_starts_at_the_beginning),
        CASE(the_newest_checkpoint_is_taken_and_only_the_last_ones_are_kept),
        CASE(any_damage_is_refused_by_name_and_the_one_before_is_used),
        CASE(a_checkpoint_of_another_model_is_an_error),
        CASE(a_checkpoint_of_another_grid_is_an_error),
        CASE(a_write_that_fails_leaves_the_older_checkpoints),
        CASE(files_of_others_are_left_alone),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
