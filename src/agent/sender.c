/* SPDX-License-Identifier: Apache-2.0 */
/* sender.c - see sender.h */
#define _GNU_SOURCE
#include "agent/sender.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/http.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "wire/message.h"

#define RETRY_FIRST_NS  100000000ull
#define RETRY_MOST_NS   1000000000ull
#define SPILL_AFTER_NS  2000000000ull /* offline for so long: to disk, however little it is */
#define REPLAY_SLICE_NS 250000000ull
#define SETTLE_NS       500000000ull /* five group commits of the controller: what it took by then is durable */

struct fr_sender {
    struct fr_sender_options opt;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* under the lock */
    struct fr_outgoing *head, *tail; /* not acknowledged, in order */
    struct fr_outgoing *unsent;      /* first of them that was not sent to this controller */
    size_t bytes;
    bool stop, abandoned, done;
    uint64_t deadline_ns; /* of stop */
    struct fr_sender_news news;
    struct fr_sender_figures figures;
    /* the sender's own */
    struct fr_http *http;
    struct fr_spool *spool; /* NULL: there is none (its folder cannot be written) */
    struct fr_buf body, reply, replay;
    bool replaying;     /* replay holds a spooled report that was not taken yet */
    struct fr_spool_key replay_key;
    uint64_t replayed_ns; /* when the last one of the spool was taken, 0: none */
    bool online, disk_failed;
    uint64_t offline_since_ns, retry_ns, retry_at_ns;
    uint64_t controller;
};

enum outcome { TAKEN, REFUSED, NO_ANSWER };

static void free_queue(struct fr_outgoing *o)
{
    while (o) {
        struct fr_outgoing *next = o->next;

        fr_outgoing_free(o);
        o = next;
    }
}

/* --- under the lock --- */

static void pop_head(struct fr_sender *s)
{
    struct fr_outgoing *o = s->head;

    s->head = o->next;
    if (s->unsent == o)
        s->unsent = o->next;
    if (!s->head)
        s->tail = NULL;
    s->bytes -= fr_outgoing_bytes(o);
    fr_outgoing_free(o);
}

static void acknowledge(struct fr_sender *s, uint64_t seq)
{
    while (s->head && s->head != s->unsent && s->head->seq <= seq)
        pop_head(s);
}

/* Detail goes when memory is short and the sender is busy with a request or a slow disk. */
static void give_up_detail(struct fr_sender *s, struct fr_outgoing *o)
{
    if (s->bytes > 2u * FR_SENDER_MEMORY_BYTES && o->part[FR_SPOOL_DETAIL].len) {
        fr_buf_fini(&o->part[FR_SPOOL_DETAIL]);
        s->figures.spool_dropped++;
    }
    if (s->bytes > 3u * FR_SENDER_MEMORY_BYTES && o->part[FR_SPOOL_STATE].len) {
        fr_buf_fini(&o->part[FR_SPOOL_STATE]);
        s->figures.spool_dropped++;
    }
}

