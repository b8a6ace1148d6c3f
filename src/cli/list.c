/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - commands that look: each is a path of the API and tables of columns */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "cli/client.h"
#include "cli/cmd.h"
#include "cli/jobref.h"
#include "cli/out.h"
#include "cli/table.h"

#define END                                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

static const struct fr_column JOBS[] = {
    {"job", "JOB", "job", FR_SHOW_TEXT, 0},
    {"name", "NAME", "name", FR_SHOW_TEXT, 24},
    {"state", "STATE", "state", FR_SHOW_STATE, 0},
    {"attempt", "ATT", "attempt", FR_SHOW_INT, 0},
    {"ranks", "RANKS", "ranks", FR_SHOW_INT, 0},
    {"step", "STEP", "step", FR_SHOW_INT, 0},
    {"total_steps", "OF", "total_steps", FR_SHOW_INT, 0},
    {"loss", "LOSS", "loss", FR_SHOW_NUM, 0},
    {"step_s", "STEP TIME", "step_s", FR_SHOW_SECONDS, 0},
    {"mfu_ratio", "MFU", "mfu_ratio", FR_SHOW_RATIO, 0},
    {"goodput_ratio", "GOODPUT", "goodput_ratio", FR_SHOW_RATIO, 0},
    {"node_list", "NODES", "node_list", FR_SHOW_NODES, 24},
    END,
};
static const struct fr_column JOB_CARD[] = {
    {"job", "job", "job", FR_SHOW_TEXT, 0},
    {"name", "name", "name", FR_SHOW_TEXT, 0},
    {"user", "user", "user", FR_SHOW_TEXT, 0},
    {"command", "command", "command", FR_SHOW_LIST, 0},
    {"state", "state", "state", FR_SHOW_STATE, 0},
    {"note", "note", "note", FR_SHOW_TEXT, 0},
    {"mode", "mode", "mode", FR_SHOW_TEXT, 0},
    {"attempt", "attempt", "attempt", FR_SHOW_INT, 0},
    {"node_list", "nodes", "node_list", FR_SHOW_NODES, 0},
    {"ranks", "ranks", "ranks", FR_SHOW_INT, 0},
    {"phase", "phase", "phase", FR_SHOW_TEXT, 0},
    {"step", "step", "step", FR_SHOW_INT, 0},
    {"total_steps", "of steps", "total_steps", FR_SHOW_INT, 0},
    {"checkpoint_step", "last checkpoint", "checkpoint_step", FR_SHOW_INT, 0},
    {"loss", "loss", "loss", FR_SHOW_NUM, 0},
    {"step_s", "step time", "step_s", FR_SHOW_SECONDS, 0},
    {"baseline_step_s", "its good step time", "baseline_step_s", FR_SHOW_SECONDS, 0},
    {"tokens_per_s", "tokens/s", "tokens_per_s", FR_SHOW_NUM, 0},
    {"mfu_ratio", "MFU", "mfu_ratio", FR_SHOW_RATIO, 0},
    {"goodput_ratio", "goodput", "goodput_ratio", FR_SHOW_RATIO, 0},
    {"act_on_silence_after_s", "acts on silence after", "act_on_silence_after_s", FR_SHOW_SECONDS,
     0},
    {"submitted_at", "submitted", "submitted_at", FR_SHOW_TIME, 0},
    {"ended_at", "ended", "ended_at", FR_SHOW_TIME, 0},
    {"exit_code", "exit code", "exit_code", FR_SHOW_INT, 0},
    END,
};
static const struct fr_column ATTEMPTS[] = {
    {"attempt", "ATT", "attempt", FR_SHOW_INT, 0},
    {"nodes", "NODES", "nodes", FR_SHOW_NODES, 30},
    {"started_at", "STARTED", "started_at", FR_SHOW_TIME, 0},
    {"ended_at", "ENDED", "ended_at", FR_SHOW_TIME, 0},
    {"resumed_from", "FROM", "resumed_from", FR_SHOW_INT, 0},
    {"first_step", "FIRST", "first_step", FR_SHOW_INT, 0},
    {"last_step", "LAST", "last_step", FR_SHOW_INT, 0},
    {"end_reason", "ENDED BY", "end_reason", FR_SHOW_TEXT, 50},
    END,
};
static const struct fr_column GROUPS[] = {
    {"name", "GROUP", "name", FR_SHOW_TEXT, 20},
    {"op", "OPERATION", "op", FR_SHOW_TEXT, 0},
    {"size", "SIZE", "size", FR_SHOW_INT, 0},
    {"count", "COUNT", "count", FR_SHOW_INT, 0},
    {"busbw_bytes_per_s", "BUSBW", "busbw_bytes_per_s", FR_SHOW_RATE, 0},
    {"transfer_s", "TRANSFER", "transfer_s", FR_SHOW_SECONDS, 0},
    {"wait_s", "WAIT", "wait_s", FR_SHOW_SECONDS, 0},
    {"last_rank", "LAST RANK", "last_rank", FR_SHOW_INT, 0},
    END,
};
static const struct fr_column RANKS[] = {
    {"rank", "RANK", "rank", FR_SHOW_INT, 0},
    {"node", "NODE", "node", FR_SHOW_TEXT, 0},
    {"pid", "PID", "pid", FR_SHOW_INT, 0},
    {"state", "STATE", "state", FR_SHOW_STATE, 0},
    {"phase", "PHASE", "phase", FR_SHOW_TEXT, 0},
    {"step", "STEP", "step", FR_SHOW_INT, 0},
    {"now", "NOW", "now.op", FR_SHOW_TEXT, 0},
    {"self_s", "SELF", "self_s", FR_SHOW_SECONDS, 0},
    {"peers_ratio", "TO PEERS", "peers_ratio", FR_SHOW_FACTOR, 0},
    {"wait_s", "WAIT", "wait_s", FR_SHOW_SECONDS, 0},
    {"cpu_ratio", "CPU", "cpu_ratio", FR_SHOW_RATIO, 0},
    {"stopped_ratio", "STOPPED", "stopped_ratio", FR_SHOW_RATIO, 0},
    {"rss_bytes", "MEMORY", "rss_bytes", FR_SHOW_BYTES, 0},
    END,
};
static const struct fr_column BUCKETS[] = {
    {"name", "GOODPUT", "name", FR_SHOW_TEXT, 0},
    {"seconds", "TIME", "seconds", FR_SHOW_SECONDS, 0},
    {"ratio", "SHARE", "ratio", FR_SHOW_RATIO, 0},
    {"text", "WHAT", "text", FR_SHOW_TEXT, 60},
    END,
};
static const struct fr_column NODES[] = {
    {"node", "NODE", "node", FR_SHOW_TEXT, 0},
    {"state", "STATE", "state", FR_SHOW_STATE, 0},
    {"job", "JOB", "job", FR_SHOW_TEXT, 0},
    {"ranks", "RANKS", "ranks", FR_SHOW_LIST, 16},
    {"host", "HOST", "host", FR_SHOW_TEXT, 24},
    {"last_heard_s", "HEARD AGO", "last_heard_s", FR_SHOW_SECONDS, 0},
    {"agent_cpu", "AGENT CPU", "agent.cpu_ratio", FR_SHOW_RATIO, 0},
    {"reason", "REASON", "reason", FR_SHOW_TEXT, 40},
    END,
};
static const struct fr_column NODE_CARD[] = {
    {"node", "node", "node", FR_SHOW_TEXT, 0},
    {"host", "host", "host", FR_SHOW_TEXT, 0},
    {"rack", "rack", "rack", FR_SHOW_TEXT, 0},
    {"state", "state", "state", FR_SHOW_STATE, 0},
    {"reason", "reason", "reason", FR_SHOW_TEXT, 0},
    {"since", "since", "since", FR_SHOW_TIME, 0},
    {"job", "job", "job", FR_SHOW_TEXT, 0},
    {"ranks", "ranks", "ranks", FR_SHOW_LIST, 0},
    {"last_heard_s", "heard ago", "last_heard_s", FR_SHOW_SECONDS, 0},
    {"version", "agent version", "agent.version", FR_SHOW_TEXT, 0},
    {"cpu", "agent CPU", "agent.cpu_ratio", FR_SHOW_RATIO, 0},
    {"rss", "agent memory", "agent.rss_bytes", FR_SHOW_BYTES, 0},
    {"lost", "lost records", "agent.lost_records", FR_SHOW_INT, 0},
    {"load1", "load", "pressure.load1", FR_SHOW_NUM, 0},
    {"probation", "probation until", "probation_until", FR_SHOW_TIME, 0},
    END,
};
static const struct fr_column HISTORY[] = {
    {"at", "AT", "at", FR_SHOW_TIME, 0},
    {"state", "STATE", "state", FR_SHOW_STATE, 0},
    {"actor", "BY", "actor", FR_SHOW_TEXT, 0},
    {"reason", "REASON", "reason", FR_SHOW_TEXT, 60},
    END,
};
static const struct fr_column INCIDENTS[] = {
    {"id", "ID", "id", FR_SHOW_INT, 0},
    {"job", "JOB", "job", FR_SHOW_TEXT, 0},
    {"kind", "KIND", "kind", FR_SHOW_TEXT, 0},
    {"node", "NODE", "node", FR_SHOW_TEXT, 0},
    {"rank", "RANK", "rank", FR_SHOW_INT, 0},
    {"cause", "CAUSE", "cause", FR_SHOW_TEXT, 0},
    {"confidence", "SURE", "confidence", FR_SHOW_RATIO, 0},
    {"named_at", "NAMED", "named_at", FR_SHOW_TIME, 0},
    {"closed_at", "CLOSED", "closed_at", FR_SHOW_TIME, 0},
    {"choice", "DECISION", "decision.choice", FR_SHOW_TEXT, 0},
    {"ack", "SEEN BY", "acknowledged_by", FR_SHOW_TEXT, 12},
    END,
};
static const struct fr_column INCIDENT_CARD[] = {
    {"id", "incident", "id", FR_SHOW_INT, 0},
    {"job", "job", "job", FR_SHOW_TEXT, 0},
    {"attempt", "attempt", "attempt", FR_SHOW_INT, 0},
    {"kind", "kind", "kind", FR_SHOW_TEXT, 0},
    {"subject", "subject", "subject", FR_SHOW_TEXT, 0},
    {"node", "node", "node", FR_SHOW_TEXT, 0},
    {"rank", "rank", "rank", FR_SHOW_INT, 0},
    {"group", "group", "group", FR_SHOW_TEXT, 0},
    {"cause", "cause", "cause", FR_SHOW_TEXT, 0},
    {"confidence", "confidence", "confidence", FR_SHOW_RATIO, 0},
    {"witnesses", "witnesses", "witnesses", FR_SHOW_LIST, 0},
    {"ratio", "slower than peers", "ratio", FR_SHOW_FACTOR, 0},
    {"cost_ratio", "step time against before", "cost_ratio", FR_SHOW_FACTOR, 0},
    {"victims", "ranks that wait", "victims", FR_SHOW_INT, 0},
    {"onset_at", "began", "onset_at", FR_SHOW_TIME, 0},
    {"onset_step", "began at step", "onset_step", FR_SHOW_INT, 0},
    {"named_at", "named", "named_at", FR_SHOW_TIME, 0},
    {"closed_at", "closed", "closed_at", FR_SHOW_TIME, 0},
    {"acknowledged_by", "seen by", "acknowledged_by", FR_SHOW_TEXT, 0},
    {"bundle", "evidence bundle", "bundle.dir", FR_SHOW_TEXT, 0},
    END,
};
static const struct fr_column DECISIONS[] = {
    {"id", "ID", "id", FR_SHOW_INT, 0},
    {"incident", "INCIDENT", "incident", FR_SHOW_INT, 0},
    {"job", "JOB", "job", FR_SHOW_TEXT, 0},
    {"choice", "CHOICE", "choice", FR_SHOW_TEXT, 0},
    {"node", "NODE", "node", FR_SHOW_TEXT, 0},
    {"mode", "MODE", "mode", FR_SHOW_TEXT, 0},
    {"decided_at", "AT", "decided_at", FR_SHOW_TIME, 0},
    {"cost_stay_s", "STAY", "cost_stay_s", FR_SHOW_SECONDS, 0},
    {"cost_restart_s", "RESTART", "cost_restart_s", FR_SHOW_SECONDS, 0},
    {"reason", "REASON", "reason", FR_SHOW_TEXT, 50},
    END,
};
static const struct fr_column DECISION_CARD[] = {
    {"id", "decision", "id", FR_SHOW_INT, 0},
    {"incident", "incident", "incident", FR_SHOW_INT, 0},
    {"job", "job", "job", FR_SHOW_TEXT, 0},
    {"attempt", "attempt", "attempt", FR_SHOW_INT, 0},
    {"choice", "choice", "choice", FR_SHOW_TEXT, 0},
    {"node", "node", "node", FR_SHOW_TEXT, 0},
    {"mode", "mode", "mode", FR_SHOW_TEXT, 0},
    {"actor", "by", "actor", FR_SHOW_TEXT, 0},
    {"decided_at", "at", "decided_at", FR_SHOW_TIME, 0},
    {"cost_stay_s", "cost of staying", "cost_stay_s", FR_SHOW_SECONDS, 0},
    {"cost_restart_s", "cost of a restart", "cost_restart_s", FR_SHOW_SECONDS, 0},
    {"reason", "reason", "reason", FR_SHOW_TEXT, 0},
    END,
};
static const struct fr_column ACTIONS[] = {
    {"kind", "ACTION", "kind", FR_SHOW_TEXT, 0},
    {"target", "TARGET", "target", FR_SHOW_TEXT, 0},
    {"state", "STATE", "state", FR_SHOW_STATE, 0},
    {"started_at", "STARTED", "started_at", FR_SHOW_TIME, 0},
    {"ended_at", "ENDED", "ended_at", FR_SHOW_TIME, 0},
    {"detail", "DETAIL", "detail", FR_SHOW_TEXT, 60},
    END,
};

