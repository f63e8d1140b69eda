/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of plan.h and layer.h: events, offsets, sub-buffers, shared and repacked filters,
 * out-of-order queues, empty problems, and an error with a sentence for each misuse. */
#include "portable.h"
#include "setup.h"
#include "smoke.h"

#include "oracle/oracle.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void events_order_the_work(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const tconv_problem p = plane(2, 5, 9, 17, 4, 2, 1);
        struct setup s;
        tconv_error error;
        set_up(&s, &devices[d], &p, NULL, true, SMALL_INTEGERS);
        cl_event gate = new_gate(&devices[d]), packed, done;
        expect_ok(tconv_packed_filter_enqueue_pack(s.filter, devices[d].queue,
                                                   &(tconv_tensor){.memory = s.weights}, 1, &gate,
                                                   &packed, &error),
                  &error);
        expect_ok(tconv_plan_enqueue(s.plan, devices[d].queue, &s.args, 1, &packed, &done, &error),
                  &error);
        cl_int status;
        assert_int_equal(
            clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
            CL_SUCCESS);
        assert_true(status >
                    CL_COMPLETE); /* nothing ran before the gate opens, and nothing blocked */
        clSetUserEventStatus(gate, CL_COMPLETE);
        assert_int_equal(clWaitForEvents(1, &done), CL_SUCCESS);
        download(&s, 1, &done);
        compare_with_oracle(&devices[d], &p, "auto", true, &s.tensors);
        clReleaseEvent(gate);
        clReleaseEvent(packed);
        clReleaseEvent(done);
        tear_down(&s);
    }
}

static void out_of_order_queues_work(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const cl_device_id id = id_of(&devices[d]);
        cl_int code;
        cl_command_queue queue = clCreateCommandQueue(
            devices[d].context, id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
        if (code != CL_SUCCESS) {
            print_message("device %d has no out-of-order queue\n", devices[d].number);
            continue;
        }
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            if (never_runs(&devices[d], tconv_algorithm_name(a))) continue;
            const tconv_problem p = plane_for(tconv_algorithm_name(a), 1, 6, 7, 19, 3, 2, 1);
            struct setup s;
            tconv_error error;
            set_up(&s, &devices[d], &p, tconv_algorithm_name(a), false, SMALL_INTEGERS);
            cl_event packed, done[8];
            expect_ok(tconv_packed_filter_enqueue_pack(s.filter, queue,
                                                       &(tconv_tensor){.memory = s.weights}, 0,
                                                       NULL, &packed, &error),
                      &error);
            for (int i = 0; i < 8; i++) /* each behind the one before: they share a workspace */
                expect_ok(tconv_plan_enqueue(s.plan, queue, &s.args, 1,
                                             i == 0 ? &packed : &done[i - 1], &done[i], &error),
                          &error);
            assert_int_equal(clWaitForEvents(1, &done[7]), CL_SUCCESS);
            download(&s, 0, NULL);
            compare_with_oracle(&devices[d], &p, tconv_algorithm_name(a), false, &s.tensors);
            clReleaseEvent(packed);
            for (int i = 0; i < 8; i++) clReleaseEvent(done[i]);
            tear_down(&s);
        }
        clReleaseCommandQueue(queue);
    }
}

static void one_filter_serves_several_plans(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const tconv_problem small = plane(1, 8, 6, 32, 4, 2, 1);
        tconv_problem large = plane(3, 8, 6, 32, 4, 2, 0);
        struct setup s, other;
        set_up(&s, &devices[d], &small, "gather_group", false, SMALL_INTEGERS);
        set_up(&other, &devices[d], &large, "gather_group", false, SMALL_INTEGERS);
        pack(&s);
        other.args.packed = s.filter; /* its own was never packed */
        memcpy(other.tensors.filter, s.tensors.filter, s.tensors.filter_count * sizeof(float));
        enqueue(&other);
        download(&other, 0, NULL);
        compare_with_oracle(&devices[d], &large, "gather_group", false, &other.tensors);
        tear_down(&s);
        tear_down(&other);
    }
}

/* An owner's release takes nothing from the others; the sanitizers' run finds what is left over. */
static void objects_have_owners(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const tconv_problem p = plane(1, 8, 6, 32, 4, 2, 1);
        struct setup s;
        set_up(&s, &devices[d], &p, "gather_group", false, SMALL_INTEGERS);
        tconv_device_retain(devices[d].device);
        tconv_plan_retain(s.plan);
        tconv_packed_filter_retain(s.filter);
        tconv_packed_filter_release(s.filter);
        tconv_plan_release(s.plan);
        tconv_device_release(devices[d].device);
        pack(&s);
        enqueue(&s);
        download(&s, 0, NULL);
        compare_with_oracle(&devices[d], &p, "gather_group", false, &s.tensors);
        tear_down(&s);
    }
    tconv_packed_filter_retain(NULL);
    tconv_plan_retain(NULL);
    tconv_device_retain(NULL);
}

/* A network with a dynamic width packs once: all extents, batches and pads share the layout of one
 * algorithm. Not so with fast arithmetic, whose tiles follow the extents; then the filter is
 * refused. */
