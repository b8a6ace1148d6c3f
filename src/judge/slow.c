/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow.c - a rank against those that do the same work, against its own past, and against the job's
 * spread
 *
 * Self time of a step is the time outside calls less the run-queue wait: what is left is the rank's
 * own doing (or somebody's who stops it). For each rank and each half-window of steps the rule
 * takes the median; its ratio is that over the median of the ranks in the same pipeline position on
 * other nodes. How far ratios stray by themselves is learnt from the attempt's own clean
 * half-windows (MAD about their median, the upper half at least), so that a busy machine raises the
 * fence by itself:
 *
 *     threshold = max(slow_min_ratio, 1 + slow_fence x deviation)
 *
 * PEERS: both newest half-windows exceed the threshold.
 * PAST:  both exceed the rank's own clean median by three quarters of that.
 * Both together name it when they have stood for half a window more; PEERS alone needs three
 * windows, and is one witness for the policy. ARRIVAL, from records of kept steps, is another one.
 * Nodes that share a machine also share its caches, its memory and its other guests: timing alone
 * sets one of them apart only when it stands long, whatever its past.
 * A position with no peer on another node is compared by its growth over its own past.
 *
 * Source:  detection.md of the design, sections 0.1, 0.3 and 8; Rousseeuw, Croux (MAD).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/state.h"
#include "stats/robust.h"

#define ALONE_WINDOWS    3    /* PEERS alone must stand for so many windows */
#define SHARED_S         10.0 /* ... and seconds, also with PAST, where nodes share a machine */
#define PERSIST_STEPS    6    /* ... and with PAST so many steps more */
#define SEEN_STEPS       2    /* ... and where the process is seen stopped in turns or throttled */
#define POOL_MIN         16   /* ratios before a spread is believed */
#define PAST_SHARE       0.75 /* of the excess that PEERS asks for must be risen over the own past */
#define BEYOND           1.3  /* of what one ratio in a hundred reaches by itself */
#define UPPER_MIN        32   /* ratios before the upper half is looked at alone */
#define YOUNG            2.0  /* half-windows by which the fence is widened at first */
#define DEVIATION_FLOOR  0.01
#define JOB_SLOW_RATIO   1.5 /* of the job's own good step time */
#define STRUCTURAL_RATIO 1.5 /* of the other positions */
#define STRUCTURAL_RUN   6   /* half-windows */
#define STOPPED_SHARE    0.1
#define THROTTLED_SHARE  0.05
#define STARVED_SHARE    0.1
#define MEMORY_SHARE     0.1
#define LATE_SHARE       0.3 /* of the excess self time that must be seen as lateness */

static uint32_t half_steps(const struct fr_judge *j)
{
    return j->cfg.slow_window_steps / 2;
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;

    return (a > b) - (a < b);
}

static double median_of(double *v, size_t n)
{
    double m = NAN;

    fr_robust_median(v, n, v, &m);
    return m;
}

/* How much of the time between the last two looks at the process a total grew by. */
static double share(uint64_t a, uint64_t b, const struct rank *r)
{
    if (r->older.at_ns == 0 || r->old.at_ns <= r->older.at_ns || b < a)
        return 0;
    return (double)(b - a) / (double)(r->old.at_ns - r->older.at_ns);
}

/* Its process is seen stopped in turns, or throttled: a witness besides the timing. */
static bool is_seen(const struct rank *r)
{
    return r->proc.stopped_ratio > STOPPED_SHARE ||
           share(r->older.throttled_ns, r->old.throttled_ns, r) > THROTTLED_SHARE;
}

void fr_judge_note_seen(struct rank *r)
{
    if (!is_seen(r))
        r->seen_since_ns = 0;
    else if (!r->seen_since_ns)
        r->seen_since_ns = r->proc.observed_ns ? r->proc.observed_ns : 1;
}

/* Typical self time over n steps that end with `last`: the median, which no collection of garbage
 * moves. Of a rank that is seen stopped or throttled it is the mean without the smallest and the
 * largest: such a rank is hit in about every other step, and a median would flip between the two.
 * NaN when a third of the steps is not known. */
static double self_typical(struct fr_judge *j, const struct rank *r, uint64_t last, uint32_t n)
{
    double *v = j->scratch + 2 * (size_t)j->nranks, sum = 0, least = INFINITY, most = 0;
    size_t k = 0;

    for (uint32_t i = 0; i < n && i < last; i++) {
        double s = (double)r->self_s[(last - i) % STEPS_KEPT];

        if (!isfinite(s))
            continue;
        v[k++] = s;
        sum += s;
        least = fmin(least, s);
        most = fmax(most, s);
    }
    if (3 * k < 2 * (size_t)n)
        return NAN;
    return k < 4 || !is_seen(r) ? median_of(v, k) : (sum - least - most) / (double)(k - 2);
}

static int32_t position_of(const struct rank *r)
{
    return r->size[DIM_PP] > 0 ? r->index[DIM_PP] : 0;
}

static double past_median(const struct fr_judge *j, const struct rank *r)
{
    double *v = j->scratch + 2 * (size_t)j->nranks;
    uint32_t n = r->npast < PAST_KEPT ? r->npast : PAST_KEPT;

    for (uint32_t i = 0; i < n; i++)
        v[i] = (double)r->past_s[i];
    return median_of(v, n);
}

/* --- ratios --- */

#define LARGE_COHORT 256 /* the ranks of one node no longer move its median */

static __thread const double *sort_by; /* qsort has no argument of its own */

static int by_rank_value(const void *pa, const void *pb)
{
    double a = sort_by[*(const uint32_t *)pa], b = sort_by[*(const uint32_t *)pb];

    return (a > b) - (a < b);
}

/* The median of order[0..n), sorted by value, without the `here` ranks that are on `node`. */
static double median_elsewhere(const struct fr_judge *j, uint32_t n, const double *value,
                               uint32_t node, uint32_t here)
{
    uint32_t others = n - here, seen = 0;
    double low = NAN;

    if (n > LARGE_COHORT)
        return value[j->order[n / 2]];
    for (uint32_t i = 0; i < n; i++) {
        double v = value[j->order[i]];

        if (j->ranks[j->order[i]].node == node)
            continue;
        if (seen == (others - 1) / 2)
            low = v;
        if (seen++ == others / 2)
            return 0.5 * (low + v);
    }
    return NAN;
}

/* ratio[rank] = value[rank] over the median of the ranks on other nodes, among ranks of one
 * position (-1: all). */
static void ratios_of_position(struct fr_judge *j, int32_t pp, const double *value, double *ratio)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < j->nnodes; i++)
        j->nodes[i].in_position = 0;
    for (uint32_t i = 0; i < j->nranks; i++)
        if ((pp < 0 || position_of(&j->ranks[i]) == pp) && isfinite(value[i]) && value[i] > 0) {
            j->order[n++] = i;
            j->nodes[j->ranks[i].node].in_position++;
        }
    sort_by = value;
    qsort(j->order, n, sizeof *j->order, by_rank_value);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = j->order[i], node = j->ranks[rank].node, here = j->nodes[node].in_position;

        if (here < n)
            ratio[rank] = value[rank] / median_elsewhere(j, n, value, node, here);
    }
}

