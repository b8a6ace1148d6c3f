/* SPDX-License-Identifier: Apache-2.0 */
/* job_rules.c - see job_rules.h */
#define _GNU_SOURCE /* memmem */
#include "scan/job_rules.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define WAYS_MAX     256  /* plain patterns of one row */
#define TOKENS_MAX   24   /* of a plain pattern */
#define TEXT_MAX     400  /* bytes of a plain pattern */
#define SPAN_MAX     4096 /* what {} stands for at most */
#define TRIES_MAX    256  /* places where a pattern is tried in a line, and steps back within it */
#define CANDIDATES   256  /* patterns tried for a line */
#define STRETCH_MAX  64
#define PATTERNS_MAX 16384u
#define NODES_MAX    (1u << 18)

static const char *const ROLES[] = {"cause", "origin", "pair", "victim", "weak", "note", "ignore"};

enum token_kind {
    TOKEN_TEXT,
    TOKEN_ANY,
    TOKEN_NUMBER,
    TOKEN_WORD,
    TOKEN_RANK,
    TOKEN_HOST,
    TOKEN_PEER
};

struct token {
    enum token_kind kind;
    const char *s; /* TEXT */
    size_t n;
};

struct pattern { /* a plain one */
    char *text;  /* what its tokens point into */
    struct token *tokens;
    uint32_t ntokens, row;
    bool begins;   /* only at the begin of the message */
    uint32_t next; /* of the same anchor text; index + 1 */
};

struct fr_job_rules {
    struct fr_job_rule *rows;
    size_t nrows;
    struct fr_job_within within[STRETCH_MAX];
    size_t nwithin;
    struct pattern *patterns;
    size_t npatterns, patterns_cap;
    /* the automaton */
    uint8_t class_of[256];
    uint32_t nclasses;
    uint32_t *step; /* [node * nclasses + class] -> node * nclasses, with HAS_OUT */
    uint32_t *out;  /* [node]: first pattern + 1 */
    uint32_t *more; /* [node]: next node on the way of suffixes that has an out, 0: none */
};

#define HAS_OUT (1u << 31)

/* --- one row --- */

struct ways { /* the plain texts of a pattern under way */
    char (*v)[TEXT_MAX];
    size_t n;
};

static bool add_char(struct ways *w, size_t from, char c)
{
    for (size_t i = from; i < w->n; i++) {
        size_t len = strlen(w->v[i]);

        if (len + 2 > TEXT_MAX)
            return false;
        w->v[i][len] = c;
        w->v[i][len + 1] = '\0';
    }
    return true;
}

static bool expand(struct ways *w, const char *p, size_t n);

/* The end of what opens at p[0] == '{', or n. */
static size_t closing(const char *p, size_t n)
{
    size_t depth = 0;

    for (size_t i = 0; i < n; i++) {
        depth += p[i] == '{';
        if (p[i] == '}' && --depth == 0)
            return i;
    }
    return n;
}

/* {or a|b|}: each way so far goes on in as many ways. */
static bool expand_or(struct ways *w, const char *p, size_t n)
{
    struct ways old = *w, all = {.v = fr_xcalloc(WAYS_MAX, TEXT_MAX)};
    bool ok = true;

    for (size_t from = 0, at = 0, depth = 0; at <= n && ok; at++) {
        if (at < n && (p[at] == '{' || p[at] == '}'))
            depth += p[at] == '{' ? 1 : (size_t)-1;
        if (at < n && (p[at] != '|' || depth))
            continue;
        {
            struct ways one = {.v = fr_xcalloc(WAYS_MAX, TEXT_MAX), .n = old.n};

            memcpy(one.v, old.v, old.n * TEXT_MAX);
            ok = expand(&one, p + from, at - from) && all.n + one.n <= WAYS_MAX;
            if (ok) {
                memcpy(all.v + all.n, one.v, one.n * TEXT_MAX);
                all.n += one.n;
            }
            free(one.v);
        }
        from = at + 1;
    }
    free(old.v);
    *w = all;
    return ok;
}

static bool expand(struct ways *w, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t end;

        if (p[i] != '{') {
            if (!add_char(w, 0, p[i]))
                return false;
            continue;
        }
        end = i + closing(p + i, n - i);
        if (end == n)
            return false;
        if (end - i >= 4 && memcmp(p + i, "{or ", 4) == 0) {
            if (!expand_or(w, p + i + 4, end - i - 4))
                return false;
        } else {
            for (size_t k = i; k <= end; k++)
                if (!add_char(w, 0, p[k]))
                    return false;
        }
        i = end;
    }
    return true;
}

