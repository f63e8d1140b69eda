/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines as "v_add_f32_e64 v0, -v1, |s2| clamp   // 000000001800: D1010000 ..." once, so that
 * executing an operation takes a call and no text. */
#include "decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    const size_t all = strlen(text), end = strlen(with);
    return all > end && strcmp(text + all - end, with) == 0;
}

/* ---- operands ---- */

/* Registers with names; a longer name stands before its beginning. */
static const struct {
    const char *name;
    int number, count;
} special_registers[] = {
    {"vcc_lo", VCC, 1},       {"vcc_hi", VCC + 1, 1}, {"vcc", VCC, 2}, {"exec_lo", EXEC, 1},
    {"exec_hi", EXEC + 1, 1}, {"exec", EXEC, 2},      {"m0", M0, 1},   {"null", NOTHING, 1},
    {"off", NOTHING, 1},      {"src_scc", SCC, 1},    {"scc", SCC, 1},
};

static bool read_register(const char *text, struct operand *o)
{
    o->kind = SCALAR;
    for (size_t i = 0; i < sizeof special_registers / sizeof *special_registers; i++)
        if (starts(text, special_registers[i].name)) {
            o->number = special_registers[i].number;
            o->count = special_registers[i].count;
            return true;
        }
    const bool trap = starts(text, "ttmp");
    const char *digits = text + (trap ? 4 : 1);
    int first, last;
    if (!trap && *text != 'v' && *text != 's' && *text != 'a') return false;
    if (sscanf(digits, "[%d:%d]", &first, &last) != 2) {
        if (sscanf(digits, "%d", &first) != 1) return false;
        last = first;
    }
    if (!trap && *text != 's') o->kind = VECTOR;
    o->number = first + (trap ? TTMP : *text == 'a' ? ACCUMULATION : 0);
    o->count = last - first + 1;
    return true;
}

static bool read_literal(const char *text, struct operand *o)
{
    char *end;
    o->kind = LITERAL;
    o->hexadecimal = starts(text, "0x");
    if (strchr(text, '.') != NULL) {
        const double value = strtod(text, &end);
        o->word = bits_of((float)value);
        o->half = float_to_half((float)value);
        o->wide_float = o->wide_integer = wide_bits_of(value);
        return end != text;
    }
    const uint64_t value = o->hexadecimal ? strtoull(text, &end, 0)
                                          : (uint64_t)strtoll(text, &end, 0);
    o->word = (uint32_t)value;
    o->half = (uint16_t)value;
    o->wide_integer = value;
    /* A hexadecimal literal of 32 bits is the upper half of an f64. */
    o->wide_float = o->hexadecimal && value >> 32 == 0 ? value << 32 : value;
    return end != text;
}

static bool read_operand(const char *text, struct operand *o)
{
    *o = (struct operand){.count = 1};
    if (starts(text, "sext(")) {
        o->sign_extended = true;
        text += 5;
    }
    if (*text == '-' && (text[1] < '0' || text[1] > '9')) {
        o->negate = true;
        text++;
    }
    if (starts(text, "neg(")) {
        o->negate = true;
        text += 4;
    }
    if (*text == '|') {
        o->absolute = true;
        text++;
    }
    return read_register(text, o) || read_literal(text, o);
}

/* ---- modifiers ---- */

/* "[1,0,1]": a bit for each number, the least first. */
static uint32_t read_bits(const char *text)
{
    uint32_t bits = 0;
    for (int n = 0; *text != '\0' && *text != ']'; text++)
        if (*text == '0' || *text == '1') bits |= (uint32_t)(*text - '0') << n++;
    return bits;
}

/* "BYTE_0" to "WORD_1" as the number of a part. */
static int read_part(const char *text)
{
    if (starts(text, "BYTE_")) return 1 + atoi(text + 5);
    return starts(text, "WORD_") ? 5 + atoi(text + 5) : 0;
}

/* Whether a modifier only tells caches something. */
static bool is_hint(const char *text)
{
    static const char *const hints[] = {"glc", "slc", "dlc", "nt", "sc0", "sc1", "th:", "scope:"};
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (starts(text, hints[i])) return true;
    return false;
}