/* Ratios of all ranks for the half-windows that end with `last`. */
static void ratios_at(struct fr_judge *j, uint64_t last, float *(*half)(struct rank *),
                      float *(*to)(struct rank *))
{
    double *value = j->scratch, *ratio = j->scratch + j->nranks;
    int32_t positions = 1;
    uint32_t alone = 0;

    for (uint32_t i = 0; i < j->nranks; i++) {
        value[i] = self_typical(j, &j->ranks[i], last, half_steps(j));
        *half(&j->ranks[i]) = (float)value[i];
        ratio[i] = NAN;
        if (position_of(&j->ranks[i]) >= positions)
            positions = position_of(&j->ranks[i]) + 1;
    }
    for (int32_t pp = 0; pp < positions; pp++)
        ratios_of_position(j, pp, value, ratio);
    for (uint32_t i = 0; i < j->nranks; i++) {
        *to(&j->ranks[i]) = (float)ratio[i];
        j->ranks[i].alone = isfinite(value[i]) && !isfinite(ratio[i]);
        alone += j->ranks[i].alone;
    }
    if (alone == 0)
        return;
    /* nobody elsewhere does the same work: its growth is compared with everybody's growth */
    for (uint32_t i = 0; i < j->nranks; i++) {
        value[i] /= past_median(j, &j->ranks[i]);
        ratio[i] = NAN;
    }
    ratios_of_position(j, -1, value, ratio);
    for (uint32_t i = 0; i < j->nranks; i++)
        if (j->ranks[i].alone)
            *to(&j->ranks[i]) = (float)ratio[i];
}

