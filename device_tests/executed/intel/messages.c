/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to memory, as their descriptors say: those of the data caches (HDC: send.dc0, send.dc1)
 * and of the load and store units (LSC: load.ugm, store.slm). Each access must lie in a buffer or
 * in local memory, and be aligned. */
#include "thread.h"

#include <stdio.h>

enum { OWORD = 16, STATELESS = 0xfd, LOCAL_SURFACE = 0xfe, STATELESS_COHERENT = 0xff };
enum { LOCAL_POINTER_BIT = 1 << 28 };

/* ---- descriptors ---- */

/* Elements of 4 bytes whose bits are not set. */
static void set_parts(struct message *m, unsigned disabled)
{
    m->elements = 0;
    for (int part = 0; part < 4; part++)
        if (!(disabled >> part & 1)) m->parts[m->elements++] = part;
}

static void set_elements(struct message *m, int count)
{
    m->elements = count;
    for (int part = 0; part < 4; part++) m->parts[part] = part;
}

/* Blocks of owords: 1, its upper half (which nobody asks for), 2, 4, 8, 16. */
static bool set_block(struct message *m, unsigned code)
{
    if (code == 1 || code > 5) return false;
    m->block = true;
    set_elements(m, (code == 0 ? 1 : 1 << (code - 1)) * OWORD / 4);
    return true;
}

static void set_surface(struct message *m, int number)
{
    m->surface = number;
    m->where = number == LOCAL_SURFACE                               ? LOCAL
               : number == STATELESS || number == STATELESS_COHERENT ? HEAP
                                                                     : SURFACE;
}

static bool read_dc0(struct message *m, unsigned type, unsigned control)
{
    m->lanes = control & 1 ? 16 : 8;
    switch (type) {
    case 0x0:
    case 0x1: /* blocks of owords, which need not be aligned as such */
        m->header = 8;
        return set_block(m, control & 7);
    case 0xc: m->what = STORE; /* fall through */
    case 0x4:                  /* bytes, words or double words at any address */
        m->bytes = 1 << (control >> 2 & 3);
        m->alignment = 1;
        return m->bytes <= 4;
    default: return false;
    }
}

/* Some have no bit for 16 lanes. */
static bool read_dc1(struct message *m, unsigned type, unsigned control, int size)
{
    static const unsigned logical_or = 2;
    const bool wide = type >= 0x10;
    m->wide = wide;
    if (wide) m->where = GLOBAL;
    switch (type) {
    case 0x9:
    case 0x19: m->what = STORE; /* fall through */
    case 0x1:
    case 0x11: /* some of four double words */
        m->lanes = (control >> 4 & 3) == 2 ? 8 : 16;
        set_parts(m, control & 15);
        return (control >> 4 & 3) != 0;
    case 0x2:
    case 0x12:
        m->what = OR;
        m->lanes = size > 8 ? 16 : 8;
        return (control & 15) == logical_or && !(control & 32); /* without a result */
    case 0x1a: m->what = STORE;                                 /* fall through */
    case 0x10:
        m->lanes = control >> 4 & 1 ? 16 : 8;
        m->bytes = m->register_bytes = (control & 3) == 2 ? 8 : 4;
        m->alignment = (control & 3) == 0 ? 1 : 4;
        if ((control & 3) == 0)
            m->bytes = 1 << (control >> 2 & 3);
        else
            set_elements(m, 1 << (control >> 2 & 3));
        return m->bytes <= 8 && m->elements <= 4;
    case 0x14: return set_block(m, control & 7);
    default: return false;
    }
}

