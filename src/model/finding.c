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
    int direct;
} WITNESSES[] = {
    {"silence", 0}, {"gone", 1},     {"stopped", 1},   {"mismatch", 1}, {"peers", 0},
    {"past", 0},    {"arrival", 0},  {"throttled", 0}, {"starved", 0},  {"memory", 0},
    {"io", 0},      {"launcher", 1}, {"gpu", 1},       {"link", 1},
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
    return __builtin_popcount(witnesses & ((1u << COUNT(WITNESSES)) - 1));
}
