/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - see pickle.h */
#include "scan/pickle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

struct machine {
    const uint8_t *p;
    size_t n, at, op_at; /* op_at: offset of the opcode under way */
    struct fr_values *a;
    struct fr_value **stack;
    size_t depth, stack_cap;
    size_t *marks; /* stack depths */
    size_t nmarks, marks_cap;
    struct fr_value **memo;
    size_t memo_cap, memo_count; /* count: places that MEMOIZE numbers from */
    struct fr_err *err;
};

/* What an opcode does; its argument was taken already: the bytes of a text or number, or just a
 * number. */
struct op_arg {
    uint64_t number;
    const uint8_t *bytes;
};

enum arg_kind {
    ARG_NONE,
    ARG_U1,
    ARG_U2,
    ARG_U4,
    ARG_U8,
    ARG_F8,
    ARG_BYTES1,
    ARG_BYTES4,
    ARG_BYTES8
};

static int bad(struct machine *m, const char *what)
{
    return fr_fail(m->err, -EINVAL, "offset %zu: %s", m->op_at, what);
}

static int full(struct machine *m)
{
    return fr_fail(m->err, -EFBIG, "offset %zu: more values than are read", m->op_at);
}

/* --- the stack --- */

static int push(struct machine *m, struct fr_value *v)
{
    if (!v)
        return full(m);
    if (m->depth == m->stack_cap) {
        m->stack_cap = m->stack_cap ? 2 * m->stack_cap : 64;
        m->stack = fr_xreallocarray(m->stack, m->stack_cap, sizeof(struct fr_value *));
    }
    m->stack[m->depth++] = v;
    return 0;
}

static size_t floor_of(const struct machine *m)
{
    return m->nmarks ? m->marks[m->nmarks - 1] : 0;
}

static int push_int(struct machine *m, int64_t i)
{
    struct fr_value *v = fr_value_new(m->a, FR_VALUE_INT);

    if (v)
        v->u.i = i;
    return push(m, v);
}

static int push_bool(struct machine *m, bool b)
{
    struct fr_value *v = fr_value_new(m->a, FR_VALUE_BOOL);

    if (v)
        v->u.i = b;
    return push(m, v);
}

/* The container below the values that begin at `from`. */
static struct fr_value *container(struct machine *m, size_t from, enum fr_value_kind kind)
{
    if (from == 0 || from > m->depth || m->stack[from - 1]->kind != kind)
        return NULL;
    return m->stack[from - 1];
}

static int append_from(struct machine *m, size_t from)
{
    struct fr_value *list = container(m, from, FR_VALUE_LIST);

    if (!list)
        return bad(m, "nothing there to append to");
    for (size_t i = from; i < m->depth; i++)
        if (fr_value_add(m->a, list, m->stack[i]) < 0)
            return full(m);
    m->depth = from;
    return 0;
}

static int set_from(struct machine *m, size_t from)
{
    struct fr_value *dict = container(m, from, FR_VALUE_DICT);

    if (!dict)
        return bad(m, "no dict there to set members of");
    if ((m->depth - from) % 2)
        return bad(m, "a key without a value");
    for (size_t i = from; i < m->depth; i += 2)
        if (fr_value_put(m->a, dict, m->stack[i], m->stack[i + 1]) < 0)
            return full(m);
    m->depth = from;
    return 0;
}

/* A tuple of all values from `from` on. */
static int tuple_from(struct machine *m, size_t from)
{
    struct fr_value *v = fr_value_new(m->a, FR_VALUE_LIST);

    if (!v)
        return full(m);
    for (size_t i = from; i < m->depth; i++)
        if (fr_value_add(m->a, v, m->stack[i]) < 0)
            return full(m);
    m->depth = from;
    return push(m, v);
}

static int pop_mark(struct machine *m, size_t *ret)
{
    if (m->nmarks == 0)
        return bad(m, "no mark on the stack");
    *ret = m->marks[--m->nmarks];
    return 0;
}

/* `count` values above the newest mark. */
static int top_values(struct machine *m, size_t count, size_t *ret_from)
{
    if (m->depth - floor_of(m) < count)
        return bad(m, "too few values on the stack");
    *ret_from = m->depth - count;
    return 0;
}

