/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns restarts: commands and environments as their own documents show them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/restarts.h"

static const char *const *environment; /* name, value, ..., NULL */

static const char *env(const char *name)
{
    for (size_t i = 0; environment && environment[i]; i += 2)
        if (strcmp(environment[i], name) == 0)
            return environment[i + 1];
    return NULL;
}

static const char *owner(const char *const *e, const char *const *command)
{
    static char text[128];

    environment = e;
    return fr_restarts_owner((char *const *)(uintptr_t)command, env, text, sizeof text);
}

#define CMD(...)                                                                                   \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define ENV(...)                                                                                   \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void a_launcher_that_restarts_workers_is_the_owner(void **state)
{
    (void)state;
    assert_string_equal(owner(NULL, CMD("torchrun", "--max-restarts=3", "train.py")),
                        "torchrun --max-restarts 3");
    assert_string_equal(
        owner(NULL, CMD("/opt/bin/torchrun", "--nnodes", "1:4", "--max_restarts", "2", "train.py")),
        "torchrun --max-restarts 2");
    assert_string_equal(
        owner(NULL, CMD("python3", "-m", "torch.distributed.run", "--max-restarts", "1", "t.py")),
        "torch.distributed.run --max-restarts 1");
    assert_string_equal(
        owner(NULL, CMD("bash", "-c", "source env; exec torchrun --max-restarts=5 t.py")),
        "torchrun --max-restarts 5");
    assert_string_equal(owner(ENV("PET_MAX_RESTARTS", "4"), CMD("torchrun", "t.py")),
                        "torchrun --max-restarts 4");
    assert_string_equal(owner(NULL, CMD("ft_launcher", "t.py")), "ft_launcher");
    assert_string_equal(owner(ENV("TORCHELASTIC_MAX_RESTARTS", "3"), CMD("fullrank-train")),
                        "torchrun, whose worker this is");
}

static void a_launcher_that_restarts_nothing_is_not(void **state)
{
    (void)state;
    assert_string_equal(owner(NULL, CMD("torchrun", "train.py")), "");
    assert_string_equal(owner(NULL, CMD("torchrun", "--max-restarts=0", "train.py")), "");
    assert_string_equal(
        owner(ENV("PET_MAX_RESTARTS", "4"), CMD("torchrun", "--max-restarts", "0", "train.py")),
        ""); /* an option counts more than its variable */
    assert_string_equal(owner(NULL, CMD("ft_launcher", "--max-restarts=0", "t.py")), "");
    assert_string_equal(owner(ENV("TORCHELASTIC_MAX_RESTARTS", "0"), CMD("a.out")), "");
    assert_string_equal(owner(NULL, CMD("mpirun", "./a.out", "--max-restarts", "3")), "");
    assert_string_equal(owner(NULL, CMD("my-torchrun-like", "--max-restarts=3")), "");
    assert_string_equal(owner(NULL, CMD("torchrun", "--max-restarts", "many")), "");
}

static void schedulers_own_what_they_were_told_to_requeue(void **state)
{
    (void)state;
    assert_string_equal(owner(ENV("SUBMITIT_EXECUTOR", "slurm"), CMD("python", "x.py")),
                        "submitit");
    assert_string_equal(owner(ENV("SLURM_JOB_ID", "7", "SBATCH_REQUEUE", "1"), CMD("a.out")),
                        "Slurm (--requeue)");
    assert_string_equal(owner(ENV("SLURM_JOB_ID", "7", "SLURM_RESTART_COUNT", "1"), CMD("a.out")),
                        "Slurm, which has requeued this job");
    assert_string_equal(owner(ENV("SLURM_JOB_ID", "7"), CMD("a.out")), "");
    assert_string_equal(owner(ENV("SLURM_JOB_ID", "7", "SLURM_RESTART_COUNT", "0"), CMD("a.out")),
                        "");
    assert_string_equal(owner(ENV("SBATCH_REQUEUE", "1"), CMD("a.out")), ""); /* not in a job */
    assert_string_equal(owner(NULL, NULL), "");
}

static void a_requeue_that_only_the_script_asks_for_is_seen_in_scontrols_words(void **state)
{
    static const char JOB[] = "JobId=42 JobName=gpt Priority=1 Nice=0 Requeue=1 Restarts=0 "
                              "BatchFlag=1 Reboot=0 ExitCode=0:0\n",
                      JOB_NOT[] = "JobId=42 JobName=Requeue=1x Requeue=0 Restarts=0 BatchFlag=1\n",
                      BY_DEFAULT[] = "JobFileAppend           = 0\nJobRequeue              = 1\n"
                                     "KillWait                = 30 sec\n",
                      NOT_BY_DEFAULT[] =
                          "JobFileAppend           = 0\nJobRequeue              = 0\n";

    (void)state;
    assert_true(fr_restarts_slurm_requeues(JOB, NOT_BY_DEFAULT));
    assert_false(fr_restarts_slurm_requeues(JOB, BY_DEFAULT));
    assert_false(fr_restarts_slurm_requeues(JOB_NOT, NOT_BY_DEFAULT));
    assert_false(fr_restarts_slurm_requeues(JOB, ""));
    assert_false(fr_restarts_slurm_requeues("", NOT_BY_DEFAULT));
    assert_false(fr_restarts_ask_slurm("7; touch /tmp/x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launcher_that_restarts_workers_is_the_owner),
        cmocka_unit_test(a_launcher_that_restarts_nothing_is_not),
        cmocka_unit_test(schedulers_own_what_they_were_told_to_requeue),
        cmocka_unit_test(a_requeue_that_only_the_script_asks_for_is_seen_in_scontrols_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
