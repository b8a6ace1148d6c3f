/* SPDX-License-Identifier: Apache-2.0 */
/* listen.h - a listening socket from "HOST:PORT", numeric hosts only */
#ifndef FR_CONTROL_LISTEN_H
#define FR_CONTROL_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Bind and listen. Unless far_ok, anything but loopback is refused with -EPERM and why. Port 0: any
 * free one. */
int fr_listen(const char *address, bool far_ok, int *ret_fd, uint16_t *ret_port, bool *ret_loopback,
              struct fr_err *err);

#endif /* FR_CONTROL_LISTEN_H */
