/* SPDX-License-Identifier: Apache-2.0 */
/* Loads programs, and executes work-groups one after another: threads take turns, and meet at
 * barriers. Registers and local memory begin as NaN. */
#include "executed/launch.h"
#include "thread.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>

const char *vendor_device(const struct executed_case *one)
{
    const bool matrix = strncmp(one->algorithm, "matrix_group", 12) == 0;
    if (strcmp(one->target, "dg2") == 0) return matrix ? "Intel dpas" : "Intel";
    if (strcmp(one->target, "pvc") == 0) return matrix ? "Intel Max dpas" : "Intel Max";
    return NULL;
}

const char *vendor_options(const struct executed_case *one)
{
    (void)one;
    return "";
}

/* ---- programs ---- */

struct code *code_load(const char *path, const char *target)
{
    struct code *code = calloc(1, sizeof *code);
    size_t info_bytes, text_bytes;
    char *info = read_file(path, "info", &info_bytes), *text = read_file(path, "s", &text_bytes);
    bool done = code != NULL && info != NULL && text != NULL;
    if (done) {
        code->register_bytes = strcmp(target, "pvc") == 0 ? 64 : 32;
        done = kernels_read(code, info) && code_read_text(code, text);
    }
    if (!done) fprintf(stderr, "%s.info and %s.s cannot be loaded\n", path, path);
    free(info);
    free(text);
    if (done) return code;
    code_free(code);
    return NULL;
}

void code_free(struct code *code)
{
    if (code == NULL) return;
    free(code->list);
    free(code->kernels);
    free(code);
}

uint64_t code_identity(const char *path)
{
    (void)path; /* targets have registers and messages of their own */
    return 0;
}

static void write_place(const struct instruction *op, char *text, size_t size)
{
    snprintf(text, size, "%s in line %d", op->name, op->line);
}

int code_operation_count(const struct code *code)
{
    return code->count;
}

void code_operation_text(const struct code *code, int operation, char *text, size_t size)
{
    write_place(&code->list[operation], text, size);
}

/* ---- lanes ---- */

void thread_fail(struct thread *t, const struct instruction *op, const char *format, ...)
{
    char place[100];
    va_list arguments;
    t->state = ENDED;
    write_place(op, place, sizeof place);
    va_start(arguments, format);
    fail_at(t->group->memory, place, format, arguments);
    va_end(arguments);
}

void thread_choose(struct thread *t)
{
    t->at = t->waiting = UINT32_MAX;
    for (int lane = 0; lane < t->lanes; lane++)
        if (t->next[lane] < t->at) t->at = t->next[lane];
    t->active = 0;
    for (int lane = 0; lane < t->lanes; lane++) {
        if (t->next[lane] == t->at)
            t->active |= 1u << lane;
        else if (t->next[lane] < t->waiting)
            t->waiting = t->next[lane];
    }
    memcpy(t->file + CHANNELS, &t->active, sizeof t->active);
}

void thread_branch(struct thread *t, uint32_t taken, int target)
{
    FOR_LANES(t->active, lane)
    t->next[lane] = taken >> lane & 1 ? (uint32_t)target : t->at + 1;
    thread_choose(t);
}

void go_to(struct thread *t, const struct instruction *op)
{
    thread_branch(t, (lanes_of(t, op) & predicated(t, op)) << op->first, op->target);
}

/* All lanes go, or none. */
void jump(struct thread *t, const struct instruction *op)
{
    thread_branch(t, predicated(t, op) & 1 ? UINT32_MAX : 0, op->target);
}

void wait_at_barrier(struct thread *t, const struct instruction *op)
{
    if (!t->signalled) {
        thread_fail(t, op, "thread %d waits at a barrier without having signalled", t->number);
        return;
    }
    t->signalled = false;
    t->state = AT_BARRIER;
}

