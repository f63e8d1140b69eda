/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of machine code as Intel's compiler dumps it:
 *
 *   (f1.0)  mad (16|M0)   (lt)f0.1   r2.0<1>:f   r6.0<1;0>:f   -r2.0<1;0>:f   r7.3<0>:f  {I@1} //
 * $1 predicate, name, size and first lane, condition, result, sources, tokens for hazards, comment
 *
 * Tokens for hazards (which instruction waits for which) are left out; only AccWrEn is read. */
#include "thread.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TOKENS = 12, MOST_LINE = 2000 };

/* A label, and the instruction behind it or that goes to it. */
struct label {
    const char *name;
    int index;
};

struct labels {
    struct label *list;
    size_t count;
};

struct reader {
    struct code *code;
    struct labels places, branches; /* of a kernel */
    size_t room;                    /* for instructions */
    int kernel;                     /* the one that is read, or -1 */
};

static bool add_label(struct labels *labels, const char *name, int index)
{
    if ((labels->count & (labels->count + 1)) == 0) { /* 0, 1, 3, 7: make room for twice as many */
        void *list = realloc(labels->list, 2 * (labels->count + 1) * sizeof *labels->list);
        if (list == NULL) return false;
        labels->list = list;
    }
    labels->list[labels->count++] = (struct label){name, index};
    return true;
}

/* ---- operands ---- */

static bool read_type(const char *text, enum type *type)
{
    static const char *const names[] = {"ub", "b",  "uw", "w", "ud", "d", "uq",
                                        "q",  "hf", "bf", "f", "df", "v", "uv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *type = (enum type)i;
            return true;
        }
    return false;
}

/* "<v;w,h>", "<v;h>" of the first sources of three, "<h>": the element of each lane. */
static void read_region(const char *text, int lanes[MOST_LANES])
{
    int v = 0, w = 1, h = 0;
    char separator, other;
    const int count = sscanf(text, "<%d%c%d%c%d", &v, &separator, &w, &other, &h);
    if (count == 1) { /* steps */
        h = v;
        w = MOST_LANES;
    } else if (count >= 3 && other != ',') {
        h = w;
        w = v == 0 ? MOST_LANES : h == 0 ? 1 : v / h;
    }
    for (int i = 0; i < MOST_LANES; i++) lanes[i] = i / w * v + i % w * h;
}

static bool read_number(const char *text, enum type type, int step, struct operand *o)
{
    char *end;
    o->kind = NUMBER;
    o->bits = strtoull(text, &end, 0);
    if (*end != ':') return false;
    if (type == V || type == UV) {
        /* They lie in words, of which lanes take those that lie as their results do. */
        o->kind = PACKED;
        for (int i = 0; i < MOST_LANES; i++) {
            const uint16_t number = (uint16_t)(o->bits >> 4 * (i * step % 8) & 15);
            o->at[i] = type == V && number >= 8 ? (uint16_t)(number - 16) : number;
        }
        o->type = type == V ? W : UW;
    }
    return true;
}

/* The first byte of a file of registers, and the bytes of one of its registers. */
static bool find_file(const char *name, const struct code *code, int number, int *base, int *bytes)
{
    const struct {
        const char *name;
        int base, bytes, count;
    } files[] = {{"r", 0, code->register_bytes, MOST_REGISTERS},
                 {"f", FLAGS, 4, 4},
                 {"cr", CONTROL, 16, 1},
                 {"ce", CHANNELS, 16, 1},
                 {"a", ADDRESSES, 64, 1},
                 {"acc", 0, code->register_bytes, 8}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(name, files[i].name) == 0 && number < files[i].count) {
            *base = files[i].base;
            *bytes = files[i].bytes;
            return true;
        }
    return false;
}

/* Reads "-(abs)r4.1<0;1,0>:d", "acc0.0<1>:f", "0x40:uv", "null<1>:d". `step`: words from one lane's
 * result to the next. */
