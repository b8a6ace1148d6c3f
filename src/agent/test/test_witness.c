/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_witness.c - RAS and the Flight Recorder beside a rank: real sockets, pipes and files, a real
 * agent
 *
 * The rank is this program once more (--rank), so that it has an environment of its own; what
 * listens in it is a FAKE of RAS (helper_ras.h), and what answers its pipe is a fake of PyTorch's
 * recorder (below).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/ras.h"
#include "agent/recorder.h"
#include "base/clock.h"
#include "base/fs.h"
#include "helper_ras.h"
#include "helper_receiver.h"
#include "helper_writer.h"
#include "sense/proc/process.h"

#define LIMIT_S    20
#define DUMP_BYTES 700000u

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        uint64_t end_ = fr_mono_ns() + LIMIT_S * 1000000000ull;                                    \
        while (!(condition)) {                                                                     \
            if (fr_mono_ns() > end_)                                                               \
                fail_msg("waited %d s in vain for: %s", LIMIT_S, #condition);                      \
            usleep(5000);                                                                          \
        }                                                                                          \
    } while (0)

/* --- the rank --- */

static char dump_byte(size_t i)
{
    return (char)(i * 2654435761u >> 13);
}

static void write_dump(const char *path)
{
    FILE *f = fopen(path, "w");

    if (!f)
        abort();
    for (size_t i = 0; i < DUMP_BYTES; i++)
        fputc(dump_byte(i), f);
    fclose(f);
}

/* A FAKE of PyTorch's recorder: makes the pipe, looks at it now and then, writes the file. */
static void record_for_ever(void)
{
    char path[600], buf[16];
    int fd = -1;

    if (getenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")) {
        snprintf(path, sizeof path, "%s%s.pipe", getenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE"),
                 getenv("RANK"));
        if (mkfifo(path, 0666) != 0)
            abort();
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    }
    snprintf(path, sizeof path, "%s/ready", getenv("TEST_DIR"));
    if (close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) != 0)
        abort();
    for (;; poll(NULL, 0, 50))
        if (fd >= 0 && read(fd, buf, sizeof buf) > 0) {
            snprintf(path, sizeof path, "%s%s", getenv("TORCH_FR_DUMP_TEMP_FILE"), getenv("RANK"));
            write_dump(path);
        }
}

static int be_rank(char **argv)
{
    static char json[1200];
    const struct writer_claims honest = {"job-1", 2, 7, 3, 8};
    struct writer w;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argv[2][0]) {
        writer_open(&w, argv[2], &honest, 0, 1, 64);
        writer_comm(&w, 0, 0x1111, 8, 3, "world");
    }
    snprintf(
        json, sizeof json,
        "{\"communicators\":[{\"hash\":\"0x77\",\"size\":3,\"ranks\":["
        "{\"rank\":0,\"host\":\"10.9.8.6\",\"pid\":99,\"collective_counts\":{\"AllReduce\":9}},"
        "{\"rank\":1,\"host\":\"127.0.0.1\",\"pid\":%d,\"collective_counts\":{\"AllReduce\":7}}],"
        "\"missing_ranks\":[{\"rank\":2,\"host\":\"10.9.8.7\",\"pid\":4242,\"status\":"
        "{\"unresponsive\":true,\"considered_dead\":true}}]}]}",
        (int)getpid());
    if (argv[3][0])
        fake_ras_start_on(atoi(argv[3]), FAKE_RAS_MODERN, json, "");
    record_for_ever();
    return 0;
}

struct rank {
    char dir[64];
    pid_t pid;
    uint64_t starttime;
};

/* Start one with up to six variables ("NAME=%s/value", the folder is put in) and wait until it is
 * ready. */
