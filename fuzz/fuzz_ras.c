/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_ras.c - the bytes behind the first one are a report as whoever listens at NCCL's RAS port
 * sends it
 *
 * The first byte chooses the format and the size of the pieces. Whatever comes is refused or gives
 * facts within every bound, and the same facts in pieces as in one.
 *
 * fuzz links: fr_agent fr_base
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ras.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void need(int holds)
{
    if (!holds)
        abort();
}

static int in_pieces(bool json, const uint8_t *p, size_t n, size_t piece, struct fr_ras_report *ret)
{
    struct fr_ras_parser *r = fr_ras_parser_new(json);
    int rc = 0;

    for (size_t at = 0; at < n && rc == 0; at += piece)
        rc = fr_ras_parser_feed(r, p + at, piece < n - at ? piece : n - at, NULL);
    if (rc == 0)
        rc = fr_ras_parser_end(r, ret, NULL);
    fr_ras_parser_free(r);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct fr_ras_report a, b;
    static struct fr_ras_track track;
    const struct fr_ras_word *w[FR_RAS_WORDS];
    struct fr_err err = FR_ERR_INIT;
    bool json;
    int rc;

    if (n == 0)
        return 0;
    json = p[0] & 1;
    rc = fr_ras_parse(json, p + 1, n - 1, &a, &err);
    need(rc == in_pieces(json, p + 1, n - 1, 1 + (p[0] >> 1), &b));
    if (rc < 0) {
        need(err.text[0] != '\0');
        return 0;
    }
    need(a.nfacts <= FR_RAS_FACTS && a.nfacts == b.nfacts && a.dropped == b.dropped);
    memset(&track, 0, sizeof track);
    for (size_t i = 0; i < a.nfacts; i++) {
        const struct fr_ras_fact *f = &a.facts[i];

        need(f->what > FR_RAS_NONE && f->what <= FR_RAS_DEAD && f->pid > 0 && f->pid <= INT32_MAX);
        need(f->comm_rank >= -1 && memcmp(f, &b.facts[i], sizeof *f) == 0);
        need(strnlen(f->host, sizeof f->host) < sizeof f->host);
        for (const char *c = f->host; *c; c++)
            need(*c > 0x20 && *c < 0x7f && *c != '"' && *c != '\\');
        need(f->what != FR_RAS_BEHIND_OTHERS || f->behind > 0);
    }
    for (uint64_t k = 1; k < 5; k++)
        fr_ras_track_take(&track, &a, k);
    need(track.n <= a.nfacts && fr_ras_track_words(&track, w, FR_RAS_WORDS) <= FR_RAS_WORDS);
    return 0;
}