static bool read_operand(const char *text, const struct code *code, int size, int step,
                         struct operand *o)
{
    char name[4] = "";
    int number = 0, used = 0, sub = 0, base = 0, bytes = 0, lanes[MOST_LANES];
    const char *colon = strrchr(text, ':');
    *o = (struct operand){.kind = REGISTER, .type = UD};
    if (colon != NULL && !read_type(colon + 1, &o->type) && strncmp(text, "null", 4) != 0)
        return false;
    if (strncmp(text, "null", 4) == 0) {
        o->kind = NOTHING;
        return true;
    }
    if (isdigit((unsigned char)text[*text == '-'])) return read_number(text, o->type, step, o);
    if (*text == '-') o->negate = *text++ != '\0';
    if (*text == '~') o->complement = *text++ != '\0';
    if (strncmp(text, "(abs)", 5) == 0) {
        o->absolute = true;
        text += 5;
    }
    if (sscanf(text, "%3[a-z]%d%n", name, &number, &used) != 2) return false;
    text += used;
    if (*text == '.') sub = (int)strtol(text + 1, (char **)&text, 10);
    if (*text != '<' && *text != ':' && *text != '\0') return false;
    if (!find_file(name, code, number, &base, &bytes)) return false;
    memset(lanes, 0, sizeof lanes);
    if (*text == '<') read_region(text, lanes);
    if (strcmp(name, "acc") == 0) o->kind = ACCUMULATOR;
    const int unit = *name == 'f' ? 2 : type_bytes(o->type); /* f0.1: the flags' upper half */
    for (int i = 0; i < size; i++) {
        const int at = base + number * bytes + sub * unit + lanes[i] * type_bytes(o->type);
        o->at[i] = (uint16_t)(o->kind == ACCUMULATOR ? at / type_bytes(o->type) : at);
        if (at < 0 || at + type_bytes(o->type) > FILE_BYTES) return false;
        if (o->kind == ACCUMULATOR && o->at[i] >= ACCUMULATED) return false;
    }
    return true;
}

/* Registers of a message: "r4:2", "[r4:2]", "bti[255][r4:1]", "r4", "null:0". */
static bool read_registers(const char *text, const struct code *code, struct operand *o)
{
    int number, used = 0;
    const char *bracket = strrchr(text, '[');
    *o = (struct operand){.kind = NOTHING, .type = UD};
    if (strncmp(text, "null", 4) == 0) return true;
    if (bracket != NULL) text = bracket + 1;
    if (sscanf(text, "r%d%n", &number, &used) != 1 || number >= MOST_REGISTERS) return false;
    text += used;
    if (*text == ':') o->count = (int)strtol(text + 1, (char **)&text, 10);
    if (*text != '\0' && *text != ']') return false; /* an offset, for example */
    o->kind = REGISTER;
    o->at[0] = (uint16_t)(number * code->register_bytes);
    return true;
}

/* ---- instructions ---- */

/* "f1.0": the bit of the flags for lane 0; -1: no such text. */
static int flag_bit(const char *text)
{
    int number, half;
    return sscanf(text, "f%d.%d", &number, &half) == 2 ? 32 * number + 16 * half : -1;
}

/* "(W&~f1.0)" */
static bool read_predicate(const char *text, struct instruction *op)
{
    const char *flag = strchr(text, 'f');
    op->all_lanes = text[1] == 'W';
    if (flag == NULL) return op->all_lanes;
    op->predicate = flag_bit(flag);
    op->inverted = flag[-1] == '~' || flag[-1] == '!';
    return op->predicate >= 0 && flag[4] == ')'; /* no ".any16h" */
}

/* "(lt)f1.0" */
static bool read_condition(const char *text, struct instruction *op)
{
    static const struct {
        const char *name;
        enum condition condition;
    } conditions[] = {{"(eq)", EQ}, {"(ne)", NE}, {"(lt)", LT}, {"(le)", LE},
                      {"(gt)", GT}, {"(ge)", GE}, {"(ze)", EQ}, {"(nz)", NE}};
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (strncmp(text, conditions[i].name, 4) == 0) {
            op->condition = conditions[i].condition;
            op->condition_flag = flag_bit(text + 4);
            return op->condition_flag >= 0;
        }
    return false;
}

