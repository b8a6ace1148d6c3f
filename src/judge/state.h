/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what the judge keeps between calls; private to this room
 *
 * One struct per rank and one per communicator, filled by observe.c and arrival.c, read by the
 * rules (hang.c, slow.c). A rule reads state and appends findings; it may keep what it must
 * remember in the fields named after it.
 *
 * Memory:  struct rank is about 800 bytes, struct member 56 a communicator, a join slot 8 bytes a
 * member.
 */
#ifndef FR_JUDGE_STATE_H
#define FR_JUDGE_STATE_H

#include "judge/judge.h"
#include "model/op.h"

#define NS_PER_S      1000000000ull
#define STEPS_KEPT    64  /* newest self times of a rank; a window is at most half of it */
#define PAST_KEPT     8   /* clean half-windows that a rank is compared with */
#define KEPT_LATE     16  /* kept steps in the medians of lateness and wait */
#define POOL          512 /* clean ratios from which the cohort's spread is learnt */
#define BASELINES     32  /* clean windows in the job's good step time */
#define COMM_OPS      4   /* different operations of a communicator that are accounted */
#define OP_SAMPLES    16  /* joined operations in their medians */
#define COMM_RUNS_MAX 4096
#define GRID_DIMS     5 /* enum fullrank_dim: tp, cp, ep, dp, pp */
#define DIM_PP        4

enum { PHASE_IDLE, PHASE_INIT, PHASE_RESTORE, PHASE_STEP, PHASE_EVAL, PHASE_CHECKPOINT };

/* Totals of a process at one moment; two of them make shares. */
struct totals {
    uint64_t at_ns, run_delay_ns, throttled_ns;
};

struct rank {
    uint32_t node;
    /* process */
    struct fr_obs_proc proc;
    bool proc_known;
    uint64_t dead_ns; /* first seen gone or zombie, 0: not */
    struct fr_obs_ras ras;
    struct totals old, older;
    /* marks */
    uint32_t phase;
    uint64_t phase_since_ns, step_begun;
    int32_t index[GRID_DIMS], size[GRID_DIMS];
    /* where it is */
    struct fr_obs_now now;
    bool now_known, inside, left; /* inside: in the call that `now` names; left: was outside since
                                     it first entered it */
    uint64_t moved_ns;            /* newest movement */
    /* steps */
    uint64_t first_step, step_done; /* 0: none */
    float self_s[STEPS_KEPT];       /* by step % STEPS_KEPT; NaN: not known */
    /* slow.c */
    float half1_s, half2_s;  /* medians of the two newest half-windows */
    float ratio1, ratio2;    /* over peers on other nodes; NaN: no peers */
    float past_s[PAST_KEPT]; /* clean half-windows */
    uint32_t npast, peers_run, calm_run;
    bool slow, slow_past, alone; /* alone: nobody on another node is in its position */
    uint64_t slow_since_step, slow_since_ns, peers_since_ns; /* peers_since_ns: of peers_run */
    uint64_t seen_since_ns; /* its process is seen stopped in turns or throttled; 0: it is not */
    /* arrival.c: the kept step that is being summed */
    uint64_t kept_step, call_end_ns;
    double in_calls_s, wait_s, late_s;
    bool late_known;
    float late[KEPT_LATE], wait[KEPT_LATE];
    uint32_t nlate;
};

struct member {                                   /* of a communicator: how far one rank is */
    uint64_t enqueued, started, completed, bytes; /* started: entered; a GPU's launches run ahead */
    uint64_t enqueued_ns;
    uint32_t op, dtype;
    bool freed;
};

struct op_account {
    uint32_t op, count; /* count: operations joined */
    float transfer_s[OP_SAMPLES], wait_s[OP_SAMPLES], busbw[OP_SAMPLES];
    int32_t last_rank; /* majority vote over last arrivals */
    uint32_t votes;
};

struct join { /* one operation whose members are being collected */
    uint64_t seq;
    uint32_t have, op;
    uint64_t bytes;
};

struct comm {
    struct fr_comm_key key;
    char name[16];
    uint32_t size, nruns;
    uint32_t *runs;    /* first, stride, count; NULL: list not known */
    int32_t *slot_of;  /* list not known: rank -> slot, -1 */
    uint32_t *rank_of; /* list not known: slot -> rank */
    uint32_t nslots, nfreed;
    struct member *members;         /* by slot */
    struct join *joins;             /* JOINS(j) of them, by seq */
    float *duration_s, *in_calls_s; /* [join][slot] */
    struct op_account ops[COMM_OPS];
    uint64_t differ_seq, differ_since_ns; /* mismatch rule */
    uint64_t asked_seq, asked_ns; /* quiet rule: edges of this sequence were laid in this call */
    int asked_missing;
};

