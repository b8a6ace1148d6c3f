/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - the shared segment between a rank and its node's agent
 *
 * A job library cannot send messages: it may not block, allocate or call the
 * kernel once a step is running. So each process of a job maps one file of
 * fixed layout and writes what happens into it; the agent reads copies of it
 * with pread and writes nothing into it, so a killed, slow or absent agent
 * cannot disturb a rank, and a hostile rank can only lie about itself.
 *
 * The file is FULLRANK_PROBE_DIR/fr-<pid>.seg. It is created under a temporary name with all
 * of its size allocated (a full disk is seen there, not as a SIGBUS later), laid out, and
 * renamed: a segment that can be seen is complete. It is removed at a clean end.
 *
 *   offset                 what
 *   0                      struct fr_seg_header            (4096 bytes)
 *   header.step_off        struct fr_seg_step[FR_SEG_STEPS]: the newest steps
 *   header.comm_off        struct fr_seg_comm[comm_count]: communicators + progress
 *   header.lane_off        lane_count x (struct fr_seg_lane, struct fr_record[lane_records])
 *
 * Ring:    the producer writes slot head % lane_records, then stores head+1 with release. It
 *          never waits: the oldest record is overwritten. The reader copies, reads head
 *          again, and takes only records with index > head2 - lane_records; what it lost it counts.
 *          Each record carries the low half of its own index, so a slot that was
 *          overwritten during the copy is recognised twice.
 * Progress: comm slots and a lane's `now` are written in place with relaxed 64-bit stores
 *          between two increments of `version` (odd: being written), the reader retries.
 * Unit:    ticks of the counter named by header.clock; the agent knows the same
 *          counter and turns ticks into CLOCK_MONOTONIC nanoseconds by (clock_ticks0,
 *          clock_mono0_ns) and a pair of its own.
 * Range:   everything a reader finds is checked before use: it is another user's memory.
 * GPU:     progress of a communicator whose flags have FR_COMM_GPU is written by several threads at
 *          once, each word by itself; `version` only says that something changed.
 * Threads: a lane belongs to one thread (or to whoever holds it, owner FR_LANE_SHARED); comm slots
 * are written by whoever calls on that communicator (MPI allows one collective at a time on it).
 * Versions: the agent reads layouts FR_RING_VERSION down to FR_RING_VERSION_OLDEST.
 */
#ifndef FR_WIRE_RING_H
#define FR_WIRE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "model/op.h"

#define FR_RING_MAGIC          0x4b4e41524c4c5546ull /* "FULLRANK", little-endian */
#define FR_RING_VERSION        1
#define FR_RING_VERSION_OLDEST 1
#define FR_SEG_HEADER_BYTES    4096
#define FR_SEG_STEPS           256 /* newest steps kept in place, so that they survive an agent's absence */
#define FR_SEG_COMMS           256         /* default communicator slots */
#define FR_SEG_LANES           16          /* default lanes (threads that make calls) */
#define FR_LANE_RECORDS        8192        /* default records a lane, a power of two */
#define FR_SEG_MAX_BYTES       (64u << 20) /* a reader refuses more */
#define FR_COMM_RUNS           8           /* member list: at most this many arithmetic runs */
#define FR_COMM_NONE           0xffffu
#define FR_LANE_SHARED         0xffffffff00000000ull /* owner: no thread, but a library */
#define FR_SUFFIX_SEG          ".seg"

enum fr_seg_clock {
    FR_CLOCK_MONOTONIC = 0, /* ticks are CLOCK_MONOTONIC nanoseconds */
    FR_CLOCK_TSC = 1,       /* x86-64 invariant time-stamp counter */
    FR_CLOCK_CNTVCT = 2     /* aarch64 generic timer */
};

enum fr_probe_level { FR_PROBE_OFF = 0, FR_PROBE_HANG = 1, FR_PROBE_PERF = 2, FR_PROBE_FULL = 3 };

enum fr_seg_source {
    FR_SOURCE_MARKS = 1,
    FR_SOURCE_MPI = 2,
    FR_SOURCE_NCCL = 4,
    FR_SOURCE_GLOO = 8
}; /* bits */

/* Libraries that can write one segment beside each other: each has words of its own. */
enum fr_seg_library { FR_LIBRARY_MARKS = 1, FR_LIBRARY_NCCL = 2 };

enum fr_record_flag {
    FR_REC_NONBLOCKING =
        1, /* t_enq is the call, t_start the same; t_end was seen in Wait or Test */
    FR_REC_PERSISTENT = 2,
    FR_REC_GPU_CLOCK = 4, /* t_start and t_end are GPU nanoseconds */
    FR_REC_FAILED = 8,    /* the call returned an error */
    FR_REC_UNTIMED = 16   /* its end is not visible: t_start and t_end are t_enq */
};

