/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - everything that the controller knows, in one place with one owner
 *
 * The loop thread owns this state; no other thread reads or writes it. HTTP threads see finished
 * documents only (snapshot.h). What must survive the process is written to the ledger from here and
 * read back by restore.c; the rest is told again by agents and supervisors after a restart.
 *
 * Unit:    _unix_ns is wall time as this controller counts it (its monotonic clock plus one offset
 * taken at the start, so that a jump of the wall clock cannot break an account); _ns is its
 * monotonic clock.
 * Memory:  nodes <= FR_NODES_MAX, jobs <= FR_JOBS_MAX, ranks a job <=
 * FR_JOB_RANKS_MAX, steps a job <= FR_JOB_STEPS_MAX, incidents <= FR_INCIDENTS_MAX; a peer that
 * wants more is refused.
 * Threads: the loop thread (or one test).
 */
#ifndef FR_CONTROL_STATE_H
#define FR_CONTROL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "judge/goodput.h"
#include "judge/judge.h"
#include "model/config.h"
#include "model/decision.h"
#include "model/finding.h"
#include "model/job.h"
#include "model/node.h"
#include "policy/policy.h"
#include "store/ledger.h"

#define FR_NODES_MAX      4096
#define FR_JOBS_MAX       256
#define FR_JOB_NODES_MAX  4096
#define FR_JOB_RANKS_MAX  16384
#define FR_JOB_STEPS_MAX  (1u << 19)
#define FR_JOB_COMMS_MAX  65536
#define FR_INCIDENTS_MAX  8192
#define FR_TEXT_BYTES     256
#define FR_FINDINGS_MAX   64
#define FR_NODE_HISTORY   32
#define FR_NODE_ADDRESSES 32
#define FR_ACKS           1024       /* reports of one agent that wait for their rows */
#define FR_ROW_RESTORED   UINT64_MAX /* number of a row that was read from the ledger */
#define FR_SAVES          256        /* a power of two */
#define FR_STEPS_OPEN     64         /* steps that some ranks have ended and others not */

struct fr_events;
struct fr_nccl;

/* --- nodes --- */

struct fr_node_change {
    enum fr_node_state state;
    int64_t at_unix_ns;
    uint64_t incident;
    char actor[FR_NAME_BYTES];
    char reason[FR_TEXT_BYTES];
};

/* A report that was taken and may be acknowledged once what it said is durable. */
struct fr_ack {
    uint64_t seq, save;   /* save: the first saving of the state that holds what it said */
    uint64_t deadline_ns; /* then it counts as said, whatever became of its open steps */
    struct fr_cjob *job;  /* whose step below must have been recorded; NULL: none */
    uint64_t epoch, step;
};

struct fr_ratio { /* rate of a total against time, over at least a second */
    uint64_t at_ns, total;
    double ratio; /* NaN: not known yet */
};

struct fr_cnode {
    char name[FR_NAME_BYTES], host[FR_NAME_BYTES], rack[FR_NAME_BYTES], machine[FR_NAME_BYTES];
    char engine[16], version[32], boot_id[48], probe_dir[256];
    char *addresses; /* each behind a blank; NULL: not told */
    uint32_t ranks_max;
    enum fr_node_state state, before_silence;
    char reason[FR_TEXT_BYTES], actor[FR_NAME_BYTES];
    int64_t since_unix_ns, probation_until_unix_ns;
    uint64_t incident; /* that drained it, 0: none */
    bool ours;         /* drained by this controller on its own */
    uint64_t test_id;  /* of the verification that runs or ran, 0: none */
    bool test_passed;
    char test_detail[128];
    bool silent;  /* not heard for longer than the limit */
    uint64_t row; /* of its newest change */
    struct fr_node_change history[FR_NODE_HISTORY];
    uint32_t nhistory;   /* all there were; the newest FR_NODE_HISTORY are held */
    uint32_t nsaved;     /* of them handed to the ledger */
    struct fr_cjob *job; /* whose current attempt runs on it */
    uint32_t job_index;  /* index in that attempt's node list */
    /* its agent */
    bool has_info, want_full, evidence_done;
    uint64_t instance, last_seq, acked_seq, heard_ns;
    bool settled;    /* nothing older than first_seq can come any more but out of the spool */
    uint64_t met_ns; /* this instance was heard first */
    uint64_t first_seq, resent_seq,
        first_step;        /* first_seq: of the first report that this controller saw */
    int64_t offset_now_ns; /* of the report that is being taken */
    int64_t offset_ns[2];  /* smallest receive - send: this window, the one before */
    bool offset_known[2];
    uint64_t window_ns;  /* begin of this window */
    struct fr_ack *acks; /* FR_ACKS, a ring */
    uint32_t ack_first, nacks;
    struct fr_ratio cpu;
    uint64_t cpu_ns, rss_bytes, records, lost_records, spool_bytes;
    uint64_t job_epoch, job_colls,
        job_p2ps;       /* operations in steps that were told, of that attempt */
    uint64_t job_lost0; /* lost_records when it was first heard of */
    bool pressure_known;
    struct fr_ratio cpu_some, memory_some;
    double load1;
};

