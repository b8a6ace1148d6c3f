/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - the files of the page, served as they are under a strict content policy
 *
 * Threads: HTTP threads.
 */
#ifndef FR_CONTROL_PAGES_H
#define FR_CONTROL_PAGES_H

#include <microhttpd.h>

/* 1: "/" or below "/web/". */
int fr_pages_is_page(const char *url);
enum MHD_Result fr_pages_send(const char *web_dir, struct MHD_Connection *conn, const char *url);
/* Headers that every response bears. */
void fr_pages_headers(struct MHD_Response *r);

#endif /* FR_CONTROL_PAGES_H */
