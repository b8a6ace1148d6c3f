/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h - whose is a folder: runs that live are found, what dead ones left is removed
 *
 * A folder of a run or of a fleet holds the file "owner": a line "pid starttime where" for each
 * process that needs it. While one of these lives, nobody else removes the folder; a process that
 * was killed leaves a folder that the next run sweeps.
 *
 * Threads: one owner.
 */
#ifndef FR_CLI_OWNER_H
#define FR_CLI_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define FR_OWNER_KEEP_RUNS 5 /* folders of failed runs that stay for the person who looks */

struct fr_owner_run {
    char server[64], token_file[300];
};

/* pid needs this folder, too. */
int fr_owner_add(const char *dir, pid_t pid, struct fr_err *err);

/* Remove all but the newest `keep` folders PREFIX* of `home` that are this user's and whose owners
 * are all dead. One without an owner's name, or with one of another machine, is left alone until it
 * is a week old. */
void fr_owner_sweep(const char *home, const char *prefix, size_t keep);

/* The private runs of this user whose controller answers: the number, the first in *ret, all
 * addresses as a list in `list` (n bytes). */
size_t fr_owner_find_runs(struct fr_owner_run *ret, char *list, size_t n);

/* true: somebody listens at http://127.0.0.1:PORT. */
bool fr_owner_answers(int port);

#endif /* FR_CLI_OWNER_H */