/* False if the executor does not know a modifier, for example DPP. */
static bool read_modifier(struct operation *op, const char *text)
{
    const char *value = strchr(text, ':') == NULL ? "" : strchr(text, ':') + 1;
    /* Behind the results: one, two of additions with carries, none of v_cmpx on RDNA. */
    const int first_source = strstr(op->name, "_co_") != NULL                       ? 2
                             : starts(op->name, "v_cmpx") && op->operand_count == 2 ? 0
                                                                                    : 1;
    if (starts(text, "offset:") || starts(text, "offset0:"))
        op->offset = strtoll(value, NULL, 0);
    else if (starts(text, "offset1:"))
        op->offset1 = strtoll(value, NULL, 0);
    else if (starts(text, "op_sel:"))
        op->op_sel = read_bits(value);
    else if (starts(text, "op_sel_hi:"))
        op->op_sel_hi = read_bits(value);
    else if (starts(text, "neg_lo:"))
        op->negate_low = read_bits(value);
    else if (starts(text, "neg_hi:"))
        op->negate_high = read_bits(value);
    else if (strcmp(text, "clamp") == 0)
        op->clamp = true;
    else if (starts(text, "mul:"))
        op->factor = atof(value);
    else if (starts(text, "div:"))
        op->factor = 1 / atof(value);
    else if (starts(text, "dst_sel:"))
        op->result_part = read_part(value);
    else if (starts(text, "dst_unused:"))
        op->keeps_rest = starts(value, "UNUSED_PRESERVE");
    else if (starts(text, "src0_sel:"))
        op->operand[first_source].part = read_part(value);
    else if (starts(text, "src1_sel:"))
        op->operand[first_source + 1].part = read_part(value);
    else
        return is_hint(text);
    return true;
}

/* ---- mnemonics ---- */

static const struct {
    const char *name;
    enum condition condition;
} conditions[] = {
    {"class_", IS_OF_CLASS},
    {"nge_", IS_NOT_GREATER_OR_EQUAL},
    {"nlg_", IS_NOT_LESS_OR_GREATER},
    {"ngt_", IS_NOT_GREATER},
    {"nle_", IS_NOT_LESS_OR_EQUAL},
    {"neq_", IS_NOT_EQUAL},
    {"nlt_", IS_NOT_LESS},
    {"lt_", IS_LESS},
    {"eq_", IS_EQUAL},
    {"le_", IS_LESS_OR_EQUAL},
    {"gt_", IS_GREATER},
    {"lg_", IS_LESS_OR_GREATER},
    {"ge_", IS_GREATER_OR_EQUAL},
    {"ne_", IS_NOT_EQUAL},
    {"o_", IS_ORDERED},
    {"u_", IS_UNORDERED},
    {"t_", IS_TRUE},
    {"f_", IS_FALSE},
};

static const struct {
    const char *name;
    enum number_type type;
} types[] = {{"f16", F16}, {"f32", F32}, {"f64", F64}, {"i16", I16}, {"u16", U16},
             {"i32", I32}, {"u32", U32}, {"i64", I64}, {"u64", U64}};

/* Reads "lt_f32". */
static operation_function *comparison(struct operation *op, const char *text,
                                      operation_function *run)
{
    const size_t count = sizeof conditions / sizeof *conditions;
    size_t c = 0, t = 0;
    while (c < count && !starts(text, conditions[c].name)) c++;
    if (c == count) return unknown_operation;
    text += strlen(conditions[c].name);
    while (t < sizeof types / sizeof *types && !starts(text, types[t].name)) t++;
    if (t == sizeof types / sizeof *types) return unknown_operation;
    op->condition = conditions[c].condition;
    op->type = types[t].type;
    return run;
}

