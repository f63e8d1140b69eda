/* SPDX-License-Identifier: Apache-2.0 */
/* Making a plan: from a problem to compiled kernels with their tables. */
#include "plan/plan.h"

#include "base/addressable.h"
#include "base/error.h"
#include "base/process.h"
#include "base/struct_size.h"
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

/* Writes the recipe of plan->family, which may refuse what its kernels turned out to be limited to. */
static tconv_status write_recipe(tconv_plan *plan, tconv_error *error)
{
    const struct tconv_family *family = plan->family;
    tconv_error own;
    const tconv_status status = family->write(&plan->request, &plan->recipe, &own);
    if (status == TCONV_ERROR_ALGORITHM)
        return tconv_fail(error, status,
                          "algorithm %s does not take this problem with what %s gives its kernels, "
                          "work-groups of %llu work-items and %llu bytes of local memory: %s",
                          family->name, plan->info.name,
                          (unsigned long long)plan->info.work_group_limit,
                          (unsigned long long)plan->info.local_memory, own.message);
    if (status != TCONV_OK) {
        *error = own;
        return status;
    }
    tconv_write_finish(&plan->request, plan->recipe.table);
    tconv_recipe_types(&plan->recipe, &plan->request, family->packing);
    if (tconv_recipe_fits(&plan->recipe)) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_INTERNAL,
                      "the recipe of algorithm %s exceeds a recipe's limits", family->name);
}

/* The same, and makes what the recipe needs. */
static tconv_status try_family(tconv_plan *plan, tconv_error *error)
{
    tconv_status status;
    if ((status = write_recipe(plan, error)) == TCONV_OK &&
        (status = make_table(plan, error)) == TCONV_OK &&
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

bool tconv_kernel_is_unfit(const tconv_error *error)
{
    switch (error->opencl_code) {
    case CL_SUCCESS: /* no OpenCL call failed */
        return error->status == TCONV_ERROR_ALGORITHM || error->status == TCONV_ERROR_DEVICE ||
               error->status == TCONV_ERROR_BUILD;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_COMPILE_PROGRAM_FAILURE:
    case CL_LINK_PROGRAM_FAILURE:
    case CL_INVALID_BINARY:
    case CL_INVALID_BUILD_OPTIONS:
    case CL_INVALID_PROGRAM_EXECUTABLE:
    case CL_INVALID_KERNEL_NAME:
    case CL_INVALID_KERNEL_DEFINITION:
    case CL_INVALID_KERNEL:
    case CL_INVALID_KERNEL_ARGS:
    case CL_INVALID_WORK_GROUP_SIZE:
    case CL_INVALID_WORK_ITEM_SIZE:
    case CL_INVALID_BUFFER_SIZE: /* its table exceeds what the device allows in a buffer */
        return true;
    default: return false;
    }
}

/* Keeps why a family is not taken. */
static tconv_status pass_over(tconv_plan *plan, const struct tconv_family *family, const char *why,
                              tconv_error *error)
{
    char **kept = &plan->passed_over[index_of(family)];
    free(*kept);
    *kept = strdup(why);
    if (*kept != NULL) return TCONV_OK;
    return tconv_fail_memory(error, strlen(why) + 1, "keeping why an algorithm was passed over");
}

/* Sets plan->family, to NULL with a reason where none takes the request. A family uses the device's
 * matrix unit only where the unit passed its test. */
static tconv_status choose_one(tconv_plan *plan, const char *name, unsigned excluded,
                               struct tconv_reason *reason, tconv_error *error)
{
    plan->info = tconv_device_for(tconv_device_properties(plan->device), &plan->layer);
    plan->family = tconv_family_choose(&plan->request, name, excluded, reason);
    if (plan->family != &tconv_matrix_group || plan->info.matrix_unit == TCONV_MATRIX_NONE)
        return TCONV_OK;
    bool right;
    tconv_error own;
    const tconv_status status = tconv_probe_matrix(plan->device, plan->layer.data_type,
                                                   plan->layer.filter_type, &right, &own);
    if (status != TCONV_OK && error != NULL) {
        *error = own;
        snprintf(error->message, sizeof error->message,
                 "trying the device's matrix unit, which TCONV_CL_MATRIX=off leaves alone: %.800s",
                 own.message);
    }
    if (status != TCONV_OK || right) return status;
    plan->info.matrix_unit = TCONV_MATRIX_NONE;
    plan->family = tconv_family_choose(&plan->request, name, excluded, reason);
    return pass_over(plan, &tconv_matrix_group,
                     "the device's matrix unit is not used: small problems of these element types "
                     "came out wrong, or their kernels do not build or run",
                     error);
}

/* Chooses a family and makes it. One whose kernels do not build or cannot run on the device is passed
 * over, so that a driver's defect in one kernel does not take the others away; not where it was asked
 * for by name, and not where kernels come from a folder: who edits a kernel wants to see its errors.
 * Every other error, such as missing memory, ends the choice: the next family would meet it too, or be
 * a slower one without need. */
static tconv_status choose_family(tconv_plan *plan, const char *name, tconv_error *error)
{
    const bool named = name != NULL && strcmp(name, "auto") != 0;
    unsigned excluded = 0;
    tconv_error first = {TCONV_OK, 0, ""};
    for (;;) {
        struct tconv_reason reason = {""};
        tconv_error own;
        tconv_status status = choose_one(plan, name, excluded, &reason, error);
        if (status != TCONV_OK) return status;
        if (plan->family == NULL && excluded != 0) {
            if (error != NULL) *error = first;
            return first.status;
        }
        if (plan->family == NULL)
            return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                              "algorithm %.60s does not take this problem: %s",
                              name == NULL ? "auto" : name, reason.text);
        status = make_family(plan, &own);
        if (status == TCONV_OK) return TCONV_OK;
        const bool edited = tconv_device_has_own_sources(plan->device) &&
                            status != TCONV_ERROR_ALGORITHM;
        if (named || edited || !tconv_kernel_is_unfit(&own)) {
            if (error != NULL) *error = own;
            return status;
        }
        if (excluded == 0) first = own;
        excluded |= 1u << index_of(plan->family);
        status = pass_over(plan, plan->family, own.message, error);
        if (status != TCONV_OK) return status;
    }
}

static tconv_status check_arguments(const tconv_device *device, const tconv_problem *problem,
                                    tconv_plan **out, tconv_error *error)
{
    if (device != NULL && problem != NULL && out != NULL) return TCONV_OK;
    return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                      device == NULL    ? "device"
                      : problem == NULL ? "problem"
                                        : "out");
}

