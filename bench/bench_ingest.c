/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_ingest.c - records a second that the controller takes: HTTP body -> unpack -> checks ->
 * judge
 *
 * The real program on loopback; one job of 1 node x 8 ranks; reports of 20,000 records each, one
 * after the other over one kept connection. The client's own time for packing is not in the figure.
 */
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/http.h"
#include "bench.h"
#include "model/op.h"
#include "wire/agent.pb-c.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/supervise.pb-c.h"

enum { RANKS = 8, RECORDS = 20000, POSTS = 5, REPEATS = 9 };
#define WORLD 0x1234567890abcdefull

struct bench {
    char dir[64], token[128], base[64];
    pid_t pid;
    struct fr_http *http;
    char job[64];
    uint64_t seq, epoch, next_seq, newest_ns;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_ingest: %s\n", what);
    exit(1);
}

static void start(struct bench *b)
{
    char exe[PATH_MAX], path[PATH_MAX + 64], state[96], port_file[96], *argv[12];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    struct fr_buf text = FR_BUF_INIT;
    struct fr_http_options opt = {.base_url = b->base, .token = b->token, .timeout_s = 30};

    exe[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof path, "%s/../bin/fullrank-controller", dirname(exe));
    snprintf(b->dir, sizeof b->dir, "/tmp/fr-bench-XXXXXX");
    if (!mkdtemp(b->dir))
        die("no temporary folder");
    snprintf(state, sizeof state, "%s/state", b->dir);
    snprintf(port_file, sizeof port_file, "%s/port", b->dir);
    b->pid = fork();
    if (b->pid == 0) {
        int k = 0;

        argv[k++] = path;
        argv[k++] = (char *)(uintptr_t) "--listen";
        argv[k++] = (char *)(uintptr_t) "127.0.0.1:0";
        argv[k++] = (char *)(uintptr_t) "--state";
        argv[k++] = state;
        argv[k++] = (char *)(uintptr_t) "--port-file";
        argv[k++] = port_file;
        argv[k] = NULL;
        if (!freopen("/dev/null", "w", stderr))
            _exit(126);
        execv(path, argv);
        _exit(126);
    }
    for (int k = 0; fr_fs_read(port_file, 16, &text, NULL) || !text.len; k++) {
        if (k > 500)
            die("the controller does not start");
        usleep(10000);
    }
    snprintf(b->base, sizeof b->base, "http://127.0.0.1:%d", atoi(text.p));
    fr_buf_fini(&text);
    snprintf(port_file, sizeof port_file, "%s/state/token", b->dir);
    if (fr_fs_token(port_file, 0, b->token, sizeof b->token, NULL) ||
        fr_http_new(&opt, &b->http, NULL))
        die("no token or no client");
}

static void post(struct bench *b, const char *path, const struct fr_buf *body, struct fr_buf *reply)
{
    if (fr_http_call(b->http, "POST", path, FR_MESSAGE_TYPE, body->p, body->len, reply, NULL) !=
        200)
        die("a request was refused");
}

static uint64_t now_ns(void)
{
    return (uint64_t)bench_now_ns();
}

static void pack_report(struct bench *b, struct fr_wire_record *records, size_t n,
                        struct fr_buf *out)
{
    Fullrank__Report r = FULLRANK__REPORT__INIT;
    Fullrank__NodeInfo info = FULLRANK__NODE_INFO__INIT;
    Fullrank__Comm comm = FULLRANK__COMM__INIT, *commp = &comm;
    uint32_t runs[3] = {0, 1, RANKS};

    r.node = (char *)(uintptr_t) "n1";
    r.agent_instance = 1;
    r.seq = ++b->seq;
    r.mono_ns = now_ns();
    r.full = b->seq == 1;
    r.info = &info;
    if (b->epoch) {
        comm.job = b->job;
        comm.epoch = b->epoch;
        comm.members_hash = WORLD;
        comm.size = RANKS;
        comm.runs = runs;
        comm.n_runs = 3;
        r.comms = &commp;
        r.n_comms = 1;
    }
    r.records.data = (uint8_t *)records;
    r.records.len = n * sizeof *records;
    fr_buf_reset(out);
    fr_message_pack(&r.base, out);
}

