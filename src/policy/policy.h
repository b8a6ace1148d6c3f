/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - from a finding, the state of the fleet and the costs to a decision
 *
 * Pure: the simulator runs it too. Laws 2 (evidence to act), 4 (bounded), 5 (a restart must pay)
 * and 9 (one owner of restarts) are here and nowhere else.
 */
#ifndef FR_POLICY_POLICY_H
#define FR_POLICY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/decision.h"
#include "model/finding.h"
#include "model/job.h"

struct fr_policy_config {
    double restart_cost_s;         /* until one was measured (default 15) */
    double slow_min_gain_ratio;    /* staying must cost at least this much more than going
                                      (default 1.2) */
    uint32_t max_attempts;         /* 0: no limit; the job's own limit wins */
    uint32_t no_progress_attempts; /* stop when so many attempts in a row made no step, nor ran on
                                      where none are marked (default 3) */
    uint32_t breaker_nodes;  /* at most so many nodes isolated ... (default 0: a fifth of the fleet,
                                at least 2) */
    double breaker_window_s; /* ... within this time (default 300) */
};
void fr_policy_defaults(struct fr_policy_config *cfg);

struct fr_policy_input {
    enum fr_mode mode;
    bool owns_restarts; /* false: something else restarts this job (law 9) */
    const struct fr_finding *finding;
    /* job */
    uint32_t attempts, max_attempts, attempts_without_step;
    uint64_t step;                      /* newest that all have ended */
    uint64_t total_steps;               /* 0: not known */
    uint64_t last_checkpoint;           /* step, 0: none */
    uint64_t checkpoint_every;          /* 0: not known */
    double step_now_s, step_baseline_s; /* NaN: not known */
    double restart_cost_s;              /* measured in this job, NaN: use the default */
    double act_on_silence_after_s;      /* law 2's limit, from the judge */
    bool attempt_ended;                 /* the processes are gone already: staying is no choice */
    bool application_failure; /* ended by its own exit code, or the same failure on other nodes: not
                                 a node's fault */
    /* fleet */
    uint32_t nodes_total, nodes_free; /* free: usable and not in this attempt */
    uint32_t isolated_in_window;
    uint64_t now_ns;
};

/* Fill *ret; never fails. */
void fr_policy_decide(const struct fr_policy_config *cfg, const struct fr_policy_input *in,
                      struct fr_decision *ret);

#endif /* FR_POLICY_POLICY_H */
