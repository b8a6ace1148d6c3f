/* SPDX-License-Identifier: Apache-2.0 */
/* environ.c - see environ.h */
#include "agent/environ.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sense/sensor.h"

int fr_environ_read(uint32_t pid, struct fr_buf *b)
{
    char path[64];
    int fd, n;

    fr_buf_reset(b);
    snprintf(path, sizeof path, "/proc/%u/environ", pid);
    fd = fr_sense_open_at("", path);
    if (fd < 0)
        return fd;
    n = fr_sense_reread(fd, fr_buf_room(b, FR_ENVIRON_BYTES + 1), FR_ENVIRON_BYTES + 1);
    close(fd);
    if (n < 0)
        return n;
    b->len += (size_t)n; /* the text has its NUL behind it */
    return 0;
}

const char *fr_environ_get(const struct fr_buf *b, const char *name)
{
    size_t n = strlen(name);

    for (size_t at = 0; at < b->len;) {
        const char *s = b->p + at;
        size_t len = strnlen(s, b->len - at);

        if (len > n && s[n] == '=' && memcmp(s, name, n) == 0)
            return s + n + 1;
        at += len + 1;
    }
    return NULL;
}
