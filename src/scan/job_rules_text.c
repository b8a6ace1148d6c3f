/* SPDX-License-Identifier: Apache-2.0 */
/* job_rules_text.c - job_log.rules as it is, inside the program; see job_rules.h */
#include "scan/job_rules.h"

extern const char fr_job_rules_bytes[];

/* FR_JOB_RULES_PATH comes from CMakeLists.txt. */
__asm__(".section .rodata,\"a\"\n"
        ".globl fr_job_rules_bytes\n"
        "fr_job_rules_bytes:\n"
        ".incbin \"" FR_JOB_RULES_PATH "\"\n"
        ".byte 0\n"
        ".text\n");

const char *const FR_JOB_RULES_TEXT = fr_job_rules_bytes;
