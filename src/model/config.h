/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the settings of all daemons as one struct, and its table for base/config.h
 *
 * Both come from config.def. A room that has a config struct of its own (judge, policy) fills it
 * from here.
 *
 * Threads: none; read-only after fr_config_load.
 */
#ifndef FR_MODEL_CONFIG_H
#define FR_MODEL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"

/* C type of each kind, as base/opt.h says */
#define FR_CONFIG_TYPE_FLAG    bool
#define FR_CONFIG_TYPE_STR     const char *
#define FR_CONFIG_TYPE_INT     int64_t
#define FR_CONFIG_TYPE_NUM     double
#define FR_CONFIG_TYPE_SECONDS double
#define FR_CONFIG_TYPE_BYTES   uint64_t

struct fr_config {
#define FR_CONFIG(section, key, kind, member, def, text) FR_CONFIG_TYPE_##kind member;
#include "model/config.def"
#undef FR_CONFIG
};

/* The rows for fr_config_load and fr_config_print; the last one has no section. */
extern const struct fr_config_row FR_CONFIG_ROWS[];

#endif /* FR_MODEL_CONFIG_H */
