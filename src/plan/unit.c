/* SPDX-License-Identifier: Apache-2.0 */
/* Decides whether a plan may use the unit of its device. A probe tests the unit once for each pair
 * of element types and tile: it computes small problems with known results, those of a matrix unit
 * by the algorithm that uses it, those of a CPU's dot products by a kernel of their own. */
#include "plan/unit.h"

#include "base/element_types.h"
#include "base/error.h"
#include "common/words_probe.h"
#include "plan/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- matrix units: plans for small problems ---- */

/* The problems have one axis, and numbers that no type rounds. In the second problem channels are
 * last and fill whole units of 16 bytes, which kernels copy in another way. The third one is for
 * units whose tiles are so high and wide that the others leave most of a tile empty: it has several
 * tiles, and more stages than local memory. */
enum { KERNEL = 3, STRIDE = 2 };
static const struct small {
    int in, out, input; /* channels and points */
    bool last, large;
} small_problems[] = {
    {37, 19, 21, false, false}, {48, 16, 21, true, false}, {160, 264, 140, true, true}};

static int outputs_of(const struct small *small)
{
    return STRIDE * (small->input - 1) + KERNEL;
}

/* True for a device with a unit that is probed by a trial first. */
static bool has_trial(const tconv_device *device)
{
    return tconv_unit_behind(device->info.matrix_unit) != TCONV_MATRIX_NONE;
}

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
        if ((o - k) % STRIDE == 0 && o >= k && (o - k) / STRIDE < small->input)
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

static bool output_is_right(const struct small *small, bool floating, const int32_t *output)
{
    const int outputs = outputs_of(small);
    for (int co = 0; co < small->out; co++)
        for (int o = 0; o < outputs; o++) {
            const int32_t *computed = &output[small->last ? o * small->out + co : co * outputs + o];
            const int wanted = output_at(small, co, o);
            float single;
            memcpy(&single, computed, sizeof single);
            if (floating ? single != (float)wanted : *computed != wanted) return false;
        }
    return true;
}

/* Makes the algorithm or tile that is called so. */
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

/* Where a small problem's tensors are on the host. */
struct tensors {
    char *data, *weights;
    int32_t *output;
};

/* Computes a small problem with a plan that has begun. */
static tconv_status compute(tconv_plan *plan, const struct small *small, const char *tile,
                            const struct tensors *tensors, struct tconv_scratch *scratch,
                            tconv_packed_filter **filter, bool *right, tconv_error *error)
{
    const tconv_problem *problem = &plan->problem;
    char *data = tensors->data, *weights = tensors->weights;
    int32_t *output = tensors->output;
    const struct tconv_contents contents = {data, weights, output};
    tconv_status status;
    for (int ci = 0; ci < small->in; ci++) {
        for (int x = 0; x < small->input; x++)
            put(problem->data_type, data, small->last ? x * small->in + ci : ci * small->input + x,
                data_at(ci, x));
        for (int co = 0; co < small->out; co++)
            for (int k = 0; k < KERNEL; k++)
                put(problem->filter_type, weights, (ci * small->out + co) * KERNEL + k,
                    filter_at(ci, co, k));
    }
    memset(output, 0xff, (size_t)plan->geometry.output_bytes);
    if ((status = make_named(plan, tile, error)) != TCONV_OK ||
        (status = tconv_scratch_make(plan, &contents, scratch, error)) != TCONV_OK ||
        (status = tconv_scratch_pack(scratch, plan, filter, error)) != TCONV_OK)
        return status;
    if (tconv_scratch_run(scratch, plan, *filter, 1, error) < 0) return error->status;
    const cl_int code = clEnqueueReadBuffer(scratch->queue, scratch->output, CL_TRUE, 0,
                                            (size_t)plan->geometry.output_bytes, output, 0, NULL,
                                            NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clEnqueueReadBuffer",
                                 "reading a small problem's result");
    *right = output_is_right(small, tconv_type_is_floating(problem->data_type), output);
    return TCONV_OK;
}

