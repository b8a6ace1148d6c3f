/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_agent.c - the real daemon against real processes with real segments
 *
 * The receiver of the reports is a small server of the tests (helper_receiver.h), and the ranks
 * write their segments with a small writer of the tests (helper_writer.h).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "helper_receiver.h"
#include "helper_writer.h"
#include "model/op.h"
#include "wire/record.h"

#define LIMIT_S   20 /* no condition takes longer than this, at any load */
#define MAX_STEPS 4000

struct site {
    char dir[64], probe[80], spool[80], url[64];
    struct receiver *receiver;
    pid_t agent;
    pid_t ranks[8];
    size_t nranks;
};

static struct site *open_site; /* for the teardown of a test that failed */

static void site_open(struct site *s)
{
    open_site = s;
    memset(s, 0, sizeof *s);
    snprintf(s->dir, sizeof s->dir, "/tmp/fr-test-agent-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    snprintf(s->probe, sizeof s->probe, "%s/probe", s->dir);
    snprintf(s->spool, sizeof s->spool, "%s/spool", s->dir);
    assert_int_equal(mkdir(s->probe, 0755), 0);
    s->receiver = receiver_start();
    receiver_url(s->receiver, s->url, sizeof s->url);
}

/* A child ends with the test, and does not go on as a test when a signal hits it. */
static void be_a_child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int sig = 1; sig < 32; sig++)
        signal(sig, SIG_DFL);
}

/* fsize: limit of every file that the agent writes, 0: none. */
static void agent_start_limited(struct site *s, const char *url, rlim_t fsize)
{
    s->agent = fork();
    assert_true(s->agent >= 0);
    if (s->agent == 0) {
        int null = open("/dev/null", O_WRONLY);

        be_a_child();
        if (!getenv("FR_TEST_VERBOSE"))
            dup2(null, 2);
        if (fsize) {
            struct rlimit l = {fsize, fsize};

            signal(SIGXFSZ, SIG_IGN); /* survives exec: the write fails with EFBIG, as on a full
                                         disk with ENOSPC */
            setrlimit(RLIMIT_FSIZE, &l);
        }
        execl(FR_BUILD_DIR "/bin/fullrank-agent", "fullrank-agent", "--node", "n1", "--server", url,
              "--probe-dir", s->probe, "--spool", s->spool, "--interval", "100ms", "--rack", "r7",
              "--machine-id", "m1", NULL);
        _exit(127);
    }
}

static void agent_start(struct site *s)
{
    agent_start_limited(s, s->url, 0);
}

static int end_process(pid_t *pid, int signum)
{
    int status = -1;

    if (*pid > 0) {
        kill(*pid, signum);
        waitpid(*pid, &status, 0);
    }
    *pid = 0;
    return status;
}

static void site_close(struct site *s)
{
    end_process(&s->agent, SIGKILL);
    for (size_t i = 0; i < s->nranks; i++) {
        if (s->ranks[i] > 0)
            kill(s->ranks[i], SIGCONT);
        end_process(&s->ranks[i], SIGKILL);
    }
    receiver_stop(s->receiver);
    fr_fs_remove_tree(s->dir, NULL);
    open_site = NULL;
}

static int close_failed(void **state)
{
    (void)state;
    if (open_site)
        site_close(open_site);
    return 0;
}

/* One rank: `steps` steps of about `us` each, then it sleeps in a collective for ever. */
static pid_t rank_start(struct site *s, const struct writer_claims *c, uint64_t steps, unsigned us)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct writer w;

        be_a_child();
        writer_open(&w, s->probe, c, 0, 1, 1024);
        writer_comm(&w, 0, 0x1111, 8, (uint32_t)c->rank, "world");
        for (uint64_t step = 1; step <= steps; step++) {
            writer_step_begin(&w, step);
            if (step == 3)
                writer_comm(&w, 1, 0x2222, 2, 0, "tp"); /* made late: the table is read again */
            for (int i = 0; i < 4; i++)
                writer_collective(&w, 0, 0, FR_OP_ALLREDUCE, 1000, 50000, step);
            if (step >= 3)
                writer_collective(&w, 0, 1, FR_OP_ALLGATHER, 77, 20000, step);
            usleep(us);
            writer_step_end(&w, step, 10.0 / (double)step);
        }
        writer_now(&w, 0, 0, FR_OP_ALLREDUCE, 4 * steps + 1);
        for (;;)
            pause();
    }
    s->ranks[s->nranks++] = pid;
    return pid;
}

