/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_manifest.c - the bytes are a checkpoint's manifest
 *
 * As it is (nearly always refused by its checksum), and with the sum put right behind it, so that
 * what verifies and is malformed is met too. What is accepted is written again as it was.
 *
 * fuzz links: src/train/manifest.c src/train/err.c
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/train/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A number may have leading zeros, which are not written again: then only the length differs. */
static void parse(const uint8_t *p, size_t n)
{
    struct fr_err err = {0};
    struct fr_manifest m, again;
    char *text;
    size_t len;

    if (fr_manifest_parse(p, n, &m, &err) < 0) {
        if (!err.text[0])
            abort();
        return;
    }
    if (m.shards == 0 || m.shards > FR_MANIFEST_SHARDS_MAX)
        abort();
    len = fr_manifest_format(&m, &text);
    if (len > n || (len == n && memcmp(p, text, n) != 0) ||
        fr_manifest_parse((const uint8_t *)text, len, &again, &err) < 0)
        abort();
    fr_manifest_fini(&again);
    fr_manifest_fini(&m);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    enum { END = 21 }; /* "end ", 16 digits, newline */
    char *copy;

    parse(p, n);
    if (n < END)
        return 0;
    copy = malloc(n + 1);
    if (!copy)
        abort();
    memcpy(copy, p, n - END);
    snprintf(copy + n - END, END + 1, "end %016" PRIx64 "\n", fr_hash(p, n - END));
    parse((const uint8_t *)copy, n);
    free(copy);
    return 0;
}
