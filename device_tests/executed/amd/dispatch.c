/* SPDX-License-Identifier: Apache-2.0 */
/* Loads code objects, and executes work-groups one after another: its waves take turns, and meet at
 * barriers. Registers and local memory begin as NaN. */
#include "banks.h"
#include "decode.h"
#include "executed/launch.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- cases ---- */

const char *vendor_device(const struct executed_case *one)
{
    const bool cdna = strncmp(one->target, "gfx9", 4) == 0;
    const bool gfx12 = strncmp(one->target, "gfx12", 5) == 0;
    if (strncmp(one->target, "gfx", 3) != 0) return NULL;
    if (strncmp(one->algorithm, "matrix_group", 12) != 0) return cdna ? "AMD CDNA" : "AMD";
    return cdna ? "AMD mfma" : gfx12 ? "AMD wmma12" : "AMD wmma";
}

const char *vendor_options(const struct executed_case *one)
{
    return one->wave64 ? " -mwavefrontsize64" : "";
}

/* ---- code objects ---- */

/* An ELF file with its disassembly. */
struct code {
    uint8_t *image; /* as a loader puts it into memory */
    uint64_t image_bytes;
    uint8_t *file;
    size_t file_bytes;
    struct program program;
    char target[20];
};

/* Puts the file's segments where a loader would. */
static bool load_image(struct code *code)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)code->file;
    if (code->file_bytes < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(const void *)(code->file + head->e_phoff);
    for (int i = 0; i < head->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && part[i].p_vaddr + part[i].p_memsz > code->image_bytes)
            code->image_bytes = part[i].p_vaddr + part[i].p_memsz;
    code->image = calloc((size_t)code->image_bytes, 1);
    if (code->image == NULL) return false;
    for (int i = 0; i < head->e_phnum; i++)
        if (part[i].p_type == PT_LOAD)
            memcpy(code->image + part[i].p_vaddr, code->file + part[i].p_offset,
                   (size_t)part[i].p_filesz);
    return true;
}

struct code *code_load(const char *path, const char *target)
{
    size_t bytes;
    struct code *code = calloc(1, sizeof *code);
    char *text = NULL;
    bool done = code != NULL;
    if (done) {
        snprintf(code->target, sizeof code->target, "%s", target);
        code->file = (uint8_t *)read_file(path, "elf", &code->file_bytes);
        text = read_file(path, "s", &bytes);
        done = code->file != NULL && text != NULL && load_image(code) &&
               program_read(&code->program, text, target);
    }
    if (!done) fprintf(stderr, "%s.elf and %s.s cannot be loaded\n", path, path);
    free(text);
    if (done) return code;
    if (code != NULL) code_free(code);
    return NULL;
}

void code_free(struct code *code)
{
    program_free(&code->program);
    free(code->image);
    free(code->file);
    free(code);
}

uint64_t code_identity(const char *path)
{
    (void)path; /* targets encode operations differently */
    return 0;
}

static void write_place(const struct operation *op, char *text, size_t size)
{
    snprintf(text, size, "%s at 0x%llx", op->name, (unsigned long long)op->address);
}

void wave_fail(struct wave *w, const struct operation *op, const char *format, ...)
{
    char place[100];
    va_list arguments;
    w->state = ENDED;
    write_place(op, place, sizeof place);
    va_start(arguments, format);
    fail_at(w->group->memory, place, format, arguments);
    va_end(arguments);
}

int code_operation_count(const struct code *code)
{
    return code->program.count;
}

void code_operation_text(const struct code *code, int operation, char *text, size_t size)
{
    write_place(&code->program.list[operation], text, size);
}

/* The address of a symbol, or 0. */
static uint64_t symbol(const struct code *code, const char *name)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)code->file;
    const Elf64_Shdr *section = (const Elf64_Shdr *)(const void *)(code->file + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++) {
        if (section[i].sh_type != SHT_DYNSYM) continue;
        const uint8_t *list = code->file + section[i].sh_offset;
        const char *names = (const char *)code->file + section[section[i].sh_link].sh_offset;
        for (size_t s = 0; s < section[i].sh_size / sizeof(Elf64_Sym); s++) {
            const Elf64_Sym *found = (const Elf64_Sym *)(const void *)list + s;
            if (strcmp(names + found->st_name, name) == 0) return found->st_value;
        }
    }
    return 0;
}

/* ---- a kernel's descriptor: "Kernel Descriptor" in LLVM's guide for AMDGPU ---- */

struct kernel {
    uint32_t local_bytes, scratch_bytes, argument_bytes, rsrc2;
    uint16_t properties;
    uint64_t entry;
    int lanes;
};

