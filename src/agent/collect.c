/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c - see collect.h */
#include "agent/collect.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/xalloc.h"
#include "sense/proc/process.h"

#define KLOG_READ_ALL 3

void fr_collect_add(struct fr_collect *c, const char *name, const void *data, size_t n)
{
    struct fr_collect_item *it;

    if (c->nitems >= FR_COLLECT_ITEMS)
        return;
    c->items = fr_xreallocarray(c->items, c->nitems + 1, sizeof *c->items);
    it = &c->items[c->nitems++];
    memset(it, 0, sizeof *it);
    snprintf(it->name, sizeof it->name, "%s", name);
    fr_buf_add(&it->data, data, n < FR_COLLECT_ITEM_BYTES ? n : FR_COLLECT_ITEM_BYTES);
}

static void drop_items(struct fr_collect *c)
{
    for (size_t i = 0; i < c->nitems; i++)
        fr_buf_fini(&c->items[i].data);
    free(c->items);
    c->items = NULL;
    c->nitems = 0;
}

static void drop_recorders(struct fr_collect *c)
{
    for (size_t i = 0; c->recorders && i < c->nranks; i++)
        fr_recorder_fini(&c->recorders[i]);
    free(c->recorders);
    c->recorders = NULL;
    c->waits = false;
}

void fr_collect_free(struct fr_collect *c)
{
    if (!c)
        return;
    drop_items(c);
    drop_recorders(c);
    fr_buf_fini(&c->notes);
    free(c);
}

