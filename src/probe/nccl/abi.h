/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi.h - what NCCL and RCCL hand to a profiler plugin, versions 4 to 7
 *
 * NCCL's headers are not needed to build the plugin, nor would one release's be enough: a library
 * is loaded by every release from 2.27 on, each of which asks for the highest version that it
 * knows. So the layouts are written down here once, each member of a descriptor as a structure of
 * its own (a later version appends to it), and every size and offset is asserted below against
 * the published tables: a compiler that lays something out otherwise refuses to build.
 *
 *   version  since  what it brought
 *   v4       2.27   init with name, hash, sizes and rank; GPU time stamps of a channel's kernel
 *   v5       2.28   u64 type; GroupApi, CollApi, P2pApi, KernelLaunch; parentGroup
 *   v6       2.29   copy-engine collectives
 *   v7       2.31   phases of a kernel, the caller's tag, symmetric kernels
 *
 * All versions share the head (type, parent, rank) and the place of each field that they have in
 * common, so one decoder reads them all; in v4 only the lowest byte of `type` is written.
 *
 * Threads: plain layouts.
 * Memory:  a descriptor is NCCL's and lives for the call; strings are NCCL's static ones.
 * Source:  NVIDIA/nccl, src/include/plugin/profiler/profiler_v4.h to profiler_v7.h (2.27.3 to
 *          2.31), plugins/profiler/README.md; ROCm/rccl likewise.
 */
#ifndef FR_PROBE_NCCL_ABI_H
#define FR_PROBE_NCCL_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fr_nccl_result { FR_NCCL_SUCCESS = 0 };

/* Bits of `type` and of the activation mask. */
enum fr_nccl_event {
    FR_NCCL_GROUP = 1 << 0,
    FR_NCCL_COLL = 1 << 1,
    FR_NCCL_P2P = 1 << 2,
    FR_NCCL_PROXY_OP = 1 << 3,
    FR_NCCL_PROXY_STEP = 1 << 4,
    FR_NCCL_PROXY_CTRL = 1 << 5,
    FR_NCCL_KERNEL_CH = 1 << 6,
    FR_NCCL_NET_PLUGIN = 1 << 7,
    /* since v5 */
    FR_NCCL_GROUP_API = 1 << 8,
    FR_NCCL_COLL_API = 1 << 9,
    FR_NCCL_P2P_API = 1 << 10,
    FR_NCCL_KERNEL_LAUNCH = 1 << 11,
    /* since v6 */
    FR_NCCL_CE_COLL = 1 << 12,
    FR_NCCL_CE_SYNC = 1 << 13,
    FR_NCCL_CE_BATCH = 1 << 14,
    /* since v7 */
    FR_NCCL_KERNEL_PHASE = 1 << 15
};

/* What recordEventState says; 0 to 7 are not sent since 2.27, 25 to 30 never were. */
enum fr_nccl_state {
    FR_NCCL_STEP_SEND_GPU_WAIT = 8,
    FR_NCCL_STEP_SEND_WAIT = 9,
    FR_NCCL_STEP_RECV_WAIT = 10,
    FR_NCCL_STEP_RECV_FLUSH_WAIT = 11,
    FR_NCCL_STEP_RECV_GPU_WAIT = 12,
    FR_NCCL_CTRL_IDLE = 13,
    FR_NCCL_CTRL_ACTIVE = 14,
    FR_NCCL_CTRL_SLEEP = 15,
    FR_NCCL_CTRL_WAKEUP = 16,
    FR_NCCL_CTRL_APPEND = 17,
    FR_NCCL_CTRL_APPEND_END = 18,
    FR_NCCL_OP_IN_PROGRESS = 19,
    FR_NCCL_STEP_SEND_PEER_WAIT = 20,
    FR_NCCL_NET_UPDATE = 21,
    FR_NCCL_KERNEL_CH_STOP = 22, /* carries the GPU's stop time */
    FR_NCCL_GROUP_START_API_STOP = 23,
    FR_NCCL_GROUP_END_API_START = 24,
    FR_NCCL_KERNEL_PHASE_STOP = 31
};

enum fr_nccl_phase { FR_NCCL_PHASE_FIRST = 0, FR_NCCL_PHASE_COMPUTE = 1, FR_NCCL_PHASE_LAST = 2 };

/* --- members of a descriptor, at offset 24 of it ------------------------------------------- */