/* The same with memory for the tensors. */
static tconv_status compute_anywhere(tconv_plan *plan, const struct small *small, const char *tile,
                                     struct tconv_scratch *scratch, tconv_packed_filter **filter,
                                     bool *right, tconv_error *error)
{
    const size_t data = (size_t)plan->geometry.data_bytes,
                 weights = (size_t)plan->geometry.filter_bytes,
                 output = (size_t)plan->geometry.output_bytes;
    const struct tensors tensors = {calloc(data, 1), calloc(weights, 1), malloc(output)};
    const tconv_status status =
        tensors.data == NULL || tensors.weights == NULL || tensors.output == NULL
            ? tconv_fail_memory(error, data + weights + output, "a small problem's tensors")
            : compute(plan, small, tile, &tensors, scratch, filter, right, error);
    free(tensors.data);
    free(tensors.weights);
    free(tensors.output);
    return status;
}

static tconv_status run_one(tconv_device *device, const struct small *small, tconv_type data_type,
                            tconv_type filter_type, const char *tile, struct tconv_retry *retry,
                            bool *right, tconv_error *error)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.operation = TCONV_ONEAPI_CONV_BACKPROP;
    problem.data_format = small->last ? TCONV_NXC : TCONV_NCX;
    problem.filter_format = TCONV_OIX;
    problem.data_type = data_type;
    problem.filter_type = filter_type;
    problem.output_type = tconv_type_is_floating(data_type) ? TCONV_F32 : TCONV_I32;
    problem.data = small->last ? (tconv_shape){3, {1, small->input, small->in}}
                               : (tconv_shape){3, {1, small->in, small->input}};
    problem.filter = (tconv_shape){3, {small->in, small->out, KERNEL}};
    problem.strides = (tconv_list){1, {STRIDE}};
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.math = TCONV_MATH_FAST;
    tconv_plan *plan;
    tconv_status status = tconv_plan_begin(device, &problem, &options, &plan, error);
    if (status != TCONV_OK) return status;
    struct tconv_scratch scratch = {.queue = NULL};
    tconv_packed_filter *filter = NULL;
    plan->retry = *retry;
    status = compute_anywhere(plan, small, tile, &scratch, &filter, right, error);
    *retry = plan->retry;
    tconv_scratch_free(&scratch);
    tconv_packed_filter_release(filter);
    tconv_plan_release(plan);
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
                             const char *tile, struct tconv_retry *retry, bool *right,
                             tconv_error *error)
{
    char text[TILE_BYTES];
    undivided(tile, text);
    int taken = 0;
    *right = true;
    for (size_t i = 0; i < sizeof small_problems / sizeof *small_problems && *right; i++) {
        if (small_problems[i].large && !has_trial(device)) continue;
        const tconv_status status =
            run_one(device, &small_problems[i], data_type, filter_type, text, retry, right, error);
        if (status != TCONV_OK && status != TCONV_ERROR_ALGORITHM) return status;
        taken += status == TCONV_OK;
    }
    return taken == 0 ? TCONV_ERROR_ALGORITHM : TCONV_OK;
}

/* ---- dot products of CPUs: one kernel ---- */

enum { MOST_LANES = 16 };

/* The words that are multiplied: the extremes that they may hold, and others. */
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

/* What the kernel reads and writes: data, weights, then sums and these rounded to bf16. */
struct numbers {
    uint32_t word[PROBE_WORDS + (PROBE_WORDS + 2) * MOST_LANES];
};

/* Runs the kernel on the numbers. Returns OpenCL's code, and the call that returned it. */
static cl_int run_kernel(const tconv_device *device, cl_program program, struct numbers *numbers,
                         const char **call)
{
    const size_t one = 1;
    cl_int code;
    cl_mem memory = NULL;
    cl_kernel kernel = NULL;
    *call = "clCreateCommandQueue";
    cl_command_queue queue = clCreateCommandQueue(device->context, device->id, 0, &code);
    if (code != CL_SUCCESS) return code;
    *call = "clCreateBuffer";
    memory = clCreateBuffer(device->context, CL_MEM_COPY_HOST_PTR, sizeof *numbers, numbers, &code);
    if (code == CL_SUCCESS) {
        *call = "clCreateKernel";
        kernel = clCreateKernel(program, "tconv_words_probe", &code);
    }
    if (code == CL_SUCCESS) {
        *call = "clSetKernelArg";
        code = clSetKernelArg(kernel, 0, sizeof memory, &memory);
    }
    if (code == CL_SUCCESS) {
        *call = "clEnqueueNDRangeKernel";
        code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    }
    if (code == CL_SUCCESS) {
        *call = "clEnqueueReadBuffer";
        code =
            clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof *numbers, numbers, 0, NULL, NULL);
    }
    if (kernel != NULL) clReleaseKernel(kernel);
    if (memory != NULL) clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    return code;
}

