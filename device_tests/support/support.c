/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, guarded buffers and comparison for the device tests. */
#include "support.h"

#include "base/view.h"
#include "compile_watch.h"
#include "described.h"
#include "device/device.h"
#include "oracle/oracle.h"
#include "pages.h"
#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum {
    FILTER_UNIT = 64,        /* a packed filter begins at a multiple of it */
    GUARD = 6 * FILTER_UNIT, /* bytes before and after each tensor */
};

bool threads_left_out(void)
{
    for (int d = 0; d < device_count; d++)
        if (strcmp(devices[d].info->platform, "Oclgrind") == 0) {
            print_message("skipped: Oclgrind simulates one context at a time, threads crash it\n");
            return true;
        }
    return false;
}

size_t resident_kib(void)
{
    size_t resident = 0;
    char line[200];
    FILE *file = fopen("/proc/self/status", "r");
    if (file == NULL) return 0;
    while (resident == 0 && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "VmRSS: %zu", &resident);
    fclose(file);
    return resident;
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

int random_between(unsigned *state, int least, int most)
{
    return least + (int)(next_random(state) % (unsigned)(most - least + 1));
}

void set_shape(tconv_shape *shape, int rank, const int64_t *dim)
{
    shape->rank = rank;
    memcpy(shape->dim, dim, (size_t)rank * sizeof *dim);
}

void set_list(tconv_list *list, int count, const int64_t *value)
{
    list->count = count;
    memcpy(list->value, value, (size_t)count * sizeof *value);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Asks a GPU what it says of a small problem of bytes, which every algorithm for GPUs would take.
 */
static void read_rejections(struct device *device)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    tconv_plan *plan = NULL;
    tconv_error error;
    free(device->rejections);
    device->rejections = NULL;
    if (device->info->kind != TCONV_DEVICE_GPU) return;
    p.data_type = p.filter_type = TCONV_I8;
    p.output_type = TCONV_I32;
    set_shape(&p.data, 3, (int64_t[]){1, 4, 8});
    set_shape(&p.filter, 3, (int64_t[]){4, 4, 4});
    if (tconv_plan_create(device->device, &p, NULL, &plan, &error) != TCONV_OK)
        failed("%s", error.message);
    const int length = tconv_plan_explain(plan, NULL, 0);
    device->rejections = malloc((size_t)length + 1);
    assert_non_null(device->rejections);
    tconv_plan_explain(plan, device->rejections, (size_t)length + 1);
    tconv_plan_release(plan);
}

bool is_difference_form(const char *algorithm)
{
    return strncmp(algorithm, "difference_", strlen("difference_")) == 0;
}

bool never_runs(const struct device *device, const char *algorithm)
{
    const tconv_device_info *info = device->info;
    /* tconv_folded_ends_loops, which not every test links: long loops, many sums */
    if (is_difference_form(algorithm) && info->kind == TCONV_DEVICE_CPU && info->vector_width <= 1)
        return true;
    char name[100];
    snprintf(name, sizeof name, "%.*s: ", (int)strcspn(algorithm, " "), algorithm);
    const char *line = device->rejections == NULL ? NULL : strstr(device->rejections, name);
    const char *words = line == NULL ? NULL : strstr(line, "local memory");
    return words != NULL && (size_t)(words - line) < strcspn(line, "\n");
}

void act_as(struct device *device, const char *described)
{
    const tconv_device_info *as = described_device(described);
    tconv_device_info *info = &device->device->info;
    info->kind = as->kind;
    info->compute_units = as->compute_units;
    info->vector_width = as->vector_width;
    info->clock_mhz = as->clock_mhz;
    info->architecture = as->architecture;
    info->dedicated_local = as->dedicated_local;
    info->matrix_unit = TCONV_MATRIX_NONE;
    info->subgroup_least = 0;
    info->work_group_limit = lesser(info->work_group_limit, as->work_group_limit);
    for (int i = 0; i < 3; i++)
        info->work_item_limit[i] = lesser(info->work_item_limit[i], as->work_item_limit[i]);
    info->local_memory = lesser(info->local_memory, as->local_memory);
    info->constant_kib = (uint32_t)lesser(info->constant_kib, as->constant_kib);
    info->image_pixels = lesser(info->image_pixels, as->image_pixels);
    print_message("device %d as %s\n", device->number, described);
    read_rejections(device);
}

/* Opens a device whose launches threads of the device object share. False if it has none. */
static bool open_with_threads(int number, struct device *device)
{
    tconv_error error;
    if (tconv_device_open(number, &device->device, &error) != TCONV_OK) failed("%s", error.message);
    if (tconv_device_threads(device->device) == 0) {
        tconv_device_release(device->device);
        return false;
    }
    device->context = tconv_device_context(device->device);
    assert_int_equal(clRetainContext(device->context), CL_SUCCESS);
    print_message("device %d: %d threads share its launches\n", number,
                  tconv_device_threads(device->device));
    return true;
}

static void open_device(int number, struct device *device)
{
    tconv_error error = {TCONV_OK, 0, ""};
    cl_platform_id platform;
    cl_device_id id;
    cl_int code;
    device->number = number;
    if (open_with_threads(number, device)) {
        id = tconv_device_id(device->device);
    } else {
        if (tconv_device_at(number, &platform, &id, &error) != TCONV_OK)
            failed("%s", error.message);
        const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                    (cl_context_properties)platform, 0};
        device->context = clCreateContext(properties, 1, &id, NULL, NULL, &code);
        if (code != CL_SUCCESS) failed("no context on device %d: %d", number, code);
        if (tconv_device_create(device->context, id, &device->device, &error) != TCONV_OK)
            failed("%s", error.message);
    }
    device->queue = clCreateCommandQueue(device->context, id, 0, &code);
    if (code != CL_SUCCESS) failed("no queue on device %d: %d", number, code);
    device->info = tconv_device_properties(device->device);
    device->pages = pages_work(device->context, device->queue, device->info->kind);
    print_message("device %d: %s (%s)\n", number, device->info->name, device->info->platform);
    const char *described = getenv("TCONV_CL_TEST_AS");
    if (described != NULL)
        act_as(device, described);
    else
        read_rejections(device);
    if (!device->pages)
        print_message("skipped: inaccessible pages around tensors; kernels of device %d do not "
                      "work on the host's memory\n",
                      number);
}

