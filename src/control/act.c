/* SPDX-License-Identifier: Apache-2.0 */
/* act.c - see act.h */
#include "control/act.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "control/api_json.h"
#include "control/bundles.h"
#include "control/fleet.h"
#include "control/incidents.h"
#include "control/jobs.h"
#include "control/publish.h"

#define EVIDENCE_PART_BYTES (256u << 10)
#define EVIDENCE_FILE_BYTES (4u << 20)
#define BUNDLE_BYTES        (512u << 20)

static struct fr_caction *find_action(struct fr_cdecision *d, const char *kind)
{
    for (uint32_t k = 0; k < d->nactions; k++)
        if (strcmp(d->actions[k].kind, kind) == 0)
            return &d->actions[k];
    return NULL;
}

static void intend(struct fr_ctl *c, struct fr_cdecision *d, const char *kind, const char *target)
{
    struct fr_caction *a = &d->actions[d->nactions++];

    memset(a, 0, sizeof *a);
    snprintf(a->kind, sizeof a->kind, "%s", kind);
    snprintf(a->target, sizeof a->target, "%s", target);
    snprintf(a->state, sizeof a->state, "intended");
    a->started_unix_ns = fr_ctl_now_unix(c);
    a->dirty = true;
}

static int is_intended(struct fr_cdecision *d, const char *kind)
{
    const struct fr_caction *a = find_action(d, kind);

    return a && strcmp(a->state, "intended") == 0;
}

static void finish(struct fr_ctl *c, struct fr_cdecision *d, const char *kind, const char *state,
                   const char *detail)
{
    struct fr_caction *a = find_action(d, kind);

    if (!a || strcmp(a->state, "intended") != 0)
        return;
    snprintf(a->state, sizeof a->state, "%s", state);
    snprintf(a->detail, sizeof a->detail, "%s", detail);
    a->ended_unix_ns = fr_ctl_now_unix(c);
    a->dirty = true;
    fr_log(FR_LOG_NOTICE, "action", "decision=%llu kind=%s target=%s state=%s",
           (unsigned long long)d->id, kind, a->target, state);
    fr_publish_decision(c, d);
}

static void refuse_rest(struct fr_ctl *c, struct fr_cdecision *d, const char *why)
{
    for (uint32_t k = 0; k < d->nactions; k++)
        finish(c, d, d->actions[k].kind, "refused", why);
}

void fr_act_begin(struct fr_ctl *c, struct fr_cjob *j, struct fr_cdecision *d,
                  struct fr_cincident *incident, struct fr_cnode *node)
{
    const struct fr_cattempt *a = fr_job_current(j);

    if (node && d->choice == FR_CHOICE_ISOLATE)
        intend(c, d, "drain", node->name);
    if (a && !a->end_unix_ns)
        intend(c, d, "stop", j->job);
    if (d->choice != FR_CHOICE_GIVE_UP)
        intend(c, d, "start", j->job);
    j->act = (struct fr_act){.stage = FR_ACT_RECORD,
                             .decision = d,
                             .incident = incident,
                             .since_ns = c->now_ns,
                             .choice = d->choice,
                             .node = node};
    j->verdict_ns = 0;
    fr_publish_decision(c, d);
}

/* --- evidence --- */

/* offset 0: a new file. Else the next part of one, which must end just there: parts come in order,
 * and what came before a restart of either side comes again from its start. */
static int write_part(const char *dir, const char *name, const void *p, size_t n, uint64_t offset,
                      struct fr_err *err)
{
    char path[1024];
    struct stat st;
    int fd, rc = 0;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (offset ? O_APPEND : O_CREAT | O_TRUNC),
              0600);
    if (fd < 0)
        return fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != offset)
        rc = fr_fail(err, -EINVAL, "%s: a part of it is missing", path);
    else if (write(fd, p, n) != (ssize_t)n)
        rc = fr_fail(err, -EIO, "%s: could not be written in whole", path);
    close(fd);
    return rc;
}

static int write_file(const char *dir, const char *name, const void *p, size_t n,
                      struct fr_err *err)
{
    return write_part(dir, name, p, n, 0, err);
}

/* What this side saw: the incident, the ranks, who is inside of what. */
static void write_own_evidence(struct fr_ctl *c, struct fr_cjob *j, struct fr_cincident *i)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    char dir[640];

    fr_bundle_dir(c, i->id, dir, sizeof dir);
    if (fr_fs_mkdirs(dir, 0700, &err)) {
        fr_log(FR_LOG_WARNING, "bundle", "error=%s", err.text);
        return;
    }
    i->has_bundle = i->dirty = true;
    fr_json_incident_doc(c, i, &b);
    if (write_file(dir, "incident.json", b.p, b.len, &err))
        fr_log(FR_LOG_WARNING, "bundle", "error=%s", err.text);
    fr_buf_reset(&b);
    fr_json_ranks_doc(c, j, &b);
    if (write_file(dir, "ranks.json", b.p, b.len, &err))
        fr_log(FR_LOG_WARNING, "bundle", "error=%s", err.text);
}

