/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule, run by a small simulator of stages that wait for each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "err.h"
#include "pipeline.h"

enum { STAGES_MAX = 9, MICROS_MAX = 20 };

static void every_micro_batch_goes_forward_and_back_once_in_order(void **state)
{
    struct fr_op op[2 * MICROS_MAX];

    (void)state;
    for (int stages = 1; stages <= STAGES_MAX; stages++)
        for (int micros = 1; micros <= MICROS_MAX; micros++)
            for (int stage = 0; stage < stages; stage++) {
                int forward = 0, backward = 0;

                fr_schedule_1f1b(stage, stages, micros, op);
                for (int i = 0; i < 2 * micros; i++) {
                    int *next = op[i].backward ? &backward : &forward;
                    assert_int_equal(op[i].micro, *next);
                    (*next)++;
                    assert_true(backward <= forward);
                }
                assert_int_equal(forward, micros);
                assert_int_equal(backward, micros);
            }
}

static void a_stage_holds_no_more_micro_batches_than_stages_from_it_to_the_end(void **state)
{
    struct fr_op op[2 * MICROS_MAX];

    (void)state;
    for (int stages = 1; stages <= STAGES_MAX; stages++)
        for (int stage = 0; stage < stages; stage++) {
            int in_flight = 0;

            fr_schedule_1f1b(stage, stages, MICROS_MAX, op);
            for (int i = 0; i < 2 * MICROS_MAX; i++) {
                in_flight += op[i].backward ? -1 : 1;
                assert_in_range(in_flight, 0, stages - stage);
            }
        }
}

/* With passes of one unit each, 1F1B takes 2 (micros + stages - 1) units
 * (Narayanan et al. 2021, section 2.2); a deadlock would take for ever. */
static void all_stages_together_finish_in_the_published_time(void **state)
{
    static struct fr_op op[STAGES_MAX][2 * MICROS_MAX];

    (void)state;
    for (int stages = 1; stages <= STAGES_MAX; stages++)
        for (int micros = 1; micros <= MICROS_MAX; micros++) {
            int at[STAGES_MAX] = {0}, done[STAGES_MAX][2][MICROS_MAX] = {0}, left = stages, t = 0;

            for (int s = 0; s < stages; s++)
                fr_schedule_1f1b(s, stages, micros, op[s]);
            for (; left > 0 && t < 1000; t++) {
                int ready[STAGES_MAX] = {0};

                for (int s = 0; s < stages; s++) {
                    const struct fr_op *o = &op[s][at[s]];
                    int from;

                    if (at[s] == 2 * micros)
                        continue;
                    from = o->backward ? s + 1 : s - 1;
                    ready[s] = from < 0 || from == stages || done[from][o->backward][o->micro];
                }
                for (int s = 0; s < stages; s++)
                    if (ready[s]) {
                        const struct fr_op *o = &op[s][at[s]++];
                        done[s][o->backward][o->micro] = 1;
                        left -= at[s] == 2 * micros;
                    }
            }
            assert_int_equal(t, 2 * (micros + stages - 1));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_micro_batch_goes_forward_and_back_once_in_order),
        cmocka_unit_test(a_stage_holds_no_more_micro_batches_than_stages_from_it_to_the_end),
        cmocka_unit_test(all_stages_together_finish_in_the_published_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
