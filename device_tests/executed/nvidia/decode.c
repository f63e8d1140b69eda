/* SPDX-License-Identifier: Apache-2.0 */
/* Reads PTX, as clang and NVIDIA's compilers write it, into operations: statements end with a
 * semicolon, labels with a colon; braces begin a scope of register names. */
#include "decode.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_NAMES = 400, MOST_LABELS = 4000, MOST_PARTS = 160, MOST_WORDS = 16 };

static const char *const type_names[] = {
    [U8] = "u8",   [S8] = "s8",   [B8] = "b8",     [U16] = "u16",     [S16] = "s16",
    [B16] = "b16", [F16] = "f16", [BF16] = "bf16", [U32] = "u32",     [S32] = "s32",
    [B32] = "b32", [F32] = "f32", [TF32] = "tf32", [F16X2] = "f16x2", [BF16X2] = "bf16x2",
    [U64] = "u64", [S64] = "s64", [B64] = "b64",   [F64] = "f64",     [PRED] = "pred"};

static const char *const special_names[SPECIALS] = {[TID_X] = "%tid.x",
                                                    [TID_Y] = "%tid.y",
                                                    [TID_Z] = "%tid.z",
                                                    [NTID_X] = "%ntid.x",
                                                    [NTID_Y] = "%ntid.y",
                                                    [NTID_Z] = "%ntid.z",
                                                    [CTAID_X] = "%ctaid.x",
                                                    [CTAID_Y] = "%ctaid.y",
                                                    [CTAID_Z] = "%ctaid.z",
                                                    [NCTAID_X] = "%nctaid.x",
                                                    [NCTAID_Y] = "%nctaid.y",
                                                    [NCTAID_Z] = "%nctaid.z",
                                                    [LANE_ID] = "%laneid",
                                                    [WARP_ID] = "%warpid",
                                                    [OFFSET_X] = "%envreg3",
                                                    [OFFSET_Y] = "%envreg4",
                                                    [OFFSET_Z] = "%envreg5",
                                                    [CLOCK] = "%clock",
                                                    [LANES_BELOW] = "%lanemask_lt"};

int type_bytes(enum number_type type)
{
    if (type == PRED) return 1;
    return type <= B8 ? 1 : type <= BF16 ? 2 : type <= BF16X2 ? 4 : 8;
}

static enum number_type type_named(const char *name)
{
    for (int t = 0; t < NO_TYPE; t++)
        if (strcmp(name, type_names[t]) == 0) return (enum number_type)t;
    return NO_TYPE;
}

/* Registers "%r<89>", one register, or a variable with its address. */
struct name {
    char text[80];
    int count;      /* of registers whose names go on with a number; -1: the name is all */
    int size;       /* of a register; 0: a variable */
    uint64_t place; /* offset of the first register, or address */
};

struct reader {
    struct code *code;
    struct kernel *kernel;
    struct name names[MOST_NAMES];
    int name_count;
    struct {
        char text[80];
        int place;
    } * labels;
    int label_count, line, room, table_count; /* the first names are the tables of the module */
    char *text;
    const char *at;
    char *why;
    size_t why_size;
};

static bool fail(struct reader *r, const char *what, const char *text)
{
    if (r->why[0] == '\0')
        snprintf(r->why, r->why_size, "line %d: %s: %.100s", r->line, what, text);
    return false;
}

static void *new_piece(struct reader *r, size_t bytes)
{
    struct code *code = r->code;
    if ((code->piece_count & (code->piece_count + 1)) == 0) {
        void *list = realloc(code->pieces, 2 * (code->piece_count + 1) * sizeof *code->pieces);
        if (list == NULL) return NULL;
        code->pieces = list;
    }
    uint8_t *piece = calloc(bytes, 1);
    if (piece != NULL) code->pieces[code->piece_count++] = piece;
    return piece;
}

/* ---- names ---- */

static bool add_name(struct reader *r, const char *text, int count, int size, uint64_t place)
{
    if (r->name_count == MOST_NAMES) return fail(r, "too many names", text);
    struct name *name = &r->names[r->name_count++];
    *name = (struct name){.count = count, .size = size, .place = place};
    snprintf(name->text, sizeof name->text, "%.79s", text);
    return true;
}

