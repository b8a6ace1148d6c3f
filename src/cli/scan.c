/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - see scan.h */
#include "cli/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

#define CHUNK_BYTES (256u << 10)

int fr_scan_stream(const char *path, int (*fn)(const char *p, size_t n, void *arg), void *arg,
                   struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *chunk = fr_xalloc(CHUNK_BYTES);
    int own = strcmp(path, "-") != 0;
    int fd = own ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : STDIN_FILENO;
    int rc = 0;

    if (fd < 0)
        return fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    while (rc == 0) {
        ssize_t n = read(fd, chunk, CHUNK_BYTES);

        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = fr_fail(err, -errno, "%s: %s", own ? path : "standard input", strerror(errno));
        else
            rc = fn(chunk, (size_t)n, arg);
    }
    if (own)
        close(fd);
    return rc;
}
