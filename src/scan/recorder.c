/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.c - see recorder.h */
#include "scan/recorder.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "scan/pickle.h"

#define NAMES_MAX    256u
#define STATUS_MAX   65536u
#define CONFIG_MAX   65536u /* groups a rank is in */
#define ENTRIES_MAX  (1u << 22)
#define NAMELESS_MAX 256u /* groups without a list of members */
#define SIZES_MAX    4096 /* dimensions that are multiplied up, an entry */

void fr_recorder_init(struct fr_recorder *rec)
{
    *rec = (struct fr_recorder){0};
}

void fr_recorder_fini(struct fr_recorder *rec)
{
    for (size_t i = 0; i < rec->ndumps; i++) {
        free(rec->dumps[i].entries);
        free(rec->dumps[i].status);
    }
    for (size_t i = 0; i < rec->ngroups; i++)
        free(rec->groups[i].members);
    free(rec->dumps);
    free(rec->groups);
    free(rec->table);
    free(rec->names);
    free(rec->faults);
    free(rec->missing);
    *rec = (struct fr_recorder){0};
}

static void note_rank(struct fr_recorder *rec, int32_t rank)
{
    if (rank >= rec->nranks)
        rec->nranks = rank + 1;
}

/* The index of an operation's name, made when it is new; the last place is for all beyond the
 * limit. */
static uint32_t intern(struct fr_recorder *rec, const char *name)
{
    for (size_t i = 0; i < rec->nnames; i++)
        if (strcmp(rec->names[i], name) == 0)
            return (uint32_t)i;
    if (rec->nnames == NAMES_MAX)
        return NAMES_MAX - 1;
    if (rec->nnames == rec->names_cap) {
        rec->names_cap = rec->names_cap ? 2 * rec->names_cap : 16;
        rec->names = fr_xreallocarray(rec->names, rec->names_cap, sizeof rec->names[0]);
    }
    snprintf(rec->names[rec->nnames], sizeof rec->names[0], "%s", name);
    return (uint32_t)rec->nnames++;
}

/* --- groups --- */

static int by_rank(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* "[0, 1, 2]" or a list of numbers. Returns the count, 0 when nothing is told, -EINVAL. */
static int read_ranks(const struct fr_value *v, int32_t **ret)
{
    int32_t *r = NULL;
    size_t n = 0, cap = 0;
    const char *p, *end;

    *ret = NULL;
    if (v && v->kind == FR_VALUE_LIST) {
        if (v->n > FR_RECORDER_RANKS)
            return -EINVAL;
        r = fr_xcalloc(v->n ? v->n : 1, sizeof *r);
        for (; n < v->n; n++) {
            int64_t rank = fr_value_int(v->u.items[n], -1);

            if (rank < 0 || rank >= FR_RECORDER_RANKS) {
                free(r);
                return -EINVAL;
            }
            r[n] = (int32_t)rank;
        }
    } else if (v && v->kind == FR_VALUE_STR) {
        for (p = v->u.s, end = p + v->n; p < end;) {
            int64_t rank = 0;

            if (!isdigit((unsigned char)*p)) {
                p++;
                continue;
            }
            for (; p < end && isdigit((unsigned char)*p) && rank < FR_RECORDER_RANKS; p++)
                rank = rank * 10 + (*p - '0');
            if (rank >= FR_RECORDER_RANKS || n == FR_RECORDER_RANKS) {
                free(r);
                return -EINVAL;
            }
            if (n == cap) {
                cap = cap ? 2 * cap : 16;
                r = fr_xreallocarray(r, cap, sizeof *r);
            }
            r[n++] = (int32_t)rank;
        }
    }
    if (n == 0) {
        free(r);
        return 0;
    }
    qsort(r, n, sizeof *r, by_rank);
    *ret = r;
    return (int)n;
}

static uint64_t hash_bytes(uint64_t h, const void *p, size_t n) /* FNV-1a */
{
    for (const uint8_t *b = p; n > 0; n--, b++)
        h = (h ^ *b) * 0x100000001b3ull;
    return h;
}

static bool is_group(const struct fr_rec_group *g, uint64_t hash, const char *desc,
                     const int32_t *members, uint32_t n, uint32_t instance)
{
    return g->hash == hash && g->instance == instance && g->nmembers == n &&
           strncmp(g->desc, desc, sizeof g->desc - 1) == 0 &&
           (n == 0 || memcmp(g->members, members, n * sizeof *members) == 0);
}

/* Where the search for a hash begins. */
static size_t first_slot(const struct fr_recorder *rec, uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32) & (rec->table_cap - 1);
}

