/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c - see collect.h */
#include "agent/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <unistd.h>

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

void fr_collect_free(struct fr_collect *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->nitems; i++)
        fr_buf_fini(&c->items[i].data);
    free(c->items);
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
    for (size_t i = 0; i < c->nranks; i++)
        add_rank(c, &c->ranks[i]);
    add_kernel_log(c);
}
