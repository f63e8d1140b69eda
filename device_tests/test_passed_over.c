/* SPDX-License-Identifier: Apache-2.0 */
/* Which failures change the library's choice of an algorithm or of a tile, and which end the call:
 * kernels that do not build or run, work-groups and local memory that are smaller than expected,
 * spilled registers, refused options, and matrix units whose trial fails. */
#include "compile_watch.h"
#include "faults.h"
#include "smoke.h"
#include "support.h"

#include "base/os.h"
#include "device/program.h"
#include "plan/unit.h"
#include "tool/tool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static cl_context context;
static cl_device_id device_id;
static int device_number;
static char folder[200];

/* The layer of run_bench. */
static tconv_problem problem_of(void)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data = (tconv_shape){4, {1, 2, 4, 5}};
    p.filter = (tconv_shape){4, {2, 3, 1, 4}};
    p.strides = (tconv_list){2, {1, 2}};
    return p;
}

/* Codes that say that a kernel does not build or run on the device, or that a table is too large
 * for it. */
static bool says_unfit(cl_int code)
{
    static const cl_int codes[] = {
        CL_BUILD_PROGRAM_FAILURE, CL_COMPILE_PROGRAM_FAILURE,   CL_LINK_PROGRAM_FAILURE,
        CL_INVALID_BINARY,        CL_INVALID_BUILD_OPTIONS,     CL_INVALID_PROGRAM_EXECUTABLE,
        CL_INVALID_KERNEL_NAME,   CL_INVALID_KERNEL_DEFINITION, CL_INVALID_KERNEL,
        CL_INVALID_KERNEL_ARGS,   CL_INVALID_WORK_GROUP_SIZE,   CL_INVALID_WORK_ITEM_SIZE,
        CL_INVALID_BUFFER_SIZE};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code) return true;
    return false;
}

