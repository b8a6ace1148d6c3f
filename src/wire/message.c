/* SPDX-License-Identifier: Apache-2.0 */
/* message.c - see message.h */
#include "wire/message.h"

#include <stdint.h>
#include <stdlib.h>

static void *take(void *arg, size_t n)
{
    struct fr_message_memory *mem = arg;

    if (n > mem->max_bytes - mem->taken_bytes)
        return NULL;
    mem->taken_bytes += n;
    return malloc(n);
}

static void give(void *arg, void *p)
{
    (void)arg;
    free(p);
}

void fr_message_memory_init(struct fr_message_memory *mem, size_t max_bytes)
{
    mem->alloc.alloc = take;
    mem->alloc.free = give;
    mem->alloc.allocator_data = mem;
    mem->taken_bytes = 0;
    mem->max_bytes = max_bytes;
}

size_t fr_message_pack(const ProtobufCMessage *m, struct fr_buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);

    out->len += protobuf_c_message_pack(m, (uint8_t *)fr_buf_room(out, n));
    return n;
}
