/* SPDX-License-Identifier: Apache-2.0 */
/* test_log.c - what stands on stderr; each case runs in a child, whose stderr is read back */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"

static struct fr_buf seen;

static void run(void (*fn)(void), const char *setting)
{
    char chunk[4096];
    ssize_t n;
    int fd[2], status;
    pid_t pid;

    assert_int_equal(pipe(fd), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fd[1], STDERR_FILENO);
        close(fd[0]);
        setenv("FULLRANK_LOG", setting, 1);
        fr_log_init("tester");
        fn();
        _exit(0);
    }
    close(fd[1]);
    fr_buf_reset(&seen);
    while ((n = read(fd[0], chunk, sizeof chunk)) > 0)
        fr_buf_add(&seen, chunk, (size_t)n);
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void one_of_each(void)
{
    fr_log(FR_LOG_WARNING, "agent.lost", "node=%s age_s=%.1f why=%s", "n3", 2.0,
           "no route\nto \"host\" x=1");
    fr_log(FR_LOG_DEBUG, "agent.detail", "id=%d", 5);
    fr_log(FR_LOG_INFO, "agent.plain", "just words, no fields");
    fr_log(FR_LOG_INFO, "agent.quoted", "why=\"%s\" x=%s", "disk full", "");
    fr_log(FR_LOG_INFO, "agent.numbers", "a=%d b=%.1f c=%s d=%x e=%.0f%%", -3, (double)NAN, "7",
           255, 5.0);
}

static void a_line_holds_time_level_event_and_quoted_fields(void **state)
{
    (void)state;
    run(one_of_each, "");
    assert_int_equal(seen.p[23], 'Z');
    assert_memory_equal(
        seen.p + 24,
        " warning agent.lost node=n3 age_s=2.0 why=\"no route\\nto \\\"host\\\" x=1\"\n", 69);
    assert_null(strstr(seen.p, "agent.detail")); /* debug is off by default */
    assert_non_null(strstr(seen.p, " info agent.plain just words, no fields\n"));
    assert_non_null(strstr(seen.p, " info agent.quoted why=\"disk full\" x=\"\"\n"));
}

static void the_level_is_chosen_by_the_environment(void **state)
{
    (void)state;
    run(one_of_each, "debug");
    assert_non_null(strstr(seen.p, " debug agent.detail id=5\n"));
    run(one_of_each, "error");
    assert_string_equal(fr_buf_str(&seen), "");
}

static void json_lines_keep_types_and_hostile_text(void **state)
{
    struct fr_json *line[5];
    char *p;
    int n = 0;

    (void)state;
    run(one_of_each, "json,debug");
    for (p = strtok(seen.p, "\n"); p; p = strtok(NULL, "\n"))
        assert_int_equal(fr_json_parse(p, strlen(p), &line[n++], NULL), 0);
    assert_int_equal(n, 5);
    assert_string_equal(fr_json_str(line[0], "event", ""), "agent.lost");
    assert_string_equal(fr_json_str(line[0], "program", ""), "tester");
    assert_string_equal(fr_json_str(line[0], "level", ""), "warning");
    assert_string_equal(fr_json_str(line[0], "why", ""), "no route\nto \"host\" x=1");
    assert_true(fr_json_num(line[0], "age_s", 0) == 2);
    assert_string_equal(fr_json_str(line[2], "message", ""), "just words, no fields");
    assert_string_equal(fr_json_str(line[3], "why", ""), "disk full");
    assert_int_equal(fr_json_int(line[4], "a", 0), -3);
    assert_true(fr_json_is_null(fr_json_get(line[4], "b")));
    assert_string_equal(fr_json_str(line[4], "c", ""), "7"); /* a name stays a text */
    assert_string_equal(fr_json_str(line[4], "d", ""), "ff");
    assert_string_equal(fr_json_str(line[4], "e", ""), "5%");
    for (int i = 0; i < n; i++)
        fr_json_free(line[i]);
}

static void flood(void)
{
    for (int i = 0; i < 1000; i++)
        fr_log(FR_LOG_INFO, "flood", "i=%d", i);
    for (int i = 0; i < 500; i++) { /* many names do not push a counted one out at once */
        char name[32];

        snprintf(name, sizeof name, "other.%d", i);
        fr_log(FR_LOG_INFO, name, "i=%d", i);
    }
}

static void a_repeating_event_is_held_back_after_ten(void **state)
{
    int floods = 0, others = 0;

    (void)state;
    run(flood, "");
    for (char *p = strtok(seen.p, "\n"); p; p = strtok(NULL, "\n")) {
        floods += strstr(p, " flood ") != NULL;
        others += strstr(p, " other.") != NULL;
    }
    assert_int_equal(floods, 10);
    assert_int_equal(others, 500);
}

static void complain(void)
{
    fr_complain("fullrank", "%s: %s (%s)", "runs.db", "too new", "upgrade");
}

static void a_complaint_is_one_line_for_a_person(void **state)
{
    (void)state;
    run(complain, "json");
    assert_string_equal(fr_buf_str(&seen), "fullrank: error: runs.db: too new (upgrade)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_holds_time_level_event_and_quoted_fields),
        cmocka_unit_test(the_level_is_chosen_by_the_environment),
        cmocka_unit_test(json_lines_keep_types_and_hostile_text),
        cmocka_unit_test(a_repeating_event_is_held_back_after_ten),
        cmocka_unit_test(a_complaint_is_one_line_for_a_person),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);

    fr_buf_fini(&seen);
    return rc;
}