/* Collective library's own names, for fr_record.algo and .proto; numbers are part of the layout. */
enum fr_algo {
    FR_ALGO_UNKNOWN = 0,
    FR_ALGO_TREE,
    FR_ALGO_RING,
    FR_ALGO_COLLNET_DIRECT,
    FR_ALGO_COLLNET_CHAIN,
    FR_ALGO_NVLS,
    FR_ALGO_NVLS_TREE,
    FR_ALGO_PAT,
    FR_ALGO_COPY_ENGINE,
    FR_ALGO_OTHER = 255
};

enum fr_proto {
    FR_PROTO_UNKNOWN = 0,
    FR_PROTO_LL,
    FR_PROTO_LL128,
    FR_PROTO_SIMPLE,
    FR_PROTO_OTHER = 255
};

/* fr_seg_comm.flags */
enum fr_comm_flag {
    FR_COMM_GPU = 1,  /* operations run on a GPU: `started` is the newest that one is in */
    FR_COMM_P2P = 2,  /* groups of sends and receives of the communicator with instance 0 */
    FR_COMM_BLIND = 4 /* nobody can see the operation last enqueued end: started is enqueued */
};

/* One finished operation, 64 bytes, one cache line. */
struct fr_record {
    uint64_t t_enq;   /* ticks: handed to the library */
    uint64_t t_start; /* ticks: arrival (host entry, or GPU start with FR_REC_GPU_CLOCK) */
    uint64_t t_end;   /* ticks: completion */
    uint64_t bytes;   /* what this rank contributes, by nccl-tests' count for the operation */
    uint32_t seq;  /* low half of the sequence number (collectives: of the communicator; p2p: of the
                      ordered pair) */
    uint32_t step; /* low half of the step that was open, 0: none */
    uint32_t gap_us;   /* time outside calls since this lane's previous record, microseconds */
    uint32_t ready_us; /* of gap_us: waited for a core (run queue); 0 at level hang */
    uint16_t comm;     /* slot, FR_COMM_NONE for steps and phases */
    uint8_t op;        /* enum fr_op */
    uint8_t dtype;     /* enum fr_dtype */
    uint8_t flags;     /* enum fr_record_flag */
    uint8_t algo;      /* the library's own, 0: unknown */
    uint8_t proto;
    uint8_t channels;
    int32_t
        peer; /* p2p: peer's rank in the job; rooted: root's rank in the communicator; else -1 */
    uint32_t index; /* low half of this record's index in the lane */
};

/* What a thread is inside right now; op == FR_OP_NONE: outside of any call. */
struct fr_seg_now {
    uint64_t version; /* odd: being written */
    uint64_t t_enter; /* ticks: entered the call, or (op NONE) left the last one */
    uint64_t bytes;
    uint64_t seq;
    uint32_t comm;      /* slot or FR_COMM_NONE */
    int32_t peer;       /* p2p peer in the job, -1: none or any */
    uint32_t op;        /* enum fr_op */
    uint32_t waits_for; /* FR_OP_WAIT: the op of the oldest incomplete request it waits for */
};

/* One lane: header, then lane_records records. */
struct fr_seg_lane {
    uint64_t head;           /* records written since the start */
    uint64_t owner;          /* thread id that claimed it (0: free) */
    uint64_t dropped;        /* events that this thread could not record */
    uint64_t calls;          /* calls seen, recorded or not */
    uint64_t in_calls_ticks; /* time inside calls since the start */
    uint64_t ready_ns;       /* run-queue wait outside calls since the start */
    uint64_t reserved[2];
    struct fr_seg_now now;
    uint8_t pad[16];
};

/* One arithmetic run of a member list: first, first+stride, ... (count of them). */
struct fr_seg_run {
    uint32_t first;
    uint32_t stride;
    uint32_t count;
};

