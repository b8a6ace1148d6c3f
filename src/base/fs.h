/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs.h - files: whole or not at all
 */
#ifndef FR_BASE_FS_H
#define FR_BASE_FS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Write n bytes to path under a temporary name beside it, fsync, rename, fsync the folder. */
int fr_fs_write_atomic(const char *path, const void *p, size_t n, mode_t mode, struct fr_err *err);

/* Append the file to out; -EFBIG when it is longer than max. */
int fr_fs_read(const char *path, size_t max, struct fr_buf *out, struct fr_err *err);

/* Make a folder and its parents. 0 also when it is there already. */
int fr_fs_mkdirs(const char *path, mode_t mode, struct fr_err *err);

/* Remove a tree; never follows a link. 0 also when nothing is there. */
int fr_fs_remove_tree(const char *path, struct fr_err *err);

/* A secret in a file of mode 0600: read it (made when create is set and it is absent),
 * without the line end. Refused when others can read it. */
int fr_fs_token(const char *path, int create, char *token, size_t token_bytes, struct fr_err *err);

#endif /* FR_BASE_FS_H */
