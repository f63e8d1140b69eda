/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and slabs: parts of a problem give the bits of the whole, on one device and on several,
 * however small the parts are. */
#include "base/view.h"
#include "random_problem.h"
#include "smoke.h"
#include "support.h"

#include "oracle/oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(tconv_status status, const tconv_error *error)
{
    if (status != TCONV_OK) failed("%s: %s", tconv_status_name(status), error->message);
}

/* A problem of each rank and format: crops, gaps, outputs that nothing reaches. */
static tconv_problem problem_of(int which)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    switch (which) {
    case 0:
        p.data_format = TCONV_NCX;
        p.filter_format = TCONV_OIX;
        set_shape(&p.data, 4, (int64_t[]){3, 4, 13, 9});
        set_shape(&p.filter, 4, (int64_t[]){4, 5, 4, 4});
        set_list(&p.strides, 2, (int64_t[]){2, 2});
        set_list(&p.pads_begin, 2, (int64_t[]){1, 1});
        set_list(&p.pads_end, 2, (int64_t[]){1, 1});
        break;
    case 1: /* nothing reaches some rows; channels last, in groups */
        p.groups = 2;
        set_shape(&p.data, 4, (int64_t[]){2, 7, 5, 6});
        set_shape(&p.filter, 4, (int64_t[]){2, 3, 7, 6});
        set_list(&p.strides, 2, (int64_t[]){5, 2});
        set_list(&p.output_padding, 2, (int64_t[]){4, 0});
        break;
    case 2: /* one axis, dilation, and outputs past the natural extent */
        p.data_format = TCONV_NCX;
        p.filter_format = TCONV_OIX;
        set_shape(&p.data, 3, (int64_t[]){1, 3, 90});
        set_shape(&p.filter, 3, (int64_t[]){3, 2, 5});
        set_list(&p.strides, 1, (int64_t[]){3});
        set_list(&p.dilations, 1, (int64_t[]){4});
        set_list(&p.output_shape, 1, (int64_t[]){400});
        break;
    default: /* crops larger than the kernel, groups, a volume */
        p.data_format = TCONV_NCX;
        p.filter_format = TCONV_OIX;
        p.groups = 2;
        set_shape(&p.data, 5, (int64_t[]){2, 4, 9, 4, 5});
        set_shape(&p.filter, 5, (int64_t[]){4, 3, 3, 2, 3});
        set_list(&p.strides, 3, (int64_t[]){2, 2, 1});
        set_list(&p.pads_begin, 3, (int64_t[]){5, 0, 1});
        set_list(&p.pads_end, 3, (int64_t[]){4, 0, 0});
    }
    return p;
}

static void set_arrays(const struct tensors *t, tconv_tensors *arrays)
{
    *arrays = arrays_of(t);
    arrays->bias.host = t->bias;
    arrays->residual.host = t->residual;
}

/* Opens devices, and makes a layer on them whose filter varies. */
static tconv_layer *open_layer(const int *numbers, int count)
{
    tconv_device *opened[4] = {NULL};
    tconv_layer *layer;
    tconv_error error;
    for (int i = 0; i < count; i++)
        expect(tconv_device_open(numbers[i], &opened[i], &error), &error);
    expect(tconv_layer_create(opened, count, TCONV_FILTER_VARIES, &layer, &error), &error);
    for (int i = 0; i < count; i++) tconv_device_release(opened[i]);
    return layer;
}

/* The bytes of rows [begin, end) of the outermost spatial axis: a dense tensor of its own. */
static float *rows_of(const float *tensor, bool last, int64_t batch, int64_t channels,
                      int64_t extent, size_t count, int64_t begin, int64_t end)
{
    const int64_t planes = last ? batch : batch * channels;
    const size_t row = count / (size_t)(planes * extent), rows = (size_t)(end - begin);
    float *part = malloc(((size_t)planes * rows * row + 1) * sizeof *part);
    assert_non_null(part);
    for (int64_t p = 0; p < planes; p++)
        memcpy(part + (size_t)p * rows * row, tensor + (size_t)(p * extent + begin) * row,
               rows * row * sizeof *part);
    return part;
}

struct watch {
    int64_t calls, last, total, stop_at;
    int devices[8];
};

static bool watch_slab(void *user, const tconv_slab *slab, int64_t done, int64_t total)
{
    struct watch *w = user;
    w->calls++;
    w->devices[slab->device]++;
    assert_int_equal(done, w->last + 1);
    w->last = done;
    w->total = total;
    return w->calls != w->stop_at;
}

