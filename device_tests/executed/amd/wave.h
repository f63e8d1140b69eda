/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor of AMD machine code works on: waves of work-items, decoded operations, and how
 * operations read and write their operands. */
#ifndef DEVICE_TESTS_EXECUTED_AMD_WAVE_H
#define DEVICE_TESTS_EXECUTED_AMD_WAVE_H

#include "executed/launch.h"
#include "executed/numbers.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { MOST_LANES = 64, MOST_OPERANDS = 6 };

/* Numbers of scalar registers. From VCC to EXEC as AMD's manuals have them, but one number for each
 * name on all targets. */
enum {
    TTMP = 108,
    VCC = 106,
    M0 = 124,
    NOTHING = 125, /* reads as 0, keeps nothing */
    EXEC = 126,
    SCC = 128,
    SCALAR_REGISTERS = 129
};

/* Vector registers. CDNA's accumulation registers follow them. */
enum { ACCUMULATION = 256, VECTOR_REGISTERS = 512 };

struct operand {
    enum { LITERAL, SCALAR, VECTOR } kind;
    int number;  /* of the first register */
    int count;   /* registers that the text names */
    bool negate; /* modifiers of floating-point sources */
    bool absolute;
    bool sign_extended; /* a part of a register, of "sext(v1)" */
    int part;           /* 0: all of the register; 1 to 4: a byte; 5, 6: a half */
    bool hexadecimal;
    uint32_t word; /* a literal, as operations of 32, 16 and 64 bits read it */
    uint16_t half;
    uint64_t wide_integer, wide_float;
};

/* Conditions of comparisons. */
enum condition {
    IS_FALSE,
    IS_LESS,
    IS_EQUAL,
    IS_LESS_OR_EQUAL,
    IS_GREATER,
    IS_LESS_OR_GREATER,
    IS_GREATER_OR_EQUAL,
    IS_ORDERED,
    IS_UNORDERED,
    IS_NOT_GREATER_OR_EQUAL,
    IS_NOT_LESS_OR_GREATER,
    IS_NOT_GREATER,
    IS_NOT_LESS_OR_EQUAL,
    IS_NOT_EQUAL,
    IS_NOT_LESS,
    IS_TRUE,
    IS_OF_CLASS
};

/* Types of comparisons and of matrices. */
enum number_type { F16, F32, F64, BF16, I16, U16, I32, U32, I64, U64, BYTES };

struct wave;
struct operation;
typedef void operation_function(struct wave *wave, const struct operation *operation);

struct operation {
    operation_function *run, *run_dual; /* run_dual: the first of a pair in one instruction, whose
                                           second stands behind it */
    struct operand operand[MOST_OPERANDS];
    int operand_count;
    char name[40];
    uint64_t address; /* of the instruction in the code object */
    int bytes;        /* of its encoding */

    int64_t offset, offset1;                             /* memory */
    int width;                                           /* bytes that a lane moves */
    int stride;                                          /* of the offsets of two accesses */
    bool is_signed, upper_half, lower_half;              /* elements below 32 bits */
    uint32_t op_sel, op_sel_hi, negate_low, negate_high; /* packed operations: a bit per source */
    int result_part;                                     /* as struct operand's part */
    bool keeps_rest;                                     /* the bits beside result_part */
    bool keeps_upper; /* a 16-bit result leaves the register's upper half alone */
    bool clamp;
    double factor; /* of the result: 1 if the text names none */
    enum condition condition;
    enum number_type type;
    int depth; /* a matrix operation's products */
};

struct program {
    struct operation *list;
    int count;
    int *at; /* index of the operation at first + 4 * i, or -1 */
    uint64_t first, end;
};

/* A work-group on its compute unit. */
struct group {
    const struct program *program;
    struct memory *memory;
    struct local_memory *local;
    uint64_t image;            /* address at which the code object is loaded */
    uint32_t number;           /* from 1 on, in the order of execution */
    struct bank_cycles *banks; /* of each operation of the program, or NULL */
};

