/* SPDX-License-Identifier: Apache-2.0 */
/* self.h - what this process itself takes: CPU time and resident memory */
#ifndef FR_CONTROL_SELF_H
#define FR_CONTROL_SELF_H

#include <stdint.h>

struct fr_self {
    double cpu_s;       /* user and system, since its start */
    uint64_t rss_bytes; /* 0: not readable */
};
void fr_self_read(struct fr_self *ret);

#endif /* FR_CONTROL_SELF_H */
