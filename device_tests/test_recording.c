/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that are recorded into a command buffer of cl_khr_command_buffer: every algorithm
 * computes in each run what it computes when it is enqueued, chains keep their order, later
 * executions of the same plan change no recording, tensors can be replaced where the device allows
 * it, and each misuse has a sentence. A device without the extension refuses to record. */
#include "recorder.h"
#include "setup.h"
#include "smoke.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct recorder r;

static recording begin(const struct device *d)
{
    cl_int code;
    recording made = r.create(1, &d->queue, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return made;
}

static void run(const struct device *d, recording made)
{
    cl_event done;
    assert_int_equal(r.enqueue(0, NULL, made, 0, NULL, &done), CL_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &done), CL_SUCCESS);
    clReleaseEvent(done);
    assert_int_equal(clFinish(d->queue), CL_SUCCESS);
}

static void upload(const struct device *d, cl_mem buffer, const void *from, uint64_t bytes)
{
    assert_int_equal(
        clEnqueueWriteBuffer(d->queue, buffer, CL_TRUE, 0, (size_t)bytes, from, 0, NULL, NULL),
        CL_SUCCESS);
}

static void wipe(struct setup *s)
{
    memset(s->tensors.output, 0xff, s->output_bytes);
    upload(s->device, s->output, s->tensors.output, s->output_bytes);
}

/* Moves every element of the data by one. */
static void move_data(struct setup *s)
{
    const size_t bytes = (size_t)s->tensors.geometry.data_bytes,
                 size = bytes / s->tensors.data_count;
    unsigned char *data = (unsigned char *)s->tensors.data, first[8];
    memcpy(first, data, size);
    memmove(data, data + size, bytes - size);
    memcpy(data + bytes - size, first, size);
    upload(s->device, s->data, data, bytes);
}

/* Two runs of one recording, with other data in the second; in between the plan is enqueued on
 * other buffers. */
static void check_algorithm(const struct device *d, const char *name)
{
    const tconv_problem p = plane_for(name, 1, 6, 7, 19, 3, 2, 1);
    struct setup s, other;
    tconv_error error;
    set_up(&s, d, &p, name, true, SMALL_INTEGERS);
    set_up(&other, d, &p, name, true, SMALL_INTEGERS);
    pack(&s);
    recording made = begin(d);
    uint32_t point = 0;
    expect_ok(tconv_plan_record(s.plan, made, d->queue, &s.args, 0, NULL, &point, &error), &error);
    assert_int_equal(r.finalize(made), CL_SUCCESS);
    tconv_tensors args = other.args;
    args.packed = s.filter;
    for (int i = 0; i < 3; i++) {
        wipe(&s);
        run(d, made);
        download(&s, 0, NULL);
        compare_with_oracle(d, &p, name, true, &s.tensors);
        expect_ok(tconv_plan_enqueue(s.plan, d->queue, &args, 0, NULL, NULL, &error), &error);
        move_data(&s);
    }
    r.release(made);
    tear_down(&s);
    tear_down(&other);
}

static void every_algorithm_is_recorded(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        if (!recorder_find(id_of(&devices[i]), &r)) {
            print_message("device %d has no command buffers\n", devices[i].number);
            continue;
        }
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++)
            if (!never_runs(&devices[i], tconv_algorithm_name(a)))
                check_algorithm(&devices[i], tconv_algorithm_name(a));
    }
}

/* One recording, which computes two problems' tensors in turn. The other one's data begin in the
 * middle of their buffer. */
