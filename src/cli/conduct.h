/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conduct.h - make faults one after another, each when the job is steady again, and note what was
 * found
 *
 * The schedule is the demo's own: a seed chooses victims and moments. The controller is asked for
 * pids (inject.h) and, afterwards, for its incidents and decisions; it is told nothing.
 *
 * Threads: one owner; a slowed node has a process of its own (fr_conduct_fini ends it).
 */
#ifndef FR_CLI_CONDUCT_H
#define FR_CLI_CONDUCT_H

#include <stdbool.h>

#include "base/rng.h"
#include "cli/report.h"
#include "cli/view.h"

#define FR_CONDUCT_FAULTS_MAX 64
#define FR_CONDUCT_NAMED_S    60.0 /* then a fault counts as not found */
#define FR_CONDUCT_RECOVER_S  90.0 /* from the finding to the next attempt's first step */

struct fr_conduct {
    struct fr_rng rng;
    struct fr_fault faults[FR_CONDUCT_FAULTS_MAX];
    bool out[FR_CONDUCT_FAULTS_MAX]; /* the fault's node is drained */
    size_t nfaults, at;              /* at: the one that is next or under way */
    enum { FR_CONDUCT_STEADY, FR_CONDUCT_NAMED, FR_CONDUCT_RECOVERED, FR_CONDUCT_OVER } state;
    uint64_t need_steps; /* of this attempt before the next fault */
    uint64_t first_step; /* of this attempt, as far as seen */
    uint32_t attempt;    /* that first_step belongs to */
    double since_s, delay_s;
    int slow_pid; /* process that slows a node, 0: none */
    unsigned wrong_drains;
};

/* kinds: "slow,hang,kill". -EINVAL names the bad word. */
int fr_conduct_init(struct fr_conduct *c, const char *kinds, uint64_t seed, struct fr_err *err);
void fr_conduct_fini(struct fr_conduct *c);

/* Look at the newest state and do what is due; false once all faults are done. */
bool fr_conduct_tick(struct fr_conduct *c, struct fr_view *v);

/* After the job's end: fill in what came late, and count drains of nodes that had no fault. true:
 * all was found, named right, isolated. */
bool fr_conduct_judge(struct fr_conduct *c, const struct fr_view *v);

#endif /* FR_CLI_CONDUCT_H */