static bool token_kind(const char *p, size_t n, enum token_kind *ret)
{
    static const struct {
        const char *name;
        enum token_kind kind;
    } KINDS[] = {{"", TOKEN_ANY},      {"n", TOKEN_NUMBER},  {"word", TOKEN_WORD},
                 {"rank", TOKEN_RANK}, {"host", TOKEN_HOST}, {"peer", TOKEN_PEER}};

    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (strlen(KINDS[i].name) == n && memcmp(KINDS[i].name, p, n) == 0) {
            *ret = KINDS[i].kind;
            return true;
        }
    return false;
}

/* Cut a plain pattern into tokens. */
static bool cut(struct pattern *pt)
{
    struct token t[TOKENS_MAX];
    const char *p = pt->text + pt->begins;

    while (*p) {
        if (pt->ntokens == TOKENS_MAX)
            return false;
        if (*p == '{') {
            const char *end = strchr(p, '}');

            if (!end || !token_kind(p + 1, (size_t)(end - p - 1), &t[pt->ntokens].kind))
                return false;
            p = end + 1;
        } else {
            t[pt->ntokens] = (struct token){TOKEN_TEXT, p, strcspn(p, "{")};
            p += t[pt->ntokens].n;
        }
        pt->ntokens++;
    }
    /* One that may fit anywhere begins with a fixed text, so that it is found by it. */
    if (pt->ntokens == 0 || (!pt->begins && t[0].kind != TOKEN_TEXT))
        return false;
    pt->tokens = fr_xcalloc(pt->ntokens, sizeof *pt->tokens);
    memcpy(pt->tokens, t, pt->ntokens * sizeof *t);
    return true;
}

static const struct token *anchor(const struct pattern *pt)
{
    const struct token *best = NULL;

    for (uint32_t i = 0; i < pt->ntokens; i++)
        if (pt->tokens[i].kind == TOKEN_TEXT && (!best || pt->tokens[i].n > best->n))
            best = &pt->tokens[i];
    return best && best->n >= 3 ? best : NULL;
}

/* All ways of a row's pattern. NULL, or what is wrong with it. */
static const char *add_patterns(struct fr_job_rules *r, const char *p, size_t n)
{
    struct ways w = {.v = fr_xcalloc(WAYS_MAX, TEXT_MAX), .n = 1};
    const char *wrong = expand(&w, p, n) ? NULL : "the pattern has too many ways, or a { without }";

    if (!wrong && r->npatterns + w.n > PATTERNS_MAX)
        wrong = "too many patterns";
    for (size_t i = 0; i < w.n && !wrong; i++) {
        struct pattern *pt;

        if (r->npatterns == r->patterns_cap) {
            r->patterns_cap = r->patterns_cap ? 2 * r->patterns_cap : 1024;
            r->patterns = fr_xreallocarray(r->patterns, r->patterns_cap, sizeof *r->patterns);
        }
        pt = &r->patterns[r->npatterns++];
        *pt = (struct pattern){
            .text = fr_xstrdup(w.v[i]), .row = (uint32_t)r->nrows, .begins = w.v[i][0] == '^'};
        if (!cut(pt))
            wrong = "the pattern must begin with a fixed text (or ^), and {} {n} {word} {rank} "
                    "{host} {peer} {or ..} are what braces may hold";
        else if (!anchor(pt))
            wrong = "the pattern needs a fixed text of three letters";
    }
    free(w.v);
    return wrong;
}

/* --- the table --- */

/* The next word of the line at *p; empty at its end. */
static void word(const char **p, const char *end, char *ret, size_t n)
{
    size_t len = 0;

    while (*p < end && (**p == ' ' || **p == '\t'))
        ++*p;
    while (*p < end && **p != ' ' && **p != '\t') {
        if (len + 1 < n)
            ret[len++] = **p;
        ++*p;
    }
    ret[len] = '\0';
}

static bool role_of(const char *text, enum fr_job_role *ret)
{
    for (size_t i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++)
        if (strcmp(ROLES[i], text) == 0) {
            *ret = (enum fr_job_role)i;
            return true;
        }
    return false;
}

static const char *read_verdict(const char **p, const char *end, struct fr_job_verdict *v)
{
    char role[16];

    word(p, end, role, sizeof role);
    if (!role_of(role, &v->role))
        return "no such role (cause, origin, pair, victim, weak, note, ignore)";
    word(p, end, v->family, sizeof v->family);
    return NULL;
}

