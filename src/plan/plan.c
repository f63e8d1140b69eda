/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a plan: it begins as a checked and resolved problem. When choose.c has chosen a
 * candidate, the plan gets compiled kernels and their table. */
#include "plan/machine_record.h"
#include "plan/plan_internal.h"
#include "plan/plan_trace.h"

#include "base/addressable.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "base/text.h"
#include "device/device.h"
#include "geometry/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if a compiler failed for a reason that an unknown option can be. */
static bool may_refuse_options(const tconv_error *error)
{
    return error->opencl_code == CL_BUILD_PROGRAM_FAILURE ||
           error->opencl_code == CL_INVALID_BUILD_OPTIONS;
}

/* Gets a program. A compiler that refuses the option for more registers is not asked for them
 * again: then plan->info is that of a device without them, and the kernel plan must be written
 * again. */
static tconv_status make_program(tconv_plan *plan, const char *source, const char *options,
                                 cl_program *program, tconv_error *error)
{
    tconv_error own;
    const tconv_status status =
        tconv_device_program(plan->device, source, options, &plan->retry, program, &own);
    if (status == TCONV_OK) return TCONV_OK;
    if (strstr(options, TCONV_LARGE_REGISTERS) != NULL && may_refuse_options(&own))
        plan->info.architecture = TCONV_ARCHITECTURE_OTHER;
    return tconv_fail_with(error, &own);
}

