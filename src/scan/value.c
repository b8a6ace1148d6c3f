/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see value.h */
#include "scan/value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define CHUNK_BYTES (64u << 10)
#define DEPTH_MAX   64

struct fr_values_chunk {
    struct fr_values_chunk *next;
    size_t used, size;
    max_align_t room[];
};

void fr_values_fini(struct fr_values *a)
{
    for (struct fr_values_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    *a = (struct fr_values){0};
}

static void *take(struct fr_values *a, size_t n)
{
    struct fr_values_chunk *c = a->chunks;

    n = (n + 15) & ~(size_t)15;
    if (!c || c->size - c->used < n) {
        size_t size = n > CHUNK_BYTES ? n : CHUNK_BYTES;

        if (a->used_bytes + size > FR_VALUES_MAX_BYTES)
            return NULL;
        c = fr_xalloc(sizeof *c + size);
        c->size = size;
        c->next = a->chunks;
        a->chunks = c;
        a->used_bytes += size;
    }
    c->used += n;
    return (char *)c->room + c->used - n;
}

struct fr_value *fr_value_new(struct fr_values *a, enum fr_value_kind kind)
{
    struct fr_value *v = take(a, sizeof *v);

    if (v)
        *v = (struct fr_value){.kind = kind};
    return v;
}

/* Room for `more` pointers behind the `used` ones. */
static int grow(struct fr_values *a, struct fr_value *v, uint32_t used, uint32_t more)
{
    uint32_t cap = v->cap ? v->cap * 2 : 4;
    struct fr_value **items;

    if (used + more <= v->cap)
        return 0;
    if (v->cap > UINT32_MAX / 4)
        return -EFBIG;
    items = take(a, cap * sizeof(struct fr_value *));
    if (!items)
        return -EFBIG;
    if (used)
        memcpy(items, v->u.items, used * sizeof(struct fr_value *));
    v->u.items = items;
    v->cap = cap;
    return 0;
}

int fr_value_add(struct fr_values *a, struct fr_value *list, struct fr_value *v)
{
    if (grow(a, list, list->n, 1) < 0)
        return -EFBIG;
    list->u.items[list->n++] = v;
    return 0;
}

int fr_value_put(struct fr_values *a, struct fr_value *dict, struct fr_value *key,
                 struct fr_value *v)
{
    if (grow(a, dict, 2 * dict->n, 2) < 0)
        return -EFBIG;
    dict->u.items[2 * dict->n] = key;
    dict->u.items[2 * dict->n + 1] = v;
    dict->n++;
    return 0;
}

const struct fr_value *fr_value_get(const struct fr_value *dict, const char *key)
{
    if (!dict || dict->kind != FR_VALUE_DICT)
        return NULL;
    for (uint32_t i = dict->n; i-- > 0;)
        if (fr_value_is(dict->u.items[2 * i], key))
            return dict->u.items[2 * i + 1];
    return NULL;
}

const struct fr_value *fr_value_at(const struct fr_value *list, uint32_t i)
{
    return list && list->kind == FR_VALUE_LIST && i < list->n ? list->u.items[i] : NULL;
}

int64_t fr_value_int(const struct fr_value *v, int64_t def)
{
    char text[24], *end;
    long long i;

    if (!v)
        return def;
    if (v->kind == FR_VALUE_INT || v->kind == FR_VALUE_BOOL)
        return v->u.i;
    if (v->kind == FR_VALUE_NUM)
        return v->u.num == floor(v->u.num) && fabs(v->u.num) < 9e15 ? (int64_t)v->u.num : def;
    if (v->kind != FR_VALUE_STR || v->n == 0 || v->n >= sizeof text)
        return def;
    memcpy(text, v->u.s, v->n);
    text[v->n] = '\0';
    errno = 0;
    i = strtoll(text, &end, 10);
    return *end || errno ? def : i;
}

bool fr_value_true(const struct fr_value *v)
{
    if (v && v->kind == FR_VALUE_STR)
        return v->n == 4 && (memcmp(v->u.s, "true", 4) == 0 || memcmp(v->u.s, "True", 4) == 0);
    return v && (v->kind == FR_VALUE_BOOL || v->kind == FR_VALUE_INT) && v->u.i != 0;
}

bool fr_value_is(const struct fr_value *v, const char *text)
{
    size_t n = strlen(text);

    return v && v->kind == FR_VALUE_STR && v->n == n && memcmp(v->u.s, text, n) == 0;
}

char *fr_value_text(const struct fr_value *v, char *ret, size_t n)
{
    size_t len = v && v->kind == FR_VALUE_STR ? v->n : 0;

    if (len > n - 1)
        len = n - 1;
    if (len)
        memcpy(ret, v->u.s, len);
    ret[len] = '\0';
    return ret;
}

/* --- from JSON --- */

struct from_json {
    struct fr_values *a;
    struct fr_value *dict;
    int depth;
};

static int convert(struct fr_values *a, const struct fr_json *j, int depth, struct fr_value **ret);

static void set_text(struct fr_value *v, const char *s)
{
    v->u.s = s;
    v->n = (uint32_t)strlen(s);
}

static int add_member(const char *key, const struct fr_json *j, void *arg)
{
    struct from_json *f = arg;
    struct fr_value *k = fr_value_new(f->a, FR_VALUE_STR), *v = NULL;
    int rc;

    if (!k)
        return -EFBIG;
    set_text(k, key);
    rc = convert(f->a, j, f->depth + 1, &v);
    return rc < 0 ? rc : fr_value_put(f->a, f->dict, k, v);
}

static int convert_list(struct fr_values *a, const struct fr_json *j, int depth,
                        struct fr_value *list)
{
    size_t n = fr_json_len(j);

    for (size_t i = 0; i < n; i++) {
        struct fr_value *v = NULL;
        int rc = convert(a, fr_json_at(j, i), depth + 1, &v);

        if (rc == 0)
            rc = fr_value_add(a, list, v);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int convert(struct fr_values *a, const struct fr_json *j, int depth, struct fr_value **ret)
{
    static const enum fr_value_kind KINDS[] = {
        [FR_JSON_NULL] = FR_VALUE_NONE,  [FR_JSON_BOOL] = FR_VALUE_BOOL,
        [FR_JSON_INT] = FR_VALUE_INT,    [FR_JSON_REAL] = FR_VALUE_NUM,
        [FR_JSON_STR] = FR_VALUE_STR,    [FR_JSON_ARRAY] = FR_VALUE_LIST,
        [FR_JSON_OBJECT] = FR_VALUE_DICT};
    struct from_json f = {.a = a, .depth = depth};
    struct fr_value *v;
    int rc = 0;

    if (depth > DEPTH_MAX)
        return -ELOOP;
    v = fr_value_new(a, KINDS[fr_json_kind(j)]);
    if (!v)
        return -EFBIG;
    if (v->kind == FR_VALUE_STR)
        set_text(v, fr_json_value_str(j, ""));
    else if (v->kind == FR_VALUE_NUM)
        v->u.num = fr_json_value_num(j, 0);
    else if (v->kind == FR_VALUE_LIST)
        rc = convert_list(a, j, depth, v);
    else if (v->kind == FR_VALUE_DICT) {
        f.dict = v;
        rc = fr_json_each(j, add_member, &f);
    } else
        v->u.i = fr_json_value_int(j, 0);
    *ret = v;
    return rc;
}

int fr_value_from_json(struct fr_values *a, const struct fr_json *j, struct fr_value **ret,
                       struct fr_err *err)
{
    struct fr_value *v = NULL;
    int rc = convert(a, j, 0, &v);

    if (rc == -ELOOP)
        return fr_fail(err, rc, "JSON is nested deeper than %d", DEPTH_MAX);
    if (rc < 0)
        return fr_fail(err, rc, "JSON holds more values than are read");
    *ret = v;
    return 0;
}
