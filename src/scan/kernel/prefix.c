/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix.c - take off what loggers put before a kernel message
 *
 * Known: [s.us], [s.us][ Tn], [weekday date], a date in any language with or without a host,
 * "kernel:", "kern  :level : date", ISO dates, <n>, raw /dev/kmsg records with their escapes,
 * "message repeated N times: [...]", and a host before a bracket (pdsh). They nest.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "scan/kernel/inner.h"

#define DATE_TOKENS 4 /* a time of day stands among so many words */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static char *skip_blanks(char *p)
{
    while (is_blank(*p))
        p++;
    return p;
}

static size_t digits(const char *p)
{
    return strspn(p, "0123456789");
}

static size_t word(const char *p)
{
    return strcspn(p, " \t\r\n");
}

/* hh:mm:ss at p, what follows in the word is its fraction or zone. */
static bool is_time(const char *p)
{
    for (int i = 0; i < 8; i++)
        if (i % 3 == 2 ? p[i] != ':' : !isdigit((unsigned char)p[i]))
            return false;
    return true;
}

static bool is_iso_day(const char *p)
{
    for (int i = 0; i < 10; i++)
        if (i == 4 || i == 7 ? p[i] != '-' : !isdigit((unsigned char)p[i]))
            return false;
    return true;
}

