/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_agent.c - what the agent of a node costs with 8 ranks
 *
 * The real daemon watches 8 real processes that write steps and records at a given rate with the tests' own
 * writer of segments, and reports to the tests' receiver. CPU time is that of the agent's process
 * (all its threads), read from its CPU clock; memory is its resident set.
 *
 * Segments lie in /dev/shm, where the local engine puts them.
 *
 *   bench_agent [SECONDS [STEPS_PER_S RECORDS_PER_STEP]]     default 20 8 60
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "bench.h"
#include "helper_receiver.h"
#include "helper_writer.h"
#include "model/op.h"

#define RANKS   8
#define WINDOWS 5

static void rank_run(const char *dir, int rank, double steps_per_s, int records)
{
    struct writer_claims c = {"bench", 1, 1, rank, RANKS};
    struct writer w;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    nice(5);
    writer_open(&w, dir, &c, 0, 1, FR_LANE_RECORDS);
    for (uint32_t i = 0; i < 6; i++)
        writer_comm(&w, i, 100 + i, RANKS, (uint32_t)rank, "bench");
    for (uint64_t step = 1;; step++) {
        writer_step_begin(&w, step);
        for (int i = 0; i < records; i++) {
            writer_collective(&w, 0, (uint32_t)i % 6, FR_OP_ALLREDUCE, 4096, 50000, step);
            usleep((useconds_t)(1e6 / steps_per_s / records));
        }
        writer_step_end(&w, step, 1.0);
    }
}

static double cpu_s(pid_t pid)
{
    clockid_t clock;
    struct timespec ts = {0, 0};

    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double rss_mib(pid_t pid)
{
    char path[64];
    long size = 0, rss = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%ld %ld", &size, &rss) != 2)
            rss = 0;
        fclose(f);
    }
    return (double)rss * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static void answer(struct receiver *r, uint32_t keep_log2)
{
    uint32_t ranks[RANKS];
    Fullrank__Assignment a = FULLRANK__ASSIGNMENT__INIT, *list[] = {&a};
    Fullrank__Reply reply = FULLRANK__REPLY__INIT;

    for (uint32_t i = 0; i < RANKS; i++)
        ranks[i] = i;
    a.job = (char *)"bench";
    a.attempt = 1;
    a.epoch = 1;
    a.uid = getuid();
    a.session = (uint32_t)getsid(0);
    a.ranks = ranks;
    a.n_ranks = RANKS;
    reply.assignments = list;
    reply.n_assignments = 1;
    reply.keep_log2 = keep_log2;
    receiver_reply(r, &reply);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 20, steps = argc > 2 ? atof(argv[2]) : 8;
    int records = argc > 3 ? atoi(argv[3]) : 60;
    double cpu[WINDOWS], rss[WINDOWS], drained[WINDOWS];
    char dir[64] = "/dev/shm/fr-bench-agent-XXXXXX", probe[96], spool[96], url[64];
    pid_t agent, rank[RANKS];
    struct receiver *r;

    if (!mkdtemp(dir))
        return 1;
    snprintf(probe, sizeof probe, "%s/probe", dir);
    snprintf(spool, sizeof spool, "%s/spool", dir);
    mkdir(probe, 0755);
    for (int i = 0; i < RANKS; i++)
        if ((rank[i] = fork()) == 0)
            rank_run(probe, i, steps, records);
    r = receiver_start();
    receiver_url(r, url, sizeof url);
    answer(r, 3);
    agent = fork();
    if (agent == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (freopen("/dev/null", "w", stderr))
            execl(FR_BUILD_DIR "/bin/fullrank-agent", "fullrank-agent", "--node", "bench", "--server", url, "--probe-dir",
                  probe, "--spool", spool, NULL);
        _exit(127);
    }
    sleep(2); /* start-up is not the steady state */
    for (int w = 0; w < WINDOWS; w++) {
        double c = cpu_s(agent), t = bench_now_ns(), took;
        size_t from = receiver_count(r);
        struct receiver_got a = receiver_get(r, from - 1), b;

        usleep((useconds_t)(seconds * 1e6 / WINDOWS));
        took = (bench_now_ns() - t) * 1e-9;
        cpu[w] = 100.0 * (cpu_s(agent) - c) / took;
        rss[w] = rss_mib(agent);
        b = receiver_get(r, receiver_count(r) - 1);
        drained[w] = (double)(b.report->self->records - a.report->self->records) * 1e9 / (double)(b.t_ns - a.t_ns);
    }
    bench_print("agent: records drained, 8 ranks", drained, WINDOWS, "records/s");
    bench_print("agent: CPU, 8 ranks (limit 0.5)", cpu, WINDOWS, "% of core");
    bench_print("agent: resident memory, 8 ranks (limit 20)", rss, WINDOWS, "MiB");
    kill(agent, SIGTERM);
    waitpid(agent, NULL, 0);
    for (int i = 0; i < RANKS; i++) {
        kill(rank[i], SIGKILL);
        waitpid(rank[i], NULL, 0);
    }
    receiver_stop(r);
    fr_fs_remove_tree(dir, NULL);
    return 0;
}
