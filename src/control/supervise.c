/* SPDX-License-Identifier: Apache-2.0 */
/* supervise.c - what supervisors report and what they are answered; see jobs.h */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "control/act.h"
#include "control/fleet.h"
#include "control/jobs.h"
#include "wire/message.h"
#include "wire/supervise.pb-c.h"

typedef Fullrank__SuperviseReport report_msg; /* the generator's own names are long */

#define COMMAND_ARGS_MAX 4096
#define SETTLE_NS        1000000000ull /* for the last steps to be told */
#define VERDICT_NS       2000000000ull /* for the agents' word to come after the launcher's */

static int64_t clamp(int64_t t, int64_t lo, int64_t hi)
{
    return t < lo ? lo : t > hi ? hi : t;
}

static int check(const report_msg *r, struct fr_err *err)
{
    if (r->job[0] && !fr_ctl_name_ok(r->job))
        return fr_fail(err, -EINVAL,
                       "a job's name must be 1 to 63 characters of A-Z a-z 0-9 . _ -");
    if (r->name[0] && (!fr_ctl_name_ok(r->name) || strlen(r->name) > 48))
        return fr_fail(err, -EINVAL,
                       "a job's name must be 1 to 48 characters of A-Z a-z 0-9 . _ -");
    if (strlen(r->user) >= FR_NAME_BYTES || strlen(r->engine) >= 16 || strlen(r->workdir) >= 4096)
        return fr_fail(err, -EINVAL, "user, engine or working directory is too long");
    if (r->n_command > COMMAND_ARGS_MAX)
        return fr_fail(err, -EINVAL, "a command of more than %d arguments", COMMAND_ARGS_MAX);
    if (r->n_node_list > FR_JOB_NODES_MAX)
        return fr_fail(err, -EINVAL, "an attempt of more than %d nodes", FR_JOB_NODES_MAX);
    if (r->key == 0)
        return fr_fail(err, -EINVAL, "the supervisor gave no key");
    return 0;
}

static void set_command(struct fr_cjob *j, const report_msg *r)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_jsonw w;

    fr_jsonw_init(&w, &b);
    fr_jsonw_arr(&w, NULL);
    for (size_t i = 0; i < r->n_command; i++)
        fr_jsonw_str(&w, NULL, r->command[i]);
    fr_jsonw_end_arr(&w);
    free(j->command);
    j->command = fr_xstrdup(fr_buf_str(&b));
    free(j->workdir);
    j->workdir = fr_xstrdup(r->workdir);
}

/* A job that is not known: new, or adopted under the name that it bears. */
static struct fr_cjob *make_job(struct fr_ctl *c, const report_msg *r, struct fr_err *err)
{
    struct fr_cjob tmp = {0}, *j;
    char name[FR_NAME_BYTES];
    enum fr_mode mode = c->mode;

    if (fr_job_size(&tmp, r->nodes, r->ranks_per_node, err))
        return NULL;
    if (r->mode[0] && fr_mode_parse(r->mode, &mode)) {
        fr_fail(err, -EINVAL, "mode must be observe, advise or act");
        return NULL;
    }
    if (r->job[0])
        snprintf(name, sizeof name, "%s", r->job);
    else
        do {
            c->job_number++;
            if (r->name[0])
                snprintf(name, sizeof name, "%.48s-%u", r->name, c->job_number);
            else
                snprintf(name, sizeof name, "j%u", c->job_number);
        } while (fr_ctl_job(c, name));
    j = fr_job_new(c, name);
    if (!j) {
        fr_fail(err, -ENOSPC,
                "this controller holds %d jobs that have not ended, which is its limit",
                FR_JOBS_MAX);
        return NULL;
    }
    fr_job_size(j, r->nodes, r->ranks_per_node, NULL);
    snprintf(j->name, sizeof j->name, "%s", r->name[0] ? r->name : name);
    snprintf(j->user, sizeof j->user, "%s", r->user);
    snprintf(j->engine, sizeof j->engine, "%s", r->engine[0] ? r->engine : "local");
    set_command(j, r);
    j->uid = r->uid;
    j->spares = r->spares > FR_NODES_MAX ? FR_NODES_MAX : r->spares;
    j->max_attempts = r->max_attempts;
    j->mode = mode < c->mode ? mode : c->mode; /* a job may ask for less, never for more */
    j->key = r->key;
    j->heard_ns = c->now_ns;
    j->submitted_unix_ns = clamp(
        r->submitted_unix_ns > 0 ? r->submitted_unix_ns : fr_ctl_now_unix(c),
        fr_ctl_now_unix(c) - (r->job[0] ? 366 * 86400 : 60) * FR_NS_PER_S, fr_ctl_now_unix(c));
    j->dirty = j->changed = true;
    fr_log(FR_LOG_NOTICE, "job.new", "job=%s nodes=%u ranks=%u adopted=%d", j->job, j->nodes,
           j->nranks, r->job[0] != '\0');
    return j;
}