static void layouts_do_not_depend_on_extents(void **state)
{
    (void)state;
    for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
        if (strcmp(tconv_algorithm_name(a), "winograd_vector") == 0) continue;
        if (never_runs(&devices[0], tconv_algorithm_name(a))) continue;
        const tconv_problem first = plane_for(tconv_algorithm_name(a), 1, 16, 24, 32, 4, 2, 1);
        struct setup s;
        set_up(&s, &devices[0], &first, tconv_algorithm_name(a), false, SMALL_INTEGERS);
        pack(&s);
        static const int widths[] = {1, 2, 5, 16, 17, 33, 64, 100};
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
            if (!sample_is_whole() && i % 3 != 2) continue;
            const tconv_problem p = plane_for(tconv_algorithm_name(a), (int64_t)i % 3, 16, 24,
                                              widths[i], 4, 2, (int64_t)i % 2);
            struct setup other;
            set_up(&other, &devices[0], &p, tconv_algorithm_name(a), false, SMALL_INTEGERS);
            other.args.packed = s.filter;
            memcpy(other.tensors.filter, s.tensors.filter, (size_t)s.tensors.geometry.filter_bytes);
            enqueue(&other);
            clFinish(devices[0].queue);
            if (p.data.dim[0] > 0) {
                download(&other, 0, NULL);
                compare_with_oracle(&devices[0], &p, tconv_algorithm_name(a), false,
                                    &other.tensors);
            }
            tear_down(&other);
        }
        tear_down(&s);
    }
}

static void weights_may_change(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            if (never_runs(&devices[d], tconv_algorithm_name(a))) continue;
            const tconv_problem p = plane_for(tconv_algorithm_name(a), 1, 6, 7, 19, 3, 2, 1);
            struct setup s;
            set_up(&s, &devices[d], &p, tconv_algorithm_name(a), false, SMALL_INTEGERS);
            for (int round = 0; round < 3; round++) {
                /* Round 1 has an infinite weight: its flag must be gone again in round 2. */
                for (size_t i = 0; i < s.tensors.filter_count; i++)
                    tconv_oracle_write(p.filter_type, s.tensors.filter, (int64_t)i,
                                       (int)(i * 7 + (size_t)round) % 5 - 2);
                if (round == 1 && tconv_type_is_floating(p.filter_type))
                    tconv_oracle_write(p.filter_type, s.tensors.filter, 4, -INFINITY);
                assert_int_equal(clEnqueueWriteBuffer(devices[d].queue, s.weights, CL_TRUE, 0,
                                                      (size_t)s.tensors.geometry.filter_bytes,
                                                      s.tensors.filter, 0, NULL, NULL),
                                 CL_SUCCESS);
                pack(&s);
                enqueue(&s);
                download(&s, 0, NULL);
                compare_with_oracle(&devices[d], &p, tconv_algorithm_name(a), false, &s.tensors);
            }
            tear_down(&s);
        }
}

static void sub_buffers_work(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const tconv_problem p = plane(1, 4, 3, 8, 4, 2, 1);
        struct setup s;
        set_up(&s, &devices[d], &p, NULL, false, SMALL_INTEGERS);
        pack(&s);
        cl_uint bits = 0;
        clGetDeviceInfo(id_of(&devices[d]), CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits,
                        NULL);
        const size_t step = bits / 8, bytes = s.output_bytes;
        cl_mem whole = buffer_of(&devices[d], NULL, bytes + 4 * step);
        const cl_buffer_region region = {step, bytes + 2 * sizeof(float)};
        cl_int code;
        cl_mem part = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                        &region, &code);
        assert_int_equal(code, CL_SUCCESS);
        s.args.output =
            (tconv_tensor){part, 2 * sizeof(float), NULL, NULL}; /* an offset inside a sub-buffer */
        enqueue(&s);
        assert_int_equal(clEnqueueReadBuffer(devices[d].queue, whole, CL_TRUE,
                                             step + 2 * sizeof(float), bytes, s.tensors.output, 0,
                                             NULL, NULL),
                         CL_SUCCESS);
        compare_with_oracle(&devices[d], &p, "auto", false, &s.tensors);
        clReleaseMemObject(part);
        clReleaseMemObject(whole);
        tear_down(&s);
    }
}

static void an_empty_batch_is_a_problem_like_others(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            if (never_runs(&devices[d], tconv_algorithm_name(a))) continue;
            const tconv_problem p = plane_for(tconv_algorithm_name(a), 0, 6, 7, 19, 3, 2, 1);
            struct setup s;
            tconv_error error;
            set_up(&s, &devices[d], &p, tconv_algorithm_name(a), false, SMALL_INTEGERS);
            pack(&s);
            s.args.data.memory = s.args.output.memory = s.args.workspace.memory = NULL;
            cl_event done;
            expect_ok(tconv_plan_enqueue(s.plan, devices[d].queue, &s.args, 0, NULL, &done, &error),
                      &error);
            assert_int_equal(clWaitForEvents(1, &done), CL_SUCCESS);
            clReleaseEvent(done);
            enqueue(&s);
            tear_down(&s);
        }
}

/* ---- misuse ---- */

