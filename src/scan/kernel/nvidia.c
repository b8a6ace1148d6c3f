/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvidia.c - Xid of GPUs, SXid of NVSwitches: parse the line, look the code up
 *
 * NVRM: Xid (PCI:dddd:bb:dd[.f][ GPU-I:n]): CODE[, pid=..][, name=..][, detail]
 * nvidia-nvswitchN: SXid (PCI:dddd:bb:dd.f): CODE, [Fatal|Non-fatal, ][Link NN ]text
 * NVLink sub-codes (144-150): UNIT Fatal|Nonfatal XC0|XC1 i0|i1 Link NN (intrinfo status ...)
 */
#define _GNU_SOURCE /* strcasestr */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/xalloc.h"
#include "scan/kernel/inner.h"

#define INFO        FR_KLOG_INFO
#define WARNING     FR_KLOG_WARNING
#define CRITICAL    FR_KLOG_CRITICAL
#define FATAL       FR_KLOG_FATAL
#define IGNORE      FR_KLOG_IGNORE
#define MONITOR     FR_KLOG_MONITOR
#define BY_TEXT     FR_KLOG_BY_TEXT
#define RESTART_APP FR_KLOG_RESTART_APP
#define RESET_GPU   FR_KLOG_RESET_GPU
#define REBOOT      FR_KLOG_REBOOT
#define INSPECT     FR_KLOG_INSPECT
#define DRAIN_RMA   FR_KLOG_DRAIN_RMA
#define FOLLOW_154  FR_KLOG_FOLLOW_154

struct code {
    int32_t code;
    const char *name;
    int severity, action; /* action means nothing where severity is BY_TEXT */
};

struct sub { /* of an NVLink Xid */
    int32_t xid;
    const char *units; /* one or two, parted by a slash */
    uint32_t mask[2], value[2], status;
    int severity, action;
};

#define FR_XID(...)
#define FR_SXID(...)
#define FR_NVLINK(...)