static void check_replacement(const struct device *d, const char *name, recording made)
{
    const tconv_problem p = plane_for(name, 2, 6, 7, 19, 3, 2, 1);
    struct setup s[2];
    tconv_error error;
    tconv_recording *recorded = NULL;
    for (int i = 0; i < 2; i++) {
        set_up(&s[i], d, &p, name, true, SMALL_INTEGERS);
        pack(&s[i]);
    }
    move_data(&s[1]); /* not the numbers of the other one */
    enum { BEFORE = 64 };
    const size_t bytes = (size_t)s[1].tensors.geometry.data_bytes;
    cl_mem larger = buffer_of(d, NULL, BEFORE + bytes);
    assert_int_equal(clEnqueueWriteBuffer(d->queue, larger, CL_TRUE, BEFORE, bytes,
                                          s[1].tensors.data, 0, NULL, NULL),
                     CL_SUCCESS);
    s[1].args.data = (tconv_tensor){.memory = larger, .offset = BEFORE};
    expect_ok(tconv_recording_create(s[0].plan, made, d->queue, &s[0].args, 0, NULL, NULL,
                                     &recorded, &error),
              &error);
    tconv_plan_release(s[0].plan); /* the recording keeps it */
    s[0].plan = NULL;
    assert_int_equal(r.finalize(made), CL_SUCCESS);
    for (int i = 0; i < 5; i++) {
        struct setup *now = &s[i % 2];
        if (i > 0) expect_ok(tconv_recording_update(recorded, &now->args, &error), &error);
        tconv_tensors bad = s[(i + 1) % 2].args; /* what is refused replaces nothing */
        bad.data = bad.output;
        expect_error(tconv_recording_update(recorded, &bad, &error), TCONV_ERROR_BUFFER, &error,
                     "overlaps");
        wipe(now);
        run(d, made);
        download(now, 0, NULL);
        compare_with_oracle(d, &p, name, true, &now->tensors);
    }
    tconv_recording_release(recorded);
    r.release(made);
    clReleaseMemObject(larger);
    tear_down(&s[0]);
    tear_down(&s[1]);
}

static void tensors_are_replaced(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        if (!recorder_find(id_of(d), &r)) continue;
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            if (never_runs(d, tconv_algorithm_name(a))) continue;
            recording made = recorder_begin_mutable(&r, id_of(d), d->queue);
            if (made == NULL) {
                print_message("device %d replaces no arguments\n", d->number);
                break;
            }
            check_replacement(d, tconv_algorithm_name(a), made);
        }
    }
}

static void wrong_recordings_have_a_sentence(void **state)
{
    (void)state;
    tconv_error error;
    tconv_recording *recorded = NULL;
    expect_error(tconv_recording_update(NULL, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                 "recording is NULL");
    tconv_recording_release(NULL);
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        if (!recorder_find(id_of(d), &r)) continue;
        const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1), empty = plane(0, 4, 3, 30, 4, 2, 1);
        struct setup s, nothing;
        set_up(&s, d, &p, "gather_group", false, SMALL_INTEGERS);
        pack(&s);
        recording fixed = begin(d), made = recorder_begin_mutable(&r, id_of(d), d->queue);
        expect_error(
            tconv_recording_create(s.plan, fixed, d->queue, &s.args, 0, NULL, NULL, NULL, &error),
            TCONV_ERROR_ARGUMENT, &error, "out is NULL");
        expect_error(tconv_recording_create(s.plan, NULL, d->queue, &s.args, 0, NULL, NULL,
                                            &recorded, &error),
                     TCONV_ERROR_ARGUMENT, &error, "command_buffer is NULL");
        if (made == NULL) {
            expect_error(tconv_recording_create(s.plan, fixed, d->queue, &s.args, 0, NULL, NULL,
                                                &recorded, &error),
                         TCONV_ERROR_DEVICE, &error, "has no cl_khr_command_buffer_mutable");
            r.release(fixed);
            tear_down(&s);
            continue;
        }
        expect_error(tconv_recording_create(s.plan, fixed, d->queue, &s.args, 0, NULL, NULL,
                                            &recorded, &error),
                     TCONV_ERROR_ARGUMENT, &error, "made without CL_COMMAND_BUFFER_MUTABLE_KHR");
        r.release(fixed);
        assert_null(recorded);
        expect_ok(tconv_recording_create(s.plan, made, d->queue, &s.args, 0, NULL, NULL, &recorded,
                                         &error),
                  &error);
        expect_error(tconv_recording_update(recorded, &s.args, &error), TCONV_ERROR_ARGUMENT,
                     &error, "is not finalised yet");
        set_up(&nothing, d, &empty, "gather_group", false, SMALL_INTEGERS);
        pack(&nothing);
        tconv_recording *none = NULL;
        expect_ok(tconv_recording_create(nothing.plan, made, d->queue, &nothing.args, 0, NULL, NULL,
                                         &none, &error),
                  &error);
        assert_int_equal(r.finalize(made), CL_SUCCESS);
        expect_ok(tconv_recording_update(none, &nothing.args, &error), &error);
        expect_error(tconv_recording_update(recorded, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                     "tensors is NULL");
        tconv_tensors args = s.args;
        args.packed = NULL;
        expect_error(tconv_recording_update(recorded, &args, &error), TCONV_ERROR_ARGUMENT, &error,
                     "tensors.packed is NULL");
        args = s.args;
        args.data.offset = (size_t)s.tensors.geometry.data_bytes;
        expect_error(tconv_recording_update(recorded, &args, &error), TCONV_ERROR_BUFFER, &error,
                     "tensors.data is too small");
        r.release(made);
        tconv_recording_release(recorded); /* after its command buffer */
        tconv_recording_release(none);
        tear_down(&nothing);
        tear_down(&s);
    }
}

