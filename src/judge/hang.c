/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hang.c - why nothing moves: dead, other call, stopped, or waited for
 *
 * The rules are asked in this order (judge.c); one that finds something ends the questioning.
 *
 * dead:     the earliest process that is gone without a goodbye; those that die after it are
 * followers, because launchers kill the rest. It is named when every agent has been heard after it,
 * so that an earlier death on another node cannot still be under way. The launcher's own word
 * settles ties and contradictions. mismatch: two members in different operations at one sequence of
 * one communicator, standing for a second. stopped:  a process stopped without a break, and no
 * progress of its rank since. quiet:    nobody moves. The wait-for graph has an edge from a rank
 * inside a collective to each member that has not entered that sequence, and from a rank inside a
 * point-to-point call to its peer. Ranks without an edge, waited for by others, are the sinks;
 * everybody else is a victim. One sink (or sinks of one node) is named, otherwise it is a stall.
 * Inner groups (tp) come before outer ones (pp, dp) by themselves: whoever waits in an inner group
 * has an edge there and is no sink of the outer one.
 *
 * Source:  detection.md of the design, sections 0.4, 0.6 and 4; rules A (never entered) and B
 * (oldest incomplete) are exact on the four labelled Flight Recorder runs known.
 */
#include <math.h>
#include <string.h>

#include "judge/state.h"

#define SIG_TERM           15
#define FOLLOW_NS          (5 * NS_PER_S) /* deaths so much later are still followers of the first */
#define TIE_NS             (NS_PER_S / 4) /* two deaths so close are told apart by their signals */
#define SETTLE_NS          (3 * NS_PER_S / 10) /* longest wait for the other agents */
#define HEARD_SLACK_NS     (NS_PER_S / 50)
#define MISMATCH_STANDS_NS NS_PER_S
#define STOP_SLACK_NS      (NS_PER_S / 20) /* a movement can be seen a sample later than the stop */
#define QUIET_STEPS        2.0 /* a job with long steps is not quiet before so many of them */

static double seconds(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) * 1e-9 : 0;
}

static uint32_t inside_op(const struct rank *r)
{
    return r->now_known && r->inside ? r->now.op : FR_OP_NONE;
}

/* What it is inside of, the wait's own operation for a wait. */
static uint32_t blocking_op(const struct rank *r)
{
    uint32_t op = inside_op(r);

    return op == FR_OP_WAIT && r->now.waits_for ? r->now.waits_for : op;
}

static uint32_t count_blocked(const struct fr_judge *j, uint32_t but)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < j->nranks; i++)
        n += i != but && inside_op(&j->ranks[i]) != FR_OP_NONE && !j->ranks[i].dead_ns;
    return n;
}

double fr_judge_silence_limit_s(const struct fr_judge *j)
{
    return fmax(j->cfg.stall_floor_s, j->cfg.stall_factor * j->longest_stall_s);
}

/* --- dead --- */

static int is_dead(const struct rank *r)
{
    return r->dead_ns && !fr_judge_rank_is_over(r);
}

/* The first death. SIGTERM is what launchers send: among deaths that lie close together it is a
 * follower's. */
static int first_dead(const struct fr_judge *j)
{
    int first = -1, best = -1;

    for (uint32_t i = 0; i < j->nranks; i++)
        if (is_dead(&j->ranks[i]) && (first < 0 || j->ranks[i].dead_ns < j->ranks[first].dead_ns))
            first = (int)i;
    /* Also a rank that left with code 0 but without MPI_Finalize, when the launcher says so. */
    if (j->launcher_rank >= 0 && !j->ranks[j->launcher_rank].proc.finalized) {
        const struct rank *r = &j->ranks[j->launcher_rank];

        if (first < 0 || !is_dead(r) || r->dead_ns <= j->ranks[first].dead_ns + FOLLOW_NS)
            return j->launcher_rank;
    }
    for (uint32_t i = 0; i < j->nranks; i++)
        if (first >= 0 && is_dead(&j->ranks[i]) && j->ranks[i].proc.exit_signal != SIG_TERM &&
            j->ranks[i].dead_ns <= j->ranks[first].dead_ns + TIE_NS &&
            (best < 0 || j->ranks[i].dead_ns < j->ranks[best].dead_ns))
            best = (int)i;
    return best >= 0 ? best : first;
}

