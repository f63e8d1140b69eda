/* SPDX-License-Identifier: Apache-2.0 */
/* Making a plan: from a problem to compiled kernels with their tables. */
#include "plan/plan.h"

#include "base/error.h"
#include "device/device.h"
#include "family/families.h"
#include "geometry/window.h"
#include "plan/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tconv_algorithm_name(int index)
{
    const struct tconv_family *family = tconv_family_at(index);
    return family == NULL ? NULL : family->name;
}

const char *tconv_algorithm_summary(const char *name)
{
    const struct tconv_family *family = name == NULL ? NULL : tconv_family_named(name);
    return family == NULL ? NULL : family->summary;
}

/* One kernel of the recipe. */
static tconv_status make_kernel(tconv_plan *plan, const struct tconv_launch *launch,
                                cl_kernel *kernel, tconv_error *error)
{
    char options[TCONV_MAX_OPTIONS];
    if (!tconv_launch_all_options(launch, &plan->request, plan->family, options, sizeof options))
        return tconv_fail(error, TCONV_ERROR_INTERNAL, "the options of %s exceed %d bytes",
                          launch->kernel, TCONV_MAX_OPTIONS);
    cl_program program;
    tconv_status status =
        tconv_device_program(plan->device, plan->family->sources, options, &program, error);
    if (status != TCONV_OK) return status;
    cl_int code;
    *kernel = clCreateKernel(program, launch->kernel, &code);
    clReleaseProgram(program); /* the kernel keeps it */
    if (code != CL_SUCCESS) {
        *kernel = NULL;
        return tconv_fail_opencl(error, code, "clCreateKernel", "creating kernel %s",
                                 launch->kernel);
    }
    return TCONV_OK;
}

/* A device may run a kernel only in smaller groups than it allows in general. Then the plan's own
 * view of the device learns that limit, and the recipe is to be written again. */
static tconv_status check_group(tconv_plan *plan, const struct tconv_launch *launch,
                                cl_kernel kernel, tconv_error *error)
{
    size_t limit = 0;
    const size_t wanted = launch->local[0] * launch->local[1] * launch->local[2];
    if (clGetKernelWorkGroupInfo(kernel, tconv_device_id_of(plan->device),
                                 CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit,
                                 NULL) != CL_SUCCESS ||
        limit >= wanted)
        return TCONV_OK;
    plan->info.work_group_limit = limit;
    return tconv_fail(
        error, TCONV_ERROR_DEVICE,
        "%s wants work-groups of %zu work-items, but %s runs %s in groups of %zu at most",
        plan->family->name, wanted, plan->info.name, launch->kernel, limit);
}

/* The same for local memory, of which some implementations take more than the kernel's own arrays (rusticl of Mesa 22.3 reports
 * twice as much). */
static tconv_status check_local_memory(tconv_plan *plan, const struct tconv_launch *launch,
                                       cl_kernel kernel, tconv_error *error)
{
    cl_ulong bytes = 0;
    const cl_ulong all = tconv_device_properties(plan->device)->local_memory;
    clGetKernelWorkGroupInfo(kernel, tconv_device_id_of(plan->device), CL_KERNEL_LOCAL_MEM_SIZE,
                             sizeof bytes, &bytes, NULL);
    bytes += launch->local_bytes;
    if (bytes <= all) return TCONV_OK;
    plan->info.local_memory =
        (uint64_t)((double)plan->info.local_memory * (double)all / (double)bytes);
    return tconv_fail(error, TCONV_ERROR_DEVICE,
                      "%s takes %llu bytes of local memory, but %s has %llu", launch->kernel,
                      (unsigned long long)bytes, plan->info.name, (unsigned long long)all);
}

static tconv_status make_kernels(tconv_plan *plan, const struct tconv_launch *launches, int count,
                                 cl_kernel *kernels, tconv_error *error)
{
    for (int i = 0; i < count; i++) {
        tconv_status status;
        if ((status = make_kernel(plan, &launches[i], &kernels[i], error)) != TCONV_OK ||
            (status = check_group(plan, &launches[i], kernels[i], error)) != TCONV_OK ||
            (status = check_local_memory(plan, &launches[i], kernels[i], error)) != TCONV_OK)
            return status;
    }
    return TCONV_OK;
}