/* A part of a page: an array of the object under a heading. */
struct part {
    const char *key;
    const struct fr_column *cols;
};

/* Fetch, then the answer unchanged for JSON, else fn or the tables. */
static int fetch(struct fr_cli *cli, const char *path, struct fr_client **c, struct fr_json **json)
{
    struct fr_err err = FR_ERR_INIT;
    int rc = *c ? 0 : fr_client_new(cli->server, cli->token_file, c, &err);

    if (rc == 0)
        rc = fr_client_get(*c, path, json, &err);
    if (rc < 0)
        return fr_cli_fail((enum fr_exit)fr_client_exit(rc), &err);
    if (cli->format == FR_FORMAT_JSON) {
        struct fr_buf b = FR_BUF_INIT;

        fr_buf_add(&b, fr_buf_str(fr_client_text(*c)), fr_client_text(*c)->len);
        if (b.len && b.p[b.len - 1] != '\n')
            fr_buf_putc(&b, '\n');
        fr_out_write(&b);
        fr_buf_fini(&b);
    }
    return 0;
}

static int print_items(struct fr_cli *cli, const struct fr_column *cols,
                       const struct fr_json *items)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf out = FR_BUF_INIT;
    struct fr_table_style st = fr_out_style(cli);
    struct fr_err err = FR_ERR_INIT;

    if (fr_table_print(cols, items, &st, &out, &err) < 0)
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    fr_out_write(&out);
    return 0;
}

