/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scan.h - what all `fullrank scan VERB` share
 *
 * A verb is one row in cmd.c, one declaration in cmd.h and one file scan_<verb>.c; what it reads is
 * understood in src/scan.
 */
#ifndef FR_CLI_SCAN_H
#define FR_CLI_SCAN_H

#include <stddef.h>

#include "base/err.h"

/* Feed a file ("-": standard input) in chunks to fn until its end or until fn returns not 0. 0,
 * what fn returned, or a negative errno with a sentence. Blocks. */
int fr_scan_stream(const char *path, int (*fn)(const char *p, size_t n, void *arg), void *arg,
                   struct fr_err *err);

#endif /* FR_CLI_SCAN_H */
