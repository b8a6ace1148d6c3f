/* SPDX-License-Identifier: Apache-2.0 */
/* supervise.c - see supervise.h */
#define _GNU_SOURCE 1 /* POSIX_SPAWN_SETSID */
#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "cli/cli.h"
#include "cli/link.h"
#include "cli/tee.h"
#include "engine/engine.h"
#include "engine/local/procs.h"
#include "engine/local/word.h"
#include "wire/message.h"
#include "wire/supervise.pb-c.h"

#define STATE_NAME   "supervise.json"
#define AWAY_AFTER_S 3.0 /* without an answer for so long, the controller counts as away */
#define LAST_WORD_S  3.0 /* the last report is tried for so long */
#define HUNG_AFTER_S                                                                               \
    5.0 /* a launcher that has told of a failure and has no process left should be gone */
#define NOTE_EVERY_S 5.0 /* a note may count seconds: it is said at most so often */
#define RANKS_MAX    1000000u

struct sup {
    const struct fr_supervise *s;
    const struct fr_engine_ops *ops;
    struct fr_engine *engine;
    struct fr_link *link;
    struct fr_tee tee;
    struct fr_word word;
    struct fr_buf packed, reply;
    char *workdir;
    char user[FR_NAME_BYTES];

    /* told in each report */
    char job[FR_NAME_BYTES];
    uint64_t key, epoch, last_order;
    uint32_t attempt;
    Fullrank__AttemptState state;
    int64_t submitted_unix_ns, started_unix_ns, ended_unix_ns;
    int32_t exit_code, exit_signal, dead_rank;
    char exit_text[256];
    bool cancelled, finished;

    /* the attempt */
    struct fr_placement *placements;
    size_t nplacements;
    char attempt_dir[256];
    struct fr_attempt_proc proc;
    bool launcher_gone;
    uint64_t word_ns; /* when the launcher's word was looked at last */
    int launcher_status;

    /* the line to the controller */
    bool dirty; /* something changed since the last post */
    bool heard; /* at least once */
    uint64_t heard_ns, posted_ns, ended_ns;
    bool said_away;
    char note[160];
    uint64_t note_ns;
    uint32_t alone; /* attempts started without the controller */

    int cancel_signal;
    int code;         /* to exit with, -1: go on */
    uint64_t code_ns; /* when that was known */
};

static double age_s(uint64_t since_ns)
{
    return (double)(fr_mono_ns() - since_ns) / 1e9;
}

__attribute__((format(printf, 2, 3))) static void say(const struct sup *u, const char *fmt, ...)
{
    char text[600];
    va_list ap;

    if (u->s->quiet)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "fullrank: %s\n", text);
}

/* --- the state on disk --- */

static int save(const struct sup *u)
{
    static const char *const STATES[] = {"none", "starting", "running", "stopping", "ended"};
    struct fr_buf b = FR_BUF_INIT;
    struct fr_err err = FR_ERR_INIT;
    struct fr_jsonw w;
    char path[300], key[20];
    int rc;

    snprintf(key, sizeof key, "%016llx", (unsigned long long)u->key);
    fr_jsonw_init(&w, &b);
    fr_jsonw_obj(&w, NULL);
    fr_jsonw_str(&w, "schema", "fullrank.supervise/1");
    fr_jsonw_str(&w, "key", key);
    fr_jsonw_str(&w, "job", u->job);
    fr_jsonw_int(&w, "pid", getpid());
    fr_jsonw_uint(&w, "last_order", u->last_order);
    fr_jsonw_uint(&w, "attempt", u->attempt);
    fr_jsonw_uint(&w, "epoch", u->epoch);
    fr_jsonw_str(&w, "state", STATES[u->state]);
    fr_jsonw_arr(&w, "nodes");
    for (size_t i = 0; i < u->nplacements; i++)
        fr_jsonw_str(&w, NULL, u->placements[i].node);
    fr_jsonw_end_arr(&w);
    fr_jsonw_time(&w, "started_at", u->started_unix_ns);
    fr_jsonw_time(&w, "ended_at", u->ended_unix_ns);
    fr_jsonw_int(&w, "exit_code", u->exit_code);
    fr_jsonw_int(&w, "exit_signal", u->exit_signal);
    fr_jsonw_str(&w, "exit_text", u->exit_text);
    if (u->code >= 0)
        fr_jsonw_int(&w, "exit", u->code);
    fr_jsonw_end_obj(&w);
    fr_buf_putc(&b, '\n');
    snprintf(path, sizeof path, "%.200s/" STATE_NAME, u->s->state_dir);
    rc = fr_fs_write_atomic(path, b.p, b.len, 0600, &err);
    if (rc < 0) /* the job matters more than its record */
        fr_complain("fullrank", "%s", err.text);
    fr_buf_fini(&b);
    return rc;
}