/* A job whose first attempt runs on n1. */
static void start_job(struct bench *b)
{
    struct fr_buf body = FR_BUF_INIT, reply = FR_BUF_INIT;
    Fullrank__SuperviseReport r = FULLRANK__SUPERVISE_REPORT__INIT;

    pack_report(b, NULL, 0, &body);
    post(b, "/api/v1/agent/report", &body, &reply);
    r.job = b->job;
    r.key = 1;
    r.nodes = 1;
    r.ranks_per_node = RANKS;
    r.first_dead_rank = -1;
    for (int k = 0; !b->epoch; k++) {
        Fullrank__SuperviseOrder *o;

        if (k > 200)
            die("the job does not start");
        fr_buf_reset(&body);
        fr_message_pack(&r.base, &body);
        post(b, "/api/v1/supervise", &body, &reply);
        o = fullrank__supervise_order__unpack(NULL, reply.len, (const uint8_t *)reply.p);
        if (!o)
            die("an order that cannot be read");
        snprintf(b->job, sizeof b->job, "%s", o->job);
        if (o->what == FULLRANK__SUPERVISE_ORDER__WHAT__START) {
            b->epoch = o->epoch;
            r.attempt = o->attempt;
            r.epoch = o->epoch;
            r.last_order = o->id;
        }
        fullrank__supervise_order__free_unpacked(o, NULL);
        usleep(20000);
    }
    r.state = FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING;
    fr_buf_reset(&body);
    fr_message_pack(&r.base, &body);
    post(b, "/api/v1/supervise", &body, &reply);
    fr_buf_fini(&body);
    fr_buf_fini(&reply);
}

/* All ranks of one collective after the other, arrivals 1 us apart. */
static void fill(struct bench *b, struct fr_wire_record *w)
{
    b->newest_ns = now_ns() - 1000000;
    memset(w, 0, RECORDS * sizeof *w);
    for (size_t i = 0; i < RECORDS; i++) {
        w[i].members_hash = WORLD;
        w[i].rank = (uint32_t)(i % RANKS);
        w[i].seq = b->next_seq + i / RANKS;
        w[i].start_ns = w[i].enq_ns = b->newest_ns - (RECORDS - i) * 20;
        w[i].end_ns = w[i].start_ns + 1000;
        w[i].bytes = 1 << 20;
        w[i].step = 1 + w[i].seq / 64;
        w[i].peer = -1;
        w[i].op = FR_OP_ALLREDUCE;
        w[i].dtype = FR_DTYPE_FLOAT32;
    }
    b->next_seq += RECORDS / RANKS;
}

int main(void)
{
    static struct fr_wire_record records[RECORDS];
    struct fr_buf body[POSTS] = {FR_BUF_INIT}, reply = FR_BUF_INIT;
    struct bench b = {.next_seq = 1};
    double v[REPEATS];

    start(&b);
    start_job(&b);
    usleep(50000); /* records begin after the attempt */
    for (int k = 0; k < REPEATS; k++) {
        double began;

        for (int i = 0; i < POSTS; i++) {
            fill(&b, records);
            pack_report(&b, records, RECORDS, &body[i]);
        }
        began = bench_now_ns();
        for (int i = 0; i < POSTS; i++)
            post(&b, "/api/v1/agent/report", &body[i], &reply);
        v[k] = (double)POSTS * RECORDS / ((bench_now_ns() - began) * 1e-9);
    }
    bench_print("controller ingest", v, REPEATS, "records/s");
    fr_http_free(b.http);
    kill(b.pid, SIGTERM);
    waitpid(b.pid, NULL, 0);
    fr_fs_remove_tree(b.dir, NULL);
    return 0;
}