/* The table of "s0&s1|~s2", read by falling precedence; `next` moves behind what is read. */
static uint8_t read_truth(const char **next, int level)
{
    static const char operators[] = "|^&";
    if (level == 3) {
        const bool complement = **next == '~';
        uint8_t value;
        *next += complement;
        if (**next == '(') {
            ++*next;
            value = read_truth(next, 0);
            ++*next;
        } else {
            static const uint8_t sources[] = {0xaa, 0xcc, 0xf0};
            value = sources[((*next)[1] - '0') % 3];
            *next += 2;
        }
        return complement ? (uint8_t)~value : value;
    }
    uint8_t value = read_truth(next, level + 1);
    while (**next == operators[level]) {
        ++*next;
        const uint8_t more = read_truth(next, level + 1);
        value = level == 0 ? value | more : level == 1 ? value ^ more : value & more;
    }
    return value;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* The class of an instruction's sources; only they count, because a result is converted. */
static enum class class_of(const struct instruction *op) {
    enum class class = INTEGERS; for (int i = 1; i < op->operand_count; i++){
        const enum type type = op->operand[i].type; if (type == DF) class = DOUBLES;
        else if (is_floating(type) && class == INTEGERS) class = FLOATS;}
return class;
}

/* What moves bits as they are: all operands have one type, and nothing changes them. */
static bool is_plain(const struct instruction *op)
{
    bool plain = op->condition == NO_CONDITION && !op->saturate;
    for (int i = 0; i < op->operand_count; i++) {
        const struct operand *o = &op->operand[i];
        plain = plain && o->kind != PACKED && o->kind != NOTHING &&
                o->type == op->operand[0].type && !o->negate && !o->absolute && !o->complement;
    }
    return plain;
}

static instruction_function *find_function(const struct instruction *op)
{
    const enum class class = class_of(op);
    const bool plain = is_plain(op);
    for (const struct named_instruction *row = arithmetic_instructions; row->name != NULL; row++) {
        const size_t length = strlen(row->name);
        const bool bits = row->name[length - 1] == '*'; /* "mov*": if it is plain */
        if (strncmp(op->name, row->name, length - bits) == 0 && op->name[length - bits] == '\0' &&
            (!bits || plain) && (row->class == ANY || row->class == class))
            return row->run;
    }
    return NULL;
}

static bool read_message(const struct code *code, struct instruction *op, char **token, int count,
                         const char *comment)
{
    const bool sends = starts_with(op->name, "send");
    const bool stores = starts_with(op->name, "store");
    const char *text = comment == NULL ? NULL : strstr(comment, "; desc:");
    uint32_t descriptor = 0;
    op->run = run_message;
    op->operand_count = 3;
    op->operand[0] = op->operand[2] = (struct operand){.kind = NOTHING};
    if (sends && count >= 5) {
        text = token[4];
        for (int i = 0; i < 3; i++)
            if (!read_registers(token[i], code, &op->operand[i])) return false;
    } else if (!sends && count >= 2 && text != NULL) {
        text += 7;
        for (int i = 0; i < count; i++)
            if (!read_registers(token[i], code, &op->operand[i + stores])) return false;
    } else {
        return false;
    }
    descriptor = (uint32_t)strtoul(text, NULL, 16);
    return message_read(&op->message, op->name, descriptor, op->size, code->register_bytes);
}

static bool read_operands(const struct code *code, struct instruction *op, char **token, int count)
{
    int step = 1;
    if (count > MOST_OPERANDS) return false;
    op->operand_count = count;
    for (int i = 0; i < count; i++) {
        if (!read_operand(token[i], code, op->size, step, &op->operand[i])) return false;
        const struct operand *result = &op->operand[0];
        if (i == 0 && result->kind != NOTHING && op->size > 1)
            step = (result->at[1] - result->at[0]) *
                   (result->kind == ACCUMULATOR ? type_bytes(result->type) : 1) / 2;
        if (step < 1) step = 1;
    }
    op->run = find_function(op);
    return op->run != NULL;
}

/* Reads what stands behind a predicate and a name. */
static bool read_rest(struct reader *reader, struct instruction *op, char **token, int count,
                      const char *comment)
{
    const struct code *code = reader->code;
    if (count > 0 && sscanf(token[0], "(%d|M%d)", &op->size, &op->first) == 2) {
        token++;
        count--;
    }
    if (op->size < 1 || op->size > MOST_LANES || op->first + op->size > MOST_LANES) return false;
    if (starts_with(op->name, "goto") || strcmp(op->name, "jmpi") == 0) {
        op->run = op->name[0] == 'g' ? go_to : jump;
        return count > 0 && add_label(&reader->branches, token[count - 1], code->count);
    }
    if (strcmp(op->name, "sync.bar") == 0) {
        op->run = wait_at_barrier;
        return true;
    }
    if (starts_with(op->name, "send") || starts_with(op->name, "load") ||
        starts_with(op->name, "store") || starts_with(op->name, "atomic"))
        return read_message(code, op, token, count, comment);
    if (count > 0 && starts_with(token[0], "(sat)")) {
        op->saturate = true;
        token[0] += 5;
        if (*token[0] == '\0') {
            token++;
            count--;
        }
    }
    if (count > 0 && token[0][0] == '(') {
        if (!read_condition(token[0], op)) return false;
        token++;
        count--;
    }
    if (count > 0 && starts_with(token[0], "(sat)")) {
        op->saturate = true;
        token[0] += 5;
    }
    return read_operands(code, op, token, count);
}

/* Splits a text at blanks; the text is changed. */
static int split(char *text, char **token)
{
    int count = 0;
    for (char *word = strtok(text, " \t\r"); word != NULL && count < MOST_TOKENS;
         word = strtok(NULL, " \t\r"))
        token[count++] = word;
    return count;
}

static bool add_instruction(struct reader *reader, const struct instruction *op)
{
    struct code *code = reader->code;
    if ((size_t)code->count == reader->room) {
        reader->room = reader->room == 0 ? 4096 : 2 * reader->room;
        void *list = realloc(code->list, reader->room * sizeof *code->list);
        if (list == NULL) return false;
        code->list = list;
    }
    code->list[code->count++] = *op;
    return true;
}

static bool read_instruction(struct reader *reader, char *line, int number)
{
    struct instruction op = {.line = number, .size = 1, .predicate = -1};
    char *tokens[MOST_TOKENS], **token = tokens, *comment = strstr(line, "//");
    const char *truth;
    if (comment != NULL) {
        *comment = '\0';
        comment += 2;
    }
    char *hazards = strchr(line, '{');
    if (hazards != NULL) {
        op.accumulates = strstr(hazards, "AccWrEn") != NULL;
        *hazards = '\0';
    }
    int count = split(line, tokens);
    if (count > 0 && tokens[0][0] == '(') {
        if (!read_predicate(tokens[0], &op)) return false;
        token++;
        count--;
    }
    if (count == 0) return false;
    snprintf(op.name, sizeof op.name, "%s", token[0]);
    if (starts_with(op.name, "sync") && strcmp(op.name, "sync.bar") != 0) return true;
    if (strcmp(op.name, "nop") == 0 || strcmp(op.name, "join") == 0) return true;
    if (starts_with(token[0], "bfn.")) {
        truth = token[0] + 4;
        op.truth = read_truth(&truth, 0);
        snprintf(op.name, sizeof op.name, "bfn");
    }
    /* Where dumps do not name macl, this is mach that does not write the accumulator. */
    if (strcmp(op.name, "mach") == 0 && reader->code->register_bytes == 32 && !op.accumulates)
        snprintf(op.name, sizeof op.name, "macl");
    return read_rest(reader, &op, token + 1, count - 1, comment) && add_instruction(reader, &op);
}

/* ---- kernels ---- */

static bool end_kernel(struct reader *reader)
{
    bool done = true;
    for (size_t i = 0; i < reader->branches.count && done; i++) {
        const struct label *branch = &reader->branches.list[i];
        size_t p = 0;
        while (p < reader->places.count && strcmp(reader->places.list[p].name, branch->name) != 0)
            p++;
        done = p < reader->places.count;
        if (done) reader->code->list[branch->index].target = reader->places.list[p].index;
    }
    reader->branches.count = reader->places.count = 0;
    free(reader->branches.list);
    free(reader->places.list);
    reader->branches.list = reader->places.list = NULL;
    return done;
}

static int kernel_named(const struct code *code, const char *name)
{
    for (int i = 0; i < code->kernel_count; i++)
        if (strcmp(code->kernels[i].name, name) == 0) return i;
    return -1;
}

/* A line that is no instruction: a comment, a label, nothing. */
static bool read_other(struct reader *reader, char *line, bool *other)
{
    const size_t length = strcspn(line, " /\r");
    const bool label = length > 1 && line[length - 1] == ':';
    *other = label || starts_with(line, "//") || *line == '.' || line[strspn(line, " \r")] == '\0';
    if (starts_with(line, "//.kernel ")) {
        line[strcspn(line, "\r")] = '\0';
        if (!end_kernel(reader)) return false;
        reader->kernel = kernel_named(reader->code, line + 10);
        if (reader->kernel < 0) return false;
        reader->code->kernels[reader->kernel].entry = reader->code->count;
    }
    if (!label) return true;
    line[length - 1] = '\0';
    return add_label(&reader->places, line, reader->code->count);
}

bool code_read_text(struct code *code, char *text)
{
    struct reader reader = {.code = code, .kernel = -1};
    bool done = true;
    for (int number = 1; text != NULL && done; number++) {
        char *line = text, copy[MOST_LINE];
        bool other = false;
        text = strchr(text, '\n');
        if (text != NULL) *text++ = '\0';
        snprintf(copy, sizeof copy, "%s", line);
        done = read_other(&reader, line, &other) &&
               (other || (reader.kernel >= 0 && read_instruction(&reader, line, number)));
        if (!done) fprintf(stderr, "line %d is not understood: %s\n", number, copy);
    }
    return end_kernel(&reader) && done;
}
