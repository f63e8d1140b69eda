/* SPDX-License-Identifier: Apache-2.0 */
/* Probes matrix units and dot products: runs small problems with known results. */
#include "plan/probe.h"

#include "base/error.h"
#include "device/device_internal.h"

#include <stdio.h>
#include <string.h>

/* The problems: one axis, numbers that no type rounds. In the second one channels are last and fill
 * 16 bytes whole, which are copied another way. */
enum {
    MOST_IN = 48,
    MOST_OUT = 19,
    INPUT = 21,
    KERNEL = 3,
    STRIDE = 2,
    OUTPUT = STRIDE * (INPUT - 1) + KERNEL
};
static const struct small {
    int in, out;
    bool last;
} small_problems[] = {{37, 19, false}, {48, 16, true}};

static int data_at(int ci, int x)
{
    return (ci * 5 + x * 3) % 7 % 3;
}

static int filter_at(int ci, int co, int k)
{
    return (ci * 3 + co * 2 + k) % 5 % 2;
}

static int output_at(const struct small *small, int co, int o)
{
    int sum = 0;
    for (int k = 0; k < KERNEL; k++)
        if ((o - k) % STRIDE == 0 && o >= k && (o - k) / STRIDE < INPUT)
            for (int ci = 0; ci < small->in; ci++)
                sum += data_at(ci, (o - k) / STRIDE) * filter_at(ci, co, k);
    return sum;
}

/* Writes `value`, 0, 1 or 2, as element number `index`. */
static void put(tconv_type type, void *tensor, int index, int value)
{
    static const float single[] = {0, 1, 2};
    static const uint16_t half[] = {0, 0x3c00, 0x4000}, brain[] = {0, 0x3f80, 0x4000};
    const uint8_t byte = (uint8_t)value;
    const void *from = type == TCONV_F32    ? (const void *)&single[value]
                       : type == TCONV_F16  ? (const void *)&half[value]
                       : type == TCONV_BF16 ? (const void *)&brain[value]
                                            : (const void *)&byte;
    const size_t size = tconv_type_size(type);
    memcpy((char *)tensor + (size_t)index * size, from, size);
}

/* What a probe holds. Every member may be missing after an error. */
struct probe {
    tconv_plan *plan;
    tconv_packed_filter *filter;
    cl_command_queue queue;
    cl_mem data, weights, output;
};

