/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - see events.h */
#include "control/events.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"

#define PING_NS     15000000000ull
#define TOPIC_BYTES 64

struct event {
    uint32_t refs;    /* under the lock */
    const char *name; /* static */
    size_t len;
    char text[];
};
struct client {
    struct fr_events *ev;
    struct client *next;
    struct MHD_Connection *conn;
    bool suspended, ping, greeted;
    uint64_t cursor;   /* number of the last event that was begun */
    struct event *now; /* being sent */
    size_t sent;
    uint64_t active_ns;
    char topics[TOPIC_BYTES];
};
struct fr_events {
    pthread_mutex_t lock;
    struct event *ring[FR_EVENTS_RING];
    uint64_t first, next; /* numbers held: first .. next-1; slot is number % FR_EVENTS_RING */
    size_t bytes;
    struct client *clients;
    unsigned nclients, nnew;
    bool closing;
};

struct fr_events *fr_events_new(uint64_t first_id)
{
    struct fr_events *ev = fr_xalloc(sizeof *ev);

    pthread_mutex_init(&ev->lock, NULL);
    ev->first = ev->next = first_id ? first_id : 1;
    return ev;
}

static void unref(struct event *e)
{
    if (e && --e->refs == 0)
        free(e);
}

void fr_events_free(struct fr_events *ev)
{
    if (!ev)
        return;
    for (; ev->first < ev->next; ev->first++)
        unref(ev->ring[ev->first % FR_EVENTS_RING]);
    pthread_mutex_destroy(&ev->lock);
    free(ev);
}

static void wake(struct client *cl)
{
    if (!cl->suspended)
        return;
    cl->suspended = false;
    MHD_resume_connection(cl->conn);
}

void fr_events_publish(struct fr_events *ev, const char *event, const char *data, size_t n)
{
    struct event *e;
    char head[96];
    int k;

    if (!ev)
        return;
    pthread_mutex_lock(&ev->lock);
    k = snprintf(head, sizeof head, "id: %llu\nevent: %s\ndata: ", (unsigned long long)ev->next,
                 event);
    e = fr_xalloc(sizeof *e + (size_t)k + n + 2);
    e->refs = 1;
    e->name = event;
    memcpy(e->text, head, (size_t)k);
    memcpy(e->text + k, data, n);
    memcpy(e->text + (size_t)k + n, "\n\n", 2);
    e->len = (size_t)k + n + 2;
    while (ev->first < ev->next &&
           (ev->next - ev->first == FR_EVENTS_RING || ev->bytes + e->len > FR_EVENTS_BYTES)) {
        struct event *old = ev->ring[ev->first++ % FR_EVENTS_RING];

        ev->bytes -= old->len;
        unref(old);
    }
    ev->ring[ev->next++ % FR_EVENTS_RING] = e;
    ev->bytes += e->len;
    for (struct client *cl = ev->clients; cl; cl = cl->next)
        wake(cl);
    pthread_mutex_unlock(&ev->lock);
}

unsigned fr_events_clients(struct fr_events *ev)
{
    unsigned n;

    pthread_mutex_lock(&ev->lock);
    n = ev->nclients;
    pthread_mutex_unlock(&ev->lock);
    return n;
}

unsigned fr_events_take_new(struct fr_events *ev)
{
    unsigned n;

    pthread_mutex_lock(&ev->lock);
    n = ev->nnew;
    ev->nnew = 0;
    pthread_mutex_unlock(&ev->lock);
    return n;
}

void fr_events_tick(struct fr_events *ev, uint64_t now_ns)
{
    pthread_mutex_lock(&ev->lock);
    for (struct client *cl = ev->clients; cl; cl = cl->next)
        if (now_ns > cl->active_ns && now_ns - cl->active_ns > PING_NS) {
            cl->ping = true;
            wake(cl);
        }
    pthread_mutex_unlock(&ev->lock);
}

