/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - see http.h; files of the page are served by pages.c */
#include "control/http.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "control/listen.h"
#include "control/pages.h"
#include "control/state.h"
#include "wire/message.h"

#define JSON_BODY_BYTES (64u << 10)
#define SUPERVISE_BYTES (4u << 20)
#define QUERY_BYTES     512
#define TLS_FILE_BYTES  (1u << 20)
#define TYPE_PROBLEM    "application/problem+json"

struct request {
    struct fr_ask ask;
    struct request *next; /* in the queue */
    struct MHD_Connection *conn;
    char arg[128], query[QUERY_BYTES];
    struct fr_buf body;
    size_t body_max, charged;
    struct fr_doc *doc; /* the answer */
    bool queued;
};

struct fr_server {
    struct MHD_Daemon *daemon;
    struct fr_server_options opt;
    struct fr_events *events;
    struct fr_snapshots *snapshots;
    uint16_t port;
    bool loopback;
    char *cert, *key;     /* PEM texts */
    pthread_mutex_t lock; /* queue */
    struct request *head, **tail;
    bool closed;
    _Atomic size_t bodies; /* bytes of all bodies that are held */
};

/* Takes as long for any two tokens of the operator's length. */
static int same_token(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    unsigned char diff = na != nb;

    for (size_t i = 0; i < nb; i++)
        diff |= (unsigned char)((unsigned char)a[na ? i % na : 0] ^ (unsigned char)b[i]);
    return diff == 0;
}

static int has_token(const struct fr_server *s, struct MHD_Connection *conn)
{
    const char *h =
        MHD_lookup_connection_value(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);

    return h && strncmp(h, "Bearer ", 7) == 0 && same_token(h + 7, s->opt.token);
}

/* A page from elsewhere may have bound its own name to 127.0.0.1: on loopback only loopback's names
 * are answered. */
static int host_ok(const struct fr_server *s, struct MHD_Connection *conn)
{
    static const char *const OK[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *h = MHD_lookup_connection_value(conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);

    if (!s->loopback || !h)
        return 1;
    if (strncmp(h, "127.", 4) == 0 && strspn(h, "0123456789.:") == strlen(h))
        return 1;
    for (size_t i = 0; i < sizeof OK / sizeof OK[0]; i++) {
        size_t n = strlen(OK[i]);

        if (strncmp(h, OK[i], n) == 0 && (h[n] == '\0' || h[n] == ':'))
            return 1;
    }
    return 0;
}

static enum MHD_Result send_response(struct MHD_Connection *conn, int status,
                                     struct MHD_Response *r)
{
    enum MHD_Result rc;

    if (!r)
        return MHD_NO;
    fr_pages_headers(r);
    if (status == 401)
        MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    rc = MHD_queue_response(conn, (unsigned)status, r);
    MHD_destroy_response(r);
    return rc;
}

static void unref_doc(void *arg)
{
    fr_doc_unref(arg);
}

/* Takes the reference. */
static enum MHD_Result send_doc(struct MHD_Connection *conn, struct fr_doc *d)
{
    struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback_cls(
        d->len, d->p ? d->p : (void *)d, unref_doc, d);
    int status = d->status;

    if (!r) {
        fr_doc_unref(d);
        return MHD_NO;
    }
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, d->type);
    return send_response(conn, status, r);
}

static struct fr_doc *problem(int status, const char *detail)
{
    struct fr_buf b = FR_BUF_INIT;

    fr_api_problem(&b, status, detail);
    return fr_doc_new(&b, status, TYPE_PROBLEM);
}

static struct fr_doc *text(const char *s)
{
    struct fr_buf b = FR_BUF_INIT;

    fr_buf_puts(&b, s);
    return fr_doc_new(&b, 200, "text/plain; charset=utf-8");
}

static size_t body_limit(const struct fr_server *s, enum fr_route route)
{
    switch (route) {
    case FR_ROUTE_AGENT_REPORT:
        return s->opt.report_max_bytes;
    case FR_ROUTE_SUPERVISE:
        return SUPERVISE_BYTES;
    default:
        return JSON_BODY_BYTES;
    }
}

/* Everything that can be said before the body: NULL, or the refusal. */
static struct fr_doc *refuse_early(struct fr_server *s, struct request *q, const char *method,
                                   const char *url)
{
    const struct fr_route_row *row;
    const char *length;
    int route =
        fr_route_find(strcmp(method, "HEAD") == 0 ? "GET" : method, url, q->arg, sizeof q->arg);

    if (!host_ok(s, q->conn))
        return problem(403, "this controller answers to localhost only");
    if (route == -EPERM)
        return problem(405, "this address does not take that method");
    if (route < 0)
        return problem(404, "there is nothing at this address");
    row = &FR_ROUTE_ROWS[route];
    if ((row->access == FR_ACCESS_CHANGE || !s->loopback) && !has_token(s, q->conn))
        return problem(401, "the request needs the controller's token (Authorization: Bearer ...)");
    if (fr_api_decode(q->arg))
        return problem(400, "a bad escape in the address");
    q->ask.call.route = (enum fr_route)route;
    q->ask.call.arg = q->arg;
    q->body_max = body_limit(s, q->ask.call.route);
    length = MHD_lookup_connection_value(q->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length && strtoull(length, NULL, 10) > q->body_max)
        return problem(413, "the body is larger than this address takes");
    return NULL;
}

