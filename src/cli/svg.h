/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg.h - small plots as inline SVG: axes with round ticks, dots, lines, bars, labels
 *
 * Unit:    data in the caller's units; positions in CSS pixels.
 * Threads: none; one owner at a time.
 */
#ifndef FR_CLI_SVG_H
#define FR_CLI_SVG_H

#include "base/buf.h"

struct fr_svg {
    struct fr_buf *out;
    double width, height;            /* whole picture */
    double left, right, top, bottom; /* margins */
    double x0, x1, y0, y1;           /* range of the data; x0 < x1, y0 < y1 */
};

/* Open the picture; `what` is read aloud. */
void fr_svg_begin(struct fr_svg *s, const char *what);
void fr_svg_end(struct fr_svg *s);
/* Ticks, grid, titles (escaped). y_title NULL: no y axis. */
void fr_svg_axes(struct fr_svg *s, const char *x_title, const char *y_title);
double fr_svg_x(const struct fr_svg *s, double x);
double fr_svg_y(const struct fr_svg *s, double y);
void fr_svg_dot(struct fr_svg *s, double x, double y, const char *cls);
/* A line through n points; a NaN makes a gap. */
void fr_svg_line(struct fr_svg *s, const double *x, const double *y, size_t n, const char *cls);
/* An upright mark over the whole height, with a label at its top (row 0, 1, 2: lower, so that
 * labels stay apart). */
void fr_svg_mark(struct fr_svg *s, double x, int row, const char *label, const char *cls);
/* A bar from x0 to x1 of data, between two pixel heights, with a tip that is shown on pointing. */
void fr_svg_bar(struct fr_svg *s, double x0, double x1, double top, double bottom, const char *tip,
                const char *cls);
void fr_svg_text(struct fr_svg *s, double px, double py, const char *anchor, const char *text,
                 const char *cls);

/* A step of 1, 2 or 5 times a power of ten that cuts the range into about n. */
double fr_svg_nice(double range, int n);

#endif /* FR_CLI_SVG_H */