/* --- the attempt --- */

static void set_state(struct sup *u, Fullrank__AttemptState state)
{
    u->state = state;
    u->dirty = true;
    save(u);
}

static void mark_ended(struct sup *u)
{
    u->ended_unix_ns = fr_unix_ns();
    u->ended_ns = fr_mono_ns();
    set_state(u, FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED);
}

/* A folder in memory, where SIGKILL leaves nothing behind that sweep does not find; else on disk.
 */
static void name_attempt_dir(struct sup *u)
{
    if (access("/dev/shm", W_OK | X_OK) == 0)
        snprintf(u->attempt_dir, sizeof u->attempt_dir, "/dev/shm/fullrank-%016llx-%u",
                 (unsigned long long)u->key, u->attempt);
    else
        snprintf(u->attempt_dir, sizeof u->attempt_dir, "%.200s/attempt-%u", u->s->state_dir,
                 u->attempt);
}

static void fill_launch(const struct sup *u, struct fr_launch *l)
{
    *l = (struct fr_launch){.job = u->job,
                            .attempt = u->attempt,
                            .epoch = u->epoch,
                            .placements = u->placements,
                            .nplacements = u->nplacements,
                            .command = u->s->command,
                            .probe_lib = u->s->probe_lib,
                            .level = u->s->level,
                            .work_dir = u->workdir,
                            .attempt_dir = u->attempt_dir,
                            .stdout_fd = STDOUT_FILENO,
                            .stderr_fd = STDERR_FILENO};
}

static void start_attempt(struct sup *u, uint32_t attempt, uint64_t epoch, const char *why)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_launch l;
    char nodes[256] = "";
    size_t at = 0;
    int write_end = -1, rc;

    u->attempt = attempt;
    u->epoch = epoch;
    u->exit_code = -1;
    u->exit_signal = 0;
    u->dead_rank = -1;
    u->exit_text[0] = '\0';
    u->ended_unix_ns = 0;
    u->started_unix_ns = fr_unix_ns();
    u->launcher_gone = false;
    u->word_ns = 0;
    fr_word_init(&u->word);
    name_attempt_dir(u);
    set_state(u, FULLRANK__ATTEMPT_STATE__ATTEMPT_STARTING);

    for (size_t i = 0; i < u->nplacements && at < sizeof nodes - FR_NAME_BYTES - 2; i++)
        at += (size_t)snprintf(nodes + at, sizeof nodes - at, "%s%s", i ? " " : "",
                               u->placements[i].node);
    say(u, "%s: attempt %u on %s%s%s", u->job, attempt, nodes, why && *why ? ": " : "",
        why ? why : "");
    fill_launch(u, &l);
    rc = fr_tee_open(&u->tee, STDERR_FILENO, &write_end, &err);
    if (rc == 0) {
        l.stderr_fd = write_end;
        rc = u->ops->launch(u->engine, &l, &u->proc, &err);
        close(write_end);
    }
    if (rc < 0) {
        fr_complain("fullrank", "%s: attempt %u was not started: %s", u->job, attempt, err.text);
        fr_tee_close(&u->tee, NULL, 0);
        u->ops->sweep(u->engine, &l);
        u->exit_code = 127;
        snprintf(u->exit_text, sizeof u->exit_text, "%.250s", err.text);
        mark_ended(u);
        return;
    }
    set_state(u, FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING);
}

static void reap(struct sup *u)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == u->proc.launcher) {
            u->launcher_gone = true;
            u->launcher_status = status;
        }
}