static void widen_table(struct fr_recorder *rec)
{
    if (2 * (rec->ngroups + 1) <= rec->table_cap)
        return;
    free(rec->table);
    rec->table_cap = rec->table_cap ? 2 * rec->table_cap : 64;
    rec->table = fr_xcalloc(rec->table_cap, sizeof *rec->table);
    for (size_t i = 0; i < rec->ngroups; i++) {
        size_t at = first_slot(rec, rec->groups[i].hash);

        while (rec->table[at])
            at = (at + 1) & (rec->table_cap - 1);
        rec->table[at] = (uint32_t)i + 1;
    }
}

/* The group with this description, members and instance, made when it is new. Takes members. */
static uint32_t find_group(struct fr_recorder *rec, const char *desc, const char *name,
                           int32_t *members, uint32_t n, uint32_t instance)
{
    uint64_t h = hash_bytes(0xcbf29ce484222325ull, desc, strlen(desc));
    struct fr_rec_group *g;
    size_t at;

    h = hash_bytes(h, members, n * sizeof *members);
    h = hash_bytes(h, &instance, sizeof instance);
    if (n == 0) /* members not told: nothing but the name tells such groups apart */
        h = hash_bytes(h, name, strlen(name));
    widen_table(rec);
    for (at = first_slot(rec, h); rec->table[at]; at = (at + 1) & (rec->table_cap - 1))
        if (is_group(&rec->groups[rec->table[at] - 1], h, desc, members, n, instance)) {
            free(members);
            return rec->table[at] - 1;
        }
    if (rec->ngroups == rec->groups_cap) {
        rec->groups_cap = rec->groups_cap ? 2 * rec->groups_cap : 16;
        rec->groups = fr_xreallocarray(rec->groups, rec->groups_cap, sizeof *rec->groups);
    }
    g = &rec->groups[rec->ngroups];
    *g = (struct fr_rec_group){
        .members = members, .nmembers = n, .instance = instance, .pg_id = -1, .hash = h};
    snprintf(g->desc, sizeof g->desc, "%s", desc);
    snprintf(g->name, sizeof g->name, "%s", name);
    if (n)
        note_rank(rec, members[n - 1]);
    else
        rec->nameless++;
    rec->table[at] = (uint32_t)++rec->ngroups;
    return (uint32_t)rec->ngroups - 1;
}

/* A dump's own table: name of a group -> index in the recorder. */
struct named {
    char name[32], desc[64];
    int32_t *members;
    uint32_t n, group;
};

/* Numbers by value, hashes by text: the order in which groups were made, alike on all ranks. */
static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    size_t nx = strlen(x->name), ny = strlen(y->name);

    return nx != ny ? (nx > ny) - (nx < ny) : strcmp(x->name, y->name);
}

static bool same_group(const struct named *a, const struct named *b)
{
    return a->n == b->n && strcmp(a->desc, b->desc) == 0 &&
           (a->n == 0 || memcmp(a->members, b->members, a->n * sizeof *a->members) == 0);
}

static int read_config(struct fr_recorder *rec, const struct fr_value *config, struct named **ret,
                       size_t *ret_n, struct fr_err *err)
{
    struct named *v;
    size_t n = 0;

    if (config && config->kind != FR_VALUE_DICT && config->kind != FR_VALUE_NONE)
        return fr_fail(err, -EINVAL, "pg_config is no dict");
    if (config && config->n > CONFIG_MAX)
        return fr_fail(err, -EINVAL, "pg_config names %u groups", config->n);
    v = fr_xcalloc(config ? config->n + 1 : 1, sizeof *v);
    for (uint32_t i = 0; config && i < config->n; i++) {
        const struct fr_value *info = config->u.items[2 * i + 1];
        int count;

        fr_value_text(config->u.items[2 * i], v[n].name, sizeof v[n].name);
        fr_value_text(fr_value_get(info, "desc"), v[n].desc, sizeof v[n].desc);
        count = read_ranks(fr_value_get(info, "ranks"), &v[n].members);
        if (count < 0) {
            for (size_t k = 0; k < n; k++)
                free(v[k].members);
            free(v);
            return fr_fail(err, -EINVAL, "the ranks of a group are no list of ranks");
        }
        v[n++].n = (uint32_t)count;
    }
    qsort(v, n, sizeof *v, by_name);
    for (size_t i = 0; i < n; i++) {
        uint32_t instance = 0;

        for (size_t k = 0; k < i && v[i].n; k++)
            if (v[k].n && v[k].members && same_group(&v[k], &v[i]))
                instance++;
        v[i].group = instance;
    }
    for (size_t i = 0; i < n; i++) /* not before: same_group needs the lists */
        v[i].group = find_group(rec, v[i].desc, v[i].name, v[i].members, v[i].n, v[i].group);
    *ret = v;
    *ret_n = n;
    return 0;
}