static const char *read_within(struct fr_job_rules *r, const char *p, const char *end)
{
    struct fr_job_within *w = &r->within[r->nwithin];
    const char *wrong;

    if (r->nwithin == STRETCH_MAX)
        return "too many of them";
    word(&p, end, w->stretch, sizeof w->stretch);
    word(&p, end, w->signature, sizeof w->signature);
    wrong = read_verdict(&p, end, &w->is);
    if (wrong)
        return wrong;
    /* family stays that of the line */
    memcpy(w->is.blame, w->is.family, sizeof w->is.blame);
    w->is.family[0] = '\0';
    word(&p, end, w->is.signature, sizeof w->is.signature);
    word(&p, end, w->is.action, sizeof w->is.action);
    if (!w->is.action[0])
        return "a word is missing: within NAME SIGNATURE role blame signature action";
    r->nwithin++;
    return NULL;
}

static const char *read_row(struct fr_job_rules *r, const char *p, const char *end)
{
    struct fr_job_rule *row;
    const char *wrong = NULL;
    char first[32];

    word(&p, end, first, sizeof first);
    if (strcmp(first, "within") == 0)
        return read_within(r, p, end);
    if (r->nrows == FR_JOB_ROWS_MAX)
        return "too many rows";
    row = &r->rows[r->nrows];
    *row = (struct fr_job_rule){0};
    if (strcmp(first, "open") == 0 || strcmp(first, "close") == 0 || strcmp(first, "learn") == 0) {
        row->is.role = first[0] == 'o'   ? FR_JOB_OPEN
                       : first[0] == 'c' ? FR_JOB_CLOSE
                                         : FR_JOB_LEARN;
        word(&p, end, row->id, sizeof row->id);
    } else {
        memcpy(row->id, first, sizeof row->id);
        wrong = read_verdict(&p, end, &row->is);
        word(&p, end, row->is.blame, sizeof row->is.blame);
        word(&p, end, row->is.signature, sizeof row->is.signature);
        word(&p, end, row->is.action, sizeof row->is.action);
    }
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (!wrong && p == end)
        wrong = "a word is missing: id role family blame signature action pattern";
    if (!wrong)
        wrong = add_patterns(r, p, (size_t)(end - p));
    if (!wrong)
        r->nrows++;
    return wrong;
}

static int read_table(struct fr_job_rules *r, const char *text, size_t n, const char *name,
                      struct fr_err *err)
{
    const char *end = text + n;

    for (unsigned line = 1; text < end; line++) {
        const char *lf = memchr(text, '\n', (size_t)(end - text)), *stop = lf ? lf : end;
        const char *p = text, *wrong;

        while (stop > p && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
            stop--;
        while (p < stop && (*p == ' ' || *p == '\t'))
            p++;
        wrong = p < stop && *p != '#' ? read_row(r, p, stop) : NULL;
        if (wrong)
            return fr_fail(err, -EINVAL, "%s:%u: %s", name, line, wrong);
        text = lf ? lf + 1 : end;
    }
    return 0;
}

/* --- the automaton --- */

static void make_classes(struct fr_job_rules *r)
{
    r->nclasses = 1; /* 0: bytes of no anchor */
    for (size_t i = 0; i < r->npatterns; i++) {
        const struct token *t = anchor(&r->patterns[i]);

        for (size_t k = 0; k < t->n; k++)
            if (!r->class_of[(uint8_t)t->s[k]])
                r->class_of[(uint8_t)t->s[k]] = (uint8_t)r->nclasses++;
    }
}

static size_t make_tree(struct fr_job_rules *r, size_t cap)
{
    size_t nodes = 1;

    r->step = fr_xcalloc(cap * r->nclasses, sizeof *r->step);
    r->out = fr_xcalloc(cap, sizeof *r->out);
    r->more = fr_xcalloc(cap, sizeof *r->more);
    for (size_t i = r->npatterns; i-- > 0;) { /* backwards: the chains then rise */
        const struct token *t = anchor(&r->patterns[i]);
        size_t at = 0;

        for (size_t k = 0; k < t->n; k++) {
            uint32_t *next = &r->step[at * r->nclasses + r->class_of[(uint8_t)t->s[k]]];

            if (!*next)
                *next = (uint32_t)nodes++;
            at = *next;
        }
        r->patterns[i].next = r->out[at];
        r->out[at] = (uint32_t)i + 1;
    }
    return nodes;
}

/* Breadth first: a missing step is the step of the longest proper suffix. Then steps become places
 * in the table, with a mark on nodes where something ends. */
static void make_steps(struct fr_job_rules *r, size_t nodes)
{
    uint32_t *queue = fr_xcalloc(nodes, sizeof *queue), *suffix = fr_xcalloc(nodes, sizeof *suffix);
    uint32_t nc = r->nclasses;
    size_t head = 0, tail = 1;

    while (head < tail) {
        uint32_t at = queue[head++];

        if (at)
            r->more[at] = r->out[suffix[at]] ? suffix[at] : r->more[suffix[at]];
        for (uint32_t c = 0; c < nc; c++) {
            uint32_t *next = &r->step[at * nc + c], other = at ? r->step[suffix[at] * nc + c] : 0;

            if (*next) {
                suffix[*next] = other;
                queue[tail++] = *next;
            } else {
                *next = other;
            }
        }
    }
    for (size_t i = 0; i < nodes * nc; i++) {
        uint32_t to = r->step[i];

        r->step[i] = to * nc | (r->out[to] || r->more[to] ? HAS_OUT : 0);
    }
    free(queue);
    free(suffix);
}

int fr_job_rules_new(const char *own, size_t own_n, const char *own_name, struct fr_job_rules **ret,
                     struct fr_err *err)
{
    struct fr_job_rules *r = fr_xalloc(sizeof *r);
    size_t cap = 1;
    int rc = 0;

