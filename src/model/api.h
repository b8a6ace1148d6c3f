/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - the routes of the HTTP API as a table, and the match of a path against it
 *
 * Both sides use it: the controller to dispatch, the tools to print and check the manual.
 */
#ifndef FR_MODEL_API_H
#define FR_MODEL_API_H

#include <stddef.h>

enum fr_route {
#define FR_ROUTE(id, method, path, schema, access, text) FR_ROUTE_##id,
#include "model/api.def"
#undef FR_ROUTE
    FR_ROUTES
};

enum fr_access { FR_ACCESS_READ, FR_ACCESS_CHANGE };

struct fr_route_row {
    const char *method, *path, *schema;
    enum fr_access access;
    const char *text;
};

extern const struct fr_route_row FR_ROUTE_ROWS[FR_ROUTES];

/* Find the route of method and path (no query). Copies the {segment}, if the route has one, into
 * arg (undecoded). Returns the route, -ENOENT for no such path, -EPERM for a path that is there
 * with another method, -ENAMETOOLONG. */
int fr_route_find(const char *method, const char *path, char *arg, size_t narg);

#endif /* FR_MODEL_API_H */
