/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the table of routes and the match against it */
#include "model/api.h"

#include <errno.h>
#include <string.h>

const struct fr_route_row FR_ROUTE_ROWS[FR_ROUTES] = {
#define FR_ROUTE(id, method, path, schema, access, text)                                           \
    {#method, path, schema, FR_ACCESS_##access, text},
#include "model/api.def"
#undef FR_ROUTE
};

/* 1 when path fits the pattern; *arg and *len are then its {segment} (NULL: none). */
static int path_fits(const char *pattern, const char *path, const char **arg, size_t *len)
{
    const char *open = strchr(pattern, '{'), *close;
    size_t head;

    *arg = NULL;
    *len = 0;
    if (!open)
        return strcmp(pattern, path) == 0;
    head = (size_t)(open - pattern);
    close = strchr(open, '}');
    if (strncmp(pattern, path, head) != 0)
        return 0;
    *arg = path + head;
    *len = strcspn(*arg, "/");
    return *len > 0 && strcmp(close + 1, *arg + *len) == 0;
}

int fr_route_find(const char *method, const char *path, char *arg, size_t narg)
{
    int other = 0;

    for (int i = 0; i < FR_ROUTES; i++) {
        const char *a;
        size_t len;

        if (!path_fits(FR_ROUTE_ROWS[i].path, path, &a, &len))
            continue;
        if (strcmp(FR_ROUTE_ROWS[i].method, method) != 0) {
            other = 1;
            continue;
        }
        if (len >= narg)
            return -ENAMETOOLONG;
        if (a)
            memcpy(arg, a, len);
        arg[len] = 0;
        return i;
    }
    return other ? -EPERM : -ENOENT;
}
