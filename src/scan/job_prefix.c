/* SPDX-License-Identifier: Apache-2.0 */
/* job_prefix.c - see job_prefix.h: one function a kind of prefix, asked in turn until none fits */
#define _GNU_SOURCE /* memmem */
#include "scan/job_prefix.h"

#include <ctype.h>
#include <string.h>

#define PREFIXES_MAX 12 /* taken off one line */

static size_t digits(const char *p, const char *end)
{
    size_t n = 0;

    while (p + n < end && isdigit((unsigned char)p[n]) && n < 18)
        n++;
    return n;
}

static int64_t number(const char *p, size_t n)
{
    int64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v = v * 10 + (p[i] - '0');
    return v;
}

static bool begins(const char *p, const char *end, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(end - p) >= n && memcmp(p, text, n) == 0;
}

static size_t host_chars(const char *p, const char *end)
{
    size_t n = 0;

    while (p + n < end && n < 255 &&
           (isalnum((unsigned char)p[n]) || p[n] == '-' || p[n] == '.' || p[n] == '_'))
        n++;
    return n;
}

static void set_host(struct fr_job_prefix *r, const char *p, size_t n)
{
    r->host = p;
    r->host_n = n;
}

/* "[rank3]:", "[rank3]", "rank3:", "[Rank 3]", "(rank 3)" */
static size_t rank_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    char open = *p == '[' || *p == '(' ? *p : '\0', close = open == '(' ? ')' : ']';
    const char *q = p + (open != '\0');
    size_t n;

    if ((size_t)(end - q) < 6 ||
        (memcmp(q, "rank", 4) && memcmp(q, "Rank", 4) && memcmp(q, "RANK", 4)))
        return 0;
    q += 4;
    if (*q == ' ' || *q == '-' || *q == '_' || *q == '=')
        q++;
    n = digits(q, end);
    if (n == 0 || q + n == end)
        return 0;
    r->rank = number(q, n);
    q += n;
    if (open && *q++ != close)
        return 0;
    if (!open && *q != ':')
        return 0;
    return (size_t)(q - p) + (q < end && *q == ':');
}

/* "[1,3]<stderr>:", "[prterun-host-42@1,3]<stdout>: ", "[1,3]:" of mpirun --tag-output */
static size_t mpirun_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    const char *q = p + 1, *close;
    size_t n;

    if (*p != '[')
        return 0;
    close = memchr(q, ']', (size_t)(end - q) < 200 ? (size_t)(end - q) : 200);
    if (!close)
        return 0;
    n = 0;
    while (close - n > q && isdigit((unsigned char)close[-(long)n - 1]))
        n++;
    if (n == 0 || n > 9 || close - n == q || close[-(long)n - 1] != ',')
        return 0;
    r->task = number(close - n, n);
    q = close + 1;
    if (q < end && *q == '<')
        while (q < end && *q++ != '>')
            ;
    return (size_t)(q - p) + (q < end && *q == ':');
}

/* "[default0]:", "[trainer3]:", "[worker0]:" of torchrun: a local rank, which names nobody. */
static size_t torchrun_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    size_t n = 1, d;

    (void)r;
    if (*p != '[')
        return 0;
    while (p + n < end && isalpha((unsigned char)p[n]) && n < 40)
        n++;
    d = digits(p + n, end);
    if (n == 1 || d == 0 || p + n + d + 1 >= end || p[n + d] != ']' || p[n + d + 1] != ':')
        return 0;
    return n + d + 2;
}

/* "3: text", "  12: text" of srun -l; "[3] text" of MPICH's -prepend-rank */
static size_t number_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    size_t open = *p == '[', n = digits(p + open, end), at = open + n;

    if (n == 0 || n > 7 || p + at + 1 >= end)
        return 0;
    if (open ? p[at] != ']' || p[at + 1] != ' ' : p[at] != ':' || p[at + 1] != ' ')
        return 0;
    r->task = number(p + open, n);
    return at + 2;
}

/* "(Worker pid=42, ip=10.0.0.1) ", "(RayTrainWorker pid=42) " */
static size_t ray_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    const char *close, *ip;

    if (*p != '(')
        return 0;
    close = memchr(p, ')', (size_t)(end - p) < 200 ? (size_t)(end - p) : 200);
    if (!close || !memmem(p, (size_t)(close - p), "pid=", 4))
        return 0;
    ip = memmem(p, (size_t)(close - p), "ip=", 3);
    if (ip && ip[-1] != ' ')
        ip = NULL;
    if (ip)
        set_host(r, ip + 3, host_chars(ip + 3, close));
    ip = memmem(p, (size_t)(close - p), "[rank=", 6);
    if (ip && digits(ip + 6, close))
        r->rank = number(ip + 6, digits(ip + 6, close));
    return (size_t)(close - p) + 1;
}