static const struct writer_claims HONEST = {"job-1", 2, 7, 3, 8};

/* The answer of the receiver: ranks 0..7 of job-1 are ours. */
static void assign(struct site *s, uint32_t keep_log2, Fullrank__Command **commands,
                   size_t ncommands)
{
    uint32_t ranks[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    Fullrank__Assignment a = FULLRANK__ASSIGNMENT__INIT, *list[] = {&a};
    Fullrank__Reply r = FULLRANK__REPLY__INIT;

    a.job = (char *)"job-1";
    a.attempt = 2;
    a.epoch = 7;
    a.uid = getuid();
    a.session = (uint32_t)getsid(0);
    a.ranks = ranks;
    a.n_ranks = 8;
    r.assignments = list;
    r.n_assignments = 1;
    r.keep_log2 = keep_log2;
    r.commands = commands;
    r.n_commands = ncommands;
    receiver_reply(s->receiver, &r);
}

/* What all reports so far said of rank 3's steps. */
struct told {
    unsigned times[MAX_STEPS + 1];
    struct {
        uint64_t begin_ns, end_ns, self_ns, count, bytes;
        double loss;
    } step[MAX_STEPS + 1];
    uint64_t newest;
    unsigned contradictions;
};

static void hear_steps(struct site *s, size_t from, struct told *t)
{
    memset(t, 0, sizeof *t);
    for (size_t i = from; i < receiver_count(s->receiver); i++) {
        const Fullrank__Report *r = receiver_get(s->receiver, i).report;

        for (size_t k = 0; k < r->n_steps; k++) {
            const Fullrank__Step *m = r->steps[k];
            uint64_t n = m->step, count = 0, bytes = 0;

            assert_true(n >= 1 && n <= MAX_STEPS);
            for (size_t g = 0; g < m->n_groups; g++) {
                count += m->groups[g]->count;
                bytes += m->groups[g]->bytes;
            }
            /* A repetition may know less (its records are overwritten by now), never something
             * else. Times come from one clock. */
            if (t->times[n]++ && (t->step[n].begin_ns != m->begin_ns ||
                                  t->step[n].self_ns != m->self_ns || t->step[n].loss != m->loss ||
                                  (count && t->step[n].count && t->step[n].count != count)))
                t->contradictions++;
            t->step[n].begin_ns = m->begin_ns;
            t->step[n].end_ns = m->end_ns;
            t->step[n].self_ns = m->self_ns;
            t->step[n].loss = m->loss;
            if (count) {
                t->step[n].count = count;
                t->step[n].bytes = bytes;
            }
            if (n > t->newest)
                t->newest = n;
        }
    }
}

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        uint64_t end_ = fr_mono_ns() + LIMIT_S * 1000000000ull;                                    \
        while (!(condition)) {                                                                     \
            if (fr_mono_ns() > end_)                                                               \
                fail_msg("waited %d s in vain for: %s", LIMIT_S, #condition);                      \
            usleep(5000);                                                                          \
        }                                                                                          \
    } while (0)

static struct told TOLD;

static uint64_t newest_step(struct site *s, size_t from)
{
    hear_steps(s, from, &TOLD);
    return TOLD.newest;
}

/* The newest event of that state since report `from`, or NULL. */
static const Fullrank__ProcEvent *event(struct site *s, size_t from, int state, uint64_t *ret_t_ns)
{
    for (size_t i = receiver_count(s->receiver); i-- > from;) {
        struct receiver_got g = receiver_get(s->receiver, i);

        for (size_t k = 0; k < g.report->n_events; k++)
            if ((int)g.report->events[k]->state == state) {
                *ret_t_ns = g.t_ns;
                return g.report->events[k];
            }
    }
    return NULL;
}

static void every_step_is_told_once_with_the_sums_of_all_its_records(void **state)
{
    static struct site s;
    uint64_t kept[MAX_STEPS + 1] = {0}, progress = 0, defined = 0;
    const Fullrank__Rank *last = NULL;

    (void)state;
    site_open(&s);
    assign(&s, 1, NULL, 0);
    rank_start(&s, &HONEST, 60, 4000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) == 60);
    assert_int_equal(TOLD.contradictions, 0);
    for (uint64_t n = 1; n <= 60; n++) {
        assert_int_equal(TOLD.times[n], 1);
        assert_true(TOLD.step[n].loss == 10.0 / (double)n);
        assert_true(TOLD.step[n].end_ns > TOLD.step[n].begin_ns + 4000000);
        assert_int_equal(TOLD.step[n].count, n < 3 ? 4 : 5);
        assert_int_equal(TOLD.step[n].bytes, n < 3 ? 4000 : 4077);
    }
    for (size_t i = 0; i < receiver_count(s.receiver); i++) {
        const Fullrank__Report *r = receiver_get(s.receiver, i).report;

        assert_int_equal(r->seq, i + 1); /* nothing lost, nothing out of order */
        assert_int_equal(r->records.len % sizeof(struct fr_wire_record), 0);
        for (size_t k = 0; k < r->records.len; k += sizeof(struct fr_wire_record)) {
            struct fr_wire_record w;

            memcpy(&w, r->records.data + k, sizeof w);
            assert_int_equal(w.rank, 3);
            kept[w.step] += w.op != FR_OP_STEP;
            if (w.members_hash == 0x1111) { /* its number, counted by hand: four a step */
                assert_int_equal((w.seq - 1) / 4 + 1, w.step);
                assert_int_equal(w.end_ns - w.start_ns, 50000);
            }
        }
        for (size_t k = 0; k < r->n_progress; k++)
            if (r->progress[k]->members_hash == 0x1111)
                progress = r->progress[k]->completed;
        for (size_t k = 0; k < r->n_comms; k++)
            defined |= r->comms[k]->members_hash;
        if (r->n_ranks)
            last = r->ranks[0];
    }
    for (uint64_t n = 1; n <= 60;
         n++) /* steps n mod 2 == 0, whole; step 1 may have passed before the first reply */
        assert_true(n % 2 == 0 ? kept[n] == (n < 3 ? 4u : 5u) || (kept[n] == 0 && n < 60 / 2)
                               : kept[n] == 0);
    assert_int_equal(kept[60], 5);
    assert_int_equal(progress, 240);
    assert_int_equal(defined, 0x3333);
    assert_non_null(last);
    assert_string_equal(last->job, "job-1");
    assert_int_equal(last->pid, s.ranks[0]);
    assert_int_equal(last->world, 8);
    assert_int_equal(last->state, FULLRANK__PROC_STATE__PROC_RUNNING);
    assert_non_null(receiver_get(s.receiver, 0).report->info);
    assert_string_equal(receiver_get(s.receiver, 0).report->info->rack, "r7");
    site_close(&s);
}