/* --- one function an opcode --- */

static int do_mark(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    if (m->nmarks == m->marks_cap) {
        m->marks_cap = m->marks_cap ? 2 * m->marks_cap : 64;
        m->marks = fr_xreallocarray(m->marks, m->marks_cap, sizeof *m->marks);
    }
    m->marks[m->nmarks++] = m->depth;
    return 0;
}

static int do_none(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return push(m, fr_value_new(m->a, FR_VALUE_NONE));
}

static int do_true(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return push_bool(m, true);
}

static int do_false(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return push_bool(m, false);
}

static int do_uint(struct machine *m, const struct op_arg *arg)
{
    return push_int(m, (int64_t)arg->number);
}

static int do_int32(struct machine *m, const struct op_arg *arg)
{
    return push_int(m, (int32_t)(uint32_t)arg->number);
}

/* Little-endian two's complement of any length; what does not fit 64 bits is refused. */
static int do_long(struct machine *m, const struct op_arg *arg)
{
    size_t n = (size_t)arg->number;
    uint8_t sign = n && arg->bytes[n - 1] & 0x80 ? 0xff : 0;
    uint64_t u = sign ? UINT64_MAX : 0;

    for (size_t i = 8; i < n; i++)
        if (arg->bytes[i] != sign)
            return bad(m, "a whole number of more than 64 bits");
    if (n >= 8 && (arg->bytes[7] & 0x80) != (sign & 0x80))
        return bad(m, "a whole number of more than 64 bits");
    for (size_t i = n < 8 ? n : 8; i-- > 0;)
        u = u << 8 | arg->bytes[i];
    return push_int(m, (int64_t)u);
}

static int do_float(struct machine *m, const struct op_arg *arg)
{
    struct fr_value *v = fr_value_new(m->a, FR_VALUE_NUM);

    if (v)
        memcpy(&v->u.num, &arg->number, sizeof v->u.num);
    return push(m, v);
}

static int do_text(struct machine *m, const struct op_arg *arg)
{
    struct fr_value *v = fr_value_new(m->a, FR_VALUE_STR);

    if (v) {
        v->u.s = (const char *)arg->bytes;
        v->n = (uint32_t)arg->number;
    }
    return push(m, v);
}

static int do_empty_list(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return push(m, fr_value_new(m->a, FR_VALUE_LIST));
}

static int do_empty_dict(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return push(m, fr_value_new(m->a, FR_VALUE_DICT));
}

static int do_append(struct machine *m, const struct op_arg *arg)
{
    size_t from = 0;
    int rc = top_values(m, 2, &from);

    (void)arg;
    return rc < 0 ? rc : append_from(m, from + 1);
}

static int do_appends(struct machine *m, const struct op_arg *arg)
{
    size_t from = 0;
    int rc = pop_mark(m, &from);

    (void)arg;
    return rc < 0 ? rc : append_from(m, from);
}

static int do_setitem(struct machine *m, const struct op_arg *arg)
{
    size_t from = 0;
    int rc = top_values(m, 3, &from);

    (void)arg;
    return rc < 0 ? rc : set_from(m, from + 1);
}

static int do_setitems(struct machine *m, const struct op_arg *arg)
{
    size_t from = 0;
    int rc = pop_mark(m, &from);

    (void)arg;
    return rc < 0 ? rc : set_from(m, from);
}

static int do_tuple(struct machine *m, const struct op_arg *arg)
{
    size_t from = 0;
    int rc = pop_mark(m, &from);

    (void)arg;
    return rc < 0 ? rc : tuple_from(m, from);
}

static int tuple_of(struct machine *m, size_t count)
{
    size_t from = 0;
    int rc = top_values(m, count, &from);

    return rc < 0 ? rc : tuple_from(m, from);
}

static int do_tuple1(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return tuple_of(m, 1);
}

static int do_tuple2(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return tuple_of(m, 2);
}

static int do_tuple3(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return tuple_of(m, 3);
}