static tconv_status run_words(tconv_device *device, tconv_type type, int word,
                              struct tconv_retry *retry, bool *right, tconv_error *error)
{
    const tconv_device_info *info = &device->info;
    const int lanes = info->vector_width < MOST_LANES ? (int)info->vector_width : MOST_LANES;
    struct numbers numbers = {{0}};
    uint16_t rounded[MOST_LANES];
    uint32_t *weights = numbers.word + PROBE_WORDS, *sums = weights + PROBE_WORDS * lanes;
    const bool floating = tconv_type_is_floating(type);
    char key[300];
    cl_program program = NULL;
    snprintf(key, sizeof key,
             "cpu/parts/words_probe.cl -cl-std=CL1.2 %s -DPACKED=u32 -DQUANTIZED=0 -DRAW=0 "
             "-DUSE_FMA=0 -DWORD=%d -DDOTS=%d -DVW=%d",
             floating ? "-DDATA=bf16 -DFILTER=bf16 -DOUTPUT=f32 -DBIAS_TYPE=f32 -DACC=float "
                        "-DRESULT=float"
                      : "-DDATA=u8 -DFILTER=i8 -DOUTPUT=i32 -DBIAS_TYPE=i32 -DACC=uint "
                        "-DRESULT=uint",
             word, tconv_dots(info, type), lanes);
    for (int i = 0; i < PROBE_WORDS; i++) {
        numbers.word[i] = probe_data(floating, word, i);
        for (int lane = 0; lane < lanes; lane++)
            weights[i * lanes + lane] = probe_weights(floating, word, i, lane);
    }
    for (int lane = 0; lane < lanes; lane++) sums[lane] = probe_start(floating, lane);
    const tconv_status status = tconv_device_program(device, key, retry, &program, error);
    if (status != TCONV_OK) return status;
    const char *call;
    const cl_int code = run_kernel(device, program, &numbers, &call);
    clReleaseProgram(program);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, call, "trying the processor's dot products");
    memcpy(rounded, sums + lanes, (size_t)lanes * sizeof *rounded);
    *right = true;
    for (int lane = 0; lane < lanes; lane++)
        *right = *right && sum_is_right(floating, word, lane, sums[lane], rounded[lane]);
    return TCONV_OK;
}

/* ---- verdicts ---- */

atomic_int *tconv_device_verdict(tconv_device *device, const char *probe)
{
    pthread_mutex_lock(&device->lock);
    struct tconv_verdict *verdict = device->verdicts;
    while (verdict != NULL && strcmp(verdict->probe, probe) != 0) verdict = verdict->next;
    if (verdict == NULL && (verdict = malloc(sizeof *verdict + strlen(probe) + 1)) != NULL) {
        atomic_init(&verdict->right, 0);
        strcpy(verdict->probe, probe);
        verdict->next = device->verdicts;
        device->verdicts = verdict;
    }
    pthread_mutex_unlock(&device->lock);
    return verdict == NULL ? NULL : &verdict->right;
}

/* What a probe asks. */
struct question {
    tconv_type data_type, filter_type;
    int word;         /* channels of a word; 0: a matrix unit */
    const char *tile; /* of a matrix unit */
};

static tconv_status run_probe(tconv_device *device, const struct question *q,
                              struct tconv_retry *retry, bool *right, tconv_error *error)
{
    if (q->word != 0) return run_words(device, q->data_type, q->word, retry, right, error);
    char algorithm[TILE_BYTES];
    const tconv_status status =
        tconv_probe_run(device, q->data_type, q->filter_type, q->tile, retry, right, error);
    if (status != TCONV_ERROR_ALGORITHM) return status;
    /* A tile for other problems only: another has to do. */
    snprintf(algorithm, sizeof algorithm, "%.*s", (int)strcspn(q->tile, " "), q->tile);
    return tconv_probe_run(device, q->data_type, q->filter_type, algorithm, retry, right, error);
}

/* True if the error of a probe is the kernel's own. One that takes more local memory than OpenCL
 * reports may lack resources when it is launched. */
