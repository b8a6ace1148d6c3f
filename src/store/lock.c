/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - see lock.h */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

static void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* The owner drops the lock by removing the file, so what we locked may have lost its name
 * meanwhile. */
static int has_still_its_name(int fd, const char *path)
{
    struct stat ours, named;

    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

static int refuse(int fd, const char *ledger, struct fr_err *err)
{
    char pid[32] = "";
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

    pid[n > 0 ? strspn(pid, "0123456789") : 0] = '\0';
    if (!pid[0])
        return fr_fail(err, -EBUSY,
                       "ledger %s is in use (stop its controller, or give another --state)",
                       ledger);
    return fr_fail(err, -EBUSY, "ledger %s is in use by pid %s (stop it, or give another --state)",
                   ledger, pid);
}

int fr_lock_take(struct fr_lock *lock, const char *ledger, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *real = realpath(ledger, NULL); /* NULL: not made yet */
    FR_CLEANUP(fr_freep) char *path = fr_xasprintf("%s.lock", real ? real : ledger);

    for (;;) {
        FR_CLEANUP(closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        char pid[32];
        int n;

        if (fd < 0) {
            int rc = -errno;

            return fr_fail(err, rc, "ledger %s: cannot make %s: %s (give another --state)", ledger,
                           path, strerror(-rc));
        }
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            int rc = -errno;

            if (rc == -EWOULDBLOCK)
                return refuse(fd, ledger, err);
            if (rc == -EINTR)
                continue;
            return fr_fail(err, rc, "ledger %s: cannot lock %s: %s", ledger, path, strerror(-rc));
        }
        if (!has_still_its_name(fd, path))
            continue;

        /* The pid only serves the sentence above: on a full disk the lock holds without it. */
        n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
        if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
            (void)ftruncate(fd, 0);
        lock->fd = fd;
        lock->path = path;
        fd = -1;
        path = NULL;
        return 0;
    }
}

void fr_lock_drop(struct fr_lock *lock)
{
    if (lock->fd < 0)
        return;
    unlink(lock->path); /* while it is held: nobody else's file can be meant */
    close(lock->fd);
    lock->fd = -1;
    free(lock->path);
    lock->path = NULL;
}
