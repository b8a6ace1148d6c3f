/* SPDX-License-Identifier: Apache-2.0 */
/* bundles.c - see bundles.h */
#include "control/bundles.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/units.h"
#include "base/xalloc.h"

struct bundle {
    uint64_t incident, bytes;
};

void fr_bundle_dir(const struct fr_ctl *c, uint64_t incident, char *path, size_t n)
{
    snprintf(path, n, "%s/bundles/%llu", c->state_dir, (unsigned long long)incident);
}

static int by_age(const void *pa, const void *pb)
{
    const struct bundle *a = pa, *b = pb;

    return (a->incident > b->incident) - (a->incident < b->incident);
}

/* What the files of a folder take on the disk. */
static uint64_t bytes_in(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    struct stat st;
    uint64_t sum = 0;

    while (d && (e = readdir(d)) != NULL)
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            sum += (uint64_t)st.st_blocks * 512;
    if (d)
        closedir(d);
    return sum;
}

static size_t list_bundles(const struct fr_ctl *c, struct bundle **ret)
{
    char dir[640];
    struct bundle *v = NULL;
    size_t n = 0, cap = 0;
    struct dirent *e;
    uint64_t id;
    DIR *d;

    snprintf(dir, sizeof dir, "%s/bundles", c->state_dir);
    d = opendir(dir);
    while (d && (e = readdir(d)) != NULL) {
        if (fr_parse_uint(e->d_name, 1, UINT64_MAX / 2, &id))
            continue;
        if (n == cap) {
            cap = cap ? 2 * cap : 64;
            v = fr_xreallocarray(v, cap, sizeof *v);
        }
        fr_bundle_dir(c, id, dir, sizeof dir);
        v[n++] = (struct bundle){id, bytes_in(dir)};
    }
    if (d)
        closedir(d);
    *ret = v;
    return n;
}

void fr_bundles_trim(struct fr_ctl *c)
{
    FR_CLEANUP(fr_freep) struct bundle *v = NULL;
    size_t n = list_bundles(c, &v);
    uint64_t total = 0;

    if (n)
        qsort(v, n, sizeof *v, by_age);
    for (size_t k = 0; k < n; k++)
        total += v[k].bytes;
    for (size_t k = 0; k < n && total > c->cfg.controller_retain_bundles_bytes; k++) {
        struct fr_cincident *i = fr_ctl_incident(c, v[k].incident);
        struct fr_err err = FR_ERR_INIT;
        char dir[640];

        if (i && !i->closed_unix_ns)
            continue;
        fr_bundle_dir(c, v[k].incident, dir, sizeof dir);
        if (fr_fs_remove_tree(dir, &err)) {
            fr_log(FR_LOG_WARNING, "bundle", "error=%s", err.text);
            continue;
        }
        total -= v[k].bytes;
        if (i) {
            i->has_bundle = false;
            i->dirty = true;
        }
        fr_log(FR_LOG_NOTICE, "bundle.removed", "incident=%llu bytes=%llu why=\"%s\"",
               (unsigned long long)v[k].incident, (unsigned long long)v[k].bytes,
               "bundles take more than retain_bundles_bytes");
    }
}