static bool attempt_lives(const struct sup *u)
{
    return u->state == FULLRANK__ATTEMPT_STATE__ATTEMPT_STARTING ||
           u->state == FULLRANK__ATTEMPT_STATE__ATTEMPT_RUNNING ||
           u->state == FULLRANK__ATTEMPT_STATE__ATTEMPT_STOPPING;
}

/* End what is left of the attempt and note how it ended. `ordered`: we end it, its exit status says
 * nothing. */
static void end_attempt(struct sup *u, bool ordered)
{
    struct fr_err err = FR_ERR_INIT;
    struct fr_launch l;

    if (u->ops->stop(u->engine, &u->proc, FR_SUPERVISE_STOP_S, &err) < 0)
        fr_complain("fullrank", "%s: %s", u->job, err.text);
    reap(u);
    fr_tee_close(&u->tee, ordered ? NULL : &u->word, 0.5);
    fill_launch(u, &l);
    u->ops->sweep(u->engine, &l);
    if (ordered) {
        u->exit_code = -1;
        u->exit_signal = SIGKILL;
        snprintf(u->exit_text, sizeof u->exit_text, "stopped by order");
    } else {
        if (WIFSIGNALED(u->launcher_status)) {
            u->exit_signal = WTERMSIG(u->launcher_status);
            snprintf(u->exit_text, sizeof u->exit_text, "the launcher ended by signal %d",
                     u->exit_signal);
        } else {
            u->exit_code = WEXITSTATUS(u->launcher_status);
        }
        if (WIFSIGNALED(u->launcher_status) && u->word.exit_code >= 0) {
            u->exit_signal = 0; /* its end is ours, its word is the job's */
            u->exit_code = u->word.exit_code;
        }
        if (u->word.signal) {
            u->exit_signal = u->word.signal;
            u->exit_code = -1;
        }
        if (u->word.rank < 0 && u->word.exit_code > 0)
            u->exit_code = u->word.exit_code;
        u->dead_rank = u->word.rank;
        if (u->word.text[0])
            snprintf(u->exit_text, sizeof u->exit_text, "%s", u->word.text);
    }
    mark_ended(u);
}

/* The code with which a shell would show this end. */
static int shell_code(const struct sup *u)
{
    if (u->exit_signal)
        return 128 + u->exit_signal;
    return u->exit_code >= 0 ? u->exit_code : FR_EXIT_FAILED;
}

/* --- reports and orders --- */

static void post(struct sup *u)
{
    Fullrank__SuperviseReport r = FULLRANK__SUPERVISE_REPORT__INIT;
    FR_CLEANUP(fr_freep) char **nodes = fr_xcalloc(u->nplacements + 1, sizeof *nodes);
    size_t ncommand = 0;

    while (u->s->command[ncommand])
        ncommand++;
    for (size_t i = 0; i < u->nplacements; i++)
        nodes[i] = u->placements[i].node;
    r.job = u->job;
    r.name = (char *)u->s->name;
    r.n_command = ncommand;
    r.command = (char **)u->s->command;
    r.uid = getuid();
    r.user = u->user;
    r.engine = (char *)u->s->engine;
    r.nodes = u->s->nodes;
    r.ranks_per_node = u->s->ranks_per_node;
    r.spares = u->s->spares;
    r.max_attempts = u->s->max_attempts;
    r.mode = (char *)u->s->mode;
    r.submitted_unix_ns = u->submitted_unix_ns;
    r.supervisor_pid = (uint32_t)getpid();
    r.session = (uint32_t)getsid(0);
    r.workdir = u->workdir;
    r.attempt = u->attempt;
    r.epoch = u->epoch;
    r.state = u->state;
    r.n_node_list = u->nplacements;
    r.node_list = nodes;
    r.started_unix_ns = u->started_unix_ns;
    r.ended_unix_ns = u->ended_unix_ns;
    r.exit_code = u->exit_code;
    r.exit_signal = u->exit_signal;
    r.exit_text = u->exit_text;
    r.first_dead_rank = u->dead_rank;
    r.cancelled = u->cancelled;
    r.last_order = u->last_order;
    r.finished = u->finished;
    r.key = u->key;
    r.restarts_owner = (char *)u->s->restarts_owner;
    fr_buf_reset(&u->packed);
    fr_message_pack(&r.base, &u->packed);
    fr_link_post(u->link, u->packed.p, u->packed.len);
    u->dirty = false;
    u->posted_ns = fr_mono_ns();
}