static float *half1_of(struct rank *r)
{
    return &r->half1_s;
}
static float *half2_of(struct rank *r)
{
    return &r->half2_s;
}
static float *ratio1_of(struct rank *r)
{
    return &r->ratio1;
}
static float *ratio2_of(struct rank *r)
{
    return &r->ratio2;
}

/* --- what is learnt --- */

/* 1 when every ratio of this rank in the pool is beyond `limit`: it has been slow all along and is
 * not the cohort. */
static int is_always_beyond(const struct fr_judge *j, size_t n, uint32_t rank, double limit)
{
    for (size_t i = 0; i < n; i++)
        if (j->pool_rank[i] == rank && (double)j->pool[i] <= limit)
            return 0;
    return 1;
}

static void learn_spread(struct fr_judge *j)
{
    double *v = j->scratch + 2 * (size_t)j->nranks, mid, mad, up = 0, young;
    size_t n = j->npool < POOL ? j->npool : POOL, k = 0;

    for (size_t i = 0; i < n; i++)
        v[i] = (double)j->pool[i];
    qsort(v, n, sizeof *v, by_value);
    mid = 0.5 * (v[(n - 1) / 2] + v[n / 2]);
    for (size_t i = 0; i < n; i++) {
        v[i] -= mid;
        k += v[i] > 0;
    }
    if (n >= UPPER_MIN && k) /* v is sorted: the upper half lies at the end */
        up = FR_MAD_SCALE * v[n - (k + 1) / 2];
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i]);
    mad = FR_MAD_SCALE * median_of(v, n);
    /* a young attempt has seen little of its own spread */
    young = 1 + YOUNG / ((double)j->nlearnt + 1);
    j->threshold = fmax(j->cfg.slow_min_ratio,
                        1 + j->cfg.slow_fence * fmax(fmax(mad, up), DEVIATION_FLOOR) * young);

    /* what one in a hundred reaches by itself */
    k = 0;
    for (size_t i = 0; i < n; i++)
        if ((double)j->pool[i] <= j->threshold ||
            !is_always_beyond(j, n, j->pool_rank[i], j->threshold))
            v[k++] = (double)j->pool[i];
    if (k == 0)
        return;
    qsort(v, k, sizeof *v, by_value);
    j->threshold = fmax(j->threshold, 1 + (v[k - 1 - k / 100] - 1) * BEYOND);
}

static uint32_t pool_wanted(const struct fr_judge *j)
{
    uint32_t n = 2 * j->nranks;

    return n < POOL_MIN ? POOL_MIN : n > POOL / 2 ? POOL / 2 : n;
}

static double looser(double threshold)
{
    return 1 + 0.5 * (threshold - 1);
}

/* Median of the job's step times over n steps that end with `last`. */
static double step_median(const struct fr_judge *j, uint64_t last, uint32_t n)
{
    double v[STEPS_KEPT];
    size_t k = 0;

    for (uint32_t i = 0; i < n && i < last; i++) {
        const struct job_step *js = &j->steps[(last - i) % STEPS_KEPT];

        if (js->step == last - i && js->n)
            v[k++] = js->sum_s / js->n;
    }
    return median_of(v, k);
}

double fr_judge_step_now_s(const struct fr_judge *j)
{
    return step_median(j, j->judged_step, j->cfg.slow_window_steps);
}

double fr_judge_baseline_s(const struct fr_judge *j)
{
    double v[BASELINES];
    uint32_t n = j->nbaselines < BASELINES ? j->nbaselines : BASELINES;

    memcpy(v, j->baselines, n * sizeof *v);
    return median_of(v, n);
}