struct device *devices;
int device_count;
void (*before_closing)(void);

int find_one_device(cl_device_id *id)
{
    tconv_error error;
    const char *only = getenv("TCONV_CL_TEST_DEVICE");
    const int number = only == NULL ? 0 : atoi(only);
    if (tconv_device_at(number, NULL, id, &error) == TCONV_OK) return number;
    print_error("%s\n", error.message);
    return -1;
}

int open_all_devices(void **state)
{
    (void)state;
    tconv_error error = {TCONV_OK, 0, ""};
    const char *only = getenv("TCONV_CL_TEST_DEVICE");
    int count = 1, first = only == NULL ? 0 : atoi(only);
    if (only == NULL && tconv_device_count(&count, &error) != TCONV_OK) failed("%s", error.message);
    if (count == 0) failed("there is no OpenCL device to test");
    devices = calloc((size_t)count, sizeof *devices);
    assert_non_null(devices);
    for (int i = 0; i < count; i++) open_device(first + i, &devices[i]);
    device_count = count;
    return 0;
}

int close_all_devices(void **state)
{
    (void)state;
    if (before_closing != NULL) before_closing();
    report_compiling();
    bool on_rusticl = false;
    for (int i = 0; i < device_count; i++) {
        on_rusticl |= strcmp(devices[i].info->platform, "rusticl") == 0;
        free(devices[i].rejections);
        tconv_device_release(devices[i].device);
        clReleaseCommandQueue(devices[i].queue);
        clReleaseContext(devices[i].context);
    }
    free(devices);
    /* The queue's thread of rusticl (Mesa 22.3) outlives the queue and still frees kernels; when
     * the process ends meanwhile, it frees what exit handlers have taken down. */
    if (on_rusticl) nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    return 0;
}

static void *make_array(tconv_type type, size_t count, enum contents contents, unsigned *seed)
{
    const size_t size = tconv_type_size(type);
    void *array = malloc((count + 1) * size);
    assert_non_null(array);
    for (size_t i = 0; i < count; i++) {
        const double value = contents == SMALL_INTEGERS
                                 ? random_between(seed, -3, 3)
                                 : (double)random_between(seed, -1000000, 1000000) / 524288.0;
        if (contents == SMALL_INTEGERS || tconv_type_is_floating(type))
            tconv_oracle_write(type, array, (int64_t)i, value);
        else /* any bits: the middle ones of a stream are the most random */
            for (size_t b = 0; b < size; b++)
                ((unsigned char *)array)[i * size + b] = (unsigned char)(next_random(seed) >> 8);
    }
    return array;
}

