/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - how one process fares: state, CPU time, waits, memory, and how it ended
 *
 * The agent's witnesses against a slow or stuck rank come from here. State is cheap enough to be
 * read twenty times a second for each rank (3 us); the rest is read a few times a second.
 *
 * Unit:    nanoseconds, bytes; clock ticks of /proc are turned into nanoseconds.
 * Memory:  five open files a process.
 * Threads: one owner at a time.
 * Source:  proc(5); Linux Documentation/scheduler/sched-stats.rst (schedstat); include/uapi/linux/pidfd.h
 *          (PIDFD_GET_INFO, Linux 6.13, exit status since 6.15).
 */
#ifndef FR_SENSE_PROC_PROCESS_H
#define FR_SENSE_PROC_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

#include "sense/sensor.h"

extern const struct fr_sensor FR_SENSOR_PROCESS;

/* Columns of FR_SENSOR_PROCESS, in order. */
enum fr_process_column {
    FR_PROCESS_STATE = 0,    /* letter of proc(5) as a number */
    FR_PROCESS_CPU,          /* cpu_ns */
    FR_PROCESS_RUN_DELAY,    /* run_delay_ns, main thread */
    FR_PROCESS_RSS,          /* rss_bytes */
    FR_PROCESS_MAJOR_FAULTS, /* major_faults */
    FR_PROCESS_WCHAN,        /* wchan, text */
    FR_PROCESS_COLUMNS
};

/* The fields of /proc/<pid>/stat that fullrank reads. */
struct fr_proc_stat {
    char state;         /* field 3: R S D T t Z X I */
    int32_t session;    /* field 6 */
    uint64_t major_faults; /* field 12 */
    uint64_t utime_ticks, stime_ticks; /* fields 14, 15: 1/sysconf(_SC_CLK_TCK) s */
    uint64_t starttime; /* field 22 */
    int64_t rss_pages;  /* field 24 */
    int32_t exit_code;  /* field 52, as wait(2) gives it; 0 also when it may not be read */
};

/* Parse the text of /proc/<pid>/stat; the command name may hold anything. 0 or -EINVAL. */
int fr_proc_stat_parse(const char *text, struct fr_proc_stat *ret);

/* Read and parse root/proc/<pid>/stat. 0, -ESRCH when there is no such process, or another -errno. */
int fr_proc_stat_read(const char *root, uint32_t pid, struct fr_proc_stat *ret);

/* The quick part of an open process sensor: parse stat alone. 0 or -ESRCH. */
int fr_process_stat(struct fr_sense *s, struct fr_proc_stat *ret);

/* The quickest: the state letter alone. 0 or -ESRCH. */
int fr_process_state(struct fr_sense *s, char *ret);

/* CPU time of the main thread in nanoseconds, exact where stat is in clock ticks. 0 or -errno. */
int fr_process_exec_ns(struct fr_sense *s, uint64_t *ret_ns);

/* Real uid of a process. 0 or -errno. */
int fr_proc_uid(const char *root, uint32_t pid, uint32_t *ret_uid);

/* 1 when one of the process's cgroups is `path` or lies below it. */
int fr_proc_in_cgroup(const char *root, uint32_t pid, const char *path);

/* A pidfd, or -errno. Readable once the process has ended. */
int fr_pidfd_open(uint32_t pid);

/* How a process ended, as wait(2) gives it: from its pidfd (works after it was reaped, Linux >= 6.15), else from
 * /proc/<pid>/stat while it is a zombie. 0 and *ret_status, or -ENODATA when nobody can tell any more. */
int fr_proc_exit_status(int pidfd, uint32_t pid, int *ret_status);

#endif /* FR_SENSE_PROC_PROCESS_H */
