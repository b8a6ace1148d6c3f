/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - documents of the HTTP API: one function a route, found through the table of model/api.def
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_API_H
#define FR_CONTROL_API_H

#include "control/state.h"
#include "model/api.h"

/* A request as the API sees it; strings end with NUL. */
struct fr_api_call {
    enum fr_route route;
    const char *arg;   /* the {segment}, decoded; "" none */
    const char *query; /* "job=j1&open=1", "" none */
    const void *body;
    size_t body_bytes;
};

/* Carry it out and append the answer to out. Returns the HTTP status; *ret_type is the media type.
 */
int fr_api_answer(struct fr_ctl *c, const struct fr_api_call *call, struct fr_buf *out,
                  const char **ret_type);

/* An application/problem+json body. Returns status. */
int fr_api_problem(struct fr_buf *out, int status, const char *detail);

/* Value of key in a query, percent-decoded into text; 0 when it is not there. */
int fr_api_query(const char *query, const char *key, char *text, size_t n);
/* Percent-decode in place; -EINVAL for a bad escape or a NUL. */
int fr_api_decode(char *text);

#endif /* FR_CONTROL_API_H */
