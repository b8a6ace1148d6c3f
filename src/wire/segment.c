/* SPDX-License-Identifier: Apache-2.0 */
/* segment.c - see segment.h */
#define _GNU_SOURCE
#include "wire/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/ticks.h"

#define CHUNK_RECORDS 256
#define TRIES         4
#define MAX_RECORDS   (1u << 19)

/* The layouts that are read. A later one adds a row and a function that widens its structures. */
static const struct layout {
    uint32_t version;
    uint32_t header_bytes, step_bytes, comm_bytes, lane_bytes, record_bytes;
} layouts[] = {
    {1, FR_SEG_HEADER_BYTES, sizeof(struct fr_seg_step), sizeof(struct fr_seg_comm),
     sizeof(struct fr_seg_lane), sizeof(struct fr_record)},
};

struct fr_segment {
    int fd;
    uid_t owner;
    int moved; /* a lane changed since the communicators were read */
    struct fr_seg_header hdr;
    uint64_t pair_ticks, pair_ns; /* one moment in both clocks */
    int64_t ns_per_tick_q32;      /* times 2^32: a division for each record would cost more than the
                                     record */
    uint64_t next[FR_SEG_MAX_LANES];
    struct fr_seg_lane lane[FR_SEG_MAX_LANES];
    union {
        struct fr_record records[CHUNK_RECORDS];
        struct fr_seg_comm
            comms[CHUNK_RECORDS * sizeof(struct fr_record) / sizeof(struct fr_seg_comm)];
    } chunk;
    struct fr_seg_comm comm[]; /* hdr.comm_count */
};

/* This process's own rate of the counter: a segment's word is not taken for it. */
static uint64_t own_ticks0, own_ns0, own_hz;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void measure_rate(void)
{
    uint64_t t, ns;

    fr_ticks_pair(FR_TICKS_NATIVE, &own_ticks0, &own_ns0);
    do {
        fr_ticks_pair(FR_TICKS_NATIVE, &t, &ns);
    } while (ns - own_ns0 < 5000000u);
    own_hz = (uint64_t)((unsigned __int128)(t - own_ticks0) * 1000000000u / (ns - own_ns0));
}

/* The longer this process lives the better it knows. */
static uint64_t rate_now(const struct fr_segment *s)
{
    if (s->hdr.clock == FR_CLOCK_MONOTONIC)
        return 1000000000u;
    if (s->pair_ns - own_ns0 < 10000000u || s->pair_ticks <= own_ticks0)
        return own_hz;
    return (uint64_t)((unsigned __int128)(s->pair_ticks - own_ticks0) * 1000000000u /
                      (s->pair_ns - own_ns0));
}

uint64_t fr_segment_ns(const struct fr_segment *s, uint64_t ticks)
{
    __int128 ago = (__int128)s->pair_ticks - (__int128)ticks;
    __int128 ns = (__int128)s->pair_ns - (ago * s->ns_per_tick_q32 >> 32);

    if (ns < 0)
        return 0;
    return ns > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

/* All of it or an error: what ends early was truncated under us. */
static int read_at(const struct fr_segment *s, void *buf, size_t bytes, uint64_t off,
                   struct fr_err *err)
{
    ssize_t n;

    do {
        n = pread(s->fd, buf, bytes, (off_t)off);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fr_fail(err, -errno, "segment of pid %u: read: %s", s->hdr.pid, strerror(errno));
    if ((size_t)n != bytes)
        return fr_fail(err, -ESTALE,
                       "segment of pid %u: ends at byte %" PRIu64 " of %" PRIu64
                       " (it was truncated; its rank goes on unwatched)",
                       s->hdr.pid, off + (uint64_t)n, s->hdr.total_bytes);
    return 0;
}

/* Read `bytes` at `off` into buf until two looks agree and the version is even. `held` is what the
 * last successful look gave: if it is still there, one look does. Returns 0, 1: never
 * whole (buf holds nothing), or a negative error. */
static int read_whole(const struct fr_segment *s, void *buf, void *second, const void *held,
                      size_t bytes, size_t version_at, uint64_t off, struct fr_err *err)
{
    int rc = read_at(s, buf, bytes, off, err);

    if (rc < 0)
        return rc;
    for (int i = 0; i < TRIES; i++) {
        uint64_t version;

        memcpy(&version, (char *)buf + version_at, sizeof version);
        if (held && memcmp(buf, held, bytes) == 0 && !(version & 1))
            return 0;
        rc = read_at(s, second, bytes, off, err);
        if (rc < 0)
            return rc;
        if (!(version & 1) && memcmp(buf, second, bytes) == 0)
            return 0;
        memcpy(buf, second, bytes);
    }
    return 1;
}

static const struct layout *layout_of(uint32_t version)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].version == version)
            return &layouts[i];
    return NULL;
}

