/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of devices (clCreateSubDevices): device objects, plans, kept programs, searches and layers
 * on them, and the errors where an OpenCL implementation does not take one. */
#include "portable.h"
#include "setup.h"
#include "smoke.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PARTS = 256 };

/* Divides a device into parts of one compute unit, and gives two of them. False if it cannot be
 * divided. */
static bool divide(const struct device *device, cl_device_id parts[2])
{
    static const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    cl_device_partition_property ways[8] = {0};
    cl_device_id all[MOST_PARTS];
    cl_uint most = 0, count = 0;
    size_t size = 0;
    bool divides = false;
    const cl_device_id id = id_of(device);
    clGetDeviceInfo(id, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL);
    clGetDeviceInfo(id, CL_DEVICE_PARTITION_PROPERTIES, sizeof ways, ways, &size);
    for (size_t i = 0; i < size / sizeof *ways; i++)
        divides = divides || ways[i] == CL_DEVICE_PARTITION_EQUALLY;
    if (!divides || most < 2 || device->info->compute_units > MOST_PARTS ||
        clCreateSubDevices(id, equally, MOST_PARTS, all, &count) != CL_SUCCESS || count < 2) {
        print_message("%s is not divided\n", device->info->name);
        return false;
    }
    for (cl_uint i = 2; i < count; i++) clReleaseDevice(all[i]);
    memcpy(parts, all, 2 * sizeof *all);
    return true;
}

static void release(cl_device_id parts[2])
{
    for (int i = 0; i < 2; i++) clReleaseDevice(parts[i]);
}

/* Whether PoCL's way: its contexts list whole devices, and take their parts. */
static bool lists_whole_devices(cl_context context, cl_device_id part)
{
    cl_device_id first = NULL;
    clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof first, &first, NULL);
    return first != part;
}

static cl_context context_of(const cl_device_id *list, cl_uint count)
{
    cl_int code;
    cl_context context = clCreateContext(NULL, count, list, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return context;
}

static cl_command_queue queue_of(cl_context context, cl_device_id device)
{
    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    return queue;
}

/* Runs a problem on a device with a queue of its own or of a part of it. */
static void expect_right(const struct device *device)
{
    const tconv_problem p = plane(1, 6, 10, 20, 4, 2, 1);
    struct setup s;
    set_up(&s, device, &p, NULL, true, SMALL_INTEGERS);
    pack(&s);
    enqueue(&s);
    download(&s, 0, NULL);
    compare_with_oracle(device, &p, NULL, true, &s.tensors);
    tear_down(&s);
}

/* A context that is made of a part takes it, as a kernel of the application's does. */
static void a_part_is_a_device(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        cl_device_id parts[2];
        if (!divide(&devices[d], parts)) continue;
        tconv_error error;
        struct device part = {.number = devices[d].number, .context = context_of(parts, 1)};
        part.queue = queue_of(part.context, parts[0]);
        expect_ok(tconv_device_create(part.context, parts[0], &part.device, &error), &error);
        part.info = tconv_device_properties(part.device);
        assert_int_equal(part.info->compute_units, 1);
        release(parts); /* the device object keeps its own */
        expect_right(&part);
        clReleaseCommandQueue(part.queue);
        tconv_device_release(part.device);
        clReleaseContext(part.context);
    }
}

