/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/rng.h"
#include "job_log_lines.h"
#include "scan/job_log.h"

static struct fr_job_rules *rules;

static int make_rules(void **state)
{
    (void)state;
    return fr_job_rules_new(NULL, 0, NULL, &rules, NULL);
}

static int drop_rules(void **state)
{
    (void)state;
    fr_job_rules_free(rules);
    return 0;
}

/* The judged log of a text fed in pieces of `piece` bytes. */
static struct fr_job_log *read_log(const char *text, size_t n, size_t piece)
{
    struct fr_job_log *log = fr_job_log_new(rules);

    for (size_t at = 0; at < n; at += piece)
        assert_int_equal(fr_job_log_feed(log, text + at, n - at < piece ? n - at : piece), 0);
    fr_job_log_end(log);
    return log;
}

static void each_line_of_other_releases_is_judged_right_however_it_is_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
        const struct case_line *c = &LINES[i];

        for (size_t piece = 1; piece < 8192; piece *= 9) {
            struct fr_job_log *log = read_log(c->text, strlen(c->text), piece);
            const struct fr_job_finding *f = fr_job_log_first(log);

            if (!f || strcmp(f->is.signature, c->signature) || strcmp(f->is.family, c->family) ||
                strcmp(f->is.blame, c->blame) || strcmp(f->is.action, c->action))
                fail_msg("%.100s\n  is %s %s %s %s by rule %s", c->text, f ? f->is.family : "?",
                         f ? f->is.blame : "?", f ? f->is.signature : "?", f ? f->is.action : "?",
                         f ? f->rule : "none");
            if (c->rank != -2 && f->rank != c->rank)
                fail_msg("%.100s\n  rank %lld", c->text, (long long)f->rank);
            if (c->host)
                assert_string_equal(f->host, c->host);
            if (c->peer)
                assert_string_equal(f->peer, c->peer);
            fr_job_log_free(log);
        }
    }
}

static void the_given_lines_are_judged_right(void **state)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    const char *shared = getenv("FULLRANK_SHARED");
    char path[512];
    size_t n = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/reference/job-log-lines.jsonl",
             shared ? shared : FR_SOURCE_DIR "/../shared");
    if (access(path, R_OK) < 0) {
        print_message("%s is not there (FULLRANK_SHARED): skipped\n", path);
        skip();
    }
    assert_int_equal(fr_fs_read(path, 1 << 20, &b, NULL), 0);
    for (char *at = b.p, *lf; at && *at && (lf = strchr(at, '\n')); at = lf + 1) {
        static const char *const KEYS[] = {"family", "blame", "signature", "action"};
        FR_CLEANUP(fr_json_freep) struct fr_json *doc = NULL;
        const char *line, *got[4];
        struct fr_job_log *log;
        const struct fr_job_finding *f;

        assert_int_equal(fr_json_parse(at, (size_t)(lf - at), &doc, NULL), 0);
        line = fr_json_str(doc, "line", "");
        log = read_log(line, strlen(line), 4096);
        f = fr_job_log_first(log);
        assert_non_null(f);
        got[0] = f->is.family;
        got[1] = f->is.blame;
        got[2] = f->is.signature;
        got[3] = f->is.action;
        for (size_t i = 0; i < 4; i++)
            if (strcmp(got[i], fr_json_str(fr_json_get(doc, "expect"), KEYS[i], "?")) != 0)
                fail_msg("%s: %s is %s", fr_json_str(doc, "id", "?"), KEYS[i], got[i]);
        fr_job_log_free(log);
        n++;
    }
    assert_true(n >= 36);
}

static void the_first_cause_comes_before_its_followers_wherever_it_stands(void **state)
{
    static const char LOG[] = "gpu-1:7:9 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 8 nranks 16 "
                              "cudaDev 0 - Init COMPLETE\n"
                              "[rank3]:[E1104 03:17:12.4 ProcessGroupNCCL.cpp:616] [Rank 3] "
                              "Watchdog caught collective operation "
                              "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1)\n"
                              "gpu-1:7:8 [0] misc/socket.cc:57 NCCL WARN socketProgress: "
                              "Connection closed by remote peer gpu-2<1>\n"
                              "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of "
                              "the step tasks have been OOM "
                              "Killed.\n"
                              "ERROR:torch.distributed.elastic.multiprocessing.api:failed "
                              "(exitcode: -6) local_rank: 5 (pid: 4)\n";
    struct fr_job_log *log = read_log(LOG, sizeof LOG - 1, 77);
    const struct fr_job_finding *f;
    size_t n;

    (void)state;
    f = fr_job_log_findings(log, &n);
    assert_int_equal(n, 4);
    assert_string_equal(f[0].is.signature, "host_oom");
    assert_int_equal(f[0].line_number, 4);
    assert_string_equal(f[1].is.signature, "collective_timeout");
    assert_int_equal(f[2].line_number, 3);
    assert_int_equal(f[2].rank, 8); /* NCCL's own line at start gave process 7 its rank */
    assert_string_equal(f[3].is.signature, "exit_aborted");
    fr_job_log_free(log);
}