/* "[pod/train-worker-3/pytorch] " of kubectl --prefix; "train-worker-3 pytorch " of stern is
 * nothing that can be told from text, "train-worker-3  | " of compose is. */
static size_t pod_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    size_t n;

    if (begins(p, end, "[pod/")) {
        const char *close = memchr(p, ']', (size_t)(end - p) < 400 ? (size_t)(end - p) : 400);

        n = host_chars(p + 5, end);
        if (!close || n == 0)
            return 0;
        set_host(r, p + 5, n);
        return (size_t)(close - p) + 1;
    }
    n = host_chars(p, end);
    if (n < 2 || p + n + 2 >= end || p[n] != ' ')
        return 0;
    for (size_t at = n; p + at + 1 < end && at < n + 40; at++) {
        if (p[at] == '|' && p[at + 1] == ' ') {
            set_host(r, p, n);
            return at + 2;
        }
        if (p[at] != ' ')
            return 0;
    }
    return 0;
}

/* "gpu-024:41873:42310 [3] NCCL INFO ...", with or without the file of a WARN and a time in
 * brackets. */
static size_t nccl_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    size_t host = host_chars(p, end), at = host, pid, tid, dev;

    if (host == 0 || p + at >= end || p[at] != ':')
        return 0;
    pid = digits(p + ++at, end);
    if (pid == 0 || p + at + pid >= end || p[at + pid] != ':')
        return 0;
    r->pid = number(p + at, pid);
    at += pid + 1;
    tid = digits(p + at, end);
    at += tid;
    if (tid == 0 || p + at + 2 >= end || p[at] != ' ')
        return 0;
    set_host(r, p, host);
    r->nccl = true;
    at++;
    if (p[at] != '[')
        return at;
    dev = at + 1;
    if (p[dev] == '-')
        dev++;
    dev += digits(p + dev, end);
    return p + dev < end && p[dev] == ']' ? dev + 1 : at;
}

/* "gpu-024: text" of pdsh, clush and others: a host has a figure in it and no capital letters, so
 * that no word of a message is taken for one. */
static size_t host_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    size_t n = host_chars(p, end), figures = 0;

    if (n < 2 || p + n + 1 >= end || p[n] != ':' || p[n + 1] != ' ' || !isalpha((unsigned char)*p))
        return 0;
    for (size_t i = 0; i < n; i++) {
        if (isupper((unsigned char)p[i]) || p[i] == '_')
            return 0;
        figures += isdigit((unsigned char)p[i]) != 0;
    }
    if (figures == 0 || (n > 3 && memcmp(p + n - 3, ".py", 3) == 0))
        return 0;
    set_host(r, p, n);
    return n + 2;
}

/* 2025-11-04T03:18:40.123Z, 2025-11-04 03:18:40,123, [2025-11-04 03:18:40], [12.345678], 03:18:40
 */
static size_t time_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    size_t open = *p == '[', at = open, figures = 0, marks = 0;

    (void)r;
    for (; p + at < end && at < 48; at++) {
        char c = p[at];

        if (isdigit((unsigned char)c))
            figures++;
        else if (c == ':' || c == '-' || c == '.' || c == ',' || c == '/' || c == '+')
            marks++;
        else if (!(c == 'T' && at > 4) && c != 'Z' &&
                 !(c == ' ' && (open || (figures == 8 && marks == 2))))
            break;
        if (!open && c == ' ' &&
            !(figures == 8 && marks == 2 && p + at + 1 < end && isdigit((unsigned char)p[at + 1])))
            break;
    }
    if (open) /* "[ 1234.567890]" too, but not "[3]" */
        return p + at < end && p[at] == ']' && figures >= 4 && marks >= 1 ? at + 1 : 0;
    return figures >= 6 && marks >= 2 && p + at < end && p[at] == ' ' ? at + 1 : 0;
}