static int remember(struct machine *m, uint64_t place)
{
    size_t from = 0;
    int rc = top_values(m, 1, &from);

    if (rc < 0)
        return rc;
    /* Writers number from 0 on, one opcode each: a place beyond the input is no honest one. */
    if (place >= m->n)
        return bad(m, "a place of the memo beyond the input");
    if (place >= m->memo_cap) {
        size_t cap = m->memo_cap ? m->memo_cap : 64;

        while (cap <= place)
            cap *= 2;
        m->memo = fr_xreallocarray(m->memo, cap, sizeof(struct fr_value *));
        memset(m->memo + m->memo_cap, 0, (cap - m->memo_cap) * sizeof(struct fr_value *));
        m->memo_cap = cap;
    }
    m->memo_count += !m->memo[place];
    m->memo[place] = m->stack[from];
    return 0;
}

static int do_put(struct machine *m, const struct op_arg *arg)
{
    return remember(m, arg->number);
}

static int do_memoize(struct machine *m, const struct op_arg *arg)
{
    (void)arg;
    return remember(m, m->memo_count);
}

static int do_get(struct machine *m, const struct op_arg *arg)
{
    if (arg->number >= m->memo_cap || !m->memo[arg->number])
        return bad(m, "a place of the memo that was never filled");
    return push(m, m->memo[arg->number]);
}

static int do_proto(struct machine *m, const struct op_arg *arg)
{
    if (m->op_at != 0)
        return bad(m, "a second header");
    if (arg->number < 2 || arg->number > 5)
        return fr_fail(m->err, -EPROTO, "offset 1: pickle protocol %u (2 to 5 are read)",
                       (unsigned)arg->number);
    return 0;
}

static int do_frame(struct machine *m, const struct op_arg *arg)
{
    return arg->number <= m->n - m->at ? 0 : bad(m, "a frame beyond the end: the file is cut");
}

/* --- the table --- */

struct op {
    const char *name;
    enum arg_kind arg;
    int (*run)(struct machine *m, const struct op_arg *arg); /* NULL: known, and refused */
};

static const struct op OPS[256] = {
    ['('] = {"MARK", ARG_NONE, do_mark},
    ['N'] = {"NONE", ARG_NONE, do_none},
    [0x88] = {"NEWTRUE", ARG_NONE, do_true},
    [0x89] = {"NEWFALSE", ARG_NONE, do_false},
    ['K'] = {"BININT1", ARG_U1, do_uint},
    ['M'] = {"BININT2", ARG_U2, do_uint},
    ['J'] = {"BININT", ARG_U4, do_int32},
    [0x8a] = {"LONG1", ARG_BYTES1, do_long},
    ['G'] = {"BINFLOAT", ARG_F8, do_float},
    [0x8c] = {"SHORT_BINUNICODE", ARG_BYTES1, do_text},
    ['X'] = {"BINUNICODE", ARG_BYTES4, do_text},
    [0x8d] = {"BINUNICODE8", ARG_BYTES8, do_text},
    [']'] = {"EMPTY_LIST", ARG_NONE, do_empty_list},
    ['a'] = {"APPEND", ARG_NONE, do_append},
    ['e'] = {"APPENDS", ARG_NONE, do_appends},
    ['}'] = {"EMPTY_DICT", ARG_NONE, do_empty_dict},
    ['s'] = {"SETITEM", ARG_NONE, do_setitem},
    ['u'] = {"SETITEMS", ARG_NONE, do_setitems},
    [')'] = {"EMPTY_TUPLE", ARG_NONE, do_empty_list},
    ['t'] = {"TUPLE", ARG_NONE, do_tuple},
    [0x85] = {"TUPLE1", ARG_NONE, do_tuple1},
    [0x86] = {"TUPLE2", ARG_NONE, do_tuple2},
    [0x87] = {"TUPLE3", ARG_NONE, do_tuple3},
    ['q'] = {"BINPUT", ARG_U1, do_put},
    ['r'] = {"LONG_BINPUT", ARG_U4, do_put},
    ['h'] = {"BINGET", ARG_U1, do_get},
    ['j'] = {"LONG_BINGET", ARG_U4, do_get},
    [0x94] = {"MEMOIZE", ARG_NONE, do_memoize},
    [0x80] = {"PROTO", ARG_U1, do_proto},
    [0x95] = {"FRAME", ARG_U8, do_frame},
    /* named for the message only */
    ['c'] = {"GLOBAL", ARG_NONE, NULL},
    [0x93] = {"STACK_GLOBAL", ARG_NONE, NULL},
    ['R'] = {"REDUCE", ARG_NONE, NULL},
    ['b'] = {"BUILD", ARG_NONE, NULL},
    ['i'] = {"INST", ARG_NONE, NULL},
    ['o'] = {"OBJ", ARG_NONE, NULL},
    [0x81] = {"NEWOBJ", ARG_NONE, NULL},
    [0x92] = {"NEWOBJ_EX", ARG_NONE, NULL},
    [0x82] = {"EXT1", ARG_NONE, NULL},
    [0x83] = {"EXT2", ARG_NONE, NULL},
    [0x84] = {"EXT4", ARG_NONE, NULL},
    ['P'] = {"PERSID", ARG_NONE, NULL},
    ['Q'] = {"BINPERSID", ARG_NONE, NULL},
};

