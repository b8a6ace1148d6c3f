/* SPDX-License-Identifier: Apache-2.0 */
/* scan_job_log.c - `fullrank scan job-log`: judged by src/scan, printed here */
#include "base/fs.h"
#include "base/jsonw.h"
#include "cli/cmd.h"
#include "cli/out.h"
#include "cli/scan.h"
#include "scan/job_log.h"

static const char *const ROLES[] = {"cause", "origin", "pair", "victim", "weak", "note"};

static void write_text(struct fr_jsonw *w, const char *key, const char *s)
{
    fr_jsonw_str(w, key, s[0] ? s : NULL);
}

static void write_finding(struct fr_jsonw *w, const char *key, const struct fr_job_finding *f)
{
    fr_jsonw_obj(w, key);
    fr_jsonw_str(w, "family", f->is.family);
    fr_jsonw_str(w, "blame", f->is.blame);
    fr_jsonw_str(w, "signature", f->is.signature);
    fr_jsonw_str(w, "action", f->is.action);
    fr_jsonw_uint(w, "line_number", f->line_number);
    if (f->rank >= 0)
        fr_jsonw_int(w, "rank", f->rank);
    else
        fr_jsonw_null(w, "rank");
    write_text(w, "host", f->host);
    write_text(w, "peer", f->peer);
    fr_jsonw_str(w, "role", ROLES[f->is.role]);
    fr_jsonw_str(w, "rule", f->rule);
    fr_jsonw_uint(w, "count", f->count);
    fr_jsonw_uint(w, "last_line_number", f->last_line_number);
    fr_jsonw_str(w, "text", f->text);
    fr_jsonw_end_obj(w);
}

static void write_json(struct fr_buf *b, const struct fr_job_log *log)
{
    const struct fr_job_finding *first = fr_job_log_first(log), *v;
    const struct fr_job_progress *pr;
    struct fr_jsonw w;
    size_t n, np;

    v = fr_job_log_findings(log, &n);
    pr = fr_job_log_progress(log, &np);
    fr_jsonw_init(&w, b);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "schema", "fullrank.scan-job-log/1");
    if (first)
        write_finding(&w, "first_cause", first);
    else
        fr_jsonw_null(&w, "first_cause");
    fr_jsonw_arr(&w, "findings");
    for (size_t i = 0; i < n; i++)
        write_finding(&w, NULL, &v[i]);
    fr_jsonw_end_arr(&w);
    fr_jsonw_uint(&w, "findings_left_out", fr_job_log_dropped(log));
    fr_jsonw_arr(&w, "progress"); /* lowest enqueued first: the suspect when ranks only time out */
    for (size_t i = 0; i < np; i++) {
        fr_jsonw_obj(&w, NULL);
        fr_jsonw_int(&w, "rank", pr[i].rank);
        fr_jsonw_int(&w, "last_enqueued", pr[i].enqueued);
        fr_jsonw_int(&w, "last_completed", pr[i].completed);
        fr_jsonw_end_obj(&w);
    }
    fr_jsonw_end_arr(&w);
    fr_jsonw_uint(&w, "lines", fr_job_log_lines(log));
    fr_jsonw_end_obj(&w);
    fr_buf_putc(b, '\n');
}

static void print_finding(struct fr_buf *b, const struct fr_job_finding *f)
{
    fr_buf_printf(b, "line %llu: %s (%s), blame %s, action %s", (unsigned long long)f->line_number,
                  f->is.signature, f->is.family, f->is.blame, f->is.action);
    if (f->rank >= 0)
        fr_buf_printf(b, ", rank %lld", (long long)f->rank);
    if (f->host[0]) {
        fr_buf_puts(b, ", host ");
        fr_table_safe(b, f->host);
    }
    if (f->peer[0]) {
        fr_buf_puts(b, ", names ");
        fr_table_safe(b, f->peer);
    }
    if (f->count > 1)
        fr_buf_printf(b, " (%llu times)", (unsigned long long)f->count);
    fr_buf_putc(b, '\n');
}

static void print_people(struct fr_buf *b, const struct fr_job_log *log)
{
    const struct fr_job_finding *first = fr_job_log_first(log), *v;
    size_t n;

    v = fr_job_log_findings(log, &n);
    if (first) {
        fr_buf_puts(b, "first cause: ");
        print_finding(b, first);
        fr_buf_puts(b, "  ");
        fr_table_safe(b, first->text);
        fr_buf_putc(b, '\n');
    } else {
        fr_buf_puts(b, "nothing in this log tells of a failure\n");
    }
    for (size_t i = first ? 1 : 0; i < n; i++) {
        fr_buf_printf(b, "  %s: ", ROLES[v[i].is.role]);
        print_finding(b, &v[i]);
    }
    if (fr_job_log_dropped(log))
        fr_buf_printf(b, "%llu further findings were left out\n",
                      (unsigned long long)fr_job_log_dropped(log));
}

static int feed(const char *p, size_t n, void *arg)
{
    return fr_job_log_feed(arg, p, n);
}

static int scan(const char *path, const char *rules_path, struct fr_buf *out, enum fr_format format,
                struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf own = FR_BUF_INIT;
    struct fr_job_rules *rules = NULL;
    struct fr_job_log *log;
    int rc = rules_path ? fr_fs_read(rules_path, FR_JOB_RULES_MAX, &own, err) : 0;

    if (rc < 0)
        return rc;
    rc = fr_job_rules_new(rules_path ? fr_buf_str(&own) : NULL, own.len, rules_path, &rules, err);
    if (rc < 0)
        return rc;
    log = fr_job_log_new(rules);
    rc = fr_scan_stream(path, feed, log, err);
    if (rc == 0) {
        fr_job_log_end(log);
        if (format == FR_FORMAT_TABLE)
            print_people(out, log);
        else
            write_json(out, log);
    }
    fr_job_log_free(log);
    fr_job_rules_free(rules);
    return rc;
}

int fr_cmd_scan_job_log(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;

    (void)n;
    if (scan(operands[0], cli->rules, &b, cli->format, &err) < 0)
        return fr_cli_fail(FR_EXIT_FAILED, &err);
    fr_out_write(&b);
    return 0;
}
