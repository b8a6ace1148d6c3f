/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras_parse.c - see ras_parse.h
 *
 * JSON: a machine over bytes keeps the place in the document as a stack of contexts; what is not
 * known is skipped, so that fields may be added, moved or left out. Text: line by line.
 */
#include "agent/ras_parse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define TOKEN_BYTES 128
#define LINE_BYTES  512

struct member { /* of the communicator that is being read */
    char host[FR_RAS_HOST_BYTES];
    uint32_t pid;
    int32_t rank;
    uint64_t ops[FR_RAS_OPS]; /* text: what it is behind by, in [0] */
};

struct missing {
    bool unresponsive, dead;
};

/* --- JSON --- */

enum context {
    IN_NOTHING = 0,
    IN_REPORT,
    IN_COMMS,
    IN_COMM,
    IN_RANKS,
    IN_RANK,
    IN_RANK_STATUS,
    IN_COUNTS,
    IN_MISSING_RANKS,
    IN_MISSING,
    IN_MISSING_STATUS,
    IN_RAS,
    IN_SKIPPED
};

/* What a member of that name opens there. */
static const struct {
    enum context in;
    const char *key; /* "": an element of an array */
    char opener;
    enum context opens;
} OPENS[] = {
    {IN_NOTHING, "", '{', IN_REPORT},
    {IN_REPORT, "communicators", '[', IN_COMMS},
    {IN_COMMS, "", '{', IN_COMM},
    {IN_COMM, "ranks", '[', IN_RANKS},
    {IN_RANKS, "", '{', IN_RANK},
    {IN_RANK, "status", '{', IN_RANK_STATUS},
    {IN_RANK, "collective_counts", '{', IN_COUNTS},
    {IN_COMM, "missing_ranks", '[', IN_MISSING_RANKS},
    {IN_MISSING_RANKS, "", '{', IN_MISSING},
    {IN_MISSING, "status", '{', IN_MISSING_STATUS},
    {IN_REPORT, "ras", '{', IN_RAS},
};

enum scan { BETWEEN = 0, STRING, ESCAPE, WORD };

/* --- text --- */

enum section { NO_SECTION = 0, SECTION_DEAD, SECTION_INCOMPLETE, SECTION_MISMATCH };

struct fr_ras_parser {
    bool json, over;
    struct fr_ras_report report;
    /* the communicator */
    struct member *members;
    uint32_t nmembers, cap;
    uint64_t comm, digest;
    uint32_t comm_size;
    bool settling; /* ranks come or go: counts differ for that reason */
    bool too_large;
    struct member now; /* the rank that is being read */
    struct missing missing;
    uint64_t op_hash[FR_RAS_OPS];
    uint32_t nops;
    /* JSON */
    struct {
        enum context in;
        bool array;
    } stack[FR_RAS_DEPTH];
    uint32_t depth;
    enum scan scan;
    bool is_key; /* the string that is read is a key or may be one */
    bool has_key, started;
    char key[TOKEN_BYTES], token[TOKEN_BYTES];
    size_t len;
    /* text */
    char line[LINE_BYTES];
    size_t nline;
    enum section section;
    bool counts;          /* below "different ... operation counts" */
    uint64_t group, most; /* the count of the group that is listed; the largest of all */
    uint32_t block;       /* members from here on belong to these counts */
};

struct fr_ras_parser *fr_ras_parser_new(bool json)
{
    struct fr_ras_parser *p = fr_xalloc(sizeof *p);

    p->json = json;
    return p;
}

void fr_ras_parser_free(struct fr_ras_parser *p)
{
    if (!p)
        return;
    free(p->members);
    free(p);
}

void fr_ras_parser_freep(struct fr_ras_parser **p)
{
    fr_ras_parser_free(*p);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 29);
}

static uint64_t hash_text(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ull;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
    return h;
}

/* Addresses and names only: it goes into evidence and logs. */
static void copy_host(char *to, const char *from, size_t n)
{
    size_t k = 0;

    for (; k < n && k + 1 < FR_RAS_HOST_BYTES && from[k] > 0x20 && from[k] < 0x7f &&
           from[k] != '"' && from[k] != '\\';
         k++)
        to[k] = from[k];
    to[k] = '\0';
}