/* The elements of a tensor in memory: true, and what lies between them: false. The caller frees
 * it. */
static bool *elements_of(const tconv_problem *problem, const tconv_geometry *g,
                         enum tconv_spaced tensor, size_t span)
{
    const struct tconv_view view = tconv_view_of(problem, g, tensor);
    bool *is_element = calloc(span + 1, sizeof *is_element);
    assert_non_null(is_element);
    for (int64_t i = 0; i < tconv_view_elements(&view); i++)
        is_element[tconv_view_place(&view, i)] = true;
    return is_element;
}

/* Bytes of what is a NaN in every floating-point type. */
static unsigned char guard_byte(size_t i)
{
    static const unsigned char bits[] = {0xf5, 0x7f, 0xf8, 0x7f};
    return bits[i % sizeof bits];
}

/* Makes a tensor whose steps may leave room between its elements. There are NaNs, which reach the
 * output if a kernel multiplies them by anything. */
static void *make_spaced(const tconv_problem *problem, const tconv_geometry *g,
                         enum tconv_spaced tensor, tconv_type type, size_t span,
                         enum contents contents, unsigned *seed)
{
    unsigned char *array = make_array(type, span, contents, seed);
    bool *is_element = elements_of(problem, g, tensor, span);
    const size_t size = tconv_type_size(type);
    for (size_t i = 0; i < span; i++)
        for (size_t b = 0; b < size && !is_element[i]; b++) array[i * size + b] = guard_byte(b);
    free(is_element);
    return array;
}

/* The same for numbers of the epilogue; factors of requantised sums bring these into the range of a
 * byte. */
static void *make_numbers(const struct tensors *t, tconv_type type, bool factors, unsigned *seed)
{
    void *array = make_array(type, t->channels, REAL_NUMBERS, seed);
    const double terms = (double)t->geometry.macs / (double)(t->output_count + 1) + 1;
    for (size_t i = 0; factors && t->epilogue.requantize && i < t->channels; i++)
        tconv_oracle_write(type, array, (int64_t)i,
                           (0.5 + 0.25 * tconv_oracle_read(type, array, (int64_t)i)) /
                               (100 * sqrt(terms)));
    return array;
}

void make_tensors(const tconv_problem *problem, enum contents contents, unsigned seed,
                  struct tensors *t)
{
    tconv_error error = {TCONV_OK, 0, ""};
    t->geometry = (tconv_geometry)TCONV_GEOMETRY_INIT;
    if (tconv_resolve(problem, &t->geometry, &error) != TCONV_OK) {
        char text[1000];
        tconv_problem_text(problem, text, sizeof text);
        failed("%s: %s", text, error.message);
    }
    const tconv_type output = t->geometry.output_type;
    t->channels = (size_t)t->geometry.epilogue_channels;
    t->data_count = (size_t)t->geometry.data_bytes / tconv_type_size(problem->data_type);
    t->filter_count = (size_t)t->geometry.filter_bytes / tconv_type_size(problem->filter_type);
    t->output_count = (size_t)t->geometry.output_bytes / tconv_type_size(output);
    t->data = make_spaced(problem, &t->geometry, TCONV_SPACED_DATA, problem->data_type,
                          t->data_count, contents, &seed);
    t->filter = make_spaced(problem, &t->geometry, TCONV_SPACED_FILTER, problem->filter_type,
                            t->filter_count, contents, &seed);
    t->bias = make_array(output, t->channels, contents, &seed);
    t->output = make_array(output, t->output_count, contents, &seed);
    t->math = TCONV_MATH_EXACT;
    t->error_factor = 1;
    t->epilogue = (tconv_epilogue)TCONV_EPILOGUE_INIT;
    t->scale = t->slope = t->slope2 = t->residual = t->before = NULL;
}

