/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras_watch.c - the agent's side of RAS: when it is asked, about which job, and what is told of it
 *
 * One job at a time, one question at a time, on a worker thread. Nothing is held or done until the
 * controller wants to know.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/environ.h"
#include "agent/ras.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"

#define DEAR_TIMES   4 /* an answer that took long costs the job: rest so many times as long ... */
#define DEAR_MAX_S   10.0 /* ... or so long */
#define ABSENT_EVERY 5    /* where nobody listens, every fifth time is enough */

struct fr_ras_watch {
    char job[FR_NAME_BYTES];
    uint64_t epoch;
    bool busy;
    bool failed_once;          /* a failure was told of */
    uint64_t next_ns, told_ns; /* told_ns: the answer that was told */
    struct fr_ras_track track;
    struct fr_buf kept; /* head of the newest report */
    bool json;
};

struct question {
    uv_work_t work;
    struct fr_agent *agent;
    struct fr_ras_rank rank[FR_RAS_RANKS_ASKED];
    size_t nranks;
    char job[FR_NAME_BYTES];
    uint64_t epoch;
    struct fr_ras_answer answer;
    double took_s;
    struct fr_err err;
    int rc;
};

/* Where RAS listens is in the environment of the ranks, alike for all of them. */
static void ask(uv_work_t *w)
{
    struct question *q = w->data;
    FR_CLEANUP(fr_buf_fini) struct fr_buf env = FR_BUF_INIT;
    struct fr_ras_place at;
    uint64_t began = fr_mono_ns();
    const char *enable;

    fr_environ_read(q->rank[0].pid, &env); /* unreadable: as if it said nothing */
    enable = fr_environ_get(&env, "NCCL_RAS_ENABLE");
    if (enable && strcmp(enable, "0") == 0)
        q->rc = -ENOENT;
    else if (fr_ras_place_parse(fr_environ_get(&env, "NCCL_RAS_ADDR"), &at) != 0)
        q->rc = -ENOENT; /* not on loopback: it may be anybody's */
    else
        q->rc = fr_ras_query(&at, q->rank, q->nranks, &FR_RAS_LIMITS, &q->answer, &q->err);
    q->took_s = (double)(fr_mono_ns() - began) * 1e-9;
}

static void answered(uv_work_t *work, int status)
{
    struct question *q = work->data;
    struct fr_agent *a = q->agent;
    struct fr_ras_watch *w = a->ras;
    double every_s = a->orders.ras_poll_s > 0 ? a->orders.ras_poll_s : 2;
    uint64_t now = fr_mono_ns();

    (void)status;
    a->working--;
    w->busy = false;
    every_s = fmax(every_s, fmin(DEAR_TIMES * q->took_s, DEAR_MAX_S));
    w->next_ns = now + (uint64_t)(every_s * (q->rc == -ENOENT ? ABSENT_EVERY : 1) * 1e9);
    if (q->rc == 0 && q->epoch == w->epoch && strcmp(q->job, w->job) == 0) {
        fr_ras_track_take(&w->track, &q->answer.report, now);
        fr_buf_reset(&w->kept);
        fr_buf_add(&w->kept, q->answer.kept.p, q->answer.kept.len);
        w->json = q->answer.json;
        fr_log(FR_LOG_DEBUG, "agent.ras", "job=%s comms=%u facts=%zu dropped=%u", w->job,
               q->answer.report.comms, q->answer.report.nfacts, q->answer.report.dropped);
    } else if (q->rc < 0 && q->rc != -ENOENT) {
        fr_log(w->failed_once ? FR_LOG_DEBUG : FR_LOG_INFO, "agent.ras", "job=%s reason=\"%s\"",
               w->job, q->err.text);
        w->failed_once = true;
    }
    if (q->rc == 0)
        fr_ras_answer_fini(&q->answer);
    free(q);
}

