/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the one page through which an agent asks the ranks of its node for more or less
 *
 * Segments are written by ranks and only read by the agent; this page is the other way round. The
 * agent makes FULLRANK_PROBE_DIR/fullrank.ctl when it starts, and keeps the file for as long as it
 * is whole, so that jobs that have it mapped go on seeing it when the agent is replaced. A probe
 * maps it read-only, if it belongs to root or to the job's own user and nobody else may write
 * it, and looks at its own word with one relaxed load. No agent, no file, a file of
 * somebody else: the probe stays at the level of its environment.
 *
 * Shape:   entry[pid % FR_CONTROL_ENTRIES] is (pid << 32 | FR_CONTROL_SET | level); a word with
 *          another pid says nothing. Two ranks whose pids meet share an entry: the one asked last
 *          has it, the other goes back to its own level.
 * Threads: words are stored and loaded whole, relaxed: a level stands for itself.
 * Memory:  one page; never cut short, so that a mapped page cannot vanish under a rank.
 */
#ifndef FR_WIRE_CONTROL_H
#define FR_WIRE_CONTROL_H

#include <stdint.h>

#define FR_CONTROL_FILE    "fullrank.ctl"
#define FR_CONTROL_MAGIC   0x4c5254434c4c5546ull /* "FULLCTRL", little-endian */
#define FR_CONTROL_ENTRIES 510u
#define FR_CONTROL_SET     0x100u

struct fr_control {
    uint64_t magic;
    uint64_t version; /* 1 */
    uint64_t entry[FR_CONTROL_ENTRIES];
};

_Static_assert(sizeof(struct fr_control) == 4096, "one page");

static inline uint64_t fr_control_word(uint32_t pid, uint32_t level)
{
    return (uint64_t)pid << 32 | FR_CONTROL_SET | (level & 0xffu);
}

/* The level that the word asks of `pid`, or `otherwise`. */
static inline uint32_t fr_control_level(uint64_t word, uint32_t pid, uint32_t otherwise)
{
    uint32_t level = (uint32_t)word & 0xffu;

    if (word >> 32 != pid || !(word & FR_CONTROL_SET) || level > 3)
        return otherwise;
    return level;
}

#endif /* FR_WIRE_CONTROL_H */