void thread_set_rounding(const struct thread *t)
{
    static const int rounding[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint32_t control;
    memcpy(&control, t->file + CONTROL, sizeof control);
    fesetround(rounding[control >> 4 & 3]);
}

/* ---- what a launch gives to its threads ---- */

enum { PAYLOAD_ALIGNMENT = 32, NUMBERS = 3 };

struct launch {
    const struct dispatch *dispatch;
    struct memory *memory;
    struct group group;
    uint8_t *payload;        /* arguments, then the numbers of each thread's work-items */
    uint32_t argument_bytes; /* with those that are in a register from the begin on */
    int threads;
};

/* The value of a payload entry: a number for each dimension, or one of up to 8 bytes. */
static void write_entry(const struct launch *launch, const struct payload_entry *entry,
                        uint8_t *place, uint32_t *local_bytes)
{
    const struct dispatch *dispatch = launch->dispatch;
    const struct kernel_argument *argument =
        &dispatch->argument[entry->argument < MOST_ARGUMENTS ? entry->argument : 0];
    uint32_t numbers[NUMBERS] = {0};
    uint64_t value = argument->value >> 8 * entry->source;
    const size_t size = (size_t)entry->size;
    for (int d = 0; d < NUMBERS; d++) {
        const uint32_t groups = (uint32_t)dispatch->groups[d], local = dispatch->local[d];
        numbers[d] = entry->what == LOCAL_SIZE    ? local
                     : entry->what == GLOBAL_SIZE ? groups * local
                     : entry->what == GROUP_COUNT ? groups
                                                  : 0;
    }
    switch (entry->what) {
    case GLOBAL_OFFSET: numbers[0] = (uint32_t)dispatch->first_group * dispatch->local[0]; break;
    case DIMENSIONS: numbers[0] = NUMBERS; break;
    case LOCAL_POINTER:
        *local_bytes = (*local_bytes + 15) & ~15u;
        numbers[0] = *local_bytes;
        *local_bytes += (uint32_t)value;
        break;
    case SURFACE_OFFSET: /* surfaces begin at multiples of 4 */
        numbers[0] = (uint32_t)(value & 3);
        break;
    case ADDRESS:
    case VALUE:
        if (entry->what == ADDRESS) value = argument->value;
        memcpy(place, &value, size < 8 ? size : 8);
        return;
    default: break;
    }
    memcpy(place, numbers, size < sizeof numbers ? size : sizeof numbers);
}

/* The numbers of a thread's work-items: for each dimension words of all lanes. */
static void write_items(const struct launch *launch, int thread, uint8_t *place)
{
    const struct kernel *kernel = launch->group.kernel;
    for (int lane = 0; lane < kernel->lanes; lane++) {
        uint32_t number[NUMBERS];
        item_numbers(launch->dispatch, thread * kernel->lanes + lane, number);
        for (int d = 0; d < NUMBERS; d++) {
            const uint16_t half = (uint16_t)number[d];
            memcpy(place + d * (kernel->item_bytes / NUMBERS) + 2 * lane, &half, sizeof half);
        }
    }
}

/* Makes the payload. False if memory is missing. */
static bool make_payload(struct launch *launch)
{
    const struct kernel *kernel = launch->group.kernel;
    uint32_t local_bytes = kernel->local_bytes;
    int end = 0;
    for (int i = 0; i < kernel->count; i++) {
        const struct payload_entry *entry = &kernel->list[i];
        if (entry->offset + entry->size > end) end = entry->offset + entry->size;
    }
    launch->argument_bytes =
        (uint32_t)((end + PAYLOAD_ALIGNMENT - 1) / PAYLOAD_ALIGNMENT * PAYLOAD_ALIGNMENT);
    /* A thread loads its part in blocks, which may be larger. */
    const size_t bytes = launch->argument_bytes + (size_t)(kernel->item_bytes * launch->threads);
    launch->payload = calloc(bytes + 8 * MOST_REGISTER_BYTES, 1);
    if (launch->payload == NULL) return false;
    for (int i = 0; i < kernel->count; i++)
        write_entry(launch, &kernel->list[i], launch->payload + kernel->list[i].offset,
                    &local_bytes);
    for (int i = 0; i < launch->threads && kernel->item_bytes > 0; i++)
        write_items(launch, i,
                    launch->payload + launch->argument_bytes + (size_t)(i * kernel->item_bytes));
    const size_t in_register = (size_t)kernel->inline_bytes;
    launch->group.heap = memory_add(launch->memory, "the arguments", launch->payload + in_register,
                                    bytes + 8 * MOST_REGISTER_BYTES - in_register, 0, true, false);
    return local_memory_begin(&launch->group.local, local_bytes);
}

static void begin_thread(const struct launch *launch, struct thread *t, int number,
                         struct group *group, const uint32_t group_number[NUMBERS])
{
    const struct kernel *kernel = group->kernel;
    const uint32_t first = 0, words[] = {1, 6, 7};
    memset(t, 0xff, sizeof *t);
    t->number = number;
    t->lanes = kernel->lanes;
    t->group = group;
    t->state = RUNNING;
    t->signalled = t->unfenced = false;
    memset(t->accumulator, 0xff, sizeof t->accumulator);
    memset(t->file + CONTROL, 0, CHANNELS - CONTROL);
    memcpy(t->file, &first, sizeof first); /* the payload is where the heap begins */
    t->file[8] = (uint8_t)number;
    for (int d = 0; d < NUMBERS; d++) memcpy(t->file + 4 * words[d], &group_number[d], 4);
    memcpy(t->file + group->code->register_bytes, launch->payload, (size_t)kernel->inline_bytes);
    const int items = wave_items(launch->dispatch, t->lanes, number);
    for (int lane = 0; lane < items; lane++) t->next[lane] = (uint32_t)kernel->entry;
    thread_choose(t);
}

/* ---- executing ---- */

/* More instructions than any thread of the tests executes. */
static const uint64_t ENDLESS = UINT64_C(1) << 27;

static void run_thread(void *thread, uint64_t turns)
{
    struct thread *t = thread;
    const struct code *code = t->group->code;
    struct memory *memory = t->group->memory;
    const bool endless = turns == ENDLESS;
    thread_set_rounding(t);
    for (; t->state == RUNNING && turns > 0; turns--) {
        if (t->at >= (uint32_t)code->count) {
            snprintf(memory->failed, sizeof memory->failed, "a thread runs out of its code");
            break;
        }
        const struct instruction *op = &code->list[t->at];
        op->run(t, op);
        memory->executed++;
        if (op->run == go_to || op->run == jump) continue;
        if (++t->at < t->waiting) continue;
        FOR_LANES(t->active, lane) t->next[lane] = t->at;
        thread_choose(t);
    }
    fesetround(FE_TONEAREST);
    if (endless && turns == 0)
        snprintf(memory->failed, sizeof memory->failed, "a thread does not end");
}

static void run_groups(struct launch *launch, const struct waves *waves)
{
    struct schedule schedule = schedule_of(launch->dispatch);
    struct group *group = &launch->group;
    uint32_t number[NUMBERS];
    while (launch->memory->failed[0] == '\0' && next_group(&schedule, number)) {
        struct thread *threads = waves->first;
        memset(group->local.bytes, 0xff, group->local.size);
        group->local.epoch++;
        group->number++;
        for (int i = 0; i < waves->count; i++) begin_thread(launch, &threads[i], i, group, number);
        run_waves(&schedule, waves, launch->memory, &group->local, ENDLESS);
    }
}

bool code_run(const struct code *code, const struct dispatch *dispatch, struct memory *memory)
{
    struct launch launch = {.dispatch = dispatch, .memory = memory};
    const int buffers = memory->count;
    struct group *group = &launch.group;
    for (int i = 0; i < code->kernel_count; i++)
        if (strcmp(code->kernels[i].name, dispatch->kernel) == 0) group->kernel = &code->kernels[i];
    if (group->kernel == NULL) {
        snprintf(memory->failed, sizeof memory->failed, "no kernel %s", dispatch->kernel);
        return false;
    }
    group->code = code;
    group->memory = memory;
    for (int i = 0; i < MOST_SURFACES; i++) {
        const int argument = group->kernel->surface[i];
        if (argument >= 0 && argument < dispatch->argument_count)
            group->surface[i] = dispatch->argument[argument].value & ~UINT64_C(3);
    }
    launch.threads = wave_count(dispatch, group->kernel->lanes);
    struct thread *threads = malloc((size_t)launch.threads * sizeof *threads);
    const struct waves waves = {"thread", threads, sizeof *threads, launch.threads, run_thread};
    if (threads == NULL || !make_payload(&launch))
        snprintf(memory->failed, sizeof memory->failed, "memory is missing");
    else
        run_groups(&launch, &waves);
    free(threads);
    free(launch.payload);
    local_memory_free(&group->local);
    memory->count = buffers;
    return memory->failed[0] == '\0';
}
