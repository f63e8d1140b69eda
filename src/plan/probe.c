/* SPDX-License-Identifier: Apache-2.0 */
/* Tests a matrix unit by running plans for small problems: see probe.h. */
#include "plan/probe.h"
#include "plan/shares.h"

#include "base/error.h"
#include "plan/probe_parts.h"

#include <stdio.h>
#include <string.h>

/* The problems have one axis, and numbers that no type rounds. In the second problem channels are
 * last and fill whole units of 16 bytes, which kernels copy in another way. */
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

static tconv_status make_named(struct tconv_probe *p, const char *name, tconv_error *error)
{
    struct tconv_candidate candidate;
    struct tconv_reason reason = {""};
    tconv_plan *plan = p->plan;
    plan->retry = p->retry;
    if (tconv_pattern_read(name, &plan->pattern, &reason) &&
        tconv_choose(&plan->request, &plan->pattern, 0, &candidate, &reason)) {
        const tconv_status status = tconv_plan_make(plan, &candidate, error);
        p->retry = plan->retry;
        return status;
    }
    return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                      "algorithm %.60s does not take this problem: %s", name, reason.text);
}

static tconv_status compute(struct tconv_probe *p, tconv_device *device, const struct small *small,
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
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_status status;
    if ((status = tconv_plan_begin(device, problem, &options, &p->plan, error)) != TCONV_OK ||
        (status = make_named(p, tile, error)) != TCONV_OK ||
        (status = tconv_packed_filter_create(p->plan, NULL, &p->filter, error)) != TCONV_OK ||
        (status = tconv_probe_queue(device, &p->queue, error)) != TCONV_OK ||
        (status = tconv_probe_buffer(device, sizeof data, data, &p->data, error)) != TCONV_OK ||
        (status = tconv_probe_buffer(device, sizeof weights, weights, &p->weights, error)) !=
            TCONV_OK ||
        (status = tconv_probe_buffer(device, sizeof output, output, &p->output, error)) != TCONV_OK)
        return status;
    const uint64_t workspace = tconv_plan_workspace_bytes(p->plan);
    if (workspace > 0 && (status = tconv_probe_buffer(device, (size_t)workspace, NULL,
                                                      &p->workspace, error)) != TCONV_OK)
        return status;
    tensors.packed = p->filter;
    tensors.data.memory = p->data;
    tensors.output.memory = p->output;
    tensors.workspace.memory = p->workspace;
    if ((status = tconv_packed_filter_execute(p->filter, p->queue, NULL,
                                              &(tconv_tensor){.memory = p->weights}, error)) !=
            TCONV_OK ||
        (status = tconv_plan_execute(p->plan, p->queue, NULL, &tensors, NULL, error)) != TCONV_OK ||
        (status = tconv_probe_read(p, output, sizeof output, error)) != TCONV_OK)
        return status;
    *right = output_is_right(small, tconv_type_is_floating(problem->data_type), output);
    return TCONV_OK;
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
    problem.data = small->last ? (tconv_shape){3, {1, INPUT, small->in}}
                               : (tconv_shape){3, {1, small->in, INPUT}};
    problem.filter = (tconv_shape){3, {small->in, small->out, KERNEL}};
    problem.strides = (tconv_list){1, {STRIDE}};
    struct tconv_probe p = {.retry = *retry};
    const tconv_status status = compute(&p, device, small, &problem, tile, right, error);
    tconv_probe_clear(&p);
    *retry = p.retry;
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
    tconv_error refusal = {TCONV_OK, 0, ""};
    *right = true;
    for (size_t i = 0; i < sizeof small_problems / sizeof *small_problems && *right; i++) {
        tconv_error own;
        const tconv_status status =
            run_one(device, &small_problems[i], data_type, filter_type, text, retry, right, &own);
        if (status == TCONV_OK)
            taken++;
        else if (status == TCONV_ERROR_ALGORITHM)
            refusal = own;
        else
            return tconv_fail_with(error, &own);
    }
    return taken == 0 ? tconv_fail_with(error, &refusal) : TCONV_OK;
}

tconv_status tconv_probe_matrix(tconv_device *device, tconv_type data_type, tconv_type filter_type,
                                const char *tile, struct tconv_retry *retry, bool *right,
                                tconv_error *error)
{
    char text[TILE_BYTES], probe[TILE_BYTES + 40];
    undivided(tile, text);
    snprintf(probe, sizeof probe, "%s x %s %s", tconv_type_name(data_type),
             tconv_type_name(filter_type), text);
    bool known;
    atomic_int *verdict = tconv_probe_verdict(device, probe, &known, right, error);
    if (verdict == NULL) return TCONV_ERROR_HOST_MEMORY;
    if (known) return TCONV_OK;
    tconv_error own;
    struct tconv_retry its = {.begun = retry->begun, .insist = retry->insist};
    tconv_status status = tconv_probe_run(device, data_type, filter_type, tile, &its, right, &own);
    if (status == TCONV_ERROR_ALGORITHM) { /* a tile for other problems only: another has to do */
        text[strcspn(text, " ")] = '\0';
        status = tconv_probe_run(device, data_type, filter_type, text, &its, right, &own);
    }
    tconv_retry_join(retry, &its);
    return tconv_probe_keep(verdict, status, &own, &its, right, error);
}
