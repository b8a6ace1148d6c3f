/* SPDX-License-Identifier: Apache-2.0 */
/* conduct.c - see conduct.h */
#include "cli/conduct.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/inject.h"

#define STEADY_MIN_STEPS                                                                           \
    28 /* after an attempt's first step; the judge needs a picture of what is normal */
#define STEADY_VARY   12
#define MOMENT_MAX_S  0.3
#define SLOW_FACTOR   2.0
#define CLOCK_SLACK_S 0.05 /* the API's times have milliseconds */

/* What each fault must be found as. Nothing on the machine says why a process was killed: naming
 * a cause for it would be a guess. */
static const struct {
    const char *kind, *found, *cause;
    bool whole_node;
} KINDS[] = {{"slow", "slow", "host", true},
             {"hang", "hang", "host", false},
             {"kill", "dead", "unknown", false}};

static size_t kind_of(const char *kind)
{
    size_t i = 0;

    while (i < sizeof KINDS / sizeof KINDS[0] && strcmp(KINDS[i].kind, kind) != 0)
        i++;
    return i;
}

static double mono_s(void)
{
    return (double)fr_mono_ns() / 1e9;
}

static void next_fault(struct fr_conduct *c)
{
    c->state = c->at < c->nfaults ? FR_CONDUCT_STEADY : FR_CONDUCT_OVER;
    c->need_steps = STEADY_MIN_STEPS + fr_rng_below(&c->rng, STEADY_VARY + 1);
    c->delay_s = MOMENT_MAX_S * fr_rng_unit(&c->rng);
    c->since_s = 0;
}

int fr_conduct_init(struct fr_conduct *c, const char *kinds, uint64_t seed, struct fr_err *err)
{
    *c = (struct fr_conduct){.rng = {.s = seed}};
    while (*kinds) {
        size_t n = strcspn(kinds, ",");
        struct fr_fault *f = &c->faults[c->nfaults];

        if (n == 0 || n >= sizeof f->kind || c->nfaults == FR_CONDUCT_FAULTS_MAX)
            return fr_fail(err, -EINVAL,
                           "--faults: \"%.60s\" is not a list of at most %d of slow, hang, kill",
                           kinds, FR_CONDUCT_FAULTS_MAX);
        *f = (struct fr_fault){
            .rank = -1, .named_rank = -1, .detect_s = NAN, .recover_s = NAN, .detect_steps = NAN};
        memcpy(f->kind, kinds, n);
        if (kind_of(f->kind) == sizeof KINDS / sizeof KINDS[0])
            return fr_fail(err, -EINVAL, "--faults: no fault %s (there are slow, hang, kill)",
                           f->kind);
        c->nfaults++;
        kinds += n + (kinds[n] == ',');
    }
    next_fault(c);
    return 0;
}

static void end_slow(struct fr_conduct *c)
{
    if (!c->slow_pid)
        return;
    kill(c->slow_pid, SIGTERM); /* it continues its victims */
    while (waitpid(c->slow_pid, NULL, 0) < 0 && errno == EINTR)
        ;
    c->slow_pid = 0;
}

void fr_conduct_fini(struct fr_conduct *c)
{
    end_slow(c);
}

/* --- making a fault --- */

static volatile sig_atomic_t slow_quit;

static void on_slow_signal(int sig)
{
    slow_quit = sig;
}

/* The process that slows a node down. Only this one: the demo goes on looking meanwhile. */
static int start_slow(struct fr_conduct *c, const struct fr_victims *vs, int64_t *ret_at)
{
    pid_t parent = getpid(), pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        struct sigaction sa = {.sa_handler = on_slow_signal};

        sigaction(SIGTERM, &sa, NULL);
        signal(SIGINT, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == parent)
            fr_inject_slow(vs, SLOW_FACTOR, FR_CONDUCT_NAMED_S + FR_CONDUCT_RECOVER_S, &slow_quit);
        _exit(0);
    }
    c->slow_pid = pid;
    *ret_at = fr_unix_ns();
    return 0;
}