static bool find_kernel(const struct code *code, const char *name, struct kernel *kernel)
{
    char text[200];
    int64_t entry;
    snprintf(text, sizeof text, "%s.kd", name);
    const uint64_t at = symbol(code, text);
    if (at == 0 || at + 64 > code->image_bytes) return false;
    const uint8_t *bytes = code->image + at;
    memcpy(&kernel->local_bytes, bytes, 4);
    memcpy(&kernel->scratch_bytes, bytes + 4, 4);
    memcpy(&kernel->argument_bytes, bytes + 8, 4);
    memcpy(&entry, bytes + 16, 8);
    memcpy(&kernel->rsrc2, bytes + 52, 4);
    memcpy(&kernel->properties, bytes + 56, 2);
    kernel->entry = at + (uint64_t)entry;
    kernel->lanes = kernel->properties >> 10 & 1 ? 32 : 64;
    return true;
}

/* ---- what a launch gives to its waves ---- */

enum { HIDDEN_BYTES = 256, PACKET_BYTES = 64, MOST_USER_REGISTERS = 16 };

struct launch {
    const struct code *code;
    const struct dispatch *dispatch;
    struct memory *memory;
    struct kernel kernel;
    struct local_memory local;
    uint8_t arguments[8 * MOST_ARGUMENTS + HIDDEN_BYTES], packet[PACKET_BYTES];
    uint32_t user[MOST_USER_REGISTERS];
    int user_count;
    uint64_t image;
};

/* Writes the arguments as the compiler lays them out, with libclc's hidden ones behind them: words
 * 1 to 3 are the global offset. */
static size_t write_arguments(struct launch *launch)
{
    const struct dispatch *dispatch = launch->dispatch;
    size_t at = 0;
    launch->local.size = launch->kernel.local_bytes;
    for (int i = 0; i < dispatch->argument_count; i++) {
        const struct kernel_argument *argument = &dispatch->argument[i];
        if (argument->local) {
            launch->local.size = (launch->local.size + 15) & ~15u;
            memcpy(launch->arguments + at, &launch->local.size, 4);
            launch->local.size += (uint32_t)argument->value;
            at += 4;
        } else {
            at = (at + 7) & ~(size_t)7;
            memcpy(launch->arguments + at, &argument->value, 8);
            at += 8;
        }
    }
    at = (at + 7) & ~(size_t)7;
    const uint32_t offset = (uint32_t)(dispatch->first_group * dispatch->local[0]);
    memcpy(launch->arguments + at + 4, &offset, 4);
    return at + HIDDEN_BYTES;
}

static void write_packet(struct launch *launch)
{
    const struct dispatch *dispatch = launch->dispatch;
    const uint16_t dimensions = 3;
    memcpy(launch->packet + 2, &dimensions, 2);
    for (int d = 0; d < 3; d++) {
        const uint16_t local = (uint16_t)dispatch->local[d];
        const uint32_t global = (uint32_t)(dispatch->groups[d] * local);
        memcpy(launch->packet + 4 + 2 * d, &local, 2);
        memcpy(launch->packet + 12 + 4 * d, &global, 4);
    }
}

static void add_user_words(struct launch *launch, int bit_number, uint64_t value, int words)
{
    if (!bit(launch->kernel.properties, bit_number)) return;
    for (int n = 0; n < words; n++)
        launch->user[launch->user_count++] = n < 2 ? (uint32_t)(value >> 32 * n) : 0;
}

/* The scalar registers that a kernel asks for, in their fixed order. */
static void write_user_registers(struct launch *launch, uint64_t packet, uint64_t arguments)
{
    add_user_words(launch, 0, 0, 4); /* buffer for scratch memory */
    add_user_words(launch, 1, packet, 2);
    add_user_words(launch, 2, 0, 2); /* queue */
    add_user_words(launch, 3, arguments, 2);
    add_user_words(launch, 4, 0, 2); /* number of the dispatch */
    add_user_words(launch, 5, 0, 2); /* flat scratch */
    add_user_words(launch, 6, launch->kernel.scratch_bytes, 1);
    while (launch->user_count < (int)(launch->kernel.rsrc2 >> 1 & 31))
        launch->user[launch->user_count++] = 0;
}

static bool is_generation(const struct launch *launch, const char *name)
{
    return strncmp(launch->code->target, name, strlen(name)) == 0;
}

static void write_group_numbers(const struct launch *launch, struct wave *w,
                                const uint32_t number[3])
{
    int next = launch->user_count;
    if (is_generation(launch, "gfx12")) {
        w->scalar[TTMP + 9] = number[0];
        w->scalar[TTMP + 7] = number[1] | number[2] << 16;
        return;
    }
    for (int d = 0; d < 3; d++)
        if (bit(launch->kernel.rsrc2, 7 + d)) w->scalar[next++] = number[d];
}

