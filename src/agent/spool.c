/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c - see spool.h */
#include "agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/xalloc.h"

#define FRAME_MAGIC 0x31505346u /* "FSP1" */

struct frame {
    uint32_t magic;
    uint32_t cls;
    uint32_t bytes; /* of the payload behind it */
    uint32_t pad;
    uint64_t instance, seq;
    uint64_t sum; /* FNV-1a 64 over the fields above and the payload */
};
_Static_assert(sizeof(struct frame) == 40, "layout of the file");

struct fr_spool {
    int fd, lock_fd;
    char *path, *aside; /* aside: where it is rewritten */
    uint64_t size, max_bytes;
    uint64_t at; /* read position, always at a frame */
    uint64_t dropped;
};

static uint64_t fnv(uint64_t h, const void *p, size_t n)
{
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3ull;
    return h;
}

static uint64_t sum_of(const struct frame *f, const void *payload)
{
    return fnv(fnv(0xcbf29ce484222325ull, f, offsetof(struct frame, sum)), payload, f->bytes);
}

static int read_all(int fd, void *p, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(fd, (char *)p + done, n - done, (off_t)(at + done));

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        if (k == 0)
            return -ENODATA;
        done += (size_t)k;
    }
    return 0;
}

static int write_all(int fd, const void *p, size_t n, uint64_t at)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, (const char *)p + done, n - done, (off_t)(at + done));

        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? -errno : -EIO;
        done += (size_t)k;
    }
    return 0;
}

/* Append the payload of the frame at `at` to out. -ENODATA: no whole frame there. */
static int read_frame(int fd, uint64_t at, uint64_t size, struct frame *f, struct fr_buf *out)
{
    char *p;
    int rc;

    if (size - at < sizeof *f)
        return -ENODATA;
    rc = read_all(fd, f, sizeof *f, at);
    if (rc < 0)
        return rc;
    if (f->magic != FRAME_MAGIC || f->cls >= FR_SPOOL_CLASSES || f->bytes > FR_SPOOL_FRAME_BYTES ||
        f->bytes > size - at - sizeof *f)
        return -ENODATA;
    p = fr_buf_room(out, f->bytes);
    rc = read_all(fd, p, f->bytes, at + sizeof *f);
    if (rc < 0)
        return rc;
    if (sum_of(f, p) != f->sum)
        return -ENODATA;
    out->len += f->bytes;
    return 0;
}

/* The length of the whole frames from the start. */
static uint64_t readable(int fd, uint64_t size)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    uint64_t at = 0;
    struct frame f;

    while (read_frame(fd, at, size, &f, &b) == 0) {
        at += sizeof f + f.bytes;
        fr_buf_reset(&b);
    }
    return at;
}

void fr_spool_close(struct fr_spool *sp)
{
    if (!sp)
        return;
    if (sp->fd >= 0)
        close(sp->fd);
    if (sp->lock_fd >= 0)
        close(sp->lock_fd);
    free(sp->path);
    free(sp->aside);
    free(sp);
}

void fr_spool_closep(struct fr_spool **sp)
{
    fr_spool_close(*sp);
}

/* Two writers would take each other's frames. The lock is a file of its own, as the spool is
 * renamed when it is rewritten, and goes with its process, however that ends. */
