/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - where this program and what belongs to it lie; see cli.h */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

int fr_cli_fail(enum fr_exit code, const struct fr_err *err)
{
    fr_complain("fullrank", "%s", err->text);
    return (int)code;
}

const char *fr_cli_self(void)
{
    static char path[PATH_MAX];

    if (!path[0]) {
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

        path[n > 0 ? n : 0] = '\0';
    }
    return path;
}

/* The folder of this program, without a slash at the end. */
static void own_folder(char *ret, size_t n)
{
    char *slash;

    snprintf(ret, n, "%s", fr_cli_self());
    slash = strrchr(ret, '/');
    if (slash)
        *slash = '\0';
}

int fr_cli_beside(const char *name, char *ret, unsigned long n, struct fr_err *err)
{
    char folder[PATH_MAX];

    own_folder(folder, sizeof folder);
    if (snprintf(ret, n, "%s/%s", folder, name) < (int)n && access(ret, X_OK) == 0)
        return 0;
    return fr_fail(err, -ENOENT, "%s is not in %s (build or install the whole of fullrank)", name,
                   folder);
}

const char *fr_cli_probe_lib(void)
{
    static const char *const PLACES[] = {"/../lib/libfullrank-mpi.so",
                                         "/../lib/fullrank/libfullrank-mpi.so",
                                         "/../lib64/libfullrank-mpi.so"};
    static char path[PATH_MAX];
    const char *given = getenv("FULLRANK_PROBE_LIB");
    char folder[PATH_MAX / 2], raw[PATH_MAX];

    if (given && *given)
        return given;
    own_folder(folder, sizeof folder);
    for (size_t i = 0; i < sizeof PLACES / sizeof PLACES[0]; i++) {
        snprintf(raw, sizeof raw, "%s%s", folder, PLACES[i]);
        if (access(raw, R_OK) == 0 && realpath(raw, path))
            return path;
    }
    return NULL;
}

int fr_cli_state_home(char *ret, unsigned long n, struct fr_err *err)
{
    const char *own = getenv("FULLRANK_STATE_DIR"), *xdg = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    int len;

    if (own && *own)
        len = snprintf(ret, n, "%s", own);
    else if (xdg && *xdg)
        len = snprintf(ret, n, "%s/fullrank", xdg);
    else if (home && *home)
        len = snprintf(ret, n, "%s/.local/state/fullrank", home);
    else
        len = snprintf(ret, n, "/tmp/fullrank-%d", (int)getuid());
    if (len < 0 || (unsigned long)len >= n)
        return fr_fail(err, -ENAMETOOLONG,
                       "the path of the state folder is too long (set FULLRANK_STATE_DIR)");
    return 0;
}