/* A half-window in which nobody stands out: everybody's past, the pool and the baseline grow by it.
 */
static void learn_clean(struct fr_judge *j, uint64_t step)
{
    double step_s = step_median(j, step, half_steps(j)), good_s = fr_judge_baseline_s(j);
    uint32_t stride = 1 + j->nranks / (POOL / 4);

    for (uint32_t i = 0; i < j->nranks; i++) {
        struct rank *r = &j->ranks[i];

        if (isfinite((double)r->half2_s))
            r->past_s[r->npast++ % PAST_KEPT] = r->half2_s;
        /* the very figure that is held against the threshold */
        if (i % stride == 0 && isfinite((double)r->ratio1) && isfinite((double)r->ratio2)) {
            j->pool_rank[j->npool % POOL] = i;
            j->pool[j->npool++ % POOL] = fminf(r->ratio1, r->ratio2);
        }
    }
    j->nlearnt++;
    if (j->npool >= POOL_MIN)
        learn_spread(j);
    if (isfinite(step_s) && !(step_s > JOB_SLOW_RATIO * good_s))
        j->baselines[j->nbaselines++ % BASELINES] = step_s;
}

/* --- verdicts --- */

/* Walk back over single steps to where it began; one step that looks clean may lie between. */
static uint64_t onset_of(const struct fr_judge *j, const struct rank *r, uint64_t step)
{
    double peers_s = (double)r->half2_s / (double)r->ratio2, limit = looser(j->threshold) * peers_s;
    uint64_t onset = step, oldest = step > STEPS_KEPT - 8 ? step - (STEPS_KEPT - 8) : 1;
    int misses = 0;

    for (uint64_t s = step; s >= oldest && s >= r->first_step && misses < 2; s--) {
        if ((double)r->self_s[s % STEPS_KEPT] > limit) {
            onset = s;
            misses = 0;
        } else
            misses++;
    }
    return onset;
}

/* When a step of the job began, which is when the one before it ended; `otherwise` when that is not
 * held any more. */
static uint64_t begin_of(const struct fr_judge *j, uint64_t step, uint64_t otherwise)
{
    const struct job_step *before = &j->steps[(step - 1) % STEPS_KEPT];

    return step > 1 && before->step == step - 1 ? before->end_ns : otherwise;
}

/* The witness on the process speaks for steps that ended under its eyes: one that has just been
 * stopped for good was not slow before. */
static bool is_seen_in(const struct fr_judge *j, const struct rank *r, uint64_t step)
{
    const struct job_step *js = &j->steps[step % STEPS_KEPT];

    return r->seen_since_ns && js->step == step && js->end_ns > r->seen_since_ns;
}

static void judge_rank(struct fr_judge *j, struct rank *r, uint64_t step, uint64_t now_ns)
{
    double past_s = past_median(j, r), near = looser(j->threshold);
    double risen = past_s * (1 + PAST_SHARE * (j->threshold - 1));
    /* what is seen on the process itself needs the timing to agree, not to persist */
    bool seen = is_seen_in(j, r, step);
    bool peers = (double)r->ratio2 > j->threshold && (seen || (double)r->ratio1 > j->threshold);
    bool past = (double)r->half2_s > risen && (seen || (double)r->half1_s > risen);
    bool shares = j->nodes[r->node].shares && !seen;
    uint32_t persist = seen ? SEEN_STEPS : PERSIST_STEPS;

    r->peers_run = peers ? r->peers_run + 1 : 0;
    if (r->peers_run <= 1)
        r->peers_since_ns = now_ns;
    if (!r->slow) {
        /* from the attempt's first window on there is no past to rise from: PEERS must stand longer
         */
        if (!past || shares)
            persist = ALONE_WINDOWS * j->cfg.slow_window_steps;
        if (r->peers_run < persist ||
            (shares && (double)(now_ns - r->peers_since_ns) < SHARED_S * 1e9))
            return;
        r->slow = true;
        r->slow_past = past;
        r->calm_run = 0;
        r->slow_since_step = onset_of(j, r, step);
        r->slow_since_ns = begin_of(j, r->slow_since_step, now_ns);
        return;
    }
    r->slow_past |= past;
    r->calm_run = (double)r->ratio2 < near ? r->calm_run + 1 : 0;
    if (r->calm_run >= half_steps(j))
        r->slow = false;
}