/* --- entries --- */

static int64_t elements(const struct fr_value *sizes)
{
    int64_t sum = 0, budget = SIZES_MAX;

    if (!sizes || sizes->kind != FR_VALUE_LIST)
        return -1;
    for (uint32_t i = 0; i < sizes->n; i++) {
        const struct fr_value *dims = sizes->u.items[i];
        int64_t product = 1;

        for (uint32_t k = 0; dims->kind == FR_VALUE_LIST && k < dims->n; k++) {
            int64_t d = fr_value_int(dims->u.items[k], -1);

            if (--budget < 0 || d < 0 || __builtin_mul_overflow(product, d, &product))
                return -1;
        }
        if (--budget < 0 || __builtin_add_overflow(sum, product, &sum))
            return -1;
    }
    return sum;
}

/* "nccl:send 0->3", "nccl:recv 3<-0": the peer's place in the group. */
static void read_p2p(const struct fr_recorder *rec, const char *name, struct fr_rec_entry *e)
{
    const char *arrow = strstr(name, "->"), *back = strstr(name, "<-");
    const struct fr_rec_group *g = &rec->groups[e->group];
    long place;

    e->p2p = strncmp(name, "send", 4) == 0 ? 's' : strncmp(name, "recv", 4) == 0 ? 'r' : 'c';
    e->peer = -1;
    if (e->p2p == 'c' || (!arrow && !back))
        return;
    place = strtol((arrow ? arrow : back) + 2, NULL, 10);
    if (place >= 0 && g->members && place < (long)g->nmembers)
        e->peer = g->members[place];
}

static uint32_t entry_group(struct fr_recorder *rec, const struct named *named, size_t n,
                            const struct fr_value *pair)
{
    char name[sizeof named->name], desc[sizeof named->desc];
    size_t lo = 0, hi = n;
    struct named key = {0};

    fr_value_text(pair && pair->kind == FR_VALUE_STR ? pair : fr_value_at(pair, 0), name,
                  sizeof name);
    fr_value_text(fr_value_at(pair, 1), desc, sizeof desc);
    snprintf(key.name, sizeof key.name, "%s", name);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = by_name(&named[mid], &key);

        if (c == 0)
            return named[mid].group;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (rec->nameless >= NAMELESS_MAX) /* nobody makes so many by accident: one for all others */
        name[0] = desc[0] = '\0';
    return find_group(rec, desc, name, NULL, 0, 0);
}