struct fr_nccl_coll_v4 {
    uint64_t seq; /* per communicator and function, from 0, at enqueue */
    const char *func;
    const void *send_buff;
    void *recv_buff;
    size_t count; /* bytes for AllGather and Broadcast, then datatype is "ncclInt8" */
    int root;
    const char *datatype;
    uint8_t channels;
    uint8_t warps;
    const char *algo;
    const char *proto;
};

struct fr_nccl_coll_v5 {
    uint64_t seq;
    const char *func;
    const void *send_buff;
    void *recv_buff;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels;
    uint8_t warps;
    const char *algo;
    const char *proto;
    void *parent_group;
};

struct fr_nccl_coll_v7 {
    uint64_t seq;
    const char *func;
    const void *send_buff;
    void *recv_buff;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels;
    uint8_t warps;
    const char *algo;
    const char *proto;
    void *parent_group;
    const char *kernel_variant;
    bool symmetric;
    uint64_t user_tag; /* 0: the caller gave none */
};

struct fr_nccl_p2p_v4 {
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;         /* rank in the communicator */
    uint8_t channels; /* garbage when NCCL 2.28 or later plays v4 */
};

struct fr_nccl_p2p_v5 {
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *parent_group;
};

struct fr_nccl_p2p_v7 {
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *parent_group;
    uint64_t user_tag;
};

struct fr_nccl_proxy_op {
    int pid; /* the process that the parent's pointer belongs to */
    uint8_t channel;
    int peer;
    int steps;
    int chunk_size;
    int is_send;
};

struct fr_nccl_proxy_step {
    int step;
};

struct fr_nccl_kernel_ch {
    uint8_t channel;
    uint64_t timer; /* GPU nanoseconds (%globaltimer) at the start */
};

struct fr_nccl_net_plugin {
    int64_t id;
    void *data;
};

struct fr_nccl_group_api {
    bool graph_captured;
    int depth; /* 1: implicit, around one call */
};

struct fr_nccl_coll_api_v5 {
    const char *func;
    size_t count; /* the caller's own count and type */
    const char *datatype;
    int root;
    void *stream;
    bool graph_captured;
};

struct fr_nccl_coll_api_v7 {
    const char *func;
    size_t count;
    const char *datatype;
    int root;
    void *stream;
    bool graph_captured;
    uint64_t user_tag;
};

struct fr_nccl_p2p_api_v5 {
    const char *func;
    size_t count;
    const char *datatype;
    void *stream;
    bool graph_captured;
};

struct fr_nccl_p2p_api_v7 {
    const char *func;
    size_t count;
    const char *datatype;
    void *stream;
    bool graph_captured;
    uint64_t user_tag;
};

struct fr_nccl_kernel_launch {
    void *stream;
};

struct fr_nccl_ce_coll_v6 {
    uint64_t seq;
    const char *func;
    const void *send_buff;
    void *recv_buff;
    size_t count;
    int root;
    const char *datatype;
    const char *sync_strategy;
    bool intra_batch_sync;
    uint32_t batch_size;
    uint32_t batches;
    uint32_t ce_seq;
    void *stream;
};

struct fr_nccl_ce_coll_v7 {
    uint64_t seq;
    const char *func;
    const void *send_buff;
    void *recv_buff;
    size_t count;
    int root;
    const char *datatype;
    const char *sync_strategy;
    bool intra_batch_sync;
    uint32_t batch_size;
    uint32_t batches;
    uint32_t ce_seq;
    void *stream;
    uint64_t user_tag;
};

struct fr_nccl_ce_sync {
    bool is_complete;
    int nranks;
};

struct fr_nccl_ce_batch {
    int ops;
    size_t total_bytes;
    bool use_intra_sync;
};

struct fr_nccl_kernel_phase {
    uint8_t channel;
    uint8_t phase; /* enum fr_nccl_phase */
    const char *name;
    uint64_t timer;
};

/* --- descriptors --------------------------------------------------------------------------- */

struct fr_nccl_descr_v4 {
    uint8_t type; /* the seven bytes behind it are whatever lay on NCCL's stack */
    void *parent;
    int rank;
    union {
        struct fr_nccl_coll_v4 coll;
        struct fr_nccl_p2p_v4 p2p;
        struct fr_nccl_proxy_op proxy_op;
        struct fr_nccl_proxy_step proxy_step;
        struct fr_nccl_kernel_ch kernel_ch;
        struct fr_nccl_net_plugin net_plugin;
    };
};