static void misuse_has_a_sentence(void **state)
{
    (void)state;
    const struct device *d = &devices[0];
    const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1);
    struct setup s;
    tconv_error error;
    set_up(&s, d, &p, "gather_group", false, SMALL_INTEGERS);
    tconv_plan *plan = NULL;
    tconv_packed_filter *filter = NULL;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;

    expect_error(tconv_plan_create(NULL, &p, NULL, &plan, &error), TCONV_ERROR_ARGUMENT, &error,
                 "device is NULL");
    expect_error(tconv_plan_create(d->device, NULL, NULL, &plan, &error), TCONV_ERROR_ARGUMENT,
                 &error, "problem is NULL");
    expect_error(tconv_plan_create(d->device, &p, NULL, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                 "out is NULL");
    options.struct_size = 1;
    expect_error(tconv_plan_create(d->device, &p, &options, &plan, &error), TCONV_ERROR_ARGUMENT,
                 &error, "struct_size");
    options = (tconv_plan_options)TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = "winograd";
    expect_error(tconv_plan_create(d->device, &p, &options, &plan, &error), TCONV_ERROR_ALGORITHM,
                 &error, "winograd");
    options.algorithm = "gather_group";
    options.workspace_limit = 1;
    expect_error(tconv_plan_create(d->device, &p, &options, &plan, &error), TCONV_ERROR_ALGORITHM,
                 &error, "workspace");
    assert_null(plan);

    expect_error(
        tconv_packed_filter_create(s.plan, &(tconv_tensor){s.data, 4, NULL, NULL}, &filter, &error),
        TCONV_ERROR_BUFFER, &error, "byte 4");
    cl_mem tiny = buffer_of(d, NULL, 64);
    expect_error(
        tconv_packed_filter_create(s.plan, &(tconv_tensor){.memory = tiny}, &filter, &error),
        TCONV_ERROR_BUFFER, &error, "too small");
    expect_error(tconv_packed_filter_create(s.plan, &(tconv_tensor){.offset = 64}, &filter, &error),
                 TCONV_ERROR_BUFFER, &error, "storage is missing");
    expect_error(tconv_packed_filter_enqueue_pack(
                     s.filter, d->queue, &(tconv_tensor){.memory = NULL}, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "weights is missing");
    expect_error(tconv_packed_filter_enqueue_pack(
                     s.filter, d->queue, &(tconv_tensor){.memory = tiny}, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "weights is too small");
    cl_mem both = buffer_of(d, NULL, 1 << 20);
    expect_ok(tconv_packed_filter_create(s.plan, &(tconv_tensor){.memory = both}, &filter, &error),
              &error);
    expect_error(tconv_packed_filter_enqueue_pack(filter, d->queue, &(tconv_tensor){.memory = both},
                                                  0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "filter overlaps weights");
    tconv_packed_filter_release(filter);
    filter = NULL;
    clReleaseMemObject(both);
    expect_error(tconv_packed_filter_enqueue_pack(
                     s.filter, NULL, &(tconv_tensor){.memory = s.weights}, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "queue is NULL");
    assert_null(filter);

    expect_error(tconv_plan_enqueue(s.plan, d->queue, &s.args, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "never packed");
    pack(&s);
    tconv_tensors args = s.args;
    args.packed = NULL;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "tensors.packed is NULL");
    args = s.args;
    args.data.memory = tiny;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "tensors.data is too small");
    args = s.args;
    args.output.offset = 2;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "tensors.output begins at byte 2");
    args.output.offset = (size_t)-4;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "tensors.output is too small");
    args = s.args;
    args.workspace.memory = NULL;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "tensors.workspace is missing");
    args = s.args;
    args.bias.memory = s.bias;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "tensors.bias");
    args = s.args;
    args.struct_size = 3;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "struct_size");
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &s.args, 2, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "wait list");
    expect_error(tconv_plan_enqueue(s.plan, NULL, &s.args, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "queue is NULL");

    /* Buffers that kernels would read or write wrongly. */
    const cl_event none = NULL;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &s.args, 1, &none, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "event 0 of the wait list is NULL");
    args = s.args;
    args.data = args.output;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "tensors.output overlaps tensors.data");
    both = buffer_of(d, NULL, 1 << 20);
    args = s.args;
    args.data = args.workspace = (tconv_tensor){.memory = both};
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "tensors.workspace overlaps tensors.data");
    clReleaseMemObject(both);
    const cl_device_id id = id_of(d);
    cl_int code;
    cl_mem constant = clCreateBuffer(d->context, CL_MEM_READ_ONLY, 1 << 20, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    args = s.args;
    args.output = (tconv_tensor){.memory = constant};
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_BUFFER, &error, "tensors.output was made with CL_MEM_READ_ONLY");
    clReleaseMemObject(constant);

    /* Objects of another context. */
    cl_context foreign = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    cl_command_queue foreign_queue = clCreateCommandQueue(foreign, id, 0, &code);
    cl_mem foreign_buffer = clCreateBuffer(foreign, CL_MEM_READ_WRITE, 1 << 20, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    expect_error(tconv_plan_enqueue(s.plan, foreign_queue, &s.args, 0, NULL, NULL, &error),
                 TCONV_ERROR_MISMATCH, &error, "queue belongs to another context");
    args = s.args;
    args.output.memory = foreign_buffer;
    expect_error(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error),
                 TCONV_ERROR_MISMATCH, &error, "tensors.output belongs to another context");
    expect_error(tconv_packed_filter_create(s.plan, &(tconv_tensor){.memory = foreign_buffer},
                                            &filter, &error),
                 TCONV_ERROR_MISMATCH, &error, "storage belongs to another context");
    clReleaseMemObject(foreign_buffer);
    clReleaseCommandQueue(foreign_queue);
    clReleaseContext(foreign);

    struct setup other;
    set_up(&other, d, &p, "reference", false, SMALL_INTEGERS);
    other.args.packed = s.filter; /* packed for another algorithm */
    expect_error(tconv_plan_enqueue(other.plan, d->queue, &other.args, 0, NULL, NULL, &error),
                 TCONV_ERROR_MISMATCH, &error, "reads \"reference");
    tear_down(&other);

    /* After all of that the plan still works. */
    enqueue(&s);
    download(&s, 0, NULL);
    compare_with_oracle(d, &p, "gather_group", false, &s.tensors);
    clReleaseMemObject(tiny);
    tear_down(&s);
}

