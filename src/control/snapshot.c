/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - see snapshot.h */
#include "control/snapshot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define ADDRESS_BYTES 256

struct entry {
    char address[ADDRESS_BYTES];
    struct fr_doc *doc;
    uint64_t made_ns;
};
struct fr_snapshots {
    pthread_mutex_t lock; /* a pointer and its count cannot be taken in one atomic step */
    struct entry entries[FR_SNAPSHOTS];
};

struct fr_doc *fr_doc_new(struct fr_buf *b, int status, const char *type)
{
    struct fr_doc *d = fr_xalloc(sizeof *d);

    atomic_init(&d->refs, 1);
    d->status = status;
    d->type = type;
    d->p = b->p;
    d->len = b->len;
    *b = (struct fr_buf)FR_BUF_INIT;
    return d;
}

struct fr_doc *fr_doc_ref(struct fr_doc *d)
{
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void fr_doc_unref(struct fr_doc *d)
{
    /* release: what we read is read; acquire by the last one: all others are done with it */
    if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    free(d->p);
    free(d);
}

struct fr_snapshots *fr_snapshots_new(void)
{
    struct fr_snapshots *s = fr_xalloc(sizeof *s);

    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void fr_snapshots_free(struct fr_snapshots *s)
{
    if (!s)
        return;
    for (int i = 0; i < FR_SNAPSHOTS; i++)
        fr_doc_unref(s->entries[i].doc);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void fr_snapshots_put(struct fr_snapshots *s, const char *address, struct fr_doc *d,
                      uint64_t now_ns)
{
    struct entry *e;
    struct fr_doc *old;

    if (strlen(address) >= ADDRESS_BYTES)
        return;
    pthread_mutex_lock(&s->lock);
    e = &s->entries[0];
    for (int i = 0; i < FR_SNAPSHOTS; i++) {
        if (s->entries[i].doc && strcmp(s->entries[i].address, address) == 0) {
            e = &s->entries[i];
            break;
        }
        if (s->entries[i].made_ns < e->made_ns)
            e = &s->entries[i];
    }
    old = e->doc;
    e->doc = fr_doc_ref(d);
    e->made_ns = now_ns;
    snprintf(e->address, sizeof e->address, "%s", address);
    pthread_mutex_unlock(&s->lock);
    fr_doc_unref(old);
}

struct fr_doc *fr_snapshots_get(struct fr_snapshots *s, const char *address, uint64_t now_ns)
{
    struct fr_doc *d = NULL;

    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < FR_SNAPSHOTS && !d; i++)
        if (s->entries[i].doc && now_ns - s->entries[i].made_ns < FR_SNAPSHOT_FRESH_NS &&
            strcmp(s->entries[i].address, address) == 0)
            d = fr_doc_ref(s->entries[i].doc);
    pthread_mutex_unlock(&s->lock);
    return d;
}

void fr_snapshots_outdate(struct fr_snapshots *s)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < FR_SNAPSHOTS; i++) {
        fr_doc_unref(s->entries[i].doc);
        s->entries[i] = (struct entry){.doc = NULL};
    }
    pthread_mutex_unlock(&s->lock);
}