static void judge_position(struct fr_judge *j)
{
    double *v = j->scratch;
    double worst = 0, second = 0;
    int32_t worst_pp = -1;

    for (int32_t pp = 0;; pp++) {
        size_t n = 0;
        uint32_t known = 0;
        double m;

        for (uint32_t i = 0; i < j->nranks; i++) {
            known += position_of(&j->ranks[i]) >= pp;
            if (position_of(&j->ranks[i]) == pp && isfinite((double)j->ranks[i].half2_s))
                v[n++] = (double)j->ranks[i].half2_s;
        }
        if (known == 0)
            break;
        m = median_of(v, n);
        if (m > worst) {
            second = worst;
            worst = m;
            worst_pp = pp;
        } else if (m > second)
            second = m;
    }
    if (second > 0 && worst > STRUCTURAL_RATIO * second &&
        (worst_pp == j->structural_pp || !j->structural_run)) {
        j->structural_run++;
        j->structural_pp = worst_pp;
        j->structural_ratio = worst / second;
    } else
        j->structural_run = 0;
}

static void judge_step_of_all(struct fr_judge *j, uint64_t step, uint64_t now_ns)
{
    uint32_t half = half_steps(j);
    bool aligned = (step - j->first_step + 1) % half == 0, stands_out = false;
    double step_s;

    if (j->nranks > 1024 && !aligned)
        return;
    ratios_at(j, step - half, half1_of, ratio1_of);
    ratios_at(j, step, half2_of, ratio2_of);
    if (j->npool >= pool_wanted(j))
        for (uint32_t i = 0; i < j->nranks; i++) {
            struct rank *r = &j->ranks[i];

            judge_rank(j, r, step, now_ns);
            stands_out |= r->slow || (double)r->ratio2 > j->threshold;
        }
    if (!aligned)
        return;
    if (!stands_out)
        learn_clean(j, step);
    judge_position(j);
    step_s = step_median(j, step, half);
    j->job_slow_run = step_s > JOB_SLOW_RATIO * fr_judge_baseline_s(j) ? j->job_slow_run + 1 : 0;
}

void fr_judge_learn_slow(struct fr_judge *j, uint64_t now_ns)
{
    uint64_t all = UINT64_MAX, begun = 0, behind = STEPS_KEPT - j->cfg.slow_window_steps - 4;

    for (uint32_t i = 0; i < j->nranks; i++) {
        const struct rank *r = &j->ranks[i];

        if (r->step_done == 0)
            return; /* not all have made a step yet */
        if (r->step_done < all)
            all = r->step_done;
        if (r->first_step > begun)
            begun = r->first_step;
    }
    if (j->judged_step == 0) {
        j->first_step = begun + j->cfg.slow_warmup_steps;
        j->judged_step = j->first_step - 1;
    }
    if (all <= j->judged_step)
        return;
    if (all - j->judged_step > behind)
        j->judged_step = all - behind; /* what lies further back is overwritten */
    while (j->judged_step < all) {
        j->judged_step++;
        if (j->judged_step - j->first_step + 1 >= j->cfg.slow_window_steps)
            judge_step_of_all(j, j->judged_step, now_ns);
    }
}

/* --- findings --- */

