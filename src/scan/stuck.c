/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck.c - see stuck.h
 *
 * A rank waits, in each group, in its oldest incomplete operation: those behind it wait for it by
 * the order of the stream. From there an edge leads to each member that has not entered the
 * operation, that has not started it, or that is still inside an older one which the waiting rank
 * has left. Who is waited for and waits for nobody is the end of a chain: a culprit. A rank that is
 * inside an operation which others have left is one in any case, provided that everybody entered it
 * and that those who left are at least half: its own GPU or stream is what does not move.
 */
#include "scan/stuck.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define NO_SEQ INT64_MAX
/* A rank without a dump is suspect by its silence alone, less so when others explain the wait. */
#define CONFIDENCE             0.9
#define CONFIDENCE_MISSING     0.7
#define CONFIDENCE_MISSING_TOO 0.4

static const char *const RULES[FR_STUCK_RULES] = {
    [FR_STUCK_NONE] = "none",
    [FR_STUCK_NO_DUMP] = "no_dump",
    [FR_STUCK_MISMATCH] = "mismatch",
    [FR_STUCK_NEVER_ENTERED] = "never_entered",
    [FR_STUCK_OLDEST_INCOMPLETE] = "oldest_incomplete",
    [FR_STUCK_NEVER_STARTED] = "never_started",
};
static const char *const STATES[] = {
    [FR_STUCK_IDLE] = "idle",
    [FR_STUCK_NAMED] = "named",
    [FR_STUCK_ALL_ENTERED] = "all_entered",
    [FR_STUCK_CIRCULAR] = "circular_wait",
};

const char *fr_stuck_rule_name(enum fr_stuck_rule rule)
{
    return RULES[rule];
}

const char *fr_stuck_state_name(enum fr_stuck_state state)
{
    return STATES[state];
}

void fr_stuck_fini(struct fr_stuck *s)
{
    free(s->culprits);
    free(s->groups);
    *s = (struct fr_stuck){0};
}

/* --- the picture: how far each member of each group is --- */

struct member {
    int32_t rank;
    bool known;                    /* it left a dump */
    bool told;                     /* its dump says how far it is in this group */
    int64_t enqueued;              /* highest sequence entered, -1: none */
    int64_t oldest;                /* oldest incomplete one, NO_SEQ: none */
    uint32_t order;                /* of that one among the rank's entries */
    const struct fr_rec_entry *at; /* that one */
};

struct place { /* a group */
    uint32_t n;
    struct member *m; /* in the order of the group's members */
    bool stuck;       /* a member has an incomplete operation */
};

struct edge {
    int32_t from, to;
    uint32_t group;
    int64_t seq;
    enum fr_stuck_rule rule;
    bool eldest; /* seq is the eldest incomplete operation of `from`, over all groups */
};

struct picture {
    const struct fr_recorder *rec;
    struct place *places;
    struct edge *edges; /* sorted by from */
    size_t nedges, cap;
    size_t *first;    /* [rank]: index of its first edge; [nranks]: nedges */
    uint32_t *eldest; /* [rank]: order of its eldest incomplete collective, UINT32_MAX: none */
    uint8_t *behind;  /* [rank]: it is inside what others have left */
    uint8_t *named;   /* [rank] */
};

