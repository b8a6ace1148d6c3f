/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - observations and the time in, findings out
 *
 * The one judge of live jobs, recorded traces, foreign logs and simulated fleets. It is fed with
 * what was measured (steps, progress of communicators, what a rank is inside of, how its process
 * fares, records) and asked at any moment what it concludes. It knows nothing of how observations
 * came, and reads no clock.
 *
 * Unit:    ns on one clock chosen by the caller for all calls (live: the controller's monotonic
 *          clock; times of other nodes are mapped by the caller as well as it can, the judge
 *          aligns ends of collectives itself before it compares arrivals between nodes).
 * Shape:   ranks 0..nranks-1; node index of a rank as given in fr_judge_begin.
 * Memory:  all per-rank memory is taken in fr_judge_begin, per-communicator memory in
 * fr_judge_comm; nothing is allocated per record, step or tick. <= 2 KiB a rank. Threads: none; one
 * owner at a time. Source:  the rules and what is known of them stand in the .c files, one file a
 * rule family.
 */
#ifndef FR_JUDGE_JUDGE_H
#define FR_JUDGE_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/finding.h"

/* Limits and thresholds; fr_judge_defaults fills them. Each is a configuration key judge.<name>. */
struct fr_judge_config {
    double hang_silence_s; /* no movement for so long before a hang is looked for (default 1.5) */
    double hang_name_s;    /* ... before it is named without a direct witness (default 3) */
    double stop_confirm_s; /* a process must be stopped this long without a break (default 1) */
    double stall_floor_s;  /* law 2: floor of the limit for acting on silence (default 30) */
    double stall_factor;   /* law 2: times the longest recovered stall (default 3) */
    double agent_silent_s; /* no report for so long: silent (default 3) */
    uint32_t slow_window_steps; /* steps in a window for slowness (default 12) */
    uint32_t slow_warmup_steps; /* steps ignored at the start of an attempt (default 5) */
    double slow_min_ratio;      /* smallest excess over peers that is ever named (default 1.10) */
    double slow_fence;          /* fence in robust deviations of the cohort (default 5) */
};

void fr_judge_defaults(struct fr_judge_config *cfg);

struct fr_judge; /* one job */

/* A new attempt of a job: all open observations, timers and findings of the old one are dropped;
 * what was learnt of stalls and of the job's own step time stays. node_of[r] is the node index of
 * rank r. */
struct fr_judge *fr_judge_new(const struct fr_judge_config *cfg);
void fr_judge_free(struct fr_judge *j);
void fr_judge_begin(struct fr_judge *j, uint32_t nranks, const uint32_t *node_of, uint32_t nnodes,
                    uint64_t now_ns);

/* --- observations; a rank or communicator that is not known is ignored and counted
 * (fr_judge_summary) --- */

enum fr_proc_state { /* equal to ProcState of agent.proto */
                     FR_PROC_UNKNOWN = 0,
                     FR_PROC_RUNNING,
                     FR_PROC_DISK,
                     FR_PROC_STOPPED,
                     FR_PROC_ZOMBIE,
                     FR_PROC_GONE
};

/* How the process of a rank fares. */
struct fr_obs_proc {
    enum fr_proc_state state;
    uint64_t state_since_ns;
    uint64_t observed_ns;
    uint64_t cpu_ns, run_delay_ns, throttled_ns, major_faults; /* totals since its start */
    double stopped_ratio;                                      /* of the last second's samples */
    int32_t exit_signal;                                       /* -1: not known */
    int32_t exit_code;                                         /* -1: not known */
    bool finalized; /* it said goodbye (MPI_Finalize): its end is no death */
};
void fr_judge_proc(struct fr_judge *j, uint32_t rank, const struct fr_obs_proc *o);

/* The launcher's own word on who failed first. */
void fr_judge_launcher(struct fr_judge *j, uint32_t rank, int32_t exit_signal, uint64_t now_ns);

/* A rank's phase (enum fullrank_phase) and newest step that it has begun. */
void fr_judge_phase(struct fr_judge *j, uint32_t rank, uint32_t phase, uint64_t since_ns,
                    uint64_t step);

/* Place in the grid: index and size by enum fullrank_dim (5 of each), size 0: not told. Ranks with
 * the same pp index (and no other difference but dp, tp, cp, ep index) do the same work. */
void fr_judge_grid(struct fr_judge *j, uint32_t rank, const int32_t *index, const int32_t *size);

/* A communicator; members as arithmetic runs (first, stride, count)*; nruns 0: list not known. */
struct fr_comm_key {
    uint64_t members_hash;
    uint32_t instance;
};
void fr_judge_comm(struct fr_judge *j, struct fr_comm_key key, uint32_t size, const uint32_t *runs,
                   uint32_t nruns, const char *name);

/* A rank has freed its part of a communicator. When all members have, the judge forgets it: returns
 * 1 then, 0 while others hold it, -ENOENT when it is not known. */
int fr_judge_comm_freed(struct fr_judge *j, struct fr_comm_key key, uint32_t rank);

