/* SPDX-License-Identifier: Apache-2.0 */
/* scan_kernel_log.c - `fullrank scan kernel-log`: one verdict a line */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/jsonw.h"
#include "cli/cmd.h"
#include "cli/out.h"
#include "cli/scan.h"
#include "scan/kernel/kernel.h"
#include "scan/lines.h"

#define FLUSH_BYTES (64u << 10)
#define SCHEMA      "fullrank.kernel-log/1"

struct reading {
    struct fr_lines lines;
    struct fr_klog_codes *codes;
    struct fr_buf out;
    enum fr_format format;
    bool header;
    uint64_t n; /* objects written */
    /* the line under way: a carriage return parts it, and one part may speak */
    uint64_t number;
    struct fr_klog_event event;
    char text[160];
};

static void put_json(struct reading *r)
{
    const struct fr_klog_event *e = &r->event;
    struct fr_jsonw w;

    if (r->format == FR_FORMAT_JSON && r->n)
        fr_buf_puts(&r->out, ",\n");
    fr_jsonw_init(&w, &r->out);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_uint(&w, "line_number", r->number);
    fr_jsonw_str(&w, "source", fr_klog_source_name(e->source));
    if (e->xid >= 0)
        fr_jsonw_int(&w, "xid", e->xid);
    else
        fr_jsonw_null(&w, "xid");
    if (e->pci[0])
        fr_jsonw_str(&w, "pci", e->pci);
    else
        fr_jsonw_null(&w, "pci");
    fr_jsonw_str(&w, "severity", fr_klog_severity_name(e->severity));
    fr_jsonw_str(&w, "action", fr_klog_action_name(e->action));
    if (e->continuation)
        fr_jsonw_bool(&w, "continuation", true);
    if (e->implied)
        fr_jsonw_bool(&w, "implied", true);
    if (e->caused_by >= 0)
        fr_jsonw_int(&w, "caused_by", e->caused_by);
    if (e->link != FR_KLOG_NO_LINK)
        fr_jsonw_int(&w, "link", e->link);
    if (e->count)
        fr_jsonw_uint(&w, "count", e->count);
    if (e->link_event)
        fr_jsonw_str(&w, "link_event", e->link_event);
    fr_jsonw_end_obj(&w);
    if (r->format == FR_FORMAT_JSONL)
        fr_buf_putc(&r->out, '\n');
    r->n++;
}

/* For people: what matters, with the text. */
static void put_row(struct reading *r)
{
    const struct fr_klog_event *e = &r->event;
    const char *sep = r->format == FR_FORMAT_CSV ? "," : "  ";
    char code[16] = "-";

    if (e->source == FR_KLOG_NONE || e->continuation)
        return;
    if (r->header)
        fr_buf_puts(&r->out, r->format == FR_FORMAT_CSV
                                 ? "line_number,source,xid,pci,severity,action\n"
                                 : "   LINE  SOURCE          CODE  DEVICE        SEVERITY  "
                                   "ACTION       TEXT\n");
    r->header = false;
    if (e->xid >= 0)
        snprintf(code, sizeof code, "%d", e->xid);
    if (r->format == FR_FORMAT_CSV) {
        fr_buf_printf(&r->out, "%llu,%s,%s,%s,%s,%s\n", (unsigned long long)r->number,
                      fr_klog_source_name(e->source), e->xid >= 0 ? code : "", e->pci,
                      fr_klog_severity_name(e->severity), fr_klog_action_name(e->action));
        return;
    }
    fr_buf_printf(&r->out, "%7llu%s%-14s%s%5s%s%-12s%s%-8s%s%-11s%s", (unsigned long long)r->number,
                  sep, fr_klog_source_name(e->source), sep, code, sep, e->pci[0] ? e->pci : "-",
                  sep, fr_klog_severity_name(e->severity), sep, fr_klog_action_name(e->action),
                  sep);
    fr_table_safe(&r->out, r->text);
    fr_buf_putc(&r->out, '\n');
}

static void finish_line(struct reading *r)
{
    if (r->number == 0)
        return;
    if (r->format == FR_FORMAT_JSON || r->format == FR_FORMAT_JSONL)
        put_json(r);
    else
        put_row(r);
    if (r->out.len > FLUSH_BYTES) {
        fr_out_write(&r->out);
        fr_buf_reset(&r->out);
    }
}

static int take(const char *p, size_t n, uint64_t number, void *arg)
{
    struct reading *r = arg;
    struct fr_klog_event e;

    fr_klog_read(p, n, r->codes, &e);
    if (number == r->number && e.source == FR_KLOG_NONE)
        return 0;
    if (number != r->number)
        finish_line(r);
    r->number = number;
    r->event = e;
    if (n > sizeof r->text - 1)
        n = sizeof r->text - 1;
    memcpy(r->text, p, n);
    r->text[n] = '\0';
    return 0;
}

static int feed(const char *p, size_t n, void *arg)
{
    struct reading *r = arg;

    return fr_lines_feed(&r->lines, p, n);
}

static int load_codes(const char *path, struct fr_klog_codes **ret, struct fr_err *err)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    int rc = path ? fr_fs_read(path, 1u << 20, &b, err) : 0;

    return rc < 0 || !path ? rc : fr_klog_codes_parse(fr_buf_str(&b), b.len, path, ret, err);
}

int fr_cmd_scan_kernel_log(struct fr_cli *cli, int n, char **operands)
{
    struct fr_err err = FR_ERR_INIT;
    struct reading r = {.format = cli->format, .header = !cli->no_header};
    int rc = load_codes(cli->rules, &r.codes, &err);

    (void)n;
    fr_lines_init(&r.lines, take, &r);
    if (rc == 0 && r.format == FR_FORMAT_JSON)
        fr_buf_puts(&r.out, "{\"schema\":\"" SCHEMA "\",\"items\":[\n");
    if (rc == 0)
        rc = fr_scan_stream(operands[0], feed, &r, &err);
    if (rc == 0)
        rc = fr_lines_end(&r.lines);
    if (rc == 0) {
        finish_line(&r);
        if (r.format == FR_FORMAT_JSON)
            fr_buf_puts(&r.out, "\n]}\n");
        fr_out_write(&r.out);
    }
    fr_lines_fini(&r.lines);
    fr_buf_fini(&r.out);
    fr_klog_codes_free(r.codes);
    return rc < 0 ? fr_cli_fail(FR_EXIT_FAILED, &err) : 0;
}
