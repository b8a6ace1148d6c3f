/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - see json.h; the only user of jansson. A struct fr_json is a json_t under another name.
 */
#include "base/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

static json_t *tree(const struct fr_json *v)
{
    return (json_t *)v; /* jansson's readers take no const, and change nothing */
}

int fr_json_parse(const char *text, size_t n, struct fr_json **ret, struct fr_err *err)
{
    json_error_t why;
    json_t *root;

    if (n > FR_JSON_MAX_BYTES)
        return fr_fail(err, -E2BIG, "JSON of %zu bytes is over the limit of %u", n,
                       FR_JSON_MAX_BYTES);
    root = json_loadb(text, n, JSON_DECODE_ANY, &why);
    if (!root)
        return fr_fail(err, -EINVAL, "JSON line %d column %d: %s", why.line, why.column, why.text);
    *ret = (struct fr_json *)root;
    return 0;
}

void fr_json_free(struct fr_json *root)
{
    json_decref(tree(root));
}

void fr_json_freep(struct fr_json **rootp)
{
    fr_json_free(*rootp);
}

const struct fr_json *fr_json_get(const struct fr_json *obj, const char *key)
{
    return (const struct fr_json *)json_object_get(tree(obj), key);
}

const struct fr_json *fr_json_at(const struct fr_json *arr, size_t i)
{
    return (const struct fr_json *)json_array_get(tree(arr), i);
}

size_t fr_json_len(const struct fr_json *v)
{
    return json_is_array(tree(v)) ? json_array_size(tree(v)) : json_object_size(tree(v));
}

bool fr_json_is_null(const struct fr_json *v)
{
    return !v || json_is_null(tree(v));
}

const char *fr_json_str(const struct fr_json *obj, const char *key, const char *def)
{
    return fr_json_value_str(fr_json_get(obj, key), def);
}

double fr_json_num(const struct fr_json *obj, const char *key, double def)
{
    return fr_json_value_num(fr_json_get(obj, key), def);
}

int64_t fr_json_int(const struct fr_json *obj, const char *key, int64_t def)
{
    const json_t *v = tree(fr_json_get(obj, key));
    double d;

    if (json_is_integer(v))
        return (int64_t)json_integer_value(v);
    if (!json_is_real(v))
        return def;
    d = json_real_value(v);
    return d == floor(d) && fabs(d) <= 0x1p53 ? (int64_t)d : def; /* 1e6 is a whole number too */
}

bool fr_json_bool(const struct fr_json *obj, const char *key, bool def)
{
    const json_t *v = tree(fr_json_get(obj, key));

    return json_is_boolean(v) ? json_is_true(v) : def;
}

enum fr_json_kind fr_json_kind(const struct fr_json *v)
{
    const json_t *j = tree(v);

    return json_is_boolean(j)   ? FR_JSON_BOOL
           : json_is_integer(j) ? FR_JSON_INT
           : json_is_real(j)    ? FR_JSON_REAL
           : json_is_string(j)  ? FR_JSON_STR
           : json_is_array(j)   ? FR_JSON_ARRAY
           : json_is_object(j)  ? FR_JSON_OBJECT
                                : FR_JSON_NULL;
}

int64_t fr_json_value_int(const struct fr_json *v, int64_t def)
{
    const json_t *j = tree(v);

    return json_is_integer(j) ? (int64_t)json_integer_value(j)
           : json_is_true(j)  ? 1
           : json_is_false(j) ? 0
                              : def;
}

const char *fr_json_value_str(const struct fr_json *v, const char *def)
{
    return json_is_string(tree(v)) ? json_string_value(tree(v)) : def;
}

double fr_json_value_num(const struct fr_json *v, double def)
{
    return json_is_number(tree(v)) ? json_number_value(tree(v)) : def;
}

int fr_json_each(const struct fr_json *obj,
                 int (*fn)(const char *key, const struct fr_json *v, void *arg), void *arg)
{
    const char *key;
    json_t *v;
    int rc;

    json_object_foreach(tree(obj), key, v)
    {
        rc = fn(key, (const struct fr_json *)v, arg);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_text(const char *p, size_t n, void *out)
{
    fr_buf_add(out, p, n);
    return 0;
}

void fr_json_write(const struct fr_json *v, struct fr_buf *out)
{
    if (!v || json_dump_callback(tree(v), add_text, out,
                                 JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)) < 0)
        fr_buf_puts(out, "null");
}
