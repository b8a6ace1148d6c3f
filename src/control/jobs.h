/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - jobs and their attempts: what supervisors say, and the orders that they get
 *
 * A supervisor owns the processes; this side owns the numbers: attempt, epoch, nodes. An order's id
 * follows from its epoch and kind, so a restarted controller repeats the same order under the same
 * id and the supervisor, which keeps the newest id on disk, does it once. An order is given only
 * after the rows that it stands on are durable.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_JOBS_H
#define FR_CONTROL_JOBS_H

#include "control/state.h"

/* Answer one SuperviseReport with a SuperviseOrder in reply. Returns the HTTP status (200, 400,
 * 503). */
int fr_jobs_supervise(struct fr_ctl *c, const void *body, size_t n, struct fr_buf *reply);

void fr_jobs_tick(struct fr_ctl *c);

/* Move the job; a move that the table does not hold is refused and logged. */
void fr_job_move(struct fr_ctl *c, struct fr_cjob *j, enum fr_job_state to);
/* The state that follows from its attempts, for when nothing else is known. */
enum fr_job_state fr_job_natural_state(const struct fr_cjob *j);

/* Its program tells of steps, or at least of how many it will make. */
bool fr_job_marks_steps(const struct fr_cjob *j);
/* One of its attempts got as far as to communicate between all ranks. */
bool fr_job_has_moved(const struct fr_cjob *j);

/* A new job with its tables; NULL when there is no room for one more. */
struct fr_cjob *fr_job_new(struct fr_ctl *c, const char *job);
void fr_job_free(struct fr_cjob *j);
/* Set nodes x ranks_per_node; -EINVAL with a sentence. */
int fr_job_size(struct fr_cjob *j, uint32_t nodes, uint32_t ranks_per_node, struct fr_err *err);

/* Append attempt `attempt` with `epoch` on nodes[j->nodes]; it becomes the current one and is
 * judged from now on. */
struct fr_cattempt *fr_job_add_attempt(struct fr_ctl *c, struct fr_cjob *j, uint32_t attempt,
                                       uint64_t epoch, struct fr_cnode *const *nodes);
/* Forget what was observed and judge the current attempt from here. */
void fr_job_begin_judging(struct fr_ctl *c, struct fr_cjob *j);

/* Place and order the next attempt. Returns the number of nodes missing, 0: it was ordered. */
uint32_t fr_job_start_next(struct fr_ctl *c, struct fr_cjob *j, uint64_t decision,
                           const char *reason);
void fr_job_order_stop(struct fr_ctl *c, struct fr_cjob *j, uint64_t decision, const char *reason);
/* The job is over; nodes are set free, the supervisor is told to end with exit_code. */
void fr_job_end(struct fr_ctl *c, struct fr_cjob *j, enum fr_job_state how, int32_t exit_code,
                const char *reason);

/* Exit code of the current attempt as a shell would say it. */
int32_t fr_job_exit_code(const struct fr_cattempt *a);

#endif /* FR_CONTROL_JOBS_H */
