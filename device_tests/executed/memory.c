/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, and local memory of a work-group. Each access must lie in a buffer, or in local memory.
 * Two waves must not access a byte of local memory between two barriers if one of them writes it.
 */
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int buffer_number(uint64_t address)
{
    return (int)(address >> BUFFER_DISTANCE_BITS) - 1;
}

uint64_t memory_add(struct memory *memory, const char *name, void *bytes, uint64_t size,
                    uint64_t shift, bool readable, bool writable)
{
    const uint64_t address = ((uint64_t)memory->count + 1) << BUFFER_DISTANCE_BITS;
    memory->buffer[memory->count++] =
        (struct memory_buffer){name, bytes, address + shift, size, readable, writable, NULL};
    return address + shift;
}

uint8_t *memory_at(const struct memory *memory, uint64_t address, int size, bool writes)
{
    const int number = buffer_number(address);
    if (number < 0 || number >= memory->count) return NULL;
    const struct memory_buffer *buffer = &memory->buffer[number];
    const uint64_t offset = address - buffer->address;
    if (!(writes ? buffer->writable : buffer->readable) || offset > buffer->size ||
        (uint64_t)size > buffer->size - offset)
        return NULL;
    return buffer->bytes + offset;
}

bool memory_begin_launch(struct memory *memory)
{
    for (int i = 0; i < memory->count; i++) {
        struct memory_buffer *buffer = &memory->buffer[i];
        if (!buffer->writable) continue;
        free(buffer->uses);
        buffer->uses = calloc((size_t)buffer->size + 1, sizeof *buffer->uses);
        if (buffer->uses == NULL) return false;
    }
    return true;
}

void memory_free(struct memory *memory)
{
    for (int i = 0; i < memory->count; i++) free(memory->buffer[i].uses);
}

/* Whether another work-group of this launch accessed one of the bytes, and either writes: nothing
 * orders work-groups. */
static bool groups_race(const struct memory *memory, uint64_t address, int size, uint32_t group,
                        bool writes)
{
    const int number = buffer_number(address);
    struct global_use *uses = memory->buffer[number].uses;
    if (uses == NULL) return false;
    uses += address - memory->buffer[number].address;
    for (int n = 0; n < size; n++) {
        const bool written = uses[n].writer != 0 && uses[n].writer != group;
        const bool read = uses[n].reader != 0 && uses[n].reader != group;
        if (written || (writes && read)) return true;
        if (writes)
            uses[n].writer = group;
        else
            uses[n].reader = group;
    }
    return false;
}

/* Where an address is, in words. */
static void describe(const struct memory *memory, uint64_t address, bool writes, char *text,
                     size_t size)
{
    /* half a distance further: addresses shortly before a buffer belong to it */
    const int number = buffer_number(address + (UINT64_C(1) << (BUFFER_DISTANCE_BITS - 1)));
    if (number < 0 || number >= memory->count) {
        snprintf(text, size, "far from all buffers, at 0x%" PRIx64, address);
        return;
    }
    const struct memory_buffer *buffer = &memory->buffer[number];
    const int64_t offset = (int64_t)(address - buffer->address);
    const bool allowed = writes ? buffer->writable : buffer->readable;
    snprintf(text, size, "at byte %" PRId64 " of %s, which has %" PRIu64 " bytes%s", offset,
             buffer->name, buffer->size, allowed ? "" : " that the kernel must not access so");
}

uint8_t *memory_access(const struct memory *memory, uint64_t address, int size, bool writes,
                       uint32_t group, char *why, size_t why_size)
{
    uint8_t *bytes = memory_at(memory, address, size, writes);
    const bool race = bytes != NULL && groups_race(memory, address, size, group, writes);
    char where[200];
    if (bytes != NULL && !race) return bytes;
    describe(memory, address, writes, where, sizeof where);
    snprintf(why, why_size, "%s %d bytes %s%s", writes ? "writes" : "reads", size, where,
             race ? ", and another work-group of this launch accessed them" : "");
    return NULL;
}

/* ---- local memory ---- */

bool local_memory_begin(struct local_memory *local, uint32_t size)
{
    local->size = size;
    local->epoch = 0;
    local->bytes = malloc((size_t)size + 1);
    local->uses = calloc((size_t)size + 1, sizeof *local->uses);
    return local->bytes != NULL && local->uses != NULL;
}

void local_memory_free(struct local_memory *local)
{
    free(local->bytes);
    free(local->uses);
}

static bool races(struct local_memory *local, uint32_t at, int wave, bool writes)
{
    struct local_use *use = &local->uses[at];
    const bool written = use->written_in == local->epoch, read = use->read_in == local->epoch;
    if (written && use->writer != wave) return true;
    if (writes && read && use->reader != wave) return true;
    if (writes) {
        use->written_in = local->epoch;
        use->writer = (uint8_t)wave;
    } else {
        use->reader = (uint8_t)(read && use->reader != wave ? SEVERAL : wave);
        use->read_in = local->epoch;
    }
    return false;
}

uint8_t *local_access(struct local_memory *local, uint64_t at, int size, int alignment, int wave,
                      bool writes, char *why, size_t why_size)
{
    if (at > local->size || (uint64_t)size > local->size - at) {
        snprintf(why, why_size, "accesses byte %" PRIu64 " of %u of local memory", at, local->size);
        return NULL;
    }
    if (at % (uint64_t)alignment != 0) {
        snprintf(why, why_size, "accesses %d bytes of local memory at byte %" PRIu64, size, at);
        return NULL;
    }
    for (int n = 0; n < size; n++)
        if (races(local, (uint32_t)at + (uint32_t)n, wave, writes)) {
            snprintf(why, why_size,
                     "%s byte %" PRIu64 " of local memory, which another wave accessed since the "
                     "last barrier",
                     writes ? "writes" : "reads", at + (uint64_t)n);
            return NULL;
        }
    return local->bytes + at;
}