static struct member *member_of(const struct picture *pc, uint32_t group, int32_t rank)
{
    const struct place *p = &pc->places[group];
    size_t lo = 0, hi = p->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (p->m[mid].rank == rank)
            return &p->m[mid];
        if (p->m[mid].rank < rank)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* pg_status tells of groups that have no entry any more, where the number of the group is the same
 * in all dumps. */
static void use_status(const struct picture *pc, uint32_t group, struct member *m)
{
    const struct fr_rec_group *g = &pc->rec->groups[group];
    const struct fr_rec_dump *d = fr_recorder_dump(pc->rec, m->rank);

    for (uint32_t i = 0; d && g->pg_id >= 0 && !g->pg_id_differs && i < d->nstatus; i++)
        if (d->status[i].pg_id == g->pg_id) {
            m->enqueued = d->status[i].enqueued;
            m->told = true;
        }
}

static void read_entries(struct picture *pc, const struct fr_rec_dump *d)
{
    for (uint32_t i = 0; i < d->nentries; i++) {
        const struct fr_rec_entry *e = &d->entries[i];
        struct member *m = e->p2p ? NULL : member_of(pc, e->group, d->rank);

        if (!m)
            continue;
        m->told = true;
        if (e->seq > m->enqueued)
            m->enqueued = e->seq;
        if (e->state == FR_REC_COMPLETED)
            continue;
        pc->places[e->group].stuck = true;
        if (e->seq < m->oldest) {
            m->oldest = e->seq;
            m->order = i;
            m->at = e;
        }
        if (i < pc->eldest[d->rank])
            pc->eldest[d->rank] = i;
    }
}

static void build(struct picture *pc)
{
    const struct fr_recorder *rec = pc->rec;
    size_t n = (size_t)rec->nranks + 1;

    pc->places = fr_xcalloc(rec->ngroups, sizeof *pc->places);
    pc->eldest = fr_xcalloc(n, sizeof *pc->eldest);
    pc->behind = fr_xcalloc(n, 1);
    pc->named = fr_xcalloc(n, 1);
    memset(pc->eldest, 0xff, n * sizeof *pc->eldest);
    for (size_t g = 0; g < rec->ngroups; g++) {
        struct place *p = &pc->places[g];

        p->n = rec->groups[g].nmembers;
        p->m = fr_xcalloc(p->n, sizeof *p->m);
        for (uint32_t i = 0; i < p->n; i++)
            p->m[i] = (struct member){.rank = rec->groups[g].members[i],
                                      .known = fr_recorder_dump(rec, rec->groups[g].members[i]),
                                      .enqueued = -1,
                                      .oldest = NO_SEQ};
    }
    for (size_t i = 0; i < rec->ndumps; i++)
        read_entries(pc, &rec->dumps[i]);
    for (uint32_t g = 0; g < rec->ngroups; g++)
        for (uint32_t i = 0; pc->places[g].stuck && i < pc->places[g].n; i++)
            if (!pc->places[g].m[i].told)
                use_status(pc, g, &pc->places[g].m[i]);
}

static void picture_fini(struct picture *pc)
{
    for (size_t g = 0; pc->places && g < pc->rec->ngroups; g++)
        free(pc->places[g].m);
    free(pc->places);
    free(pc->edges);
    free(pc->first);
    free(pc->eldest);
    free(pc->behind);
    free(pc->named);
}

/* --- answers --- */

static const char *op_name(const struct picture *pc, const struct fr_rec_entry *e)
{
    return e ? pc->rec->names[e->op] : "an operation";
}

static struct fr_stuck_culprit *name_rank(struct picture *pc, struct fr_stuck *s, int32_t rank,
                                          enum fr_stuck_rule rule, uint32_t group, int64_t seq)
{
    struct fr_stuck_culprit *c;

    if (s->nculprits == s->culprits_cap) {
        s->culprits_cap = s->culprits_cap ? 2 * s->culprits_cap : 8;
        s->culprits = fr_xreallocarray(s->culprits, s->culprits_cap, sizeof *s->culprits);
    }
    c = &s->culprits[s->nculprits++];
    *c = (struct fr_stuck_culprit){
        .rank = rank, .rule = rule, .group = group, .sequence = seq, .confidence = CONFIDENCE};
    pc->named[rank] = 1;
    s->state = FR_STUCK_NAMED;
    return c;
}

/* How many members are inside this sequence and cannot leave; the first of them. */
static uint32_t waiting_in(const struct place *p, int64_t seq, const struct member **ret_first)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n; i++)
        if (p->m[i].oldest <= seq && p->m[i].enqueued >= seq) {
            if (n == 0 && p->m[i].oldest == seq && ret_first)
                *ret_first = &p->m[i];
            n += p->m[i].oldest == seq;
        }
    return n;
}

/* --- mismatch --- */

/* Every member gives the same number of elements. */
static bool sizes_must_agree(const char *op)
{
    static const char *const OPS[] = {"all_reduce", "broadcast", "reduce", "_all_gather_base",
                                      "_reduce_scatter_base"};

    for (size_t i = 0; i < sizeof OPS / sizeof OPS[0]; i++)
        if (strcmp(op, OPS[i]) == 0)
            return true;
    return false;
}

