/* SPDX-License-Identifier: Apache-2.0 */
/* test_sensors.c - sensors on captured trees, and on this machine against a second source */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sense/pressure/pressure.h"
#include "sense/proc/cgroup.h"
#include "sense/proc/process.h"

#define CAPTURE FR_SOURCE_DIR "/src/sense/test/capture"

static void open_captured(const char *name, const char *tree, uint32_t pid, const struct fr_sensor **ret_sensor,
                          struct fr_sense_value *v)
{
    const struct fr_sensor *s = fr_sensor_find(name);
    char root[512];
    struct fr_sense *open;
    struct fr_err err = FR_ERR_INIT;

    assert_non_null(s);
    snprintf(root, sizeof root, "%s/%s", CAPTURE, tree);
    assert_int_equal(s->open(&(struct fr_sense_target){root, pid}, &open, &err), 0);
    assert_int_equal(s->sample(open, v), 0);
    s->close(open);
    *ret_sensor = s;
}

static void a_captured_stopped_process_reads_as_its_files_say(void **state)
{
    struct fr_sense_value v[FR_SENSE_COLUMNS];
    const struct fr_sensor *s;

    (void)state;
    open_captured("process", "v2", 4242, &s, v);
    assert_int_equal(fr_sense_get(s, v, "state")->u, 'T');
    /* utime 1234 + stime 66 ticks of 1/100 s */
    assert_int_equal(fr_sense_get(s, v, "cpu_ns")->u, 13000000000ull);
    assert_int_equal(fr_sense_get(s, v, "run_delay_ns")->u, 987654321);
    assert_int_equal(fr_sense_get(s, v, "major_faults")->u, 7);
    assert_string_equal(fr_sense_get(s, v, "wchan")->text, "do_signal_stop");
    assert_null(fr_sense_get(s, v, "no_such"));
}

static void throttled_time_is_found_under_both_versions_of_cgroups(void **state)
{
    struct fr_sense_value v[FR_SENSE_COLUMNS];
    const struct fr_sensor *s;

    (void)state;
    open_captured("cgroup", "v2", 4242, &s, v);
    assert_true(v[0].known);
    assert_int_equal(v[0].u, 5000000); /* 5000 us */
    open_captured("cgroup", "v1", 4242, &s, v);
    assert_true(v[0].known);
    assert_int_equal(v[0].u, 123456789);
}

static void what_the_machine_does_not_tell_is_unknown_and_not_zero(void **state)
{
    struct fr_sense_value v[FR_SENSE_COLUMNS];
    const struct fr_sensor *s;

    (void)state;
    open_captured("pressure", "v2", 0, &s, v);
    assert_true(v[FR_PRESSURE_CPU_SOME].known);
    assert_int_equal(v[FR_PRESSURE_CPU_SOME].u, 9485125);
    assert_int_equal(v[FR_PRESSURE_MEMORY_FULL].u, 22);
    assert_true(v[FR_PRESSURE_LOAD1].d == 1.25);
    open_captured("pressure", "v1", 0, &s, v); /* a kernel without PSI */
    assert_false(v[FR_PRESSURE_CPU_SOME].known);
    assert_true(v[FR_PRESSURE_LOAD1].known);
}

static void a_command_name_of_blanks_and_brackets_is_survived(void **state)
{
    struct fr_proc_stat st;

    (void)state;
    assert_int_equal(fr_proc_stat_parse("7 (a) R 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21", &st),
                     0);
    assert_int_equal(st.state, 'S');
    assert_int_equal(st.session, 3);
    assert_int_equal(st.starttime, 19);
    assert_int_equal(st.rss_pages, 21);
    assert_int_equal(fr_proc_stat_parse("", &st), -EINVAL);
    assert_int_equal(fr_proc_stat_parse("7 (a) ", &st), -EINVAL);
    assert_int_equal(fr_proc_stat_parse("7 (a) S 1 2", &st), -EINVAL);
    assert_int_equal(fr_proc_stat_parse("7 (a) S 1 2 x 4", &st), -EINVAL);
}

static void every_cut_of_a_stat_line_is_refused_or_read(void **state)
{
    static const char LINE[] = "7 (a b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23";
    struct fr_proc_stat st;

    (void)state;
    for (size_t n = 0; n <= sizeof LINE - 1; n++) {
        char cut[sizeof LINE];
        int rc;

        memcpy(cut, LINE, n);
        cut[n] = '\0';
        rc = fr_proc_stat_parse(cut, &st);
        assert_true(rc == 0 || rc == -EINVAL);
    }
}

static pid_t sleeper(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        for (;;)
            pause();
    }
    return pid;
}

