/* SPDX-License-Identifier: Apache-2.0 */
/* op.c - names of operations and nccl-tests' bus bandwidth factors */
#include "model/op.h"

#include <math.h>
#include <stddef.h>

static const char *const NAMES[FR_OP_MAX] = {
    [FR_OP_NONE] = "None",
    [FR_OP_BARRIER] = "Barrier",
    [FR_OP_BCAST] = "Broadcast",
    [FR_OP_REDUCE] = "Reduce",
    [FR_OP_ALLREDUCE] = "AllReduce",
    [FR_OP_GATHER] = "Gather",
    [FR_OP_ALLGATHER] = "AllGather",
    [FR_OP_SCATTER] = "Scatter",
    [FR_OP_REDUCE_SCATTER] = "ReduceScatter",
    [FR_OP_ALLTOALL] = "AllToAll",
    [FR_OP_SCAN] = "Scan",
    [FR_OP_NEIGHBOR] = "Neighbor",
    [FR_OP_COMM] = "CommCreate",
    [FR_OP_FINALIZE] = "Finalize",
    [FR_OP_SEND] = "Send",
    [FR_OP_RECV] = "Recv",
    [FR_OP_SENDRECV] = "SendRecv",
    [FR_OP_WAIT] = "Wait",
    [FR_OP_STEP] = "Step",
    [FR_OP_PHASE] = "Phase",
};

const char *fr_op_name(uint32_t op)
{
    if (op >= FR_OP_MAX || !NAMES[op])
        return "?";
    return NAMES[op];
}

double fr_op_busbw_factor(uint32_t op, uint32_t n)
{
    double ranks = n;

    if (n == 0)
        return NAN;
    switch (
        op) { /* the same operations in the same order as nccl-tests, so that the last bit agrees */
    case FR_OP_ALLREDUCE:
        return 2 * (ranks - 1) / ranks;
    case FR_OP_GATHER:
    case FR_OP_ALLGATHER:
    case FR_OP_SCATTER:
    case FR_OP_REDUCE_SCATTER:
    case FR_OP_ALLTOALL:
        return (ranks - 1) / ranks;
    case FR_OP_BCAST:
    case FR_OP_REDUCE:
    case FR_OP_SEND:
    case FR_OP_RECV:
    case FR_OP_SENDRECV:
        return 1;
    default:
        return NAN; /* moves no payload, or nccl-tests defines none */
    }
}

double fr_op_algbw_gbs(uint64_t bytes, double seconds)
{
    return seconds > 0 ? (double)bytes / 1.0e9 / seconds : (double)NAN;
}

double fr_op_busbw_gbs(uint32_t op, uint32_t n, uint64_t bytes, double seconds)
{
    return fr_op_algbw_gbs(bytes, seconds) * fr_op_busbw_factor(op, n);
}
