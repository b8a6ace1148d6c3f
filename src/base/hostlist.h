/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist.h - gpu[001-003,7] <-> gpu001, gpu002, gpu003, gpu7
 *
 * Range:   at most FR_HOSTLIST_MAX names; names up to 63 bytes of [A-Za-z0-9._-].
 */
#ifndef FR_BASE_HOSTLIST_H
#define FR_BASE_HOSTLIST_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define FR_HOSTLIST_MAX 131072

/* Expand into a NULL-terminated array of strings in one allocation (free() it). Returns the count
 * or -EINVAL, -E2BIG. */
int fr_hostlist_expand(const char *text, char ***ret, struct fr_err *err);

/* Append the short form of n names, in their order, ranges folded. */
void fr_hostlist_fold(char *const *names, size_t n, struct fr_buf *out);

#endif /* FR_BASE_HOSTLIST_H */
