/* SPDX-License-Identifier: Apache-2.0 */
/* test_process.c - the real program on loopback with a simulated fleet: kill -9, full disk,
 * refusals, streams */
#define _GNU_SOURCE /* prlimit */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/http.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/xalloc.h"
#include "helper_fleet.h"
#include "wire/message.h"

struct proc {
    char dir[64], token[128], base[64];
    pid_t pid;
    unsigned port;
    struct fr_http *http;
};

static void
pause_ms(unsigned ms) /* between two looks at a condition or two moments of a simulation */
{
    poll(NULL, 0, (int)ms);
}

/* The program with these extra arguments; its standard error goes to DIR/log. */
static pid_t spawn(const char *dir, const char *const extra[], rlim_t file_bytes)
{
    char log[128], state[96], port_file[96];
    const char *argv[32] = {FR_BUILD_DIR "/bin/fullrank-controller", "--state", state,
                            "--port-file", port_file};
    int n = 5;
    pid_t pid;

    snprintf(log, sizeof log, "%s/log", dir);
    snprintf(state, sizeof state, "%s/state", dir);
    snprintf(port_file, sizeof port_file, "%s/port", dir);
    while (*extra)
        argv[n++] = *extra++;
    argv[n] = NULL;
    pid = fork();
    if (pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        struct rlimit r = {file_bytes, RLIM_INFINITY};

        dup2(fd, 2);
        if (file_bytes)
            setrlimit(RLIMIT_FSIZE, &r);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(126);
    }
    assert_true(pid > 0);
    return pid;
}

static void start(struct proc *p, rlim_t file_bytes)
{
    char path[96], listen[32];
    const char *extra[] = {"--listen", listen, "--mode", "act", NULL};
    struct fr_http_options opt = {.base_url = p->base, .token = p->token, .timeout_s = 3};
    struct fr_err err = FR_ERR_INIT;

    snprintf(listen, sizeof listen, "127.0.0.1:%u", p->port);
    snprintf(path, sizeof path, "%s/port", p->dir);
    unlink(path);
    p->pid = spawn(p->dir, extra, file_bytes);
    for (int k = 0;; k++) {
        struct fr_buf b = FR_BUF_INIT;

        if (fr_fs_read(path, 16, &b, NULL) == 0 && b.len > 0) {
            p->port = (unsigned)atoi(fr_buf_str(&b));
            fr_buf_fini(&b);
            break;
        }
        fr_buf_fini(&b);
        if (waitpid(p->pid, NULL, WNOHANG) == p->pid)
            fail_msg("the controller ended at its start; see %s/log", p->dir);
        assert_true(k < 1000);
        pause_ms(10);
    }
    snprintf(path, sizeof path, "%s/state/token", p->dir);
    if (fr_fs_token(path, 0, p->token, sizeof p->token, &err))
        fail_msg("%s", err.text);
    snprintf(p->base, sizeof p->base, "http://127.0.0.1:%u", p->port);
    assert_int_equal(fr_http_new(&opt, &p->http, &err), 0);
}

static int stop(struct proc *p, int sig)
{
    int status = 0;

    fr_http_free(p->http);
    p->http = NULL;
    kill(p->pid, sig);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    return status;
}