/* One plan, recorded for several layers, each on the output of the one before. */
static void layers_make_a_chain(void **state)
{
    (void)state;
    enum { LAYERS = 4, CHANNELS = 3, X = 9 };
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        if (!recorder_find(id_of(d), &r)) continue;
        const tconv_problem p = plane(1, CHANNELS, CHANNELS, X, 3, 1, 1); /* as large as its data */
        for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
            const char *name = tconv_algorithm_name(a);
            if (strcmp(name, "gather_group") != 0 && strcmp(name, "reference") != 0) continue;
            struct setup s;
            tconv_error error;
            set_up(&s, d, &p, name, false, SMALL_INTEGERS);
            pack(&s);
            cl_mem stage[LAYERS + 1];
            const size_t bytes = s.output_bytes;
            assert_int_equal(bytes, s.tensors.geometry.data_bytes);
            for (int l = 0; l <= LAYERS; l++)
                stage[l] = buffer_of(d, l == 0 ? s.tensors.data : NULL, bytes);
            recording made = begin(d);
            uint32_t point = 0;
            for (int l = 0; l < LAYERS; l++) {
                const uint32_t before = point;
                tconv_tensors args = s.args;
                args.data.memory = stage[l];
                args.output.memory = stage[l + 1];
                expect_ok(tconv_plan_record(s.plan, made, d->queue, &args, l == 0 ? 0 : 1,
                                            l == 0 ? NULL : &before, &point, &error),
                          &error);
            }
            assert_int_equal(r.finalize(made), CL_SUCCESS);
            run(d, made);
            run(d, made);
            float *recorded = malloc(bytes), *enqueued = malloc(bytes);
            assert_int_equal(clEnqueueReadBuffer(d->queue, stage[LAYERS], CL_TRUE, 0, bytes,
                                                 recorded, 0, NULL, NULL),
                             CL_SUCCESS);
            for (int l = 0; l < LAYERS; l++) {
                s.args.data.memory = stage[l];
                s.args.output.memory = stage[l + 1];
                memset(enqueued, 0xff, bytes);
                upload(d, stage[l + 1], enqueued, bytes);
                enqueue(&s);
            }
            assert_int_equal(clEnqueueReadBuffer(d->queue, stage[LAYERS], CL_TRUE, 0, bytes,
                                                 enqueued, 0, NULL, NULL),
                             CL_SUCCESS);
            assert_memory_equal(recorded, enqueued, bytes);
            r.release(made);
            free(recorded);
            free(enqueued);
            for (int l = 0; l <= LAYERS; l++) clReleaseMemObject(stage[l]);
            tear_down(&s);
        }
    }
}