/* The ranks of one job: of the one that was asked about before, if it still has any here. */
static size_t choose_ranks(const struct fr_agent *a, struct question *q)
{
    const struct fr_rank *first = NULL;

    for (const struct fr_rank *r = a->ranks; r; r = r->next)
        if (r->state == FR_RANK_LIVE && (!first || (r->claims.epoch == a->ras->epoch &&
                                                    strcmp(r->claims.job, a->ras->job) == 0)))
            first = r;
    if (!first)
        return 0;
    memcpy(q->job, first->claims.job, sizeof q->job);
    q->epoch = first->claims.epoch;
    for (const struct fr_rank *r = a->ranks; r && q->nranks < FR_RAS_RANKS_ASKED; r = r->next)
        if (r->state == FR_RANK_LIVE && r->claims.epoch == q->epoch &&
            strcmp(r->claims.job, q->job) == 0)
            q->rank[q->nranks++] = (struct fr_ras_rank){r->pid, r->claims.starttime};
    return q->nranks;
}

void fr_ras_watch_tick(struct fr_agent *a, uint64_t now_ns)
{
    struct fr_ras_watch *w = a->ras;
    struct question *q;

    if (!a->has_orders || a->orders.ras_poll_s <= 0 || a->stopping)
        return;
    if (!w)
        w = a->ras = fr_xalloc(sizeof *w);
    if (w->busy || now_ns < w->next_ns)
        return;
    w->next_ns = now_ns + (uint64_t)(a->orders.ras_poll_s * 1e9);
    q = fr_xalloc(sizeof *q);
    q->work.data = q;
    q->agent = a;
    if (choose_ranks(a, q) == 0) {
        free(q);
        return;
    }
    if (q->epoch != w->epoch || strcmp(q->job, w->job) != 0) {
        memset(&w->track, 0, sizeof w->track);
        fr_buf_reset(&w->kept);
        memcpy(w->job, q->job, sizeof w->job);
        w->epoch = q->epoch;
        w->failed_once = false;
    }
    if (uv_queue_work(&a->loop, &q->work, ask, answered) != 0) {
        free(q);
        return;
    }
    w->busy = true;
    a->working++;
}

static bool is_here(const struct fr_agent *a, const char *host)
{
    if (strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0)
        return true;
    for (size_t i = 0; i < a->naddresses; i++)
        if (strcmp(a->address[i], host) == 0)
            return true;
    return false;
}

void fr_ras_watch_report(struct fr_agent *a)
{
    const struct fr_ras_word *word[FR_RAS_WORDS];
    struct fr_ras_watch *w = a->ras;
    size_t n;

    if (!w || a->orders.ras_poll_s <= 0 || (w->told_ns == w->track.asked_ns && !a->tools.full))
        return; /* each answer once */
    w->told_ns = w->track.asked_ns;
    n = fr_ras_track_words(&w->track, word, FR_RAS_WORDS);
    for (size_t i = 0; i < n; i++) {
        Fullrank__RasWord *m = fr_outbox_ras(&a->outbox);
        const struct fr_ras_fact *f = &word[i]->fact;

        m->job = w->job;
        m->epoch = w->epoch;
        m->host = (char *)f->host;
        m->pid = f->pid;
        m->here = is_here(a, f->host);
        m->what = (uint32_t)f->what;
        m->behind = f->behind;
        m->polls = word[i]->polls;
        m->since_ns = word[i]->since_ns;
        m->observed_ns = w->track.asked_ns;
        m->comm_hash = f->comm;
        m->comm_rank = f->comm_rank;
        m->comm_size = f->comm_size;
    }
}

const struct fr_buf *fr_ras_watch_kept(const struct fr_agent *a, const char *job, uint64_t epoch,
                                       bool *ret_json)
{
    const struct fr_ras_watch *w = a->ras;

    if (!w || !w->kept.len || w->epoch != epoch || strcmp(w->job, job) != 0)
        return NULL;
    *ret_json = w->json;
    return &w->kept;
}

void fr_ras_watch_free(struct fr_agent *a)
{
    if (!a->ras)
        return;
    fr_buf_fini(&a->ras->kept);
    free(a->ras);
    a->ras = NULL;
}