static uint64_t new_registers(struct kernel *kernel, int size, int count)
{
    const uint64_t place = kernel->register_bytes;
    kernel->register_bytes += (uint32_t)(size * LANES * count);
    return place;
}

/* The name, and the number behind it; NULL if there is none. */
static const struct name *find_name(const struct reader *r, const char *text, int *number)
{
    *number = 0;
    for (int i = r->name_count - 1; i >= 0; i--) {
        const struct name *name = &r->names[i];
        const size_t length = strlen(name->text);
        if (strncmp(text, name->text, length) != 0) continue;
        const char *rest = text + length;
        if (name->count < 0
                ? *rest == '\0'
                : isdigit((unsigned char)*rest) && rest[strspn(rest, "0123456789")] == '\0') {
            if (name->count >= 0) *number = atoi(rest);
            if (name->count < 0 || *number < name->count) return name;
        }
    }
    return NULL;
}

/* ---- operands ---- */

static bool make_constant(struct reader *r, struct operand *o, uint64_t value, int size)
{
    uint8_t *bytes = new_piece(r, (size_t)size * LANES);
    if (bytes == NULL) return fail(r, "memory is missing", "");
    for (int lane = 0; lane < LANES; lane++) memcpy(bytes + size * lane, &value, (size_t)size);
    *o = (struct operand){.constant = bytes, .size = (uint8_t)size};
    return true;
}

/* A number, or the product of numbers. */
static bool number_of(const char *text, uint64_t *value)
{
    char *end;
    if (text[0] == '0' && strchr("fFdD", text[1]) != NULL && text[1] != '\0')
        *value = strtoull(text + 2, &end, 16);
    else if (text[0] == '-')
        *value = (uint64_t)strtoll(text, &end, 0);
    else
        *value = strtoull(text, &end, 0);
    if (*end == 'U') end++;
    uint64_t more = 1;
    if (*end == '*' && end != text && !number_of(end + 1, &more)) return false;
    *value *= more;
    return end != text && (*end == '\0' || *end == '*');
}