static void windows_are_parts_of_the_whole(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        const tconv_problem p = problem_of(which);
        struct tensors t;
        make_tensors(&p, SMALL_INTEGERS, (unsigned)which, &t);
        const tconv_geometry *g = &t.geometry;
        tconv_layer *layer = open_layer(&devices[0].number, 1);
        tconv_error error;
        tconv_tensors arrays;
        set_arrays(&t, &arrays);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue.bias = true;
        expect(tconv_layer_run(layer, &p, &options, &arrays, NULL, &error), &error);
        compare_with_oracle(&devices[0], &p, "auto", true, &t);
        const bool last = g->data_format == TCONV_NXC;
        const int64_t step = g->output[0] / 3 + 1;
        for (int64_t begin = 0; begin < g->output[0]; begin += step) {
            const int64_t end = begin + step < g->output[0] ? begin + step : g->output[0];
            int64_t from, to;
            expect(tconv_window_input(g, begin, end, &from, &to, &error), &error);
            assert_true(from >= 0 && to > from && to <= g->input[0]);
            const int64_t in = g->groups * g->group_in_channels,
                          out = g->groups * g->group_out_channels;
            float *data = rows_of(t.data, last, g->batch, in, g->input[0], t.data_count, from, to);
            float *wanted =
                rows_of(t.output, last, g->batch, out, g->output[0], t.output_count, begin, end);
            const size_t count = t.output_count / (size_t)g->output[0] * (size_t)(end - begin);
            float *output = malloc(count * sizeof *output);
            options.output_begin = begin;
            options.output_end = end;
            arrays.data.host = data;
            arrays.output.host = output;
            expect(tconv_layer_run(layer, &p, &options, &arrays, NULL, &error), &error);
            if (memcmp(output, wanted, count * sizeof *output) != 0)
                failed("problem %d: rows %lld to %lld are not those of the whole", which,
                       (long long)begin, (long long)end);
            /* The same window in slabs of a few rows. */
            struct watch watch = {0};
            tconv_run slabs = TCONV_RUN_INIT;
            const int64_t bytes = (int64_t)t.geometry.output_bytes / g->output[0] * (end - begin) +
                                  (int64_t)t.geometry.data_bytes / g->input[0] * (to - from);
            slabs.memory_limit = /* of two slabs at once */
                (uint64_t)(g->batch > 1 ? bytes / g->batch * 3 / 2 : bytes * 7 / 8);
            slabs.progress = watch_slab;
            slabs.user = &watch;
            memset(output, 0xff, count * sizeof *output);
            expect(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error), &error);
            assert_true(watch.calls > g->batch && watch.calls == watch.total);
            if (memcmp(output, wanted, count * sizeof *output) != 0)
                failed("problem %d: rows %lld to %lld in slabs are not those of the whole", which,
                       (long long)begin, (long long)end);
            free(data);
            free(wanted);
            free(output);
        }
        int64_t from, to;
        assert_int_equal(tconv_window_input(g, 0, g->output[0] + 1, &from, &to, &error),
                         TCONV_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, "output rows 0 to"));
        tconv_layer_release(layer);
        free_tensors(&t);
    }
}

static void slabs_are_the_whole(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int which = 0; which < 4; which++) {
            const tconv_problem p = problem_of(which);
            struct tensors t;
            make_tensors(&p, SMALL_INTEGERS, (unsigned)which + 10, &t);
            tconv_epilogue e = TCONV_EPILOGUE_INIT;
            e.residual = true;
            e.beta = which == 0 ? 2 : 0;
            make_epilogue(&p, &e, 3, &t);
            if (e.beta != 0) memcpy(t.output, t.before, t.output_count * sizeof *t.output);
            tconv_layer *layer = open_layer(&devices[d].number, 1);
            tconv_error error;
            struct watch watch = {0};
            tconv_run slabs = TCONV_RUN_INIT;
            const int64_t item = (int64_t)(t.geometry.data_bytes + 2 * t.geometry.output_bytes);
            slabs.memory_limit = (uint64_t)(item / t.geometry.batch * 2 / (which + 2));
            slabs.progress = watch_slab;
            slabs.user = &watch;
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            options.epilogue = e;
            options.epilogue.bias = true;
            tconv_tensors arrays;
            set_arrays(&t, &arrays);
            expect(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error), &error);
            compare_with_oracle(&devices[d], &p, "slabs", true, &t);
            assert_true(watch.total > t.geometry.batch && watch.calls == watch.total);

            /* Too little for a row. */
            slabs.memory_limit = 100;
            assert_int_equal(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error),
                             TCONV_ERROR_DEVICE_MEMORY);
            assert_non_null(strstr(error.message, "one row of the outermost axis"));
            /* Stopped. */
            slabs.memory_limit = (uint64_t)(item / t.geometry.batch * 2 / (which + 2));
            watch = (struct watch){.stop_at = 2};
            assert_int_equal(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error),
                             TCONV_ERROR_CANCELLED);
            assert_true(watch.calls == 2);
            tconv_layer_release(layer);
            free_tensors(&t);
        }
}