static void rank_start(struct rank *r, const char *probe, int ras_fd, const char *const *env)
{
    static char text[8][256];
    char *e[9], number[12] = "", ready[80];
    struct fr_proc_stat st;
    size_t n = 0;

    snprintf(r->dir, sizeof r->dir, "/tmp/fr-test-witness-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(text[n], sizeof text[n], "TEST_DIR=%s", r->dir);
    e[n] = text[n];
    n++;
    for (; *env; env++, n++) {
        const char *slash = strchr(*env, '%');

        if (slash)
            snprintf(text[n], sizeof text[n], "%.*s%s%s", (int)(slash - *env), *env, r->dir,
                     slash + 2);
        else
            snprintf(text[n], sizeof text[n], "%s", *env);
        e[n] = text[n];
    }
    e[n] = NULL;
    if (ras_fd >= 0)
        snprintf(number, sizeof number, "%d", ras_fd);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        if (ras_fd >= 0)
            fcntl(ras_fd, F_SETFD, 0);
        execle("/proc/self/exe", "rank", "--rank", probe ? probe : "", number, NULL, e);
        _exit(127);
    }
    snprintf(ready, sizeof ready, "%s/ready", r->dir);
    WAIT_FOR(access(ready, F_OK) == 0);
    assert_int_equal(fr_proc_stat_read("", (uint32_t)r->pid, &st), 0);
    r->starttime = st.starttime;
}

static void rank_end(struct rank *r)
{
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    fr_fs_remove_tree(r->dir, NULL);
}

/* --- questions to RAS --- */

static const char JSON[] = "{\"communicators\":[{\"hash\":\"0x77\",\"size\":1,\"ranks\":[],"
                           "\"missing_ranks\":[{\"rank\":0,\"host\":\"h\",\"pid\":7,\"status\":"
                           "{\"unresponsive\":true,\"considered_dead\":true}}]}]}\n";
static const char TEXT[] = "Errors\n======\n\nDEAD\n  1 job process is considered dead\n"
                           "  Process 8 on node h managing GPU 5\n\nWarnings\n========\n\n";

static int query(enum fake_ras_manner manner, struct fr_ras_answer *a, struct fr_err *err,
                 double *ret_s)
{
    static const struct fr_ras_limits SHORT = {0.3, 0.6, 1u << 20};
    struct fake_ras *f = fake_ras_start(manner, JSON, TEXT);
    struct fr_ras_place at = {.port = fake_ras_port(f)};
    struct fr_ras_rank self = {(uint32_t)getpid(), 0};
    struct fr_proc_stat st;
    uint64_t began = fr_mono_ns();
    int rc;

    assert_int_equal(fr_proc_stat_read("", self.pid, &st), 0);
    self.starttime = st.starttime;
    rc = fr_ras_query(&at, &self, 1, &SHORT, a, err);
    *ret_s = (double)(fr_mono_ns() - began) * 1e-9;
    fake_ras_stop(f);
    return rc;
}

static void json_is_taken_where_it_is_offered_and_text_otherwise(void **state)
{
    static struct fr_ras_answer a;
    struct fr_err err = FR_ERR_INIT;
    double s;

    (void)state;
    assert_int_equal(query(FAKE_RAS_MODERN, &a, &err, &s), 0);
    assert_true(a.json);
    assert_int_equal(a.owner, getpid());
    assert_int_equal(a.report.nfacts, 1);
    assert_int_equal(a.report.facts[0].pid, 7);
    assert_int_equal(a.kept.len, sizeof JSON - 1);
    assert_memory_equal(a.kept.p, JSON, sizeof JSON - 1);
    fr_ras_answer_fini(&a);
    assert_int_equal(query(FAKE_RAS_OLD, &a, &err, &s), 0);
    assert_false(a.json);
    assert_int_equal(a.report.nfacts, 1);
    assert_int_equal(a.report.facts[0].pid, 8);
    fr_ras_answer_fini(&a);
}

