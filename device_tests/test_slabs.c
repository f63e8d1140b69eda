/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and slabs: parts of a problem give the bits of the whole, on one device and on several,
 * however small the parts are. */
#include "base/view.h"
#include "random_problem.h"
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
    case 1: /* nothing reaches some rows; channels last */
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

static void set_arrays(const struct tensors *t, tconv_arrays *arrays)
{
    *arrays = (tconv_arrays)TCONV_ARRAYS_INIT;
    arrays->data = t->data;
    arrays->filter = t->filter;
    arrays->bias = t->bias;
    arrays->residual = t->residual;
    arrays->output = t->output;
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
    int sessions[8];
};

static bool watch_slab(void *user, const tconv_slab *slab, int64_t done, int64_t total)
{
    struct watch *w = user;
    w->calls++;
    w->sessions[slab->session]++;
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
        tconv_session *session;
        tconv_error error;
        expect(tconv_session_create(devices[0].number, &session, &error), &error);
        tconv_arrays arrays;
        set_arrays(&t, &arrays);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue.bias = true;
        expect(tconv_session_run(session, &p, &options, &arrays, &error), &error);
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
            arrays.data = data;
            arrays.output = output;
            expect(tconv_session_run(session, &p, &options, &arrays, &error), &error);
            if (memcmp(output, wanted, count * sizeof *output) != 0)
                failed("problem %d: rows %lld to %lld are not those of the whole", which,
                       (long long)begin, (long long)end);
            /* The same window in slabs of a few rows. */
            struct watch watch = {0};
            tconv_slabs_options slabs = TCONV_SLABS_OPTIONS_INIT;
            const int64_t bytes = (int64_t)t.geometry.output_bytes / g->output[0] * (end - begin) +
                                  (int64_t)t.geometry.data_bytes / g->input[0] * (to - from);
            slabs.memory_limit = (uint64_t)(bytes / g->batch * 3 / 2); /* two slabs at once */
            slabs.done = watch_slab;
            slabs.user = &watch;
            memset(output, 0xff, count * sizeof *output);
            expect(tconv_slabs_run(&session, 1, &p, &options, &slabs, &arrays, &error), &error);
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
        tconv_session_release(session);
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
            tconv_session *session;
            tconv_error error;
            expect(tconv_session_create(devices[d].number, &session, &error), &error);
            struct watch watch = {0};
            tconv_slabs_options slabs = TCONV_SLABS_OPTIONS_INIT;
            const int64_t item = (int64_t)(t.geometry.data_bytes + 2 * t.geometry.output_bytes);
            slabs.memory_limit = (uint64_t)(item / t.geometry.batch * 2 / (which + 2));
            slabs.done = watch_slab;
            slabs.user = &watch;
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            options.epilogue = e;
            options.epilogue.bias = true;
            tconv_arrays arrays;
            set_arrays(&t, &arrays);
            expect(tconv_slabs_run(&session, 1, &p, &options, &slabs, &arrays, &error), &error);
            compare_with_oracle(&devices[d], &p, "slabs", true, &t);
            assert_true(watch.total > t.geometry.batch && watch.calls == watch.total);

            /* Too little for a row. */
            slabs.memory_limit = 100;
            assert_int_equal(tconv_slabs_run(&session, 1, &p, &options, &slabs, &arrays, &error),
                             TCONV_ERROR_DEVICE_MEMORY);
            assert_non_null(strstr(error.message, "one row of the outermost axis"));
            /* Stopped. */
            slabs.memory_limit = (uint64_t)(item / t.geometry.batch * 2 / (which + 2));
            watch = (struct watch){.stop_at = 2};
            assert_int_equal(tconv_slabs_run(&session, 1, &p, &options, &slabs, &arrays, &error),
                             TCONV_ERROR_CANCELLED);
            assert_true(watch.calls == 2);
            tconv_session_release(session);
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
    tconv_session *sessions[4];
    tconv_error error;
    for (int i = 0; i < count; i++)
        expect(tconv_session_create(devices[i % device_count].number, &sessions[i], &error),
               &error);
    struct watch watch = {0};
    tconv_slabs_options slabs = TCONV_SLABS_OPTIONS_INIT;
    slabs.done = watch_slab;
    slabs.user = &watch;
    tconv_arrays arrays;
    set_arrays(&t, &arrays);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.bias = true;
    expect(tconv_slabs_run(sessions, count, &p, &options, &slabs, &arrays, &error), &error);
    compare_with_oracle(&devices[0], &p, "slabs on several devices", true, &t);
    assert_true(watch.calls >= 6 * count && watch.calls == watch.total);

    /* An error names the device. */
    options.algorithm = "depthwise_vector";
    assert_int_equal(tconv_slabs_run(sessions, count, &p, &options, &slabs, &arrays, &error),
                     TCONV_ERROR_ALGORITHM);
    bool named = false;
    for (int i = 0; i < count; i++)
        named = named ||
                strstr(error.message, devices[i % device_count].info->name) == error.message;
    assert_true(named);
    /* The same host twice is refused. */
    tconv_session *twice[] = {sessions[0], sessions[0]};
    assert_int_equal(tconv_slabs_run(twice, 2, &p, NULL, NULL, &arrays, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "given twice"));
    for (int i = 0; i < count; i++) tconv_session_release(sessions[i]);
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
            tconv_session *session;
            tconv_error error;
            expect(tconv_session_create(devices[d].number, &session, &error), &error);
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            options.epilogue = e;
            options.epilogue.bias = true;
            tconv_arrays arrays;
            set_arrays(&t, &arrays);
            tconv_slabs_options slabs = TCONV_SLABS_OPTIONS_INIT;
            slabs.memory_limit = 40000;
            expect(i % 3 == 0 ? tconv_slabs_run(&session, 1, &p, &options, &slabs, &arrays, &error)
                              : tconv_session_run(session, &p, &options, &arrays, &error),
                   &error);
            compare_with_oracle(&devices[d], &p, i % 3 == 0 ? "slabs" : "auto", true, &t);
            expect_gaps(&p, &t, t.before);
            tconv_session_release(session);
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
    tconv_session *session;
    tconv_error error;
    expect(tconv_session_create(devices[0].number, &session, &error), &error);
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
        tconv_arrays arrays;
        set_arrays(&t, &arrays);
        arrays.residual = NULL;
        expect(tconv_session_run(session, &p, &options, &arrays, &error), &error);
        compare_with_oracle(&devices[0], &p, "auto", true, &t);
        const int rows = t.geometry.data_format == TCONV_NXC ? 1 : 2;
        const int64_t height = t.geometry.output[0], step = height / 3 + 1;
        for (int64_t begin = 0; begin < height; begin += step) {
            int64_t from, to;
            options.output_begin = begin;
            options.output_end = begin + step < height ? begin + step : height;
            expect(tconv_window_input(&t.geometry, begin, options.output_end, &from, &to, &error),
                   &error);
            arrays.data = t.data + from * p.data_steps.value[rows];
            arrays.output = parts + begin * p.output_steps.value[rows];
            tconv_slabs_options slabs = TCONV_SLABS_OPTIONS_INIT;
            slabs.memory_limit = 40000;
            expect(i < 4 ? tconv_session_run(session, &p, &options, &arrays, &error)
                         : tconv_slabs_run(&session, 1, &p, &options, &slabs, &arrays, &error),
                   &error);
        }
        if (memcmp(parts, t.output, bytes) != 0)
            failed("problem %d: windows with steps are not parts of the whole", i);
        free(parts);
        free_tensors(&t);
    }
    tconv_session_release(session);
}