/* --- jobs --- */

struct fr_crank {
    bool known; /* something was heard of it in this attempt */
    uint32_t pid, state /* enum fr_proc_state */, phase, now_op, now_instance;
    uint64_t state_since_ns, phase_since_ns, observed_ns;
    uint64_t step, checkpoint_step, now_since_ns, now_hash, now_seq, rss_bytes;
    uint64_t cpu_ns, run_delay_ns, throttled_ns, major_faults, gone_ns;
    int32_t now_peer, exit_signal, exit_code;
    int32_t grid_index[5], grid_size[5];
    double stopped_ratio;
    struct fr_ratio cpu, run_delay;
    uint64_t dropped;      /* records that it had no room for */
    bool finalized, moved; /* moved: it has completed a collective in this attempt */
};

struct fr_cattempt {
    uint32_t attempt;
    uint64_t epoch, decision, row;
    struct fr_cnode **nodes; /* in rank order */
    uint32_t nnodes;
    int64_t start_unix_ns, stop_unix_ns, end_unix_ns, first_step_unix_ns;
    int64_t first_move_unix_ns; /* all its ranks had completed a collective; kept as the end of a
                                   span of the init phase */
    uint64_t first_step, last_step, resumed_from;
    int32_t exit_code, exit_signal;
    char end_reason[FR_TEXT_BYTES];
    bool dirty;
};

struct fr_ccomm {
    uint64_t hash; /* 0: free slot */
    uint32_t instance, size;
    uint32_t nodes; /* that its members are on, 0: members not known */
    char name[16];
};

struct fr_cstep { /* what is shown of a finished step beside fr_gp_step */
    double loss, tokens;
    float self_max_s, self_median_s;
    int32_t slowest_rank;
};

struct fr_open_step { /* not all ranks have reported it yet */
    uint64_t step;    /* 0: free */
    uint32_t count;
    int64_t begin_unix_ns, end_unix_ns;
    double loss, tokens;
    float *self_s; /* a rank each; NaN: not reported */
};

/* Orders have ids that follow from what they are, so that a restarted controller gives the same
 * order the same id. */
enum fr_order_what {
    FR_ORDER_NONE = 0,
    FR_ORDER_START = 1,
    FR_ORDER_STOP = 2,
    FR_ORDER_FINISH = 3
};

struct fr_order {
    enum fr_order_what what;
    uint64_t id, epoch, decision, row; /* given once row is durable */
    uint32_t attempt;
    int32_t exit_code;
    char reason[FR_TEXT_BYTES];
};

/* What is being done about an incident. */
enum fr_act_stage {
    FR_ACT_NONE = 0,
    FR_ACT_RECORD,  /* decision and actions are on their way to the disk */
    FR_ACT_COLLECT, /* evidence is gathered */
    FR_ACT_STOP,    /* the attempt is being ended */
    FR_ACT_PLACE,   /* the next attempt waits for nodes */
    FR_ACT_START    /* the next attempt was ordered */
};

struct fr_act {
    enum fr_act_stage stage;
    struct fr_cdecision *decision;
    struct fr_cincident *incident; /* may be NULL: an attempt that failed by itself */
    uint64_t since_ns, row;
    enum fr_choice choice;
    struct fr_cnode *node; /* to drain */
    uint32_t waiting;      /* agents whose evidence is not complete */
    bool dumps;            /* some of them wait for dumps of processes */
};

