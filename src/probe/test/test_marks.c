/* SPDX-License-Identifier: Apache-2.0 */
/* test_marks.c - the marks of fullrank.h as the agent reads them */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fullrank/fullrank.h"
#include "probe/nccl/abi.h"
#include "probe/probe.h"
#include "wire/segment.h"

/* The probe belongs to a process: each case runs in a child, which says by its exit status which
 * line failed (0: none). */
#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #what);                                     \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void in_child(void (*body)(const char *dir), int segments_left)
{
    char dir[] = "/tmp/fr-marks-XXXXXX", cmd_path[600];
    int status;
    pid_t pid;

    assert_non_null(mkdtemp(dir));
    pid = fork();
    if (pid == 0) {
        setenv("FULLRANK_PROBE_DIR", dir, 1);
        body(dir);
        exit(0); /* with its exit handlers */
    }
    waitpid(pid, &status, 0);
    snprintf(cmd_path, sizeof cmd_path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)pid);
    assert_int_equal(unlink(cmd_path) == 0, segments_left);
    assert_int_equal(rmdir(dir), 0);
    assert_int_equal(status, 0);
}

static struct fr_segment *open_own(const char *dir)
{
    struct fr_segment *s = NULL;
    struct fr_err err = FR_ERR_INIT;
    char path[600];

    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    if (fr_segment_open(AT_FDCWD, path, geteuid(), &s, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    return s;
}

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void step_phase_grid_and_plan(const char *dir)
{
    const struct fullrank_plan plan = {5, 100, 10, 4, 1024, 3e9, 1e10};
    const struct fullrank_step_result result = {2.5, 1024};
    struct fr_seg_step step;
    struct fr_segment *s;
    const struct fr_seg_header *h;

    CHECK(fullrank_watched() == 1);
    fullrank_grid(FULLRANK_DIM_DP, 1, 4);
    fullrank_grid(FULLRANK_DIM_TP, 7, 4);       /* refused */
    fullrank_grid((enum fullrank_dim)99, 0, 1); /* refused */
    fullrank_plan(&plan);
    fullrank_phase(FULLRANK_PHASE_INIT);
    fullrank_step_begin(5);
    s = open_own(dir);
    CHECK(s);
    h = fr_segment_header(s);
    CHECK(fr_segment_refresh(s, NULL) == 0);
    CHECK(h->step == 5 && h->phase == FULLRANK_PHASE_STEP);
    CHECK(fr_segment_step(s, 5, &step, NULL) == 0 && step.t_end == 0 && isnan(step.loss));
    fullrank_step_end(&result);
    fullrank_step_end(&result); /* no step is open: nothing */
    fullrank_phase(FULLRANK_PHASE_CHECKPOINT);
    fullrank_checkpoint_done(5);
    CHECK(fr_segment_refresh(s, NULL) == 0);
    CHECK(h->phase == FULLRANK_PHASE_CHECKPOINT && h->checkpoint_step == 5);
    CHECK(h->grid_index[FULLRANK_DIM_DP] == 1 && h->grid_size[FULLRANK_DIM_DP] == 4);
    CHECK(h->grid_size[FULLRANK_DIM_TP] == 0);
    CHECK(h->plan_total_steps == 100 && h->plan_flops_per_step == 3e9);
    CHECK(h->sources == FR_SOURCE_MARKS && h->rank_tid == (uint32_t)getpid());
    CHECK(fr_segment_step(s, 5, &step, NULL) == 0);
    CHECK(step.loss == 2.5 && step.tokens == 1024 && step.t_end > step.t_begin);
    CHECK(fr_segment_step(s, 6, &step, NULL) == -ENOENT);
    CHECK(step.step == 5); /* a failed read leaves its result alone */
    fr_segment_free(s);
}

static void marks_reach_the_reader(void **state)
{
    (void)state;
    in_child(step_phase_grid_and_plan, 0);
}

struct mark_records {
    struct fr_record r[16];
    int n;
};

static void keep(void *arg, uint32_t lane, uint64_t index, const struct fr_record *r)
{
    struct mark_records *m = arg;

    (void)lane, (void)index;
    if (m->n < 16)
        m->r[m->n++] = *r;
}

static void records_of_marks(const char *dir)
{
    struct mark_records m = {.n = 0};
    struct fr_segment *s;
    uint64_t a, b;

    fullrank_phase(FULLRANK_PHASE_INIT);
    fullrank_step_begin(1); /* ends the phase INIT */
    a = fr_mono_ns();
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    b = fr_mono_ns();
    fullrank_step_end(NULL);
    fullrank_phase(FULLRANK_PHASE_EVAL); /* ends the phase STEP */
    s = open_own(dir);
    CHECK(s && fr_segment_refresh(s, NULL) == 0);
    CHECK(fr_segment_drain(s, keep, &m, NULL, NULL) == 3);
    CHECK(m.r[0].op == FR_OP_PHASE && m.r[0].seq == FULLRANK_PHASE_INIT);
    CHECK(m.r[1].op == FR_OP_STEP && m.r[1].seq == 1 && m.r[1].comm == FR_COMM_NONE);
    CHECK(m.r[2].op == FR_OP_PHASE && m.r[2].seq == FULLRANK_PHASE_STEP);
    /* The reader's nanoseconds are those of the clock read here, to 50 us. */
    CHECK(fr_segment_ns(s, m.r[1].t_start) <= a + 50000);
    CHECK(fr_segment_ns(s, m.r[1].t_start) + 1000000 >= a);
    CHECK(fr_segment_ns(s, m.r[1].t_end) + 50000 >= b);
    CHECK(m.r[1].gap_us >= 19000);
    fr_segment_free(s);
}

static void steps_and_phases_are_records_with_their_span(void **state)
{
    (void)state;
    in_child(records_of_marks, 0);
}

/* Property: wall = self + waiting for a core + in calls; and self time is CPU time plus time
 * asleep, whatever else runs on the machine (here: three busy loops on the same core). */
static void self_time_under_load(const char *dir)
{
    struct fr_seg_step step;
    struct fr_segment *s;
    cpu_set_t allowed, one;
    pid_t load[3];

    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &allowed))
            CPU_SET(i, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    for (int i = 0; i < 3; i++)
        if ((load[i] = fork()) == 0)
            for (volatile unsigned x = 0;; x++)
                if (getppid() == 1)
                    _exit(0);
    for (uint64_t n = 1; n <= 4; n++) {
        uint64_t cpu0, cpu;

        fullrank_step_begin(n);
        cpu0 = cpu_ns();
        while ((cpu = cpu_ns() - cpu0) < 60000000u)
            ;
        fullrank_step_end(NULL);
        if (n == 1)
            continue;
        s = open_own(dir);
        CHECK(s && fr_segment_step(s, n, &step, NULL) == 0);
        CHECK(step.self_ns + step.ready_ns + step.in_calls_ns <=
              fr_segment_ns(s, step.t_end) - fr_segment_ns(s, step.t_begin) + 100000);
        CHECK(step.ready_ns > 20000000u); /* it had at most a share of the cores */
        CHECK(step.self_ns >= cpu * 9 / 10);
        CHECK(step.self_ns <= cpu * 13 / 10 + 5000000u);
        fr_segment_free(s);
    }
    for (int i = 0; i < 3; i++) {
        kill(load[i], SIGKILL);
        waitpid(load[i], NULL, 0);
    }
}

static void waiting_for_a_core_is_no_self_time(void **state)
{
    (void)state;
    if (access("/proc/self/schedstat", R_OK) != 0)
        skip(); /* this kernel does not tell the run-queue wait */
    in_child(self_time_under_load, 0);
}

static void many_steps(const char *dir)
{
    struct fr_seg_step step;
    struct fr_segment *s;

    for (uint64_t n = 1; n <= 3 * FR_SEG_STEPS; n++) {
        fullrank_step_begin(n);
        fullrank_step_end(NULL);
    }
    s = open_own(dir);
    CHECK(s);
    CHECK(fr_segment_step(s, 3 * FR_SEG_STEPS, &step, NULL) == 0);
    CHECK(fr_segment_step(s, 2 * FR_SEG_STEPS + 1, &step, NULL) == 0);
    CHECK(fr_segment_step(s, 2 * FR_SEG_STEPS, &step, NULL) == -ENOENT);
    fr_segment_free(s);
}

static void the_newest_steps_stay_in_place(void **state)
{
    (void)state;
    in_child(many_steps, 0);
}

static void dies(const char *dir)
{
    (void)dir;
    fullrank_step_begin(1);
    _exit(0); /* as a signal would: no exit handler runs */
}

static void a_dead_process_leaves_its_segment_to_the_agent(void **state)
{
    (void)state;
    in_child(dies, 1);
}

static void forks(const char *dir)
{
    struct fr_segment *s;
    int status;
    pid_t pid;

    fullrank_step_begin(1);
    pid = fork();
    if (pid == 0) {
        fullrank_step_begin(2);
        fullrank_step_end(NULL);
        exit(fullrank_watched()); /* and must not remove its parent's file */
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    s = open_own(dir);
    CHECK(s && fr_segment_header(s)->step == 1);
    fr_segment_free(s);
}

static void a_child_of_fork_leaves_the_segment_alone(void **state)
{
    (void)state;
    in_child(forks, 0);
}

static void full_disk(const char *dir)
{
    (void)dir;
    setenv("FULLRANK_PROBE_DIR", "/dev/full/none", 1);
    CHECK(fullrank_watched() == 0);
    fullrank_step_begin(1);
    fullrank_step_end(NULL);
    fullrank_phase(FULLRANK_PHASE_IDLE);
    fullrank_plan(NULL);
}

static void without_a_usable_directory_every_mark_is_a_no_op(void **state)
{
    (void)state;
    in_child(full_disk, 0);
}

static void stale_file(const char *dir)
{
    char path[600];
    struct fr_segment *s;
    int fd;

    snprintf(path, sizeof path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0 && write(fd, "left over", 9) == 9);
    close(fd);
    fullrank_step_begin(4);
    s = open_own(dir);
    CHECK(s && fr_segment_header(s)->step == 4);
    fr_segment_free(s);
}

static void a_file_left_by_a_dead_process_of_the_same_pid_is_replaced(void **state)
{
    (void)state;
    in_child(stale_file, 0);
}

/* As Python's ctypes would load it beside a preloaded shim. */
static void second_copy(const char *dir)
{
    void *library = dlopen(FR_BUILD_DIR "/lib/libfullrank.so", RTLD_NOW | RTLD_LOCAL);
    struct fr_segment *s;
    int (*theirs)(void);

    fullrank_step_begin(4);
    CHECK(library);
    theirs = (int (*)(void))dlsym(library, "fullrank_watched");
    CHECK(theirs && theirs != fullrank_watched && theirs() == 0);
    fullrank_step_end(NULL);
    fullrank_step_begin(5);
    s = open_own(dir);
    CHECK(s && fr_segment_header(s)->step == 5);
    fr_segment_free(s);
}

static void a_second_copy_of_the_library_does_not_take_the_segment_over(void **state)
{
    (void)state;
    in_child(second_copy, 0);
}

/* NCCL opens the plugin with dlopen, before or after the program's first mark. */
static void plugin_beside(const char *dir, int plugin_first)
{
    const struct fr_nccl_profiler_v6 *table;
    struct fr_segment *s;
    void *library, *context = NULL;
    int mask = 0;

    if (!plugin_first)
        fullrank_step_begin(4);
    library = dlopen(FR_BUILD_DIR "/lib/libnccl-profiler-fullrank.so", RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    for (int v = 4; v <= 7; v++) {
        char name[] = "ncclProfiler_v0";

        name[sizeof name - 2] = (char)('0' + v);
        CHECK(dlsym(library, name));
    }
    table = dlsym(library, FR_NCCL_SYMBOL_V6);
    CHECK(table->init(&context, 5, &mask, "dp", 1, 8, 3, NULL) == 0 && context && mask);
    if (plugin_first)
        fullrank_step_begin(4);
    s = open_own(dir);
    CHECK(s && fr_segment_header(s)->step == 4 && fr_segment_comms(s, NULL) == 1);
    CHECK(fr_segment_header(s)->sources == (FR_SOURCE_MARKS | FR_SOURCE_NCCL));
    CHECK(fr_segment_header(s)->libraries == (FR_LIBRARY_MARKS | FR_LIBRARY_NCCL));
    CHECK(strcmp(fr_segment_comm(s, 0)->name, "dp") == 0);
    fr_segment_free(s);
}

static void plugin_after(const char *dir)
{
    plugin_beside(dir, 0);
}

static void plugin_before(const char *dir)
{
    plugin_beside(dir, 1);
}

static void marks_and_the_nccl_plugin_write_one_segment(void **state)
{
    (void)state;
    in_child(plugin_after, 0);
    in_child(plugin_before, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_reach_the_reader),
        cmocka_unit_test(steps_and_phases_are_records_with_their_span),
        cmocka_unit_test(waiting_for_a_core_is_no_self_time),
        cmocka_unit_test(the_newest_steps_stay_in_place),
        cmocka_unit_test(a_dead_process_leaves_its_segment_to_the_agent),
        cmocka_unit_test(a_child_of_fork_leaves_the_segment_alone),
        cmocka_unit_test(a_file_left_by_a_dead_process_of_the_same_pid_is_replaced),
        cmocka_unit_test(a_second_copy_of_the_library_does_not_take_the_segment_over),
        cmocka_unit_test(marks_and_the_nccl_plugin_write_one_segment),
        cmocka_unit_test(without_a_usable_directory_every_mark_is_a_no_op),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
