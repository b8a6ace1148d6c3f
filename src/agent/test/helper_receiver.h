/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_receiver.h - a receiver of reports for tests; it is not the controller
 *
 * A real HTTP/1.1 server on loopback, one thread, that keeps every report it is sent and answers with a Reply that the
 * test composes. It can go away and come back on the same port, as another instance.
 */
#ifndef FR_AGENT_HELPER_RECEIVER_H
#define FR_AGENT_HELPER_RECEIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/agent.pb-c.h"

#define RECEIVER_MAX 20000

struct receiver;

struct receiver_got {
    Fullrank__Report *report;
    uint64_t t_ns;   /* when it had arrived */
    size_t bytes;
};

/* A free port of loopback is taken. */
struct receiver *receiver_start(void);
void receiver_stop(struct receiver *r);
void receiver_url(struct receiver *r, char *url, size_t n);

/* What is answered from now on (copied). Its controller_instance and acked_seq are filled in: the reports received are acknowledged. */
void receiver_reply(struct receiver *r, const Fullrank__Reply *reply);

/* Hang up on everybody, or answer again; a new instance has another number and has forgotten nothing here. */
void receiver_away(struct receiver *r);
void receiver_back(struct receiver *r, bool new_instance);

/* All reports so far, in order of arrival; they live until receiver_stop. */
size_t receiver_count(struct receiver *r);
struct receiver_got receiver_get(struct receiver *r, size_t i);

#endif /* FR_AGENT_HELPER_RECEIVER_H */