/* One register, number or variable; a number takes `size` bytes of a lane. */
static bool read_part(struct reader *r, char *text, int size, struct operand *o)
{
    bool negated = false;
    int number;
    uint64_t value;
    if (*text == '!') {
        negated = true;
        text++;
    }
    if (strcmp(text, "_") == 0) {
        *o = (struct operand){.size = 0};
        return true;
    }
    const struct name *name = find_name(r, text, &number);
    if (name != NULL && name->size == 0) return make_constant(r, o, name->place, size);
    if (name != NULL) {
        *o = (struct operand){
            .offset = (uint32_t)(name->place + (uint64_t)(number * name->size * LANES)),
            .size = (uint8_t)name->size,
            .negated = negated};
        return true;
    }
    if (strcmp(text, "WARP_SZ") == 0) return make_constant(r, o, LANES, size);
    if (!number_of(text, &value)) return fail(r, "an operand is unknown", text);
    return make_constant(r, o, value, size);
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

/* Splits at characters of `ends` outside of brackets. */
static int split(char *text, const char *ends, char **parts, int most)
{
    int count = 0, depth = 0;
    text = trimmed(text);
    if (*text == '\0') return 0;
    parts[count++] = text;
    for (; *text != '\0'; text++) {
        if (strchr("{[(", *text) != NULL) depth++;
        if (strchr("}])", *text) != NULL) depth--;
        if (depth != 0 || strchr(ends, *text) == NULL) continue;
        *text = '\0';
        if (count < most) parts[count++] = text + 1;
    }
    for (int i = 0; i < count; i++) parts[i] = trimmed(parts[i]);
    return count;
}

/* "[%rd1+8]" or "[name+-4]": the address without brackets. */
static bool read_address(struct reader *r, char *text, struct slot *slot)
{
    char *plus = strchr(text, '+');
    if (plus != NULL) {
        uint64_t offset;
        *plus = '\0';
        if (!number_of(trimmed(plus + 1), &offset))
            return fail(r, "an offset is unknown", plus + 1);
        slot->offset = (int64_t)offset;
    }
    return read_part(r, trimmed(text), 8, slot->list);
}

static bool read_slot(struct reader *r, char *text, int size, struct slot *slot)
{
    char *parts[MOST_PARTS];
    int count = 1;
    const size_t length = strlen(text);
    if ((text[0] == '{' || text[0] == '[') && length > 1) {
        const bool address = text[0] == '[';
        text[length - 1] = '\0';
        text++;
        if (address) {
            slot->list = new_piece(r, sizeof *slot->list);
            slot->count = 1;
            return slot->list != NULL && read_address(r, text, slot);
        }
        count = split(text, ",", parts, MOST_PARTS);
    } else if (text[0] == '%' && strchr(text, '|') != NULL) {
        count = split(text, "|", parts, MOST_PARTS);
    } else {
        parts[0] = text;
    }
    slot->list = new_piece(r, sizeof *slot->list * (size_t)count);
    slot->count = count;
    if (slot->list == NULL) return fail(r, "memory is missing", "");
    for (int i = 0; i < count; i++)
        if (!read_part(r, parts[i], size, &slot->list[i])) return false;
    return true;
}

/* ---- operations ---- */

/* Words of names that do not change what is computed here. */
static bool is_ignored(const char *word)
{
    static const char *const ignored[] = {"ftz",     "volatile", "relaxed", "weak", "gpu",
                                          "cta",     "sys",      "nc",      "uni",  "acquire",
                                          "release", "aligned",  "cluster", "noinc"};
    if (strncmp(word, "L1", 2) == 0 || strncmp(word, "L2", 2) == 0) return true;
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        if (strcmp(word, ignored[i]) == 0) return true;
    return false;
}

static const struct {
    const char *begin; /* of the name, without words that are ignored */
    operation_function *run;
} families[] = {{"bra", branch},
                {"ret", end_lanes},
                {"exit", end_lanes},
                {"ld.", load},
                {"st.", store},
                {"atom.", change_atomically},
                {"red.", change_atomically},
                {"cvt.", convert},
                {"cp.async.commit_group", commit_copies},
                {"cp.async.wait_", wait_for_copies},
                {"cp.async.bulk.shared", copy_bulk},
                {"cp.async.ca", copy_later},
                {"cp.async.cg", copy_later},
                {"shfl.sync", shuffle},
                {"bar.warp.sync", meet_in_warp},
                {"bar.", meet_at_barrier},
                {"barrier.", meet_at_barrier},
                {"ldmatrix", load_matrices},
                {"stmatrix", store_matrices},
                {"movmatrix", transpose_matrix},
                {"mma.sync", multiply_matrices},
                {"wgmma.mma_async", multiply_later},
                {"wgmma.fence", fence_products},
                {"wgmma.commit_group", commit_products},
                {"wgmma.wait_group", wait_for_products},
                {"fence.proxy.async", fence_proxy},
                {"mbarrier.init", mbarrier_begin},
                {"mbarrier.inval", do_nothing},
                {"mbarrier.arrive.expect_tx", mbarrier_expect},
                {"mbarrier.expect_tx", mbarrier_expect},
                {"mbarrier.arrive", mbarrier_arrive},
                {"mbarrier.test_wait", mbarrier_test},
                {"mbarrier.try_wait", mbarrier_test},
                {"fence.", do_nothing},
                {"membar", do_nothing},
                {"setmaxnreg", do_nothing},
                {"prefetch", do_nothing}};

/* "m16n8k16" */
static void read_shape(struct operation *op, const char *word)
{
    int rows, columns, depth = 0;
    if (sscanf(word, "m%dn%dk%d", &rows, &columns, &depth) < 2) return;
    op->rows = rows;
    op->columns = columns;
    op->depth = depth;
}

static void read_word(struct operation *op, const char *word, enum number_type types[4], int *count)
{
    static const struct {
        const char *name;
        enum space space;
    } spaces[] = {{"param", IN_PARAM},
                  {"const", IN_CONST},
                  {"global", IN_GLOBAL},
                  {"shared", IN_SHARED},
                  {"local", IN_LOCAL}};
    const enum number_type type = type_named(word);
    if (type != NO_TYPE && *count < 4) types[(*count)++] = type;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (strcmp(word, spaces[i].name) == 0 && op->space == IN_GENERIC)
            op->space = spaces[i].space;
    if (strcmp(word, "trans") == 0) op->transposed = true;
    read_shape(op, word);
}

/* Finds what executes a name: a row of lane_operations, whose sizes are returned, or a family. */
static const uint8_t *find_function(struct operation *op, const char *full, bool packed)
{
    char name[sizeof op->name] = "", copy[sizeof op->name];
    enum number_type types[4] = {NO_TYPE, NO_TYPE, NO_TYPE, NO_TYPE};
    int count = 0;
    snprintf(op->name, sizeof op->name, "%s", full);
    snprintf(copy, sizeof copy, "%s", full);
    for (char *word = strtok(copy, "."); word != NULL; word = strtok(NULL, ".")) {
        char *scope = strstr(word, "::cta");
        if (scope == NULL && strncmp(word, "shared", 6) == 0) scope = strstr(word, "::cluster");
        if (scope != NULL) *scope = '\0';
        read_word(op, word, types, &count);
        if (is_ignored(word)) continue;
        if (name[0] != '\0') strcat(name, ".");
        strcat(name, word);
    }
    op->type = count == 0 ? B32 : types[count - 1];
    op->to = types[0];
    op->from = types[1];
    op->width = type_bytes(op->type);
    op->run = unknown_operation;
    if (packed && strncmp(name, "mov.", 4) == 0) {
        op->run = move_packed;
        return NULL;
    }
    if (strncmp(name, "cvta", 4) == 0) snprintf(name, sizeof name, "mov.b%d", 8 * op->width);
    char row[sizeof name];
    snprintf(row, sizeof row, "%s", name);
    for (char *c = row; *c != '\0'; c++)
        if (*c == '.') *c = '_';
    for (const struct named_operation *known = lane_operations; known->name != NULL; known++)
        if (strcmp(known->name, row) == 0) {
            op->run = known->run;
            return known->sizes;
        }
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(name, families[i].begin, strlen(families[i].begin)) == 0) {
            op->run = families[i].run;
            break;
        }
    return NULL;
}

