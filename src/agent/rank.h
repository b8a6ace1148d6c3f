/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.h - one segment and the process behind it, from the first sight to the last word
 *
 *   new -> (admit) -> live -> dead          reported
 *     \-> pending, refused                  looked at again when assignments or the file change
 *   live, dead -> retired                   the epoch is over: no longer reported, swept when the
 * process is gone
 *
 * Unit:    nanoseconds of CLOCK_MONOTONIC.
 * Memory:  about 100 KiB a rank (the reader's copy of the communicator table).
 * Threads: the loop's.
 */
#ifndef FR_AGENT_RANK_H
#define FR_AGENT_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "agent/admit.h"
#include "agent/fold.h"
#include "agent/outbox.h"
#include "base/jsonw.h"
#include "sense/proc/process.h"
#include "sense/sensor.h"
#include "wire/segment.h"

#define FR_RANK_SAMPLES 64           /* state samples of the last second, and some more */
#define FR_RANK_STOP_NS 200000000ull /* a stop (or its end) that stands so long is told at once */
#define FR_RANK_SCRATCH 65536        /* records taken in one go before they are folded */

enum fr_rank_state {
    FR_RANK_PENDING = 0,
    FR_RANK_REFUSED,
    FR_RANK_LIVE,
    FR_RANK_DEAD,
    FR_RANK_RETIRED
};

/* What was last reported of a communicator slot. */
struct fr_rank_comm {
    uint64_t members_hash; /* defined to the controller when not 0 */
    uint32_t instance;     /* and which of that list: a slot may be given to another one */
    uint32_t size;
    uint64_t enqueued, started, completed;
    uint32_t channels, proxies; /* sums: a change of them is news too */
    uint64_t seq_near;          /* to turn 32-bit sequence numbers into 64-bit ones */
    bool freed;
};

struct fr_rank {
    struct fr_rank *next;
    enum fr_rank_state state;
    char file[32];
    ino_t inode;
    uid_t owner;
    uint32_t pid; /* of the file's name */
    struct fr_claims claims;
    struct fr_segment *segment;
    uint64_t seen_ns;     /* first sight */
    enum fr_verdict told; /* refusal that was logged */

    /* from here on only once admitted */
    int pidfd;
    uv_poll_t poll; /* on pidfd; closing it frees the rank */
    bool poll_open;
    bool segment_broken; /* was cut short or changed its layout: not read any more */
    void *agent;
    struct fr_sense *process, *cgroup;
    uint64_t throttled_base_ns; /* the cgroup's count when the rank was admitted */

    int proc; /* Fullrank__ProcState */
    uint64_t proc_since_ns;
    int proc_told;         /* what an event or report said last */
    uint64_t stop_exec_ns; /* CPU time when the stop was seen first: a process that ran in between
                              was not stopped throughout */
    struct {
        uint64_t t_ns;
        bool stopped;
    } samples[FR_RANK_SAMPLES];
    uint32_t nsamples; /* counts up; slot is nsamples % FR_RANK_SAMPLES */
    struct fr_sense_value values[FR_PROCESS_COLUMNS];
    uint64_t throttled_ns, values_ns;
    int exit_status; /* as wait(2); meaningful when exit_known */
    bool exit_known, death_told;

    struct fr_fold fold;
    uint64_t next_index[FR_SEG_MAX_LANES];
    uint64_t records, lost;
    uint64_t refreshed_ns;      /* the header was read */
    uint64_t step_told;         /* newest step that was put into the outbox */
    uint64_t step_ended;        /* newest step whose slot was seen ended */
    struct fr_rank_comm *comms; /* header.comm_count */
    uint32_t comms_known;
};

/* What the loop lends to all of them. */
struct fr_rank_tools {
    struct fr_outbox *outbox;
    struct fr_record *scratch; /* FR_RANK_SCRATCH grows up to this */
    uint32_t *scratch_lane;
    uint64_t *scratch_index;
    size_t nscratch, scratch_cap;
    bool full;       /* tell everything */
    uint64_t now_ns; /* of this tick */
};

void fr_rank_tools_fini(struct fr_rank_tools *t);

/* Read the segment's claims again. 0 or -errno (the file is no segment, or was cut short). */
int fr_rank_claims(struct fr_rank *r, struct fr_err *err);

/* It was admitted: open its sensors. The pidfd is the caller's to watch. */
void fr_rank_admit(struct fr_rank *r, bool alive, uint64_t now_ns);

/* Free all but the poll handle's memory (the struct itself is freed by the caller). */
void fr_rank_fini(struct fr_rank *r);

/* One tick: drain the segment into the fold, put steps, spans and records into the outbox. -errno:
 * it cannot be read any more. */
int fr_rank_drain(struct fr_rank *r, struct fr_rank_tools *t, struct fr_err *err);

/* One tick: look at the process's state. Sets outbox->urgent when a stop, or the end of one, stands
 * long enough. */
void fr_rank_sample(struct fr_rank *r, struct fr_rank_tools *t, uint64_t now_ns);

/* The process has ended: last drain, exit status, ProcEvent. Once only. */
void fr_rank_died(struct fr_rank *r, struct fr_rank_tools *t, uint64_t now_ns);

/* Put the rank, what changed of its communicators, and its progress into the outbox. */
void fr_rank_report(struct fr_rank *r, struct fr_rank_tools *t, uint64_t now_ns);

/* Its in-flight table: what it is inside of, and how far it is in each communicator. */
void fr_rank_table(struct fr_rank *r, struct fr_jsonw *w, uint64_t now_ns);

/* What the rank's GPU is inside of, from the progress of its communicators: true, and *now filled
 * in; false: in nothing that is visible, *now only says since when. */
bool fr_rank_gpu_now(const struct fr_rank *r, Fullrank__Now *now);

/* State letter of proc(5) as ProcState. */
int fr_proc_state_of(char letter);

#endif /* FR_AGENT_RANK_H */
