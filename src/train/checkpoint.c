/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FILE_MAX     PATH_MAX
#define LISTED_MAX   65536
#define TEMPORARY    ".tmp"
#define STEP_PATTERN "step-%08" PRId64

void fr_checkpoint_init(struct fr_checkpoint *ck, const struct fr_options *o,
                        const struct fr_grid *grid, struct fr_model *model, uint64_t data_hash)
{
    *ck = (struct fr_checkpoint){o,
                                 grid,
                                 model,
                                 {
                                     .dp = (uint64_t)o->dp,
                                     .pp = (uint64_t)o->pp,
                                     .tp = (uint64_t)o->tp,
                                     .layers = (uint64_t)o->layers,
                                     .d_model = (uint64_t)o->d_model,
                                     .heads = (uint64_t)o->heads,
                                     .seq = (uint64_t)o->seq,
                                     .batch = (uint64_t)o->batch,
                                     .micro_batch = (uint64_t)o->micro_batch,
                                     .seed = (uint64_t)o->seed,
                                     .data_hash = data_hash,
                                     .shards = (uint64_t)(o->pp * o->tp),
                                 }};
}

/* ---- files ---- */

/* DIR/step-N/name, or DIR/step-N when name is NULL. */
static void path_of(const struct fr_checkpoint *ck, int64_t step, const char *name,
                    char ret[FILE_MAX])
{
    snprintf(ret, FILE_MAX, "%s/" STEP_PATTERN "%s%s", ck->o->checkpoint_dir, step, name ? "/" : "",
             name ? name : "");
}

static int shard_number(const struct fr_grid *grid)
{
    return grid->pp.index * grid->tp.size + grid->tp.index;
}

