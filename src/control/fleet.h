/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.h - nodes: their states, who is heard of, and where an attempt goes
 *
 * Every change of a node's state passes fr_node_move, which asks the table in model/node.c and
 * writes a row. Silence lifts no drain: a node that is heard again is what it was before.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_FLEET_H
#define FR_CONTROL_FLEET_H

#include "control/state.h"

#define FR_ACTOR_SELF "fullrank"

/* The node of that name, made when it is not known; NULL with a sentence for a bad name or a full
 * fleet. */
struct fr_cnode *fr_fleet_node(struct fr_ctl *c, const char *name, struct fr_err *err);

/* Move the node; 0 also when it is there already, -EPERM for a move that the table does not hold
 * (logged). */
int fr_node_move(struct fr_ctl *c, struct fr_cnode *n, enum fr_node_state to, const char *actor,
                 uint64_t incident, const char *reason);

/* Begin to drain; ours: on this controller's own account (a verification follows). */
int fr_node_drain(struct fr_ctl *c, struct fr_cnode *n, const char *actor, bool ours,
                  uint64_t incident, const char *reason);
/* Take a drain back: DRAINING to HEALTHY, DRAINED to its verification. -EPERM with a sentence
 * otherwise. */
int fr_node_resume(struct fr_ctl *c, struct fr_cnode *n, const char *actor, const char *reason,
                   struct fr_err *err);

/* It is being verified: ask its agent for the test. */
void fr_node_expect_test(struct fr_cnode *n);
/* The verification's verdict. */
void fr_node_tested(struct fr_ctl *c, struct fr_cnode *n, bool passed, const char *detail);

/* Its agent was heard. */
void fr_node_heard(struct fr_ctl *c, struct fr_cnode *n);

/* 1 when a new attempt of j may be placed on it now. */
int fr_node_is_free_for(const struct fr_ctl *c, const struct fr_cnode *n, const struct fr_cjob *j);

/*
 * Choose nodes for the next attempt of j: those of its last attempt that are usable keep their
 * place, the others are replaced by free ones (healthy first, probation last, then by name). Fills
 * out[j->nodes] and returns 0, or the number of nodes that are missing.
 */
uint32_t fr_fleet_place(struct fr_ctl *c, struct fr_cjob *j, struct fr_cnode **out);

/* All nodes by name, numbers in names as numbers (n2 before n10); out[c->nnodes]. */
void fr_fleet_list(const struct fr_ctl *c, struct fr_cnode **out);

/* Usable nodes that no attempt runs on. */
uint32_t fr_fleet_free(const struct fr_ctl *c);
/* Nodes that this controller isolated within the breaker's window. */
uint32_t fr_fleet_isolated(const struct fr_ctl *c);

void fr_fleet_tick(struct fr_ctl *c);

#endif /* FR_CONTROL_FLEET_H */