/* A file that cannot be read is evidence too: its error is its content. */
static void add_file(struct fr_collect *c, const struct fr_collect_rank *r, const char *file)
{
    char path[64], name[64], *text = fr_xalloc(FR_COLLECT_ITEM_BYTES + 1);
    int fd, n;

    snprintf(path, sizeof path, "/proc/%u/%s", r->pid, file);
    snprintf(name, sizeof name, "rank-%d.%s", r->rank, file);
    fd = fr_sense_open_at("", path);
    n = fd < 0 ? fd : fr_sense_reread(fd, text, FR_COLLECT_ITEM_BYTES + 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        n = snprintf(text, FR_COLLECT_ITEM_BYTES, "(cannot be read: %s)\n", strerror(-n));
    fr_collect_add(c, name, text, (size_t)n);
    free(text);
}

/* --- Flight Recorder --- */

/* A name that came from a process, fit for a text file. */
static void note_path(struct fr_buf *b, const char *path)
{
    for (; *path; path++)
        fr_buf_putc(b, *path > 0x1f && *path < 0x7f ? *path : '?');
}

static bool is_this_process(const struct fr_collect_rank *r, char *ret_state)
{
    struct fr_proc_stat st;

    if (r->dead || fr_proc_stat_read("", r->pid, &st) != 0 || st.starttime != r->starttime)
        return false;
    *ret_state = st.state;
    return true;
}

/* Ask one process, and say how that went. */
static void ask_for_dump(struct fr_collect *c, size_t i)
{
    const struct fr_collect_rank *r = &c->ranks[i];
    struct fr_recorder *rec = &c->recorders[i];
    char state = '?';
    int rc;

    rec->dir_fd = -1;
    if (!is_this_process(r, &state))
        return;
    rc = fr_recorder_init(rec, r->pid, r->uid, r->starttime, r->rank);
    if (rc < 0) {
        rec->dir_fd = -1;
        fr_buf_printf(&c->notes, "rank %d: its environment cannot be read: %s\n", r->rank,
                      strerror(-rc));
        return;
    }
    if (!c->dumps || !rec->pipe[0])
        return;
    fr_buf_printf(&c->notes, "rank %d: ", r->rank);
    if (state == 'T' || state == 't' || state == 'Z') {
        fr_buf_printf(&c->notes, "not asked, its process is %s\n",
                      state == 'Z' ? "dead" : "stopped");
        return;
    }
    rc = fr_recorder_trigger(rec);
    fr_buf_puts(&c->notes, rc == 0 ? "asked through " : "cannot be asked through ");
    note_path(&c->notes, rec->pipe);
    if (rc < 0)
        fr_buf_printf(&c->notes, ": %s",
                      rc == -ENXIO   ? "nobody reads it"
                      : rc == -EPERM ? "it is not the job's own pipe"
                                     : strerror(-rc));
    fr_buf_putc(&c->notes, '\n');
    c->waits |= rc == 0;
}

/* Ranks whose process is gone wrote where their neighbours would. */
static void fill_dead(struct fr_collect *c)
{
    const struct fr_recorder *of = NULL;

    for (size_t i = 0; i < c->nranks && !of; i++)
        if (c->recorders[i].dir_fd >= 0)
            of = &c->recorders[i];
    for (size_t i = 0; i < c->nranks && of; i++)
        if (c->recorders[i].dir_fd < 0 &&
            fr_recorder_init_like(&c->recorders[i], of, c->ranks[i].rank) < 0)
            c->recorders[i].dir_fd = -1;
}

static void ask_for_dumps(struct fr_collect *c)
{
    c->recorders = fr_xcalloc(c->nranks + 1, sizeof *c->recorders);
    for (size_t i = 0; i < c->nranks; i++)
        ask_for_dump(c, i);
    fill_dead(c);
}

static void read_dump(struct fr_collect *c, size_t i, size_t *left)
{
    struct fr_collect_item item = {.data = FR_BUF_INIT};
    struct fr_recorder *rec = &c->recorders[i];
    int32_t rank = c->ranks[i].rank;
    const char *file = "";
    int64_t size;

    if (rec->dir_fd < 0)
        return;
    size = fr_recorder_read(rec, *left, &item.data, &file);
    if (size == -ENOENT && !rec->triggered)
        return; /* the recorder is off, which is usual */
    fr_buf_printf(&c->notes, "rank %d: ", rank);
    note_path(&c->notes, file);
    if (size == -ENOENT)
        fr_buf_puts(&c->notes, ": there is none\n");
    else if (size < 0)
        fr_buf_printf(&c->notes, ": %s\n",
                      size == -ESTALE  ? "left by an earlier process"
                      : size == -EPERM ? "not a plain file of the job's user"
                                       : strerror((int)-size));
    else
        fr_buf_printf(&c->notes, ": %lld bytes%s\n", (long long)size,
                      (uint64_t)size > item.data.len ? ", cut" : "");
    if (item.data.len && c->nitems < FR_COLLECT_ITEMS) {
        snprintf(item.name, sizeof item.name, "nccl_trace_rank_%d", rank);
        c->items = fr_xreallocarray(c->items, c->nitems + 1, sizeof *c->items);
        c->items[c->nitems++] = item;
        *left -= item.data.len;
    } else {
        fr_buf_fini(&item.data);
    }
}

static void read_dumps(struct fr_collect *c)
{
    size_t left = FR_COLLECT_DUMP_BYTES;

    for (size_t i = 0; i < c->nranks; i++)
        read_dump(c, i, &left);
    if (c->notes.len)
        fr_collect_add(c, "flight-recorder.txt", c->notes.p, c->notes.len);
    drop_recorders(c);
}

void fr_collect_dumps(struct fr_collect *c)
{
    uint64_t until = fr_mono_ns() + FR_COLLECT_DUMPS_MS * 1000000ull;
    FR_CLEANUP(fr_freep) bool *ready = fr_xcalloc(c->nranks + 1, sizeof *ready);
    bool all = false;

    drop_items(c);
    while (!all && fr_mono_ns() < until) {
        poll(NULL, 0, 100);
        all = true;
        for (size_t i = 0; i < c->nranks; i++) {
            if (c->recorders[i].triggered && !ready[i])
                ready[i] = fr_recorder_ready(&c->recorders[i]) != 0;
            all = all && (ready[i] || !c->recorders[i].triggered);
        }
    }
    read_dumps(c);
}

/* --- /proc --- */

static void add_rank(struct fr_collect *c, const struct fr_collect_rank *r)
{
    static const char *const FILES[] = {"status", "stack", "wchan", "syscall", "stat", "schedstat"};
    struct fr_proc_stat st;
    char name[64];

    if (fr_proc_stat_read("", r->pid, &st) != 0 || st.starttime != r->starttime) {
        static const char GONE[] = "(the process is gone)\n";

        snprintf(name, sizeof name, "rank-%d.status", r->rank);
        fr_collect_add(c, name, GONE, sizeof GONE - 1);
        return;
    }
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        add_file(c, r, FILES[i]);
}

/* The last 64 KiB of the kernel's log; needs CAP_SYSLOG where dmesg is restricted. */
static void add_kernel_log(struct fr_collect *c)
{
    char *text = fr_xalloc(FR_COLLECT_ITEM_BYTES);
    int n = klogctl(KLOG_READ_ALL, text, (int)FR_COLLECT_ITEM_BYTES);

    if (n < 0)
        n = snprintf(text, FR_COLLECT_ITEM_BYTES, "(cannot be read: %s)\n", strerror(errno));
    fr_collect_add(c, "kernel-log", text, (size_t)n);
    free(text);
}

void fr_collect_run(struct fr_collect *c)
{
    ask_for_dumps(c); /* first: they write while the rest is read */
    for (size_t i = 0; i < c->nranks; i++)
        if (!c->ranks[i].dead)
            add_rank(c, &c->ranks[i]);
    add_kernel_log(c);
    if (!c->waits)
        read_dumps(c);
}
