/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - one report: what the node is, how its ranks fare, what the agent costs */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "sense/pressure/pressure.h"

static void fill_info(const struct fr_agent *a, Fullrank__NodeInfo *m, char **addresses)
{
    struct sysinfo si;

    fullrank__node_info__init(m);
    m->host = (char *)a->host;
    m->rack = (char *)(a->opt.rack ? a->opt.rack : "");
    m->cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (sysinfo(&si) == 0)
        m->memory_bytes = (uint64_t)si.totalram * si.mem_unit;
    m->engine = (char *)a->opt.engine;
    m->probe_dir = (char *)a->opt.probe_dir;
    m->ranks_max = a->opt.ranks_max;
    m->machine_id = (char *)a->opt.machine_id;
    for (size_t i = 0; i < a->naddresses; i++)
        addresses[i] = (char *)a->address[i];
    m->addresses = addresses;
    m->n_addresses = a->naddresses;
}

static uint64_t own_rss(void)
{
    char text[128];
    unsigned long long size, rss;
    int fd = fr_sense_open_at("", "/proc/self/statm"), n = fr_sense_reread(fd, text, sizeof text);

    if (fd >= 0)
        close(fd);
    if (n <= 0 || sscanf(text, "%llu %llu", &size, &rss) != 2)
        return 0;
    return rss * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void fill_self(struct fr_agent *a, Fullrank__AgentSelf *m, uint64_t now_ns)
{
    struct fr_sender_figures f;
    struct rusage ru;

    fullrank__agent_self__init(m);
    if (now_ns - a->self_ns > 1000000000u) {
        a->rss_bytes = own_rss();
        a->self_ns = now_ns;
    }
    getrusage(RUSAGE_SELF, &ru);
    m->cpu_ns = (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000000u +
                (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) * 1000u;
    m->rss_bytes = a->rss_bytes;
    m->records = a->records_gone;
    m->lost_records = a->lost_gone;
    for (const struct fr_rank *r = a->ranks; r; r = r->next) {
        m->records += r->records;
        m->lost_records += r->lost;
        m->segments += r->state == FR_RANK_LIVE;
    }
    fr_sender_figures(a->sender, &f);
    m->spool_bytes = f.spool_bytes;
    m->spool_dropped = f.spool_dropped;
    m->segments_refused = a->refused;
}

static void fill_pressure(struct fr_agent *a, Fullrank__NodePressure *m, uint64_t now_ns)
{
    const struct fr_sense_value *v = a->pressure_values;

    fullrank__node_pressure__init(m);
    if (now_ns - a->pressure_ns > 400000000u) {
        FR_SENSOR_PRESSURE.sample(a->pressure, a->pressure_values);
        a->pressure_ns = now_ns;
    }
    m->cpu_some_us = v[FR_PRESSURE_CPU_SOME].u;
    m->memory_some_us = v[FR_PRESSURE_MEMORY_SOME].u;
    m->memory_full_us = v[FR_PRESSURE_MEMORY_FULL].u;
    m->io_some_us = v[FR_PRESSURE_IO_SOME].u;
    m->load1 = v[FR_PRESSURE_LOAD1].d;
    m->readable = v[FR_PRESSURE_CPU_SOME].known;
    m->observed_ns = a->pressure_ns;
}

void fr_report_make(struct fr_agent *a, uint64_t now_ns)
{
    Fullrank__Report head = FULLRANK__REPORT__INIT;
    Fullrank__NodeInfo info;
    Fullrank__AgentSelf self;
    Fullrank__NodePressure pressure;
    char *addresses[FR_AGENT_ADDRESSES];

    a->tools.full = a->want_full;
    for (struct fr_rank *r = a->ranks; r; r = r->next)
        fr_rank_report(r, &a->tools, now_ns);
    fr_ras_watch_report(a);
    head.node = (char *)a->opt.node;
    head.agent_instance = a->instance;
    head.seq = ++a->seq;
    head.mono_ns = now_ns;
    head.unix_ns = fr_unix_ns();
    head.boot_id = a->boot_id;
    head.version = (char *)FR_VERSION;
    head.full = a->want_full;
    if (a->want_full) {
        fill_info(a, &info, addresses);
        head.info = &info;
    }
    fill_self(a, &self, now_ns);
    fill_pressure(a, &pressure, now_ns);
    head.self = &self;
    head.pressure = &pressure;
    fr_sender_push(a->sender, fr_outbox_pack(&a->outbox, &head));
    a->want_full = a->tools.full = false;
    a->report_at_ns = now_ns + a->interval_ns;
}
