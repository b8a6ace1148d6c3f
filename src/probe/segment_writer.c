/* SPDX-License-Identifier: Apache-2.0 */
/* segment_writer.c - makes, lays out, shows and removes this process's segment; see probe.h */
#define _GNU_SOURCE
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#ifndef FR_PROBE_LIBRARY
#define FR_PROBE_LIBRARY FR_LIBRARY_MARKS /* with or without the MPI shim */
#endif

struct fr_probe fr_probe;

/* Silent unless asked: a probe that cannot work must not be noticed by the job. */
static void tell(const char *what, const char *path)
{
    const char *debug = getenv("FULLRANK_DEBUG");
    int e = errno;

    if (debug && debug[0] == '1')
        dprintf(STDERR_FILENO, "fullrank: probe: %s: %s: %s (the job runs on unwatched)\n", path,
                what, strerror(e));
}

/* Read a small file of /proc or /sys. Returns its length, NUL-terminated, or -1. */
static ssize_t read_small(const char *path, char *buf, size_t room)
{
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    n = read(fd, buf, room - 1);
    close(fd);
    if (n >= 0)
        buf[n] = '\0';
    return n;
}

/* Field 22 of /proc/self/stat, counted behind the command name, which may hold anything. */
static uint64_t own_starttime(void)
{
    char buf[1024];
    const char *p;

    if (read_small("/proc/self/stat", buf, sizeof buf) <= 0 || !(p = strrchr(buf, ')')))
        return 0;
    for (int field = 2; field < 22; field++) {
        p = strchr(p + 1, ' ');
        if (!p)
            return 0;
    }
    return strtoull(p + 1, NULL, 10);
}

/* The processor's counter, if the processor and the kernel both trust it. */
static uint32_t choose_clock(void)
{
    char source[64];

    if (FR_TICKS_NATIVE == FR_CLOCK_MONOTONIC || !fr_ticks_invariant())
        return FR_CLOCK_MONOTONIC;
    if (read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                   sizeof source) <= 0)
        return FR_CLOCK_MONOTONIC;
    if (strncmp(source, "tsc", 3) != 0 && strncmp(source, "kvm-clock", 9) != 0 &&
        strncmp(source, "arch_sys_counter", 16) != 0)
        return FR_CLOCK_MONOTONIC;
    return FR_TICKS_NATIVE;
}

static uint32_t level_from_environment(void)
{
    static const struct {
        const char *name;
        uint32_t level;
    } levels[] = {{"off", FR_PROBE_OFF},
                  {"hang", FR_PROBE_HANG},
                  {"perf", FR_PROBE_PERF},
                  {"full", FR_PROBE_FULL}};
    const char *s = getenv("FULLRANK_PROBE");

    for (size_t i = 0; s && i < sizeof levels / sizeof levels[0]; i++)
        if (strcmp(s, levels[i].name) == 0)
            return levels[i].level;
    return FR_PROBE_PERF;
}

static int64_t number_from(const char *const *names, int64_t otherwise)
{
    for (; *names; names++) {
        const char *s = getenv(*names);
        char *end;
        long long v;

        if (!s || !*s)
            continue;
        v = strtoll(s, &end, 10);
        if (*end == '\0' && v >= 0)
            return v;
    }
    return otherwise;
}

/* In the order that fullrank-environment(7) documents; MPI itself overrides it later. */
static void identity_from_environment(struct fr_seg_header *h)
{
    static const char *const rank[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID",
                                       NULL};
    static const char *const world[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE",
                                        "SLURM_NTASKS", NULL};
    static const char *const attempt[] = {"FULLRANK_ATTEMPT", NULL};
    static const char *const epoch[] = {"FULLRANK_EPOCH", NULL};
    static const char *const job[] = {"FULLRANK_JOB", "SLURM_JOB_ID", "FLUX_JOB_ID", NULL};

    h->rank = (int32_t)number_from(rank, -1);
    h->world = (int32_t)number_from(world, -1);
    h->attempt = (uint32_t)number_from(attempt, 0);
    h->epoch = (uint64_t)number_from(epoch, 0);
    for (int i = 0; job[i]; i++) {
        const char *s = getenv(job[i]);

        if (s && *s) {
            snprintf(h->job, sizeof h->job, "%s", s);
            break;
        }
    }
}

static void set_rate(uint64_t hz)
{
    if (hz == 0)
        return;
    fr_store(&fr_probe.us_mult, (uint64_t)(((unsigned __int128)1000000u << 44) / hz));
    if (fr_probe.level > FR_PROBE_HANG) {
        fr_store(&fr_probe.ready_every, FR_READY_EVERY_NS * (hz / 1000u) / 1000000u);
        fr_store(&fr_probe.ready_call, FR_READY_CALL_NS * (hz / 1000u) / 1000000u);
    } else {
        fr_store(&fr_probe.ready_every, (uint64_t)INT64_MAX);
        fr_store(&fr_probe.ready_call, (uint64_t)INT64_MAX);
    }
}