static void a_living_process_reads_like_getpid_and_getrusage_say(void **state)
{
    struct fr_sense_value v[FR_SENSE_COLUMNS];
    struct fr_sense *s;
    struct fr_proc_stat st;
    struct rusage ru;
    uint64_t mine;
    uint32_t uid;

    (void)state;
    assert_int_equal(fr_proc_stat_read("", (uint32_t)getpid(), &st), 0);
    assert_int_equal(st.session, getsid(0));
    assert_int_equal(st.state, 'R');
    assert_int_equal(fr_proc_uid("", (uint32_t)getpid(), &uid), 0);
    assert_int_equal(uid, getuid());
    assert_int_equal(FR_SENSOR_PROCESS.open(&(struct fr_sense_target){"", (uint32_t)getpid()}, &s, NULL), 0);
    for (volatile uint64_t i = 0; i < 30000000; i++)
        ;
    assert_int_equal(FR_SENSOR_PROCESS.sample(s, v), 0);
    getrusage(RUSAGE_SELF, &ru);
    mine = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000ull +
           (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000ull;
    assert_true(v[FR_PROCESS_CPU].u <= mine + 20000000ull && v[FR_PROCESS_CPU].u + 40000000ull >= mine);
    FR_SENSOR_PROCESS.close(s);
}

static void a_stopped_process_is_seen_stopped_and_a_killed_one_tells_its_signal(void **state)
{
    struct fr_sense *s;
    struct fr_proc_stat st;
    pid_t pid = sleeper();
    char letter = 0;
    int pidfd = fr_pidfd_open((uint32_t)pid), status, mine;

    (void)state;
    assert_true(pidfd >= 0);
    assert_int_equal(FR_SENSOR_PROCESS.open(&(struct fr_sense_target){"", (uint32_t)pid}, &s, NULL), 0);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &mine, WUNTRACED), pid);
    assert_int_equal(fr_process_stat(s, &st), 0);
    assert_int_equal(st.state, 'T');
    assert_int_equal(fr_process_state(s, &letter), 0);
    assert_int_equal(letter, 'T');
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0); /* still a zombie */
    assert_int_equal(fr_proc_exit_status(-1, (uint32_t)pid, &status), 0); /* from stat alone */
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(waitpid(pid, &mine, 0), pid);
    assert_int_equal(fr_process_stat(s, &st), -ESRCH);
    status = -1;
    /* Reaped: only a new kernel still knows, and it must say what wait said. */
    if (fr_proc_exit_status(pidfd, (uint32_t)pid, &status) == 0)
        assert_int_equal(status, mine);
    else
        print_message("this kernel does not keep exit statuses in pidfds\n");
    FR_SENSOR_PROCESS.close(s);
    close(pidfd);
}

static void a_missing_process_is_named(void **state)
{
    struct fr_sense *s = NULL;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_int_equal(FR_SENSOR_PROCESS.open(&(struct fr_sense_target){CAPTURE "/v2", 1}, &s, &err), -ESRCH);
    assert_non_null(strstr(err.text, "process 1"));
    assert_null(s);
}

static void a_process_is_in_its_cgroup_and_those_above_but_not_in_a_namesake(void **state)
{
    (void)state;
    assert_true(fr_proc_in_cgroup(CAPTURE "/v2", 4242, "/jobs/j1"));
    assert_true(fr_proc_in_cgroup(CAPTURE "/v2", 4242, "/jobs"));
    assert_false(fr_proc_in_cgroup(CAPTURE "/v2", 4242, "/jobs/j"));
    assert_false(fr_proc_in_cgroup(CAPTURE "/v2", 4242, "/jobs/j12"));
    assert_false(fr_proc_in_cgroup(CAPTURE "/v2", 4242, "/"));
    assert_false(fr_proc_in_cgroup(CAPTURE "/v2", 4242, ""));
}

static void every_sensor_is_complete_and_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; FR_SENSORS[i]; i++) {
        const struct fr_sensor *s = FR_SENSORS[i];

        assert_true(s->ncolumns > 0 && s->ncolumns <= FR_SENSE_COLUMNS);
        assert_ptr_equal(fr_sensor_find(s->name), s);
        assert_true(s->open && s->sample && s->close && s->text && s->needs);
        for (size_t c = 0; c < s->ncolumns; c++)
            assert_true(s->columns[c].name && s->columns[c].text);
    }
    assert_null(fr_sensor_find("nothing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_captured_stopped_process_reads_as_its_files_say),
        cmocka_unit_test(throttled_time_is_found_under_both_versions_of_cgroups),
        cmocka_unit_test(what_the_machine_does_not_tell_is_unknown_and_not_zero),
        cmocka_unit_test(a_command_name_of_blanks_and_brackets_is_survived),
        cmocka_unit_test(every_cut_of_a_stat_line_is_refused_or_read),
        cmocka_unit_test(a_living_process_reads_like_getpid_and_getrusage_say),
        cmocka_unit_test(a_stopped_process_is_seen_stopped_and_a_killed_one_tells_its_signal),
        cmocka_unit_test(a_missing_process_is_named),
        cmocka_unit_test(a_process_is_in_its_cgroup_and_those_above_but_not_in_a_namesake),
        cmocka_unit_test(every_sensor_is_complete_and_has_a_name_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