/* A row reads and writes numbers of its own sizes only. Conversions of others are convert's. */
static bool fits(const struct operation *op, const uint8_t *sizes)
{
    for (int i = 0; i < op->slot_count && i < 5; i++)
        if (op->slot[i].count != 1 || op->slot[i].list[0].size != sizes[i]) return false;
    return true;
}

static struct operation *new_operation(struct reader *r)
{
    struct kernel *kernel = r->kernel;
    if (kernel->count == r->room) {
        r->room = r->room == 0 ? 256 : 2 * r->room;
        void *list = realloc(kernel->list, (size_t)r->room * sizeof *kernel->list);
        if (list == NULL) return NULL;
        kernel->list = list;
    }
    struct operation *op = &kernel->list[kernel->count++];
    *op = (struct operation){.line = r->line, .target = -1, .join = -1};
    return op;
}

static bool read_guard(struct reader *r, char **text, struct operation *op)
{
    if (**text != '@') return true;
    char *end = *text + strcspn(*text, " \t");
    if (*end == '\0') return fail(r, "a guard without operation", *text);
    *end = '\0';
    char *guard = *text + 1;
    *text = trimmed(end + 1);
    return read_part(r, guard, 1, &op->guard);
}

static bool read_operation(struct reader *r, char *text)
{
    char *slots[MOST_SLOTS];
    struct operation *op = new_operation(r);
    if (op == NULL) return fail(r, "memory is missing", text);
    if (!read_guard(r, &text, op)) return false;
    char *rest = text + strcspn(text, " \t\n");
    if (*rest != '\0') *rest++ = '\0';
    const bool packed = strchr(rest, '{') != NULL;
    const uint8_t *sizes = find_function(op, text, packed);
    op->slot_count = split(rest, ",", slots, MOST_SLOTS);
    if (op->run == branch) {
        snprintf(op->name, sizeof op->name, "bra %.60s", slots[0]);
        op->slot_count = 0;
        return true;
    }
    for (int i = 0; i < op->slot_count; i++)
        if (!read_slot(r, slots[i], sizes == NULL ? 8 : i < 5 ? sizes[i] : 8, &op->slot[i]))
            return false;
    if (sizes != NULL && !fits(op, sizes))
        op->run = strncmp(op->name, "cvt.", 4) == 0 ? convert : unknown_operation;
    return true;
}