static int fits(uint64_t off, uint64_t count, uint64_t bytes, uint64_t total)
{
    return off % 64 == 0 && count <= total / bytes && off <= total && count * bytes <= total - off;
}

/* Returns 0 when all that the header says of the layout holds for a file of `size` bytes. */
static int check_layout(const struct fr_seg_header *h, uint64_t size, const char *name,
                        struct fr_err *err)
{
    const struct layout *l;

    if (h->magic != FR_RING_MAGIC)
        return fr_fail(err, -EPROTO, "%s: not a fullrank segment", name);
    l = layout_of(h->version);
    if (!l)
        return fr_fail(err, -EPROTO,
                       "%s: segment has layout %u, this agent reads %d to %d (use the agent of the"
                       " release that the job was started with, or a newer one)",
                       name, h->version, FR_RING_VERSION_OLDEST, FR_RING_VERSION);
    if (h->total_bytes > FR_SEG_MAX_BYTES)
        return fr_fail(err, -EPROTO, "%s: says it has %" PRIu64 " bytes, the limit is %u", name,
                       h->total_bytes, FR_SEG_MAX_BYTES);
    if (size < h->total_bytes)
        return fr_fail(err, -ESTALE, "%s: has %" PRIu64 " bytes and says %" PRIu64 " (truncated)",
                       name, size, h->total_bytes);
    if (h->header_bytes != l->header_bytes || h->step_bytes != l->step_bytes ||
        h->comm_bytes != l->comm_bytes || h->record_bytes != l->record_bytes ||
        h->step_count == 0 || h->step_off < l->header_bytes ||
        !fits(h->step_off, h->step_count, h->step_bytes, h->total_bytes))
        return fr_fail(err, -EPROTO, "%s: its header contradicts layout %u", name, h->version);
    if (h->comm_count == 0 || h->comm_count > FR_SEG_MAX_COMMS || h->comm_off < l->header_bytes ||
        !fits(h->comm_off, h->comm_count, h->comm_bytes, h->total_bytes))
        return fr_fail(err, -EPROTO, "%s: its communicator table (%u at %u) is not within it", name,
                       h->comm_count, h->comm_off);
    if (h->lane_count == 0 || h->lane_count > FR_SEG_MAX_LANES || h->lane_records < 2 ||
        h->lane_records > MAX_RECORDS || (h->lane_records & (h->lane_records - 1)) != 0 ||
        h->lane_bytes != l->lane_bytes + h->lane_records * l->record_bytes ||
        h->lane_off < l->header_bytes ||
        !fits(h->lane_off, h->lane_count, h->lane_bytes, h->total_bytes))
        return fr_fail(err, -EPROTO, "%s: its lanes (%u of %u records at %u) are not within it",
                       name, h->lane_count, h->lane_records, h->lane_off);
    if (h->clock > FR_CLOCK_CNTVCT ||
        (h->clock != FR_CLOCK_MONOTONIC && h->clock != (uint32_t)FR_TICKS_NATIVE))
        return fr_fail(err, -EPROTO, "%s: stamps with counter %u, which this machine does not have",
                       name, h->clock);
    return 0;
}

/* What is in use lies within the layout, and text ends. */
static void tame(struct fr_seg_header *h)
{
    if (h->lanes_used > h->lane_count)
        h->lanes_used = h->lane_count;
    if (h->comm_used > h->comm_count)
        h->comm_used = h->comm_count;
    h->job[sizeof h->job - 1] = '\0';
    h->host[sizeof h->host - 1] = '\0';
}

