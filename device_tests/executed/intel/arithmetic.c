/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that compute. Each has a row at the end of this file. */
#include "thread.h"

#include <limits.h>

/* ---- sources ---- */

static void read_bits(const struct thread *t, const struct operand *o, int n, uint64_t *bits)
{
    const int bytes = type_bytes(o->type);
    const uint64_t mask = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
    if (o->kind == REGISTER && bytes == 4) {
        for (int i = 0; i < n; i++) {
            uint32_t word;
            memcpy(&word, t->file + o->at[i], 4);
            bits[i] = word;
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        bits[i] = 0;
        switch (o->kind) {
        case NOTHING: break;
        case NUMBER: bits[i] = o->bits & mask; break;
        case PACKED: bits[i] = o->at[i]; break;
        case ACCUMULATOR: bits[i] = t->accumulator[o->at[i]] & mask; break;
        case REGISTER: memcpy(&bits[i], t->file + o->at[i], (size_t)bytes); break;
        }
    }
}

/* Integers, extended to 64 bits. */
static void read_integers(const struct thread *t, const struct operand *o, int n, uint64_t *x)
{
    read_bits(t, o, n, x);
    if (o->type == B)
        for (int i = 0; i < n; i++) x[i] = (uint64_t)(int64_t)(int8_t)x[i];
    if (o->type == W)
        for (int i = 0; i < n; i++) x[i] = (uint64_t)(int64_t)(int16_t)x[i];
    if (o->type == D)
        for (int i = 0; i < n; i++) x[i] = (uint64_t)(int64_t)(int32_t)x[i];
    if (o->absolute)
        for (int i = 0; i < n; i++) x[i] = (int64_t)x[i] < 0 ? 0 - x[i] : x[i];
    if (o->negate)
        for (int i = 0; i < n; i++) x[i] = 0 - x[i];
    if (o->complement)
        for (int i = 0; i < n; i++) x[i] = ~x[i];
}

static void read_floats(const struct thread *t, const struct operand *o, int n, float *x)
{
    uint64_t bits[MOST_LANES];
    if (!is_floating(o->type)) {
        read_integers(t, o, n, bits);
        for (int i = 0; i < n; i++) x[i] = (float)(int64_t)bits[i];
        return;
    }
    read_bits(t, o, n, bits);
    for (int i = 0; i < n; i++)
        x[i] = o->type == F    ? float_of((uint32_t)bits[i])
               : o->type == HF ? half_to_float((uint16_t)bits[i])
                               : float_of((uint32_t)bits[i] << 16);
    if (o->absolute)
        for (int i = 0; i < n; i++) x[i] = fabsf(x[i]);
    if (o->negate)
        for (int i = 0; i < n; i++) x[i] = -x[i];
}

static void read_doubles(const struct thread *t, const struct operand *o, int n, double *x)
{
    uint64_t bits[MOST_LANES];
    float single[MOST_LANES];
    if (o->type != DF) {
        read_floats(t, o, n, single);
        for (int i = 0; i < n; i++) x[i] = (double)single[i];
        return;
    }
    read_bits(t, o, n, bits);
    for (int i = 0; i < n; i++) {
        x[i] = double_of(bits[i]);
        if (o->absolute) x[i] = fabs(x[i]);
        if (o->negate) x[i] = -x[i];
    }
}

/* ---- results ---- */

/* A bit for each lane of an instruction. */
static uint32_t all(const struct instruction *op)
{
    return op->size == 32 ? UINT32_MAX : (1u << op->size) - 1;
}

/* The flags from a bit on. */
static uint32_t read_flags(const struct thread *t, int from)
{
    uint32_t word;
    memcpy(&word, t->file + FLAGS + from / 32 * 4, sizeof word);
    return word >> from % 32;
}

uint32_t lanes_of(const struct thread *t, const struct instruction *op)
{
    return op->all_lanes ? all(op) : t->active >> op->first & all(op);
}

uint32_t predicated(const struct thread *t, const struct instruction *op)
{
    if (op->predicate < 0) return all(op);
    const uint32_t flags = read_flags(t, op->predicate + op->first);
    return (op->inverted ? ~flags : flags) & all(op);
}

static void write_flags(struct thread *t, const struct instruction *op, uint32_t holds,
                        uint32_t lanes)
{
    const int from = op->condition_flag + op->first;
    uint8_t *place = t->file + FLAGS + from / 32 * 4;
    uint32_t word;
    memcpy(&word, place, sizeof word);
    word = (word & ~(lanes << from % 32)) | (holds & lanes) << from % 32;
    memcpy(place, &word, sizeof word);
}

static void write_bits(struct thread *t, const struct operand *o, int n, const uint64_t *bits,
                       uint32_t lanes)
{
    const size_t bytes = (size_t)type_bytes(o->type);
    for (int i = 0; i < n; i++) {
        if (!(lanes >> i & 1)) continue;
        if (o->kind == REGISTER && bytes == 4) {
            const uint32_t word = (uint32_t)bits[i];
            memcpy(t->file + o->at[i], &word, 4);
        } else if (o->kind == REGISTER) {
            memcpy(t->file + o->at[i], &bits[i], bytes);
        } else if (o->kind == ACCUMULATOR) {
            t->accumulator[o->at[i]] = bits[i];
        }
    }
    if (o->kind == REGISTER && o->at[0] >= CONTROL && o->at[0] < CHANNELS) thread_set_rounding(t);
}

/* Lanes of an instruction that write their results. */
static uint32_t writing(const struct thread *t, const struct instruction *op)
{
    return lanes_of(t, op) & predicated(t, op);
}

/* The number nearest to `value` that a type of integers has. */
static int64_t limited(enum type type, int64_t value)
{
    static const int64_t least[] = {0, INT8_MIN, 0, INT16_MIN, 0, INT32_MIN, 0, INT64_MIN};
    static const int64_t most[] = {UINT8_MAX,  INT8_MAX,  UINT16_MAX, INT16_MAX,
                                   UINT32_MAX, INT32_MAX, INT64_MAX,  INT64_MAX};
    return value < least[type] ? least[type] : value > most[type] ? most[type] : value;
}

/* A number as a type of integers has it: without a fraction, within its range. */
static uint64_t integer_of(enum type type, double value)
{
    if (isnan(value)) return 0;
    if (type == UQ && value >= 0x1p63) return value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
    if (value >= 0x1p63) return (uint64_t)limited(type, INT64_MAX);
    if (value <= -0x1p63) return (uint64_t)limited(type, INT64_MIN);
    return (uint64_t)limited(type, (int64_t)value);
}

static bool condition_holds(enum condition condition, bool less, bool equal, bool greater)
{
    switch (condition) {
    case EQ: return equal;
    case NE: return !equal;
    case LT: return less;
    case LE: return less || equal;
    case GT: return greater;
    case GE: return greater || equal;
    case NO_CONDITION: break;
    }
    return false;
}

static void set_condition(struct thread *t, const struct instruction *op, const double *x,
                          uint32_t lanes)
{
    uint32_t holds = 0;
    if (op->condition == NO_CONDITION) return;
    for (int i = 0; i < op->size; i++)
        holds |= (uint32_t)condition_holds(op->condition, x[i]<0, x[i] == 0, x[i]> 0) << i;
    write_flags(t, op, holds, lanes);
}

static void put_integers(struct thread *t, const struct instruction *op, uint64_t *x)
{
    const struct operand *o = &op->operand[0];
    const uint32_t lanes = writing(t, op);
    double signs[MOST_LANES];
    if (op->saturate && !is_floating(o->type))
        for (int i = 0; i < op->size; i++) x[i] = (uint64_t)limited(o->type, (int64_t)x[i]);
    if (op->condition != NO_CONDITION)
        for (int i = 0; i < op->size; i++) {
            const int unused = 64 - 8 * type_bytes(o->type);
            signs[i] = (double)((int64_t)(x[i] << unused));
            if (signs[i] < 0 && (o->type == UB || o->type == UW || o->type == UD || o->type == UQ))
                signs[i] = 1;
        }
    if (is_floating(o->type)) {
        const bool wide = op->operand[1].type == UQ;
        for (int i = 0; i < op->size; i++) {
            const int64_t value = (int64_t)x[i];
            const float single = wide ? (float)x[i] : (float)value;
            x[i] = o->type == DF  ? wide_bits_of(wide ? (double)x[i] : (double)value)
                   : o->type == F ? bits_of(single)
                                  : float_to_half(single);
        }
    }
    write_bits(t, o, op->size, x, lanes);
    if (op->accumulates) FOR_LANES(lanes, lane) t->accumulator[lane] = x[lane];
    set_condition(t, op, signs, lanes);
}

static uint16_t bfloat_of(float value)
{
    const uint32_t bits = bits_of(value);
    if (isnan(value)) return (uint16_t)(bits >> 16 | 1);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void put_doubles(struct thread *t, const struct instruction *op, double *x)
{
    const struct operand *o = &op->operand[0];
    const uint32_t lanes = writing(t, op);
    uint64_t bits[MOST_LANES];
    for (int i = 0; i < op->size; i++) {
        if (op->saturate && is_floating(o->type)) x[i] = x[i] > 0 ? fmin(x[i], 1) : 0;
        switch (o->type) {
        case DF: bits[i] = wide_bits_of(x[i]); break;
        case F: bits[i] = bits_of((float)x[i]); break;
        case HF: bits[i] = float_to_half((float)x[i]); break;
        case BF: bits[i] = bfloat_of((float)x[i]); break;
        default: bits[i] = integer_of(o->type, x[i]);
        }
    }
    write_bits(t, o, op->size, bits, lanes);
    set_condition(t, op, x, lanes);
}

static void put_floats(struct thread *t, const struct instruction *op, const float *x)
{
    const struct operand *o = &op->operand[0];
    if (o->type != F || op->saturate || op->condition != NO_CONDITION) {
        double wide[MOST_LANES];
        for (int i = 0; i < op->size; i++) wide[i] = (double)x[i];
        put_doubles(t, op, wide);
        return;
    }
    uint64_t bits[MOST_LANES];
    for (int i = 0; i < op->size; i++) bits[i] = bits_of(x[i]);
    write_bits(t, o, op->size, bits, writing(t, op));
}

/* ---- instructions of one expression ---- */

#define COMPUTE(function, number, read, put, expression)                                           \
    static void function(struct thread *t, const struct instruction *op)                           \
    {                                                                                              \
        number sources[3][MOST_LANES], x[MOST_LANES];                                              \
        for (int s = 1; s < op->operand_count; s++)                                                \
            read(t, &op->operand[s], op->size, sources[s - 1]);                                    \
        for (int i = 0; i < op->size; i++) {                                                       \
            const number a = sources[0][i], b = op->operand_count > 2 ? sources[1][i] : 0,         \
                         c = op->operand_count > 3 ? sources[2][i] : 0;                            \
            (void)b;                                                                               \
            (void)c;                                                                               \
            x[i] = expression;                                                                     \
        }                                                                                          \
        put(t, op, x);                                                                             \
    }
#define OF_INTEGERS(function, expression)                                                          \
    COMPUTE(function, uint64_t, read_integers, put_integers, expression)
#define OF_FLOATS(function, expression)                                                            \
    COMPUTE(function, float, read_floats, put_floats, expression)
#define OF_DOUBLES(function, expression)                                                           \
    COMPUTE(function, double, read_doubles, put_doubles, expression)

/* Bits that a shift's count has. */
static uint64_t shift_mask(const struct instruction *op)
{
    return type_bytes(op->operand[0].type) == 8 || type_bytes(op->operand[1].type) == 8 ? 63 : 31;
}

/* A source without its sign's extension. */
static uint64_t unsigned_bits(const struct operand *o, uint64_t x)
{
    const int unused = 64 - 8 * type_bytes(o->type);
    return x << unused >> unused;
}

static uint64_t either(const struct instruction *op, uint64_t a, uint64_t b)
{
    const bool wide = op->operand[1].type == UQ && op->operand[2].type == UQ;
    const bool less = wide ? a < b : (int64_t)a < (int64_t)b;
    return less == (op->condition == LT || op->condition == LE) ? a : b;
}

static uint64_t dot(const struct instruction *op, uint64_t a, uint64_t b, uint64_t c)
{
    int64_t sum = (int64_t)a;
    for (int n = 0; n < 4; n++) {
        const uint8_t x = (uint8_t)(b >> 8 * n), y = (uint8_t)(c >> 8 * n);
        const int left = op->operand[2].type == UD ? x : (int8_t)x;
        const int right = op->operand[3].type == UD ? y : (int8_t)y;
        sum += left * right;
    }
    return (uint64_t)sum;
}

static uint64_t combined(const struct instruction *op, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = 0;
    for (int n = 0; n < 8; n++)
        if (op->truth >> n & 1) x |= (n & 1 ? a : ~a) & (n & 2 ? b : ~b) & (n & 4 ? c : ~c);
    return x;
}

static uint64_t leading_zeros(uint64_t x)
{
    return (uint32_t)x == 0 ? 32 : (uint64_t)__builtin_clz((uint32_t)x);
}

OF_INTEGERS(move_integers, a)
OF_INTEGERS(add_integers, a + b)
OF_INTEGERS(add_three, a + b + c)
OF_INTEGERS(multiply_integers, a *b)
OF_INTEGERS(multiply_add_integers, a + b * c)
OF_INTEGERS(and_bits, a &b)
OF_INTEGERS(or_bits, a | b)
OF_INTEGERS(xor_bits, a ^ b)
OF_INTEGERS(invert, ~a)
OF_INTEGERS(combine, combined(op, a, b, c))
OF_INTEGERS(shift_left, a << (b & shift_mask(op)))
OF_INTEGERS(shift_right, unsigned_bits(&op->operand[1], a) >> (b & shift_mask(op)))
OF_INTEGERS(shift_arithmetic, (uint64_t)((int64_t)a >> (b & shift_mask(op))))
OF_INTEGERS(count_bits, (uint64_t)__builtin_popcount((uint32_t)a))
OF_INTEGERS(count_zeros, leading_zeros(a))
OF_INTEGERS(dot_bytes, dot(op, a, b, c))

OF_FLOATS(move_floats, a)
OF_FLOATS(add_floats, a + b)
OF_FLOATS(multiply_floats, a *b)
OF_FLOATS(multiply_add_floats, fmaf(b, c, a))
OF_FLOATS(toward_zero, truncf(a))
OF_FLOATS(downward, floorf(a))
OF_FLOATS(upward, ceilf(a))
OF_FLOATS(to_even, a - remainderf(a, 1))
OF_FLOATS(fraction, a - floorf(a))
OF_FLOATS(inverse, 1 / a)
OF_FLOATS(square_root, sqrtf(a))
OF_FLOATS(inverse_root, 1 / sqrtf(a))
OF_FLOATS(power_of_two, (float)exp2((double)a))
OF_FLOATS(logarithm, (float)log2((double)a))
OF_FLOATS(sine, (float)sin((double)a))
OF_FLOATS(cosine, (float)cos((double)a))
OF_FLOATS(power, (float)pow((double)a, (double)b))
OF_FLOATS(quotient, a / b)

OF_DOUBLES(move_doubles, a)
OF_DOUBLES(add_doubles, a + b)
OF_DOUBLES(multiply_doubles, a *b)
OF_DOUBLES(multiply_add_doubles, fma(b, c, a))
OF_DOUBLES(toward_zero_double, trunc(a))

/* ---- comparing and choosing ---- */

static void compare(struct thread *t, const struct instruction *op)
{
    const enum type left = op->operand[1].type, right = op->operand[2].type;
    const uint32_t lanes = writing(t, op);
    uint32_t holds = 0;
    if (is_floating(left) || is_floating(right)) {
        double a[MOST_LANES], b[MOST_LANES];
        read_doubles(t, &op->operand[1], op->size, a);
        read_doubles(t, &op->operand[2], op->size, b);
        for (int i = 0; i < op->size; i++)
            holds |= (uint32_t)condition_holds(op->condition, a[i]<b[i], a[i] == b[i], a[i]> b[i])
                     << i;
    } else {
        uint64_t a[MOST_LANES], b[MOST_LANES];
        read_integers(t, &op->operand[1], op->size, a);
        read_integers(t, &op->operand[2], op->size, b);
        for (int i = 0; i < op->size; i++) {
            const int64_t x = (int64_t)a[i], y = (int64_t)b[i];
            const bool less = left == UQ && right == UQ ? a[i] < b[i] : x < y;
            holds |= (uint32_t)condition_holds(op->condition, less, x == y, !less && x != y) << i;
        }
    }
    write_flags(t, op, holds, lanes);
    if (op->operand[0].kind != NOTHING) {
        uint64_t bits[MOST_LANES];
        for (int i = 0; i < op->size; i++) bits[i] = holds >> i & 1 ? UINT64_MAX : 0;
        write_bits(t, &op->operand[0], op->size, bits, lanes);
    }
}

static void move_bits(struct thread *t, const struct instruction *op)
{
    uint64_t x[MOST_LANES];
    read_bits(t, &op->operand[1], op->size, x);
    write_bits(t, &op->operand[0], op->size, x, writing(t, op));
}

/* All lanes write: the predicate says what. */
#define SELECT(function, number, read, write)                                                      \
    static void function(struct thread *t, const struct instruction *op)                           \
    {                                                                                              \
        const uint32_t first = predicated(t, op);                                                  \
        struct instruction writes = *op;                                                           \
        number a[MOST_LANES], b[MOST_LANES];                                                       \
        read(t, &op->operand[1], op->size, a);                                                     \
        read(t, &op->operand[2], op->size, b);                                                     \
        writes.predicate = -1;                                                                     \
        for (int i = 0; i < op->size; i++) a[i] = first >> i & 1 ? a[i] : b[i];                    \
        write(t, &writes, a);                                                                      \
    }

static void put_bits(struct thread *t, const struct instruction *op, const uint64_t *x)
{
    write_bits(t, &op->operand[0], op->size, x, lanes_of(t, op));
}

SELECT(select_bits, uint64_t, read_bits, put_bits)
SELECT(select_integers, uint64_t, read_integers, put_integers)
SELECT(select_floats, float, read_floats, put_floats)

/* sel with a condition: the lesser or the greater; it leaves the flags alone. */
static void choose_integers(struct thread *t, const struct instruction *op)
{
    uint64_t a[MOST_LANES], b[MOST_LANES];
    struct instruction writes = *op;
    if (op->condition == NO_CONDITION) {
        select_integers(t, op);
        return;
    }
    read_integers(t, &op->operand[1], op->size, a);
    read_integers(t, &op->operand[2], op->size, b);
    for (int i = 0; i < op->size; i++) a[i] = either(op, a[i], b[i]);
    writes.condition = NO_CONDITION;
    put_integers(t, &writes, a);
}

static void choose_floats(struct thread *t, const struct instruction *op)
{
    float a[MOST_LANES], b[MOST_LANES];
    struct instruction writes = *op;
    if (op->condition == NO_CONDITION) {
        select_floats(t, op);
        return;
    }
    read_floats(t, &op->operand[1], op->size, a);
    read_floats(t, &op->operand[2], op->size, b);
    const bool lesser = op->condition == LT || op->condition == LE;
    for (int i = 0; i < op->size; i++) a[i] = lesser ? fminf(a[i], b[i]) : fmaxf(a[i], b[i]);
    writes.condition = NO_CONDITION;
    put_floats(t, &writes, a);
}

/* ---- integers of more bits ---- */

/* mach and macl: to the products of the low 16 bits of `b`, which mul left in the accumulator, they
 * add those of the others. mach gives the high bits of the sums and keeps these, macl the low ones.
 */
static void multiply_rest(struct thread *t, const struct instruction *op)
{
    const bool high = strcmp(op->name, "mach") == 0;
    const bool is_signed = op->operand[1].type == D || op->operand[2].type == D;
    uint64_t a[MOST_LANES], b[MOST_LANES];
    struct instruction writes = *op;
    read_integers(t, &op->operand[1], op->size, a);
    read_integers(t, &op->operand[2], op->size, b);
    FOR_LANES(writing(t, op), i)
    {
        const uint64_t rest = a[i] * (uint64_t)((int64_t)b[i] >> 16) << 16,
                       sum = t->accumulator[i] + rest;
        a[i] = !high ? sum : is_signed ? (uint64_t)((int64_t)sum >> 32) : sum >> 32;
        if (high) t->accumulator[i] = sum;
    }
    writes.accumulates = false;
    put_integers(t, &writes, a);
}

static void add_carry(struct thread *t, const struct instruction *op)
{
    const bool adds = strcmp(op->name, "addc") == 0;
    uint64_t a[MOST_LANES], b[MOST_LANES];
    struct instruction writes = *op;
    read_integers(t, &op->operand[1], op->size, a);
    read_integers(t, &op->operand[2], op->size, b);
    for (int i = 0; i < op->size; i++) {
        const uint64_t x = (uint32_t)a[i], y = (uint32_t)b[i];
        a[i] = adds ? x + y : x - y;
    }
    FOR_LANES(writing(t, op), i) t->accumulator[i] = a[i] >> 32 & 1;
    writes.accumulates = false;
    put_integers(t, &writes, a);
}

/* The low bits, and in registers behind them the high ones. */
static void multiply_add_wide(struct thread *t, const struct instruction *op)
{
    const int bytes = t->group->code->register_bytes;
    const int registers = (4 * op->size + bytes - 1) / bytes;
    uint64_t a[MOST_LANES], b[MOST_LANES], c[MOST_LANES];
    struct instruction writes = *op;
    read_integers(t, &op->operand[1], op->size, a);
    read_integers(t, &op->operand[2], op->size, b);
    read_integers(t, &op->operand[3], op->size, c);
    for (int i = 0; i < op->size; i++) {
        a[i] += b[i] * c[i];
        b[i] = a[i] >> 32;
        writes.operand[0].at[i] = (uint16_t)(writes.operand[0].at[i] + registers * bytes);
    }
    put_integers(t, op, a);
    put_integers(t, &writes, b);
}

/* ---- the matrix unit ---- */

static float part_of_word(enum type type, uint32_t word, int part)
{
    const uint16_t half = (uint16_t)(word >> 16 * part);
    return type == HF ? half_to_float(half) : float_of((uint32_t)half << 16);
}

static int byte_of_word(enum type type, uint32_t word, int part)
{
    const uint8_t byte = (uint8_t)(word >> 8 * part);
    return type == UB ? byte : (int8_t)byte;
}

static uint32_t word_at(const struct thread *t, int at)
{
    uint32_t word;
    memcpy(&word, t->file + at, sizeof word);
    return word;
}

/* Eight rows of sums, each in a register: lane i adds to sum[row][i] the products of the words of
 * its column, which are word i of eight registers, and of the row's eight words. */
static void multiply_matrices(struct thread *t, const struct instruction *op)
{
    const struct operand *o = op->operand;
    const int row_bytes = 4 * op->size;
    const bool integers = !is_floating(o[2].type);
    const uint32_t lanes = writing(t, op);
    uint32_t sums[8][MOST_LANES];
    for (int row = 0; row < 8; row++)
        for (int lane = 0; lane < op->size; lane++) {
            uint32_t start = 0;
            if (o[1].kind == REGISTER) start = word_at(t, o[1].at[0] + row * row_bytes + 4 * lane);
            int32_t count = (int32_t)start;
            double sum = (double)float_of(start);
            for (int k = 0; k < 8; k++) {
                const uint32_t column = word_at(t, o[2].at[0] + k * row_bytes + 4 * lane);
                const uint32_t factor = word_at(t, o[3].at[0] + 32 * row + 4 * k);
                for (int part = 0; part < 4 && integers; part++)
                    count = (int32_t)((uint32_t)count +
                                      (uint32_t)(byte_of_word(o[2].type, column, part) *
                                                 byte_of_word(o[3].type, factor, part)));
                for (int part = 0; part < 2 && !integers; part++)
                    sum += (double)part_of_word(o[2].type, column, part) *
                           (double)part_of_word(o[3].type, factor, part);
            }
            sums[row][lane] = integers ? (uint32_t)count : bits_of((float)sum);
        }
    for (int row = 0; row < 8; row++) FOR_LANES(lanes, lane)
    memcpy(t->file + o[0].at[0] + row * row_bytes + 4 * lane, &sums[row][lane], 4);
}

/* ---- rows ---- */

const struct named_instruction arithmetic_instructions[] = {
    {"mov*", ANY, move_bits}, /* if types are the same and nothing changes the bits */
    {"mov", INTEGERS, move_integers},
    {"mov", FLOATS, move_floats},
    {"mov", DOUBLES, move_doubles},
    {"add", INTEGERS, add_integers},
    {"add", FLOATS, add_floats},
    {"add", DOUBLES, add_doubles},
    {"add3", INTEGERS, add_three},
    {"mul", INTEGERS, multiply_integers},
    {"mul", FLOATS, multiply_floats},
    {"mul", DOUBLES, multiply_doubles},
    {"mad", INTEGERS, multiply_add_integers},
    {"mad", FLOATS, multiply_add_floats},
    {"mad", DOUBLES, multiply_add_doubles},
    {"macl", INTEGERS, multiply_rest},
    {"mach", INTEGERS, multiply_rest},
    {"madw", INTEGERS, multiply_add_wide},
    {"addc", INTEGERS, add_carry},
    {"subb", INTEGERS, add_carry},
    {"and", INTEGERS, and_bits},
    {"or", INTEGERS, or_bits},
    {"xor", INTEGERS, xor_bits},
    {"not", INTEGERS, invert},
    {"bfn", INTEGERS, combine},
    {"shl", INTEGERS, shift_left},
    {"shr", INTEGERS, shift_right},
    {"asr", INTEGERS, shift_arithmetic},
    {"cbit", INTEGERS, count_bits},
    {"lzd", INTEGERS, count_zeros},
    {"dp4a", INTEGERS, dot_bytes},
    {"cmp", ANY, compare},
    {"sel*", ANY, select_bits},
    {"sel", INTEGERS, choose_integers},
    {"sel", FLOATS, choose_floats},
    {"rndz", FLOATS, toward_zero},
    {"rndz", DOUBLES, toward_zero_double},
    {"rndd", FLOATS, downward},
    {"rndu", FLOATS, upward},
    {"rnde", FLOATS, to_even},
    {"frc", FLOATS, fraction},
    {"math.inv", FLOATS, inverse},
    {"math.sqt", FLOATS, square_root},
    {"math.rsqt", FLOATS, inverse_root},
    {"math.exp", FLOATS, power_of_two},
    {"math.log", FLOATS, logarithm},
    {"math.sin", FLOATS, sine},
    {"math.cos", FLOATS, cosine},
    {"math.pow", FLOATS, power},
    {"math.fdiv", FLOATS, quotient},
    {"dpas.8x8", ANY, multiply_matrices},
    {NULL, ANY, NULL},
};
