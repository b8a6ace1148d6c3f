/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_probe.c - what the MPI shim adds to a call
 *
 * Runs itself by turns bare and with libfullrank-mpi.so preloaded, and times the cheapest calls
 * that MPI has: an all-reduce of 4 bytes on MPI_COMM_SELF, and an MPI_Test of no request. What is
 * left over is the wrapper, two reads of the counter included.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "bench.h"

#define REPEATS 9
#define CALLS   300000

/* In the child: nanoseconds a call of each kind on stdout. */
static int measure(void)
{
    double t0, reduce_ns, test_ns, clock_ns, sink = 0;
    MPI_Request none = MPI_REQUEST_NULL;
    float in = 1, out;
    int flag;

    MPI_Init(NULL, NULL);
    for (int i = 0; i < CALLS / 10; i++)
        MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
    t0 = bench_now_ns();
    for (int i = 0; i < CALLS; i++)
        MPI_Allreduce(&in, &out, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF);
    reduce_ns = (bench_now_ns() - t0) / CALLS;
    t0 = bench_now_ns();
    for (int i = 0; i < CALLS; i++)
        MPI_Test(&none, &flag, MPI_STATUS_IGNORE);
    test_ns = (bench_now_ns() - t0) / CALLS;
    t0 = bench_now_ns();
    for (int i = 0; i < CALLS; i++)
        sink += bench_now_ns();
    clock_ns = (bench_now_ns() - t0) / CALLS;
    printf("%f %f %f\n", reduce_ns, test_ns, clock_ns);
    MPI_Finalize();
    return sink == 0;
}

/* Returns 0 and fills v with the three figures. */
static int run(const char *self, const char *dir, double v[3])
{
    int p[2], status, ok;
    FILE *f;
    pid_t pid;

    if (pipe(p) != 0)
        return -1;
    pid = fork();
    if (pid == 0) {
        dup2(p[1], STDOUT_FILENO);
        close(p[0]);
        close(p[1]);
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
        unsetenv("FULLRANK_PROBE");
        unsetenv("FULLRANK_PROBE_DIR");
        if (dir) {
            setenv("LD_PRELOAD", FR_SHIM, 1);
            setenv("FULLRANK_PROBE_DIR", dir, 1);
        }
        execl(self, self, "measure", (char *)NULL);
        _exit(127);
    }
    close(p[1]);
    f = fdopen(p[0], "r");
    ok = f && fscanf(f, "%lf %lf %lf", &v[0], &v[1], &v[2]) == 3;
    if (f)
        fclose(f);
    return waitpid(pid, &status, 0) == pid && status == 0 && ok ? 0 : -1;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"mpi_allreduce_self", "mpi_test_null"};
    double bare[3][REPEATS], with[3][REPEATS], added[REPEATS], ratio[REPEATS];
    char dir[] = "/dev/shm/fr-bench-XXXXXX", line[64], self[512];
    ssize_t n;

    if (argc > 1 && strcmp(argv[1], "measure") == 0)
        return measure();
    n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0 || !mkdtemp(dir))
        return 1;
    self[n] = '\0';
    for (int r = 0; r < REPEATS; r++) {
        double a[3], b[3];

        if (run(self, NULL, a) != 0 || run(self, dir, b) != 0) {
            fprintf(stderr, "bench_probe: the measured program failed\n");
            return 1;
        }
        for (int k = 0; k < 3; k++) {
            bare[k][r] = a[k];
            with[k][r] = b[k];
        }
    }
    rmdir(dir); /* fails, and says so below, when a segment was left */
    for (int k = 0; k < 2; k++) {
        for (int r = 0; r < REPEATS; r++) {
            added[r] = with[k][r] - bare[k][r];
            ratio[r] = added[r] / bare[2][r];
        }
        snprintf(line, sizeof line, "%s_bare", names[k]);
        bench_print(line, bare[k], REPEATS, "ns/call");
        snprintf(line, sizeof line, "%s_watched", names[k]);
        bench_print(line, with[k], REPEATS, "ns/call");
        snprintf(line, sizeof line, "%s_added", names[k]);
        bench_print(line, added, REPEATS, "ns/call");
        snprintf(line, sizeof line, "%s_added_in_clock_reads", names[k]);
        bench_print(line, ratio, REPEATS, "clock_gettime");
    }
    bench_print("clock_gettime", bare[2], REPEATS, "ns");
    return 0;
}
