/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - one sentence for a person beside the errno for the program
 *
 * A function that can fail returns 0 or a negative errno value; when a person
 * will read about it, its last argument is a struct fr_err that receives which
 * thing failed, why, and what to do.
 *
 * Memory:  fixed; nothing here allocates.
 * Threads: none; one owner at a time.
 */
#ifndef FR_BASE_ERR_H
#define FR_BASE_ERR_H

#define FR_ERR_TEXT_BYTES 512

struct fr_err {
    char text[FR_ERR_TEXT_BYTES]; /* NUL-terminated; cut when longer */
};

#define FR_ERR_INIT                                                                                \
    {                                                                                              \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

/* Write the sentence (if err is not NULL) and return rc. */
int fr_fail(struct fr_err *err, int rc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "<prefix>: " in front of the sentence that is there already and return rc. */
int fr_fail_in(struct fr_err *err, int rc, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Run fn(&variable) when the variable leaves its scope. */
#define FR_CLEANUP(fn) __attribute__((cleanup(fn)))

#endif /* FR_BASE_ERR_H */