static void write_item_numbers(const struct launch *launch, struct wave *w, int items)
{
    for (int lane = 0; lane < items; lane++) {
        uint32_t number[3];
        item_numbers(launch->dispatch, w->number * w->lanes + lane, number);
        const bool packed = !is_generation(launch, "gfx10") && !is_generation(launch, "gfx908");
        w->vector[0][lane] = packed ? number[0] | number[1] << 10 | number[2] << 20 : number[0];
        if (packed) continue;
        w->vector[1][lane] = number[1];
        w->vector[2][lane] = number[2];
    }
}

static void begin_wave(const struct launch *launch, struct wave *w, int number, struct group *group,
                       const uint32_t group_number[3])
{
    uint8_t *scratch = w->scratch;
    memset(w, 0xff, sizeof *w);
    w->scratch = scratch;
    w->scratch_bytes = launch->kernel.scratch_bytes;
    w->number = number;
    w->lanes = launch->kernel.lanes;
    w->state = RUNNING;
    w->group = group;
    w->address = launch->kernel.entry;
    const int items = wave_items(launch->dispatch, w->lanes, number);
    set_exec(w, items == 64 ? UINT64_MAX : (UINT64_C(1) << items) - 1);
    if (w->lanes == 32) w->scalar[EXEC + 1] = 0;
    w->scalar[SCC] = 0;
    memcpy(w->scalar, launch->user, (size_t)launch->user_count * sizeof *launch->user);
    write_group_numbers(launch, w, group_number);
    write_item_numbers(launch, w, items);
}

/* ---- executing ---- */

/* More operations than any kernel of the tests executes in a wave. */
static const uint64_t ENDLESS = UINT64_C(1) << 32;

static void run_wave(void *wave, uint64_t turns)
{
    struct wave *w = wave;
    struct memory *memory = w->group->memory;
    struct bank_cycles *banks = w->group->banks;
    for (; w->state == RUNNING && turns > 0; turns--) {
        const struct operation *op = program_at(w->group->program, w->address);
        if (op == NULL) {
            snprintf(memory->failed, sizeof memory->failed, "no instruction at 0x%llx",
                     (unsigned long long)w->address);
            w->state = ENDED;
            return;
        }
        w->address = op->address + (uint64_t)op->bytes;
        if (banks != NULL) banks_count(w, op, &banks[op - w->group->program->list]);
        op->run(w, op);
        memory->executed++;
    }
}

static void run_groups(struct launch *launch, const struct waves *waves)
{
    struct schedule schedule = schedule_of(launch->dispatch);
    struct group group = {.program = &launch->code->program,
                          .memory = launch->memory,
                          .local = &launch->local,
                          .image = launch->image,
                          .banks = launch->dispatch->banks};
    uint32_t number[3];
    while (launch->memory->failed[0] == '\0' && next_group(&schedule, number)) {
        struct wave *wave = waves->first;
        memset(launch->local.bytes, 0xff, launch->local.size);
        launch->local.epoch++;
        group.number++;
        for (int i = 0; i < waves->count; i++) begin_wave(launch, &wave[i], i, &group, number);
        run_waves(&schedule, waves, launch->memory, &launch->local, ENDLESS);
    }
}

bool code_run(const struct code *code, const struct dispatch *dispatch, struct memory *memory)
{
    struct launch launch = {.code = code, .dispatch = dispatch, .memory = memory};
    const int buffers = memory->count;
    if (!find_kernel(code, dispatch->kernel, &launch.kernel)) {
        snprintf(memory->failed, sizeof memory->failed, "no kernel %s", dispatch->kernel);
        return false;
    }
    const size_t argument_bytes = write_arguments(&launch);
    write_packet(&launch);
    launch.image =
        memory_add(memory, "the code object", code->image, code->image_bytes, 0, true, false);
    const uint64_t arguments =
        memory_add(memory, "the arguments", launch.arguments, argument_bytes, 0, true, false);
    const uint64_t packet =
        memory_add(memory, "the packet", launch.packet, sizeof launch.packet, 0, true, false);
    write_user_registers(&launch, packet, arguments);

    const int count = wave_count(dispatch, launch.kernel.lanes);
    const size_t scratch = (size_t)launch.kernel.scratch_bytes * MOST_LANES;
    struct wave *list = calloc((size_t)count, sizeof *list);
    const struct waves waves = {"wave", list, sizeof *list, count, run_wave};
    uint8_t *all_scratch = malloc(scratch * (size_t)count + 1);
    if (list == NULL || all_scratch == NULL ||
        !local_memory_begin(&launch.local, launch.local.size))
        snprintf(memory->failed, sizeof memory->failed, "memory is missing");
    else {
        memset(all_scratch, 0xff, scratch * (size_t)count);
        for (int i = 0; i < count; i++) list[i].scratch = all_scratch + scratch * (size_t)i;
        run_groups(&launch, &waves);
    }
    free(list);
    free(all_scratch);
    local_memory_free(&launch.local);
    memory->count = buffers;
    return memory->failed[0] == '\0';
}