/* How far a rank is in a communicator. */
struct fr_obs_progress {
    uint64_t enqueued, started, completed;
    uint64_t enqueued_ns, completed_ns;
    uint64_t bytes;
    uint32_t op, dtype;
};
void fr_judge_progress(struct fr_judge *j, uint32_t rank, struct fr_comm_key key,
                       const struct fr_obs_progress *o);

/* What NCCL's own subsystem says of a rank's process. It answers for the whole job, so its word
 * comes also when the rank's agent does not. It names nobody by itself: it stands beside what is
 * seen from here. */
enum fr_ras_says { /* equal to RasWord.what of agent.proto */
                   FR_RAS_SAYS_NOTHING = 0,
                   FR_RAS_SAYS_BEHIND,    /* it has launched less than others, and nobody moves */
                   FR_RAS_SAYS_NO_ANSWER, /* its RAS thread does not answer */
                   FR_RAS_SAYS_DEAD       /* nor has it for a minute */
};
struct fr_obs_ras {
    enum fr_ras_says says;
    uint64_t since_ns, observed_ns;
    uint64_t behind; /* operations */
    uint32_t polls;
};
void fr_judge_ras(struct fr_judge *j, uint32_t rank, const struct fr_obs_ras *o);

/* What a rank is inside of. */
struct fr_obs_now {
    uint32_t op;        /* enum fr_op, FR_OP_NONE: outside of any call */
    uint32_t waits_for; /* for FR_OP_WAIT */
    uint64_t since_ns;
    struct fr_comm_key comm; /* members_hash 0: none */
    uint64_t seq, bytes;
    int32_t peer; /* p2p: job rank, -1: any or none */
    bool blind;   /* whether the operation has ended cannot be seen (GPU without kernel events) */
    uint64_t observed_ns;
};
void fr_judge_now(struct fr_judge *j, uint32_t rank, const struct fr_obs_now *o);

/* A finished step of a rank. */
struct fr_obs_step {
    uint64_t step, begin_ns, end_ns;
    uint64_t self_ns, ready_ns, in_calls_ns;
};
void fr_judge_step(struct fr_judge *j, uint32_t rank, const struct fr_obs_step *o);

/* One finished operation (whole steps are forwarded). Arrivals, waits and transfers come from
 * these. */
struct fr_obs_record {
    struct fr_comm_key comm;
    uint64_t seq, enq_ns, start_ns, end_ns, bytes, step;
    uint32_t op, dtype;
    int32_t peer;
};
void fr_judge_record(struct fr_judge *j, uint32_t rank, const struct fr_obs_record *o);

/* The agent of a node was heard at now_ns. */
void fr_judge_heard(struct fr_judge *j, uint32_t node, uint64_t now_ns);

/* The node's pressure totals (PSI "some", microseconds); readable false: unknown. */
struct fr_obs_pressure {
    bool readable;
    uint64_t cpu_some_us, memory_some_us, memory_full_us, io_some_us;
    const char *machine; /* nodes with the same machine share these figures, so they witness nothing
                            between them */
};
void fr_judge_pressure(struct fr_judge *j, uint32_t node, const struct fr_obs_pressure *o,
                       uint64_t now_ns);

/* --- conclusions --- */

/* All findings that stand at now_ns, most severe first (dead, mismatch, hang, slow, rest). Returns
 * how many were written (<= max). */
size_t fr_judge_findings(struct fr_judge *j, uint64_t now_ns, struct fr_finding *ret, size_t max);

/* What policy, page and metrics want to know of the job as a whole. */
struct fr_judge_summary {
    uint64_t last_move_ns;         /* newest progress of any rank */
    uint64_t step;                 /* newest step that all ranks have ended */
    double step_s;                 /* median of the last window, NaN: none */
    double baseline_step_s;        /* the job's own good step time, NaN: not known yet */
    double longest_stall_s;        /* longest from which this job recovered, over all attempts */
    double act_on_silence_after_s; /* law 2's limit now */
    uint64_t ignored;              /* observations that named no known rank or communicator */
};
void fr_judge_summary(const struct fr_judge *j, struct fr_judge_summary *ret);

/* Figures of one rank for lists and pages; NaN where not known. */
struct fr_judge_rank {
    double self_s;      /* median self time of the window */
    double peers_ratio; /* self over peers */
    double late_s;      /* median lateness in its groups, after pushing back */
    double wait_s;      /* median wait a step */
};
int fr_judge_rank(const struct fr_judge *j, uint32_t rank, struct fr_judge_rank *ret); /* -ENOENT */

/* Figures of one communicator and operation over the last window of kept steps. */
struct fr_judge_group {
    struct fr_comm_key key;
    char name[16];
    uint32_t size, op, count;  /* count: operations joined */
    double busbw_bytes_per_s;  /* true one: bytes x factor / (shortest duration = transfer) */
    double transfer_s, wait_s; /* medians an operation */
    int32_t last_rank;         /* most often last to arrive, -1: none */
};
size_t fr_judge_groups(const struct fr_judge *j, struct fr_judge_group *ret, size_t max);

#endif /* FR_JUDGE_JUDGE_H */
