/* SPDX-License-Identifier: Apache-2.0 */
/* Loads PTX, and executes work-groups one after another: their warps take turns, and meet at
 * barriers. Registers and shared memory begin as NaN. With an odd seed copies are made as early as
 * they may be, else as late. */
#include "decode.h"
#include "executed/launch.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- cases ---- */

const char *vendor_device(const struct executed_case *one)
{
    if (strncmp(one->target, "sm_", 3) != 0) return NULL;
    if (strncmp(one->algorithm, "matrix_group", 12) != 0) return "NVIDIA";
    return strcmp(one->target, "sm_90a") == 0 ? "NVIDIA wgmma" : "NVIDIA mma";
}

const char *vendor_options(const struct executed_case *one)
{
    (void)one;
    return "";
}

/* ---- programs ---- */

struct code *code_load(const char *path, const char *target)
{
    char why[300] = "it cannot be read";
    struct code *code = calloc(1, sizeof *code);
    size_t size;
    char *text = read_file(path, "ptx", &size);
    (void)target;
    const bool done = code != NULL && text != NULL && code_read(code, text, why, sizeof why);
    free(text);
    if (done) return code;
    fprintf(stderr, "%s.ptx: %s\n", path, why);
    if (code != NULL) code_free(code);
    return NULL;
}

void code_free(struct code *code)
{
    code_clear(code);
    free(code);
}

/* Of all lines but the one that names the target. */
uint64_t code_identity(const char *path)
{
    size_t size;
    char *text = read_file(path, "ptx", &size);
    uint64_t all = UINT64_C(0xcbf29ce484222325);
    if (text == NULL) return 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (strncmp(at, ".target", 7) == 0) at += strcspn(at, "\n");
        if (*at == '\0') break;
        all = (all ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    }
    free(text);
    return all;
}

int code_operation_count(const struct code *code)
{
    (void)code; /* bank conflicts are not counted */
    return 0;
}

void code_operation_text(const struct code *code, int operation, char *text, size_t size)
{
    snprintf(text, size, "%s", code->kernel[0].list[operation].name);
}

/* ---- how warps go on ---- */

void warp_fail(struct warp *w, const struct operation *op, const char *format, ...)
{
    char place[100];
    va_list arguments;
    w->state = ENDED;
    snprintf(place, sizeof place, "%s in line %d", op->name, op->line);
    va_start(arguments, format);
    fail_at(w->group->memory, place, format, arguments);
    va_end(arguments);
}

void unknown_operation(struct warp *w, const struct operation *op)
{
    warp_fail(w, op,
              "the executor does not know this operation, or not of these types: add a row to "
              "lane_rows.h, or the types to the function that decode.c names for it");
}

void do_nothing(struct warp *w, const struct operation *op)
{
    (void)w;
    (void)op;
}

/* Lanes that execute the branch go to its target, the others on. If they part, those that go on
 * come first; all meet at the branch's join. */
void branch(struct warp *w, const struct operation *op)
{
    struct path *path = &w->stack[w->depth];
    const uint32_t goes = w->active, stays = path->lanes & ~w->active;
    if (stays == 0) {
        path->pc = op->target;
        return;
    }
    if (w->depth + 2 >= MOST_DIVERGED) {
        warp_fail(w, op, "lanes part too often");
        return;
    }
    const struct path other = {op->target, op->join, goes}, next = {path->pc, op->join, stays};
    if (path->join == op->join)
        w->depth--; /* nothing is left to do where they meet: the path below goes on there */
    else
        path->pc = op->join;
    w->stack[++w->depth] = other;
    w->stack[++w->depth] = next;
}

void end_lanes(struct warp *w, const struct operation *op)
{
    (void)op;
    w->present &= ~w->active;
    for (int i = 0; i <= w->depth; i++) w->stack[i].lanes &= ~w->active;
}

/* Goes on with the path below if lanes have come to where they meet, or have all ended. */
static void leave_paths(struct warp *w)
{
    while (w->depth >= 0) {
        const struct path *path = &w->stack[w->depth];
        if (path->lanes != 0 && (w->depth == 0 || path->pc != path->join)) return;
        w->depth--;
    }
    w->state = ENDED;
}

static void end_warp(struct warp *w, const struct operation *op)
{
    w->group->idle = 0;
    if (w->copy_count != 0 && w->group->memory->failed[0] == '\0')
        warp_fail(w, op, "warp %d ends with %d copies that it never waited for", w->number,
                  w->copy_count);
}