/* Loads and stores of LSC. */
static bool read_lsc(struct message *m, const char *name, uint32_t descriptor, int size,
                     int register_bytes)
{
    enum { LSC_LOAD = 0, LSC_STORE = 4, LSC_OR = 0x19 };
    static const int bytes[] = {1, 2, 4, 8, 1, 2, 0, 0}, counts[] = {1, 2, 3, 4, 8, 16, 32, 64};
    const unsigned operation = descriptor & 63, address = descriptor >> 7 & 3,
                   data = descriptor >> 9 & 7, surface = descriptor >> 29 & 3;
    m->block = descriptor >> 15 & 1;
    m->wide = address == 3;
    m->where = strstr(name, ".slm") != NULL ? LOCAL : surface == 3 ? HEAP : GLOBAL;
    m->what = operation == LSC_STORE ? STORE : operation == LSC_OR ? OR : LOAD;
    m->bytes = bytes[data];
    m->register_bytes = data >= 4 ? 4 : m->bytes;
    /* The compiler itself loads words at odd addresses where elements are bytes. */
    m->alignment = m->block || m->where == LOCAL ? m->bytes : 1;
    set_elements(m, counts[descriptor >> 12 & 7]);
    if (m->register_bytes > 0)
        m->lanes = (size * m->register_bytes + register_bytes - 1) / register_bytes *
                   register_bytes / m->register_bytes;
    return (operation == LSC_LOAD || operation == LSC_STORE || operation == LSC_OR) &&
           (address == 2 || address == 3) && m->bytes > 0 && (m->block || m->elements <= 4) &&
           (m->where == GLOBAL) == m->wide && (surface == 0 || surface == 3) &&
           (m->what != OR || m->bytes == 4);
}

bool message_read(struct message *m, const char *name, uint32_t descriptor, int size,
                  int register_bytes)
{
    enum { LSC_FENCE = 0x1f, GATEWAY_BARRIER = 4, GATEWAY_END = 0x10 };
    const unsigned type = descriptor >> 14 & 31, control = descriptor >> 8 & 63;
    *m = (struct message){.bytes = 4, .register_bytes = 4, .alignment = 4, .elements = 1};
    if (strncmp(name, "send", 4) != 0) return read_lsc(m, name, descriptor, size, register_bytes);
    set_surface(m, (int)(descriptor & 0xff));
    if (strcmp(name, "send.dc0") == 0) return read_dc0(m, type, control);
    if (strcmp(name, "send.dc1") == 0) return read_dc1(m, type, control, size);
    if (strcmp(name, "send.slm") == 0 || strcmp(name, "send.ugm") == 0) {
        m->what = FENCE;
        m->where = name[5] == 's' ? LOCAL : GLOBAL;
        return (descriptor & 63) == LSC_FENCE;
    }
    m->what = (descriptor & 0xff) == GATEWAY_END ? END : SIGNAL;
    return strcmp(name, "send.gtwy") == 0 &&
           ((descriptor & 0xff) == GATEWAY_END || (descriptor & 0xff) == GATEWAY_BARRIER);
}

/* ---- accesses ---- */

/* The bytes of an access of a lane, or NULL, and then the thread has failed. */
static uint8_t *accessed(struct thread *t, const struct instruction *op, int lane, uint64_t address,
                         int size)
{
    const struct message *m = &op->message;
    struct group *g = t->group;
    const bool writes = m->what != LOAD;
    char why[300];
    uint8_t *bytes;
    if (m->where == LOCAL) {
        /* The compiler sets this bit of pointers, so that none is NULL; messages ignore it. */
        if (address >= LOCAL_POINTER_BIT) address -= LOCAL_POINTER_BIT;
        const int wave = m->what == OR ? ATOMIC : t->number;
        bytes = local_access(&g->local, address, size, m->alignment, wave, writes, why, sizeof why);
    } else if (address % (uint64_t)m->alignment != 0) {
        snprintf(why, sizeof why, "accesses %d bytes at the address 0x%llx", m->bytes,
                 (unsigned long long)address);
        bytes = NULL;
    } else if (m->what == OR && (bytes = memory_at(g->memory, address, size, true)) != NULL) {
        return bytes; /* work-groups may share the words of atomic operations */
    } else {
        bytes = memory_access(g->memory, address, size, writes, g->number, why, sizeof why);
    }
    if (bytes == NULL) thread_fail(t, op, "lane %d of thread %d %s", lane, t->number, why);
    return bytes;
}

/* What is added to the addresses of a message. */
static bool find_base(struct thread *t, const struct instruction *op, uint64_t *base)
{
    const struct message *m = &op->message;
    *base = m->where == HEAP ? t->group->heap : 0;
    if (m->where != SURFACE) return true;
    if (m->surface >= MOST_SURFACES || t->group->surface[m->surface] == 0) {
        thread_fail(t, op, "surface %d is none of the kernel's", m->surface);
        return false;
    }
    *base = t->group->surface[m->surface];
    return true;
}