static struct fr_ras_fact *add_fact(struct fr_ras_parser *p, enum fr_ras_what what,
                                    const struct member *m)
{
    struct fr_ras_fact *f;

    if (m->pid == 0 || m->pid > INT32_MAX)
        return NULL; /* RAS does not know the process: nobody is named */
    if (p->report.nfacts == FR_RAS_FACTS) {
        p->report.dropped++;
        return NULL;
    }
    f = &p->report.facts[p->report.nfacts++];
    *f = (struct fr_ras_fact){.what = what,
                              .pid = m->pid,
                              .comm = p->comm,
                              .comm_rank = m->rank,
                              .comm_size = p->comm_size};
    memcpy(f->host, m->host, sizeof f->host);
    return f;
}

static void add_member(struct fr_ras_parser *p, const struct member *m)
{
    if (p->nmembers == FR_RAS_RANKS) {
        p->too_large = true;
        return;
    }
    if (p->nmembers == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 64;
        p->members = fr_xreallocarray(p->members, p->cap, sizeof *p->members);
    }
    p->members[p->nmembers++] = *m;
}

static void begin_comm(struct fr_ras_parser *p)
{
    p->nmembers = p->nops = 0;
    p->comm = p->digest = 0;
    p->comm_size = 0;
    p->settling = p->too_large = false;
    p->report.comms++;
}

static void begin_member(struct fr_ras_parser *p)
{
    memset(&p->now, 0, sizeof p->now);
    memset(&p->missing, 0, sizeof p->missing);
    p->now.rank = -1;
}

/* All counts of the communicator are here: who has launched less than those that are furthest. */
static void judge_counts(struct fr_ras_parser *p)
{
    uint64_t most[FR_RAS_OPS] = {0};
    uint32_t behind = 0;
    size_t first = p->report.nfacts;

    if (p->settling)
        return;
    if (p->too_large) {
        p->report.dropped++;
        return;
    }
    for (uint32_t i = 0; i < p->nmembers; i++)
        for (int k = 0; k < FR_RAS_OPS; k++)
            if (p->members[i].ops[k] > most[k])
                most[k] = p->members[i].ops[k];
    for (uint32_t i = 0; i < p->nmembers; i++) {
        struct fr_ras_fact *f;
        uint64_t by = 0;

        for (int k = 0; k < FR_RAS_OPS; k++)
            by += most[k] - p->members[i].ops[k];
        if (by == 0)
            continue;
        if (++behind > FR_RAS_BEHIND) {
            p->report.nfacts = first;
            p->report.dropped++;
            return;
        }
        f = add_fact(p, FR_RAS_BEHIND_OTHERS, &p->members[i]);
        if (f) {
            f->behind = by;
            f->digest = p->digest;
        }
    }
}

/* --- JSON --- */

static uint64_t token_uint(const char *s)
{
    char *end;
    uint64_t v;

    errno = 0;
    if (*s == '-')
        return 0;
    v = strtoull(s, &end, 0); /* "0x..." is a hash */
    return errno || *end ? 0 : v;
}

/* A place for that operation's count, by its name. */
static int op_place(struct fr_ras_parser *p, const char *name)
{
    uint64_t h = hash_text(name);

    for (uint32_t i = 0; i < p->nops; i++)
        if (p->op_hash[i] == h)
            return (int)i;
    if (p->nops == FR_RAS_OPS)
        return -1;
    p->op_hash[p->nops] = h;
    return (int)p->nops++;
}

static void take_count(struct fr_ras_parser *p, uint64_t v)
{
    int k = op_place(p, p->key);

    if (k < 0)
        p->too_large = true;
    else
        p->now.ops[k] = v;
}

static bool is_key(const struct fr_ras_parser *p, const char *name)
{
    return strcmp(p->key, name) == 0;
}

static void take_identity(struct fr_ras_parser *p)
{
    if (is_key(p, "rank"))
        p->now.rank = (int32_t)(token_uint(p->token) & INT32_MAX);
    else if (is_key(p, "pid"))
        p->now.pid = (uint32_t)(token_uint(p->token) & UINT32_MAX);
    else if (is_key(p, "host"))
        copy_host(p->now.host, p->token, p->len);
}