static tconv_status make_table(tconv_plan *plan, tconv_error *error)
{
    cl_int code;
    plan->table = clCreateBuffer(
        tconv_device_context(plan->device), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
        plan->recipe.table_count * sizeof *plan->recipe.table, plan->recipe.table, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    plan->table = NULL;
    return tconv_fail_opencl(error, code, "clCreateBuffer", "creating a table of %zu bytes",
                             plan->recipe.table_count * sizeof *plan->recipe.table);
}

/* Gives back what belongs to the chosen family. */
static void clear_family(tconv_plan *plan)
{
    for (int i = 0; i < TCONV_MAX_LAUNCHES; i++) {
        if (plan->pack[i] != NULL) clReleaseKernel(plan->pack[i]);
        if (plan->run[i] != NULL) clReleaseKernel(plan->run[i]);
        plan->pack[i] = plan->run[i] = NULL;
    }
    if (plan->table != NULL) clReleaseMemObject(plan->table);
    plan->table = NULL;
    tconv_recipe_clear(&plan->recipe);
    plan->recipe = (struct tconv_recipe){0};
}

/* Writes the recipe of plan->family and makes what it needs. */
static tconv_status try_family(tconv_plan *plan, tconv_error *error)
{
    tconv_status status;
    if (!plan->family->write(&plan->request, &plan->recipe))
        status = tconv_fail_memory(error, plan->recipe.table_count * sizeof *plan->recipe.table,
                                   "writing the table of a plan");
    else if (tconv_write_finish(&plan->request, plan->recipe.table),
             tconv_recipe_types(&plan->recipe, &plan->request, plan->family->packing),
             !tconv_recipe_fits(&plan->recipe))
        status = tconv_fail(error, TCONV_ERROR_INTERNAL,
                            "the recipe of algorithm %s exceeds a recipe's limits",
                            plan->family->name);
    else if ((status = make_table(plan, error)) == TCONV_OK &&
             (status = make_kernels(plan, plan->recipe.pack, plan->recipe.pack_count, plan->pack,
                                    error)) == TCONV_OK)
        status = make_kernels(plan, plan->recipe.run, plan->recipe.run_count, plan->run, error);
    tconv_recipe_clear(&plan->recipe); /* the table is in its buffer */
    if (status != TCONV_OK) clear_family(plan);
    return status;
}

/* The same, again with smaller work-groups and less local memory as long as a kernel turns out to need them. */
static tconv_status make_family(tconv_plan *plan, tconv_error *error)
{
    tconv_status status;
    tconv_device_info before;
    do {
        before = plan->info;
        status = try_family(plan, error);
    } while (status == TCONV_ERROR_DEVICE &&
             (plan->info.work_group_limit < before.work_group_limit ||
              plan->info.local_memory < before.local_memory));
    return status;
}

static int index_of(const struct tconv_family *family)
{
    int index = 0;
    while (tconv_family_at(index) != family) index++;
    return index;
}

/* Chooses a family and makes it. One that the device cannot build, run or hold is passed over, so
 * that a driver's defect in one kernel does not take the others away; not where it was asked for by
 * name, and not where kernels come from a folder: who edits a kernel wants to see its errors. */
static tconv_status choose_family(tconv_plan *plan, const char *name, tconv_error *error)
{
    const bool strict = (name != NULL && strcmp(name, "auto") != 0) ||
                        tconv_device_has_own_sources(plan->device);
    unsigned excluded = 0;
    bool unit_is_wrong = false;
    tconv_error first = {TCONV_OK, 0, ""};
    for (;;) {
        struct tconv_reason reason = {""};
        plan->info = tconv_device_for(tconv_device_properties(plan->device), &plan->layer);
        if (unit_is_wrong) plan->info.matrix_unit = TCONV_MATRIX_NONE;
        plan->family = tconv_family_choose(&plan->request, name, excluded, &reason);
        if (plan->family == &tconv_matrix_group && plan->info.matrix_unit != TCONV_MATRIX_NONE &&
            !tconv_probe_matrix(plan->device, plan->layer.data_type, plan->layer.filter_type)) {
            unit_is_wrong = true;
            continue;
        }
        if (plan->family == NULL && excluded != 0) {
            if (error != NULL) *error = first;
            return first.status;
        }
        if (plan->family == NULL)
            return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                              "algorithm %.60s does not take this problem: %s",
                              name == NULL ? "auto" : name, reason.text);
        tconv_error own;
        const tconv_status status = make_family(plan, &own);
        if (status == TCONV_OK) return TCONV_OK;
        if (excluded == 0) first = own;
        if (status == TCONV_ERROR_HOST_MEMORY || strict) {
            if (error != NULL) *error = own;
            return status;
        }
        const int index = index_of(plan->family);
        excluded |= 1u << index;
        snprintf(plan->passed_over[index].text, sizeof plan->passed_over[index].text,
                 "passed over: %.180s", own.message);
    }
}