    r->rows = fr_xcalloc(FR_JOB_ROWS_MAX, sizeof *r->rows);
    if (own_n > FR_JOB_RULES_MAX)
        rc = fr_fail(err, -EFBIG, "%s: a rules file has at most %u bytes", own_name,
                     FR_JOB_RULES_MAX);
    if (rc == 0 && own)
        rc = read_table(r, own, own_n, own_name, err);
    if (rc == 0)
        rc = read_table(r, FR_JOB_RULES_TEXT, strlen(FR_JOB_RULES_TEXT), "job_log.rules", err);
    for (size_t i = 0; i < r->npatterns && rc == 0; i++)
        cap += anchor(&r->patterns[i])->n;
    if (rc == 0 && cap > NODES_MAX)
        rc = fr_fail(err, -EFBIG, "%s: the patterns are too long together", own_name);
    if (rc < 0) {
        fr_job_rules_free(r);
        return rc;
    }
    make_classes(r);
    make_steps(r, make_tree(r, cap));
    *ret = r;
    return 0;
}

void fr_job_rules_free(struct fr_job_rules *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->npatterns; i++) {
        free(r->patterns[i].text);
        free(r->patterns[i].tokens);
    }
    free(r->patterns);
    free(r->rows);
    free(r->step);
    free(r->out);
    free(r->more);
    free(r);
}

size_t fr_job_rules_count(const struct fr_job_rules *r)
{
    return r->nrows;
}

const struct fr_job_within *fr_job_rules_within(const struct fr_job_rules *r, const char *stretch,
                                                const char *signature)
{
    for (size_t i = 0; i < r->nwithin; i++)
        if (strcmp(r->within[i].stretch, stretch) == 0 &&
            strcmp(r->within[i].signature, signature) == 0)
            return &r->within[i];
    return NULL;
}

/* --- does a plain pattern fit --- */

struct fit {
    const struct pattern *pt;
    const char *end;
    struct fr_job_match *m;
    unsigned steps;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == ':' || c == '-';
}

static bool is_host(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '-';
}

/* The longest run that a token of this kind takes. */
static size_t longest(enum token_kind kind, const char *p, const char *end)
{
    size_t n = 0, left = (size_t)(end - p);

    if (left > SPAN_MAX)
        left = SPAN_MAX;
    if (kind == TOKEN_NUMBER && left && *p == '-')
        n = 1;
    while (n < left)
        if (kind == TOKEN_NUMBER || kind == TOKEN_RANK ? !isdigit((unsigned char)p[n])
            : kind == TOKEN_WORD                       ? !is_word(p[n])
            : kind == TOKEN_HOST                       ? !is_host(p[n])
                                 : p[n] == ' ' && !(n && p[n - 1] == ',')) /* "1, 2" is a peer */
            break;
        else
            n++;
    return n;
}

