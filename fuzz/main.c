/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - runs a fuzz harness over files and folders instead of libFuzzer
 *
 * So the corpus is a plain test of every build. For each file also every prefix of it that
 * ends at a power of two is tried.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX (1u << 20)

static int run_file(const char *path)
{
    uint8_t *data = malloc(INPUT_BYTES_MAX);
    FILE *f = fopen(path, "rb");
    size_t n;

    if (!f || !data) {
        fprintf(stderr, "%s: cannot be read\n", path);
        if (f)
            fclose(f);
        free(data);
        return 1;
    }
    n = fread(data, 1, INPUT_BYTES_MAX, f);
    fclose(f);
    for (size_t k = 1; k < n; k *= 2)
        LLVMFuzzerTestOneInput(data, k);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0, files = 0;

    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        struct dirent *d;

        if (!dir) {
            failed += run_file(argv[i]);
            files++;
            continue;
        }
        while ((d = readdir(dir))) {
            char path[1024];
            struct stat st;

            snprintf(path, sizeof path, "%s/%s", argv[i], d->d_name);
            if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
                continue;
            failed += run_file(path);
            files++;
        }
        closedir(dir);
    }
    printf("%d inputs, %d unreadable\n", files, failed);
    return failed || files == 0;
}