static void whoever_answers_badly_is_given_up_in_time_with_a_sentence(void **state)
{
    static const enum fake_ras_manner BAD[] = {FAKE_RAS_MUTE,     FAKE_RAS_HANGS,
                                               FAKE_RAS_DRIPS,    FAKE_RAS_FLOODS,
                                               FAKE_RAS_HANGS_UP, FAKE_RAS_STRANGER};
    static struct fr_ras_answer a;

    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        struct fr_err err = FR_ERR_INIT;
        double s;

        assert_true(query(BAD[i], &a, &err, &s) < 0);
        assert_true(err.text[0] != '\0');
        assert_true(s < 5); /* limits of 0.3 and 0.6 s, and a busy machine */
    }
}

/* "localhost" may mean ::1 alone. */
static void who_listens_at_the_other_loopback_is_found_too(void **state)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct fr_ras_rank self = {(uint32_t)getpid(), 0};
    struct fr_err err = FR_ERR_INIT;
    static struct fr_ras_answer a;
    struct fr_ras_place at = {0};
    socklen_t n = sizeof to;
    struct fr_proc_stat st;
    struct fake_ras *f;

    (void)state;
    if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        if (fd >= 0)
            close(fd);
        print_message("this machine has no IPv6 loopback\n");
        skip();
    }
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &n), 0);
    at.port = ntohs(to.sin6_port);
    f = fake_ras_start_on(fd, FAKE_RAS_MODERN, JSON, TEXT);
    assert_int_equal(fr_proc_stat_read("", self.pid, &st), 0);
    self.starttime = st.starttime;
    assert_int_equal(fr_ras_query(&at, &self, 1, &FR_RAS_LIMITS, &a, &err), 0);
    assert_int_equal(a.report.nfacts, 1);
    fr_ras_answer_fini(&a);
    fake_ras_stop(f);
}

static void where_nobody_or_a_stranger_listens_no_connection_is_made(void **state)
{
    struct fake_ras *f = fake_ras_start(FAKE_RAS_MODERN, JSON, TEXT);
    struct fr_ras_place at = {.port = fake_ras_port(f)};
    struct fr_ras_rank init = {1, 0};
    static struct fr_ras_answer a;
    struct fr_err err = FR_ERR_INIT;

    (void)state;
    assert_int_equal(fr_ras_query(&at, &init, 1, &FR_RAS_LIMITS, &a, &err), -EPERM);
    assert_int_equal(fake_ras_asked(f), 0);
    fake_ras_stop(f);
    assert_int_equal(fr_ras_query(&at, &init, 1, &FR_RAS_LIMITS, &a, &err), -ENOENT);
}

/* --- the recorder --- */

static const char *const TORCH[] = {"RANK=5", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=%s/trigger_",
                                    "TORCH_FR_DUMP_TEMP_FILE=%s/dump_", NULL};

static void a_dump_is_asked_for_through_the_pipe_and_read_when_it_is_whole(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_recorder r;
    struct rank rank;
    const char *file;

    (void)state;
    rank_start(&rank, NULL, -1, TORCH);
    assert_int_equal(fr_recorder_init(&r, (uint32_t)rank.pid, getuid(), rank.starttime, 99), 0);
    assert_int_equal(r.rank, 5); /* the environment's, as PyTorch takes it */
    assert_int_equal(fr_recorder_read(&r, SIZE_MAX, &b, &file), -ENOENT);
    assert_int_equal(fr_recorder_trigger(&r), 0);
    WAIT_FOR(fr_recorder_ready(&r));
    assert_int_equal(fr_recorder_read(&r, SIZE_MAX, &b, &file), DUMP_BYTES);
    assert_int_equal(b.len, DUMP_BYTES);
    for (size_t i = 0; i < DUMP_BYTES; i++)
        if (b.p[i] != dump_byte(i))
            fail_msg("byte %zu differs", i);
    fr_buf_reset(&b);
    assert_int_equal(fr_recorder_read(&r, 1000, &b, &file), DUMP_BYTES); /* cut */
    assert_int_equal(b.len, 1000);
    fr_recorder_fini(&r);
    fr_buf_fini(&b);
    rank_end(&rank);
}