struct fr_cjob {
    char job[FR_NAME_BYTES], name[FR_NAME_BYTES], user[FR_NAME_BYTES], engine[16];
    char *command, *workdir; /* command: a JSON array */
    uint32_t uid, nodes, ranks_per_node, spares, max_attempts;
    uint32_t nranks;
    enum fr_job_state state;
    enum fr_mode mode;
    uint64_t key, epoch;
    int64_t submitted_unix_ns, ended_unix_ns;
    int32_t exit_code;
    uint64_t total_steps, checkpoint_every, checkpoint_step;
    double tokens_per_step, flops_per_step, peak_flops_per_rank;
    char note[FR_TEXT_BYTES];
    bool dirty, changed; /* changed: tell the event stream */
    uint64_t row, told_ns;
    /* its supervisor */
    uint32_t session;
    uint64_t heard_ns, last_order; /* heard_ns: also when it was lost sight of */
    char restarts_owner[128]; /* what else starts the job again; "": nothing, it is ours to do */
    bool supervisor_told;     /* since this controller was started: restarts_owner is known */
    bool cancelled, launcher_told;
    bool launcher_killed; /* the attempt ended because its launcher was, which is no rank's doing */
    struct fr_order order;
    /* attempts; the last one is the current one */
    struct fr_cattempt *attempts;
    uint32_t nattempts;
    struct fr_judge *judge; /* NULL once the job has ended */
    bool judging;           /* the current attempt has begun and not ended */
    struct fr_crank *ranks;
    struct fr_open_step *open_steps;
    float *open_self;
    uint64_t step_done; /* newest step of this attempt that all have ended */
    uint64_t step_row;  /* its row */
    uint64_t step_durable, pending_step,
        pending_row;             /* up to where steps are on the disk; what is on its way there */
    uint64_t begin_ns;           /* judging began */
    uint64_t attempt_checkpoint; /* newest that this attempt told of */
    uint32_t moved;              /* ranks of it that have completed a collective */
    uint64_t moved_ns;           /* the last of them had by then */
    struct fr_ccomm
        *comms; /* open addressing by key; names for what is shown, and the bound on their number */
    uint32_t ncomms, comms_cap;
    uint32_t sources;     /* enum fr_seg_source bits that any rank of the attempt writes by */
    struct fr_nccl *nccl; /* figures of NCCL's operations; NULL: none */
    uint32_t keep_log2;   /* forwarded steps: n mod 2^keep_log2 == 0 */
    uint64_t record_bytes, record_window_ns;
    uint64_t burst_until, burst_ns; /* every step up to there is asked for; since when */
    uint64_t stale;                 /* observations of another epoch, dropped */
    uint64_t foreign;               /* observations of ranks that the node does not hold, dropped */
    /* what has happened, for the account */
    struct fr_gp_step *steps;
    struct fr_cstep *step_info;
    size_t nsteps, steps_cap, steps_saved;
    struct fr_gp_span *spans;
    size_t nspans, spans_cap, spans_saved;
    bool *span_dirty;
    double last_loss;
    struct fr_gp_account account;
    uint64_t account_ns, account_cost_ns;
    bool account_final;
    /* acting */
    struct fr_act act;
    uint64_t
        settle_ns; /* the attempt ended well: the last reports are waited for until then; 0: no */
    uint64_t
        verdict_ns; /* the attempt ended badly by itself: decide by then; 0: nothing to decide */
    double restart_cost_s; /* measured, NaN: not yet */
};

/* --- incidents, decisions --- */

struct fr_caction {
    char kind[24], target[FR_NAME_BYTES], state[16];
    int64_t started_unix_ns, ended_unix_ns;
    char detail[FR_TEXT_BYTES];
    bool dirty;
};

#define FR_DECISION_ACTIONS 4
struct fr_cdecision {
    uint64_t id, incident, row;
    struct fr_cjob *job;
    uint32_t attempt;
    enum fr_choice choice;
    char mode[16], node[FR_NAME_BYTES], actor[FR_NAME_BYTES];
    double cost_stay_s, cost_restart_s;
    uint64_t wait_until_step;
    int64_t decided_unix_ns;
    char reason[400];
    struct fr_caction actions[FR_DECISION_ACTIONS];
    uint32_t nactions;
    bool dirty;
};

