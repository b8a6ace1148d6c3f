/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - the table of metrics made from metrics.def
 *
 * Whoever exports a metric names it by its id and takes name, type, unit and help from here.
 */
#ifndef FR_MODEL_METRICS_H
#define FR_MODEL_METRICS_H

enum fr_metric {
#define FR_METRIC(id, name, type, unit, labels, help, long_help) FR_METRIC_##id,
#include "model/metrics.def"
#undef FR_METRIC
    FR_METRICS
};

enum fr_metric_type { FR_METRIC_TYPE_COUNTER, FR_METRIC_TYPE_GAUGE, FR_METRIC_TYPE_SUMMARY };

struct fr_metric_row {
    const char *name;
    enum fr_metric_type type;
    const char *unit;   /* "": a plain number */
    const char *labels; /* comma-separated, "": none */
    const char *help, *long_help;
};

extern const struct fr_metric_row FR_METRIC_ROWS[FR_METRICS];

const char *fr_metric_type_name(enum fr_metric_type t); /* "counter", "gauge", "summary" */

#endif /* FR_MODEL_METRICS_H */
