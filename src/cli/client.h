/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - ask the controller's API
 *
 * Threads: one owner at a time.
 */
#ifndef FR_CLI_CLIENT_H
#define FR_CLI_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct fr_client;

/* Tell in errors what the network said, too (-v). */
void fr_client_tell_details(bool on);

/* token_file NULL or absent: no token (enough for reading on loopback). */
int fr_client_new(const char *server, const char *token_file, struct fr_client **ret,
                  struct fr_err *err);
void fr_client_free(struct fr_client *c);
void fr_client_freep(struct fr_client **cp);

/* GET path. *ret_json is the caller's (fr_json_free); the text stays in fr_client_text until the
 * next call. Returns 0, -ENOENT (404), -EACCES (401, 403), -EINVAL (400, 409, ...), -EPROTO (no
 * JSON), -EAGAIN (503), or what fr_http_call returns. */
int fr_client_get(struct fr_client *c, const char *path, struct fr_json **ret_json,
                  struct fr_err *err);
/* POST a JSON body; otherwise alike. */
int fr_client_post(struct fr_client *c, const char *path, const char *body,
                   struct fr_json **ret_json, struct fr_err *err);
const struct fr_buf *fr_client_text(const struct fr_client *c);

/* The exit code for such a failure. */
int fr_client_exit(int rc);

/* Append path with one segment percent-encoded: fr_client_path(&b, "/api/v1/jobs/%s/ranks", name).
 */
const char *fr_client_path(struct fr_buf *b, const char *fmt, const char *segment);

#endif /* FR_CLI_CLIENT_H */