static uint64_t rate_since(uint64_t ticks0, uint64_t mono0, uint64_t ticks1, uint64_t mono1)
{
    if (mono1 <= mono0 || ticks1 <= ticks0)
        return 0;
    return (uint64_t)((unsigned __int128)(ticks1 - ticks0) * 1000000000u / (mono1 - mono0));
}

/* A first estimate within 200 us of start-up; fr_probe_tune betters it by itself later. */
static void calibrate(struct fr_seg_header *h)
{
    uint64_t t1, m1;

    fr_ticks_pair(h->clock, &h->clock_ticks0, &h->clock_mono0_ns);
    if (h->clock == FR_CLOCK_MONOTONIC) {
        set_rate(1000000000u);
        return;
    }
    do {
        fr_ticks_pair(h->clock, &t1, &m1);
    } while (m1 - h->clock_mono0_ns < 200000u);
    set_rate(rate_since(h->clock_ticks0, h->clock_mono0_ns, t1, m1));
}

void fr_probe_tune(void)
{
    const struct fr_seg_header *h = fr_probe.hdr;
    uint64_t t1, m1;

    if (!h || h->clock == FR_CLOCK_MONOTONIC)
        return;
    fr_ticks_pair(h->clock, &t1, &m1);
    if (m1 - h->clock_mono0_ns > 10000000u)
        set_rate(rate_since(h->clock_ticks0, h->clock_mono0_ns, t1, m1));
}

static void lay_out(struct fr_seg_header *h)
{
    struct timespec unix_now;

    h->magic = FR_RING_MAGIC;
    h->version = FR_RING_VERSION;
    h->header_bytes = FR_SEG_HEADER_BYTES;
    h->step_off = FR_SEG_HEADER_BYTES;
    h->step_bytes = sizeof(struct fr_seg_step);
    h->step_count = FR_SEG_STEPS;
    h->comm_off = h->step_off + FR_SEG_STEPS * (uint32_t)sizeof(struct fr_seg_step);
    h->comm_bytes = sizeof(struct fr_seg_comm);
    h->comm_count = FR_SEG_COMMS;
    h->lane_off = h->comm_off + FR_SEG_COMMS * (uint32_t)sizeof(struct fr_seg_comm);
    h->record_bytes = sizeof(struct fr_record);
    h->lane_records = FR_LANE_RECORDS;
    h->lane_bytes = (uint32_t)sizeof(struct fr_seg_lane) + h->lane_records * h->record_bytes;
    h->lane_count = FR_SEG_LANES;
    h->total_bytes = h->lane_off + (uint64_t)h->lane_bytes * h->lane_count;
    h->level = fr_probe.level;
    h->libraries = FR_PROBE_LIBRARY;
    h->clock = choose_clock();
    clock_gettime(CLOCK_REALTIME, &unix_now);
    h->start_unix_ns = (int64_t)unix_now.tv_sec * 1000000000 + unix_now.tv_nsec;
    h->pid = (uint32_t)getpid();
    h->uid = (uint32_t)geteuid();
    h->starttime = own_starttime();
    if (gethostname(h->host, sizeof h->host - 1) != 0)
        h->host[0] = '\0';
    identity_from_environment(h);
    calibrate(h);
}

/* 1 when `path` is the segment of this very process, made by another copy of this code. */
static int is_ours(const char *path, const struct fr_seg_header *mine)
{
    struct fr_seg_header h;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return 0;
    n = pread(fd, &h, sizeof h, 0);
    close(fd);
    return n == (ssize_t)sizeof h && h.pid == mine->pid && h.starttime == mine->starttime;
}

