/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the executors. Each buffer has addresses far from all others, so that an access outside
 * of a buffer meets none. Buffers that kernels write know which work-group accessed a byte in this
 * launch; local memory knows which wave accessed a byte since the last barrier. */
#ifndef DEVICE_TESTS_EXECUTED_MEMORY_H
#define DEVICE_TESTS_EXECUTED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_BUFFERS = 20, BUFFER_DISTANCE_BITS = 36 };

struct memory_buffer {
    const char *name;
    uint8_t *bytes;
    uint64_t address, size;
    bool readable, writable;
    struct global_use *uses; /* of each byte in this launch; NULL if nobody writes it */
};

/* Work-groups that accessed a byte; 0: none. */
struct global_use {
    uint32_t writer, reader;
};

struct memory {
    struct memory_buffer buffer[MOST_BUFFERS];
    int count;
    char failed[400];  /* a sentence, or "" */
    uint64_t executed; /* operations */
};

/* Adds a buffer; returns its address, which is a multiple of 4096, and `shift` more. */
uint64_t memory_add(struct memory *memory, const char *name, void *bytes, uint64_t size,
                    uint64_t shift, bool readable, bool writable);

/* The bytes at an address, or NULL if an access of `size` bytes is not allowed. */
uint8_t *memory_at(const struct memory *memory, uint64_t address, int size, bool writes);

/* Forgets who accessed the buffers, before a launch. False if memory is missing. */
bool memory_begin_launch(struct memory *memory);

/* Frees what memory_begin_launch allocated; the buffers' bytes are the caller's. */
void memory_free(struct memory *memory);

/* The bytes of an access of a work-group, whose number is not 0. NULL if the bytes do not lie in a
 * buffer, or if another work-group of the launch accessed them and either writes: nothing orders
 * work-groups. `why` is then the end of a sentence: "reads 4 bytes at byte -4 of the data, ...". */
uint8_t *memory_access(const struct memory *memory, uint64_t address, int size, bool writes,
                       uint32_t group, char *why, size_t why_size);

/* Local memory of a work-group. */
struct local_memory {
    uint8_t *bytes;
    uint32_t size;
    uint32_t epoch;         /* grows at each barrier and with each work-group */
    struct local_use *uses; /* of each byte */
};

struct local_use {
    uint32_t written_in, read_in; /* epochs */
    uint8_t writer, reader;       /* waves; SEVERAL if more than one reads; ATOMIC: any waves,
                                     with atomic operations */
};
enum { ATOMIC = 254, SEVERAL = 255 };

/* Gives local memory `size` bytes. False if memory is missing. */
bool local_memory_begin(struct local_memory *local, uint32_t size);

void local_memory_free(struct local_memory *local);

/* The bytes of an access of a wave. NULL if they are outside, if the address is no multiple of
 * `alignment`, or if another wave accessed them since the last barrier and either writes. `why` is
 * then the end of a sentence. */
uint8_t *local_access(struct local_memory *local, uint64_t at, int size, int alignment, int wave,
                      bool writes, char *why, size_t why_size);

#endif