static int list(struct fr_cli *cli, const char *path, const struct fr_column *cols)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
    int code = fetch(cli, path, &c, &json);

    if (code || cli->format == FR_FORMAT_JSON)
        return code;
    return print_items(cli, cols, fr_json_get(json, "items"));
}

/* A card and the tables behind it. */
static int show(struct fr_cli *cli, const char *path, const struct fr_column *card,
                const struct part *parts)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf out = FR_BUF_INIT;
    struct fr_table_style st = fr_out_style(cli);
    const struct fr_json *evidence;
    int code = fetch(cli, path, &c, &json);

    if (code || cli->format == FR_FORMAT_JSON)
        return code;
    if (cli->format == FR_FORMAT_JSONL) {
        fr_json_write(json, &out);
        fr_buf_putc(&out, '\n');
        fr_out_write(&out);
        return 0;
    }
    st.format = FR_FORMAT_TABLE;
    st.fields = NULL;
    fr_table_card(card, json, st.color, &out);
    evidence = fr_json_get(json, "evidence");
    for (size_t i = 0; i < fr_json_len(evidence); i++) {
        fr_buf_puts(&out, i ? "  - " : "\nevidence\n  - ");
        fr_table_safe(&out, fr_json_value_str(fr_json_at(evidence, i), "?"));
        fr_buf_putc(&out, '\n');
    }
    for (const struct part *p = parts; p->key; p++) {
        const struct fr_json *items = fr_table_value(json, p->key);

        if (fr_json_len(items) == 0)
            continue;
        fr_buf_putc(&out, '\n');
        fr_table_print(p->cols, items, &st, &out, NULL);
    }
    fr_out_write(&out);
    return 0;
}

