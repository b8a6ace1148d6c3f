/* SPDX-License-Identifier: Apache-2.0 */
/* ras.c - see ras.h */
#define _GNU_SOURCE
#include "agent/ras.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "sense/proc/process.h"

#define TCP_LINES  200000 /* those that listen come first */
#define LISTENERS  32
#define TCP_LISTEN 0x0a
#define FILES_MAX  65536 /* open files of one process that are looked at */
#define READ_BYTES 65536

/* --- where --- */

int fr_ras_place_parse(const char *text, struct fr_ras_place *ret)
{
    struct fr_ras_place p = {.port = FR_RAS_PORT};
    const char *colon;
    char host[40];
    uint64_t port;
    size_t n;

    if (!text || !*text) {
        *ret = p;
        return 0;
    }
    colon = strrchr(text, ':');
    n = colon ? (size_t)(colon - text) : strlen(text);
    if (n >= sizeof host || (colon && fr_parse_uint(colon + 1, 1, 65535, &port) != 0))
        return -EINVAL;
    memcpy(host, text, n);
    host[n] = '\0';
    if (colon)
        p.port = (uint16_t)port;
    if (strcmp(host, "[::1]") == 0)
        p.v6 = true;
    else if (strcasecmp(host, "localhost") != 0 && strncmp(host, "127.", 4) != 0)
        return -EINVAL;
    *ret = p;
    return 0;
}

/* --- whose --- */

/* A line of /proc/net/tcp: the inode of the socket that listens on that port at loopback or
 * anywhere. */
static uint64_t inode_of_line(const char *line, uint16_t port)
{
    char addr[40];
    unsigned at_port, state;
    unsigned long long inode;
    static const char *const OURS[] = {"0100007F", "00000000", "00000000000000000000000000000000",
                                       "00000000000000000000000001000000",
                                       "0000000000000000FFFF00000100007F"};

    if (sscanf(line, " %*[^:]: %39[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %llu", addr, &at_port,
               &state, &inode) != 4 ||
        state != TCP_LISTEN || at_port != port)
        return 0;
    for (size_t i = 0; i < sizeof OURS / sizeof OURS[0]; i++)
        if (strcmp(addr, OURS[i]) == 0)
            return inode;
    return 0;
}

/* RAS may share its port between processes: all sockets that listen there. */
struct listeners {
    uint64_t inode[LISTENERS];
    size_t n;
};

static void find_listeners(const char *root, const char *table, uint16_t port, struct listeners *l)
{
    char path[256], line[512];
    size_t lines = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/proc/net/%s", root, table);
    f = fopen(path, "re");
    while (f && lines++ < TCP_LINES && l->n < LISTENERS && fgets(line, sizeof line, f)) {
        uint64_t inode = inode_of_line(line, port);

        if (inode)
            l->inode[l->n++] = inode;
    }
    if (f)
        fclose(f);
}

/* 1 when the process has that socket open. */
static int holds_socket(const char *root, const struct fr_ras_rank *r, uint64_t inode)
{
    char path[256], want[48], link[64];
    struct fr_proc_stat st;
    struct dirent *e;
    int found = 0, seen = 0;
    DIR *d;

    snprintf(want, sizeof want, "socket:[%llu]", (unsigned long long)inode);
    snprintf(path, sizeof path, "%s/proc/%u/fd", root, r->pid);
    d = opendir(path);
    while (d && !found && seen++ < FILES_MAX && (e = readdir(d)) != NULL) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof link - 1);

        if (n <= 0)
            continue;
        link[n] = '\0';
        found = strcmp(link, want) == 0;
    }
    if (d)
        closedir(d);
    /* asked last: the pid cannot have become another's in between */
    return found && fr_proc_stat_read(root, r->pid, &st) == 0 && st.starttime == r->starttime;
}

int fr_ras_listener(const char *root, const struct fr_ras_place *at,
                    const struct fr_ras_rank *ranks, size_t n, uint32_t *ret_pid)
{
    struct listeners l = {.n = 0};

    if (!at->v6)
        find_listeners(root, "tcp", at->port, &l);
    find_listeners(root, "tcp6", at->port, &l);
    if (l.n == 0)
        return -ENOENT;
    for (size_t k = 0; k < l.n; k++) { /* a stranger among them could be the one that answers */
        size_t i = 0;

        while (i < n && i < FR_RAS_RANKS_ASKED && !holds_socket(root, &ranks[i], l.inode[k]))
            i++;
        if (i >= n || i >= FR_RAS_RANKS_ASKED)
            return -EPERM;
        *ret_pid = ranks[i].pid;
    }
    return 0;
}

/* --- one question --- */

const struct fr_ras_limits FR_RAS_LIMITS = {1, 12, 256u << 20};