static void a_rank_that_is_gone_left_its_dump_where_its_neighbours_would(void **state)
{
    struct fr_buf b = FR_BUF_INIT;
    struct fr_recorder r, gone;
    char path[128];
    struct rank rank;
    const char *file;

    (void)state;
    rank_start(&rank, NULL, -1, TORCH);
    assert_int_equal(fr_recorder_init(&r, (uint32_t)rank.pid, getuid(), rank.starttime, 5), 0);
    assert_int_equal(fr_recorder_init_like(&gone, &r, 17), 0);
    snprintf(path, sizeof path, "%s/dump_17", rank.dir);
    write_dump(path);
    assert_int_equal(fr_recorder_read(&gone, SIZE_MAX, &b, &file), DUMP_BYTES);
    assert_string_equal(file, path);
    fr_recorder_fini(&r);
    fr_recorder_fini(&gone);
    fr_buf_fini(&b);
    rank_end(&rank);
}

/* What a hostile user may put there. Each must be refused without being followed, read or waited
 * for. */
static void no_name_of_a_user_leads_to_what_is_not_his(void **state)
{
    static const char *const ENV[] = {"RANK=5", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=%s/p",
                                      "TORCH_FR_DUMP_TEMP_FILE=%s/d", "HOME=%s", NULL};
    enum { LINK, LINK_PIPE, FOLDER, PIPE_AS_FILE, FILE_AS_PIPE, OLD, NO_READER, CASES };

    (void)state;
    for (int what = 0; what < CASES; what++) {
        struct fr_buf b = FR_BUF_INIT;
        char d[128], p[128];
        struct fr_recorder r;
        struct rank rank;
        const char *file;
        struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};

        rank_start(&rank, NULL, -1, ENV);
        assert_int_equal(fr_recorder_init(&r, (uint32_t)rank.pid, getuid(), rank.starttime, 5), 0);
        snprintf(d, sizeof d, "%s/d5", rank.dir);
        snprintf(p, sizeof p, "%s/p5.pipe", rank.dir);
        if (what == LINK) {
            assert_int_equal(symlink("/etc/hostname", d), 0);
            assert_int_equal(fr_recorder_read(&r, SIZE_MAX, &b, &file), -ELOOP);
        } else if (what == LINK_PIPE) {
            char real[160];

            snprintf(real, sizeof real, "%s.real", p);
            assert_int_equal(rename(p, real), 0);
            assert_int_equal(symlink(real, p), 0);
            assert_int_equal(fr_recorder_trigger(&r), -ELOOP);
        } else if (what == FOLDER) {
            assert_int_equal(mkdir(d, 0700), 0);
            assert_int_equal(fr_recorder_read(&r, SIZE_MAX, &b, &file), -EPERM);
        } else if (what == PIPE_AS_FILE) { /* would block who opens or reads it */
            assert_int_equal(mkfifo(d, 0600), 0);
            assert_int_equal(fr_recorder_read(&r, SIZE_MAX, &b, &file), -EPERM);
        } else if (what == FILE_AS_PIPE) { /* would be written into */
            struct stat st;

            assert_int_equal(unlink(p), 0);
            write_dump(p);
            assert_int_equal(fr_recorder_trigger(&r), -EPERM);
            assert_int_equal(stat(p, &st), 0);
            assert_int_equal(st.st_size, DUMP_BYTES);
        } else if (what == OLD) {
            write_dump(d);
            assert_int_equal(utimensat(AT_FDCWD, d, old, 0), 0);
            assert_int_equal(fr_recorder_read(&r, SIZE_MAX, &b, &file), -ESTALE);
        } else {
            assert_int_equal(unlink(p), 0);
            assert_int_equal(mkfifo(p, 0600), 0);
            assert_int_equal(fr_recorder_trigger(&r), -ENXIO);
        }
        assert_int_equal(b.len, 0);
        r.uid = getuid() + 1; /* of another user */
        assert_true(fr_recorder_trigger(&r) < 0);
        if (what == OLD)
            assert_int_equal(fr_recorder_read(&r, SIZE_MAX, &b, &file), -EPERM);
        fr_recorder_fini(&r);
        fr_buf_fini(&b);
        rank_end(&rank);
    }
}