/* The products of matrices that kernels use. */
static const struct {
    const char *name;
    enum number_type type;
    int depth;
} matrix_products[] = {
    {"v_wmma_f32_16x16x16_f16", F16, 16},   {"v_wmma_f32_16x16x16_bf16", BF16, 16},
    {"v_wmma_i32_16x16x16_iu8", BYTES, 16}, {"v_mfma_f32_16x16x16f16", F16, 16},
    {"v_mfma_f32_16x16x16_f16", F16, 16},   {"v_mfma_f32_16x16x16bf16_1k", BF16, 16},
    {"v_mfma_f32_16x16x16_bf16", BF16, 16}, {"v_mfma_f32_16x16x4f32", F32, 4},
    {"v_mfma_f32_16x16x4_f32", F32, 4},     {"v_mfma_f32_16x16x8bf16", BF16, 8},
};

static operation_function *matrix_product(struct operation *op)
{
    for (size_t i = 0; i < sizeof matrix_products / sizeof *matrix_products; i++)
        if (strcmp(op->name, matrix_products[i].name) == 0) {
            op->type = matrix_products[i].type;
            op->depth = matrix_products[i].depth;
            return multiply_matrices;
        }
    return unknown_operation;
}

/* Bytes that an access moves, from its name's ending; a longer ending stands first. */
static const struct {
    const char *name;
    int bytes;
} widths[] = {{"dwordx16", 64}, {"dwordx8", 32}, {"dwordx4", 16}, {"dwordx3", 12}, {"dwordx2", 8},
              {"dword", 4},     {"b512", 64},    {"b256", 32},    {"b128", 16},    {"b96", 12},
              {"b64", 8},       {"b32", 4},      {"short", 2},    {"b16", 2},      {"u16", 2},
              {"i16", 2},       {"byte", 1},     {"b8", 1},       {"u8", 1},       {"i8", 1}};

static const struct {
    const char *name;
    operation_function *run;
} accesses[] = {
    {"s_load_", load_scalar},
    {"global_load_lds", unknown_operation},
    {"global_load_", load_global},
    {"global_store_", store_global},
    {"flat_load_", load_global},
    {"flat_store_", store_global},
    {"global_atomic_or", add_global},
    {"global_atomic_add_u32", add_global},
    {"global_atomic_add", add_global},
    {"scratch_load_", load_scratch},
    {"scratch_store_", store_scratch},
    {"ds_read2", load_local_twice},
    {"ds_load_2addr", load_local_twice},
    {"ds_write2", store_local_twice},
    {"ds_store_2addr", store_local_twice},
    {"ds_read_", load_local},
    {"ds_load_", load_local},
    {"ds_write_", store_local},
    {"ds_store_", store_local},
    {"ds_or_b32", or_local},
};

static operation_function *access_of(struct operation *op)
{
    const char *name = op->name;
    operation_function *run = unknown_operation;
    for (size_t i = sizeof accesses / sizeof *accesses; i-- > 0;)
        if (starts(name, accesses[i].name)) run = accesses[i].run;
    if (run == add_global) return op->operand_count == 3 ? run : unknown_operation;
    for (size_t i = 0; i < sizeof widths / sizeof *widths && op->width == 0; i++)
        if (strstr(name, widths[i].name) != NULL) op->width = widths[i].bytes;
    if (run == load_local_twice || run == store_local_twice) {
        op->width = ends(name, "64") && !ends(name, "st64") ? 8 : 4;
        const bool far = strstr(name, "st64") != NULL || strstr(name, "stride64") != NULL;
        if (strstr(name, "_b64") != NULL) op->width = 8;
        op->stride = op->width * (far ? 64 : 1);
    }
    op->is_signed = strstr(name, "sbyte") != NULL || strstr(name, "sshort") != NULL ||
                    strstr(name, "_i8") != NULL || strstr(name, "_i16") != NULL;
    op->upper_half = strstr(name, "d16_hi") != NULL;
    op->lower_half = !op->upper_half && strstr(name, "d16") != NULL && strstr(name, "load");
    return op->width == 0 ? unknown_operation : run;
}

/* What only orders or times other operations, or tells caches something. */
static const char *const ignored[] = {
    "s_waitcnt",    "s_wait_",          "s_delay_alu",         "s_nop",           "s_clause",
    "s_code_end",   "s_sendmsg",        "s_set_inst_prefetch", "s_inst_prefetch", "s_sleep",
    "s_setprio",    "s_barrier_signal", "buffer_gl",           "buffer_inv",      "buffer_wb",
    "global_inv",   "global_wb",        "s_icache_inv",        "s_dcache_wb",     "s_denorm_mode",
    "s_round_mode", "s_version",
};

