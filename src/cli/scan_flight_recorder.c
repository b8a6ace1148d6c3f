/* SPDX-License-Identifier: Apache-2.0 */
/* scan_flight_recorder.c - `fullrank scan flight-recorder` */
#include <errno.h>

#include "cli/cmd.h"

int fr_cmd_scan_flight_recorder(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;

    (void)cli;
    (void)n;
    fr_fail(&err, -ENOTSUP, "%s: dumps are not read yet", operands[0]);
    return fr_cli_fail(FR_EXIT_FAILED, &err);
}
