/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_nccl.h - NCCL's side of the profiler interface, played by a test
 *
 * Plays the callback sequences of one communicator into the plugin that is linked into the test, in
 * the order and with the defects of real releases, and reads back what the agent would read.
 *
 * Unit:    GPU times are CLOCK_MONOTONIC nanoseconds plus NCCL_EPOCH.
 * Threads: a player belongs to one thread; a reader to another.
 */
#ifndef FR_PROBE_TEST_HELPER_NCCL_H
#define FR_PROBE_TEST_HELPER_NCCL_H

#include <stdint.h>

#include "probe/nccl/abi.h"
#include "wire/segment.h"

#define NCCL_EPOCH 1700000000000000000ull /* of the played GPU clock */

/* Fails the child in which a case runs; the parent's assertion names it. */
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

struct player {
    int version;
    void *context;
    int mask;
};

struct played {
    uint64_t seq, count;
    const char *func, *datatype, *algo, *proto;
    int channels, root;
    void *group; /* v4: parent; later: parentGroup */
};

struct reader {
    struct fr_segment *s;
    struct fr_record *r;
    uint64_t n, cap, lost;
};

/* Run fn in a child of its own with a fresh FULLRANK_PROBE_DIR; level NULL: the default. Returns
 * its exit status. */
int nccl_child(void (*fn)(void), const char *level);

uint64_t nccl_gpu_now(void);

void player_init(struct player *p, int version, uint64_t id, const char *name, int nranks,
                 int rank);
void player_fini(struct player *p);

void *play_group_start(struct player *p);
void *play_coll_start(struct player *p, const struct played *c);
void *play_p2p_start(struct player *p, const char *func, int peer, uint64_t count,
                     const char *datatype, int channels, void *group);
void *play_channel_start(struct player *p, void *parent, int channel, uint64_t timer);
void play_channel_stop(struct player *p, void *handle, uint64_t timer);
void *play_proxy_start(struct player *p, void *parent, int pid, int channel, int is_send);
void play_stop(struct player *p, void *handle);
void play_state(struct player *p, void *handle, int state, uint64_t timer);
void *play_ce(struct player *p, const char *func, uint64_t count, const char *datatype, int root);
/* Any descriptor of any version; the bytes are taken as they are. */
void *play_raw(struct player *p, void *context, const struct fr_nccl_descr_v7 *d);

/* The start of a kernel: all channels of one operation start and stop, in NCCL's order. */
void play_kernel(struct player *p, void *handle, int channels, uint64_t start, uint64_t end);

/* One whole ungrouped call. The kernel runs from now on for a microsecond or so. */
void play_call(struct player *p, const struct played *c, uint64_t *ret_start, uint64_t *ret_end);

void reader_open(struct reader *r);
void reader_take(struct reader *r); /* drain, and read header and communicators again */
void reader_close(struct reader *r);
uint64_t reader_dropped(struct reader *r);
/* The slot of the communicator with that name and instance. */
const struct fr_seg_comm *reader_comm(struct reader *r, const char *name, uint32_t instance);

#endif /* FR_PROBE_TEST_HELPER_NCCL_H */