/* All 32 slots are taken, slot 30 is freed; slot 31 changes hands after step 9, on the word. */
static void rank_of_many_comms(struct site *s, const char *word)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct writer w;

        be_a_child();
        writer_open(&w, s->probe, &HONEST, 0, 1, 1024);
        for (uint32_t i = 0; i < 32; i++)
            writer_comm(&w, i, 0x5000 + i, 8, 3, "many");
        w.comms[30].freed = 1;
        for (uint64_t step = 1; step <= 30; step++) {
            if (step == 10) {
                while (access(word, F_OK) != 0)
                    usleep(2000);
                writer_comm_next(&w, 31);
            }
            writer_step_begin(&w, step);
            for (int i = 0; i < 4; i++)
                writer_collective(&w, 0, 31, FR_OP_ALLREDUCE, 1000, 100, step);
            usleep(10000);
            writer_step_end(&w, step, 1.0);
        }
        for (;;)
            pause();
    }
    s->ranks[s->nranks++] = pid;
}

static void a_slot_that_is_given_to_another_communicator_is_told_as_another(void **state)
{
    unsigned told = 0, defined[2] = {0}, freed = 0;
    uint64_t most[2] = {0};
    char word[sizeof((struct site *)0)->dir + 8];
    static struct site s; /* the teardown of a failed test reads it */
    int fd;

    (void)state;
    site_open(&s);
    snprintf(word, sizeof word, "%s/word", s.dir);
    assign(&s, 63, NULL, 0);
    rank_of_many_comms(&s, word);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) == 9); /* the probe lets a slot rest until then */
    fd = open(word, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    WAIT_FOR(newest_step(&s, 0) == 30);
    for (size_t i = 0; i < receiver_count(s.receiver); i++) {
        const Fullrank__Report *r = receiver_get(s.receiver, i).report;

        for (size_t k = 0; k < r->n_steps; k++) {
            const Fullrank__Step *m = r->steps[k];

            told++;
            assert_int_equal(m->n_groups, 1);
            assert_int_equal(m->groups[0]->members_hash, 0x5000 + 31);
            assert_int_equal(m->groups[0]->instance, m->step >= 10);
            assert_int_equal(m->groups[0]->count, 4);
        }
        for (size_t k = 0; k < r->n_comms; k++) {
            if (r->comms[k]->members_hash == 0x5000 + 31 && r->comms[k]->instance < 2)
                defined[r->comms[k]->instance]++;
            freed += r->comms[k]->freed != 0;
            if (r->comms[k]->freed)
                assert_int_equal(r->comms[k]->instance, 0);
        }
        for (size_t k = 0; k < r->n_progress; k++)
            if (r->progress[k]->members_hash == 0x5000 + 31 && r->progress[k]->instance < 2)
                most[r->progress[k]->instance] = r->progress[k]->completed;
    }
    assert_int_equal(told, 30);
    assert_true(defined[0] >= 1 && defined[1] >= 1);
    assert_true(most[0] > 0 && most[0] <= 36);
    assert_true(most[1] > 0 && most[1] <= 84);
    assert_int_equal(freed, 2); /* of slot 30, and of who had slot 31: each end once */
    site_close(&s);
}

