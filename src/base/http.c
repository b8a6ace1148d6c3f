/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - see http.h; the only user of libcurl */
#include "base/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/sse.h"
#include "base/xalloc.h"

#define DEFAULT_TIMEOUT_S 5.0
#define DEFAULT_MAX_BYTES (16u << 20)

struct fr_http {
    CURL *curl;
    char *base_url, *token, *ca_file;
    long timeout_ms;
    size_t max_bytes;
    char why[CURL_ERROR_SIZE];
};

/* Where an answer goes: into a buffer, or event by event to a function. */
struct sink {
    struct fr_http *h;
    struct fr_buf *reply;
    struct fr_sse *sse;
    int (*fn)(const char *event, const char *data, size_t n, void *arg);
    void *arg;
    int rc; /* why the transfer was ended by us */
};

static void init_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int fr_http_new(const struct fr_http_options *opt, struct fr_http **ret, struct fr_err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    double timeout_s = opt->timeout_s > 0 ? opt->timeout_s : DEFAULT_TIMEOUT_S;
    struct fr_http *h;
    size_t n;

    if (!opt->base_url ||
        (strncmp(opt->base_url, "http://", 7) != 0 && strncmp(opt->base_url, "https://", 8) != 0))
        return fr_fail(err, -EINVAL,
                       "'%.100s' is no server address (such as http://127.0.0.1:7880)",
                       opt->base_url ? opt->base_url : "");
    if (opt->token && strpbrk(opt->token, "\r\n"))
        return fr_fail(err, -EINVAL, "the token holds a line end");
    if (timeout_s > 1e6)
        timeout_s = 1e6;

    pthread_once(&once, init_curl);
    h = fr_xalloc(sizeof *h);
    h->curl = curl_easy_init();
    if (!h->curl) {
        fr_http_free(h);
        return fr_fail(err, -ENOMEM, "the HTTP client cannot start");
    }
    h->base_url = fr_xstrdup(opt->base_url);
    for (n = strlen(h->base_url); n > 0 && h->base_url[n - 1] == '/'; n--)
        h->base_url[n - 1] = '\0'; /* paths bring their own slash */
    h->token = opt->token ? fr_xstrdup(opt->token) : NULL;
    h->ca_file = opt->ca_file ? fr_xstrdup(opt->ca_file) : NULL;
    h->timeout_ms = (long)(timeout_s * 1000) + 1;
    h->max_bytes = opt->max_bytes ? opt->max_bytes : DEFAULT_MAX_BYTES;
    *ret = h;
    return 0;
}

void fr_http_free(struct fr_http *h)
{
    if (!h)
        return;
    curl_easy_cleanup(h->curl);
    fr_freep(&h->base_url);
    if (h->token)
        explicit_bzero(h->token, strlen(h->token));
    fr_freep(&h->token);
    fr_freep(&h->ca_file);
    fr_freep(&h);
}

static size_t take_reply(char *p, size_t size, size_t n, void *arg)
{
    struct sink *s = arg;

    n *= size;
    if (s->reply->len + n > s->h->max_bytes) {
        s->rc = -EFBIG;
        return CURL_WRITEFUNC_ERROR;
    }
    fr_buf_add(s->reply, p, n);
    return n;
}

static size_t take_events(char *p, size_t size, size_t n, void *arg)
{
    struct sink *s = arg;
    long status = 0;

    n *= size;
    curl_easy_getinfo(s->h->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return n; /* the text of an error is no stream of events */
    s->rc = fr_sse_feed(s->sse, p, n, s->fn, s->arg);
    return s->rc ? CURL_WRITEFUNC_ERROR : n;
}

static int errno_of(const struct fr_http *h, CURLcode code)
{
    static const struct {
        CURLcode code;
        int rc;
    } MAP[] = {
        {CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT},
        {CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH},
        {CURLE_COULDNT_RESOLVE_PROXY, -EHOSTUNREACH},
        {CURLE_COULDNT_CONNECT, -ECONNREFUSED},
        {CURLE_URL_MALFORMAT, -EINVAL},
        {CURLE_UNSUPPORTED_PROTOCOL, -EPROTONOSUPPORT},
        {CURLE_SEND_ERROR, -ECONNRESET},
        {CURLE_RECV_ERROR, -ECONNRESET},
        {CURLE_GOT_NOTHING, -ECONNRESET},
        {CURLE_PARTIAL_FILE, -ECONNRESET},
        {CURLE_PEER_FAILED_VERIFICATION, -EKEYREJECTED},
        {CURLE_SSL_CONNECT_ERROR, -EPROTO},
        {CURLE_SSL_CACERT_BADFILE, -ENOENT},
        {CURLE_OUT_OF_MEMORY, -ENOMEM},
    };
    long os = 0;

    curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &os);
    if (code == CURLE_COULDNT_CONNECT && os > 0)
        return (int)-os;
    for (size_t i = 0; i < sizeof MAP / sizeof MAP[0]; i++)
        if (MAP[i].code == code)
            return MAP[i].rc;
    return -EPROTO;
}

