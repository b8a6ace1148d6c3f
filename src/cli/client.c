/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - see client.h */
#include "cli/client.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/http.h"
#include "base/xalloc.h"
#include "cli/cli.h"

#define TOKEN_BYTES 256

static bool details;

void fr_client_tell_details(bool on)
{
    details = on;
}

struct fr_client {
    struct fr_http *http;
    struct fr_buf text;
    char *server;
    char token[TOKEN_BYTES];
};

int fr_client_new(const char *server, const char *token_file, struct fr_client **ret,
                  struct fr_err *err)
{
    struct fr_client *c = fr_xalloc(sizeof *c);
    struct fr_http_options opt = {
        .base_url = server, .timeout_s = 5, .max_bytes = FR_JSON_MAX_BYTES};
    int rc = 0;

    c->server = fr_xstrdup(server);
    if (token_file && *token_file) {
        rc = fr_fs_token(token_file, 0, c->token, sizeof c->token, err);
        opt.token = c->token;
    }
    if (rc == 0)
        rc = fr_http_new(&opt, &c->http, err);
    if (rc < 0) {
        fr_client_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

void fr_client_free(struct fr_client *c)
{
    if (!c)
        return;
    fr_http_free(c->http);
    fr_buf_fini(&c->text);
    free(c->server);
    free(c);
}

void fr_client_freep(struct fr_client **cp)
{
    fr_client_free(*cp);
}

static int rc_of_status(int status)
{
    static const struct {
        int status, rc;
    } MAP[] = {{400, -EINVAL}, {401, -EACCES}, {403, -EACCES},
               {404, -ENOENT}, {409, -EINVAL}, {503, -EAGAIN}};

    for (size_t i = 0; i < sizeof MAP / sizeof MAP[0]; i++)
        if (MAP[i].status == status)
            return MAP[i].rc;
    return -EPROTO;
}

static int call(struct fr_client *c, const char *method, const char *path, const char *body,
                struct fr_json **ret_json, struct fr_err *err)
{
    struct fr_err why = FR_ERR_INIT;
    struct fr_json *json = NULL;
    int status = fr_http_call(c->http, method, path, body ? "application/json" : NULL, body,
                              body ? strlen(body) : 0, &c->text, &why);
    int rc;

    if (status < 0)
        return fr_fail(err, status,
                       "no controller answers at %s (give the address that fullrank run printed: "
                       "--server or FULLRANK_SERVER)%s%.200s",
                       c->server, details ? ": " : "", details ? why.text : "");
    rc = fr_json_parse(fr_buf_str(&c->text), c->text.len, &json, &why);
    if (status == 200 && rc == 0) {
        *ret_json = json;
        return 0;
    }
    if (status == 200)
        rc = fr_fail(err, -EPROTO, "controller at %s: %s: %.200s", c->server, path, why.text);
    else if ((status == 401 || status == 403) && !c->token[0])
        rc = fr_fail(err, -EACCES,
                     "controller at %s needs a token (give its file: --token-file or "
                     "FULLRANK_TOKEN_FILE)",
                     c->server);
    else if (status == 401 || status == 403)
        rc = fr_fail(err, -EACCES,
                     "controller at %s refused the token (give its file: --token-file)", c->server);
    else
        rc = fr_fail(err, rc_of_status(status), "%.300s",
                     fr_json_str(json, "detail",
                                 fr_json_str(json, "title", "the controller could not answer")));
    fr_json_free(json);
    return rc;
}

int fr_client_get(struct fr_client *c, const char *path, struct fr_json **ret_json,
                  struct fr_err *err)
{
    return call(c, "GET", path, NULL, ret_json, err);
}

int fr_client_post(struct fr_client *c, const char *path, const char *body,
                   struct fr_json **ret_json, struct fr_err *err)
{
    return call(c, "POST", path, body, ret_json, err);
}

const struct fr_buf *fr_client_text(const struct fr_client *c)
{
    return &c->text;
}

int fr_client_exit(int rc)
{
    if (rc == -ENOENT)
        return FR_EXIT_NOT_FOUND;
    return rc == -EINVAL ? FR_EXIT_FAILED : FR_EXIT_SERVER;
}

const char *fr_client_path(struct fr_buf *b, const char *fmt, const char *segment)
{
    const char *hole = strstr(fmt, "%s");

    fr_buf_reset(b);
    fr_buf_add(b, fmt, hole ? (size_t)(hole - fmt) : strlen(fmt));
    for (const unsigned char *s = (const unsigned char *)segment; hole && *s; s++) {
        if (isalnum(*s) || strchr("-._~", *s))
            fr_buf_putc(b, (char)*s);
        else
            fr_buf_printf(b, "%%%02X", *s);
    }
    if (hole)
        fr_buf_puts(b, hole + 2);
    return fr_buf_str(b);
}
