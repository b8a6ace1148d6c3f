/* SPDX-License-Identifier: Apache-2.0 */
/* test_http.c - the HTTP client against a small server in a thread (loopback, a port the kernel
 * picks) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http.h"
#include "base/xalloc.h"

/* One connection at a time, requests answered in order: what the path says is done.
 *   /echo   the request itself as the body        /big     64 KiB
 *   /404    status 404 with a body                /hang    no answer until the client goes
 *   /drop   the connection is closed              /cut     half of the promised body, then closed
 *   /sse/N  three events, sent in pieces of N bytes
 */
struct server {
    int fd;
    char url[64];
    pthread_t thread;
    int connections; /* read after the thread has ended */
    int requests;
};

static void send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t got = send(fd, p, n, MSG_NOSIGNAL);

        if (got <= 0)
            return;
        p += got;
        n -= (size_t)got;
    }
}

static void answer(int fd, int status, const char *type, const char *body, size_t n)
{
    char head[256];
    int len = snprintf(head, sizeof head,
                       "HTTP/1.1 %d Any\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", status,
                       type, n);

    send_all(fd, head, (size_t)len);
    send_all(fd, body, n);
}

static const char SSE_HEAD[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
static const char SSE_BODY[] =
    ": hi\n\nevent: step\ndata: {\"n\": 1}\n\ndata: two\r\ndata: lines\r\n\r\ndata: end\n\n";

/* Serve one request; false ends the connection. */
static int serve(int fd, const char *request, size_t n)
{
    static char big[65536];
    char path[64] = "";

    sscanf(request, "%*15s %63s", path);
    if (strcmp(path, "/echo") == 0 || strcmp(path, "/base/echo") == 0) {
        answer(fd, 200, "text/plain", request, n);
    } else if (strcmp(path, "/big") == 0) {
        memset(big, 'b', sizeof big);
        answer(fd, 200, "text/plain", big, sizeof big);
    } else if (strcmp(path, "/404") == 0) {
        answer(fd, 404, "application/problem+json", "{\"title\":\"no\"}", 14);
    } else if (strcmp(path, "/hang") == 0) {
        char c;

        while (recv(fd, &c, 1, 0) > 0) /* ends when the client gives up */
            ;
        return 0;
    } else if (strcmp(path, "/drop") == 0) {
        return 0;
    } else if (strcmp(path, "/cut") == 0) {
        send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", 44);
        return 0;
    } else if (strncmp(path, "/sse/", 5) == 0) {
        size_t step = (size_t)atoi(path + 5);

        send_all(fd, SSE_HEAD, sizeof SSE_HEAD - 1);
        for (size_t i = 0; i < sizeof SSE_BODY - 1; i += step)
            send_all(fd, SSE_BODY + i,
                     step < sizeof SSE_BODY - 1 - i ? step : sizeof SSE_BODY - 1 - i);
        return 0;
    } else {
        return 0;
    }
    return 1;
}

static void *server_main(void *arg)
{
    struct server *s = arg;

    for (;;) {
        char buf[8192];
        size_t n = 0;
        int one = 1, fd = accept(s->fd, NULL, NULL);

        if (fd < 0)
            return NULL; /* shut down */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        s->connections++;
        for (;;) {
            ssize_t got = recv(fd, buf + n, sizeof buf - 1 - n, 0);
            char *end, *length;
            size_t total;

            if (got <= 0)
                break;
            n += (size_t)got;
            buf[n] = '\0';
            end = strstr(buf, "\r\n\r\n");
            if (!end)
                continue;
            length = strstr(buf, "Content-Length: ");
            total = (size_t)(end + 4 - buf) + (length ? (size_t)atoi(length + 16) : 0);
            if (n < total)
                continue;
            s->requests++;
            if (!serve(fd, buf, total))
                break;
            n = 0;
        }
        close(fd);
    }
}

static int start(void **state)
{
    struct server *s = fr_xalloc(sizeof *s);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;

    *state = s;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(s->fd, 8) < 0 ||
        getsockname(s->fd, (struct sockaddr *)&a, &n) < 0)
        return -1;
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", ntohs(a.sin_port));
    return pthread_create(&s->thread, NULL, server_main, s);
}

static int stop(void **state)
{
    struct server *s = *state;

    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
    free(s);
    return 0;
}

