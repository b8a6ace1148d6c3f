/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restarts.h - who starts a job again when it ends badly: fullrank, or something that was there
 * before
 *
 * Law 9: one owner of restarts. Two that both start a job again fight for its nodes, and each takes
 * the other's end for a fault. So fullrank looks for the signs of another owner in the job's
 * command and environment, and only advises where it finds one, unless it is told to own.
 *
 * Signs: torchrun and its module names, or NVRx's ft_launcher, with restarts of workers
 * allowed; a worker of such a launcher; submitit; a Slurm job that was submitted with --requeue or
 * has been requeued. "#SBATCH --requeue" in a script leaves nothing in the environment: there
 * scontrol is asked. That a whole cluster requeues by default (JobRequeue=1) is no sign: it does so
 * when a node is lost, and a job that fails is not started again by it.
 *
 * Threads: none.
 * Source:  torch/distributed/run.py (options, PET_ and TORCHELASTIC_ variables), submitit's
 *          SUBMITIT_EXECUTOR, sbatch(1) (SBATCH_REQUEUE, SLURM_RESTART_COUNT).
 */
#ifndef FR_CLI_RESTARTS_H
#define FR_CLI_RESTARTS_H

#include <stdbool.h>
#include <stddef.h>

/* What getenv does, or a test's. */
typedef const char *fr_getenv_fn(const char *name);

/* Write what else restarts the job ("torchrun --max-restarts 3") into text; "" when nothing is
 * seen. Returns text. */
char *fr_restarts_owner(char *const *command, fr_getenv_fn *env, char *text, size_t n);

/* Whether Slurm was told to requeue the job, by the words of `scontrol show job -o` and `scontrol
 * show config`: the job may be requeued where the cluster does not do so by default. */
bool fr_restarts_slurm_requeues(const char *job, const char *config);

/* Ask scontrol about the job of that id (digits). Blocks for a few seconds at most; false when
 * there is no answer. */
bool fr_restarts_ask_slurm(const char *job_id);

#endif /* FR_CLI_RESTARTS_H */