static void misuse_has_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1), empty = plane(0, 4, 3, 30, 4, 2, 1);
        struct setup s, nothing;
        tconv_error error;
        uint32_t point = 77;
        set_up(&s, d, &p, "gather_group", false, SMALL_INTEGERS);
        pack(&s);
        expect_error(tconv_plan_record(s.plan, NULL, d->queue, &s.args, 0, NULL, &point, &error),
                     TCONV_ERROR_ARGUMENT, &error, "command_buffer is NULL");
        if (!recorder_find(id_of(d), &r)) {
            recording invented = (recording)&error;
            expect_error(
                tconv_plan_record(s.plan, invented, d->queue, &s.args, 0, NULL, &point, &error),
                TCONV_ERROR_DEVICE, &error, "has no cl_khr_command_buffer");
            tear_down(&s);
            continue;
        }
        recording made = begin(d);
        expect_error(tconv_plan_record(NULL, made, d->queue, &s.args, 0, NULL, &point, &error),
                     TCONV_ERROR_ARGUMENT, &error, "plan is NULL");
        expect_error(tconv_plan_record(s.plan, made, d->queue, NULL, 0, NULL, &point, &error),
                     TCONV_ERROR_ARGUMENT, &error, "tensors is NULL");
        expect_error(tconv_plan_record(s.plan, made, d->queue, &s.args, 1, NULL, &point, &error),
                     TCONV_ERROR_ARGUMENT, &error, "the wait list is NULL, but its count is 1");
        tconv_tensors args = s.args;
        args.data = args.output;
        expect_error(tconv_plan_record(s.plan, made, d->queue, &args, 0, NULL, &point, &error),
                     TCONV_ERROR_BUFFER, &error, "tensors.output overlaps tensors.data");
        args = s.args;
        args.packed = NULL;
        expect_error(tconv_plan_record(s.plan, made, d->queue, &args, 0, NULL, &point, &error),
                     TCONV_ERROR_ARGUMENT, &error, "tensors.packed is NULL");

        set_up(&nothing, d, &empty, "gather_group", false, SMALL_INTEGERS);
        pack(&nothing);
        expect_ok(
            tconv_plan_record(nothing.plan, made, d->queue, &nothing.args, 0, NULL, NULL, &error),
            &error);
        expect_error(
            tconv_plan_record(nothing.plan, made, d->queue, &nothing.args, 0, NULL, &point, &error),
            TCONV_ERROR_UNSUPPORTED, &error, "let done be NULL");
        tear_down(&nothing);

        const cl_device_id id = id_of(d);
        cl_int code;
        struct device foreign = *d;
        foreign.context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
        assert_int_equal(code, CL_SUCCESS);
        foreign.queue = clCreateCommandQueue(foreign.context, id, 0, &code);
        assert_int_equal(code, CL_SUCCESS);
        recording elsewhere = begin(&foreign);
        expect_error(
            tconv_plan_record(s.plan, elsewhere, foreign.queue, &s.args, 0, NULL, &point, &error),
            TCONV_ERROR_MISMATCH, &error, "queue belongs to another context");
        cl_command_queue second = clCreateCommandQueue(d->context, id, 0, &code);
        assert_int_equal(code, CL_SUCCESS);
        expect_error(tconv_plan_record(s.plan, made, second, &s.args, 0, NULL, &point, &error),
                     TCONV_ERROR_MISMATCH, &error, "command_buffer belongs to another queue");
        clReleaseCommandQueue(second);
        expect_error(tconv_plan_record(s.plan, made, NULL, &s.args, 0, NULL, &point, &error),
                     TCONV_ERROR_ARGUMENT, &error, "queue is NULL");
        r.release(elsewhere);
        clReleaseCommandQueue(foreign.queue);
        clReleaseContext(foreign.context);
        assert_int_equal(point, 77);

        expect_ok(tconv_plan_record(s.plan, made, d->queue, &s.args, 0, NULL, &point, &error),
                  &error);
        assert_int_equal(r.finalize(made), CL_SUCCESS);
        const uint32_t before = point;
        expect_error(tconv_plan_record(s.plan, made, d->queue, &s.args, 0, NULL, &point, &error),
                     TCONV_ERROR_ARGUMENT, &error, "command_buffer is already finalised");
        assert_int_equal(point, before);
        wipe(&s);
        run(d, made); /* what was refused is not in it */
        download(&s, 0, NULL);
        compare_with_oracle(d, &p, "gather_group", false, &s.tensors);
        r.release(made);
        tear_down(&s);
    }
}