static int strike(struct fr_conduct *c, struct fr_view *v, struct fr_err *err)
{
    const struct fr_json *nodes = fr_json_get(v->data, "node_list");
    struct fr_fault *f = &c->faults[c->at];
    size_t k = kind_of(f->kind), n = fr_json_len(nodes);
    int64_t ranks = fr_json_int(v->data, "ranks", 0);
    struct fr_victims vs = {0};
    int rc;

    if (n == 0 || ranks <= 0)
        return fr_fail(err, -EAGAIN, "the job has no nodes");
    if (KINDS[k].whole_node)
        snprintf(f->node, sizeof f->node, "%s",
                 fr_json_value_str(fr_json_at(nodes, fr_rng_below(&c->rng, n)), ""));
    else
        f->rank = (int32_t)fr_rng_below(&c->rng, (uint64_t)ranks);
    rc = fr_inject_find(v->client, v->job, f->rank, KINDS[k].whole_node ? f->node : NULL, &vs, err);
    if (rc < 0)
        return rc;
    snprintf(f->node, sizeof f->node, "%s", vs.v[0].node);
    f->attempt = (uint32_t)fr_json_int(v->data, "attempt", 0);
    f->at_step = (uint64_t)fr_json_int(v->data, "step", 0);
    if (strcmp(f->kind, "slow") == 0)
        rc = start_slow(c, &vs, &f->at_unix_ns);
    else
        rc = fr_inject_signal(&vs, strcmp(f->kind, "kill") == 0 ? SIGKILL : SIGSTOP, &f->at_unix_ns,
                              err);
    fr_victims_fini(&vs);
    return rc;
}

/* --- what was found --- */

static bool after(const struct fr_json *x, const char *key, int64_t t_ns, double *ret_s)
{
    const char *text = fr_json_str(x, key, NULL);
    int64_t at;

    if (!text || fr_time_parse(text, 0, &at) < 0)
        return false;
    *ret_s = (double)(at - t_ns) / 1e9;
    return *ret_s > -CLOCK_SLACK_S;
}

/* The first finding after the fault that puts the blame on somebody. */
static bool look_for_finding(struct fr_fault *f, const struct fr_view *v)
{
    static const char *const BLAME[] = {"dead", "hang", "mismatch", "slow"};
    const struct fr_json *items = fr_json_get(v->incidents, "items"), *best = NULL;
    double best_s = INFINITY;
    size_t k = kind_of(f->kind);

    for (size_t i = 0; i < fr_json_len(items); i++) {
        const struct fr_json *x = fr_json_at(items, i);
        bool blames = false;
        double s;

        for (size_t b = 0; b < sizeof BLAME / sizeof BLAME[0]; b++)
            blames = blames || strcmp(fr_json_str(x, "kind", ""), BLAME[b]) == 0;
        if (blames && fr_json_int(x, "attempt", -1) == (int64_t)f->attempt &&
            after(x, "named_at", f->at_unix_ns, &s) && s < best_s) {
            best = x;
            best_s = s;
        }
    }
    if (!best)
        return false;
    f->incident = fr_json_int(best, "id", 0);
    f->detect_s = best_s > 0 ? best_s : 0;
    snprintf(f->named_kind, sizeof f->named_kind, "%s", fr_json_str(best, "kind", ""));
    snprintf(f->named_node, sizeof f->named_node, "%s", fr_json_str(best, "node", ""));
    snprintf(f->named_cause, sizeof f->named_cause, "%s", fr_json_str(best, "cause", "unknown"));
    f->named_rank = (int32_t)fr_json_int(best, "rank", -1);
    if (fr_json_int(best, "named_step", 0) > 0)
        f->detect_steps = fmax(0, fr_json_num(best, "named_step", NAN) - (double)f->at_step);
    f->correct = strcmp(f->named_kind, KINDS[k].found) == 0 &&
                 strcmp(f->named_cause, KINDS[k].cause) == 0 &&
                 strcmp(f->named_node, f->node) == 0 && (f->rank < 0 || f->named_rank == f->rank);
    return true;
}

static bool look_for_recovery(struct fr_fault *f, const struct fr_view *v)
{
    const struct fr_json *attempts = fr_json_get(v->data, "attempts"),
                         *decisions = fr_json_get(v->decisions, "items");
    double s;

    for (size_t i = 0; i < fr_json_len(decisions); i++) {
        const struct fr_json *d = fr_json_at(decisions, i);

        if (fr_json_int(d, "incident", 0) == f->incident &&
            strcmp(fr_json_str(d, "choice", ""), "isolate") == 0 &&
            strcmp(fr_json_str(d, "node", ""), f->node) == 0)
            f->isolated = true;
    }
    for (size_t i = 0; i < fr_json_len(attempts); i++) {
        const struct fr_json *a = fr_json_at(attempts, i);

        if (fr_json_int(a, "attempt", 0) > (int64_t)f->attempt &&
            after(a, "first_step_at", f->at_unix_ns, &s)) {
            f->recover_s = s;
            return true;
        }
    }
    return false;
}

static void say_found(struct fr_view *v, const struct fr_fault *f)
{
    fr_view_say(v, "COMPARE  %s on %s was found after %.2f s as %s %s: %s", f->kind, f->node,
                f->detect_s, f->named_kind, f->named_node, f->correct ? "right" : "WRONG");
}

