/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli.h - what every command gets: the global options, and the codes with which the program ends
 *
 * Threads: the main thread alone.
 */
#ifndef FR_CLI_CLI_H
#define FR_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define FR_CLI_SERVER "http://127.0.0.1:7880" /* when nothing else is said */
#define FR_CLI_PORT   7880

/* Exit codes; 128 + N: ended by signal N. */
enum fr_exit {
    FR_EXIT_OK = 0,
    FR_EXIT_FAILED = 1,
    FR_EXIT_USAGE = 2,
    FR_EXIT_WARNING = 3,
    FR_EXIT_FAULT = 4,
    FR_EXIT_SERVER = 5,
    FR_EXIT_NOT_FOUND = 6,
    FR_EXIT_TIME = 124
};

enum fr_format { FR_FORMAT_TABLE = 0, FR_FORMAT_JSON, FR_FORMAT_JSONL, FR_FORMAT_CSV };

/* Options of all commands in one place; a command's table says which of them it takes. Names are
 * the options'. */
struct fr_cli {
    /* global */
    const char *server, *token_file, *output, *color, *config_file;
    bool help, version, quiet, no_header;
    int verbose;
    /* settled by main from these, environment and files */
    enum fr_format format;
    bool server_given; /* not just the default */
    /* listings */
    const char *job, *fields;
    int64_t limit;
    bool open, watch;
    double watch_s;
    /* acts */
    const char *reason, *node;
    bool yes, dry_run;
    /* run, supervise */
    const char *engine, *name, *mode, *level, *state_dir;
    bool own_restarts, no_own_restarts;
    int64_t nodes, ranks_per_node, spares, max_attempts;
    /* inject */
    int64_t rank;
    double factor, for_s;
    /* scan */
    const char *rules;
    /* mfu, scan training-log: -1, NaN: not given */
    const char *model, *gpu, *precision, *attention;
    int64_t gpus, global_batch, seq, mtp, vocab;
    double step_time, peak;
    /* demo, report */
    const char *faults, *html, *web;
    int64_t seed, steps, repeat;
    bool quick, no_faults, verify, keep, check, all;
};

/* Print "fullrank: error: ..." and return code. */
int fr_cli_fail(enum fr_exit code, const struct fr_err *err);

/* The program that runs now, for starting it again; and what is installed beside it. */
const char *fr_cli_self(void); /* absolute path */
int fr_cli_beside(const char *name, char *ret, unsigned long n,
                  struct fr_err *err); /* a program: "fullrank-agent" */
const char *fr_cli_probe_lib(void);    /* NULL: not installed */

/* The folder under which a user's runs keep their state: $FULLRANK_STATE_DIR,
 * $XDG_STATE_HOME/fullrank, ~/.local/state/fullrank. */
int fr_cli_state_home(char *ret, unsigned long n, struct fr_err *err);

#endif /* FR_CLI_CLI_H */