static void finish(struct sup *u, int code)
{
    if (u->code >= 0)
        return;
    u->code = code;
    u->code_ns = fr_mono_ns();
    u->finished = true;
    u->dirty = true;
    save(u);
}

static int take_placements(struct sup *u, const Fullrank__SuperviseOrder *o, struct fr_err *err)
{
    struct fr_placement *v;
    uint32_t next = 0;

    if (o->n_placements == 0 || o->n_placements > RANKS_MAX)
        return fr_fail(err, -EPROTO, "order %llu places nothing", (unsigned long long)o->id);
    v = fr_xcalloc(o->n_placements, sizeof *v);
    for (size_t i = 0; i < o->n_placements; i++) {
        const Fullrank__Placement *p = o->placements[i];

        v[i].first_rank = next;
        v[i].nranks = (uint32_t)p->n_ranks;
        snprintf(v[i].node, sizeof v[i].node, "%s", p->node);
        snprintf(v[i].host, sizeof v[i].host, "%s", p->host);
        snprintf(v[i].probe_dir, sizeof v[i].probe_dir, "%s", p->probe_dir);
        if (p->n_ranks == 0 || p->n_ranks > RANKS_MAX) {
            free(v);
            return fr_fail(err, -EPROTO, "order %llu places no rank on %.60s",
                           (unsigned long long)o->id, p->node);
        }
        for (size_t k = 0; k < p->n_ranks; k++)
            if (p->ranks[k] != next++) {
                free(v);
                return fr_fail(err, -EPROTO, "order %llu does not place ranks in order",
                               (unsigned long long)o->id);
            }
    }
    free(u->placements);
    u->placements = v;
    u->nplacements = o->n_placements;
    return 0;
}

static void obey(struct sup *u, const Fullrank__SuperviseOrder *o)
{
    struct fr_err err = FR_ERR_INIT;

    u->last_order =
        o->id; /* kept on disk by each state change below, before anything is started or ended */
    u->dirty = true;
    switch (o->what) {
    case FULLRANK__SUPERVISE_ORDER__WHAT__START:
        /* What was ordered before we went on alone is not done any more: its epoch is over. */
        if (attempt_lives(u) || o->attempt <= u->attempt || o->epoch <= u->epoch || u->cancelled) {
            save(u);
            break;
        }
        if (take_placements(u, o, &err) < 0) {
            fr_complain("fullrank", "%s", err.text);
            save(u);
            break;
        }
        u->alone = 0;
        start_attempt(u, o->attempt, o->epoch, o->reason);
        break;
    case FULLRANK__SUPERVISE_ORDER__WHAT__STOP:
        if (!attempt_lives(u) || o->epoch != u->epoch) {
            save(u);
            break;
        }
        say(u, "%s: ending attempt %u: %s", u->job, u->attempt, o->reason);
        set_state(u, FULLRANK__ATTEMPT_STATE__ATTEMPT_STOPPING);
        if (fr_link_idle(u->link))
            post(u);
        end_attempt(u, true);
        break;
    case FULLRANK__SUPERVISE_ORDER__WHAT__FINISH:
        if (attempt_lives(u))
            end_attempt(u, true);
        if (o->reason[0] && o->exit_code && strncmp(o->reason, u->note, sizeof u->note - 1) != 0)
            say(u, "%s: %s", u->job, o->reason);
        finish(u, o->exit_code >= 0 && o->exit_code < 256 ? o->exit_code : shell_code(u));
        break;
    default:
        save(u);
    }
}

