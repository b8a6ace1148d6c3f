/* SPDX-License-Identifier: Apache-2.0 */
/* test_local.c - the local engine with the real mpirun and real processes, each case in a session
 * of its own */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "engine/engine.h"
#include "engine/local/procs.h"

#define LIMIT_S 30.0

static char dir[64];

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #what);                   \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

/* Run fn as the leader of a session, as the supervisor is one. */
static int in_session(int (*fn)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        setsid();
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        alarm(90); /* a test that hangs ends */
        _exit(fn());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static struct fr_placement PLACES[2] = {
    {.node = "n0", .probe_dir = "/tmp/p0", .first_rank = 0, .nranks = 2},
    {.node = "n1", .probe_dir = "/tmp/p1", .first_rank = 2, .nranks = 1}};

static struct fr_launch launch_of(char *const *command, char *attempt_dir, size_t n)
{
    static int count;

    snprintf(attempt_dir, n, "%s/attempt-%d", dir, ++count);
    return (struct fr_launch){.job = "j-7",
                              .attempt = 2,
                              .epoch = 9,
                              .placements = PLACES,
                              .nplacements = 2,
                              .command = command,
                              .level = "perf",
                              .work_dir = dir,
                              .attempt_dir = attempt_dir,
                              .stdout_fd = -1,
                              .stderr_fd = -1};
}

static int exit_code_of(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The text of dir/name once it has `lines` lines; NULL when that does not happen in time. */
static const char *await_lines(const char *name, int lines)
{
    static struct fr_buf b;
    uint64_t until = fr_mono_ns() + (uint64_t)(LIMIT_S * 1e9);
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    while (fr_mono_ns() < until) {
        int n = 0;

        fr_buf_reset(&b);
        if (fr_fs_read(path, 1u << 16, &b, NULL) == 0)
            for (size_t i = 0; i < b.len; i++)
                n += b.p[i] == '\n';
        if (n >= lines)
            return fr_buf_str(&b);
        poll(NULL, 0, 10);
    }
    return NULL;
}

static int true_body(void)
{
    char *command[] = {(char *)"true", NULL}, attempt_dir[128];
    struct fr_launch l = launch_of(command, attempt_dir, sizeof attempt_dir);
    struct fr_attempt_proc p;
    struct fr_engine *e;

    CHECK(fr_engine_find("local")->open(dir, &e, NULL) == 0);
    CHECK(fr_engine_find("local")->launch(e, &l, &p, NULL) == 0);
    CHECK(exit_code_of(p.launcher) == 0);
    fr_engine_find("local")->sweep(e, &l);
    CHECK(access(attempt_dir, F_OK) < 0);
    fr_engine_find("local")->close(e);
    return 0;
}

static void a_program_without_mpi_runs_to_its_exit_code(void **state)
{
    (void)state;
    assert_int_equal(in_session(true_body), 0);
}

static int identity_body(void)
{
    char *command[] = {(char *)"sh", (char *)"-c",
                       (char *)"echo $OMPI_COMM_WORLD_RANK $FULLRANK_NODE $FULLRANK_PROBE_DIR "
                               "$FULLRANK_JOB $FULLRANK_ATTEMPT $FULLRANK_EPOCH "
                               "$FULLRANK_PROBE $(cut -d' ' -f6 /proc/$$/stat) >> who; exit 0",
                       NULL};
    char attempt_dir[128], want[200];
    struct fr_launch l = launch_of(command, attempt_dir, sizeof attempt_dir);
    struct fr_attempt_proc p;
    struct fr_engine *e;
    const char *who;

    CHECK(fr_engine_find("local")->open(dir, &e, NULL) == 0);
    CHECK(fr_engine_find("local")->launch(e, &l, &p, NULL) == 0);
    CHECK(p.session == getpid());
    CHECK(exit_code_of(p.launcher) == 0);
    who = await_lines("who", 3);
    CHECK(who);
    for (int r = 0; r < 3; r++) {
        snprintf(want, sizeof want, "%d n%d /tmp/p%d j-7 2 9 perf %d\n", r, r == 2, r == 2,
                 (int)getpid());
        CHECK(strstr(who, want));
    }
    fr_engine_find("local")->sweep(e, &l);
    fr_engine_find("local")->close(e);
    return 0;
}

static void ranks_come_in_order_with_their_node_and_job_in_one_session(void **state)
{
    (void)state;
    assert_int_equal(in_session(identity_body), 0);
}

static int stop_body(void)
{
    /* Each rank leaves a child in a session of its own behind, says where it is, and stops itself.
     */
    char *command[] = {(char *)"sh", (char *)"-c",
                       (char *)"setsid sleep 300 & echo $$ $! >> stopped; kill -STOP $$; sleep 300",
                       NULL};
    char attempt_dir[128];
    struct fr_launch l = launch_of(command, attempt_dir, sizeof attempt_dir);
    struct fr_err err = FR_ERR_INIT;
    struct fr_attempt_proc p;
    struct fr_engine *e;
    struct fr_proc *left;
    const char *s;
    int pid[6], status;
    uint64_t t0;

    CHECK(fr_engine_find("local")->open(dir, &e, NULL) == 0);
    CHECK(fr_engine_find("local")->launch(e, &l, &p, NULL) == 0);
    s = await_lines("stopped", 3);
    CHECK(s && sscanf(s, "%d %d\n%d %d\n%d %d", &pid[0], &pid[1], &pid[2], &pid[3], &pid[4],
                      &pid[5]) == 6);
    for (int i = 0; i < 6; i += 2) { /* all ranks are stopped by now, or will be in a moment */
        struct fr_proc q = {0};

        for (int k = 0; k < 1000 && (fr_proc_read(pid[i], &q) < 0 || q.state != 'T'); k++)
            poll(NULL, 0, 10);
        CHECK(q.state == 'T');
    }
    t0 = fr_mono_ns();
    CHECK(fr_engine_find("local")->stop(e, &p, 10, &err) == 0);
    fprintf(stderr, "stop of 3 stopped ranks and their strays: %.0f ms\n",
            (double)(fr_mono_ns() - t0) / 1e6);
    CHECK(fr_mono_ns() - t0 < 5 * 1000000000ull);
    while (waitpid(-1, &status, WNOHANG) > 0)
        ;
    CHECK(fr_procs_of_session(getpid(), getpid(), getpid(), &left) == 0);
    free(left);
    for (int i = 0; i < 6; i++)
        CHECK(kill(pid[i], 0) < 0 && errno == ESRCH);
    CHECK(access(attempt_dir, F_OK) == 0);
    fr_engine_find("local")->sweep(e, &l);
    CHECK(access(attempt_dir, F_OK) < 0);
    fr_engine_find("local")->close(e);
    return 0;
}

static void stop_ends_stopped_ranks_and_those_that_left_the_session(void **state)
{
    (void)state;
    assert_int_equal(in_session(stop_body), 0);
}

static void stop_refuses_a_session_that_the_caller_does_not_lead(void **state)
{
    struct fr_attempt_proc p = {.launcher = getpid(), .session = getppid()};
    struct fr_err err = FR_ERR_INIT;
    struct fr_engine *e;

    (void)state;
    assert_int_equal(fr_engine_find("local")->open(dir, &e, NULL), 0);
    assert_int_equal(fr_engine_find("local")->stop(e, &p, 1, &err), -EPERM);
    assert_true(err.text[0] != '\0');
    fr_engine_find("local")->close(e);
}

static void what_mpirun_would_take_for_its_own_is_refused(void **state)
{
    char *colon[] = {(char *)"echo", (char *)":", (char *)"rm", NULL},
         *dash[] = {(char *)"--mca", NULL}, attempt_dir[128];
    struct fr_launch l;
    struct fr_attempt_proc p;
    struct fr_err err = FR_ERR_INIT;
    struct fr_engine *e;

    (void)state;
    assert_int_equal(fr_engine_find("local")->open(dir, &e, NULL), 0);
    l = launch_of(colon, attempt_dir, sizeof attempt_dir);
    assert_int_equal(fr_engine_find("local")->launch(e, &l, &p, &err), -EINVAL);
    l = launch_of(dash, attempt_dir, sizeof attempt_dir);
    assert_int_equal(fr_engine_find("local")->launch(e, &l, &p, &err), -EINVAL);
    fr_engine_find("local")->close(e);
}

static void a_process_name_cannot_forge_its_stat(void **state)
{
    static const char LINE[] =
        "42 (a) R 1 2 3 (b)) S 7 42 9 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 123456 1 2 3";
    struct fr_proc p;

    (void)state;
    assert_int_equal(fr_proc_parse_stat(LINE, strlen(LINE), &p), 0);
    assert_int_equal(p.pid, 42);
    assert_int_equal(p.ppid, 7);
    assert_int_equal(p.session, 9);
    assert_int_equal(p.state, 'S');
    assert_int_equal(p.starttime, 123456);
    for (size_t n = 0; n < strlen(LINE) - 12; n++) /* cut anywhere before the start time: refused */
        assert_int_equal(fr_proc_parse_stat(LINE, n, &p), -EINVAL);
}

static void a_pid_that_is_another_process_now_is_not_opened(void **state)
{
    struct fr_proc p;
    int fd;

    (void)state;
    assert_int_equal(fr_proc_read(getpid(), &p), 0);
    fd = fr_proc_open(&p);
    assert_true(fd >= 0);
    close(fd);
    p.starttime++;
    assert_int_equal(fr_proc_open(&p), -ESRCH);
}

static void engines_that_are_not_there_are_not_found(void **state)
{
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_null(fr_engine_find("pbs"));
    assert_null(fr_engine_find(NULL));
    fr_engine_cannot(fr_engine_find("local"), "mark a node down", &err);
    assert_string_equal(err.text,
                        "engine local cannot mark a node down (it has no scheduler to tell)");
}

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/fullrank-test-local-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    return fr_fs_remove_tree(dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_mpi_runs_to_its_exit_code),
        cmocka_unit_test(ranks_come_in_order_with_their_node_and_job_in_one_session),
        cmocka_unit_test(stop_ends_stopped_ranks_and_those_that_left_the_session),
        cmocka_unit_test(stop_refuses_a_session_that_the_caller_does_not_lead),
        cmocka_unit_test(what_mpirun_would_take_for_its_own_is_refused),
        cmocka_unit_test(a_process_name_cannot_forge_its_stat),
        cmocka_unit_test(a_pid_that_is_another_process_now_is_not_opened),
        cmocka_unit_test(engines_that_are_not_there_are_not_found),
    };

    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
