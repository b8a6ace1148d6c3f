/* SPDX-License-Identifier: Apache-2.0 */
/* api_json.c - jobs, attempts, groups, ranks, steps, the account; nodes, incidents and decisions
 * are in api_json_fleet.c */
#include "control/api_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/account.h"
#include "control/ingest.h"
#include "control/jobs.h"
#include "control/steps.h"
#include "fullrank/fullrank.h"
#include "model/op.h"

#define GROUPS_SHOWN 256
#define STEP_WINDOW  12

void fr_json_top(struct fr_jsonw *w, struct fr_buf *out, const char *schema)
{
    fr_jsonw_init(w, out);
    fr_jsonw_obj(w, NULL);
    fr_jsonw_str(w, "schema", schema);
}

static void text_or_none(struct fr_jsonw *w, const char *key, const char *s)
{
    if (s && s[0])
        fr_jsonw_str(w, key, s);
}

static void count_or_none(struct fr_jsonw *w, const char *key, uint64_t v)
{
    if (v)
        fr_jsonw_uint(w, key, v);
}

static void group_name(const struct fr_cjob *j, uint64_t hash, uint32_t instance, char *text,
                       size_t n)
{
    const struct fr_ccomm *s = fr_job_comm(j, hash, instance);

    if (s && s->name[0])
        snprintf(text, n, "%s", s->name);
    else
        snprintf(text, n, "%016llx.%u", (unsigned long long)hash, instance);
}

/* The phase that the job is in: the one that most of its ranks are in. */
static const char *job_phase(const struct fr_cjob *j)
{
    uint32_t count[FULLRANK_PHASE_COUNT] = {0}, best = 0;

    if (!j->judging || !j->ranks)
        return NULL;
    for (uint32_t r = 0; r < j->nranks; r++)
        if (j->ranks[r].known && j->ranks[r].phase < FULLRANK_PHASE_COUNT)
            count[j->ranks[r].phase]++;
    for (uint32_t p = 1; p < FULLRANK_PHASE_COUNT; p++)
        if (count[p] > count[best])
            best = p;
    return count[best] ? fr_phase_name(best) : NULL;
}

void fr_json_job_members(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cjob *j)
{
    const struct fr_cattempt *a = j->nattempts ? &j->attempts[j->nattempts - 1] : NULL;
    double step_s = fr_steps_median_s(j, STEP_WINDOW);
    const char *phase = job_phase(j);

    (void)c;
    fr_jsonw_str(w, "job", j->job);
    fr_jsonw_str(w, "name", j->name);
    text_or_none(w, "user", j->user);
    fr_jsonw_str(w, "engine", j->engine);
    fr_jsonw_raw(w, "command", j->command, strlen(j->command));
    fr_jsonw_str(w, "state", fr_job_state_name(j->state));
    fr_jsonw_str(w, "mode", fr_mode_name(j->mode));
    fr_jsonw_uint(w, "nodes", j->nodes);
    fr_jsonw_uint(w, "ranks_per_node", j->ranks_per_node);
    fr_jsonw_uint(w, "spares", j->spares);
    fr_jsonw_str(w, "restarts_owner", j->restarts_owner[0] ? j->restarts_owner : NULL);
    fr_jsonw_uint(w, "ranks", j->nranks);
    if (a) {
        fr_jsonw_uint(w, "attempt", a->attempt);
        fr_jsonw_uint(w, "epoch", a->epoch);
    }
    fr_jsonw_time(w, "submitted_at", j->submitted_unix_ns);
    fr_jsonw_time(w, "ended_at", j->ended_unix_ns);
    if (fr_job_state_is_end(j->state))
        fr_jsonw_int(w, "exit_code", j->exit_code);
    /* an attempt that has made no step yet stands at the checkpoint that it resumes from */
    count_or_none(w, "step",
                  a && a->last_step       ? a->last_step
                  : a && j->nattempts > 1 ? j->checkpoint_step
                                          : j->step_done);
    count_or_none(w, "total_steps", j->total_steps);
    fr_jsonw_num(w, "loss", j->last_loss);
    fr_jsonw_num(w, "step_s", step_s);
    fr_jsonw_num(w, "baseline_step_s", j->account_ns ? j->account.baseline_step_s : (double)NAN);
    fr_jsonw_num(w, "tokens_per_s", j->tokens_per_step / step_s);
    fr_jsonw_num(w, "mfu_ratio", fr_account_mfu(j));
    fr_jsonw_num(w, "goodput_ratio", j->account_ns ? j->account.goodput_ratio : (double)NAN);
    count_or_none(w, "checkpoint_step", j->checkpoint_step);
    count_or_none(w, "checkpoint_every", j->checkpoint_every);
    if (phase)
        fr_jsonw_str(w, "phase", phase);
    if (a) {
        fr_jsonw_arr(w, "node_list");
        for (uint32_t i = 0; i < a->nnodes; i++)
            fr_jsonw_str(w, NULL, a->nodes[i]->name);
        fr_jsonw_end_arr(w);
    }
    fr_jsonw_uint(w, "restarts", j->nattempts ? j->nattempts - 1 : 0);
    if (j->judge) {
        struct fr_judge_summary sum;

        fr_judge_summary(j->judge, &sum);
        fr_jsonw_num(w, "longest_stall_s", sum.longest_stall_s);
        fr_jsonw_num(w, "act_on_silence_after_s", sum.act_on_silence_after_s);
    }
    text_or_none(w, "note", j->note);
}

