/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_supervise.c - the supervisor with real processes against a small controller of the test's
 * own
 *
 * The controller is one thread with one connection at a time: it keeps the reports and answers with
 * what the case wants. The supervisor runs in a forked child that leads its session.
 */
#define _GNU_SOURCE 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "cli/supervise.h"
#include "wire/message.h"
#include "wire/supervise.pb-c.h"

#define LIMIT_S 40.0

static char dir[64];

/* --- the controller --- */

struct server {
    int listener, port;
    pthread_t thread;
    pthread_mutex_t lock;
    bool quit;
    /* newest report */
    Fullrank__AttemptState state;
    uint32_t attempt;
    uint64_t epoch, last_order, key;
    int32_t exit_code, exit_signal, dead_rank;
    char text[200];
    bool cancelled, finished;
    int reports;
    /* order to give, again and again as the protocol has it */
    uint64_t id;
    Fullrank__SuperviseOrder__What what;
    uint32_t o_attempt;
    uint64_t o_epoch;
    int o_code;
};

static struct server S = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void answer(const uint8_t *p, size_t n, struct fr_buf *out)
{
    Fullrank__SuperviseReport *r = fullrank__supervise_report__unpack(NULL, n, p);
    Fullrank__SuperviseOrder o = FULLRANK__SUPERVISE_ORDER__INIT;
    Fullrank__Placement place[2] = {FULLRANK__PLACEMENT__INIT, FULLRANK__PLACEMENT__INIT},
                        *places[2] = {&place[0], &place[1]};
    uint32_t ranks[2] = {0, 1};

    if (!r)
        return;
    pthread_mutex_lock(&S.lock);
    S.state = r->state;
    S.attempt = r->attempt;
    S.epoch = r->epoch;
    S.last_order = r->last_order;
    S.key = r->key;
    S.exit_code = r->exit_code;
    S.exit_signal = r->exit_signal;
    S.dead_rank = r->first_dead_rank;
    snprintf(S.text, sizeof S.text, "%s", r->exit_text);
    S.cancelled = r->cancelled;
    S.finished = r->finished;
    S.reports++;
    for (int i = 0; i < 2; i++) {
        place[i].node = (char *)(i ? "n1" : "n0");
        place[i].probe_dir = place[i].host = (char *)"";
        place[i].ranks = &ranks[i];
        place[i].n_ranks = 1;
    }
    o.job = (char *)"j-1";
    o.id = S.id;
    o.what = S.what;
    o.attempt = S.o_attempt;
    o.epoch = S.o_epoch;
    o.exit_code = S.o_code;
    o.placements = places;
    o.n_placements = 2;
    fr_message_pack(&o.base, out);
    pthread_mutex_unlock(&S.lock);
    fullrank__supervise_report__free_unpacked(r, NULL);
}

/* One request; false when the peer has gone. */
static bool serve_one(int fd)
{
    struct fr_buf in = FR_BUF_INIT, body = FR_BUF_INIT, out = FR_BUF_INIT;
    const char *end = NULL, *length;
    bool ok = false;
    size_t want = 0;

    for (;;) {
        ssize_t n = read(fd, fr_buf_room(&in, 4096), 4096);

        if (n <= 0)
            break;
        in.len += (size_t)n;
        in.p[in.len] = '\0';
        if (!end && (end = strstr(in.p, "\r\n\r\n"))) {
            length = strcasestr(in.p, "content-length:");
            want = (size_t)(end - in.p) + 4 + (length ? strtoul(length + 15, NULL, 10) : 0);
        }
        if (end && in.len >= want) {
            size_t head = (size_t)(strstr(in.p, "\r\n\r\n") - in.p) + 4;

            answer((const uint8_t *)in.p + head, want - head, &body);
            fr_buf_printf(&out,
                          "HTTP/1.1 200 OK\r\nContent-Type: "
                          "application/x-protobuf\r\nContent-Length: %zu\r\n\r\n",
                          body.len);
            fr_buf_add(&out, fr_buf_str(&body), body.len);
            ok = write(fd, out.p, out.len) == (ssize_t)out.len;
            break;
        }
    }
    fr_buf_fini(&in);
    fr_buf_fini(&body);
    fr_buf_fini(&out);
    return ok;
}

static bool quitting(void)
{
    bool quit;

    pthread_mutex_lock(&S.lock);
    quit = S.quit;
    pthread_mutex_unlock(&S.lock);
    return quit;
}

static void *serve(void *arg)
{
    int fd = -1;

    (void)arg;
    while (!quitting()) {
        struct pollfd p = {.fd = fd >= 0 ? fd : S.listener, .events = POLLIN};

        if (poll(&p, 1, 20) <= 0)
            continue;
        if (fd < 0) {
            fd = accept4(S.listener, NULL, NULL, SOCK_CLOEXEC);
        } else if (!serve_one(fd)) {
            close(fd);
            fd = -1;
        }
    }
    if (fd >= 0)
        close(fd);
    return NULL;
}

