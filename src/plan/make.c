/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a candidate: compiles the kernels of its kernel plan and fills their table. */
#include "plan/plan_internal.h"

#include "base/architectures.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True if a compiler failed for a reason that an unknown option can be. */
static bool may_refuse_options(const tconv_error *error)
{
    return error->opencl_code == CL_BUILD_PROGRAM_FAILURE ||
           error->opencl_code == CL_INVALID_BUILD_OPTIONS;
}

bool tconv_program_key(const struct tconv_request *request, const struct tconv_algorithm *algorithm,
                       const struct tconv_launch *launch, char key[TCONV_PROGRAM_KEY])
{
    const int used =
        snprintf(key, TCONV_PROGRAM_KEY, "%s ", tconv_launch_source(launch, algorithm));
    return tconv_launch_all_options(launch, request, algorithm, key + used, TCONV_MAX_OPTIONS);
}

/* Gets a program. A compiler that refuses the option for more registers is not asked for them
 * again: then plan->info is that of a device without them, and the kernel plan must be written
 * again. */
static tconv_status make_program(tconv_plan *plan, const char *key, cl_program *program,
                                 tconv_error *error)
{
    const tconv_status status =
        tconv_device_program(plan->device, key, &plan->retry, program, error);
    if (status != TCONV_OK && strstr(key, TCONV_LARGE_REGISTERS) != NULL &&
        may_refuse_options(error))
        plan->info.architecture = TCONV_ARCHITECTURE_OTHER;
    return status;
}

/* Makes one kernel of the kernel plan. */
static tconv_status make_kernel(tconv_plan *plan, const struct tconv_launch *launch,
                                cl_kernel *kernel, tconv_error *error)
{
    char key[TCONV_PROGRAM_KEY];
    if (!tconv_program_key(&plan->request, plan->candidate.algorithm, launch, key))
        return tconv_fail(error, TCONV_ERROR_INTERNAL, "the options of %s exceed %d bytes",
                          launch->kernel, TCONV_MAX_OPTIONS);
    cl_program program;
    const tconv_status status = make_program(plan, key, &program, error);
    if (status != TCONV_OK) return status;
    cl_int code;
    *kernel = clCreateKernel(program, launch->kernel, &code);
    clReleaseProgram(program); /* the kernel keeps it */
    if (code == CL_SUCCESS) return TCONV_OK;
    *kernel = NULL;
    return tconv_fail_opencl(error, code, "clCreateKernel", "creating kernel %s", launch->kernel);
}

/* Checks the work-group size. A device may run a kernel only in smaller groups than its general
 * limit. Then plan->info gets the smaller limit, and the kernel plan must be written again. */
static tconv_status check_group(tconv_plan *plan, const struct tconv_launch *launch,
                                cl_kernel kernel, tconv_error *error)
{
    size_t limit = 0;
    const size_t wanted = launch->local[0] * launch->local[1] * launch->local[2];
    if (clGetKernelWorkGroupInfo(kernel, plan->device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit,
                                 &limit, NULL) != CL_SUCCESS ||
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
    const cl_ulong device = plan->device->info.local_memory,
                   unit = tconv_candidate_unit(&plan->request, &plan->candidate).local_memory,
                   all = unit > device ? unit : device;
    clGetKernelWorkGroupInfo(kernel, plan->device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes,
                             &bytes, NULL);
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
    plan->table = clCreateBuffer(plan->device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                 plan->kernel_plan.table_count * sizeof *plan->kernel_plan.table,
                                 plan->kernel_plan.table, &code);
    if (code == CL_SUCCESS) return TCONV_OK;
    plan->table = NULL;
    return tconv_fail_opencl(error, code, "clCreateBuffer", "creating a table of %zu bytes",
                             plan->kernel_plan.table_count * sizeof *plan->kernel_plan.table);
}

cl_int tconv_kernel_again(cl_kernel kernel, const char *name, cl_kernel *made, const char **call)
{
    cl_program program = NULL;
    *call = "clGetKernelInfo";
    cl_int code = clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(cl_program), &program, NULL);
    if (code != CL_SUCCESS) return code;
    *call = "clCreateKernel";
    *made = clCreateKernel(program, name, &code);
    return code;
}

