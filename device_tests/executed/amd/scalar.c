/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on scalar registers: the rows of scalar_rows.h, branches, masks of lanes, barriers. */
#include "wave.h"

/* ---- what rows call ---- */

static uint64_t field(uint64_t x, uint32_t first, uint32_t count)
{
    return count >= 64 ? x >> first : x >> first & ((UINT64_C(1) << count) - 1);
}

static int64_t signed_field(int64_t x, uint32_t first, uint32_t count)
{
    if (count == 0) return 0;
    if (first + count >= 64) return x >> first;
    return (int64_t)((uint64_t)x << (64 - first - count)) >> (64 - count);
}

static double clamped(double x, double least, double most)
{
    return isnan(x) ? 0 : x < least ? least : x > most ? most : x;
}

/* ---- the rows ---- */

#define TYPE_none int
#define TYPE_i16 int32_t
#define TYPE_u16 uint16_t
#define TYPE_u32 uint32_t
#define TYPE_i32 int32_t
#define TYPE_u64 uint64_t
#define TYPE_i64 int64_t
#define TYPE_f32 float
#define TYPE_f16 float
#define READ_none(w, o) 0
#define READ_i16(w, o) read_i16(w, o, 0)
#define READ_u32(w, o) read_u32(w, o, 0)
#define READ_i32(w, o) read_i32(w, o, 0)
#define READ_u64(w, o) read_u64(w, o, 0)
#define READ_i64(w, o) read_i64(w, o, 0)
#define READ_f32(w, o) read_f32(w, o, 0)
#define READ_f16(w, o) read_f16(w, o, 0)
#define KEEP scc

#define SCALAR_ROW(mnemonic, D, A, B, result, condition_code)                                      \
    static void run_##mnemonic(struct wave *w, const struct operation *op)                         \
    {                                                                                              \
        const uint32_t scc = w->scalar[SCC], was = raw_word(w, &op->operand[0], 0, 0);             \
        const TYPE_##A a = READ_##A(w, &op->operand[1]);                                           \
        const TYPE_##B b = READ_##B(w, &op->operand[2]);                                           \
        const TYPE_##D d = (TYPE_##D)(result);                                                     \
        (void)scc, (void)was, (void)a, (void)b;                                                    \
        write_##D(w, op, 0, d);                                                                    \
        w->scalar[SCC] = (uint32_t)(condition_code);                                               \
    }
#include "scalar_rows.h"
#undef SCALAR_ROW

static void run_s_bitcmp0_b32(struct wave *w, const struct operation *op)
{
    const uint32_t number = read_u32(w, &op->operand[1], 0) & 31;
    w->scalar[SCC] = !bit(read_u32(w, &op->operand[0], 0), (int)number);
}

static void run_s_bitcmp1_b32(struct wave *w, const struct operation *op)
{
    run_s_bitcmp0_b32(w, op);
    w->scalar[SCC] = !w->scalar[SCC];
}

/* ---- masks ---- */

/* s_OP_saveexec: keeps exec, and combines it with a mask. */
void save_exec(struct wave *w, const struct operation *op)
{
    const bool wide = strstr(op->name, "_b64") != NULL;
    const struct operand *source = &op->operand[1];
    const uint64_t mask = wide ? read_u64(w, source, 0) : read_u32(w, source, 0);
    const uint64_t upper = wide ? w->scalar[EXEC + 1] : 0;
    const uint64_t exec = w->scalar[EXEC] | upper << 32;
    uint64_t result = 0;
    if (strncmp(op->name, "s_and_save", 10) == 0)
        result = mask & exec;
    else if (strncmp(op->name, "s_or_save", 9) == 0)
        result = mask | exec;
    else if (strncmp(op->name, "s_xor_save", 10) == 0)
        result = mask ^ exec;
    else if (strncmp(op->name, "s_andn2_save", 12) == 0 ||
             strncmp(op->name, "s_and_not1_save", 15) == 0)
        result = mask & ~exec;
    else if (strncmp(op->name, "s_andn1_save", 12) == 0 ||
             strncmp(op->name, "s_and_not0_save", 15) == 0)
        result = ~mask & exec;
    else
        unknown_operation(w, op);
    if (!wide) result = (uint32_t)result;
    put_word(w, &op->operand[0], 0, 0, (uint32_t)exec);
    if (wide) put_word(w, &op->operand[0], 0, 1, (uint32_t)(exec >> 32));
    set_exec(w, result);
    w->scalar[SCC] = result != 0;
}

/* ---- where the wave goes on ---- */

void branch(struct wave *w, const struct operation *op)
{
    const char *when = strrchr(op->name, '_');
    const bool taken = strcmp(when, "_branch") == 0  ? true
                       : strcmp(when, "_scc0") == 0  ? !w->scalar[SCC]
                       : strcmp(when, "_scc1") == 0  ? w->scalar[SCC]
                       : strcmp(when, "_vccz") == 0  ? register_mask(w, VCC) == 0
                       : strcmp(when, "_vccnz") == 0 ? register_mask(w, VCC) != 0
                       : strcmp(when, "_execz") == 0 ? register_mask(w, EXEC) == 0
                                                     : register_mask(w, EXEC) != 0;
    if (taken) w->address += (uint64_t)((int64_t)(int16_t)op->operand[0].word * 4);
}

static void run_s_getpc_b64(struct wave *w, const struct operation *op)
{
    write_u64(w, op, 0, w->group->image + w->address);
}

static void run_s_endpgm(struct wave *w, const struct operation *op)
{
    (void)op;
    w->state = ENDED;
}

static void run_s_barrier(struct wave *w, const struct operation *op)
{
    (void)op;
    w->state = AT_BARRIER;
}

void do_nothing(struct wave *w, const struct operation *op)
{
    (void)w, (void)op;
}

void unknown_operation(struct wave *w, const struct operation *op)
{
    wave_fail(w, op,
              "the executor does not know this operation or one of its modifiers: add a row to "
              "scalar_rows.h or vector_rows.h, or the modifier to decode.c");
}

#define NAMED(mnemonic) {#mnemonic, run_##mnemonic},
#define SCALAR_ROW(mnemonic, D, A, B, result, condition_code) NAMED(mnemonic)
const struct named_operation scalar_operations[] = {
#include "scalar_rows.h"
    NAMED(s_bitcmp0_b32) NAMED(s_bitcmp1_b32) NAMED(s_getpc_b64) NAMED(s_endpgm)
        NAMED(s_barrier){"s_barrier_wait", run_s_barrier},
    {"s_and_not1_b32", run_s_andn2_b32},
    {"s_and_not1_b64", run_s_andn2_b64},
    {"s_or_not1_b32", run_s_orn2_b32},
    {"s_or_not1_b64", run_s_orn2_b64},
    {"s_add_nc_u64", run_s_add_u64},
    {"s_sub_nc_u64", run_s_sub_u64},
    {"s_add_co_u32", run_s_add_u32},
    {"s_add_co_i32", run_s_add_i32},
    {"s_add_co_ci_u32", run_s_addc_u32},
    {"s_addk_co_i32", run_s_addk_i32},
    {"s_sub_co_u32", run_s_sub_u32},
    {"s_sub_co_i32", run_s_sub_i32},
    {"s_sub_co_ci_u32", run_s_subb_u32},
    {NULL, NULL}};
