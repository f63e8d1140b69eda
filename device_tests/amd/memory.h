/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the executor. Each buffer has addresses far from all others, so that an access outside
 * of a buffer meets none. Local memory knows who accessed a byte since the last barrier. */
#ifndef DEVICE_TESTS_AMD_MEMORY_H
#define DEVICE_TESTS_AMD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_BUFFERS = 20, BUFFER_DISTANCE_BITS = 36 };

struct memory_buffer {
    const char *name;
    uint8_t *bytes;
    uint64_t size;
    bool readable, writable;
};

struct memory {
    struct memory_buffer buffer[MOST_BUFFERS];
    int count;
    char failed[400];  /* a sentence, or "" */
    uint64_t executed; /* operations */
};

/* Adds a buffer; returns its address. */
uint64_t memory_add(struct memory *memory, const char *name, void *bytes, uint64_t size,
                    bool readable, bool writable);

/* The bytes at an address, or NULL if an access of `size` bytes is not allowed. */
uint8_t *memory_at(const struct memory *memory, uint64_t address, int size, bool writes);

/* The name of the buffer that an address is nearest to. */
const char *memory_name(const struct memory *memory, uint64_t address);

/* Local memory of a work-group. */
struct local_memory {
    uint8_t *bytes;
    uint32_t size;
    uint32_t epoch;         /* grows at each barrier and with each work-group */
    struct local_use *uses; /* of each byte */
};

struct local_use {
    uint32_t written_in, read_in; /* epochs */
    uint8_t writer, reader;       /* waves; SEVERAL if more than one reads */
};
enum { SEVERAL = 255 };

#endif