/* All devices together, and where there is one only, two contexts on it. */
static void several_devices_share_the_work(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    tconv_problem p = problem_of(0);
    p.data.dim[2] = 301;
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 21, &t);
    const int count = device_count == 1 ? 2 : device_count < 4 ? device_count : 4;
    int numbers[4];
    tconv_error error;
    for (int i = 0; i < count; i++) numbers[i] = devices[i % device_count].number;
    tconv_layer *layer = open_layer(numbers, count);
    struct watch watch = {0};
    tconv_run slabs = TCONV_RUN_INIT;
    slabs.progress = watch_slab;
    slabs.user = &watch;
    tconv_tensors arrays;
    set_arrays(&t, &arrays);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.bias = true;
    expect(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error), &error);
    compare_with_oracle(&devices[0], &p, "slabs on several devices", true, &t);
    assert_true(watch.calls >= 6 * count && watch.calls == watch.total);

    /* An error names the device. */
    options.algorithm = "depthwise_vector";
    assert_int_equal(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error),
                     TCONV_ERROR_ALGORITHM);
    bool named = false;
    for (int i = 0; i < count; i++)
        named = named ||
                strstr(error.message, devices[i % device_count].info->name) == error.message;
    assert_true(named);
    tconv_layer_release(layer);
    free_tensors(&t);
}

/* Host arrays that are parts of larger ones, or have their axes in another order: in one call, in
 * slabs, and where arrays are copied because of their alignment. What lies between the output's
 * elements stays as it is. */
static void arrays_have_steps(void **state)
{
    (void)state;
    unsigned seed = 5;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < 12; i++) {
            const int which = i % 4;
            tconv_problem p = problem_of(which);
            random_steps(&seed, &p);
            random_residual_steps(&seed, &p);
            if (i % 3 == 1) random_filter_steps(&seed, &p);
            struct tensors t;
            make_tensors(&p, SMALL_INTEGERS, (unsigned)i, &t);
            tconv_epilogue e = TCONV_EPILOGUE_INIT;
            e.residual = true;
            e.beta = which == 1 ? 2 : 0;
            make_epilogue(&p, &e, 3, &t);
            const size_t bytes = t.output_count * sizeof *t.output;
            float *copy = malloc(bytes + sizeof *copy), *own = t.output;
            /* Odd numbers of elements from where malloc aligns. */
            t.output = i % 3 == 2 ? copy + 1 : copy;
            memcpy(t.output, t.before, bytes);
            tconv_layer *layer = open_layer(&devices[d].number, 1);
            tconv_error error;
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            options.epilogue = e;
            options.epilogue.bias = true;
            tconv_tensors arrays;
            set_arrays(&t, &arrays);
            struct watch watch = {0};
            tconv_run slabs = TCONV_RUN_INIT;
            slabs.memory_limit = t.geometry.output_bytes / 2;
            slabs.progress = watch_slab;
            slabs.user = &watch;
            expect(i % 3 == 0 ? tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error)
                              : tconv_layer_run(layer, &p, &options, &arrays, NULL, &error),
                   &error);
            compare_with_oracle(&devices[d], &p, i % 3 == 0 ? "slabs" : "auto", true, &t);
            assert_true(i % 3 != 0 || watch.total > 1);
            expect_gaps(&p, &t, t.before);
            tconv_layer_release(layer);
            t.output = own;
            free(copy);
            free_tensors(&t);
        }
}

/* Gives a tensor without steps those that it has as a dense one. */
static void state_steps(const tconv_problem *p, const tconv_geometry *g, enum tconv_spaced tensor,
                        tconv_steps *steps)
{
    const struct tconv_view view = tconv_view_of(p, g, tensor);
    steps->count = view.rank;
    memcpy(steps->value, view.step, (size_t)view.rank * sizeof *view.step);
}

