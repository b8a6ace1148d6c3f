/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err.h - an error as one sentence, and memory that is there or ends the process
 *
 * The trainer is a foreign user of fullrank and sees nothing of src/, so it
 * has its own few lines of what src/base gives the other rooms.
 *
 * Threads: none shared; an object has one owner.
 */
#ifndef FR_TRAIN_ERR_H
#define FR_TRAIN_ERR_H

#include <stddef.h>

#define FR_CLEANUP(fn) __attribute__((cleanup(fn)))

/* What failed, why, and what to do, without a newline. */
struct fr_err {
    char text[640];
};

/* Write the sentence (err may be NULL) and return `code`, a negative errno. */
int fr_fail(struct fr_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory for n objects, aligned to 64 bytes; ends the process with one
 * line when there is none. The caller frees it with free(). */
void *fr_zalloc(size_t n, size_t size);

/* For FR_CLEANUP on a pointer and on a file descriptor (-1: none). */
void fr_freep(void *pointer_to_pointer);
void fr_closep(const int *fd);

#endif /* FR_TRAIN_ERR_H */