void make_epilogue(const tconv_problem *problem, const tconv_epilogue *epilogue, unsigned seed,
                   struct tensors *t)
{
    const tconv_type number = tconv_scale_type(problem->data_type);
    t->epilogue = *epilogue;
    t->scale = make_numbers(t, number, true, &seed);
    t->slope = make_numbers(t, number, false, &seed);
    t->slope2 = tconv_activation_slope_count(epilogue->activation) > 1
                    ? make_numbers(t, number, true, &seed)
                    : NULL;
    t->residual =
        make_spaced(problem, &t->geometry, TCONV_SPACED_RESIDUAL, t->geometry.output_type,
                    (size_t)t->geometry.residual_bytes / tconv_type_size(t->geometry.output_type),
                    REAL_NUMBERS, &seed);
    t->before = make_array(t->geometry.output_type, t->output_count, REAL_NUMBERS, &seed);
    if (!epilogue->requantize) return;
    free(t->bias);
    t->bias = make_numbers(t, TCONV_F32, false, &seed);
}

void free_tensors(struct tensors *t)
{
    void *const arrays[] = {t->data,  t->filter, t->bias,     t->output, t->scale,
                            t->slope, t->slope2, t->residual, t->before};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    t->scale = t->slope = t->slope2 = t->residual = t->before = NULL;
}

tconv_tensors arrays_of(const struct tensors *tensors)
{
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    arrays.data.host = tensors->data;
    arrays.filter.host = tensors->filter;
    arrays.output.host = tensors->output;
    return arrays;
}

/* A tensor in a buffer, with NaNs of a known kind in front and behind. */
struct guarded {
    const char *name;
    tconv_tensor place;
    size_t bytes, whole;    /* of the tensor, of its buffer */
    unsigned char *image;   /* what the whole buffer held before the run */
    const bool *is_element; /* of an output: where it may change; NULL: everywhere */
    size_t element;         /* bytes */
};

/* `unit`: what the tensor's first byte is a multiple of. */
static void make_guarded(const struct device *device, const char *name, const void *contents,
                         size_t bytes, size_t unit, enum touching touching, struct guarded *g)
{
    /* A workspace begins at any element. */
    const size_t begin = GUARD + (unit > 1 && unit < FILTER_UNIT ? unit : 0);
    struct pages p = {NULL, begin + bytes + GUARD, begin};
    if (touching != NONE) p = pages_take(name, bytes, unit, touching);
    g->name = name;
    g->is_element = NULL;
    g->bytes = bytes;
    g->whole = p.bytes;
    g->image = malloc(p.bytes);
    assert_non_null(g->image);
    for (size_t i = 0; i < p.bytes; i++) g->image[i] = guard_byte(i);
    if (contents != NULL) memcpy(g->image + p.offset, contents, bytes);
    if (touching != NONE) memcpy(p.memory, g->image, p.bytes);
    cl_int code;
    g->place.offset = p.offset;
    g->place.memory = clCreateBuffer(
        device->context,
        CL_MEM_READ_WRITE | (touching == NONE ? CL_MEM_COPY_HOST_PTR : CL_MEM_USE_HOST_PTR),
        p.bytes, touching == NONE ? g->image : p.memory, &code);
    if (code != CL_SUCCESS) failed("no buffer of %zu bytes for %s: %d", p.bytes, name, code);
}

/* Checks the guards and, where `unchanged`, the tensor; `result` receives the tensor where it is
 * not NULL. */
static void check_guarded(const struct device *device, const char *problem, const char *algorithm,
                          struct guarded *g, bool unchanged, void *result)
{
    const size_t begin = g->place.offset;
    unsigned char *now = malloc(g->whole);
    assert_non_null(now);
    const cl_int code = clEnqueueReadBuffer(device->queue, g->place.memory, CL_TRUE, 0, g->whole,
                                            now, 0, NULL, NULL);
    if (code != CL_SUCCESS) failed("%s cannot be read: %d", g->name, code);
    for (size_t i = 0; i < g->whole; i++) {
        const bool guard = i < begin || i >= begin + g->bytes ||
                           (g->is_element != NULL && !g->is_element[(i - begin) / g->element]);
        if ((guard || unchanged) && now[i] != g->image[i])
            failed("%s wrote %s at byte %lld on device %d: tconv-cl check %s", algorithm, g->name,
                   (long long)i - (long long)begin, device->number, problem);
    }
    /* What lies between elements depends on where the tensor begins. */
    for (size_t i = 0; g->is_element != NULL && i < g->bytes; i++)
        if (!g->is_element[i / g->element]) now[begin + i] = 0;
    if (result != NULL) memcpy(result, now + begin, g->bytes);
    free(now);
    free(g->image);
    clReleaseMemObject(g->place.memory);
}