static tconv_status copied(const tconv_device *device, size_t bytes, void *session, cl_mem *memory,
                           tconv_error *error)
{
    cl_int code;
    *memory =
        clCreateBuffer(tconv_device_context(device), CL_MEM_COPY_HOST_PTR, bytes, session, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    *memory = NULL;
    return tconv_fail_opencl(error, code, "clCreateBuffer", "creating a buffer of %zu bytes",
                             bytes);
}

static tconv_status make_queue(const tconv_device *device, cl_command_queue *queue,
                               tconv_error *error)
{
    cl_int code;
    *queue =
        clCreateCommandQueue(tconv_device_context(device), tconv_device_id_of(device), 0, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    *queue = NULL;
    return tconv_fail_opencl(error, code, "clCreateCommandQueue", "creating a queue");
}

static tconv_status read_back(const struct probe *p, void *output, size_t bytes, tconv_error *error)
{
    const cl_int code =
        clEnqueueReadBuffer(p->queue, p->output, CL_TRUE, 0, bytes, output, 0, NULL, NULL);
    if (code == CL_SUCCESS) return TCONV_OK;
    return tconv_fail_opencl(error, code, "clEnqueueReadBuffer",
                             "reading a small problem's result");
}

static bool output_is_right(const struct small *small, bool floating, const int32_t *output)
{
    for (int co = 0; co < small->out; co++)
        for (int o = 0; o < OUTPUT; o++) {
            const int32_t *computed = &output[small->last ? o * small->out + co : co * OUTPUT + o];
            const int wanted = output_at(small, co, o);
            float single;
            memcpy(&single, computed, sizeof single);
            if (floating ? single != (float)wanted : *computed != wanted) return false;
        }
    return true;
}

static tconv_status make_named(tconv_plan *plan, const char *name, tconv_error *error)
{
    struct tconv_candidate candidate;
    struct tconv_reason reason = {""};
    if (tconv_pattern_read(name, &plan->pattern, &reason) &&
        tconv_choose(&plan->request, &plan->pattern, 0, &candidate, &reason))
        return tconv_plan_make(plan, &candidate, error);
    return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                      "algorithm %.60s does not take this problem: %s", name, reason.text);
}

static tconv_status compute(struct probe *p, tconv_device *device, const struct small *small,
                            const tconv_problem *problem, const char *tile, bool *right,
                            tconv_error *error)
{
    char data[4 * MOST_IN * INPUT] = {0}, weights[4 * MOST_IN * MOST_OUT * KERNEL] = {0};
    int32_t output[MOST_OUT * OUTPUT];
    for (int ci = 0; ci < small->in; ci++) {
        for (int x = 0; x < INPUT; x++)
            put(problem->data_type, data, small->last ? x * small->in + ci : ci * INPUT + x,
                data_at(ci, x));
        for (int co = 0; co < small->out; co++)
            for (int k = 0; k < KERNEL; k++)
                put(problem->filter_type, weights, (ci * small->out + co) * KERNEL + k,
                    filter_at(ci, co, k));
    }
    memset(output, 0xff, sizeof output);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.math = TCONV_MATH_FAST;
    tconv_args args = TCONV_ARGS_INIT;
    tconv_status status;
    if ((status = tconv_plan_begin(device, problem, &options, &p->plan, error)) != TCONV_OK ||
        (status = make_named(p->plan, tile, error)) != TCONV_OK ||
        (status = tconv_packed_filter_create(p->plan, NULL, 0, &p->filter, error)) != TCONV_OK ||
        (status = make_queue(device, &p->queue, error)) != TCONV_OK ||
        (status = copied(device, sizeof data, data, &p->data, error)) != TCONV_OK ||
        (status = copied(device, sizeof weights, weights, &p->weights, error)) != TCONV_OK ||
        (status = copied(device, sizeof output, output, &p->output, error)) != TCONV_OK)
        return status;
    args.filter = p->filter;
    args.data.memory = p->data;
    args.output.memory = p->output;
    if ((status = tconv_packed_filter_enqueue_pack(p->filter, p->queue, p->weights, 0, 0, NULL,
                                                   NULL, error)) != TCONV_OK ||
        (status = tconv_plan_enqueue(p->plan, p->queue, &args, 0, NULL, NULL, error)) != TCONV_OK ||
        (status = read_back(p, output, sizeof output, error)) != TCONV_OK)
        return status;
    *right = output_is_right(small, tconv_type_is_floating(problem->data_type), output);
    return TCONV_OK;
}

static void free_probe(struct probe *p)
{
    if (p->queue != NULL) clFinish(p->queue);
    const cl_mem buffers[] = {p->data, p->weights, p->output};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    tconv_packed_filter_release(p->filter);
    if (p->queue != NULL) clReleaseCommandQueue(p->queue);
    tconv_plan_release(p->plan);
}

static tconv_status run_one(tconv_device *device, const struct small *small, tconv_type data_type,
                            tconv_type filter_type, const char *tile, bool *right,
                            tconv_error *error)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.operation = TCONV_ONEAPI_CONV_BACKPROP;
    problem.data_format = small->last ? TCONV_NXC : TCONV_NCX;
    problem.filter_format = TCONV_OIX;
    problem.data_type = data_type;
    problem.filter_type = filter_type;
    problem.output_type = tconv_type_is_floating(data_type) ? TCONV_F32 : TCONV_I32;
    problem.data = small->last ? (tconv_shape){3, {1, INPUT, small->in}}
                               : (tconv_shape){3, {1, small->in, INPUT}};
    problem.filter = (tconv_shape){3, {small->in, small->out, KERNEL}};
    problem.strides = (tconv_list){1, {STRIDE}};
    struct probe p = {NULL, NULL, NULL, NULL, NULL, NULL};
    const tconv_status status = compute(&p, device, small, &problem, tile, right, error);
    free_probe(&p);
    return status;
}

/* A tile's text without its last parameters, which divide the input channels. */
enum { TILE_BYTES = TCONV_TILE_TEXT + 40 };
static void undivided(const char *tile, char text[TILE_BYTES])
{
    snprintf(text, TILE_BYTES, "%s", tile);
    char *divided = strstr(text, " split=");
    if (divided != NULL) *divided = '\0';
}

tconv_status tconv_probe_run(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                             const char *tile, bool *right, tconv_error *error)
{
    char text[TILE_BYTES];
    undivided(tile, text);
    int taken = 0;
    tconv_error refusal = {TCONV_OK, 0, ""};
    *right = true;
    for (size_t i = 0; i < sizeof small_problems / sizeof *small_problems && *right; i++) {
        tconv_error own;
        const tconv_status status =
            run_one(device, &small_problems[i], data_type, filter_type, text, right, &own);
        if (status == TCONV_OK)
            taken++;
        else if (status == TCONV_ERROR_ALGORITHM)
            refusal = own;
        else {
            if (error != NULL) *error = own;
            return status;
        }
    }
    if (taken == 0 && error != NULL) *error = refusal;
    return taken == 0 ? refusal.status : TCONV_OK;
}