static tconv_status check_arguments(const tconv_device *device, const tconv_plan_options *options,
                                    tconv_plan **out, tconv_error *error)
{
    if (device == NULL || out == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "out");
    if (options->struct_size != sizeof *options)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT,
                          "struct_size of options is wrong: start from TCONV_PLAN_OPTIONS_INIT");
    if (options->math != TCONV_MATH_EXACT && options->math != TCONV_MATH_FAST)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "math is %d: exact and fast are possible",
                          (int)options->math);
    return TCONV_OK;
}

static tconv_status narrow(const tconv_plan_options *options, tconv_geometry *geometry,
                           tconv_error *error)
{
    if (options->output_begin == 0 && options->output_end == 0) return TCONV_OK;
    return tconv_geometry_narrow(geometry, options->output_begin, options->output_end, error);
}

static tconv_status check_device(const tconv_device *device, const tconv_problem *problem,
                                 tconv_error *error)
{
    const tconv_device_info *info = tconv_device_properties(device);
    if (problem->data_type != TCONV_F64 || info->double_arithmetic) return TCONV_OK;
    return tconv_fail(
        error, TCONV_ERROR_DEVICE,
        "element type f64: %s has no double precision (cl_khr_fp64); choose another device or type",
        info->name);
}

tconv_status tconv_plan_create(tconv_device *device, const tconv_problem *problem,
                               const tconv_plan_options *options, tconv_plan **out,
                               tconv_error *error)
{
    const tconv_plan_options defaults = TCONV_PLAN_OPTIONS_INIT;
    if (options == NULL) options = &defaults;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_status status;
    if ((status = check_arguments(device, options, out, error)) != TCONV_OK ||
        (status = tconv_resolve(problem, &geometry, error)) != TCONV_OK ||
        (status = narrow(options, &geometry, error)) != TCONV_OK ||
        (status = tconv_check_epilogue(problem, &geometry, &options->epilogue, error)) !=
            TCONV_OK ||
        (status = check_device(device, problem, error)) != TCONV_OK)
        return status;

    tconv_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL || pthread_mutex_init(&plan->lock, NULL) != 0) {
        free(plan);
        return tconv_fail_memory(error, sizeof *plan, "creating a plan");
    }
    atomic_init(&plan->owners, 1);
    tconv_device_retain(device);
    plan->device = device;
    plan->epilogue = options->epilogue;
    plan->geometry = geometry;
    tconv_layer_init(&plan->layer, problem, &geometry);
    if (plan->layer.batch == 0)
        plan->layer.batch = 1; /* nothing will run, but a filter is packed as for others */
    plan->request = (struct tconv_request){
        .layer = &plan->layer,
        .device = &plan->info,
        .epilogue = &plan->epilogue,
        .workspace_limit = options->workspace_limit,
        .math = options->math,
    };
    status = choose_family(plan, options->algorithm, error);
    if (status != TCONV_OK)
        tconv_plan_release(plan);
    else
        *out = plan;
    return status;
}

void tconv_plan_retain(tconv_plan *plan)
{
    atomic_fetch_add(&plan->owners, 1);
}

void tconv_plan_release(tconv_plan *plan)
{
    if (plan == NULL || atomic_fetch_sub(&plan->owners, 1) > 1) return;
    clear_family(plan);
    tconv_device_release(plan->device);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

const tconv_geometry *tconv_plan_geometry(const tconv_plan *plan)
{
    return &plan->geometry;
}

const char *tconv_plan_algorithm(const tconv_plan *plan)
{
    return plan == NULL ? NULL : plan->family->name;
}

uint64_t tconv_plan_workspace_bytes(const tconv_plan *plan)
{
    return plan == NULL ? 0 : plan->recipe.workspace_bytes;
}

uint64_t tconv_plan_filter_bytes(const tconv_plan *plan)
{
    return plan == NULL ? 0 : plan->recipe.filter_bytes;
}

double tconv_plan_error_factor(const tconv_plan *plan)
{
    return plan != NULL && plan->recipe.error_factor > 1 ? plan->recipe.error_factor : 1;
}

int tconv_plan_why(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    if (plan == NULL && size > 0) text[0] = '\0';
    for (int i = 0; plan != NULL && tconv_family_at(i) != NULL; i++) {
        const struct tconv_family *family = tconv_family_at(i);
        struct tconv_reason reason = plan->passed_over[i];
        double cost = 0;
        if (reason.text[0] == '\0' && family->accepts(&plan->request, &cost, &reason))
            snprintf(reason.text, sizeof reason.text, "cost %.3g%s", cost,
                     family == plan->family ? ", taken" : "");
        const size_t used = (size_t)length < size ? (size_t)length : size;
        length += snprintf(size == 0 ? NULL : text + used, size - used, "%s%s: %s",
                           i == 0 ? "" : "\n", family->name, reason.text);
    }
    return length;
}
