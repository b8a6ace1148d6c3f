/* SPDX-License-Identifier: Apache-2.0 */
/* test_word.c - the launcher's last word; the texts below were printed by Open MPI 4.1.4 (Debian
 * 12) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/local/word.h"

static const char KILLED[] =
    "--------------------------------------------------------------------------\n"
    "Primary job  terminated normally, but 1 process returned\n"
    "a non-zero exit code. Per user-direction, the job has been aborted.\n"
    "--------------------------------------------------------------------------\n"
    "--------------------------------------------------------------------------\n"
    "mpirun noticed that process rank 3 with PID 0 on node vm exited on signal 9 (Killed).\n"
    "--------------------------------------------------------------------------\n";
static const char EXITED[] =
    "mpirun detected that one or more processes exited with non-zero status, thus causing\n"
    "the job to be terminated. The first process to do so was:\n\n"
    "  Process name: [[19198,1],3]\n"
    "  Exit code:    5\n";
static const char ABORTED[] =
    "MPI_ABORT was invoked on rank 6 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n";
static const char MISSING[] = "mpirun was unable to find the specified executable file, and "
                              "therefore\ndid not launch the job.\n";

static const char UNSTARTED[] =
    "mpirun was unable to launch the specified application as it could not access\n"
    "or execute an executable:\n\nExecutable: /no/such/program\nNode: vm\n";
static const char LEFT[] = "mpirun has exited due to process rank 3 with PID 0 on\nnode vm exiting "
                           "improperly. There are three reasons this could occur:\n";

static struct fr_word read_whole(const char *text)
{
    struct fr_word w;

    fr_word_init(&w);
    fr_word_feed(&w, text, strlen(text));
    return w;
}

static void a_killed_rank_is_named_with_its_signal(void **state)
{
    struct fr_word w = read_whole(KILLED);

    (void)state;
    assert_int_equal(w.rank, 3);
    assert_int_equal(w.signal, 9);
    assert_int_equal(w.exit_code, -1);
    assert_string_equal(w.text, "process rank 3 exited on signal 9");
}

static void a_rank_that_exits_with_a_code_is_named_with_it(void **state)
{
    struct fr_word w = read_whole(EXITED);

    (void)state;
    assert_int_equal(w.rank, 3);
    assert_int_equal(w.signal, 0);
    assert_int_equal(w.exit_code, 5);
}

static void a_rank_that_calls_mpi_abort_is_named(void **state)
{
    struct fr_word w = read_whole(ABORTED);

    (void)state;
    assert_int_equal(w.rank, 6);
    assert_int_equal(w.exit_code, 7);
}

static void a_program_that_is_not_there_names_no_rank(void **state)
{
    static const char *const TEXTS[] = {MISSING, UNSTARTED};

    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        struct fr_word w = read_whole(TEXTS[i]);

        assert_int_equal(w.rank, -1);
        assert_int_equal(w.exit_code, 127);
        assert_true(w.text[0] != '\0');
    }
}

static void a_rank_that_leaves_without_finalize_is_named(void **state)
{
    struct fr_word w = read_whole(LEFT);

    (void)state;
    assert_int_equal(w.rank, 3);
    assert_int_equal(w.signal, 0);
    assert_true(w.text[0] != '\0');
}

static void the_first_death_stays(void **state)
{
    struct fr_word w;

    (void)state;
    fr_word_init(&w);
    fr_word_feed(&w, KILLED, sizeof KILLED - 1);
    fr_word_feed(&w, EXITED, sizeof EXITED - 1);
    fr_word_feed(&w, ABORTED, sizeof ABORTED - 1);
    assert_int_equal(w.rank, 3);
    assert_int_equal(w.signal, 9);
    assert_int_equal(w.exit_code, -1);
}

/* Property: where the stream is cut makes no difference. */
static void any_cut_of_the_stream_reads_the_same(void **state)
{
    const char *texts[] = {KILLED, EXITED, ABORTED, MISSING};

    (void)state;
    for (size_t t = 0; t < 4; t++) {
        struct fr_word whole = read_whole(texts[t]);

        for (size_t cut = 0; cut <= strlen(texts[t]); cut++) {
            struct fr_word w;

            fr_word_init(&w);
            fr_word_feed(&w, texts[t], cut);
            fr_word_feed(&w, texts[t] + cut, strlen(texts[t]) - cut);
            assert_int_equal(w.rank, whole.rank);
            assert_int_equal(w.signal, whole.signal);
            assert_int_equal(w.exit_code, whole.exit_code);
            assert_string_equal(w.text, whole.text);
        }
    }
}

/* Texts with random bytes in them, numbers out of range included, never give a value that cannot
 * be. */
static void hostile_text_gives_nothing_or_something_possible(void **state)
{
    struct fr_rng rng = {.s = 11};

    (void)state;
    for (int i = 0; i < 20000; i++) {
        char text[700];
        const char *from = i % 2 ? KILLED : EXITED;
        struct fr_word w;

        strcpy(text, from);
        for (uint64_t k = fr_rng_below(&rng, 40); k > 0; k--)
            text[fr_rng_below(&rng, strlen(from))] =
                (char)(fr_rng_below(&rng, 3) ? '0' + (char)fr_rng_below(&rng, 10)
                                             : (char)fr_rng_below(&rng, 256));
        fr_word_init(&w);
        fr_word_feed(&w, text, strlen(from));
        assert_true(w.rank >= -1 && w.rank <= 10000000);
        assert_true(w.signal >= 0 && w.signal <= 64);
        assert_true(w.exit_code >= -1 && w.exit_code <= 255);
    }
}

static void a_line_without_end_is_no_line(void **state)
{
    struct fr_word w;
    char x[4096];

    (void)state;
    memset(x, 'x', sizeof x);
    fr_word_init(&w);
    for (int i = 0; i < 100; i++)
        fr_word_feed(&w, x, sizeof x);
    assert_int_equal(w.rank, -1);
    fr_word_feed(&w, "\n", 1);
    fr_word_feed(&w, KILLED, sizeof KILLED - 1);
    assert_int_equal(w.rank, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_rank_is_named_with_its_signal),
        cmocka_unit_test(a_rank_that_exits_with_a_code_is_named_with_it),
        cmocka_unit_test(a_rank_that_calls_mpi_abort_is_named),
        cmocka_unit_test(a_rank_that_leaves_without_finalize_is_named),
        cmocka_unit_test(a_program_that_is_not_there_names_no_rank),
        cmocka_unit_test(the_first_death_stays),
        cmocka_unit_test(any_cut_of_the_stream_reads_the_same),
        cmocka_unit_test(hostile_text_gives_nothing_or_something_possible),
        cmocka_unit_test(a_line_without_end_is_no_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