struct fr_nccl_descr_v5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct fr_nccl_group_api group_api;
        struct fr_nccl_coll_api_v5 coll_api;
        struct fr_nccl_p2p_api_v5 p2p_api;
        struct fr_nccl_kernel_launch kernel_launch;
        struct fr_nccl_coll_v5 coll;
        struct fr_nccl_p2p_v5 p2p;
        struct fr_nccl_proxy_op proxy_op;
        struct fr_nccl_proxy_step proxy_step;
        struct fr_nccl_kernel_ch kernel_ch;
        struct fr_nccl_net_plugin net_plugin;
    };
};

struct fr_nccl_descr_v6 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct fr_nccl_group_api group_api;
        struct fr_nccl_coll_api_v5 coll_api;
        struct fr_nccl_p2p_api_v5 p2p_api;
        struct fr_nccl_kernel_launch kernel_launch;
        struct fr_nccl_coll_v5 coll;
        struct fr_nccl_p2p_v5 p2p;
        struct fr_nccl_proxy_op proxy_op;
        struct fr_nccl_proxy_step proxy_step;
        struct fr_nccl_kernel_ch kernel_ch;
        struct fr_nccl_net_plugin net_plugin;
        struct fr_nccl_ce_coll_v6 ce_coll;
        struct fr_nccl_ce_sync ce_sync;
        struct fr_nccl_ce_batch ce_batch;
    };
};

struct fr_nccl_descr_v7 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct fr_nccl_group_api group_api;
        struct fr_nccl_coll_api_v7 coll_api;
        struct fr_nccl_p2p_api_v7 p2p_api;
        struct fr_nccl_kernel_launch kernel_launch;
        struct fr_nccl_coll_v7 coll;
        struct fr_nccl_p2p_v7 p2p;
        struct fr_nccl_proxy_op proxy_op;
        struct fr_nccl_proxy_step proxy_step;
        struct fr_nccl_kernel_ch kernel_ch;
        struct fr_nccl_net_plugin net_plugin;
        struct fr_nccl_ce_coll_v7 ce_coll;
        struct fr_nccl_ce_sync ce_sync;
        struct fr_nccl_ce_batch ce_batch;
        struct fr_nccl_kernel_phase kernel_phase;
    };
};

/* Argument of recordEventState; one layout from v4 on. May be NULL. */
union fr_nccl_state_args {
    struct {
        size_t trans_size;
    } proxy_step;
    struct {
        int appended_proxy_ops;
    } proxy_ctrl;
    struct {
        void *data;
    } net_plugin;
    struct {
        uint64_t timer; /* GPU nanoseconds at the stop; phases of a kernel use it too */
    } kernel_ch;
};

/* --- the tables of functions that are looked up by name ------------------------------------ */

/* ncclDebugLogger_t: level, subsystem flags, function, line, format. */
typedef void (*fr_nccl_logger)(int level, unsigned long flags, const char *func, int line,
                               const char *fmt, ...);

struct fr_nccl_profiler_v4 {
    const char *name;
    int (*init)(void **ret_context, int *mask, const char *comm_name, uint64_t comm_hash,
                int nnodes, int nranks, int rank, fr_nccl_logger logger);
    int (*start_event)(void *context, void **ret_handle, struct fr_nccl_descr_v4 *descr);
    int (*stop_event)(void *handle);
    int (*record_event_state)(void *handle, int state, union fr_nccl_state_args *args);
    int (*finalize)(void *context);
};

/* v5, v6 and v7 differ in what descr points at. */
#define FR_NCCL_PROFILER(v)                                                                        \
    struct fr_nccl_profiler_v##v {                                                                 \
        const char *name;                                                                          \
        int (*init)(void **ret_context, uint64_t comm_id, int *mask, const char *comm_name,        \
                    int nnodes, int nranks, int rank, fr_nccl_logger logger);                      \
        int (*start_event)(void *context, void **ret_handle, struct fr_nccl_descr_v##v *descr);    \
        int (*stop_event)(void *handle);                                                           \
        int (*record_event_state)(void *handle, int state, union fr_nccl_state_args *args);        \
        int (*finalize)(void *context);                                                            \
    }

FR_NCCL_PROFILER(5);
FR_NCCL_PROFILER(6);
FR_NCCL_PROFILER(7);

#define FR_NCCL_SYMBOL_V4 "ncclProfiler_v4"
#define FR_NCCL_SYMBOL_V5 "ncclProfiler_v5"
#define FR_NCCL_SYMBOL_V6 "ncclProfiler_v6"
#define FR_NCCL_SYMBOL_V7 "ncclProfiler_v7"

