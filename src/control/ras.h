/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras.h - NCCL's RAS as the controller sees it: when an agent is to ask it, and which rank its word
 * is on
 *
 * RAS names a process by an address and its pid, and an agent that asks hears of the whole job. So
 * the controller finds the rank: the one of that epoch with that pid on a node with that address;
 * where that is not exactly one, the word is dropped.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_RAS_H
#define FR_CONTROL_RAS_H

#include "control/state.h"
#include "wire/agent.pb-c.h"

/* How often the agent of that node is to ask about its job, seconds; 0: not at all. */
double fr_ras_wanted(const struct fr_ctl *c, const struct fr_cnode *n);

/* The node's interfaces, as its agent tells them. */
void fr_ras_addresses(struct fr_cnode *n, const Fullrank__NodeInfo *m);

/* The rank that the word is on, -1: none, or more than one. */
int32_t fr_ras_rank(const struct fr_cjob *j, const struct fr_cnode *teller,
                    const Fullrank__RasWord *m);

#endif /* FR_CONTROL_RAS_H */