/* Moves `count` elements between memory and registers. */
static void move_elements(const struct message *m, uint8_t *memory, uint8_t *file, int count,
                          size_t file_step)
{
    for (int e = 0; e < count; e++, memory += m->bytes, file += file_step) {
        uint32_t word = 0, was;
        if (m->what == OR) {
            memcpy(&word, file, sizeof word);
            memcpy(&was, memory, sizeof was);
            word |= was;
            memcpy(memory, &word, sizeof word);
        } else if (m->what == STORE) {
            memcpy(memory, file, (size_t)m->bytes);
        } else {
            if (m->register_bytes > m->bytes) memset(file, 0, (size_t)m->register_bytes);
            memcpy(file, memory, (size_t)m->bytes);
        }
    }
}

/* A block: the first lane's address, elements in a row. */
static void move_block(struct thread *t, const struct instruction *op, uint64_t base,
                       uint8_t *registers)
{
    const struct message *m = &op->message;
    const uint8_t *place = t->file + op->operand[1].at[0] + m->header;
    uint64_t address = 0;
    memcpy(&address, place, m->wide ? 8 : 4);
    uint8_t *bytes = accessed(t, op, 0, base + address, m->bytes * m->elements);
    if (bytes != NULL) move_elements(m, bytes, registers, m->elements, (size_t)m->register_bytes);
}

static void move_lanes(struct thread *t, const struct instruction *op, uint64_t base,
                       uint8_t *registers)
{
    const struct message *m = &op->message;
    const uint8_t *place = t->file + op->operand[1].at[0];
    const size_t component = (size_t)(m->lanes * m->register_bytes);
    const bool together = m->parts[m->elements - 1] - m->parts[0] == m->elements - 1;
    const uint32_t lanes = lanes_of(t, op) & predicated(t, op);
    uint64_t address[MOST_LANES] = {0}; /* a result may overwrite them */
    FOR_LANES(lanes, lane)
    memcpy(&address[lane], place + lane * (m->wide ? 8 : 4), m->wide ? 8 : 4);
    FOR_LANES(lanes, lane)
    {
        const int step = together ? m->elements : 1;
        for (int e = 0; e < m->elements; e += step) {
            const uint64_t from = base + address[lane] + (uint64_t)(m->parts[e] * m->bytes);
            uint8_t *bytes = accessed(t, op, op->first + lane, from, step * m->bytes);
            if (bytes == NULL) return;
            move_elements(m, bytes,
                          registers + (size_t)e * component + (size_t)(lane * m->register_bytes),
                          step, component);
        }
    }
}

void run_message(struct thread *t, const struct instruction *op)
{
    const struct message *m = &op->message;
    uint64_t base;
    switch (m->what) {
    case FENCE:
        if (m->where == LOCAL) t->unfenced = false;
        return;
    case SIGNAL:
        if (t->waiting != UINT32_MAX)
            thread_fail(t, op, "not all lanes of thread %d come to the barrier", t->number);
        if (t->signalled) thread_fail(t, op, "thread %d signals twice", t->number);
        if (t->unfenced)
            thread_fail(t, op, "thread %d comes to the barrier before its stores are fenced",
                        t->number);
        t->signalled = true;
        return;
    case END:
        if (t->waiting != UINT32_MAX)
            thread_fail(t, op, "thread %d ends before all its lanes", t->number);
        t->state = ENDED;
        return;
    case LOAD:
    case STORE:
    case OR: break;
    }
    const struct operand *data = &op->operand[m->what == LOAD ? 0 : 2];
    const bool moves = op->operand[1].kind == REGISTER && data->kind == REGISTER;
    if (!moves || !find_base(t, op, &base)) {
        thread_fail(t, op, "it has no registers");
        return;
    }
    const int bytes = m->register_bytes * (m->block ? m->elements : m->lanes * m->elements);
    if (data->at[0] + bytes > FLAGS) {
        thread_fail(t, op, "it needs registers beyond the last one");
        return;
    }
    if (m->where == LOCAL && m->what != LOAD) t->unfenced = true;
    if (m->block)
        move_block(t, op, base, t->file + data->at[0]);
    else
        move_lanes(t, op, base, t->file + data->at[0]);
}
