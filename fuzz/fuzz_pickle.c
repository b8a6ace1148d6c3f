/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pickle.c - the bytes are a pickle; what is read is walked a little. fuzz links: fr_scan
 * fr_base */
#include <stdint.h>
#include <stdlib.h>

#include "scan/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct fr_values a = {0};
    struct fr_value *v = NULL;
    struct fr_err err = FR_ERR_INIT;
    int rc = fr_pickle_parse(p, n, &a, &v, &err);

    if ((rc == 0) != (v != NULL) || (rc < 0 && !err.text[0]))
        abort();
    if (v && v->kind == FR_VALUE_LIST)
        for (uint32_t i = 0; i < v->n; i++)
            fr_value_int(fr_value_at(v, i), 0);
    fr_value_get(v, "entries");
    fr_values_fini(&a);
    return 0;
}
