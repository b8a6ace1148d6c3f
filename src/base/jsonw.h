/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonw.h - write JSON into a buffer, commas and escapes taken care of
 *
 * Keys are given as plain C strings. A NULL key writes an array element (or the
 * top value). NaN and infinities are written as null: unknown is not zero.
 *
 * Range:   up to FR_JSONW_DEPTH nested objects and arrays.
 * Error:   doubles are written with the fewest digits that read back the same (%.17g at worst).
 * Threads: none; one owner at a time.
 */
#ifndef FR_BASE_JSONW_H
#define FR_BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FR_JSONW_DEPTH 32

struct fr_jsonw {
    struct fr_buf *out;
    int depth;
    bool comma[FR_JSONW_DEPTH + 1];
};

void fr_jsonw_init(struct fr_jsonw *w, struct fr_buf *out);
void fr_jsonw_obj(struct fr_jsonw *w, const char *key); /* { */
void fr_jsonw_arr(struct fr_jsonw *w, const char *key); /* [ */
void fr_jsonw_end_obj(struct fr_jsonw *w);
void fr_jsonw_end_arr(struct fr_jsonw *w);
void fr_jsonw_str(struct fr_jsonw *w, const char *key,
                  const char *s); /* s NULL: null; bad UTF-8 becomes U+FFFD */
void fr_jsonw_strn(struct fr_jsonw *w, const char *key, const char *s, size_t n);
void fr_jsonw_int(struct fr_jsonw *w, const char *key, int64_t v);
void fr_jsonw_uint(struct fr_jsonw *w, const char *key, uint64_t v);
void fr_jsonw_num(struct fr_jsonw *w, const char *key, double v); /* NaN, inf: null */
void fr_jsonw_bool(struct fr_jsonw *w, const char *key, bool v);
void fr_jsonw_null(struct fr_jsonw *w, const char *key);
void fr_jsonw_time(struct fr_jsonw *w, const char *key,
                   int64_t t_unix_ns); /* RFC 3339, UTC, ms; <= 0: null */
void fr_jsonw_raw(struct fr_jsonw *w, const char *key, const char *json,
                  size_t n); /* one finished value */

#endif /* FR_BASE_JSONW_H */
