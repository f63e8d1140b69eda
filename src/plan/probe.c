/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/probe.h"

#include "base/error.h"
#include "device/device_internal.h"

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

/* Writes 0, 1 or 2 as element number `index`. */
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

/* What a probe holds; everything may be missing. */
struct probe {
    tconv_plan *plan;
    tconv_filter *filter;
    cl_command_queue queue;
    cl_mem data, weights, output;
};

static tconv_status copied(const tconv_device *device, size_t bytes, void *host, cl_mem *memory,
                           tconv_error *error)
{
    cl_int code;
    *memory =
        clCreateBuffer(tconv_device_context(device), CL_MEM_COPY_HOST_PTR, bytes, host, &code);
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
                            const tconv_problem *problem, const char *algorithm, bool *right,
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
        (status = make_named(p->plan, algorithm, error)) != TCONV_OK ||
        (status = tconv_filter_create(p->plan, NULL, 0, &p->filter, error)) != TCONV_OK ||
        (status = make_queue(device, &p->queue, error)) != TCONV_OK ||
        (status = copied(device, sizeof data, data, &p->data, error)) != TCONV_OK ||
        (status = copied(device, sizeof weights, weights, &p->weights, error)) != TCONV_OK ||
        (status = copied(device, sizeof output, output, &p->output, error)) != TCONV_OK)
        return status;
    args.filter = p->filter;
    args.data.memory = p->data;
    args.output.memory = p->output;
    if ((status = tconv_filter_enqueue_pack(p->filter, p->queue, p->weights, 0, 0, NULL, NULL,
                                            error)) != TCONV_OK ||
        (status = tconv_plan_enqueue(p->plan, p->queue, &args, 0, NULL, NULL, error)) != TCONV_OK ||
        (status = read_back(p, output, sizeof output, error)) != TCONV_OK)
        return status;
    *right = output_is_right(small, tconv_type_is_floating(problem->data_type), output);
    return TCONV_OK;
}

static tconv_status run_one(tconv_device *device, const struct small *small, tconv_type data_type,
                            tconv_type filter_type, const char *algorithm, bool *right,
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
    const tconv_status status = compute(&p, device, small, &problem, algorithm, right, error);
    if (p.queue != NULL) clFinish(p.queue);
    const cl_mem buffers[] = {p.data, p.weights, p.output};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i] != NULL) clReleaseMemObject(buffers[i]);
    tconv_filter_release(p.filter);
    if (p.queue != NULL) clReleaseCommandQueue(p.queue);
    tconv_plan_release(p.plan);
    return status;
}

tconv_status tconv_probe_run(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                             const char *algorithm, bool *right, tconv_error *error)
{
    tconv_status status = TCONV_OK;
    *right = true;
    for (size_t i = 0; i < sizeof small_problems / sizeof *small_problems && *right; i++) {
        status =
            run_one(device, &small_problems[i], data_type, filter_type, algorithm, right, error);
        if (status != TCONV_OK) break;
    }
    return status;
}

tconv_status tconv_probe_matrix(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                                bool *right, tconv_error *error)
{
    atomic_int *verdict = tconv_device_verdict(device, data_type, filter_type);
    int known = atomic_load(verdict);
    if (known == 0) {
        tconv_error own;
        const tconv_status status =
            tconv_probe_run(device, data_type, filter_type, "matrix_group", right, &own);
        if (status != TCONV_OK && !tconv_kernel_is_unfit(&own)) {
            if (error != NULL) *error = own;
            return status;
        }
        known = status == TCONV_OK && *right ? 1 : -1;
        atomic_store(verdict, known);
    }
    *right = known > 0;
    return TCONV_OK;
}
