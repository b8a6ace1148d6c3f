/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure.h - pressure stall information of the machine, and its load
 *
 * Unit:    microseconds since boot in which some (or all) tasks waited for the resource.
 * Source:  Linux Documentation/accounting/psi.rst; proc(5) for loadavg.
 */
#ifndef FR_SENSE_PRESSURE_PRESSURE_H
#define FR_SENSE_PRESSURE_PRESSURE_H

#include "sense/sensor.h"

extern const struct fr_sensor FR_SENSOR_PRESSURE;

enum fr_pressure_column {
    FR_PRESSURE_CPU_SOME = 0,
    FR_PRESSURE_MEMORY_SOME,
    FR_PRESSURE_MEMORY_FULL,
    FR_PRESSURE_IO_SOME,
    FR_PRESSURE_LOAD1,
    FR_PRESSURE_COLUMNS
};

/* The total of the line "some ..." or "full ..." of a file of /proc/pressure. 0 or -ENODATA. */
int fr_pressure_total(const char *text, const char *line, uint64_t *ret_us);

#endif /* FR_SENSE_PRESSURE_PRESSURE_H */
