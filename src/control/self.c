/* SPDX-License-Identifier: Apache-2.0 */
/* self.c - see self.h */
#include "control/self.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

void fr_self_read(struct fr_self *ret)
{
    struct rusage u;
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    getrusage(RUSAGE_SELF, &u);
    ret->cpu_s = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
    if (f) {
        if (fscanf(f, "%*u %llu", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    ret->rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
