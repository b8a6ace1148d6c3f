/* SPDX-License-Identifier: Apache-2.0 */
/* losses.c - see losses.h */
#include "cli/losses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/xalloc.h"

#define FILE_MAX_BYTES (256u << 20)

struct step_bits {
    uint64_t bits;
    int seen;
};

/* 0, or 1 when the file contradicts itself. */
static int load(const char *path, uint64_t steps, struct step_bits *v, struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    int rc = fr_fs_read(path, FILE_MAX_BYTES, &b, err);
    const char *s, *end;

    if (rc < 0)
        return rc;
    for (s = fr_buf_str(&b), end = s + b.len; s < end;) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        size_t n = nl ? (size_t)(nl - s) : (size_t)(end - s);
        FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
        uint64_t step, bits;
        const char *text;

        /* A line that was cut by a kill is no line. */
        if (fr_json_parse(s, n, &json, NULL) == 0 &&
            (text = fr_json_str(json, "loss_bits", NULL))) {
            step = (uint64_t)fr_json_int(json, "step", 0);
            bits = strtoull(text, NULL, 16);
            if (step >= 1 && step <= steps) {
                if (v[step].seen && v[step].bits != bits) {
                    fr_fail(err, 0, "%s: step %llu was made twice with different losses", path,
                            (unsigned long long)step);
                    return 1;
                }
                v[step] = (struct step_bits){bits, 1};
            }
        }
        s += n + 1;
    }
    return 0;
}

int fr_losses_compare(const char *path_a, const char *path_b, uint64_t steps, struct fr_err *err)
{
    FR_CLEANUP(fr_freep) struct step_bits *a = fr_xcalloc(steps + 1, sizeof *a);
    FR_CLEANUP(fr_freep) struct step_bits *b = fr_xcalloc(steps + 1, sizeof *b);
    int rc = load(path_a, steps, a, err);

    if (rc == 0)
        rc = load(path_b, steps, b, err);
    if (rc)
        return rc < 0 ? rc : 0;
    for (uint64_t i = 1; i <= steps; i++) {
        if (!a[i].seen || !b[i].seen)
            return fr_fail(err, 0, "step %llu is missing in %s", (unsigned long long)i,
                           a[i].seen ? path_b : path_a);
        if (a[i].bits != b[i].bits)
            return fr_fail(err, 0, "the losses of step %llu differ", (unsigned long long)i);
    }
    return 1;
}