struct node {
    uint64_t heard_ns; /* 0: never */
    struct fr_obs_pressure pressure;
    uint64_t pressure_ns;
    double memory_share;
    uint64_t machine; /* hash of its name, 0: not told */
    bool shares;      /* another node of the job is on that machine */
    uint32_t nranks, in_position;
    /* slow.c: the finding that stands */
    bool slow_named, slow_whole;
    uint32_t slow_bits; /* every witness that has spoken while it stood */
    int32_t slow_rank;
};

struct job_step { /* a step over all ranks */
    uint64_t step;
    uint32_t n;
    double sum_s;
    uint64_t end_ns;
};

struct fr_judge {
    struct fr_judge_config cfg;
    uint32_t nranks, nnodes;
    struct rank *ranks;
    struct node *nodes;
    struct comm *comms;
    uint32_t ncomms, comms_cap;
    uint32_t *table; /* open addressing, index + 1 */
    uint32_t table_cap;
    uint64_t member_slots; /* over all communicators, bounded */
    uint32_t joins;        /* slots a communicator */
    double *scratch;       /* 2 x nranks + STEPS_KEPT + POOL */
    uint32_t *order;       /* nranks */
    int32_t *waits;        /* nranks: graph marks */
    uint64_t begin_ns, last_move_ns, now_ns, ignored;
    bool was_silent; /* an agent was silent since the last movement: the gap teaches nothing */
    double longest_stall_s;
    int32_t launcher_rank, launcher_signal;
    uint64_t launcher_ns;
    /* slow.c */
    uint64_t judged_step, first_step;
    float pool[POOL];
    uint32_t pool_rank[POOL];
    uint32_t npool, nlearnt; /* nlearnt: clean half-windows */
    double threshold;
    struct job_step steps[STEPS_KEPT];
    double baselines[BASELINES];
    uint32_t nbaselines;
    uint32_t job_slow_run;
    uint32_t structural_run;
    int32_t structural_pp;
    double structural_ratio;
};

/* What a rule appends to. */
struct findings {
    struct fr_finding *v;
    size_t n, max;
};

/* A new finding of (kind, subject, id) at the end, or a place that is thrown away when there is no
 * room. Never NULL. */
struct fr_finding *fr_judge_add(struct findings *to, enum fr_finding_kind kind,
                                enum fr_subject_kind subject, uint64_t id);
/* Append one sentence of evidence. */
void fr_judge_say(struct fr_finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* observe.c */
void fr_judge_note_move(struct fr_judge *j, struct rank *r, uint64_t t_ns);
struct comm *fr_judge_comm_find(const struct fr_judge *j, struct fr_comm_key key);
/* The member slot of a rank, -1: no member; make: for a list not known, give it one. */
int fr_judge_slot(struct fr_judge *j, struct comm *c, uint32_t rank, bool make);
/* The rank in a slot, -1: none yet. */
int fr_judge_member(const struct comm *c, uint32_t slot);
/* 1 when the rank's agent is not heard of: nothing is known of the rank. */
int fr_judge_rank_is_silent(const struct fr_judge *j, uint32_t rank, uint64_t now_ns);
int fr_judge_rank_is_over(const struct rank *r);
void fr_judge_comm_fini(struct comm *c);

/* ras.c: the word that stands now, NOTHING when it is old or the rank has moved since. */
enum fr_ras_says fr_judge_ras_says(const struct fr_judge *j, const struct rank *r, uint64_t now_ns);
/* Add RAS as a witness of a finding that names the rank. */
void fr_judge_ras_confirm(const struct fr_judge *j, struct fr_finding *f, uint64_t now_ns);

/* rules */
int fr_judge_rule_lost(struct fr_judge *j, uint64_t now_ns, struct findings *to);
int fr_judge_rule_dead(struct fr_judge *j, uint64_t now_ns, struct findings *to);
void fr_judge_rule_silent(struct fr_judge *j, uint64_t now_ns, struct findings *to);
int fr_judge_rule_mismatch(struct fr_judge *j, uint64_t now_ns, struct findings *to);
int fr_judge_rule_stopped(struct fr_judge *j, uint64_t now_ns, struct findings *to);
int fr_judge_rule_quiet(struct fr_judge *j, uint64_t now_ns, struct findings *hang,
                        struct findings *stall);
void fr_judge_learn_slow(struct fr_judge *j, uint64_t now_ns);
void fr_judge_note_seen(struct rank *r); /* behind each look at its process */
int fr_judge_rule_slow(struct fr_judge *j, uint64_t now_ns, struct findings *to);
void fr_judge_rule_job_slow(struct fr_judge *j, struct findings *to);
double fr_judge_step_now_s(const struct fr_judge *j);
double fr_judge_baseline_s(const struct fr_judge *j);
double fr_judge_silence_limit_s(const struct fr_judge *j);

/* arrival.c */
void fr_judge_arrival_reset(struct rank *r);
double fr_judge_late_s(const struct rank *r); /* median over kept steps, NaN: not known */
double fr_judge_wait_s(const struct rank *r);

#endif /* FR_JUDGE_STATE_H */