static void require(tconv_status status, const tconv_error *error, const char *what,
                    const char *problem, const char *algorithm)
{
    if (status != TCONV_OK)
        failed("%s fails with %s (%s): tconv-cl check --algorithm \"%s\" %s", what,
               tconv_status_name(status), error->message, algorithm, problem);
}

static tconv_plan_options plan_options(const char *algorithm, bool bias, const struct tensors *t)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = algorithm;
    options.epilogue = t->epilogue;
    options.epilogue.bias = bias;
    options.math = t->math;
    return options;
}

static void pack_and_run(const struct device *device, tconv_plan *plan, const tconv_tensor *weights,
                         const tconv_tensor *packed, tconv_tensors *args, const char *text,
                         const char *algorithm)
{
    tconv_error error;
    tconv_packed_filter *filter = NULL;
    require(tconv_packed_filter_create(plan, packed, &filter, &error), &error,
            "creating the filter", text, algorithm);
    const bool shared = tconv_device_threads(device->device) > 0;
    require(shared ? tconv_packed_filter_pack(filter, weights, &error)
                   : tconv_packed_filter_enqueue_pack(filter, device->queue, weights, 0, NULL, NULL,
                                                      &error),
            &error, "packing", text, algorithm);
    args->packed = filter;
    require(shared ? tconv_plan_run(plan, args, &error)
                   : tconv_plan_enqueue(plan, device->queue, args, 0, NULL, NULL, &error),
            &error, shared ? "running" : "enqueueing", text, algorithm);
    const cl_int code = clFinish(device->queue);
    if (code != CL_SUCCESS)
        failed("clFinish fails with %d: tconv-cl check --algorithm \"%s\" %s", code, algorithm,
               text);
    tconv_packed_filter_release(filter);
}

/* Packs and runs a plan on buffers that touch inaccessible pages with that end, or none. */
static void run_touching(const struct device *device, tconv_plan *plan,
                         const tconv_problem *problem, const char *algorithm, bool bias,
                         struct tensors *t, enum touching touching)
{
    char text[1000];
    tconv_problem_text(problem, text, sizeof text);
    const tconv_epilogue *e = &t->epilogue;
    const tconv_type number = tconv_scale_type(problem->data_type);
    const size_t numbers = t->channels * tconv_type_size(number);
    const size_t bias_bytes = t->channels *
                              tconv_type_size(tconv_bias_type(e, t->geometry.output_type));
    const size_t data_bytes = (size_t)t->geometry.data_bytes;
    const size_t weight_bytes = (size_t)t->geometry.filter_bytes;
    const size_t output_bytes = (size_t)t->geometry.output_bytes;
    const size_t residual_bytes = (size_t)t->geometry.residual_bytes;
    const size_t output_element = tconv_type_size(t->geometry.output_type);
    bool *is_output =
        elements_of(problem, &t->geometry, TCONV_SPACED_OUTPUT, output_bytes / output_element);
    const size_t packed_bytes = (size_t)tconv_plan_filter_bytes(plan);
    const size_t workspace_bytes = (size_t)tconv_plan_workspace_bytes(plan);
    const size_t element = tconv_type_size(problem->data_type);
    const int slopes = tconv_activation_slope_count(e->activation);
    const void *before = e->beta != 0 ? t->before : NULL;
    tconv_tensors args = TCONV_TENSORS_INIT;
    tconv_tensor weights, packed;
    enum { IS_READ, IS_WRITTEN };
    struct {
        const char *name;
        const void *contents;
        size_t bytes, unit;
        bool wanted;
        int use;
        tconv_tensor *argument;
        struct guarded guarded;
    } tensors[] = {
        {"data", t->data, data_bytes, 1, true, IS_READ, &args.data, {0}},
        {"filter", t->filter, weight_bytes, 1, true, IS_READ, &weights, {0}},
        {"bias", t->bias, bias_bytes, 1, bias, IS_READ, &args.bias, {0}},
        {"scale", t->scale, numbers, 1, e->scale, IS_READ, &args.scale, {0}},
        {"slope", t->slope, numbers, 1, slopes > 0, IS_READ, &args.slope, {0}},
        {"slope2", t->slope2, numbers, 1, slopes > 1, IS_READ, &args.slope2, {0}},
        {"residual", t->residual, residual_bytes, 1, e->residual, IS_READ, &args.residual, {0}},
        {"output", before, output_bytes, 1, true, IS_WRITTEN, &args.output, {0}},
        {"packed filter", NULL, packed_bytes, FILTER_UNIT, true, IS_WRITTEN, &packed, {0}},
        {"workspace", NULL, workspace_bytes, element, true, IS_WRITTEN, &args.workspace, {0}},
    };
    enum { COUNT = sizeof tensors / sizeof *tensors };
    if (touching != NONE) pages_begin(algorithm, text);
    for (int i = 0; i < COUNT; i++) {
        if (!tensors[i].wanted) continue;
        make_guarded(device, tensors[i].name, tensors[i].contents, tensors[i].bytes,
                     tensors[i].unit, touching, &tensors[i].guarded);
        *tensors[i].argument = tensors[i].guarded.place;
        if (tensors[i].argument != &args.output) continue;
        tensors[i].guarded.is_element = is_output;
        tensors[i].guarded.element = output_element;
    }
    pack_and_run(device, plan, &weights, &packed, &args, text, algorithm);
    for (int i = 0; i < COUNT; i++)
        if (tensors[i].wanted)
            check_guarded(device, text, algorithm, &tensors[i].guarded, tensors[i].use == IS_READ,
                          tensors[i].argument == &args.output ? t->output : NULL);
    if (touching != NONE) pages_end();
    free(is_output);
}