/* ---- declarations ---- */

/* ".reg .b32 %r<89>" or ".reg .pred p, q" */
static bool read_registers(struct reader *r, char *text)
{
    char *parts[MOST_PARTS];
    char type[10] = "";
    int used = 0;
    if (sscanf(text, ".reg .%9s %n", type, &used) != 1) return fail(r, "registers", text);
    const enum number_type number = type_named(type);
    if (number == NO_TYPE) return fail(r, "a type is unknown", type);
    const int count = split(text + used, ",", parts, MOST_PARTS), size = type_bytes(number);
    for (int i = 0; i < count; i++) {
        char *less = strchr(parts[i], '<');
        int registers = -1;
        if (less != NULL) {
            *less = '\0';
            registers = atoi(less + 1);
        }
        const int each = registers < 0 ? 1 : registers;
        if (!add_name(r, parts[i], registers, size, new_registers(r->kernel, size, each)))
            return false;
    }
    return true;
}

/* ".shared .align 16 .b8 name[64]", in shared or local memory */
static bool read_variable(struct reader *r, char *text)
{
    const bool shared = strstr(text, ".shared") != NULL;
    const char *aligned = strstr(text, ".align ");
    char *bracket = strchr(text, '[');
    if (bracket == NULL || r->kernel == NULL) return fail(r, "a variable", text);
    const uint32_t align = aligned == NULL ? 8 : (uint32_t)atoi(aligned + 7);
    uint32_t *end = shared ? &r->kernel->shared_bytes : &r->kernel->local_bytes;
    *bracket = '\0';
    char *name = strrchr(text, ' ');
    int bits = 8;
    for (char *word = strstr(text, " ."); word != NULL; word = strstr(word + 1, " ."))
        if (isdigit((unsigned char)word[3])) bits = atoi(word + 3);
    *end = (*end + align - 1) / align * align;
    if (!add_name(r, trimmed(name), -1, 0, *end + (shared ? SHARED_BASE : 0))) return false;
    *end += (uint32_t)atoi(bracket + 1) * (uint32_t)bits / 8;
    return true;
}

/* ---- the text ---- */

/* Takes out comments; keeps lines. */
static void remove_comments(char *text)
{
    for (char *at = text; *at != '\0'; at++) {
        if (at[0] == '/' && at[1] == '/')
            while (*at != '\0' && *at != '\n') *at++ = ' ';
        if (at[0] == '/' && at[1] == '*')
            for (; *at != '\0' && !(at[0] == '*' && at[1] == '/'); at++)
                if (*at != '\n') *at = ' ';
        if (at[0] == '*' && at[1] == '/') at[0] = at[1] = ' ';
        if (*at == '\0') return;
    }
}

static void skip_space(struct reader *r)
{
    for (; isspace((unsigned char)*r->at); r->at++) r->line += *r->at == '\n';
}

/* The number of characters up to a semicolon or colon outside of brackets, or to the end of a
 * scope. */
static size_t statement_length(const char *at)
{
    size_t n = 0;
    int depth = 0;
    for (; at[n] != '\0'; n++) {
        if (strchr("{[(", at[n]) != NULL) depth++;
        if (strchr("}])", at[n]) != NULL) depth--;
        if (depth < 0 || (depth == 0 && at[n] == ';')) return n;
        if (depth == 0 && at[n] == ':' && at[n + 1] != ':' && (n == 0 || at[n - 1] != ':'))
            return n;
    }
    return n;
}