static int take_lock(struct fr_spool *sp, const char *dir, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *path = fr_xasprintf("%s/lock", dir);

    sp->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (sp->lock_fd < 0)
        return fr_fail(err, -errno, "%s: cannot open the spool's lock: %s", path, strerror(errno));
    if (flock(sp->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return fr_fail(err, -EBUSY,
                       "%s: another agent uses this spool (stop it, or give another --spool)", dir);
    return 0;
}

int fr_spool_open(const char *dir, uint64_t max_bytes, struct fr_spool **ret, struct fr_err *err)
{
    FR_CLEANUP(fr_spool_closep) struct fr_spool *sp = fr_xalloc(sizeof *sp);
    struct stat st;
    int rc;

    sp->fd = sp->lock_fd = -1;
    sp->max_bytes = max_bytes;
    rc = fr_fs_mkdirs(dir, 0700, err);
    if (rc < 0)
        return rc;
    rc = take_lock(sp, dir, err);
    if (rc < 0)
        return rc;
    sp->path = fr_xasprintf("%s/spool", dir);
    sp->aside = fr_xasprintf("%s/spool.new", dir);
    unlink(sp->aside); /* a rewriting that a crash cut short; the old file is whole */
    sp->fd = open(sp->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (sp->fd < 0 || fstat(sp->fd, &st) != 0)
        return fr_fail(err, -errno, "%s: cannot open the spool: %s", sp->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fr_fail(err, -EINVAL, "%s: is no plain file (remove it, or give another --spool)",
                       sp->path);
    sp->size = readable(sp->fd, (uint64_t)st.st_size);
    if (sp->size < (uint64_t)st.st_size && ftruncate(sp->fd, (off_t)sp->size) != 0)
        return fr_fail(err, -errno, "%s: cannot cut off its torn end: %s", sp->path,
                       strerror(errno));
    *ret = sp;
    sp = NULL;
    return 0;
}

/* One pass of a rewriting: copy all frames but those of classes >= drop that begin before `until`.
 */
static int copy_without(struct fr_spool *sp, int to, uint32_t drop, uint64_t until,
                        uint64_t *ret_size, uint64_t *ret_at, uint64_t *ret_dropped)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    uint64_t at = 0, out = 0, new_at = 0, dropped = 0;
    struct frame f;
    int rc;

    while (at < sp->size) {
        fr_buf_reset(&b);
        rc = read_frame(sp->fd, at, sp->size, &f, &b);
        if (rc < 0)
            return rc;
        if (at == sp->at)
            new_at = out;
        if (f.cls >= drop && at < until) {
            dropped++;
        } else {
            rc = write_all(to, &f, sizeof f, out);
            if (rc == 0)
                rc = write_all(to, b.p, f.bytes, out + sizeof f);
            if (rc < 0)
                return rc;
            out += sizeof f + f.bytes;
        }
        at += sizeof f + f.bytes;
    }
    *ret_at = sp->at >= sp->size ? out : new_at;
    *ret_size = out;
    *ret_dropped = dropped;
    return 0;
}

static int rewrite_without(struct fr_spool *sp, uint32_t drop, uint64_t until)
{
    uint64_t size = 0, at = 0, dropped = 0;
    int fd = open(sp->aside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc;

    if (fd < 0)
        return -errno;
    rc = copy_without(sp, fd, drop, until, &size, &at, &dropped);
    if (rc == 0 && rename(sp->aside, sp->path) != 0)
        rc = -errno;
    if (rc < 0) {
        close(fd);
        unlink(sp->aside);
        return rc;
    }
    close(sp->fd);
    sp->fd = fd;
    sp->size = size;
    sp->at = at;
    sp->dropped += dropped;
    return 0;
}

/* Make room for `need` bytes below the bound: detail of the older half first, then all of it, then
 * the same for progress, and whole reports at last. */
static int make_room(struct fr_spool *sp, uint64_t need)
{
    /* Leave an eighth free, so that not every append rewrites the file. */
    uint64_t goal = sp->max_bytes - sp->max_bytes / 8;

    if (need > goal)
        return -EFBIG;
    for (uint32_t drop = FR_SPOOL_DETAIL + 1; drop-- > 0;) {
        for (int whole = 0; whole < 2; whole++) {
            uint64_t until = whole ? sp->size : sp->size / 2;
            int rc;

            if (sp->size + need <= goal)
                return 0;
            rc = rewrite_without(sp, drop, until);
            if (rc < 0)
                return rc;
        }
    }
    return sp->size + need <= sp->max_bytes ? 0 : -ENOSPC;
}

int fr_spool_append(struct fr_spool *sp, struct fr_spool_key key, enum fr_spool_class cls,
                    const void *p, size_t n)
{
    struct frame f = {FRAME_MAGIC, (uint32_t)cls, (uint32_t)n, 0, key.instance, key.seq, 0};
    int rc = 0;

    if (n > FR_SPOOL_FRAME_BYTES)
        rc = -EFBIG;
    else if (sp->size + sizeof f + n > sp->max_bytes)
        rc = make_room(sp, sizeof f + n);
    f.sum = rc == 0 ? sum_of(&f, p) : 0;
    if (rc == 0)
        rc = write_all(sp->fd, &f, sizeof f, sp->size);
    if (rc == 0)
        rc = write_all(sp->fd, p, n, sp->size + sizeof f);
    if (rc < 0) {
        sp->dropped++;
        /* What was written of it would be cut off as a torn tail anyway. */
        if (ftruncate(sp->fd, (off_t)sp->size) != 0)
            return rc;
        return rc;
    }
    sp->size += sizeof f + n;
    return 0;
}

int fr_spool_next(struct fr_spool *sp, struct fr_spool_key *ret_key, struct fr_buf *out)
{
    struct frame f;
    int parts = 0, rc;

    fr_buf_reset(out);
    for (;;) {
        size_t before = out->len;

        rc = read_frame(sp->fd, sp->at, sp->size, &f, out);
        if (rc < 0)
            break;
        if (parts && (f.instance != ret_key->instance || f.seq != ret_key->seq)) {
            out->len = before; /* the next report's */
            break;
        }
        *ret_key = (struct fr_spool_key){f.instance, f.seq};
        sp->at += sizeof f + f.bytes;
        parts++;
    }
    if (parts)
        return 1;
    return rc == -ENODATA ? 0 : rc;
}

void fr_spool_rewind(struct fr_spool *sp)
{
    sp->at = 0;
}

void fr_spool_delivered(struct fr_spool *sp)
{
    if (sp->at < sp->size || sp->size == 0)
        return;
    if (ftruncate(sp->fd, 0) == 0)
        sp->size = sp->at = 0;
}

bool fr_spool_is_empty(const struct fr_spool *sp)
{
    return sp->at >= sp->size;
}

uint64_t fr_spool_bytes(const struct fr_spool *sp)
{
    return sp->size;
}

uint64_t fr_spool_dropped(const struct fr_spool *sp)
{
    return sp->dropped;
}