void fr_events_close(struct fr_events *ev)
{
    pthread_mutex_lock(&ev->lock);
    ev->closing = true;
    for (struct client *cl = ev->clients; cl; cl = cl->next)
        wake(cl);
    pthread_mutex_unlock(&ev->lock);
}

static bool wants(const struct client *cl, const char *name)
{
    size_t n = strlen(name);

    if (!cl->topics[0])
        return true;
    for (const char *p = cl->topics; *p; p += strspn(p, ",")) {
        size_t k = strcspn(p, ",");

        if (k == n && memcmp(p, name, n) == 0)
            return true;
        p += k;
    }
    return false;
}

static void take_next(struct fr_events *ev, struct client *cl)
{
    uint64_t id = cl->cursor + 1 > ev->first ? cl->cursor + 1 : ev->first;

    for (; id < ev->next; id++) {
        struct event *e = ev->ring[id % FR_EVENTS_RING];

        cl->cursor = id;
        if (!wants(cl, e->name))
            continue;
        e->refs++;
        cl->now = e;
        cl->sent = 0;
        return;
    }
}

static size_t put(char *buf, size_t max, const char *text)
{
    size_t n = strlen(text);

    if (n > max)
        n = max; /* a cut comment is still a comment */
    memcpy(buf, text, n);
    return n;
}

static ssize_t read_stream(void *arg, uint64_t pos, char *buf, size_t max)
{
    struct client *cl = arg;
    struct fr_events *ev = cl->ev;
    size_t n = 0;

    (void)pos;
    pthread_mutex_lock(&ev->lock);
    if (ev->closing) {
        pthread_mutex_unlock(&ev->lock);
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (!cl->greeted) {
        cl->greeted = true;
        n = put(buf, max, "retry: 1000\n\n");
    }
    while (n < max) {
        size_t k;

        if (!cl->now)
            take_next(ev, cl);
        if (!cl->now)
            break;
        k = cl->now->len - cl->sent < max - n ? cl->now->len - cl->sent : max - n;
        memcpy(buf + n, cl->now->text + cl->sent, k);
        n += k;
        cl->sent += k;
        if (cl->sent == cl->now->len) {
            unref(cl->now);
            cl->now = NULL;
        }
    }
    if (n == 0 && cl->ping)
        n = put(buf, max, ": \n\n");
    cl->ping = false;
    cl->active_ns = fr_mono_ns();
    if (n == 0) {
        cl->suspended = true;
        MHD_suspend_connection(cl->conn);
    }
    pthread_mutex_unlock(&ev->lock);
    return (ssize_t)n;
}

static void free_client(void *arg)
{
    struct client *cl = arg;
    struct fr_events *ev = cl->ev;

    pthread_mutex_lock(&ev->lock);
    for (struct client **p = &ev->clients; *p; p = &(*p)->next)
        if (*p == cl) {
            *p = cl->next;
            ev->nclients--;
            break;
        }
    unref(cl->now);
    pthread_mutex_unlock(&ev->lock);
    free(cl);
}

struct MHD_Response *fr_events_stream(struct fr_events *ev, struct MHD_Connection *conn,
                                      uint64_t resume_id, const char *topics)
{
    struct client *cl = fr_xalloc(sizeof *cl);
    struct MHD_Response *r;

    cl->ev = ev;
    cl->conn = conn;
    cl->active_ns = fr_mono_ns();
    snprintf(cl->topics, sizeof cl->topics, "%s", topics);
    pthread_mutex_lock(&ev->lock);
    if (ev->closing || ev->nclients == FR_EVENTS_CLIENTS) {
        pthread_mutex_unlock(&ev->lock);
        free(cl);
        return NULL;
    }
    cl->cursor = resume_id && resume_id < ev->next ? resume_id : ev->next - 1;
    cl->next = ev->clients;
    ev->clients = cl;
    ev->nclients++;
    ev->nnew++;
    pthread_mutex_unlock(&ev->lock);
    r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, cl, free_client);
    if (!r)
        free_client(cl);
    return r;
}
