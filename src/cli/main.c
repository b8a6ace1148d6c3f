/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - fullrank, the command-line program */
#include "cli/cmd.h"

int main(int argc, char **argv)
{
    return fr_cmd_main(argc, argv);
}
