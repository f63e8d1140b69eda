/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor of PTX works on: decoded operations, warps of 32 lanes, work-groups, and how
 * operations read and write registers. A register is an array of 32 numbers, one of each lane. */
#ifndef DEVICE_TESTS_EXECUTED_NVIDIA_WARP_H
#define DEVICE_TESTS_EXECUTED_NVIDIA_WARP_H

#include "executed/launch.h"
#include "executed/numbers.h"
#include "shared.h"

enum { LANES = 32, WARPGROUP = 4, MOST_DIVERGED = 200, MOST_SLOTS = 8, MOST_BARRIERS = 16 };
#define ALL_LANES UINT32_MAX

/* Registers have no type: one that is written as a number of 32 bits may be read as a float. */
typedef uint8_t __attribute__((may_alias)) bits8;
typedef uint16_t __attribute__((may_alias)) bits16;
typedef uint32_t __attribute__((may_alias)) bits32;
typedef uint64_t __attribute__((may_alias)) bits64;

/* A register, or a constant of 32 equal numbers. */
struct operand {
    const uint8_t *constant; /* NULL for a register */
    uint32_t offset;         /* of the register in the warp's registers */
    uint8_t size;            /* bytes of a lane: 1 is a predicate; 0: nothing */
    bool negated;            /* a predicate */
};

/* What stands between two commas: "%r1", "{%r1, %r2}", "[%rd1+8]". */
struct slot {
    struct operand *list;
    int count;
    int64_t offset; /* of an address */
};

enum space { IN_GENERIC, IN_PARAM, IN_CONST, IN_GLOBAL, IN_SHARED, IN_LOCAL };

/* Types of numbers, in the order of type_names in decode.c. */
enum number_type {
    U8,
    S8,
    B8,
    U16,
    S16,
    B16,
    F16,
    BF16,
    U32,
    S32,
    B32,
    F32,
    TF32,
    F16X2,
    BF16X2,
    U64,
    S64,
    B64,
    F64,
    PRED,
    NO_TYPE
};

struct warp;
struct operation;
typedef void operation_function(struct warp *warp, const struct operation *operation);

struct operation {
    operation_function *run;
    struct slot slot[MOST_SLOTS];
    struct operand guard; /* of size 0 if there is none */
    int slot_count;
    char name[72];
    int line;              /* in the text */
    int target, join;      /* of a branch: where it goes, and where its lanes meet again */
    enum number_type type; /* the last in the name; the first two for conversions and matrices: */
    enum number_type to, from;
    enum space space;
    int width; /* bytes of a number in memory */
    bool transposed, writes_sum;
    int rows, columns, depth; /* of a matrix */
};

struct kernel {
    char name[80];
    struct operation *list;
    int count;
    uint32_t register_bytes, local_bytes, shared_bytes;
    int parameters;
};

struct code {
    struct kernel *kernel;
    int kernel_count;
    uint8_t **pieces; /* memory of operands and constants */
    size_t piece_count;
    uint8_t *tables; /* what .const and .global variables begin as, from TABLES_BASE on */
    uint64_t table_bytes;
};
#define TABLES_BASE (UINT64_C(1) << 60) /* behind all buffers */

/* Special registers, which are the first of a warp, in the order of special_names in decode.c. */
enum special {
    TID_X,
    TID_Y,
    TID_Z,
    NTID_X,
    NTID_Y,
    NTID_Z,
    CTAID_X,
    CTAID_Y,
    CTAID_Z,
    NCTAID_X,
    NCTAID_Y,
    NCTAID_Z,
    LANE_ID,
    WARP_ID,
    OFFSET_X,
    OFFSET_Y,
    OFFSET_Z,
    CLOCK,
    LANES_BELOW,
    SPECIALS
};

/* Lanes that go the same way, until they come to `join`, where those below them in the stack go
 * on. */
struct path {
    int pc, join;
    uint32_t lanes;
};

/* A copy into shared memory that is under way. */
struct copy {
    uint32_t to, group;
    uint64_t from;
    uint8_t lane, bytes, read; /* `read` of the bytes; the others become 0 */
};

struct group;
struct warp {
    enum wave_state state; /* the first member: launch.h */
    struct group *group;
    uint8_t *registers, *sums; /* sums: what running products have made of registers so far */
    uint8_t *local;            /* local_bytes of each lane */
    int number;
    uint32_t present, active; /* lanes of the warp; lanes that execute the operation */
    struct path stack[MOST_DIVERGED];
    int depth; /* of the path that is executed */
    bool yields;
    int barrier, barrier_warps;
    const struct operation *product; /* of the warpgroup, for which it waits */
    bool unfenced;                   /* sums were written since the last wgmma.fence */
    uint32_t copies_committed[LANES];
    struct copy *copies;
    int copy_count, copy_room;
};

/* A work-group on its multiprocessor. */
struct group {
    const struct code *code;
    const struct kernel *kernel;
    const struct dispatch *dispatch;
    struct memory *memory;
    struct shared_memory shared;
    struct warp *warps;
    int warp_count;
    uint32_t number; /* from 1 on, in the order of execution */
    const uint8_t *parameters;
    bool early;                /* copies are made at once, not as late as they may be */
    uint64_t idle;             /* tests of mbarriers since something happened */
    struct products *products; /* wgmma.c's, of each warpgroup */
    struct bulk_copies *bulk;  /* mbarrier.c's */
    struct schedule schedule;
};

