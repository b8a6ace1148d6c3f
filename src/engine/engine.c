/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - see engine.h; the table of drivers */
#include "engine/engine.h"

#include <errno.h>
#include <string.h>

#include "engine/local/local.h"

static const struct fr_engine_ops *const DRIVERS[] = {
    &fr_engine_local,
};

const struct fr_engine_ops *fr_engine_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof DRIVERS / sizeof DRIVERS[0]; i++)
        if (strcmp(DRIVERS[i]->name, name) == 0)
            return DRIVERS[i];
    return NULL;
}

void fr_engine_cannot(const struct fr_engine_ops *ops, const char *what, struct fr_err *err)
{
    fr_fail(err, -ENOTSUP, "engine %s cannot %s (it has no scheduler to tell)", ops->name, what);
}