struct wave {
    enum wave_state state; /* the first member: launch.h */
    uint32_t scalar[SCALAR_REGISTERS];
    uint32_t vector[VECTOR_REGISTERS][MOST_LANES];
    uint64_t address; /* of the next operation */
    int lanes, number;
    struct group *group;
    uint8_t *scratch; /* scratch_bytes of each lane */
    uint32_t scratch_bytes;
};

/* Ends the wave; the launch fails with this text unless it already failed. */
void wave_fail(struct wave *wave, const struct operation *operation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- bits ---- */

static inline uint32_t reversed_bits(uint32_t x)
{
    uint32_t reversed = 0;
    for (int b = 0; b < 32; b++) reversed |= (x >> b & 1) << (31 - b);
    return reversed;
}

/* Of 0 the largest number, as the operations have it. */
static inline uint32_t leading_zeros(uint32_t x)
{
    return x == 0 ? UINT32_MAX : (uint32_t)__builtin_clz(x);
}

static inline uint32_t leading_signs(int32_t x)
{
    return leading_zeros((uint32_t)(x < 0 ? ~x : x));
}

static inline uint32_t trailing_zeros(uint32_t x)
{
    return x == 0 ? UINT32_MAX : (uint32_t)__builtin_ctz(x);
}

/* ---- reading: the value of a source for a lane, by its type ---- */

static inline uint32_t raw_word(const struct wave *w, const struct operand *o, int lane, int n)
{
    if (o->kind == VECTOR) return w->vector[o->number + n][lane];
    if (o->kind == SCALAR) return o->number == NOTHING ? 0 : w->scalar[o->number + n];
    return n == 0 ? o->word : 0;
}

static inline uint32_t read_u32(const struct wave *w, const struct operand *o, int lane)
{
    uint32_t word = raw_word(w, o, lane, 0);
    if (o->part == 0) return word;
    const bool byte = o->part <= 4;
    word >>= byte ? 8 * (o->part - 1) : 16 * (o->part - 5);
    if (!o->sign_extended) return word & (byte ? 0xffu : 0xffffu);
    return byte ? (uint32_t)(int32_t)(int8_t)word : (uint32_t)(int32_t)(int16_t)word;
}

static inline int32_t read_i32(const struct wave *w, const struct operand *o, int lane)
{
    return (int32_t)read_u32(w, o, lane);
}

static inline uint16_t read_u16(const struct wave *w, const struct operand *o, int lane)
{
    return (uint16_t)read_u32(w, o, lane);
}

static inline int16_t read_i16(const struct wave *w, const struct operand *o, int lane)
{
    return (int16_t)read_u32(w, o, lane);
}

static inline uint64_t read_u64(const struct wave *w, const struct operand *o, int lane)
{
    if (o->kind == LITERAL) return o->wide_integer;
    return raw_word(w, o, lane, 0) | (uint64_t)raw_word(w, o, lane, 1) << 32;
}

static inline int64_t read_i64(const struct wave *w, const struct operand *o, int lane)
{
    return (int64_t)read_u64(w, o, lane);
}

static inline double modified(const struct operand *o, double value)
{
    if (o->absolute) value = fabs(value);
    return o->negate ? -value : value;
}

static inline float read_f32(const struct wave *w, const struct operand *o, int lane)
{
    return (float)modified(o, (double)float_of(read_u32(w, o, lane)));
}

static inline double read_f64(const struct wave *w, const struct operand *o, int lane)
{
    return modified(o, double_of(o->kind == LITERAL ? o->wide_float : read_u64(w, o, lane)));
}

static inline float read_f16(const struct wave *w, const struct operand *o, int lane)
{
    const uint16_t bits = o->kind == LITERAL ? o->half : read_u16(w, o, lane);
    return (float)modified(o, (double)half_to_float(bits));
}

/* ---- writing: the result of a lane ---- */

static inline void put_word(struct wave *w, const struct operand *o, int lane, int n, uint32_t word)
{
    if (o->kind == VECTOR)
        w->vector[o->number + n][lane] = word;
    else if (o->number != NOTHING)
        w->scalar[o->number + n] = word;
}

static inline void write_u32(struct wave *w, const struct operation *op, int lane, uint32_t word)
{
    const struct operand *o = &op->operand[0];
    if (op->result_part != 0) {
        const bool byte = op->result_part <= 4;
        const int shift = byte ? 8 * (op->result_part - 1) : 16 * (op->result_part - 5);
        const uint32_t mask = (byte ? 0xffu : 0xffffu) << shift;
        word = (word << shift & mask) | (op->keeps_rest ? raw_word(w, o, lane, 0) & ~mask : 0);
    }
    put_word(w, o, lane, 0, word);
}

static inline void write_i32(struct wave *w, const struct operation *op, int lane, int32_t value)
{
    write_u32(w, op, lane, (uint32_t)value);
}

static inline void write_u16(struct wave *w, const struct operation *op, int lane, uint16_t value)
{
    const uint32_t upper = raw_word(w, &op->operand[0], lane, 0) & 0xffff0000u;
    write_u32(w, op, lane, value | (op->keeps_upper ? upper : 0));
}

static inline void write_u64(struct wave *w, const struct operation *op, int lane, uint64_t value)
{
    put_word(w, &op->operand[0], lane, 0, (uint32_t)value);
    put_word(w, &op->operand[0], lane, 1, (uint32_t)(value >> 32));
}

static inline void write_i64(struct wave *w, const struct operation *op, int lane, int64_t value)
{
    write_u64(w, op, lane, (uint64_t)value);
}

static inline double finished(const struct operation *op, double value)
{
    value *= op->factor;
    return op->clamp ? fmin(fmax(value, 0), 1) : value;
}

static inline void write_f32(struct wave *w, const struct operation *op, int lane, float value)
{
    write_u32(w, op, lane, bits_of((float)finished(op, (double)value)));
}

static inline void write_f64(struct wave *w, const struct operation *op, int lane, double value)
{
    write_u64(w, op, lane, wide_bits_of(finished(op, value)));
}

static inline void write_f16(struct wave *w, const struct operation *op, int lane, float value)
{
    write_u16(w, op, lane, float_to_half((float)finished(op, (double)value)));
}

/* ---- masks: a bit for each lane ---- */

static inline uint64_t read_mask(const struct wave *w, const struct operand *o)
{
    return w->lanes == 64 ? read_u64(w, o, 0) : read_u32(w, o, 0);
}

static inline void write_mask(struct wave *w, const struct operand *o, uint64_t mask)
{
    put_word(w, o, 0, 0, (uint32_t)mask);
    if (w->lanes == 64) put_word(w, o, 0, 1, (uint32_t)(mask >> 32));
}

static inline uint64_t register_mask(const struct wave *w, int number)
{
    const uint64_t upper = w->lanes == 64 ? w->scalar[number + 1] : 0;
    return w->scalar[number] | upper << 32;
}

static inline void set_exec(struct wave *w, uint64_t mask)
{
    w->scalar[EXEC] = (uint32_t)mask;
    if (w->lanes == 64) w->scalar[EXEC + 1] = (uint32_t)(mask >> 32);
}

/* Loops over the lanes that execute. */
#define FOR_LANES(w, lane)                                                                         \
    for (int lane = 0; lane < (w)->lanes; lane++)                                                  \
        if (bit(register_mask(w, EXEC), lane))

/* A mnemonic without its encoding's ending, and what executes it; lists end with NULL. */
struct named_operation {
    const char *name;
    operation_function *run;
};
extern const struct named_operation vector_operations[], scalar_operations[];

/* The functions of families of mnemonics, which the decoder tells apart. */
operation_function compare_vectors, compare_scalars, save_exec, branch, load_scalar, load_global,
    store_global, add_global, load_local, store_local, load_local_twice, store_local_twice,
    or_local, load_scratch, store_scratch, multiply_matrices, do_nothing, unknown_operation;

#endif
