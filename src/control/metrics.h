/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - the state as Prometheus text, by the table of model/metrics.def
 *
 * Threads: the loop thread.
 * Source:  Prometheus exposition formats, text format 0.0.4.
 */
#ifndef FR_CONTROL_METRICS_H
#define FR_CONTROL_METRICS_H

#include "control/state.h"

/* ranks_of: a job whose single ranks are shown, too, and kept from now on for a while; "": none. */
void fr_metrics_write(struct fr_ctl *c, struct fr_buf *out, const char *ranks_of);

#endif /* FR_CONTROL_METRICS_H */