static bool read_statement(struct reader *r, char *text)
{
    if (strncmp(text, ".reg", 4) == 0) return read_registers(r, text);
    if (strncmp(text, ".shared", 7) == 0 || strncmp(text, ".local", 6) == 0)
        return read_variable(r, text);
    if (strncmp(text, ".pragma", 7) == 0 || strncmp(text, ".loc", 4) == 0) return true;
    if (*text == '.') return fail(r, "a directive is unknown", text);
    return read_operation(r, text);
}

static bool add_label(struct reader *r, const char *text)
{
    if (r->label_count == MOST_LABELS) return fail(r, "too many labels", text);
    snprintf(r->labels[r->label_count].text, sizeof r->labels->text, "%s", text);
    r->labels[r->label_count++].place = r->kernel->count;
    return true;
}

static bool read_body(struct reader *r)
{
    int scopes[20], depth = 0;
    char text[6000];
    scopes[depth++] = r->name_count;
    while (depth > 0) {
        skip_space(r);
        if (*r->at == '\0') return fail(r, "a kernel does not end", r->kernel->name);
        if (*r->at == '{' && depth < 20) {
            scopes[depth++] = r->name_count;
            r->at++;
            continue;
        }
        if (*r->at == '}') {
            r->name_count = scopes[--depth];
            r->at++;
            continue;
        }
        const size_t length = statement_length(r->at);
        if (length >= sizeof text) return fail(r, "a statement is too long", r->at);
        memcpy(text, r->at, length);
        text[length] = '\0';
        for (char *c = text; *c != '\0'; c++)
            if (*c == '\n' || *c == '\t') *c = ' ';
        const bool label = r->at[length] == ':', end = r->at[length] == '}';
        if (label ? !add_label(r, trimmed(text))
                  : *trimmed(text) && !read_statement(r, trimmed(text)))
            return false;
        for (size_t i = 0; i < length; i++) r->line += r->at[i] == '\n';
        r->at += length + !end;
    }
    return true;
}

static bool find_targets(struct reader *r)
{
    for (int i = 0; i < r->kernel->count; i++) {
        struct operation *op = &r->kernel->list[i];
        if (op->run != branch) continue;
        for (int l = 0; l < r->label_count; l++)
            if (strcmp(r->labels[l].text, op->name + 4) == 0) op->target = r->labels[l].place;
        if (op->target < 0) return fail(r, "a label is missing", op->name);
    }
    return true;
}

/* Marks operations that write a register which a product under way may write. */
static bool mark_sums(struct kernel *kernel)
{
    uint8_t *sums = calloc(kernel->register_bytes / LANES + 1, 1);
    if (sums == NULL) return false;
    for (int i = 0; i < kernel->count; i++) {
        const struct operation *op = &kernel->list[i];
        if (op->run != multiply_later) continue;
        for (int p = 0; p < op->slot[0].count; p++) sums[op->slot[0].list[p].offset / LANES] = 1;
    }
    for (int i = 0; i < kernel->count; i++) {
        struct operation *op = &kernel->list[i];
        if (op->run == multiply_later || op->run == store || op->slot_count == 0) continue;
        for (int p = 0; p < op->slot[0].count; p++)
            if (op->slot[0].list[p].constant == NULL && op->slot[0].list[p].size != 0)
                op->writes_sum |= sums[op->slot[0].list[p].offset / LANES] != 0;
    }
    free(sums);
    return true;
}