static const struct code XIDS[] = {
#undef FR_XID
#define FR_XID(...) {__VA_ARGS__},
#include "scan/kernel/codes.def"
#undef FR_XID
#define FR_XID(...)
};
static const struct code SXIDS[] = {
#undef FR_SXID
#define FR_SXID(...) {__VA_ARGS__},
#include "scan/kernel/codes.def"
#undef FR_SXID
#define FR_SXID(...)
};
static const struct sub SUBS[] = {
#undef FR_NVLINK
#define FR_NVLINK(xid, units, m1, v1, m2, v2, status, sev, act)                                    \
    {xid, units, {m1, m2}, {v1, v2}, status, sev, act},
#include "scan/kernel/codes.def"
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum { XID_PREEMPTED = 45, XID_NVLINK_FIRST = 144, XID_NVLINK_LAST = 150, XID_RECOVERY = 154 };

static const struct code *find(const struct code *table, size_t n, int32_t code)
{
    for (size_t i = 0; i < n; i++)
        if (table[i].code == code)
            return &table[i];
    return NULL;
}

static void say(struct fr_klog_event *ev, int severity, int action)
{
    ev->severity = (enum fr_klog_severity)severity;
    ev->action = (enum fr_klog_action)action;
}

/* --- a site's file --- */

struct site_code {
    bool sxid;
    int32_t code;
    int severity, action;
};

struct fr_klog_codes {
    struct site_code *rows;
    size_t n;
};

static int name_index(const char *(*name)(int), int n, const char *p, size_t len)
{
    for (int i = 0; i < n; i++)
        if (strlen(name(i)) == len && memcmp(name(i), p, len) == 0)
            return i;
    return -1;
}
static const char *severity_name(int i)
{
    return fr_klog_severity_name((enum fr_klog_severity)i);
}
static const char *action_name(int i)
{
    return fr_klog_action_name((enum fr_klog_action)i);
}

/* The next word of a line; its length, 0 at the end or a comment. */
static size_t next_word(const char **p, const char *end)
{
    size_t n = 0;

    while (*p < end && (**p == ' ' || **p == '\t' || **p == '\r'))
        (*p)++;
    while (*p + n < end && !strchr(" \t\r#", (*p)[n]))
        n++;
    return n;
}

int fr_klog_codes_parse(const char *text, size_t n, const char *name, struct fr_klog_codes **ret,
                        struct fr_err *err)
{
    struct fr_klog_codes *c = fr_xcalloc(1, sizeof *c);
    unsigned number = 0;

    for (const char *p = text, *end = text + n; p < end;) {
        const char *lf = memchr(p, '\n', (size_t)(end - p)), *eol = lf ? lf : end, *w[5];
        struct site_code row = {0};
        size_t len[5] = {0};
        int k = 0;

        number++;
        while (k < 5 && (len[k] = next_word(&p, eol)) > 0) {
            w[k] = p;
            p += len[k++];
        }
        p = lf ? lf + 1 : end;
        if (k == 0)
            continue;
        row.sxid = len[0] == 4 && memcmp(w[0], "sxid", 4) == 0;
        if (k == 4 && (row.sxid || (len[0] == 3 && memcmp(w[0], "xid", 3) == 0)) && len[1] < 8 &&
            strspn(w[1], "0123456789") >= len[1]) {
            row.code = atoi(w[1]);
            row.severity = name_index(severity_name, FR_KLOG_BY_TEXT, w[2], len[2]);
            row.action = name_index(action_name, FR_KLOG_ACTIONS, w[3], len[3]);
        } else {
            row.severity = -1;
        }
        if (row.severity < 0 || row.action < 0) {
            fr_klog_codes_free(c);
            return fr_fail(err, -EINVAL,
                           "%s:%u: not \"xid|sxid CODE SEVERITY ACTION\" (severity info, warning, "
                           "critical or fatal; action ignore, monitor, restart_app, reset_gpu, "
                           "reboot, inspect or drain_rma)",
                           name, number);
        }
        c->rows = fr_xreallocarray(c->rows, c->n + 1, sizeof *c->rows);
        c->rows[c->n++] = row;
    }
    *ret = c;
    return 0;
}

void fr_klog_codes_free(struct fr_klog_codes *c)
{
    if (c)
        free(c->rows);
    free(c);
}

static void site_code(const struct fr_klog_codes *c, bool sxid, int32_t code,
                      struct fr_klog_event *ev)
{
    for (size_t i = c ? c->n : 0; i-- > 0;) /* the last line wins */
        if (c->rows[i].sxid == sxid && c->rows[i].code == code) {
            say(ev, c->rows[i].severity, c->rows[i].action);
            return;
        }
}

/* --- lines --- */

/* "Fatal", "Non-fatal", "Nonfatal" as a word: 1 fatal, 0 not, -1 neither is said. */
static int said_fatal(const char *p)
{
    for (; *p; p++) {
        if (strncasecmp(p, "non-fatal", 9) == 0 || strncasecmp(p, "nonfatal", 8) == 0)
            return 0;
        if (strncasecmp(p, "fatal", 5) == 0 && !isalpha((unsigned char)p[5]))
            return 1;
    }
    return -1;
}

static int32_t link_of(const char *text)
{
    const char *p = strcasestr(text, "link ");
    char *end;
    long n;

    if (!p)
        return FR_KLOG_NO_LINK;
    n = strtol(p + 5, &end, 10);
    return end == p + 5 || n < -1 || n > 4096 ? FR_KLOG_NO_LINK : (int32_t)n;
}

/* After "Xid (" or "SXid (": the device, the code; returns what follows the code. */
static const char *head(const char *p, struct fr_klog_event *ev)
{
    const char *close = strchr(p, ')');
    char device[64] = "", *end;
    size_t n = close ? (size_t)(close - p) : strlen(p);
    long code;

    memcpy(device, p, n < sizeof device - 1 ? n : sizeof device - 1);
    fr_klog_pci(device, ev->pci);
    if (!close)
        return "";
    p = close + 1;
    p += strspn(p, ": \t");
    code = strtol(p, &end, 10);
    if (end == p || code < 0 || code > 999999)
        return "";
    ev->xid = (int32_t)code;
    p = end;
    return p + strspn(p, ", \t\r");
}

static void by_xid(int32_t code, const struct fr_klog_codes *codes, struct fr_klog_event *ev)
{
    const struct code *c = find(XIDS, COUNT(XIDS), code);

    say(ev, c ? c->severity : WARNING, c ? c->action : MONITOR);
    site_code(codes, false, code, ev);
}

/* "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)" */
static void recovery(const char *text, struct fr_klog_event *ev)
{
    static const struct {
        int severity, action;
    } TO[] = {{INFO, IGNORE},
              {CRITICAL, RESET_GPU},
              {CRITICAL, REBOOT},
              {WARNING, MONITOR},
              {CRITICAL, RESET_GPU}};
    const char *p = strstr(text, " to ");
    char *end;
    unsigned long v;

    if (!p)
        return;
    v = strtoul(p + 4, &end, 16);
    if (end != p + 4 && v < COUNT(TO))
        say(ev, TO[v].severity, TO[v].action);
}

static bool is_unit(const char *units, const char *p, size_t n)
{
    for (const char *u = units; *u; u += strcspn(u, "/"), u += *u == '/')
        if (strcspn(u, "/") == n && strncmp(u, p, n) == 0)
            return true;
    return false;
}

/* The unit stands before the word Fatal or Nonfatal; a name= before it may hold anything. */
static void nvlink(const char *text, struct fr_klog_event *ev)
{
    const char *p = strstr(text, " Link "), *open = p ? strchr(p, '(') : NULL, *unit = NULL;
    int fatal = said_fatal(text);
    uint32_t info, status;
    size_t n = 0;
    char *end;

    if (fatal >= 0)
        say(ev, fatal ? CRITICAL : WARNING, fatal ? RESET_GPU : MONITOR);
    ev->link = link_of(text);
    if (p && p - text >= 3 && memcmp(p - 3, " i1", 3) == 0) { /* a tester put it there */
        say(ev, INFO, IGNORE);
        return;
    }
    if (!open)
        return;
    info = (uint32_t)strtoul(open + 1, &end, 16);
    status = (uint32_t)strtoul(end, &end, 16);
    for (const char *q = text; q < open; q += n, q += strspn(q, " ,\t")) {
        n = strcspn(q, " ,\t");
        if (n == 0)
            break;
        if (strncasecmp(q, "fatal", 5) == 0 || strncasecmp(q, "nonfatal", 8) == 0)
            break;
        unit = q;
    }
    if (!unit)
        return;
    n = strcspn(unit, " ,\t");
    for (size_t i = 0; i < COUNT(SUBS); i++) {
        const struct sub *s = &SUBS[i];
        char name[48];

        /* a line may name the unit, or unit and part: UNIT/PART */
        memset(name, 0, sizeof name);
        memcpy(name, unit, n < sizeof name - 1 ? n : sizeof name - 1);
        if (s->xid == ev->xid && s->status == status &&
            (is_unit(s->units, name, strcspn(name, "/")) || strcmp(s->units, name) == 0) &&
            ((info & s->mask[0]) == s->value[0] || (info & s->mask[1]) == s->value[1])) {
            say(ev, s->severity, s->action);
            return;
        }
    }
}

void fr_klog_xid(const char *text, const struct fr_klog_codes *codes, struct fr_klog_event *ev)
{
    const char *rest = head(strchr(text, '(') + 1, ev), *cause;

    if (ev->xid < 0) { /* cut before the code */
        say(ev, WARNING, MONITOR);
        return;
    }
    by_xid(ev->xid, codes, ev);
    if (ev->xid == XID_RECOVERY)
        recovery(rest, ev);
    if (ev->xid >= XID_NVLINK_FIRST && ev->xid <= XID_NVLINK_LAST)
        nvlink(rest, ev);
    cause = ev->xid == XID_PREEMPTED ? strstr(rest, "caused by previous Xid ") : NULL;
    if (cause && isdigit((unsigned char)cause[23])) {
        ev->caused_by = atoi(cause + 23);
        by_xid(ev->caused_by, codes, ev);
    }
    site_code(codes, false, ev->xid, ev);
}

/* Does the text speak of what the code's name says? One word of it in the name is enough: codes
 * were moved between driver branches, and then nothing fits. */
static bool fits_name(const char *text, const char *name)
{
    static const char *const COMMON[] = {"error", "errors", "err",   "fault", "link",
                                         "fatal", "non",    "first", "data",  "and"};

    while (*text) {
        size_t n = 0;
        bool common = false;
        char w[32];

        while (*text && !isalnum((unsigned char)*text))
            text++;
        while (isalnum((unsigned char)text[n]))
            n++;
        if (n >= 3 && n < sizeof w) {
            memcpy(w, text, n);
            w[n] = '\0';
            for (size_t i = 0; i < COUNT(COMMON); i++)
                common |= strcasecmp(w, COMMON[i]) == 0;
            if (!common && strcasestr(name, w))
                return true;
        }
        text += n;
    }
    return false;
}

void fr_klog_sxid(const char *text, const struct fr_klog_codes *codes, struct fr_klog_event *ev)
{
    const char *rest = head(strchr(text, '(') + 1, ev);
    const struct code *c = find(SXIDS, COUNT(SXIDS), ev->xid);
    int fatal = said_fatal(rest);

    if (fr_klog_like(rest, "data {") || fr_klog_like(rest, "severity *engine")) {
        ev->continuation = true;
        say(ev, INFO, IGNORE);
        return;
    }
    ev->link = link_of(rest);
    if (!c || c->severity == BY_TEXT || (*rest && !fits_name(rest, c->name)))
        say(ev, fatal == 1 ? CRITICAL : WARNING, fatal == 1 ? REBOOT : MONITOR);
    else
        say(ev, c->severity, c->action);
    site_code(codes, true, ev->xid, ev);
}