/* The name is given away only once it is on the disk: else a restarted controller could give it to
 * another. A new job is rare enough to let the loop wait for one commit. */
static int record_job(struct fr_ctl *c, const struct fr_cjob *j, struct fr_err *err)
{
    fr_ctl_save(c);
    return fr_ledger_wait(c->ledger, j->row, 1.0, err) ? -EIO : 0;
}

static struct fr_cjob *find_job(struct fr_ctl *c, const report_msg *r)
{
    if (r->job[0])
        return fr_ctl_job(c, r->job);
    for (uint32_t i = 0; i < c->njobs; i++)
        if (c->jobs[i]->key == r->key)
            return c->jobs[i];
    return NULL;
}

/* An attempt runs that this controller has no record of: take it as the supervisor tells it. */
static int adopt_attempt(struct fr_ctl *c, struct fr_cjob *j, const report_msg *r,
                         struct fr_err *err)
{
    FR_CLEANUP(fr_freep) struct fr_cnode **nodes = fr_xcalloc(j->nodes, sizeof *nodes);
    struct fr_cattempt *a;

    if (r->n_node_list != j->nodes)
        return fr_fail(err, -EINVAL, "job %s: attempt %u names %zu nodes, the job has %u", j->job,
                       r->attempt, r->n_node_list, j->nodes);
    if (j->nattempts && r->attempt <= fr_job_current(j)->attempt)
        return fr_fail(
            err, -EINVAL, "job %s: attempt %u with the new epoch %llu, but attempt %u has been",
            j->job, r->attempt, (unsigned long long)r->epoch, fr_job_current(j)->attempt);
    for (uint32_t i = 0; i < j->nodes; i++) {
        nodes[i] = fr_fleet_node(c, r->node_list[i], err);
        if (!nodes[i])
            return -EINVAL;
    }
    a = fr_job_add_attempt(c, j, r->attempt, r->epoch, nodes);
    a->start_unix_ns = clamp(r->started_unix_ns, j->submitted_unix_ns, fr_ctl_now_unix(c));
    memset(&j->order, 0, sizeof j->order);
    fr_log(FR_LOG_NOTICE, "attempt.adopted", "job=%s attempt=%u epoch=%llu", j->job, a->attempt,
           (unsigned long long)a->epoch);
    return 0;
}

/* The supervisor went on alone with the number that we had given to an attempt on other nodes: its
 * word holds. */
static void correct_nodes(struct fr_ctl *c, struct fr_cjob *j, const report_msg *r)
{
    FR_CLEANUP(fr_freep) struct fr_cnode **nodes = fr_xcalloc(j->nodes, sizeof *nodes);
    struct fr_cattempt *a = fr_job_current(j), old = *a;
    uint32_t alike = 0;

    if (a->start_unix_ns || r->n_node_list != j->nodes)
        return;
    for (uint32_t i = 0; i < j->nodes; i++) {
        nodes[i] = fr_fleet_node(c, r->node_list[i], NULL);
        if (!nodes[i])
            return;
        alike += nodes[i] == a->nodes[i];
    }
    if (alike == j->nodes)
        return;
    j->nattempts--;
    a = fr_job_add_attempt(c, j, r->attempt, r->epoch, nodes);
    a->decision = old.decision;
    a->row = old.row;
    a->stop_unix_ns = old.stop_unix_ns;
    memcpy(a->end_reason, old.end_reason, sizeof a->end_reason);
    free(old.nodes);
    fr_log(FR_LOG_NOTICE, "attempt.adopted", "job=%s attempt=%u nodes=other", j->job, r->attempt);
}

static void attempt_started(struct fr_ctl *c, struct fr_cjob *j, const report_msg *r)
{
    struct fr_cattempt *a = fr_job_current(j);
    int64_t after = j->submitted_unix_ns;

    if (a->start_unix_ns)
        return;
    if (j->nattempts > 1 && j->attempts[j->nattempts - 2].end_unix_ns)
        after = j->attempts[j->nattempts - 2].end_unix_ns;
    a->start_unix_ns = clamp(r->started_unix_ns, after, fr_ctl_now_unix(c));
    a->dirty = j->changed = true;
    if (j->order.what == FR_ORDER_START)
        memset(&j->order, 0, sizeof j->order); /* done */
    fr_act_started(c, j);
}

