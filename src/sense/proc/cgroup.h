/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup.h - how long the cgroup of a process was held back by its CPU limit
 *
 * A container or batch step with a CPU quota that is too small makes a rank slow while the machine
 * looks idle; the kernel's count of throttled time tells.
 *
 * Unit:    nanoseconds since the cgroup was made.
 * Source:  Linux Documentation/admin-guide/cgroup-v2.rst (cpu.stat throttled_usec) and
 *          Documentation/scheduler/sched-bwc.rst (cpu.stat throttled_time of version 1).
 */
#ifndef FR_SENSE_PROC_CGROUP_H
#define FR_SENSE_PROC_CGROUP_H

#include "sense/sensor.h"

extern const struct fr_sensor FR_SENSOR_CGROUP;

enum fr_cgroup_column { FR_CGROUP_THROTTLED = 0, FR_CGROUP_COLUMNS };

/* From the text of /proc/<pid>/cgroup: the path of cpu.stat below the root. Prefers a version 1
 * hierarchy with the cpu controller, else version 2. Returns 0 or -ENOENT, -ENAMETOOLONG. */
int fr_cgroup_cpu_stat_path(const char *text, int v2_is_unified, char *path, size_t n);

/* Throttled nanoseconds from the text of cpu.stat of either version. 0 or -ENODATA. */
int fr_cgroup_throttled(const char *text, uint64_t *ret_ns);

#endif /* FR_SENSE_PROC_CGROUP_H */