static enum MHD_Result add_pair(void *arg, enum MHD_ValueKind kind, const char *key,
                                const char *value)
{
    struct request *q = arg;
    size_t n = strlen(q->query);

    (void)kind;
    if (strpbrk(key, "&=%") || (value && strpbrk(value, "&%")))
        return MHD_YES; /* nothing that the API knows looks like that */
    if (n + strlen(key) + (value ? strlen(value) : 0) + 3 < sizeof q->query)
        snprintf(q->query + n, sizeof q->query - n, "%s%s=%s", n ? "&" : "", key,
                 value ? value : "");
    return MHD_YES;
}

static enum MHD_Result stream(struct fr_server *s, struct request *q)
{
    const char *last = MHD_lookup_connection_value(q->conn, MHD_HEADER_KIND, "Last-Event-ID");
    const char *topics = MHD_lookup_connection_value(q->conn, MHD_GET_ARGUMENT_KIND, "topics");
    struct MHD_Response *r;

    if (!last)
        last = MHD_lookup_connection_value(q->conn, MHD_GET_ARGUMENT_KIND, "last_event_id");
    r = fr_events_stream(s->events, q->conn, last ? strtoull(last, NULL, 10) : 0,
                         topics ? topics : "");
    if (!r)
        return send_doc(q->conn, problem(503, "too many readers of the event stream"));
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    return send_response(q->conn, 200, r);
}

static enum MHD_Result queue_for_loop(struct fr_server *s, struct request *q)
{
    bool closed;

    MHD_suspend_connection(q->conn); /* before the loop can resume it */
    pthread_mutex_lock(&s->lock);
    closed = s->closed;
    if (!closed) {
        q->queued = true;
        q->next = NULL;
        *s->tail = q;
        s->tail = &q->next;
    }
    pthread_mutex_unlock(&s->lock);
    if (closed) {
        q->doc = problem(503, "the controller is ending");
        MHD_resume_connection(q->conn);
        return MHD_YES;
    }
    s->opt.wake(s->opt.arg);
    return MHD_YES;
}

static enum MHD_Result answer(struct fr_server *s, struct request *q, const char *url)
{
    enum fr_route route = q->ask.call.route;

    MHD_get_connection_values(q->conn, MHD_GET_ARGUMENT_KIND, add_pair, q);
    q->ask.call.query = q->query;
    q->ask.call.body = fr_buf_str(&q->body);
    q->ask.call.body_bytes = q->body.len;
    if (route == FR_ROUTE_EVENTS)
        return stream(s, q);
    if (route == FR_ROUTE_LIVEZ)
        return send_doc(q->conn, text("alive\n"));
    if (route == FR_ROUTE_VERSION)
        return send_doc(q->conn, text(FR_VERSION "\n"));
    if (FR_ROUTE_ROWS[route].access == FR_ACCESS_READ) {
        struct fr_doc *d = NULL;
        int n = snprintf(q->ask.address, sizeof q->ask.address, "%s?%s", url, q->query);

        if (n < 0 || (size_t)n >= sizeof q->ask.address)
            q->ask.address[0] = '\0';
        else
            d = fr_snapshots_get(s->snapshots, q->ask.address, fr_mono_ns());
        if (d)
            return send_doc(q->conn, d);
    }
    return queue_for_loop(s, q);
}

/* Add a piece of the body. 0, or -1: this client takes more than its share. */
static int add_body(struct fr_server *s, struct request *q, const char *data, size_t n)
{
    if (q->body.len + n > q->body_max)
        return -1;
    if (atomic_fetch_add_explicit(&s->bodies, n, memory_order_relaxed) + n > FR_HTTP_BODIES_BYTES) {
        atomic_fetch_sub_explicit(&s->bodies, n, memory_order_relaxed);
        return -1;
    }
    q->charged += n;
    fr_buf_add(&q->body, data, n);
    return 0;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *n, void **ctx)
{
    struct fr_server *s = cls;
    struct request *q = *ctx;

    (void)version;
    if (!q) {
        struct fr_doc *refusal;

        q = *ctx = fr_xalloc(sizeof *q);
        q->conn = conn;
        if (fr_pages_is_page(url) && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)) {
            if (!host_ok(s, conn))
                return send_doc(conn, problem(403, "this controller answers to localhost only"));
            if (!s->loopback && !has_token(s, conn))
                return send_doc(conn, problem(401, "the request needs the controller's token"));
            return fr_pages_send(s->opt.web_dir, conn, url);
        }
        refusal = refuse_early(s, q, method, url);
        return refusal ? send_doc(conn, refusal) : MHD_YES;
    }
    if (*n) {
        if (add_body(s, q, data, *n))
            return MHD_NO;
        *n = 0;
        return MHD_YES;
    }
    if (q->doc) {
        struct fr_doc *d = q->doc;

        q->doc = NULL;
        return send_doc(conn, d);
    }
    return answer(s, q, url);
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **ctx,
                         enum MHD_RequestTerminationCode code)
{
    struct fr_server *s = cls;
    struct request *q = *ctx;