static tconv_device *new_device(void)
{
    tconv_device *device = NULL;
    tconv_error error;
    if (tconv_device_create(context, device_id, &device, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    tconv_device_set_cache(device, NULL, 0, NULL);
    return device;
}

/* The algorithm of a plan, which is released; the same text until the next call. `passed_over` has
 * 2000 bytes. */
static const char *choice_of(tconv_plan *plan, char *passed_over)
{
    static char name[100];
    snprintf(name, sizeof name, "%s", tconv_plan_algorithm(plan));
    const int length = tconv_plan_passed_over(plan, passed_over, 2000);
    assert_int_equal(length, strlen(passed_over));
    tconv_plan_release(plan);
    return name;
}

/* What was heard of the algorithm that was passed over last. */
struct passed_over {
    int count, programs;
    char algorithm[100], problem[500], message[1000];
};

static void hear_passed_over(void *to, const tconv_trace_event *event)
{
    struct passed_over *heard = to;
    if (event->kind == TCONV_TRACE_PROGRAM) heard->programs++;
    if (event->kind != TCONV_TRACE_PASSED_OVER) return;
    heard->count++;
    snprintf(heard->algorithm, sizeof heard->algorithm, "%s", event->algorithm);
    snprintf(heard->problem, sizeof heard->problem, "%s", event->problem);
    snprintf(heard->message, sizeof heard->message, "%s", event->message);
}

/* True if a program that fails with this code is built once more: the compiler may have been
 * interrupted. */
static bool is_built_again(const char *call, cl_int code)
{
    return strcmp(call, "clBuildProgram") == 0 &&
           (code == CL_BUILD_PROGRAM_FAILURE || code == CL_COMPILE_PROGRAM_FAILURE ||
            code == CL_LINK_PROGRAM_FAILURE || code == CL_INVALID_BINARY);
}

/* Makes a call fail `times` times while the library chooses an algorithm. Without the failure it
 * takes `usual`. */
static void choose_with(const char *call, cl_int code, int times, const char *usual)
{
    const tconv_problem p = problem_of();
    tconv_device *device = new_device();
    tconv_plan *plan = NULL;
    tconv_error error;
    char text[2000], problem[500];
    struct passed_over heard = {.count = 0};
    tconv_device_set_trace(device, TCONV_TRACE_ALL, hear_passed_over, &heard, NULL);
    fault_arm_times(fault_call_named(call), 1, times, code);
    const tconv_status status = tconv_plan_create(device, &p, NULL, &plan, &error);
    assert_true(fault_disarm());
    if (is_built_again(call, code) && times == 1) {
        if (status != TCONV_OK) fail_msg("%s fails with %d: %s", call, code, error.message);
        assert_false(tconv_plan_is_stale(plan));
        assert_string_equal(choice_of(plan, text), usual);
        assert_string_equal(text, "");
        assert_int_equal(heard.count, 0);
    } else if (says_unfit(code)) {
        assert_true(tconv_plan_is_stale(plan) == is_built_again(call, code));
        if (status != TCONV_OK) fail_msg("%s fails with %d: %s", call, code, error.message);
        assert_string_not_equal(choice_of(plan, text), usual);
        assert_int_equal(strncmp(text, usual, strlen(usual)), 0);
        assert_non_null(strstr(text, call));
        tconv_problem_text(&p, problem, sizeof problem);
        assert_int_equal(heard.count, 1);
        assert_string_equal(heard.algorithm, usual);
        assert_string_equal(heard.problem, problem);
        assert_non_null(strstr(heard.message, call));
    } else {
        assert_int_equal(heard.count, 0);
        if (status == TCONV_OK) fail_msg("%s fails with %d: no error", call, code);
        assert_int_equal(error.opencl_code, code);
        assert_non_null(strstr(error.message, call));
    }
    tconv_device_release(device);
}

static void only_unfit_kernels_are_passed_over(void **state)
{
    (void)state;
    static const char *const calls[] = {"clCreateProgramWithSource", "clBuildProgram",
                                        "clCreateKernel", "clCreateBuffer"};
    const tconv_problem p = problem_of();
    tconv_device *device = new_device();
    tconv_plan *plan = NULL;
    tconv_error error;
    char usual[100], text[2000];
    if (tconv_plan_create(device, &p, NULL, &plan, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    snprintf(usual, sizeof usual, "%s", choice_of(plan, text));
    assert_string_equal(text, "");
    tconv_device_release(device);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const cl_int *code = fault_calls[fault_call_named(calls[i])].codes;
        for (; *code != 0; code++) {
            choose_with(calls[i], *code, 1, usual);
            if (is_built_again(calls[i], *code)) choose_with(calls[i], *code, 2, usual);
        }
        choose_with(calls[i], CL_DEVICE_NOT_AVAILABLE, 1, usual); /* the device is lost */
    }
}

/* The kernel of an algorithm whose name begins like the kernel's: packed_vector has
 * tconv_packed. */
static const char *kernel_of(const char *name)
{
    static char kernel[100];
    snprintf(kernel, sizeof kernel, "tconv_%.*s", (int)strcspn(name, "_"), name);
    return kernel;
}

/* An algorithm may refuse the work-groups or the local memory that its kernels turn out to be
 * limited to. */
static void refusals_are_no_lack_of_memory(void **state)
{
    (void)state;
    tconv_device *device = new_device();
    tconv_plan *plan = NULL;
    tconv_error error;
    tconv_plan_options plan_options = TCONV_PLAN_OPTIONS_INIT;
    char text[2000], usual[100];
    tconv_problem p = problem_of();
    p.data_type = p.filter_type = TCONV_I8;
    p.output_type = TCONV_I32;
    device->info.work_group_limit = 256;
    plan_options.algorithm = "matrix_group";
    fault_limit("tconv_matrix", 16, 0);
    assert_int_equal(tconv_plan_create(device, &p, &plan_options, &plan, &error),
                     TCONV_ERROR_ALGORITHM);
    assert_non_null(strstr(error.message, "matrix_group"));
    assert_non_null(strstr(error.message, "work-groups of 16 work-items"));
    assert_non_null(strstr(error.message, "it needs work-groups of 32"));

    /* A processor with wide vectors, whatever the device is; its first choice copies inputs to
     * local memory. */
    device->info.kind = TCONV_DEVICE_CPU;
    device->info.vector_width = 8;
    device->info.local_memory = 256 << 10;
    p = problem_of();
    p.data = (tconv_shape){4, {1, 64, 16, 16}};
    p.filter = (tconv_shape){4, {64, 64, 4, 4}};
    p.strides = (tconv_list){2, {2, 2}};
    fault_limit(NULL, 0, 0);
    assert_int_equal(tconv_plan_create(device, &p, NULL, &plan, &error), TCONV_OK);
    snprintf(usual, sizeof usual, "%s", choice_of(plan, text));
    fault_limit(kernel_of(usual), 1, 1 << 30);
    if (tconv_plan_create(device, &p, NULL, &plan, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    assert_string_not_equal(choice_of(plan, text), usual);
    assert_int_equal(strncmp(text, usual, strlen(usual)), 0);
    assert_non_null(strstr(text, "does not take this problem"));
    plan_options.algorithm = usual;
    assert_int_equal(tconv_plan_create(device, &p, &plan_options, &plan, &error),
                     TCONV_ERROR_ALGORITHM);
    fault_limit(NULL, 0, 0);
    tconv_device_release(device);
}

/* A layer for which GPUs have several tiles. */
static tconv_problem many_channels(void)
{
    tconv_problem p = problem_of();
    p.data = (tconv_shape){4, {1, 64, 16, 16}};
    p.filter = (tconv_shape){4, {64, 64, 4, 4}};
    p.strides = (tconv_list){2, {2, 2}};
    return p;
}

/* On a GPU another tile replaces one that spills registers. If the next tile has as much private
 * memory, spills are not the cause, and the search ends. */
static void a_tile_that_spills_is_left(void **state)
{
    (void)state;
    tconv_device *device = new_device();
    tconv_plan *plan = NULL;
    tconv_error error;
    char first[300], other[300], last[300];
    const tconv_problem p = many_channels();
    device->info.kind = TCONV_DEVICE_GPU;
    device->info.dedicated_local = true;
    device->info.vector_width = 1;
    device->info.work_group_limit = 256;
    const struct {
        int answers;
        char *tile;
    } runs[] = {{0, first}, {1, other}, {1000, last}};
    struct passed_over heard = {.count = 0};
    int programs[3];
    tconv_device_set_trace(device, TCONV_TRACE_ALL, hear_passed_over, &heard, NULL);
    for (int i = 0; i < 3; i++) {
        heard.programs = 0;
        fault_spill(runs[i].answers);
        if (tconv_plan_create(device, &p, NULL, &plan, &error) != TCONV_OK)
            fail_msg("%s", error.message);
        assert_string_equal(tconv_plan_algorithm(plan), "tiled_group");
        tconv_plan_tile(plan, runs[i].tile, sizeof first);
        tconv_plan_release(plan);
        programs[i] = heard.programs;
    }
    fault_spill(-1);
    assert_true(programs[2] <= 3 * programs[0]); /* the first, one other, the first again */
    assert_string_not_equal(first, other);
    assert_string_equal(first, last);
    assert_int_equal(heard.count, 1);
    assert_string_equal(heard.message, "its kernel spills registers");
    tconv_device_release(device);
}

/* A plan for a device that says it is a GPU of Intel whose threads may have 256 registers. */
static tconv_status plan_with_registers(const char *name, tconv_plan **plan, tconv_error *error)
{
    tconv_device *device = new_device();
    tconv_plan_options plan_options = TCONV_PLAN_OPTIONS_INIT;
    const tconv_problem p = many_channels();
    device->info.kind = TCONV_DEVICE_GPU;
    device->info.dedicated_local = true;
    device->info.architecture = TCONV_ARCHITECTURE_INTEL_XE_HP;
    device->info.subgroup_least = 8;
    device->info.vector_width = 1;
    device->info.work_group_limit = 256;
    plan_options.algorithm = name;
    const tconv_status status = tconv_plan_create(device, &p, &plan_options, plan, error);
    tconv_device_release(device);
    return status;
}

/* If a compiler refuses the option for more registers, the algorithm's best tile that does without
 * takes the place of one that wants them. Other failures of that build end the plan. */
static void a_refused_option_is_left_out(void **state)
{
    (void)state;
    static const char option[] = "-cl-intel-256-GRF-per-thread";
    static const cl_int codes[] = {CL_INVALID_BUILD_OPTIONS, CL_BUILD_PROGRAM_FAILURE};
    tconv_plan *plan = NULL;
    tconv_error error;
    char text[2000];
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        long tile[2] = {0, 0};
        fault_refuse(option, codes[i]);
        if (plan_with_registers(NULL, &plan, &error) != TCONV_OK) fail_msg("%s", error.message);
        assert_int_equal(fault_refusals(), codes[i] == CL_BUILD_PROGRAM_FAILURE ? 2 : 1);
        tconv_plan_tile(plan, text, sizeof text);
        assert_int_equal(sscanf(text, "mt=%*d nt=%*d tm=%ld tn=%ld", &tile[0], &tile[1]), 2);
        assert_in_range(tile[0] * tile[1], 1, 16);
        assert_string_equal(choice_of(plan, text), "tiled_group");
        assert_string_equal(text, "");
    }
    assert_int_equal(plan_with_registers("tiled_group tm=8 tn=8", &plan, &error),
                     TCONV_ERROR_ALGORITHM);
    assert_non_null(strstr(error.message, option));

    fault_refuse(option, CL_COMPILER_NOT_AVAILABLE);
    assert_int_equal(plan_with_registers(NULL, &plan, &error), TCONV_ERROR_OPENCL);
    assert_int_equal(error.opencl_code, CL_COMPILER_NOT_AVAILABLE);
    assert_int_equal(fault_refusals(), 1);
    fault_refuse(NULL, CL_SUCCESS);
}

/* A matrix unit is judged by what it computes, not by what is missing while it is tried. */
static void a_unit_is_tried_again(void **state)
{
    (void)state;
    static const struct {
        const char *call;
        cl_int code;
    } missing[] = {
        {"clCreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE},
        {"clBuildProgram", CL_OUT_OF_HOST_MEMORY},
        {"clCreateCommandQueue", CL_OUT_OF_RESOURCES},
        {"clEnqueueNDRangeKernel", CL_MEM_OBJECT_ALLOCATION_FAILURE},
        {"clEnqueueReadBuffer", CL_OUT_OF_RESOURCES},
        {"clEnqueueReadBuffer", CL_DEVICE_NOT_AVAILABLE},
        {"calloc", 1},
    };
    tconv_device *device = new_device();
    tconv_error error;
    bool right;
    struct tconv_retry retry = {.insist = false};
    device->info.work_group_limit = 256;
    atomic_int *verdict = tconv_device_verdict(device, "i8 x i8 matrix_group");
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        fault_arm(fault_call_named(missing[i].call), 1, missing[i].code);
        const tconv_status status =
            tconv_probe_matrix(device, TCONV_I8, TCONV_I8, "matrix_group", &retry, &right, &error);
        assert_true(fault_disarm());
        if (status == TCONV_OK) fail_msg("%s: no error", missing[i].call);
        assert_int_equal(error.status, status);
        assert_int_equal(atomic_load(verdict), 0);
    }
    right = false;
    if (tconv_probe_matrix(device, TCONV_I8, TCONV_I8, "matrix_group", &retry, &right, &error) !=
        TCONV_OK)
        fail_msg("%s", error.message);
    assert_true(right);
    assert_int_equal(atomic_load(verdict), 1);

    /* A compiler that fails once may have been interrupted; twice, it may be short of memory: the
     * unit is not used now, but tried again. */
    verdict = tconv_device_verdict(device, "u8 x u8 matrix_group");
    fault_arm_times(fault_call_named("clBuildProgram"), 1, 2, CL_BUILD_PROGRAM_FAILURE);
    right = true;
    assert_int_equal(
        tconv_probe_matrix(device, TCONV_U8, TCONV_U8, "matrix_group", &retry, &right, &error),
        TCONV_OK);
    assert_true(fault_disarm());
    assert_false(right);
    assert_true(retry.again > 0);
    assert_int_equal(atomic_load(verdict), 0);
    retry = (struct tconv_retry){.begun = tconv_os_seconds()};
    assert_int_equal(
        tconv_probe_matrix(device, TCONV_U8, TCONV_U8, "matrix_group", &retry, &right, &error),
        TCONV_OK);
    assert_true(right);
    assert_int_equal(atomic_load(verdict), 1);

    /* A kernel that the device does not run is the unit's fault. */
    fault_arm(fault_call_named("clCreateKernel"), 1, CL_INVALID_KERNEL_DEFINITION);
    assert_int_equal(
        tconv_probe_matrix(device, TCONV_BF16, TCONV_BF16, "matrix_group", &retry, &right, &error),
        TCONV_OK);
    assert_true(fault_disarm());
    assert_false(right);
    assert_int_equal(atomic_load(tconv_device_verdict(device, "bf16 x bf16 matrix_group")), -1);

    /* A plan that would use the unit fails with the same error, and says how to do without the
     * unit. */
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.data_type = p.filter_type = TCONV_F16;
    p.data = (tconv_shape){3, {1, 64, 64}};
    p.filter = (tconv_shape){3, {64, 64, 4}};
    tconv_plan *plan = NULL;
    device->info.kind = TCONV_DEVICE_GPU;
    device->info.dedicated_local = true;
    device->info.matrix_unit = TCONV_MATRIX_AMD_WMMA;
    fault_arm(fault_call_named("clCreateBuffer"), 1, CL_OUT_OF_RESOURCES);
    assert_int_equal(tconv_plan_create(device, &p, NULL, &plan, &error), TCONV_ERROR_DEVICE_MEMORY);
    assert_true(fault_disarm());
    assert_non_null(strstr(error.message, "TCONV_CL_MATRIX=off"));
    assert_int_equal(error.opencl_code, CL_OUT_OF_RESOURCES);
    device->info.matrix_unit = TCONV_MATRIX_NONE; /* it is still to be asked */
    right = false;
    if (tconv_probe_matrix(device, TCONV_F16, TCONV_F16, "matrix_group", &retry, &right, &error) !=
        TCONV_OK)
        fail_msg("%s", error.message);
    assert_true(right);
    tconv_device_release(device);
}

/* Runs bench for one layer. Its JSON goes to `json`, what it says on stderr to `said`, 4000 bytes
 * each. */
static void run_bench(char *json, char *said)
{
    char number[20], json_path[300], said_path[300];
    snprintf(number, sizeof number, "%d", device_number);
    snprintf(json_path, sizeof json_path, "%s/bench.json", folder);
    snprintf(said_path, sizeof said_path, "%s/stderr", folder);
    const char *arguments[] = {
        "tconv-cl bench", "--device",  number, "--data-shape", "1,2,4,5", "--filter-shape",
        "2,3,1,4",        "--strides", "1,2",  "--runs",       "1",       "--no-ceilings",
        "--json",         json_path,   NULL};
    fflush(stderr);
    const int before = dup(STDERR_FILENO);
    assert_non_null(freopen(said_path, "w", stderr));
    const enum exit_code code = command_bench(sizeof arguments / sizeof *arguments - 1, arguments);
    fflush(stderr);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    const struct {
        const char *path;
        char *text;
    } files[] = {{json_path, json}, {said_path, said}};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(files[i].path, "r");
        assert_non_null(file);
        files[i].text[fread(files[i].text, 1, 3999, file)] = '\0';
        fclose(file);
        unlink(files[i].path);
    }
    if (code != EXIT_DONE) fail_msg("bench: %s", said);
}

/* ---- transient failures ---- */

/* The options of the last program that was built. */
static char built_options[3000];

static void hear_options(void *nothing, const tconv_trace_event *event)
{
    (void)nothing;
    snprintf(built_options, sizeof built_options, "%s", event->options);
}

/* The algorithm that the library takes when nothing fails. */
static void find_usual(char usual[100])
{
    const tconv_problem p = problem_of();
    tconv_device *device = new_device();
    tconv_device_set_trace(device, TCONV_TRACE_PROGRAM, hear_options, NULL, NULL);
    tconv_plan *plan = NULL;
    tconv_error error;
    char text[2000];
    if (tconv_plan_create(device, &p, NULL, &plan, &error) != TCONV_OK)
        fail_msg("%s", error.message);
    snprintf(usual, 100, "%s", choice_of(plan, text));
    tconv_device_release(device);
}

/* A plan on a device while `times` builds fail. */
static tconv_plan *plan_while(tconv_device *device, const char *name, tconv_search search,
                              int times)
{
    const tconv_problem p = problem_of();
    tconv_plan_options plan_options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan = NULL;
    tconv_error error;
    plan_options.algorithm = name;
    plan_options.search = search;
    plan_options.search_ms = 1;
    if (times > 0)
        fault_arm_times(fault_call_named("clBuildProgram"), 1, times, CL_BUILD_PROGRAM_FAILURE);
    const tconv_status status = tconv_plan_create(device, &p, &plan_options, &plan, &error);
    if (times > 0) assert_true(fault_disarm());
    if (status != TCONV_OK) fail_msg("%s", error.message);
    return plan;
}

static int builds;

static void count_builds(void *nothing, const tconv_trace_event *event)
{
    (void)nothing;
    builds += event->kind == TCONV_TRACE_PROGRAM && strcmp(event->source, "compiler") == 0;
}

/* A later plan builds again what did not build, at once the first time, then after a pause, in
 * which a plan that has a choice does without it. */
static void later_plans_try_again(void **state)
{
    (void)state;
    char usual[100], text[2000];
    find_usual(usual);
    tconv_device *device = new_device();
    tconv_device_set_trace(device, TCONV_TRACE_PROGRAM, count_builds, NULL, NULL);
    builds = 0;
    tconv_plan *plan = plan_while(device, NULL, TCONV_SEARCH_MODEL, 2);
    const int first = builds; /* two that fail, and the next algorithm's */
    assert_true(first >= 3);
    assert_true(tconv_plan_is_stale(plan));
    assert_string_not_equal(choice_of(plan, text), usual);
    plan = plan_while(device, NULL, TCONV_SEARCH_MODEL, 1);
    assert_int_equal(builds, first + 1);
    assert_false(tconv_plan_is_stale(plan));
    assert_string_not_equal(choice_of(plan, text), usual);
    struct tconv_rejection *r = device->rejections;
    assert_non_null(r);
    r->again = tconv_os_seconds() + 1000;
    plan = plan_while(device, NULL, TCONV_SEARCH_MODEL, 0);
    assert_int_equal(builds, first + 1);
    assert_string_not_equal(choice_of(plan, text), usual);
    assert_non_null(strstr(text, "CL_BUILD_PROGRAM_FAILURE"));
    r->again = r->last;
    plan = plan_while(device, NULL, TCONV_SEARCH_MODEL, 0);
    assert_true(builds > first + 1);
    assert_string_equal(choice_of(plan, text), usual);
    assert_null(device->rejections);
    tconv_device_release(device);

    /* Whoever names the algorithm, or has no other, does not wait. */
    device = new_device();
    tconv_plan_release(plan_while(device, NULL, TCONV_SEARCH_MODEL, 2));
    device->rejections->again = tconv_os_seconds() + 1000;
    plan = plan_while(device, usual, TCONV_SEARCH_MODEL, 0);
    assert_string_equal(choice_of(plan, text), usual);
    tconv_device_release(device);
    device = new_device();
    const tconv_problem p = problem_of();
    tconv_error error;
    fault_arm_times(fault_call_named("clBuildProgram"), 1, 1000, CL_BUILD_PROGRAM_FAILURE);
    assert_int_equal(tconv_plan_create(device, &p, NULL, &plan, &error), TCONV_ERROR_BUILD);
    fault_disarm();
    for (struct tconv_rejection *one = device->rejections; one != NULL; one = one->next)
        one->again = tconv_os_seconds() + 1000;
    plan = plan_while(device, NULL, TCONV_SEARCH_MODEL, 0);
    assert_false(tconv_plan_is_stale(plan));
    assert_true(plan->retry.again == 0);
    assert_string_equal(choice_of(plan, text), usual);
    assert_string_equal(text, "");
    tconv_device_release(device);
}

/* A search is not stored if a candidate could not be timed that may be the fastest later. */
static void searches_of_the_moment_are_not_stored(void **state)
{
    (void)state;
    char text[2000];
    tconv_device *device = new_device();
    tconv_plan_release(plan_while(device, NULL, TCONV_SEARCH_MEASURE, 2));
    assert_null(device->store.drawer[TCONV_STORED_SEARCH].first);
    fault_arm(fault_call_named("clEnqueueNDRangeKernel"), 2, CL_OUT_OF_RESOURCES);
    tconv_plan *plan = plan_while(device, NULL, TCONV_SEARCH_MEASURE, 0);
    choice_of(plan, text);
    assert_null(device->store.drawer[TCONV_STORED_SEARCH].first);
    tconv_plan_release(plan_while(device, NULL, TCONV_SEARCH_MEASURE, 0));
    assert_non_null(device->store.drawer[TCONV_STORED_SEARCH].first);
    tconv_device_release(device);
}

/* A opened layer makes the plan anew that it keeps, once for each try that is due. */
static void layers_try_again(void **state)
{
    (void)state;
    const tconv_problem p = problem_of();
    float x[2 * 4 * 5] = {1}, w[2 * 3 * 4] = {2}, y[3 * 4 * 12];
    tconv_tensors arrays = TCONV_TENSORS_INIT;
    arrays.data.host = x;
    arrays.filter.host = w;
    arrays.output.host = y;
    tconv_device *device = NULL;
    tconv_layer *layer = NULL;
    tconv_error error;
    assert_int_equal(tconv_device_open(device_number, &device, &error), TCONV_OK);
    tconv_device_set_cache(device, NULL, 0, NULL);
    assert_int_equal(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error),
                     TCONV_OK);
    static const struct {
        int fail, made; /* builds that fail, plans made so far */
        cl_int code;
    } runs[] = {
        {2, 1, CL_BUILD_PROGRAM_FAILURE}, /* the first plan: a slower algorithm */
        {1, 2, CL_BUILD_PROGRAM_FAILURE}, /* made anew at once, and not better */
        {1, 2, CL_OUT_OF_HOST_MEMORY},    /* no plan can be made: the old one stays, for good */
        {0, 2, 0},
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
        if (runs[i].fail > 0)
            fault_arm_times(fault_call_named("clBuildProgram"), 1, runs[i].fail, runs[i].code);
        memset(y, 0xff, sizeof y);
        if (tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error) != TCONV_OK)
            fail_msg("run %zu: %s", i, error.message);
        if (runs[i].fail > 0) assert_true(fault_disarm());
        assert_true(y[0] == 2 && y[1] == 0);
        assert_int_equal(tconv_layer_count(layer, &counts, NULL), TCONV_OK);
        assert_int_equal(counts.plans_made, runs[i].made);
        assert_int_equal(counts.plans_kept, 1);
        while (tconv_os_seconds() < device->rejections->again) tconv_os_yield();
    }
    tconv_layer_release(layer);
    tconv_device_release(device);
}

/* A layer on a queue tries once more when it gets weights. Runs that leave the filter out go on
 * with what they have. */
static void set_weights_try_again(void **state)
{
    (void)state;
    const tconv_problem p = problem_of();
    char usual[100];
    float x[2 * 4 * 5] = {1}, w[2 * 3 * 4] = {2}, y[3 * 4 * 12];
    tconv_tensors weights = TCONV_TENSORS_INIT, tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    tconv_error error;
    cl_int code;
    find_usual(usual);
    weights.filter.host = w;
    cl_command_queue queue = clCreateCommandQueue(context, device_id, 0, &code);
    tensors.data.memory = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof x, x, &code);
    tensors.output.memory = clCreateBuffer(context, 0, sizeof y, NULL, &code);
    run.queue = queue;
    tconv_device *device = new_device();
    tconv_layer *layer = NULL;
    assert_int_equal(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error),
                     TCONV_OK);
    for (int i = 0; i < 3; i++) {
        tconv_plan *plan = NULL;
        if (i == 0)
            fault_arm_times(fault_call_named("clBuildProgram"), 1, 2, CL_BUILD_PROGRAM_FAILURE);
        if (tconv_layer_set(layer, &p, NULL, &weights, &run, &error) != TCONV_OK)
            fail_msg("%s", error.message);
        if (i == 0) assert_true(fault_disarm());
        for (int late = 0; late < 2; late++) { /* at once, and when the next try is due */
            memset(y, 0xff, sizeof y);
            assert_int_equal(tconv_layer_run(layer, &p, NULL, &tensors, &run, &error), TCONV_OK);
            assert_int_equal(clEnqueueReadBuffer(queue, tensors.output.memory, CL_TRUE, 0, sizeof y,
                                                 y, 0, NULL, NULL),
                             CL_SUCCESS);
            assert_true(y[0] == 2 && y[1] == 0);
            assert_int_equal(tconv_layer_plan(layer, &p, NULL, &plan, &error), TCONV_OK);
            assert_true((strcmp(tconv_plan_algorithm(plan), usual) == 0) == (i > 0));
            tconv_plan_release(plan);
            while (device->rejections != NULL && tconv_os_seconds() < device->rejections->again)
                tconv_os_yield();
        }
    }
    tconv_layer_release(layer);
    tconv_device_release(device);
    clReleaseMemObject(tensors.data.memory);
    clReleaseMemObject(tensors.output.memory);
    clReleaseCommandQueue(queue);
}

