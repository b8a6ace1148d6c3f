/* SPDX-License-Identifier: Apache-2.0 */
/* finding.c - names of kinds, subjects, causes and witnesses; which witnesses count for what */
#include "model/finding.h"

#include <stdio.h>
#include <string.h>

static const char *const KINDS[FR_FINDING_KINDS] = {
    "none", "dead", "hang", "mismatch", "slow", "job_slow", "stall", "structural", "silent"};
static const char *const SUBJECTS[] = {"job", "group", "node", "rank", "device", "link"};
static const char *const CAUSES[] = {"unknown", "gpu", "host", "network", "storage", "application"};

/* By bit. Direct: it sits on the named process or its hardware, not on its absence. */
static const struct {
    const char *name;
    int direct;  /* sits on the process itself */
    char family; /* what is measured: witnesses of one family are one and the same measurement seen
                    twice */
} WITNESSES[] = {
    {"silence", 0, 's'}, {"gone", 1, 'g'},   {"stopped", 1, 'p'}, {"mismatch", 1, 'm'},
    {"peers", 0, 't'},   {"past", 0, 't'},   {"arrival", 0, 't'}, {"throttled", 0, 'c'},
    {"starved", 0, 'q'}, {"memory", 0, 'y'}, {"io", 0, 'i'},      {"launcher", 1, 'l'},
    {"gpu", 1, 'u'},     {"link", 1, 'k'},   {"ras", 0, 'r'},     {"ras_dead", 1, 'r'},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const char *fr_finding_kind_name(enum fr_finding_kind k)
{
    return (uint32_t)k < COUNT(KINDS) ? KINDS[k] : "?";
}

const char *fr_subject_name(enum fr_subject_kind s)
{
    return (uint32_t)s < COUNT(SUBJECTS) ? SUBJECTS[s] : "?";
}

const char *fr_cause_name(enum fr_cause c)
{
    return (uint32_t)c < COUNT(CAUSES) ? CAUSES[c] : "?";
}

char *fr_witness_names(uint32_t witnesses, char *text, uint32_t n)
{
    size_t len;

    if (n == 0)
        return text;
    len = strnlen(text, n - 1);
    text[len] = 0;
    for (size_t i = 0; i < COUNT(WITNESSES); i++) {
        int w;

        if (!(witnesses >> i & 1))
            continue;
        w = snprintf(text + len, n - len, "%s%s", len ? "," : "", WITNESSES[i].name);
        if (w < 0 || (size_t)w >= n - len) {
            text[len] = 0; /* a name is there in whole or not at all */
            break;
        }
        len += (size_t)w;
    }
    return text;
}

int fr_witness_is_direct(uint32_t witnesses)
{
    for (size_t i = 0; i < COUNT(WITNESSES); i++)
        if ((witnesses >> i & 1) && WITNESSES[i].direct)
            return 1;
    return 0;
}

int fr_witness_count(uint32_t witnesses)
{
    uint32_t families = 0;

    for (size_t i = 0; i < COUNT(WITNESSES); i++)
        if (witnesses >> i & 1)
            families |= 1u << (WITNESSES[i].family - 'a');
    return __builtin_popcount(families);
}