/* The words that are multiplied: the extremes that they may hold, and others. */
enum { PROBE_WORDS = 4, MOST_LANES = 16 }; /* the first as in cl/cpu/parts/words_probe.cl */

static uint32_t probe_data(bool floating, int word, int i)
{
    static const uint32_t brains[PROBE_WORDS] = {0x3f80c000, 0x4000bf80, 0x42ff0000, 0x404043ab};
    static const uint32_t quads[PROBE_WORDS] = {0xffffffff, 0x80ff017f, 0x00010203, 0xfffefdfc};
    static const uint32_t pairs[PROBE_WORDS] = {0xff01ff01, 0x00ffff01, 0x000300fa, 0xfffe00ff};
    return floating ? brains[i] : word == 4 ? quads[i] : pairs[i];
}

static uint32_t probe_weights(bool floating, int word, int i, int lane)
{
    static const uint32_t brains[] = {0x3f804000, 0xc2fe4040, 0x00003f00, 0x41d0be80, 0xbf803f80};
    static const uint32_t quads[] = {0x80808080, 0x7f7f7f7f, 0x807f01ff, 0x10e02030, 0x00000080};
    static const uint32_t pairs[] = {0xff01ff01, 0x00ff00ff, 0xff0100ff, 0x00030007, 0x0000ff80};
    return (floating ? brains : word == 4 ? quads : pairs)[(i * 3 + lane) % 5];
}

static uint32_t probe_start(bool floating, int lane)
{
    return floating ? 0x41200000u : 0x7fffff00u + (uint32_t)lane * 0x1000001u;
}

/* A number of a word, of `bits` bits, with its sign. */
static int32_t signed_number(uint32_t word, int bits, int i)
{
    const uint32_t number = word >> bits * i & ((1u << bits) - 1);
    return (int32_t)number - (number >> (bits - 1) != 0 ? 1 << bits : 0);
}

