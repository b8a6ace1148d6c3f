/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_orders.c - the bytes are a Reply, as a controller (or who poses as one) sends it to an agent
 *
 * Refused with a sentence, or within every bound that orders.h promises.
 *
 * fuzz links: fr_agent fr_wire fr_base
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/orders.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void need(int holds)
{
    if (!holds)
        abort();
}

static int is_text(const char *s, size_t room)
{
    size_t n = strnlen(s, room);

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return 0;
    return n < room;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_orders o;

    if (fr_orders_parse(p, n, &o, &err) < 0) {
        need(err.text[0] != '\0');
        return 0;
    }
    need(o.nassignments <= FR_ORDERS_ASSIGNMENTS && o.ncommands <= FR_ORDERS_COMMANDS);
    need(o.keep_log2 <= 63 && strnlen(o.error, sizeof o.error) < sizeof o.error);
    need(o.interval_s == 0 || (o.interval_s >= 0.02 && o.interval_s <= 60));
    for (size_t i = 0; i < o.nassignments; i++) {
        const struct fr_assignment *a = &o.assignments[i];
        uint64_t sum = 0;

        need(a->job[0] && is_text(a->job, sizeof a->job) && is_text(a->cgroup, sizeof a->cgroup));
        need(a->nranks <= FR_ORDERS_RANKS && (a->session || a->cgroup[0]));
        for (size_t k = 0; k < a->nranks; k++)
            sum += a->ranks[k];
        need(sum <= (uint64_t)UINT32_MAX * FR_ORDERS_RANKS);
    }
    for (size_t i = 0; i < o.ncommands; i++)
        need(is_text(o.commands[i].job, sizeof o.commands[i].job) &&
             is_text(o.commands[i].level, sizeof o.commands[i].level));
    fr_orders_fini(&o);
    return 0;
}
