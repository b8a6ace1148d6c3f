/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_job.c - small MPI programs, one a scenario, that test_mpi.c runs and watches from outside
 *
 * Each rank says with the file done.<rank> that it has made its calls, and goes on to
 * MPI_Finalize when the file `go` is there: in between its segment can be read.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include <mpi-ext.h> /* needs mpi.h before it */

#include "fullrank/fullrank.h"

#define W MPI_COMM_WORLD

static int rank, size;

static void touch(const char *name)
{
    char path[512];
    int fd;

    snprintf(path, sizeof path, "%s/%s.%d", getenv("FR_TEST_DIR"), name, rank);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
}

static void await(const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", getenv("FR_TEST_DIR"), name);
    while (access(path, F_OK) != 0)
        usleep(5000);
}

static void blocking(void)
{
    int in[64] = {0}, out[64] = {0}, counts[3] = {1, 2, 3}, at[3] = {0, 1, 3};
    double d[10] = {0}, e[10];
    float f[16] = {0}, g[16];

    MPI_Barrier(W);
    MPI_Bcast(in, 10, MPI_INT, 1, W);
    MPI_Reduce(d, e, 10, MPI_DOUBLE, MPI_SUM, 0, W);
    MPI_Allreduce(f, g, 10, MPI_FLOAT, MPI_SUM, W);
    MPI_Allreduce(MPI_IN_PLACE, f, 10, MPI_FLOAT, MPI_MAX, W);
    MPI_Gather(in, 2, MPI_INT, out, 2, MPI_INT, 2, W);
    MPI_Allgather(in, 2, MPI_INT, out, 2, MPI_INT, W);
    MPI_Allgatherv(in, counts[rank], MPI_INT, out, counts, at, MPI_INT, W);
    MPI_Scatter(in, 2, MPI_INT, out, 2, MPI_INT, 0, W);
    MPI_Reduce_scatter(f, g, counts, MPI_FLOAT, MPI_SUM, W);
    MPI_Reduce_scatter_block(f, g, 2, MPI_FLOAT, MPI_SUM, W);
    MPI_Alltoall(in, 2, MPI_INT, out, 2, MPI_INT, W);
    MPI_Scan(d, e, 10, MPI_DOUBLE, MPI_SUM, W);
}

static void nonblocking(void)
{
    MPI_Request q[3], one;
    int in[3] = {0}, out[3], flag = 0, index, count, which[3];

    for (int i = 0; i < 3; i++)
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, W, &q[i]);
    MPI_Wait(&q[2], MPI_STATUS_IGNORE);
    while (!flag)
        MPI_Test(&q[0], &flag, MPI_STATUS_IGNORE);
    MPI_Waitany(3, q, &index, MPI_STATUS_IGNORE);
    MPI_Ibarrier(W, &one);
    for (flag = 0; !flag;)
        MPI_Testall(1, &one, &flag, MPI_STATUSES_IGNORE);
    MPI_Ibcast(in, 3, MPI_INT, 0, W, &one);
    MPI_Waitsome(1, &one, &count, which, MPI_STATUSES_IGNORE);
}

static void persistent(void)
{
    MPI_Request q, p[2];
    int in = 1, out, a = 0, b;

    MPIX_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, W, MPI_INFO_NULL, &q);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&q);
    MPI_Send_init(&a, 1, MPI_INT, (rank + 1) % size, 0, W, &p[0]);
    MPI_Recv_init(&b, 1, MPI_INT, (rank + size - 1) % size, 0, W, &p[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, p);
        MPI_Waitall(2, p, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&p[0]);
    MPI_Request_free(&p[1]);
}