struct line {
    int fd;
    const struct fr_ras_limits *limits;
    uint64_t until_ns;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static int wait_for(const struct line *l, short events)
{
    uint64_t now = fr_mono_ns();
    struct pollfd p = {.fd = l->fd, .events = events};
    int rc;

    if (now >= l->until_ns)
        return -ETIMEDOUT;
    rc = poll(&p, 1, (int)((l->until_ns - now) / 1000000u) + 1);
    if (rc < 0)
        return errno == EINTR ? 0 : -errno;
    return rc == 0 ? -ETIMEDOUT : 0;
}

static int dial_one(bool v6, uint16_t port, struct line *l)
{
    struct sockaddr_in to4 = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    struct sockaddr_in6 to6 = {
        .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(port)};
    socklen_t n = sizeof(int);
    int rc, soft = 0;

    l->until_ns = fr_mono_ns() + (uint64_t)(l->limits->line_s * 1e9);
    l->fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fd < 0)
        return -errno;
    rc = v6 ? connect(l->fd, (struct sockaddr *)&to6, sizeof to6)
            : connect(l->fd, (struct sockaddr *)&to4, sizeof to4);
    if (rc == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -errno;
    rc = wait_for(l, POLLOUT);
    if (rc < 0)
        return rc;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &soft, &n) != 0)
        return -errno;
    return -soft;
}

/* "localhost" may be either: the older family first, as RAS listens at one of them. */
static int dial(const struct fr_ras_place *at, struct line *l)
{
    int rc = dial_one(at->v6, at->port, l);

    if (rc == -ECONNREFUSED && !at->v6) {
        close_fd(&l->fd);
        rc = dial_one(true, at->port, l);
    }
    return rc;
}

