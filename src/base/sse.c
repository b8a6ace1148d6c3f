/* SPDX-License-Identifier: Apache-2.0 */
/* sse.c - see sse.h */
#include "base/sse.h"

#include <errno.h>
#include <string.h>

static const char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";

void fr_sse_init(struct fr_sse *s, size_t max_bytes)
{
    *s = (struct fr_sse){.max_bytes = max_bytes};
}

void fr_sse_fini(struct fr_sse *s)
{
    fr_buf_fini(&s->line);
    fr_buf_fini(&s->event);
    fr_buf_fini(&s->data);
}

static bool field_is(const char *line, size_t n, const char *name)
{
    return n == strlen(name) && memcmp(line, name, n) == 0;
}

static int dispatch(struct fr_sse *s, int (*fn)(const char *, const char *, size_t, void *),
                    void *arg)
{
    int rc = 0;

    if (s->have_data) {
        if (s->data.len) /* each data line added a line end; the last one is none */
            s->data.len--;
        rc = fn(s->event.len ? fr_buf_str(&s->event) : "message", fr_buf_str(&s->data), s->data.len,
                arg);
    }
    fr_buf_reset(&s->data);
    fr_buf_reset(&s->event);
    s->have_data = false;
    return rc;
}

/* One whole line without its end. */
static int take_line(struct fr_sse *s, int (*fn)(const char *, const char *, size_t, void *),
                     void *arg)
{
    const char *p = fr_buf_str(&s->line), *colon, *value;
    size_t n = s->line.len, name;

    if (!s->started && n >= 3 && memcmp(p, BYTE_ORDER_MARK, 3) == 0) {
        p += 3;
        n -= 3;
    }
    s->started = true;
    if (n == 0)
        return dispatch(s, fn, arg);
    colon = memchr(p, ':', n);
    name = colon ? (size_t)(colon - p) : n;
    value = colon ? colon + 1 : p + n;
    if (value < p + n && *value == ' ')
        value++;
    if (field_is(p, name, "data")) {
        size_t len = (size_t)(p + n - value);

        if (s->data.len + len > s->max_bytes)
            return -EFBIG;
        fr_buf_add(&s->data, value, len);
        fr_buf_putc(&s->data, '\n');
        s->have_data = true;
    } else if (field_is(p, name, "event")) {
        fr_buf_reset(&s->event);
        fr_buf_add(&s->event, value, (size_t)(p + n - value));
    }
    /* A comment (no name), "id" and "retry": the callers reconnect by themselves and need none. */
    return 0;
}

int fr_sse_feed(struct fr_sse *s, const char *p, size_t n,
                int (*fn)(const char *event, const char *data, size_t n, void *arg), void *arg)
{
    const char *end = p + n;

    while (p < end) {
        const char *from = p;
        int rc;

        if (s->after_cr && *p == '\n') {
            s->after_cr = false;
            p++;
            continue;
        }
        s->after_cr = false;
        while (p < end && *p != '\n' && *p != '\r')
            p++;
        if (s->line.len + (size_t)(p - from) > s->max_bytes + 64)
            return -EFBIG;
        fr_buf_add(&s->line, from, (size_t)(p - from));
        if (p == end)
            return 0;
        s->after_cr = *p++ == '\r';
        rc = take_line(s, fn, arg);
        fr_buf_reset(&s->line);
        if (rc)
            return rc;
    }
    return 0;
}