static void a_killed_rank_is_told_at_once_with_its_signal(void **state)
{
    static struct site s;
    const Fullrank__ProcEvent *e;
    uint64_t killed_ns, heard_ns = 0;
    struct stat st;
    char file[160];

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, 5, 1000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) == 5);
    killed_ns = fr_mono_ns();
    kill(s.ranks[0], SIGKILL);
    WAIT_FOR((e = event(&s, 0, FULLRANK__PROC_STATE__PROC_GONE, &heard_ns)) != NULL);
    print_message("a killed rank was known %.1f ms later\n", (double)(heard_ns - killed_ns) * 1e-6);
    assert_int_equal(e->exit_signal, SIGKILL);
    assert_int_equal(e->rank, 3);
    assert_int_equal(e->epoch, 7);
    assert_true(e->t_ns >= killed_ns && e->t_ns <= heard_ns);
    assert_true(heard_ns - killed_ns < 1000000000); /* the issue's own limit for a finding */
    /* The epoch ends: what the dead one left is swept. */
    snprintf(file, sizeof file, "%s/fr-%d.seg", s.probe, s.ranks[0]);
    assert_int_equal(stat(file, &st), 0);
    receiver_reply(s.receiver, &(Fullrank__Reply)FULLRANK__REPLY__INIT);
    WAIT_FOR(stat(file, &st) != 0);
    site_close(&s);
}

