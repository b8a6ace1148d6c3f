/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.h - evidence of a node for an incident's bundle, taken before anything is ended (law 10)
 *
 * Reading the stack or the memory map of a stuck process can wait for a kernel lock, so it is done
 * on a worker thread, with copies of what the loop knows.
 *
 * In two rounds: what can be had at once, and, where a stuck job's processes were asked for their
 * Flight Recorder dumps, those (agent/recorder.h). The first is sent while the second is waited
 * for.
 *
 * Range:   FR_COLLECT_ITEMS items of at most 64 KiB each; dumps of FR_RECORDER_FILE_BYTES each and
 *          FR_COLLECT_DUMP_BYTES together, what is beyond that is cut and said to be.
 * Threads: fr_collect_run and fr_collect_dumps on any one thread; the object has one owner at a
 * time.
 */
#ifndef FR_AGENT_COLLECT_H
#define FR_AGENT_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include "agent/recorder.h"
#include "base/buf.h"
#include "model/job.h"

#define FR_COLLECT_RANKS      256
#define FR_COLLECT_ITEM_BYTES 65536u
#define FR_COLLECT_ITEMS      2048
#define FR_COLLECT_DUMP_BYTES (8u << 20)
#define FR_COLLECT_DUMPS_MS   3000 /* PyTorch looks at its pipe once a second, and has to write */

struct fr_collect_rank {
    int32_t rank;
    uint32_t pid;
    uint64_t starttime; /* another process under that pid is left alone */
    uint32_t uid;
    bool dead; /* only its files can be looked for */
};

struct fr_collect_item {
    char name[64]; /* [a-z0-9._-]+ */
    struct fr_buf data;
};

struct fr_collect {
    /* asked */
    uint64_t command, incident, epoch;
    char job[FR_NAME_BYTES];
    struct fr_collect_rank ranks[FR_COLLECT_RANKS];
    size_t nranks;
    bool dumps; /* ask processes for them */
    /* found */
    struct fr_collect_item *items;
    size_t nitems;
    /* between the rounds: by rank; NULL: no second round */
    struct fr_recorder *recorders;
    struct fr_buf notes; /* what became of each rank's dump */
    bool waits;          /* dumps are on their way */
};

/* Ask for dumps, then read what /proc tells of each rank, and the end of the kernel log where it
 * may be read. Blocks. Afterwards c->waits tells whether a second round is worth its time; where
 * not, it is done already. */
void fr_collect_run(struct fr_collect *c);

/* The second round: wait for the dumps and read them. What was found in the first round is dropped.
 * Blocks for FR_COLLECT_DUMPS_MS and some more. */
void fr_collect_dumps(struct fr_collect *c);

/* Add an item; data is copied and cut. */
void fr_collect_add(struct fr_collect *c, const char *name, const void *data, size_t n);

void fr_collect_free(struct fr_collect *c);

#endif /* FR_AGENT_COLLECT_H */
