/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - the loop: ticks, orders, start and end; see agent.h */
#define _GNU_SOURCE
#include "agent/agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "sense/pressure/pressure.h"

static void on_tick(uv_timer_t *t);

/* Irregular looks: each between 0.6 and 1.4 of the interval. */
static void arm(struct fr_agent *a)
{
    double ms = a->opt.drain_s * 1e3 * (0.6 + 0.8 * fr_rng_unit(&a->rng));

    uv_timer_start(&a->tick, on_tick, ms < 1 ? 1 : (uint64_t)ms, 0);
}

static void drain_rank(struct fr_agent *a, struct fr_rank *r, uint64_t now_ns)
{
    struct fr_err err = FR_ERR_INIT;

    if (r->state != FR_RANK_LIVE)
        return;
    if (r->segment_broken) {
        fr_rank_sample(r, &a->tools, now_ns);
        return;
    }
    if (fr_rank_drain(r, &a->tools, &err) < 0) {
        fr_log(FR_LOG_WARNING, "agent.segment_broken", "job=%s rank=%d reason=\"%s\"",
               r->claims.job, r->claims.rank, err.text);
        r->segment_broken = true; /* its process is watched on */
    }
    fr_rank_sample(r, &a->tools, now_ns);
}

static void on_tick(uv_timer_t *t)
{
    struct fr_agent *a = t->data;
    uint64_t now = fr_mono_ns();

    a->tools.now_ns = now;
    fr_watch_tick(a, now);
    fr_levels_tick(&a->levels, now);
    for (struct fr_rank *r = a->ranks; r; r = r->next)
        drain_rank(a, r, now);
    fr_ras_watch_tick(a, now);
    if (a->outbox.urgent || now >= a->report_at_ns)
        fr_report_make(a, now);
    if (!a->stopping)
        arm(a);
}

static void take_orders(struct fr_agent *a, struct fr_orders *o)
{
    uint64_t now = fr_mono_ns();

    if (!a->has_orders || o->controller_instance != a->orders.controller_instance) {
        a->want_full = true;
        a->grace_until_ns = now + FR_AGENT_GRACE_NS;
        a->nseen = 0; /* its commands are numbered by itself */
        memset(a->seen, 0, sizeof a->seen);
    }
    if (o->want_full)
        a->want_full = true;
    if (o->interval_s > 0)
        a->interval_ns = (uint64_t)(o->interval_s * 1e9);
    fr_orders_fini(&a->orders);
    a->orders = *o;
    a->has_orders = a->orders_changed = true;
    for (struct fr_rank *r = a->ranks; r; r = r->next)
        if (r->state >= FR_RANK_LIVE)
            fr_fold_keep(&r->fold, o->keep_log2, o->burst_until);
    for (size_t i = 0; i < a->orders.ncommands; i++)
        fr_command_start(a, &a->orders.commands[i]);
}

static void on_news(uv_async_t *h)
{
    struct fr_agent *a = h->data;
    struct fr_sender_news news;

    fr_sender_take(a->sender, &news);
    if (news.was_away)
        a->want_full = true;
    if (!news.orders)
        return;
    if (a->stopping)
        fr_orders_fini(news.orders);
    else
        take_orders(a, news.orders);
    free(news.orders);
}

/* From the sender's thread. */
static void notify(void *arg)
{
    struct fr_agent *a = arg;

    uv_async_send(&a->news);
}

static void on_signal(uv_signal_t *h, int signum)
{
    struct fr_agent *a = h->data;

    fr_log(FR_LOG_NOTICE, "agent.stopping", "signal=%d", signum);
    a->stopping = true;
    uv_stop(&a->loop);
}

static void learn_node(struct fr_agent *a)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;

    if (gethostname(a->host, sizeof a->host) != 0)
        snprintf(a->host, sizeof a->host, "unknown");
    a->host[sizeof a->host - 1] = '\0';
    if (fr_fs_read("/proc/sys/kernel/random/boot_id", 128, &b, NULL) == 0)
        snprintf(a->boot_id, sizeof a->boot_id, "%.36s", fr_buf_str(&b));
    a->boot_id[strcspn(a->boot_id, "\n")] = '\0';
    if (getrandom(&a->instance, sizeof a->instance, 0) != sizeof a->instance)
        a->instance = (uint64_t)fr_unix_ns() ^ (uint64_t)getpid();
    a->instance |= 1; /* never 0 */
    a->rng.s = a->instance;
}

