/* SPDX-License-Identifier: Apache-2.0 */
/* decision.c - names of choices */
#include "model/decision.h"

static const char *const NAMES[FR_CHOICES] = {
    [FR_CHOICE_WAIT] = "wait",       [FR_CHOICE_ADVISE] = "advise",
    [FR_CHOICE_ISOLATE] = "isolate", [FR_CHOICE_RESTART] = "restart",
    [FR_CHOICE_GIVE_UP] = "give_up",
};

const char *fr_choice_name(enum fr_choice c)
{
    return (uint32_t)c < FR_CHOICES ? NAMES[c] : "?";
}
