/* SPDX-License-Identifier: Apache-2.0 */
/* out.c - see out.h */
#include "cli/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool fr_out_is_terminal(int fd)
{
    const char *term = getenv("TERM");

    return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

bool fr_out_color(const struct fr_cli *cli, int fd)
{
    const char *force = getenv("CLICOLOR_FORCE");

    if (strcmp(cli->color, "auto") != 0)
        return strcmp(cli->color, "always") == 0;
    return fr_out_is_terminal(fd) || (force && *force && strcmp(force, "0") != 0);
}

int fr_out_width(int fd)
{
    struct winsize w;

    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 100;
}

void fr_out_write(const struct fr_buf *b)
{
    size_t at = 0;

    while (at < b->len) {
        ssize_t n = write(STDOUT_FILENO, b->p + at, b->len - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* | head has seen enough: no error */
        at += (size_t)n;
    }
}

struct fr_table_style fr_out_style(const struct fr_cli *cli)
{
    return (struct fr_table_style){.format = cli->format,
                                   .fields = cli->fields,
                                   .no_header = cli->no_header,
                                   .color = fr_out_color(cli, STDOUT_FILENO),
                                   .cut = isatty(STDOUT_FILENO)};
}