static int setup(void **state)
{
    struct proc *p = fr_xalloc(sizeof *p);

    snprintf(p->dir, sizeof p->dir, "/tmp/fr-process-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct proc *p = *state;

    if (p->http)
        stop(p, SIGKILL);
    fr_fs_remove_tree(p->dir, NULL);
    free(p);
    return 0;
}

static int get(struct proc *p, const char *path, struct fr_buf *reply)
{
    return fr_http_call(p->http, "GET", path, NULL, NULL, 0, reply, NULL);
}

/* --- the simulated fleet over HTTP --- */

static int post(void *arg, bool supervise, const struct fr_buf *body, struct fr_buf *reply)
{
    struct proc *p = arg;

    if (!p->http)
        return -ECONNREFUSED;
    return fr_http_call(p->http, "POST", supervise ? "/api/v1/supervise" : "/api/v1/agent/report",
                        FR_MESSAGE_TYPE, body->p, body->len, reply, NULL);
}

static void begin_fleet(struct sim *s, struct proc *p, uint64_t steps)
{
    sim_init(s, 5, 4, 2, steps);
    s->post = post;
    s->arg = p;
    s->unix_offset_ns = fr_unix_ns() - (int64_t)fr_mono_ns();
    s->step_ns = 20000000;
}

static void run_for(struct sim *s, double seconds)
{
    uint64_t until = fr_mono_ns() + (uint64_t)(seconds * 1e9);

    while (fr_mono_ns() < until) {
        sim_run(s, fr_mono_ns());
        pause_ms(10);
    }
}

static void run_to_step(struct sim *s, uint64_t step)
{
    uint64_t limit = fr_mono_ns() + 30000000000ull;

    while (s->step < step) {
        assert_true(fr_mono_ns() < limit);
        sim_run(s, fr_mono_ns());
        pause_ms(10);
    }
}

static void run_to_end(struct sim *s)
{
    uint64_t limit = fr_mono_ns() + 60000000000ull;

    while (!s->finished) {
        if (fr_mono_ns() > limit)
            fail_msg("the job did not end: step %llu, epoch %llu, state %u, %s",
                     (unsigned long long)s->step, (unsigned long long)s->epoch, s->state, s->error);
        sim_run(s, fr_mono_ns());
        pause_ms(10);
    }
}

static void check_end(struct proc *p, const struct sim *s, const char *node, unsigned stops)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_json *root = NULL;
    const struct fr_json *items, *goodput;
    unsigned isolated = 0;
    double sum = 0;

    assert_int_equal(s->finish_code, 0);
    assert_string_equal(s->error, "");
    assert_int_equal(s->starts[1], 1);
    assert_int_equal(s->starts[2], 1);
    assert_int_equal(s->starts[3], 0);
    assert_true(s->stops[1] <= stops);
    assert_int_equal(s->old_orders, 0);
    assert_int_equal(get(p, "/api/v1/decisions?job=j1", &b), 200);
    assert_int_equal(fr_json_parse(b.p, b.len, &root, NULL), 0);
    items = fr_json_get(root, "items");
    for (size_t i = 0; i < fr_json_len(items); i++) {
        const struct fr_json *d = fr_json_at(items, i), *actions = fr_json_get(d, "actions");

        if (strcmp(fr_json_str(d, "choice", ""), "isolate") != 0)
            continue;
        isolated++;
        assert_string_equal(fr_json_str(d, "node", ""), node);
        for (size_t k = 0; k < fr_json_len(actions); k++)
            assert_string_equal(fr_json_str(fr_json_at(actions, k), "state", ""), "done");
    }
    assert_int_equal(isolated, 1);
    fr_json_free(root);
    assert_int_equal(get(p, "/api/v1/jobs/j1", &b), 200);
    assert_int_equal(fr_json_parse(b.p, b.len, &root, NULL), 0);
    assert_string_equal(fr_json_str(root, "state", ""), "done");
    goodput = fr_json_get(root, "goodput");
    items = fr_json_get(goodput, "buckets");
    for (size_t i = 0; i < fr_json_len(items); i++)
        sum += fr_json_num(fr_json_at(items, i), "seconds", 0);
    assert_true(fabs(fr_json_num(goodput, "wall_s", 0) - sum) < 1e-3);
    assert_true(fr_json_num(goodput, "error_s", 1) == 0);
    fr_json_free(root);
    fr_buf_fini(&b);
}

static void kill_9_of_the_controller_at_any_moment_leads_to_the_same_end(void **state)
{
    struct proc *p = *state;
    struct fr_rng rng = {20260301};

    for (int k = 0; k < 5; k++) {
        struct sim s;
        double moment = 3.0 * fr_rng_unit(&rng);

        print_message("kill -9 %.2f s after the fault\n", moment);
        start(p, 0);
        begin_fleet(&s, p, 150);
        run_to_step(&s, 30);
        sim_inject(&s, k % 2 ? SIM_KILL : SIM_STOP, 5);
        run_for(&s, moment);
        stop(p, SIGKILL);
        run_for(&s, 0.3);
        start(p, 0);
        run_to_end(&s);
        check_end(p, &s, "n3", 1);
        stop(p, SIGTERM);
        p->port = 0;
        fr_fs_remove_tree(p->dir, NULL);
        assert_int_equal(fr_fs_mkdirs(p->dir, 0700, NULL), 0);
    }
}

/* --- refusals --- */