void fr_json_attempt(struct fr_jsonw *w, const struct fr_cattempt *a)
{
    fr_jsonw_obj(w, NULL);
    fr_jsonw_uint(w, "attempt", a->attempt);
    fr_jsonw_uint(w, "epoch", a->epoch);
    fr_jsonw_arr(w, "nodes");
    for (uint32_t i = 0; i < a->nnodes; i++)
        fr_jsonw_str(w, NULL, a->nodes[i]->name);
    fr_jsonw_end_arr(w);
    fr_jsonw_time(w, "started_at", a->start_unix_ns);
    fr_jsonw_time(w, "first_step_at", a->first_step_unix_ns);
    fr_jsonw_time(w, "stopped_at", a->stop_unix_ns);
    fr_jsonw_time(w, "ended_at", a->end_unix_ns);
    if (a->first_step_unix_ns) {
        fr_jsonw_uint(w, "first_step", a->first_step);
        fr_jsonw_uint(w, "last_step", a->last_step);
        fr_jsonw_uint(w, "resumed_from", a->resumed_from);
    }
    if (a->end_unix_ns) {
        if (a->exit_code >= 0)
            fr_jsonw_int(w, "exit_code", a->exit_code);
        if (a->exit_signal > 0)
            fr_jsonw_int(w, "exit_signal", a->exit_signal);
    }
    text_or_none(w, "end_reason", a->end_reason);
    count_or_none(w, "decision", a->decision);
    fr_jsonw_end_obj(w);
}