/* ---- layers ---- */

/* A layer with the weights of a set-up. */
static tconv_layer *layer_of(const struct setup *s)
{
    tconv_tensors weights = TCONV_TENSORS_INIT;
    const tconv_plan_options options = options_for(s->algorithm, true);
    tconv_layer *layer = NULL;
    tconv_error error;
    weights.filter.host = s->tensors.filter;
    weights.bias.host = s->tensors.bias;
    expect_ok(tconv_layer_create(&s->device->device, 1, TCONV_FILTER_CONSTANT, &layer, &error),
              &error);
    expect_ok(tconv_layer_set(layer, &s->problem, &options, &weights, NULL, &error), &error);
    return layer;
}

static tconv_status record_layer(tconv_layer *layer, const struct setup *s, recording made,
                                 const tconv_tensors *tensors, bool replaceable, uint32_t *point,
                                 tconv_layer_recording **out, tconv_error *error)
{
    const tconv_plan_options options = options_for(s->algorithm, true);
    return tconv_layer_record(layer, &s->problem, &options, made, s->device->queue, tensors,
                              replaceable, 0, NULL, point, out, error);
}

/* Data and output of a set-up: what a layer does not have. */
static tconv_tensors tensors_of(const struct setup *s)
{
    tconv_tensors args = TCONV_TENSORS_INIT;
    args.data = s->args.data;
    args.output = s->args.output;
    return args;
}

/* Gives a layer weights that are all zero. */
static void clear_weights(const struct setup *s, tconv_layer *layer)
{
    const tconv_geometry *g = &s->tensors.geometry;
    const tconv_plan_options options = options_for(s->algorithm, true);
    tconv_tensors weights = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    tconv_error error;
    void *zeros = calloc(1, (size_t)g->filter_bytes + s->tensors.channels * 8);
    weights.filter.host = weights.bias.host = zeros;
    run.queue = s->device->queue;
    expect_ok(tconv_layer_set(layer, &s->problem, &options, &weights, &run, &error), &error);
    free(zeros);
}

static void expect_zeros(struct setup *s)
{
    download(s, 0, NULL);
    const unsigned char *output = (const unsigned char *)s->tensors.output;
    for (size_t i = 0; i < s->output_bytes; i++) assert_int_equal(output[i], 0);
}

/* The workspace is the recording's own, or the application's. The recorded weights stay, also if
 * the layer gets others, or is gone. */
static void check_layer(const struct device *d, const char *name, bool own_workspace)
{
    const tconv_problem p = plane_for(name, 1, 6, 7, 19, 3, 2, 1);
    struct setup s;
    tconv_error error;
    tconv_layer_recording *recorded = NULL;
    set_up(&s, d, &p, name, true, SMALL_INTEGERS);
    tconv_layer *layer = layer_of(&s);
    recording made = begin(d);
    tconv_tensors args = tensors_of(&s);
    if (!own_workspace) args.workspace = s.args.workspace;
    uint32_t point = 0;
    expect_ok(record_layer(layer, &s, made, &args, false, &point, &recorded, &error), &error);
    assert_int_equal(r.finalize(made), CL_SUCCESS);
    for (int i = 0; i < 3; i++) {
        wipe(&s);
        run(d, made);
        download(&s, 0, NULL);
        compare_with_oracle(d, &p, name, true, &s.tensors);
        if (i == 0) {
            clear_weights(&s, layer);
            const tconv_plan_options options = options_for(name, true);
            tconv_run queued = TCONV_RUN_INIT;
            queued.queue = d->queue;
            expect_ok(tconv_layer_run(layer, &p, &options, &args, &queued, &error), &error);
            expect_zeros(&s);
            tconv_layer_release(layer);
        }
        move_data(&s);
    }
    expect_error(tconv_layer_recording_update(recorded, NULL, &args, &error), TCONV_ERROR_ARGUMENT,
                 &error, "recorded without `replaceable`");
    r.release(made);
    tconv_layer_recording_release(recorded);
    tear_down(&s);
}