static void devices_have_errors_too(void **state)
{
    (void)state;
    tconv_error error;
    int count;
    cl_device_id id;
    tconv_device *device = NULL;
    tconv_device_info info = {.struct_size = 0};
    assert_int_equal(tconv_device_count(&count, &error), TCONV_OK);
    expect_error(tconv_device_at(count, NULL, &id, &error), TCONV_ERROR_NO_DEVICE, &error,
                 "does not exist");
    expect_error(tconv_device_at(-1, NULL, &id, &error), TCONV_ERROR_NO_DEVICE, &error,
                 "does not exist");
    expect_error(tconv_device_count(NULL, &error), TCONV_ERROR_ARGUMENT, &error, "NULL");
    assert_int_equal(tconv_device_at(0, NULL, &id, &error), TCONV_OK);
    expect_error(tconv_device_describe(id, &info, &error), TCONV_ERROR_ARGUMENT, &error,
                 "struct_size");
    expect_error(tconv_device_create(NULL, id, &device, &error), TCONV_ERROR_ARGUMENT, &error,
                 "context is NULL");
    assert_null(device);
}

/* The first of all devices for which `kind` or `name` holds. */
static int first_of(tconv_device_kind kind, const char *name)
{
    int count;
    assert_int_equal(tconv_device_count(&count, NULL), TCONV_OK);
    for (int i = 0; i < count; i++) {
        cl_device_id id;
        tconv_device_info info = TCONV_DEVICE_INFO_INIT;
        assert_int_equal(tconv_device_at(i, NULL, &id, NULL), TCONV_OK);
        assert_int_equal(tconv_device_describe(id, &info, NULL), TCONV_OK);
        if (name == NULL ? info.kind == kind : strcmp(info.name, name) == 0) return i;
    }
    return -1;
}

static void devices_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tconv_device_kind kind;
    } kinds[] = {{"GPU", TCONV_DEVICE_GPU}, {"cpu", TCONV_DEVICE_CPU}};
    tconv_error error;
    int number = -1;
    for (int i = 0; i < 2; i++) {
        const int first = first_of(kinds[i].kind, NULL);
        const tconv_status status = tconv_device_find(kinds[i].name, &number, &error);
        if (first < 0) {
            expect_error(status, TCONV_ERROR_NO_DEVICE, &error, "the devices are 0 (");
        } else {
            assert_int_equal(status, TCONV_OK);
            assert_int_equal(number, first);
        }
    }
    for (int d = 0; d < device_count; d++) {
        char name[300];
        snprintf(name, sizeof name, "%d", devices[d].number);
        assert_int_equal(tconv_device_find(name, &number, &error), TCONV_OK);
        assert_int_equal(number, devices[d].number);
        /* A part of the name, in other letters; the first device that has it. */
        snprintf(name, sizeof name, "%s", devices[d].info->name);
        for (char *c = name; *c != '\0'; c++) *c = (char)toupper((unsigned char)*c);
        assert_int_equal(tconv_device_find(name + 1, &number, &error), TCONV_OK);
        assert_true(number <= first_of(TCONV_DEVICE_OTHER, devices[d].info->name));
    }
    expect_error(tconv_device_find("no such device", &number, &error), TCONV_ERROR_NO_DEVICE,
                 &error, "no device is \"no such device\"");
    expect_error(tconv_device_find("cpu", NULL, &error), TCONV_ERROR_ARGUMENT, &error, "NULL");
}

static void the_environment_names_the_default_device(void **state)
{
    (void)state;
    tconv_error error;
    int count, number = -1;
    char last[16];
    assert_int_equal(tconv_device_count(&count, &error), TCONV_OK);
    snprintf(last, sizeof last, "%d", count - 1);
    const char *before = getenv("TCONV_CL_DEVICE");
    char *kept = before == NULL ? NULL : strdup(before);
    set_variable("TCONV_CL_DEVICE", last);
    assert_int_equal(tconv_device_default(&number, &error), TCONV_OK);
    assert_int_equal(number, count - 1);
    static const char *const wrong[] = {"100000", "-1", "no such device"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set_variable("TCONV_CL_DEVICE", wrong[i]);
        expect_error(tconv_device_default(&number, &error), TCONV_ERROR_NO_DEVICE, &error,
                     "the environment variable TCONV_CL_DEVICE: no device is");
        assert_non_null(strstr(error.message, wrong[i]));
        assert_int_equal(number, count - 1);
    }
    set_variable("TCONV_CL_DEVICE", "");
    assert_int_equal(tconv_device_default(&number, &error), TCONV_OK);
    assert_in_range(number, 0, count - 1);
    if (kept == NULL)
        set_variable("TCONV_CL_DEVICE", NULL);
    else
        set_variable("TCONV_CL_DEVICE", kept);
    free(kept);
}