static bool differs(const struct picture *pc, const struct fr_rec_entry *a,
                    const struct fr_rec_entry *b)
{
    if (a->op != b->op)
        return true;
    if (!sizes_must_agree(pc->rec->names[a->op]))
        return false;
    return (a->numel >= 0 && b->numel >= 0 && a->numel != b->numel) ||
           (a->dtype >= 0 && b->dtype >= 0 && a->dtype != b->dtype);
}

/* A rank's first entry at a sequence of a group, NULL: none. Members of a coalesced operation share
 * the sequence; the first of them stands for it. */
static const struct fr_rec_entry *entry_at(const struct picture *pc, uint32_t group, int32_t rank,
                                           int64_t seq)
{
    const struct fr_rec_dump *d = fr_recorder_dump(pc->rec, rank);

    for (uint32_t i = 0; d && i < d->nentries; i++)
        if (d->entries[i].group == group && d->entries[i].seq == seq && !d->entries[i].p2p)
            return &d->entries[i];
    return NULL;
}

static void say_call(const struct picture *pc, const struct fr_rec_entry *e, char *text, size_t n)
{
    if (e->numel >= 0)
        snprintf(text, n, "%s (%lld elements%s%s)", pc->rec->names[e->op], (long long)e->numel,
                 e->dtype >= 0 ? " of " : "", e->dtype >= 0 ? pc->rec->names[e->dtype] : "");
    else
        snprintf(text, n, "%s", pc->rec->names[e->op]);
}

/* The members at seq fall into those like the first and those unlike it; the fewer are the odd
 * ones. With more than two kinds, all but the largest are. */
static int name_odd(struct picture *pc, struct fr_stuck *s, uint32_t group, int64_t seq)
{
    struct place *p = &pc->places[group];
    const struct fr_rec_entry **e = fr_xcalloc(p->n, sizeof *e), *common = NULL;
    uint32_t most = 0, have = 0, odd = 0, other = 0;
    char mine[120], theirs[120];
    bool tie = false;

    for (uint32_t i = 0; i < p->n; i++) {
        e[i] = entry_at(pc, group, p->m[i].rank, seq);
        have += e[i] != NULL;
    }
    /* majority by counting each new kind once; kinds are few */
    for (uint32_t i = 0, kinds = 0; i < p->n && kinds < 16; i++) {
        uint32_t like = 0, before = 0;

        for (uint32_t k = 0; e[i] && k < p->n; k++)
            if (e[k] && !differs(pc, e[i], e[k])) {
                like++;
                before += k < i;
            }
        if (!e[i] || before)
            continue;
        kinds++;
        tie = like == most;
        if (like > most) {
            most = like;
            common = e[i];
            other = i;
        }
    }
    for (uint32_t i = 0; i < p->n && common && most < have; i++) {
        struct fr_stuck_culprit *c;

        if (!e[i] || (!tie && !differs(pc, e[i], common)))
            continue;
        odd++;
        if (pc->named[p->m[i].rank])
            continue;
        c = name_rank(pc, s, p->m[i].rank, FR_STUCK_MISMATCH, group, seq);
        say_call(pc, e[i], mine, sizeof mine);
        if (tie) {
            snprintf(c->evidence, sizeof c->evidence,
                     "at sequence %lld it is in %s and as many others are in something else: the "
                     "program's order differs between ranks",
                     (long long)seq, mine);
            continue;
        }
        say_call(pc, common, theirs, sizeof theirs);
        snprintf(c->evidence, sizeof c->evidence,
                 "at sequence %lld it is in %s, %u others (such as rank %d) in %s", (long long)seq,
                 mine, most, (int)p->m[other].rank, theirs);
    }
    free(e);
    return (int)odd;
}

/* The lowest sequence at which something is incomplete and calls differ. The members that are in
 * their group's sequence are compared with each other only where one is incomplete. */
static int rule_mismatch(struct picture *pc, struct fr_stuck *s)
{
    int found = 0;

    for (uint32_t g = 0; g < pc->rec->ngroups; g++) {
        struct place *p = &pc->places[g];
        int64_t done = -1;

        for (uint32_t i = 0; p->stuck && i < p->n; i++) {
            int64_t seq = p->m[i].oldest;
            bool differ = false;

            if (seq == NO_SEQ || seq == done)
                continue;
            for (uint32_t k = 0; k < p->n && !differ; k++) {
                /* who has no entry of its own there is asked for only when it is not the oldest */
                const struct fr_rec_entry *o = p->m[k].oldest == seq ? p->m[k].at
                                               : p->m[k].enqueued >= seq && p->m[k].enqueued >= 0
                                                   ? entry_at(pc, g, p->m[k].rank, seq)
                                                   : NULL;

                differ = o && differs(pc, p->m[i].at, o);
            }
            done = seq;
            if (differ) {
                found += name_odd(pc, s, g, seq);
                break;
            }
        }
    }
    return found;
}

