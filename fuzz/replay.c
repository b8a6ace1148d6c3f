/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - run a fuzz harness over every file of a folder, and over damaged copies of each
 *
 *   replay_NAME FOLDER
 *
 * Copies: each file cut at 64 places and with 256 seeded bit flips, so that the plain test run sees
 * more than the seeds. Ends non-zero when the folder holds no file.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static uint64_t next_random(uint64_t *s) /* xorshift64 (Marsaglia, 2003) */
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static void replay(const uint8_t *p, size_t n)
{
    /* A copy of exactly n bytes on the heap: AddressSanitizer sees each byte that is read beyond
     * it. */
    uint8_t *copy = malloc(n ? n : 1);
    uint64_t seed = 88172645463325252ull;

    if (!copy)
        abort();
    LLVMFuzzerTestOneInput(p, n);
    for (size_t i = 0; i < 256 && n; i++) {
        memcpy(copy, p, n);
        for (uint64_t flips = 1 + next_random(&seed) % 4; flips > 0; flips--)
            copy[next_random(&seed) % n] ^= (uint8_t)(1u << next_random(&seed) % 8);
        LLVMFuzzerTestOneInput(copy, n);
    }
    free(copy);
    for (size_t i = 0; i < 64 && n; i++) {
        size_t cut = n * i / 64;

        copy = malloc(cut ? cut : 1);
        if (!copy)
            abort();
        memcpy(copy, p, cut);
        LLVMFuzzerTestOneInput(copy, cut);
        free(copy);
    }
}

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    uint8_t *p;

    if (!f || fstat(fileno(f), &st) < 0) {
        perror(path);
        exit(1);
    }
    if (!S_ISREG(st.st_mode)) {
        fclose(f);
        return 0;
    }
    p = malloc((size_t)st.st_size + 1);
    if (!p || fread(p, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    replay(p, (size_t)st.st_size);
    free(p);
    return 1;
}

int main(int argc, char **argv)
{
    DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
    struct dirent *e;
    int files = 0;

    if (!dir) {
        fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    while ((e = readdir(dir))) {
        char path[4096];

        if (snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name) < (int)sizeof path)
            files += replay_file(path);
    }
    closedir(dir);
    printf("%d files replayed\n", files);
    return files ? 0 : 1;
}