/* 1 when no earlier death can still be under way from another agent. */
static int deaths_are_settled(const struct fr_judge *j, uint64_t died_ns, uint64_t now_ns)
{
    if (now_ns >= died_ns + SETTLE_NS)
        return 1;
    for (uint32_t i = 0; i < j->nnodes; i++)
        if (j->nodes[i].heard_ns && j->nodes[i].heard_ns < died_ns + HEARD_SLACK_NS)
            return 0;
    return 1;
}

int fr_judge_rule_dead(struct fr_judge *j, uint64_t now_ns, struct findings *to)
{
    int first = first_dead(j);
    uint32_t followers = 0;
    struct fr_finding *f;
    const struct rank *r;
    int by_launcher = first >= 0 && first == j->launcher_rank;

    if (first < 0)
        return 0;
    r = &j->ranks[first];
    if (!by_launcher && !deaths_are_settled(j, r->dead_ns, now_ns))
        return 0;
    for (uint32_t i = 0; i < j->nranks; i++)
        followers += (int)i != first && is_dead(&j->ranks[i]);

    f = fr_judge_add(to, FR_FINDING_DEAD, FR_SUBJECT_RANK, (uint64_t)first);
    f->rank = first;
    f->node = (int32_t)r->node;
    f->cause = FR_CAUSE_UNKNOWN;
    f->since_ns = r->dead_ns ? r->dead_ns : j->launcher_ns;
    if (f->since_ns > now_ns)
        f->since_ns = now_ns;
    f->since_step = r->step_begun;
    f->quiet_ns = now_ns > j->last_move_ns ? now_ns - j->last_move_ns : 0;
    f->victims = j->nranks - 1;
    if (r->dead_ns) {
        f->witnesses |= FR_WITNESS_GONE;
        fr_judge_say(f, "the process of rank %d was seen %s %.2f s ago", first,
                     r->proc.state == FR_PROC_ZOMBIE ? "dead (zombie)" : "gone",
                     seconds(f->since_ns, now_ns));
    }
    if (by_launcher) {
        f->witnesses |= FR_WITNESS_LAUNCHER;
        fr_judge_say(f, "the launcher names rank %d as the first to fail (signal %d)", first,
                     j->launcher_signal);
    }
    if (r->proc.exit_signal > 0)
        fr_judge_say(f, "it was ended by signal %d", r->proc.exit_signal);
    else if (r->proc.exit_code > 0) {
        f->cause = FR_CAUSE_APPLICATION;
        fr_judge_say(f, "it ended by itself with code %d", r->proc.exit_code);
    }
    if (followers)
        fr_judge_say(f, "%u other ranks died after it, as launchers do it", followers);
    f->confidence = f->witnesses == (FR_WITNESS_GONE | FR_WITNESS_LAUNCHER) ? 0.99
                    : r->dead_ns                                            ? 0.97
                                                                            : 0.9;
    return 1;
}

/* --- silent --- */

void fr_judge_rule_silent(struct fr_judge *j, uint64_t now_ns, struct findings *to)
{
    uint32_t silent = 0, heard = 0;

    for (uint32_t i = 0; i < j->nnodes; i++)
        heard += j->nodes[i].heard_ns != 0;
    if (heard == 0)
        return;
    /* an agent that was never heard counts from the attempt's begin, once any other was heard */
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < j->nnodes; i++) {
            uint64_t since = j->nodes[i].heard_ns ? j->nodes[i].heard_ns : j->begin_ns;
            struct fr_finding *f;

            if (j->nodes[i].nranks == 0 || seconds(since, now_ns) <= j->cfg.agent_silent_s)
                continue;
            if (pass == 0) {
                silent++;
                continue;
            }
            if (silent == j->nnodes && silent > 1) {
                f = fr_judge_add(to, FR_FINDING_SILENT, FR_SUBJECT_JOB, 0);
                fr_judge_say(f,
                             "no agent of this job is heard of: the trouble may be on this side");
                f->since_ns = since;
                f->confidence = 0.5;
                return;
            }
            f = fr_judge_add(to, FR_FINDING_SILENT, FR_SUBJECT_NODE, i);
            f->node = (int32_t)i;
            f->since_ns = since;
            f->confidence = 0.9;
            f->witnesses = FR_WITNESS_SILENCE;
            fr_judge_say(f, "its agent was last heard %.1f s ago; what its ranks do is not known",
                         seconds(since, now_ns));
        }
}

/* --- mismatch --- */

/* Bytes are part of the signature where each member must give the same. */
static int bytes_must_agree(uint32_t op)
{
    return op == FR_OP_ALLREDUCE || op == FR_OP_REDUCE || op == FR_OP_BCAST;
}