/* --- edges --- */

static void add_edge(struct picture *pc, struct edge e)
{
    if (pc->nedges == pc->cap) {
        pc->cap = pc->cap ? 2 * pc->cap : 256;
        pc->edges = fr_xreallocarray(pc->edges, pc->cap, sizeof *pc->edges);
    }
    pc->edges[pc->nedges++] = e;
}

/* Some ranks leave a rooted operation long before others; that is no sign of anything. */
static bool is_rooted(const char *op)
{
    return strstr(op, "broadcast") || strcmp(op, "reduce") == 0 || strcmp(op, "_reduce_oop") == 0 ||
           strcmp(op, "gather") == 0 || strcmp(op, "scatter") == 0;
}

/* Why `m` keeps others waiting in seq, FR_STUCK_NONE: it does not. */
static enum fr_stuck_rule keeps(const struct picture *pc, const struct member *m, int64_t seq,
                                bool started)
{
    if (!m->known)
        return FR_STUCK_NONE;
    if (m->enqueued < seq)
        return FR_STUCK_NEVER_ENTERED;
    if (m->oldest < seq && m->at && !is_rooted(op_name(pc, m->at)))
        return FR_STUCK_OLDEST_INCOMPLETE;
    if (started && m->oldest == seq && m->at->state == FR_REC_SCHEDULED)
        return FR_STUCK_NEVER_STARTED;
    return FR_STUCK_NONE;
}

/* The edges of all ranks that wait in one sequence of one group are alike: the members that keep
 * them. To bound their number in a large group, those beyond KEEPERS_MAX are left out: they are
 * waited for by somebody all the same. */
#define KEEPERS_MAX 64

static void edges_of(struct picture *pc, uint32_t g, struct member *r)
{
    struct place *p = &pc->places[g];
    bool started = r->at->state == FR_REC_STARTED;
    uint32_t keepers = 0;

    for (uint32_t i = 0; i < p->n && keepers < KEEPERS_MAX; i++) {
        enum fr_stuck_rule why =
            &p->m[i] == r ? FR_STUCK_NONE : keeps(pc, &p->m[i], r->oldest, started);

        if (why == FR_STUCK_NONE)
            continue;
        keepers++;
        add_edge(pc, (struct edge){.from = r->rank,
                                   .to = p->m[i].rank,
                                   .group = g,
                                   .seq = r->oldest,
                                   .rule = why,
                                   .eldest = r->order == pc->eldest[r->rank]});
    }
}

/* A send that nobody receives, or a receive that nobody sends to: an edge to the other side. */
static void p2p_edges(struct picture *pc, const struct fr_rec_dump *d)
{
    for (uint32_t i = 0; i < d->nentries; i++) {
        const struct fr_rec_entry *e = &d->entries[i];
        const struct fr_rec_dump *o;
        bool met = false;

        if (e->peer < 0 || e->peer == d->rank || e->state == FR_REC_COMPLETED)
            continue;
        o = fr_recorder_dump(pc->rec, e->peer);
        for (uint32_t k = 0; o && k < o->nentries && !met; k++)
            met = o->entries[k].peer == d->rank && o->entries[k].group == e->group &&
                  o->entries[k].p2p != e->p2p && o->entries[k].state != FR_REC_COMPLETED;
        if (o && !met)
            add_edge(pc, (struct edge){.from = d->rank,
                                       .to = e->peer,
                                       .group = e->group,
                                       .seq = -1,
                                       .rule = FR_STUCK_NEVER_ENTERED});
        if (!met)
            break; /* the oldest that is not met is what it waits in */
    }
}

static int by_from(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                              : (x->group > y->group) - (x->group < y->group);
}

