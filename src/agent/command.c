/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - what the controller asks for once: evidence, node tests; both on worker threads */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/collect.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "diag/test.h"

#define REPORT_EVIDENCE_BYTES (2u << 20)   /* evidence of one report */
#define PART_BYTES            (192u << 10) /* of one file in one message */
#define DUMPS_SLACK_MS        1500
#define TEST_RESULTS          64

struct collect_job {
    uv_work_t work;
    struct fr_agent *agent;
    struct fr_collect *collect;
    bool second; /* of its rounds */
};

struct test_job {
    uv_work_t work;
    struct fr_agent *agent;
    uint64_t command;
    char level[16];
    struct fr_diag_result result[TEST_RESULTS];
    size_t n;
};

static void collect_work(uv_work_t *w)
{
    struct collect_job *job = w->data;

    if (job->second)
        fr_collect_dumps(job->collect);
    else
        fr_collect_run(job->collect);
}

/* One file, in parts where it is large. Returns how much the report holds now. */
static size_t send_item(struct fr_agent *a, const struct fr_collect *c,
                        const struct fr_collect_item *item, bool last, size_t bytes)
{
    size_t at = 0;

    do {
        size_t n = item->data.len - at < PART_BYTES ? item->data.len - at : PART_BYTES;
        Fullrank__Evidence *e;

        if (bytes + n > REPORT_EVIDENCE_BYTES) {
            fr_report_make(a, fr_mono_ns());
            bytes = 0;
        }
        e = fr_outbox_evidence(&a->outbox, item->data.p + at, n);
        e->incident = c->incident;
        e->job = fr_arena_text(&a->outbox.arena, c->job);
        e->epoch = c->epoch;
        e->name = fr_arena_text(&a->outbox.arena, item->name);
        e->offset = at;
        e->wait_ms = c->waits ? FR_COLLECT_DUMPS_MS + DUMPS_SLACK_MS : 0;
        at += n;
        e->last = last && at == item->data.len;
        bytes += n;
    } while (at < item->data.len);
    return bytes;
}

static void collect_done(uv_work_t *w, int status)
{
    struct collect_job *job = w->data;
    struct fr_agent *a = job->agent;
    struct fr_collect *c = job->collect;
    size_t bytes = 0;

    (void)status;
    for (size_t i = 0; i < c->nitems; i++)
        bytes = send_item(a, c, &c->items[i], !c->waits && i + 1 == c->nitems, bytes);
    fr_report_make(a, fr_mono_ns());
    fr_log(FR_LOG_NOTICE, "agent.evidence", "incident=%llu items=%zu dumps=%s",
           (unsigned long long)c->incident, c->nitems, c->waits ? "asked for" : "none waited for");
    if (c->waits) {
        job->second = true;
        if (uv_queue_work(&a->loop, &job->work, collect_work, collect_done) == 0)
            return; /* still working */
    }
    a->working--;
    fr_collect_free(c);
    free(job);
}

static void start_collect(struct fr_agent *a, const struct fr_command *cmd)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf table = FR_BUF_INIT;
    struct collect_job *job = fr_xalloc(sizeof *job);
    struct fr_collect *c = fr_xalloc(sizeof *c);
    const struct fr_buf *ras;
    struct fr_jsonw w;
    uint64_t now = fr_mono_ns();
    bool json = false;

    c->dumps = cmd->dumps;
    c->command = cmd->id;
    c->incident = cmd->incident;
    c->epoch = cmd->epoch;
    memcpy(c->job, cmd->job, sizeof c->job);
    fr_jsonw_init(&w, &table);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "schema", "fullrank.in-flight/1");
    fr_jsonw_str(&w, "node", a->opt.node);
    fr_jsonw_str(&w, "job", cmd->job);
    fr_jsonw_uint(&w, "epoch", cmd->epoch);
    fr_jsonw_arr(&w, "ranks");
    for (struct fr_rank *r = a->ranks; r; r = r->next) {
        if ((r->state != FR_RANK_LIVE && r->state != FR_RANK_DEAD) ||
            r->claims.epoch != cmd->epoch || strcmp(r->claims.job, cmd->job) != 0)
            continue;
        fr_rank_table(r, &w, now);
        if (c->nranks < FR_COLLECT_RANKS)
            c->ranks[c->nranks++] = (struct fr_collect_rank){.rank = r->claims.rank,
                                                             .pid = r->pid,
                                                             .starttime = r->claims.starttime,
                                                             .uid = (uint32_t)r->owner,
                                                             .dead = r->state == FR_RANK_DEAD};
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_end_obj(&w);
    fr_collect_add(c, "in-flight.json", table.p, table.len);
    ras = fr_ras_watch_kept(a, cmd->job, cmd->epoch, &json);
    if (ras)
        fr_collect_add(c, json ? "nccl-ras.json" : "nccl-ras.txt", ras->p, ras->len);
    job->work.data = job;
    job->agent = a;
    job->collect = c;
    if (uv_queue_work(&a->loop, &job->work, collect_work, collect_done) != 0) {
        fr_collect_free(c);
        free(job);
        return;
    }
    a->working++;
}

