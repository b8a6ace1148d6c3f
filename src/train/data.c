/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ADVICE "give another --data"

/* splitmix64's finaliser (Steele, Lea, Flood, OOPSLA 2014). */
uint64_t fr_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t fr_mix2(uint64_t a, uint64_t b)
{
    return fr_mix(fr_mix(a) ^ b);
}

static int append_file(struct fr_data *d, const char *path, struct fr_err *err)
{
    FR_CLEANUP(fr_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    size_t size, got = 0;
    uint8_t *grown;

    if (fd < 0 || fstat(fd, &st) < 0) {
        int e = errno;
        return fr_fail(err, -e, "data: %s: %s (" ADVICE ")", path, strerror(e));
    }
    if (!S_ISREG(st.st_mode))
        return fr_fail(err, -EINVAL, "data: %s: not a regular file (" ADVICE ")", path);
    size = (size_t)st.st_size;
    if (size > FR_DATA_BYTES_MAX - d->len)
        return fr_fail(err, -EFBIG, "data: %s: the corpus would be over 2 GiB (" ADVICE ")", path);
    grown = realloc(d->bytes, d->len + size + 1);
    if (!grown)
        return fr_fail(err, -ENOMEM, "data: %s: no memory for %zu bytes", path, size);
    d->bytes = grown;
    while (got < size) {
        ssize_t n = read(fd, d->bytes + d->len + got, size - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int e = errno;
            return fr_fail(err, -e, "data: %s: %s (" ADVICE ")", path, strerror(e));
        }
        if (n == 0)
            return fr_fail(err, -EIO, "data: %s: shrank while it was read (" ADVICE ")", path);
        got += (size_t)n;
    }
    d->len += size;
    return 0;
}

static int is_regular(const struct dirent *e)
{
    return e->d_name[0] != '.' && (e->d_type == DT_REG || e->d_type == DT_UNKNOWN);
}

/* By bytes, not by the user's locale: the order decides the corpus. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int append_folder(struct fr_data *d, const char *path, struct fr_err *err)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, is_regular, by_name), rc = 0;

    if (n < 0) {
        int e = errno;
        return fr_fail(err, -e, "data: %s: %s (" ADVICE ")", path, strerror(e));
    }
    for (int i = 0; i < n; i++) {
        char full[4096];
        struct stat st;

        if (rc == 0 &&
            snprintf(full, sizeof full, "%s/%s", path, names[i]->d_name) >= (int)sizeof full)
            rc = fr_fail(err, -ENAMETOOLONG, "data: %s: path too long (" ADVICE ")", path);
        /* some file systems do not tell the type in the listing */
        if (rc == 0 &&
            (names[i]->d_type == DT_REG || (lstat(full, &st) == 0 && S_ISREG(st.st_mode))))
            rc = append_file(d, full, err);
        free(names[i]);
    }
    free(names);
    return rc;
}

int fr_data_open(const char *const *paths, int count, size_t seq, struct fr_data *ret,
                 struct fr_err *err)
{
    FR_CLEANUP(fr_data_close) struct fr_data d = {0};

    for (int i = 0; i < count; i++) {
        struct stat st;
        int rc;

        if (stat(paths[i], &st) < 0) {
            int e = errno;
            return fr_fail(err, -e, "data: %s: %s (" ADVICE ")", paths[i], strerror(e));
        }
        rc =
            S_ISDIR(st.st_mode) ? append_folder(&d, paths[i], err) : append_file(&d, paths[i], err);
        if (rc < 0)
            return rc;
    }
    d.train_len = d.len - d.len / 10;
    if (d.len / 10 < seq + 1) /* the evaluation part is the smaller one */
        return fr_fail(err, -ENODATA,
                       "data: %zu bytes: too short for --seq %zu, a tenth must hold %zu bytes"
                       " (shorten --seq or give more --data)",
                       d.len, seq, seq + 1);
    d.hash = XXH64(d.bytes, d.len, 0);
    *ret = d;
    d.bytes = NULL;
    return 0;
}

void fr_data_close(struct fr_data *data)
{
    free(data->bytes);
    data->bytes = NULL;
}

void fr_data_sample(const struct fr_data *data, enum fr_split split, uint64_t seed, uint64_t step,
                    uint64_t index, size_t seq, uint8_t *ret_tokens)
{
    size_t first = split == FR_SPLIT_TRAIN ? 0 : data->train_len;
    size_t len = split == FR_SPLIT_TRAIN ? data->train_len : data->len - data->train_len;
    uint64_t h = fr_mix2(fr_mix2(fr_mix2(seed, (uint64_t)split), step), index);

    memcpy(ret_tokens, data->bytes + first + h % (len - seq), seq + 1);
}