/* Ends the launch with a failure, whose text begins with the operation, unless it has failed. */
void warp_fail(struct warp *warp, const struct operation *operation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether all lanes of the warp execute the operation; else the launch fails. */
bool all_lanes(struct warp *warp, const struct operation *operation);

/* ---- registers ---- */

static inline const void *values_of(const struct warp *w, const struct operand *o)
{
    return o->constant != NULL ? o->constant : w->registers + o->offset;
}

static inline const void *source(const struct warp *w, const struct operation *op, int slot)
{
    return values_of(w, &op->slot[slot].list[0]);
}

/* Lanes with a true predicate. */
static inline uint32_t lanes_of(const struct warp *w, const struct operand *o)
{
    const uint8_t *p = values_of(w, o);
    uint32_t lanes = 0;
    for (int part = 0; part < 4; part++) {
        uint64_t eight;
        memcpy(&eight, p + 8 * part, 8);
        eight &= UINT64_C(0x0101010101010101); /* all bits of a byte may be set at the beginning */
        lanes |= (uint32_t)(eight * UINT64_C(0x0102040810204080) >> 56) << 8 * part;
    }
    return o->negated ? ~lanes : lanes;
}

/* A lane's bits of a register of any size. */
static inline uint64_t lane_bits(const struct warp *w, const struct operand *o, int lane)
{
    const void *p = values_of(w, o);
    switch (o->size) {
    case 1: return ((const bits8 *)p)[lane];
    case 2: return ((const bits16 *)p)[lane];
    case 4: return ((const bits32 *)p)[lane];
    case 8: return ((const bits64 *)p)[lane];
    default: return 0;
    }
}

static inline void put_lane(struct warp *w, const struct operand *o, int lane, uint64_t bits)
{
    void *p = w->registers + o->offset;
    switch (o->size) {
    case 1: ((bits8 *)p)[lane] = (uint8_t)bits; break;
    case 2: ((bits16 *)p)[lane] = (uint16_t)bits; break;
    case 4: ((bits32 *)p)[lane] = (uint32_t)bits; break;
    case 8: ((bits64 *)p)[lane] = bits; break;
    default: break;
    }
}

static inline uint32_t word_of(const struct warp *w, const struct operand *o, int lane)
{
    return ((const bits32 *)values_of(w, o))[lane];
}

/* The address that a slot names, of a lane. */
static inline uint64_t address_of(const struct warp *w, const struct slot *slot, int lane)
{
    const uint64_t at = lane_bits(w, &slot->list[0], lane) + (uint64_t)slot->offset;
    return slot->list[0].size == 4 ? (uint32_t)at : at;
}

#define FOR_ACTIVE(w, lane)                                                                        \
    for (int lane = 0; lane < LANES; lane++)                                                       \
        if (bit((w)->active, lane))

/* Registers that are written for lanes that execute only. */
static inline void put_all(struct warp *w, const struct operand *o, const void *values)
{
    if (w->active == ALL_LANES)
        memcpy(w->registers + o->offset, values, (size_t)o->size * LANES);
    else
        FOR_ACTIVE(w, lane)
    memcpy(w->registers + o->offset + o->size * lane, (const uint8_t *)values + o->size * lane,
           o->size);
}

/* ---- operations ---- */

/* A name with _ in the place of points, and the bytes of result and sources; lists end with NULL.
 */
struct named_operation {
    const char *name;
    operation_function *run;
    uint8_t sizes[5];
};
extern const struct named_operation lane_operations[];

/* Families of names, which the decoder tells apart. */
operation_function branch, end_lanes, unknown_operation, do_nothing, move_packed, convert, load,
    store, change_atomically, copy_later, commit_copies, wait_for_copies, shuffle, meet_in_warp,
    meet_at_barrier, load_matrices, store_matrices, transpose_matrix, multiply_matrices,
    multiply_later, fence_products, commit_products, wait_for_products, fence_proxy, mbarrier_begin,
    mbarrier_arrive, mbarrier_expect, mbarrier_test, copy_bulk;

/* Completes copies of lanes that are older than the last `left` groups of each. */
void finish_copies(struct warp *warp, const struct operation *op, uint32_t lanes, uint32_t left,
                   bool all);

/* The bytes in a space at an address for a lane; NULL, and then the launch has failed. */
uint8_t *accessed(struct warp *w, const struct operation *op, enum space space, int lane,
                  uint64_t address, int size, bool writes);

/* Products of a warpgroup, when its four warps wait at the operation. */
bool products_begin(struct group *group);
void products_run(struct group *group, int warpgroup);
bool products_are_running(const struct group *group);
void products_free(struct group *group);

/* mbarriers, and bulk copies; bulk_begin_group forgets those of the work-group before. */
bool bulk_begin(struct group *group);
void bulk_begin_group(struct group *group);
bool bulk_is_running(const struct group *group);
void bulk_free(struct group *group);

#endif
