/* SPDX-License-Identifier: Apache-2.0 */
/*
 * levels.h - the agent's end of the control page: look closely at a rank, then leave it alone
 *
 * A rank that was asked for more goes back to its own level when its time is over, and all of them
 * when an agent starts: nothing that a dead agent has asked for stays.
 *
 * Memory:  one mapped page of wire/control.h.
 * Threads: the loop's.
 */
#ifndef FR_AGENT_LEVELS_H
#define FR_AGENT_LEVELS_H

#include <stdint.h>

#include "base/err.h"
#include "wire/control.h"

struct fr_levels {
    struct fr_control *page; /* NULL: there is none */
    uint64_t until_ns[FR_CONTROL_ENTRIES];
};

/* Map the page below dir, made if it is not there. -errno with a sentence when somebody else's file
 * is in its place or the folder cannot be written: ranks then stay at their own levels. */
int fr_levels_open(struct fr_levels *l, const char *dir, struct fr_err *err);

/* Take back what was asked. With a folder given, where no rank has the page mapped, its file goes
 * too. */
void fr_levels_close(struct fr_levels *l, const char *dir);

/* Ask a level of a process until then. */
void fr_levels_set(struct fr_levels *l, uint32_t pid, uint32_t level, uint64_t until_ns);

/* Take back what is over. */
void fr_levels_tick(struct fr_levels *l, uint64_t now_ns);

#endif /* FR_AGENT_LEVELS_H */
