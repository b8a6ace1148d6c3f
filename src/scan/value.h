/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.h - a tree of plain values out of a foreign file: none, truth, number, text, list, dict
 *
 * What a pickle or a JSON document holds once it is read; a tuple is a list. The makers are
 * pickle.h and fr_value_from_json. A value may stand in several places, even inside itself (a
 * hostile pickle can do that): walk to a known depth only.
 *
 * Memory:  one arena a document, FR_VALUES_MAX_BYTES at most; texts stay in the input, which must
 *          live as long.
 * Threads: none; one owner at a time.
 */
#ifndef FR_SCAN_VALUE_H
#define FR_SCAN_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

#define FR_VALUES_MAX_BYTES (1ull << 30)

enum fr_value_kind {
    FR_VALUE_NONE = 0,
    FR_VALUE_BOOL,
    FR_VALUE_INT,
    FR_VALUE_NUM,
    FR_VALUE_STR,
    FR_VALUE_LIST,
    FR_VALUE_DICT
};

struct fr_value {
    enum fr_value_kind kind;
    uint32_t n;   /* bytes of a text, elements of a list, members of a dict */
    uint32_t cap; /* room of items, in pointers */
    union {
        int64_t i; /* INT, BOOL */
        double num;
        const char *s;           /* not NUL-terminated */
        struct fr_value **items; /* LIST: n; DICT: key, value, key, value, ... */
    } u;
};

struct fr_values { /* the arena; all zero is empty */
    struct fr_values_chunk *chunks;
    size_t used_bytes;
};

void fr_values_fini(struct fr_values *a);
/* A new value, NULL when the arena is full. */
struct fr_value *fr_value_new(struct fr_values *a, enum fr_value_kind kind);
/* Append to a list; a member to a dict. -EFBIG when the arena is full. */
int fr_value_add(struct fr_values *a, struct fr_value *list, struct fr_value *v);
int fr_value_put(struct fr_values *a, struct fr_value *dict, struct fr_value *key,
                 struct fr_value *v);

/* A member of a dict by its text key, the last one of that name; NULL: absent or no dict. */
const struct fr_value *fr_value_get(const struct fr_value *dict, const char *key);
/* An element of a list, NULL: absent or no list. */
const struct fr_value *fr_value_at(const struct fr_value *list, uint32_t i);
/* A whole number, also one written as text ("39416"), else def. */
int64_t fr_value_int(const struct fr_value *v, int64_t def);
bool fr_value_true(const struct fr_value *v);
/* 1 when it is this text. */
bool fr_value_is(const struct fr_value *v, const char *text);
/* Copy a text, cut to n - 1 bytes and NUL-terminated; empty when it is none. Returns ret. */
char *fr_value_text(const struct fr_value *v, char *ret, size_t n);

/* The same tree from JSON; texts stay in the document. -EFBIG, -ELOOP (nested deeper than 64). */
int fr_value_from_json(struct fr_values *a, const struct fr_json *j, struct fr_value **ret,
                       struct fr_err *err);

#endif /* FR_SCAN_VALUE_H */