/* Windows of arrays with steps are parts of the arrays, in place. */
static void windows_keep_steps(void **state)
{
    (void)state;
    unsigned seed = 11;
    tconv_layer *layer = open_layer(&devices[0].number, 1);
    tconv_error error;
    for (int i = 0; i < 8; i++) {
        tconv_problem p = problem_of(i % 4);
        struct tensors t;
        random_steps(&seed, &p);
        make_tensors(&p, SMALL_INTEGERS, (unsigned)i, &t);
        state_steps(&p, &t.geometry, TCONV_SPACED_DATA, &p.data_steps);
        state_steps(&p, &t.geometry, TCONV_SPACED_OUTPUT, &p.output_steps);
        const size_t bytes = t.output_count * sizeof *t.output;
        float *parts = malloc(bytes);
        assert_non_null(parts);
        memcpy(parts, t.output, bytes);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue.bias = true;
        tconv_tensors arrays;
        set_arrays(&t, &arrays);
        arrays.residual.host = NULL;
        expect(tconv_layer_run(layer, &p, &options, &arrays, NULL, &error), &error);
        compare_with_oracle(&devices[0], &p, "auto", true, &t);
        const int rows = t.geometry.data_format == TCONV_NXC ? 1 : 2;
        const int64_t height = t.geometry.output[0], step = height / 3 + 1;
        for (int64_t begin = 0; begin < height; begin += step) {
            int64_t from, to;
            options.output_begin = begin;
            options.output_end = begin + step < height ? begin + step : height;
            expect(tconv_window_input(&t.geometry, begin, options.output_end, &from, &to, &error),
                   &error);
            arrays.data.host = t.data + from * p.data_steps.value[rows];
            arrays.output.host = parts + begin * p.output_steps.value[rows];
            tconv_run slabs = TCONV_RUN_INIT;
            slabs.memory_limit = t.geometry.output_bytes / 4;
            expect(i < 4 ? tconv_layer_run(layer, &p, &options, &arrays, NULL, &error)
                         : tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error),
                   &error);
        }
        if (memcmp(parts, t.output, bytes) != 0)
            failed("problem %d: windows with steps are not parts of the whole", i);
        free(parts);
        free_tensors(&t);
    }
    tconv_layer_release(layer);
}

/* Data and output in different channels of one array, channels last; the same channels are refused,
 * and so are steps of a residual that there is not. */
static void slices_of_one_array(void **state)
{
    (void)state;
    enum { PIXELS = 64, CHANNELS = 7, IN = 4, OUT = 3 };
    tconv_layer *layer = open_layer(&devices[0].number, 1);
    tconv_error error;
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = TCONV_NXC;
    set_shape(&p.data, 4, (int64_t[]){1, 4, 4, IN});
    set_shape(&p.filter, 4, (int64_t[]){2, 2, OUT, IN});
    set_list(&p.strides, 2, (int64_t[]){2, 2});
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 1, &t);
    tconv_tensors arrays;
    set_arrays(&t, &arrays);
    arrays.bias.host = arrays.residual.host = NULL;
    expect(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), &error);

    float joined[PIXELS * CHANNELS];
    for (int i = 0; i < PIXELS * CHANNELS; i++) joined[i] = -1;
    for (int i = 0; i < 16; i++)
        memcpy(joined + (size_t)i * CHANNELS, t.data + (size_t)i * IN, IN * sizeof *joined);
    p.data_steps = (tconv_steps){4, {1, 4 * CHANNELS, CHANNELS, 1}};
    p.output_steps = (tconv_steps){4, {1, 8 * CHANNELS, CHANNELS, 1}};
    arrays.data.host = joined;
    arrays.output.host = joined + IN;
    tconv_run slabs = TCONV_RUN_INIT;
    slabs.memory_limit = 1024;
    expect(tconv_layer_run(layer, &p, NULL, &arrays, &slabs, &error), &error);
    for (int i = 0; i < PIXELS; i++)
        for (int c = 0; c < CHANNELS; c++) {
            const float value = joined[i * CHANNELS + c], wanted = c >= IN
                                                                       ? t.output[i * OUT + c - IN]
                                                                   : i < 16 ? t.data[i * IN + c]
                                                                            : -1;
            if (value != wanted)
                failed("pixel %d, channel %d is %g, not %g", i, c, (double)value, (double)wanted);
        }

    float before[PIXELS * CHANNELS];
    memcpy(before, joined, sizeof before);
    arrays.output.host = joined + IN - 1;
    assert_int_equal(tconv_layer_run(layer, &p, NULL, &arrays, &slabs, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "tensors.output overlaps tensors.data"));
    arrays.output.host = joined + IN;
    p.residual_steps = p.output_steps;
    assert_int_equal(tconv_layer_run(layer, &p, NULL, &arrays, &slabs, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "residual_steps has 4 values"));
    assert_memory_equal(before, joined, sizeof before);
    free_tensors(&t);
    tconv_layer_release(layer);
}

/* An output may begin where an input ends, and be the residual; each overlap is refused, whatever
 * the number of devices, before anything is written. */