static uint32_t probe_sum(int word, int lane)
{
    const int bits = 32 / word;
    uint32_t sum = probe_start(false, lane);
    for (int i = 0; i < PROBE_WORDS; i++)
        for (int n = 0; n < word; n++) {
            const uint32_t data = probe_data(false, word, i);
            const int32_t x = word == 4 ? (int32_t)(data >> 8 * n & 0xff)
                                        : signed_number(data, bits, n);
            sum += (uint32_t)(x * signed_number(probe_weights(false, word, i, lane), bits, n));
        }
    return sum;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The same for bf16: a sum that no order of additions rounds. */
static float probe_float_sum(int lane)
{
    float sum = float_of(probe_start(true, lane));
    for (int i = 0; i < PROBE_WORDS; i++)
        for (int n = 0; n < 2; n++)
            sum += float_of(probe_data(true, 2, i) >> 16 * n << 16) *
                   float_of(probe_weights(true, 2, i, lane) >> 16 * n << 16);
    return sum;
}

/* A number in the middle between two elements of bf16 becomes the even one. */
static uint16_t rounded_to_bf16(uint32_t bits)
{
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static bool sum_is_right(bool floating, int word, int lane, uint32_t sum, uint16_t rounded)
{
    return floating ? float_of(sum) == probe_float_sum(lane) && rounded == rounded_to_bf16(sum)
                    : sum == probe_sum(word, lane);
}

static tconv_status enqueue_words(const struct probe *p, cl_program program, tconv_error *error)
{
    const size_t one = 1;
    const char *call = "clCreateKernel";
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, "tconv_words_probe", &code);
    if (code == CL_SUCCESS) {
        call = "clSetKernelArg";
        code = clSetKernelArg(kernel, 0, sizeof p->output, &p->output);
    }
    if (code == CL_SUCCESS) {
        call = "clEnqueueNDRangeKernel";
        code = clEnqueueNDRangeKernel(p->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    }
    if (kernel != NULL) clReleaseKernel(kernel);
    if (code == CL_SUCCESS) return TCONV_OK;
    return tconv_fail_opencl(error, code, call, "trying the processor's dot products");
}

static tconv_status run_words(struct probe *p, tconv_device *device, tconv_type type, int word,
                              bool *right, tconv_error *error)
{
    const tconv_device_info *info = tconv_device_properties(device);
    const int lanes = info->vector_width < MOST_LANES ? (int)info->vector_width : MOST_LANES;
    uint32_t numbers[PROBE_WORDS + (PROBE_WORDS + 2) * MOST_LANES] = {0};
    uint16_t rounded[MOST_LANES];
    uint32_t *weights = numbers + PROBE_WORDS, *sums = weights + PROBE_WORDS * lanes;
    const bool floating = tconv_type_is_floating(type);
    char options[300];
    cl_program program = NULL;
    tconv_status status;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 %s -DPACKED=u32 -DQUANTIZED=0 -DRAW=0 -DUSE_FMA=0 -DWORD=%d -DDOTS=%d "
             "-DVW=%d",
             floating ? "-DDATA=bf16 -DFILTER=bf16 -DOUTPUT=f32 -DBIAS_TYPE=f32 -DACC=float "
                        "-DRESULT=float"
                      : "-DDATA=u8 -DFILTER=i8 -DOUTPUT=i32 -DBIAS_TYPE=i32 -DACC=uint "
                        "-DRESULT=uint",
             word, tconv_dots(info, type), lanes);
    for (int i = 0; i < PROBE_WORDS; i++) {
        numbers[i] = probe_data(floating, word, i);
        for (int lane = 0; lane < lanes; lane++)
            weights[i * lanes + lane] = probe_weights(floating, word, i, lane);
    }
    for (int lane = 0; lane < lanes; lane++) sums[lane] = probe_start(floating, lane);
    if ((status = tconv_device_program(device, "cpu/parts/words_probe.cl", options, &program,
                                       error)) != TCONV_OK)
        return status;
    if ((status = make_queue(device, &p->queue, error)) == TCONV_OK &&
        (status = copied(device, sizeof numbers, numbers, &p->output, error)) == TCONV_OK &&
        (status = enqueue_words(p, program, error)) == TCONV_OK)
        status = read_back(p, numbers, sizeof numbers, error);
    clReleaseProgram(program);
    memcpy(rounded, sums + lanes, (size_t)lanes * sizeof *rounded);
    *right = true;
    for (int lane = 0; lane < lanes; lane++)
        *right = *right && sum_is_right(floating, word, lane, sums[lane], rounded[lane]);
    return status;
}

/* Keeps the verdict. Returns an error unless it is the kernel's own. */
static tconv_status keep_verdict(atomic_int *verdict, tconv_status status, const tconv_error *own,
                                 bool *right, tconv_error *error)
{
    if (status != TCONV_OK && !tconv_kernel_is_unfit(own)) {
        if (error != NULL) *error = *own;
        return status;
    }
    *right = status == TCONV_OK && *right;
    atomic_store(verdict, *right ? 1 : -1);
    return TCONV_OK;
}

tconv_status tconv_probe_words(tconv_device *device, tconv_type type, int word, bool *right,
                               tconv_error *error)
{
    /* Which type of bytes does not matter. */
    atomic_int *verdict = tconv_device_verdict(device, type == TCONV_BF16 ? "words of bf16"
                                                       : word == 4        ? "words of 4 bytes"
                                                                          : "words of 2 bytes");
    if (verdict == NULL)
        return tconv_fail_memory(error, sizeof *verdict, "trying the processor's dot products");
    const int known = atomic_load(verdict);
    *right = known > 0;
    if (known != 0) return TCONV_OK;
    struct probe p = {NULL, NULL, NULL, NULL, NULL, NULL};
    tconv_error own;
    const tconv_status status = run_words(&p, device, type, word, right, &own);
    free_probe(&p);
    return keep_verdict(verdict, status, &own, right, error);
}

tconv_status tconv_probe_matrix(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                                const char *tile, bool *right, tconv_error *error)
{
    char text[TILE_BYTES], probe[TILE_BYTES + 40];
    undivided(tile, text);
    snprintf(probe, sizeof probe, "%s x %s %s", tconv_type_name(data_type),
             tconv_type_name(filter_type), text);
    atomic_int *verdict = tconv_device_verdict(device, probe);
    if (verdict == NULL) return tconv_fail_memory(error, sizeof probe, "trying a matrix unit");
    const int known = atomic_load(verdict);
    *right = known > 0;
    if (known != 0) return TCONV_OK;
    tconv_error own;
    tconv_status status = tconv_probe_run(device, data_type, filter_type, tile, right, &own);
    if (status == TCONV_ERROR_ALGORITHM) /* a tile for other problems only: another has to do */
        status = tconv_probe_run(device, data_type, filter_type, "matrix_group", right, &own);
    return keep_verdict(verdict, status, &own, right, error);
}
