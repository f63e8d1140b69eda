/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that read data and packed filters as images (src/plan/image.c): against the oracle and
 * against the same tile with buffers, whose bits they give; infinite weights and NaNs at borders;
 * tensors that have no image; images that the device refuses. */
#include "device/device.h"
#include "faults.h"
#include "plan/plan_internal.h"
#include "setup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Layers with channels last: batch, groups, input and output channels of a group, extents along y
 * and x, kernel, stride, dilation and pad. */
static const struct {
    const char *why;
    int64_t batch, groups, in, out, y, x, k, s, d, pad;
} layers[] = {
    {"phases with two taps", 2, 1, 8, 12, 5, 9, 4, 2, 1, 1},
    {"phases with different taps", 1, 1, 8, 16, 7, 6, 3, 2, 1, 1},
    {"groups", 1, 3, 4, 8, 3, 11, 3, 2, 1, 0},
    {"depthwise", 2, 16, 1, 1, 5, 13, 4, 2, 1, 1},
    {"depthwise, dilated", 1, 24, 1, 1, 9, 4, 3, 2, 3, 2},
    {"one input", 3, 1, 8, 8, 1, 1, 5, 3, 1, 2},
    {"outputs without a tap", 1, 1, 4, 4, 6, 5, 2, 3, 1, 0},
    {"a stride of 1", 1, 1, 8, 8, 12, 3, 3, 1, 1, 1},
};

enum { LAYERS = sizeof layers / sizeof *layers };

static tconv_problem problem_of(size_t which, tconv_type type)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int64_t s = layers[which].s, d = layers[which].d, pad = layers[which].pad,
                  k = layers[which].k, in = layers[which].groups * layers[which].in;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = TCONV_NXC;
    p.filter_format = TCONV_OIX;
    p.data_type = p.filter_type = type;
    p.groups = layers[which].groups;
    set_shape(&p.data, 4, (int64_t[]){layers[which].batch, layers[which].y, layers[which].x, in});
    set_shape(&p.filter, 4, (int64_t[]){in, layers[which].out, k, k});
    set_list(&p.strides, 2, (int64_t[]){s, s});
    set_list(&p.dilations, 2, (int64_t[]){d, d});
    set_list(&p.pads_begin, 2, (int64_t[]){pad, pad});
    set_list(&p.pads_end, 2, (int64_t[]){pad, pad});
    return p;
}

/* Writes NaNs to the output, runs, and reads it. */
static void run(struct setup *s)
{
    memset(s->tensors.output, 0xff, s->output_bytes);
    assert_int_equal(clEnqueueWriteBuffer(s->device->queue, s->output, CL_TRUE, 0, s->output_bytes,
                                          s->tensors.output, 0, NULL, NULL),
                     CL_SUCCESS);
    enqueue(s);
    download(s, 0, NULL);
}

static void compare(struct setup *s)
{
    compare_with_oracle(s->device, &s->problem, s->algorithm, false, &s->tensors);
}

/* True if the device's plans can have images. */
static bool has_images(const struct device *device)
{
    if (device->info->image_pixels == 0)
        print_message("device %d has no images: left out\n", device->number);
    return device->info->image_pixels > 0;
}

/* Sets a plan with images up, and packs its filter. False on a device without images. */
static bool begin(struct setup *s, const struct device *device)
{
    const tconv_problem p = problem_of(0, TCONV_F32);
    if (!has_images(device)) return false;
    set_up(s, device, &p, "direct_group images=1", false, SMALL_INTEGERS);
    pack(s);
    return true;
}

/* Writes the data to the place where the next run reads them. */
static void write_data(struct setup *s, cl_mem memory, size_t at)
{
    assert_int_equal(clEnqueueWriteBuffer(s->device->queue, memory, CL_TRUE, at,
                                          (size_t)s->tensors.geometry.data_bytes, s->tensors.data,
                                          0, NULL, NULL),
                     CL_SUCCESS);
}

/* The next run makes images, or makes none. */
static void run_with(struct setup *s, bool images)
{
    tconv_error error;
    fault_arm(fault_call_named("clCreateImage"), 1, CL_OUT_OF_RESOURCES);
    const tconv_status status =
        tconv_plan_enqueue(s->plan, s->device->queue, &s->args, 0, NULL, NULL, &error);
    assert_int_equal(fault_disarm(), images);
    assert_int_equal(status, images ? TCONV_ERROR_DEVICE_MEMORY : TCONV_OK);
    run(s);
}