static void a_stopped_rank_is_told_and_its_going_on_too(void **state)
{
    static struct site s;
    const Fullrank__ProcEvent *e;
    uint64_t stopped_ns, heard_ns = 0;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, 5, 1000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) == 5);
    stopped_ns = fr_mono_ns();
    kill(s.ranks[0], SIGSTOP);
    WAIT_FOR((e = event(&s, 0, FULLRANK__PROC_STATE__PROC_STOPPED, &heard_ns)) != NULL);
    print_message("a stop was known %.0f ms later\n", (double)(heard_ns - stopped_ns) * 1e-6);
    assert_true(e->t_ns >= stopped_ns && heard_ns - stopped_ns > 190000000);
    kill(s.ranks[0], SIGCONT);
    WAIT_FOR((e = event(&s, 0, FULLRANK__PROC_STATE__PROC_RUNNING, &heard_ns)) != NULL);
    assert_int_equal(e->pid, s.ranks[0]);
    site_close(&s);
}

static void a_rank_stopped_half_of_the_time_shows_half_and_no_standing_stop(void **state)
{
    static struct site s;
    double sum = 0;
    unsigned n = 0, standing = 0;
    uint64_t heard_ns, begun = fr_mono_ns(), stopped_ns = 0;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, 1000000, 100); /* it works all the time */
    agent_start(&s);
    WAIT_FOR(receiver_count(s.receiver) > 8);
    begun = fr_mono_ns();
    while (fr_mono_ns() - begun < 3000000000u) { /* half a node's speed: 50 ms period */
        uint64_t t = fr_mono_ns();

        kill(s.ranks[0], SIGSTOP);
        usleep(25000);
        kill(s.ranks[0], SIGCONT);
        stopped_ns += fr_mono_ns() - t;
        usleep(25000);
    }
    for (size_t i = 0; i < receiver_count(s.receiver); i++) {
        struct receiver_got g = receiver_get(s.receiver, i);

        for (size_t k = 0; k < g.report->n_ranks && g.t_ns > begun + 1200000000u; k++, n++) {
            const Fullrank__Rank *r = g.report->ranks[k];

            sum += r->stopped_ratio;
            standing += r->state == FULLRANK__PROC_STATE__PROC_STOPPED &&
                        r->observed_ns - r->state_since_ns > 300000000u;
        }
    }
    assert_true(n >= 5);
    print_message("mean stopped_ratio %.2f, true %.2f\n", sum / n, (double)stopped_ns / 3e9);
    assert_true(fabs(sum / n - (double)stopped_ns / 3e9) <
                0.3); /* some 50 looks, on a busy machine */
    assert_int_equal(standing, 0);
    assert_null(event(&s, 0, FULLRANK__PROC_STATE__PROC_STOPPED, &heard_ns));
    site_close(&s);
}

static void forged_segments_are_refused_and_counted(void **state)
{
    struct writer_claims other_job = {"job-2", 2, 7, 3, 8}, other_epoch = {"job-1", 2, 8, 3, 8},
                         other_rank = {"job-1", 2, 7, 9, 16};
    static struct site s;
    uint32_t refused = 0;
    char garbage[160];
    int fd;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &other_job, 5, 1000);
    rank_start(&s, &other_epoch, 5, 1000);
    rank_start(&s, &other_rank, 5, 1000);
    snprintf(garbage, sizeof garbage, "%s/fr-%d.seg", s.probe, getpid());
    fd = open(garbage, O_WRONLY | O_CREAT, 0600);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(write(fd, "garbage!", 8), 8);
    close(fd);
    rank_start(&s, &HONEST, 5, 1000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) == 5);
    assert_int_equal(TOLD.times[5], 1); /* of four claimants one is believed */
    WAIT_FOR((refused = receiver_get(s.receiver, receiver_count(s.receiver) - 1)
                            .report->self->segments_refused) >= 3);
    for (size_t i = 0; i < receiver_count(s.receiver); i++) {
        const Fullrank__Report *r = receiver_get(s.receiver, i).report;

        for (size_t k = 0; k < r->n_ranks; k++)
            assert_int_equal(r->ranks[k]->pid, s.ranks[3]);
    }
    site_close(&s);
}

static void a_segment_of_another_session_is_refused(void **state)
{
    static struct site s;
    pid_t pid;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    pid = fork();
    if (pid == 0) {
        struct writer w;

        be_a_child();
        setsid();
        writer_open(&w, s.probe, &HONEST, 0, 1, 64);
        for (;;)
            pause();
    }
    s.ranks[s.nranks++] = pid;
    agent_start(&s);
    WAIT_FOR(
        receiver_count(s.receiver) > 0 &&
        receiver_get(s.receiver, receiver_count(s.receiver) - 1).report->self->segments_refused ==
            1);
    assert_int_equal(receiver_get(s.receiver, receiver_count(s.receiver) - 1).report->n_ranks, 0);
    site_close(&s);
}