static int differs(const struct member *a, const struct member *b)
{
    if (a->op != b->op)
        return 1;
    /* a derived type may match a plain one: only two plain ones can be told apart */
    if (a->op != FR_OP_BARRIER && a->dtype > FR_DTYPE_BYTE && b->dtype > FR_DTYPE_BYTE &&
        a->dtype != b->dtype)
        return 1;
    return bytes_must_agree(a->op) && a->bytes != b->bytes;
}

/* The members that are inside the communicator's highest sequence and differ; the odd one of them,
 * -1: none. */
static int odd_member(const struct fr_judge *j, const struct comm *c, uint64_t now_ns,
                      uint64_t *ret_seq, int *ret_other)
{
    uint64_t seq = 0;
    int odd = -1;
    uint32_t most = 0, fewest = UINT32_MAX;

    for (uint32_t i = 0; i < c->size; i++)
        if (c->members[i].enqueued > c->members[i].completed && c->members[i].enqueued > seq)
            seq = c->members[i].enqueued;
    if (seq == 0)
        return -1;
    for (uint32_t i = 0; i < c->size; i++) {
        const struct member *m = &c->members[i];
        int rank = fr_judge_member(c, i), other = -1;
        uint32_t like = 0, unlike = 0;

        if (m->enqueued != seq || m->completed >= seq || rank < 0 ||
            fr_judge_rank_is_silent(j, (uint32_t)rank, now_ns))
            continue;
        for (uint32_t k = 0; k < c->size; k++)
            if (k != i && c->members[k].enqueued == seq && c->members[k].completed < seq) {
                like += !differs(m, &c->members[k]);
                if (differs(m, &c->members[k])) {
                    unlike++;
                    other = (int)k;
                }
            }
        if (unlike == 0) {
            if (like) /* the common case: all are alike, one comparison over all is enough */
                return -1;
            continue;
        }
        if (like < fewest) {
            fewest = like;
            odd = (int)i;
            *ret_other = other;
        }
        most = like > most ? like : most;
        if (i >= 8 && odd >= 0 && most > fewest)
            break; /* both sides are known: no need for all pairs of a large group */
    }
    *ret_seq = seq;
    return odd;
}

int fr_judge_rule_mismatch(struct fr_judge *j, uint64_t now_ns, struct findings *to)
{
    int found = 0;

    if (seconds(j->last_move_ns, now_ns) * 2 < (double)MISMATCH_STANDS_NS * 1e-9)
        return 0; /* who moves is not stuck in a mismatch */
    for (uint32_t k = 0; k < j->ncomms; k++) {
        struct comm *c = &j->comms[k];
        const struct member *m, *o;
        struct fr_finding *f;
        uint64_t seq = 0;
        int other = -1, slot = odd_member(j, c, now_ns, &seq, &other), rank;

        if (slot < 0) {
            c->differ_seq = 0;
            continue;
        }
        if (c->differ_seq != seq) {
            c->differ_seq = seq;
            c->differ_since_ns = now_ns;
        }
        if (now_ns - c->differ_since_ns < MISMATCH_STANDS_NS)
            continue;
        m = &c->members[slot];
        o = &c->members[other];
        rank = fr_judge_member(c, (uint32_t)slot);
        f = fr_judge_add(to, FR_FINDING_MISMATCH, FR_SUBJECT_RANK, (uint64_t)rank);
        f->rank = rank;
        f->node = (int32_t)j->ranks[rank].node;
        f->group_hash = c->key.members_hash;
        f->group_instance = c->key.instance;
        f->cause = FR_CAUSE_APPLICATION;
        f->witnesses = FR_WITNESS_MISMATCH;
        f->confidence = 0.95;
        f->since_ns = c->differ_since_ns;
        f->since_step = j->ranks[rank].step_begun;
        f->quiet_ns = now_ns - j->last_move_ns;
        f->victims = count_blocked(j, (uint32_t)rank);
        fr_judge_say(f,
                     "at operation %llu of group %s rank %d is in %s (%llu bytes, type %u), rank "
                     "%d in %s (%llu bytes, type %u)",
                     (unsigned long long)seq, c->name[0] ? c->name : "?", rank, fr_op_name(m->op),
                     (unsigned long long)m->bytes, m->dtype, fr_judge_member(c, (uint32_t)other),
                     fr_op_name(o->op), (unsigned long long)o->bytes, o->dtype);
        found++;
    }
    return found;
}

/* --- stopped --- */