static void read_entry(struct fr_recorder *rec, const struct named *named, size_t n,
                       const struct fr_value *v, struct fr_rec_entry *e)
{
    char name[64],
        *op = strchr(fr_value_text(fr_value_get(v, "profiling_name"), name, sizeof name), ':');
    const struct fr_value *state = fr_value_get(v, "state");
    const struct fr_value *dtypes = fr_value_get(v, "input_dtypes");
    char dtype[48];
    int64_t pg_id = fr_value_int(fr_value_get(v, "pg_id"), -1);
    struct fr_rec_group *g;

    op = op ? op + 1 : name;
    e->group = entry_group(rec, named, n, fr_value_get(v, "process_group"));
    g = &rec->groups[e->group];
    if (pg_id >= 0 && g->pg_id >= 0 && g->pg_id != pg_id)
        g->pg_id_differs = true;
    if (pg_id >= 0)
        g->pg_id = pg_id;
    e->numel = elements(fr_value_get(v, "input_sizes"));
    e->dtype = -1;
    if (fr_value_at(dtypes, 0))
        e->dtype = intern(rec, fr_value_text(fr_value_at(dtypes, 0), dtype, sizeof dtype));
    e->state = FR_REC_SCHEDULED;
    if (fr_value_is(state, "completed") ||
        fr_value_int(fr_value_get(v, "time_discovered_completed_ns"), 0) > 0)
        e->state = FR_REC_COMPLETED;
    else if (fr_value_is(state, "started") ||
             fr_value_int(fr_value_get(v, "time_discovered_started_ns"), 0) > 0)
        e->state = FR_REC_STARTED;
    e->peer = -1;
    /* is_p2p came with 2.1; before, the name has to tell */
    if (fr_value_true(fr_value_get(v, "is_p2p")) ||
        (!fr_value_get(v, "is_p2p") && (!strncmp(op, "send ", 5) || !strncmp(op, "recv ", 5)))) {
        read_p2p(rec, op, e);
        e->seq = fr_value_int(fr_value_get(v, "p2p_seq_id"),
                              fr_value_int(fr_value_get(v, "seq_id"), -1));
    } else {
        e->seq = fr_value_int(fr_value_get(v, "collective_seq_id"),
                              fr_value_int(fr_value_get(v, "seq_id"), -1));
    }
    e->op = intern(rec, op);
}

static void read_status(const struct fr_value *v, struct fr_rec_dump *d)
{
    if (!v || v->kind != FR_VALUE_DICT || v->n > STATUS_MAX)
        return;
    d->status = fr_xcalloc(v->n ? v->n : 1, sizeof *d->status);
    for (uint32_t i = 0; i < v->n; i++) {
        const struct fr_value *s = v->u.items[2 * i + 1];

        d->status[d->nstatus++] = (struct fr_rec_status){
            .pg_id = fr_value_int(v->u.items[2 * i], -1),
            .enqueued = fr_value_int(fr_value_get(s, "last_enqueued_collective"), -1),
            .completed = fr_value_int(fr_value_get(s, "last_completed_collective"), -1)};
    }
}

static int take_root(struct fr_recorder *rec, int32_t rank, const struct fr_value *root,
                     struct fr_err *err)
{
    /* The first versions dumped the bare list of entries. */
    const struct fr_value *entries =
        root->kind == FR_VALUE_LIST ? root : fr_value_get(root, "entries");
    struct fr_rec_dump *d;
    struct named *named = NULL;
    size_t nnamed = 0;
    int rc;

    if (root->kind != FR_VALUE_DICT && root->kind != FR_VALUE_LIST)
        return fr_fail(err, -EINVAL, "no Flight Recorder dump: neither a dict nor a list");
    if (root->kind == FR_VALUE_DICT && !fr_value_get(root, "pg_config") &&
        !fr_value_get(root, "entries") && !fr_value_get(root, "version"))
        return fr_fail(err, -EINVAL, "no Flight Recorder dump: it has no entries");
    if (entries && entries->kind == FR_VALUE_NONE)
        entries = NULL;
    if (entries && entries->kind != FR_VALUE_LIST)
        return fr_fail(err, -EINVAL, "entries is no list");
    if (entries && entries->n > ENTRIES_MAX)
        return fr_fail(err, -EFBIG, "%u entries", entries->n);
    rc = read_config(rec, fr_value_get(root, "pg_config"), &named, &nnamed, err);
    if (rc < 0)
        return rc;
    if (rec->ndumps == rec->dumps_cap) {
        rec->dumps_cap = rec->dumps_cap ? 2 * rec->dumps_cap : 16;
        rec->dumps = fr_xreallocarray(rec->dumps, rec->dumps_cap, sizeof *rec->dumps);
    }
    d = &rec->dumps[rec->ndumps++];
    *d = (struct fr_rec_dump){.rank = rank, .active_only = true};
    fr_value_text(fr_value_get(root, "version"), d->version, sizeof d->version);
    read_status(fr_value_get(root, "pg_status"), d);
    d->entries = fr_xcalloc(entries && entries->n ? entries->n : 1, sizeof *d->entries);
    for (uint32_t i = 0; entries && i < entries->n; i++) {
        struct fr_rec_entry *e = &d->entries[d->nentries];

        if (entries->u.items[i]->kind != FR_VALUE_DICT)
            continue;
        read_entry(rec, named, nnamed, entries->u.items[i], e);
        if (e->seq < 0)
            continue;
        if (e->state == FR_REC_COMPLETED)
            d->active_only = false;
        d->nentries++;
    }
    note_rank(rec, rank);
    free(named);
    return 0;
}