static void the_output_has_memory_of_its_own(void **state)
{
    (void)state;
    const tconv_problem p = problem_of(0);
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 31, &t);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.scale = options.epilogue.residual = true;
    options.epilogue.activation = TCONV_ACTIVATION_PRELU;
    make_epilogue(&p, &options.epilogue, 31, &t);
    options.epilogue.bias = true;
    const int numbers[] = {devices[0].number, devices[0].number};
    tconv_layer *layers[] = {open_layer(numbers, 1), open_layer(numbers, 2)};
    tconv_run slabs = TCONV_RUN_INIT;
    slabs.memory_limit = 8192; /* one device takes the tensors at once otherwise */
    tconv_error error;
    tconv_tensors good;
    set_arrays(&t, &good);
    good.scale.host = t.scale;
    good.slope.host = t.slope;
    const struct {
        const char *name;
        size_t member, bytes;
    } inputs[] = {
        {"data", offsetof(tconv_tensors, data), t.data_count * sizeof(float)},
        {"filter", offsetof(tconv_tensors, filter), t.filter_count * sizeof(float)},
        {"bias", offsetof(tconv_tensors, bias), t.channels * sizeof(float)},
        {"scale", offsetof(tconv_tensors, scale), t.channels * sizeof(float)},
        {"slope", offsetof(tconv_tensors, slope), t.channels * sizeof(float)},
        {"residual", offsetof(tconv_tensors, residual), t.output_count * sizeof(float)},
    };
    const size_t output_bytes = t.output_count * sizeof(float);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const size_t bytes = inputs[i].bytes;
        char *block = calloc(1, bytes + output_bytes), *before = malloc(bytes + output_bytes);
        tconv_tensors arrays = good;
        tconv_tensor *member = (tconv_tensor *)(void *)((char *)&arrays + inputs[i].member);
        memcpy(block, member->host, bytes);
        memcpy(before, block, bytes + output_bytes);
        member->host = block;
        for (int count = 1; count <= (threads_left_out() ? 1 : 2); count++) {
            char words[64];
            snprintf(words, sizeof words, "tensors.output overlaps tensors.%s", inputs[i].name);
            arrays.output.host = block + bytes - sizeof(float);
            assert_int_equal(
                tconv_layer_run(layers[count - 1], &p, &options, &arrays, &slabs, &error),
                TCONV_ERROR_ARGUMENT);
            assert_non_null(strstr(error.message, words));
            assert_memory_equal(block, before, bytes + output_bytes);
        }
        arrays.output.host = block + bytes;
        expect(tconv_layer_run(layers[0], &p, &options, &arrays, &slabs, &error), &error);
        assert_memory_equal(block, before, bytes);
        memcpy(t.output, block + bytes, output_bytes);
        compare_with_oracle(&devices[0], &p, inputs[i].name, true, &t);
        free(block);
        free(before);
    }
    memcpy(t.output, t.residual, output_bytes);
    good.residual.host = good.output.host;
    expect(tconv_layer_run(layers[threads_left_out() ? 0 : 1], &p, &options, &good, &slabs, &error),
           &error);
    compare_with_oracle(&devices[0], &p, "residual", true, &t);
    for (int i = 0; i < 2; i++) tconv_layer_release(layers[i]);
    free_tensors(&t);
}

/* Each use of the filter, and weights that were set: slabs take plans and packed filters that the
 * layer keeps, and make no others in a second run. One plan serves all inner slabs. */