static void lay_edges(struct picture *pc)
{
    int32_t n = pc->rec->nranks;
    size_t at = 0;

    for (uint32_t g = 0; g < pc->rec->ngroups; g++)
        for (uint32_t i = 0; pc->places[g].stuck && i < pc->places[g].n; i++)
            if (pc->places[g].m[i].oldest != NO_SEQ)
                edges_of(pc, g, &pc->places[g].m[i]);
    for (size_t i = 0; i < pc->rec->ndumps; i++)
        p2p_edges(pc, &pc->rec->dumps[i]);
    if (pc->nedges)
        qsort(pc->edges, pc->nedges, sizeof *pc->edges, by_from);
    pc->first = fr_xcalloc((size_t)n + 1, sizeof *pc->first);
    for (int32_t r = 0; r <= n; r++) {
        while (at < pc->nedges && pc->edges[at].from < r)
            at++;
        pc->first[r] = at;
    }
}

/* --- inside what others have left --- */

static void rule_behind(struct picture *pc, struct fr_stuck *s)
{
    for (uint32_t g = 0; g < pc->rec->ngroups; g++) {
        struct place *p = &pc->places[g];

        for (uint32_t i = 0; p->stuck && i < p->n; i++) {
            struct member *m = &p->m[i];
            uint32_t left = 0, known = 0, entered = 0, with = 0;
            const struct member *first = NULL;
            struct fr_stuck_culprit *c;

            if (m->oldest == NO_SEQ || m->order != pc->eldest[m->rank] || pc->named[m->rank] ||
                is_rooted(op_name(pc, m->at)))
                continue;
            for (uint32_t k = 0; k < p->n; k++) {
                bool in = p->m[k].enqueued >= m->oldest;

                known += p->m[k].known;
                entered += in;
                left += in && p->m[k].oldest > m->oldest;
                if (in && p->m[k].oldest > m->oldest && !first)
                    first = &p->m[k];
                with += in && p->m[k].oldest <= m->oldest;
            }
            if (entered < known || left == 0 || left < with)
                continue;
            pc->behind[m->rank] = 1;
            c = name_rank(pc, s, m->rank, FR_STUCK_OLDEST_INCOMPLETE, g, m->oldest);
            snprintf(
                c->evidence, sizeof c->evidence,
                "it is still inside %s %lld, which all %u members entered and %u (such as rank "
                "%d) have left",
                op_name(pc, m->at), (long long)m->oldest, p->n, left, (int)first->rank);
        }
    }
}

/* --- the ends of the chains --- */

/* Mark all that can be reached from `rank`. */
static void reach(const struct picture *pc, int32_t rank, uint8_t *seen, int32_t *stack)
{
    size_t n = 0;

    memset(seen, 0, (size_t)pc->rec->nranks);
    seen[rank] = 1;
    stack[n++] = rank;
    while (n) {
        int32_t r = stack[--n];

        for (size_t i = pc->first[r]; i < pc->first[r + 1]; i++)
            if (!seen[pc->edges[i].to]) {
                seen[pc->edges[i].to] = 1;
                stack[n++] = pc->edges[i].to;
            }
    }
}

static bool has_edge(const struct picture *pc, int32_t rank, bool eldest_only)
{
    for (size_t i = pc->first[rank]; i < pc->first[rank + 1]; i++)
        if (!eldest_only || pc->edges[i].eldest)
            return true;
    return false;
}

/* Collectives speak before point-to-point, inner groups before outer ones. */
static bool speaks_before(const struct picture *pc, const struct edge *a, const struct edge *b)
{
    if ((a->seq < 0) != (b->seq < 0))
        return b->seq < 0;
    return pc->places[a->group].n < pc->places[b->group].n;
}

static const struct edge *accuser(const struct picture *pc, int32_t rank)
{
    const struct edge *best = NULL;

    for (size_t i = 0; i < pc->nedges; i++)
        if (pc->edges[i].to == rank && (!best || speaks_before(pc, &pc->edges[i], best)))
            best = &pc->edges[i];
    return best;
}

/* It is itself inside an operation that all have entered, with somebody who is held up elsewhere:
 * no end of a chain, the chain goes on through that operation. */
static bool is_held_up(const struct picture *pc, int32_t rank)
{
    const struct fr_rec_dump *d = fr_recorder_dump(pc->rec, rank);

    for (uint32_t i = 0; d && i < d->nentries; i++) {
        const struct fr_rec_entry *e = &d->entries[i];
        const struct place *p = &pc->places[e->group];

        if (e->p2p || e->state == FR_REC_COMPLETED)
            continue;
        for (uint32_t k = 0; k < p->n; k++)
            if (p->m[k].rank != rank &&
                (pc->named[p->m[k].rank] || !p->m[k].known || has_edge(pc, p->m[k].rank, false)))
                return true;
    }
    return false;
}