/* A member of an object has this value. */
static void take_value(struct fr_ras_parser *p)
{
    bool yes = strcmp(p->token, "true") == 0;

    switch (p->depth ? p->stack[p->depth - 1].in : IN_NOTHING) {
    case IN_COMM:
        if (is_key(p, "hash"))
            p->comm = token_uint(p->token);
        else if (is_key(p, "size"))
            p->comm_size = (uint32_t)(token_uint(p->token) & UINT32_MAX);
        return;
    case IN_RANK:
    case IN_MISSING:
        take_identity(p);
        return;
    case IN_RANK_STATUS:
        if (yes &&
            (is_key(p, "finalize_called") || is_key(p, "destroy_flag") || is_key(p, "abort_flag")))
            p->settling = true;
        if (is_key(p, "init_state") && token_uint(p->token) != 0)
            p->settling = true;
        return;
    case IN_COUNTS:
        take_count(p, token_uint(p->token));
        return;
    case IN_MISSING_STATUS:
        p->missing.unresponsive |= yes && is_key(p, "unresponsive");
        p->missing.dead |= yes && is_key(p, "considered_dead");
        return;
    case IN_RAS:
        if (is_key(p, "timeouts_count"))
            p->report.timeouts = (uint32_t)(token_uint(p->token) & UINT32_MAX);
        return;
    default:
        return;
    }
}

static void close_rank(struct fr_ras_parser *p)
{
    uint64_t h = mix(1, (uint64_t)(uint32_t)p->now.rank);

    for (int k = 0; k < FR_RAS_OPS; k++)
        h = mix(h, p->now.ops[k]);
    p->digest += h; /* in whatever order they come */
    add_member(p, &p->now);
}

static int open_level(struct fr_ras_parser *p, char c, struct fr_err *err)
{
    enum context in = p->depth ? p->stack[p->depth - 1].in : IN_NOTHING, to = IN_SKIPPED;
    const char *key = p->has_key ? p->key : "";

    if (p->depth == FR_RAS_DEPTH)
        return fr_fail(err, -EBADMSG, "RAS: nested deeper than %d", FR_RAS_DEPTH);
    for (size_t i = 0; i < sizeof OPENS / sizeof OPENS[0]; i++)
        if (OPENS[i].in == in && OPENS[i].opener == c && strcmp(OPENS[i].key, key) == 0)
            to = OPENS[i].opens;
    p->stack[p->depth].in = to;
    p->stack[p->depth++].array = c == '[';
    p->has_key = false;
    p->started = true;
    if (to == IN_COMM)
        begin_comm(p);
    else if (to == IN_RANK || to == IN_MISSING)
        begin_member(p);
    return 0;
}

static int close_level(struct fr_ras_parser *p, char c, struct fr_err *err)
{
    if (p->depth == 0 || p->stack[p->depth - 1].array != (c == ']'))
        return fr_fail(err, -EBADMSG, "RAS: a bracket closes nothing");
    switch (p->stack[--p->depth].in) {
    case IN_RANK:
        close_rank(p);
        break;
    case IN_MISSING:
        if (p->missing.dead || p->missing.unresponsive)
            add_fact(p, p->missing.dead ? FR_RAS_DEAD : FR_RAS_UNRESPONSIVE, &p->now);
        break;
    case IN_COMM:
        judge_counts(p);
        break;
    default:
        break;
    }
    p->has_key = false;
    p->over = p->depth == 0;
    return 0;
}

static void end_token(struct fr_ras_parser *p)
{
    bool in_array = p->depth && p->stack[p->depth - 1].array;

    p->token[p->len] = '\0';
    p->scan = BETWEEN;
    if (p->depth == 0 || in_array)
        return;
    if (!p->has_key) {
        memcpy(p->key, p->token, p->len + 1);
        p->has_key = true;
    } else {
        take_value(p);
        p->has_key = false;
    }
}

static void put(struct fr_ras_parser *p, char c)
{
    if (p->len + 1 < TOKEN_BYTES)
        p->token[p->len++] = c;
}

