/* SPDX-License-Identifier: Apache-2.0 */
/* listen.c - see listen.h */
#include "control/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int split(const char *address, char *host, size_t nhost, char *port, size_t nport,
                 struct fr_err *err)
{
    const char *colon = strrchr(address, ':');
    size_t n;

    if (!colon || !colon[1] || strlen(colon + 1) >= nport)
        return fr_fail(err, -EINVAL, "listen address %s is not HOST:PORT", address);
    n = (size_t)(colon - address);
    if (n >= 2 && address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
    }
    if (n == 0 || n >= nhost)
        return fr_fail(err, -EINVAL, "listen address %s is not HOST:PORT", address);
    memcpy(host, address, n);
    host[n] = '\0';
    snprintf(port, nport, "%s", colon + 1);
    return 0;
}

static bool is_loopback(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr) >> 24 == 127;
    return sa->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
}

static int bind_one(const char *address, const struct addrinfo *ai, int *ret_fd, uint16_t *ret_port,
                    struct fr_err *err)
{
    struct sockaddr_storage got;
    socklen_t len = sizeof got;
    int one = 1, fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

    if (fd < 0)
        return fr_fail(err, -errno, "cannot make a socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1024) ||
        getsockname(fd, (struct sockaddr *)&got, &len)) {
        rc = -errno;
        close(fd);
        if (rc == -EADDRINUSE)
            return fr_fail(err, rc,
                           "cannot listen on %s: the address is in use (another controller runs "
                           "there? see --listen)",
                           address);
        return fr_fail(err, rc, "cannot listen on %s: %s", address, strerror(-rc));
    }
    *ret_port = ntohs(got.ss_family == AF_INET
                          ? ((const struct sockaddr_in *)(const void *)&got)->sin_port
                          : ((const struct sockaddr_in6 *)(const void *)&got)->sin6_port);
    *ret_fd = fd;
    return 0;
}

int fr_listen(const char *address, bool far_ok, int *ret_fd, uint16_t *ret_port, bool *ret_loopback,
              struct fr_err *err)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *ai = NULL;
    char host[128], port[8];
    int rc = split(address, host, sizeof host, port, sizeof port, err);

    if (rc)
        return rc;
    if (strcmp(host, "localhost") == 0)
        snprintf(host, sizeof host, "127.0.0.1");
    if (getaddrinfo(host, port, &hints, &ai))
        return fr_fail(err, -EINVAL, "listen address %s is not an IP address and a port", address);
    *ret_loopback = is_loopback(ai->ai_addr);
    if (!*ret_loopback && !far_ok)
        rc = fr_fail(err, -EPERM,
                     "will not listen on %s: other machines could reach it (give --tls-cert, "
                     "--tls-key and --token-file, or listen on 127.0.0.1)",
                     address);
    else
        rc = bind_one(address, ai, ret_fd, ret_port, err);
    freeaddrinfo(ai);
    return rc;
}
