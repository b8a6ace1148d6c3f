/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - cut a stream into clean lines, whatever wrote it
 *
 * Every reader of text in this room is fed from here. What a terminal would have eaten is taken
 * out: colour and cursor codes, NULs and other control characters (a tab stays). A carriage return
 * that is not part of a line end begins a new text of the same line, as progress bars do it. Bytes
 * that are not UTF-8 are passed on: whoever prints them makes U+FFFD of them.
 *
 * Range:   a text longer than FR_LINES_MAX bytes is delivered in pieces, cut at a blank where there
 *          is one.
 * Memory:  two times FR_LINES_MAX, whatever the input's size.
 * Threads: none; one owner at a time.
 */
#ifndef FR_SCAN_LINES_H
#define FR_SCAN_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FR_LINES_MAX 65536u

/* One text without its line end; number counts line feeds from 1, so that `sed -n NUMBERp` shows
 * it. p[n] may be read and is not part of the text. Not 0 ends the reading. */
typedef int (*fr_lines_fn)(const char *p, size_t n, uint64_t number, void *arg);

struct fr_lines {
    fr_lines_fn fn;
    void *arg;
    uint64_t number;       /* of the line under way */
    uint64_t bytes;        /* fed so far */
    struct fr_buf partial; /* begun in an earlier chunk */
    struct fr_buf clean;   /* a text with something taken out */
};

void fr_lines_init(struct fr_lines *l, fr_lines_fn fn, void *arg);
void fr_lines_fini(struct fr_lines *l);
/* 0, or what fn returned when it was not 0. */
int fr_lines_feed(struct fr_lines *l, const char *p, size_t n);
/* The last line may lack its line feed. */
int fr_lines_end(struct fr_lines *l);

#endif /* FR_SCAN_LINES_H */
