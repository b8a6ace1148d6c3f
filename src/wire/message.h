/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - unpack what a peer sent without letting it choose how much memory that takes
 *
 * Two bytes on the wire can become a struct of hundreds in memory, so a limit on the length of
 * a message is not enough: these allocators count what an unpacked message takes and make the
 * unpacking fail beyond the limit.
 *
 * Use:     struct fr_message_memory mem;
 *          fr_message_memory_init(&mem, FR_MESSAGE_MEMORY_MAX);
 *          r = fullrank__reply__unpack(&mem.alloc, n, p);   NULL: malformed or too large
 *          fullrank__reply__free_unpacked(r, &mem.alloc);
 * Memory:  heap; `taken_bytes` is never lowered, so one object serves one message.
 * Threads: none; one owner at a time.
 */
#ifndef FR_WIRE_MESSAGE_H
#define FR_WIRE_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

#include "base/buf.h"

#define FR_MESSAGE_MAX_BYTES                                                                       \
    (16u << 20) /* a message on the wire; longer ones are refused before they are read */
#define FR_MESSAGE_MEMORY_MAX (64u << 20) /* what one message may take when unpacked */
#define FR_MESSAGE_TYPE       "application/x-protobuf"

struct fr_message_memory {
    ProtobufCAllocator alloc;
    size_t taken_bytes, max_bytes;
};

void fr_message_memory_init(struct fr_message_memory *mem, size_t max_bytes);

/* Append the packed message to out; returns its length. */
size_t fr_message_pack(const ProtobufCMessage *m, struct fr_buf *out);

#endif /* FR_WIRE_MESSAGE_H */