static void slabs_use_what_the_layer_keeps(void **state)
{
    (void)state;
    tconv_problem p = problem_of(0);
    p.data.dim[0] = 1;
    p.data.dim[2] = 120;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.bias = true;
    for (int d = 0; d < device_count; d++)
        for (int use = TCONV_FILTER_VARIES; use <= TCONV_FILTER_WATCHED; use++)
            for (int set = 0; set < 2; set++) {
                struct tensors t;
                make_tensors(&p, SMALL_INTEGERS, 41, &t);
                tconv_tensors arrays, weights = TCONV_TENSORS_INIT;
                tconv_layer_counts first = TCONV_LAYER_COUNTS_INIT, second = first;
                tconv_device *opened;
                tconv_layer *layer;
                tconv_error error;
                struct watch watch = {0};
                tconv_run slabs = TCONV_RUN_INIT;
                slabs.memory_limit = (t.geometry.data_bytes + t.geometry.output_bytes) / 4;
                slabs.progress = watch_slab;
                slabs.user = &watch;
                expect(tconv_device_open(devices[d].number, &opened, &error), &error);
                expect(tconv_layer_create(&opened, 1, (tconv_filter_use)use, &layer, &error),
                       &error);
                set_arrays(&t, &arrays);
                weights.filter = arrays.filter;
                weights.bias = arrays.bias;
                if (set) {
                    expect(tconv_layer_set(layer, &p, &options, &weights, NULL, &error), &error);
                    arrays.filter.host = arrays.bias.host = NULL;
                }
                for (int i = 0; i < 2; i++) {
                    memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
                    watch = (struct watch){0};
                    expect(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error), &error);
                    compare_with_oracle(&devices[d], &p, "slabs", true, &t);
                    assert_true(watch.total >= 8 && watch.calls == watch.total);
                    expect(tconv_layer_count(layer, i == 0 ? &first : &second, &error), &error);
                }
                assert_int_equal(second.runs, 2);
                assert_int_equal(second.in_slabs, 2);
                assert_true(first.plans_made <= 5 && second.plans_made == first.plans_made);
                if (use == TCONV_FILTER_VARIES && !set)
                    assert_int_equal(second.filters_packed, 2 * first.filters_packed);
                else
                    assert_int_equal(second.filters_packed, first.filters_packed);
                free_tensors(&t);
                tconv_layer_release(layer);
                tconv_device_release(opened);
            }
}

/* A problem of six batch items, and memory for two of them: slabs are alike. */
static tconv_problem problem_of_items(const struct device *device, int use, tconv_layer **layer,
                                      int device_count_of_layer)
{
    tconv_problem p = problem_of(0);
    tconv_device *opened[2];
    tconv_error error;
    p.data.dim[0] = 6;
    for (int i = 0; i < device_count_of_layer; i++)
        expect(tconv_device_open(device->number, &opened[i], &error), &error);
    expect(tconv_layer_create(opened, device_count_of_layer, (tconv_filter_use)use, layer, &error),
           &error);
    for (int i = 0; i < device_count_of_layer; i++) tconv_device_release(opened[i]);
    return p;
}

/* The filter that a run gives counts, not the one that was set: also in slabs, and where the layer
 * cannot tell them apart. */
static void a_given_filter_counts(void **state)
{
    (void)state;
    const int uses[] = {TCONV_FILTER_VARIES, TCONV_FILTER_WATCHED};
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < 2; i++) {
            tconv_layer *layer;
            const tconv_problem p = problem_of_items(&devices[d], uses[i], &layer, 1);
            struct tensors set, given;
            tconv_tensors arrays, weights = TCONV_TENSORS_INIT;
            tconv_error error;
            make_tensors(&p, SMALL_INTEGERS, 51, &set);
            make_tensors(&p, SMALL_INTEGERS, 52, &given);
            tconv_run slabs = TCONV_RUN_INIT;
            slabs.memory_limit = (given.geometry.data_bytes + given.geometry.output_bytes) / 3;
            weights.filter.host = set.filter;
            expect(tconv_layer_set(layer, &p, NULL, &weights, NULL, &error), &error);
            set_arrays(&given, &arrays);
            arrays.bias.host = arrays.residual.host = NULL;
            expect(tconv_layer_run(layer, &p, NULL, &arrays, &slabs, &error), &error);
            compare_with_oracle(&devices[d], &p, "slabs", false, &given);
            /* A run without a filter still has the one that was set, if nothing else was kept. */
            if (uses[i] == TCONV_FILTER_VARIES) {
                set_arrays(&set, &arrays);
                arrays.filter.host = arrays.bias.host = arrays.residual.host = NULL;
                expect(tconv_layer_run(layer, &p, NULL, &arrays, &slabs, &error), &error);
                compare_with_oracle(&devices[d], &p, "slabs", false, &set);
            }
            free_tensors(&set);
            free_tensors(&given);
            tconv_layer_release(layer);
        }
}

/* What happens to the weights in the middle of a run. */
struct change {
    tconv_layer *layer;
    const tconv_problem *problem;
    const tconv_plan_options *options;
    const tconv_tensors *weights; /* NULL: the layer is refreshed */
    float *filter;                /* its elements change, if it is not NULL */
    int calls;
};

static bool change_weights(void *user, const tconv_slab *slab, int64_t done, int64_t total)
{
    struct change *change = user;
    tconv_error error;
    (void)slab;
    (void)done;
    assert_true(total > 2);
    if (change->calls++ != 0) return true;
    if (change->filter != NULL)
        change->filter[0] += 1;
    else if (change->weights != NULL)
        expect(tconv_layer_set(change->layer, change->problem, change->options, change->weights,
                               NULL, &error),
               &error);
    else
        tconv_layer_refresh(change->layer);
    return true;
}