int fr_cmd_status(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL, *nodes = NULL;
    FR_CLEANUP(fr_buf_fini) struct fr_buf out = FR_BUF_INIT, b = FR_BUF_INIT;
    struct fr_table_style st = fr_out_style(cli);
    struct fr_err err = FR_ERR_INIT;
    int code = fetch(cli, "/api/v1/status", &c, &json);
    int64_t open;

    (void)n;
    (void)operands;
    if (code || cli->format == FR_FORMAT_JSON)
        return code;
    if (cli->format != FR_FORMAT_TABLE)
        return print_items(cli, JOBS, fr_json_get(json, "jobs"));
    fr_buf_printf(&out, "controller %s, mode %s, up ", cli->server,
                  fr_json_str(fr_json_get(json, "controller"), "mode", "?"));
    fr_buf_puts(&out,
                fr_table_text(fr_table_value(json, "controller.uptime_s"), FR_SHOW_SECONDS, &b));
    if (!fr_json_bool(fr_json_get(json, "controller"), "ledger_ok", true)) {
        fr_buf_puts(&out, ", LEDGER IN TROUBLE: ");
        fr_table_safe(&out, fr_json_str(fr_json_get(json, "controller"), "ledger_error", "?"));
    }
    fr_buf_puts(&out, "\n\n");
    if (fr_json_len(fr_json_get(json, "jobs")))
        fr_table_print(JOBS, fr_json_get(json, "jobs"), &st, &out, NULL);
    else
        fr_buf_puts(&out, "no jobs\n");
    fr_buf_putc(&out, '\n');
    if (fr_client_get(c, "/api/v1/nodes", &nodes, &err) == 0 &&
        fr_json_len(fr_json_get(nodes, "items")))
        fr_table_print(NODES, fr_json_get(nodes, "items"), &st, &out, NULL);
    else
        fr_buf_puts(&out, "no nodes (start an agent on each: fullrank-agent --server URL)\n");
    open = fr_json_int(json, "incidents_open", 0);
    if (open)
        fr_buf_printf(&out, "\n%lld open incident%s: fullrank incident list --open\n",
                      (long long)open, open == 1 ? "" : "s");
    fr_out_write(&out);
    return 0;
}

