/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - see link.h */
#include "cli/link.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/http.h"
#include "base/xalloc.h"

struct fr_link {
    struct fr_http *http; /* the thread's */
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    enum { IDLE, ASKED, BUSY, ANSWERED } state;
    bool quit;
    struct fr_buf request, reply;
    struct fr_err err;
    int status;
    int fd;
};

static void *send_all(void *arg)
{
    struct fr_link *l = arg;
    struct fr_buf reply = FR_BUF_INIT;

    pthread_mutex_lock(&l->lock);
    for (;;) {
        struct fr_err err = FR_ERR_INIT;
        uint64_t one = 1;
        int status;

        while (l->state != ASKED && !l->quit)
            pthread_cond_wait(&l->wake, &l->lock);
        if (l->state != ASKED)
            break;
        l->state = BUSY; /* the request is ours until it is answered */
        pthread_mutex_unlock(&l->lock);
        status = fr_http_call(l->http, "POST", "/api/v1/supervise", "application/x-protobuf",
                              l->request.p, l->request.len, &reply, &err);
        pthread_mutex_lock(&l->lock);
        fr_buf_reset(&l->reply);
        fr_buf_add(&l->reply, fr_buf_str(&reply), reply.len);
        l->err = err;
        l->status = status ? status : -EPROTO;
        l->state = ANSWERED;
        if (write(l->fd, &one, sizeof one) < 0)
            continue; /* the counter is full only when it is readable anyway */
    }
    pthread_mutex_unlock(&l->lock);
    fr_buf_fini(&reply);
    return NULL;
}

int fr_link_new(const char *server, const char *token, struct fr_link **ret, struct fr_err *err)
{
    struct fr_http_options opt = {
        .base_url = server, .token = token, .timeout_s = FR_LINK_TIMEOUT_S, .max_bytes = 1u << 20};
    struct fr_link *l = fr_xalloc(sizeof *l);
    sigset_t all, old;
    int rc = fr_http_new(&opt, &l->http, err);

    if (rc < 0) {
        free(l);
        return rc;
    }
    l->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    sigfillset(&all); /* signals are the owner's */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = l->fd < 0 ? errno : pthread_create(&l->thread, NULL, send_all, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        if (l->fd >= 0)
            close(l->fd);
        fr_http_free(l->http);
        free(l);
        return fr_fail(err, -rc, "cannot start the sender: %s", strerror(rc));
    }
    *ret = l;
    return 0;
}

void fr_link_free(struct fr_link *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->quit = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    fr_http_free(l->http);
    fr_buf_fini(&l->request);
    fr_buf_fini(&l->reply);
    close(l->fd);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->wake);
    free(l);
}

int fr_link_fd(const struct fr_link *l)
{
    return l->fd;
}

bool fr_link_idle(const struct fr_link *l)
{
    struct fr_link *m = (struct fr_link *)l; /* the lock is not part of the value */
    bool idle;

    pthread_mutex_lock(&m->lock);
    idle = m->state == IDLE;
    pthread_mutex_unlock(&m->lock);
    return idle;
}

void fr_link_post(struct fr_link *l, const void *p, size_t n)
{
    pthread_mutex_lock(&l->lock);
    if (l->state == IDLE) {
        fr_buf_reset(&l->request);
        fr_buf_add(&l->request, p, n);
        l->state = ASKED;
        pthread_cond_signal(&l->wake);
    }
    pthread_mutex_unlock(&l->lock);
}

int fr_link_take(struct fr_link *l, struct fr_buf *reply, struct fr_err *err)
{
    uint64_t count;
    int status = 0;

    pthread_mutex_lock(&l->lock);
    if (l->state == ANSWERED) {
        fr_buf_reset(reply);
        fr_buf_add(reply, fr_buf_str(&l->reply), l->reply.len);
        if (err)
            *err = l->err;
        status = l->status;
        l->state = IDLE;
        if (read(l->fd, &count, sizeof count) < 0)
            count = 0; /* nothing to read: fine */
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}
