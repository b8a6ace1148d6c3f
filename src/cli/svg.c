/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - see svg.h */
#include "cli/svg.h"

#include <math.h>
#include <stdio.h>

#include "cli/report.h"

double fr_svg_nice(double range, int n)
{
    double raw = range / n, power, m;

    if (!(raw > 0) || isinf(raw))
        return 1;
    power = pow(10, floor(log10(raw)));
    m = raw / power;
    return power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

double fr_svg_x(const struct fr_svg *s, double x)
{
    return s->left + (x - s->x0) / (s->x1 - s->x0) * (s->width - s->left - s->right);
}

double fr_svg_y(const struct fr_svg *s, double y)
{
    return s->height - s->bottom - (y - s->y0) / (s->y1 - s->y0) * (s->height - s->top - s->bottom);
}

void fr_svg_begin(struct fr_svg *s, const char *what)
{
    fr_buf_printf(s->out, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", s->width,
                  s->height);
    fr_html_escape(s->out, what);
    fr_buf_puts(s->out, "\">\n");
}

void fr_svg_end(struct fr_svg *s)
{
    fr_buf_puts(s->out, "</svg>\n");
}

void fr_svg_text(struct fr_svg *s, double px, double py, const char *anchor, const char *text,
                 const char *cls)
{
    fr_buf_printf(s->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", px, py,
                  anchor, cls);
    fr_html_escape(s->out, text);
    fr_buf_puts(s->out, "</text>\n");
}

void fr_svg_axes(struct fr_svg *s, const char *x_title, const char *y_title)
{
    double right = s->width - s->right, bottom = s->height - s->bottom;
    double dx = fr_svg_nice(s->x1 - s->x0, 8), dy = fr_svg_nice(s->y1 - s->y0, 5);
    char text[32];

    for (double y = ceil(s->y0 / dy) * dy; y_title && y <= s->y1 + dy * 1e-9; y += dy) {
        double py = fr_svg_y(s, y);

        snprintf(text, sizeof text, "%.6g", fabs(y) < dy * 1e-6 ? 0.0 : y);
        fr_buf_printf(s->out,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
                      s->left, right, py, py);
        fr_svg_text(s, s->left - 6, py + 4, "end", text, "tick");
    }
    for (double x = ceil(s->x0 / dx) * dx; x <= s->x1 + dx * 1e-9; x += dx) {
        double px = fr_svg_x(s, x);

        snprintf(text, sizeof text, "%.6g", fabs(x) < dx * 1e-6 ? 0.0 : x);
        fr_buf_printf(s->out,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", px,
                      px, s->top, bottom);
        fr_svg_text(s, px, bottom + 16, "middle", text, "tick");
    }
    fr_svg_text(s, right, s->height - 4, "end", x_title, "title");
    if (y_title)
        fr_svg_text(s, s->left, s->top - 8 > 10 ? s->top - 8 : 10, "start", y_title, "title");
}

void fr_svg_dot(struct fr_svg *s, double x, double y, const char *cls)
{
    if (isnan(x) || isnan(y) || isinf(y))
        return;
    fr_buf_printf(s->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"1.7\"/>", cls,
                  fr_svg_x(s, x), fr_svg_y(s, y > s->y1 ? s->y1 : y));
}

void fr_svg_line(struct fr_svg *s, const double *x, const double *y, size_t n, const char *cls)
{
    int pen = 0;

    fr_buf_printf(s->out, "<path class=\"%s\" d=\"", cls);
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(y[i])) {
            pen = 0;
            continue;
        }
        fr_buf_printf(s->out, "%c%.1f %.1f", pen ? 'L' : 'M', fr_svg_x(s, x[i]),
                      fr_svg_y(s, y[i] > s->y1 ? s->y1 : y[i]));
        pen = 1;
    }
    fr_buf_puts(s->out, "\"/>\n");
}

void fr_svg_mark(struct fr_svg *s, double x, int row, const char *label, const char *cls)
{
    double px;

    if (isnan(x) || x < s->x0 || x > s->x1)
        return;
    px = fr_svg_x(s, x);
    fr_buf_printf(s->out,
                  "<line class=\"mark %s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", cls,
                  px, px, s->top, s->height - s->bottom);
    fr_svg_text(s, px + 4, s->top + 12 + 14 * row, "start", label, cls);
}

void fr_svg_bar(struct fr_svg *s, double x0, double x1, double top, double bottom, const char *tip,
                const char *cls)
{
    double a = fr_svg_x(s, x0 < s->x0 ? s->x0 : x0), b = fr_svg_x(s, x1 > s->x1 ? s->x1 : x1);

    if (isnan(a) || isnan(b))
        return;
    fr_buf_printf(s->out,
                  "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
                  cls, a, top, b - a < 2 ? 2 : b - a, bottom - top);
    fr_html_escape(s->out, tip);
    fr_buf_puts(s->out, "</title></rect>\n");
}
