/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - the states of a node as one table */
#include "model/node.h"

#define TO(s) (1u << FR_NODE_##s)

static const struct {
    const char *name;
    int usable;
    uint32_t next; /* states that may follow */
} FR_NODE_MOVES[FR_NODE_STATES] = {
    /* Heard again: back to what it was before the silence. The owner keeps that: silence lifts no
       drain. */
    [FR_NODE_UNKNOWN] = {"unknown", 0,
                         TO(HEALTHY) | TO(SUSPECT) | TO(DRAINING) | TO(DRAINED) | TO(VERIFYING) |
                             TO(PROBATION) | TO(DOWN)},
    [FR_NODE_HEALTHY] = {"healthy", 1,
                         TO(SUSPECT) | TO(DRAINING) | TO(DRAINED) | TO(DOWN) | TO(UNKNOWN)},
    /* still usable: a restart on the same nodes needs it; the placer takes it last */
    [FR_NODE_SUSPECT] = {"suspect", 1,
                         TO(HEALTHY) | TO(PROBATION) | TO(DRAINING) | TO(DRAINED) | TO(DOWN) |
                             TO(UNKNOWN)},
    /* HEALTHY: the drain was taken back before it was done, by whoever ordered it */
    [FR_NODE_DRAINING] = {"draining", 0, TO(DRAINED) | TO(HEALTHY) | TO(DOWN) | TO(UNKNOWN)},
    /* there is no way back to use but through its own test */
    [FR_NODE_DRAINED] = {"drained", 0, TO(VERIFYING) | TO(DOWN) | TO(UNKNOWN)},
    [FR_NODE_VERIFYING] = {"verifying", 0, TO(PROBATION) | TO(DRAINED) | TO(DOWN) | TO(UNKNOWN)},
    [FR_NODE_PROBATION] = {"probation", 1,
                           TO(HEALTHY) | TO(SUSPECT) | TO(DRAINING) | TO(DRAINED) | TO(DOWN) |
                               TO(UNKNOWN)},
    [FR_NODE_DOWN] = {"down", 0, TO(UNKNOWN) | TO(DRAINED)},
};

static int known(enum fr_node_state s)
{
    return (uint32_t)s < FR_NODE_STATES;
}

int fr_node_may_move(enum fr_node_state from, enum fr_node_state to)
{
    return known(from) && known(to) && (FR_NODE_MOVES[from].next >> to & 1);
}

const char *fr_node_state_name(enum fr_node_state s)
{
    return known(s) ? FR_NODE_MOVES[s].name : "?";
}

int fr_node_is_usable(enum fr_node_state s)
{
    return known(s) && FR_NODE_MOVES[s].usable;
}
