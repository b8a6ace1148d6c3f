/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_world.h - a controller's state without its threads, and messages made by hand, for tests
 *
 * What agents and supervisors would send is packed and given to the functions that take it; time is
 * what the test sets. No process, no socket; the ledger is real.
 */
#ifndef FR_CONTROL_TEST_HELPER_WORLD_H
#define FR_CONTROL_TEST_HELPER_WORLD_H

#include <stdint.h>

#include "control/state.h"
#include "model/config.h"
#include "wire/agent.pb-c.h"
#include "wire/supervise.pb-c.h"

#define TEXT(s) ((char *)(uintptr_t)(s))

struct world {
    char dir[64];
    struct fr_config cfg;
    struct fr_ledger *lg;
    struct fr_ctl *c;
    uint64_t seq;
};

/* For cmocka: *state is a struct world. */
int setup(void **state);
int teardown(void **state);
#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

/* A report of that node as of now, its next number. */
void base_report(struct world *w, Fullrank__Report *r, Fullrank__NodeInfo *info, const char *node);
/* Send it; puts the reply's error into error (256 bytes) when given. Returns the HTTP status. */
int send_report(struct world *w, const Fullrank__Report *r, char *error);
void hear(struct world *w, const char *node);

/* A first report of a supervisor of a job of 2 nodes x 2 ranks. */
void base_supervise(struct world *w, Fullrank__SuperviseReport *r, const char *job, uint64_t key);
/* Send it; the answer is the caller's. */
Fullrank__SuperviseOrder *supervise(struct world *w, const Fullrank__SuperviseReport *r,
                                    int *status);

/* 50 ms pass, and what they leave is on the disk. */
void tick(struct world *w);
/* A job of 2 nodes x 2 ranks that runs its first attempt on n1, n2. */
struct fr_cjob *running_job(struct world *w);

struct fr_finding finding(enum fr_finding_kind kind, uint64_t key, int32_t rank);

#endif /* FR_CONTROL_TEST_HELPER_WORLD_H */
