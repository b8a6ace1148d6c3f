/* SPDX-License-Identifier: Apache-2.0 */
/* jobref.c - see jobref.h */
#include "cli/jobref.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/client.h"

int fr_jobref(const struct fr_cli *cli, const char *given, char job[FR_JOBREF_BYTES])
{
    FR_CLEANUP(fr_client_freep) struct fr_client *c = NULL;
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
    struct fr_err err = FR_ERR_INIT;
    const struct fr_json *items;
    const char *live = NULL, *newest = NULL, *newest_at = "";
    int alive = 0, rc;

    if (given) {
        if (strlen(given) >= FR_JOBREF_BYTES) {
            fr_fail(&err, -ENOENT, "no job %.60s", given);
            return fr_cli_fail(FR_EXIT_NOT_FOUND, &err);
        }
        snprintf(job, FR_JOBREF_BYTES, "%s", given);
        return 0;
    }
    rc = fr_client_new(cli->server, cli->token_file, &c, &err);
    if (rc == 0)
        rc = fr_client_get(c, "/api/v1/jobs", &json, &err);
    if (rc < 0)
        return fr_cli_fail((enum fr_exit)fr_client_exit(rc), &err);
    items = fr_json_get(json, "items");
    for (size_t i = 0; i < fr_json_len(items); i++) {
        const struct fr_json *j = fr_json_at(items, i);
        const char *at = fr_json_str(j, "submitted_at", "");

        if (!fr_json_str(j, "ended_at", NULL)) {
            alive++;
            live = fr_json_str(j, "job", "");
        }
        if (!newest || strcmp(at, newest_at) > 0) { /* RFC 3339 in UTC sorts as text */
            newest = fr_json_str(j, "job", "");
            newest_at = at;
        }
    }
    if (alive > 1) {
        fr_fail(&err, -EINVAL, "%d jobs run: say which one (fullrank job list)", alive);
        return fr_cli_fail(FR_EXIT_USAGE, &err);
    }
    if (!newest) {
        fr_fail(&err, -ENOENT, "there is no job yet (start one: fullrank run -- COMMAND)");
        return fr_cli_fail(FR_EXIT_NOT_FOUND, &err);
    }
    snprintf(job, FR_JOBREF_BYTES, "%s", alive ? live : newest);
    return 0;
}