struct fr_cincident *fr_act_collects(const struct fr_cnode *n)
{
    return n->job && n->job->act.stage == FR_ACT_COLLECT && !n->evidence_done ? n->job->act.incident
                                                                              : NULL;
}

static int evidence_name_ok(const char *name)
{
    size_t n = strlen(name);

    return n > 0 && n < 64 && name[0] != '.' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

static void keep_part(struct fr_ctl *c, const struct fr_cnode *n, struct fr_cincident *i,
                      const Fullrank__Evidence *e)
{
    char dir[640], file[160];
    struct fr_err err = FR_ERR_INIT;
    size_t bytes = e->data.len;

    if (bytes == 0 || bytes > EVIDENCE_PART_BYTES || e->offset > EVIDENCE_FILE_BYTES - bytes ||
        i->bundle_bytes + bytes > BUNDLE_BYTES || !evidence_name_ok(e->name) || i->nfiles >= 4096)
        return;
    fr_bundle_dir(c, i->id, dir, sizeof dir);
    snprintf(file, sizeof file, "%s.%s", n->name, e->name);
    i->nfiles += e->offset == 0;
    if (write_part(dir, file, e->data.data, bytes, e->offset, &err))
        fr_log(FR_LOG_WARNING, "bundle", "error=%s", err.text);
    else
        i->bundle_bytes += bytes;
}

void fr_act_evidence(struct fr_ctl *c, struct fr_cnode *n, const Fullrank__Evidence *e)
{
    struct fr_cincident *i = fr_ctl_incident(c, e->incident);
    struct fr_act *act = n->job ? &n->job->act : NULL;

    if (!i || !i->has_bundle || !n->job || n->job != i->job)
        return; /* nobody asked this node for it */
    keep_part(c, n, i, e);
    if (act->stage != FR_ACT_COLLECT || act->incident != i || n->evidence_done)
        return;
    if (e->wait_ms)
        act->dumps = true; /* its processes were asked for dumps: these are worth a longer wait */
    if (e->last) {
        n->evidence_done = true;
        if (act->waiting)
            act->waiting--;
    }
}

/* A stuck job's processes can still tell what they wait for; who has lost one is to be started
 * again at once. */
bool fr_act_wants_dumps(const struct fr_cincident *i)
{
    return i->f.kind == FR_FINDING_HANG || i->f.kind == FR_FINDING_MISMATCH ||
           i->f.kind == FR_FINDING_STALL;
}

/* --- stages --- */

static void begin_collect(struct fr_ctl *c, struct fr_cjob *j)
{
    const struct fr_cattempt *a = fr_job_current(j);
    struct fr_act *act = &j->act;

    act->stage = FR_ACT_COLLECT;
    act->since_ns = c->now_ns;
    act->waiting = 0;
    act->dumps = false;
    if (!act->incident)
        return;
    write_own_evidence(c, j, act->incident);
    if (a->end_unix_ns)
        return; /* the processes are gone: there is nothing to look at */
    for (uint32_t i = 0; i < a->nnodes; i++) {
        a->nodes[i]->evidence_done = a->nodes[i]->silent;
        act->waiting += !a->nodes[i]->silent;
    }
}

static void drain_and_stop(struct fr_ctl *c, struct fr_cjob *j)
{
    struct fr_act *act = &j->act;
    const struct fr_cattempt *a = fr_job_current(j);
    char reason[FR_TEXT_BYTES];

    if (act->node && is_intended(act->decision, "drain")) {
        snprintf(reason, sizeof reason, "fullrank: incident %llu: %.160s",
                 (unsigned long long)act->decision->incident,
                 act->incident ? act->incident->kind : "fault");
        if (fr_node_drain(c, act->node, FR_ACTOR_SELF, true, act->decision->incident, reason))
            finish(c, act->decision, "drain", "failed", "the node's state does not allow it");
        else
            finish(c, act->decision, "drain", "done", reason);
    }
    if (!a->end_unix_ns)
        fr_job_order_stop(c, j, act->decision->id, act->decision->reason);
    act->stage = FR_ACT_STOP;
    act->since_ns = c->now_ns;
}

static void attempt_is_gone(struct fr_ctl *c, struct fr_cjob *j)
{
    const struct fr_cattempt *a = fr_job_current(j);
    struct fr_act *act = &j->act;

    finish(c, act->decision, "stop", "done", "every process of the attempt is gone");
    fr_incidents_close_job(c, j, "the attempt ended");
    for (uint32_t i = 0; i < a->nnodes; i++)
        if (a->nodes[i]->state == FR_NODE_DRAINING && a->nodes[i]->job == j)
            a->nodes[i]->job = NULL;
    act->incident = NULL;
    act->stage = FR_ACT_PLACE;
    act->since_ns = c->now_ns;
}

/* The code to pass on. An attempt that we ended says nothing but that: then what the first of its
 * ranks to fail said. */
static int32_t last_code(struct fr_cjob *j)
{
    const struct fr_cattempt *a = fr_job_current(j);
    const struct fr_crank *first = NULL;

    for (uint32_t r = 0; a && a->decision && j->ranks && r < j->nranks; r++) {
        const struct fr_crank *k = &j->ranks[r];

        if (k->gone_ns && (k->exit_code > 0 || k->exit_signal > 0) &&
            (!first || k->gone_ns < first->gone_ns))
            first = k;
    }
    if (!first)
        return fr_job_exit_code(a);
    return first->exit_signal > 0 ? 128 + first->exit_signal : first->exit_code;
}

static void place(struct fr_ctl *c, struct fr_cjob *j)
{
    struct fr_act *act = &j->act;

    if (act->choice == FR_CHOICE_GIVE_UP) {
        fr_job_end(c, j, FR_JOB_FAILED, last_code(j), act->decision->reason);
        return;
    }
    if (fr_job_start_next(c, j, act->decision->id, act->decision->reason) > 0) {
        fr_job_move(c, j, FR_JOB_QUEUED);
        return;
    }
    act->stage = FR_ACT_START;
    act->since_ns = c->now_ns;
}

void fr_act_tick(struct fr_ctl *c, struct fr_cjob *j)
{
    struct fr_act *act = &j->act;
    const struct fr_cattempt *a = fr_job_current(j);
    uint64_t wait_ns = (uint64_t)((act->dumps ? c->cfg.controller_bundle_dumps_wait_s
                                              : c->cfg.controller_bundle_wait_s) *
                                  1e9);

    if (!a) {
        act->stage = FR_ACT_NONE;
        return;
    }
    switch (act->stage) {
    case FR_ACT_RECORD:
        if (act->incident && act->incident->closed_unix_ns && !a->end_unix_ns) {
            refuse_rest(c, act->decision, "the incident closed by itself");
            act->stage = FR_ACT_NONE;
            return;
        }
        fr_ctl_save(c);
        if (!fr_ctl_durable(c, act->decision->row) ||
            (act->incident && !fr_ctl_durable(c, act->incident->row)))
            return;
        begin_collect(c, j);
        return;
    case FR_ACT_COLLECT:
        if (act->waiting && !a->end_unix_ns && c->now_ns - act->since_ns < wait_ns)
            return;
        drain_and_stop(c, j);
        return;
    case FR_ACT_STOP:
        if (a->end_unix_ns) {
            attempt_is_gone(c, j);
            place(c, j);
        }
        return;
    case FR_ACT_PLACE:
        place(c, j);
        return;
    default:
        return;
    }
}

void fr_act_started(struct fr_ctl *c, struct fr_cjob *j)
{
    struct fr_act *act = &j->act;

    if (act->stage != FR_ACT_START)
        return;
    finish(c, act->decision, "start", "done", "the supervisor started it");
    act->stage = FR_ACT_NONE;
}

void fr_act_resume(struct fr_ctl *c, struct fr_cjob *j)
{
    const struct fr_cattempt *a = fr_job_current(j);
    struct fr_act *act = &j->act;
    bool taken = false;

    for (size_t i = c->ndecisions; i-- > 0 && a;) {
        struct fr_cdecision *d = c->decisions[i];
        int open = is_intended(d, "drain") || is_intended(d, "stop") || is_intended(d, "start");

        if (d->job != j || d->nactions == 0)
            continue;
        /* A decision to give up is done when the job has ended, which no action says. */
        if (d->choice == FR_CHOICE_GIVE_UP && !taken && d->attempt == a->attempt)
            open = 1;
        if (!open)
            continue;
        if (taken || d->attempt > a->attempt || d->attempt + 1 < a->attempt) {
            refuse_rest(c, d, "a later attempt runs");
            continue;
        }
        taken = true;
        *act = (struct fr_act){.decision = d,
                               .incident = fr_ctl_incident(c, d->incident),
                               .since_ns = c->now_ns,
                               .choice = d->choice,
                               .node = d->node[0] ? fr_ctl_node(c, d->node) : NULL};
        if (act->incident && act->incident->closed_unix_ns)
            act->incident = NULL;
        if (d->attempt + 1 == a->attempt) {
            finish(c, d, "stop", "done", "every process of the attempt is gone");
            act->stage = FR_ACT_START;
            if (a->start_unix_ns)
                fr_act_started(c, j);
        } else if (is_intended(d, "drain")) {
            act->stage = FR_ACT_RECORD;
        } else if (!a->end_unix_ns) {
            act->stage = FR_ACT_COLLECT; /* at most the evidence is gathered twice */
        } else {
            act->stage = FR_ACT_STOP;
        }
        fr_log(FR_LOG_NOTICE, "act.resumed", "job=%s decision=%llu stage=%d", j->job,
               (unsigned long long)d->id, (int)act->stage);
    }
}