static struct fr_http *client(const struct fr_http_options *opt)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_http *h = NULL;

    if (fr_http_new(opt, &h, &err) < 0)
        fail_msg("%s", err.text);
    return h;
}

static void requests_carry_method_body_type_and_token(void **state)
{
    struct server *s = *state;
    struct fr_http *h = client(&(struct fr_http_options){.base_url = s->url, .token = "geheim"});
    struct fr_buf reply = FR_BUF_INIT;

    assert_int_equal(fr_http_call(h, "POST", "/echo", "application/json", "{}", 2, &reply, NULL),
                     200);
    assert_memory_equal(fr_buf_str(&reply), "POST /echo HTTP/1.1\r\n", 21);
    assert_non_null(strstr(reply.p, "\r\nAuthorization: Bearer geheim\r\n"));
    assert_non_null(strstr(reply.p, "\r\nContent-Type: application/json\r\n"));
    assert_string_equal(reply.p + reply.len - 6, "\r\n\r\n{}");
    assert_int_equal(fr_http_call(h, "GET", "/echo", NULL, NULL, 0, &reply, NULL), 200);
    assert_memory_equal(fr_buf_str(&reply), "GET /echo HTTP/1.1\r\n", 20);
    assert_null(strstr(reply.p, "Content-Length")); /* nothing of the call before is left */
    assert_null(strstr(reply.p, "Content-Type"));
    assert_int_equal(fr_http_call(h, "DELETE", "/echo", NULL, NULL, 0, &reply, NULL), 200);
    assert_memory_equal(fr_buf_str(&reply), "DELETE /echo", 12);
    assert_int_equal(fr_http_call(h, "PUT", "/echo", NULL, NULL, 0, &reply, NULL), 200);
    assert_non_null(strstr(reply.p, "Content-Length: 0\r\n"));
    fr_http_free(h);
    fr_buf_fini(&reply);
}

static void calls_share_one_connection(void **state)
{
    struct server *s = *state;
    struct fr_http *h = client(&(struct fr_http_options){.base_url = s->url});
    struct fr_buf reply = FR_BUF_INIT;

    for (int i = 0; i < 20; i++)
        assert_int_equal(fr_http_call(h, i % 2 ? "GET" : "POST", "/echo", "text/plain", "x",
                                      i % 2 ? 0 : 1, &reply, NULL),
                         200);
    fr_http_free(h);
    fr_buf_fini(&reply);
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->requests, 20);
    assert_int_equal(s->connections, 1);
    pthread_create(&s->thread, NULL, server_main, s); /* for the teardown: ends at once */
}

static void a_status_that_is_no_success_comes_with_its_body(void **state)
{
    struct server *s = *state;
    struct fr_http *h = client(&(struct fr_http_options){.base_url = s->url});
    struct fr_buf reply = FR_BUF_INIT;

    assert_int_equal(fr_http_call(h, "GET", "/404", NULL, NULL, 0, &reply, NULL), 404);
    assert_string_equal(fr_buf_str(&reply), "{\"title\":\"no\"}");
    fr_http_free(h);
    fr_buf_fini(&reply);
}

static void a_missing_answer_is_told_by_its_reason(void **state)
{
    struct server *s = *state;
    struct fr_http *h =
        client(&(struct fr_http_options){.base_url = s->url, .timeout_s = 0.2, .token = "geheim"});
    struct fr_buf reply = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;

    assert_int_equal(fr_http_call(h, "GET", "/hang", NULL, NULL, 0, &reply, &err), -ETIMEDOUT);
    assert_non_null(strstr(err.text, "/hang"));
    assert_null(strstr(err.text, "geheim"));
    assert_int_equal(fr_http_call(h, "GET", "/drop", NULL, NULL, 0, &reply, &err), -ECONNRESET);
    assert_int_equal(fr_http_call(h, "GET", "/cut", NULL, NULL, 0, &reply, &err), -ECONNRESET);
    assert_int_equal(fr_http_call(h, "GET", "/echo", NULL, NULL, 0, &reply, &err),
                     200); /* and goes on */
    assert_int_equal(fr_http_call(h, "GET", "no-slash", NULL, NULL, 0, &reply, &err), -EINVAL);
    assert_int_equal(fr_http_call(h, "GET", "/a\r\nX: y", NULL, NULL, 0, &reply, &err), -EINVAL);
    fr_http_free(h);
    fr_buf_fini(&reply);
}