static void keep(struct fr_job_match *m, enum token_kind kind, const char *p, size_t n)
{
    if (kind == TOKEN_RANK) {
        m->rank = 0;
        for (size_t i = 0; i < n && m->rank < INT32_MAX; i++)
            m->rank = m->rank * 10 + (p[i] - '0');
    } else if (kind == TOKEN_HOST) {
        m->host = p;
        m->host_n = n;
    } else if (kind == TOKEN_PEER) {
        while (n && strchr(":;,.", p[n - 1]))
            n--;
        m->peer = p;
        m->peer_n = n;
    }
}

static bool fits(struct fit *f, uint32_t i, const char *p);

/* {}: the shortest that lets the rest fit; the next token, when fixed, is looked for. */
static bool fits_any(struct fit *f, uint32_t i, const char *p)
{
    const struct token *next = i + 1 < f->pt->ntokens ? &f->pt->tokens[i + 1] : NULL;
    const char *stop = (size_t)(f->end - p) > SPAN_MAX ? p + SPAN_MAX : f->end;

    if (!next)
        return true;
    for (; p <= stop && f->steps < TRIES_MAX; p++) {
        if (next->kind == TOKEN_TEXT) {
            p = memmem(p, (size_t)(stop - p), next->s, next->n);
            if (!p)
                return false;
        }
        f->steps++;
        if (fits(f, i + 1, p))
            return true;
    }
    return false;
}

static bool fits(struct fit *f, uint32_t i, const char *p)
{
    const struct token *t;
    size_t n, least;

    if (i == f->pt->ntokens)
        return true;
    t = &f->pt->tokens[i];
    if (t->kind == TOKEN_TEXT)
        return (size_t)(f->end - p) >= t->n && memcmp(p, t->s, t->n) == 0 &&
               fits(f, i + 1, p + t->n);
    if (t->kind == TOKEN_ANY)
        return fits_any(f, i, p);
    n = longest(t->kind, p, f->end);
    least = t->kind == TOKEN_NUMBER && n && *p == '-' ? 2 : 1;
    for (; n >= least && f->steps < TRIES_MAX; n--) {
        f->steps++;
        if (fits(f, i + 1, p + n)) {
            keep(f->m, t->kind, p, n);
            return true;
        }
        if (t->kind == TOKEN_NUMBER || t->kind == TOKEN_RANK)
            break; /* half a number is none */
    }
    return false;
}

static bool pattern_fits(const struct pattern *pt, const char *text, size_t n, size_t message,
                         struct fr_job_match *m)
{
    struct fit f = {.pt = pt, .end = text + n, .m = m};
    const char *p = text;

    *m = (struct fr_job_match){.rank = -1};
    if (pt->begins)
        return fits(&f, 0, text + message);
    while (f.steps < TRIES_MAX &&
           (p = memmem(p, (size_t)(f.end - p), pt->tokens[0].s, pt->tokens[0].n))) {
        f.steps++;
        if (fits(&f, 0, p))
            return true;
        p++;
    }
    return false;
}

/* --- a line --- */

static int by_index(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int fr_job_rules_match(const struct fr_job_rules *r, const char *text, size_t n,
                       struct fr_job_prefix *pre, bool *ret_read, struct fr_job_match *ret)
{
    uint32_t candidates[CANDIDATES], at = 0;
    /* cleared when the first text is found: most lines have none */
    uint64_t seen[PATTERNS_MAX / 64];
    size_t have = 0;
    bool clear = false;

    for (size_t i = 0; i < n; i++) {
        at = r->step[at + r->class_of[(uint8_t)text[i]]];
        if (!(at & HAS_OUT))
            continue;
        at &= ~HAS_OUT;
        if (!clear)
            memset(seen, 0, (r->npatterns + 63) / 64 * sizeof seen[0]);
        clear = true;
        for (uint32_t node = at / r->nclasses; node; node = r->more[node])
            for (uint32_t p = r->out[node]; p; p = r->patterns[p - 1].next) {
                uint64_t bit = 1ull << (p - 1) % 64, *set = &seen[(p - 1) / 64];

                if (!(*set & bit) && have < CANDIDATES)
                    candidates[have++] = p - 1;
                *set |= bit;
            }
    }
    *ret_read = have > 0;
    if (have == 0)
        return 0;
    fr_job_prefix_read(text, n, pre);
    if (have > 1)
        qsort(candidates, have, sizeof candidates[0], by_index);
    for (size_t i = 0; i < have; i++) {
        const struct pattern *pt = &r->patterns[candidates[i]];

        if (pattern_fits(pt, text, n, pre->message, ret)) {
            ret->rule = &r->rows[pt->row];
            return 1;
        }
    }
    return 0;
}