static void after_an_absence_of_the_controller_every_step_arrives_in_order(void **state)
{
    static struct site s;
    size_t before;
    uint64_t spooled_seq = 0, live_seq = 0;
    bool full_after = false;
    unsigned spooled = 0;
    struct stat st;
    char file[160];

    (void)state;
    site_open(&s);
    assign(&s, 3, NULL, 0);
    rank_start(&s, &HONEST, MAX_STEPS, 8000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) >= 10);
    receiver_away(s.receiver);
    before = receiver_count(s.receiver);
    snprintf(file, sizeof file, "%s/spool", s.spool);
    WAIT_FOR(stat(file, &st) == 0 && st.st_size > 8000); /* reports are on the disk */
    receiver_back(s.receiver, true);
    WAIT_FOR(receiver_count(s.receiver) > before + 20);
    WAIT_FOR(stat(file, &st) == 0 && st.st_size == 0); /* delivered, and given back */
    hear_steps(&s, 0, &TOLD);
    assert_int_equal(TOLD.contradictions, 0);
    for (uint64_t n = 1; n <= TOLD.newest; n++)
        assert_true(TOLD.times[n] >= 1);
    for (size_t i = before; i < receiver_count(s.receiver); i++) {
        const Fullrank__Report *r = receiver_get(s.receiver, i).report;

        if (r->spooled) {
            spooled++;
            assert_true(r->seq > spooled_seq);
            spooled_seq = r->seq;
        } else {
            assert_true(r->seq > live_seq);
            live_seq = r->seq;
            full_after |= r->full;
        }
    }
    assert_true(spooled > 5);
    assert_true(full_after); /* a new controller is told everything */
    site_close(&s);
}

static void an_agent_killed_with_9_tells_everything_again_and_nothing_else(void **state)
{
    static struct site s;
    static struct told before;
    size_t then;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, 200, 5000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) >= 60);
    end_process(&s.agent, SIGKILL);
    then = receiver_count(s.receiver);
    hear_steps(&s, 0, &before);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, then) == 200);
    for (uint64_t n = 1; n <= 200; n++) /* the slots hold 256: all of them again */
        assert_int_equal(TOLD.times[n], 1);
    hear_steps(&s, 0, &TOLD);
    assert_int_equal(TOLD.contradictions, 0);
    for (uint64_t n = 1; n <= 60; n++)
        assert_int_equal(TOLD.times[n], 2);
    site_close(&s);
}

static void a_rank_that_died_while_the_agent_was_away_is_told_dead(void **state)
{
    static struct site s;
    const Fullrank__ProcEvent *e;
    uint64_t heard_ns;
    size_t then;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, 20, 1000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) == 20);
    end_process(&s.agent, SIGKILL);
    then = receiver_count(s.receiver);
    end_process(&s.ranks[0], SIGKILL);
    agent_start(&s);
    WAIT_FOR((e = event(&s, then, FULLRANK__PROC_STATE__PROC_GONE, &heard_ns)) != NULL);
    assert_int_equal(e->exit_signal, -1);  /* nobody can tell any more */
    WAIT_FOR(newest_step(&s, then) == 20); /* and what it left is told */
    site_close(&s);
}

static void a_full_disk_under_the_spool_costs_reports_and_nothing_else(void **state)
{
    static struct site s;
    size_t before;
    uint64_t dropped = 0, then;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, MAX_STEPS, 8000);
    agent_start_limited(&s, s.url, 4096);
    WAIT_FOR(newest_step(&s, 0) >= 5);
    receiver_away(s.receiver);
    before = receiver_count(s.receiver);
    usleep(
        3500000); /* a real outage: long enough that the spool is tried, by its own rule of 2 s */
    receiver_back(s.receiver, false);
    WAIT_FOR(receiver_count(s.receiver) > before + 10);
    for (size_t i = before; i < receiver_count(s.receiver); i++)
        dropped = receiver_get(s.receiver, i).report->self->spool_dropped;
    assert_true(dropped > 0);                             /* and it says so */
    assert_int_equal(waitpid(s.agent, NULL, WNOHANG), 0); /* it lives */
    then = newest_step(&s, before);
    WAIT_FOR(newest_step(&s, before) > then + 5);
    site_close(&s);
}

