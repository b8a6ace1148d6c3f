/* SPDX-License-Identifier: Apache-2.0 */
/* scan_job_log.c - `fullrank scan job-log` */
#include <stdio.h>

#include "base/jsonw.h"
#include "cli/cmd.h"
#include "cli/out.h"
#include "cli/scan.h"
#include "scan/lines.h"

static int count(const char *p, size_t n, uint64_t number, void *arg)
{
    (void)p;
    (void)n;
    *(uint64_t *)arg = number;
    return 0;
}

static int feed(const char *p, size_t n, void *arg)
{
    return fr_lines_feed(arg, p, n);
}

int fr_cmd_scan_job_log(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_lines l;
    uint64_t last = 0;
    int rc;

    (void)cli;
    (void)n;
    fr_lines_init(&l, count, &last);
    rc = fr_scan_stream(operands[0], feed, &l, &err);
    if (rc == 0)
        rc = fr_lines_end(&l);
    fr_lines_fini(&l);
    if (rc < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    printf("%llu lines\n", (unsigned long long)last);
    return 0;
}