/* All slabs have the weights of the moment when the run began, whatever becomes of them: they are
 * set again, dropped, or changed by the caller after they were packed. */
static void one_output_has_one_set_of_weights(void **state)
{
    (void)state;
    enum { SET, REFRESH, WRITE, CHANGES };
    const int most = threads_left_out() ? 1 : 2;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.bias = true;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < CHANGES * most; i++) {
            const int what = i % CHANGES;
            tconv_layer *layer;
            const tconv_problem p = problem_of_items(
                &devices[d], what == WRITE ? TCONV_FILTER_WATCHED : TCONV_FILTER_VARIES, &layer,
                what == WRITE ? 1 : i / CHANGES + 1);
            struct tensors first, second;
            tconv_tensors arrays, weights = TCONV_TENSORS_INIT, others = TCONV_TENSORS_INIT;
            tconv_error error;
            make_tensors(&p, SMALL_INTEGERS, 61, &first);
            make_tensors(&p, SMALL_INTEGERS, 62, &second);
            weights.filter.host = first.filter;
            weights.bias.host = first.bias;
            others.filter.host = second.filter;
            others.bias.host = second.bias;
            set_arrays(&first, &arrays);
            arrays.residual.host = NULL;
            if (what != WRITE) {
                expect(tconv_layer_set(layer, &p, &options, &weights, NULL, &error), &error);
                arrays.filter.host = arrays.bias.host = NULL;
            }
            struct change change = {layer,
                                    &p,
                                    &options,
                                    what == SET ? &others : NULL,
                                    what == WRITE ? first.filter : NULL,
                                    0};
            tconv_run slabs = TCONV_RUN_INIT;
            slabs.memory_limit = (first.geometry.data_bytes + first.geometry.output_bytes) / 3;
            slabs.progress = change_weights;
            slabs.user = &change;
            expect(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error), &error);
            if (what == WRITE) first.filter[0] -= 1;
            compare_with_oracle(&devices[d], &p, "slabs", true, &first);
            /* The next run has the new ones. */
            if (what == WRITE) first.filter[0] += 1;
            if (what == SET) {
                memcpy(first.filter, second.filter, (size_t)first.geometry.filter_bytes);
                memcpy(first.bias, second.bias, first.channels * sizeof *first.bias);
            }
            const tconv_status status =
                tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error);
            if (what == REFRESH) {
                assert_int_equal(status, TCONV_ERROR_ARGUMENT);
            } else {
                expect(status, &error);
                compare_with_oracle(&devices[d], &p, "slabs", true, &first);
            }
            free_tensors(&first);
            free_tensors(&second);
            tconv_layer_release(layer);
        }
}

struct inner {
    tconv_layer *layer;
    const tconv_problem *problem;
    const tconv_tensors *arrays;
    const char *algorithm;
    int calls;
};

static bool run_inside(void *context, const char *algorithm, int index, int count, double best_ms)
{
    struct inner *inner = context;
    tconv_error error;
    (void)algorithm;
    (void)index;
    (void)count;
    (void)best_ms;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = inner->algorithm;
    inner->calls++;
    expect(tconv_layer_run(inner->layer, inner->problem, &options, inner->arrays, NULL, &error),
           &error);
    return true;
}

/* A search's callback may run the layer that the search is for, on all its devices: none of their
 * threads waits for the one that searches. */
static void a_search_may_run_its_layer(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    tconv_layer *layer;
    tconv_problem p = problem_of_items(&devices[0], TCONV_FILTER_VARIES, &layer, 2);
    tconv_problem other = p;
    other.data.dim[0] = 1;
    struct tensors t;
    tconv_tensors arrays;
    tconv_error error;
    make_tensors(&p, SMALL_INTEGERS, 71, &t);
    set_arrays(&t, &arrays);
    arrays.bias.host = arrays.residual.host = NULL;
    struct inner inner = {layer, &p, &arrays, NULL, 0};
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.search = TCONV_SEARCH_RENEW;
    options.search_ms = 1;
    options.search_progress = run_inside;
    options.search_context = &inner;
    expect(tconv_layer_prepare(layer, &other, NULL, &options, &error), &error);
    assert_true(inner.calls >= 2);
    compare_with_oracle(&devices[0], &p, "slabs", false, &t);
    free_tensors(&t);
    tconv_layer_release(layer);
}

static void run_when_planned(void *context, const tconv_trace_event *event)
{
    const struct inner *inner = context;
    if (inner->calls == 0) run_inside(context, event->algorithm, 0, 0, 0);
}