static void layers_are_recorded(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"col2im_vector", "col2im_group", "gather_group",
                                             "packed_vector", "reference"};
    for (int i = 0; i < device_count; i++) {
        if (!recorder_find(id_of(&devices[i]), &r)) continue;
        for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++)
            if (!never_runs(&devices[i], algorithms[a]))
                check_layer(&devices[i], algorithms[a], a % 2 == 0);
    }
}

/* Tensors, and weights, if the caller wants those that the layer has now. */
static void recorded_layers_are_replaced(void **state)
{
    (void)state;
    static const char name[] = "col2im_vector";
    enum { OWN_NAME = 64 << 20 }; /* bytes: so many are inaccessible once they are free */
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        if (!recorder_find(id_of(d), &r) || never_runs(d, name)) continue;
        recording made = recorder_begin_mutable(&r, id_of(d), d->queue);
        if (made == NULL) continue;
        const tconv_problem p = plane(1, 6, 7, 19, 3, 2, 1), wider = plane(1, 6, 9, 19, 3, 2, 1);
        struct setup s[2], other;
        tconv_error error;
        tconv_layer_recording *recorded = NULL;
        for (int k = 0; k < 2; k++) set_up(&s[k], d, &p, name, true, SMALL_INTEGERS);
        set_up(&other, d, &wider, name, true, SMALL_INTEGERS);
        move_data(&s[1]);
        tconv_layer *layer = layer_of(&s[0]), *foreign = layer_of(&other);
        tconv_tensors args = tensors_of(&s[0]);
        char *own = malloc(OWN_NAME);
        assert_non_null(own);
        s[0].algorithm = strcpy(own, name);
        expect_ok(record_layer(layer, &s[0], made, &args, true, NULL, &recorded, &error), &error);
        s[0].algorithm = name;
        free(own);
        assert_int_equal(r.finalize(made), CL_SUCCESS);
        args = tensors_of(&s[1]);
        expect_error(tconv_layer_recording_update(recorded, foreign, &args, &error),
                     TCONV_ERROR_MISMATCH, &error, "packed for another plan");
        clear_weights(&s[0], layer);
        expect_ok(tconv_layer_recording_update(recorded, NULL, &args, &error), &error);
        wipe(&s[1]);
        run(d, made);
        download(&s[1], 0, NULL);
        compare_with_oracle(d, &p, name, true, &s[1].tensors);
        args = tensors_of(&s[0]);
        args.workspace = s[0].args.workspace;
        expect_ok(tconv_layer_recording_update(recorded, layer, &args, &error), &error);
        wipe(&s[0]);
        run(d, made);
        expect_zeros(&s[0]);
        r.release(made);
        tconv_layer_recording_release(recorded);
        tconv_layer_release(layer);
        tconv_layer_release(foreign);
        for (int k = 0; k < 2; k++) tear_down(&s[k]);
        tear_down(&other);
    }
}

/* Gives a layer the filter of a set-up, and no bias. */
static void set_filter(const struct setup *s, tconv_layer *layer)
{
    const tconv_plan_options options = options_for(s->algorithm, false);
    tconv_tensors weights = TCONV_TENSORS_INIT;
    tconv_error error;
    weights.filter.host = s->tensors.filter;
    expect_ok(tconv_layer_set(layer, &s->problem, &options, &weights, NULL, &error), &error);
}