int fr_recorder_add(struct fr_recorder *rec, int32_t rank, const uint8_t *p, size_t n,
                    struct fr_err *err)
{
    FR_CLEANUP(fr_json_freep) struct fr_json *doc = NULL;
    struct fr_values a = {0};
    struct fr_value *root = NULL;
    size_t at = 0;
    int rc;

    if (rank < 0 || (uint32_t)rank >= FR_RECORDER_RANKS)
        return fr_fail(err, -EINVAL, "rank %d is out of range", (int)rank);
    for (size_t i = 0; i < rec->ndumps; i++)
        if (rec->dumps[i].rank == rank)
            return fr_fail(err, -EEXIST, "rank %d has a dump already", (int)rank);
    while (at < n && isspace(p[at]))
        at++;
    if (at < n && (p[at] == '{' || p[at] == '[')) {
        rc = fr_json_parse((const char *)p, n, &doc, err);
        if (rc == 0)
            rc = fr_value_from_json(&a, doc, &root, err);
    } else {
        rc = fr_pickle_parse(p, n, &a, &root, err);
    }
    if (rc == 0)
        rc = take_root(rec, rank, root, err);
    fr_values_fini(&a);
    return rc;
}

void fr_recorder_fault(struct fr_recorder *rec, int32_t rank, const char *why)
{
    if (rec->nfaults == rec->faults_cap) {
        rec->faults_cap = rec->faults_cap ? 2 * rec->faults_cap : 16;
        rec->faults = fr_xreallocarray(rec->faults, rec->faults_cap, sizeof *rec->faults);
    }
    rec->faults[rec->nfaults] = (struct fr_rec_fault){.rank = rank};
    snprintf(rec->faults[rec->nfaults].text, sizeof rec->faults[0].text, "%s", why);
    rec->nfaults++;
    if (rank >= 0)
        note_rank(rec, rank);
}

static int by_dump_rank(const void *a, const void *b)
{
    return by_rank(&((const struct fr_rec_dump *)a)->rank, &((const struct fr_rec_dump *)b)->rank);
}

const struct fr_rec_dump *fr_recorder_dump(const struct fr_recorder *rec, int32_t rank)
{
    struct fr_rec_dump key = {.rank = rank};

    return rec->ndumps ? bsearch(&key, rec->dumps, rec->ndumps, sizeof key, by_dump_rank) : NULL;
}

/* Groups whose members no dump tells: those that have entries in them. */
static void guess_members(struct fr_recorder *rec)
{
    for (size_t i = 0; i < rec->ndumps; i++)
        for (uint32_t k = 0; k < rec->dumps[i].nentries; k++) {
            struct fr_rec_group *g = &rec->groups[rec->dumps[i].entries[k].group];
            int32_t rank = rec->dumps[i].rank;

            if (!g->guessed || (g->nmembers && g->members[g->nmembers - 1] == rank))
                continue;
            if (!g->members)
                g->members = fr_xcalloc(rec->ndumps, sizeof *g->members);
            g->members[g->nmembers++] = rank;
        }
}

void fr_recorder_finish(struct fr_recorder *rec)
{
    FR_CLEANUP(fr_freep) uint8_t *named = fr_xcalloc((size_t)rec->nranks + 1, 1);

    if (rec->ndumps)
        qsort(rec->dumps, rec->ndumps, sizeof *rec->dumps, by_dump_rank);
    for (size_t i = 0; i < rec->ngroups; i++)
        rec->groups[i].guessed = rec->groups[i].members == NULL;
    guess_members(rec);
    for (size_t i = 0; i < rec->ngroups; i++)
        for (uint32_t k = 0; k < rec->groups[i].nmembers; k++)
            named[rec->groups[i].members[k]] = 1;
    for (size_t i = 0; i < rec->nfaults; i++)
        if (rec->faults[i].rank >= 0)
            named[rec->faults[i].rank] = 1;
    free(rec->missing);
    rec->nmissing = 0;
    rec->missing = fr_xcalloc((size_t)rec->nranks + 1, sizeof *rec->missing);
    for (int32_t r = 0; r < rec->nranks; r++)
        if (named[r] && !fr_recorder_dump(rec, r))
            rec->missing[rec->nmissing++] = r;
}