/* The rank's pair must be a moment that happened on this machine's own clocks. */
static int check_clock(const struct fr_segment *s, const char *name, struct fr_err *err)
{
    uint64_t there = fr_segment_ns(s, s->hdr.clock_ticks0), said = s->hdr.clock_mono0_ns;
    uint64_t off = there > said ? there - said : said - there;
    uint64_t age = s->pair_ns > said ? s->pair_ns - said : 0;

    if (said > s->pair_ns || off > 10000000u + age / 1000u)
        return fr_fail(err, -EPROTO,
                       "%s: its clock pair is %" PRIu64 " us off this machine's (another counter,"
                       " another time namespace, or forged)",
                       name, off / 1000u);
    return 0;
}

static void take_pair(struct fr_segment *s)
{
    uint64_t hz;

    fr_ticks_pair(s->hdr.clock, &s->pair_ticks, &s->pair_ns);
    hz = rate_now(s);
    s->ns_per_tick_q32 = hz ? (int64_t)(((unsigned __int128)1000000000u << 32) / hz) : 0;
}

static void segment_freep(struct fr_segment **s)
{
    fr_segment_free(*s);
}

int fr_segment_open(int dirfd, const char *name, uid_t owner, struct fr_segment **ret,
                    struct fr_err *err)
{
    FR_CLEANUP(segment_freep) struct fr_segment *s = NULL;
    struct fr_seg_header h;
    struct stat st;
    ssize_t n;
    int fd, rc;

    fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fr_fail(err, -errno, "%s: cannot open the segment: %s", name, strerror(errno));
    memset(&h, 0, sizeof h);
    rc = 0;
    if (fstat(fd, &st) != 0)
        rc = fr_fail(err, -errno, "%s: cannot stat the segment: %s", name, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = fr_fail(err, -EPERM, "%s: is no plain file", name);
    else if (owner != (uid_t)-1 && st.st_uid != owner)
        rc = fr_fail(err, -EPERM, "%s: belongs to uid %u, not to the job's uid %u", name, st.st_uid,
                     owner);
    else if (st.st_size < FR_SEG_HEADER_BYTES)
        rc = fr_fail(err, -ESTALE, "%s: %lld bytes are no segment (empty or truncated)", name,
                     (long long)st.st_size);
    else if ((n = pread(fd, &h, sizeof h, 0)) != (ssize_t)sizeof h)
        rc = fr_fail(err, n < 0 ? -errno : -ESTALE, "%s: cannot read the header", name);
    else
        rc = check_layout(&h, (uint64_t)st.st_size, name, err);
    if (rc == 0 && !(s = calloc(1, sizeof *s + h.comm_count * sizeof s->comm[0])))
        rc = fr_fail(err, -ENOMEM, "%s: out of memory", name);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    s->fd = fd;
    s->owner = st.st_uid;
    s->hdr = h;
    s->moved = 1;
    tame(&s->hdr);
    pthread_once(&own_once, measure_rate);
    take_pair(s);
    rc = check_clock(s, name, err);
    if (rc < 0)
        return rc;
    *ret = s;
    s = NULL;
    return 0;
}

void fr_segment_free(struct fr_segment *s)
{
    if (!s)
        return;
    close(s->fd);
    free(s);
}

const struct fr_seg_header *fr_segment_header(const struct fr_segment *s)
{
    return &s->hdr;
}

uid_t fr_segment_owner(const struct fr_segment *s)
{
    return s->owner;
}

int fr_segment_refresh(struct fr_segment *s, struct fr_err *err)
{
    /* The layout stands before `level`; it and the clock may not change. The rank's own pair was
     * only checked at open: times are reckoned by ours. */
    enum { LAYOUT_END = offsetof(struct fr_seg_header, level) };
    struct fr_seg_header a, b;
    size_t marks = offsetof(struct fr_seg_header, marks_version);
    int rc = read_whole(s, &a, &b, &s->hdr, sizeof a, marks, 0, err);

    if (rc < 0)
        return rc;
    if (memcmp(&a, &s->hdr, LAYOUT_END) != 0 || a.clock != s->hdr.clock)
        return fr_fail(err, -EPROTO, "segment of pid %u: its layout changed while it was in use",
                       s->hdr.pid);
    if (rc == 1) /* counts are single words and always good; marks stay as they were */
        memcpy((char *)&a + marks, (char *)&s->hdr + marks, sizeof a - marks);
    tame(&a);
    s->hdr = a;
    take_pair(s);
    return rc;
}

static uint64_t lane_off(const struct fr_segment *s, uint32_t lane)
{
    return s->hdr.lane_off + (uint64_t)lane * s->hdr.lane_bytes;
}

/* Read the lane's own structure; keep the older `now` when the new one is not whole. */
static int look_at_lane(struct fr_segment *s, uint32_t lane, struct fr_err *err)
{
    size_t at = offsetof(struct fr_seg_lane, now);
    struct fr_seg_lane *held = &s->lane[lane], seen;
    struct fr_seg_now second, now;
    int rc = read_at(s, &seen, sizeof seen, lane_off(s, lane), err);

    if (rc < 0)
        return rc;
    if (memcmp(&seen, held, sizeof seen) == 0)
        return 0;
    s->moved = 1;
    now = seen.now;
    for (int i = 0; memcmp(&now, &held->now, sizeof now) != 0; i++) {
        rc = read_at(s, &second, sizeof second, lane_off(s, lane) + at, err);
        if (rc < 0)
            return rc;
        if (!(now.version & 1) && memcmp(&now, &second, sizeof now) == 0)
            break;
        now = i < TRIES ? second : held->now;
    }
    seen.now = now;
    *held = seen;
    return 0;
}

/* Make a record keep what segment.h promises of it. */
static void tame_record(const struct fr_segment *s, struct fr_record *r)
{
    if (r->comm >= s->hdr.comm_count)
        r->comm = FR_COMM_NONE;
    if (!(r->flags & FR_REC_GPU_CLOCK) && r->t_start < r->t_enq)
        r->t_start = r->t_enq;
    if (r->t_end < r->t_start)
        r->t_end = r->t_start;
}

/* A lap of the ring takes the writer at least so long a record: it reads the counter twice for
 * each. */
#define RECORD_LEAST_NS 2

struct drain {
    fr_segment_record_fn *fn;
    void *arg;
    int64_t given;
    uint64_t lost;
};

static int drain_lane(struct fr_segment *s, uint32_t lane, struct drain *d, struct fr_err *err)
{
    uint64_t head, newest, n = s->hdr.lane_records, i = s->next[lane], begun = fr_mono_ns();
    int rc = look_at_lane(s, lane, err);

    if (rc < 0)
        return rc;
    head = s->lane[lane].head;
    if (head < i) /* no writer of ours goes back */
        i = head;
    /* The slot of the oldest record may be under the writer's pen already. */
    if (head - i > n - 1) {
        d->lost += head - (n - 1) - i;
        i = head - (n - 1);
    }
    while (i < head) {
        uint64_t slot = i % n, count = head - i;

        if (count > CHUNK_RECORDS)
            count = CHUNK_RECORDS;
        if (count > n - slot)
            count = n - slot;
        rc = read_at(
            s, s->chunk.records, count * sizeof(struct fr_record),
            lane_off(s, lane) + sizeof(struct fr_seg_lane) + slot * sizeof(struct fr_record), err);
        /* Too soon after `head` was read for the writer to have come round: it need not be read
         * again. */
        newest = head;
        if (rc == 0 && fr_mono_ns() - begun >= (n - 1 - (head - i)) * RECORD_LEAST_NS)
            rc = read_at(s, &newest, sizeof newest, lane_off(s, lane), err);
        if (rc < 0) {
            s->next[lane] = i;
            return rc;
        }
        for (uint64_t k = 0; k < count; k++, i++) {
            struct fr_record *r = &s->chunk.records[k];

            if (newest - i > n - 1 || r->index != (uint32_t)i) {
                d->lost++;
                continue;
            }
            tame_record(s, r);
            d->fn(d->arg, lane, i, r);
            d->given++;
        }
    }
    s->next[lane] = i;
    return 0;
}

int64_t fr_segment_drain(struct fr_segment *s, fr_segment_record_fn *fn, void *arg,
                         uint64_t *ret_lost, struct fr_err *err)
{
    struct drain d = {fn, arg, 0, 0};
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < s->hdr.lanes_used; i++)
        rc = drain_lane(s, i, &d, err);
    if (ret_lost)
        *ret_lost = d.lost;
    return rc < 0 ? rc : d.given;
}