/* "[Mon Jul 25 16:46:04 2022] ", "Nov  4 03:18:40 gpu-001 kernel: " */
static size_t syslog_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *q = p, *month;
    size_t n;

    if (*p == '[') {
        const char *close = memchr(p, ']', (size_t)(end - p) < 40 ? (size_t)(end - p) : 40);

        return close && close - p > 20 && isalpha((unsigned char)p[1]) &&
                       isdigit((unsigned char)close[-1]) && memchr(p, ':', (size_t)(close - p))
                   ? (size_t)(close - p) + 1
                   : 0;
    }
    if (end - p < 20)
        return 0;
    month = memmem(MONTHS, sizeof MONTHS - 1, q, 3);
    if (!month || (month - MONTHS) % 3 || q[3] != ' ')
        return 0;
    q += 4;
    while (q < end && *q == ' ')
        q++;
    n = digits(q, end);
    if (n == 0 || n > 2 || q + n + 10 > end || q[n] != ' ' || q[n + 3] != ':' || q[n + 6] != ':')
        return 0;
    q += n + 1 + 8;
    if (q < end && *q == ' ')
        q++;
    n = host_chars(q, end);
    if (n && q + n < end && q[n] == ' ') {
        set_host(r, q, n);
        q += n + 1;
    }
    n = host_chars(q, end); /* kernel:, slurmstepd[42]: */
    if (n && q + n < end && q[n] == '[') {
        const char *close = memchr(q, ']', (size_t)(end - q) < 60 ? (size_t)(end - q) : 60);

        if (close && close + 1 < end && close[1] == ':')
            q = close + 2;
    } else if (n == 6 && memcmp(q, "kernel", 6) == 0 && q + 6 < end && q[6] == ':') {
        q += 7;
    }
    return (size_t)(q - p);
}

/* "[E1104 03:17:12.48 ProcessGroupNCCL.cpp:616] ", "E1104 03:18:40.112000 139871 torch/x.py:826] ",
 * "[E ProcessGroupNCCL.cpp:616] " of glog and of c10 before 2.2. */
static size_t glog_label(const char *p, const char *end, struct fr_job_prefix *r)
{
    const char *q = p + (*p == '['), *close;

    (void)r;
    if (end - q < 6 || !strchr("IWEFC", *q) || (q[1] != ' ' && !isdigit((unsigned char)q[1])))
        return 0;
    close = memchr(q, ']', (size_t)(end - q) < 200 ? (size_t)(end - q) : 200);
    if (!close || !memchr(q, ':', (size_t)(close - q)))
        return 0;
    return (size_t)(close - p) + 1;
}

/* "[PG ID 0 PG GUID 0(default_pg) Rank 3] ", "[PG 1 Rank 3] ": the rank that torch itself says. It
 * is part of the message. */
static void own_rank(const char *p, const char *end, struct fr_job_prefix *r)
{
    const char *close, *at;

    if (p >= end || *p != '[')
        return;
    close = memchr(p, ']', (size_t)(end - p) < 200 ? (size_t)(end - p) : 200);
    at = close ? memmem(p, (size_t)(close - p), "Rank ", 5) : NULL;
    if (at && digits(at + 5, close) && at + 5 + digits(at + 5, close) == close)
        r->rank = number(at + 5, digits(at + 5, close));
}

void fr_job_prefix_read(const char *p, size_t n, struct fr_job_prefix *ret)
{
    static size_t (*const LABELS[])(const char *, const char *, struct fr_job_prefix *) = {
        rank_label, time_label, syslog_label, glog_label,   mpirun_label,  nccl_label,
        ray_label,  pod_label,  host_label,   number_label, torchrun_label};
    const char *q = p, *end = p + n;

    *ret = (struct fr_job_prefix){.rank = -1, .task = -1, .pid = -1};
    for (int taken = 0; taken < PREFIXES_MAX && q < end; taken++) {
        size_t len = 0;

        while (q < end && (*q == ' ' || *q == '\t'))
            q++;
        if (q < end && *q == '<' && end - q > 3 && digits(q + 1, end) &&
            q[1 + digits(q + 1, end)] == '>')
            q += digits(q + 1, end) + 2; /* <6> of the kernel */
        if (q < end && *q == '[' && (begins(q, end, "[Rank ") || begins(q, end, "[PG ")))
            break; /* torch's own: the message begins here */
        for (size_t i = 0; q < end && i < sizeof LABELS / sizeof LABELS[0] && len == 0; i++) {
            struct fr_job_prefix now = *ret;

            len = LABELS[i](q, end, &now);
            if (len)
                *ret = now;
        }
        if (len == 0)
            break;
        q += len;
    }
    if (q > end)
        q = end;
    ret->message = (size_t)(q - p);
    own_rank(q, end, ret);
}
