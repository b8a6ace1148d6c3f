/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collect.h - evidence of a node for an incident's bundle, taken before anything is ended (law 10)
 *
 * Reading the stack or the memory map of a stuck process can wait for a kernel lock, so it is done
 * on a worker thread, with copies of what the loop knows.
 *
 * Range:   FR_COLLECT_ITEMS items of at most 64 KiB each.
 * Threads: fr_collect_run on any one thread; the object has one owner at a time.
 */
#ifndef FR_AGENT_COLLECT_H
#define FR_AGENT_COLLECT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/job.h"

#define FR_COLLECT_RANKS      256
#define FR_COLLECT_ITEM_BYTES 65536u
#define FR_COLLECT_ITEMS      2048

struct fr_collect_rank {
    int32_t rank;
    uint32_t pid;
    uint64_t starttime; /* another process under that pid is left alone */
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
    /* found */
    struct fr_collect_item *items;
    size_t nitems;
};

/* Read what /proc tells of each rank, and the end of the kernel log where it may be read. Blocks.
 */
void fr_collect_run(struct fr_collect *c);

/* Add an item; data is copied and cut. */
void fr_collect_add(struct fr_collect *c, const char *name, const void *data, size_t n);

void fr_collect_free(struct fr_collect *c);

#endif /* FR_AGENT_COLLECT_H */
