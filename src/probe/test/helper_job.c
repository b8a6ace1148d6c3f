/* SPDX-License-Identifier: Apache-2.0 */
/* helper_job.c - see helper_job.h */
#define _GNU_SOURCE
#include "helper_job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 60

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* A job that ended or takes too long fails the test: nothing here waits for ever. */
static void check_alive(struct job *j, time_t since)
{
    int status;

    if (waitpid(j->pid, &status, WNOHANG) == j->pid) {
        j->pid = -1;
        fail_msg("the job ended early with status %#x (see %s/err)", status, j->dir);
    }
    if (time(NULL) - since > LIMIT_S) {
        kill(j->pid, SIGTERM);
        fail_msg("the job did not get there within %d s (see %s)", LIMIT_S, j->dir);
    }
}

void job_start(struct job *j, const char *program, const char *scenario, int ranks, const char *env)
{
    char np[16], seg[128], path[512], preload[512], out[128], e[128];

    memset(j, 0, sizeof *j);
    j->ranks = ranks;
    strcpy(j->dir, "/tmp/fr-mpi-XXXXXX");
    assert_non_null(mkdtemp(j->dir));
    snprintf(seg, sizeof seg, "%s/seg", j->dir);
    assert_int_equal(mkdir(seg, 0700), 0);
    snprintf(np, sizeof np, "%d", ranks);
    snprintf(path, sizeof path, "%s/test/%s", FR_BUILD_DIR, program);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s/lib/libfullrank-mpi.so", FR_BUILD_DIR);
    snprintf(out, sizeof out, "%s/out", j->dir);
    snprintf(e, sizeof e, "%s/err", j->dir);
    j->pid = fork();
    assert_true(j->pid >= 0);
    if (j->pid == 0) {
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
        setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
        setenv("FR_TEST_DIR", j->dir, 1);
        setenv("FULLRANK_PROBE_DIR", seg, 1);
        setenv("FULLRANK_JOB", "job-of-test", 1);
        setenv("FULLRANK_ATTEMPT", "2", 1);
        setenv("FULLRANK_EPOCH", "5", 1);
        if (env && strchr(env, '=')) {
            char name[64] = {0};

            memcpy(name, env, (size_t)(strchr(env, '=') - env));
            setenv(name, strchr(env, '=') + 1, 1);
        } else if (env) {
            unsetenv(env);
        }
        if (!freopen(out, "w", stdout) || !freopen(e, "w", stderr))
            _exit(126);
        execlp("mpirun", "mpirun", "--oversubscribe", "-np", np, "-x", preload, path, scenario,
               (char *)NULL);
        _exit(127);
    }
}

static int done_ranks(const struct job *j)
{
    char path[128];
    int n = 0;

    for (int r = 0; r < j->ranks; r++) {
        snprintf(path, sizeof path, "%s/done.%d", j->dir, r);
        n += access(path, F_OK) == 0;
    }
    return n;
}

/* Open every segment whose rank is known; returns how many are open. */
static int open_some(struct job *j)
{
    char path[128];
    struct dirent *d;
    DIR *dir;
    int n = 0;

    snprintf(path, sizeof path, "%s/seg", j->dir);
    dir = opendir(path);
    assert_non_null(dir);
    while ((d = readdir(dir))) {
        struct fr_err err = FR_ERR_INIT;
        struct fr_segment *s = NULL;
        const char *dot = strrchr(d->d_name, '.');
        int rank;

        if (d->d_name[0] == '.' || !dot || strcmp(dot, FR_SUFFIX_SEG) != 0)
            continue;
        if (fr_segment_open(dirfd(dir), d->d_name, geteuid(), &s, &err) < 0)
            fail_msg("%s", err.text); /* a segment that can be seen is complete */
        rank = fr_segment_header(s)->rank;
        if (!(fr_segment_header(s)->sources & FR_SOURCE_MPI) || rank < 0 || rank >= j->ranks ||
            j->seg[rank])
            fr_segment_free(s);
        else
            j->seg[rank] = s;
    }
    closedir(dir);
    for (int r = 0; r < j->ranks; r++)
        n += j->seg[r] != NULL;
    return n;
}

void job_open(struct job *j)
{
    time_t since = time(NULL);

    while (open_some(j) < j->ranks) {
        check_alive(j, since);
        pause_briefly();
    }
}

struct keep {
    struct job *j;
    int rank;
};

static void keep_record(void *arg, uint32_t lane, uint64_t index, const struct fr_record *r)
{
    struct keep *k = arg;
    struct fr_record **list = &k->j->rec[k->rank];
    int n = k->j->nrec[k->rank]++;

    (void)lane, (void)index;
    *list = realloc(*list, (size_t)(n + 1) * sizeof **list);
    assert_non_null(*list);
    (*list)[n] = *r;
}

void job_read(struct job *j)
{
    for (int r = 0; r < j->ranks; r++) {
        struct fr_err err = FR_ERR_INIT;
        struct keep k = {j, r};
        uint64_t lost = 0;

        if (fr_segment_refresh(j->seg[r], &err) < 0 ||
            fr_segment_drain(j->seg[r], keep_record, &k, &lost, &err) < 0 ||
            fr_segment_comms(j->seg[r], &err) < 0)
            fail_msg("%s", err.text);
        j->lost[r] += lost;
    }
}

void job_done(struct job *j)
{
    time_t since = time(NULL);

    while (done_ranks(j) < j->ranks) {
        check_alive(j, since);
        pause_briefly();
    }
    job_open(j);
    job_read(j);
}

static int remove_below(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *d;
    char sub[512];
    int left = 0;

    while (dir && (d = readdir(dir))) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        snprintf(sub, sizeof sub, "%s/%s", path, d->d_name);
        if (unlink(sub) != 0 && errno == EISDIR)
            left += remove_below(sub);
        else
            left++;
    }
    if (dir)
        closedir(dir);
    rmdir(path);
    return left;
}

int job_end(struct job *j)
{
    char path[128];
    struct stat st = {0};
    int status = 0, left;

    snprintf(path, sizeof path, "%s/go", j->dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    for (time_t since = time(NULL); waitpid(j->pid, &status, WNOHANG) != j->pid; pause_briefly())
        if (time(NULL) - since > LIMIT_S) {
            kill(j->pid, SIGTERM);
            fail_msg("the job did not end");
        }
    for (int r = 0; r < j->ranks; r++) {
        fr_segment_free(j->seg[r]);
        free(j->rec[r]);
    }
    snprintf(path, sizeof path, "%s/err", j->dir);
    stat(path, &st);
    snprintf(path, sizeof path, "%s/seg", j->dir);
    left = remove_below(path);
    if (st.st_size == 0)
        remove_below(j->dir);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(left, 0);
    return status;
}

const struct fr_seg_comm *job_comm(const struct job *j, int rank, uint64_t hash, uint32_t instance)
{
    const struct fr_segment *s = j->seg[rank];

    for (uint32_t i = 0; i < fr_segment_header(s)->comm_used; i++) {
        const struct fr_seg_comm *c = fr_segment_comm(s, i);

        if (c && c->members_hash == hash && c->instance == instance)
            return c;
    }
    return NULL;
}

uint64_t job_hash(const int *ranks, int n)
{
    uint64_t h = 14695981039346656037ull;

    for (int i = 0; i < n; i++) {
        const unsigned char b[4] = {(unsigned char)ranks[i], (unsigned char)(ranks[i] / 256), 0, 0};

        for (int k = 0; k < 4; k++)
            h = (h ^ b[k]) * 1099511628211ull;
    }
    return h;
}
