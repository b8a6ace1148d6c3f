/* SPDX-License-Identifier: Apache-2.0 */
/*
 * procs.h - processes as /proc shows them: who belongs to a session, and is it still the same one
 *
 * A pid alone names nobody: it is used again. A process is (pid, starttime), and a signal goes
 * through a pidfd that was opened before the starttime was checked.
 *
 * Threads: any; nothing is kept.
 */
#ifndef FR_ENGINE_LOCAL_PROCS_H
#define FR_ENGINE_LOCAL_PROCS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_PROCS_MAX 4194304 /* the kernel's own limit of pids */

struct fr_proc {
    pid_t pid, ppid, session;
    char state;         /* R S D T t Z X I; 0: unknown */
    uid_t uid;          /* real uid */
    uint64_t starttime; /* field 22 of /proc/<pid>/stat, clock ticks since boot */
};

/* Parse the text of /proc/<pid>/stat (the name in it may hold spaces and parentheses). 0 or
 * -EINVAL. */
int fr_proc_parse_stat(const char *text, size_t n, struct fr_proc *ret);

/* Read one process. -ESRCH when there is none (a zombie is still one). */
int fr_proc_read(pid_t pid, struct fr_proc *ret);

/* All living processes (zombies left out) of the session `session` or below the process `root` (0:
 * no such rule), without `except`. Returns the count and sets *ret (free() it), or -errno. */
int fr_procs_of_session(pid_t session, pid_t root, pid_t except, struct fr_proc **ret);

/* A pidfd for exactly this process. -ESRCH when it is gone or its pid is another one's now. */
int fr_proc_open(const struct fr_proc *p);

/* Signal through a pidfd: 0 or -errno. */
int fr_proc_signal(int pidfd, int sig);

#endif /* FR_ENGINE_LOCAL_PROCS_H */
