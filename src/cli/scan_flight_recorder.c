/* SPDX-License-Identifier: Apache-2.0 */
/* scan_flight_recorder.c - `fullrank scan flight-recorder`: read by src/scan, printed here */
#include <stdlib.h>

#include "base/jsonw.h"
#include "cli/cmd.h"
#include "cli/out.h"
#include "scan/recorder.h"
#include "scan/stuck.h"

static void write_group(struct fr_jsonw *w, const struct fr_recorder *rec, uint32_t group)
{
    const struct fr_rec_group *g = &rec->groups[group];

    fr_jsonw_str(w, "group", g->desc[0] ? g->desc : g->name);
    fr_jsonw_str(w, "group_name", g->name);
    fr_jsonw_arr(w, "group_ranks");
    for (uint32_t i = 0; i < g->nmembers; i++)
        fr_jsonw_int(w, NULL, g->members[i]);
    fr_jsonw_end_arr(w);
}

static void write_sequence(struct fr_jsonw *w, int64_t seq)
{
    if (seq >= 0)
        fr_jsonw_int(w, "sequence", seq);
    else
        fr_jsonw_null(w, "sequence");
}

static void write_dumps(struct fr_jsonw *w, const struct fr_recorder *rec)
{
    fr_jsonw_obj(w, "dumps");
    fr_jsonw_uint(w, "read", rec->ndumps);
    fr_jsonw_str(w, "version", rec->ndumps ? rec->dumps[0].version : NULL);
    fr_jsonw_arr(w, "empty");
    for (size_t i = 0; i < rec->ndumps; i++)
        if (rec->dumps[i].nentries == 0)
            fr_jsonw_int(w, NULL, rec->dumps[i].rank);
    fr_jsonw_end_arr(w);
    fr_jsonw_arr(w, "missing");
    for (size_t i = 0; i < rec->nmissing; i++)
        fr_jsonw_int(w, NULL, rec->missing[i]);
    fr_jsonw_end_arr(w);
    fr_jsonw_arr(w, "unreadable");
    for (size_t i = 0; i < rec->nfaults; i++) {
        fr_jsonw_obj(w, NULL);
        fr_jsonw_int(w, "rank", rec->faults[i].rank);
        fr_jsonw_str(w, "error", rec->faults[i].text);
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
    fr_jsonw_end_obj(w);
}

static void write_culprit(struct fr_jsonw *w, const struct fr_recorder *rec,
                          const struct fr_stuck_culprit *c)
{
    fr_jsonw_obj(w, NULL);
    fr_jsonw_int(w, "rank", c->rank);
    fr_jsonw_str(w, "rule", fr_stuck_rule_name(c->rule));
    write_group(w, rec, c->group);
    write_sequence(w, c->sequence);
    fr_jsonw_num(w, "confidence", c->confidence);
    fr_jsonw_str(w, "evidence", c->evidence);
    fr_jsonw_end_obj(w);
}

static void write_json(struct fr_jsonw *w, const struct fr_recorder *rec, const struct fr_stuck *s)
{
    fr_jsonw_obj(w, NULL);
    fr_jsonw_str(w, "schema", "fullrank.scan-flight-recorder/1");
    fr_jsonw_str(w, "state", fr_stuck_state_name(s->state));
    fr_jsonw_arr(w, "culprits");
    for (size_t i = 0; i < s->nculprits; i++)
        write_culprit(w, rec, &s->culprits[i]);
    fr_jsonw_end_arr(w);
    fr_jsonw_uint(w, "victims", s->victims);
    fr_jsonw_arr(w, "stuck_groups");
    for (size_t i = 0; i < s->ngroups; i++) {
        const struct fr_stuck_group *g = &s->groups[i];

        fr_jsonw_obj(w, NULL);
        write_group(w, rec, g->group);
        write_sequence(w, g->sequence);
        fr_jsonw_str(w, "operation", rec->names[g->op]);
        fr_jsonw_uint(w, "waiting", g->waiting);
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
    write_dumps(w, rec);
    fr_jsonw_end_obj(w);
}

static void print_people(struct fr_buf *b, const struct fr_recorder *rec, const struct fr_stuck *s)
{
    static const char *const STATE[] = {
        [FR_STUCK_IDLE] = "no operation is incomplete: the hang, if there is one, is outside of "
                          "collectives",
        [FR_STUCK_NAMED] = "",
        [FR_STUCK_ALL_ENTERED] = "nobody can be named: all members are inside their operations and "
                                 "none leaves (the transport, or what lies under it)",
        [FR_STUCK_CIRCULAR] = "nobody can be named: ranks wait for each other in a circle (the "
                              "order of operations differs between them)",
    };

    for (size_t i = 0; i < s->nculprits; i++) {
        const struct fr_stuck_culprit *c = &s->culprits[i];
        const struct fr_rec_group *g = &rec->groups[c->group];

        fr_buf_printf(b, "rank %d: %s in ", (int)c->rank, fr_stuck_rule_name(c->rule));
        fr_table_safe(b, g->desc[0] ? g->desc : g->name);
        if (c->sequence >= 0)
            fr_buf_printf(b, ", sequence %lld", (long long)c->sequence);
        fr_buf_puts(b, "\n  ");
        fr_table_safe(b, c->evidence);
        fr_buf_putc(b, '\n');
    }
    if (s->nculprits == 0)
        fr_buf_printf(b, "%s\n", STATE[s->state]);
    fr_buf_printf(b,
                  "%zu dumps read, %zu ranks left none or none that can be read; %u ranks wait "
                  "in %zu groups\n",
                  rec->ndumps, rec->nmissing, s->victims, s->ngroups);
    for (size_t i = 0; i < rec->nfaults; i++) {
        fr_buf_puts(b, "not read: ");
        fr_table_safe(b, rec->faults[i].text);
        fr_buf_putc(b, '\n');
    }
}

int fr_cmd_scan_flight_recorder(struct fr_cli *cli, int n, char **operands)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    struct fr_recorder rec;
    struct fr_stuck s = {0};
    int rc;

    (void)n;
    fr_recorder_init(&rec);
    rc = fr_recorder_read(&rec, operands[0], &err);
    if (rc == 0 && rec.ndumps == 0) /* not one of them is a dump: say why, of the first */
        rc = fr_fail(&err, -1, "%s: no dump can be read: %s", operands[0],
                     rec.nfaults ? rec.faults[0].text : "none is there");
    if (rc == 0) {
        fr_stuck_judge(&rec, &s);
        if (cli->format == FR_FORMAT_TABLE) {
            print_people(&b, &rec, &s);
        } else {
            struct fr_jsonw w;

            fr_jsonw_init(&w, &b);
            write_json(&w, &rec, &s);
            fr_buf_putc(&b, '\n');
        }
        fr_out_write(&b);
    }
    fr_stuck_fini(&s);
    fr_recorder_fini(&rec);
    return rc < 0 ? fr_cli_fail(FR_EXIT_FAILED, &err) : 0;
}
