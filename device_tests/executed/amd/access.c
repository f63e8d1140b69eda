/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that access memory: buffers, local memory, and scratch memory of lanes. */
#include "wave.h"

#include <inttypes.h>
#include <stdio.h>

/* The bytes of a lane's access, or NULL, and then the wave has failed. */
static uint8_t *accessed(struct wave *w, const struct operation *op, int lane, uint64_t address,
                         int size, bool writes)
{
    char why[300];
    uint8_t *bytes =
        memory_access(w->group->memory, address, size, writes, w->group->number, why, sizeof why);
    if (bytes == NULL) wave_fail(w, op, "lane %d of wave %d %s", lane, w->number, why);
    return bytes;
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

static uint8_t *accessed_local_by(int wave, struct wave *w, const struct operation *op, int lane,
                                  uint32_t address, int64_t offset, bool writes)
{
    char why[200];
    uint8_t *bytes = local_access(w->group->local, address + (uint64_t)offset, op->width,
                                  op->width == 12 ? 4 : op->width, wave, writes, why, sizeof why);
    if (bytes == NULL) wave_fail(w, op, "lane %d of wave %d %s", lane, w->number, why);
    return bytes;
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
