/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - the table of metrics */
#include "model/metrics.h"

const struct fr_metric_row FR_METRIC_ROWS[FR_METRICS] = {
#define FR_METRIC(id, name, type, unit, labels, help, long_help)                                   \
    {name, FR_METRIC_TYPE_##type, unit, labels, help, long_help},
#include "model/metrics.def"
#undef FR_METRIC
};

const char *fr_metric_type_name(enum fr_metric_type t)
{
    switch (t) {
    case FR_METRIC_TYPE_COUNTER:
        return "counter";
    case FR_METRIC_TYPE_GAUGE:
        return "gauge";
    case FR_METRIC_TYPE_SUMMARY:
        return "summary";
    }
    return "?";
}
