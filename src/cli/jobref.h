/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobref.h - which job is meant when none is named
 */
#ifndef FR_CLI_JOBREF_H
#define FR_CLI_JOBREF_H

#include "cli/cli.h"

#define FR_JOBREF_BYTES 64

/* `given` when it is not NULL; else the only job that has not ended; else the only or the newest
 * one. Returns 0 or an exit code, the reason having been said. */
int fr_jobref(const struct fr_cli *cli, const char *given, char job[FR_JOBREF_BYTES]);

#endif /* FR_CLI_JOBREF_H */