static bool is_unfit(const tconv_device *device, const tconv_error *error)
{
    return tconv_kernel_is_unfit(error) ||
           (has_trial(device) && error->opencl_code == CL_OUT_OF_RESOURCES);
}

/* Runs a probe, unless the device has its verdict. An error that is not the kernel's own is
 * returned. If a program did not build that may build later, no verdict is kept. */
static tconv_status ask(tconv_device *device, const char *name, const struct question *q,
                        struct tconv_retry *retry, bool *right, tconv_error *error)
{
    atomic_int *verdict = tconv_device_verdict(device, name);
    if (verdict == NULL)
        return tconv_fail_memory(error, strlen(name) + 1, "keeping the verdict of a probe");
    const int known = atomic_load(verdict);
    *right = known > 0;
    if (known != 0) return TCONV_OK;
    struct tconv_retry its = {.begun = retry->begun, .insist = retry->insist};
    const tconv_status status = run_probe(device, q, &its, right, error);
    tconv_retry_join(retry, &its);
    if (status != TCONV_OK && !is_unfit(device, error)) return status;
    *right = status == TCONV_OK && *right;
    if (status == TCONV_OK || !its.unsure) atomic_store(verdict, *right ? 1 : -1);
    return TCONV_OK;
}

tconv_status tconv_probe_words(tconv_device *device, tconv_type type, int word,
                               struct tconv_retry *retry, bool *right, tconv_error *error)
{
    /* Which type of bytes does not matter. */
    const char *name = type == TCONV_BF16 ? "words of bf16"
                       : word == 4        ? "words of 4 bytes"
                                          : "words of 2 bytes";
    return ask(device, name, &(struct question){.data_type = type, .word = word}, retry, right,
               error);
}

tconv_status tconv_probe_matrix(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                                const char *tile, struct tconv_retry *retry, bool *right,
                                tconv_error *error)
{
    char text[TILE_BYTES], name[TILE_BYTES + 40];
    undivided(tile, text);
    snprintf(name, sizeof name, "%s x %s %s", tconv_type_name(data_type),
             tconv_type_name(filter_type), text);
    return ask(device, name, &(struct question){data_type, filter_type, 0, text}, retry, right,
               error);
}

/* ---- the plan's unit ---- */

/* Probes a tile of the matrix unit. */
static tconv_status probe_tile(tconv_plan *plan, const struct tconv_candidate *candidate,
                               bool *right, tconv_error *error)
{
    const tconv_type data = plan->loops.data_type;
    char text[TCONV_TILE_TEXT + 40], tile[TCONV_TILE_TEXT];
    tconv_tile_text(candidate, tile, sizeof tile);
    snprintf(text, sizeof text, "%s %s", candidate->algorithm->name, tile);
    return tconv_probe_matrix(plan->device, data, tconv_weight_type(data, plan->loops.filter_type),
                              text, &plan->retry, right, error);
}

/* What a candidate's probes say. */
enum finding { RIGHT, WRONG_TILE, WRONG_UNIT };

/* Probes the trial of a unit that has one, then the candidate's own tile. A trial that failed, in
 * any types, is not tried again on this device. */
static tconv_status probe_after_trial(tconv_plan *plan, const struct tconv_candidate *candidate,
                                      const struct tconv_candidate_unit *unit,
                                      enum finding *finding, tconv_error *error)
{
    bool right = false;
    struct tconv_candidate trial = *candidate;
    atomic_int *failed = tconv_device_verdict(plan->device, "trials");
    *finding = WRONG_UNIT;
    if (failed == NULL)
        return tconv_fail_memory(error, sizeof *failed, "keeping the verdict of a probe");
    if (atomic_load(failed) < 0) return TCONV_OK;
    trial.tile = unit->trial;
    const bool unsure = plan->retry.unsure;
    plan->retry.unsure = false; /* whether the trial may yet pass */
    tconv_status status = probe_tile(plan, &trial, &right, error);
    if (status == TCONV_OK && !right && !plan->retry.unsure) atomic_store(failed, -1);
    plan->retry.unsure = plan->retry.unsure || unsure;
    if (status != TCONV_OK || !right) return status;
    if (!unit->is_trial) status = probe_tile(plan, candidate, &right, error);
    *finding = right ? RIGHT : WRONG_TILE;
    return status;
}

