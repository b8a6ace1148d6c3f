/* SPDX-License-Identifier: Apache-2.0 */
/* fs.c - see fs.h */
#define _GNU_SOURCE
#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"

#define TOKEN_RANDOM_BYTES 32
#define TREE_DEPTH_MAX     256 /* each level holds a descriptor */

static void close_fd(int *fd)
{
    int keep = errno;

    if (*fd >= 0)
        close(*fd);
    errno = keep;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t got = write(fd, p, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

/* The folder of path, with "." for a bare name; free it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return fr_xstrdup(".");
    if (slash == path)
        return fr_xstrdup("/");
    return fr_xasprintf("%.*s", (int)(slash - path), path);
}

static int sync_folder(const char *path)
{
    FR_CLEANUP(fr_freep) char *folder = folder_of(path);
    FR_CLEANUP(close_fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    /* Some file systems know no fsync of a folder; what they do instead is theirs. */
    if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
        return -errno;
    return 0;
}

/* A finished, synced file beside path. On success *ret_temp is its name; on failure nothing is
 * left. */
static int write_beside(const char *path, const void *p, size_t n, mode_t mode, char **ret_temp,
                        struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *temp = fr_xasprintf("%s.XXXXXX", path);
    FR_CLEANUP(close_fd) int fd = mkostemp(temp, O_CLOEXEC);
    int rc;

    if (fd < 0) {
        rc = -errno;
        return fr_fail(err, rc, "%s: cannot make a temporary file beside it: %s", path,
                       strerror(-rc));
    }
    rc = write_all(fd, p, n);
    if (rc == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
        rc = -errno;
    if (rc < 0) {
        unlink(temp);
        return fr_fail(err, rc, "%s: cannot write %zu bytes: %s (what was there is kept)", path, n,
                       strerror(-rc));
    }
    *ret_temp = temp;
    temp = NULL;
    return 0;
}

int fr_fs_write_atomic(const char *path, const void *p, size_t n, mode_t mode, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *temp = NULL;
    int rc = write_beside(path, p, n, mode, &temp, err);

    if (rc < 0)
        return rc;
    if (rename(temp, path) < 0) {
        rc = -errno;
        unlink(temp);
        return fr_fail(err, rc, "%s: cannot put the new file in place: %s", path, strerror(-rc));
    }
    rc = sync_folder(path);
    if (rc < 0)
        return fr_fail(err, rc, "%s: cannot sync its folder: %s", path, strerror(-rc));
    return 0;
}

static int read_fd(int fd, const char *path, size_t max, struct fr_buf *out, struct fr_err *err)
{
    size_t before = out->len, room = 4096;
    struct stat st;

    if (fstat(fd, &st) == 0 && st.st_size > 0) /* a hint only: files of /proc say 0 */
        room = (size_t)st.st_size;
    if (room > max)
        room = max;
    for (;;) {
        ssize_t got;

        /* One byte more than allowed is asked for, to see the end or the excess. */
        got = read(fd, fr_buf_room(out, room + 1), room + 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int rc = -errno;

            out->len = before;
            return fr_fail(err, rc, "%s: cannot read: %s", path, strerror(-rc));
        }
        if (got == 0)
            return 0;
        out->len += (size_t)got;
        if (out->len - before > max) {
            out->len = before;
            return fr_fail(err, -EFBIG, "%s: longer than the limit of %zu bytes", path, max);
        }
        room = max - (out->len - before);
        if (room > 65536)
            room = 65536;
    }
}

int fr_fs_read(const char *path, size_t max, struct fr_buf *out, struct fr_err *err)
{
    FR_CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        int rc = -errno;

        return fr_fail(err, rc, "%s: cannot open: %s", path, strerror(-rc));
    }
    return read_fd(fd, path, max, out, err);
}

int fr_fs_mkdirs(const char *path, mode_t mode, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *p = fr_xstrdup(path);
    struct stat st;
    int rc;

    for (char *slash = p + 1; *p; slash++) {
        char c = *slash;

        if (c != '/' && c != '\0')
            continue;
        *slash = '\0';
        if (mkdir(p, mode) < 0 && errno != EEXIST) {
            rc = -errno;
            /* A parent that may not be written but is there answers EROFS or EACCES on some
             * systems. */
            if (stat(p, &st) < 0 || !S_ISDIR(st.st_mode))
                return fr_fail(err, rc, "%s: cannot make the folder: %s", p, strerror(-rc));
        }
        if (c == '\0')
            break;
        *slash = '/';
    }
    if (stat(path, &st) < 0) {
        rc = -errno;
        return fr_fail(err, rc, "%s: cannot make the folder: %s", path, strerror(-rc));
    }
    if (!S_ISDIR(st.st_mode))
        return fr_fail(err, -ENOTDIR, "%s: is there already and is not a folder", path);
    return 0;
}

static void close_dir(DIR **d)
{
    if (*d)
        closedir(*d);
}

/* Remove what `name` in the folder `at` is. Every step goes through a descriptor, so that a link
 * put in the way meanwhile is removed and not followed. */
static int remove_at(int at, const char *name, int depth)
{
    FR_CLEANUP(close_dir) DIR *dir = NULL;
    struct dirent *e;
    int fd, rc;

    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth >= TREE_DEPTH_MAX)
        return -ELOOP;
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    dir = fdopendir(fd);
    if (!dir) {
        rc = -errno;
        close(fd);
        return rc;
    }
    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        rc = remove_at(dirfd(dir), e->d_name, depth + 1);
        if (rc < 0)
            return rc;
    }
    if (unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return -errno;
    return 0;
}

