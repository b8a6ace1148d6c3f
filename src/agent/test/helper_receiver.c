/* SPDX-License-Identifier: Apache-2.0 */
/* helper_receiver.c - see helper_receiver.h */
#define _GNU_SOURCE
#include "helper_receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

struct receiver {
    pthread_t thread;
    pthread_mutex_t lock;
    int listen_fd, wake[2];
    uint16_t port;
    bool stop, away, is_away; /* away: wanted, is_away: done */
    uint64_t instance;
    uint8_t *reply; /* packed, without instance and ack */
    size_t reply_bytes;
    struct receiver_got *got;
    size_t ngot;
};

static void need(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

static int listen_on(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(*port)};
    socklen_t n = sizeof at;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    need(fd >= 0, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    need(bind(fd, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    need(listen(fd, 16) == 0, "listen");
    need(getsockname(fd, (struct sockaddr *)&at, &n) == 0, "getsockname");
    *port = ntohs(at.sin_port);
    return fd;
}

static bool wants_away(struct receiver *r)
{
    bool yes;

    pthread_mutex_lock(&r->lock);
    yes = r->away || r->stop;
    pthread_mutex_unlock(&r->lock);
    return yes;
}

/* Read until n bytes are there or the peer, or we, want to go. */
static int read_some(struct receiver *r, int fd, char *buf, size_t room)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = r->wake[0], .events = POLLIN}};

    for (;;) {
        if (wants_away(r))
            return -1;
        if (poll(p, 2, 1000) < 0)
            return -1;
        if (p[0].revents)
            return (int)read(fd, buf, room);
    }
}

static void answer(struct receiver *r, int fd, const uint8_t *body, size_t n)
{
    Fullrank__Report *report = fullrank__report__unpack(NULL, n, body);
    Fullrank__Reply tail = FULLRANK__REPLY__INIT;
    uint8_t packed[64];
    size_t k, h, n_all;
    char *all;

    need(report != NULL, "a report that is no valid message");
    pthread_mutex_lock(&r->lock);
    need(r->ngot < RECEIVER_MAX, "too many reports");
    r->got[r->ngot++] = (struct receiver_got){report, fr_mono_ns(), n};
    tail.controller_instance = r->instance;
    tail.acked_seq = report->seq;
    k = fullrank__reply__pack(&tail, packed);
    n_all = 200 + r->reply_bytes + k;
    all = malloc(n_all);
    h = (size_t)snprintf(all, 200, "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: %zu\r\n\r\n",
                         r->reply_bytes + k);
    memcpy(all + h, r->reply, r->reply_bytes);
    memcpy(all + h + r->reply_bytes, packed, k);
    if (send(fd, all, h + r->reply_bytes + k, MSG_NOSIGNAL) < 0) /* in one: Nagle would hold back the rest */
        perror("send");
    free(all);
    pthread_mutex_unlock(&r->lock);
}

static void serve(struct receiver *r, int fd)
{
    size_t cap = 1u << 16, have = 0;
    char *buf = malloc(cap + 1);

    for (;;) {
        char *end, *p;
        size_t length, total;
        int n;

        buf[have] = '\0';
        end = memmem(buf, have, "\r\n\r\n", 4);
        if (end) {
            p = strcasestr(buf, "content-length:");
            length = p && p < end ? strtoul(p + 15, NULL, 10) : 0;
            total = (size_t)(end + 4 - buf) + length;
            if (have >= total) {
                answer(r, fd, (uint8_t *)end + 4, length);
                memmove(buf, buf + total, have - total);
                have -= total;
                continue;
            }
            if (total > cap) {
                cap = total;
                buf = realloc(buf, cap + 1);
            }
        }
        n = read_some(r, fd, buf + have, cap - have);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    free(buf);
    close(fd);
}

static void *run(void *arg)
{
    struct receiver *r = arg;

    for (;;) {
        struct pollfd p[2] = {{.fd = r->wake[0], .events = POLLIN}, {.fd = -1, .events = POLLIN}};
        bool away;
        char c[64];

        pthread_mutex_lock(&r->lock);
        if (r->stop) {
            pthread_mutex_unlock(&r->lock);
            return NULL;
        }
        r->is_away = away = r->away;
        p[1].fd = r->listen_fd;
        pthread_mutex_unlock(&r->lock);
        poll(p, 2, 1000);
        if (p[0].revents && read(r->wake[0], c, sizeof c) < 0)
            return NULL;
        if (p[1].fd >= 0 && p[1].revents) {
            int fd = accept4(p[1].fd, NULL, NULL, SOCK_CLOEXEC);

            /* The port is kept, or somebody else could take it meanwhile: who is away hangs up. */
            if (fd >= 0 && away)
                close(fd);
            else if (fd >= 0)
                serve(r, fd); /* one agent, one connection */
        }
    }
}

struct receiver *receiver_start(void)
{
    struct receiver *r = calloc(1, sizeof *r);

    r->got = calloc(RECEIVER_MAX, sizeof *r->got);
    r->instance = 1000;
    pthread_mutex_init(&r->lock, NULL);
    need(pipe(r->wake) == 0, "pipe");
    r->listen_fd = listen_on(&r->port);
    need(pthread_create(&r->thread, NULL, run, r) == 0, "thread");
    return r;
}

static void poke(struct receiver *r)
{
    need(write(r->wake[1], "x", 1) == 1, "wake");
}

void receiver_stop(struct receiver *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_mutex_unlock(&r->lock);
    poke(r);
    pthread_join(r->thread, NULL);
    for (size_t i = 0; i < r->ngot; i++)
        fullrank__report__free_unpacked(r->got[i].report, NULL);
    if (r->listen_fd >= 0)
        close(r->listen_fd);
    close(r->wake[0]);
    close(r->wake[1]);
    free(r->got);
    free(r->reply);
    free(r);
}

void receiver_url(struct receiver *r, char *url, size_t n)
{
    snprintf(url, n, "http://127.0.0.1:%u", r->port);
}

void receiver_reply(struct receiver *r, const Fullrank__Reply *reply)
{
    size_t n = fullrank__reply__get_packed_size(reply);
    uint8_t *p = malloc(n + 1);

    fullrank__reply__pack(reply, p);
    pthread_mutex_lock(&r->lock);
    free(r->reply);
    r->reply = p;
    r->reply_bytes = n;
    pthread_mutex_unlock(&r->lock);
}

void receiver_away(struct receiver *r)
{
    pthread_mutex_lock(&r->lock);
    r->away = true;
    pthread_mutex_unlock(&r->lock);
    for (bool done = false; !done; usleep(1000)) {
        poke(r);
        pthread_mutex_lock(&r->lock);
        done = r->is_away;
        pthread_mutex_unlock(&r->lock);
    }
}

void receiver_back(struct receiver *r, bool new_instance)
{
    pthread_mutex_lock(&r->lock);
    r->away = false;
    r->instance += new_instance;
    pthread_mutex_unlock(&r->lock);
    poke(r);
}

size_t receiver_count(struct receiver *r)
{
    size_t n;

    pthread_mutex_lock(&r->lock);
    n = r->ngot;
    pthread_mutex_unlock(&r->lock);
    return n;
}

struct receiver_got receiver_get(struct receiver *r, size_t i)
{
    struct receiver_got g;

    pthread_mutex_lock(&r->lock);
    g = r->got[i];
    pthread_mutex_unlock(&r->lock);
    return g;
}