static operation_function *named(const struct named_operation *list, const char *name)
{
    for (; list->name != NULL; list++)
        if (strcmp(list->name, name) == 0) return list->run;
    return NULL;
}

static operation_function *function_of(struct operation *op)
{
    const char *name = op->name;
    operation_function *run = named(vector_operations, name);
    if (run == NULL) run = named(scalar_operations, name);
    if (run != NULL) return run;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (starts(name, ignored[i])) return do_nothing;
    if (starts(name, "v_cmp_")) return comparison(op, name + 6, compare_vectors);
    if (starts(name, "v_cmpx_")) return comparison(op, name + 7, compare_vectors);
    if (starts(name, "s_cmp_")) return comparison(op, name + 6, compare_scalars);
    if (starts(name, "s_cmpk_")) {
        struct operand *literal = &op->operand[1];
        if (strstr(name, "_i32") != NULL) literal->word = (uint32_t)(int16_t)literal->word;
        return comparison(op, name + 7, compare_scalars);
    }
    if (strstr(name, "_saveexec_") != NULL) return save_exec;
    if (starts(name, "s_branch") || starts(name, "s_cbranch_")) return branch;
    if (starts(name, "v_wmma_") || starts(name, "v_mfma_")) return matrix_product(op);
    return access_of(op);
}

/* ---- lines ---- */

/* Takes the encoding's name off, and VOPD's prefix. */
static void shorten_name(char *name)
{
    static const char *const endings[] = {"_e64_dpp", "_e32", "_e64", "_sdwa", "_dpp"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends(name, endings[i])) {
            name[strlen(name) - strlen(endings[i])] = '\0';
            break;
        }
    if (starts(name, "v_dual_")) memmove(name + 2, name + 7, strlen(name + 7) + 1);
}

/* Finds the end of an operand: brackets may hold commas. */
static char *operand_end(char *text)
{
    int depth = 0;
    for (; *text != '\0'; text++) {
        if (*text == '[' || *text == '(') depth++;
        if (*text == ']' || *text == ')') depth--;
        if (depth == 0 && (*text == ',' || *text == ' ')) break;
    }
    return text;
}

/* Reads the operands, which commas divide; returns what follows. Behind the last comma may stand a
 * modifier instead: "v_nop", "s_waitcnt vmcnt(0)". */
static char *read_operands(struct operation *op, char *at)
{
    for (bool more = true; more && op->operand_count < MOST_OPERANDS;) {
        at += strspn(at, " ");
        char *end = operand_end(at);
        const char ending = *end;
        *end = '\0';
        const bool read = read_operand(at, &op->operand[op->operand_count]);
        *end = ending;
        if (!read) break;
        op->operand_count++;
        more = ending == ',';
        at = more ? end + 1 : end;
    }
    return at;
}

/* Parts of 16-bit sources and results of operations that are not packed: a bit for each source, and
 * one more for the result. */
