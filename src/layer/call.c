/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks the arguments of a call on a layer. */
#include "layer/call.h"

#include "base/error.h"
#include "base/struct_size.h"
#include "plan/place.h"

#include <stdlib.h>
#include <string.h>

const tconv_tensor *tconv_call_tensor(const tconv_tensors *tensors,
                                      enum tconv_epilogue_tensor which)
{
    switch (which) {
    case TCONV_EPILOGUE_BIAS: return &tensors->bias;
    case TCONV_EPILOGUE_SCALE: return &tensors->scale;
    case TCONV_EPILOGUE_SLOPE: return &tensors->slope;
    case TCONV_EPILOGUE_SLOPE2: return &tensors->slope2;
    case TCONV_EPILOGUE_RESIDUAL: return &tensors->residual;
    }
    return NULL;
}

/* Refuses a tensor with two places. That of a buffer and a pointer is checked where they are used.
 */
static tconv_status check_places(const tconv_tensors *tensors, tconv_error *error)
{
    const struct {
        const char *name;
        const tconv_tensor *tensor;
    } all[] = {{"data", &tensors->data},          {"filter", &tensors->filter},
               {"output", &tensors->output},      {"bias", &tensors->bias},
               {"scale", &tensors->scale},        {"slope", &tensors->slope},
               {"slope2", &tensors->slope2},      {"residual", &tensors->residual},
               {"workspace", &tensors->workspace}};
    if (tensors->packed != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.packed is given, but layers pack their filters: give "
                          "tensors.filter instead");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const tconv_tensor *t = all[i].tensor;
        if (t->host != NULL && (t->memory != NULL || t->pointer != NULL))
            return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                              "tensors.%s has both an array of the host, %p, and a %s, %p: set one "
                              "of them to NULL",
                              all[i].name, t->host, t->memory != NULL ? "buffer" : "pointer",
                              t->memory != NULL ? (const void *)t->memory : t->pointer);
    }
    return TCONV_OK;
}

/* Reads one structure. Most are as long as this version's: only others need the defaults. */
static tconv_status read(struct tconv_sized sized, const void *given, const void *defaults,
                         void *own, tconv_error *error)
{
    if (given == NULL || *(const size_t *)given < sized.size) memcpy(own, defaults, sized.size);
    return tconv_struct_read(sized, given, own, error);
}

tconv_status tconv_call_read(const tconv_problem *problem, const tconv_plan_options *options,
                             const tconv_tensors *tensors, const tconv_run *run,
                             struct tconv_call *call, tconv_error *error)
{
    static const tconv_problem no_problem = TCONV_PROBLEM_INIT;
    static const tconv_plan_options no_options = TCONV_PLAN_OPTIONS_INIT;
    static const tconv_tensors no_tensors = TCONV_TENSORS_INIT;
    static const tconv_run no_run = TCONV_RUN_INIT;
    tconv_status status;
    if (problem == NULL) return tconv_fail(error, TCONV_ERROR_ARGUMENT, "problem is NULL");
    if ((status = read(TCONV_SIZED_PROBLEM, problem, &no_problem, &call->problem, error)) !=
            TCONV_OK ||
        (status = read(TCONV_SIZED_PLAN_OPTIONS, options, &no_options, &call->options, error)) !=
            TCONV_OK ||
        (status = read(TCONV_SIZED_TENSORS, tensors, &no_tensors, &call->tensors, error)) !=
            TCONV_OK ||
        (status = read(TCONV_SIZED_RUN, run, &no_run, &call->run, error)) != TCONV_OK)
        return status;
    tconv_call_make_key(call);
    return check_places(&call->tensors, error);
}

tconv_status tconv_call_set(struct tconv_call *call, const tconv_tensors *tensors,
                            const tconv_run *run, tconv_error *error)
{
    call->tensors = *tensors;
    call->run = *run;
    return check_places(tensors, error);
}

tconv_status tconv_call_check(const struct tconv_call *call, const tconv_geometry *geometry,
                              tconv_error *error)
{
    const tconv_tensors *t = &call->tensors;
    const char *missing = geometry->data_bytes != 0 && !tconv_is_given(&t->data) ? "data"
                          : !tconv_is_given(&t->output)                          ? "output"
                                                                                 : NULL;
    if (missing != NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "tensors.%s is absent: it has neither memory, a pointer nor an array of "
                          "the host",
                          missing);
    return tconv_epilogue_check_given(&call->options.epilogue, TCONV_EPILOGUE_RESIDUAL,
                                      tconv_is_given(&t->residual), "tensors", error);
}

tconv_status tconv_waits_join(cl_uint count, const cl_event *list, cl_uint more_count,
                              const cl_event *more, struct tconv_waits *waits, tconv_error *error)
{
    const size_t given = count * sizeof *list, added = more_count * sizeof *more;
    *waits = (struct tconv_waits){count, list, NULL};
    if (more_count == 0 || (count == 0) != (list == NULL)) return TCONV_OK;
    *waits = (struct tconv_waits){count + more_count, more, NULL};
    if (count == 0) return TCONV_OK;
    waits->own = malloc(given + added);
    if (waits->own == NULL) return tconv_fail_memory(error, given + added, "joining wait lists");
    memcpy(waits->own, list, given);
    memcpy(waits->own + count, more, added);
    waits->list = waits->own;
    return TCONV_OK;
}
