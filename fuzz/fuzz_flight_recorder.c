/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_flight_recorder.c - the bytes are the dumps of some ranks, pickles or JSON, parted by a line
 * "--"; they are put together and judged. fuzz links: fr_scan fr_base */
#define _GNU_SOURCE /* memmem */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scan/stuck.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fr_recorder rec;
    struct fr_stuck s = {0};

    fr_recorder_init(&rec);
    for (int32_t rank = 0; rank < 16 && n; rank++) {
        const uint8_t *end = memmem(p, n, "\n--\n", 4);
        size_t len = end ? (size_t)(end - p) : n;

        if (fr_recorder_add(&rec, rank, p, len, NULL) < 0)
            fr_recorder_fault(&rec, rank, "no dump");
        n -= end ? len + 4 : len;
        p += end ? len + 4 : len;
    }
    fr_recorder_finish(&rec);
    fr_stuck_judge(&rec, &s);
    for (size_t i = 0; i < s.nculprits; i++)
        if (s.culprits[i].rank < 0 || s.culprits[i].rank >= rec.nranks ||
            s.culprits[i].group >= rec.ngroups)
            abort();
    fr_stuck_fini(&s);
    fr_recorder_fini(&rec);
    return 0;
}