static void commands_are_done_once_and_answered_in_full(void **state)
{
    static struct site s;
    Fullrank__Command collect = FULLRANK__COMMAND__INIT, test = FULLRANK__COMMAND__INIT,
                      *both[] = {&collect, &test};
    Fullrank__Collect what = FULLRANK__COLLECT__INIT;
    Fullrank__Test level = FULLRANK__TEST__INIT;
    unsigned lasts = 0, table = 0, stack = 0, tests = 0, test_lasts = 0;
    size_t from;

    (void)state;
    what.incident = 5;
    what.job = (char *)"job-1";
    what.epoch = 7;
    collect.id = 11;
    collect.what_case = FULLRANK__COMMAND__WHAT_COLLECT;
    collect.collect = &what;
    level.level = (char *)"verify";
    test.id = 12;
    test.what_case = FULLRANK__COMMAND__WHAT_TEST;
    test.test = &level;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, 5, 1000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) == 5);
    assign(&s, 0, both, 2); /* repeated with every reply, as the controller does */
    for (uint64_t end = fr_mono_ns() + LIMIT_S * 1000000000ull; !(lasts && test_lasts);) {
        assert_true(fr_mono_ns() < end);
        usleep(10000);
        lasts = table = stack = tests = test_lasts = 0;
        for (size_t i = 0; i < receiver_count(s.receiver); i++) {
            const Fullrank__Report *r = receiver_get(s.receiver, i).report;

            for (size_t k = 0; k < r->n_evidence; k++) {
                assert_int_equal(r->evidence[k]->incident, 5);
                lasts += r->evidence[k]->last != 0;
                stack += strcmp(r->evidence[k]->name, "rank-3.status") == 0;
                if (strcmp(r->evidence[k]->name, "in-flight.json") == 0) {
                    table++; /* the rank sleeps in its 21st all-reduce */
                    assert_non_null(memmem(r->evidence[k]->data.data, r->evidence[k]->data.len,
                                           "AllReduce", 9));
                    assert_non_null(memmem(r->evidence[k]->data.data, r->evidence[k]->data.len,
                                           "\"seq\":21", 8));
                }
            }
            for (size_t k = 0; k < r->n_tests; k++) {
                assert_int_equal(r->tests[k]->request, 12);
                print_message("%s: %g %s, %s (%s)\n", r->tests[k]->name, r->tests[k]->value,
                              r->tests[k]->unit, r->tests[k]->passed ? "passed" : "failed",
                              r->tests[k]->detail);
                assert_true(r->tests[k]->passed);
                tests++;
                test_lasts += r->tests[k]->last != 0;
            }
        }
    }
    from = receiver_count(s.receiver);
    WAIT_FOR(receiver_count(s.receiver) > from + 5); /* the commands came five times more */
    for (size_t i = from; i < receiver_count(s.receiver); i++) {
        assert_int_equal(receiver_get(s.receiver, i).report->n_evidence, 0);
        assert_int_equal(receiver_get(s.receiver, i).report->n_tests, 0);
    }
    assert_int_equal(lasts, 1);
    assert_int_equal(table, 1);
    assert_int_equal(stack, 1);
    assert_int_equal(test_lasts, 1);
    assert_true(tests >= 5);
    site_close(&s);
}

