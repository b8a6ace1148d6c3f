/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c - see pages.h */
#include "control/pages.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_FILE_BYTES (4 << 20)

static const struct {
    const char *end, *type;
} TYPES[] = {{".html", "text/html; charset=utf-8"}, {".js", "text/javascript; charset=utf-8"},
             {".css", "text/css; charset=utf-8"},   {".svg", "image/svg+xml"},
             {".json", "application/json"},         {".png", "image/png"}};

int fr_pages_is_page(const char *url)
{
    return strcmp(url, "/") == 0 || strncmp(url, "/web/", 5) == 0;
}

void fr_pages_headers(struct MHD_Response *r)
{
    MHD_add_response_header(
        r, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
}

static const char *type_of(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++) {
        size_t k = strlen(TYPES[i].end);

        if (n > k && strcmp(name + n - k, TYPES[i].end) == 0)
            return TYPES[i].type;
    }
    return NULL;
}

/* Plain names only, in one folder or a folder below: no dot first, so no way up and nothing hidden.
 */
static int name_ok(const char *name)
{
    if (strlen(name) > 128 ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/") !=
            strlen(name))
        return 0;
    return name[0] != '.' && name[0] != '/' && !strstr(name, "/.") && !strstr(name, "//") &&
           !strstr(name, "..");
}

static enum MHD_Result not_found(struct MHD_Connection *conn)
{
    static char page[] = "there is no such page\n";
    struct MHD_Response *r =
        MHD_create_response_from_buffer(sizeof page - 1, page, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result rc;

    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
    fr_pages_headers(r);
    rc = MHD_queue_response(conn, 404, r);
    MHD_destroy_response(r);
    return rc;
}

enum MHD_Result fr_pages_send(const char *web_dir, struct MHD_Connection *conn, const char *url)
{
    const char *name = strcmp(url, "/") == 0 ? "index.html" : url + 5, *type = type_of(name);
    struct MHD_Response *r;
    enum MHD_Result rc;
    struct stat st;
    char path[1024];
    int fd;

    if (!name_ok(name) || !type)
        return not_found(conn);
    snprintf(path, sizeof path, "%s/%s", web_dir, name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return not_found(conn);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > PAGE_FILE_BYTES) {
        close(fd);
        return not_found(conn);
    }
    r = MHD_create_response_from_fd((size_t)st.st_size, fd); /* closes fd */
    if (!r) {
        close(fd);
        return MHD_NO;
    }
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    fr_pages_headers(r);
    rc = MHD_queue_response(conn, 200, r);
    MHD_destroy_response(r);
    return rc;
}
