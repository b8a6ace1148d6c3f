/* SPDX-License-Identifier: Apache-2.0 */
/* helper_ras.c - see helper_ras.h: a FAKE for tests */
#define _GNU_SOURCE
#include "helper_ras.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

struct fake_ras {
    pthread_t thread;
    int fd, wake[2];
    uint16_t port;
    enum fake_ras_manner manner;
    const char *json, *text;
    atomic_uint asked;
};

static void need(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

/* 0: the test is over. */
static int wait_readable(struct fake_ras *f, int fd)
{
    struct pollfd p[2] = {{.fd = f->wake[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};

    while (poll(p, 2, -1) < 0)
        ;
    return !p[0].revents;
}

static void tell(int fd, const char *s)
{
    if (send(fd, s, strlen(s), MSG_NOSIGNAL) < 0)
        return; /* the other side has gone */
}

static void misbehave(struct fake_ras *f, int fd)
{
    static const char FLOOD[] = "  1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9\n";

    while (f->manner == FAKE_RAS_DRIPS || f->manner == FAKE_RAS_FLOODS) {
        const char *s = f->manner == FAKE_RAS_DRIPS ? " " : FLOOD;
        struct pollfd p = {.fd = f->wake[0], .events = POLLIN};

        if (send(fd, s, strlen(s), MSG_NOSIGNAL) < 0)
            return;
        if (poll(&p, 1, f->manner == FAKE_RAS_DRIPS ? 5 : 0) > 0)
            return;
    }
}

/* Returns 0 when the conversation is over. */
static int answer(struct fake_ras *f, int fd, const char *line, int *json)
{
    if (f->manner == FAKE_RAS_MUTE)
        return 1;
    if (f->manner == FAKE_RAS_STRANGER) {
        tell(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
        return 0;
    }
    if (strncasecmp(line, "client protocol ", 16) == 0) {
        tell(fd, "SERVER PROTOCOL 2\n");
    } else if (strncasecmp(line, "timeout ", 8) == 0) {
        tell(fd, "OK\n");
    } else if (strcasecmp(line, "set format json") == 0 && f->manner != FAKE_RAS_OLD) {
        *json = 1;
        tell(fd, "OK\n");
    } else if (strcasecmp(line, "status") == 0 || strcasecmp(line, "verbose status") == 0) {
        const char *report = *json ? f->json : f->text;

        atomic_fetch_add(&f->asked, 1);
        if (f->manner == FAKE_RAS_HANGS)
            return 1;
        misbehave(f, fd);
        if (f->manner == FAKE_RAS_HANGS_UP) {
            if (send(fd, report, strlen(report) / 2, MSG_NOSIGNAL) < 0)
                return 0;
        } else {
            tell(fd, report);
        }
        return 0;
    } else {
        tell(fd, "ERROR: Unknown command ");
        tell(fd, line);
        tell(fd, "\n");
    }
    return 1;
}

static void serve(struct fake_ras *f, int fd)
{
    char line[256];
    size_t n = 0;
    int json = 0;
    char c;

    while (wait_readable(f, fd) && read(fd, &c, 1) == 1) {
        if (c != '\n') {
            if (n + 1 < sizeof line)
                line[n++] = c;
            continue;
        }
        line[n] = '\0';
        n = 0;
        if (!answer(f, fd, line, &json))
            break;
    }
    close(fd);
}

static void *run(void *arg)
{
    struct fake_ras *f = arg;

    while (wait_readable(f, f->fd)) {
        int fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd >= 0)
            serve(f, fd);
    }
    return NULL;
}

int fake_ras_bind(uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    need(fd >= 0, "socket");
    need(bind(fd, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    need(getsockname(fd, (struct sockaddr *)&at, &n) == 0, "getsockname");
    *ret_port = ntohs(at.sin_port);
    return fd;
}

struct fake_ras *fake_ras_start_on(int fd, enum fake_ras_manner manner, const char *json,
                                   const char *text)
{
    struct fake_ras *f = calloc(1, sizeof *f);

    f->fd = fd;
    f->manner = manner;
    f->json = json;
    f->text = text;
    need(pipe(f->wake) == 0, "pipe");
    need(listen(f->fd, 8) == 0, "listen");
    need(pthread_create(&f->thread, NULL, run, f) == 0, "thread");
    return f;
}

struct fake_ras *fake_ras_start(enum fake_ras_manner manner, const char *json, const char *text)
{
    uint16_t port;
    struct fake_ras *f = fake_ras_start_on(fake_ras_bind(&port), manner, json, text);

    f->port = port;
    return f;
}

uint16_t fake_ras_port(const struct fake_ras *f)
{
    return f->port;
}

unsigned fake_ras_asked(const struct fake_ras *f)
{
    return atomic_load(&((struct fake_ras *)(uintptr_t)f)->asked);
}

void fake_ras_stop(struct fake_ras *f)
{
    need(write(f->wake[1], "x", 1) == 1, "wake");
    pthread_join(f->thread, NULL);
    close(f->fd);
    close(f->wake[0]);
    close(f->wake[1]);
    free(f);
}
