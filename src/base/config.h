/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - settings as a table: section, key, kind, default, text
 *
 * Precedence: option, environment FULLRANK_<SECTION>_<KEY>, user file, system file, default. The
 * rows come from src/model/config.def. An unknown key in a file is an error naming file and line.
 */
#ifndef FR_BASE_CONFIG_H
#define FR_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/opt.h"

struct fr_config_row {
    const char *section, *key;
    enum fr_opt_kind kind;
    size_t offset;
    const char *def;  /* as text */
    const char *text; /* one sentence */
};

/* Fill *cfg with defaults, then the files that exist (NULL-terminated list, later wins), then the
 * environment. Strings are allocated once and live as long as the process. */
int fr_config_load(const struct fr_config_row *rows, void *cfg, const char *const *files,
                   struct fr_err *err);

/* Every key with value, origin, default and text. */
void fr_config_print(const struct fr_config_row *rows, const void *cfg, FILE *to);

#endif /* FR_BASE_CONFIG_H */
