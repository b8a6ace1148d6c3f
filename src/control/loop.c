/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - see loop.h */
#include "control/loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_MS         50
#define REQUESTS_A_TURN 256

struct loop {
    uv_loop_t uv;
    uv_timer_t timer;
    uv_async_t async;
    uv_signal_t term, intr;
    struct fr_ctl *c;
    struct fr_server *server;
};

static void on_wake(void *arg)
{
    struct loop *l = arg;

    uv_async_send(&l->async);
}

static void set_now(struct fr_ctl *c)
{
    uint64_t now = fr_mono_ns();

    if (now > c->now_ns)
        c->now_ns = now;
}

/* A person's changes show at once; what agents and supervisors tell, all the time, need not. */
static bool changes_what_is_shown(enum fr_route r)
{
    return r == FR_ROUTE_NODE_DRAIN || r == FR_ROUTE_NODE_RESUME || r == FR_ROUTE_INCIDENT_ACK;
}

static void serve(struct loop *l, struct fr_ask *a)
{
    struct fr_buf out = FR_BUF_INIT;
    struct fr_doc *d = NULL;
    const char *type;
    int status;

    /* A request that waited may find that the one before it had the same wish. */
    if (a->address[0])
        d = fr_snapshots_get(fr_server_snapshots(l->server), a->address, fr_mono_ns());
    if (!d) {
        status = fr_api_answer(l->c, &a->call, &out, &type);
        d = fr_doc_new(&out, status, type);
        if (changes_what_is_shown(a->call.route) && status == 200)
            fr_snapshots_outdate(fr_server_snapshots(l->server));
        if (a->address[0] && status == 200)
            fr_snapshots_put(fr_server_snapshots(l->server), a->address, d, fr_mono_ns());
    }
    fr_server_answer(l->server, a, d);
}

static void on_async(uv_async_t *h)
{
    struct loop *l = h->data;
    struct fr_ask *a;

    if (!l->server)
        return;
    for (int k = 0; (a = fr_server_take(l->server)) != NULL; k++) {
        set_now(l->c);
        serve(l, a);
        if (k == REQUESTS_A_TURN) { /* the clock's turn comes, however many ask */
            uv_async_send(&l->async);
            return;
        }
    }
}

static void on_timer(uv_timer_t *h)
{
    struct loop *l = h->data;

    fr_ctl_tick(l->c, fr_mono_ns());
}

static void on_signal(uv_signal_t *h, int sig)
{
    fr_log(FR_LOG_NOTICE, "end", "signal=%d", sig);
    uv_stop(h->loop);
}

static void close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

int fr_loop_run(struct fr_ctl *c, struct fr_server_options *opt, struct fr_events *ev,
                int (*ready)(uint16_t port, void *arg, struct fr_err *err), void *arg,
                struct fr_err *err)
{
    struct loop l = {.c = c};
    int rc;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the write, not our end */
    rc = uv_loop_init(&l.uv);
    if (rc)
        return fr_fail(err, rc, "cannot make the event loop: %s", uv_strerror(rc));
    uv_timer_init(&l.uv, &l.timer);
    uv_async_init(&l.uv, &l.async, on_async);
    uv_signal_init(&l.uv, &l.term);
    uv_signal_init(&l.uv, &l.intr);
    l.timer.data = l.async.data = &l;
    uv_signal_start(&l.term, on_signal, SIGTERM);
    uv_signal_start(&l.intr, on_signal, SIGINT);
    opt->wake = on_wake;
    opt->arg = &l;
    rc = fr_server_new(opt, ev, &l.server, err);
    if (!rc)
        rc = ready(fr_server_port(l.server), arg, err);
    if (!rc) {
        uv_timer_start(&l.timer, on_timer, 0, TICK_MS);
        uv_async_send(&l.async); /* requests that came before the server's address was known here */
        uv_run(&l.uv, UV_RUN_DEFAULT);
        fr_ctl_save(c);
    }
    fr_server_free(l.server);
    l.server = NULL;
    uv_walk(&l.uv, close_handle, NULL);
    uv_run(&l.uv, UV_RUN_DEFAULT);
    uv_loop_close(&l.uv);
    return rc;
}
