/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that access memory. Each access must lie in a buffer, or in local memory. Two waves
 * must not access a byte of local memory between two barriers if one of them writes it. */
#include "memory.h"

#include "wave.h"

#include <inttypes.h>
#include <stddef.h>
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

/* The bytes of a lane's access, or NULL, and then the wave has failed. */
static uint8_t *accessed(struct wave *w, const struct operation *op, int lane, uint64_t address,
                         int size, bool writes)
{
    uint8_t *bytes = memory_at(w->group->memory, address, size, writes);
    const bool race = bytes != NULL &&
                      groups_race(w->group->memory, address, size, w->group->number, writes);
    char where[200];
    if (bytes != NULL && !race) return bytes;
    describe(w->group->memory, address, writes, where, sizeof where);
    wave_fail(w, op, "lane %d of wave %d %s %d bytes %s%s", lane, w->number,
              writes ? "writes" : "reads", size, where,
              race ? ", and another work-group of this launch accessed them" : "");
    return NULL;
}

/* ---- elements of registers ---- */

static void register_load(struct wave *w, const struct operation *op, int lane, int first,
                          const uint8_t *bytes)
{
    const struct operand *o = &op->operand[0];
    for (int n = 0; n < op->width / 4; n++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * n, sizeof word);
        put_word(w, o, lane, first + n, word);
    }
    if (op->width >= 4) return;
    uint32_t word = op->width == 1 ? bytes[0] : (uint32_t)(bytes[0] | bytes[1] << 8);
    if (op->is_signed)
        word = (uint32_t)(op->width == 1 ? (int32_t)(int8_t)word : (int32_t)(int16_t)word);
    const uint32_t was = raw_word(w, o, lane, 0);
    if (op->upper_half) word = (was & 0xffff) | word << 16;
    if (op->lower_half) word = (was & 0xffff0000u) | (word & 0xffff);
    put_word(w, o, lane, first, word);
}

static void register_store(const struct wave *w, const struct operation *op,
                           const struct operand *o, int lane, uint8_t *bytes)
{
    for (int n = 0; n < op->width / 4; n++) {
        const uint32_t word = raw_word(w, o, lane, n);
        memcpy(bytes + 4 * n, &word, sizeof word);
    }
    if (op->width >= 4) return;
    const uint32_t word = raw_word(w, o, lane, 0) >> (op->upper_half ? 16 : 0);
    bytes[0] = (uint8_t)word;
    if (op->width == 2) bytes[1] = (uint8_t)(word >> 8);
}

/* ---- global memory ---- */

void load_scalar(struct wave *w, const struct operation *op)
{
    const struct operand *more = &op->operand[2];
    uint64_t address = read_u64(w, &op->operand[1], 0) + (uint64_t)op->offset;
    if (op->operand_count > 2)
        address += more->kind == LITERAL ? more->wide_integer : read_u32(w, more, 0);
    if (op->width >= 4) address &= ~UINT64_C(3);
    const uint8_t *bytes = accessed(w, op, 0, address, op->width, false);
    if (bytes != NULL) register_load(w, op, 0, 0, bytes);
}

/* Of "v1, v2, s[0:1]" and "v[0:1], v2, off": an address, or a base and a distance. */
static uint64_t address_of(const struct wave *w, const struct operation *op, int vector, int lane)
{
    const struct operand *v = &op->operand[vector], *s = &op->operand[2];
    const bool has_base = op->operand_count > 2 && s->kind == SCALAR && s->number != NOTHING;
    return (uint64_t)op->offset +
           (has_base ? read_u64(w, s, 0) + read_u32(w, v, lane) : read_u64(w, v, lane));
}

void load_global(struct wave *w, const struct operation *op)
{
    uint64_t address[MOST_LANES]; /* the result may overwrite a register that holds addresses */
    FOR_LANES(w, lane) address[lane] = address_of(w, op, 1, lane);
    FOR_LANES(w, lane)
    {
        const uint8_t *bytes = accessed(w, op, lane, address[lane], op->width, false);
        if (bytes == NULL) return;
        register_load(w, op, lane, 0, bytes);
    }
}

void store_global(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        uint8_t *bytes = accessed(w, op, lane, address_of(w, op, 0, lane), op->width, true);
        if (bytes == NULL) return;
        register_store(w, op, &op->operand[1], lane, bytes);
    }
}

/* An atomic operation without a result on a word: add, or else or. */
static void change_word(uint8_t *bytes, uint32_t more, bool adds)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    word = adds ? word + more : word | more;
    memcpy(bytes, &word, sizeof word);
}

/* Work-groups may share the words of atomic operations. */
void add_global(struct wave *w, const struct operation *op)
{
    const bool adds = strstr(op->name, "atomic_add") != NULL;
    FOR_LANES(w, lane)
    {
        uint8_t *bytes = memory_at(w->group->memory, address_of(w, op, 0, lane), 4, true);
        if (bytes == NULL) {
            wave_fail(w, op, "lane %d of wave %d is outside of all buffers", lane, w->number);
            return;
        }
        change_word(bytes, read_u32(w, &op->operand[1], lane), adds);
    }
}