static void an_agent_is_gone_two_seconds_after_sigterm_even_if_the_controller_hangs(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    static struct site s;
    char url[64], file[160];
    struct stat st;
    uint64_t begun;
    int status, hung = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    agent_start(&s);
    WAIT_FOR(receiver_count(s.receiver) > 3);
    begun = fr_mono_ns();
    status = end_process(&s.agent, SIGTERM);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(fr_mono_ns() - begun < 2000000000u);

    assert_int_equal(bind(hung, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(hung, 8), 0); /* connects, and never an answer */
    assert_int_equal(getsockname(hung, (struct sockaddr *)&at, &n), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(at.sin_port));
    agent_start_limited(&s, url, 0);
    snprintf(file, sizeof file, "%s/spool", s.spool);
    WAIT_FOR(stat(file, &st) == 0 && st.st_size > 1000); /* it works on */
    begun = fr_mono_ns();
    status = end_process(&s.agent, SIGTERM);
    print_message("it ended %.2f s after SIGTERM\n", (double)(fr_mono_ns() - begun) * 1e-9);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(fr_mono_ns() - begun < 2000000000u);
    close(hung);
    site_close(&s);
}

static void a_truncated_segment_of_a_living_rank_harms_nobody(void **state)
{
    static struct site s;
    struct writer_claims second = {"job-1", 2, 7, 4, 8};
    char file[160];
    uint64_t heard_ns;

    (void)state;
    site_open(&s);
    assign(&s, 0, NULL, 0);
    rank_start(&s, &HONEST, MAX_STEPS, 5000);
    agent_start(&s);
    WAIT_FOR(newest_step(&s, 0) > 3);
    snprintf(file, sizeof file, "%s/fr-%d.seg", s.probe, s.ranks[0]);
    assert_int_equal(truncate(file, 5000), 0); /* it will die of SIGBUS in its own mapping */
    WAIT_FOR(event(&s, 0, FULLRANK__PROC_STATE__PROC_GONE, &heard_ns) != NULL);
    rank_start(&s, &second, 5, 1000); /* others are seen as before */
    WAIT_FOR(receiver_get(s.receiver, receiver_count(s.receiver) - 1).report->n_ranks >= 1 &&
             receiver_get(s.receiver, receiver_count(s.receiver) - 1).report->ranks[0]->rank == 4);
    assert_int_equal(waitpid(s.agent, NULL, WNOHANG), 0);
    site_close(&s);
}

int main(void)
{
    setsid(); /* in a container the session may belong to a process outside and read 0, which no job
                 has; a leader of a group cannot leave its session, and has one */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_step_is_told_once_with_the_sums_of_all_its_records,
                                  close_failed),
        cmocka_unit_test_teardown(a_slot_that_is_given_to_another_communicator_is_told_as_another,
                                  close_failed),
        cmocka_unit_test_teardown(a_killed_rank_is_told_at_once_with_its_signal, close_failed),
        cmocka_unit_test_teardown(a_stopped_rank_is_told_and_its_going_on_too, close_failed),
        cmocka_unit_test_teardown(a_rank_stopped_half_of_the_time_shows_half_and_no_standing_stop,
                                  close_failed),
        cmocka_unit_test_teardown(forged_segments_are_refused_and_counted, close_failed),
        cmocka_unit_test_teardown(a_segment_of_another_session_is_refused, close_failed),
        cmocka_unit_test_teardown(after_an_absence_of_the_controller_every_step_arrives_in_order,
                                  close_failed),
        cmocka_unit_test_teardown(an_agent_killed_with_9_tells_everything_again_and_nothing_else,
                                  close_failed),
        cmocka_unit_test_teardown(a_rank_that_died_while_the_agent_was_away_is_told_dead,
                                  close_failed),
        cmocka_unit_test_teardown(a_full_disk_under_the_spool_costs_reports_and_nothing_else,
                                  close_failed),
        cmocka_unit_test_teardown(commands_are_done_once_and_answered_in_full, close_failed),
        cmocka_unit_test_teardown(
            an_agent_is_gone_two_seconds_after_sigterm_even_if_the_controller_hangs, close_failed),
        cmocka_unit_test_teardown(a_truncated_segment_of_a_living_rank_harms_nobody, close_failed),
    };

    signal(SIGPIPE, SIG_IGN);
    cmocka_set_test_filter(getenv("FR_TEST_ONLY")); /* one test by its name, with * and ? */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
