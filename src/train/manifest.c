/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TITLE     "fullrank-train checkpoint 1\n"
#define MAGIC     "FRSHARD1"
#define END_LINE  "end "
#define END_BYTES (sizeof END_LINE - 1 + 16 + 1) /* "end ", 16 digits, newline */

static const struct field {
    const char *name;
    size_t offset;
} fields[] = {
    {"step", offsetof(struct fr_manifest, step)},
    {"dp", offsetof(struct fr_manifest, dp)},
    {"pp", offsetof(struct fr_manifest, pp)},
    {"tp", offsetof(struct fr_manifest, tp)},
    {"layers", offsetof(struct fr_manifest, layers)},
    {"d_model", offsetof(struct fr_manifest, d_model)},
    {"heads", offsetof(struct fr_manifest, heads)},
    {"seq", offsetof(struct fr_manifest, seq)},
    {"batch", offsetof(struct fr_manifest, batch)},
    {"micro_batch", offsetof(struct fr_manifest, micro_batch)},
    {"seed", offsetof(struct fr_manifest, seed)},
    {"data_hash", offsetof(struct fr_manifest, data_hash)},
    {"peak_flops", offsetof(struct fr_manifest, peak_flops)},
    {"shards", offsetof(struct fr_manifest, shards)},
};
#define FIELDS (sizeof fields / sizeof fields[0])

uint64_t fr_hash(const void *p, size_t n)
{
    return XXH64(p, n, 0);
}

size_t fr_manifest_format(const struct fr_manifest *m, char **ret_text)
{
    size_t size = sizeof TITLE + FIELDS * 64 + m->shards * 64 + END_BYTES + 1, at;
    char *text = fr_zalloc(size, 1);

    at = (size_t)snprintf(text, size, TITLE);
    for (size_t i = 0; i < FIELDS; i++)
        at += (size_t)snprintf(text + at, size - at, "%s %" PRIu64 "\n", fields[i].name,
                               *(const uint64_t *)((const char *)m + fields[i].offset));
    for (size_t i = 0; i < m->shards; i++)
        at += (size_t)snprintf(text + at, size - at, "%" PRIu64 " %016" PRIx64 "\n",
                               m->shard[i].bytes, m->shard[i].hash);
    at += (size_t)snprintf(text + at, size - at, END_LINE "%016" PRIx64 "\n", fr_hash(text, at));
    *ret_text = text;
    return at;
}

struct cursor {
    const char *p, *end;
};

static bool take_text(struct cursor *c, const char *text)
{
    size_t n = strlen(text);

    if ((size_t)(c->end - c->p) < n || memcmp(c->p, text, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* Digits of `base` up to `after`; `width` 0: any number of them. */
static bool take_number(struct cursor *c, unsigned base, size_t width, char after, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t v = 0;
    size_t n = 0;

    for (; c->p < c->end && *c->p != after; c->p++, n++) {
        const char *d = memchr(digits, *c->p, base);

        if (!d || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)(d - digits), &v))
            return false;
    }
    if (c->p == c->end || n == 0 || (width && n != width))
        return false;
    c->p++;
    *ret = v;
    return true;
}

int fr_manifest_parse(const uint8_t *p, size_t n, struct fr_manifest *ret, struct fr_err *err)
{
    FR_CLEANUP(fr_manifest_fini) struct fr_manifest m = {0};
    struct cursor c = {(const char *)p, (const char *)p + n};
    struct cursor tail;
    uint64_t hash;

    if (n > FR_MANIFEST_BYTES_MAX || n < sizeof TITLE - 1 + END_BYTES)
        return fr_fail(err, -EBADMSG, "%zu bytes cannot be a manifest", n);
    if (!take_text(&c, TITLE))
        return fr_fail(err, -EBADMSG, "not a manifest of this version");
    /* the sum comes first: what does not verify is not read any further */
    tail = (struct cursor){c.end - END_BYTES, c.end};
    if (!take_text(&tail, END_LINE) || !take_number(&tail, 16, 16, '\n', &hash))
        return fr_fail(err, -EBADMSG, "torn: the last line is missing");
    c.end -= END_BYTES;
    if (hash != fr_hash(p, n - END_BYTES))
        return fr_fail(err, -EBADMSG, "corrupt: its checksum does not match");
    for (size_t i = 0; i < FIELDS; i++)
        if (!take_text(&c, fields[i].name) || !take_text(&c, " ") ||
            !take_number(&c, 10, 0, '\n', (uint64_t *)((char *)&m + fields[i].offset)))
            return fr_fail(err, -EBADMSG, "malformed at \"%s\"", fields[i].name);
    if (m.shards == 0 || m.shards > FR_MANIFEST_SHARDS_MAX ||
        m.shards > (uint64_t)(c.end - c.p) / 19) /* a shard's line has 19 bytes or more */
        return fr_fail(err, -EBADMSG, "malformed at \"shards\"");
    m.shard = fr_zalloc(m.shards, sizeof *m.shard);
    for (size_t i = 0; i < m.shards; i++)
        if (!take_number(&c, 10, 0, ' ', &m.shard[i].bytes) ||
            !take_number(&c, 16, 16, '\n', &m.shard[i].hash))
            return fr_fail(err, -EBADMSG, "malformed at shard %zu", i);
    if (c.p != c.end)
        return fr_fail(err, -EBADMSG, "has lines too many");
    *ret = m;
    m.shard = NULL;
    return 0;
}

void fr_manifest_fini(struct fr_manifest *m)
{
    free(m->shard);
    m->shard = NULL;
}

void fr_shard_header_write(const struct fr_shard_header *h, uint8_t ret[FR_SHARD_HEADER_BYTES])
{
    memset(ret, 0, FR_SHARD_HEADER_BYTES);
    memcpy(ret, MAGIC, 8);
    memcpy(ret + 8, h, sizeof *h);
}

int fr_shard_verify(const uint8_t *p, size_t n, const struct fr_shard_sum *sum,
                    const struct fr_shard_header *expected, struct fr_err *err)
{
    uint8_t header[FR_SHARD_HEADER_BYTES];

    if (n != sum->bytes)
        return fr_fail(err, -EBADMSG, "torn: %zu bytes, the manifest says %" PRIu64, n, sum->bytes);
    if (fr_hash(p, n) != sum->hash)
        return fr_fail(err, -EBADMSG, "corrupt: its checksum does not match the manifest");
    fr_shard_header_write(expected, header);
    if (n != sizeof header + 3 * sizeof(float) * expected->params ||
        memcmp(p, header, sizeof header) != 0)
        return fr_fail(err, -EBADMSG, "is a shard of another step, rank or model");
    return 0;
}