static void a_refused_connection_is_told(void **state)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM,
                    0); /* bound but not listening: nobody else gets the port meanwhile */
    struct fr_buf reply = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    socklen_t n = sizeof a;
    struct fr_http *h;
    char url[64];

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(a.sin_port));
    h = client(&(struct fr_http_options){.base_url = url});
    assert_int_equal(fr_http_call(h, "GET", "/", NULL, NULL, 0, &reply, &err), -ECONNREFUSED);
    assert_non_null(strstr(err.text, url));
    fr_http_free(h);
    fr_buf_fini(&reply);
    close(fd);
}

static void a_reply_beyond_the_limit_is_refused(void **state)
{
    struct server *s = *state;
    struct fr_http *h = client(&(struct fr_http_options){.base_url = s->url, .max_bytes = 65535});
    struct fr_http *wide =
        client(&(struct fr_http_options){.base_url = s->url, .max_bytes = 65536});
    struct fr_buf reply = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;

    assert_int_equal(fr_http_call(h, "GET", "/big", NULL, NULL, 0, &reply, &err), -EFBIG);
    fr_http_free(h);
    assert_int_equal(fr_http_call(wide, "GET", "/big", NULL, NULL, 0, &reply, &err), 200);
    assert_int_equal(reply.len, 65536);
    fr_http_free(wide);
    fr_buf_fini(&reply);
}

static int collect(const char *event, const char *data, size_t n, void *arg)
{
    struct fr_buf *out = arg;

    assert_int_equal(strlen(data), n);
    fr_buf_printf(out, "%s|%s;", event, data);
    return strcmp(data, "stop") == 0;
}

static int stop_at_first(const char *event, const char *data, size_t n, void *arg)
{
    (void)event;
    (void)data;
    (void)n;
    ++*(int *)arg;
    return 1;
}

static void events_come_out_whole_however_they_are_sent(void **state)
{
    static const size_t STEPS[] = {1, 2, 3, 5, 7, 11, 1000};
    struct server *s = *state;
    struct fr_http *h = client(&(struct fr_http_options){.base_url = s->url});
    struct fr_buf out = FR_BUF_INIT;
    int calls = 0;

    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        char path[32];

        snprintf(path, sizeof path, "/sse/%zu", STEPS[i]);
        fr_buf_reset(&out);
        assert_int_equal(fr_http_events(h, path, collect, &out, NULL), 200);
        assert_string_equal(fr_buf_str(&out), "step|{\"n\": 1};message|two\nlines;message|end;");
    }
    assert_int_equal(fr_http_events(h, "/sse/1", stop_at_first, &calls, NULL), 200);
    assert_int_equal(calls, 1);
    fr_buf_reset(&out);
    assert_int_equal(fr_http_events(h, "/404", collect, &out, NULL), 404);
    assert_string_equal(fr_buf_str(&out), "");
    fr_http_free(h);
    fr_buf_fini(&out);
}

static void a_wrong_address_is_refused_at_once(void **state)
{
    struct fr_http *h = NULL;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_int_equal(fr_http_new(&(struct fr_http_options){.base_url = "head:7880"}, &h, &err),
                     -EINVAL);
    assert_int_equal(fr_http_new(&(struct fr_http_options){.base_url = NULL}, &h, &err), -EINVAL);
    assert_int_equal(
        fr_http_new(&(struct fr_http_options){.base_url = "http://h", .token = "a\nb"}, &h, &err),
        -EINVAL);
    assert_null(h);
    fr_http_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_carry_method_body_type_and_token, start, stop),
        cmocka_unit_test_setup_teardown(calls_share_one_connection, start, stop),
        cmocka_unit_test_setup_teardown(a_status_that_is_no_success_comes_with_its_body, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_missing_answer_is_told_by_its_reason, start, stop),
        cmocka_unit_test(a_refused_connection_is_told),
        cmocka_unit_test_setup_teardown(a_reply_beyond_the_limit_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(events_come_out_whole_however_they_are_sent, start, stop),
        cmocka_unit_test(a_wrong_address_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