static int fsync_folder(const char *path)
{
    FR_CLEANUP(fr_closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int write_all(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n > 0) {
        ssize_t done = write(fd, at, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

struct piece {
    const void *p;
    size_t n;
};

/* Write the pieces as `folder`/`name`: all of it durable under that name, or
 * nothing. Returns 0 or -errno and a sentence; *ret_sum is what was written. */
static int write_file(const char *folder, const char *name, const struct piece *piece, int count,
                      struct fr_shard_sum *ret_sum, struct fr_err *err)
{
    FR_CLEANUP(fr_closep) int fd = -1;
    char path[FILE_MAX], temporary[FILE_MAX];
    struct fr_shard_sum sum = {0};
    XXH64_state_t hash;
    int rc = 0;

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= FILE_MAX ||
        snprintf(temporary, sizeof temporary, "%s/%s" TEMPORARY, folder, name) >= FILE_MAX)
        return fr_fail(err, -ENAMETOOLONG, "checkpoint: %s/%s: path too long", folder, name);
    XXH64_reset(&hash, 0);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        rc = -errno;
    for (int i = 0; i < count && rc == 0; i++) {
        XXH64_update(&hash, piece[i].p, piece[i].n);
        sum.bytes += piece[i].n;
        rc = write_all(fd, piece[i].p, piece[i].n);
    }
    if (rc == 0 && (fsync(fd) < 0 || rename(temporary, path) < 0))
        rc = -errno;
    if (rc == 0)
        rc = fsync_folder(folder);
    if (rc < 0) {
        unlink(temporary);
        return fr_fail(err, rc, "checkpoint: %s: not written: %s", path, strerror(-rc));
    }
    sum.hash = XXH64_digest(&hash);
    *ret_sum = sum;
    return 0;
}

/* The whole file in memory; the caller frees *ret. Returns 0 or -errno. */
static int read_file(const char *path, size_t max, uint8_t **ret, size_t *ret_n)
{
    FR_CLEANUP(fr_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FR_CLEANUP(fr_freep) uint8_t *p = NULL;
    struct stat st;
    size_t n = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EISDIR;
    if ((uint64_t)st.st_size > max)
        return -EFBIG;
    p = fr_zalloc((size_t)st.st_size, 1);
    while (n < (size_t)st.st_size) {
        ssize_t got = read(fd, p + n, (size_t)st.st_size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break; /* shrank meanwhile: its size will not verify */
        n += (size_t)got;
    }
    *ret = p;
    *ret_n = n;
    p = NULL;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

/* Steps of the folders in DIR, newest first. Returns how many, or -errno. */
static int list_steps(const char *dir, int64_t **ret)
{
    FR_CLEANUP(fr_freep) int64_t *steps = NULL;
    DIR *d = opendir(dir);
    int n = 0, room = 0;

    if (!d)
        return -errno;
    for (struct dirent *e = readdir(d); e && n < LISTED_MAX; e = readdir(d)) {
        int64_t step;
        int used = 0;

        if (sscanf(e->d_name, "step-%" SCNd64 "%n", &step, &used) != 1 || e->d_name[used] ||
            step <= 0)
            continue;
        if (n == room) {
            int64_t *more = fr_zalloc((size_t)(room = room ? 2 * room : 64), sizeof *more);
            if (steps)
                memcpy(more, steps, (size_t)n * sizeof *more);
            free(steps);
            steps = more;
        }
        steps[n++] = step;
    }
    closedir(d);
    if (steps)
        qsort(steps, (size_t)n, sizeof *steps, newest_first);
    *ret = steps;
    steps = NULL;
    return n;
}

/* Remove our files of one checkpoint, the manifest first, so that what is left
 * after a crash is no checkpoint. Files of others stay. */
static void remove_step(const struct fr_checkpoint *ck, int64_t step)
{
    char path[FILE_MAX], file[FILE_MAX + 256];
    DIR *d;

    path_of(ck, step, "manifest", path);
    if (unlink(path) == 0) {
        path_of(ck, step, NULL, path);
        fsync_folder(path);
    }
    path_of(ck, step, NULL, path);
    if (!(d = opendir(path)))
        return;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (strncmp(e->d_name, "rank-", 5) == 0 || strncmp(e->d_name, "manifest", 8) == 0) {
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            unlink(file);
        }
    closedir(d);
    rmdir(path);
}

int fr_checkpoint_prepare(const struct fr_checkpoint *ck, struct fr_err *err)
{
    const char *dir = ck->o->checkpoint_dir;
    int rc = 0;

    if (ck->grid->world.index == 0) {
        if (strlen(dir) > FILE_MAX - 64)
            rc = fr_fail(err, -ENAMETOOLONG, "--checkpoint-dir: path too long (shorten it)");
        else if (mkdir(dir, 0777) < 0 && errno != EEXIST)
            rc = -errno;
        else if (access(dir, R_OK | W_OK | X_OK) < 0)
            rc = -errno;
        if (rc < 0 && rc != -ENAMETOOLONG)
            fr_fail(err, rc, "--checkpoint-dir %s: %s (give a folder that can be written)", dir,
                    strerror(-rc));
    }
    return fr_agree(ck->grid, rc, err);
}

/* ---- save ---- */

static int write_shard(const struct fr_checkpoint *ck, int64_t step, struct fr_shard_sum *ret_sum,
                       struct fr_err *err)
{
    const struct fr_model *m = ck->model;
    const struct fr_shard_header h = {(uint64_t)step, (uint64_t)shard_number(ck->grid), m->params};
    uint8_t header[FR_SHARD_HEADER_BYTES];
    const struct piece pieces[] = {
        {header, sizeof header},
        {m->w, m->params * sizeof *m->w},
        {m->m, m->params * sizeof *m->m},
        {m->v, m->params * sizeof *m->v},
    };
    char folder[FILE_MAX], name[32];

    fr_shard_header_write(&h, header);
    path_of(ck, step, NULL, folder);
    snprintf(name, sizeof name, "rank-%05d.shard", shard_number(ck->grid));
    return write_file(folder, name, pieces, 4, ret_sum, err);
}

static int make_folder(const struct fr_checkpoint *ck, int64_t step, struct fr_err *err)
{
    char path[FILE_MAX];

    remove_step(ck, step); /* what an attempt before us began, or wrote and lost */
    path_of(ck, step, NULL, path);
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        int e = errno;
        return fr_fail(err, -e, "checkpoint: %s: not written: %s", path, strerror(e));
    }
    return 0;
}

static int write_manifest(const struct fr_checkpoint *ck, const struct fr_manifest *m,
                          struct fr_err *err)
{
    FR_CLEANUP(fr_freep) char *text = NULL;
    struct piece piece = {0};
    struct fr_shard_sum sum;
    char folder[FILE_MAX];
    int rc;

    piece.n = fr_manifest_format(m, &text);
    piece.p = text;
    path_of(ck, (int64_t)m->step, NULL, folder);
    rc = write_file(folder, "manifest", &piece, 1, &sum, err);
    if (rc == 0 && (rc = fsync_folder(ck->o->checkpoint_dir)) < 0)
        fr_fail(err, rc, "checkpoint: %s: not durable: %s", ck->o->checkpoint_dir, strerror(-rc));
    return rc;
}

/* Keep the last `keep` up to `step`. Later ones are not ours to judge: they
 * belong to a run that went further. */
static void drop_old(const struct fr_checkpoint *ck, int64_t step)
{
    FR_CLEANUP(fr_freep) int64_t *steps = NULL;
    int n = list_steps(ck->o->checkpoint_dir, &steps);
    int64_t kept = 0;

    for (int i = 0; i < n; i++) {
        char path[FILE_MAX];

        if (steps[i] > step)
            continue;
        path_of(ck, steps[i], "manifest", path);
        if (kept < ck->o->keep && access(path, F_OK) == 0)
            kept++;
        else
            remove_step(ck, steps[i]);
    }
}

int fr_checkpoint_save(struct fr_checkpoint *ck, int64_t step, struct fr_err *err)
{
    const struct fr_group *world = &ck->grid->world;
    FR_CLEANUP(fr_freep) struct fr_shard_sum *sums = NULL;
    struct fr_shard_sum mine = {0};
    struct fr_manifest m = ck->stamp;
    int rc;

    rc = fr_agree(ck->grid, world->index == 0 ? make_folder(ck, step, err) : 0, err);
    if (rc < 0)
        return rc;
    rc = ck->grid->dp.index == 0 ? write_shard(ck, step, &mine, err) : 0;
    rc = fr_agree(ck->grid, rc, err);
    if (rc == 0) {
        /* shard k is written by rank k: the first replica has the first ranks */
        sums = fr_zalloc((size_t)world->size, sizeof *sums);
        fr_collect(world, &mine, sizeof mine, sums);
        m.step = (uint64_t)step;
        m.shard = sums;
        rc = fr_agree(ck->grid, world->index == 0 ? write_manifest(ck, &m, err) : 0, err);
    }
    if (world->index == 0) {
        if (rc < 0)
            remove_step(ck, step);
        else
            drop_old(ck, step);
    }
    return rc;
}

/* ---- restore ---- */

static int read_manifest(const struct fr_checkpoint *ck, int64_t step, struct fr_manifest *ret,
                         struct fr_err *err)
{
    FR_CLEANUP(fr_freep) uint8_t *p = NULL;
    struct fr_err why = {0};
    char path[FILE_MAX];
    size_t n = 0;
    int rc;

    path_of(ck, step, "manifest", path);
    rc = read_file(path, FR_MANIFEST_BYTES_MAX, &p, &n);
    if (rc == -ENOENT)
        return fr_fail(err, rc, "%s: missing: the checkpoint was not finished", path);
    if (rc < 0)
        return fr_fail(err, rc, "%s: %s", path, strerror(-rc));
    rc = fr_manifest_parse(p, n, ret, &why);
    if (rc == 0 && ret->step != (uint64_t)step) {
        fr_manifest_fini(ret);
        rc = fr_fail(&why, -EBADMSG, "is of step %" PRIu64, ret->step);
    }
    return rc < 0 ? fr_fail(err, rc, "%s: %s", path, why.text) : 0;
}

/* One line for a grid or model that is not ours. */
static int check_stamp(const struct fr_checkpoint *ck, const struct fr_manifest *m,
                       struct fr_err *err)
{
    const struct fr_manifest *s = &ck->stamp;

    if (m->dp != s->dp || m->pp != s->pp || m->tp != s->tp || m->shards != s->shards)
        return fr_fail(
            err, -EINVAL,
            "checkpoint: %s/" STEP_PATTERN ": written by the grid dp %" PRIu64 " pp %" PRIu64
            " tp %" PRIu64 ", this job has dp %" PRIu64 " pp %" PRIu64 " tp %" PRIu64
            " (use that grid, another --checkpoint-dir, or --resume none)",
            ck->o->checkpoint_dir, (int64_t)m->step, m->dp, m->pp, m->tp, s->dp, s->pp, s->tp);
    if (m->layers != s->layers || m->d_model != s->d_model || m->heads != s->heads ||
        m->seq != s->seq)
        return fr_fail(err, -EINVAL,
                       "checkpoint: %s/" STEP_PATTERN ": written by a model of layers %" PRIu64
                       " d-model %" PRIu64 " heads %" PRIu64 " seq %" PRIu64
                       " (use that model, another --checkpoint-dir, or --resume none)",
                       ck->o->checkpoint_dir, (int64_t)m->step, m->layers, m->d_model, m->heads,
                       m->seq);
    return 0;
}

static int read_shard(const struct fr_checkpoint *ck, const struct fr_manifest *m, uint8_t **ret,
                      struct fr_err *err)
{
    FR_CLEANUP(fr_freep) uint8_t *p = NULL;
    int number = shard_number(ck->grid), rc;
    const struct fr_shard_header expected = {m->step, (uint64_t)number, ck->model->params};
    struct fr_err why = {0};
    char path[FILE_MAX], name[32];
    size_t n = 0;

    snprintf(name, sizeof name, "rank-%05d.shard", number);
    path_of(ck, (int64_t)m->step, name, path);
    /* a damaged length must not become a request for memory */
    rc = read_file(path, FR_SHARD_HEADER_BYTES + 3 * sizeof(float) * ck->model->params, &p, &n);
    if (rc < 0)
        return fr_fail(err, rc, "%s: %s", path, strerror(-rc));
    rc = fr_shard_verify(p, n, &m->shard[number], &expected, &why);
    if (rc < 0)
        return fr_fail(err, rc, "%s: %s", path, why.text);
    *ret = p;
    p = NULL;
    return 0;
}

static void warn_of(const struct fr_grid *grid, const char *text, const char *what)
{
    if (grid->world.index == 0)
        fprintf(stderr, "fullrank-train: warning: checkpoint: %s (%s)\n", text, what);
}

/* Try one checkpoint. Returns 0 when it is loaded, 1 when it is refused,
 * -EINVAL when it is good but not of this job. */
static int load_step(struct fr_checkpoint *ck, int64_t step, struct fr_err *err)
{
    FR_CLEANUP(fr_manifest_fini) struct fr_manifest m = {0};
    FR_CLEANUP(fr_freep) uint8_t *shard = NULL;
    struct fr_model *model = ck->model;
    size_t bytes = model->params * sizeof(float);

    if (fr_agree(ck->grid, read_manifest(ck, step, &m, err), err) < 0) {
        warn_of(ck->grid, err->text, "refused, trying the one before");
        return 1;
    }
    if (fr_agree(ck->grid, check_stamp(ck, &m, err), err) < 0)
        return -EINVAL;
    if (fr_agree(ck->grid, read_shard(ck, &m, &shard, err), err) < 0) {
        warn_of(ck->grid, err->text, "refused, trying the one before");
        return 1;
    }
    memcpy(model->w, shard + FR_SHARD_HEADER_BYTES, bytes);
    memcpy(model->m, shard + FR_SHARD_HEADER_BYTES + bytes, bytes);
    memcpy(model->v, shard + FR_SHARD_HEADER_BYTES + 2 * bytes, bytes);
    if (m.batch != ck->stamp.batch || m.micro_batch != ck->stamp.micro_batch ||
        m.seed != ck->stamp.seed || m.data_hash != ck->stamp.data_hash)
        warn_of(ck->grid, "batch, seed or data differ from those of the checkpoint",
                "resumed, but not bit-exact");
    ck->stamp.peak_flops = m.peak_flops;
    return 0;
}

int fr_checkpoint_restore(struct fr_checkpoint *ck, int64_t *ret_step, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) int64_t *steps = NULL;
    bool lead = ck->grid->world.index == 0;
    int n = lead ? list_steps(ck->o->checkpoint_dir, &steps) : 0, rc = 1;

    if (n < 0)
        fr_fail(err, n, "checkpoint: %s: %s (give another --checkpoint-dir)", ck->o->checkpoint_dir,
                strerror(-n));
    if (fr_agree(ck->grid, n < 0 ? n : 0, err) < 0)
        return -EINVAL;
    for (int i = 0; rc == 1; i++) {
        int64_t step = lead && i < n ? steps[i] : 0;

        fr_share(&ck->grid->world, &step, sizeof step);
        *ret_step = step;
        if (step == 0)
            return 0;
        rc = load_step(ck, step, err);
    }
    return rc;
}
