/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_word.c - the bytes are what a launcher and its ranks write to stderr, cut at the first
 * byte's place fuzz links: fr_engine fr_base */
#include <stdint.h>
#include <stdlib.h>

#include "engine/local/word.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    size_t cut = n ? p[0] % n : 0;
    struct fr_word w;

    fr_word_init(&w);
    fr_word_feed(&w, (const char *)p, cut);
    fr_word_feed(&w, (const char *)p + cut, n - cut);
    if (w.rank < -1 || w.rank > 10000000 || w.signal < 0 || w.signal > 64 || w.exit_code < -1 ||
        w.exit_code > 255)
        abort();
    return 0;
}