static void tell_launcher(struct fr_ctl *c, struct fr_cjob *j, const report_msg *r)
{
    int32_t dead = r->first_dead_rank;

    j->launcher_told = true;
    j->launcher_killed = r->exit_signal > 0 && dead < 0;
    if (dead >= 0 && (uint32_t)dead < j->nranks && j->judging)
        fr_judge_launcher(j->judge, (uint32_t)dead, r->exit_signal, c->now_ns);
}

static void attempt_ended(struct fr_ctl *c, struct fr_cjob *j, const report_msg *r)
{
    struct fr_cattempt *a = fr_job_current(j);

    if (a->end_unix_ns) {
        if (j->verdict_ns && !j->launcher_told) /* this controller was started in between */
            tell_launcher(c, j, r);
        return;
    }
    attempt_started(c, j, r);
    a->end_unix_ns = clamp(r->ended_unix_ns, a->start_unix_ns, fr_ctl_now_unix(c));
    a->exit_code = r->exit_code;
    a->exit_signal = r->exit_signal;
    if (!a->stop_unix_ns || a->stop_unix_ns > a->end_unix_ns) {
        a->stop_unix_ns = a->end_unix_ns;
        for (uint32_t k = 0; k < j->nranks; k++) { /* it failed when its first process was gone */
            int64_t gone =
                j->ranks[k].gone_ns ? fr_ctl_unix(c, j->ranks[k].gone_ns) : a->end_unix_ns;

            if (gone < a->stop_unix_ns && gone > a->start_unix_ns && r->exit_code != 0)
                a->stop_unix_ns = gone;
        }
    }
    if (j->order.what == FR_ORDER_STOP)
        memset(&j->order, 0, sizeof j->order);
    if (!a->end_reason[0])
        snprintf(a->end_reason, sizeof a->end_reason, "%.255s", r->exit_text);
    a->dirty = j->changed = true;
    fr_log(FR_LOG_NOTICE, "attempt.ended", "job=%s attempt=%u exit_code=%d exit_signal=%d", j->job,
           a->attempt, a->exit_code, a->exit_signal);
    if (r->cancelled || j->cancelled) {
        fr_job_end(c, j, FR_JOB_CANCELLED, fr_job_exit_code(a), "ended by its user");
        return;
    }
    if (a->exit_code == 0 && a->exit_signal <= 0 &&
        (j->act.stage == FR_ACT_NONE || (j->total_steps && j->step_done >= j->total_steps))) {
        /* Also when a stop was on its way: the program came to its end before it. */
        j->settle_ns = c->now_ns + SETTLE_NS;
        return;
    }
    if (j->act.stage != FR_ACT_NONE)
        return; /* ended as ordered: fr_act_tick goes on */
    tell_launcher(c, j, r);
    fr_job_move(c, j, FR_JOB_STOPPING);
    j->verdict_ns = c->now_ns + VERDICT_NS;
}

static int take(struct fr_ctl *c, struct fr_cjob *j, const report_msg *r, struct fr_err *err)
{
    const struct fr_cattempt *a;

    if (j->key != r->key)
        return fr_fail(err, -EPERM, "job %s belongs to another supervisor", j->job);
    j->heard_ns = c->now_ns;
    j->session = r->session;
    snprintf(j->restarts_owner, sizeof j->restarts_owner, "%.127s", r->restarts_owner);
    j->supervisor_told = true;
    if (r->last_order > j->last_order)
        j->last_order = r->last_order;
    j->cancelled |= r->cancelled;
    if (fr_job_state_is_end(j->state))
        return 0;
    if (r->epoch > j->epoch && r->state != FULLRANK__ATTEMPT_STATE__ATTEMPT_NONE) {
        int rc = adopt_attempt(c, j, r, err);

        if (rc)
            return rc;
    }
    a = fr_job_current(j);
    if (a && r->epoch == a->epoch && r->attempt == a->attempt) {
        if (r->state != FULLRANK__ATTEMPT_STATE__ATTEMPT_NONE)
            correct_nodes(c, j, r);
        switch (r->state) {
        case FULLRANK__ATTEMPT_STATE__ATTEMPT_STARTING:
        case FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING:
        case FULLRANK__ATTEMPT_STATE__ATTEMPT_STOPPING:
            attempt_started(c, j, r);
            break;
        case FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED:
            attempt_ended(c, j, r);
            break;
        default:
            break;
        }
    } else if (r->epoch != 0 && a) {
        j->stale++;
    }
    a = fr_job_current(j);
    if (j->state == FR_JOB_LOST) {
        j->note[0] = '\0';
        fr_job_move(c, j, fr_job_natural_state(j));
    }
    if (r->cancelled && (!a || !a->start_unix_ns || a->end_unix_ns))
        fr_job_end(c, j, FR_JOB_CANCELLED, 130, "ended by its user");
    if (r->finished && !fr_job_state_is_end(j->state)) {
        int code = fr_job_exit_code(fr_job_current(j));

        fr_job_end(c, j,
                   r->cancelled   ? FR_JOB_CANCELLED
                   : j->settle_ns ? FR_JOB_DONE
                                  : FR_JOB_FAILED,
                   code, "its supervisor ended");
    }
    return 0;
}