    (void)conn;
    (void)code;
    if (!q)
        return;
    /* A queued request is suspended, and a suspended connection is not ended: the loop holds no
     * stale pointer. */
    atomic_fetch_sub_explicit(&s->bodies, q->charged, memory_order_relaxed);
    fr_doc_unref(q->doc);
    fr_buf_fini(&q->body);
    free(q);
    *ctx = NULL;
}

static void on_log(void *cls, const char *fmt, va_list ap)
{
    char line[256];

    (void)cls;
    vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\n")] = '\0';
    fr_log(FR_LOG_DEBUG, "http", "%s", line);
}

struct fr_ask *fr_server_take(struct fr_server *s)
{
    struct request *q;

    pthread_mutex_lock(&s->lock);
    q = s->head;
    if (q) {
        s->head = q->next;
        if (!s->head)
            s->tail = &s->head;
    }
    pthread_mutex_unlock(&s->lock);
    return q ? &q->ask : NULL;
}

void fr_server_answer(struct fr_server *s, struct fr_ask *a, struct fr_doc *d)
{
    struct request *q = (struct request *)(void *)a; /* ask is its first member */

    (void)s;
    q->doc = d;
    MHD_resume_connection(q->conn); /* its lock orders the store before the other thread's read */
}

struct fr_snapshots *fr_server_snapshots(struct fr_server *s)
{
    return s->snapshots;
}

uint16_t fr_server_port(const struct fr_server *s)
{
    return s->port;
}

static int read_pem(const char *path, char **ret, struct fr_err *err)
{
    struct fr_buf b = FR_BUF_INIT;
    int rc = fr_fs_read(path, TLS_FILE_BYTES, &b, err);

    if (rc) {
        fr_buf_fini(&b);
        return rc;
    }
    *ret = b.p;
    return 0;
}

static int start(struct fr_server *s, int fd, struct fr_err *err)
{
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, s->key},
                                   {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                     MHD_USE_ERROR_LOG | (s->cert ? MHD_USE_TLS : 0);

    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)FR_HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        60u, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(64u << 10), MHD_OPTION_ARRAY,
        s->cert ? tls : plain, MHD_OPTION_END);
    if (!s->daemon) {
        close(fd);
        return fr_fail(err, -EIO, "cannot start the HTTP server%s",
                       s->cert ? " (are --tls-cert and --tls-key PEM files?)" : "");
    }
    return 0;
}

int fr_server_new(const struct fr_server_options *opt, struct fr_events *ev, struct fr_server **ret,
                  struct fr_err *err)
{
    struct fr_server *s = fr_xalloc(sizeof *s);
    int fd = -1, rc = 0;

    s->opt = *opt;
    s->events = ev;
    s->snapshots = fr_snapshots_new();
    s->tail = &s->head;
    pthread_mutex_init(&s->lock, NULL);
    if (opt->tls_cert)
        rc = read_pem(opt->tls_cert, &s->cert, err);
    if (!rc && opt->tls_key)
        rc = read_pem(opt->tls_key, &s->key, err);
    if (!rc && !s->cert != !s->key)
        rc = fr_fail(err, -EINVAL, "--tls-cert and --tls-key belong together");
    if (!rc)
        rc = fr_listen(opt->listen, s->cert && opt->token_given, &fd, &s->port, &s->loopback, err);
    if (!rc)
        rc = start(s, fd, err);
    if (rc) {
        fr_server_free(s);
        return rc;
    }
    *ret = s;
    return 0;
}

void fr_server_free(struct fr_server *s)
{
    struct fr_ask *a;

    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
    while ((a = fr_server_take(s)) != NULL)
        fr_server_answer(s, a, problem(503, "the controller is ending"));
    if (s->events)
        fr_events_close(s->events);
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    fr_snapshots_free(s->snapshots);
    pthread_mutex_destroy(&s->lock);
    free(s->cert);
    free(s->key);
    free(s);
}