static void keep_result(const struct fr_diag_result *r, void *arg)
{
    struct test_job *job = arg;

    if (job->n < TEST_RESULTS)
        job->result[job->n++] = *r;
}

static void test_work(uv_work_t *w)
{
    struct test_job *job = w->data;
    unsigned level = fr_diag_level_parse(job->level);

    if (level)
        fr_diag_run(level, job->agent->opt.spool_dir, level == FR_DIAG_VERIFY ? 15.0 : 60.0,
                    keep_result, job);
}

static void test_done(uv_work_t *w, int status)
{
    struct test_job *job = w->data;
    struct fr_agent *a = job->agent;
    size_t passed = 0;

    (void)status;
    a->working--;
    for (size_t i = 0; i < job->n; i++) {
        const struct fr_diag_result *r = &job->result[i];
        Fullrank__TestResult *m = fr_outbox_test(&a->outbox);

        m->request = job->command;
        m->name = (char *)r->test->name;
        m->level = fr_arena_text(&a->outbox.arena, job->level);
        m->passed = r->passed;
        m->value = r->sample.value;
        m->unit = (char *)r->test->unit;
        m->floor = r->test->floor;
        m->detail = fr_arena_text(&a->outbox.arena, r->sample.detail);
        m->duration_ns = r->duration_ns;
        m->last = i + 1 == job->n;
        passed += r->passed;
    }
    if (job->n == 0) { /* a level that this version does not have */
        Fullrank__TestResult *m = fr_outbox_test(&a->outbox);

        m->request = job->command;
        m->name = (char *)"level";
        m->level = fr_arena_text(&a->outbox.arena, job->level);
        m->floor = m->value = NAN;
        m->detail = (char *)"this agent knows no such level";
        m->last = true;
    }
    fr_report_make(a, fr_mono_ns());
    fr_log(FR_LOG_NOTICE, "agent.test", "level=%s passed=%zu of=%zu", job->level, passed, job->n);
    free(job);
}

static void start_test(struct fr_agent *a, const struct fr_command *cmd)
{
    struct test_job *job = fr_xalloc(sizeof *job);

    job->work.data = job;
    job->agent = a;
    job->command = cmd->id;
    memcpy(job->level, cmd->level, sizeof job->level);
    if (uv_queue_work(&a->loop, &job->work, test_work, test_done) != 0) {
        free(job);
        return;
    }
    a->working++;
}

static bool is_asked(const struct fr_command *c, int32_t rank)
{
    for (size_t i = 0; i < c->nranks; i++)
        if (rank >= 0 && c->ranks[i] == (uint32_t)rank)
            return true;
    return c->nranks == 0;
}

/* Ask the probes of admitted ranks for another level; each goes back by itself. */
static void start_look(struct fr_agent *a, const struct fr_command *c)
{
    uint64_t until = fr_mono_ns() + (uint64_t)(c->seconds * 1e9);

    for (const struct fr_rank *r = a->ranks; r; r = r->next)
        if (r->state == FR_RANK_LIVE && r->claims.epoch == c->epoch &&
            strcmp(r->claims.job, c->job) == 0 && is_asked(c, r->claims.rank))
            fr_levels_set(&a->levels, r->pid, c->probe_level, until);
}

/* The controller repeats a command until its answer has arrived: each is done once. */
void fr_command_start(struct fr_agent *a, const struct fr_command *c)
{
    for (size_t i = 0; i < FR_AGENT_SEEN && i < a->nseen; i++)
        if (a->seen[i] == c->id)
            return;
    if (a->working >= 8) /* it will be repeated */
        return;
    a->seen[a->nseen++ % FR_AGENT_SEEN] = c->id;
    if (c->kind == FR_COMMAND_COLLECT)
        start_collect(a, c);
    else if (c->kind == FR_COMMAND_LOOK)
        start_look(a, c);
    else
        start_test(a, c);
}
