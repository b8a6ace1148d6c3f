/* SPDX-License-Identifier: Apache-2.0 */
/* tee.c - see tee.h */
#define _GNU_SOURCE 1 /* pipe2 */
#include "cli/tee.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

int fr_tee_open(struct fr_tee *t, int out, int *ret_write, struct fr_err *err)
{
    int fd[2];

    if (pipe2(fd, O_CLOEXEC) < 0)
        return fr_fail(err, -errno, "cannot make a pipe: %s", strerror(errno));
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    t->in = fd[0];
    t->out = out;
    t->len = t->at = 0;
    *ret_write = fd[1];
    return 0;
}

void fr_tee_poll(const struct fr_tee *t, struct pollfd fds[2])
{
    bool full = t->len > t->at;

    fds[0] = (struct pollfd){.fd = full ? -1 : t->in, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = full ? t->out : -1, .events = POLLOUT};
}

/* Write what is pending while that does not block; true when nothing is left. */
static bool flush(struct fr_tee *t)
{
    while (t->at < t->len) {
        struct pollfd p = {.fd = t->out, .events = POLLOUT};
        size_t n = t->len - t->at;
        ssize_t done;

        if (t->out < 0)
            break; /* nobody reads it any more: the job goes on */
        if (poll(&p, 1, 0) == 0)
            return false;
        /* At most PIPE_BUF fits for sure when poll says so; the file may be shared, so it stays in
         * blocking mode. */
        done = write(t->out, t->buf + t->at, n < PIPE_BUF ? n : PIPE_BUF);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            t->out = -1;
        else
            t->at += (size_t)done;
    }
    t->at = t->len = 0;
    return true;
}

void fr_tee_move(struct fr_tee *t, struct fr_word *word)
{
    while (flush(t) && t->in >= 0) {
        ssize_t n = read(t->in, t->buf, sizeof t->buf);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* EAGAIN */
        if (n == 0) {
            close(t->in);
            t->in = -1;
            return;
        }
        t->len = (size_t)n;
        if (word)
            fr_word_feed(word, t->buf, (size_t)n);
    }
}

void fr_tee_close(struct fr_tee *t, struct fr_word *word, double limit_s)
{
    uint64_t until = fr_mono_ns() + (uint64_t)(limit_s * 1e9);

    for (;;) {
        struct pollfd p = {.fd = t->out, .events = POLLOUT};

        fr_tee_move(t, word);
        if (t->at == t->len || fr_mono_ns() > until)
            break;
        poll(&p, 1, 20);
    }
    if (t->in >= 0)
        close(t->in);
    t->in = -1;
}