static void read_answer(struct sup *u)
{
    struct fr_message_memory mem;
    struct fr_err err = FR_ERR_INIT;
    Fullrank__SuperviseOrder *o;
    int status = fr_link_take(u->link, &u->reply, &err);

    if (status == 0)
        return;
    if (status == 401 || status == 403) {
        if (!u->heard) {
            fr_complain("fullrank", "controller at %s %s (give its file: --token-file%s)",
                        u->s->server, u->s->token ? "refused the token" : "needs a token",
                        u->s->token ? "" : " or FULLRANK_TOKEN_FILE");
            finish(u, FR_EXIT_SERVER);
        }
        return;
    }
    if (status != 200)
        return; /* away, or not ready yet: the job goes on, the next report is due anyway */
    fr_message_memory_init(&mem, 1u << 20);
    o = fullrank__supervise_order__unpack(&mem.alloc, u->reply.len,
                                          (const uint8_t *)fr_buf_str(&u->reply));
    if (!o)
        return;
    if (u->said_away)
        say(u, "%s: the controller is back", u->job);
    u->said_away = false;
    u->heard_ns = fr_mono_ns();
    if (o->error[0]) {
        if (!u->heard) {
            fr_complain("fullrank", "controller at %s refused the job: %s", u->s->server, o->error);
            finish(u, FR_EXIT_FAILED);
        }
    } else {
        u->heard = true;
        if (!u->job[0] && o->job[0]) {
            snprintf(u->job, sizeof u->job, "%s", o->job);
            save(u);
        }
        /* The last order brings the note as its reason: it is said there, once. */
        if (o->note[0] && strcmp(o->note, u->note) != 0 && !u->finished &&
            !(o->id > u->last_order && o->what == FULLRANK__SUPERVISE_ORDER__WHAT__FINISH &&
              o->exit_code) &&
            (!u->note_ns || age_s(u->note_ns) >= NOTE_EVERY_S)) {
            u->note_ns = fr_mono_ns();
            snprintf(u->note, sizeof u->note, "%s", o->note);
            say(u, "%s: %s", u->job, u->note);
        }
        if (o->id > u->last_order)
            obey(u, o);
    }
    fullrank__supervise_order__free_unpacked(o, &mem.alloc);
}

/* --- without the controller --- */

static void go_on_alone(struct sup *u)
{
    bool away = age_s(u->heard_ns) > AWAY_AFTER_S;
    uint64_t from = u->ended_ns > u->heard_ns ? u->ended_ns : u->heard_ns;

    if (!away || u->finished)
        return;
    if (!u->heard) {
        if (age_s(u->heard_ns) > FR_SUPERVISE_AWAY_S) {
            fr_complain(
                "fullrank",
                "no controller answers at %s (start one, or leave --server out for a private one)",
                u->s->server);
            finish(u, FR_EXIT_SERVER);
        }
        return;
    }
    if (!u->said_away) {
        u->said_away = true;
        say(u, "%s: the controller is away; %s", u->job,
            attempt_lives(u) ? "the job runs on" : "waiting for it");
    }
    if (u->state != FULLRANK__ATTEMPT_STATE__ATTEMPT_ENDED || age_s(from) < FR_SUPERVISE_AWAY_S)
        return;
    if (u->exit_code == 0 && u->exit_signal == 0) {
        finish(u, 0);
    } else if (u->s->restarts_owner[0]) { /* not ours to start again (law 9) */
        finish(u, shell_code(u));
    } else if (u->alone < FR_SUPERVISE_ALONE_MAX) {
        u->alone++;
        start_attempt(u, u->attempt + 1, u->epoch + 1,
                      "the controller is away, the same nodes are used again");
    } else {
        say(u, "%s: gave up after %d attempts without the controller", u->job,
            FR_SUPERVISE_ALONE_MAX);
        finish(u, shell_code(u));
    }
}

static void cancel(struct sup *u, int sig)
{
    u->cancel_signal = sig;
    if (u->finished)
        return;
    u->cancelled = true;
    if (attempt_lives(u)) {
        set_state(u, FULLRANK__ATTEMPT_STATE__ATTEMPT_STOPPING);
        end_attempt(u, true);
    }
    say(u, "%s: cancelled", u->job[0] ? u->job : "job");
    finish(u, 128 + sig);
}

/* Open MPI can stand still for good after it has told of a rank that failed at start. Its word
 * alone ends nothing, as a program may print the same: no process of the job may be left. */
