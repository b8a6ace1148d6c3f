/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - lanes are claimed, given back, and their run-queue wait is read; see probe.h */
#define _GNU_SOURCE
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

FR_TLS struct fr_lane fr_lane_self;

extern void *__dso_handle __attribute__((visibility("hidden")));
/* In libc since 2.18; what C++ thread_local uses. Allocates once, when a lane is claimed. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);

static struct fr_seg_lane *lane_at(uint32_t i)
{
    const struct fr_seg_header *h = fr_probe.hdr;

    return (struct fr_seg_lane *)(fr_probe.base + h->lane_off + (uint64_t)i * h->lane_bytes);
}

/* The thread ends: another may go on in its lane, where it stopped. */
static void give_back(void *arg)
{
    struct fr_lane *l = arg;

    if (l->ready_fd >= 0)
        close(l->ready_fd);
    if (l->seg && !l->denied)
        __atomic_store_n(&l->seg->owner, 0, __ATOMIC_RELEASE);
    l->seg = NULL;
    free(l->spare);
    l->spare = NULL;
}

static int open_ready(long tid)
{
    char path[64];

    if (fr_probe.level <= FR_PROBE_HANG)
        return -1;
    snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", tid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Second field: nanoseconds spent waiting on a run queue. Returns 0 and sets *ret_ns. */
static int read_ready(int fd, uint64_t *ret_ns)
{
    char buf[96], *p;
    ssize_t n = pread(fd, buf, sizeof buf - 1, 0);

    if (n <= 0)
        return -1;
    buf[n] = '\0';
    p = strchr(buf, ' ');
    if (!p)
        return -1;
    *ret_ns = 0;
    for (p++; *p >= '0' && *p <= '9'; p++)
        *ret_ns = *ret_ns * 10u + (uint64_t)(*p - '0');
    return 0;
}

void fr_lane_read_ready(struct fr_lane *l, uint64_t now, int in_gap)
{
    uint64_t seen, waited, gap_ns;
    int saved = errno;

    if (l->ready_fd < 0 || read_ready(l->ready_fd, &seen) != 0) {
        errno = saved;
        l->gap_unread = 0;
        return;
    }
    waited = seen - l->ready_seen_ns;
    l->ready_seen_ns = seen;
    l->t_read = now;
    if (in_gap) {
        /* Short calls since the last read may have waited too: never say more than the gap. */
        gap_ns = fr_ticks_ns(l->gap_unread);
        if (waited > gap_ns)
            waited = gap_ns;
        l->ready_gap_ns += waited;
        l->ready_ns += waited;
        fr_store(&l->seg->ready_ns, l->ready_ns);
    }
    l->gap_unread = 0;
    errno = saved;
}

/* A lane of its own that nobody reads, so that the hot path needs no second form. */
static int claim_spare(struct fr_lane *l)
{
    l->spare = aligned_alloc(64, sizeof *l->spare + sizeof(struct fr_record));
    if (!l->spare)
        return -1;
    memset(l->spare, 0, sizeof *l->spare + sizeof(struct fr_record));
    l->seg = l->spare;
    l->denied = 1;
    l->mask = 0;
    l->head = 0;
    return 0;
}

static int claim_shared(struct fr_lane *l, uint64_t tid)
{
    struct fr_seg_header *h = fr_probe.hdr;

    for (uint32_t i = 0; i < h->lane_count; i++) {
        struct fr_seg_lane *seg = lane_at(i);
        uint64_t nobody = 0;
        uint32_t used;

        if (!__atomic_compare_exchange_n(&seg->owner, &nobody, tid, 0, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        l->seg = seg;
        l->mask = fr_probe.mask;
        l->head = seg->head; /* its owner before us gave it back with release */
        l->calls = seg->calls;
        l->in_calls = seg->in_calls_ticks;
        l->ready_ns = seg->ready_ns;
        used = __atomic_load_n(&h->lanes_used, __ATOMIC_RELAXED);
        while (used < i + 1 && !__atomic_compare_exchange_n(&h->lanes_used, &used, i + 1, 0,
                                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            ;
        /* Touch each page now: a first write later would be a fault inside a step. */
        if (l->head == 0)
            for (uint32_t r = 0; r <= l->mask; r += 4096u / sizeof(struct fr_record))
                ((volatile struct fr_record *)(seg + 1))[r].index = 0;
        return 0;
    }
    return -1;
}

int fr_lane_share(struct fr_lane *l, uint64_t owner)
{
    if (__atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE) != FR_PROBE_ON)
        return 0;
    memset(l, 0, sizeof *l);
    l->ready_fd = -1;
    if (claim_shared(l, owner) != 0)
        return 0;
    l->records = (struct fr_record *)(l->seg + 1);
    l->t_last = l->t_read = fr_ticks();
    return 1;
}

int fr_lane_claim(struct fr_lane *l)
{
    long tid;
    int saved = errno;

    if (__atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE) != FR_PROBE_ON)
        return 0;
    memset(l, 0, sizeof *l);
    l->ready_fd = -1;
    tid = syscall(SYS_gettid);
    if (claim_shared(l, (uint64_t)tid) != 0 && claim_spare(l) != 0) {
        errno = saved;
        return 0;
    }
    l->records = (struct fr_record *)(l->seg + 1);
    l->ready_fd = open_ready(tid);
    if (l->ready_fd >= 0 && read_ready(l->ready_fd, &l->ready_seen_ns) != 0) {
        close(l->ready_fd);
        l->ready_fd = -1;
    }
    l->t_last = l->t_read = fr_ticks();
    __cxa_thread_atexit_impl(give_back, l, &__dso_handle);
    errno = saved;
    return 1;
}