static tconv_status test_candidate(tconv_plan *plan, const struct tconv_candidate *candidate,
                                   enum finding *finding, tconv_error *error)
{
    bool right = true;
    tconv_status status = TCONV_OK;
    struct tconv_candidate_unit unit;
    switch (tconv_unit_use(candidate->algorithm, &plan->request)) {
    case TCONV_USES_NO_UNIT: break;
    case TCONV_USES_WORDS:
        status = tconv_probe_words(plan->device, plan->loops.data_type,
                                   tconv_word_channels(&plan->request), &plan->retry, &right,
                                   error);
        break;
    case TCONV_USES_MATRIX:
        unit = tconv_candidate_unit(&plan->request, candidate);
        if (unit.has_trial) return probe_after_trial(plan, candidate, &unit, finding, error);
        status = probe_tile(plan, candidate, &right, error);
        break;
    }
    *finding = right ? RIGHT : WRONG_UNIT;
    return status;
}

tconv_status tconv_plan_test_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                  bool *right, tconv_error *error)
{
    enum finding finding = WRONG_UNIT;
    const tconv_status status = test_candidate(plan, candidate, &finding, error);
    *right = finding == RIGHT;
    return status;
}

bool tconv_plan_refuse_tile(tconv_plan *plan, const struct tconv_candidate *candidate)
{
    if (tconv_unit_use(candidate->algorithm, &plan->request) != TCONV_USES_MATRIX) return false;
    const struct tconv_candidate_unit unit = tconv_candidate_unit(&plan->request, candidate);
    if (unit.has_trial) plan->request.refused_tiles |= unit.tile;
    return unit.has_trial;
}

tconv_status tconv_plan_settle_unit(tconv_plan *plan, const struct tconv_candidate *candidate,
                                    bool *lost, tconv_error *error)
{
    enum finding finding = WRONG_UNIT;
    const tconv_status status = test_candidate(plan, candidate, &finding, error);
    *lost = status == TCONV_OK && finding != RIGHT;
    if (status != TCONV_OK) {
        const tconv_error own = *error;
        snprintf(error->message, sizeof error->message,
                 "trying the device's matrix unit, which TCONV_CL_MATRIX=off leaves alone: %.800s",
                 own.message);
    }
    if (!*lost) return status;
    const bool needed = tconv_unit_use(candidate->algorithm, &plan->request) == TCONV_USES_MATRIX;
    const struct tconv_candidate_unit unit = tconv_candidate_unit(&plan->request, candidate);
    if (needed && unit.has_trial) { /* the algorithm has other tiles */
        if (finding == WRONG_UNIT)
            plan->info.matrix_unit = tconv_unit_behind(unit.unit);
        else
            plan->request.refused_tiles |= unit.tile;
        tconv_trace_passed_over(plan, candidate,
                                "small problems came out wrong with this tile, or its kernels do "
                                "not build or run");
        return TCONV_OK;
    }
    plan->info.matrix_unit = TCONV_MATRIX_NONE;
    if (!needed) return TCONV_OK;
    return tconv_plan_pass_over(
        plan, candidate,
        "the device's matrix unit is not used: small problems of these element types came out "
        "wrong, or their kernels do not build or run",
        error);
}

/* Settles the unit for the tiles of an algorithm that a search may time, and once more for others
 * if one of them is lost. */
static tconv_status settle_tiles(tconv_plan *plan, const struct tconv_algorithm *algorithm,
                                 tconv_error *error)
{
    tconv_status status = TCONV_OK;
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    for (bool lost = true; lost && status == TCONV_OK;) {
        lost = false;
        if (tconv_unit_use(algorithm, &plan->request) == TCONV_USES_NO_UNIT ||
            !tconv_enumerate(algorithm, &plan->request, NULL, &candidates, &reason))
            break;
        for (int c = 0;
             c < candidates.count && c < TCONV_MOST_TIMED_TILES && !lost && status == TCONV_OK; c++)
            status = tconv_plan_settle_unit(plan, &candidates.list[c], &lost, error);
    }
    return status;
}

tconv_status tconv_plan_settle_units(tconv_plan *plan, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    for (int i = 0; status == TCONV_OK && tconv_algorithm_at(i) != NULL; i++)
        status = settle_tiles(plan, tconv_algorithm_at(i), error);
    return status;
}