/* Puts values that are not finite into the weights and the data. */
static void spoil(struct setup *s)
{
    struct tensors *t = &s->tensors;
    const float values[] = {INFINITY, NAN, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        t->filter[i * 7 % t->filter_count] = values[i];
        t->data[i * 11 % t->data_count] = values[(i + 1) % 3];
    }
    const struct {
        cl_mem buffer;
        const void *from;
        uint64_t bytes;
    } both[] = {{s->weights, t->filter, t->geometry.filter_bytes},
                {s->data, t->data, t->geometry.data_bytes}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(clEnqueueWriteBuffer(s->device->queue, both[i].buffer, CL_TRUE, 0,
                                              (size_t)both[i].bytes, both[i].from, 0, NULL, NULL),
                         CL_SUCCESS);
}

/* The outputs have the same bits, but for those of NaNs. */
static void expect_same(const struct setup *a, const struct setup *b)
{
    const float *left = a->tensors.output, *right = b->tensors.output;
    if (a->problem.data_type == TCONV_F16)
        assert_memory_equal(left, right, a->output_bytes);
    else
        for (size_t i = 0; i < a->tensors.output_count; i++)
            assert_true((isnan(left[i]) && isnan(right[i])) ||
                        memcmp(&left[i], &right[i], sizeof *left) == 0);
}

static void images_give_the_bits_of_buffers(void **state)
{
    (void)state;
    static const char *const tiles[] = {"vw=4 outputs=1", "vw=4 outputs=2 along_y=1", "vw=4",
                                        "vw=8"};
    int ran = 0, devices_with = 0;
    for (int d = 0; d < device_count; d++) {
        if (!has_images(&devices[d])) continue;
        devices_with++;
        for (size_t l = 0; l < LAYERS; l++)
            for (size_t n = 0; n < sizeof tiles / sizeof *tiles; n++) {
                const tconv_type type = n == 3 || (l + n) % 2 == 1 ? TCONV_F16 : TCONV_F32;
                const tconv_problem p = problem_of(l, type);
                char names[2][80];
                struct setup s[2];
                tconv_plan *plan;
                tconv_error error;
                for (int i = 0; i < 2; i++)
                    snprintf(names[i], sizeof names[i], "direct_group %s images=%d", tiles[n], i);
                const tconv_plan_options options = options_for(names[1], false);
                if (tconv_plan_create(devices[d].device, &p, &options, &plan, &error) != TCONV_OK) {
                    assert_int_equal(error.status, TCONV_ERROR_ALGORITHM);
                    continue; /* channels that vectors of eight do not divide */
                }
                tconv_plan_release(plan);
                for (int i = 0; i < 2; i++) {
                    set_up(&s[i], &devices[d], &p, names[i], false, REAL_NUMBERS);
                    if (type == TCONV_F32 && n != 2) spoil(&s[i]);
                    pack(&s[i]);
                    run_with(&s[i], i == 1);
                    compare(&s[i]);
                }
                expect_same(&s[0], &s[1]);
                for (int i = 0; i < 2; i++) tear_down(&s[i]);
                ran++;
            }
    }
    assert_true(ran >= 20 * devices_with);
}

/* Kernels read the buffers of tensors that OpenCL gives no image, or an undefined one. */
static void tensors_without_an_image_are_read(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        struct setup s;
        if (!begin(&s, &devices[d])) continue;
        run_with(&s, true);
        compare(&s);
        const size_t bytes = (size_t)s.tensors.geometry.data_bytes, unit = sizeof(float),
                     far = 4096;
        const size_t size = far + bytes + far + s.output_bytes;
        const cl_mem all = buffer_of(&devices[d], NULL, size);
        const cl_buffer_region region = {far, bytes};
        cl_int code;
        const cl_mem part = clCreateSubBuffer(all, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        assert_int_equal(code, CL_SUCCESS);
        const struct {
            tconv_tensor data;
            bool images;
            bool shared; /* with the output */
        } cases[] = {
            {{.memory = all, .offset = far}, true, false},
            {{.memory = all, .offset = far + 4 * unit}, true, false},
            {{.memory = all, .offset = far + unit}, false, false},
            {{.memory = part}, false, false},
            {{.memory = all, .offset = far}, false, true},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            const size_t at = cases[i].data.memory == part ? far : cases[i].data.offset;
            write_data(&s, all, at);
            s.args.data = cases[i].data;
            if (!cases[i].shared) {
                run_with(&s, cases[i].images);
            } else {
                s.args.output = (tconv_tensor){.memory = all, .offset = size - s.output_bytes};
                fault_arm(fault_call_named("clCreateImage"), 1, CL_OUT_OF_RESOURCES);
                enqueue(&s);
                assert_false(fault_disarm());
                assert_int_equal(clEnqueueReadBuffer(devices[d].queue, all, CL_TRUE,
                                                     size - s.output_bytes, s.output_bytes,
                                                     s.tensors.output, 0, NULL, NULL),
                                 CL_SUCCESS);
            }
            compare(&s);
        }
        clReleaseMemObject(part);
        clReleaseMemObject(all);
        tear_down(&s);
    }
}

/* Commands run to their end without their plan, with images and with the one that stands for none.
 */
static void released_plans_leave_images_to_their_launches(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int aligned = 0; aligned < 2; aligned++) {
            struct setup s;
            if (!begin(&s, &devices[d])) continue;
            const size_t bytes = (size_t)s.tensors.geometry.data_bytes;
            const cl_mem all = buffer_of(&devices[d], NULL, bytes + sizeof(float));
            s.args.data = (tconv_tensor){.memory = all, .offset = aligned ? 0 : sizeof(float)};
            write_data(&s, all, s.args.data.offset);
            tconv_error error;
            cl_event gate = new_gate(&devices[d]);
            expect_ok(tconv_plan_enqueue(s.plan, devices[d].queue, &s.args, 1, &gate, NULL, &error),
                      &error);
            tconv_packed_filter_release(s.filter);
            tconv_plan_release(s.plan);
            s.filter = NULL;
            s.plan = NULL;
            assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
            download(&s, 0, NULL);
            compare(&s);
            clReleaseEvent(gate);
            clReleaseMemObject(all);
            tear_down(&s);
        }
}

