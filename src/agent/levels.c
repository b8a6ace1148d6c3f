/* SPDX-License-Identifier: Apache-2.0 */
/* levels.c - see levels.h */
#define _GNU_SOURCE
#include "agent/levels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Our own file, whole, and writable by nobody else: anything else is left alone. */
static int check_file(int fd, const char *path, struct fr_err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH) ||
        st.st_nlink != 1)
        return fr_fail(err, -EPERM,
                       "%s: is not this agent's own file (remove it to let the agent ask ranks for"
                       " other levels)",
                       path);
    /* Only ever made longer: a page that a rank has mapped must not vanish. */
    if (st.st_size < (off_t)sizeof(struct fr_control) &&
        ftruncate(fd, sizeof(struct fr_control)) != 0)
        return fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

int fr_levels_open(struct fr_levels *l, const char *dir, struct fr_err *err)
{
    char path[512];
    void *page = MAP_FAILED;
    int fd, n, rc;

    memset(l, 0, sizeof *l);
    n = snprintf(path, sizeof path, "%s/" FR_CONTROL_FILE, dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return fr_fail(err, -ENAMETOOLONG, "%s: is too long", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0)
        return fr_fail(err, -errno, "%s: cannot open the control page: %s", path, strerror(errno));
    rc = check_file(fd, path, err);
    if (rc == 0) {
        page = mmap(NULL, sizeof(struct fr_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
            rc = fr_fail(err, -errno, "%s: cannot map the control page: %s", path, strerror(errno));
    }
    if (rc == 0 && fchmod(fd, 0644) != 0) /* whatever the umask: ranks of other users read it */
        rc = fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    close(fd);
    if (rc < 0) {
        if (page != MAP_FAILED)
            munmap(page, sizeof(struct fr_control));
        return rc;
    }
    l->page = page;
    for (uint32_t i = 0; i < FR_CONTROL_ENTRIES; i++)
        __atomic_store_n(&l->page->entry[i], (uint64_t)0, __ATOMIC_RELAXED);
    __atomic_store_n(&l->page->version, (uint64_t)1, __ATOMIC_RELAXED);
    __atomic_store_n(&l->page->magic, FR_CONTROL_MAGIC, __ATOMIC_RELEASE);
    return 0;
}

void fr_levels_close(struct fr_levels *l, const char *dir)
{
    char path[512];
    int n;

    if (!l->page)
        return;
    fr_levels_tick(l, UINT64_MAX);
    munmap(l->page, sizeof *l->page);
    l->page = NULL;
    n = dir ? snprintf(path, sizeof path, "%s/" FR_CONTROL_FILE, dir) : -1;
    if (n > 0 && (size_t)n < sizeof path)
        unlink(path);
}

void fr_levels_set(struct fr_levels *l, uint32_t pid, uint32_t level, uint64_t until_ns)
{
    uint32_t i = pid % FR_CONTROL_ENTRIES;

    if (!l->page)
        return;
    l->until_ns[i] = until_ns;
    __atomic_store_n(&l->page->entry[i], fr_control_word(pid, level), __ATOMIC_RELAXED);
}

void fr_levels_tick(struct fr_levels *l, uint64_t now_ns)
{
    for (uint32_t i = 0; l->page && i < FR_CONTROL_ENTRIES; i++)
        if (l->until_ns[i] && now_ns >= l->until_ns[i]) {
            l->until_ns[i] = 0;
            __atomic_store_n(&l->page->entry[i], (uint64_t)0, __ATOMIC_RELAXED);
        }
}
