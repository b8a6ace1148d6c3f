/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - which files of the probe folder are ranks of this node, from first sight to sweeping
 *
 * The folder is listed again only when its mtime has moved. A file becomes a rank by agent/admit.h;
 * when its epoch is over and its process gone, the file is removed, if it belongs to the user of
 * the job.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/units.h"
#include "base/xalloc.h"

static void free_on_close(uv_handle_t *h)
{
    free(h->data);
}

/* Take the rank off the list; its memory goes when libuv is done with its handle. */
static void forget(struct fr_agent *a, struct fr_rank **link)
{
    struct fr_rank *r = *link;

    *link = r->next;
    a->nranks--;
    a->records_gone += r->records;
    a->lost_gone += r->lost;
    if (r->poll_open)
        uv_poll_stop(&r->poll);
    fr_rank_fini(r);
    if (r->poll_open)
        uv_close((uv_handle_t *)&r->poll, free_on_close);
    else
        free(r);
}

void fr_watch_close(struct fr_agent *a)
{
    while (a->ranks)
        forget(a, &a->ranks);
    if (a->dir_fd >= 0)
        close(a->dir_fd);
    a->dir_fd = -1;
}

/* Remove the file if it is still the one that was read, and the user's own. */
static void sweep(struct fr_agent *a, const struct fr_rank *r, uint32_t uid)
{
    struct stat st;

    if (fstatat(a->dir_fd, r->file, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != r->inode ||
        st.st_uid != uid || !S_ISREG(st.st_mode))
        return;
    if (unlinkat(a->dir_fd, r->file, 0) == 0)
        fr_log(FR_LOG_INFO, "agent.segment_swept", "file=%s job=%s epoch=%llu", r->file,
               r->claims.job, (unsigned long long)r->claims.epoch);
}

/* "fr-<pid>.seg" */
static int pid_of_name(const char *name, uint32_t *ret)
{
    char number[16];
    uint64_t pid;
    size_t n = strlen(name), digits;

    if (n < 8 || n >= sizeof((struct fr_rank *)0)->file || strncmp(name, "fr-", 3) != 0 ||
        strcmp(name + n - 4, FR_SUFFIX_SEG) != 0)
        return -EINVAL;
    digits = n - 7;
    if (digits >= sizeof number)
        return -EINVAL;
    memcpy(number, name + 3, digits);
    number[digits] = '\0';
    if (fr_parse_uint(number, 1, INT32_MAX, &pid) != 0)
        return -EINVAL;
    *ret = (uint32_t)pid;
    return 0;
}

static struct fr_rank **find_file(struct fr_agent *a, const char *name)
{
    struct fr_rank **p = &a->ranks;

    while (*p && strcmp((*p)->file, name) != 0)
        p = &(*p)->next;
    return p;
}

static void see_file(struct fr_agent *a, const char *name, uint64_t now_ns)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_rank **link, *r;
    struct stat st;
    uint32_t pid;
    int rc;

    if (pid_of_name(name, &pid) != 0 || fstatat(a->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    link = find_file(a, name);
    if (*link) {
        if ((*link)->inode == st.st_ino)
            return;
        forget(a, link); /* replaced by a new one: the pid was reused, or the program began again */
    }
    if (a->nranks >= FR_AGENT_SEGMENTS)
        return;
    r = fr_xalloc(sizeof *r);
    snprintf(r->file, sizeof r->file, "%.31s", name);
    r->inode = st.st_ino;
    r->pid = pid;
    r->pidfd = -1;
    r->seen_ns = now_ns;
    r->agent = a;
    rc = fr_segment_open(a->dir_fd, name, (uid_t)-1, &r->segment, &err);
    if (rc == 0)
        rc = fr_rank_claims(r, &err);
    if (rc < 0) {
        a->refused++;
        r->state = FR_RANK_REFUSED; /* remembered, so that it is not opened again and again */
        fr_log(FR_LOG_WARNING, "agent.segment_unreadable", "file=%s reason=\"%s\"", name, err.text);
        fr_segment_free(r->segment);
        r->segment = NULL;
    } else {
        r->owner = fr_segment_owner(r->segment);
    }
    r->next = a->ranks;
    a->ranks = r;
    a->nranks++;
}

static int open_dir(struct fr_agent *a)
{
    if (a->dir_fd < 0)
        a->dir_fd = open(a->opt.probe_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return a->dir_fd;
}

/* Files that are not believed (yet) are forgotten when they are gone; of ranks the open file is
 * enough. */
static void drop_gone_files(struct fr_agent *a)
{
    for (struct fr_rank **p = &a->ranks; *p;) {
        struct stat st;
        struct fr_rank *r = *p;

        if ((r->state == FR_RANK_PENDING || r->state == FR_RANK_REFUSED) &&
            (fstatat(a->dir_fd, r->file, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != r->inode))
            forget(a, p);
        else
            p = &r->next;
    }
}

static void scan(struct fr_agent *a, uint64_t now_ns)
{
    struct stat st;
    DIR *d;
    int fd;

    if (open_dir(a) < 0)
        return;
    if (fstat(a->dir_fd, &st) != 0 ||
        st.st_nlink == 0) { /* the folder was removed: it may come again */
        close(a->dir_fd);
        a->dir_fd = -1;
        return;
    }
    /* The clock of mtime is coarse: look again until it is surely in the past. */
    if (st.st_mtim.tv_sec == a->dir_mtime.tv_sec && st.st_mtim.tv_nsec == a->dir_mtime.tv_nsec &&
        a->dir_scanned_ns &&
        fr_unix_ns() - (st.st_mtim.tv_sec * FR_NS_PER_S + st.st_mtim.tv_nsec) > 200000000)
        return;
    a->dir_mtime = st.st_mtim;
    a->dir_scanned_ns = now_ns;
    fd = openat(a->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        see_file(a, e->d_name, now_ns);
    closedir(d);
    drop_gone_files(a);
}

static void on_pidfd(uv_poll_t *p, int status, int events)
{
    struct fr_rank *r = p->data;
    struct fr_agent *a = r->agent;
    uint64_t now = fr_mono_ns();

    (void)status;
    (void)events;
    uv_poll_stop(p);
    if (r->state == FR_RANK_RETIRED) { /* nobody asks any more */
        r->death_told = true;
        return;
    }
    fr_rank_died(r, &a->tools, now);
    fr_report_make(a, now);
}

/* 1 when another living process holds this rank already; a dead one makes room. */
static int is_taken(struct fr_agent *a, const struct fr_rank *r)
{
    for (struct fr_rank **p = &a->ranks; *p; p = &(*p)->next) {
        struct fr_rank *o = *p;

        if (o == r || (o->state != FR_RANK_LIVE && o->state != FR_RANK_DEAD) ||
            o->claims.rank != r->claims.rank || o->claims.epoch != r->claims.epoch ||
            strcmp(o->claims.job, r->claims.job) != 0)
            continue;
        if (o->state == FR_RANK_LIVE)
            return 1;
        o->state = FR_RANK_RETIRED;
    }
    return 0;
}

static void refuse(struct fr_agent *a, struct fr_rank *r, const char *why)
{
    if (r->state != FR_RANK_REFUSED)
        a->refused++;
    r->state = FR_RANK_REFUSED;
    fr_log(FR_LOG_WARNING, "agent.segment_refused",
           "file=%s job=%.63s epoch=%llu rank=%d uid=%u reason=\"%s\"", r->file, r->claims.job,
           (unsigned long long)r->claims.epoch, r->claims.rank, (unsigned)r->owner, why);
}

static void admit_live(struct fr_agent *a, struct fr_rank *r, uint64_t now_ns)
{
    struct fr_facts f;
    size_t i;

    r->pidfd = fr_pidfd_open(r->pid);
    /* With the pidfd in hand the process cannot be another one: ask again. */
    fr_facts_read(r->pid, (uint32_t)r->owner, a->orders.assignments, a->orders.nassignments, &f);
    if (r->pidfd < 0 || fr_admit(&r->claims, &f, a->orders.assignments, a->orders.nassignments,
                                 &i) != FR_ADMIT_YES) {
        if (r->pidfd >= 0)
            close(r->pidfd);
        r->pidfd = -1;
        return; /* it is ending just now: the next look tells */
    }
    fr_rank_admit(r, true, now_ns);
    fr_fold_keep(&r->fold, a->orders.keep_log2, a->orders.burst_until);
    if (uv_poll_init(&a->loop, &r->poll, r->pidfd) == 0) {
        r->poll.data = r;
        r->poll_open = true;
        uv_poll_start(&r->poll, UV_READABLE, on_pidfd);
    }
    a->outbox.urgent = true;
    fr_log(FR_LOG_NOTICE, "agent.rank_seen", "job=%s attempt=%u epoch=%llu rank=%d pid=%u",
           r->claims.job, r->claims.attempt, (unsigned long long)r->claims.epoch, r->claims.rank,
           r->pid);
}

/* Look at one file that is no rank so far. 1 when it was swept and must be forgotten. */
static int consider(struct fr_agent *a, struct fr_rank *r, uint64_t now_ns)
{
    struct fr_facts f;
    enum fr_verdict v;
    size_t i = 0;

    if (!r->segment || !a->has_orders || fr_rank_claims(r, NULL) < 0)
        return 0;
    fr_facts_read(r->pid, (uint32_t)r->owner, a->orders.assignments, a->orders.nassignments, &f);
    v = fr_admit(&r->claims, &f, a->orders.assignments, a->orders.nassignments, &i);
    if ((v == FR_ADMIT_YES || v == FR_ADMIT_DEAD) && is_taken(a, r)) {
        if (r->state != FR_RANK_REFUSED)
            refuse(a, r, "another process of the job is that rank");
        return 0;
    }
    switch (v) {
    case FR_ADMIT_YES:
        admit_live(a, r, now_ns);
        return 0;
    case FR_ADMIT_DEAD:
        fr_rank_admit(r, false, now_ns);
        fr_rank_died(r, &a->tools, now_ns);
        return 0;
    case FR_ADMIT_STALE:
        sweep(a, r, a->orders.assignments[i].uid);
        return 1;
    case FR_ADMIT_LATER:
        if (r->state == FR_RANK_PENDING && now_ns - r->seen_ns > FR_AGENT_REFUSE_NS &&
            now_ns > a->grace_until_ns && r->claims.rank >= 0)
            refuse(a, r, fr_verdict_text(v));
        return 0;
    default:
        if (r->state != FR_RANK_REFUSED || r->told != v)
            refuse(a, r, fr_verdict_text(v));
        r->told = v;
        return 0;
    }
}

static bool is_covered(const struct fr_agent *a, const struct fr_rank *r)
{
    for (size_t i = 0; i < a->orders.nassignments; i++) {
        const struct fr_assignment *s = &a->orders.assignments[i];

        if (s->epoch != r->claims.epoch || strcmp(s->job, r->claims.job) != 0)
            continue;
        for (size_t k = 0; k < s->nranks; k++)
            if (s->ranks[k] == (uint32_t)r->claims.rank)
                return true;
    }
    return false;
}

/* Ranks whose epoch is over are no longer told of; what dead ones left is swept. */
static void retire(struct fr_agent *a, uint64_t now_ns)
{
    for (struct fr_rank **p = &a->ranks; *p;) {
        struct fr_rank *r = *p;
        bool admitted = r->state >= FR_RANK_LIVE, covered = admitted && is_covered(a, r);

        if (admitted && !covered && r->state != FR_RANK_RETIRED && a->has_orders &&
            now_ns > a->grace_until_ns)
            r->state = FR_RANK_RETIRED;
        else if (r->state == FR_RANK_RETIRED && covered && !r->death_told)
            r->state = FR_RANK_LIVE; /* the controller knows the job again */
        if (r->state == FR_RANK_RETIRED && r->death_told) {
            if (!covered)
                sweep(a, r,
                      r->claims
                          .uid); /* equal to the assignment's, or it would not have been admitted */
            forget(a, p);
            continue;
        }
        p = &r->next;
    }
}

void fr_watch_tick(struct fr_agent *a, uint64_t now_ns)
{
    bool check = a->orders_changed || now_ns - a->checked_ns > 100000000u;
    bool check_refused = a->orders_changed || now_ns / 2000000000u != a->checked_ns / 2000000000u;

    scan(a, now_ns);
    if (!check)
        return;
    a->checked_ns = now_ns;
    a->orders_changed = false;
    retire(a, now_ns);
    for (struct fr_rank **p = &a->ranks; *p;) {
        struct fr_rank *r = *p;

        if ((r->state == FR_RANK_PENDING || (r->state == FR_RANK_REFUSED && check_refused)) &&
            consider(a, r, now_ns))
            forget(a, p);
        else
            p = &r->next;
    }
}