static void small_images_are_not_asked_for_more(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        uint64_t *pixels = &devices[d].device->info.image_pixels;
        const uint64_t before = *pixels;
        const tconv_problem p = problem_of(0, TCONV_F32);
        const tconv_plan_options options = options_for("direct_group images=1", false);
        tconv_plan *plan = NULL;
        tconv_error error;
        *pixels = 16;
        const tconv_status status =
            tconv_plan_create(devices[d].device, &p, &options, &plan, &error);
        *pixels = before;
        expect_error(status, TCONV_ERROR_ALGORITHM, &error, "it has no such tile");
    }
}

/* Waits until so many buffers are alive: images are released soon after their launches end. */
static void wait_for(long buffers)
{
    long alive[KINDS];
    const time_t start = time(NULL);
    do fault_alive(alive);
    while (alive[BUFFERS] != buffers && time(NULL) < start + 20);
    assert_int_equal(alive[BUFFERS], buffers);
}

static void refused_images_are_errors_and_leak_nothing(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        struct setup s;
        if (!begin(&s, &devices[d])) continue;
        long all[KINDS];
        fault_alive(all);
        const long buffers = all[BUFFERS];
        run(&s);
        for (int n = 1; n <= 2; n++) {
            long before[KINDS], after[KINDS];
            tconv_error error;
            wait_for(buffers);
            fault_alive(before);
            fault_arm(fault_call_named("clCreateImage"), n, CL_OUT_OF_HOST_MEMORY);
            const tconv_status status =
                tconv_plan_enqueue(s.plan, devices[d].queue, &s.args, 0, NULL, NULL, &error);
            assert_true(fault_disarm());
            fault_alive(after);
            expect_error(status, TCONV_ERROR_HOST_MEMORY, &error, "image of");
            assert_int_equal(after[BUFFERS], before[BUFFERS]);
        }
        long before[KINDS];
        fault_alive(before);
        for (int i = 0; i < 3; i++) run(&s);
        wait_for(before[BUFFERS]);
        compare(&s);
        for (int n = 1; n <= 2; n++) { /* without that format, buffers are read */
            fault_arm(fault_call_named("clCreateImage"), n, CL_IMAGE_FORMAT_NOT_SUPPORTED);
            run(&s);
            assert_true(fault_disarm());
            compare(&s);
        }
        /* A plan without its image of one pixel. */
        const tconv_plan_options options = options_for("direct_group images=1", false);
        tconv_plan *plan = NULL;
        tconv_error error;
        fault_arm(fault_call_named("clCreateImage"), 1, CL_IMAGE_FORMAT_NOT_SUPPORTED);
        const tconv_status status =
            tconv_plan_create(devices[d].device, &s.problem, &options, &plan, &error);
        assert_true(fault_disarm());
        expect_error(status, TCONV_ERROR_OPENCL, &error, "clCreateImage");
        assert_null(plan);
        tear_down(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_give_the_bits_of_buffers),
        cmocka_unit_test(tensors_without_an_image_are_read),
        cmocka_unit_test(released_plans_leave_images_to_their_launches),
        cmocka_unit_test(small_images_are_not_asked_for_more),
        cmocka_unit_test(refused_images_are_errors_and_leak_nothing),
    };
    return cmocka_run_group_tests_name("images", tests, open_all_devices, close_all_devices);
}
