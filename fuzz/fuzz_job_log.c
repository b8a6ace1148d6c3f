/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_job_log.c - the bytes are a job's log, fed in pieces of the size that the first byte says.
 * fuzz links: fr_scan fr_base */
#include <stdint.h>
#include <stdlib.h>

#include "scan/job_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct fr_job_rules *rules;
    struct fr_job_log *log;
    size_t piece = n ? 1u + p[0] : 1, found;

    if (!rules && fr_job_rules_new(NULL, 0, NULL, &rules, NULL) < 0)
        abort();
    log = fr_job_log_new(rules);
    for (size_t at = 0; at < n; at += piece)
        fr_job_log_feed(log, (const char *)p + at, n - at < piece ? n - at : piece);
    fr_job_log_end(log);
    fr_job_log_findings(log, &found);
    if ((found == 0) != (fr_job_log_first(log) == NULL) || found > FR_JOB_FINDINGS_MAX)
        abort();
    fr_job_log_free(log);
    return 0;
}
