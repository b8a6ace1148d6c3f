/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_fleet.h - a SIMULATED fleet for tests of the controller: agents, one supervisor, a
 * training job
 *
 * It speaks the two messages of proto/ as the real ones do, with made-up contents: a step takes 40
 * ms, all ranks meet in one all-reduce a step, and a fault is injected by a test. It is driven by a
 * clock that the caller sets, and by a transport that the caller gives: a direct call with virtual
 * time, or HTTP with real time.
 */
#ifndef FR_CONTROL_TEST_HELPER_FLEET_H
#define FR_CONTROL_TEST_HELPER_FLEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define SIM_NODES  8
#define SIM_RANKS  16
#define SIM_EPOCHS 64

enum sim_fault { SIM_NONE = 0, SIM_STOP, SIM_KILL, SIM_EXIT };

struct sim_node {
    char name[16];
    uint64_t instance, seq, acked, epoch, verify, collect;
    uint32_t attempt;
    bool away; /* its agent does not speak */
    uint64_t sent_ns;
    uint64_t reported_step; /* newest step told */
    bool event_due, want_full;
    unsigned collected, verified;
};

struct sim {
    /* returns the HTTP status, or < 0: no answer */
    int (*post)(void *arg, bool supervise, const struct fr_buf *body, struct fr_buf *reply);
    void *arg;
    uint64_t now_ns;
    int64_t unix_offset_ns;
    uint32_t nnodes, ranks_per_node, job_nodes;
    struct sim_node nodes[SIM_NODES];
    /* supervisor */
    char job[64], error[256];
    uint64_t key, epoch, last_order, sup_sent_ns, controller;
    uint32_t attempt, state;
    int where[SIM_NODES];                           /* node index by place */
    unsigned starts[SIM_EPOCHS], stops[SIM_EPOCHS]; /* carried out, by epoch */
    unsigned old_orders;                            /* orders of a past epoch that were given */
    int64_t started_unix_ns, ended_unix_ns;
    int exit_code, exit_signal, dead_rank;
    bool finished;
    int finish_code;
    uint64_t busy_until_ns; /* starting or stopping */
    /* job */
    bool unmarked; /* its program tells of no step, phase or plan: set it before the first run */
    uint64_t step, checkpoint, first_step, total_steps, step_ns, step_began_ns, last_step_ns;
    enum sim_fault fault;
    int victim;
    uint64_t fault_ns;
};

void sim_init(struct sim *s, uint32_t nnodes, uint32_t job_nodes, uint32_t ranks_per_node,
              uint64_t total_steps);
/* Move on to now_ns: train, report, obey. */
void sim_run(struct sim *s, uint64_t now_ns);
void sim_inject(struct sim *s, enum sim_fault f, int rank);
/* Pack one report of the node as it would be sent now (full). */
void sim_pack_report(struct sim *s, uint32_t node, bool full, struct fr_buf *out);

#endif /* FR_CONTROL_TEST_HELPER_FLEET_H */