/* A constant filter that another run packs after the run began is not packed again. */
static void runs_at_once_pack_once(void **state)
{
    (void)state;
    tconv_problem p = problem_of(0);
    struct tensors t;
    tconv_tensors arrays;
    tconv_layer *layer;
    tconv_device *opened;
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    tconv_error error;
    make_tensors(&p, SMALL_INTEGERS, 81, &t);
    set_arrays(&t, &arrays);
    arrays.bias.host = arrays.residual.host = NULL;
    expect(tconv_device_open(devices[0].number, &opened, &error), &error);
    expect(tconv_layer_create(&opened, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
    struct inner inner = {layer, &p, &arrays, "reference", 0};
    expect(tconv_device_set_trace(opened, TCONV_TRACE_PLAN, run_when_planned, &inner, &error),
           &error);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = inner.algorithm;
    tconv_run slabs = TCONV_RUN_INIT;
    slabs.memory_limit = (t.geometry.data_bytes + t.geometry.output_bytes) * 2 / 3;
    expect(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error), &error);
    compare_with_oracle(&devices[0], &p, inner.algorithm, false, &t);
    assert_int_equal(inner.calls, 1);
    expect(tconv_layer_count(layer, &counts, &error), &error);
    assert_int_equal(counts.filters_packed, 1);
    free_tensors(&t);
    tconv_layer_release(layer);
    tconv_device_release(opened);
}

struct intruder {
    tconv_layer *layer;
    const tconv_problem *problem;
    const tconv_tensors *arrays;
    bool refreshes;
    int calls;
};

static void run_with_others(void *context, const tconv_trace_event *event)
{
    struct intruder *i = context;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_error error;
    (void)event;
    if (i->calls++ != 0) return;
    options.algorithm = "reference";
    if (i->refreshes) tconv_layer_refresh(i->layer);
    expect(tconv_layer_run(i->layer, i->problem, &options, i->arrays, NULL, &error), &error);
}

/* A run in slabs takes no filter that another run packs meanwhile from other weights: neither if
 * the layer watches weights, nor if it was told that they change. */
static void runs_at_once_have_their_own_weights(void **state)
{
    (void)state;
    const tconv_problem p = problem_of(0);
    for (int watched = 0; watched < 2; watched++) {
        struct tensors t, others;
        tconv_tensors arrays, other_arrays;
        tconv_layer *layer;
        tconv_device *opened;
        tconv_error error;
        make_tensors(&p, SMALL_INTEGERS, 81, &t);
        make_tensors(&p, SMALL_INTEGERS, 82, &others);
        set_arrays(&t, &arrays);
        set_arrays(&others, &other_arrays);
        arrays.bias.host = arrays.residual.host = NULL;
        other_arrays.bias.host = other_arrays.residual.host = NULL;
        expect(tconv_device_open(devices[0].number, &opened, &error), &error);
        expect(tconv_layer_create(&opened, 1,
                                  watched ? TCONV_FILTER_WATCHED : TCONV_FILTER_CONSTANT, &layer,
                                  &error),
               &error);
        struct intruder intruder = {layer, &p, &other_arrays, !watched, 0};
        expect(tconv_device_set_trace(opened, TCONV_TRACE_PLAN, run_with_others, &intruder, &error),
               &error);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.algorithm = "reference";
        tconv_run slabs = TCONV_RUN_INIT;
        slabs.memory_limit = (t.geometry.data_bytes + t.geometry.output_bytes) * 2 / 3;
        expect(tconv_layer_run(layer, &p, &options, &arrays, &slabs, &error), &error);
        assert_true(intruder.calls > 0);
        compare_with_oracle(&devices[0], &p, "slabs", false, &t);
        compare_with_oracle(&devices[0], &p, "reference", false, &others);
        free_tensors(&t);
        free_tensors(&others);
        tconv_layer_release(layer);
        tconv_device_release(opened);
    }
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_parts_of_the_whole),
        smoke_test(slabs_are_the_whole),
        cmocka_unit_test(several_devices_share_the_work),
        cmocka_unit_test(arrays_have_steps),
        cmocka_unit_test(windows_keep_steps),
        cmocka_unit_test(slices_of_one_array),
        cmocka_unit_test(the_output_has_memory_of_its_own),
        cmocka_unit_test(slabs_use_what_the_layer_keeps),
        cmocka_unit_test(a_given_filter_counts),
        cmocka_unit_test(one_output_has_one_set_of_weights),
        cmocka_unit_test(a_search_may_run_its_layer),
        cmocka_unit_test(runs_at_once_pack_once),
        cmocka_unit_test(runs_at_once_have_their_own_weights),
    };
    return run_smoke_or_all("slabs", tests, open_all_devices, close_all_devices);
}
