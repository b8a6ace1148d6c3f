/* SPDX-License-Identifier: Apache-2.0 */
/* word.c - see word.h */
#include "engine/local/word.h"

#include <stdio.h>
#include <string.h>

#define RANK_MAX 10000000

void fr_word_init(struct fr_word *w)
{
    memset(w, 0, sizeof *w);
    w->rank = -1;
    w->exit_code = -1;
}

static int in_range(int v, int lo, int hi)
{
    return v >= lo && v <= hi;
}

static void read_line(struct fr_word *w, const char *line)
{
    int rank, pid, number;
    unsigned family, job;

    if (w->rank < 0 || w->text[0] == '\0') {
        if (sscanf(
                line,
                "mpirun noticed that process rank %d with PID %d on node %*s exited on signal %d",
                &rank, &pid, &number) == 3 &&
            in_range(rank, 0, RANK_MAX) && in_range(number, 1, 64)) {
            w->rank = rank;
            w->signal = number;
            w->exit_code = -1;
            snprintf(w->text, sizeof w->text, "process rank %d exited on signal %d", rank, number);
            return;
        }
        if (sscanf(line, "MPI_ABORT was invoked on rank %d", &rank) == 1 &&
            in_range(rank, 0, RANK_MAX)) {
            w->rank = rank;
            snprintf(w->text, sizeof w->text, "rank %d called MPI_Abort", rank);
            return;
        }
        if (strncmp(line, "mpirun was unable to find the specified executable", 50) == 0 ||
            strncmp(line, "mpirun was unable to launch the specified application", 53) == 0) {
            snprintf(w->text, sizeof w->text, "mpirun could not start the program");
            return;
        }
        /* Two lines: the name first, the code behind it. */
        if (sscanf(line, " Process name: [[%u,%u],%d]", &family, &job, &rank) == 3 &&
            in_range(rank, 0, RANK_MAX)) {
            w->rank = rank;
            return;
        }
    }
    if (w->rank >= 0 && w->exit_code < 0 && w->signal == 0) {
        if (sscanf(line, " Exit code: %d", &number) == 1 && in_range(number, 0, 255)) {
            w->exit_code = number;
            if (w->text[0] == '\0')
                snprintf(w->text, sizeof w->text, "process rank %d exited with code %d", w->rank,
                         number);
        } else if (sscanf(line, "with errorcode %d", &number) == 1 && in_range(number, -255, 255)) {
            w->exit_code = number & 0xff;
            snprintf(w->text, sizeof w->text, "rank %d called MPI_Abort with code %d", w->rank,
                     number);
        }
    }
}

void fr_word_feed(struct fr_word *w, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n') {
            w->line[w->len] = '\0';
            read_line(w, w->line);
            w->len = 0;
        } else if (w->len < sizeof w->line - 1) {
            w->line[w->len++] = p[i];
        }
    }
}