/* Largest shares among the ranks of a node, and the median run-queue share of all others. */
static uint32_t host_witnesses(struct fr_judge *j, uint32_t node, struct fr_finding *f)
{
    double stopped = 0, throttled = 0, delay = 0, elsewhere, *v = j->scratch;
    uint32_t bits = 0;
    size_t n = 0;

    for (uint32_t i = 0; i < j->nranks; i++) {
        const struct rank *r = &j->ranks[i];
        double d = share(r->older.run_delay_ns, r->old.run_delay_ns, r);

        if (r->node != node) {
            v[n++] = d;
            continue;
        }
        stopped = fmax(stopped, r->proc.stopped_ratio);
        throttled = fmax(throttled, share(r->older.throttled_ns, r->old.throttled_ns, r));
        delay = fmax(delay, d);
    }
    elsewhere = median_of(v, n);
    if (stopped > STOPPED_SHARE) {
        bits |= FR_WITNESS_STOPPED;
        fr_judge_say(f,
                     "its processes are stopped and continued in turns: %.0f %% of the last "
                     "second's samples",
                     stopped * 100);
    }
    if (throttled > THROTTLED_SHARE) {
        bits |= FR_WITNESS_THROTTLED;
        fr_judge_say(f, "its control group is throttled %.0f %% of the time", throttled * 100);
    }
    if (delay > STARVED_SHARE && delay > 2 * elsewhere) {
        bits |= FR_WITNESS_STARVED;
        fr_judge_say(f, "it waits for a core %.0f %% of the time, ranks elsewhere %.0f %%",
                     delay * 100, elsewhere * 100);
    }
    /* nodes on one machine share its pressure: only another machine can be compared with */
    n = 0;
    for (uint32_t i = 0; i < j->nnodes && n < j->nranks; i++)
        if (j->nodes[i].machine != j->nodes[node].machine && isfinite(j->nodes[i].memory_share))
            v[n++] = j->nodes[i].memory_share;
    elsewhere = median_of(v, n);
    if (n && j->nodes[node].memory_share > MEMORY_SHARE &&
        j->nodes[node].memory_share > 2 * elsewhere) {
        bits |= FR_WITNESS_MEMORY;
        fr_judge_say(f, "its machine is short of memory %.0f %% of the time, others %.0f %%",
                     j->nodes[node].memory_share * 100, elsewhere * 100);
    }
    return bits;
}

/* ARRIVAL: pushed back, it is the latest of all, by a good part of what it is slower. */
static int is_latest(struct fr_judge *j, uint32_t node, double excess_s, double *ret_late_s)
{
    double here = -INFINITY, *v = j->scratch, elsewhere = 0, spread;
    size_t n = 0;

    for (uint32_t i = 0; i < j->nranks; i++) {
        double late = fr_judge_late_s(&j->ranks[i]);

        if (!isfinite(late))
            continue;
        if (j->ranks[i].node == node)
            here = fmax(here, late);
        else {
            elsewhere = fmax(elsewhere, late);
            v[n++] = fabs(late);
        }
    }
    spread = median_of(v, n);
    *ret_late_s = here;
    return n > 0 && here > elsewhere && here > LATE_SHARE * excess_s && here > 3 * spread;
}