double tconv_launch_limit_ms(const tconv_device *device)
{
    enum { GPU_MS = 500, MOBILE_MS = 50 };
    if (device->launch_ms >= 0) return device->launch_ms;
    if (device->info.kind != TCONV_DEVICE_GPU) return 0;
    return tconv_has_trait(device->info.architecture, TCONV_TRAIT_PHONE) ? MOBILE_MS : GPU_MS;
}

/* Divides launches that are expected to take longer than the device's limit. The limit leaves room
 * for launches that take several times as long as expected. */
static void divide_launches(tconv_plan *plan)
{
    enum { MOST_PIECES = 4096 };
    const double limit = tconv_launch_limit_ms(plan->device);
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
        (status = tconv_image_make_none(plan, error)) == TCONV_OK &&
        (status = make_kernels(plan, plan->kernel_plan.pack, plan->kernel_plan.pack_count,
                               plan->pack, error)) == TCONV_OK)
        status = make_kernels(plan, plan->kernel_plan.run, plan->kernel_plan.run_count, plan->run,
                              error);
    tconv_kernel_plan_clear(&plan->kernel_plan); /* the buffer has the table now */
    if (status != TCONV_OK) tconv_plan_clear(plan);
    return status;
}

/* Replaces the candidate by the best one of its algorithm under the limits of its kernels. */
static tconv_status enumerate_again(tconv_plan *plan, tconv_error *error)
{
    const struct tconv_algorithm *algorithm = plan->candidate.algorithm;
    const bool named = plan->pattern.algorithm != NULL;
    const bool refused = tconv_has_large_registers(&plan->device->info) &&
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
    tconv_plan_clear(plan);
    plan->candidate = *candidate;
    for (bool again = true; again && status == TCONV_OK;) {
        const tconv_device_info before = plan->info;
        status = try_candidate(plan, error);
        again = (status == TCONV_ERROR_DEVICE &&
                 (plan->info.work_group_limit < before.work_group_limit ||
                  plan->info.local_memory < before.local_memory)) ||
                (status != TCONV_OK && plan->info.architecture != before.architecture);
        if (again) status = enumerate_again(plan, error);
    }
    if (status != TCONV_OK) plan->info = whole; /* the limits were this algorithm's */
    return status;
}

uint64_t tconv_plan_private_bytes(const tconv_plan *plan)
{
    cl_ulong most = 0;
    for (int i = 0; i < plan->kernel_plan.run_count; i++) {
        cl_ulong bytes = 0;
        if (clGetKernelWorkGroupInfo(plan->run[i], plan->device->id, CL_KERNEL_PRIVATE_MEM_SIZE,
                                     sizeof bytes, &bytes, NULL) == CL_SUCCESS &&
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
    case CL_IMAGE_FORMAT_NOT_SUPPORTED: /* of images that it reads */
    case CL_INVALID_IMAGE_DESCRIPTOR:
    case CL_INVALID_BUFFER_SIZE: /* its table exceeds what the device allows in a buffer */
        return true;
    default: return false;
    }
}

tconv_status tconv_plan_pass_over(tconv_plan *plan, const struct tconv_candidate *candidate,
                                  const char *why, tconv_error *error)
{
    char **kept = &plan->passed_over[tconv_algorithm_index(candidate->algorithm)];
    free(*kept);
    *kept = strdup(why);
    tconv_trace_passed_over(plan, candidate, why);
    if (*kept != NULL) return TCONV_OK;
    return tconv_fail_memory(error, strlen(why) + 1, "keeping why an algorithm was passed over");
}

tconv_status tconv_plan_try(tconv_plan *plan, const struct tconv_candidate *candidate, bool *made,
                            tconv_error *error)
{
    const tconv_status status = tconv_plan_make(plan, candidate, error);
    *made = status == TCONV_OK;
    return *made || !tconv_kernel_is_unfit(error)
               ? status
               : tconv_plan_pass_over(plan, candidate, error->message, error);
}