static bool is_steady(struct fr_conduct *c, const struct fr_view *v)
{
    uint32_t attempt = (uint32_t)fr_json_int(v->data, "attempt", 0);
    uint64_t step = (uint64_t)fr_json_int(v->data, "step", 0);
    const struct fr_json *attempts = fr_json_get(v->data, "attempts");

    if (strcmp(fr_view_state(v), "running") != 0)
        return false;
    for (size_t i = 0; i < fr_json_len(attempts); i++) {
        const struct fr_json *a = fr_json_at(attempts, i);

        if (fr_json_int(a, "attempt", 0) == (int64_t)attempt) {
            uint64_t first = (uint64_t)fr_json_int(a, "first_step", 0);

            return first > 0 && step >= first + c->need_steps;
        }
    }
    return false;
}

/* A node that was taken out and has passed its test since. */
static void say_spares(struct fr_conduct *c, struct fr_view *v)
{
    const struct fr_json *nodes = fr_json_get(v->nodes, "items");

    for (size_t i = 0; i < c->nfaults; i++)
        for (size_t k = 0; k < fr_json_len(nodes); k++) {
            const struct fr_json *n = fr_json_at(nodes, k);
            const char *state = fr_json_str(n, "state", "");

            if (!c->faults[i].node[0] || strcmp(fr_json_str(n, "node", ""), c->faults[i].node) != 0)
                continue;
            if (strcmp(state, "drained") == 0 || strcmp(state, "verifying") == 0) {
                c->out[i] = true;
            } else if (c->out[i] &&
                       (strcmp(state, "probation") == 0 || strcmp(state, "healthy") == 0)) {
                c->out[i] = false;
                fr_view_say(v, "SPARE    %s passed its test and is a spare again",
                            c->faults[i].node);
            }
        }
}

bool fr_conduct_tick(struct fr_conduct *c, struct fr_view *v)
{
    struct fr_fault *f = &c->faults[c->at];
    struct fr_err err = FR_ERR_INIT;

    say_spares(c, v);
    switch (c->state) {
    case FR_CONDUCT_STEADY:
        if (!is_steady(c, v))
            break;
        poll(NULL, 0, (int)(c->delay_s * 1e3)); /* the moment within a step is left to chance */
        if (strike(c, v, &err) < 0)
            break; /* the attempt is just ending: another try when it is steady again */
        if (f->rank >= 0)
            fr_view_say(v, "FAULT    %s rank %d on %s", f->kind, (int)f->rank, f->node);
        else
            fr_view_say(v, "FAULT    %s: %s at half speed", f->kind, f->node);
        c->since_s = mono_s();
        c->state = FR_CONDUCT_NAMED;
        break;
    case FR_CONDUCT_NAMED:
        if (look_for_finding(f, v)) {
            say_found(v, f);
            c->since_s = mono_s();
            c->state = FR_CONDUCT_RECOVERED;
        } else if (mono_s() - c->since_s > FR_CONDUCT_NAMED_S) {
            fr_view_say(v, "COMPARE  %s on %s was NOT found within %.0f s", f->kind, f->node,
                        FR_CONDUCT_NAMED_S);
            end_slow(c);
            c->at++;
            next_fault(c);
        }
        break;
    case FR_CONDUCT_RECOVERED:
        if (look_for_recovery(f, v)) {
            fr_view_say(v, "RECOVER  first step of the next attempt %.2f s after the fault",
                        f->recover_s);
            end_slow(c);
            c->at++;
            next_fault(c);
        } else if (mono_s() - c->since_s > FR_CONDUCT_RECOVER_S) {
            fr_view_say(v, "COMPARE  no new attempt made a step within %.0f s of the finding",
                        FR_CONDUCT_RECOVER_S);
            end_slow(c);
            c->at++;
            next_fault(c);
        }
        break;
    case FR_CONDUCT_OVER:
        break;
    }
    return c->state != FR_CONDUCT_OVER;
}

bool fr_conduct_judge(struct fr_conduct *c, const struct fr_view *v)
{
    const struct fr_json *decisions = fr_json_get(v->decisions, "items");
    bool all = true;

    for (size_t i = 0; i < c->nfaults; i++) {
        struct fr_fault *f = &c->faults[i];

        if (f->at_unix_ns && !f->incident)
            look_for_finding(f, v);
        if (f->incident)
            look_for_recovery(f, v);
        all = all && f->correct && f->isolated && !isnan(f->recover_s);
    }
    c->wrong_drains = 0;
    for (size_t i = 0; i < fr_json_len(decisions); i++) {
        const struct fr_json *d = fr_json_at(decisions, i);
        bool right = false;

        if (strcmp(fr_json_str(d, "choice", ""), "isolate") != 0)
            continue;
        for (size_t k = 0; k < c->nfaults; k++)
            right = right || (fr_json_int(d, "attempt", -1) == (int64_t)c->faults[k].attempt &&
                              strcmp(fr_json_str(d, "node", ""), c->faults[k].node) == 0);
        c->wrong_drains += !right;
    }
    return all && c->wrong_drains == 0;
}