static bool is_loopback(const char *url)
{
    const char *host = strstr(url, "://") + 3;

    return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 ||
           strncmp(host, "[::1]", 5) == 0;
}

/* What every request shares. curl_easy_reset keeps the connection. */
static int prepare(struct fr_http *h, const char *path, const char *type, char **ret_url,
                   struct curl_slist **ret_headers, struct fr_err *err)
{
    struct curl_slist *list = NULL, *more;
    FR_CLEANUP(fr_freep)
    char *auth = h->token ? fr_xasprintf("Authorization: Bearer %s", h->token) : NULL;
    FR_CLEANUP(fr_freep) char *media = type ? fr_xasprintf("Content-Type: %s", type) : NULL;
    /* "Expect:" off: waiting for "100 Continue" costs a round trip. */
    const char *const lines[] = {"Expect:", "User-Agent: fullrank", auth, media};

    if (path[0] != '/' || strpbrk(path, " \r\n\t"))
        return fr_fail(err, -EINVAL, "'%.100s' is no path of a URL", path);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (!lines[i])
            continue;
        more = curl_slist_append(list, lines[i]);
        if (!more) {
            curl_slist_free_all(list);
            return fr_fail(err, -ENOMEM, "out of memory for a request");
        }
        list = more;
    }
    if (auth)
        explicit_bzero(auth, strlen(auth));

    *ret_url = fr_xasprintf("%s%s", h->base_url, path);
    *ret_headers = list;
    h->why[0] = '\0';
    curl_easy_reset(h->curl);
    curl_easy_setopt(h->curl, CURLOPT_URL, *ret_url);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, h->why);
    curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L); /* no SIGALRM in a program with threads */
    curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h->curl, CURLOPT_FOLLOWLOCATION, 0L); /* a token must not follow a redirect */
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS, h->timeout_ms);
    curl_easy_setopt(h->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h->curl, CURLOPT_TCP_NODELAY, 1L);
    if (h->ca_file)
        curl_easy_setopt(h->curl, CURLOPT_CAINFO, h->ca_file);
    if (is_loopback(h->base_url))
        curl_easy_setopt(h->curl, CURLOPT_NOPROXY,
                         "*"); /* a site's proxy cannot reach this machine */
    return 0;
}

/* Run what was prepared and say how it went. */
static int perform(struct fr_http *h, const char *method, const char *path, const struct sink *s,
                   struct fr_err *err)
{
    CURLcode code = curl_easy_perform(h->curl);
    long status = 0;
    int rc;

    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    if (s->rc == -EFBIG)
        return fr_fail(err, -EFBIG, "%s %s%s: the answer is longer than %zu bytes", method,
                       h->base_url, path, h->max_bytes);
    if (code == CURLE_OK || s->rc) /* ended by the caller's function: no failure */
        return status >= 100 ? (int)status
                             : fr_fail(err, -EPROTO, "%s: no HTTP status came", h->base_url);
    rc = errno_of(h, code);
    return fr_fail(err, rc, "%s %s%s: %s", method, h->base_url, path,
                   h->why[0] ? h->why : curl_easy_strerror(code));
}

int fr_http_call(struct fr_http *h, const char *method, const char *path, const char *type,
                 const void *body, size_t body_bytes, struct fr_buf *reply, struct fr_err *err)
{
    struct sink s = {.h = h, .reply = reply};
    FR_CLEANUP(fr_freep) char *url = NULL;
    struct curl_slist *headers = NULL;
    int rc;

    fr_buf_reset(reply);
    rc = prepare(h, path, type, &url, &headers, err);
    if (rc < 0)
        return rc;
    if (body) {
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_bytes);
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
    } else if (strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0) {
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE, 0L);
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, "");
    }
    if (strcmp(method, "HEAD") == 0)
        curl_easy_setopt(h->curl, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, h->timeout_ms);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take_reply);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &s);
    rc = perform(h, method, path, &s, err);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return rc;
}

int fr_http_events(struct fr_http *h, const char *path,
                   int (*fn)(const char *event, const char *data, size_t n, void *arg), void *arg,
                   struct fr_err *err)
{
    struct fr_sse sse;
    struct sink s = {.h = h, .sse = &sse, .fn = fn, .arg = arg};
    FR_CLEANUP(fr_freep) char *url = NULL;
    struct curl_slist *headers = NULL, *more;
    int rc;

    rc = prepare(h, path, NULL, &url, &headers, err);
    if (rc < 0)
        return rc;
    more = curl_slist_append(headers, "Accept: text/event-stream");
    if (more)
        curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, more);
    /* No limit for the whole, but a silent peer is a dead one: servers send a comment every 15 s.
     */
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, (long)FR_HTTP_SILENCE_S);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, take_events);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &s);
    fr_sse_init(&sse, h->max_bytes);
    rc = perform(h, "GET", path, &s, err);
    fr_sse_fini(&sse);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return rc;
}
