/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - the table of settings made from config.def */
#include "model/config.h"

#include <stddef.h>

const struct fr_config_row FR_CONFIG_ROWS[] = {
#define FR_CONFIG(section, key, kind, member, def, text)                                           \
    {#section, #key, FR_OPT_##kind, offsetof(struct fr_config, member), def, text},
#include "model/config.def"
#undef FR_CONFIG
    {NULL, NULL, FR_OPT_FLAG, 0, NULL, NULL}};