/* ---- local memory ---- */

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

static uint8_t *accessed_local_by(int wave, struct wave *w, const struct operation *op, int lane,
                                  uint32_t address, int64_t offset, bool writes)
{
    struct local_memory *local = w->group->local;
    const uint64_t at = address + (uint64_t)offset;
    if (at + (uint64_t)op->width > local->size) {
        wave_fail(w, op, "lane %d of wave %d accesses byte %" PRIu64 " of %u of local memory", lane,
                  w->number, at, local->size);
        return NULL;
    }
    if (at % (uint64_t)(op->width == 12 ? 4 : op->width) != 0) {
        wave_fail(w, op, "lane %d of wave %d accesses %d bytes of local memory at byte %" PRIu64,
                  lane, w->number, op->width, at);
        return NULL;
    }
    for (int n = 0; n < op->width; n++)
        if (races(local, (uint32_t)at + (uint32_t)n, wave, writes)) {
            wave_fail(w, op,
                      "lane %d of wave %d %s byte %" PRIu64 " of local memory, which another wave "
                      "accessed since the last barrier",
                      lane, w->number, writes ? "writes" : "reads", at + (uint64_t)n);
            return NULL;
        }
    return local->bytes + at;
}

static uint8_t *accessed_local(struct wave *w, const struct operation *op, int lane,
                               uint32_t address, int64_t offset, bool writes)
{
    return accessed_local_by(w->number, w, op, lane, address, offset, writes);
}

void load_local(struct wave *w, const struct operation *op)
{
    uint32_t address[MOST_LANES];
    FOR_LANES(w, lane) address[lane] = read_u32(w, &op->operand[1], lane);
    FOR_LANES(w, lane)
    {
        const uint8_t *bytes = accessed_local(w, op, lane, address[lane], op->offset, false);
        if (bytes == NULL) return;
        register_load(w, op, lane, 0, bytes);
    }
}

void store_local(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        const uint32_t address = read_u32(w, &op->operand[0], lane);
        uint8_t *bytes = accessed_local(w, op, lane, address, op->offset, true);
        if (bytes == NULL) return;
        register_store(w, op, &op->operand[1], lane, bytes);
    }
}

void or_local(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        const uint32_t address = read_u32(w, &op->operand[0], lane);
        uint8_t *bytes = accessed_local_by(ATOMIC, w, op, lane, address, op->offset, true);
        if (bytes == NULL) return;
        change_word(bytes, read_u32(w, &op->operand[1], lane), false);
    }
}

void load_local_twice(struct wave *w, const struct operation *op)
{
    uint32_t address[MOST_LANES];
    FOR_LANES(w, lane) address[lane] = read_u32(w, &op->operand[1], lane);
    FOR_LANES(w, lane)
    {
        const uint8_t *one =
            accessed_local(w, op, lane, address[lane], op->offset * op->stride, false);
        if (one == NULL) return;
        const uint8_t *other =
            accessed_local(w, op, lane, address[lane], op->offset1 * op->stride, false);
        if (other == NULL) return;
        register_load(w, op, lane, 0, one);
        register_load(w, op, lane, op->width / 4, other);
    }
}

void store_local_twice(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        const uint32_t address = read_u32(w, &op->operand[0], lane);
        uint8_t *one = accessed_local(w, op, lane, address, op->offset * op->stride, true);
        if (one == NULL) return;
        uint8_t *other = accessed_local(w, op, lane, address, op->offset1 * op->stride, true);
        if (other == NULL) return;
        register_store(w, op, &op->operand[1], lane, one);
        register_store(w, op, &op->operand[2], lane, other);
    }
}

/* ---- scratch: memory of each lane ---- */

static uint8_t *accessed_scratch(struct wave *w, const struct operation *op, int vector, int lane)
{
    const struct operand *v = &op->operand[vector], *s = &op->operand[2];
    uint64_t at = (uint64_t)op->offset;
    if (v->kind == VECTOR) at += read_u32(w, v, lane);
    if (op->operand_count > 2 && s->kind == SCALAR) at += read_u32(w, s, 0);
    if (at + (uint64_t)op->width > w->scratch_bytes) {
        wave_fail(w, op, "byte %" PRIu64 " of %u of scratch memory", at, w->scratch_bytes);
        return NULL;
    }
    return w->scratch + (size_t)lane * w->scratch_bytes + at;
}

void load_scratch(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        const uint8_t *bytes = accessed_scratch(w, op, 1, lane);
        if (bytes == NULL) return;
        register_load(w, op, lane, 0, bytes);
    }
}

void store_scratch(struct wave *w, const struct operation *op)
{
    FOR_LANES(w, lane)
    {
        uint8_t *bytes = accessed_scratch(w, op, 0, lane);
        if (bytes == NULL) return;
        register_store(w, op, &op->operand[1], lane, bytes);
    }
}
