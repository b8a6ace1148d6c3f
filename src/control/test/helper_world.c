/* SPDX-License-Identifier: Apache-2.0 */
/* helper_world.c - see helper_world.h */
#include "helper_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/xalloc.h"
#include "control/ingest.h"
#include "control/jobs.h"
#include "wire/message.h"

int setup(void **state)
{
    struct world *w = fr_xalloc(sizeof *w);
    const char *none[] = {NULL};
    char db[96];
    struct fr_err err = FR_ERR_INIT;

    snprintf(w->dir, sizeof w->dir, "/tmp/fr-ingest-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(db, sizeof db, "%s/ledger.db", w->dir);
    assert_int_equal(fr_config_load(FR_CONFIG_ROWS, &w->cfg, none, NULL), 0);
    if (fr_ledger_open(db, &w->lg, &err))
        fail_msg("%s", err.text);
    w->c = fr_ctl_new(&w->cfg, FR_MODE_ACT, w->dir, w->lg);
    *state = w;
    return 0;
}

int teardown(void **state)
{
    struct world *w = *state;

    fr_ctl_free(w->c);
    fr_ledger_close(w->lg);
    fr_fs_remove_tree(w->dir, NULL);
    free(w);
    return 0;
}

void base_report(struct world *w, Fullrank__Report *r, Fullrank__NodeInfo *info, const char *node)
{
    fullrank__report__init(r);
    fullrank__node_info__init(info);
    r->node = TEXT(node);
    r->agent_instance = 7;
    r->seq = ++w->seq;
    r->mono_ns = w->c->now_ns;
    r->unix_ns = fr_ctl_now_unix(w->c);
    info->host = TEXT("h");
    info->probe_dir = TEXT("/p");
    r->info = info;
}

/* Send it; puts the reply's error into error when given. */
int send_report(struct world *w, const Fullrank__Report *r, char *error)
{
    struct fr_buf body = FR_BUF_INIT, reply = FR_BUF_INIT;
    Fullrank__Reply *a;
    int status;

    fr_message_pack(&r->base, &body);
    status = fr_ingest_report(w->c, body.p, body.len, &reply);
    a = fullrank__reply__unpack(NULL, reply.len, (const uint8_t *)fr_buf_str(&reply));
    assert_non_null(a);
    if (error)
        snprintf(error, 256, "%s", a->error);
    fullrank__reply__free_unpacked(a, NULL);
    fr_buf_fini(&body);
    fr_buf_fini(&reply);
    return status;
}

void hear(struct world *w, const char *node)
{
    Fullrank__Report r;
    Fullrank__NodeInfo info;

    base_report(w, &r, &info, node);
    assert_int_equal(send_report(w, &r, NULL), 200);
}

void base_supervise(struct world *w, Fullrank__SuperviseReport *r, const char *job, uint64_t key)
{
    fullrank__supervise_report__init(r);
    r->job = TEXT(job);
    r->key = key;
    r->nodes = 2;
    r->ranks_per_node = 2;
    r->submitted_unix_ns = fr_ctl_now_unix(w->c);
    r->first_dead_rank = -1;
}

Fullrank__SuperviseOrder *supervise(struct world *w, const Fullrank__SuperviseReport *r,
                                    int *status)
{
    struct fr_buf body = FR_BUF_INIT, reply = FR_BUF_INIT;
    Fullrank__SuperviseOrder *o;
    int rc;

    fr_message_pack(&r->base, &body);
    rc = fr_jobs_supervise(w->c, body.p, body.len, &reply);
    if (status)
        *status = rc;
    o = fullrank__supervise_order__unpack(NULL, reply.len, (const uint8_t *)fr_buf_str(&reply));
    assert_non_null(o);
    fr_buf_fini(&body);
    fr_buf_fini(&reply);
    return o;
}

void tick(struct world *w)
{
    fr_ctl_tick(w->c, w->c->now_ns + 50000000);
    if (w->c->appended)
        assert_int_equal(fr_ledger_wait(w->lg, w->c->appended, 5, NULL), 0);
}

/* A job of 2 nodes x 2 ranks that runs its first attempt on n1, n2. */
struct fr_cjob *running_job(struct world *w)
{
    Fullrank__SuperviseReport r;
    Fullrank__SuperviseOrder *o;

    hear(w, "n1");
    hear(w, "n2");
    base_supervise(w, &r, "", 11);
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    tick(w);
    r.job = TEXT("j1");
    o = supervise(w, &r, NULL);
    assert_int_equal(o->what, FULLRANK__SUPERVISE_ORDER__WHAT__START);
    assert_int_equal(o->n_placements, 2);
    r.attempt = o->attempt;
    r.epoch = o->epoch;
    r.last_order = o->id;
    fullrank__supervise_order__free_unpacked(o, NULL);
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
    r.started_unix_ns = fr_ctl_now_unix(w->c);
    fullrank__supervise_order__free_unpacked(supervise(w, &r, NULL), NULL);
    assert_int_equal(w->c->jobs[0]->attempts[0].epoch, 1);
    return w->c->jobs[0];
}

struct fr_finding finding(enum fr_finding_kind kind, uint64_t key, int32_t rank)
{
    return (struct fr_finding){.kind = kind,
                               .key = key,
                               .rank = rank,
                               .node = rank < 0 ? -1 : rank / 2,
                               .subject = rank < 0 ? FR_SUBJECT_JOB : FR_SUBJECT_RANK,
                               .confidence = 0.9};
}
