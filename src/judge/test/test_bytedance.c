/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two real jobs with known answers (ByteDance-Seed/StragglerAnalysis, OSDI'25): AR has one worker
 * slowed on purpose (replica 0, stage 0, 2.35 x its peers), ST a slow last stage and no bad worker.
 * The data are not part of this repository: the tests skip where FULLRANK_SHARED (else ../shared
 * beside the sources) does not hold them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge/judge.h"

enum { WORKERS = 16, STEPS = 4096 };

struct trace {
    double self_s[STEPS][WORKERS], end_s[STEPS];
    int dp, pp;
};

static struct trace tr;

/* Self time of a worker in a step: the sum of its compute operations. 0, or -1 when the file is not
 * there. */
static int load(const char *name)
{
    const char *shared = getenv("FULLRANK_SHARED");
    char path[512], command[600], line[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/data/straggler-analysis/trace-%s.csv.gz",
             shared ? shared : FR_SOURCE_DIR "/../shared", name);
    f = fopen(path, "r");
    if (!f)
        return -1;
    fclose(f);
    memset(&tr, 0, sizeof tr);
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        int dp, stage, rank, step, worker;
        char op[64];
        double start, duration;

        if (sscanf(line, "%d,%d,%d,%d,%63[^,],%lf,%lf", &dp, &stage, &rank, &step, op, &start,
                   &duration) != 7)
            continue;
        worker = dp * 4 + stage; /* both jobs have four stages */
        if (step < 0 || step >= STEPS || dp < 0 || stage < 0 || worker >= WORKERS)
            continue;
        tr.dp = dp + 1 > tr.dp ? dp + 1 : tr.dp;
        tr.pp = stage + 1 > tr.pp ? stage + 1 : tr.pp;
        if (strstr(op, "compute"))
            tr.self_s[step][worker] += duration;
        if (start + duration > tr.end_s[step])
            tr.end_s[step] = start + duration;
    }
    assert_int_equal(pclose(f), 0);
    return 0;
}

/* Play the steps in order; returns how often a node or rank was called slow, and the last one. */
static int play(struct fr_judge **ret, int *ret_rank)
{
    struct fr_judge_config cfg;
    struct fr_judge *j;
    uint32_t node_of[WORKERS];
    uint64_t t = 1000000000000, n = 0;
    int workers = tr.dp * tr.pp, slow = 0;

    fr_judge_defaults(&cfg);
    cfg.slow_window_steps =
        6; /* some 40 steps are all there is, and AR is slow from the first one on */
    j = fr_judge_new(&cfg);
    for (int i = 0; i < workers; i++)
        node_of[i] = (uint32_t)i;
    fr_judge_begin(j, (uint32_t)workers, node_of, (uint32_t)workers, t);
    for (int i = 0; i < workers; i++)
        fr_judge_grid(j, (uint32_t)i, (int32_t[]){0, 0, 0, i / tr.pp, i % tr.pp},
                      (int32_t[]){1, 1, 1, tr.dp, tr.pp});
    for (int s = 0; s < STEPS; s++) {
        struct fr_finding f[16];
        uint64_t end = t + (uint64_t)(tr.end_s[s] * 1e9);

        if (tr.end_s[s] <= 0)
            continue;
        n++;
        for (int i = 0; i < workers; i++)
            fr_judge_step(j, (uint32_t)i,
                          &(struct fr_obs_step){.step = n,
                                                .begin_ns = t,
                                                .end_ns = end,
                                                .self_ns = (uint64_t)(tr.self_s[s][i] * 1e9)});
        t = end;
        for (size_t k = fr_judge_findings(j, t, f, 16); k > 0; k--)
            if (f[k - 1].kind == FR_FINDING_SLOW) {
                slow++;
                assert_true(*ret_rank < 0 || *ret_rank == f[k - 1].rank);
                *ret_rank = f[k - 1].rank;
            }
    }
    assert_true(n > 30);
    *ret = j;
    return slow;
}

static void the_one_bad_worker_of_a_real_job_is_named_and_nobody_else(void **state)
{
    struct fr_judge *j;
    struct fr_judge_rank r;
    int rank = -1;

    (void)state;
    if (load("AR") < 0) {
        print_message("skipped: the traces are not here\n");
        skip();
    }
    assert_true(play(&j, &rank) > 0);
    assert_int_equal(rank, 0);
    assert_int_equal(fr_judge_rank(j, 0, &r), 0);
    assert_true(r.peers_ratio > 2.2 && r.peers_ratio < 2.5); /* 2.35 by the authors' what-if */
    fr_judge_free(j);
}

static void a_slow_last_stage_of_a_real_job_names_no_worker(void **state)
{
    struct fr_judge *j;
    int rank = -1;

    (void)state;
    if (load("ST") < 0) {
        print_message("skipped: the traces are not here\n");
        skip();
    }
    assert_int_equal(play(&j, &rank), 0);
    fr_judge_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_bad_worker_of_a_real_job_is_named_and_nobody_else),
        cmocka_unit_test(a_slow_last_stage_of_a_real_job_names_no_worker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