/* n bytes, little-endian. */
static uint64_t number_at(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

static int take_arg(struct machine *m, enum arg_kind kind, struct op_arg *ret)
{
    static const uint8_t WIDTH[] = {
        [ARG_NONE] = 0, [ARG_U1] = 1,     [ARG_U2] = 2,     [ARG_U4] = 4,    [ARG_U8] = 8,
        [ARG_F8] = 8,   [ARG_BYTES1] = 1, [ARG_BYTES4] = 4, [ARG_BYTES8] = 8};
    size_t width = WIDTH[kind];

    if (m->n - m->at < width)
        return bad(m, "the file is cut within an argument");
    ret->number = number_at(m->p + m->at, width);
    if (kind == ARG_F8) /* the only one with the high byte first */
        ret->number = __builtin_bswap64(ret->number);
    m->at += width;
    if (kind < ARG_BYTES1)
        return 0;
    if (ret->number > m->n - m->at)
        return bad(m, "a text longer than what is left: the file is cut");
    ret->bytes = m->p + m->at;
    m->at += (size_t)ret->number;
    return ret->number > UINT32_MAX ? bad(m, "a text of more than 4 GiB") : 0;
}

static int refuse(struct machine *m, uint8_t code)
{
    const char *name = OPS[code].name;

    return fr_fail(m->err, -EPERM,
                   "offset %zu: opcode 0x%02x%s%s%s is not read (a dump holds no code)", m->op_at,
                   code, name ? " (" : "", name ? name : "", name ? ")" : "");
}

static int run(struct machine *m, struct fr_value **ret)
{
    if (m->n == 0)
        return fr_fail(m->err, -EINVAL, "offset 0: the file is empty");
    if (m->p[0] != 0x80)
        return fr_fail(m->err, -EPROTO, "offset 0: no pickle of protocol 2 or later");
    while (m->at < m->n) {
        struct op_arg arg = {0};
        uint8_t code = m->p[m->at];
        int rc;

        m->op_at = m->at++;
        if (code == '.') {
            if (m->depth != 1 || m->nmarks)
                return bad(m, "the end, with not one value on the stack");
            if (m->at < m->n)
                return fr_fail(m->err, -EINVAL, "offset %zu: %zu bytes behind the end", m->at,
                               m->n - m->at);
            *ret = m->stack[0];
            return 0;
        }
        if (!OPS[code].run)
            return refuse(m, code);
        rc = take_arg(m, OPS[code].arg, &arg);
        if (rc == 0)
            rc = OPS[code].run(m, &arg);
        if (rc < 0)
            return rc;
    }
    m->op_at = m->n;
    return bad(m, "the file is cut: no end");
}

int fr_pickle_parse(const uint8_t *p, size_t n, struct fr_values *a, struct fr_value **ret,
                    struct fr_err *err)
{
    struct machine m = {.p = p, .n = n, .a = a, .err = err};
    struct fr_value *v = NULL;
    int rc = run(&m, &v);

    free(m.stack);
    free(m.marks);
    free(m.memo);
    if (rc == 0)
        *ret = v;
    return rc;
}