/* A vector that the application gave stays until weights with another one come. */
static void given_vectors_stay(void **state)
{
    (void)state;
    static const char name[] = "col2im_vector";
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        if (!recorder_find(id_of(d), &r) || never_runs(d, name)) continue;
        recording made = recorder_begin_mutable(&r, id_of(d), d->queue);
        if (made == NULL) continue;
        const tconv_problem p = plane(1, 6, 7, 19, 3, 2, 1);
        struct setup s;
        tconv_error error;
        tconv_layer_recording *recorded = NULL;
        set_up(&s, d, &p, name, true, SMALL_INTEGERS);
        tconv_layer *layer = layer_of(&s);
        set_filter(&s, layer);
        tconv_tensors args = tensors_of(&s);
        args.bias = s.args.bias;
        expect_ok(record_layer(layer, &s, made, &args, true, NULL, &recorded, &error), &error);
        assert_int_equal(r.finalize(made), CL_SUCCESS);
        args = tensors_of(&s);
        for (int with_layer = 0; with_layer < 2; with_layer++) {
            expect_ok(tconv_layer_recording_update(recorded, with_layer != 0 ? layer : NULL, &args,
                                                   &error),
                      &error);
            wipe(&s);
            run(d, made);
            download(&s, 0, NULL);
            compare_with_oracle(d, &p, name, true, &s.tensors);
        }
        clear_weights(&s, layer);
        expect_ok(tconv_layer_recording_update(recorded, layer, &args, &error), &error);
        wipe(&s);
        run(d, made);
        expect_zeros(&s);
        set_filter(&s, layer); /* the bias of before was the layer's */
        expect_error(tconv_layer_recording_update(recorded, layer, &args, &error),
                     TCONV_ERROR_ARGUMENT, &error, "tensors.bias is absent");
        wipe(&s);
        run(d, made);
        expect_zeros(&s);
        r.release(made);
        tconv_layer_recording_release(recorded);
        tconv_layer_release(layer);
        tear_down(&s);
    }
}

static void wrong_layer_recordings_have_a_sentence(void **state)
{
    (void)state;
    tconv_error error;
    tconv_layer_recording *recorded = NULL;
    tconv_tensors args = TCONV_TENSORS_INIT;
    tconv_layer_recording_release(NULL);
    expect_error(tconv_layer_recording_update(NULL, NULL, &args, &error), TCONV_ERROR_ARGUMENT,
                 &error, "recording is NULL");
    expect_error(tconv_layer_record(NULL, NULL, NULL, NULL, NULL, &args, false, 0, NULL, NULL,
                                    &recorded, &error),
                 TCONV_ERROR_ARGUMENT, &error, "layer is NULL");
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1);
        struct setup s;
        set_up(&s, d, &p, "gather_group", true, SMALL_INTEGERS);
        tconv_layer *layer = layer_of(&s);
        recording made = NULL;
        args = tensors_of(&s);
        expect_error(record_layer(layer, &s, NULL, NULL, false, NULL, &recorded, &error),
                     TCONV_ERROR_ARGUMENT, &error, "tensors is NULL");
        expect_error(record_layer(layer, &s, NULL, &args, false, NULL, NULL, &error),
                     TCONV_ERROR_ARGUMENT, &error, "out is NULL");
        expect_error(record_layer(layer, &s, NULL, &args, false, NULL, &recorded, &error),
                     TCONV_ERROR_ARGUMENT, &error, "command_buffer is NULL");
        if (recorder_find(id_of(d), &r)) made = begin(d);
        args = tensors_of(&s);
        args.packed = s.filter;
        expect_error(record_layer(layer, &s, made, &args, false, NULL, &recorded, &error),
                     TCONV_ERROR_ARGUMENT, &error, "tensors.packed is given");
        args = tensors_of(&s);
        args.output = args.data;
        if (made != NULL)
            expect_error(record_layer(layer, &s, made, &args, false, NULL, &recorded, &error),
                         TCONV_ERROR_BUFFER, &error, "tensors.output");
        assert_null(recorded);
        if (made != NULL) r.release(made);
        tconv_layer_release(layer);
        tear_down(&s);
    }
}

/* ---- tracing ---- */

struct heard {
    int records, replays, launches;
    recording command_buffer;
    cl_command_queue queue;
    cl_event event;
    char kernel[100], algorithm[100], problem[1200], name[40];
    bool wrong;
};