static void expect_refusal(struct proc *p, const char *const extra[], const char *word)
{
    struct fr_buf b = FR_BUF_INIT;
    char path[96];
    int status;
    pid_t pid;

    snprintf(path, sizeof path, "%s/log", p->dir);
    unlink(path);
    pid = spawn(p->dir, extra, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_int_equal(fr_fs_read(path, 4096, &b, NULL), 0);
    assert_non_null(strstr(fr_buf_str(&b), "fullrank-controller: error: "));
    if (!strstr(fr_buf_str(&b), word))
        fail_msg("\"%s\" does not say \"%s\"", fr_buf_str(&b), word);
    assert_ptr_equal(strchr(fr_buf_str(&b), '\n'), b.p + b.len - 1); /* one line */
    fr_buf_fini(&b);
}

static void a_second_controller_on_the_same_port_or_state_is_refused_in_one_line(void **state)
{
    struct proc *p = *state;
    char listen[32], other[96];
    const char *same_state[] = {"--listen", "127.0.0.1:0", NULL};
    const char *same_port[] = {"--listen", listen, "--state", other, NULL};

    start(p, 0);
    snprintf(listen, sizeof listen, "127.0.0.1:%u", p->port);
    snprintf(other, sizeof other, "%s/other", p->dir);
    expect_refusal(p, same_state, "in use by pid");
    expect_refusal(p, same_port, "in use");
    assert_int_equal(WEXITSTATUS(stop(p, SIGTERM)), 0);
}

static void another_address_than_loopback_is_refused_without_tls_and_token(void **state)
{
    struct proc *p = *state;
    const char *far[] = {"--listen", "0.0.0.0:0", NULL};
    const char *far6[] = {"--listen", "[::]:0", NULL};
    const char *bad[] = {"--listen", "nonsense", NULL};

    expect_refusal(p, far, "other machines could reach it");
    expect_refusal(p, far6, "other machines could reach it");
    expect_refusal(p, bad, "HOST:PORT");
}

static int raw(struct proc *p, const char *request, char *reply, size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)p->port)};
    struct pollfd pf;
    size_t got = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    pf = (struct pollfd){.fd = fd, .events = POLLIN};
    while (reply && got < n - 1 && poll(&pf, 1, 1500) > 0) {
        ssize_t k = recv(fd, reply + got, n - 1 - got, 0);

        if (k <= 0)
            break;
        got += (size_t)k;
    }
    if (reply)
        reply[got] = '\0';
    return fd;
}

static void what_changes_something_needs_the_token_and_a_local_name(void **state)
{
    struct proc *p = *state;
    static const char *const PATHS[] = {"/api/v1/nodes/n1/drain", "/api/v1/nodes/n1/resume",
                                        "/api/v1/incidents/1/ack", "/api/v1/agent/report",
                                        "/api/v1/supervise"};
    char request[512], reply[4096];

    start(p, 0);
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++)
        for (int with = 0; with < 2; with++) {
            snprintf(request, sizeof request,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: "
                     "2\r\n%s%s%s\r\n{}",
                     PATHS[i], with ? "Authorization: Bearer " : "", with ? "wrong" : "",
                     with ? "\r\n" : "");
            close(raw(p, request, reply, sizeof reply));
            assert_non_null(strstr(reply, "401 Unauthorized"));
            assert_null(strstr(reply, p->token));
        }
    close(raw(p, "GET /api/v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
              reply, sizeof reply));
    assert_non_null(strstr(reply, "403"));
    close(raw(
        p, "GET /web/..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        reply, sizeof reply));
    assert_non_null(strstr(reply, "404"));
    close(raw(p, "DELETE /api/v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
              reply, sizeof reply));
    assert_non_null(strstr(reply, "405"));
    snprintf(request, sizeof request,
             "POST /api/v1/agent/report HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
             "%s\r\nContent-Length: 99999999999\r\n\r\n",
             p->token);
    close(raw(p, request, reply, sizeof reply));
    assert_non_null(strstr(reply, "413"));
    close(raw(p, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", reply,
              sizeof reply));
    assert_non_null(strstr(reply, "default-src 'none'"));
    assert_non_null(strstr(reply, "200 OK"));
}

static void a_person_sees_at_once_what_a_person_changed(void **state)
{
    static const char BODY[] = "{\"actor\":\"ann\",\"reason\":\"fan\"}";
    struct proc *p = *state;
    struct fr_buf before = FR_BUF_INIT, answer = FR_BUF_INIT, after = FR_BUF_INIT;
    struct sim s;

    start(p, 0);
    begin_fleet(&s, p, 1000);
    run_for(&s, 0.3);
    assert_int_equal(get(p, "/api/v1/nodes", &before), 200); /* is kept for other readers */
    assert_non_null(strstr(fr_buf_str(&before), "\"healthy\""));
    assert_null(strstr(fr_buf_str(&before), "fan"));
    assert_int_equal(fr_http_call(p->http, "POST", "/api/v1/nodes/n5/drain", "application/json",
                                  BODY, sizeof BODY - 1, &answer, NULL),
                     200);
    assert_int_equal(get(p, "/api/v1/nodes", &after), 200);
    assert_non_null(strstr(fr_buf_str(&after), "fan"));
    fr_buf_fini(&before);
    fr_buf_fini(&answer);
    fr_buf_fini(&after);
}

/* --- streams --- */

static unsigned long long first_id(const char *text)
{
    const char *p = strstr(text, "\nid: ");

    return p ? strtoull(p + 5, NULL, 10) : 0;
}

static void the_event_stream_resumes_behind_the_last_event(void **state)
{
    struct proc *p = *state;
    char reply[8192], request[256];
    unsigned long long id, next;
    struct sim s;

    start(p, 0);
    begin_fleet(&s, p, 100);
    run_to_step(&s, 10);
    close(raw(p, "GET /api/v1/events?last_event_id=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", reply,
              sizeof reply));
    id = first_id(reply);
    assert_true(id > 1000000000000ull); /* numbers go on over restarts */
    snprintf(request, sizeof request,
             "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: %llu\r\n\r\n", id);
    close(raw(p, request, reply, sizeof reply));
    next = first_id(reply);
    assert_int_equal(next, id + 1);
    close(raw(p,
              "GET /api/v1/events?topics=step&last_event_id=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
              reply, sizeof reply));
    assert_non_null(strstr(reply, "event: step"));
    assert_null(strstr(reply, "event: node"));
}

static uint64_t rss_bytes(struct proc *p)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_json *root = NULL;
    uint64_t v;

    assert_int_equal(get(p, "/api/v1/status", &b), 200);
    assert_int_equal(fr_json_parse(b.p, b.len, &root, NULL), 0);
    v = (uint64_t)fr_json_num(fr_json_get(root, "controller"), "rss_bytes", 0);
    fr_json_free(root);
    fr_buf_fini(&b);
    return v;
}

