/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - see err.h */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fr_fail(struct fr_err *err, int rc, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return rc;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return rc;
}

int fr_fail_in(struct fr_err *err, int rc, const char *fmt, ...)
{
    char prefix[FR_ERR_TEXT_BYTES], rest[FR_ERR_TEXT_BYTES];
    va_list ap;

    if (!err)
        return rc;
    va_start(ap, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, ap);
    va_end(ap);
    memcpy(rest, err->text, sizeof rest);
    rest[sizeof rest - 1] = '\0';
    /* Truncation is the documented behaviour. */
    if (snprintf(err->text, sizeof err->text, "%.255s: %.255s", prefix, rest) < 0)
        err->text[0] = '\0';
    return rc;
}