void fr_json_groups(struct fr_jsonw *w, const char *key, const struct fr_cjob *j)
{
    static struct fr_judge_group g[GROUPS_SHOWN]; /* one loop thread */
    size_t n = j->judge ? fr_judge_groups(j->judge, g, GROUPS_SHOWN) : 0;
    char hash[17];

    fr_jsonw_arr(w, key);
    for (size_t i = 0; i < n; i++) {
        fr_jsonw_obj(w, NULL);
        fr_jsonw_str(w, "name", g[i].name);
        snprintf(hash, sizeof hash, "%016llx", (unsigned long long)g[i].key.members_hash);
        fr_jsonw_str(w, "members_hash", hash);
        fr_jsonw_uint(w, "instance", g[i].key.instance);
        fr_jsonw_uint(w, "size", g[i].size);
        fr_jsonw_str(w, "op", fr_op_name(g[i].op));
        fr_jsonw_uint(w, "count", g[i].count);
        fr_jsonw_num(w, "busbw_bytes_per_s", g[i].busbw_bytes_per_s);
        fr_jsonw_num(w, "transfer_s", g[i].transfer_s);
        fr_jsonw_num(w, "wait_s", g[i].wait_s);
        if (g[i].last_rank >= 0)
            fr_jsonw_int(w, "last_rank", g[i].last_rank);
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
}

static const char *bucket_text(const struct fr_cjob *j, enum fr_bucket b)
{
    if (!fr_job_marks_steps(j) && fr_job_has_moved(j)) {
        if (b == FR_BUCKET_LAUNCH)
            return "From the start of the processes to the first collective that all ranks "
                   "completed.";
        if (b == FR_BUCKET_OTHER)
            return "All that the program did from then on: it marks no steps, so what of it was "
                   "productive is not known.";
    }
    return fr_bucket_text(b);
}

void fr_json_goodput_members(struct fr_jsonw *w, const struct fr_cjob *j)
{
    const struct fr_gp_account *g = &j->account;
    int64_t sum = 0;

    if (!j->account_ns)
        return;
    for (int b = 0; b < FR_BUCKETS; b++)
        sum += g->bucket_ns[b];
    fr_jsonw_num(w, "wall_s", (double)g->wall_ns * 1e-9);
    fr_jsonw_num(w, "goodput_ratio", g->goodput_ratio);
    fr_jsonw_num(w, "baseline_step_s", g->baseline_step_s);
    fr_jsonw_uint(w, "steps_kept", g->steps_kept);
    fr_jsonw_uint(w, "steps_redone", g->steps_redone);
    fr_jsonw_num(w, "error_s", (double)(g->wall_ns - sum) * 1e-9);
    fr_jsonw_arr(w, "buckets");
    for (int b = 0; b < FR_BUCKETS; b++) {
        fr_jsonw_obj(w, NULL);
        fr_jsonw_str(w, "name", fr_bucket_name((enum fr_bucket)b));
        fr_jsonw_num(w, "seconds", (double)g->bucket_ns[b] * 1e-9);
        fr_jsonw_num(w, "ratio",
                     g->wall_ns ? (double)g->bucket_ns[b] / (double)g->wall_ns : (double)NAN);
        fr_jsonw_str(w, "text", bucket_text(j, (enum fr_bucket)b));
        fr_jsonw_end_obj(w);
    }
    fr_jsonw_end_arr(w);
}

void fr_json_step_members(struct fr_jsonw *w, const struct fr_cjob *j, size_t i)
{
    const struct fr_gp_step *g = &j->steps[i];
    const struct fr_cstep *s = &j->step_info[i];

    fr_jsonw_uint(w, "cursor", i + 1);
    fr_jsonw_uint(w, "attempt", j->attempts[g->attempt].attempt);
    fr_jsonw_uint(w, "step", g->step);
    fr_jsonw_time(w, "begin_at", g->begin_ns);
    fr_jsonw_time(w, "end_at", g->end_ns);
    fr_jsonw_num(w, "step_s", (double)(g->end_ns - g->begin_ns) * 1e-9);
    fr_jsonw_num(w, "loss", s->loss);
    fr_jsonw_num(w, "tokens", s->tokens);
    fr_jsonw_num(w, "self_max_s", (double)s->self_max_s);
    fr_jsonw_num(w, "self_median_s", (double)s->self_median_s);
    if (s->slowest_rank >= 0)
        fr_jsonw_int(w, "slowest_rank", s->slowest_rank);
}

static const char *proc_state_name(uint32_t s)
{
    static const char *const NAMES[] = {"unknown", "running", "disk", "stopped", "zombie", "gone"};

    return s < sizeof NAMES / sizeof NAMES[0] ? NAMES[s] : "unknown";
}

static void write_grid(struct fr_jsonw *w, const struct fr_crank *k)
{
    static const char *const DIMS[] = {"tp", "cp", "ep", "dp", "pp"}; /* by enum fullrank_dim */

    fr_jsonw_obj(w, "grid");
    for (int d = 0; d < 5; d++)
        if (k->grid_size[d] > 0)
            fr_jsonw_int(w, DIMS[d], k->grid_index[d]);
    fr_jsonw_end_obj(w);
}

void fr_json_rank(struct fr_ctl *c, struct fr_jsonw *w, const struct fr_cjob *j, uint32_t rank)
{
    const struct fr_cattempt *a = &j->attempts[j->nattempts - 1];
    const struct fr_crank *k = &j->ranks[rank];
    struct fr_judge_rank f;
    char group[40];

    fr_jsonw_obj(w, NULL);
    fr_jsonw_uint(w, "rank", rank);
    fr_jsonw_str(w, "node", a->nodes[rank / j->ranks_per_node]->name);
    fr_jsonw_str(w, "state", k->known ? proc_state_name(k->state) : "unknown");
    if (k->known) {
        fr_jsonw_uint(w, "pid", k->pid);
        fr_jsonw_str(w, "phase", fr_phase_name(k->phase));
        count_or_none(w, "step", k->step);
        fr_jsonw_obj(w, "now");
        fr_jsonw_str(w, "op", k->now_op ? fr_op_name(k->now_op) : "compute");
        if (k->now_since_ns && c->now_ns > k->now_since_ns)
            fr_jsonw_num(w, "since_s", (double)(c->now_ns - k->now_since_ns) * 1e-9);
        if (k->now_op && k->now_hash) {
            group_name(j, k->now_hash, k->now_instance, group, sizeof group);
            fr_jsonw_str(w, "group", group);
            fr_jsonw_uint(w, "seq", k->now_seq);
        }
        if (k->now_op && k->now_peer >= 0)
            fr_jsonw_int(w, "peer", k->now_peer);
        fr_jsonw_end_obj(w);
    }
    if (j->judge && fr_judge_rank(j->judge, rank, &f) == 0) {
        fr_jsonw_num(w, "self_s", f.self_s);
        fr_jsonw_num(w, "peers_ratio", f.peers_ratio);
        fr_jsonw_num(w, "late_s", f.late_s);
        fr_jsonw_num(w, "wait_s", f.wait_s);
    }
    if (k->known) {
        fr_jsonw_num(w, "cpu_ratio", k->cpu.ratio);
        fr_jsonw_num(w, "run_delay_ratio", k->run_delay.ratio);
        fr_jsonw_num(w, "stopped_ratio", k->stopped_ratio);
        fr_jsonw_uint(w, "rss_bytes", k->rss_bytes);
        write_grid(w, k);
    }
    fr_jsonw_end_obj(w);
}

void fr_json_ranks_doc(struct fr_ctl *c, const struct fr_cjob *j, struct fr_buf *out)
{
    struct fr_jsonw w;

    fr_json_top(&w, out, "fullrank.rank-list/1");
    fr_jsonw_arr(&w, "items");
    for (uint32_t r = 0; j->ranks && j->nattempts && r < j->nranks; r++)
        fr_json_rank(c, &w, j, r);
    fr_jsonw_end_arr(&w);
    fr_jsonw_end_obj(&w);
}
