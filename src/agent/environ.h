/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environ.h - a look into the environment that a process was started with
 *
 * It lies in the process's own memory, so what it says is the user's word, and it may be anything:
 * good for finding out where to look, never for who somebody is (law 11). The read can wait for a
 * lock of the process's memory: not on the loop.
 *
 * Range:   the first FR_ENVIRON_BYTES.
 * Threads: none.
 */
#ifndef FR_AGENT_ENVIRON_H
#define FR_AGENT_ENVIRON_H

#include <stdint.h>

#include "base/buf.h"

#define FR_ENVIRON_BYTES (256u << 10)

/* Read it; b is emptied first. 0 or -errno. */
int fr_environ_read(uint32_t pid, struct fr_buf *b);

/* The value of a variable, or NULL. Borrowed from b. */
const char *fr_environ_get(const struct fr_buf *b, const char *name);

#endif /* FR_AGENT_ENVIRON_H */