/* Show the finished file under its name. A file left by a dead process of this pid goes. */
static int show(const char *tmp, const char *path, const struct fr_seg_header *h)
{
    if (syscall(SYS_renameat2, AT_FDCWD, tmp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (is_ours(path, h)) {
        errno = EEXIST;
        return -1;
    }
    return rename(tmp, path);
}

/* A child of fork is not this rank: it must not write here, and makes no segment of its own. */
static void forget_in_child(void)
{
    int s = __atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE);

    if (s != FR_PROBE_ON && s != FR_PROBE_OPENING)
        return;
    __atomic_store_n(&fr_probe.state, FR_PROBE_DEAD, __ATOMIC_RELEASE);
    fr_lane_self.seg = NULL;
    fr_probe.path[0] = '\0';
}

/* Give the file all its blocks: without them a full disk would be a SIGBUS in the middle of the
 * job. Some network filesystems know no fallocate and are written once instead. */
static int allocate(int fd, uint64_t bytes)
{
    char zeros[4096];

    if (syscall(SYS_fallocate, fd, 0, (off_t)0, (off_t)bytes) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    memset(zeros, 0, sizeof zeros);
    for (uint64_t off = 0; off < bytes; off += sizeof zeros) {
        size_t n = bytes - off < sizeof zeros ? (size_t)(bytes - off) : sizeof zeros;

        if (pwrite(fd, zeros, n, (off_t)off) != (ssize_t)n)
            return -1;
    }
    return 0;
}

static void use_segment(void *map, struct fr_seg_header *h)
{
    fr_probe.base = map;
    fr_probe.hdr = h;
    fr_probe.clock = h->clock;
    fr_probe.mask = h->lane_records - 1;
    fr_probe.steps = (struct fr_seg_step *)(fr_probe.base + h->step_off);
    fr_probe.comms = (struct fr_seg_comm *)(fr_probe.base + h->comm_off);
}

/* Another copy of this code in this process has made the segment (marks beside the NCCL plugin):
 * write into the same one. All that two copies share are words that are claimed atomically. */
static int attach(const char *path, const struct fr_seg_header *mine)
{
    struct fr_seg_header *h;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -1;
    h = mmap(NULL, mine->total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (h == MAP_FAILED)
        return -1;
    if (h->version != mine->version || h->total_bytes != mine->total_bytes ||
        h->lane_off != mine->lane_off || h->lane_records != mine->lane_records ||
        h->comm_bytes != mine->comm_bytes || h->pid != mine->pid) { /* of another release */
        munmap(h, mine->total_bytes);
        errno = EPROTO;
        return -1;
    }
    /* Two of a kind would write the same words: the second one stays out. */
    if (__atomic_fetch_or(&h->libraries, (uint32_t)FR_PROBE_LIBRARY, __ATOMIC_ACQ_REL) &
        FR_PROBE_LIBRARY) {
        munmap(h, mine->total_bytes);
        errno = EEXIST;
        return -1;
    }
    if (fr_probe.level > h->level)
        h->level = fr_probe.level;
    use_segment(h, h);
    return 0;
}

static int open_segment(const char *dir)
{
    struct fr_seg_header *h, first;
    char tmp[sizeof fr_probe.path];
    void *map = MAP_FAILED;
    int fd, n;

    n = snprintf(fr_probe.path, sizeof fr_probe.path, "%s/fr-%d" FR_SUFFIX_SEG, dir, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof fr_probe.path - 8) {
        errno = ENAMETOOLONG;
        tell("segment", dir);
        return -1;
    }
    snprintf(tmp, sizeof tmp, "%s/.fr-%d.tmp", dir, (int)getpid());
    memset(&first, 0, sizeof first);
    lay_out(&first);

    unlink(tmp); /* of a dead process with this pid */
    fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        tell("cannot create the segment", tmp);
        return -1;
    }
    if (allocate(fd, first.total_bytes) != 0)
        tell("cannot allocate the segment", tmp);
    else
        map = mmap(NULL, first.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) {
        tell("cannot map the segment", tmp);
        unlink(tmp);
        return -1;
    }
    h = map;
    *h = first;
    if (show(tmp, fr_probe.path, h) != 0) {
        int rc = errno == EEXIST ? attach(fr_probe.path, &first) : -1;

        if (rc != 0)
            tell("cannot rename the segment", fr_probe.path);
        munmap(map, first.total_bytes);
        unlink(tmp);
        return rc;
    }
    use_segment(map, h);
    return 0;
}

int fr_probe_open(void)
{
    const char *dir;
    int expected = FR_PROBE_NEW, rc = -1, saved = errno;

    if (fr_likely(__atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE) != FR_PROBE_NEW))
        return __atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE) == FR_PROBE_ON;
    if (!__atomic_compare_exchange_n(&fr_probe.state, &expected, FR_PROBE_OPENING, 0,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return expected == FR_PROBE_ON;
    dir = getenv("FULLRANK_PROBE_DIR");
    fr_probe.level = level_from_environment();
    if (dir && *dir && fr_probe.level != FR_PROBE_OFF) {
        pthread_atfork(NULL, NULL, forget_in_child);
        rc = open_segment(dir);
    }
    __atomic_store_n(&fr_probe.state, rc == 0 ? FR_PROBE_ON : FR_PROBE_DEAD, __ATOMIC_RELEASE);
    errno = saved;
    return rc == 0;
}

void fr_probe_source(uint32_t source)
{
    __atomic_fetch_or(&fr_probe.hdr->sources, source, __ATOMIC_RELAXED);
}

void fr_probe_rank(int32_t rank, int32_t world)
{
    fr_store(&fr_probe.hdr->rank, rank);
    fr_store(&fr_probe.hdr->world, world);
}

void fr_probe_drop(void)
{
    __atomic_fetch_add(&fr_probe.hdr->dropped, 1, __ATOMIC_RELAXED);
}

void fr_probe_finalized(void)
{
    uint64_t v;

    if (__atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE) != FR_PROBE_ON)
        return;
    v = fr_version_open(&fr_probe.hdr->marks_version);
    fr_store(&fr_probe.hdr->finalized, 1u);
    fr_version_close(&fr_probe.hdr->marks_version, v);
}

/* A process that ends in order takes its file with it; one that dies leaves it to the agent.
 * Marks and NCCL have no goodbye: there, running its exit handlers is the order. */
__attribute__((destructor)) static void remove_segment(void)
{
    if (__atomic_load_n(&fr_probe.state, __ATOMIC_ACQUIRE) != FR_PROBE_ON || !fr_probe.path[0])
        return;
    if (!fr_probe.hdr->finalized &&
        (fr_probe.hdr->sources & ~(uint32_t)(FR_SOURCE_MARKS | FR_SOURCE_NCCL)))
        return;
    unlink(fr_probe.path);
}