/* Between tokens. */
static int step_between(struct fr_ras_parser *p, char c, struct fr_err *err)
{
    switch (c) {
    case ' ':
    case '\t':
    case '\r':
    case '\n':
    case ',':
    case ':':
        return 0;
    case '{':
    case '[':
        return open_level(p, c, err);
    case '}':
    case ']':
        return close_level(p, c, err);
    default:
        if (p->depth == 0)
            return fr_fail(err, -EBADMSG, "RAS: no JSON object");
        p->len = 0;
        p->scan = c == '"' ? STRING : WORD;
        if (c != '"')
            put(p, c);
        return 0;
    }
}

static int step_json(struct fr_ras_parser *p, char c, struct fr_err *err)
{
    if (p->over)
        return 0; /* whatever follows the object */
    switch (p->scan) {
    case STRING:
        if (c == '\\')
            p->scan = ESCAPE;
        else if (c == '"')
            end_token(p);
        else
            put(p, c);
        return 0;
    case ESCAPE: /* none of what is looked at has one: kept as it is, and equal to nothing */
        put(p, '\\');
        put(p, c);
        p->scan = STRING;
        return 0;
    case WORD:
        if (strchr(" \t\r\n,:{}[]\"", c) == NULL || c == '\0') {
            put(p, c);
            return 0;
        }
        end_token(p);
        return step_between(p, c, err);
    default:
        return step_between(p, c, err);
    }
}

/* --- text --- */

/* "... process <pid> on node <host> ...", in any case of the first letter. */
static bool find_process(const char *line, struct member *m)
{
    const char *at = strstr(line, "rocess "), *node;
    char *end;

    m->pid = 0;
    m->host[0] = '\0';
    if (!at)
        return false;
    m->pid = (uint32_t)(strtoul(at + 7, &end, 10) & UINT32_MAX);
    if (end == at + 7 || strncmp(end, " on node ", 9) != 0)
        return false;
    node = end + 9;
    copy_host(m->host, node, strcspn(node, " "));
    return true;
}

/* The counts of one operation are over: who is listed with less than the most is behind. */
static void end_counts(struct fr_ras_parser *p)
{
    if (!p->counts)
        return;
    for (uint32_t i = p->block; i < p->nmembers; i++) {
        struct member *m = &p->members[i];

        m->ops[0] = p->most - m->ops[0];
        for (uint32_t k = 0; k < p->block && m->ops[0]; k++)
            if (p->members[k].rank == m->rank) {
                p->members[k].ops[0] += m->ops[0];
                m->ops[0] = 0;
            }
    }
    p->block = p->nmembers;
    p->counts = false;
}

static void end_section(struct fr_ras_parser *p)
{
    uint32_t behind = 0;

    end_counts(p);
    for (uint32_t i = 0; i < p->nmembers; i++)
        behind += p->members[i].ops[0] > 0;
    if (p->section == SECTION_MISMATCH && !p->settling && (behind > FR_RAS_BEHIND || p->too_large))
        p->report.dropped++;
    else if (p->section == SECTION_MISMATCH && !p->settling)
        for (uint32_t i = 0; i < p->nmembers; i++) {
            struct fr_ras_fact *f =
                p->members[i].ops[0] ? add_fact(p, FR_RAS_BEHIND_OTHERS, &p->members[i]) : NULL;

            if (f) {
                f->behind = p->members[i].ops[0];
                f->digest = p->digest;
            }
        }
    p->section = NO_SECTION;
    p->nmembers = p->block = 0;
    p->comm = 0;
}

/* "#0-0 (27a079b828ff1a75) MISMATCH" */
static void begin_comm_section(struct fr_ras_parser *p, const char *line)
{
    const char *open = strchr(line, '('), *close = open ? strchr(open, ')') : NULL;
    char hash[24];

    if (!close || close - open > 20)
        return;
    begin_comm(p);
    snprintf(hash, sizeof hash, "%.*s", (int)(close - open - 1), open + 1);
    p->comm = strtoull(hash, NULL, 16);
    p->section = strcmp(close + 1, " MISMATCH") == 0 ? SECTION_MISMATCH : NO_SECTION;
}

