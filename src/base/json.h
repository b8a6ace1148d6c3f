/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - read small JSON documents (requests, replies, state files)
 *
 * A thin face over jansson, so that the library can be changed in one place.
 * A getter on a missing key or another type gives the default that was passed.
 *
 * Memory:  one tree a document; values below live as long as the document.
 * Range:   documents up to FR_JSON_MAX_BYTES, nesting as jansson allows (2048).
 */
#ifndef FR_BASE_JSON_H
#define FR_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define FR_JSON_MAX_BYTES (16u << 20)

struct fr_json; /* a value; NULL is a legal argument everywhere: absent */

/* Parse text of n bytes. -EINVAL with line and column in err, -E2BIG when too long. */
int fr_json_parse(const char *text, size_t n, struct fr_json **ret, struct fr_err *err);
void fr_json_free(struct fr_json *root);
void fr_json_freep(struct fr_json **rootp);

const struct fr_json *fr_json_get(const struct fr_json *obj, const char *key); /* NULL: absent */
const struct fr_json *fr_json_at(const struct fr_json *arr, size_t i);         /* NULL: absent */
size_t
fr_json_len(const struct fr_json *v); /* elements of an array or members of an object, else 0 */
bool fr_json_is_null(const struct fr_json *v); /* absent counts as null */
const char *fr_json_str(const struct fr_json *obj, const char *key, const char *def);
double fr_json_num(const struct fr_json *obj, const char *key, double def);
int64_t fr_json_int(const struct fr_json *obj, const char *key, int64_t def);
bool fr_json_bool(const struct fr_json *obj, const char *key, bool def);
enum fr_json_kind {
    FR_JSON_NULL = 0, /* also: absent */
    FR_JSON_BOOL,
    FR_JSON_INT,
    FR_JSON_REAL,
    FR_JSON_STR,
    FR_JSON_ARRAY,
    FR_JSON_OBJECT
};
enum fr_json_kind fr_json_kind(const struct fr_json *v);
int64_t fr_json_value_int(const struct fr_json *v, int64_t def); /* a true is 1 */
const char *fr_json_value_str(const struct fr_json *v, const char *def);
double fr_json_value_num(const struct fr_json *v, double def);
/* Call fn(key, value, arg) for each member of an object; stops at non-zero and returns it. */
int fr_json_each(const struct fr_json *obj,
                 int (*fn)(const char *key, const struct fr_json *v, void *arg), void *arg);

/* Append the value as compact JSON text, keys in their order; an absent value as null. */
void fr_json_write(const struct fr_json *v, struct fr_buf *out);

#endif /* FR_BASE_JSON_H */
