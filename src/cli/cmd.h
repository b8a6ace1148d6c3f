/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h - the one table of commands: parsing, help and suggestions come from it
 *
 * A new command is one row in cmd.c. Options are fields of struct fr_cli; a row names the table of
 * those that it takes, the global ones are added by fr_cmd_main.
 */
#ifndef FR_CLI_CMD_H
#define FR_CLI_CMD_H

#include "base/opt.h"
#include "cli/cli.h"
#include "model/config.h"

struct fr_cmd {
    const char *noun, *verb; /* verb NULL: the noun is the command */
    const char *operands;    /* for the help: "NODES", "-- COMMAND" */
    int min, max;            /* number of operands, max -1: any */
    const struct fr_opt *opts;
    int (*run)(struct fr_cli *cli, int n, char **operands); /* returns the exit code */
    const char *text;                                       /* one line */
    const char *more; /* for --help: further lines, may be NULL */
};

extern const struct fr_cmd FR_COMMANDS[]; /* ends with a NULL noun */

/* The program. */
int fr_cmd_main(int argc, char **argv);

/* The settings of the files that apply: the system's, the user's, --config. */
int fr_cli_config(const struct fr_cli *cli, struct fr_config *cfg, struct fr_err *err);

/* Each in the file that its name says: list.c, act.c, run.c, inject_cmd.c, demo.c, report_cmd.c,
 * ledger_cmd.c, scan_*.c, cmd.c. */
int fr_cmd_status(struct fr_cli *cli, int n, char **operands);
int fr_cmd_job_list(struct fr_cli *cli, int n, char **operands);
int fr_cmd_job_show(struct fr_cli *cli, int n, char **operands);
int fr_cmd_job_watch(struct fr_cli *cli, int n, char **operands);
int fr_cmd_job_report(struct fr_cli *cli, int n, char **operands);
int fr_cmd_node_list(struct fr_cli *cli, int n, char **operands);
int fr_cmd_node_show(struct fr_cli *cli, int n, char **operands);
int fr_cmd_node_drain(struct fr_cli *cli, int n, char **operands);
int fr_cmd_node_resume(struct fr_cli *cli, int n, char **operands);
int fr_cmd_incident_list(struct fr_cli *cli, int n, char **operands);
int fr_cmd_incident_show(struct fr_cli *cli, int n, char **operands);
int fr_cmd_incident_ack(struct fr_cli *cli, int n, char **operands);
int fr_cmd_decision_list(struct fr_cli *cli, int n, char **operands);
int fr_cmd_decision_show(struct fr_cli *cli, int n, char **operands);
int fr_cmd_inject_slow(struct fr_cli *cli, int n, char **operands);
int fr_cmd_inject_hang(struct fr_cli *cli, int n, char **operands);
int fr_cmd_inject_kill(struct fr_cli *cli, int n, char **operands);
int fr_cmd_run(struct fr_cli *cli, int n, char **operands);
int fr_cmd_supervise(struct fr_cli *cli, int n, char **operands);
int fr_cmd_demo(struct fr_cli *cli, int n, char **operands);
int fr_cmd_ledger_query(struct fr_cli *cli, int n, char **operands);
int fr_cmd_scan_job_log(struct fr_cli *cli, int n, char **operands);
int fr_cmd_scan_kernel_log(struct fr_cli *cli, int n, char **operands);
int fr_cmd_scan_flight_recorder(struct fr_cli *cli, int n, char **operands);
int fr_cmd_mfu(struct fr_cli *cli, int n, char **operands);
int fr_cmd_config(struct fr_cli *cli, int n, char **operands);
int fr_cmd_version(struct fr_cli *cli, int n, char **operands);
int fr_cmd_help(struct fr_cli *cli, int n, char **operands);

extern const char *const FR_VERSION_TEXT;

#endif /* FR_CLI_CMD_H */