/* One line below counts: the head of a group, a rank of it, or both in one. */
static void take_count_line(struct fr_ras_parser *p, const char *line)
{
    const char *launched = strstr(line, "launched up to operation ");
    bool none = strstr(line, "not launched any operations") != NULL;
    struct member m = {.rank = -1};
    char *end;
    uint64_t rank;

    if (launched || none) {
        p->group = launched ? strtoull(launched + 25, NULL, 10) : 0;
        if (p->group > p->most)
            p->most = p->group;
    }
    if (strncmp(line, "  Rank ", 7) != 0)
        return;
    rank = strtoull(line + 7, &end, 10);
    if (end == line + 7 || rank > INT32_MAX)
        return;
    m.rank = (int32_t)rank;
    m.ops[0] = p->group;
    find_process(line, &m);
    if (p->nmembers >= 4096) /* the list of a person's report */
        p->too_large = true;
    else
        add_member(p, &m);
}

static void take_mismatch_line(struct fr_ras_parser *p, const char *line)
{
    p->digest = mix(p->digest, hash_text(line));
    if (strstr(line, "have different status")) {
        end_counts(p);
        p->settling = true;
    } else if (strstr(line, "operation counts") && strstr(line, "different")) {
        end_counts(p);
        p->counts = true;
        p->group = p->most = 0;
        p->block = p->nmembers;
    } else if (p->counts) {
        take_count_line(p, line);
    }
}

static void take_line(struct fr_ras_parser *p, const char *line)
{
    struct member m = {.rank = -1};
    const char *at;

    if (line[0] == '#') {
        end_section(p);
        begin_comm_section(p, line);
    } else if (strcmp(line, "DEAD") == 0 || strcmp(line, "INCOMPLETE") == 0) {
        end_section(p);
        p->section = line[0] == 'D' ? SECTION_DEAD : SECTION_INCOMPLETE;
    } else if (line[0] && line[0] != ' ') {
        end_section(p);
    } else if ((p->section == SECTION_DEAD || p->section == SECTION_INCOMPLETE) &&
               strncmp(line, "  Process ", 10) == 0 && find_process(line, &m)) {
        p->comm_size = 0;
        add_fact(p, p->section == SECTION_DEAD ? FR_RAS_DEAD : FR_RAS_UNRESPONSIVE, &m);
    } else if (p->section == SECTION_MISMATCH) {
        take_mismatch_line(p, line);
    } else if ((at = strstr(line, "Encountered ")) != NULL) {
        p->report.timeouts = (uint32_t)(strtoul(at + 12, NULL, 10) & UINT32_MAX);
    }
}

static void step_text(struct fr_ras_parser *p, char c)
{
    if (c != '\n') {
        if (p->nline + 1 < LINE_BYTES) /* the rest of a longer one is not looked at */
            p->line[p->nline++] = c ? c : ' ';
        return;
    }
    if (p->nline && p->line[p->nline - 1] == '\r')
        p->nline--;
    p->line[p->nline] = '\0';
    p->nline = 0;
    p->started = true;
    take_line(p, p->line);
}

/* --- both --- */

int fr_ras_parser_feed(struct fr_ras_parser *p, const void *data, size_t n, struct fr_err *err)
{
    const char *s = data;

    for (size_t i = 0; i < n; i++) {
        int rc = 0;

        if (p->json)
            rc = step_json(p, s[i], err);
        else
            step_text(p, s[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int fr_ras_parser_end(struct fr_ras_parser *p, struct fr_ras_report *ret, struct fr_err *err)
{
    if (p->json && !p->over)
        return fr_fail(err, -EBADMSG, "RAS: the report ends in the middle");
    if (!p->json) {
        if (p->nline)
            step_text(p, '\n');
        if (!p->started)
            return fr_fail(err, -EBADMSG, "RAS: the report is empty");
        end_section(p);
    }
    *ret = p->report;
    return 0;
}

int fr_ras_parse(bool json, const void *data, size_t n, struct fr_ras_report *ret,
                 struct fr_err *err)
{
    FR_CLEANUP(fr_ras_parser_freep) struct fr_ras_parser *p = fr_ras_parser_new(json);
    int rc = fr_ras_parser_feed(p, data, n, err);

    return rc < 0 ? rc : fr_ras_parser_end(p, ret, err);
}