static void fill_placements(const struct fr_cjob *j, const struct fr_cattempt *a,
                            Fullrank__SuperviseOrder *o)
{
    uint32_t *ranks = fr_xcalloc(j->nranks, sizeof *ranks);
    Fullrank__Placement *p = fr_xcalloc(a->nnodes, sizeof *p);

    o->n_placements = a->nnodes;
    o->placements = fr_xcalloc(a->nnodes, sizeof *o->placements);
    for (uint32_t r = 0; r < j->nranks; r++)
        ranks[r] = r;
    for (uint32_t i = 0; i < a->nnodes; i++) {
        fullrank__placement__init(&p[i]);
        p[i].node = a->nodes[i]->name;
        p[i].host = a->nodes[i]->host;
        p[i].probe_dir = a->nodes[i]->probe_dir;
        p[i].n_ranks = j->ranks_per_node;
        p[i].ranks = ranks + (size_t)i * j->ranks_per_node;
        o->placements[i] = &p[i];
    }
}

static void free_placements(Fullrank__SuperviseOrder *o)
{
    if (!o->n_placements)
        return;
    free(o->placements[0]->ranks);
    free(o->placements[0]);
    free(o->placements);
}

/* The order is given again until the supervisor says that it was done, and not before its rows are
 * on the disk. */
static void fill_order(struct fr_ctl *c, struct fr_cjob *j, Fullrank__SuperviseOrder *o)
{
    struct fr_order *w = &j->order;
    const struct fr_cattempt *a = fr_job_current(j);

    if (w->what == FR_ORDER_NONE || w->id <= j->last_order || !c->ledger_ok || j->dirty ||
        (a && a->dirty) || !fr_ctl_durable(c, j->row) || (a && !fr_ctl_durable(c, a->row)))
        return;
    if (w->decision) {
        const struct fr_cdecision *d = fr_ctl_decision(c, w->decision);

        if (d && (d->dirty || !fr_ctl_durable(c, d->row)))
            return;
    }
    o->id = w->id;
    o->what = (Fullrank__SuperviseOrder__What)w->what;
    o->attempt = w->attempt;
    o->epoch = w->epoch;
    o->decision = w->decision;
    o->reason = w->reason;
    o->exit_code = w->exit_code;
    if (w->what == FR_ORDER_START && a)
        fill_placements(j, a, o);
}

int fr_jobs_supervise(struct fr_ctl *c, const void *body, size_t n, struct fr_buf *reply)
{
    struct fr_message_memory mem;
    Fullrank__SuperviseOrder o = FULLRANK__SUPERVISE_ORDER__INIT;
    struct fr_err err = FR_ERR_INIT;
    struct fr_cjob *j = NULL;
    report_msg *r;
    int status = 200, rc;

    fr_message_memory_init(&mem, FR_MESSAGE_MEMORY_MAX);
    r = fullrank__supervise_report__unpack(&mem.alloc, n, body);
    o.controller_instance = c->instance;
    if (!r) {
        o.error = (char *)(uintptr_t) "the body is not a SuperviseReport";
        fr_message_pack(&o.base, reply);
        return 400;
    }
    rc = check(r, &err);
    if (!rc) {
        j = find_job(c, r);
        if (!j) {
            if (!c->ledger_ok)
                rc = fr_fail(&err, -EIO,
                             "no job can be taken while the ledger cannot be written: %.200s",
                             c->ledger_error);
            else {
                j = make_job(c, r, &err);
                rc = j ? record_job(c, j, &err) : -EINVAL;
            }
        }
    }
    if (!rc)
        rc = take(c, j, r, &err);
    if (rc) {
        o.error = err.text;
        /* 503: try again later. Else the message itself was sound, and the refusal is its answer.
         */
        status = rc == -EIO || rc == -ENOSPC ? 503 : 200;
    } else {
        fr_ctl_save(c);
        o.job = j->job;
        o.note = j->note;
        fill_order(c, j, &o);
    }
    fr_message_pack(&o.base, reply);
    free_placements(&o);
    fullrank__supervise_report__free_unpacked(r, &mem.alloc);
    return status;
}
