/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level.c - how much NCCL is asked to tell, at the start and while the job runs
 *
 * NCCL reads one process-wide word, the activation mask, at each outermost call. The plugin keeps
 * the pointer and changes the word when the agent's control page (wire/control.h) says so; it looks
 * there whenever an operation is enqueued. At level off, asked for at run time, groups alone are
 * still told: without any callback nobody could turn it on again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/nccl/plugin.h"
#include "wire/control.h"

int fr_nccl_mask_for(uint32_t level, uint32_t version)
{
    int mask = FR_NCCL_GROUP;

    if (level >= FR_PROBE_HANG)
        mask |= FR_NCCL_COLL | FR_NCCL_P2P | FR_NCCL_PROXY_OP;
    if (level >= FR_PROBE_HANG && version >= 6)
        mask |= FR_NCCL_CE_COLL;
    if (level >= FR_PROBE_PERF)
        mask |= FR_NCCL_KERNEL_CH;
    if (level >= FR_PROBE_FULL)
        mask |= FR_NCCL_PROXY_STEP;
    return mask;
}

void fr_nccl_new_level(uint64_t word)
{
    uint32_t level = fr_control_level(word, fr_nccl.pid, fr_nccl.level0);
    int *mask = __atomic_load_n(&fr_nccl.mask, __ATOMIC_ACQUIRE);

    fr_store(&fr_nccl.control_seen, word);
    if (level == fr_load(&fr_nccl.level))
        return;
    fr_store(&fr_nccl.level, level);
    fr_store(&fr_probe.hdr->level, level);
    if (mask)
        fr_store(mask, fr_nccl_mask_for(level, fr_load(&fr_nccl.version)));
}

/* A page that nobody but root or this user can write or cut short. */
static int may_trust(int fd)
{
    struct statx st; /* in glibc since 2.28; its fstat became another symbol in 2.33 */

    return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 && S_ISREG(st.stx_mode) &&
           (st.stx_uid == 0 || st.stx_uid == geteuid()) && !(st.stx_mode & (S_IWGRP | S_IWOTH)) &&
           st.stx_size == sizeof(struct fr_control);
}

void fr_nccl_open_control(const char *dir)
{
    const struct fr_control *page = MAP_FAILED;
    char path[512];
    int fd, n;

    if (__atomic_load_n(&fr_nccl.control, __ATOMIC_RELAXED) || !dir)
        return;
    n = snprintf(path, sizeof path, "%s/" FR_CONTROL_FILE, dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (may_trust(fd))
        page = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return;
    if (page->magic != FR_CONTROL_MAGIC || page->version != 1) {
        munmap((void *)(uintptr_t)page, sizeof *page);
        return;
    }
    __atomic_store_n(&fr_nccl.control, &page->entry[fr_nccl.pid % FR_CONTROL_ENTRIES],
                     __ATOMIC_RELEASE);
}