static void run_warp(void *warp, uint64_t turns)
{
    struct warp *w = warp;
    const struct kernel *kernel = w->group->kernel;
    struct memory *memory = w->group->memory;
    w->yields = false;
    for (; w->state == RUNNING && turns > 0 && !w->yields; turns--) {
        struct path *path = &w->stack[w->depth];
        if (path->pc >= kernel->count) {
            snprintf(memory->failed, sizeof memory->failed, "a kernel goes on behind its end");
            w->state = ENDED;
            return;
        }
        const struct operation *op = &kernel->list[path->pc++];
        w->active = path->lanes;
        if (op->guard.size != 0) w->active &= lanes_of(w, &op->guard);
        if (w->active != 0) {
            op->run(w, op);
            w->unfenced |= op->writes_sum;
            memory->executed++;
        }
        if (w->state == ENDED) return;
        path = &w->stack[w->depth];
        if (path->lanes == 0 || (w->depth != 0 && path->pc == path->join)) leave_paths(w);
        if (w->state == ENDED) end_warp(w, op);
    }
}

/* ---- barriers ---- */

/* bar.sync NUMBER[, ITEMS], and barrier.sync */
void meet_at_barrier(struct warp *w, const struct operation *op)
{
    struct group *group = w->group;
    const int number = (int)lane_bits(w, &op->slot[0].list[0], 0);
    const bool counted = op->slot_count > 1;
    if (strstr(op->name, ".sync") == NULL || number < 0 || number >= MOST_BARRIERS) {
        unknown_operation(w, op);
        return;
    }
    if (w->active != w->present) {
        warp_fail(w, op, "%d lanes of warp %d come to barrier %d, not all %d",
                  __builtin_popcount(w->active), w->number, number, __builtin_popcount(w->present));
        return;
    }
    w->state = AT_BARRIER;
    w->barrier = number;
    w->barrier_warps = counted ? (int)lane_bits(w, &op->slot[1].list[0], 0) / LANES
                               : group->warp_count;
    uint32_t there = 0;
    int count = 0;
    for (int i = 0; i < group->warp_count; i++)
        if (group->warps[i].state == AT_BARRIER && group->warps[i].barrier == number) {
            there |= 1u << i;
            count++;
        }
    if (count < w->barrier_warps) return;
    shared_meet(&group->shared, there);
    group->idle = 0;
    for (int i = 0; i < group->warp_count; i++)
        if (there >> i & 1) group->warps[i].state = RUNNING;
}

/* ---- what a launch gives to its warps ---- */

static void set_special(struct warp *w, int which, uint32_t value)
{
    bits32 *lanes = (bits32 *)(void *)(w->registers + 4 * LANES * which);
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = value;
}

static void set_lane(struct warp *w, int which, int lane, uint32_t value)
{
    ((bits32 *)(void *)(w->registers + 4 * LANES * which))[lane] = value;
}

static void set_specials(struct warp *w, const uint32_t number[3])
{
    const struct dispatch *dispatch = w->group->dispatch;
    const uint32_t *local = dispatch->local;
    for (int d = 0; d < 3; d++) {
        set_special(w, NTID_X + d, local[d]);
        set_special(w, CTAID_X + d, number[d]);
        set_special(w, NCTAID_X + d, (uint32_t)dispatch->groups[d]);
        set_special(w, OFFSET_X + d, d == 0 ? (uint32_t)(dispatch->first_group * local[0]) : 0);
    }
    set_special(w, WARP_ID, (uint32_t)w->number);
    set_special(w, CLOCK, 0);
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t item[3];
        item_numbers(dispatch, w->number * LANES + lane, item);
        for (int d = 0; d < 3; d++) set_lane(w, TID_X + d, lane, item[d]);
        set_lane(w, LANE_ID, lane, (uint32_t)lane);
        set_lane(w, LANES_BELOW, lane, (1u << lane) - 1);
    }
}

static void begin_warp(struct warp *w, const uint32_t number[3])
{
    const struct kernel *kernel = w->group->kernel;
    const int items = wave_items(w->group->dispatch, LANES, w->number);
    memset(w->registers, 0xff, kernel->register_bytes);
    memset(w->local, 0xff, (size_t)kernel->local_bytes * LANES);
    memset(w->copies_committed, 0, sizeof w->copies_committed);
    set_specials(w, number);
    w->present = items == LANES ? ALL_LANES : (1u << items) - 1;
    w->stack[0] = (struct path){0, -1, w->present};
    w->depth = 0;
    w->copy_count = 0;
    w->unfenced = true;
    w->state = RUNNING;
}

/* ---- executing ---- */

/* More operations than any case of the tests executes, and more tests of mbarriers than pass while
 * all warps wait for each other. */
static const uint64_t ENDLESS = UINT64_C(1) << 29, MOST_IDLE = 100000;

/* Executes products for which all warps of a warpgroup wait; whether there were any. */
static bool run_products(struct group *group)
{
    bool any = false;
    for (int g = 0; g + WARPGROUP <= group->warp_count; g += WARPGROUP) {
        const struct warp *w = &group->warps[g];
        bool all = true;
        for (int i = 0; i < WARPGROUP; i++)
            all = all && w[i].state == AT_PRODUCT && w[i].product == w->product;
        if (all) products_run(group, g / WARPGROUP);
        any |= all;
    }
    return any;
}