static tconv_status check_math(const tconv_plan_options *options, tconv_error *error)
{
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

tconv_status tconv_plan_create(tconv_device *device, const tconv_problem *given_problem,
                               const tconv_plan_options *given_options, tconv_plan **out,
                               tconv_error *error)
{
    tconv_problem own_problem = TCONV_PROBLEM_INIT;
    tconv_plan_options own_options = TCONV_PLAN_OPTIONS_INIT;
    const tconv_problem *problem = &own_problem;
    const tconv_plan_options *options = &own_options;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_status status;
    if ((status = check_arguments(device, given_problem, out, error)) != TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PROBLEM, given_problem, &own_problem, error)) !=
            TCONV_OK ||
        (status = tconv_struct_read(TCONV_SIZED_PLAN_OPTIONS, given_options, &own_options,
                                    error)) != TCONV_OK ||
        (status = check_math(options, error)) != TCONV_OK ||
        (status = tconv_resolve(problem, &geometry, error)) != TCONV_OK ||
        (status = narrow(options, &geometry, error)) != TCONV_OK ||
        (status = tconv_check_addressable(&geometry, error)) != TCONV_OK ||
        (status = tconv_check_epilogue(problem, &geometry, &options->epilogue, error)) !=
            TCONV_OK ||
        (status = check_device(device, problem, error)) != TCONV_OK ||
        (status = tconv_process_enter(error)) != TCONV_OK)
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
    if (plan == NULL || tconv_process_forked() || atomic_fetch_sub(&plan->owners, 1) > 1) return;
    clear_family(plan);
    for (int i = 0; i < TCONV_MAX_FAMILIES; i++) free(plan->passed_over[i]);
    tconv_device_release(plan->device);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

const tconv_geometry *tconv_plan_geometry(const tconv_plan *plan)
{
    return plan == NULL ? NULL : &plan->geometry;
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

/* Appends a line to a text of `size` bytes as far as it fits; `*length` is the whole text's. */
static void add_line(char *text, size_t size, int *length, const struct tconv_family *family,
                     const char *before, const char *what)
{
    const size_t used = (size_t)*length < size ? (size_t)*length : size;
    *length += snprintf(size == 0 ? NULL : text + used, size - used, "%s%s: %s%s",
                        *length == 0 ? "" : "\n", family->name, before, what);
}

int tconv_plan_why(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    if (size > 0) text[0] = '\0';
    for (int i = 0; plan != NULL && tconv_family_at(i) != NULL; i++) {
        const struct tconv_family *family = tconv_family_at(i);
        const bool taken = family == plan->family;
        struct tconv_reason reason = {""};
        double cost = 0;
        if (plan->passed_over[i] != NULL && !taken) {
            add_line(text, size, &length, family, "passed over: ", plan->passed_over[i]);
            continue;
        }
        if (family->accepts(&plan->request, &cost, &reason))
            snprintf(reason.text, sizeof reason.text, "cost %.3g%s", cost, taken ? ", taken" : "");
        add_line(text, size, &length, family, "", reason.text);
    }
    return length;
}

int tconv_plan_passed_over(const tconv_plan *plan, char *text, size_t size)
{
    int length = 0;
    if (size > 0) text[0] = '\0';
    for (int i = 0; plan != NULL && tconv_family_at(i) != NULL; i++)
        if (plan->passed_over[i] != NULL)
            add_line(text, size, &length, tconv_family_at(i), "", plan->passed_over[i]);
    return length;
}