/* host_tests/test_environment.c has all values; here, the calls that read them. */
static void wrong_variables_are_errors(void **state)
{
    (void)state;
    enum { NAMES = 4 };
    static const char *const names[NAMES] = {"TCONV_CL_MATRIX", "TCONV_CL_CACHE",
                                             "TCONV_CL_CACHE_MIB", "TCONV_CL_LAUNCH_MS"};
    const cl_device_id id = id_of(&devices[0]);
    for (int i = 0; i < NAMES; i++) {
        tconv_error error;
        tconv_device *device = NULL;
        tconv_device_info info = {.struct_size = sizeof info};
        const char *before = getenv(names[i]);
        char *kept = before == NULL ? NULL : strdup(before);
        set_variable(names[i], "nonsense");
        expect_error(tconv_device_create(devices[0].context, id, &device, &error),
                     TCONV_ERROR_ARGUMENT, &error, names[i]);
        assert_null(device);
        if (i == 0)
            expect_error(tconv_device_describe(id, &info, &error), TCONV_ERROR_ARGUMENT, &error,
                         names[i]);
        if (kept == NULL)
            set_variable(names[i], NULL);
        else
            set_variable(names[i], kept);
        free(kept);
    }
}

static void a_broken_kernel_folder_is_an_error(void **state)
{
    (void)state;
    tconv_error error;
    const cl_device_id id = id_of(&devices[0]);
    tconv_device *device;
    set_variable("TCONV_CL_KERNEL_DIR", "/proc/none");
    expect_ok(tconv_device_create(devices[0].context, id, &device, &error), &error);
    set_variable("TCONV_CL_KERNEL_DIR", NULL);
    const tconv_problem p = plane(1, 4, 3, 8, 4, 2, 1);
    tconv_plan *plan = NULL;
    expect_error(tconv_plan_create(device, &p, NULL, &plan, &error), TCONV_ERROR_BUILD, &error,
                 "/proc/none/");
    assert_null(plan);
    tconv_device_release(device);
}

/* ---- host arrays ---- */

/* Each array without its member of the epilogue, and the member without the array: both are
 * named. */
static void arrays_and_epilogue_agree(void **state)
{
    (void)state;
    const tconv_problem p = plane(1, 2, 3, 4, 2, 2, 0);
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 4, &t);
    tconv_device *opened;
    tconv_error error;
    expect_ok(tconv_device_open(devices[0].number, &opened, &error), &error);
    static const char *const arrays_named[] = {"tensors.bias", "tensors.scale", "tensors.residual",
                                               "tensors.slope", "tensors.slope2"};
    static const char *const members[] = {
        "options.epilogue.bias is ", "options.epilogue.scale is ", "options.epilogue.residual is ",
        "options.epilogue.activation is ", "options.epilogue.activation is "};
    tconv_run in_slabs = TCONV_RUN_INIT;
    in_slabs.memory_limit = 400;
    for (int which = 0; which < 5; which++)
        for (int given = 0; given < 2; given++) {
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            tconv_tensors arrays = arrays_of(&t);
            const void **const slots[] = {&arrays.bias.host, &arrays.scale.host,
                                          &arrays.residual.host, &arrays.slope.host,
                                          &arrays.slope2.host};
            bool *const flags[] = {&options.epilogue.bias, &options.epilogue.scale,
                                   &options.epilogue.residual};
            if (given == 1)
                *slots[which] = t.filter;
            else if (which < 3)
                *flags[which] = true;
            else if (which == 3)
                options.epilogue.activation = TCONV_ACTIVATION_PRELU;
            else {
                options.epilogue.activation = TCONV_ACTIVATION_SNAKEBETA;
                arrays.slope.host = t.filter;
            }
            expect_error(compute_once(opened, &p, &options, &arrays, NULL, &error),
                         TCONV_ERROR_ARGUMENT, &error, arrays_named[which]);
            assert_non_null(strstr(error.message, members[which]));
            expect_error(compute_once(opened, &p, &options, &arrays, &in_slabs, &error),
                         TCONV_ERROR_ARGUMENT, &error, arrays_named[which]);
            assert_non_null(strstr(error.message, members[which]));
            if (given == 0) continue; /* no options: those of TCONV_PLAN_OPTIONS_INIT */
            expect_error(compute_once(opened, &p, NULL, &arrays, NULL, &error),
                         TCONV_ERROR_ARGUMENT, &error, members[which]);
            expect_error(compute_once(opened, &p, NULL, &arrays, &in_slabs, &error),
                         TCONV_ERROR_ARGUMENT, &error, members[which]);
        }
    tconv_device_release(opened);
    free_tensors(&t);
}