/* Runs a work-group's warps until all have ended. */
static void run_group(struct group *group)
{
    const struct waves warps = {"warp", group->warps, sizeof *group->warps, group->warp_count,
                                run_warp};
    struct memory *memory = group->memory;
    int last = 0;
    while (memory->failed[0] == '\0') {
        const int running = waves_in(&warps, RUNNING), ended = waves_in(&warps, ENDED);
        if (ended == warps.count) break;
        if (running == 0 && run_products(group)) continue;
        if (running == 0 || group->idle > MOST_IDLE) {
            snprintf(memory->failed, sizeof memory->failed,
                     ended != 0 ? "a warp ended while others wait for it"
                                : "all warps wait for each other");
            break;
        }
        if (memory->executed >= ENDLESS) {
            snprintf(memory->failed, sizeof memory->failed, "a loop does not end");
            break;
        }
        const int ran = run_turn(&group->schedule, &warps, last, ENDLESS - memory->executed);
        last = ran + group->warps[ran].yields;
    }
    if (memory->failed[0] == '\0' && (products_are_running(group) || bulk_is_running(group)))
        snprintf(memory->failed, sizeof memory->failed,
                 "a work-group ends with %s that it never waited for",
                 bulk_is_running(group) ? "copies" : "products");
}

static void run_groups(struct group *group)
{
    uint32_t number[3];
    while (group->memory->failed[0] == '\0' && next_group(&group->schedule, number)) {
        group->number++;
        group->idle = 0;
        shared_begin_group(&group->shared);
        bulk_begin_group(group);
        for (int i = 0; i < group->warp_count; i++) begin_warp(&group->warps[i], number);
        run_group(group);
    }
}

static bool make_warps(struct group *group)
{
    const struct kernel *kernel = group->kernel;
    group->warps = calloc((size_t)group->warp_count, sizeof *group->warps);
    if (group->warps == NULL) return false;
    for (int i = 0; i < group->warp_count; i++) {
        struct warp *w = &group->warps[i];
        w->group = group;
        w->number = i;
        w->registers = malloc(kernel->register_bytes);
        w->sums = malloc(kernel->register_bytes);
        w->local = malloc((size_t)kernel->local_bytes * LANES + 1);
        if (w->registers == NULL || w->sums == NULL || w->local == NULL) return false;
    }
    return products_begin(group) && bulk_begin(group);
}

static void free_warps(struct group *group)
{
    for (int i = 0; i < group->warp_count && group->warps != NULL; i++) {
        free(group->warps[i].registers);
        free(group->warps[i].sums);
        free(group->warps[i].local);
        free(group->warps[i].copies);
    }
    free(group->warps);
    products_free(group);
    bulk_free(group);
}

/* The parameters as kernels read them, 8 bytes each; returns the bytes of shared memory. */
static uint32_t write_parameters(const struct kernel *kernel, const struct dispatch *dispatch,
                                 uint64_t parameters[MOST_ARGUMENTS])
{
    uint32_t shared = kernel->shared_bytes;
    for (int i = 0; i < dispatch->argument_count; i++) {
        const struct kernel_argument *argument = &dispatch->argument[i];
        parameters[i] = argument->value;
        if (!argument->local) continue;
        shared = (shared + 127) & ~127u;
        parameters[i] = SHARED_BASE + shared;
        shared += (uint32_t)argument->value;
    }
    return shared;
}

bool code_run(const struct code *code, const struct dispatch *dispatch, struct memory *memory)
{
    uint64_t parameters[MOST_ARGUMENTS] = {0};
    struct group group = {.code = code,
                          .dispatch = dispatch,
                          .memory = memory,
                          .warp_count = wave_count(dispatch, LANES),
                          .early = dispatch->seed % 2 == 1,
                          .schedule = schedule_of(dispatch)};
    for (int i = 0; i < code->kernel_count; i++)
        if (strcmp(code->kernel[i].name, dispatch->kernel) == 0) group.kernel = &code->kernel[i];
    if (dispatch->banks != NULL) {
        snprintf(memory->failed, sizeof memory->failed, "bank conflicts are not counted");
        return false;
    }
    if (group.kernel == NULL || group.kernel->parameters != dispatch->argument_count ||
        group.warp_count > MOST_WARPS) {
        snprintf(memory->failed, sizeof memory->failed,
                 "no kernel %s with %d arguments, for %d warps", dispatch->kernel,
                 dispatch->argument_count, group.warp_count);
        return false;
    }
    const uint32_t shared = write_parameters(group.kernel, dispatch, parameters);
    group.parameters = (const uint8_t *)parameters;
    if (!shared_begin(&group.shared, shared, group.warp_count) || !make_warps(&group))
        snprintf(memory->failed, sizeof memory->failed, "memory is missing");
    else
        run_groups(&group);
    free_warps(&group);
    shared_free(&group.shared);
    return memory->failed[0] == '\0';
}