static void timeouts_of_one_operation_in_one_group_are_no_mismatch(void **state)
{
    static const char SAME[] = "[PG ID 1 PG GUID 5(dp) Rank 1] Watchdog caught collective "
                               "operation timeout: WorkNCCL(SeqNum=4, "
                               "OpType=ALLREDUCE, NumelIn=7, NumelOut=7)\n"
                               "[PG ID 1 PG GUID 5(dp) Rank 2] Watchdog caught collective "
                               "operation timeout: WorkNCCL(SeqNum=4, "
                               "OpType=ALLREDUCE, NumelIn=7, NumelOut=7)\n"
                               "[PG ID 2 PG GUID 6(tp) Rank 3] Watchdog caught collective "
                               "operation timeout: WorkNCCL(SeqNum=4, "
                               "OpType=BROADCAST, NumelIn=7, NumelOut=7)\n";
    static const char SIZES[] = "[PG ID 1 PG GUID 5(dp) Rank 1] Watchdog caught collective "
                                "operation timeout: WorkNCCL(SeqNum=4, "
                                "OpType=ALLREDUCE, NumelIn=7, NumelOut=7)\n"
                                "[PG ID 1 PG GUID 5(dp) Rank 2] Watchdog caught collective "
                                "operation timeout: WorkNCCL(SeqNum=4, "
                                "OpType=ALLREDUCE, NumelIn=8, NumelOut=8)\n";
    struct fr_job_log *log = read_log(SAME, sizeof SAME - 1, 4096);

    (void)state;
    assert_string_equal(fr_job_log_first(log)->is.signature, "collective_timeout");
    fr_job_log_free(log);
    log = read_log(SIZES, sizeof SIZES - 1, 4096);
    assert_string_equal(fr_job_log_first(log)->is.signature, "collective_mismatch");
    fr_job_log_free(log);
}

static void a_timeout_is_a_checkpoints_only_while_one_is_written(void **state)
{
#define TIMEOUT                                                                                    \
    "[Rank 4] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, "                   \
    "OpType=ALLREDUCE)\n"
    static const char OPEN[] = "saving checkpoint at iteration 500 to /ckpt\n" TIMEOUT;
    static const char CLOSED[] = "saving checkpoint at iteration 500 to /ckpt\n  successfully "
                                 "saved checkpoint from iteration "
                                 "500\n" TIMEOUT;
    static const char STEPPED[] = "Saving checkpoint at step 500\nstep 501 | loss 2.31\n" TIMEOUT;
    struct fr_job_log *log = read_log(OPEN, sizeof OPEN - 1, 4096);

    (void)state;
    assert_string_equal(fr_job_log_first(log)->is.signature, "checkpoint_timeout");
    fr_job_log_free(log);
    log = read_log(CLOSED, sizeof CLOSED - 1, 4096);
    assert_string_equal(fr_job_log_first(log)->is.signature, "collective_timeout");
    fr_job_log_free(log);
    log = read_log(STEPPED, sizeof STEPPED - 1, 4096);
    assert_string_equal(fr_job_log_first(log)->is.signature, "collective_timeout");
    fr_job_log_free(log);
}

static void a_healthy_log_has_no_first_cause(void **state)
{
    static const char LOG[] =
        "n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
        "[default0]: iteration 10/ 100 | elapsed time per iteration (ms): 512.0 | lm loss: 2.1E+00 "
        "|\n"
        "saving checkpoint at iteration 10 to /ckpt in torch_dist format\n"
        "WARNING: errors of earlier runs are ignored; timeout is 600 s\n"
        "2025-11-04 03:18:40,123 INFO step 3 error 0.01\n"
        "Sending process 20817 closing signal SIGTERM\n";
    struct fr_job_log *log = read_log(LOG, sizeof LOG - 1, 50);

    (void)state;
    assert_null(fr_job_log_first(log));
    fr_job_log_free(log);
}

