/* SPDX-License-Identifier: Apache-2.0 */
/* Writes messages in the format of Protocol Buffers, in which ONNX models are. */
#ifndef TCONV_ONNXRUNTIME_PROTOBUF_H
#define TCONV_ONNXRUNTIME_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeros before the first field. */
struct protobuf {
    unsigned char *bytes;
    size_t size, room;
    bool failed; /* there was no memory: the bytes are not a message */
};

void protobuf_integer(struct protobuf *out, int field, uint64_t value);
void protobuf_float(struct protobuf *out, int field, float value);
void protobuf_bytes(struct protobuf *out, int field, const void *bytes, size_t size);
void protobuf_text(struct protobuf *out, int field, const char *text);

/* Between these, fields belong to an inner message. */
size_t protobuf_begin(struct protobuf *out, int field);
void protobuf_end(struct protobuf *out, size_t begin);

void protobuf_release(struct protobuf *message);

#endif