/* \xNN, as /dev/kmsg writes what is not printable. */
static void unescape(char *p)
{
    char *to = p;

    while (*p) {
        if (p[0] == '\\' && p[1] == 'x' && isxdigit((unsigned char)p[2]) &&
            isxdigit((unsigned char)p[3])) {
            char hex[3] = {p[2], p[3], 0};
            char c = (char)strtoul(hex, NULL, 16);

            *to++ = c ? c : ' ';
            p += 4;
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
}

static void facility(unsigned long priority, struct fr_klog_prefix *x)
{
    x->foreign |= priority >> 3 != 0;
}

/* <n> */
static char *level(char *p, struct fr_klog_prefix *x)
{
    size_t n = digits(p + 1);

    if (*p != '<' || n == 0 || n > 4 || p[1 + n] != '>')
        return p;
    facility(strtoul(p + 1, NULL, 10), x);
    return p + n + 2;
}

/* pri,seq,us,flags[,more];text */
static char *kmsg(char *p, struct fr_klog_prefix *x)
{
    char *q = p;

    for (int i = 0; i < 3; i++) {
        size_t n = digits(q);

        if (n == 0 || n > 20 || q[n] != ',')
            return p;
        q += n + 1;
    }
    q += strcspn(q, "; \n");
    if (*q != ';')
        return p;
    facility(strtoul(p, NULL, 10), x);
    unescape(q + 1);
    return q + 1;
}

/* [12.345678], [  T291], [Mon Jul 25 16:46:04 2022] */
static char *bracket(char *p)
{
    char *q = skip_blanks(p + 1), *end;
    size_t n;

    if (*p != '[')
        return p;
    end = strchr(q, ']');
    if (!end || end - p > 48)
        return p;
    n = digits(q);
    if (n && q[n] == '.' && q + n + 1 + digits(q + n + 1) == end)
        return end + 1;
    if ((*q == 'T' || *q == 'C') && digits(q + 1) && q + 1 + digits(q + 1) == end)
        return end + 1;
    for (; q + 8 <= end; q++)
        if (is_time(q))
            return end + 1;
    return p;
}

/* kern  :warn  : */
static char *decoded(char *p, struct fr_klog_prefix *x)
{
    static const char *const FACILITIES[] = {"kern", "user", "mail", "daemon", "auth",     "syslog",
                                             "lpr",  "news", "uucp", "cron",   "authpriv", "ftp"};
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz"), m;
    bool known = false;
    char *q = p + n;

    for (size_t i = 0; i < sizeof FACILITIES / sizeof FACILITIES[0]; i++)
        known |= strlen(FACILITIES[i]) == n && memcmp(p, FACILITIES[i], n) == 0;
    q += strspn(q, " ");
    if (!known || *q != ':')
        return p;
    m = strspn(++q, "abcdefghijklmnopqrstuvwxyz");
    q += m;
    q += strspn(q, " ");
    if (m == 0 || *q != ':')
        return p;
    x->foreign |= memcmp(p, "kern", 4) != 0;
    return q + 1;
}

/* "2025-01-21T04:41:44,28+00:00", "Feb 14 05:03:41": the end of the word with the time of day. */
static char *date(char *p)
{
    char *q = p;

    if (is_iso_day(p) && (p[10] == 'T' || p[10] == ' ') && is_time(p + 11))
        return p + 11 + word(p + 11);
    for (int i = 0; i < DATE_TOKENS && *q; i++) {
        size_t n = word(q);

        if (i > 0 && is_time(q))
            return q + n;
        if (n > 16 || memchr(q, ':', n) || memchr(q, '[', n) || memchr(q, '(', n))
            return p;
        q = skip_blanks(q + n);
    }
    return p;
}

/* "kernel:", "host kernel:" */
static char *tag(char *p)
{
    size_t n = word(p);
    char *q;

    if (strncmp(p, "kernel:", 7) == 0)
        return p + 7;
    if (n == 0 || n > 255 || memchr(p, '[', n) || p[n - 1] == ':')
        return p;
    q = skip_blanks(p + n);
    return strncmp(q, "kernel:", 7) == 0 ? q + 7 : p;
}

/* "node1: [  12.3]": the name of a host before a bracket with a time. */
static char *gathered(char *p)
{
    size_t n = word(p);
    char *q = skip_blanks(p + n);

    if (n < 2 || n > 255 || p[n - 1] != ':' || memchr(p, '[', n) || *q != '[' || bracket(q) == q)
        return p;
    return q;
}

static char *repeated(char *p, struct fr_klog_prefix *x)
{
    static const char HEAD[] = "message repeated ", TAIL[] = " times: [";
    char *q = p + sizeof HEAD - 1, *end;

    if (strncmp(p, HEAD, sizeof HEAD - 1) != 0)
        return p;
    x->count = (uint32_t)strtoul(q, &end, 10);
    if (end == q || strncmp(end, TAIL, sizeof TAIL - 1) != 0)
        return p;
    q = end + sizeof TAIL - 1;
    end = strrchr(q, ']');
    if (end && *skip_blanks(end + 1) == '\0')
        *end = '\0';
    return q;
}

char *fr_klog_strip(char *p, struct fr_klog_prefix *x)
{
    bool dated = false, tagged = false;
    char *from;

    *x = (struct fr_klog_prefix){0};
    if (memcmp(p, "\xef\xbb\xbf", strnlen(p, 3)) == 0 && strnlen(p, 3) == 3)
        p += 3;
    do {
        char *q;

        p = from = skip_blanks(p);
        q = decoded(kmsg(level(p, x), x), x);
        tagged |= q != p; /* the facility says whose it is */
        p = skip_blanks(bracket(q));
        p = gathered(p);
        q = date(p);
        dated |= q != p;
        p = skip_blanks(q);
        q = tag(p);
        tagged |= q != p;
        p = repeated(skip_blanks(q), x);
    } while (p != from);
    x->untagged = dated && !tagged && !x->foreign;
    return p;
}

/* --- patterns --- */

size_t fr_klog_pci_at(const char *p)
{
    size_t n = strspn(p, "0123456789abcdefABCDEF");

    if (n < 4 || n > 8)
        return 0;
    for (int i = 0; i < 2; i++, n += 3)
        if (p[n] != ':' || !isxdigit((unsigned char)p[n + 1]) || !isxdigit((unsigned char)p[n + 2]))
            return 0;
    if (isxdigit((unsigned char)p[n]) || p[n] == ':')
        return 0;
    return p[n] == '.' && p[n + 1] >= '0' && p[n + 1] <= '7' && !isalnum((unsigned char)p[n + 2])
               ? n + 2
               : n;
}

void fr_klog_pci(const char *text, char ret[16])
{
    ret[0] = '\0';
    for (const char *p = text; *p; p++) {
        size_t n, domain;

        if (p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '_'))
            continue;
        n = fr_klog_pci_at(p);
        if (n == 0)
            continue;
        domain = strcspn(p, ":");
        p += domain - 4;
        n -= domain - 4;
        for (size_t i = 0; i < n; i++)
            ret[i] = (char)tolower((unsigned char)p[i]);
        memcpy(ret + n, n == 10 ? ".0" : "", n == 10 ? 3 : 1);
        return;
    }
}

/* The bytes of "driver dddd:bb:dd.f[ netdev]: " at p, 0: there is none. */
static size_t device(const char *p)
{
    size_t n = word(p), m;

    if (n == 0 || n > 32 || p[n] != ' ')
        return 0;
    m = fr_klog_pci_at(p + n + 1);
    if (m == 0)
        return 0;
    n += 1 + m;
    if (p[n] == ' ') {
        m = strcspn(p + n + 1, " :\t\n");
        n += 1 + m;
    }
    return p[n] == ':' ? n + 1 + strspn(p + n + 1, " ") : 0;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool fr_klog_like(const char *s, const char *pattern)
{
    const char *star = NULL, *back = NULL;

    if (*pattern == '@') {
        s += device(s);
        pattern++;
    } else if (*pattern == '%') {
        pattern++;
        for (int i = 0; i < 64 && s[i] && strncmp(s + i, ": ", 2) != 0; i++)
            if (i > 0 && fr_klog_like(s + i, pattern))
                return true;
        return false;
    }
    while (*pattern) {
        if (*pattern == '*') {
            star = ++pattern;
            back = s;
        } else if (*s && (*pattern == '?' || lower(*s) == lower(*pattern))) {
            s++;
            pattern++;
        } else if (star && *back) {
            s = ++back;
            pattern = star;
        } else {
            return false;
        }
    }
    return true;
}