static void accuse(struct picture *pc, struct fr_stuck *s, int32_t rank)
{
    const struct edge *e = accuser(pc, rank);
    const struct fr_rec_dump *d = fr_recorder_dump(pc->rec, rank);
    const struct place *p = &pc->places[e->group];
    const struct member *m = member_of(pc, e->group, rank), *first = NULL;
    struct fr_stuck_culprit *c = name_rank(pc, s, rank, e->rule, e->group, e->seq);
    uint32_t n = waiting_in(p, e->seq, &first);

    if (e->seq < 0) {
        snprintf(c->evidence, sizeof c->evidence,
                 "rank %d waits in a point-to-point operation that it has not entered",
                 (int)e->from);
        return;
    }
    if (e->rule == FR_STUCK_NEVER_ENTERED)
        snprintf(c->evidence, sizeof c->evidence,
                 "%u of %u members wait in %s %lld, which it has not entered (last: %s%lld)%s", n,
                 p->n, op_name(pc, first ? first->at : NULL), (long long)e->seq,
                 m && m->enqueued >= 0 ? "" : "none known, ", (long long)(m ? m->enqueued : -1),
                 d && d->nentries == 0 ? "; its dump has no entry" : "");
    else if (e->rule == FR_STUCK_NEVER_STARTED)
        snprintf(c->evidence, sizeof c->evidence,
                 "%s %lld has started on the GPU of rank %d and not on its own", "operation",
                 (long long)e->seq, (int)e->from);
    else
        snprintf(c->evidence, sizeof c->evidence,
                 "it is still inside an operation before %lld, in which %u of %u members wait",
                 (long long)e->seq, n, p->n);
}

static void rule_ends(struct picture *pc, struct fr_stuck *s)
{
    int32_t n = pc->rec->nranks;
    uint8_t *waited = fr_xcalloc((size_t)n + 1, 1), *seen = fr_xcalloc((size_t)n + 1, 1);
    int32_t *stack = fr_xcalloc((size_t)n + 1, sizeof *stack);
    uint32_t asked = 0;

    for (size_t i = 0; i < pc->nedges; i++)
        waited[pc->edges[i].to] = 1;
    /* first those that are outside of everything */
    for (int32_t r = 0; r < n; r++)
        if (waited[r] && !pc->named[r] && !has_edge(pc, r, false) && pc->eldest[r] == UINT32_MAX)
            accuse(pc, s, r);
    for (int32_t r = 0; r < n; r++)
        if (waited[r] && !pc->named[r] && !has_edge(pc, r, false) && !is_held_up(pc, r))
            accuse(pc, s, r);
    /* Circles: a rank whose later operations wait for those that wait for it is still the end of a
     * chain when its eldest operation waits for nobody. */
    for (int32_t r = 0; r < n && asked < 256; r++) {
        bool alone = true;

        if (!waited[r] || pc->named[r] || !has_edge(pc, r, false) || has_edge(pc, r, true))
            continue;
        asked++;
        reach(pc, r, seen, stack);
        for (int32_t o = 0; o < n && alone; o++) /* a chain that ends elsewhere explains it */
            alone = !(seen[o] && o != r && (pc->named[o] || !has_edge(pc, o, false)));
        if (alone && !is_held_up(pc, r))
            accuse(pc, s, r);
    }
    free(waited);
    free(seen);
    free(stack);
}

/* --- who left no dump --- */

/* A member whose dump is there keeps the others in this operation. */
static bool is_explained(const struct picture *pc, uint32_t g, int64_t seq)
{
    const struct place *p = &pc->places[g];

    for (uint32_t i = 0; i < p->n; i++)
        if (keeps(pc, &p->m[i], seq, false) != FR_STUCK_NONE)
            return true;
    return false;
}

