/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - what the Flight Recorder dumps of a job's ranks say: who was where in which group
 *
 * PyTorch's NCCL process group keeps the newest collectives of a rank in a ring buffer and dumps it
 * as a pickle (or, asked for over HTTP, as JSON) when a collective times out. Here the dumps of all
 * ranks are put together; stuck.h concludes from them.
 *
 * A group instance is a description with its member ranks, and the n-th of those with the same two:
 * names of groups are numbers or hashes that differ between jobs, and duplicates must stay apart.
 *
 * Range:   FR_RECORDER_RANKS ranks, FR_RECORDER_FILE_MAX bytes a dump.
 * Memory:  48 bytes an entry; group lists once a group.
 * Threads: none; one owner at a time.
 * Source:  torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp of PyTorch
 *          2.4 to 2.10 (dump versions 2.1 to 2.10); older fields are optional here.
 */
#ifndef FR_SCAN_RECORDER_H
#define FR_SCAN_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define FR_RECORDER_RANKS    (1u << 20)
#define FR_RECORDER_FILE_MAX (256u << 20)

enum fr_rec_state { FR_REC_SCHEDULED = 0, FR_REC_STARTED, FR_REC_COMPLETED };

struct fr_rec_entry {     /* one operation of one rank, in the order of recording */
    uint32_t group, op;   /* op: index in the recorder's names */
    int64_t seq;          /* collective_seq_id, for p2p: p2p_seq_id */
    int64_t numel, dtype; /* elements of all inputs and index of the first's type, -1: not told */
    int32_t peer;         /* p2p: job rank, -1: not told */
    uint8_t state, p2p;   /* p2p: 0 no, 's' sends, 'r' receives, 'c' a batch of both */
};

struct fr_rec_status { /* pg_status: how far a rank is in one of its groups */
    int64_t pg_id, enqueued, completed;
};

struct fr_rec_dump {
    int32_t rank;
    bool active_only; /* completed operations were left out */
    uint32_t nentries, nstatus;
    struct fr_rec_entry *entries;
    struct fr_rec_status *status;
    char version[16];
};

struct fr_rec_group {
    char desc[64], name[32]; /* name: what the first dump called it */
    uint32_t nmembers;
    int32_t *members;            /* job ranks, rising; NULL: not told */
    uint32_t instance;           /* n-th with this description and these members */
    int64_t pg_id;               /* the same in all dumps that told, else -1 */
    bool pg_id_differs, guessed; /* guessed: members are those with entries */
    uint64_t hash;
};

struct fr_rec_fault { /* a file that is there and cannot be read */
    int32_t rank;
    char text[224];
};

struct fr_recorder {
    struct fr_rec_dump *dumps; /* rising rank, after fr_recorder_finish */
    size_t ndumps, dumps_cap;
    struct fr_rec_group *groups;
    size_t ngroups, groups_cap;
    uint32_t *table; /* of groups by hash: open addressing, index + 1 */
    size_t table_cap;
    uint32_t nameless; /* groups whose members no dump told */
    char (*names)[48];
    size_t nnames, names_cap;
    struct fr_rec_fault *faults;
    size_t nfaults, faults_cap;
    int32_t *missing; /* ranks that groups name and that left no readable dump */
    size_t nmissing;
    int32_t nranks; /* one more than the highest rank named anywhere */
};

void fr_recorder_init(struct fr_recorder *rec);
void fr_recorder_fini(struct fr_recorder *rec);

/* Take one dump, pickle or JSON. A failure leaves rec as it was: -EINVAL, -EPERM, -EPROTO, -EFBIG,
 * -EEXIST (this rank was taken already). */
int fr_recorder_add(struct fr_recorder *rec, int32_t rank, const uint8_t *p, size_t n,
                    struct fr_err *err);
/* This rank's dump is there and cannot be read. */
void fr_recorder_fault(struct fr_recorder *rec, int32_t rank, const char *why);
/* All dumps are in: sort them, find who is missing. */
void fr_recorder_finish(struct fr_recorder *rec);
const struct fr_rec_dump *fr_recorder_dump(const struct fr_recorder *rec, int32_t rank);

/* The rank at the end of a file's name ("nccl_trace_rank_3", "_dump_12", "rank00.json"), with the
 * length of what stands before it; -1: none. */
int32_t fr_recorder_file_rank(const char *name, size_t *ret_prefix);
/* Take every dump below a folder (or one file), and finish. -ENOENT when there is none. What is no
 * dump is passed over; what has the name of one and cannot be read becomes a fault. Blocks. */
int fr_recorder_read(struct fr_recorder *rec, const char *path, struct fr_err *err);

#endif /* FR_SCAN_RECORDER_H */
