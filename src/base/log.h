/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - one event name and key=value fields, to stderr
 *
 *   fr_log(FR_LOG_WARNING, "agent.lost", "node=%s age_s=%.1f", node, age);
 *
 * The first argument after the level names the event (dots, lower case). On a terminal and
 * in a file: "2026-03-01T12:00:00.123Z warning agent.lost node=n3 age_s=2.0". With
 * FULLRANK_LOG=json one JSON object a line. FULLRANK_LOG may also hold a level
 * (error, warning, notice, info, debug), comma-separated: "json,debug".
 * Each " key=" of the format starts a field; a value that holds blanks, quotes or control
 * characters is quoted here, so that the format needs no quotes. In JSON a field that is one %d,
 * %u, %f, ... is a number, everything else a string. An event that repeats more than 10 times
 * within 10 s is held back; the next one let through says how many were (held=N).
 *
 * Threads: any.
 */
#ifndef FR_BASE_LOG_H
#define FR_BASE_LOG_H

enum fr_log_level { FR_LOG_ERROR, FR_LOG_WARNING, FR_LOG_NOTICE, FR_LOG_INFO, FR_LOG_DEBUG };

/* Read FULLRANK_LOG; name is the program's, printed in JSON lines. */
void fr_log_init(const char *name);
void fr_log(enum fr_log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "name: error: text" on stderr, the form for programs that a person runs. */
void fr_complain(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif /* FR_BASE_LOG_H */
