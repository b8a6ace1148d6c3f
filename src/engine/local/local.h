/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.h - the engine of one machine: Open MPI's mpirun, one session a supervisor
 *
 * A node of this engine is a group of ranks with an agent of its own. An attempt is one mpirun with
 * one application context a node, so that all ranks share MPI_COMM_WORLD in placement order and
 * each context has its node's environment. mpirun's scratch and shared memory lie in the attempt's
 * own folder: SIGKILL leaves nothing behind that fr_engine_ops.sweep does not remove.
 *
 * stop: the caller must lead its own session (setsid); every process of that session and
 * every descendant that left it is ended, the caller excepted. It refuses otherwise: a
 * caller inside somebody's login session would end that session.
 *
 * Draining is a state of the controller's here: there is no scheduler to tell.
 */
#ifndef FR_ENGINE_LOCAL_LOCAL_H
#define FR_ENGINE_LOCAL_LOCAL_H

#include "engine/engine.h"

extern const struct fr_engine_ops fr_engine_local;

#endif /* FR_ENGINE_LOCAL_LOCAL_H */
