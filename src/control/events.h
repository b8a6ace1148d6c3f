/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - the event stream: one bounded ring of finished events, readers that pull
 *
 * A reader asks for bytes when its socket can take them and is suspended when there are none; one
 * that is too slow loses the oldest events and goes on with what the ring holds. Numbers of events
 * rise over restarts of the controller too (they begin with its start time), so that Last-Event-ID
 * always means what it says.
 *
 * Memory:  at most FR_EVENTS_RING events and FR_EVENTS_BYTES bytes, whatever the number of readers.
 * Threads: publish and tick: loop thread; readers: HTTP threads; one mutex, also around every
 * suspend and resume.
 */
#ifndef FR_CONTROL_EVENTS_H
#define FR_CONTROL_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#define FR_EVENTS_RING    4096
#define FR_EVENTS_BYTES   (8u << 20)
#define FR_EVENTS_CLIENTS 256

struct MHD_Connection;
struct MHD_Response;
struct fr_events;

struct fr_events *fr_events_new(uint64_t first_id);
void fr_events_free(struct fr_events *ev);
/* NULL ev: nothing. */
void fr_events_publish(struct fr_events *ev, const char *event, const char *data, size_t n);
unsigned fr_events_clients(struct fr_events *ev);
/* Number of readers that came since the last call. */
unsigned fr_events_take_new(struct fr_events *ev);
/* A comment line to readers that got nothing for a while. */
void fr_events_tick(struct fr_events *ev, uint64_t now_ns);
/* End all streams; new ones are refused. */
void fr_events_close(struct fr_events *ev);

/* A response that streams to conn; resume_id: number of the last event seen (0: begin now); topics:
 * comma-separated names, "" all. NULL: too many readers. */
struct MHD_Response *fr_events_stream(struct fr_events *ev, struct MHD_Connection *conn,
                                      uint64_t resume_id, const char *topics);

#endif /* FR_CONTROL_EVENTS_H */
