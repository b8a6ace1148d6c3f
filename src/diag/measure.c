/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - see measure.h */
#define _GNU_SOURCE
#include "diag/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define N 48 /* three matrices of 48 x 48 doubles: 55 KiB, within the second cache level */

static uint64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void cannot(struct fr_diag_sample *ret, const char *what)
{
    snprintf(ret->detail, sizeof ret->detail, "cannot measure: %.120s: %.50s", what, strerror(errno));
}

static void multiply(const double *a, const double *b, double *c)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            double x = a[i * N + k];

            for (int j = 0; j < N; j++)
                c[i * N + j] = x * b[k * N + j] + c[i * N + j];
        }
}

static void fill(double *a, double seed)
{
    for (int i = 0; i < N * N; i++)
        a[i] = fmod(seed * (i + 1), 1.0) - 0.5;
}

void fr_diag_measure_arithmetic(const struct fr_diag_context *cx, struct fr_diag_sample *ret)
{
    static const uint64_t WANTED_CPU_NS = 200000000;
    double a[N * N], b[N * N], c[N * N] = {0};
    uint64_t begun = cpu_ns(), until = fr_mono_ns() + 800000000, took, loops = 0;

    fill(a, 0.618033988749895);
    fill(b, 0.414213562373095);
    do {
        multiply(a, b, c);
        c[0] *= 0.5;
        loops++;
        took = cpu_ns() - begun;
    } while (took < WANTED_CPU_NS && fr_mono_ns() < until && fr_mono_ns() < cx->deadline_ns);
    if (!isfinite(c[N * N - 1]) || took == 0)
        return;
    ret->value = 2.0 * N * N * N * (double)loops / (double)took;
    snprintf(ret->detail, sizeof ret->detail, "%llu products of %dx%d in %.3f s of CPU time",
             (unsigned long long)loops, N, N, (double)took * 1e-9);
}

void fr_diag_measure_checksum(const struct fr_diag_context *cx, struct fr_diag_sample *ret)
{
    double a[N * N], b[N * N], first[N * N], again[N * N];
    uint64_t begun = cpu_ns(), until = fr_mono_ns() + 400000000;
    unsigned wrong = 0, loops = 0;

    fill(a, 0.732050807568877);
    fill(b, 0.236067977499790);
    memset(first, 0, sizeof first);
    multiply(a, b, first);
    do {
        memset(again, 0, sizeof again);
        multiply(a, b, again);
        wrong += memcmp(first, again, sizeof first) != 0;
        loops++;
    } while (cpu_ns() - begun < 100000000 && fr_mono_ns() < until && fr_mono_ns() < cx->deadline_ns);
    ret->value = wrong;
    snprintf(ret->detail, sizeof ret->detail, "%u of %u repetitions differed", wrong, loops);
}

/* Nanoseconds that this thread has waited for a core; -1: the kernel does not tell. */
static int64_t run_delay_ns(int fd)
{
    char text[128], *end;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    if (n <= 0)
        return -1;
    text[n] = '\0';
    strtoull(text, &end, 10);
    return *end == ' ' ? (int64_t)strtoull(end + 1, NULL, 10) : -1;
}

/* Time that the cgroup of this process was held back by its CPU limit; 0 where there is no limit. The kernel counts it
 * as waiting for a core, but unlike a busy machine it is a fault of this node's set-up. */
static uint64_t throttled_ns(void)
{
    char line[1024], path[1200] = "", text[1024];
    FILE *f = fopen("/proc/self/cgroup", "re");
    const char *p;
    ssize_t n;
    int fd;

    while (f && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':'), *dir = names ? strchr(names + 1, ':') : NULL;

        if (!dir)
            continue;
        *dir++ = '\0';
        dir[strcspn(dir, "\n")] = '\0';
        names++;
        if (strcmp(names, "cpu") == 0 || strncmp(names, "cpu,", 4) == 0)
            snprintf(path, sizeof path, "/sys/fs/cgroup/%.64s%.900s/cpu.stat", names, dir);
        else if (*names == '\0' && !*path)
            snprintf(path, sizeof path, "/sys/fs/cgroup%.900s/cpu.stat", dir);
    }
    if (f)
        fclose(f);
    fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    if ((p = strstr(text, "throttled_time ")))
        return strtoull(p + 15, NULL, 10);
    if ((p = strstr(text, "throttled_usec ")))
        return strtoull(p + 15, NULL, 10) * 1000u;
    return 0;
}

/* A thread that computes without a pause is always running or waiting for a core. Wall time that is neither was
 * taken by a stop (SIGSTOP, freezer) or a CPU limit, or by the host of a virtual machine. */
