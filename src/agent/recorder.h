/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - PyTorch's Flight Recorder dumps of a rank, asked for and fetched (law 10)
 *
 * A job that is stuck holds the best account of itself in memory: PyTorch writes it to a file when
 * it is asked through a named pipe, and after its own time-out, which is ten minutes too late. Here
 * the pipe is written to and the file read, before the attempt is ended.
 *
 * Law 11: both names come out of the environment of the process, which is the user's to fill. So
 * they are opened below the process's own root (or working folder) with no way out of it, never
 * through a link at the end, never waiting; and what is opened must be of the job's user and of the
 * kind expected: a pipe to write one byte into, a plain file to read a bounded piece of. What such
 * a file says is evidence, not truth.
 *
 * Range:   FR_RECORDER_FILE_BYTES of a dump.
 * Memory:  1.2 KiB and one file descriptor a rank.
 * Threads: one owner at a time; opening and reading may block on the user's file system.
 * Source:  PyTorch, torch/csrc/distributed/c10d: the names
 * TORCH_NCCL_DEBUG_INFO_PIPE_FILE<rank>.pipe, TORCH_FR_DUMP_TEMP_FILE or
 * TORCH_NCCL_DEBUG_INFO_TEMP_FILE + <rank>, and their defaults; the pipe is looked at once a
 * second.
 */
#ifndef FR_AGENT_RECORDER_H
#define FR_AGENT_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FR_RECORDER_PATH_BYTES 512
#define FR_RECORDER_FILE_BYTES (4u << 20)
#define FR_RECORDER_PLACES     2

/* What a file was like when it was looked at. */
struct fr_recorder_look {
    bool there;
    uint64_t inode, bytes;
    int64_t mtime_ns;
    uint64_t since_ns; /* of this clock's, when it was first seen so */
};

struct fr_recorder {
    int32_t rank; /* the one in the names */
    uint32_t uid; /* of the job's user */
    int64_t started_unix_ns;
    int dir_fd;                        /* the process's root, or its working folder; -1: none */
    char pipe[FR_RECORDER_PATH_BYTES]; /* "": none */
    char file[FR_RECORDER_PLACES][FR_RECORDER_PATH_BYTES];
    int nfiles;
    struct fr_recorder_look before[FR_RECORDER_PLACES], last[FR_RECORDER_PLACES];
    bool triggered;
};

/* Learn from a process's environment where its dumps are. 0: *r may be used and must be finished;
 * -errno: the process cannot be looked into. job_rank counts where the environment tells no RANK.
 */
int fr_recorder_init(struct fr_recorder *r, uint32_t pid, uint32_t uid, uint64_t starttime,
                     int32_t job_rank);

/* The same places for another rank of the job, whose own process is gone. */
int fr_recorder_init_like(struct fr_recorder *r, const struct fr_recorder *of, int32_t rank);

void fr_recorder_fini(struct fr_recorder *r);

/* Ask for a dump. 0, -ENOENT: there is no pipe, or another -errno (-EPERM: not the user's own
 * pipe). */
int fr_recorder_trigger(struct fr_recorder *r);

/* After a trigger, again and again: 1 when a new dump is there and did not grow since the last
 * look. */
int fr_recorder_ready(struct fr_recorder *r);

/* Append the newest dump that is not older than the process, cut at max bytes. Returns its whole
 * size (may be 0), -ENOENT: there is none, -ESTALE: only one of an earlier process, or another
 * -errno. *ret_file: its name, borrowed from r. */
int64_t fr_recorder_read(struct fr_recorder *r, size_t max, struct fr_buf *out,
                         const char **ret_file);

#endif /* FR_AGENT_RECORDER_H */
