/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decision.h - what the policy chose for a finding, and what it weighed
 */
#ifndef FR_MODEL_DECISION_H
#define FR_MODEL_DECISION_H

#include <stdint.h>

enum fr_choice {
    FR_CHOICE_WAIT = 0, /* not enough evidence, or the next checkpoint is near: look again */
    FR_CHOICE_ADVISE,   /* say what would be done; a person or another owner acts */
    FR_CHOICE_ISOLATE,  /* drain the node, end the attempt, start the next one without it */
    FR_CHOICE_RESTART,  /* end the attempt, start the next one on the same nodes */
    FR_CHOICE_GIVE_UP,  /* no more attempts: end the job */
    FR_CHOICES
};

struct fr_decision {
    enum fr_choice choice;
    int32_t node;             /* to isolate, index in the attempt's node list, -1: none */
    double cost_stay_s;       /* time that staying will cost the job; NaN: not known */
    double cost_restart_s;    /* lost steps + restart; NaN: not known */
    uint64_t wait_until_step; /* WAIT: the checkpoint to wait for; 0: none */
    char reason[400];         /* one sentence with the numbers in it */
};

const char *fr_choice_name(enum fr_choice c);

#endif /* FR_MODEL_DECISION_H */