static void p2p(void)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    double a[100] = {0}, b[100];
    MPI_Request q[2];
    MPI_Comm back;

    if (rank % 2 == 0) {
        MPI_Send(a, 10, MPI_DOUBLE, next, 0, W);
        MPI_Recv(b, 10, MPI_DOUBLE, last, 0, W, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(b, 10, MPI_DOUBLE, last, 0, W, MPI_STATUS_IGNORE);
        MPI_Ssend(a, 10, MPI_DOUBLE, next, 0, W);
    }
    MPI_Sendrecv(a, 20, MPI_DOUBLE, next, 1, b, 20, MPI_DOUBLE, last, 1, W, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(a, 30, MPI_DOUBLE, last, 2, next, 2, W, MPI_STATUS_IGNORE);
    MPI_Isend(a, 40, MPI_DOUBLE, next, 3, W, &q[0]);
    MPI_Irecv(b, 40, MPI_DOUBLE, MPI_ANY_SOURCE, 3, W, &q[1]);
    MPI_Wait(&q[1], MPI_STATUS_IGNORE);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    /* In another order of ranks the peers are still named by their rank in the job. */
    MPI_Comm_split(W, 0, size - rank, &back);
    if (rank == 0)
        MPI_Send(a, 50, MPI_DOUBLE, 0, 4, back);
    if (rank == size - 1)
        MPI_Recv(b, 50, MPI_DOUBLE, MPI_ANY_SOURCE, 4, back, MPI_STATUS_IGNORE);
    MPI_Send(a, 1, MPI_DOUBLE, MPI_PROC_NULL, 5, W);
    MPI_Recv(b, 1, MPI_DOUBLE, MPI_PROC_NULL, 5, W, MPI_STATUS_IGNORE);
}

/* Receives from anyone, ended in every way that names them by index or in a row. */
static void anyone(void)
{
    int next = (rank + 1) % size, a = rank, b[3], count, left, which[3], flag;
    MPI_Request q[4];
    MPI_Status s[3];

    for (int way = 0; way < 6; way++) {
        MPI_Irecv(&b[0], 1, MPI_INT, MPI_PROC_NULL, 0, W, &q[0]);
        for (int i = 1; i < 3; i++)
            MPI_Irecv(&b[i], 1, MPI_INT, MPI_ANY_SOURCE, 10 * way + i, W, &q[i]);
        for (int i = 1; i < 3; i++)
            MPI_Send(&a, 1, MPI_INT, (next + i - 1) % size, 10 * way + i, W);
        for (left = 3; left > 0 && way < 4; left -= count == MPI_UNDEFINED ? left : count) {
            MPI_Status *st = way % 2 ? MPI_STATUSES_IGNORE : s;

            if (way < 2)
                MPI_Waitsome(3, q, &count, which, st);
            else
                MPI_Testsome(3, q, &count, which, st);
        }
        if (way == 4)
            MPI_Waitall(3, q, MPI_STATUSES_IGNORE);
        for (flag = 0; way == 5 && !flag;)
            MPI_Testall(3, q, &flag, MPI_STATUSES_IGNORE);
    }
}

static void comms(void)
{
    MPI_Comm first, second, third, half, self2;
    MPI_Request q;

    MPI_Comm_dup(W, &first);
    MPI_Comm_dup(W, &second);
    MPI_Comm_set_name(second, "gradients");
    MPI_Comm_split(W, rank % 2, -rank, &half); /* 2,0 and 3,1 of four */
    MPI_Barrier(first);
    for (int i = 0; i < 5; i++)
        MPI_Barrier(second);
    for (int i = 0; i < 2 + rank % 2; i++)
        MPI_Barrier(half);
    MPI_Comm_free(&first);
    MPI_Comm_idup(W, &third, &q); /* may get the handle of the one that is gone */
    MPI_Wait(&q, MPI_STATUS_IGNORE);
    for (int i = 0; i < 7; i++)
        MPI_Barrier(third);
    MPI_Comm_split(W, rank, 0, &self2);
    MPI_Barrier(self2);
}

static void *thread_main(void *arg)
{
    MPI_Comm c = *(MPI_Comm *)arg;
    int in = 1, out, a = 0, b;
    MPI_Request q[2];

    for (int i = 0; i < 500; i++) {
        MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, c);
        MPI_Irecv(&b, 1, MPI_INT, rank, 0, c, &q[0]);
        MPI_Isend(&a, 1, MPI_INT, rank, 0, c, &q[1]);
        MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, c, &q[0]);
        MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[4];
    MPI_Comm c[4];

    for (int i = 0; i < 4; i++)
        MPI_Comm_dup(W, &c[i]);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, thread_main, &c[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

/* 0 waits in a receive, 2 in a collective, 3 in MPI_Wait, all for 1. */
static void blocked(void)
{
    int a = 0, b;
    MPI_Request q;
    MPI_Comm c;

    MPI_Comm_dup(W, &c);
    if (rank == 1)
        await("go");
    if (rank == 0)
        MPI_Recv(&a, 1, MPI_INT, 1, 0, W, MPI_STATUS_IGNORE);
    if (rank == 3) {
        MPI_Irecv(&b, 1, MPI_INT, 1, 0, W, &q);
        MPI_Wait(&q, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        MPI_Send(&a, 1, MPI_INT, 0, 0, W);
        MPI_Send(&a, 1, MPI_INT, 3, 0, W);
    }
    b = 7;
    MPI_Allreduce(&b, &a, 1, MPI_INT, MPI_SUM, c);
}

/* More of everything than there is room for. */
static void overflow(void)
{
    enum { MANY = 9000, FLIGHT = 150, COMMS = 300 };
    static MPI_Request q[2 * MANY];
    static int in[MANY], out[MANY];
    MPI_Comm c;

    for (int i = 0; i < FLIGHT; i++)
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, W, &q[i]);
    for (int i = FLIGHT - 1; i >= 0; i--)
        MPI_Wait(&q[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, 1 - rank, i, W, &q[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Isend(&out[i], 1, MPI_INT, 1 - rank, i, W, &q[MANY + i]);
    MPI_Waitall(2 * MANY, q, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(W, &c); /* and kept: a freed one would make room */
        MPI_Barrier(c);
    }
    MPI_Barrier(W);
}

/* Of 200 operations the first and the 180th run longest, and the first one ends. */
static void window(void)
{
    enum { FLIGHT = 200, LAST = 180 };
    MPI_Request q[FLIGHT + 1];
    int in[FLIGHT + 1] = {0}, out[FLIGHT + 1];

    for (int i = 1; i <= FLIGHT; i++)
        MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, W, &q[i]);
    for (int i = FLIGHT; i >= 1; i--)
        if (i != LAST)
            MPI_Wait(&q[i], MPI_STATUS_IGNORE);
    touch("done");
    await("go");
    MPI_Wait(&q[LAST], MPI_STATUS_IGNORE);
}

/* More communicators than slots, one after the other; a receive outlives its own. */
static void turnover(void)
{
    int a = rank, b = -1;
    MPI_Request q;
    MPI_Comm c;

    MPI_Comm_dup(W, &c);
    MPI_Irecv(&b, 1, MPI_INT, 1 - rank, 0, c, &q);
    MPI_Send(&a, 1, MPI_INT, 1 - rank, 0, c);
    MPI_Comm_free(&c);
    for (int i = 0; i < 500; i++) {
        if (i == 250)
            usleep(1200000); /* a slot rests for a second */
        MPI_Comm_dup(W, &c);
        for (int k = 0; k <= i % 3; k++)
            MPI_Barrier(c);
        MPI_Comm_free(&c);
    }
    MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static void forks(void)
{
    pid_t pid;

    fullrank_step_begin(3);
    fullrank_step_end(NULL);
    MPI_Barrier(W);
    pid = fork();
    if (pid == 0) { /* a child that takes itself for the rank */
        fullrank_step_begin(99);
        fullrank_step_end(NULL);
        fullrank_phase(FULLRANK_PHASE_EVAL);
        _exit(fullrank_watched());
    }
    waitpid(pid, &(int){0}, 0);
    MPI_Barrier(W);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"blocking", blocking},     {"nonblocking", nonblocking},
                     {"persistent", persistent}, {"p2p", p2p},
                     {"comms", comms},           {"threads", threads},
                     {"blocked", blocked},       {"forks", forks},
                     {"overflow", overflow},     {"window", window},
                     {"turnover", turnover},     {"anyone", anyone}};
    const char *name = argc > 1 ? argv[1] : "";
    int provided;

    MPI_Init_thread(&argc, &argv, strcmp(name, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE,
                    &provided);
    MPI_Comm_rank(W, &rank);
    MPI_Comm_size(W, &size);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(name, scenarios[i].name) == 0)
            scenarios[i].run();
    touch("done");
    await("go");
    MPI_Finalize();
    return 0;
}