/* One communicator and how far this rank is in it. 256 bytes. */
struct fr_seg_comm {
    uint64_t version;      /* odd: being written */
    uint64_t members_hash; /* FNV-1a 64 over the members' job ranks as little-endian u32, in order;
                              0: slot never used */
    uint32_t instance;     /* n-th communicator with that member list, from 0 */
    uint32_t size;         /* members */
    uint32_t rank;         /* this process's rank in it */
    uint32_t
        nruns; /* runs used; 0: the list has more than FR_COMM_RUNS runs and is not held here */
    struct fr_seg_run runs[FR_COMM_RUNS];
    char name[16];  /* MPI_Comm_set_name or the library's, NUL-terminated, may be empty */
    uint64_t freed; /* 1: the communicator was freed; another may get the slot when no fresh one is
                       left */
    /* progress, in operations of this communicator counted from 1; 0: none yet */
    uint64_t enqueued; /* last one handed to the library */
    uint64_t started;
    uint64_t completed;  /* all up to here are complete */
    uint64_t t_enqueued; /* ticks of the last one */
    uint64_t t_completed;
    uint64_t op_bytes; /* of the operation last enqueued */
    uint32_t op;       /* enum fr_op */
    uint32_t dtype;    /* enum fr_dtype */
    uint32_t root;
    uint32_t channels_started; /* NCCL: of the oldest incomplete one */
    uint32_t channels_ended;
    uint32_t flags;   /* enum fr_comm_flag */
    uint64_t t_since; /* ticks: who had the slot before was freed; records entered earlier are that
                         one's. 0: nobody had */
    /* NCCL, 0 from others and from libraries before it */
    int64_t gpu_offset_ns; /* CLOCK_MONOTONIC less the GPU's clock, never too small; 0: not known */
    uint32_t proxy_posted; /* network operations handed to the proxy thread, */
    uint32_t proxy_sent;   /* begun by it, */
    uint32_t proxy_done;   /* and ended; all modulo 2^32 */
    uint32_t proxy_steps;  /* chunks that ended, level full only */
};

/* One step in place: what survives when the agent was away for a while. */
struct fr_seg_step {
    uint64_t version;
    uint64_t step;    /* 0: never used; slot is step % FR_SEG_STEPS */
    uint64_t t_begin; /* ticks */
    uint64_t t_end;   /* ticks; 0: still running */
    double loss;      /* NaN: not told */
    double tokens;    /* NaN: not told */
    uint64_t
        self_ns; /* outside calls and not waiting for a core, all lanes of the marking thread */
    uint64_t ready_ns; /* outside calls, waiting for a core */
    uint64_t in_calls_ns;
    uint64_t pad[7];
};

struct fr_seg_header {
    uint64_t magic;
    uint32_t version; /* FR_RING_VERSION of the writer */
    uint32_t header_bytes;
    uint64_t total_bytes;
    uint32_t step_off, step_bytes, step_count;
    uint32_t comm_off, comm_bytes, comm_count;
    uint32_t lane_off, lane_bytes, lane_count,
        lane_records; /* lane_bytes: one lane with its records */
    uint32_t record_bytes;
    uint32_t level;          /* enum fr_probe_level in force */
    uint32_t sources;        /* enum fr_seg_source bits that write here */
    uint32_t clock;          /* enum fr_seg_clock */
    uint64_t clock_ticks0;   /* one moment in ticks ... */
    uint64_t clock_mono0_ns; /* ... and in CLOCK_MONOTONIC */
    int64_t start_unix_ns;
    uint32_t pid, uid;
    uint64_t starttime;  /* field 22 of /proc/<pid>/stat: tells a reused pid */
    int32_t rank, world; /* -1 until known */
    uint32_t attempt;    /* claims from the environment: the agent checks them */
    uint32_t rank_tid;   /* thread that makes the step marks, 0: none yet */
    uint64_t epoch;
    char job[64];
    char host[64];
    uint32_t comm_used; /* slots handed out */
    uint32_t lanes_used;
    uint64_t dropped; /* events with no lane or no slot */
    /* marks */
    uint64_t marks_version;              /* odd: being written; covers all below */
    uint64_t step;                       /* the step that is open or was closed last */
    uint32_t phase;                      /* enum fullrank_phase */
    uint32_t finalized;                  /* 1: the program ended its MPI / said goodbye */
    uint64_t t_phase;                    /* ticks: since when */
    uint64_t checkpoint_step;            /* last durable one */
    int32_t grid_index[8], grid_size[8]; /* by enum fullrank_dim, size 0: not told */
    uint64_t plan_first_step, plan_total_steps, plan_checkpoint_every, plan_last_checkpoint;
    double plan_tokens_per_step, plan_flops_per_step, plan_peak_flops_per_rank;
    uint32_t libraries; /* enum fr_seg_library bits that have it mapped; one of a kind */
    uint32_t pad;
};

_Static_assert(sizeof(struct fr_record) == 64, "a record is one cache line");
_Static_assert(sizeof(struct fr_seg_now) == 48, "layout");
_Static_assert(sizeof(struct fr_seg_lane) == 128, "layout");
_Static_assert(sizeof(struct fr_seg_comm) == 256, "layout");
_Static_assert(sizeof(struct fr_seg_step) == 128, "layout");
_Static_assert(sizeof(struct fr_seg_header) <= FR_SEG_HEADER_BYTES, "layout");

#endif /* FR_WIRE_RING_H */