static void end_hung_launcher(struct sup *u)
{
    FR_CLEANUP(fr_freep) struct fr_proc *v = NULL;

    if (!attempt_lives(u) || u->launcher_gone || !u->word.text[0] ||
        age_s(u->word_ns) < HUNG_AFTER_S)
        return;
    if (!u->word_ns) { /* first seen: give it its time */
        u->word_ns = fr_mono_ns();
        return;
    }
    u->word_ns = fr_mono_ns();
    if (fr_procs_of_session(u->proc.session, getpid(), getpid(), &v) != 1 ||
        v[0].pid != u->proc.launcher)
        return;
    fr_complain("fullrank", "%s: attempt %u: mpirun stands still after \"%s\", and is ended",
                u->job, u->attempt, u->word.text);
    end_attempt(u, false);
}

static void read_signals(struct sup *u, int fd)
{
    struct signalfd_siginfo si;

    while (read(fd, &si, sizeof si) == (ssize_t)sizeof si) {
        if (si.ssi_signo == SIGINT || si.ssi_signo == SIGTERM)
            cancel(u, (int)si.ssi_signo);
    }
    reap(u);
    if (u->launcher_gone && attempt_lives(u))
        end_attempt(u, false);
}

/* true: the last report was delivered, or was tried for long enough. */
static bool is_over(const struct sup *u)
{
    bool told =
        u->heard_ns > u->code_ns && !u->dirty && fr_link_idle(u->link) && u->posted_ns > u->code_ns;

    return u->code >= 0 && (told || !u->heard || age_s(u->code_ns) > LAST_WORD_S);
}

static void loop(struct sup *u, int sigs)
{
    while (!is_over(u)) {
        double every_s = age_s(u->heard_ns) > AWAY_AFTER_S ? 0.5 : FR_SUPERVISE_TICK_MS / 1e3;
        struct pollfd fds[4] = {{.fd = sigs, .events = POLLIN},
                                {.fd = fr_link_fd(u->link), .events = POLLIN}};
        int wait_ms;

        if (fr_link_idle(u->link) && (u->dirty || age_s(u->posted_ns) >= every_s))
            post(u);
        fr_tee_poll(&u->tee, fds + 2);
        wait_ms = (int)((every_s - age_s(u->posted_ns)) * 1e3) + 1;
        if (poll(fds, 4, wait_ms < 1 ? 20 : wait_ms) < 0 && errno != EINTR)
            poll(NULL, 0, 20);
        fr_tee_move(&u->tee, &u->word);
        read_signals(u, sigs);
        end_hung_launcher(u);
        read_answer(u);
        go_on_alone(u);
    }
}

static int open_signals(void)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int fr_supervise_run(const struct fr_supervise *s)
{
    struct fr_err err = FR_ERR_INIT;
    struct sup *u = fr_xalloc(sizeof *u);
    const struct passwd *pw = getpwuid(getuid());
    int sigs = open_signals(), code;

    *u = (struct sup){
        .s = s, .tee = {.in = -1, .out = -1}, .exit_code = -1, .dead_rank = -1, .code = -1};
    u->submitted_unix_ns = fr_unix_ns();
    u->heard_ns = fr_mono_ns();
    u->dirty = true;
    snprintf(u->user, sizeof u->user, "%s", pw ? pw->pw_name : "");
    u->workdir = getcwd(NULL, 0);
    if (getrandom(&u->key, sizeof u->key, 0) != (ssize_t)sizeof u->key || u->key == 0)
        u->key = fr_mono_ns() ^ ((uint64_t)getpid() << 40) ^ 1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    u->ops = fr_engine_find(s->engine);
    if (!u->ops || !u->ops->launch) {
        fr_fail(&err, -ENOTSUP, "engine %s cannot launch a job here (engines: local)", s->engine);
        code = fr_cli_fail(FR_EXIT_USAGE, &err);
    } else if (sigs < 0 || !u->workdir || fr_fs_mkdirs(s->state_dir, 0700, &err) < 0 ||
               u->ops->open(s->state_dir, &u->engine, &err) < 0 ||
               fr_link_new(s->server, s->token, &u->link, &err) < 0) {
        if (!err.text[0])
            fr_fail(&err, -EIO,
                    "cannot start: the working directory is gone or there are no file descriptors");
        code = fr_cli_fail(FR_EXIT_FAILED, &err);
    } else if (save(u) < 0) {
        code = FR_EXIT_FAILED;
    } else {
        loop(u, sigs);
        code = u->code;
    }
    fr_tee_close(&u->tee, NULL, 1.0);
    fr_link_free(u->link);
    if (u->engine)
        u->ops->close(u->engine);
    fr_buf_fini(&u->packed);
    fr_buf_fini(&u->reply);
    free(u->placements);
    free(u->workdir);
    free(u);
    if (sigs >= 0)
        close(sigs);
    return code;
}