static int say(const struct line *l, const char *text)
{
    size_t done = 0, n = strlen(text);

    while (done < n) {
        ssize_t k = send(l->fd, text + done, n - done, MSG_NOSIGNAL);
        int rc;

        if (k > 0) {
            done += (size_t)k;
            continue;
        }
        if (k < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        rc = wait_for(l, POLLOUT);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Say a line and hear one; it comes without its end. A byte at a time: what follows it is the next
 * question's. */
static int ask(struct line *l, const char *text, char *answer, size_t room)
{
    size_t n = 0;
    int rc;

    l->until_ns = fr_mono_ns() + (uint64_t)(l->limits->line_s * 1e9);
    rc = say(l, text);
    while (rc == 0) {
        char c;
        ssize_t k = recv(l->fd, &c, 1, 0);

        if (k == 0)
            return -ECONNRESET;
        if (k < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (k < 0) {
            rc = wait_for(l, POLLIN);
            continue;
        }
        if (c == '\n') {
            answer[n] = '\0';
            return 0;
        }
        if (c != '\r' && n + 1 < room)
            answer[n++] = c;
        else if (c != '\r')
            return -EMSGSIZE;
    }
    return rc;
}

static int read_report(struct line *l, struct fr_ras_parser *p, struct fr_ras_answer *a,
                       struct fr_err *err)
{
    char buf[READ_BYTES];
    uint64_t total = 0;

    l->until_ns = fr_mono_ns() + (uint64_t)(l->limits->answer_s * 1e9);
    for (;;) {
        ssize_t k = recv(l->fd, buf, sizeof buf, 0);
        int rc = 0;

        if (k == 0)
            return fr_ras_parser_end(p, &a->report, err);
        if (k < 0 && errno != EAGAIN && errno != EINTR)
            return fr_fail(err, -errno, "RAS: the report broke off: %s", strerror(errno));
        if (k < 0) {
            rc = wait_for(l, POLLIN);
        } else {
            total += (uint64_t)k;
            if (a->kept.len < FR_RAS_KEPT_BYTES)
                fr_buf_add(&a->kept, buf,
                           (size_t)k < FR_RAS_KEPT_BYTES - a->kept.len
                               ? (size_t)k
                               : FR_RAS_KEPT_BYTES - a->kept.len);
            if (fr_mono_ns() > l->until_ns) /* also of one who drips */
                rc = -ETIMEDOUT;
            else if (total > l->limits->bytes)
                return fr_fail(err, -E2BIG, "RAS: a report of more than %llu bytes",
                               (unsigned long long)l->limits->bytes);
            else
                rc = fr_ras_parser_feed(p, buf, (size_t)k, err);
            if (rc == -EBADMSG)
                return rc;
        }
        if (rc < 0)
            return fr_fail(err, rc, "RAS: no whole report in %.1f s", l->limits->answer_s);
    }
}

static int converse(struct line *l, struct fr_ras_answer *a, struct fr_err *err)
{
    FR_CLEANUP(fr_ras_parser_freep) struct fr_ras_parser *p = NULL;
    char answer[256], text[32];
    int rc = ask(l, "CLIENT PROTOCOL 2\n", answer, sizeof answer);

    if (rc < 0)
        return fr_fail(err, rc, "RAS: no handshake: %s", strerror(-rc));
    if (strncasecmp(answer, "SERVER PROTOCOL ", 16) != 0) /* its version is NCCL's to say */
        return fr_fail(err, -EPROTO, "RAS: whoever listens there is not RAS");
    snprintf(text, sizeof text, "TIMEOUT %d\n", FR_RAS_LEG_S);
    rc = ask(l, text, answer, sizeof answer);
    if (rc == 0)
        rc = ask(l, "SET FORMAT json\n", answer, sizeof answer); /* refused before 2.28.7 */
    a->json = rc == 0 && strcasecmp(answer, "OK") == 0;
    if (rc == 0)
        rc = say(l, a->json ? "STATUS\n" : "VERBOSE STATUS\n");
    if (rc < 0)
        return fr_fail(err, rc, "RAS: the handshake broke off: %s", strerror(-rc));
    p = fr_ras_parser_new(a->json);
    return read_report(l, p, a, err);
}

int fr_ras_query(const struct fr_ras_place *at, const struct fr_ras_rank *ranks, size_t n,
                 const struct fr_ras_limits *limits, struct fr_ras_answer *ret, struct fr_err *err)
{
    struct fr_ras_answer a = {.kept = FR_BUF_INIT};
    FR_CLEANUP(close_fd) int fd = -1;
    struct line l = {.fd = -1, .limits = limits};
    int rc = fr_ras_listener("", at, ranks, n, &a.owner);

    if (rc < 0)
        return fr_fail(err, rc, "RAS: %s listens at port %u",
                       rc == -ENOENT ? "nobody" : "none of the job's ranks", at->port);
    rc = dial(at, &l);
    fd = l.fd;
    if (rc < 0)
        return fr_fail(err, rc, "RAS: cannot connect to port %u: %s", at->port, strerror(-rc));
    rc = converse(&l, &a, err);
    if (rc < 0) {
        fr_ras_answer_fini(&a);
        return rc;
    }
    *ret = a;
    return 0;
}

void fr_ras_answer_fini(struct fr_ras_answer *a)
{
    fr_buf_fini(&a->kept);
}

/* --- over several answers --- */

static bool is_same(const struct fr_ras_fact *a, const struct fr_ras_fact *b)
{
    return a->what == b->what && a->pid == b->pid && a->comm == b->comm &&
           a->comm_rank == b->comm_rank && strcmp(a->host, b->host) == 0;
}

void fr_ras_track_take(struct fr_ras_track *t, const struct fr_ras_report *r, uint64_t now_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->n; i++)
        t->word[i].seen = false;
    for (size_t k = 0; k < r->nfacts; k++) {
        const struct fr_ras_fact *f = &r->facts[k];
        struct fr_ras_word *w = NULL;

        for (size_t i = 0; i < t->n && !w; i++)
            if (is_same(&t->word[i].fact, f))
                w = &t->word[i];
        if (!w) {
            if (t->n == FR_RAS_FACTS)
                continue; /* room comes when others have gone */
            w = &t->word[t->n++];
            *w = (struct fr_ras_word){.fact = *f};
        }
        if (w->polls == 0 || f->digest != w->fact.digest) {
            w->polls = 0; /* somebody of the communicator has moved */
            w->since_ns = now_ns;
        }
        w->fact = *f;
        w->polls += !w->seen;
        w->seen = true;
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->word[i].seen)
            t->word[kept++] = t->word[i];
    t->n = kept;
    t->asked_ns = now_ns;
}

static bool stands(const struct fr_ras_word *w)
{
    return w->fact.what == FR_RAS_DEAD || w->polls >= FR_RAS_POLLS;
}

static bool outweighs(const struct fr_ras_word *a, const struct fr_ras_word *b)
{
    return a->fact.what != b->fact.what ? a->fact.what > b->fact.what : a->since_ns < b->since_ns;
}

size_t fr_ras_track_words(const struct fr_ras_track *t, const struct fr_ras_word **ret, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct fr_ras_word *w = &t->word[i];
        size_t k = 0;

        if (!stands(w))
            continue;
        while (k < n &&
               (ret[k]->fact.pid != w->fact.pid || strcmp(ret[k]->fact.host, w->fact.host) != 0))
            k++;
        if (k < n && outweighs(w, ret[k]))
            ret[k] = w;
        else if (k == n && n < max)
            ret[n++] = w;
    }
    return n;
}
