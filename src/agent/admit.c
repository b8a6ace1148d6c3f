/* SPDX-License-Identifier: Apache-2.0 */
/* admit.c - see admit.h */
#include "agent/admit.h"

#include <string.h>

#include "sense/proc/process.h"

static bool holds_rank(const struct fr_assignment *a, int32_t rank)
{
    for (size_t i = 0; i < a->nranks; i++)
        if (rank >= 0 && a->ranks[i] == (uint32_t)rank)
            return true;
    return false;
}

static bool is_in(const struct fr_facts *f, const struct fr_assignment *a, size_t i)
{
    if (a->session && f->session == a->session)
        return true;
    return a->cgroup[0] && i < 64 && (f->cgroup_of >> i & 1u);
}

/* The verdict under one assignment of the job that is claimed. */
static enum fr_verdict under(const struct fr_claims *c, const struct fr_facts *f,
                             const struct fr_assignment *a, size_t i)
{
    bool alive = f->alive && f->starttime == c->starttime;

    if (c->pid != f->file_pid)
        return FR_ADMIT_PID;
    if (f->file_uid != a->uid || c->uid != a->uid)
        return FR_ADMIT_UID;
    if (c->epoch < a->epoch)
        return alive ? FR_ADMIT_EPOCH : FR_ADMIT_STALE;
    if (c->epoch != a->epoch || c->attempt != a->attempt)
        return FR_ADMIT_EPOCH;
    if (f->alive) {
        if (f->starttime != c->starttime)
            /* The pid was given to another process: the one that wrote this has ended, or never
             * was. */
            return c->starttime < f->starttime && holds_rank(a, c->rank) ? FR_ADMIT_DEAD
                                                                         : FR_ADMIT_STARTTIME;
        if (f->uid != a->uid)
            return FR_ADMIT_UID;
        if (!is_in(f, a, i))
            return FR_ADMIT_SESSION;
    }
    if (c->rank < 0)
        return FR_ADMIT_LATER; /* before MPI_Init */
    if (!holds_rank(a, c->rank))
        return FR_ADMIT_RANK;
    return f->alive ? FR_ADMIT_YES : FR_ADMIT_DEAD;
}

enum fr_verdict fr_admit(const struct fr_claims *c, const struct fr_facts *f,
                         const struct fr_assignment *a, size_t n, size_t *ret_assignment)
{
    enum fr_verdict worst = FR_ADMIT_LATER;

    for (size_t i = 0; i < n; i++) {
        enum fr_verdict v;

        if (strcmp(a[i].job, c->job) != 0)
            continue;
        v = under(c, f, &a[i], i);
        if (v <= FR_ADMIT_STALE) {
            *ret_assignment = i;
            return v;
        }
        worst = v;
    }
    return worst;
}

const char *fr_verdict_text(enum fr_verdict v)
{
    static const char *const TEXT[FR_ADMIT_VERDICTS] = {
        [FR_ADMIT_YES] = "believed",
        [FR_ADMIT_DEAD] = "believed, its process has ended",
        [FR_ADMIT_LATER] = "no assignment covers it",
        [FR_ADMIT_STALE] = "left behind by an older epoch",
        [FR_ADMIT_UID] = "file, process and job do not belong to one user",
        [FR_ADMIT_SESSION] = "its process is not in the job's session or cgroup",
        [FR_ADMIT_STARTTIME] = "it claims another start time than its process has",
        [FR_ADMIT_PID] = "it claims another pid than its name says",
        [FR_ADMIT_EPOCH] = "it claims another attempt or epoch than the job has here",
        [FR_ADMIT_RANK] = "its rank is not placed on this node",
    };

    return v < FR_ADMIT_VERDICTS ? TEXT[v] : "?";
}

void fr_facts_read(uint32_t pid, uint32_t file_uid, const struct fr_assignment *a, size_t n,
                   struct fr_facts *ret)
{
    struct fr_proc_stat st;

    memset(ret, 0, sizeof *ret);
    ret->file_pid = pid;
    ret->file_uid = file_uid;
    if (pid == 0 || fr_proc_uid("", pid, &ret->uid) != 0)
        return;
    for (size_t i = 0; i < n && i < 64; i++)
        if (a[i].cgroup[0] && fr_proc_in_cgroup("", pid, a[i].cgroup))
            ret->cgroup_of |= 1ull << i;
    if (fr_proc_stat_read("", pid, &st) != 0 || st.state == 'X' || st.state == 'Z')
        return;
    ret->session = (uint32_t)st.session;
    ret->starttime = st.starttime;
    ret->alive = true;
}