static void read_halves(struct operation *op)
{
    static const char *const own[] = {"v_pk_", "v_fma_mix", "v_pack_", "v_wmma", "v_dot"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (starts(op->name, own[i])) return;
    for (int s = 1; s < op->operand_count; s++)
        if (bit(op->op_sel, s - 1)) op->operand[s].part = 6;
    if (op->operand_count > 0 && bit(op->op_sel, op->operand_count - 1)) {
        op->result_part = 6;
        op->keeps_rest = true;
    }
}

/* Whether the result is saturated or multiplied by a factor, which only single floating-point
 * results are here. */
static bool finishes_wrongly(const struct operation *op)
{
    const char *name = op->name;
    const bool is_float = strstr(name, "_f32") != NULL || strstr(name, "_f64") != NULL ||
                          strstr(name, "_f16") != NULL;
    return (op->clamp || op->factor != 1) && (!is_float || starts(name, "v_pk_"));
}

static void read_operation(struct operation *op, char *text, bool gfx9)
{
    *op = (struct operation){.factor = 1};
    char *at = text + strcspn(text, " ");
    snprintf(op->name, sizeof op->name, "%.*s", (int)(at - text), text);
    shorten_name(op->name);
    op->keeps_upper = !gfx9;
    op->op_sel_hi = strstr(op->name, "fma_mix") == NULL ? 7 : 0;
    at = read_operands(op, at);
    op->run = function_of(op);
    if (op->run == do_nothing) return;
    for (char *word = strtok(at, " "); word != NULL; word = strtok(NULL, " "))
        if (!read_modifier(op, word)) op->run = unknown_operation;
    read_halves(op);
    if (finishes_wrongly(op)) op->run = unknown_operation;
}

/* VOPD: both operations read their sources before either writes. */
static void run_dual(struct wave *w, const struct operation *op)
{
    uint32_t before[MOST_LANES], result[MOST_LANES];
    uint32_t *reg = w->vector[op->operand[0].number];
    memcpy(before, reg, sizeof before);
    op->run_dual(w, op);
    memcpy(result, reg, sizeof result);
    memcpy(reg, before, sizeof before);
    op[1].run(w, op + 1);
    memcpy(reg, result, sizeof result);
}

/* Words of an encoding, "D1010000 00000000 <kernel+0x12>". */
static int count_words(const char *text)
{
    int words = 0, length = 0;
    unsigned word;
    while (sscanf(text, " %8X%n", &word, &length) == 1 && length >= 8) {
        words++;
        text += length;
    }
    return words;
}

static bool make_room(struct program *program, int *room)
{
    if (program->count + 2 <= *room) return true;
    *room = *room == 0 ? 1024 : 2 * *room;
    void *list = realloc(program->list, (size_t)*room * sizeof *program->list);
    if (list == NULL) return false;
    program->list = list;
    return true;
}

/* Reads a line if it is an instruction. */
static void read_line(struct program *program, char *line, bool gfx9)
{
    char *comment = strstr(line, "//"), *second = strstr(line, " :: ");
    uint64_t address;
    if (*line != '\t' || comment == NULL) return;
    if (sscanf(comment + 2, "%" SCNx64 ":", &address) != 1) return;
    const int bytes = 4 * count_words(strchr(comment, ':') + 1);
    *comment = '\0';
    if (second != NULL) *second = '\0';
    struct operation *op = &program->list[program->count++];
    read_operation(op, line + 1, gfx9);
    if (second != NULL) {
        struct operation *other = &program->list[program->count++];
        read_operation(other, second + 4, gfx9);
        other->address = UINT64_MAX;
        op->run_dual = op->run;
        op->run = run_dual;
    }
    op->address = address;
    op->bytes = bytes;
    if (address < program->first) program->first = address;
    if (address + (uint64_t)bytes > program->end) program->end = address + (uint64_t)bytes;
}

bool program_read(struct program *program, const char *text, const char *target)
{
    const bool gfx9 = starts(target, "gfx9");
    int room = 0;
    *program = (struct program){.first = UINT64_MAX};
    while (*text != '\0') {
        char line[400];
        const size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        text += length + (text[length] == '\n');
        if (!make_room(program, &room)) return false;
        read_line(program, line, gfx9);
    }
    if (program->count == 0) return false;
    const size_t places = (size_t)(program->end - program->first) / 4;
    program->at = malloc(places * sizeof *program->at);
    if (program->at == NULL) return false;
    for (size_t i = 0; i < places; i++) program->at[i] = -1;
    for (int i = 0; i < program->count; i++)
        if (program->list[i].address != UINT64_MAX)
            program->at[(program->list[i].address - program->first) / 4] = i;
    return true;
}

void program_free(struct program *program)
{
    free(program->list);
    free(program->at);
}

const struct operation *program_at(const struct program *program, uint64_t address)
{
    if (address < program->first || address >= program->end) return NULL;
    const int index = program->at[(address - program->first) / 4];
    return index < 0 ? NULL : &program->list[index];
}