/* --- sizes and offsets, against the tables ------------------------------------------------- */

#define FR_NCCL_AT(v, field, offset)                                                               \
    _Static_assert(offsetof(struct fr_nccl_descr_v##v, field) == (offset),                         \
                   "v" #v " " #field " is at " #offset)
#define FR_NCCL_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has " #bytes)

FR_NCCL_SIZE(struct fr_nccl_descr_v4, 104);
FR_NCCL_SIZE(struct fr_nccl_descr_v5, 112);
FR_NCCL_SIZE(struct fr_nccl_descr_v6, 112);
FR_NCCL_SIZE(struct fr_nccl_descr_v7, 136);
FR_NCCL_SIZE(union fr_nccl_state_args, 8);
FR_NCCL_SIZE(struct fr_nccl_profiler_v4, 48);
FR_NCCL_SIZE(struct fr_nccl_profiler_v5, 48);
FR_NCCL_SIZE(struct fr_nccl_profiler_v6, 48);
FR_NCCL_SIZE(struct fr_nccl_profiler_v7, 48);
_Static_assert(sizeof(((struct fr_nccl_descr_v4 *)0)->type) == 1, "v4 type is one byte");
_Static_assert(sizeof(((struct fr_nccl_descr_v5 *)0)->type) == 8, "v5 type has eight bytes");
_Static_assert(sizeof(bool) == 1, "a flag is one byte");

/* What every version has. */
#define FR_NCCL_ASSERT_V4(v)                                                                       \
    FR_NCCL_AT(v, type, 0);                                                                        \
    FR_NCCL_AT(v, parent, 8);                                                                      \
    FR_NCCL_AT(v, rank, 16);                                                                       \
    FR_NCCL_AT(v, coll, 24);                                                                       \
    FR_NCCL_AT(v, coll.seq, 24);                                                                   \
    FR_NCCL_AT(v, coll.func, 32);                                                                  \
    FR_NCCL_AT(v, coll.send_buff, 40);                                                             \
    FR_NCCL_AT(v, coll.recv_buff, 48);                                                             \
    FR_NCCL_AT(v, coll.count, 56);                                                                 \
    FR_NCCL_AT(v, coll.root, 64);                                                                  \
    FR_NCCL_AT(v, coll.datatype, 72);                                                              \
    FR_NCCL_AT(v, coll.channels, 80);                                                              \
    FR_NCCL_AT(v, coll.warps, 81);                                                                 \
    FR_NCCL_AT(v, coll.algo, 88);                                                                  \
    FR_NCCL_AT(v, coll.proto, 96);                                                                 \
    FR_NCCL_AT(v, p2p.func, 24);                                                                   \
    FR_NCCL_AT(v, p2p.buff, 32);                                                                   \
    FR_NCCL_AT(v, p2p.datatype, 40);                                                               \
    FR_NCCL_AT(v, p2p.count, 48);                                                                  \
    FR_NCCL_AT(v, p2p.peer, 56);                                                                   \
    FR_NCCL_AT(v, p2p.channels, 60);                                                               \
    FR_NCCL_AT(v, proxy_op.pid, 24);                                                               \
    FR_NCCL_AT(v, proxy_op.channel, 28);                                                           \
    FR_NCCL_AT(v, proxy_op.peer, 32);                                                              \
    FR_NCCL_AT(v, proxy_op.steps, 36);                                                             \
    FR_NCCL_AT(v, proxy_op.chunk_size, 40);                                                        \
    FR_NCCL_AT(v, proxy_op.is_send, 44);                                                           \
    FR_NCCL_AT(v, proxy_step.step, 24);                                                            \
    FR_NCCL_AT(v, kernel_ch.channel, 24);                                                          \
    FR_NCCL_AT(v, kernel_ch.timer, 32);                                                            \
    FR_NCCL_AT(v, net_plugin.id, 24);                                                              \
    FR_NCCL_AT(v, net_plugin.data, 32)

#define FR_NCCL_ASSERT_V5(v)                                                                       \
    FR_NCCL_ASSERT_V4(v);                                                                          \
    FR_NCCL_AT(v, coll.parent_group, 104);                                                         \
    FR_NCCL_AT(v, p2p.parent_group, 64);                                                           \
    FR_NCCL_AT(v, group_api.graph_captured, 24);                                                   \
    FR_NCCL_AT(v, group_api.depth, 28);                                                            \
    FR_NCCL_AT(v, coll_api.func, 24);                                                              \
    FR_NCCL_AT(v, coll_api.count, 32);                                                             \
    FR_NCCL_AT(v, coll_api.datatype, 40);                                                          \
    FR_NCCL_AT(v, coll_api.root, 48);                                                              \
    FR_NCCL_AT(v, coll_api.stream, 56);                                                            \
    FR_NCCL_AT(v, coll_api.graph_captured, 64);                                                    \
    FR_NCCL_AT(v, p2p_api.func, 24);                                                               \
    FR_NCCL_AT(v, p2p_api.count, 32);                                                              \
    FR_NCCL_AT(v, p2p_api.datatype, 40);                                                           \
    FR_NCCL_AT(v, p2p_api.stream, 48);                                                             \
    FR_NCCL_AT(v, p2p_api.graph_captured, 56);                                                     \
    FR_NCCL_AT(v, kernel_launch.stream, 24)

#define FR_NCCL_ASSERT_V6(v)                                                                       \
    FR_NCCL_ASSERT_V5(v);                                                                          \
    FR_NCCL_AT(v, ce_coll.seq, 24);                                                                \
    FR_NCCL_AT(v, ce_coll.func, 32);                                                               \
    FR_NCCL_AT(v, ce_coll.send_buff, 40);                                                          \
    FR_NCCL_AT(v, ce_coll.recv_buff, 48);                                                          \
    FR_NCCL_AT(v, ce_coll.count, 56);                                                              \
    FR_NCCL_AT(v, ce_coll.root, 64);                                                               \
    FR_NCCL_AT(v, ce_coll.datatype, 72);                                                           \
    FR_NCCL_AT(v, ce_coll.sync_strategy, 80);                                                      \
    FR_NCCL_AT(v, ce_coll.intra_batch_sync, 88);                                                   \
    FR_NCCL_AT(v, ce_coll.batch_size, 92);                                                         \
    FR_NCCL_AT(v, ce_coll.batches, 96);                                                            \
    FR_NCCL_AT(v, ce_coll.ce_seq, 100);                                                            \
    FR_NCCL_AT(v, ce_coll.stream, 104);                                                            \
    FR_NCCL_AT(v, ce_sync.is_complete, 24);                                                        \
    FR_NCCL_AT(v, ce_sync.nranks, 28);                                                             \
    FR_NCCL_AT(v, ce_batch.ops, 24);                                                               \
    FR_NCCL_AT(v, ce_batch.total_bytes, 32);                                                       \
    FR_NCCL_AT(v, ce_batch.use_intra_sync, 40)

FR_NCCL_ASSERT_V4(4);
FR_NCCL_ASSERT_V5(5);
FR_NCCL_ASSERT_V6(6);
FR_NCCL_ASSERT_V6(7);
FR_NCCL_AT(7, coll.kernel_variant, 112);
FR_NCCL_AT(7, coll.symmetric, 120);
FR_NCCL_AT(7, coll.user_tag, 128);
FR_NCCL_AT(7, p2p.user_tag, 72);
FR_NCCL_AT(7, coll_api.user_tag, 72);
FR_NCCL_AT(7, p2p_api.user_tag, 64);
FR_NCCL_AT(7, ce_coll.user_tag, 112);
FR_NCCL_AT(7, kernel_phase.channel, 24);
FR_NCCL_AT(7, kernel_phase.phase, 25);
FR_NCCL_AT(7, kernel_phase.name, 32);
FR_NCCL_AT(7, kernel_phase.timer, 40);

#define FR_NCCL_ASSERT_TABLE(v)                                                                    \
    _Static_assert(offsetof(struct fr_nccl_profiler_v##v, name) == 0 &&                            \
                       offsetof(struct fr_nccl_profiler_v##v, init) == 8 &&                        \
                       offsetof(struct fr_nccl_profiler_v##v, start_event) == 16 &&                \
                       offsetof(struct fr_nccl_profiler_v##v, stop_event) == 24 &&                 \
                       offsetof(struct fr_nccl_profiler_v##v, record_event_state) == 32 &&         \
                       offsetof(struct fr_nccl_profiler_v##v, finalize) == 40,                     \
                   "v" #v " is six pointers in this order")

FR_NCCL_ASSERT_TABLE(4);
FR_NCCL_ASSERT_TABLE(5);
FR_NCCL_ASSERT_TABLE(6);
FR_NCCL_ASSERT_TABLE(7);

#endif /* FR_PROBE_NCCL_ABI_H */