int fr_fs_remove_tree(const char *path, struct fr_err *err)
{
    int rc = remove_at(AT_FDCWD, path, 0);

    if (rc < 0)
        return fr_fail(err, rc, "%s: cannot remove: %s", path, strerror(-rc));
    return 0;
}

/* Put a new random secret at path unless one is there. */
static int make_token(const char *path, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *temp = NULL;
    unsigned char raw[TOKEN_RANDOM_BYTES];
    char text[2 * TOKEN_RANDOM_BYTES + 2];
    int rc;

    if (getrandom(raw, sizeof raw, 0) != (ssize_t)sizeof raw)
        return fr_fail(err, -EIO, "%s: no random bytes for a token", path);
    for (size_t i = 0; i < sizeof raw; i++)
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
    text[sizeof text - 2] = '\n';
    text[sizeof text - 1] = '\0';
    rc = write_beside(path, text, sizeof text - 1, 0600, &temp, err);
    if (rc < 0)
        return rc;
    /* link, not rename: when two start at once the first one's token stays. */
    rc = link(temp, path) < 0 && errno != EEXIST ? -errno : 0;
    unlink(temp);
    if (rc < 0)
        return fr_fail(err, rc, "%s: cannot make the token file: %s", path, strerror(-rc));
    return 0;
}

static int read_token(const char *path, int fd, char *token, size_t token_bytes, struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf text = FR_BUF_INIT;
    struct stat st;
    int rc;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return fr_fail(err, -EINVAL, "%s: the token must be in a regular file", path);
    if (st.st_mode & 077)
        return fr_fail(err, -EACCES,
                       "%s: others can read this token (mode %03o; run: chmod 600 %s)", path,
                       (unsigned)(st.st_mode & 0777), path);
    rc = read_fd(fd, path, token_bytes + 1, &text, err); /* room for \r\n */
    if (rc < 0)
        return rc;
    while (text.len && (text.p[text.len - 1] == '\n' || text.p[text.len - 1] == '\r'))
        text.len--;
    if (text.len == 0)
        return fr_fail(err, -EINVAL, "%s: the token file is empty", path);
    if (text.len >= token_bytes)
        return fr_fail(err, -EFBIG, "%s: the token is longer than %zu bytes", path,
                       token_bytes - 1);
    for (size_t i = 0; i < text.len; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~') /* it becomes part of an HTTP header */
            return fr_fail(err, -EINVAL,
                           "%s: the token may hold only printable ASCII without spaces", path);
    memcpy(token, text.p, text.len);
    token[text.len] = '\0';
    return 0;
}

int fr_fs_token(const char *path, int create, char *token, size_t token_bytes, struct fr_err *err)
{
    FR_CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc;

    if (fd < 0 && errno == ENOENT && create) {
        rc = make_token(path, err);
        if (rc < 0)
            return rc;
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0) {
        rc = -errno;
        return fr_fail(err, rc, "%s: cannot open the token file: %s", path, strerror(-rc));
    }
    return read_token(path, fd, token, token_bytes, err);
}