struct fr_cincident {
    uint64_t id, epoch, row;
    struct fr_cjob *job;
    uint32_t attempt;
    struct fr_finding f;                  /* the newest that stood */
    double shown_confidence, shown_ratio; /* as of the newest row */
    char kind[16], subject[16], cause[16], node[FR_NAME_BYTES], group[32];
    int64_t onset_unix_ns, named_unix_ns, closed_unix_ns, last_move_unix_ns;
    uint64_t named_step;
    char acknowledged_by[FR_NAME_BYTES];
    char *evidence; /* JSON array */
    bool has_bundle, dirty;
    uint32_t nfiles;
    uint64_t bundle_bytes; /* taken from agents */
    uint64_t seen_ns;      /* the finding stood last; 0: restored, not seen since */
    uint64_t decision;     /* newest, 0: none */
};

/* --- the whole --- */

struct fr_counts {
    uint64_t reports, repeated, stale, refused, report_bytes, records;
};

struct fr_ctl {
    struct fr_config cfg;
    struct fr_judge_config judge_cfg;
    struct fr_policy_config policy_cfg;
    enum fr_mode mode;
    char state_dir[512];
    uint64_t instance;
    int64_t unix_offset_ns; /* wall = mono + this */
    uint64_t now_ns, start_ns;
    struct fr_ledger *ledger;
    bool ledger_ok;
    char ledger_error[FR_TEXT_BYTES];
    uint64_t appended; /* number of the newest row */
    uint64_t saves;    /* times that the state was handed over; save_rows: the newest row then */
    uint64_t save_rows[FR_SAVES];
    struct fr_events *events; /* NULL: nobody listens */
    struct fr_cnode **nodes;
    uint32_t nnodes;
    struct fr_cnode **node_table; /* by name, open addressing, 2 x FR_NODES_MAX places */
    struct fr_cjob **jobs;
    uint32_t njobs, job_number;
    struct fr_cincident **incidents; /* by rising id */
    size_t nincidents;
    struct fr_cdecision **decisions; /* by rising id */
    size_t ndecisions;
    uint64_t incident_id, decision_id; /* newest given out */
    uint64_t choices[FR_CHOICES];
    struct fr_counts counts;
    uint64_t status_ns, judged_ns, pruned_ns;
};

/* state.c */
/* cfg is copied. The ledger must outlive the state. */
struct fr_ctl *fr_ctl_new(const struct fr_config *cfg, enum fr_mode mode, const char *state_dir,
                          struct fr_ledger *lg);
void fr_ctl_free(struct fr_ctl *c);
/* Everything that goes by time; call it every 50 ms with the monotonic clock. */
void fr_ctl_tick(struct fr_ctl *c, uint64_t now_ns);
/* Hand what changed to the ledger; nothing while the ledger is in trouble (it stays marked). */
void fr_ctl_save(struct fr_ctl *c);
int64_t fr_ctl_unix(const struct fr_ctl *c, uint64_t mono_ns);
int64_t fr_ctl_now_unix(const struct fr_ctl *c);
bool fr_ctl_durable(const struct fr_ctl *c, uint64_t row);
/* The state as of that saving (counted from 1) is on the disk. */
bool fr_ctl_save_durable(const struct fr_ctl *c, uint64_t save);
/* 1: 1..63 of [A-Za-z0-9._-], not beginning with a dot. */
int fr_ctl_name_ok(const char *name);
/* Fold a total seen at a time into a rate; scale: units of the total in a second of full use. */
void fr_ratio_update(struct fr_ratio *r, uint64_t at_ns, uint64_t total, double scale);

struct fr_cnode *fr_ctl_node(struct fr_ctl *c, const char *name);
/* Where the node of that name is or would be in node_table. */
struct fr_cnode **fr_ctl_node_place(struct fr_ctl *c, const char *name);
struct fr_cjob *fr_ctl_job(struct fr_ctl *c, const char *name);
struct fr_cincident *fr_ctl_incident(struct fr_ctl *c, uint64_t id);
struct fr_cdecision *fr_ctl_decision(struct fr_ctl *c, uint64_t id);
struct fr_cattempt *fr_job_current(struct fr_cjob *j); /* NULL: none yet */

#endif /* FR_CONTROL_STATE_H */