/* A part of a listed device, a device of which parts are listed, and queues of other parts. */
static void what_cannot_work_is_told(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        cl_device_id parts[2];
        if (!divide(&devices[d], parts)) continue;
        const cl_device_id whole = id_of(&devices[d]);
        tconv_device *device = NULL;
        tconv_error error;
        cl_context of_part = context_of(parts, 1);
        const bool pocl = lists_whole_devices(of_part, parts[0]);
        tconv_status status = tconv_device_create(devices[d].context, parts[0], &device, &error);
        if (pocl)
            expect_ok(status, &error);
        else
            expect_error(status, TCONV_ERROR_MISMATCH, &error, "makes no queue for it");
        if (status == TCONV_OK) tconv_device_release(device);
        status = tconv_device_create(of_part, whole, &device, &error);
        if (pocl)
            expect_ok(status, &error);
        else
            expect_error(status, TCONV_ERROR_MISMATCH, &error,
                         "sub-devices of it: give one of them");
        if (status == TCONV_OK) tconv_device_release(device);

        const cl_device_id both[] = {whole, parts[0], parts[1]};
        cl_context of_all = context_of(both, 3);
        const tconv_problem p = plane(1, 2, 3, 4, 4, 2, 1);
        const struct {
            cl_device_id device, queue;
            const char *error; /* NULL: the queue is taken */
        } rows[] = {{parts[0], parts[0], NULL},
                    {parts[0], parts[1], "another device than the plan"},
                    {parts[0], whole, "another device than the plan"},
                    {whole, whole, NULL},
                    {whole, parts[1], NULL}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct device one = {.context = of_all, .queue = queue_of(of_all, rows[i].queue)};
            expect_ok(tconv_device_create(of_all, rows[i].device, &one.device, &error), &error);
            one.info = tconv_device_properties(one.device);
            if (rows[i].error == NULL)
                expect_right(&one);
            else {
                tconv_plan *plan;
                tconv_packed_filter *filter;
                const tconv_tensor weights = {.memory = buffer_of(&one, NULL, 1 << 10)};
                expect_ok(tconv_plan_create(one.device, &p, NULL, &plan, &error), &error);
                expect_ok(tconv_packed_filter_create(plan, NULL, &filter, &error), &error);
                expect_error(tconv_packed_filter_enqueue_pack(filter, one.queue, &weights, 0, NULL,
                                                              NULL, &error),
                             TCONV_ERROR_MISMATCH, &error, rows[i].error);
                clReleaseMemObject(weights.memory);
                tconv_packed_filter_release(filter);
                tconv_plan_release(plan);
            }
            clReleaseCommandQueue(one.queue);
            tconv_device_release(one.device);
        }
        clReleaseContext(of_all);
        clReleaseContext(of_part);
        release(parts);
    }
}

static void count_loaded(void *loaded, const tconv_trace_event *event)
{
    *(int *)loaded += event->kind == TCONV_TRACE_PROGRAM && strcmp(event->source, "disk") == 0;
}

/* What a folder keeps of a part: programs, and results of searches that are its own. */
static void a_part_keeps_what_it_learns(void **state)
{
    (void)state;
    char folder[200];
    assert_true(make_temporary_folder("tconv-parts", folder, sizeof folder));
    for (int d = 0; d < device_count; d++) {
        cl_device_id parts[2];
        if (!divide(&devices[d], parts)) continue;
        const tconv_problem p = plane(1, 2, 3, 4, 4, 2, 1);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.search = TCONV_SEARCH_MEASURE;
        options.search_ms = 1;
        cl_context context = context_of(parts, 2);
        int loaded = 0;
        for (int i = 0; i < 3; i++) { /* a part, the other part, the whole device */
            tconv_device *device;
            tconv_plan *plan;
            tconv_error error;
            tconv_choice choice = TCONV_CHOICE_INIT;
            expect_ok(i < 2 ? tconv_device_create(context, parts[i], &device, &error)
                            : tconv_device_create(devices[d].context, id_of(&devices[d]), &device,
                                                  &error),
                      &error);
            expect_ok(tconv_device_set_cache(device, folder, 0, &error), &error);
            expect_ok(
                tconv_device_set_trace(device, TCONV_TRACE_PROGRAM, count_loaded, &loaded, &error),
                &error);
            expect_ok(tconv_plan_create(device, &p, &options, &plan, &error), &error);
            expect_ok(tconv_plan_choice(plan, &choice, &error), &error);
            assert_int_equal(choice.source, i == 1 ? TCONV_SEARCH_RECORDS : TCONV_SEARCH_MEASURE);
            assert_true(loaded > 0 || i == 0 || tconv_device_cache(device) == NULL);
            tconv_plan_release(plan);
            tconv_device_release(device);
        }
        clReleaseContext(context);
        release(parts);
    }
    assert_true(remove_folder(folder));
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(a_part_is_a_device),
        cmocka_unit_test(what_cannot_work_is_told),
        cmocka_unit_test(a_part_keeps_what_it_learns),
    };
    return run_smoke_or_all("parts", tests, open_all_devices, close_all_devices);
}