static int is_stopped(const struct fr_judge *j, uint32_t rank, uint64_t now_ns)
{
    const struct rank *r = &j->ranks[rank];
    uint64_t since = r->proc.state_since_ns, heard = j->nodes[r->node].heard_ns,
             until = heard && heard < now_ns ? heard : now_ns;

    /* As far as its agent was heard: a stop that was reported and a report that is late are not a
     * standing stop. */
    return r->proc_known && r->proc.state == FR_PROC_STOPPED && !r->proc.finalized && since &&
           until > since && seconds(since, until) >= j->cfg.stop_confirm_s &&
           r->moved_ns <= since + STOP_SLACK_NS && !fr_judge_rank_is_silent(j, rank, now_ns);
}

int fr_judge_rule_stopped(struct fr_judge *j, uint64_t now_ns, struct findings *to)
{
    uint32_t stopped = 0, alive = 0;
    int found = 0;

    for (uint32_t i = 0; i < j->nranks; i++) {
        stopped += j->ranks[i].proc_known && j->ranks[i].proc.state == FR_PROC_STOPPED;
        alive += !fr_judge_rank_is_over(&j->ranks[i]);
    }
    if (stopped == 0 || (stopped == alive && alive > 1))
        return 0; /* all of them: somebody suspended the job, fr_judge_rule_quiet says so */
    for (uint32_t n = 0; n < j->nnodes; n++) {
        uint32_t here = 0;
        int rank = -1;
        struct fr_finding *f;
        const struct rank *r;

        for (uint32_t i = 0; i < j->nranks; i++)
            if (j->ranks[i].node == n && is_stopped(j, i, now_ns)) {
                if (rank < 0 ||
                    j->ranks[i].proc.state_since_ns < j->ranks[rank].proc.state_since_ns)
                    rank = (int)i;
                here++;
            }
        if (here == 0)
            continue;
        r = &j->ranks[rank];
        f = here > 1 ? fr_judge_add(to, FR_FINDING_HANG, FR_SUBJECT_NODE, n)
                     : fr_judge_add(to, FR_FINDING_HANG, FR_SUBJECT_RANK, (uint64_t)rank);
        f->rank = rank;
        f->node = (int32_t)n;
        f->cause = FR_CAUSE_HOST;
        f->witnesses = FR_WITNESS_STOPPED;
        f->confidence = 0.97;
        f->since_ns = r->proc.state_since_ns;
        f->since_step = r->step_begun;
        f->quiet_ns = now_ns > j->last_move_ns ? now_ns - j->last_move_ns : 0;
        f->victims = count_blocked(j, (uint32_t)rank);
        if (f->victims)
            f->witnesses |= FR_WITNESS_SILENCE;
        fr_judge_say(f, "the process of rank %d has been stopped (T) for %.1f s without a break",
                     rank, seconds(r->proc.state_since_ns, now_ns));
        fr_judge_say(f, "it was %s%s; %u ranks are inside a call and wait",
                     inside_op(r) ? "inside " : "outside of any call",
                     inside_op(r) ? fr_op_name(inside_op(r)) : "", f->victims);
        found++;
    }
    return found;
}

/* --- quiet --- */

enum { MARK_NONE = 0, MARK_BLOCKED = 1, MARK_SINK = 2 };

struct graph {
    struct fr_judge *j;
    uint64_t now_ns;
    uint32_t blocked, sinks, silent, outside, in_phase;
};

/* The rank's communicator and sequence when it is inside a collective. */
static struct comm *collective_of(struct fr_judge *j, const struct rank *r)
{
    return fr_op_is_collective(blocking_op(r)) ? fr_judge_comm_find(j, r->now.comm) : NULL;
}

/* 1 when the rank waits for another one by name. Marks those it waits for as sinks; who has an edge
 * of its own is unmarked later. All ranks inside one operation have the same edges: they are laid
 * once. */
static int wait_edges(struct graph *g, uint32_t rank)
{
    struct fr_judge *j = g->j;
    const struct rank *r = &j->ranks[rank];
    struct comm *c = collective_of(j, r);
    uint32_t op = blocking_op(r);
    int missing = 0;

    if (op == FR_OP_NONE)
        return 0;
    if (c) {
        if (c->asked_seq == r->now.seq && c->asked_ns == g->now_ns)
            return c->asked_missing; /* a member that is in it has asked already */
        for (uint32_t i = 0; i < c->size; i++) {
            int m = fr_judge_member(c, i);

            if (m < 0 || m == (int)rank || c->members[i].started >= r->now.seq)
                continue;
            missing = 1;
            j->waits[m] |= MARK_SINK;
        }
        c->asked_seq = r->now.seq;
        c->asked_ns = g->now_ns;
        c->asked_missing = missing;
        return missing;
    }
    if ((op == FR_OP_RECV || op == FR_OP_SEND || op == FR_OP_SENDRECV) && r->now.peer >= 0 &&
        (uint32_t)r->now.peer < j->nranks && r->now.peer != (int32_t)rank) {
        j->waits[r->now.peer] |= MARK_SINK;
        return 1;
    }
    return 0;
}