static void fifty_readers_that_never_read_cost_bounded_memory_and_do_not_delay_the_end(void **state)
{
    struct proc *p = *state;
    uint64_t before, began;
    int fds[50];
    struct sim s;

    start(p, 0);
    begin_fleet(&s, p, 100000);
    s.step_ns = 1000000; /* a thousand events a second */
    run_to_step(&s, 100);
    before = rss_bytes(p);
    for (int i = 0; i < 50; i++)
        fds[i] = raw(p, "GET /api/v1/events?last_event_id=1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     NULL, 0);
    run_for(&s, 4);
    assert_true(rss_bytes(p) < before + (64u << 20));
    began = fr_mono_ns();
    assert_int_equal(stop(p, SIGTERM), 0);
    assert_true(fr_mono_ns() - began < 2000000000ull);
    for (int i = 0; i < 50; i++)
        close(fds[i]);
}

/* --- a ledger that cannot be written --- */

static void a_full_disk_is_said_the_job_goes_on_and_nothing_unrecorded_is_done(void **state)
{
    struct proc *p = *state;
    struct fr_buf b = FR_BUF_INIT;
    struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    uint64_t limit, step, acked;
    struct sim s;
    int status = 200;

    start(p, 300000);
    begin_fleet(&s, p, 3000);
    s.step_ns = 5000000;
    limit = fr_mono_ns() + 30000000000ull;
    while (status != 503) {
        assert_true(fr_mono_ns() < limit);
        run_for(&s, 0.2);
        status = get(p, "/readyz", &b);
        if (s.nodes[0].seq < 3 || !s.epoch)
            status = 200; /* not ready yet for want of agents */
    }
    assert_non_null(strstr(fr_buf_str(&b), "the ledger cannot be written"));
    acked = s.nodes[0].acked;
    step = s.step;
    sim_inject(&s, SIM_STOP, 5);
    run_for(&s, 3);
    assert_true(s.step >= step);
    assert_int_equal(s.stops[1], 0); /* known, but not to be recorded: not acted on */
    assert_int_equal(s.nodes[0].acked, acked);
    assert_int_equal(prlimit(p->pid, RLIMIT_FSIZE, &all, NULL), 0); /* there is room again */
    run_to_end(&s);
    check_end(p, &s, "n3", 1);
    fr_buf_fini(&b);
}

#define PROCESS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROCESS_TEST(a_second_controller_on_the_same_port_or_state_is_refused_in_one_line),
        PROCESS_TEST(another_address_than_loopback_is_refused_without_tls_and_token),
        PROCESS_TEST(what_changes_something_needs_the_token_and_a_local_name),
        PROCESS_TEST(a_person_sees_at_once_what_a_person_changed),
        PROCESS_TEST(the_event_stream_resumes_behind_the_last_event),
        PROCESS_TEST(fifty_readers_that_never_read_cost_bounded_memory_and_do_not_delay_the_end),
        PROCESS_TEST(a_full_disk_is_said_the_job_goes_on_and_nothing_unrecorded_is_done),
        PROCESS_TEST(kill_9_of_the_controller_at_any_moment_leads_to_the_same_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