/* Reads ".entry name ( parameters ) directives { body }" behind ".entry". */
static bool read_kernel(struct reader *r)
{
    struct code *code = r->code;
    void *list = realloc(code->kernel, (size_t)(code->kernel_count + 1) * sizeof *code->kernel);
    if (list == NULL) return fail(r, "memory is missing", "");
    code->kernel = list;
    struct kernel *kernel = &code->kernel[code->kernel_count++];
    *kernel = (struct kernel){.count = 0};
    r->kernel = kernel;
    r->room = r->label_count = 0;
    r->name_count = r->table_count;
    const size_t length = strcspn(r->at + strspn(r->at, " \n\t"), " (\n\t");
    snprintf(kernel->name, sizeof kernel->name, "%.*s", (int)length,
             r->at + strspn(r->at, " \n\t"));
    const char *open = strchr(r->at, '('), *close = open == NULL ? NULL : strchr(open, ')');
    const char *begin = close == NULL ? NULL : strchr(close, '{');
    if (begin == NULL) return fail(r, "a kernel without a body", kernel->name);
    for (int i = 0; i < SPECIALS; i++)
        if (!add_name(r, special_names[i], -1, 4, new_registers(kernel, 4, 1))) return false;
    for (const char *c = open + 1; c < close; c++) kernel->parameters += *c == ',';
    kernel->parameters += strstr(open, ".param") != NULL && strstr(open, ".param") < close;
    for (int i = 0; i < kernel->parameters; i++) {
        char name[120];
        snprintf(name, sizeof name, "%s_param_%d", kernel->name, i);
        if (!add_name(r, name, -1, 0, (uint64_t)(8 * i))) return false;
    }
    for (; r->at <= begin; r->at++) r->line += *r->at == '\n';
    if (!read_body(r) || !find_targets(r)) return false;
    if (!mark_sums(kernel) || !find_joins(kernel)) return fail(r, "memory is missing", "");
    return true;
}

/* ".const .align 16 .b8 name[4] = {0, 1, 2, 3};" in front of kernels */
static bool read_table(struct reader *r, char *text)
{
    struct code *code = r->code;
    char *open = strchr(text, '['), *values = strchr(text, '{');
    if (open == NULL || strstr(text, ".b8 ") == NULL) return fail(r, "a variable", text);
    const uint64_t place = (code->table_bytes + 127) & ~UINT64_C(127),
                   size = strtoull(open + 1, NULL, 10);
    void *tables = realloc(code->tables, (size_t)(place + size));
    if (tables == NULL) return fail(r, "memory is missing", "");
    code->tables = tables;
    memset(code->tables + code->table_bytes, 0, (size_t)(place + size - code->table_bytes));
    code->table_bytes = place + size;
    for (uint64_t i = 0; i < size && values != NULL; i++) {
        code->tables[place + i] = (uint8_t)strtoul(values + 1, NULL, 0);
        values = strchr(values + 1, ',');
    }
    *open = '\0';
    return add_name(r, strrchr(text, ' ') + 1, -1, 0, TABLES_BASE + place);
}

/* Reads the variables of a module up to its next kernel. */
static bool read_tables(struct reader *r, char *end)
{
    char *text = r->text + (r->at - r->text);
    while (text < end) {
        char *next = strpbrk(text, ";\n");
        if (next == NULL || next > end) return true;
        while (isspace((unsigned char)*text)) text++;
        if (strncmp(text, ".const", 6) == 0 || strncmp(text, ".global", 7) == 0) {
            next = strchr(text, ';');
            *next = '\0';
            if (!read_table(r, text)) return false;
        }
        text = next + 1;
    }
    return true;
}

bool code_read(struct code *code, char *text, char *why, size_t why_size)
{
    struct reader *r = calloc(1, sizeof *r);
    bool done = r != NULL;
    why[0] = '\0';
    if (done) {
        remove_comments(text);
        *r = (struct reader){
            .code = code, .line = 1, .text = text, .at = text, .why = why, .why_size = why_size};
        r->labels = calloc(MOST_LABELS, sizeof *r->labels);
        done = r->labels != NULL;
    }
    while (done && (text = strstr(r->at, ".entry")) != NULL) {
        r->name_count = r->table_count;
        done = read_tables(r, text);
        r->table_count = r->name_count;
        for (; r->at < text + 6; r->at++) r->line += *r->at == '\n';
        done = done && read_kernel(r);
    }
    if (r != NULL) free(r->labels);
    free(r);
    return done && code->kernel_count > 0;
}

void code_clear(struct code *code)
{
    for (int i = 0; i < code->kernel_count; i++) free(code->kernel[i].list);
    free(code->kernel);
    for (size_t i = 0; i < code->piece_count; i++) free(code->pieces[i]);
    free(code->pieces);
    free(code->tables);
}
