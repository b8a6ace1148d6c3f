/* SPDX-License-Identifier: Apache-2.0 */
/* recorder_dir.c - find the dumps of a job in a folder; see recorder.h */
#define _XOPEN_SOURCE 700 /* nftw */
#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/xalloc.h"
#include "scan/recorder.h"

#define FILES_MAX FR_RECORDER_RANKS
#define DEPTH_MAX 6

struct file {
    char *path;
    size_t prefix; /* length of the path's last part before the rank */
    int32_t rank;
    int64_t mtime;
    int fault; /* reading it failed */
    char why[sizeof(((struct fr_err *)0)->text)];
};

struct files {
    struct file *v;
    size_t n, cap;
};

int32_t fr_recorder_file_rank(const char *name, size_t *ret_prefix)
{
    static const char *const ENDS[] = {".json", ".pickle", ".pkl", ".bin", ".dump", ".trace"};
    size_t end = strlen(name), at;
    int64_t rank = 0;

    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
        size_t n = strlen(ENDS[i]);

        if (end > n && strcmp(name + end - n, ENDS[i]) == 0) {
            end -= n;
            break;
        }
    }
    for (at = end; at > 0 && isdigit((unsigned char)name[at - 1]); at--)
        ;
    if (at == end || end - at > 10)
        return -1;
    for (size_t i = at; i < end; i++)
        rank = rank * 10 + (name[i] - '0');
    if (rank >= FR_RECORDER_RANKS)
        return -1;
    if (ret_prefix)
        *ret_prefix = at;
    return (int32_t)rank;
}

/* --- collect --- */

static _Thread_local struct files *found; /* nftw has no argument of its caller's */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void add_file(struct files *f, const char *path, const struct stat *st)
{
    size_t prefix = 0;
    int32_t rank = fr_recorder_file_rank(last_part(path), &prefix);

    if (rank < 0 || f->n == FILES_MAX)
        return;
    if (f->n == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 64;
        f->v = fr_xreallocarray(f->v, f->cap, sizeof *f->v);
    }
    f->v[f->n++] = (struct file){
        .path = fr_xstrdup(path), .prefix = prefix, .rank = rank, .mtime = st->st_mtime};
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
    if (type == FTW_F && S_ISREG(st->st_mode) && where->level <= DEPTH_MAX)
        add_file(found, path, st);
    return 0;
}

/* One rank after another, the newest file of a rank first. */
static int by_rank_and_age(const void *a, const void *b)
{
    const struct file *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->mtime != y->mtime)
        return x->mtime > y->mtime ? -1 : 1;
    return strcmp(x->path, y->path);
}

static bool same_prefix(const struct file *a, const struct file *b)
{
    return a->prefix == b->prefix && memcmp(last_part(a->path), last_part(b->path), a->prefix) == 0;
}

/* --- read --- */

static void read_file(struct fr_recorder *rec, struct file *f)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    int rc = fr_fs_read(f->path, FR_RECORDER_FILE_MAX, &b, &err);

    if (rc == 0)
        rc = fr_recorder_add(rec, f->rank, (const uint8_t *)fr_buf_str(&b), b.len, &err);
    if (rc == -EEXIST)
        return; /* an older file of that rank, of an earlier attempt or another group of files */
    f->fault = rc < 0;
    if (rc < 0) {
        fr_fail_in(&err, rc, "%s", last_part(f->path));
        memcpy(f->why, err.text, sizeof f->why);
    }
}

/* A file that cannot be read is a dump when a readable one is named like it, or when nothing at all
 * can be read: then somebody must hear why. */
static void tell_faults(struct fr_recorder *rec, const struct files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        bool dump = rec->ndumps == 0;

        for (size_t k = 0; k < f->n && f->v[i].fault && !dump; k++)
            dump = !f->v[k].fault && same_prefix(&f->v[i], &f->v[k]);
        if (f->v[i].fault && dump)
            fr_recorder_fault(rec, f->v[i].rank, f->v[i].why);
    }
}

int fr_recorder_read(struct fr_recorder *rec, const char *path, struct fr_err *err)
{
    struct files f = {0};
    struct stat st;
    int rc = 0;

    if (stat(path, &st) < 0)
        return fr_fail(err, -errno, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        found = &f;
        if (nftw(path, visit, 32, FTW_PHYS) < 0)
            rc = fr_fail(err, -errno, "%s: %s", path, strerror(errno));
        found = NULL;
    } else {
        add_file(&f, path, &st);
    }
    if (f.n)
        qsort(f.v, f.n, sizeof *f.v, by_rank_and_age);
    for (size_t i = 0; i < f.n; i++)
        read_file(rec, &f.v[i]);
    tell_faults(rec, &f);
    if (rc == 0 && f.n == 0)
        rc = fr_fail(err, -ENOENT,
                     "%s: no dump there (files whose names end in a rank, such as"
                     " nccl_trace_rank_3)",
                     path);
    for (size_t i = 0; i < f.n; i++)
        free(f.v[i].path);
    free(f.v);
    fr_recorder_finish(rec);
    return rc;
}
