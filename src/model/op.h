/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - the operations and data types that every room speaks of
 *
 * The numbers are part of the shared segment's layout and of the wire: only add.
 */
#ifndef FR_MODEL_OP_H
#define FR_MODEL_OP_H

#include <stdint.h>

/* Operations. Numbers are part of the layout: only add. */
enum fr_op {
    FR_OP_NONE = 0,
    FR_OP_BARRIER = 1,
    FR_OP_BCAST = 2,
    FR_OP_REDUCE = 3,
    FR_OP_ALLREDUCE = 4,
    FR_OP_GATHER = 5, /* v-variants are the same operation with their own byte count */
    FR_OP_ALLGATHER = 6,
    FR_OP_SCATTER = 7,
    FR_OP_REDUCE_SCATTER = 8,
    FR_OP_ALLTOALL = 9,
    FR_OP_SCAN = 10,
    FR_OP_NEIGHBOR = 11,
    FR_OP_COMM = 12,     /* creation of a communicator: collective over its parent */
    FR_OP_FINALIZE = 13, /* MPI_Finalize: collective over the world, its last one */
    FR_OP_SEND = 32,
    FR_OP_RECV = 33,
    FR_OP_SENDRECV = 34, /* as `now` only: its record is one SEND and one RECV */
    FR_OP_WAIT =
        35, /* as `now`, and as a record with no operation of its own (gap and wait only) */
    FR_OP_STEP = 64, /* seq = step; t_start..t_end is the step */
    FR_OP_PHASE = 65 /* seq = enum fullrank_phase that ended; t_start..t_end its span */
};

/* Data types as signatures (for mismatch), sizes in bytes in the low bits where fixed. */
enum fr_dtype {
    FR_DTYPE_OTHER = 0,
    FR_DTYPE_BYTE = 1,
    FR_DTYPE_INT32 = 2,
    FR_DTYPE_INT64 = 3,
    FR_DTYPE_FLOAT32 = 4,
    FR_DTYPE_FLOAT64 = 5,
    FR_DTYPE_FLOAT16 = 6,
    FR_DTYPE_BFLOAT16 = 7,
    FR_DTYPE_UINT32 = 8,
    FR_DTYPE_UINT64 = 9,
    FR_DTYPE_FLOAT8 = 10
};

#define FR_OP_MAX 66

/* 1 for operations of a whole communicator (they have its sequence), 0 for p2p, waits, steps. */
static inline int fr_op_is_collective(uint32_t op)
{
    return op >= FR_OP_BARRIER && op < FR_OP_SEND;
}

/* 1 when all members leave together, so that the ends can align clocks: all-reduce,
 * all-gather, reduce-scatter, barrier, all-to-all (not rooted operations). */
static inline int fr_op_ends_together(uint32_t op)
{
    return op == FR_OP_BARRIER || op == FR_OP_ALLREDUCE || op == FR_OP_ALLGATHER ||
           op == FR_OP_REDUCE_SCATTER || op == FR_OP_ALLTOALL;
}

/* "AllReduce", "Send", ...; "?" for what is not known. Never NULL. */
const char *fr_op_name(uint32_t op);

/* busbw factor of nccl-tests for n ranks: busbw = bytes / time * factor, where bytes is the
 * count of nccl-tests for the operation. Source: nccl-tests doc/PERFORMANCE.md. */
double fr_op_busbw_factor(uint32_t op, uint32_t n);

/* algbw and busbw in GB/s (1e9 bytes a second) of one operation of n ranks that took so long, equal
 * to nccl-tests' to the last bit: the same operations in the same order. NaN as above, and where
 * the time is not above 0. */
double fr_op_algbw_gbs(uint64_t bytes, double seconds);
double fr_op_busbw_gbs(uint32_t op, uint32_t n, uint64_t bytes, double seconds);

#endif /* FR_MODEL_OP_H */
