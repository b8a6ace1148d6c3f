/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring.c - the writer's ring against the agent's reader, both at full speed */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper_ring.h"

/* The probe belongs to a process: each case runs in a child. */
static struct ring_result run(int threads, uint64_t records, int slow)
{
    struct ring_result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ring_result ret;
    char dir[] = "/tmp/fr-ring-XXXXXX";
    int status = -1;
    pid_t pid;

    assert_ptr_not_equal(shared, MAP_FAILED);
    assert_non_null(mkdtemp(dir));
    pid = fork();
    if (pid == 0) {
        ring_run(dir, threads, records, slow, shared);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    ret = *shared;
    munmap(shared, sizeof *shared);
    assert_int_equal(rmdir(dir), 0);
    return ret;
}

static void every_record_is_given_right_or_counted_as_lost(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct ring_result r = run(1, 3000000, slow);

        assert_string_equal(r.error, "");
        assert_int_equal(r.wrong, 0);
        assert_int_equal(r.given + r.lost, r.written);
        assert_true(r.given > 0);
    }
}

static void threads_write_lanes_of_their_own(void **state)
{
    struct ring_result r = run(4, 300000, 0);

    (void)state;
    assert_string_equal(r.error, "");
    assert_int_equal(r.wrong, 0);
    assert_true(r.lanes >= 1 && r.lanes <= 4); /* a lane that is given back is used again */
    assert_int_equal(r.given + r.lost, r.written);
}

static void few_records_are_never_lost(void **state)
{
    struct ring_result r = run(2, 4000, 1);

    (void)state;
    assert_string_equal(r.error, "");
    assert_int_equal(r.wrong, 0);
    assert_int_equal(r.lost, 0);
    assert_int_equal(r.given, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_record_is_given_right_or_counted_as_lost),
        cmocka_unit_test(threads_write_lanes_of_their_own),
        cmocka_unit_test(few_records_are_never_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