/* True if all results are the same bits; a NaN may have any. */
static bool same_results(tconv_type type, const void *a, const void *b, size_t count)
{
    const size_t size = tconv_type_size(type);
    if (memcmp(a, b, count * size) == 0) return true;
    for (size_t i = 0; i < count; i++)
        if (memcmp((const char *)a + i * size, (const char *)b + i * size, size) != 0 &&
            !(isnan(tconv_oracle_read(type, a, (int64_t)i)) &&
              isnan(tconv_oracle_read(type, b, (int64_t)i))))
            return false;
    return true;
}

/* Runs the plan twice, and expects the same results. */
static void run_between_pages(const struct device *device, tconv_plan *plan,
                              const tconv_problem *problem, const char *algorithm, bool bias,
                              struct tensors *t)
{
    const size_t bytes = (size_t)t->geometry.output_bytes;
    char text[1000];
    tconv_problem_text(problem, text, sizeof text);
    void *first = malloc(bytes + 1);
    assert_non_null(first);
    run_touching(device, plan, problem, algorithm, bias, t, BEGIN);
    memcpy(first, t->output, bytes);
    run_touching(device, plan, problem, algorithm, bias, t, END);
    if (!device->dry && !same_results(t->geometry.output_type, first, t->output, t->output_count))
        failed("other bits with tensors elsewhere on device %d: tconv-cl check --algorithm \"%s\" "
               "%s",
               device->number, algorithm, text);
    free(first);
}

tconv_status run_guarded(const struct device *device, const tconv_problem *problem,
                         const char *algorithm, bool bias, struct tensors *t, tconv_error *error)
{
    const tconv_plan_options options = plan_options(algorithm, bias, t);
    tconv_plan *plan = NULL;
    const tconv_status status = tconv_plan_create(device->device, problem, &options, &plan, error);
    if (status != TCONV_OK) return status;
    t->error_factor = tconv_plan_error_factor(plan);
    if (device->pages)
        run_between_pages(device, plan, problem, algorithm, bias, t);
    else
        run_touching(device, plan, problem, algorithm, bias, t, NONE);
    tconv_plan_release(plan);
    return TCONV_OK;
}

bool run_algorithm(const struct device *device, const tconv_problem *problem, const char *algorithm,
                   bool bias, struct tensors *tensors, unsigned number)
{
    tconv_error error;
    sample_begin(algorithm, problem, number);
    const tconv_status status = run_guarded(device, problem, algorithm, bias, tensors, &error);
    if (!sample_end(algorithm, problem, status)) return false;
    /* The reference refuses only what a device that ends long loops (llvmpipe) would not
     * compute. */
    if (status == TCONV_ERROR_ALGORITHM &&
        (strcmp(algorithm, "reference") != 0 ||
         strstr(error.message, "may abort such kernels") != NULL))
        return false;
    if (status == TCONV_ERROR_DEVICE && problem->data_type == TCONV_F64 &&
        !device->info->double_arithmetic) {
        assert_non_null(strstr(error.message, "f64"));
        return false;
    }
    if (status != TCONV_OK) failed("%s on device %d: %s", algorithm, device->number, error.message);
    return true;
}

