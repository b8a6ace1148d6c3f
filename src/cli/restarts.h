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
 * has been requeued. That a cluster requeues on the loss of a node by default (JobRequeue=1) shows
 * in no job's environment, and is no sign: a job that fails is not started again by it.
 *
 * Threads: none.
 * Source:  torch/distributed/run.py (options, PET_ and TORCHELASTIC_ variables), submitit's
 *          SUBMITIT_EXECUTOR, sbatch(1) (SBATCH_REQUEUE, SLURM_RESTART_COUNT).
 */
#ifndef FR_CLI_RESTARTS_H
#define FR_CLI_RESTARTS_H

#include <stddef.h>

/* What getenv does, or a test's. */
typedef const char *fr_getenv_fn(const char *name);

/* Write what else restarts the job ("torchrun --max-restarts 3") into text; "" when nothing is
 * seen. Returns text. */
char *fr_restarts_owner(char *const *command, fr_getenv_fn *env, char *text, size_t n);

#endif /* FR_CLI_RESTARTS_H */