static void name_missing(struct picture *pc, struct fr_stuck *s, uint32_t g, const struct member *r)
{
    const struct place *p = &pc->places[g];
    bool explained = is_explained(pc, g, r->oldest);

    for (uint32_t i = 0; i < p->n; i++) {
        struct fr_stuck_culprit *c;
        const char *why = NULL;

        if (p->m[i].known || pc->named[p->m[i].rank])
            continue;
        for (size_t k = 0; k < pc->rec->nfaults; k++)
            if (pc->rec->faults[k].rank == p->m[i].rank)
                why = pc->rec->faults[k].text;
        c = name_rank(pc, s, p->m[i].rank, FR_STUCK_NO_DUMP, g, r->oldest);
        c->confidence = explained ? CONFIDENCE_MISSING_TOO : CONFIDENCE_MISSING;
        snprintf(c->evidence, sizeof c->evidence,
                 "rank %d waits in %s %lld, %s; this member left %s%s", (int)r->rank,
                 op_name(pc, r->at), (long long)r->oldest,
                 explained ? "for others, too" : "in which every member with a dump is",
                 why ? "a dump that cannot be read: " : "no dump", why ? why : "");
    }
}

static void rule_no_dump(struct picture *pc, struct fr_stuck *s)
{
    if (pc->rec->nmissing == 0)
        return;
    for (uint32_t g = 0; g < pc->rec->ngroups; g++)
        for (uint32_t i = 0; pc->places[g].stuck && i < pc->places[g].n; i++) {
            struct member *m = &pc->places[g].m[i];

            if (m->oldest != NO_SEQ && m->order == pc->eldest[m->rank])
                name_missing(pc, s, g, m);
        }
    /* a rank that waits point to point for one without a dump, when nothing else was found */
    for (size_t i = 0; i < pc->rec->ndumps && s->nculprits == 0; i++)
        for (uint32_t k = 0; k < pc->rec->dumps[i].nentries; k++) {
            const struct fr_rec_entry *e = &pc->rec->dumps[i].entries[k];
            struct fr_stuck_culprit *c;

            if (e->peer < 0 || e->state == FR_REC_COMPLETED || pc->named[e->peer] ||
                fr_recorder_dump(pc->rec, e->peer))
                continue;
            c = name_rank(pc, s, e->peer, FR_STUCK_NO_DUMP, e->group, -1);
            c->confidence = CONFIDENCE_MISSING;
            snprintf(c->evidence, sizeof c->evidence,
                     "rank %d waits for it in a point-to-point operation, and it left no dump",
                     (int)pc->rec->dumps[i].rank);
        }
}

/* --- all together --- */

static int by_culprit(const void *a, const void *b)
{
    const struct fr_stuck_culprit *x = a, *y = b;

    if (x->confidence != y->confidence)
        return x->confidence > y->confidence ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void list_groups(const struct picture *pc, struct fr_stuck *s)
{
    s->groups = fr_xcalloc(pc->rec->ngroups, sizeof *s->groups);
    for (uint32_t g = 0; g < pc->rec->ngroups; g++) {
        const struct place *p = &pc->places[g];
        struct fr_stuck_group *sg = &s->groups[s->ngroups];

        if (!p->stuck)
            continue;
        *sg = (struct fr_stuck_group){.group = g, .sequence = NO_SEQ, .members = p->n};
        for (uint32_t i = 0; i < p->n; i++) {
            sg->waiting += p->m[i].oldest != NO_SEQ;
            if (p->m[i].oldest < sg->sequence) {
                sg->sequence = p->m[i].oldest;
                sg->op = p->m[i].at->op;
            }
        }
        s->ngroups++;
    }
}

void fr_stuck_judge(const struct fr_recorder *rec, struct fr_stuck *ret)
{
    struct picture pc = {.rec = rec};
    bool any = false;

    *ret = (struct fr_stuck){0};
    build(&pc);
    list_groups(&pc, ret);
    lay_edges(&pc);
    if (rule_mismatch(&pc, ret) == 0) {
        rule_behind(&pc, ret);
        rule_ends(&pc, ret);
        rule_no_dump(&pc, ret);
    }
    for (int32_t r = 0; r < rec->nranks; r++) {
        any |= pc.eldest[r] != UINT32_MAX;
        ret->victims += pc.eldest[r] != UINT32_MAX && !pc.named[r];
    }
    if (ret->nculprits)
        qsort(ret->culprits, ret->nculprits, sizeof *ret->culprits, by_culprit);
    else if (any || pc.nedges)
        ret->state = pc.nedges ? FR_STUCK_CIRCULAR : FR_STUCK_ALL_ENTERED;
    picture_fini(&pc);
}
