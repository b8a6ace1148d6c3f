/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder of one test program, and small files in it. */
#ifndef FR_TRAIN_HELPER_FILES_H
#define FR_TRAIN_HELPER_FILES_H

#include <stddef.h>

/* cmocka group fixtures: make the folder and remove it with its files. */
int make_folder(void **state);
int remove_folder(void **state);

/* Path of `name` in the folder; the text is valid until the next call. */
const char *in_folder(const char *name);

/* Write n bytes to `name` in the folder. */
void put_file(const char *name, const void *p, size_t n);

#endif