void fr_sender_push(struct fr_sender *s, struct fr_outgoing *o)
{
    pthread_mutex_lock(&s->lock);
    give_up_detail(s, o);
    if (s->bytes > 4u * FR_SENDER_MEMORY_BYTES) {
        s->figures.spool_dropped++;
        fr_outgoing_free(o);
    } else {
        o->next = NULL;
        if (s->tail)
            s->tail->next = o;
        else
            s->head = o;
        s->tail = o;
        if (!s->unsent)
            s->unsent = o;
        s->bytes += fr_outgoing_bytes(o);
    }
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void fr_sender_take(struct fr_sender *s, struct fr_sender_news *ret)
{
    pthread_mutex_lock(&s->lock);
    *ret = s->news;
    s->news = (struct fr_sender_news){NULL, false};
    pthread_mutex_unlock(&s->lock);
}

void fr_sender_figures(struct fr_sender *s, struct fr_sender_figures *ret)
{
    pthread_mutex_lock(&s->lock);
    *ret = s->figures;
    ret->queue_bytes = s->bytes;
    pthread_mutex_unlock(&s->lock);
}

/* --- the spool --- */

static void spool_failed(struct fr_sender *s, int rc)
{
    if (!s->disk_failed)
        fr_log(FR_LOG_ERROR, "agent.spool_failed",
               "dir=%s reason=\"%s\" effect=\"reports are kept in memory only and the oldest are lost\"",
               s->opt.spool_dir, strerror(-rc));
    s->disk_failed = true;
}

/* Write one report. The parts that count more come first; if one cannot be written the rest is not tried. */
static void spool_one(struct fr_sender *s, struct fr_outgoing *o)
{
    static const char SPOOLED[] = {0x48, 0x01}; /* Report.spooled = true, as protobuf writes it */
    struct fr_spool_key key = {s->opt.instance, o->seq};
    int rc = s->spool ? 0 : -ENODEV;

    fr_buf_add(&o->part[FR_SPOOL_BASE], SPOOLED, sizeof SPOOLED);
    for (int c = 0; rc == 0 && c < FR_SPOOL_CLASSES; c++)
        if (o->part[c].len)
            rc = fr_spool_append(s->spool, key, (enum fr_spool_class)c, o->part[c].p, o->part[c].len);
    if (rc == 0) {
        if (s->disk_failed)
            fr_log(FR_LOG_NOTICE, "agent.spool_works", "dir=%s", s->opt.spool_dir);
        s->disk_failed = false;
        return;
    }
    if (rc != -ENODEV)
        spool_failed(s, rc);
    pthread_mutex_lock(&s->lock);
    s->figures.spool_dropped += !s->spool;
    pthread_mutex_unlock(&s->lock);
}

static void show_spool(struct fr_sender *s, uint64_t *dropped_before)
{
    pthread_mutex_lock(&s->lock);
    if (s->spool) {
        s->figures.spool_bytes = fr_spool_bytes(s->spool);
        s->figures.spool_dropped += fr_spool_dropped(s->spool) - *dropped_before;
        *dropped_before = fr_spool_dropped(s->spool);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Move the whole queue to the spool. */
static void spill(struct fr_sender *s)
{
    uint64_t dropped = s->spool ? fr_spool_dropped(s->spool) : 0;
    struct fr_outgoing *o;

    pthread_mutex_lock(&s->lock);
    o = s->head;
    s->head = s->tail = s->unsent = NULL;
    s->bytes = 0;
    if (o)
        s->news.was_away = true;
    pthread_mutex_unlock(&s->lock);
    for (struct fr_outgoing *p = o; p; p = p->next)
        spool_one(s, p);
    free_queue(o);
    show_spool(s, &dropped);
}

/* --- the controller --- */

static void went_offline(struct fr_sender *s, uint64_t now, const char *why)
{
    if (s->online || !s->offline_since_ns) {
        fr_log(FR_LOG_WARNING, "agent.controller_away", "url=%s reason=\"%s\"", s->opt.url, why);
        s->offline_since_ns = now;
        s->retry_ns = RETRY_FIRST_NS;
    } else if (s->retry_ns < RETRY_MOST_NS) {
        s->retry_ns *= 2;
    }
    s->online = false;
    s->retry_at_ns = now + s->retry_ns;
    pthread_mutex_lock(&s->lock);
    s->unsent = s->head; /* nobody knows what of it arrived */
    s->figures.online = false;
    pthread_mutex_unlock(&s->lock);
}

static void came_online(struct fr_sender *s, const struct fr_orders *o)
{
    if (!s->online)
        fr_log(FR_LOG_NOTICE, "agent.controller_answers", "url=%s", s->opt.url);
    s->online = true;
    s->offline_since_ns = 0;
    pthread_mutex_lock(&s->lock);
    s->figures.online = true;
    s->figures.delivered++;
    pthread_mutex_unlock(&s->lock);
    if (o->controller_instance != s->controller && s->controller) {
        /* A new one: it may have missed what the old one had taken and not made durable. */
        fr_log(FR_LOG_NOTICE, "agent.controller_restarted", "url=%s", s->opt.url);
        pthread_mutex_lock(&s->lock);
        s->unsent = s->head;
        pthread_mutex_unlock(&s->lock);
        if (s->spool && s->replayed_ns)
            fr_spool_rewind(s->spool);
        s->replayed_ns = 0;
    }
    s->controller = o->controller_instance;
}

static void pass_on(struct fr_sender *s, struct fr_orders *o)
{
    struct fr_orders *old, *copy = fr_xalloc(sizeof *copy);

    *copy = *o;
    pthread_mutex_lock(&s->lock);
    old = s->news.orders;
    if (old && old->want_full && old->controller_instance == copy->controller_instance)
        copy->want_full = true; /* a wish that the loop has not seen is not lost */
    s->news.orders = copy;
    pthread_mutex_unlock(&s->lock);
    if (old) {
        fr_orders_fini(old);
        free(old);
    }
    s->opt.notify(s->opt.arg);
}

static bool is_abandoned(struct fr_sender *s)
{
    bool yes;

    pthread_mutex_lock(&s->lock);
    yes = s->abandoned;
    pthread_mutex_unlock(&s->lock);
    return yes;
}

/* Send one body. TAKEN: *ret_acked is what the reply acknowledges. */
static enum outcome send_body(struct fr_sender *s, const struct fr_buf *body, uint64_t *ret_acked)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_orders o;
    int status = fr_http_call(s->http, "POST", FR_SENDER_PATH, FR_MESSAGE_TYPE, body->p, body->len, &s->reply, &err);
    uint64_t now = fr_mono_ns();

    if (is_abandoned(s))
        return NO_ANSWER;
    if (status == 400 || status == 413 || status == 422) {
        fr_log(FR_LOG_ERROR, "agent.report_refused", "status=%d bytes=%zu", status, body->len);
        return REFUSED; /* it would be refused for ever */
    }
    if (status != 200) {
        if (status >= 100)
            fr_fail(&err, -EPROTO, "HTTP status %d%s", status,
                    status == 401 || status == 403 ? " (is --token-file the controller's?)" : "");
        went_offline(s, now, err.text);
        return NO_ANSWER;
    }
    if (fr_orders_parse((const uint8_t *)fr_buf_str(&s->reply), s->reply.len, &o, &err) < 0) {
        went_offline(s, now, err.text);
        return NO_ANSWER;
    }
    came_online(s, &o);
    *ret_acked = o.acked_seq;
    if (o.error[0]) {
        fr_log(FR_LOG_ERROR, "agent.report_refused", "reason=\"%s\"", o.error);
        fr_orders_fini(&o);
        return REFUSED;
    }
    pass_on(s, &o);
    return TAKEN;
}

/* Send the first unsent report. The loop may add behind it meanwhile, but only this thread takes away. */
static void send_live(struct fr_sender *s)
{
    struct fr_outgoing *o;
    uint64_t acked = 0, instance = s->controller;
    enum outcome got;

    pthread_mutex_lock(&s->lock);
    o = s->unsent;
    pthread_mutex_unlock(&s->lock);
    if (!o)
        return;
    fr_buf_reset(&s->body);
    for (int c = 0; c < FR_SPOOL_CLASSES; c++)
        if (o->part[c].len)
            fr_buf_add(&s->body, o->part[c].p, o->part[c].len);
    got = send_body(s, &s->body, &acked);
    if (got == NO_ANSWER)
        return;
    pthread_mutex_lock(&s->lock);
    /* After a change of controllers everything before this one is to be sent again, and this one with it: in order. */
    if ((instance == s->controller || instance == 0) && !s->abandoned) {
        s->unsent = o->next;
        acknowledge(s, got == REFUSED ? o->seq : acked);
    }
    pthread_mutex_unlock(&s->lock);
    if (s->body.cap > 1u << 18)
        fr_buf_fini(&s->body);
}

/* Send spooled reports for a slice of time. */
static void replay(struct fr_sender *s)
{
    uint64_t begun = fr_mono_ns(), acked, dropped;

    if (!s->spool || fr_spool_bytes(s->spool) == 0)
        return;
    while (fr_mono_ns() - begun < REPLAY_SLICE_NS) {
        if (!s->replaying) {
            if (fr_spool_next(s->spool, &s->replay_key, &s->replay) != 1)
                break;
            s->replaying = true;
        }
        if (send_body(s, &s->replay, &acked) == NO_ANSWER)
            return;
        s->replaying = false;
        s->replayed_ns = fr_mono_ns();
    }
    if (fr_spool_is_empty(s->spool) && !s->replaying && s->replayed_ns &&
        fr_mono_ns() - s->replayed_ns > SETTLE_NS) {
        dropped = fr_spool_dropped(s->spool);
        fr_spool_delivered(s->spool);
        fr_buf_fini(&s->replay);
        s->replayed_ns = 0;
        show_spool(s, &dropped);
        fr_log(FR_LOG_NOTICE, "agent.spool_delivered", "dir=%s", s->opt.spool_dir);
    }
}

/* Wait until there is work or the time has come. Returns 0 when the thread shall end. */
static int wait_for_work(struct fr_sender *s)
{
    uint64_t now = fr_mono_ns();
    int go_on;

    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        bool overfull = s->bytes > FR_SENDER_MEMORY_BYTES;
        uint64_t until = s->online ? 0 : s->retry_at_ns;
        struct timespec ts;

        now = fr_mono_ns();
        if (s->unsent && (s->online || now >= s->retry_at_ns))
            break;
        if (!s->online && s->head && (overfull || now - s->offline_since_ns > SPILL_AFTER_NS))
            break;
        if (s->online || now >= until)
            until = now + FR_NS_PER_S;
        ts.tv_sec = (time_t)(until / 1000000000u);
        ts.tv_nsec = (long)(until % 1000000000u);
        pthread_cond_timedwait(&s->wake, &s->lock, &ts);
    }
    go_on = !s->stop || (s->unsent && s->online && now < s->deadline_ns);
    if (s->abandoned)
        go_on = 0;
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

static void *run(void *arg)
{
    struct fr_sender *s = arg;

    while (wait_for_work(s)) {
        uint64_t now = fr_mono_ns();
        bool late, full;

        if (s->online || now >= s->retry_at_ns) {
            replay(s); /* older than what is in memory, so it goes first */
            if (s->online || !s->spool || fr_spool_bytes(s->spool) == 0)
                send_live(s);
        }
        now = fr_mono_ns();
        pthread_mutex_lock(&s->lock);
        full = s->bytes > FR_SENDER_MEMORY_BYTES;
        late = s->stop && now >= s->deadline_ns;
        pthread_mutex_unlock(&s->lock);
        if (is_abandoned(s))
            break;
        if (!s->online && s->offline_since_ns && (now - s->offline_since_ns > SPILL_AFTER_NS || full))
            spill(s);
        if (late)
            break;
    }
    pthread_mutex_lock(&s->lock);
    if (s->abandoned) { /* the process is ending and has taken the queue */
        pthread_mutex_unlock(&s->lock);
        return NULL;
    }
    s->done = true;
    pthread_mutex_unlock(&s->lock);
    spill(s); /* what was not acknowledged is sent again by the next agent */
    return NULL;
}

static void sender_free(struct fr_sender *s)
{
    if (!s)
        return;
    free_queue(s->head);
    if (s->news.orders) {
        fr_orders_fini(s->news.orders);
        free(s->news.orders);
    }
    fr_http_free(s->http);
    fr_spool_close(s->spool);
    fr_buf_fini(&s->body);
    fr_buf_fini(&s->reply);
    fr_buf_fini(&s->replay);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void sender_freep(struct fr_sender **s)
{
    sender_free(*s);
}

int fr_sender_start(const struct fr_sender_options *opt, struct fr_sender **ret, struct fr_err *err)
{
    FR_CLEANUP(sender_freep) struct fr_sender *s = fr_xalloc(sizeof *s);
    struct fr_http_options http = {.base_url = opt->url, .token = opt->token, .timeout_s = opt->timeout_s,
                                   .max_bytes = FR_ORDERS_REPLY_BYTES};
    struct fr_err why = FR_ERR_INIT;
    pthread_condattr_t attr;
    pthread_attr_t small;
    sigset_t all, old;
    int rc;

    s->opt = *opt;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    rc = fr_http_new(&http, &s->http, err);
    if (rc < 0)
        return rc;
    rc = fr_spool_open(opt->spool_dir, opt->spool_bytes, &s->spool, &why);
    if (rc < 0) { /* a node with a broken disk is still watched */
        fr_log(FR_LOG_ERROR, "agent.no_spool", "reason=\"%s\"", why.text);
        s->disk_failed = true;
    } else {
        s->figures.spool_bytes = fr_spool_bytes(s->spool);
    }
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 512u << 10);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old); /* signals are the loop's */
    rc = pthread_create(&s->thread, &small, run, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&small);
    if (rc != 0)
        return fr_fail(err, -rc, "cannot start the sender's thread: %s", strerror(rc));
    pthread_setname_np(s->thread, "fr-sender");
    *ret = s;
    s = NULL;
    return 0;
}

int fr_sender_stop(struct fr_sender *s, double limit_s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until); /* the clock of pthread_timedjoin_np */
    until.tv_nsec += (long)((limit_s + 0.2) * 1e9) % 1000000000;
    until.tv_sec += (time_t)(limit_s + 0.2) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    s->deadline_ns = fr_mono_ns() + (uint64_t)(limit_s * 1e9);
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (pthread_timedjoin_np(s->thread, NULL, &until) == 0) {
        sender_free(s);
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    s->abandoned = !s->done;
    pthread_mutex_unlock(&s->lock);
    if (s->abandoned) /* it is inside of a request and will not touch the queue or the spool again */
        spill(s);
    return -ETIMEDOUT;
}
