/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the loop thread: requests, time, signals
 *
 * Owns struct fr_ctl from here on. Ends on SIGTERM or SIGINT.
 */
#ifndef FR_CONTROL_LOOP_H
#define FR_CONTROL_LOOP_H

#include "control/events.h"
#include "control/http.h"
#include "control/state.h"

/* Run until a signal ends it. opt.wake and opt.arg are set here; ready is called once the port is
 * known. */
int fr_loop_run(struct fr_ctl *c, struct fr_server_options *opt, struct fr_events *ev,
                int (*ready)(uint16_t port, void *arg, struct fr_err *err), void *arg,
                struct fr_err *err);

#endif /* FR_CONTROL_LOOP_H */