static void bench_tells_what_was_passed_over(void **state)
{
    (void)state;
    static char json[4000], said[4000];
    run_bench(json, said);
    assert_non_null(strstr(json, "\"passed_over\": null"));
    assert_string_equal(said, "");
    setenv("TCONV_CL_CACHE", "off", 1);
    fault_arm_times(fault_call_named("clBuildProgram"), 1, 2, CL_BUILD_PROGRAM_FAILURE);
    run_bench(json, said);
    assert_true(fault_disarm());
    unsetenv("TCONV_CL_CACHE");
    assert_non_null(strstr(json, "\"passed_over\": \""));
    assert_non_null(strstr(json, "clBuildProgram failed with CL_BUILD_PROGRAM_FAILURE"));
    assert_non_null(strstr(said, ": passed over "));
    assert_non_null(strstr(said, "clBuildProgram failed with CL_BUILD_PROGRAM_FAILURE"));
}

static int open_device(void **state)
{
    (void)state;
    cl_int code;
    device_number = find_one_device(&device_id);
    if (device_number < 0) return 1;
    context = clCreateContext(NULL, 1, &device_id, NULL, NULL, &code);
    if (code != CL_SUCCESS) return 1;
    snprintf(folder, sizeof folder, "/tmp/tconv-passed-over-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int close_device(void **state)
{
    (void)state;
    clReleaseContext(context);
    return rmdir(folder);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(only_unfit_kernels_are_passed_over),
        cmocka_unit_test(refusals_are_no_lack_of_memory),
        cmocka_unit_test(a_tile_that_spills_is_left),
        smoke_test(a_refused_option_is_left_out),
        cmocka_unit_test(a_unit_is_tried_again),
        cmocka_unit_test(later_plans_try_again),
        cmocka_unit_test(searches_of_the_moment_are_not_stored),
        cmocka_unit_test(layers_try_again),
        cmocka_unit_test(set_weights_try_again),
        cmocka_unit_test(bench_tells_what_was_passed_over),
    };
    const int failures = run_smoke_or_all("passed over", tests, open_device, close_device);
    report_compiling();
    return failures;
}