/* --- with the agent --- */

static pid_t agent_start(const char *url, const char *probe, const char *spool)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!getenv("FR_TEST_VERBOSE"))
            dup2(null, 2);
        execl(FR_BUILD_DIR "/bin/fullrank-agent", "fullrank-agent", "--node", "n1", "--server", url,
              "--probe-dir", probe, "--spool", spool, "--interval", "100ms", NULL);
        _exit(127);
    }
    return pid;
}

static void answer(struct receiver *r, double ras_poll_s, bool collect)
{
    uint32_t ranks[] = {3};
    Fullrank__Assignment a = FULLRANK__ASSIGNMENT__INIT, *list[] = {&a};
    Fullrank__Command c = FULLRANK__COMMAND__INIT, *commands[] = {&c};
    Fullrank__Collect what = FULLRANK__COLLECT__INIT;
    Fullrank__Reply m = FULLRANK__REPLY__INIT;

    a.job = (char *)"job-1";
    a.attempt = 2;
    a.epoch = 7;
    a.uid = getuid();
    a.session = (uint32_t)getsid(0);
    a.ranks = ranks;
    a.n_ranks = 1;
    m.assignments = list;
    m.n_assignments = 1;
    m.ras_poll_s = ras_poll_s;
    what.incident = 5;
    what.job = (char *)"job-1";
    what.epoch = 7;
    what.dumps = true;
    c.id = 11;
    c.what_case = FULLRANK__COMMAND__WHAT_COLLECT;
    c.collect = &what;
    m.commands = commands;
    m.n_commands = collect;
    receiver_reply(r, &m);
}

/* The newest word on that pid. */
static const Fullrank__RasWord *word_on(struct receiver *r, uint32_t pid)
{
    for (size_t i = receiver_count(r); i-- > 0;) {
        const Fullrank__Report *m = receiver_get(r, i).report;

        for (size_t k = 0; k < m->n_ras; k++)
            if (m->ras[k]->pid == pid)
                return m->ras[k];
    }
    return NULL;
}

static size_t find_part(struct receiver *r, const char *name, size_t from,
                        const Fullrank__Evidence **e)
{
    for (size_t i = 0, n = 0; i < receiver_count(r); i++) {
        const Fullrank__Report *m = receiver_get(r, i).report;

        for (size_t k = 0; k < m->n_evidence; k++)
            if (strcmp(m->evidence[k]->name, name) == 0 && n++ == from) {
                *e = m->evidence[k];
                return 1;
            }
    }
    return 0;
}

static size_t count_last(struct receiver *r)
{
    size_t n = 0;

    for (size_t i = 0; i < receiver_count(r); i++) {
        const Fullrank__Report *m = receiver_get(r, i).report;

        for (size_t k = 0; k < m->n_evidence; k++)
            n += m->evidence[k]->last != 0;
    }
    return n;
}