static int is_legitimate_phase(uint32_t phase)
{
    return phase == PHASE_INIT || phase == PHASE_RESTORE || phase == PHASE_EVAL ||
           phase == PHASE_CHECKPOINT;
}

static void build_graph(struct graph *g)
{
    struct fr_judge *j = g->j;

    memset(j->waits, 0, j->nranks * sizeof *j->waits);
    for (uint32_t i = 0; i < j->nranks; i++) {
        const struct rank *r = &j->ranks[i];

        if (fr_judge_rank_is_silent(j, i, g->now_ns)) {
            g->silent++;
            continue;
        }
        g->in_phase += (uint32_t)is_legitimate_phase(r->phase);
        if (fr_judge_rank_is_over(r))
            continue;
        if (inside_op(r) == FR_OP_NONE)
            g->outside++;
        else
            g->blocked++;
        if (wait_edges(g, i))
            j->waits[i] |= MARK_BLOCKED;
    }
    for (uint32_t i = 0; i < j->nranks; i++) {
        if (j->waits[i] & MARK_BLOCKED) /* it waits itself: a victim */
            j->waits[i] &= ~MARK_SINK;
        g->sinks += (j->waits[i] & MARK_SINK) != 0;
    }
}

static int is_suspended(const struct fr_judge *j)
{
    uint32_t stopped = 0;

    for (uint32_t i = 0; i < j->nranks; i++)
        stopped += j->ranks[i].proc_known && j->ranks[i].proc.state == FR_PROC_STOPPED;
    return stopped == j->nranks;
}

static void fill_quiet(struct graph *g, struct fr_finding *f)
{
    struct fr_judge *j = g->j;

    f->since_ns = j->last_move_ns;
    f->quiet_ns = g->now_ns - j->last_move_ns;
    f->witnesses = FR_WITNESS_SILENCE;
}

static int stall(struct graph *g, struct findings *to, const char *why)
{
    struct fr_finding *f = fr_judge_add(to, FR_FINDING_STALL, FR_SUBJECT_JOB, 0);

    fill_quiet(g, f);
    f->confidence = 0.5;
    f->victims = g->blocked;
    for (uint32_t i = 0; i < g->j->nranks; i++)
        if (g->j->ranks[i].step_begun > f->since_step)
            f->since_step = g->j->ranks[i].step_begun;
    fr_judge_say(f, "nothing has moved for %.1f s: %s", (double)f->quiet_ns * 1e-9, why);
    fr_judge_say(f, "%u ranks are inside a call, %u outside, %u on nodes that are not heard of",
                 g->blocked, g->outside, g->silent);
    return 0;
}

/* All members of one communicator are inside the same sequence and it does not end. */
static struct comm *common_operation(struct graph *g)
{
    struct fr_judge *j = g->j;

    for (uint32_t i = 0; i < j->nranks; i++) {
        struct comm *c = collective_of(j, &j->ranks[i]);

        if (c && c->size > 1 && !(j->waits[i] & MARK_BLOCKED) && !j->ranks[i].now.blind)
            return c;
    }
    return NULL;
}

static const char *group_that_waits(struct graph *g, uint32_t sink)
{
    struct fr_judge *j = g->j;
    const struct comm *best = NULL;

    for (uint32_t i = 0; i < j->nranks; i++) {
        struct comm *c = collective_of(j, &j->ranks[i]);

        if (c && fr_judge_slot(j, c, sink, false) >= 0 && (!best || c->size < best->size))
            best = c;
    }
    return best && best->name[0] ? best->name : best ? "a collective" : "a point-to-point call";
}