int candidate_names(const struct device *device, const tconv_problem *problem,
                    const char *algorithm, bool bias, const struct tensors *t,
                    char names[MOST_CANDIDATES][CANDIDATE_NAME])
{
    const tconv_plan_options options = plan_options(algorithm, bias, t);
    tconv_plan *plan = NULL;
    if (tconv_plan_create(device->device, problem, &options, &plan, NULL) != TCONV_OK) return 0;
    static char text[MOST_CANDIDATES * CANDIDATE_NAME];
    assert_true(tconv_plan_candidates(plan, text, sizeof text) < (int)sizeof text);
    tconv_plan_release(plan);
    int count = 0;
    for (char *tile = text; count < MOST_CANDIDATES; count++) {
        const size_t length = strcspn(tile, "\n");
        snprintf(names[count], CANDIDATE_NAME, "%s %.*s", algorithm, (int)length, tile);
        if (tile[length] == '\0') return count + 1;
        tile += length + 1;
    }
    failed("%s has more than %d candidates", algorithm, MOST_CANDIDATES);
    return 0;
}

void compare_with_oracle(const struct device *device, const tconv_problem *problem,
                         const char *algorithm, bool bias, const struct tensors *t)
{
    tconv_epilogue epilogue = t->epilogue;
    epilogue.bias = bias;
    const struct tconv_operands operands = {
        .problem = problem,
        .geometry = &t->geometry,
        .epilogue = &epilogue,
        .error_factor = t->error_factor,
        .data = t->data,
        .filter = t->filter,
        .bias = t->bias,
        .scale = t->scale,
        .slope = t->slope,
        .slope2 = t->slope2,
        .residual = t->residual,
        .before = t->before,
    };
    const tconv_type type = t->geometry.output_type;
    const int64_t outputs = tconv_oracle_outputs(&operands);
    for (int64_t i = 0; i < outputs; i++) {
        const struct tconv_expected expected = tconv_oracle_element(&operands, i);
        const int64_t place = tconv_oracle_place(&operands, i);
        const double error = tconv_oracle_error(&expected, type, t->output, place);
        if (error <= 1) continue;
        char text[1000];
        tconv_problem_text(problem, text, sizeof text);
        failed("output element %lld is %.9g, expected %.9g (bound %.3g; %.9g to %.9g) on device "
               "%d: tconv-cl check "
               "--algorithm \"%s\"%s %s (activation %s%s%s%s%s)",
               (long long)i, tconv_oracle_read(type, t->output, place), expected.value,
               expected.bound, expected.low, expected.high, device->number, algorithm,
               bias ? " --with-bias" : "", text, tconv_activation_name(epilogue.activation),
               epilogue.scale ? ", scale" : "", epilogue.residual ? ", residual" : "",
               epilogue.beta != 0 ? ", beta" : "", epilogue.requantize ? ", requantize" : "");
    }
}

void expect_gaps(const tconv_problem *problem, const struct tensors *t, const void *before)
{
    const size_t size = tconv_type_size(t->geometry.output_type);
    bool *is_output = elements_of(problem, &t->geometry, TCONV_SPACED_OUTPUT, t->output_count);
    for (size_t i = 0; i < t->output_count; i++) {
        const char *got = (const char *)t->output + i * size;
        if (!is_output[i] && memcmp(got, (const char *)before + i * size, size) != 0) {
            char text[1000];
            tconv_problem_text(problem, text, sizeof text);
            failed("place %zu is not an element, but was written: tconv-cl check %s", i, text);
        }
    }
    free(is_output);
}

tconv_status compute_once(tconv_device *device, const tconv_problem *problem,
                          const tconv_plan_options *options, const tconv_tensors *tensors,
                          const tconv_run *run, tconv_error *error)
{
    tconv_layer *layer = NULL;
    tconv_status status = tconv_layer_create(&device, 1, TCONV_FILTER_VARIES, &layer, error);
    if (status == TCONV_OK) status = tconv_layer_run(layer, problem, options, tensors, run, error);
    tconv_layer_release(layer);
    return status;
}
