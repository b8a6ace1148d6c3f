/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h - to the terminal or whatever stands for it
 */
#ifndef FR_CLI_OUT_H
#define FR_CLI_OUT_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/table.h"

/* Colour on this descriptor? --color, NO_COLOR, CLICOLOR_FORCE, TERM=dumb, terminal or not. */
bool fr_out_color(const struct fr_cli *cli, int fd);
/* A terminal that can redraw. */
bool fr_out_is_terminal(int fd);
/* Its width, 100 when not known. */
int fr_out_width(int fd);
/* Write all; a closed pipe ends the program quietly. */
void fr_out_write(const struct fr_buf *b);

/* The style for listings on stdout. */
struct fr_table_style fr_out_style(const struct fr_cli *cli);

#endif /* FR_CLI_OUT_H */