static void a_sites_own_rule_is_asked_first_and_a_wrong_one_is_refused_with_its_line(void **state)
{
    static const char OWN[] =
        "# ours\nsite.disk cause process storage storage_error fix_host  quota of {word} is used "
        "up\n"
        "site.quiet ignore torch unknown collective_timeout none  Watchdog caught collective\n";
    static const char *const WRONG[] = {"\nx nonsense torch unknown a b  text",
                                        "x cause torch unknown a b",
                                        "x cause t u a b  {n} text",
                                        "x cause t u a b  ab",
                                        "x cause t u a b  text {what}",
                                        "x cause t u a b  text {or a|b",
                                        "within a b"};
    struct fr_job_rules *own = NULL, *built_in = rules;
    struct fr_err err = FR_ERR_INIT;
    struct fr_job_log *log;

    (void)state;
    assert_int_equal(fr_job_rules_new(OWN, sizeof OWN - 1, "site.rules", &own, &err), 0);
    rules = own;
    log = read_log("quota of bob is used up\n" TIMEOUT,
                   sizeof "quota of bob is used up\n" TIMEOUT - 1, 9);
    rules = built_in;
    assert_string_equal(fr_job_log_first(log)->rule, "site.disk");
    {
        size_t n;

        fr_job_log_findings(log, &n);
        assert_int_equal(n, 1);
    }
    fr_job_log_free(log);
    fr_job_rules_free(own);
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        own = NULL;
        assert_int_equal(fr_job_rules_new(WRONG[i], strlen(WRONG[i]), "site.rules", &own, &err),
                         -EINVAL);
        assert_null(own);
        assert_non_null(strstr(err.text, i == 0 ? "site.rules:2: " : "site.rules:1: "));
    }
}

/* Millions of different findings: memory is bounded, and what counts is kept. */
static void the_cause_is_kept_when_findings_are_too_many(void **state)
{
    struct fr_job_log *log = fr_job_log_new(rules);
    char line[200];
    int n;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        n = snprintf(line, sizeof line,
                     "[rank%d]: [Rank %d] Watchdog caught collective operation timeout:\n", i, i);
        fr_job_log_feed(log, line, (size_t)n);
    }
    n = snprintf(line, sizeof line, "srun: error: gpu-3: task 7: Out Of Memory\n");
    fr_job_log_feed(log, line, (size_t)n);
    fr_job_log_end(log);
    assert_int_equal(fr_job_log_dropped(log), 20001 - FR_JOB_FINDINGS_MAX);
    assert_string_equal(fr_job_log_first(log)->is.signature, "host_oom");
    assert_int_equal(fr_job_log_first(log)->line_number, 20001);
    fr_job_log_free(log);
}

static void long_lines_and_noise_are_survived(void **state)
{
    static char text[300000];
    static const char HIT[] =
        " NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1";
    struct fr_rng rng = {.s = 5};
    struct fr_job_log *log;

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(fr_rng_u64(&rng) & 0xff);
    log = read_log(text, sizeof text, 1000);
    fr_job_log_free(log);
    memset(text, 'x', sizeof text); /* one line; the message stands far behind its begin */
    memcpy(text + 200000, HIT, sizeof HIT - 1);
    log = read_log(text, sizeof text, 4096);
    assert_non_null(fr_job_log_first(log));
    assert_string_equal(fr_job_log_first(log)->is.signature, "gpu_assignment");
    assert_int_equal(fr_job_log_first(log)->line_number, 1);
    fr_job_log_free(log);
}

static void a_launchers_block_gives_its_rank_and_host(void **state)
{
    static const char LOG[] =
        "[1]: Root Cause (first observed failure):\n[1]: [0]:\n[1]:   time      : x\n"
        "[1]:   host      : gpu-7.cluster\n[1]:   rank      : 42 (local_rank: 2)\n"
        "[1]:   exitcode  : 1 (pid: 9)\n";
    static const char PLAIN[] =
        "Root Cause (first observed failure):\n[0]:\n  time      : 2025-11-04_03:18:41\n"
        "  host      : gpu-7.cluster\n  rank      : 42 (local_rank: 2)\n";
    struct fr_job_log *log = read_log(PLAIN, sizeof PLAIN - 1, 11);

    (void)state;
    assert_int_equal(fr_job_log_first(log)->rank, 42);
    assert_string_equal(fr_job_log_first(log)->host, "gpu-7.cluster");
    fr_job_log_free(log);
    log = read_log(LOG, sizeof LOG - 1, 11); /* a label that is not known: no wrong rank */
    assert_string_equal(fr_job_log_first(log)->is.signature, "first_failure");
    fr_job_log_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_of_other_releases_is_judged_right_however_it_is_cut),
        cmocka_unit_test(the_given_lines_are_judged_right),
        cmocka_unit_test(the_first_cause_comes_before_its_followers_wherever_it_stands),
        cmocka_unit_test(timeouts_of_one_operation_in_one_group_are_no_mismatch),
        cmocka_unit_test(a_timeout_is_a_checkpoints_only_while_one_is_written),
        cmocka_unit_test(a_healthy_log_has_no_first_cause),
        cmocka_unit_test(a_sites_own_rule_is_asked_first_and_a_wrong_one_is_refused_with_its_line),
        cmocka_unit_test(the_cause_is_kept_when_findings_are_too_many),
        cmocka_unit_test(long_lines_and_noise_are_survived),
        cmocka_unit_test(a_launchers_block_gives_its_rank_and_host),
    };

    return cmocka_run_group_tests(tests, make_rules, drop_rules);
}
