/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that access memory: loads, stores, atomic changes, and copies that are made later. */
#include "decode.h"

#include <stdio.h>
#include <stdlib.h>

uint8_t *accessed(struct warp *w, const struct operation *op, enum space space, int lane,
                  uint64_t address, int size, bool writes)
{
    struct group *group = w->group;
    char why[300];
    uint8_t *bytes = NULL;
    if (space == IN_LOCAL) {
        if (address <= group->kernel->local_bytes &&
            (uint64_t)size <= group->kernel->local_bytes - address)
            return w->local + (size_t)lane * group->kernel->local_bytes + address;
        snprintf(why, sizeof why, "accesses byte %lld of %u of its own memory", (long long)address,
                 group->kernel->local_bytes);
    } else if (address >= TABLES_BASE && !writes) {
        const uint64_t at = address - TABLES_BASE;
        if (at <= group->code->table_bytes && (uint64_t)size <= group->code->table_bytes - at)
            return group->code->tables + at;
        snprintf(why, sizeof why, "reads byte %lld of the program's tables", (long long)at);
    } else if (space == IN_SHARED) {
        bytes = shared_access(&group->shared, address, size, size, w->number,
                              writes ? WRITES : READS, why, sizeof why);
    } else if (address % (uint64_t)size != 0) {
        snprintf(why, sizeof why, "accesses %d bytes at 0x%llx, which is no multiple", size,
                 (unsigned long long)address);
    } else {
        bytes = memory_access(group->memory, address, size, writes, group->number, why, sizeof why);
    }
    if (bytes == NULL) warp_fail(w, op, "lane %d of warp %d %s", lane, w->number, why);
    return bytes;
}

/* The bits of a number in memory as a register of any size has them. */
static uint64_t number_in(const uint8_t *bytes, enum number_type type, int width)
{
    uint64_t value = 0;
    memcpy(&value, bytes, (size_t)width);
    if (type == S8) value = (uint64_t)(int64_t)(int8_t)value;
    if (type == S16) value = (uint64_t)(int64_t)(int16_t)value;
    if (type == S32) value = (uint64_t)(int64_t)(int32_t)value;
    return value;
}

static void load_parameter(struct warp *w, const struct operation *op)
{
    const struct slot *to = &op->slot[0];
    const uint64_t at = address_of(w, &op->slot[1], 0);
    if (at + (uint64_t)(to->count * op->width) > (uint64_t)(8 * w->group->kernel->parameters)) {
        warp_fail(w, op, "there is no such parameter");
        return;
    }
    for (int n = 0; n < to->count; n++) {
        const uint64_t value =
            number_in(w->group->parameters + at + n * op->width, op->type, op->width);
        FOR_ACTIVE(w, lane) put_lane(w, &to->list[n], lane, value);
    }
}

void load(struct warp *w, const struct operation *op)
{
    const struct slot *to = &op->slot[0];
    uint64_t address[LANES], last = 0; /* the result may overwrite the address */
    const uint8_t *bytes = NULL;
    if (op->space == IN_PARAM) {
        load_parameter(w, op);
        return;
    }
    FOR_ACTIVE(w, lane) address[lane] = address_of(w, &op->slot[1], lane);
    FOR_ACTIVE(w, lane)
    {
        if (bytes == NULL || address[lane] != last || op->space == IN_LOCAL)
            bytes = accessed(w, op, op->space, lane, address[lane], op->width * to->count, false);
        if (bytes == NULL) return;
        last = address[lane];
        for (int n = 0; n < to->count; n++)
            put_lane(w, &to->list[n], lane, number_in(bytes + n * op->width, op->type, op->width));
    }
}

void store(struct warp *w, const struct operation *op)
{
    const struct slot *from = &op->slot[1];
    FOR_ACTIVE(w, lane)
    {
        uint8_t *bytes = accessed(w, op, op->space, lane, address_of(w, &op->slot[0], lane),
                                  op->width * from->count, true);
        if (bytes == NULL) return;
        for (int n = 0; n < from->count; n++) {
            const uint64_t value = lane_bits(w, &from->list[n], lane);
            memcpy(bytes + n * op->width, &value, (size_t)op->width);
        }
    }
}

/* ---- atomic changes of words ---- */

static bool changed_word(const struct operation *op, uint32_t old, uint32_t more, uint32_t *new)
{
    if (strstr(op->name, ".or.") != NULL)
        *new = old | more;
    else if (strstr(op->name, ".and.") != NULL)
        *new = old &more;
    else if (strstr(op->name, ".add.") != NULL)
        *new = old + more;
    else if (strstr(op->name, ".exch.") != NULL)
        *new = more;
    else
        return false;
    return op->width == 4 && op->type != F32;
}

