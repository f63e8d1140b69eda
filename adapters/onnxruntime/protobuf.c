/* SPDX-License-Identifier: Apache-2.0 */
/* Writes messages in the format of Protocol Buffers: fields with their numbers, a kind of value and
 * the value. */
#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

enum {
    VARINT = 0, /* kinds of values */
    BLOCK = 2,  /* a length and bytes */
    FOUR_BYTES = 5,
    LENGTH = 5 /* bytes of the length of an inner message, which is written before it is known */
};

static void put(struct protobuf *out, const void *bytes, size_t size)
{
    if (out->failed || size == 0) return;
    if (size > out->room - out->size) {
        const size_t room = 2 * out->room + size;
        unsigned char *more = realloc(out->bytes, room);
        out->failed = more == NULL;
        if (out->failed) return;
        out->bytes = more;
        out->room = room;
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

/* Seven bits in a byte, the lowest first; the eighth says that more follow. */
static void put_varint(struct protobuf *out, uint64_t value)
{
    unsigned char bytes[10];
    size_t size = 0;
    for (; value > 127; value >>= 7) bytes[size++] = (unsigned char)(value | 128);
    bytes[size++] = (unsigned char)value;
    put(out, bytes, size);
}

static void put_field(struct protobuf *out, int field, unsigned kind)
{
    put_varint(out, (unsigned)field << 3 | kind);
}

void protobuf_integer(struct protobuf *out, int field, uint64_t value)
{
    put_field(out, field, VARINT);
    put_varint(out, value);
}

void protobuf_float(struct protobuf *out, int field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const unsigned char bytes[] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                                   (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
    put_field(out, field, FOUR_BYTES);
    put(out, bytes, sizeof bytes);
}

void protobuf_bytes(struct protobuf *out, int field, const void *bytes, size_t size)
{
    put_field(out, field, BLOCK);
    put_varint(out, size);
    put(out, bytes, size);
}

void protobuf_text(struct protobuf *out, int field, const char *text)
{
    protobuf_bytes(out, field, text, strlen(text));
}

size_t protobuf_begin(struct protobuf *out, int field)
{
    const unsigned char length[LENGTH] = {0};
    put_field(out, field, BLOCK);
    put(out, length, sizeof length);
    return out->size;
}

void protobuf_end(struct protobuf *out, size_t begin)
{
    if (out->failed) return;
    uint64_t length = out->size - begin; /* below 2^35 */
    for (int i = 0; i < LENGTH; i++, length >>= 7)
        out->bytes[begin - LENGTH + (size_t)i] =
            (unsigned char)((length & 127) | (i + 1 < LENGTH ? 128 : 0));
}

void protobuf_release(struct protobuf *message)
{
    free(message->bytes);
    *message = (struct protobuf){0};
}
