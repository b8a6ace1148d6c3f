/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - one operation of one rank as the agent forwards it
 *
 * Report.records is an array of these, little-endian, no padding between: packing
 * thousands of records field by field as protobuf would cost more than the rest of the agent.
 *
 * Unit:    nanoseconds of the node's CLOCK_MONOTONIC, bytes.
 * Clock:   with FR_REC_GPU_CLOCK start and end were stamped by a GPU and are here on the node's
 *          clock, within the error of the offset between the two (microseconds).
 * Range:   the reader checks that the length is a multiple of the size and each field on use.
 */
#ifndef FR_WIRE_RECORD_H
#define FR_WIRE_RECORD_H

#include <stdint.h>

struct fr_wire_record {
    uint64_t members_hash;
    uint64_t seq;
    uint64_t enq_ns;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t bytes;
    uint64_t step;
    uint32_t instance;
    uint32_t rank;
    int32_t peer;
    uint8_t op;    /* enum fr_op */
    uint8_t dtype; /* enum fr_dtype */
    uint8_t flags; /* enum fr_record_flag */
    uint8_t pad;
};

_Static_assert(sizeof(struct fr_wire_record) == 72, "layout");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "both supported architectures are little-endian");

#endif /* FR_WIRE_RECORD_H */