static void host_arrays_in_host_arrays_out(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *opened;
        tconv_error error;
        expect_ok(tconv_device_open(devices[d].number, &opened, &error), &error);
        const tconv_problem p = plane(2, 5, 7, 11, 3, 2, 1);
        struct tensors t;
        make_tensors(&p, REAL_NUMBERS, 4, &t);
        tconv_tensors arrays = arrays_of(&t);
        expect_ok(compute_once(opened, &p, NULL, &arrays, NULL, &error), &error);
        compare_with_oracle(&devices[d], &p, "auto", false, &t);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.algorithm = "reference";
        options.epilogue.bias = true;
        arrays.bias.host = t.bias;
        expect_ok(compute_once(opened, &p, &options, &arrays, NULL, &error), &error);
        compare_with_oracle(&devices[d], &p, "reference", true, &t);
        arrays.bias.host = NULL;
        expect_error(compute_once(NULL, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "devices[0] is NULL");
        expect_error(compute_once(opened, &p, NULL, NULL, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "tensors is NULL");
        arrays.data.host = NULL;
        expect_error(compute_once(opened, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                     &error, "tensors.data is absent");
        options.struct_size = 2;
        expect_error(compute_once(opened, &p, &options, &arrays, NULL, &error),
                     TCONV_ERROR_ARGUMENT, &error, "struct_size");
        const tconv_problem empty = plane(0, 5, 7, 11, 3, 2, 1);
        expect_ok(
            compute_once(opened, &empty, NULL, &(tconv_tensors)TCONV_TENSORS_INIT, NULL, &error),
            &error);
        free_tensors(&t);
        tconv_device_release(opened);
    }
    tconv_device *opened = NULL;
    tconv_error error;
    expect_error(tconv_device_open(100000, &opened, &error), TCONV_ERROR_NO_DEVICE, &error,
                 "100000");
    assert_null(opened);
    tconv_device_release(NULL);
    tconv_plan_release(NULL);
    tconv_packed_filter_release(NULL);
    tconv_device_release(NULL);
}

/* ---- structures of programs that were compiled with other headers ---- */

enum { ROOM = 64 };

/* A structure with room behind it. */
struct sized {
    union {
        size_t struct_size;
        unsigned char bytes[1024];
    } copy;
    const void *whole;
    size_t size, least;
    const char *argument;
};

enum { PROBLEM, OPTIONS, ARGS, ARRAYS, RUN, STRUCTURES };

/* The whole structure in `size` bytes: junk behind a shorter one, zeros at the end of a longer
 * one. */
static void resize(struct sized *s, size_t size)
{
    memset(&s->copy, 0xa5, sizeof s->copy);
    memcpy(&s->copy, s->whole, size < s->size ? size : s->size);
    if (size > s->size) memset(s->copy.bytes + s->size, 0, size - s->size);
    s->copy.struct_size = size;
}

/* Everything that takes one of the structures, with these. Stops at the first error. */
static tconv_status use(const struct setup *s, tconv_device *opened, struct sized *with,
                        tconv_error *error)
{
    const tconv_problem *problem = (const tconv_problem *)&with[PROBLEM].copy;
    const tconv_plan_options *options = (const tconv_plan_options *)&with[OPTIONS].copy;
    const tconv_tensors *arrays = (const tconv_tensors *)&with[ARRAYS].copy;
    const tconv_run *run = (const tconv_run *)&with[RUN].copy;
    tconv_status status;
    tconv_plan *plan = NULL;
    if ((status = tconv_plan_create(s->device->device, problem, options, &plan, error)) != TCONV_OK)
        return status;
    status = tconv_plan_enqueue(plan, s->device->queue, (const tconv_tensors *)&with[ARGS].copy, 0,
                                NULL, NULL, error);
    clFinish(s->device->queue);
    tconv_plan_release(plan);
    if (status != TCONV_OK ||
        (status = compute_once(opened, problem, options, arrays, run, error)) != TCONV_OK)
        return status;
    compare_with_oracle(s->device, &s->problem, "reference", false, &s->tensors);
    return TCONV_OK;
}

static void structures_may_be_of_any_version(void **state)
{
    (void)state;
    struct setup s;
    tconv_device *opened;
    tconv_error error;
    tconv_problem p = plane(1, 2, 3, 4, 2, 1, 0); /* strides at their default */
    p.strides.count = p.pads_begin.count = p.pads_end.count = 0;
    set_up(&s, &devices[0], &p, "reference", false, SMALL_INTEGERS);
    pack(&s);
    expect_ok(tconv_device_open(devices[0].number, &opened, &error), &error);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = "reference";
    tconv_tensors arrays = arrays_of(&s.tensors);
    const tconv_run run = TCONV_RUN_INIT;
    struct sized with[STRUCTURES] = {
        [PROBLEM] = {{0}, &p, sizeof p, offsetof(tconv_problem, strides), "problem"},
        [OPTIONS] =
            {{0}, &options, sizeof options, offsetof(tconv_plan_options, epilogue), "options"},
        [ARGS] = {{0}, &s.args, sizeof s.args, offsetof(tconv_tensors, bias), "tensors"},
        [ARRAYS] = {{0}, &arrays, sizeof arrays, offsetof(tconv_tensors, bias), "tensors"},
        [RUN] = {{0}, &run, sizeof run, offsetof(tconv_run, memory_limit), "run"},
    };
    for (int i = 0; i < STRUCTURES; i++) resize(&with[i], with[i].size);
    for (int i = 0; i < STRUCTURES; i++) {
        for (size_t size = with[i].least; size <= with[i].size + ROOM; size += 8) {
            resize(&with[i], size);
            expect_ok(use(&s, opened, with, &error), &error);
        }
        char words[40];
        snprintf(words, sizeof words, "struct_size of %s", with[i].argument);
        resize(&with[i], with[i].least - 1);
        expect_error(use(&s, opened, with, &error), TCONV_ERROR_ARGUMENT, &error, words);
        resize(&with[i], with[i].size + 8);
        with[i].copy.bytes[with[i].size + 7] = 1;
        expect_error(use(&s, opened, with, &error), TCONV_ERROR_UNSUPPORTED, &error, words);
        assert_non_null(strstr(error.message, "built for a newer version"));
        resize(&with[i], with[i].size);
    }
    options.epilogue.reserved[12] = 7;
    resize(&with[OPTIONS], sizeof options);
    expect_error(use(&s, opened, with, &error), TCONV_ERROR_UNSUPPORTED, &error,
                 "epilogue.reserved[12] is 7");
    tconv_device_release(opened);
    tear_down(&s);
}

static void a_description_ends_with_the_callers_structure(void **state)
{
    (void)state;
    const tconv_device_info *wanted = devices[0].info;
    const bool own = getenv("TCONV_CL_TEST_AS") == NULL; /* else it acts as another device */
    const size_t least = offsetof(tconv_device_info, compute_units);
    union {
        tconv_device_info info;
        unsigned char bytes[sizeof(tconv_device_info) + ROOM];
    } got;
    tconv_error error;
    for (size_t size = least; size <= sizeof got; size += 4) {
        memset(&got, 0xa5, sizeof got);
        got.info.struct_size = size;
        expect_ok(tconv_device_describe(id_of(&devices[0]), &got.info, &error), &error);
        assert_int_equal(got.info.struct_size, size);
        assert_string_equal(got.info.name, wanted->name);
        if (own) assert_int_equal(got.info.kind, wanted->kind);
        if (own && size >= sizeof *wanted)
            assert_int_equal(got.info.matrix_unit, wanted->matrix_unit);
        for (size_t i = sizeof *wanted; i < sizeof got; i++)
            assert_int_equal(got.bytes[i], i < size ? 0 : 0xa5);
        for (size_t i = size; i < sizeof got; i++) assert_int_equal(got.bytes[i], 0xa5);
    }
    got.info.struct_size = least - 4;
    expect_error(tconv_device_describe(id_of(&devices[0]), &got.info, &error), TCONV_ERROR_ARGUMENT,
                 &error, "TCONV_DEVICE_INFO_INIT");
}

/* Whatever the application's locale is: the texts of two plans for one problem are alike. */
static void texts_have_a_decimal_point(void **state)
{
    (void)state;
    const tconv_problem p = plane(1, 6, 10, 20, 4, 2, 1);
    char explained[2][3000], machine[2][20000];
    for (int comma = 0; comma < 2; comma++) {
        tconv_plan *plan;
        tconv_error error;
        if (comma == 1 && !use_decimal_point(",")) skip();
        expect_ok(tconv_plan_create(devices[0].device, &p, NULL, &plan, &error), &error);
        assert_true(tconv_plan_explain(plan, explained[comma], sizeof *explained) <
                    (int)sizeof *explained);
        assert_true(tconv_device_machine(devices[0].device, machine[comma], sizeof *machine) <
                    (int)sizeof *machine);
        tconv_plan_release(plan);
    }
    setlocale(LC_ALL, "C");
    assert_string_equal(explained[1], explained[0]);
    assert_string_equal(machine[1], machine[0]);
}

static void a_plan_explains_itself(void **state)
{
    (void)state;
    const tconv_problem p = plane(1, 6, 10, 20, 4, 2, 1);
    tconv_plan *plan;
    tconv_error error;
    expect_ok(tconv_plan_create(devices[0].device, &p, NULL, &plan, &error), &error);
    char text[2000];
    const int length = tconv_plan_explain(plan, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "taken"));
    assert_non_null(strstr(text, tconv_plan_algorithm(plan)));
    assert_int_equal(tconv_plan_explain(plan, NULL, 0), length);
    assert_int_equal(tconv_plan_geometry(plan)->output[0], 40);
    assert_int_equal(tconv_plan_passed_over(plan, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(tconv_plan_passed_over(NULL, text, sizeof text), 0);
    assert_int_equal(tconv_plan_explain(NULL, text, sizeof text), 0);
    assert_int_equal(tconv_plan_matrix_unit(NULL), TCONV_MATRIX_NONE);
    assert_int_equal(tconv_plan_matrix_unit(plan), TCONV_MATRIX_NONE); /* f32 */
    assert_null(tconv_plan_geometry(NULL));
    assert_null(tconv_plan_algorithm(NULL));
    assert_int_equal(tconv_plan_workspace_bytes(NULL), 0);
    assert_int_equal(tconv_plan_filter_bytes(NULL), 0);
    for (int a = 0; tconv_algorithm_name(a) != NULL; a++)
        assert_non_null(tconv_algorithm_summary(tconv_algorithm_name(a)));
    assert_null(tconv_algorithm_summary("nonsense"));
    assert_null(tconv_algorithm_name(-1));
    tconv_plan_release(plan);
}

/* A plan for bytes names the dot products of the CPU, if the device has them. */
static void a_plan_names_its_unit(void **state)
{
    (void)state;
    const tconv_matrix_unit own = tconv_device_properties(devices[0].device)->matrix_unit;
    tconv_problem p = plane(1, 16, 10, 20, 4, 2, 1);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan;
    tconv_error error;
    p.data_type = p.filter_type = TCONV_I8;
    options.algorithm = "dot_vector";
    expect_ok(tconv_plan_create(devices[0].device, &p, &options, &plan, &error), &error);
    const bool has_dots = own == TCONV_MATRIX_X86_AVX512_VNNI || own == TCONV_MATRIX_X86_AVX_VNNI ||
                          own == TCONV_MATRIX_X86_AVX512_BF16;
    assert_int_equal(tconv_plan_matrix_unit(plan), has_dots ? own : TCONV_MATRIX_NONE);
    tconv_plan_release(plan);
}

/* Data and output are channels of one tensor, whose channels are the last axis: an application that
 * concatenates layers copies nothing. What is too far away or overlaps is refused. */
static void tensors_with_steps_share_a_buffer(void **state)
{
    (void)state;
    enum { IN = 8, OUT = 4, ALL = 16, X = 5, POINTS = 2 * X * X };
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    set_shape(&p.data, 4, (int64_t[]){2, X, X, IN});
    set_shape(&p.filter, 4, (int64_t[]){3, 3, OUT, IN});
    set_list(&p.pads_begin, 2, (int64_t[]){1, 1});
    set_list(&p.pads_end, 2, (int64_t[]){1, 1});
    p.data_steps = p.output_steps = (tconv_steps){4, {X * X * ALL, X * ALL, ALL, 1}};
    for (int i = 0; i < device_count; i++) {
        struct setup s;
        tconv_error error;
        set_up(&s, &devices[i], &p, NULL, true, SMALL_INTEGERS);
        pack(&s);
        float *whole = calloc(POINTS * ALL, sizeof *whole);
        memcpy(whole, s.tensors.data, (size_t)s.tensors.geometry.data_bytes);
        cl_mem shared = buffer_of(&devices[i], whole, POINTS * ALL * sizeof *whole);
        tconv_tensors args = s.args;
        args.data = (tconv_tensor){.memory = shared};
        args.output = (tconv_tensor){shared, IN * sizeof *whole, NULL, NULL};
        expect_ok(tconv_plan_enqueue(s.plan, devices[i].queue, &args, 0, NULL, NULL, &error),
                  &error);
        float *result = calloc(POINTS * ALL, sizeof *result);
        assert_int_equal(clEnqueueReadBuffer(devices[i].queue, shared, CL_TRUE, 0,
                                             POINTS * ALL * sizeof *result, result, 0, NULL, NULL),
                         CL_SUCCESS);
        for (size_t c = 0; c < POINTS * ALL; c++)
            if (c % ALL < IN || c % ALL >= IN + OUT)
                assert_memory_equal(&result[c], &whole[c], sizeof *whole);
        memcpy(s.tensors.output, result + IN, (size_t)s.tensors.geometry.output_bytes);
        compare_with_oracle(&devices[i], &p, tconv_plan_algorithm(s.plan), true, &s.tensors);
        args.output.offset = (IN - 1) * sizeof *whole;
        expect_error(tconv_plan_enqueue(s.plan, devices[i].queue, &args, 0, NULL, NULL, &error),
                     TCONV_ERROR_BUFFER, &error, "tensors.output overlaps tensors.data");
        args.output.offset = (ALL - OUT + 1) * sizeof *whole; /* an element past the end */
        expect_error(tconv_plan_enqueue(s.plan, devices[i].queue, &args, 0, NULL, NULL, &error),
                     TCONV_ERROR_BUFFER, &error,
                     "output_steps is 400 at axis 0, whose extent is 2");
        clReleaseMemObject(shared);
        free(whole);
        free(result);
        tear_down(&s);
    }
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(events_order_the_work),
        smoke_test(out_of_order_queues_work),
        cmocka_unit_test(one_filter_serves_several_plans),
        cmocka_unit_test(objects_have_owners),
        cmocka_unit_test(layouts_do_not_depend_on_extents),
        cmocka_unit_test(weights_may_change),
        smoke_test(sub_buffers_work),
        cmocka_unit_test(an_empty_batch_is_a_problem_like_others),
        cmocka_unit_test(misuse_has_a_sentence),
        cmocka_unit_test(devices_have_errors_too),
        cmocka_unit_test(devices_have_names),
        cmocka_unit_test(the_environment_names_the_default_device),
        cmocka_unit_test(wrong_variables_are_errors),
        cmocka_unit_test(a_broken_kernel_folder_is_an_error),
        cmocka_unit_test(arrays_and_epilogue_agree),
        smoke_test(host_arrays_in_host_arrays_out),
        cmocka_unit_test(structures_may_be_of_any_version),
        cmocka_unit_test(a_description_ends_with_the_callers_structure),
        cmocka_unit_test(a_plan_explains_itself),
        cmocka_unit_test(texts_have_a_decimal_point),
        cmocka_unit_test(a_plan_names_its_unit),
        cmocka_unit_test(tensors_with_steps_share_a_buffer),
    };
    return run_smoke_or_all("api", tests, open_all_devices, close_all_devices);
}