static void learn_addresses(struct fr_agent *a)
{
    struct ifaddrs *list = NULL;

    if (getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *i = list; i && a->naddresses < FR_AGENT_ADDRESSES; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        const void *p = family == AF_INET
                            ? (void *)&((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr
                            : (void *)&((struct sockaddr_in6 *)(void *)i->ifa_addr)->sin6_addr;

        if ((family != AF_INET && family != AF_INET6) || (i->ifa_flags & IFF_LOOPBACK))
            continue;
        if (inet_ntop(family, p, a->address[a->naddresses], INET6_ADDRSTRLEN))
            a->naddresses++;
    }
    freeifaddrs(list);
}

/* Ranks of any user put their files there: like /tmp. An existing folder keeps its mode. */
static int make_probe_dir(const char *dir, struct fr_err *err)
{
    struct stat st;
    int rc;

    if (stat(dir, &st) == 0)
        return S_ISDIR(st.st_mode) ? 0 : fr_fail(err, -ENOTDIR, "%s: is no folder", dir);
    rc = fr_fs_mkdirs(dir, 0755, err);
    if (rc == 0 && chmod(dir, 01777) != 0)
        rc = fr_fail(err, -errno, "%s: cannot open it to all users: %s", dir, strerror(errno));
    return rc;
}

static int start(struct fr_agent *a, struct fr_err *err)
{
    struct fr_sender_options so = {.url = a->opt.url,
                                   .token = a->opt.token,
                                   .spool_dir = a->opt.spool_dir,
                                   .spool_bytes = a->opt.spool_bytes,
                                   .timeout_s = a->opt.timeout_s,
                                   .notify = notify,
                                   .arg = a};
    struct fr_err levels = FR_ERR_INIT;
    int rc;

    a->dir_fd = -1;
    a->want_full = true;
    a->interval_ns = (uint64_t)(a->opt.interval_s * 1e9);
    a->tools.outbox = &a->outbox;
    learn_node(a);
    learn_addresses(a);
    rc = make_probe_dir(a->opt.probe_dir, err);
    if (rc < 0)
        return rc;
    if (fr_levels_open(&a->levels, a->opt.probe_dir, &levels) != 0)
        fr_log(FR_LOG_WARNING, "agent.no_levels", "reason=\"%s\"", levels.text);
    rc = FR_SENSOR_PRESSURE.open(&(struct fr_sense_target){"", 0}, &a->pressure, err);
    if (rc < 0)
        return rc;
    uv_loop_init(&a->loop);
    uv_timer_init(&a->loop, &a->tick);
    uv_async_init(&a->loop, &a->news, on_news);
    uv_signal_init(&a->loop, &a->sigterm);
    uv_signal_init(&a->loop, &a->sigint);
    a->tick.data = a->news.data = a->sigterm.data = a->sigint.data = a;
    so.instance = a->instance;
    rc = fr_sender_start(&so, &a->sender, err);
    if (rc < 0)
        return rc;
    uv_signal_start(&a->sigterm, on_signal, SIGTERM);
    uv_signal_start(&a->sigint, on_signal, SIGINT);
    return 0;
}

/* The last reports, then everything is given back. */
static void finish(struct fr_agent *a)
{
    uint64_t now = fr_mono_ns();

    for (struct fr_rank *r = a->ranks; r; r = r->next)
        drain_rank(a, r, now);
    fr_levels_close(&a->levels, a->nranks ? NULL : a->opt.probe_dir);
    fr_report_make(a, now);
    if (fr_sender_stop(a->sender, FR_AGENT_DRAIN_LIMIT_S) != 0 || a->working)
        _exit(0); /* a thread hangs in a request, or a test runs: nothing of them is waited for */
    a->sender = NULL;
    fr_watch_close(a);
    fr_ras_watch_free(a);
    uv_close((uv_handle_t *)&a->tick, NULL);
    uv_close((uv_handle_t *)&a->news, NULL);
    uv_close((uv_handle_t *)&a->sigterm, NULL);
    uv_close((uv_handle_t *)&a->sigint, NULL);
    uv_run(&a->loop, UV_RUN_DEFAULT);
    uv_loop_close(&a->loop);
    FR_SENSOR_PRESSURE.close(a->pressure);
    fr_rank_tools_fini(&a->tools);
    fr_outbox_fini(&a->outbox);
    fr_orders_fini(&a->orders);
}

int fr_agent_run(const struct fr_agent_options *opt, struct fr_err *err)
{
    static struct fr_agent agent; /* one a process */
    int rc;

    memset(&agent, 0, sizeof agent);
    agent.opt = *opt;
    signal(SIGPIPE, SIG_IGN);
    rc = start(&agent, err);
    if (rc < 0)
        return rc;
    fr_log(FR_LOG_NOTICE, "agent.started", "node=%s controller=%s probe_dir=%s spool=%s", opt->node,
           opt->url, opt->probe_dir, opt->spool_dir);
    on_tick(&agent.tick);
    uv_run(&agent.loop, UV_RUN_DEFAULT);
    finish(&agent);
    return 0;
}
