/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - states of a node: table-driven, each edge with an actor and a reason
 *
 *   unknown -> healthy -> suspect -> drained -> verifying -> probation -> healthy
 *                                     ^            |             |
 *                                     +------------+-------------+   (failed)      any -> unknown
 * (silent)
 *
 * A drained node takes no job until its own test has passed; on probation it is used
 * last and kept under watch until the time of controller.probation has passed without a finding.
 */
#ifndef FR_MODEL_NODE_H
#define FR_MODEL_NODE_H

#include <stdint.h>

enum fr_node_state {
    FR_NODE_UNKNOWN = 0, /* no report: neither healthy nor sick */
    FR_NODE_HEALTHY,
    FR_NODE_SUSPECT,   /* a finding names it; still in use */
    FR_NODE_DRAINING,  /* to be drained, an attempt still runs on it */
    FR_NODE_DRAINED,   /* takes no job */
    FR_NODE_VERIFYING, /* its test runs */
    FR_NODE_PROBATION, /* passed; used last, under watch */
    FR_NODE_DOWN,      /* its agent is gone and a second path agrees */
    FR_NODE_STATES
};

int fr_node_may_move(enum fr_node_state from, enum fr_node_state to);
const char *fr_node_state_name(enum fr_node_state s);
/* 1 when a new attempt may be placed on it. */
int fr_node_is_usable(enum fr_node_state s);

#endif /* FR_MODEL_NODE_H */
