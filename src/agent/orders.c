/* SPDX-License-Identifier: Apache-2.0 */
/* orders.c - see orders.h */
#include "agent/orders.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "wire/agent.pb-c.h"
#include "wire/message.h"

void fr_orders_fini(struct fr_orders *o)
{
    for (size_t i = 0; i < o->nassignments; i++)
        free(o->assignments[i].ranks);
    free(o->assignments);
    free(o->commands);
    memset(o, 0, sizeof *o);
}

/* Copy a name that must fit and must not be used to break a path or a log line. */
static int copy_name(char *to, size_t n, const char *from)
{
    size_t len = strlen(from);

    if (len >= n)
        return -E2BIG;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)from[i] < 0x20 || from[i] == 0x7f)
            return -EPROTO;
    memcpy(to, from, len + 1);
    return 0;
}

static int copy_assignment(const Fullrank__Assignment *from, struct fr_assignment *a,
                           struct fr_err *err)
{
    if (copy_name(a->job, sizeof a->job, from->job) != 0 || a->job[0] == '\0')
        return fr_fail(err, -EPROTO, "an assignment has no usable job name");
    if (copy_name(a->cgroup, sizeof a->cgroup, from->cgroup) != 0)
        return fr_fail(err, -EPROTO, "assignment of job %s: bad cgroup path", a->job);
    if (from->n_ranks > FR_ORDERS_RANKS)
        return fr_fail(err, -E2BIG, "assignment of job %s: %zu ranks on one node, %d are possible",
                       a->job, from->n_ranks, FR_ORDERS_RANKS);
    if (from->session == 0 && a->cgroup[0] == '\0')
        return fr_fail(err, -EPROTO, "assignment of job %s: neither session nor cgroup", a->job);
    a->attempt = from->attempt;
    a->epoch = from->epoch;
    a->uid = from->uid;
    a->session = from->session;
    a->ranks = fr_xcalloc(from->n_ranks, sizeof *a->ranks);
    a->nranks = from->n_ranks;
    if (a->nranks)
        memcpy(a->ranks, from->ranks, a->nranks * sizeof *a->ranks);
    return 0;
}

/* 1: copied, 0: of a kind that this version does not know (a newer controller), < 0: bad. */
static int copy_command(const Fullrank__Command *from, struct fr_command *c, struct fr_err *err)
{
    c->id = from->id;
    switch (from->what_case) {
    case FULLRANK__COMMAND__WHAT_COLLECT:
        c->kind = FR_COMMAND_COLLECT;
        c->incident = from->collect->incident;
        c->epoch = from->collect->epoch;
        c->dumps = from->collect->dumps;
        if (copy_name(c->job, sizeof c->job, from->collect->job) != 0)
            return fr_fail(err, -EPROTO, "command %llu: bad job name",
                           (unsigned long long)from->id);
        return 1;
    case FULLRANK__COMMAND__WHAT_TEST:
        c->kind = FR_COMMAND_TEST;
        if (copy_name(c->level, sizeof c->level, from->test->level) != 0)
            return fr_fail(err, -EPROTO, "command %llu: bad level", (unsigned long long)from->id);
        return 1;
    case FULLRANK__COMMAND__WHAT_LOOK:
        c->kind = FR_COMMAND_LOOK;
        c->epoch = from->look->epoch;
        c->probe_level = from->look->level;
        c->seconds = from->look->seconds;
        if (copy_name(c->job, sizeof c->job, from->look->job) != 0 || c->probe_level > 3 ||
            !(c->seconds >= 0 && c->seconds <= 3600) || from->look->n_ranks > FR_ORDERS_LOOKS)
            return fr_fail(err, -EPROTO, "command %llu: bad job name, level, time or ranks",
                           (unsigned long long)from->id);
        c->nranks = from->look->n_ranks;
        for (size_t i = 0; i < c->nranks; i++)
            c->ranks[i] = from->look->ranks[i];
        return 1;
    default:
        return 0;
    }
}

static int copy_reply(const Fullrank__Reply *r, struct fr_orders *o, struct fr_err *err)
{
    if (r->n_assignments > FR_ORDERS_ASSIGNMENTS)
        return fr_fail(err, -E2BIG, "%zu assignments, %d are possible", r->n_assignments,
                       FR_ORDERS_ASSIGNMENTS);
    if (r->n_commands > FR_ORDERS_COMMANDS)
        return fr_fail(err, -E2BIG, "%zu commands at once, %d are possible", r->n_commands,
                       FR_ORDERS_COMMANDS);
    o->controller_instance = r->controller_instance;
    o->acked_seq = r->acked_seq;
    o->want_full = r->want_full;
    o->keep_log2 = r->keep_log2 > 63 ? 63 : r->keep_log2;
    o->burst_until = r->burst_until_step;
    o->interval_s = r->interval_s >= 0.02 && r->interval_s <= 60 ? r->interval_s : 0; /* NaN: 0 */
    o->ras_poll_s = r->ras_poll_s >= 0.05 && r->ras_poll_s <= 3600 ? r->ras_poll_s : 0;
    snprintf(o->error, sizeof o->error, "%s", r->error);
    o->assignments = fr_xcalloc(r->n_assignments, sizeof *o->assignments);
    o->commands = fr_xcalloc(r->n_commands, sizeof *o->commands);
    for (size_t i = 0; i < r->n_assignments; i++) {
        int rc = copy_assignment(r->assignments[i], &o->assignments[o->nassignments], err);

        if (rc < 0)
            return rc;
        o->nassignments++;
    }
    for (size_t i = 0; i < r->n_commands; i++) {
        int rc = copy_command(r->commands[i], &o->commands[o->ncommands], err);

        if (rc < 0)
            return rc;
        o->ncommands += (size_t)rc;
    }
    return 0;
}

int fr_orders_parse(const uint8_t *p, size_t n, struct fr_orders *ret, struct fr_err *err)
{
    struct fr_message_memory mem;
    struct fr_orders o = {0};
    Fullrank__Reply *r;
    int rc;

    if (n > FR_ORDERS_REPLY_BYTES)
        return fr_fail(err, -E2BIG, "the controller's reply has %zu bytes, %u are possible", n,
                       FR_ORDERS_REPLY_BYTES);
    fr_message_memory_init(&mem, FR_ORDERS_MEMORY_BYTES);
    r = fullrank__reply__unpack(&mem.alloc, n, p);
    if (!r)
        return fr_fail(err, -EPROTO, "the controller's reply is no valid message");
    rc = copy_reply(r, &o, err);
    fullrank__reply__free_unpacked(r, &mem.alloc);
    if (rc < 0) {
        fr_orders_fini(&o);
        return rc;
    }
    *ret = o;
    return 0;
}
