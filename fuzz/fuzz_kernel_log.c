/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_kernel_log.c - any bytes as lines of a kernel log and as a site's file of codes */
/* fuzz links: fr_scan */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "scan/kernel/kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_klog_codes *codes = NULL;
    struct fr_klog_event e;
    struct fr_err err = FR_ERR_INIT;

    fr_klog_codes_parse((const char *)data, size, "site", &codes, &err);
    fr_klog_read((const char *)data, size, codes, &e);
    assert(e.source < FR_KLOG_SOURCES && e.severity < FR_KLOG_BY_TEXT &&
           e.action < FR_KLOG_ACTIONS);
    assert(strlen(e.pci) == 0 || strlen(e.pci) == 12);
    fr_klog_codes_free(codes);
    return 0;
}