int fr_cmd_job_list(struct fr_cli *cli, int n, char **operands)
{
    (void)n;
    (void)operands;
    return list(cli, "/api/v1/jobs", JOBS);
}

int fr_cmd_job_show(struct fr_cli *cli, int n, char **operands)
{
    static const struct part PARTS[] = {{"attempts", ATTEMPTS},
                                        {"groups", GROUPS},
                                        {"goodput.buckets", BUCKETS},
                                        {"incidents", INCIDENTS},
                                        {NULL, NULL}};
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;
    char job[FR_JOBREF_BYTES];
    int code = fr_jobref(cli, n ? operands[0] : NULL, job);

    if (code)
        return code;
    code = show(cli, fr_client_path(&path, "/api/v1/jobs/%s", job), JOB_CARD, PARTS);
    if (code || cli->format != FR_FORMAT_TABLE)
        return code;
    printf("\n");
    fflush(stdout);
    return list(cli, fr_client_path(&path, "/api/v1/jobs/%s/ranks", job), RANKS);
}

int fr_cmd_node_list(struct fr_cli *cli, int n, char **operands)
{
    (void)n;
    (void)operands;
    return list(cli, "/api/v1/nodes", NODES);
}

int fr_cmd_node_show(struct fr_cli *cli, int n, char **operands)
{
    static const struct part PARTS[] = {{"history", HISTORY}, {NULL, NULL}};
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;

    (void)n;
    return show(cli, fr_client_path(&path, "/api/v1/nodes/%s", operands[0]), NODE_CARD, PARTS);
}

/* /api/v1/WHAT?limit=N[&job=J][&open=1] */
static const char *query(struct fr_cli *cli, const char *what, struct fr_buf *b)
{
    struct fr_buf job = FR_BUF_INIT;

    fr_buf_printf(b, "/api/v1/%s?limit=%lld", what, (long long)cli->limit);
    if (cli->job)
        fr_buf_printf(b, "&job=%s", fr_client_path(&job, "%s", cli->job));
    if (cli->open)
        fr_buf_puts(b, "&open=1");
    fr_buf_fini(&job);
    return fr_buf_str(b);
}

int fr_cmd_incident_list(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;

    (void)n;
    (void)operands;
    return list(cli, query(cli, "incidents", &path), INCIDENTS);
}

int fr_cmd_incident_show(struct fr_cli *cli, int n, char **operands)
{
    static const struct part PARTS[] = {{"decisions", DECISIONS}, {NULL, NULL}};
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;

    (void)n;
    return show(cli, fr_client_path(&path, "/api/v1/incidents/%s", operands[0]), INCIDENT_CARD,
                PARTS);
}

int fr_cmd_decision_list(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;

    (void)n;
    (void)operands;
    return list(cli, query(cli, "decisions", &path), DECISIONS);
}

int fr_cmd_decision_show(struct fr_cli *cli, int n, char **operands)
{
    static const struct part PARTS[] = {{"actions", ACTIONS}, {NULL, NULL}};
    FR_CLEANUP(fr_buf_fini) struct fr_buf path = FR_BUF_INIT;

    (void)n;
    return show(cli, fr_client_path(&path, "/api/v1/decisions/%s", operands[0]), DECISION_CARD,
                PARTS);
}
