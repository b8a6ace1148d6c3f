/* SPDX-License-Identifier: Apache-2.0 */
/* inner.h - what the files of this folder share */
#ifndef FR_SCAN_KERNEL_INNER_H
#define FR_SCAN_KERNEL_INNER_H

#include "scan/kernel/kernel.h"

/* What stood before the message. */
struct fr_klog_prefix {
    bool foreign;   /* a facility that is not the kernel's */
    bool untagged;  /* syslog wrote it without "kernel:": it may be anybody's */
    uint32_t count; /* "message repeated N times", 0: not said */
};

/* Takes the prefixes off a NUL-terminated text (which it may change) and returns the message. */
char *fr_klog_strip(char *text, struct fr_klog_prefix *ret);

/* Does text begin with the pattern, letters of either case? In a pattern * stands for any text, ?
 * for one byte, % for a name (up to 64 bytes without ": "), @ for an optional "driver dddd:bb:dd.f[
 * netdev]: ". */
bool fr_klog_like(const char *text, const char *pattern);

/* The first PCI address in text, as dddd:bb:dd.f; "" when there is none. */
void fr_klog_pci(const char *text, char ret[16]);
/* The length of the PCI address at p, 0: there is none. */
size_t fr_klog_pci_at(const char *p);

/* Messages of the drivers that carry codes; text begins with their tag. */
void fr_klog_xid(const char *text, const struct fr_klog_codes *codes, struct fr_klog_event *ev);
void fr_klog_sxid(const char *text, const struct fr_klog_codes *codes, struct fr_klog_event *ev);

#endif /* FR_SCAN_KERNEL_INNER_H */
