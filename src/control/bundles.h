/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundles.h - the evidence bundles on disk and their bound
 *
 * A bundle is the folder <state>/bundles/<incident>; act.c writes them. Without a bound they would
 * fill the disk that the ledger needs.
 *
 * Threads: the loop thread.
 */
#ifndef FR_CONTROL_BUNDLES_H
#define FR_CONTROL_BUNDLES_H

#include <stddef.h>

#include "control/state.h"

void fr_bundle_dir(const struct fr_ctl *c, uint64_t incident, char *path, size_t n);

/* Remove bundles, the oldest first, until the rest takes no more than
 * controller.retain_bundles_bytes; those of open incidents stay. Blocks for a look at each file. */
void fr_bundles_trim(struct fr_ctl *c);

#endif /* FR_CONTROL_BUNDLES_H */