static uint32_t slow_node(struct fr_judge *j, uint32_t node, uint64_t now_ns, struct findings *to)
{
    struct node *n = &j->nodes[node];
    const struct rank *worst = NULL;
    uint32_t slow = 0, near = 0, bits = FR_WITNESS_PEERS;
    double now_s = fr_judge_step_now_s(j), good_s = fr_judge_baseline_s(j), excess_s, late_s = 0;
    bool past = false;
    struct fr_finding *f;

    for (uint32_t i = 0; i < j->nranks; i++) {
        const struct rank *r = &j->ranks[i];

        if (r->node != node)
            continue;
        near += (double)r->ratio2 > looser(j->threshold);
        if (!r->slow)
            continue;
        slow++;
        past |= r->slow_past;
        if (!worst || r->ratio2 > worst->ratio2) {
            worst = r;
            if (!n->slow_named)
                n->slow_rank = (int32_t)i;
        }
    }
    if (slow == 0) {
        n->slow_named = n->slow_whole = false;
        n->slow_bits = 0;
        return 0;
    }
    if (!n->slow_named) /* the subject stays what it was when it was named */
        n->slow_whole = near == n->nranks;
    n->slow_named = true;
    if (!to)
        return 1;

    worst = &j->ranks[n->slow_rank];
    f = n->slow_whole ? fr_judge_add(to, FR_FINDING_SLOW, FR_SUBJECT_NODE, node)
                      : fr_judge_add(to, FR_FINDING_SLOW, FR_SUBJECT_RANK, (uint64_t)n->slow_rank);
    f->rank = n->slow_rank;
    f->node = (int32_t)node;
    f->since_step = worst->slow_since_step;
    f->since_ns = worst->slow_since_ns < now_ns ? worst->slow_since_ns : now_ns;
    f->ratio = (double)worst->ratio2;
    f->cost_ratio = good_s > 0 ? now_s / good_s : 0;
    f->victims = j->nranks - slow;
    if (worst->alone)
        bits = 0; /* no peers: its growth against everybody's is a look at its past */
    if (past || worst->alone)
        bits |= FR_WITNESS_PAST;
    fr_judge_say(f, "self time of rank %d is %.1f ms a step, %.2f x that of %s (fence %.2f)",
                 f->rank, (double)worst->half2_s * 1e3, f->ratio,
                 worst->alone ? "what its own past and everybody's growth foretell"
                              : "the ranks elsewhere in its position",
                 j->threshold);
    if (past)
        fr_judge_say(f, "%.2f x its own clean past in this attempt",
                     (double)worst->half2_s / past_median(j, worst));
    excess_s = (double)worst->half2_s * (1 - 1 / (double)worst->ratio2);
    f->excess_s = excess_s;
    if (is_latest(j, node, excess_s, &late_s)) {
        bits |= FR_WITNESS_ARRIVAL;
        fr_judge_say(
            f, "it is the last to arrive by %.1f ms, after taking off what it waited for others",
            late_s * 1e3);
    }
    n->slow_bits |= bits | host_witnesses(j, node, f);
    f->witnesses =
        n->slow_bits; /* a witness that wavers from window to window has spoken all the same */
    if (f->witnesses &
        (FR_WITNESS_STOPPED | FR_WITNESS_THROTTLED | FR_WITNESS_STARVED | FR_WITNESS_MEMORY))
        f->cause = FR_CAUSE_HOST;
    f->confidence = fmin(0.5 + 0.15 * __builtin_popcount(f->witnesses), 0.97);
    return 1;
}

int fr_judge_rule_slow(struct fr_judge *j, uint64_t now_ns, struct findings *to)
{
    uint32_t slow = 0;

    for (uint32_t i = 0; i < j->nranks; i++)
        slow += j->ranks[i].slow;
    for (uint32_t i = 0; i < j->nnodes; i++)
        j->nodes[i].slow_named &= slow > 0;
    if (slow == 0)
        return 0;
    slow = 0;
    for (uint32_t i = 0; i < j->nnodes; i++)
        slow += slow_node(j, i, now_ns, NULL);
    /* a good part of the nodes at once is the machine or the job, not they */
    if (slow > 1 && 3 * slow > j->nnodes)
        return 0;
    for (uint32_t i = 0; i < j->nnodes; i++)
        slow_node(j, i, now_ns, to);
    return (int)slow;
}

void fr_judge_rule_job_slow(struct fr_judge *j, struct findings *to)
{
    struct fr_finding *f;

    if (j->job_slow_run >= 2) {
        double now_s = fr_judge_step_now_s(j), good_s = fr_judge_baseline_s(j);

        f = fr_judge_add(to, FR_FINDING_JOB_SLOW, FR_SUBJECT_JOB, 0);
        f->confidence = 0.6;
        f->witnesses = FR_WITNESS_PAST;
        f->since_step = j->judged_step - (uint64_t)half_steps(j) * j->job_slow_run + 1;
        f->since_ns = begin_of(j, f->since_step, 0);
        f->cost_ratio = good_s > 0 ? now_s / good_s : 0;
        fr_judge_say(f, "steps take %.1f ms, %.1f ms before; no rank stands out among its peers",
                     now_s * 1e3, good_s * 1e3);
    }
    if (j->structural_run >= STRUCTURAL_RUN) {
        f = fr_judge_add(to, FR_FINDING_STRUCTURAL, FR_SUBJECT_JOB, (uint64_t)j->structural_pp + 1);
        f->confidence = 0.6;
        f->ratio = j->structural_ratio;
        f->cause = FR_CAUSE_APPLICATION;
        f->witnesses = FR_WITNESS_PEERS;
        fr_judge_say(f,
                     "ranks of pipeline position %d take %.2f x as long as the next slowest "
                     "position: imbalance",
                     j->structural_pp, f->ratio);
    }
}