/* Data and output in different channels of one array, channels last; the same channels are refused,
 * and so are steps of a residual that there is not. */
static void slices_of_one_array(void **state)
{
    (void)state;
    enum { PIXELS = 64, CHANNELS = 7, IN = 4, OUT = 3 };
    tconv_session *session;
    tconv_error error;
    expect(tconv_session_create(devices[0].number, &session, &error), &error);
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = TCONV_NXC;
    set_shape(&p.data, 4, (int64_t[]){1, 4, 4, IN});
    set_shape(&p.filter, 4, (int64_t[]){2, 2, OUT, IN});
    set_list(&p.strides, 2, (int64_t[]){2, 2});
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 1, &t);
    tconv_arrays arrays;
    set_arrays(&t, &arrays);
    arrays.bias = arrays.residual = NULL;
    expect(tconv_session_run(session, &p, NULL, &arrays, &error), &error);

    float joined[PIXELS * CHANNELS];
    for (int i = 0; i < PIXELS * CHANNELS; i++) joined[i] = -1;
    for (int i = 0; i < 16; i++)
        memcpy(joined + (size_t)i * CHANNELS, t.data + (size_t)i * IN, IN * sizeof *joined);
    p.data_steps = (tconv_steps){4, {1, 4 * CHANNELS, CHANNELS, 1}};
    p.output_steps = (tconv_steps){4, {1, 8 * CHANNELS, CHANNELS, 1}};
    arrays.data = joined;
    arrays.output = joined + IN;
    tconv_slabs_options slabs = TCONV_SLABS_OPTIONS_INIT;
    slabs.memory_limit = 4096;
    expect(tconv_slabs_run(&session, 1, &p, NULL, &slabs, &arrays, &error), &error);
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
    arrays.output = joined + IN - 1;
    assert_int_equal(tconv_slabs_run(&session, 1, &p, NULL, &slabs, &arrays, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "arrays.output overlaps arrays.data"));
    arrays.output = joined + IN;
    p.residual_steps = p.output_steps;
    assert_int_equal(tconv_slabs_run(&session, 1, &p, NULL, &slabs, &arrays, &error),
                     TCONV_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "residual_steps has 4 values"));
    assert_memory_equal(before, joined, sizeof before);
    free_tensors(&t);
    tconv_session_release(session);
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
    tconv_session *sessions[2];
    tconv_error error;
    for (int i = 0; i < 2; i++)
        expect(tconv_session_create(devices[0].number, &sessions[i], &error), &error);
    tconv_arrays good;
    set_arrays(&t, &good);
    good.scale = t.scale;
    good.slope = t.slope;
    const struct {
        const char *name;
        size_t member, bytes;
    } inputs[] = {
        {"data", offsetof(tconv_arrays, data), t.data_count * sizeof(float)},
        {"filter", offsetof(tconv_arrays, filter), t.filter_count * sizeof(float)},
        {"bias", offsetof(tconv_arrays, bias), t.channels * sizeof(float)},
        {"scale", offsetof(tconv_arrays, scale), t.channels * sizeof(float)},
        {"slope", offsetof(tconv_arrays, slope), t.channels * sizeof(float)},
        {"residual", offsetof(tconv_arrays, residual), t.output_count * sizeof(float)},
    };
    const size_t output_bytes = t.output_count * sizeof(float);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const size_t bytes = inputs[i].bytes;
        char *block = calloc(1, bytes + output_bytes), *before = malloc(bytes + output_bytes);
        tconv_arrays arrays = good;
        const void **member = (const void **)(void *)((char *)&arrays + inputs[i].member);
        memcpy(block, *member, bytes);
        memcpy(before, block, bytes + output_bytes);
        *member = block;
        for (int count = 1; count <= (threads_left_out() ? 1 : 2); count++) {
            char words[64];
            snprintf(words, sizeof words, "arrays.output overlaps arrays.%s", inputs[i].name);
            arrays.output = block + bytes - sizeof(float);
            assert_int_equal(tconv_slabs_run(sessions, count, &p, &options, NULL, &arrays, &error),
                             TCONV_ERROR_ARGUMENT);
            assert_non_null(strstr(error.message, words));
            assert_memory_equal(block, before, bytes + output_bytes);
        }
        arrays.output = block + bytes;
        expect(tconv_slabs_run(sessions, 1, &p, &options, NULL, &arrays, &error), &error);
        assert_memory_equal(block, before, bytes);
        memcpy(t.output, block + bytes, output_bytes);
        compare_with_oracle(&devices[0], &p, inputs[i].name, true, &t);
        free(block);
        free(before);
    }
    memcpy(t.output, t.residual, output_bytes);
    good.residual = good.output;
    expect(tconv_slabs_run(sessions, threads_left_out() ? 1 : 2, &p, &options, NULL, &good, &error),
           &error);
    compare_with_oracle(&devices[0], &p, "residual", true, &t);
    for (int i = 0; i < 2; i++) tconv_session_release(sessions[i]);
    free_tensors(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_parts_of_the_whole),
        cmocka_unit_test(slabs_are_the_whole),
        cmocka_unit_test(several_devices_share_the_work),
        cmocka_unit_test(arrays_have_steps),
        cmocka_unit_test(windows_keep_steps),
        cmocka_unit_test(slices_of_one_array),
        cmocka_unit_test(the_output_has_memory_of_its_own),
    };
    return cmocka_run_group_tests_name("slabs", tests, open_all_devices, close_all_devices);
}