static int name_sink(struct graph *g, struct findings *to, uint32_t sink)
{
    struct fr_judge *j = g->j;
    const struct rank *r = &j->ranks[sink];
    struct fr_finding *f = g->sinks > 1
                               ? fr_judge_add(to, FR_FINDING_HANG, FR_SUBJECT_NODE, r->node)
                               : fr_judge_add(to, FR_FINDING_HANG, FR_SUBJECT_RANK, sink);
    uint32_t op = inside_op(r);

    fill_quiet(g, f);
    f->rank = (int32_t)sink;
    f->node = (int32_t)r->node;
    f->since_step = r->step_begun;
    f->victims = g->blocked - (op != FR_OP_NONE);
    f->confidence = 0.5 + 0.2 * f->victims / (j->nranks > 1 ? j->nranks - 1 : 1);
    fr_judge_say(
        f, "nothing has moved for %.1f s; %u ranks wait, directly or through others, for rank %u",
        (double)f->quiet_ns * 1e-9, f->victims, sink);
    if (op == FR_OP_NONE)
        fr_judge_say(f,
                     "it has not entered the operation of %s that others are in; it left its last "
                     "call %.1f s ago",
                     group_that_waits(g, sink), seconds(r->now.since_ns, g->now_ns));
    else
        fr_judge_say(f, "it is still inside %s that its peers have left (%s)", fr_op_name(op),
                     group_that_waits(g, sink));
    if (r->proc_known && r->proc.state == FR_PROC_DISK) {
        f->witnesses |= FR_WITNESS_IO;
        f->cause = FR_CAUSE_STORAGE;
        fr_judge_say(f, "its process is blocked in the kernel (D)");
    }
    return 1;
}

int fr_judge_rule_quiet(struct fr_judge *j, uint64_t now_ns, struct findings *hang,
                        struct findings *late)
{
    struct graph g = {.j = j, .now_ns = now_ns};
    double quiet_s = seconds(j->last_move_ns, now_ns), step_s = fr_judge_baseline_s(j),
           name_s = j->cfg.hang_name_s;
    int sink = -1, same_node = 1;
    uint32_t over = 0;
    struct comm *c;

    if (quiet_s < j->cfg.hang_silence_s)
        return 0;
    if (isfinite(step_s))
        name_s = fmax(name_s, QUIET_STEPS * step_s);
    if (quiet_s < name_s)
        return 0;
    for (uint32_t i = 0; i < j->nranks; i++)
        over += (uint32_t)fr_judge_rank_is_over(&j->ranks[i]);
    if (over == j->nranks)
        return 0; /* the job is done */

    build_graph(&g);
    if (g.silent == j->nranks)
        return 0; /* nothing is known, fr_judge_rule_silent says so */
    if (g.silent)
        return stall(&g, late, "some agents are not heard of, so nobody can be named");
    if (is_suspended(j))
        return stall(&g, late, "all processes are stopped: the job was suspended");
    for (uint32_t i = 0; i < j->nranks; i++)
        if (j->waits[i] & MARK_SINK) {
            if (sink >= 0 && j->ranks[i].node != j->ranks[sink].node)
                same_node = 0;
            if (sink < 0)
                sink = (int)i;
        }
    if (sink >= 0 && !same_node)
        return stall(&g, late, "ranks of several nodes have not come");
    if (sink >= 0 && is_legitimate_phase(j->ranks[sink].phase))
        return stall(
            &g, late,
            "the rank that others wait for says that it is busy (start, checkpoint or evaluation)");
    if (sink >= 0 && fr_judge_rank_is_over(&j->ranks[sink]))
        return stall(&g, late, "ranks wait for one that has ended well");
    if (sink >= 0 && j->ranks[sink].now_known)
        return name_sink(&g, hang, (uint32_t)sink);
    if (sink >= 0)
        return stall(&g, late, "what the rank does that others wait for is not known");
    if (g.in_phase)
        return stall(&g, late, "ranks say that they are busy (start, checkpoint or evaluation)");
    c = g.outside == 0 ? common_operation(&g) : NULL;
    if (c) {
        struct fr_finding *f = fr_judge_add(hang, FR_FINDING_HANG, FR_SUBJECT_GROUP,
                                            c->key.members_hash ^ c->key.instance);

        fill_quiet(&g, f);
        f->group_hash = c->key.members_hash;
        f->group_instance = c->key.instance;
        f->cause = FR_CAUSE_NETWORK;
        f->confidence = 0.5;
        f->victims = g.blocked;
        fr_judge_say(
            f,
            "all members of %s have entered and none leaves: the transport, or what lies under it",
            c->name[0] ? c->name : "a communicator");
        return 1;
    }
    return stall(&g, late,
                 g.blocked == 0 ? "all ranks are outside of calls"
                                : "no rank is waited for by name");
}