/* Makes one kernel of the kernel plan. */
static tconv_status make_kernel(tconv_plan *plan, const struct tconv_launch *launch,
                                cl_kernel *kernel, tconv_error *error)
{
    char options[TCONV_MAX_OPTIONS];
    if (!tconv_launch_all_options(launch, &plan->request, plan->candidate.algorithm, options,
                                  sizeof options))
        return tconv_fail(error, TCONV_ERROR_INTERNAL, "the options of %s exceed %d bytes",
                          launch->kernel, TCONV_MAX_OPTIONS);
    cl_program program;
    const tconv_status status = make_program(
        plan, tconv_launch_source(launch, plan->candidate.algorithm), options, &program, error);
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

/* Checks the work-group size. A device may run a kernel only in smaller groups than its general
 * limit. Then plan->info gets the smaller limit, and the kernel plan must be written again. */
static tconv_status check_group(tconv_plan *plan, const struct tconv_launch *launch,
                                cl_kernel kernel, tconv_error *error)
{
    size_t limit = 0;
    const size_t wanted = launch->local[0] * launch->local[1] * launch->local[2];
    if (clGetKernelWorkGroupInfo(kernel, tconv_device_id(plan->device), CL_KERNEL_WORK_GROUP_SIZE,
                                 sizeof limit, &limit, NULL) != CL_SUCCESS ||
        limit >= wanted)
        return TCONV_OK;
    plan->info.work_group_limit = limit;
    return tconv_fail(
        error, TCONV_ERROR_DEVICE,
        "%s wants work-groups of %zu work-items, but %s runs %s in groups of %zu at most",
        plan->candidate.algorithm->name, wanted, plan->info.name, launch->kernel, limit);
}

/* Checks local memory likewise. Some implementations take more of it than the kernel's own arrays
 * (rusticl of Mesa 22.3 reports twice as much). */
static tconv_status check_local_memory(tconv_plan *plan, const struct tconv_launch *launch,
                                       cl_kernel kernel, tconv_error *error)
{
    cl_ulong bytes = 0;
    const cl_ulong all = tconv_device_properties(plan->device)->local_memory;
    clGetKernelWorkGroupInfo(kernel, tconv_device_id(plan->device), CL_KERNEL_LOCAL_MEM_SIZE,
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
    plan->table = clCreateBuffer(tconv_device_context(plan->device),
                                 CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                 plan->kernel_plan.table_count * sizeof *plan->kernel_plan.table,
                                 plan->kernel_plan.table, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    plan->table = NULL;
    return tconv_fail_opencl(error, code, "clCreateBuffer", "creating a table of %zu bytes",
                             plan->kernel_plan.table_count * sizeof *plan->kernel_plan.table);
}

/* Releases everything that belongs to the chosen algorithm. */
static void clear_algorithm(tconv_plan *plan)
{
    for (int i = 0; i < TCONV_MAX_LAUNCHES; i++) {
        if (plan->pack[i] != NULL) clReleaseKernel(plan->pack[i]);
        if (plan->run[i] != NULL) clReleaseKernel(plan->run[i]);
        plan->pack[i] = plan->run[i] = NULL;
    }
    tconv_hands_release(plan->hands);
    plan->hands = NULL;
    if (plan->table != NULL) clReleaseMemObject(plan->table);
    plan->table = NULL;
    tconv_kernel_plan_clear(&plan->kernel_plan);
    plan->kernel_plan = (struct tconv_kernel_plan){0};
}

/* Divides launches that are expected to take longer than the device's limit. The limit leaves room
 * for launches that take several times as long as expected. */
static void divide_launches(tconv_plan *plan)
{
    enum { MOST_PIECES = 4096 };
    const double limit = tconv_device_launch_ms(plan->device);
    const double ms = tconv_machine_ms(&plan->request.machine, plan->candidate.cost);
    if (limit <= 0 || ms <= limit) return;
    const int pieces = ms / limit < MOST_PIECES ? (int)(ms / limit) + 1 : MOST_PIECES;
    for (int i = 0; i < plan->kernel_plan.run_count; i++) {
        struct tconv_launch *run = &plan->kernel_plan.run[i];
        const size_t groups = run->global[0] / run->local[0];
        if (!run->divides || groups == 1) continue;
        run->pieces = (size_t)pieces < groups ? pieces : (int)groups;
    }
}

/* Writes the kernel plan of plan->candidate and makes its kernels and table. */
static tconv_status try_candidate(tconv_plan *plan, tconv_error *error)
{
    tconv_status status;
    if ((status = tconv_kernel_plan_write(&plan->request, &plan->candidate, &plan->kernel_plan,
                                          error)) == TCONV_OK)
        divide_launches(plan);
    if (status == TCONV_OK && (status = make_table(plan, error)) == TCONV_OK &&
        (status = make_kernels(plan, plan->kernel_plan.pack, plan->kernel_plan.pack_count,
                               plan->pack, error)) == TCONV_OK)
        status = make_kernels(plan, plan->kernel_plan.run, plan->kernel_plan.run_count, plan->run,
                              error);
    tconv_kernel_plan_clear(&plan->kernel_plan); /* the buffer has the table now */
    if (status != TCONV_OK) clear_algorithm(plan);
    return status;
}

/* Replaces the candidate by the best one of its algorithm under the limits of its kernels. */
static tconv_status enumerate_again(tconv_plan *plan, tconv_error *error)
{
    const struct tconv_algorithm *algorithm = plan->candidate.algorithm;
    const bool named = plan->pattern.algorithm != NULL;
    const bool refused = tconv_has_large_registers(tconv_device_properties(plan->device)) &&
                         !tconv_has_large_registers(&plan->info);
    struct tconv_candidates candidates;
    struct tconv_reason reason;
    if (tconv_enumerate(algorithm, &plan->request, named ? &plan->pattern.tile : NULL, &candidates,
                        &reason)) {
        plan->candidate = candidates.list[0];
        return TCONV_OK;
    }
    return tconv_fail(error, TCONV_ERROR_ALGORITHM,
                      "algorithm %s does not take this problem with what %s gives its kernels, "
                      "work-groups of %llu work-items and %llu bytes of local memory%s: %s",
                      algorithm->name, plan->info.name,
                      (unsigned long long)plan->info.work_group_limit,
                      (unsigned long long)plan->info.local_memory,
                      refused ? " but no" TCONV_LARGE_REGISTERS : "", reason.text);
}

tconv_status tconv_plan_make(tconv_plan *plan, const struct tconv_candidate *candidate,
                             tconv_error *error)
{
    const tconv_device_info whole = plan->info;
    tconv_status status = TCONV_OK;
    tconv_error own; /* of a try that another one may follow */
    clear_algorithm(plan);
    plan->candidate = *candidate;
    for (bool again = true; again && status == TCONV_OK;) {
        const tconv_device_info before = plan->info;
        status = try_candidate(plan, &own);
        again = (status == TCONV_ERROR_DEVICE &&
                 (plan->info.work_group_limit < before.work_group_limit ||
                  plan->info.local_memory < before.local_memory)) ||
                (status != TCONV_OK && plan->info.architecture != before.architecture);
        if (again) status = enumerate_again(plan, &own);
    }
    if (status == TCONV_OK) return TCONV_OK;
    plan->info = whole; /* the limits were this algorithm's */
    return tconv_fail_with(error, &own);
}

uint64_t tconv_plan_private_bytes(const tconv_plan *plan)
{
    cl_ulong most = 0;
    for (int i = 0; i < plan->kernel_plan.run_count; i++) {
        cl_ulong bytes = 0;
        if (clGetKernelWorkGroupInfo(plan->run[i], tconv_device_id(plan->device),
                                     CL_KERNEL_PRIVATE_MEM_SIZE, sizeof bytes, &bytes,
                                     NULL) == CL_SUCCESS &&
            bytes > most)
            most = bytes;
    }
    return most;
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

static tconv_status check_math(const tconv_plan_options *options, tconv_error *error)
{
    if (options->math != TCONV_MATH_EXACT && options->math != TCONV_MATH_FAST)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "math is %d: it must be exact or fast",
                          (int)options->math);
    return TCONV_OK;
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

/* Allocates a plan. The caller sets the members that describe the problem. */
static tconv_status new_plan(tconv_device *device, tconv_plan **out, tconv_error *error)
{
    tconv_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL || pthread_mutex_init(&plan->lock, NULL) != 0) {
        free(plan);
        return tconv_fail_memory(error, sizeof *plan, "creating a plan");
    }
    atomic_init(&plan->owners, 1);
    tconv_device_retain(device);
    plan->device = device;
    plan->choice = (tconv_choice)TCONV_CHOICE_INIT;
    plan->request.loops = &plan->loops;
    plan->request.device = &plan->info;
    plan->request.epilogue = &plan->epilogue;
    *out = plan;
    return TCONV_OK;
}

/* Gives a plan the properties of its device, without the limits of kernels that it had. */
static void reset_info(tconv_plan *plan)
{
    plan->info = tconv_device_for(tconv_device_properties(plan->device), &plan->loops);
    plan->request.machine =
        tconv_machine_for(plan->device, &plan->info, tconv_acc_bytes(&plan->loops));
}

tconv_status tconv_plan_begin(tconv_device *device, const tconv_problem *problem,
                              const tconv_plan_options *options, tconv_plan **out,
                              tconv_error *error)
{
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_plan *plan = NULL;
    tconv_status status;
    if ((status = check_math(options, error)) != TCONV_OK ||
        (status = tconv_resolve_window(problem, options->output_begin, options->output_end,
                                       &geometry, error)) != TCONV_OK ||
        (status = tconv_check_addressable(&geometry, error)) != TCONV_OK ||
        (status = tconv_check_epilogue(problem, &geometry, &options->epilogue, error)) !=
            TCONV_OK ||
        (status = check_device(device, problem, error)) != TCONV_OK ||
        (status = tconv_process_enter(error)) != TCONV_OK ||
        (status = new_plan(device, &plan, error)) != TCONV_OK)
        return status;
    plan->epilogue = options->epilogue;
    plan->geometry = geometry;
    for (int i = 0; i < TCONV_SPACED_TENSORS; i++) {
        plan->view[i] = tconv_view_of(problem, &geometry, (enum tconv_spaced)i);
        plan->has_steps[i] = tconv_given_steps(problem, (enum tconv_spaced)i)->count != 0;
    }
    tconv_loops_init(&plan->loops, problem, &geometry);
    if (plan->loops.batch == 0)
        plan->loops.batch = 1; /* nothing will run, but filters are packed as usual */
    reset_info(plan);
    plan->request.workspace_limit = options->workspace_limit;
    plan->request.math = options->math;
    plan->problem = *problem;
    plan->output_begin = options->output_begin;
    plan->output_end = options->output_end;
    plan->retry.begun = tconv_os_seconds();
    *out = plan;
    return TCONV_OK;
}

tconv_status tconv_plan_begin_again(const tconv_plan *plan, tconv_plan **out, tconv_error *error)
{
    tconv_plan *copy = NULL;
    const tconv_status status = new_plan(plan->device, &copy, error);
    if (status != TCONV_OK) return status;
    copy->epilogue = plan->epilogue;
    copy->geometry = plan->geometry;
    copy->loops = plan->loops;
    memcpy(copy->view, plan->view, sizeof plan->view);
    memcpy(copy->has_steps, plan->has_steps, sizeof plan->has_steps);
    copy->info = plan->info;
    copy->pattern = plan->pattern;
    copy->request.workspace_limit = plan->request.workspace_limit;
    copy->request.math = plan->request.math;
    copy->request.machine = plan->request.machine;
    copy->problem = plan->problem;
    copy->output_begin = plan->output_begin;
    copy->output_end = plan->output_end;
    copy->retry.begun = plan->retry.begun;
    copy->retry.insist = plan->retry.insist;
    *out = copy;
    return TCONV_OK;
}

tconv_status tconv_plan_pass_over(tconv_plan *plan, const struct tconv_candidate *candidate,
                                  const char *why, tconv_error *error)
{
    char **kept = &plan->passed_over[tconv_algorithm_index(candidate->algorithm)];
    free(*kept);
    *kept = strdup(why);
    if (tconv_traced(plan->device, TCONV_TRACE_PASSED_OVER))
        tconv_trace_passed_over(plan, candidate, why);
    if (*kept != NULL) return TCONV_OK;
    return tconv_fail_memory(error, strlen(why) + 1, "keeping why an algorithm was passed over");
}

void tconv_plan_retain(tconv_plan *plan)
{
    if (plan != NULL) atomic_fetch_add(&plan->owners, 1);
}

static void destroy(tconv_plan *plan)
{
    TCONV_WITHOUT_CANCELLATION;
    clear_algorithm(plan);
    for (int i = 0; i < TCONV_MAX_ALGORITHMS; i++) free(plan->passed_over[i]);
    free(plan->timed);
    free(plan->not_stored);
    tconv_device_release(plan->device);
    pthread_mutex_destroy(&plan->lock);
    free(plan);
}

void tconv_plan_release(tconv_plan *plan)
{
    if (plan == NULL || atomic_fetch_sub(&plan->owners, 1) > 1 || tconv_process_forked()) return;
    destroy(plan);
}

const tconv_geometry *tconv_plan_geometry(const tconv_plan *plan)
{
    return plan == NULL ? NULL : &plan->geometry;
}

const char *tconv_plan_algorithm(const tconv_plan *plan)
{
    return plan == NULL ? NULL : plan->candidate.algorithm->name;
}

int tconv_plan_tile(const tconv_plan *plan, char *text, size_t size)
{
    tconv_text_begin(text, size);
    return plan == NULL ? 0 : tconv_tile_text(&plan->candidate, text, size);
}

uint64_t tconv_plan_workspace_bytes(const tconv_plan *plan)
{
    return plan == NULL ? 0 : plan->kernel_plan.workspace_bytes;
}

uint64_t tconv_plan_filter_bytes(const tconv_plan *plan)
{
    return plan == NULL ? 0 : plan->kernel_plan.filter_bytes;
}

bool tconv_plan_is_stale(const tconv_plan *plan)
{
    return plan != NULL && plan->retry.again > 0 && tconv_os_seconds() >= plan->retry.again;
}

double tconv_plan_error_factor(const tconv_plan *plan)
{
    return plan != NULL && plan->kernel_plan.error_factor > 1 ? plan->kernel_plan.error_factor : 1;
}