void fr_diag_measure_scheduling(const struct fr_diag_context *cx, struct fr_diag_sample *ret)
{
    char path[64];
    uint64_t wall, cpu, until, held;
    int64_t waited;
    double lost;
    int fd;

    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)gettid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (waited = run_delay_ns(fd)) < 0) {
        ret->skipped = true;
        snprintf(ret->detail, sizeof ret->detail, "skipped: this kernel has no schedstat");
        if (fd >= 0)
            close(fd);
        return;
    }
    wall = fr_mono_ns();
    cpu = cpu_ns();
    held = throttled_ns();
    until = wall + 600000000;
    while (fr_mono_ns() < until && fr_mono_ns() < cx->deadline_ns) {
        for (volatile int i = 0; i < 2000; i++)
            ;
    }
    cpu = cpu_ns() - cpu;
    waited = run_delay_ns(fd) - waited;
    held = throttled_ns() - held;
    if ((uint64_t)waited < held) /* several threads of the cgroup were held at once */
        held = (uint64_t)waited;
    waited -= (int64_t)held;
    wall = fr_mono_ns() - wall;
    close(fd);
    lost = wall > 0 ? 1.0 - ((double)cpu + (double)waited) / (double)wall : NAN;
    ret->value = lost < 0 ? 0 : lost;
    snprintf(ret->detail, sizeof ret->detail, "%.3f s: running %.3f s, waiting for a core %.3f s, neither %.3f s (throttled %.3f s)",
             (double)wall * 1e-9, (double)cpu * 1e-9, (double)waited * 1e-9, ret->value * (double)wall * 1e-9,
             (double)held * 1e-9);
}

void fr_diag_measure_memory(const struct fr_diag_context *cx, struct fr_diag_sample *ret)
{
    enum { BYTES = 16 << 20 };
    char *p = mmap(NULL, 2u * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t begun, took, until = fr_mono_ns() + 600000000, copies = 0;

    if (p == MAP_FAILED) {
        cannot(ret, "32 MiB of memory");
        return;
    }
    memset(p, 1, 2u * BYTES); /* page faults are not what is measured */
    begun = cpu_ns();
    do {
        memcpy(p + (copies & 1 ? 0 : BYTES), p + (copies & 1 ? BYTES : 0), BYTES);
        __asm__ volatile("" : : "r"(p) : "memory");
        copies++;
        took = cpu_ns() - begun;
    } while (took < 150000000 && fr_mono_ns() < until && fr_mono_ns() < cx->deadline_ns);
    munmap(p, 2u * BYTES);
    if (took == 0)
        return;
    ret->value = (double)copies * BYTES / (double)took;
    snprintf(ret->detail, sizeof ret->detail, "%llu copies of 16 MiB in %.3f s of CPU time",
             (unsigned long long)copies, (double)took * 1e-9);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void fr_diag_measure_disk(const struct fr_diag_context *cx, struct fr_diag_sample *ret)
{
    enum { BYTES = 256 << 10, TIMES = 5 };
    char path[512], *data;
    double took[TIMES];
    int fd, n = 0;

    if (!cx->scratch_dir) {
        ret->skipped = true;
        snprintf(ret->detail, sizeof ret->detail, "skipped: no folder was given");
        return;
    }
    snprintf(path, sizeof path, "%.400s/diag-%d.tmp", cx->scratch_dir, (int)gettid());
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        cannot(ret, path);
        return;
    }
    unlink(path);
    data = calloc(1, BYTES);
    while (data && n < TIMES && fr_mono_ns() < cx->deadline_ns) {
        uint64_t begun = fr_mono_ns();

        if (pwrite(fd, data, BYTES, (off_t)n * BYTES) != BYTES || fsync(fd) != 0) {
            cannot(ret, cx->scratch_dir);
            n = 0;
            break;
        }
        took[n++] = (double)(fr_mono_ns() - begun) * 1e-9;
    }
    free(data);
    close(fd);
    if (n == 0)
        return;
    qsort(took, (size_t)n, sizeof took[0], by_value);
    ret->value = took[n / 2];
    snprintf(ret->detail, sizeof ret->detail, "%d times 256 KiB: %.4f s to %.4f s", n, took[0], took[n - 1]);
}

/* A connected pair of TCP sockets on loopback. */
static int tcp_pair(int fd[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int one = 1, l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    fd[0] = fd[1] = -1;
    if (l < 0)
        return -1;
    if (bind(l, (struct sockaddr *)&at, sizeof at) == 0 && listen(l, 1) == 0 &&
        getsockname(l, (struct sockaddr *)&at, &n) == 0) {
        fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd[0] >= 0 && connect(fd[0], (struct sockaddr *)&at, sizeof at) == 0)
            fd[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    }
    close(l);
    if (fd[1] < 0)
        return -1;
    setsockopt(fd[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return 0;
}

static int pass_byte(int from, int to)
{
    struct pollfd p = {.fd = to, .events = POLLIN};
    char c = 'x';

    return write(from, &c, 1) == 1 && poll(&p, 1, 1000) == 1 && read(to, &c, 1) == 1 ? 0 : -1;
}

void fr_diag_measure_loopback(const struct fr_diag_context *cx, struct fr_diag_sample *ret)
{
    double best = INFINITY;
    int fd[2], n = 0;

    if (tcp_pair(fd) != 0)
        cannot(ret, "TCP on loopback");
    for (; fd[1] >= 0 && n < 200 && fr_mono_ns() < cx->deadline_ns; n++) {
        uint64_t begun = fr_mono_ns();
        double us;

        if (pass_byte(fd[0], fd[1]) != 0 || pass_byte(fd[1], fd[0]) != 0) {
            snprintf(ret->detail, sizeof ret->detail, "a byte sent over loopback did not arrive within 1 s");
            best = INFINITY;
            break;
        }
        us = (double)(fr_mono_ns() - begun) * 1e-3;
        best = us < best ? us : best;
    }
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    if (!isfinite(best))
        return;
    ret->value = best;
    snprintf(ret->detail, sizeof ret->detail, "best of %d round trips", n);
}
