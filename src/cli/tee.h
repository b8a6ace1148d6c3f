/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tee.h - carry a job's error output on to ours, and let the launcher's word be read on the way
 *
 * When our own stderr takes nothing more (a stopped terminal, a full pipe), reading stops too: the
 * job feels the back-pressure that it would feel without us, and the supervisor goes on working.
 *
 * Memory:  one fixed buffer.
 * Threads: none; one owner at a time.
 */
#ifndef FR_CLI_TEE_H
#define FR_CLI_TEE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "engine/local/word.h"

#define FR_TEE_BYTES 65536

struct fr_tee {
    int in;  /* read end, -1: closed */
    int out; /* where it goes, -1: given up */
    size_t len, at;
    char buf[FR_TEE_BYTES];
};

/* Make the pipe; *ret_write is the end for the job (close it after the launch). */
int fr_tee_open(struct fr_tee *t, int out, int *ret_write, struct fr_err *err);
/* What to wait for: fills two entries (fd -1: nothing). */
void fr_tee_poll(const struct fr_tee *t, struct pollfd fds[2]);
/* Move what can be moved without waiting. */
void fr_tee_move(struct fr_tee *t, struct fr_word *word);
/* Move the rest, for at most limit_s, and close the pipe. */
void fr_tee_close(struct fr_tee *t, struct fr_word *word, double limit_s);

#endif /* FR_CLI_TEE_H */