static void hear(void *to, const tconv_trace_event *e)
{
    struct heard *h = to;
    const bool record = e->kind == TCONV_TRACE_RECORDING, replay = e->kind == TCONV_TRACE_REPLAY;
    h->launches += e->kind == TCONV_TRACE_LAUNCH;
    h->records += record;
    h->replays += replay;
    if (!record && !replay) return;
    h->command_buffer = e->command_buffer;
    h->queue = e->queue;
    h->event = e->event;
    snprintf(h->name, sizeof h->name, "%s", replay && e->name != NULL ? e->name : "");
    h->wrong = h->wrong || e->struct_size != sizeof *e || e->begin_ns > e->end_ns;
    if (replay) return;
    h->wrong = h->wrong || e->plan == NULL || e->piece >= e->pieces || e->global[0] == 0 ||
               e->local[0] == 0 || e->event != NULL;
    snprintf(h->kernel, sizeof h->kernel, "%s", e->name);
    snprintf(h->algorithm, sizeof h->algorithm, "%s", e->algorithm);
    snprintf(h->problem, sizeof h->problem, "%s", e->problem == NULL ? "" : e->problem);
}

/* Recording is heard; a run, if the application tells of it, with an event that has its times. */
static void recordings_are_traced(void **state)
{
    (void)state;
    tconv_device_trace_replay(NULL, NULL, NULL, NULL);
    for (int i = 0; i < device_count; i++) {
        struct device d = devices[i];
        if (!recorder_find(id_of(&d), &r)) continue;
        const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1);
        struct heard h = {0};
        struct setup s;
        tconv_error error;
        char text[1200];
        cl_int code;
        tconv_problem_text(&p, text, sizeof text);
        d.queue = clCreateCommandQueue(d.context, id_of(&d), CL_QUEUE_PROFILING_ENABLE, &code);
        assert_int_equal(code, CL_SUCCESS);
        expect_ok(tconv_device_set_trace(d.device, TCONV_TRACE_ALL, hear, &h, &error), &error);
        set_up(&s, &d, &p, "gather_group", false, SMALL_INTEGERS);
        pack(&s);
        const int launches = h.launches;
        recording made = begin(&d);
        expect_ok(tconv_plan_record(s.plan, made, d.queue, &s.args, 0, NULL, NULL, &error), &error);
        assert_true(h.records > 0 && h.command_buffer == made && h.queue == d.queue);
        assert_string_equal(h.algorithm, "gather_group");
        assert_string_equal(h.kernel, "tconv_gather");
        assert_string_equal(h.problem, text);
        assert_int_equal(r.finalize(made), CL_SUCCESS);

        cl_event done;
        cl_ulong queued = 0, ended = 0;
        assert_int_equal(r.enqueue(0, NULL, made, 0, NULL, &done), CL_SUCCESS);
        tconv_device_trace_replay(d.device, made, "a frame", done);
        assert_true(h.replays == 1 && h.command_buffer == made && h.event == done);
        assert_true(h.queue == d.queue);
        assert_string_equal(h.name, "a frame");
        assert_int_equal(clWaitForEvents(1, &done), CL_SUCCESS);
        assert_int_equal(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED, sizeof queued,
                                                 &queued, NULL),
                         CL_SUCCESS);
        assert_int_equal(
            clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, sizeof ended, &ended, NULL),
            CL_SUCCESS);
        assert_true(ended > queued);
        clReleaseEvent(done);
        tconv_device_trace_replay(d.device, NULL, NULL, NULL);
        assert_true(h.replays == 2 && h.command_buffer == NULL && h.queue == NULL);
        assert_true(!h.wrong && h.launches == launches);
        expect_ok(tconv_device_set_trace(d.device, 0, NULL, NULL, &error), &error);
        r.release(made);
        tear_down(&s);
        clReleaseCommandQueue(d.queue);
    }
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_recorded),
        smoke_test(layers_make_a_chain),
        cmocka_unit_test(tensors_are_replaced),
        cmocka_unit_test(wrong_recordings_have_a_sentence),
        cmocka_unit_test(misuse_has_a_sentence),
        smoke_test(layers_are_recorded),
        cmocka_unit_test(recorded_layers_are_replaced),
        cmocka_unit_test(given_vectors_stay),
        cmocka_unit_test(wrong_layer_recordings_have_a_sentence),
        smoke_test(recordings_are_traced),
    };
    return run_smoke_or_all("recording", tests, open_all_devices, close_all_devices);
}
