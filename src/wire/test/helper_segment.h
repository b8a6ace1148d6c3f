/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_segment.h - segment files made by hand, small, right or wrong on purpose
 *
 * Written from ring.h alone, so that the reader is not tested against the probe's own code only.
 */
#ifndef FR_WIRE_TEST_HELPER_SEGMENT_H
#define FR_WIRE_TEST_HELPER_SEGMENT_H

#include "wire/ring.h"

#define MADE_LANES   2
#define MADE_RECORDS 16
#define MADE_COMMS   4
#define MADE_STEPS   8
#define MADE_BYTES                                                                                 \
    (FR_SEG_HEADER_BYTES + MADE_STEPS * 128 + MADE_COMMS * 256 +                                   \
     MADE_LANES * (128 + MADE_RECORDS * 64))

struct made_lane {
    struct fr_seg_lane head;
    struct fr_record record[MADE_RECORDS];
};

struct made {
    union {
        struct fr_seg_header hdr;
        unsigned char hdr_bytes[FR_SEG_HEADER_BYTES];
    };
    struct fr_seg_step step[MADE_STEPS];
    struct fr_seg_comm comm[MADE_COMMS];
    struct made_lane lane[MADE_LANES];
};

_Static_assert(sizeof(struct made) == MADE_BYTES, "no padding");

/* A right segment: `records` of them in lane 0, one communicator, step 3. */
void made_right(struct made *m, unsigned records);

/* Write the first `bytes` of it to `path` (0600). */
void made_write(const struct made *m, const char *path, unsigned long bytes);

#endif /* FR_WIRE_TEST_HELPER_SEGMENT_H */