static void an_agent_that_is_asked_to_tells_what_ras_says_and_brings_the_dumps(void **state)
{
    const char *env[] = {"RANK=3", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=%s/trigger_",
                         "TORCH_FR_DUMP_TEMP_FILE=%s/dump_", NULL, NULL};
    const Fullrank__RasWord *dead, *behind;
    const Fullrank__Evidence *e = NULL;
    char ras[64], site[] = "/tmp/fr-test-wsite-XXXXXX", probe[80], spool[80], url[64];
    struct receiver *r = receiver_start();
    struct rank rank;
    uint16_t port;
    int fd = fake_ras_bind(&port);
    size_t got = 0, before;
    pid_t agent;

    (void)state;
    assert_non_null(mkdtemp(site));
    snprintf(probe, sizeof probe, "%s/probe", site);
    snprintf(spool, sizeof spool, "%s/spool", site);
    assert_int_equal(mkdir(probe, 0755), 0);
    snprintf(ras, sizeof ras, "NCCL_RAS_ADDR=localhost:%u", port);
    env[3] = ras;
    receiver_url(r, url, sizeof url);
    answer(r, 0, false);
    rank_start(&rank, probe, fd, env);
    close(fd);
    agent = agent_start(url, probe, spool);
    WAIT_FOR(receiver_count(r) > 8);
    assert_null(word_on(r, 4242)); /* not asked for */
    answer(r, 0.1, false);
    WAIT_FOR(word_on(r, 4242) && word_on(r, (uint32_t)rank.pid));
    dead = word_on(r, 4242);
    behind = word_on(r, (uint32_t)rank.pid);
    assert_string_equal(dead->job, "job-1");
    assert_int_equal(dead->epoch, 7);
    assert_int_equal(dead->what, FR_RAS_DEAD);
    assert_string_equal(dead->host, "10.9.8.7");
    assert_false(dead->here);
    assert_int_equal(behind->what, FR_RAS_BEHIND_OTHERS);
    assert_int_equal(behind->behind, 2);
    assert_true(behind->polls >= FR_RAS_POLLS);
    assert_true(behind->here);
    assert_true(behind->since_ns < behind->observed_ns);

    answer(r, 0.1, true);
    WAIT_FOR(count_last(r) == 1);
    while (find_part(r, "nccl_trace_rank_3", 0, &e) && got < DUMP_BYTES) {
        size_t part = 0;

        got = 0;
        for (; find_part(r, "nccl_trace_rank_3", part, &e); part++) {
            assert_int_equal(e->offset, got); /* in order, without a gap */
            for (size_t i = 0; i < e->data.len; i++)
                if ((char)e->data.data[i] != dump_byte(got + i))
                    fail_msg("byte %zu differs", got + i);
            got += e->data.len;
        }
        assert_true(part > 1);
    }
    assert_int_equal(got, DUMP_BYTES);
    assert_true(find_part(r, "rank-3.status", 0, &e));
    assert_true(e->wait_ms > 0); /* it came first, and said that more will */
    assert_true(find_part(r, "nccl-ras.json", 0, &e));
    assert_non_null(memmem(e->data.data, e->data.len, "considered_dead", 15));
    assert_true(find_part(r, "flight-recorder.txt", 0, &e));
    assert_true(e->last);
    answer(r, 0, true);
    before = receiver_count(r);
    WAIT_FOR(receiver_count(r) > before + 4);
    assert_int_equal(receiver_get(r, receiver_count(r) - 1).report->n_ras, 0);
    assert_int_equal(count_last(r), 1);

    kill(agent, SIGTERM);
    waitpid(agent, NULL, 0);
    rank_end(&rank);
    receiver_stop(r);
    fr_fs_remove_tree(site, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_taken_where_it_is_offered_and_text_otherwise),
        cmocka_unit_test(whoever_answers_badly_is_given_up_in_time_with_a_sentence),
        cmocka_unit_test(who_listens_at_the_other_loopback_is_found_too),
        cmocka_unit_test(where_nobody_or_a_stranger_listens_no_connection_is_made),
        cmocka_unit_test(a_dump_is_asked_for_through_the_pipe_and_read_when_it_is_whole),
        cmocka_unit_test(a_rank_that_is_gone_left_its_dump_where_its_neighbours_would),
        cmocka_unit_test(no_name_of_a_user_leads_to_what_is_not_his),
        cmocka_unit_test(an_agent_that_is_asked_to_tells_what_ras_says_and_brings_the_dumps),
    };

    if (argc > 3 && strcmp(argv[1], "--rank") == 0)
        return be_rank(argv);
    setsid(); /* in a container the session may belong to a process outside and read 0 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
