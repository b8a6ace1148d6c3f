/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - NCCL's strings as numbers, and bytes as nccl-tests counts them
 *
 * The count that comes with a Coll event is not always what the caller passed: for AllGather and
 * Broadcast NCCL has turned it into bytes and the type into ncclInt8. Count times the size of the
 * type that stands beside it is right in both cases.
 *
 * Source:  nccl-tests doc/PERFORMANCE.md and src/{operation}.cu (count of the n-fold ones);
 *          NCCL src/misc/utils.cc (spelling).
 */
#include "probe/nccl/plugin.h"

static const struct {
    const char *name;
    struct fr_nccl_names what;
} funcs[] = {
    {"AllReduce", {.op = FR_OP_ALLREDUCE}},
    {"AllGather", {.op = FR_OP_ALLGATHER, .per_rank = 1}},
    {"ReduceScatter", {.op = FR_OP_REDUCE_SCATTER, .per_rank = 1}},
    {"Broadcast", {.op = FR_OP_BCAST, .rooted = 1}},
    {"Reduce", {.op = FR_OP_REDUCE, .rooted = 1}},
    {"AlltoAll", {.op = FR_OP_ALLTOALL, .per_rank = 1}},
    {"AllToAll", {.op = FR_OP_ALLTOALL, .per_rank = 1}},
    {"Gather", {.op = FR_OP_GATHER, .per_rank = 1, .rooted = 1}},
    {"Scatter", {.op = FR_OP_SCATTER, .per_rank = 1, .rooted = 1}},
    {"Send", {.op = FR_OP_SEND}},
    {"Recv", {.op = FR_OP_RECV}},
};

static const struct {
    const char *name;
    uint8_t size_bytes, code;
} types[] = {
    {"Float32", 4, FR_DTYPE_FLOAT32},   {"Bfloat16", 2, FR_DTYPE_BFLOAT16},
    {"Float16", 2, FR_DTYPE_FLOAT16},   {"Int8", 1, FR_DTYPE_BYTE},
    {"Uint8", 1, FR_DTYPE_BYTE},        {"Int32", 4, FR_DTYPE_INT32},
    {"Uint32", 4, FR_DTYPE_UINT32},     {"Int64", 8, FR_DTYPE_INT64},
    {"Uint64", 8, FR_DTYPE_UINT64},     {"Float64", 8, FR_DTYPE_FLOAT64},
    {"Float8e4m3", 1, FR_DTYPE_FLOAT8}, {"Float8e5m2", 1, FR_DTYPE_FLOAT8},
};

static const struct {
    const char *name;
    uint8_t code;
} algos[] = {{"RING", FR_ALGO_RING},
             {"TREE", FR_ALGO_TREE},
             {"NVLS", FR_ALGO_NVLS},
             {"NVLS_TREE", FR_ALGO_NVLS_TREE},
             {"COLLNET_DIRECT", FR_ALGO_COLLNET_DIRECT},
             {"COLLNET_CHAIN", FR_ALGO_COLLNET_CHAIN},
             {"PAT", FR_ALGO_PAT}},
  protos[] = {{"SIMPLE", FR_PROTO_SIMPLE}, {"LL", FR_PROTO_LL}, {"LL128", FR_PROTO_LL128}};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Most strings differ in their first letters: cheaper than a call of strcmp. */
static inline int same(const char *a, const char *b)
{
    for (; *a == *b; a++, b++)
        if (!*a)
            return 1;
    return 0;
}

int fr_nccl_func(const char *func, struct fr_nccl_names *ret)
{
    for (size_t i = 0; func && i < COUNT(funcs); i++)
        if (same(func, funcs[i].name)) {
            *ret = funcs[i].what;
            return 0;
        }
    return -1;
}

uint32_t fr_nccl_dtype(const char *name, uint8_t *ret_code)
{
    *ret_code = FR_DTYPE_OTHER;
    if (!name || strncmp(name, "nccl", 4) != 0)
        return 0;
    for (size_t i = 0; i < COUNT(types); i++)
        if (same(name + 4, types[i].name)) {
            *ret_code = types[i].code;
            return types[i].size_bytes;
        }
    return 0;
}

uint8_t fr_nccl_algo(const char *name)
{
    if (!name)
        return FR_ALGO_UNKNOWN;
    for (size_t i = 0; i < COUNT(algos); i++)
        if (same(name, algos[i].name))
            return algos[i].code;
    return FR_ALGO_OTHER;
}

uint8_t fr_nccl_proto(const char *name)
{
    if (!name)
        return FR_PROTO_UNKNOWN;
    for (size_t i = 0; i < COUNT(protos); i++)
        if (same(name, protos[i].name))
            return protos[i].code;
    return FR_PROTO_OTHER;
}

int fr_nccl_bytes(uint64_t count, uint32_t size, uint64_t n, uint64_t *ret)
{
    return size == 0 || __builtin_mul_overflow(count, size, ret) ||
                   __builtin_mul_overflow(*ret, n, ret)
               ? -1
               : 0;
}
