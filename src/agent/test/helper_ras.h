/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_ras.h - a FAKE of NCCL's RAS listener, for tests only: no NCCL, no job behind it
 *
 * Written from the public protocol (NCCL user guide, "RAS"): it greets, takes TIMEOUT and SET
 * FORMAT, and answers STATUS with a report that the test composes, then closes. It can also be old,
 * rude, slow or no RAS at all.
 */
#ifndef FR_AGENT_HELPER_RAS_H
#define FR_AGENT_HELPER_RAS_H

#include <stdint.h>

enum fake_ras_manner {
    FAKE_RAS_MODERN = 0, /* JSON */
    FAKE_RAS_OLD,        /* before 2.28.7: knows no SET FORMAT */
    FAKE_RAS_MUTE,       /* takes the connection and says nothing */
    FAKE_RAS_HANGS,      /* greets, and never answers the question */
    FAKE_RAS_DRIPS,      /* answers a byte at a time, for ever */
    FAKE_RAS_FLOODS,     /* answers without an end */
    FAKE_RAS_HANGS_UP,   /* in the middle of the report */
    FAKE_RAS_STRANGER    /* speaks HTTP */
};

struct fake_ras;

/* Listen on a free port of loopback. `json` and `text` (borrowed) are the report in both formats.
 */
struct fake_ras *fake_ras_start(enum fake_ras_manner manner, const char *json, const char *text);
/* The same on a socket that is bound already (taken). */
struct fake_ras *fake_ras_start_on(int fd, enum fake_ras_manner manner, const char *json,
                                   const char *text);
/* A socket bound to a free port of loopback. */
int fake_ras_bind(uint16_t *ret_port);
uint16_t fake_ras_port(const struct fake_ras *f);
unsigned fake_ras_asked(const struct fake_ras *f); /* reports given */
void fake_ras_stop(struct fake_ras *f);

#endif /* FR_AGENT_HELPER_RAS_H */
