/* SPDX-License-Identifier: Apache-2.0 */
/*
 * word.h - the launcher's last word: which rank ended the job, and how
 *
 * mpirun writes a short paragraph to stderr when a rank dies. It is one witness among
 * others: the ranks write to the same stream, so the text is read, never trusted alone.
 *
 * Source:  Open MPI 4.1.4, orte/tools/orterun/help-orterun.txt (orterun:proc-aborted-strsignal,
 *          orterun:proc-exit-nonzero..., orterun:executable-not-found), ompi/mpi help-mpi-api.txt
 * (mpi-abort). Memory:  fixed; a line beyond FR_WORD_LINE_BYTES is read up to there. Threads: none;
 * one owner at a time.
 */
#ifndef FR_ENGINE_LOCAL_WORD_H
#define FR_ENGINE_LOCAL_WORD_H

#include <stddef.h>
#include <stdint.h>

#define FR_WORD_LINE_BYTES 512

struct fr_word {
    int32_t rank;      /* -1: none named */
    int32_t signal;    /* 0: none named */
    int32_t exit_code; /* -1: none named */
    char text[256];    /* the sentence, for people; "" none */
    /* parser's own */
    char line[FR_WORD_LINE_BYTES];
    size_t len;
};

void fr_word_init(struct fr_word *w);

/* Read n more bytes of the stream, cut anywhere. The first death that is named stays. */
void fr_word_feed(struct fr_word *w, const char *p, size_t n);

#endif /* FR_ENGINE_LOCAL_WORD_H */
