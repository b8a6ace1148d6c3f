/* SPDX-License-Identifier: Apache-2.0 */
#include "lossfile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

int fr_lossfile_open(const char *path, int64_t step, FILE **ret, struct fr_err *err)
{
    FILE *f = fopen(path, "a+e"); /* made when missing, not cut when there */
    char line[512];
    off_t keep = 0;
    int64_t last = 0, n;

    if (f)
        rewind(f);
    /* steps only grow, so the first line that does not fit ends what is kept */
    while (f && fgets(line, sizeof line, f) && strchr(line, '\n') &&
           sscanf(line, "{\"step\":%" SCNd64 ",", &n) == 1 && n > last && n <= step) {
        last = n;
        keep = ftello(f);
    }
    if (!f || ftruncate(fileno(f), keep) < 0 || fseeko(f, 0, SEEK_END) < 0) {
        int e = errno;
        if (f)
            fclose(f);
        return fr_fail(err, -e, "--loss-file %s: %s (give a file that can be written)", path,
                       strerror(e));
    }
    setvbuf(f, NULL, _IOLBF, 0);
    *ret = f;
    return 0;
}

int fr_lossfile_add(FILE *file, int64_t step, double loss, double step_time_s)
{
    uint64_t bits;

    memcpy(&bits, &loss, sizeof bits);
    if (fprintf(file,
                "{\"step\":%" PRId64 ",\"loss\":%.9g,\"loss_bits\":\"%016" PRIx64
                "\",\"step_time_s\":%.6f}\n",
                step, loss, bits, step_time_s) < 0 ||
        ferror(file))
        return errno ? -errno : -EIO;
    return 0;
}
