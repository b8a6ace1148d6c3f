/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - what one line of a kernel log means for an operator
 *
 * A line may come from dmesg (in all its forms), syslog, the journal, or /dev/kmsg itself; what
 * stands before the kernel's own message is taken off (prefix.c). The message is then asked against
 * a table of families (families.c); NVIDIA's codes have tables of their own (nvidia.c, codes.def),
 * which a site can override. Text that another program quotes is nobody's fault: source NONE.
 *
 * Pure: the same line gives the same verdict; what needs memory (bursts, rates) is not decided
 * here.
 *
 * Threads: any; a codes object is not changed after it was loaded.
 * Source:  NVIDIA's Xid catalogue; Linux sources of the drivers named in families.c.
 */
#ifndef FR_SCAN_KERNEL_KERNEL_H
#define FR_SCAN_KERNEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum fr_klog_source {
    FR_KLOG_NONE = 0, /* noise, benign, or not from the kernel */
    FR_KLOG_NVIDIA_XID,
    FR_KLOG_NVIDIA_DRIVER, /* other text of the driver that matters */
    FR_KLOG_NVSWITCH_SXID,
    FR_KLOG_MLX5,
    FR_KLOG_NETDEV,
    FR_KLOG_PCIE_AER,
    FR_KLOG_MCE,
    FR_KLOG_EDAC,
    FR_KLOG_APEI,
    FR_KLOG_NVME,
    FR_KLOG_BLOCK,
    FR_KLOG_FS,
    FR_KLOG_OS, /* a limit of the operating system, a panic */
    FR_KLOG_OOM,
    FR_KLOG_HUNG_TASK,
    FR_KLOG_SEGFAULT,
    FR_KLOG_SOURCES
};

enum fr_klog_severity {
    FR_KLOG_INFO = 0, /* record only */
    FR_KLOG_WARNING,  /* works, degraded or at risk */
    FR_KLOG_CRITICAL, /* the job or the device is lost until the action is done */
    FR_KLOG_FATAL,    /* the node or a part is lost */
    FR_KLOG_BY_TEXT   /* in the table of codes only: the line says it */
};

enum fr_klog_action {
    FR_KLOG_IGNORE = 0,
    FR_KLOG_MONITOR,     /* count it; act on rate */
    FR_KLOG_RESTART_APP, /* end the affected job and restart it, same node allowed */
    FR_KLOG_RESET_GPU,   /* drain its users, reset it */
    FR_KLOG_REBOOT,
    FR_KLOG_INSPECT,    /* drain, deep diagnostics, hands on */
    FR_KLOG_DRAIN_RMA,  /* take out of the fleet, replace the part */
    FR_KLOG_FOLLOW_154, /* the Xid 154 that comes next says it */
    FR_KLOG_ACTIONS
};

#define FR_KLOG_NO_LINK INT32_MIN

struct fr_klog_event {
    enum fr_klog_source source;
    enum fr_klog_severity severity;
    enum fr_klog_action action;
    int32_t xid;       /* Xid or SXid, -1: none */
    int32_t caused_by; /* of a 45: the Xid before it, -1: none */
    int32_t link;      /* NVLink number, FR_KLOG_NO_LINK: none (-1 is a number that is printed) */
    uint32_t count;    /* events that the line stands for; 0: it does not say */
    bool continuation; /* more detail of the event before: never counted again */
    bool implied;      /* the text means that Xid though no number is printed */
    char pci[16];      /* dddd:bb:dd.f, "": none */
    const char *link_event; /* "up", "down", NULL */
};

struct fr_klog_codes; /* a site's changes; NULL is a legal argument everywhere: none */

/* Lines "xid|sxid CODE SEVERITY ACTION", # begins a comment. -EINVAL with the line's number. */
int fr_klog_codes_parse(const char *text, size_t n, const char *name, struct fr_klog_codes **ret,
                        struct fr_err *err);
void fr_klog_codes_free(struct fr_klog_codes *c);

/* A record may hold line breaks; it is looked at to FR_KLOG_BYTES. */
#define FR_KLOG_BYTES 4096
void fr_klog_read(const char *line, size_t n, const struct fr_klog_codes *codes,
                  struct fr_klog_event *ret);

const char *fr_klog_source_name(enum fr_klog_source s);
const char *fr_klog_severity_name(enum fr_klog_severity s);
const char *fr_klog_action_name(enum fr_klog_action a);

#endif /* FR_SCAN_KERNEL_KERNEL_H */