int fr_segment_skip(struct fr_segment *s, struct fr_err *err)
{
    for (uint32_t i = 0; i < s->hdr.lanes_used; i++) {
        int rc = look_at_lane(s, i, err);

        if (rc < 0)
            return rc;
        s->next[i] = s->lane[i].head;
    }
    return 0;
}

int fr_segment_lane(const struct fr_segment *s, uint32_t lane, struct fr_seg_lane *ret)
{
    if (lane >= s->hdr.lanes_used)
        return -ENOENT;
    *ret = s->lane[lane];
    return 0;
}

static void tame_comm(struct fr_seg_comm *c)
{
    uint64_t members = 0;

    c->name[sizeof c->name - 1] = '\0';
    if (c->nruns > FR_COMM_RUNS)
        c->nruns = 0;
    for (uint32_t i = 0; i < c->nruns; i++)
        members += c->runs[i].count;
    if (members != c->size)
        c->nruns = 0;
}

int fr_segment_comms(struct fr_segment *s, struct fr_err *err)
{
    enum { MANY = sizeof s->chunk.comms / sizeof s->chunk.comms[0] };
    struct fr_seg_comm again[MANY], one, second;

    if (!s->moved && !(s->hdr.sources & FR_SOURCE_NCCL))
        return (int)s->hdr.comm_used;
    s->moved = 0;
    for (uint32_t base = 0; base < s->hdr.comm_used; base += MANY) {
        uint32_t n = s->hdr.comm_used - base < MANY ? s->hdr.comm_used - base : MANY;
        uint64_t off = s->hdr.comm_off + (uint64_t)base * sizeof one;
        int rc = read_at(s, s->chunk.comms, n * sizeof one, off, err);

        /* Two looks at all of them, not two at each: most are whole, and a read costs more than its
         * bytes. */
        if (rc == 0)
            rc = read_at(s, again, n * sizeof one, off, err);
        if (rc < 0)
            return rc;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t version = again[i].version;

            if (version == s->comm[base + i].version && !(version & 1) && version != 0 &&
                !(again[i].flags & FR_COMM_GPU))
                continue; /* its content is that of this version */
            if (!(version & 1) && memcmp(&s->chunk.comms[i], &again[i], sizeof one) == 0) {
                one = again[i];
            } else {
                rc = read_whole(s, &one, &second, NULL, sizeof one, 0, off + i * sizeof one, err);
                if (rc < 0)
                    return rc;
                if (rc == 1) {
                    s->moved = 1; /* look again next time */
                    continue;
                }
            }
            tame_comm(&one);
            s->comm[base + i] = one;
        }
    }
    return (int)s->hdr.comm_used;
}

const struct fr_seg_comm *fr_segment_comm(const struct fr_segment *s, uint32_t slot)
{
    if (slot >= s->hdr.comm_used || s->comm[slot].members_hash == 0)
        return NULL;
    return &s->comm[slot];
}

int fr_segment_step(struct fr_segment *s, uint64_t step, struct fr_seg_step *ret,
                    struct fr_err *err)
{
    struct fr_seg_step a, b;
    uint64_t off = s->hdr.step_off + step % s->hdr.step_count * sizeof a;
    int rc = read_whole(s, &a, &b, NULL, sizeof a, 0, off, err);

    if (rc < 0)
        return rc;
    if (rc == 1)
        return -EAGAIN;
    if (step == 0 || a.step != step)
        return -ENOENT;
    *ret = a;
    return 0;
}
