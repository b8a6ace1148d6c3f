/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - reports of agents: into the state and the judge, and the reply
 *
 * A report is believed about the ranks that were placed on its node in the current attempt, and
 * about nothing else. Times of the node are mapped by the smallest receive - send difference of the
 * last minute.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_INGEST_H
#define FR_CONTROL_INGEST_H

#include "control/state.h"

/* Take one Report, append the Reply. Returns the HTTP status: 200, or 400 with the reason in
 * Reply.error. */
int fr_ingest_report(struct fr_ctl *c, const void *body, size_t n, struct fr_buf *reply);

/* The communicator of the current attempt, NULL: not known. */
const struct fr_ccomm *fr_job_comm(const struct fr_cjob *j, uint64_t hash, uint32_t instance);

#endif /* FR_CONTROL_INGEST_H */