static void server_up(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                            .sin_port = htons((uint16_t)S.port)};
    socklen_t n = sizeof a;
    int one = 1;

    S.quit = false;
    S.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(S.listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(S.listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(S.listener, 8), 0);
    getsockname(S.listener, (struct sockaddr *)&a, &n);
    S.port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&S.thread, NULL, serve, NULL), 0);
}

static void server_down(void)
{
    pthread_mutex_lock(&S.lock);
    S.quit = true;
    pthread_mutex_unlock(&S.lock);
    pthread_join(S.thread, NULL);
    close(S.listener);
}

static void order(uint64_t id, Fullrank__SuperviseOrder__What what, uint32_t attempt,
                  uint64_t epoch, int code)
{
    pthread_mutex_lock(&S.lock);
    S.id = id;
    S.what = what;
    S.o_attempt = attempt;
    S.o_epoch = epoch;
    S.o_code = code;
    pthread_mutex_unlock(&S.lock);
}

/* Wait until the newest report satisfies it. */
#define AWAIT(what)                                                                                \
    do {                                                                                           \
        uint64_t until_ = fr_mono_ns() + (uint64_t)(LIMIT_S * 1e9);                                \
        bool ok_ = false;                                                                          \
        while (!ok_ && fr_mono_ns() < until_) {                                                    \
            pthread_mutex_lock(&S.lock);                                                           \
            ok_ = (what);                                                                          \
            pthread_mutex_unlock(&S.lock);                                                         \
            if (!ok_)                                                                              \
                poll(NULL, 0, 5);                                                                  \
        }                                                                                          \
        if (!ok_)                                                                                  \
            fail_msg("waited in vain for: %s", #what);                                             \
    } while (0)

/* --- the supervisor --- */

/* The program itself, in a session of its own. */
static pid_t start_supervisor(const char *script)
{
    char url[64];
    pid_t pid;

    snprintf(url, sizeof url, "http://127.0.0.1:%d", S.port);
    pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        setsid();
        alarm(120);
        if (chdir(dir) < 0)
            _exit(99);
        dup2(null, 2); /* mpirun's words on the end that we order */
        execl(FR_BUILD_DIR "/bin/fullrank", "fullrank", "supervise", "--server", url, "--state-dir",
              dir, "--name", "test", "--probe", "off", "--nodes", "2", "--quiet", "--", "sh", "-c",
              script, NULL);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static int code_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int lines_of(const char *name)
{
    struct fr_buf b = FR_BUF_INIT;
    char path[128];
    int n = 0;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fr_fs_read(path, 1u << 16, &b, NULL);
    for (size_t i = 0; i < b.len; i++)
        n += b.p[i] == '\n';
    fr_buf_fini(&b);
    return n;
}

static int set_up(void **state)
{
    int port = S.port;

    (void)state;
    (void)port;
    strcpy(dir, "/tmp/fullrank-test-sup-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    S.port = 0;
    S.reports = 0;
    S.finished = S.cancelled = false;
    S.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_NONE;
    S.attempt = 0;
    order(0, FULLRANK__SUPERVISE_ORDER__WHAT__NOTHING, 0, 0, 0);
    server_up();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    server_down();
    return fr_fs_remove_tree(dir, NULL);
}

static void an_order_that_is_repeated_is_done_once_and_the_exit_code_is_passed_on(void **state)
{
    pid_t pid = start_supervisor("echo here >> started; exit $((3 * (OMPI_COMM_WORLD_RANK == 1)))");
    struct fr_buf b = FR_BUF_INIT;
    struct fr_json *json;
    char path[128];
    int seen;

    (void)state;
    AWAIT(S.reports > 0);
    order(1, FULLRANK__SUPERVISE_ORDER__WHAT__START, 1, 1, 0);
    AWAIT(S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED && S.attempt == 1);
    assert_int_equal(S.exit_code, 3);
    assert_true(S.dead_rank == 1 ||
                S.dead_rank == -1); /* mpirun 4.1.4 leaves its word out now and then */
    assert_int_equal(S.last_order, 1);
    seen = S.reports;
    AWAIT(S.reports > seen + 3); /* START is still in every answer */
    assert_int_equal(S.attempt, 1);
    assert_int_equal(lines_of("started"), 2);
    order(2, FULLRANK__SUPERVISE_ORDER__WHAT__FINISH, 0, 0, 3);
    assert_int_equal(code_of(pid), 3);
    AWAIT(S.finished);

    snprintf(path, sizeof path, "%s/supervise.json", dir); /* the exit status is on disk */
    assert_int_equal(fr_fs_read(path, 1u << 16, &b, NULL), 0);
    assert_int_equal(fr_json_parse(b.p, b.len, &json, NULL), 0);
    assert_int_equal(fr_json_int(json, "exit_code", -1), 3);
    assert_int_equal(fr_json_int(json, "last_order", -1), 2);
    assert_int_equal(fr_json_int(json, "exit", -1), 3);
    fr_json_free(json);
    fr_buf_fini(&b);
}

static void
a_killed_rank_is_reported_by_the_launchers_word_and_the_next_attempt_starts(void **state)
{
    pid_t pid = start_supervisor("test $FULLRANK_ATTEMPT = 2 && exit 0; test $OMPI_COMM_WORLD_RANK "
                                 "= 1 && kill -9 $$; sleep 300");

    (void)state;
    order(1, FULLRANK__SUPERVISE_ORDER__WHAT__START, 1, 1, 0);
    AWAIT(S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED && S.attempt == 1);
    assert_true(S.dead_rank == 1 || S.dead_rank == -1);
    assert_int_equal(S.exit_signal, S.dead_rank == 1 ? 9 : S.exit_signal);
    order(2, FULLRANK__SUPERVISE_ORDER__WHAT__START, 2, 2, 0);
    AWAIT(S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED && S.attempt == 2);
    assert_int_equal(S.exit_code, 0);
    order(3, FULLRANK__SUPERVISE_ORDER__WHAT__FINISH, 0, 0, 0);
    assert_int_equal(code_of(pid), 0);
}

static void a_stop_ends_the_attempt_and_one_of_an_old_epoch_does_not(void **state)
{
    pid_t pid = start_supervisor("echo here >> started; sleep 300");
    int seen;

    (void)state;
    order(1, FULLRANK__SUPERVISE_ORDER__WHAT__START, 1, 5, 0);
    AWAIT(S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING);
    order(2, FULLRANK__SUPERVISE_ORDER__WHAT__STOP, 1, 4, 0);
    AWAIT(S.last_order == 2);
    seen = S.reports;
    AWAIT(S.reports > seen + 3);
    assert_int_equal(S.state, FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING);
    order(3, FULLRANK__SUPERVISE_ORDER__WHAT__STOP, 1, 5, 0);
    AWAIT(S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED);
    order(4, FULLRANK__SUPERVISE_ORDER__WHAT__FINISH, 0, 0, 9);
    assert_int_equal(code_of(pid), 9);
}

static void a_job_runs_on_while_the_controller_is_away_and_is_adopted_again(void **state)
{
    pid_t pid = start_supervisor("while test ! -e go; do sleep 0.05; done; exit 0");
    uint64_t key;
    char path[128];

    (void)state;
    order(1, FULLRANK__SUPERVISE_ORDER__WHAT__START, 1, 1, 0);
    AWAIT(S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING);
    key = S.key;
    server_down();
    poll(NULL, 0, 500);
    snprintf(path, sizeof path, "%s/go", dir);
    assert_int_equal(fr_fs_write_atomic(path, "", 0, 0600, NULL),
                     0); /* the attempt ends while nobody answers */
    poll(NULL, 0, 1000);
    assert_int_equal(kill(pid, 0), 0);
    S.reports = 0;
    server_up();
    AWAIT(S.reports > 0 && S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED);
    assert_int_equal(S.key, key);
    assert_int_equal(S.attempt, 1);
    assert_int_equal(S.exit_code, 0);
    order(2, FULLRANK__SUPERVISE_ORDER__WHAT__FINISH, 0, 0, 0);
    assert_int_equal(code_of(pid), 0);
}

static void sigterm_cancels_ends_the_attempt_and_says_so(void **state)
{
    pid_t pid = start_supervisor("trap '' TERM INT; sleep 300");

    (void)state;
    order(1, FULLRANK__SUPERVISE_ORDER__WHAT__START, 1, 1, 0);
    AWAIT(S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING);
    kill(pid, SIGTERM);
    assert_int_equal(code_of(pid), 128 + SIGTERM);
    AWAIT(S.cancelled && S.finished && S.state == FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            an_order_that_is_repeated_is_done_once_and_the_exit_code_is_passed_on, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(
            a_killed_rank_is_reported_by_the_launchers_word_and_the_next_attempt_starts, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(a_stop_ends_the_attempt_and_one_of_an_old_epoch_does_not,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_job_runs_on_while_the_controller_is_away_and_is_adopted_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sigterm_cancels_ends_the_attempt_and_says_so, set_up,
                                        tear_down),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
