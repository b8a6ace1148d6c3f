/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c - see peak.h */
#include "perf/peak.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct fr_peak ROWS[] = {
#define ROW(name, precision, tflops, source) {name, precision, tflops, source},
#include "perf/accelerators.def"
#undef ROW
};

static const char *const SOURCES[FR_PEAK_SOURCES] = {
    [FR_PEAK_VENDOR] = "AMD data sheet, as quoted in alpharomercoma/MI300X-vs-H200 REPORT.md",
    [FR_PEAK_DGXC] = "NVIDIA/dgxc-benchmarking@841f546 README.md, Peak Theoretical Throughput",
    [FR_PEAK_STAS] = "stas00/ml-engineering compute/accelerator/README.md",
    [FR_PEAK_TITAN] = "pytorch/torchtitan@b5bcd76 torchtitan/tools/utils.py",
};

/* What people and drivers call them; the text in front is enough: folded, without "nvidia". The
 * longest that fits is taken. */
static const struct {
    const char *prefix, *name;
} ALIASES[] = {
    {"a100", "A100-SXM"},     {"h100", "H100-SXM"},   {"h100pcie", "H100-PCIe"},
    {"h100nvl", "H100-NVL"},  {"h200", "H200-SXM"},   {"b200", "B200"},
    {"b300", "B300"},         {"gb200", "GB200"},     {"gb300", "GB300"},
    {"mi300x", "MI300X"},     {"mi325x", "MI325X"},   {"mi355x", "MI355X"},
};

static const struct {
    const char *said, *precision;
} PRECISIONS[] = {{"bf16", "bf16"},  {"fp16", "bf16"},  {"bfloat16", "bf16"}, {"fp8", "fp8"},
                  {"mxfp8", "fp8"},  {"fp4", "fp4"},    {"nvfp4", "fp4"},     {"mxfp4", "fp4"},
                  {"int8", "int8"}};

/* Letters and digits, lower case. */
static void fold(const char *s, char *out, size_t n)
{
    size_t k = 0;

    for (; *s && k + 1 < n; s++)
        if (isalnum((unsigned char)*s))
            out[k++] = (char)tolower((unsigned char)*s);
    out[k] = '\0';
}

static const char *official(const char *gpu)
{
    char folded[96];
    const char *p = folded, *best = NULL;
    size_t longest = 0;

    fold(gpu, folded, sizeof folded);
    for (int i = 0; i < 2; i++) {
        const char *maker = i ? "amdinstinct" : "nvidia";

        if (strncmp(p, maker, strlen(maker)) == 0)
            p += strlen(maker);
    }
    for (size_t i = 0; i < sizeof ALIASES / sizeof ALIASES[0]; i++) {
        size_t len = strlen(ALIASES[i].prefix);

        if (len > longest && strncmp(p, ALIASES[i].prefix, len) == 0) {
            best = ALIASES[i].name;
            longest = len;
        }
    }
    if (best && strcmp(best, "H100-SXM") == 0 && strstr(p, "pcie"))
        best = "H100-PCIe"; /* "H100 80GB PCIe" */
    return best;
}

static const char *settle_precision(const char *said)
{
    char folded[32];

    fold(said, folded, sizeof folded);
    for (size_t i = 0; i < sizeof PRECISIONS / sizeof PRECISIONS[0]; i++)
        if (strcmp(PRECISIONS[i].said, folded) == 0)
            return PRECISIONS[i].precision;
    return NULL;
}

int fr_peak_find(const char *gpu, const char *precision, const struct fr_peak **ret, size_t n,
                 struct fr_err *err)
{
    const char *name = official(gpu), *p = settle_precision(precision);
    size_t k = 0;

    if (!p)
        return fr_fail(err, -ENOENT, "precision '%.40s' is not known (bf16, fp8, fp4, int8)",
                       precision);
    if (!name) {
        char list[256];
        size_t at = 0;

        for (size_t i = 0; i < sizeof ALIASES / sizeof ALIASES[0] && at < sizeof list - 16; i++)
            at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "",
                                   ALIASES[i].name);
        return fr_fail(err, -ENOENT, "accelerator '%.60s' is not known (%s; or give --peak TFLOPS)",
                       gpu, list);
    }
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        if (k < n && strcmp(ROWS[i].name, name) == 0 && strcmp(ROWS[i].precision, p) == 0)
            ret[k++] = &ROWS[i];
    if (k == 0)
        return fr_fail(err, -ENOENT, "no peak of %s in %s is known (give --peak TFLOPS)", name, p);
    return (int)k;
}

const char *fr_peak_source_text(enum fr_peak_source s)
{
    return (unsigned)s < FR_PEAK_SOURCES ? SOURCES[s] : "?";
}

double fr_peak_highest(void)
{
    double most = 0;

    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        most = ROWS[i].tflops > most ? ROWS[i].tflops : most;
    return most;
}