/* Work-groups may share the words of atomic operations. "atom" has a result, "red" has none. */
void change_atomically(struct warp *w, const struct operation *op)
{
    const int first = op->name[0] == 'a' ? 1 : 0;
    FOR_ACTIVE(w, lane)
    {
        char why[200] = "is outside of all buffers";
        const uint64_t address = address_of(w, &op->slot[first], lane);
        uint8_t *bytes = op->space == IN_SHARED
                             ? shared_access(&w->group->shared, address, 4, 4, w->number,
                                             ATOMIC_CHANGE, why, sizeof why)
                             : memory_at(w->group->memory, address, 4, true);
        uint32_t old, new;
        if (bytes == NULL) {
            warp_fail(w, op, "lane %d of warp %d %s", lane, w->number, why);
            return;
        }
        memcpy(&old, bytes, sizeof old);
        if (!changed_word(op, old, word_of(w, &op->slot[first + 1].list[0], lane), &new)) {
            unknown_operation(w, op);
            return;
        }
        memcpy(bytes, &new, sizeof new);
        if (first == 1) put_lane(w, &op->slot[0].list[0], lane, old);
    }
}

/* ---- cp.async: copies that are made between this operation and the wait for them ---- */

/* Writes a copy's bytes. */
static bool make_copy(struct warp *w, const struct operation *op, const struct copy *copy)
{
    uint8_t *to = w->group->shared.bytes + (copy->to - SHARED_BASE);
    const uint8_t *from = NULL;
    if (copy->read != 0)
        from = accessed(w, op, IN_GLOBAL, copy->lane, copy->from, copy->read, false);
    if (copy->read != 0 && from == NULL) return false;
    memset(to, 0, copy->bytes);
    if (from != NULL) memcpy(to, from, copy->read);
    return true;
}

static struct copy *new_copy(struct warp *w)
{
    if (w->copy_count == w->copy_room) {
        const int room = w->copy_room == 0 ? 256 : 2 * w->copy_room;
        void *list = realloc(w->copies, (size_t)room * sizeof *w->copies);
        if (list == NULL) return NULL;
        w->copies = list;
        w->copy_room = room;
    }
    return &w->copies[w->copy_count++];
}

void copy_later(struct warp *w, const struct operation *op)
{
    FOR_ACTIVE(w, lane)
    {
        char why[200];
        const uint64_t to = address_of(w, &op->slot[0], lane);
        const int bytes = (int)lane_bits(w, &op->slot[2].list[0], lane);
        const int read = op->slot_count > 3 ? (int)lane_bits(w, &op->slot[3].list[0], lane) : bytes;
        struct copy *copy = new_copy(w);
        if (copy == NULL || (bytes != 4 && bytes != 8 && bytes != 16) || read > bytes) {
            warp_fail(w, op, "lane %d copies %d bytes, and reads %d", lane, bytes, read);
            return;
        }
        *copy = (struct copy){.to = (uint32_t)to,
                              .group = w->copies_committed[lane],
                              .from = address_of(w, &op->slot[1], lane),
                              .lane = (uint8_t)lane,
                              .bytes = (uint8_t)bytes,
                              .read = (uint8_t)read};
        if (shared_access(&w->group->shared, to, bytes, bytes, w->number, WRITES, why,
                          sizeof why) == NULL) {
            warp_fail(w, op, "lane %d of warp %d %s", lane, w->number, why);
            return;
        }
        if (read != 0 && copy->from % (uint64_t)bytes != 0) {
            warp_fail(w, op, "lane %d copies %d bytes from 0x%llx, which is no multiple", lane,
                      bytes, (unsigned long long)copy->from);
            return;
        }
        if (w->group->early && !make_copy(w, op, copy)) return;
        shared_copy_begins(&w->group->shared, to, bytes);
    }
}

void commit_copies(struct warp *w, const struct operation *op)
{
    (void)op;
    FOR_ACTIVE(w, lane) w->copies_committed[lane]++;
}

void finish_copies(struct warp *w, const struct operation *op, uint32_t lanes, uint32_t left,
                   bool all)
{
    int kept = 0;
    for (int i = 0; i < w->copy_count; i++) {
        const struct copy copy = w->copies[i];
        const bool old = all || copy.group + left < w->copies_committed[copy.lane];
        if (!bit(lanes, copy.lane) || !old) {
            w->copies[kept++] = copy;
            continue;
        }
        if (!w->group->early && !make_copy(w, op, &copy)) return;
        shared_copy_ends(&w->group->shared, copy.to, copy.bytes, w->number);
    }
    w->copy_count = kept;
}

void wait_for_copies(struct warp *w, const struct operation *op)
{
    const bool all = op->slot_count == 0;
    finish_copies(w, op, w->active, all ? 0 : (uint32_t)lane_bits(w, &op->slot[0].list[0], 0), all);
}