/* --- after a supervisor that could not end in order --- */

/* The folder in memory of the attempt that the state on disk tells of. */
static void remove_attempt_dir(const char *state_dir)
{
    FR_CLEANUP(fr_buf_fini) struct fr_buf b = FR_BUF_INIT;
    FR_CLEANUP(fr_json_freep) struct fr_json *json = NULL;
    char path[300];
    const char *key;
    int64_t attempt;

    snprintf(path, sizeof path, "%.200s/" STATE_NAME, state_dir);
    if (fr_fs_read(path, 1u << 20, &b, NULL) < 0 || fr_json_parse(b.p, b.len, &json, NULL) < 0)
        return;
    key = fr_json_str(json, "key", "");
    attempt = fr_json_int(json, "attempt", 0);
    if (strlen(key) != 16 || strspn(key, "0123456789abcdef") != 16 || attempt <= 0)
        return;
    snprintf(path, sizeof path, "/dev/shm/fullrank-%s-%lld", key, (long long)attempt);
    fr_fs_remove_tree(path, NULL);
}

void fr_supervise_clean(pid_t pid, int sig, const char *state_dir)
{
    uint64_t until = fr_mono_ns() + (uint64_t)(FR_SUPERVISE_STOP_S * 1e9);
    int n, found = 0;

    do { /* again: what dies may have been forking */
        FR_CLEANUP(fr_freep) struct fr_proc *v = NULL;

        n = fr_procs_of_session(pid, 0, pid, &v);
        for (int i = 0; i < n; i++) {
            int fd = fr_proc_open(&v[i]);

            if (fd >= 0) {
                fr_proc_signal(fd, SIGKILL);
                close(fd);
            }
        }
        found = n > found ? n : found;
        if (n > 0)
            poll(NULL, 0, 5);
    } while (n > 0 && fr_mono_ns() < until);
    if (state_dir)
        remove_attempt_dir(state_dir);
    if (found == 0 && (sig == SIGINT || sig == SIGTERM))
        return; /* cancelled before it had begun */
    fr_complain(
        "fullrank",
        "the job's supervisor (pid %d) was ended by signal %d; %d processes of the job were "
        "left and were ended",
        (int)pid, sig, found);
}

/* --- the copy in a session of its own --- */

static volatile sig_atomic_t lead_child;

static void pass_on(int sig)
{
    if (lead_child > 0)
        kill((pid_t)lead_child, sig);
}

int fr_supervise_lead(char *const *argv, const char *state_dir, int *ret_code, struct fr_err *err)
{
    extern char **environ;
    struct sigaction sa = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    posix_spawnattr_t at;
    siginfo_t si = {0};
    pid_t pid;
    int rc, status;

    if (getsid(0) == getpid())
        return 1;
    posix_spawnattr_init(&at);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSID);
    rc = posix_spawn(&pid, fr_cli_self(), NULL, &at, argv, environ);
    posix_spawnattr_destroy(&at);
    if (rc)
        return fr_fail(err, -rc, "cannot start %s again: %s", fr_cli_self(), strerror(rc));
    lead_child = pid;
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    /* Looked at before it is reaped: so long its pid, and with it its session, is nobody else's. */
    while (waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT) < 0)
        if (errno != EINTR)
            return fr_fail(err, -errno, "lost sight of the supervisor %d: %s", (int)pid,
                           strerror(errno));
    if (si.si_code != CLD_EXITED)
        fr_supervise_clean(pid, si.si_status, state_dir);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fr_fail(err, -errno, "lost sight of the supervisor %d: %s", (int)pid,
                           strerror(errno));
    *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}
