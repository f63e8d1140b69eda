/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on host arrays: plans and packed filters that stay, arrays at any alignment and on top of
 * each other, and threads. */
#include "setup.h"
#include "smoke.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_PLANS = 128 }; /* that a layer keeps; layer.h says the number */

static tconv_device *open_host(const struct device *device)
{
    tconv_device *opened;
    tconv_error error;
    expect_ok(tconv_device_open(device->number, &opened, &error), &error);
    return opened;
}

static tconv_layer *make_layer(tconv_device *device, tconv_filter_use use)
{
    tconv_layer *layer;
    tconv_error error;
    expect_ok(tconv_layer_create(&device, 1, use, &layer, &error), &error);
    return layer;
}

static void run(tconv_layer *layer, const tconv_problem *problem, const tconv_plan_options *options,
                const tconv_tensors *arrays)
{
    tconv_error error;
    expect_ok(tconv_layer_run(layer, problem, options, arrays, NULL, &error), &error);
}

static void expect_counts(const tconv_layer *layer, uint64_t runs, uint64_t plans_made,
                          uint64_t plans_kept, uint64_t filters_packed)
{
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    tconv_error error;
    expect_ok(tconv_layer_count(layer, &counts, &error), &error);
    assert_int_equal(counts.runs, runs);
    assert_int_equal(counts.plans_made, plans_made);
    assert_int_equal(counts.plans_kept, plans_kept);
    assert_int_equal(counts.filters_packed, filters_packed);
}

/* A layer that watches packs weights again if they have another version, or, without one, other
 * elements. */
static void weights_have_versions(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layer = make_layer(host, TCONV_FILTER_WATCHED);
        const tconv_problem p = plane(1, 5, 7, 6, 3, 2, 1);
        struct tensors t;
        make_tensors(&p, REAL_NUMBERS, 4, &t);
        tconv_tensors arrays = arrays_of(&t);
        const uint64_t versions[] = {0, 0, 1, 1, 2, UINT64_MAX, 0};
        const bool changes[] = {false, true, false, false, true, true, true};
        const uint64_t packed[] = {1, 2, 3, 3, 4, 5, 6};
        for (uint64_t i = 0; i < sizeof versions / sizeof *versions; i++) {
            if (changes[i]) t.filter[i] += 1;
            arrays.filter_version = versions[i];
            run(layer, &p, NULL, &arrays);
            compare_with_oracle(&devices[d], &p, NULL, false, &t);
            expect_counts(layer, i + 1, 1, 1, packed[i]);
        }
        /* A version is believed. */
        arrays.filter_version = 7;
        run(layer, &p, NULL, &arrays);
        const float before = t.output[0];
        t.filter[0] += 1;
        run(layer, &p, NULL, &arrays);
        assert_true(t.output[0] == before);
        expect_counts(layer, 9, 1, 1, 7);
        /* Programs that were compiled with shorter arrays have none, whatever lies behind them. */
        arrays.struct_size = offsetof(tconv_tensors, filter_version);
        for (uint64_t count = 8; count <= 9; count++) {
            t.filter[0] += 1;
            run(layer, &p, NULL, &arrays);
            compare_with_oracle(&devices[d], &p, NULL, false, &t);
            expect_counts(layer, count + 2, 1, 1, count);
        }
        free_tensors(&t);
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

/* Runs without a filter have the one that was set, also after runs that gave another one, in slabs
 * or not. */
static void runs_leave_set_weights(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int i = 0; i < 6; i++) {
            const tconv_filter_use use = (tconv_filter_use)(i % 3);
            tconv_device *host = open_host(&devices[d]);
            tconv_layer *layer = make_layer(host, use);
            const tconv_problem p = plane(2, 5, 7, 40, 3, 2, 1);
            tconv_run how = TCONV_RUN_INIT;
            tconv_tensors weights = TCONV_TENSORS_INIT;
            tconv_error error;
            struct tensors set, given;
            make_tensors(&p, SMALL_INTEGERS, 4, &set);
            make_tensors(&p, SMALL_INTEGERS, 5, &given);
            if (use == TCONV_FILTER_CONSTANT) /* it has the same elements wherever it comes from */
                memcpy(given.filter, set.filter, (size_t)set.geometry.filter_bytes);
            if (i >= 3) how.memory_limit = 200000;
            tconv_tensors arrays = arrays_of(&set);
            arrays.filter.host = NULL;
            /* A filter that a run gave is not one that was set. */
            const tconv_tensors others = arrays_of(&given);
            expect_ok(tconv_layer_run(layer, &p, NULL, &others, &how, &error), &error);
            expect_error(tconv_layer_run(layer, &p, NULL, &arrays, &how, &error),
                         TCONV_ERROR_ARGUMENT, &error, "the layer keeps no filter that was set");
            weights.filter.host = set.filter;
            expect_ok(tconv_layer_set(layer, &p, NULL, &weights, NULL, &error), &error);
            for (int turn = 0; turn < 2; turn++) {
                memset(given.output, 0xff, (size_t)given.geometry.output_bytes);
                expect_ok(tconv_layer_run(layer, &p, NULL, &others, &how, &error), &error);
                compare_with_oracle(&devices[d], &p, NULL, false, &given);
                memset(set.output, 0xff, (size_t)set.geometry.output_bytes);
                expect_ok(tconv_layer_run(layer, &p, NULL, &arrays, &how, &error), &error);
                compare_with_oracle(&devices[d], &p, NULL, false, &set);
            }
            free_tensors(&set);
            free_tensors(&given);
            tconv_layer_release(layer);
            tconv_device_release(host);
        }
}

/* What one device refuses, no device gets. */
static void weights_are_set_on_all_devices_or_none(void **state)
{
    (void)state;
    for (int d = 1; d < device_count; d++) {
        tconv_device *both[] = {open_host(&devices[0]), open_host(&devices[d])};
        const tconv_problem p = plane(1, 5, 7, 20, 3, 2, 1);
        tconv_problem wide = p;
        tconv_layer *layer;
        tconv_plan *plan = NULL;
        tconv_layer_counts before = TCONV_LAYER_COUNTS_INIT, after = TCONV_LAYER_COUNTS_INIT;
        tconv_tensors weights = TCONV_TENSORS_INIT;
        tconv_error error;
        struct tensors t;
        wide.data_type = wide.filter_type = TCONV_F64;
        const bool first = tconv_plan_create(both[0], &wide, NULL, &plan, NULL) == TCONV_OK;
        tconv_plan_release(plan);
        plan = NULL;
        const bool second = tconv_plan_create(both[1], &wide, NULL, &plan, NULL) == TCONV_OK;
        tconv_plan_release(plan);
        expect_ok(tconv_layer_create(both, 2, TCONV_FILTER_VARIES, &layer, &error), &error);
        make_tensors(&p, SMALL_INTEGERS, 4, &t);
        weights.filter.host = t.filter;
        expect_ok(tconv_layer_set(layer, &p, NULL, &weights, NULL, &error), &error);
        expect_ok(tconv_layer_count(layer, &before, &error), &error);
        void *wider = calloc(t.filter_count, sizeof(double));
        assert_non_null(wider);
        weights.filter.host = wider;
        if (!first || !second)
            assert_int_not_equal(tconv_layer_set(layer, &wide, NULL, &weights, NULL, &error),
                                 TCONV_OK);
        free(wider);
        expect_ok(tconv_layer_count(layer, &after, &error), &error);
        assert_int_equal(after.weight_bytes, before.weight_bytes);
        tconv_tensors arrays = arrays_of(&t);
        arrays.filter.host = NULL;
        run(layer, &p, NULL, &arrays);
        compare_with_oracle(&devices[0], &p, NULL, false, &t);
        free_tensors(&t);
        tconv_layer_release(layer);
        for (int i = 0; i < 2; i++) tconv_device_release(both[i]);
    }
}

/* The same array stands for other weights if the problem reads it in another order. */
static void a_constant_filter_has_an_order(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int watch = 0; watch < 2; watch++) {
            tconv_device *host = open_host(&devices[d]);
            tconv_layer *layer =
                make_layer(host, watch != 0 ? TCONV_FILTER_WATCHED : TCONV_FILTER_CONSTANT);
            tconv_problem p = TCONV_PROBLEM_INIT;
            p.operation = TCONV_ONEAPI_CONV_BACKPROP;
            p.data_format = TCONV_NCX;
            p.data = (tconv_shape){4, {1, 3, 5, 5}};
            for (int i = 0; i < 4; i++) {
                p.filter_format = i % 2 == 0 ? TCONV_OIX : TCONV_XIO;
                p.filter = (tconv_shape){4, {3, 3, 3, 3}};
                struct tensors t;
                make_tensors(&p, REAL_NUMBERS, 4, &t);
                const tconv_tensors arrays = arrays_of(&t);
                run(layer, &p, NULL, &arrays);
                compare_with_oracle(&devices[d], &p, NULL, false, &t);
                free_tensors(&t);
            }
            expect_counts(layer, 4, 2, 2, 2);
            tconv_layer_release(layer);
            tconv_device_release(host);
        }
}

/* What a layer tells of its plan is of the one that its runs use, also where a new plan for the
 * same problem would be of another algorithm. */
static void a_layer_tells_the_plan_of_its_runs(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layer = make_layer(host, TCONV_FILTER_CONSTANT);
        const tconv_problem p = plane(1, 5, 7, 6, 3, 2, 1);
        struct tensors t;
        tconv_plan *plan, *again, *other;
        tconv_error error;
        make_tensors(&p, REAL_NUMBERS, 4, &t);
        const tconv_tensors arrays = arrays_of(&t);
        expect_ok(tconv_device_set_cache(host, NULL, 0, &error), &error);
        expect_ok(tconv_layer_plan(layer, &p, NULL, &plan, &error), &error);
        assert_string_not_equal(tconv_plan_algorithm(plan), "reference");
        expect_counts(layer, 0, 1, 1, 0);
        run(layer, &p, NULL, &arrays);
        expect_counts(layer, 1, 1, 1, 1); /* it uses that plan */
        expect_ok(tconv_device_set_machine(host,
                                           "reference_tap=0 reference_output=0 reference_wait=0 "
                                           "gpu_begin=0 gpu_wait=0",
                                           &error),
                  &error);
        expect_ok(tconv_plan_create(host, &p, NULL, &other, &error), &error);
        assert_string_equal(tconv_plan_algorithm(other), "reference");
        tconv_plan_release(other);
        expect_ok(tconv_layer_plan(layer, &p, NULL, &again, &error), &error);
        assert_ptr_equal(again, plan);
        tconv_plan_release(again);
        run(layer, &p, NULL, &arrays);
        compare_with_oracle(&devices[d], &p, NULL, false, &t);
        expect_counts(layer, 2, 1, 1, 1);
        /* Other options have plans of their own. */
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue.activation = TCONV_ACTIVATION_RELU;
        expect_ok(tconv_layer_plan(layer, &p, &options, &other, &error), &error);
        assert_string_equal(tconv_plan_algorithm(other), "reference");
        expect_counts(layer, 2, 2, 2, 1);
        tconv_layer_release(layer);
        assert_string_equal(tconv_plan_algorithm(other), "reference"); /* it outlives the layer */
        tconv_plan_release(other);
        tconv_plan_release(plan);
        free_tensors(&t);
        tconv_device_release(host);
    }
}

/* Nothing is read or packed for an output without elements. */
static void an_empty_batch_packs_nothing(void **state)
{
    (void)state;
    tconv_device *host = open_host(&devices[0]);
    tconv_layer *layer = make_layer(host, TCONV_FILTER_VARIES);
    const tconv_problem p = plane(0, 5, 7, 6, 3, 2, 1);
    const tconv_tensors none = TCONV_TENSORS_INIT;
    run(layer, &p, NULL, &none);
    expect_counts(layer, 1, 1, 1, 0);
    tconv_layer_release(layer);
    tconv_device_release(host);
}

struct inner {
    tconv_layer *layer;
    const tconv_problem *problem;
    const tconv_tensors *arrays;
    int calls;
};

static bool run_inside(void *context, const char *algorithm, int index, int count, double best_ms)
{
    struct inner *inner = context;
    (void)algorithm;
    (void)index;
    (void)count;
    (void)best_ms;
    if (inner->calls++ == 0) run(inner->layer, inner->problem, NULL, inner->arrays);
    return true;
}

/* A search's callback may run the layer that the search is for, with other extents. */
static void a_search_may_run_its_layer(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layer = make_layer(host, TCONV_FILTER_CONSTANT);
        const tconv_problem p = plane(1, 5, 7, 6, 3, 2, 1), other = plane(2, 5, 7, 4, 3, 2, 1);
        struct tensors t, others;
        make_tensors(&p, REAL_NUMBERS, 4, &t);
        make_tensors(&other, REAL_NUMBERS, 4, &others);
        memcpy(others.filter, t.filter, (size_t)t.geometry.filter_bytes);
        const tconv_tensors arrays = arrays_of(&t), inside = arrays_of(&others);
        struct inner inner = {layer, &other, &inside, 0};
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.search = TCONV_SEARCH_RENEW;
        options.search_ms = 1;
        options.search_progress = run_inside;
        options.search_context = &inner;
        run(layer, &p, &options, &arrays);
        assert_true(inner.calls > 0);
        compare_with_oracle(&devices[d], &p, NULL, false, &t);
        compare_with_oracle(&devices[d], &other, NULL, false, &others);
        free_tensors(&t);
        free_tensors(&others);
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

static void memory_has_a_hash(void **state)
{
    (void)state;
    unsigned char memory[300];
    uint64_t one[2], other[2];
    for (size_t i = 0; i < sizeof memory; i++) memory[i] = (unsigned char)i;
    tconv_hash(NULL, 0, one);
    assert_true(one[0] == 0x6001c324468d497f &&
                one[1] == 0x99aa06d3014798d8); /* XXH3's of nothing */
    for (size_t size = 1; size <= sizeof memory; size++) {
        tconv_hash(memory, size, one);
        memory[size / 2] ^= 1;
        tconv_hash(memory, size, other);
        assert_true(one[0] != other[0] || one[1] != other[1]);
    }
}

/* Extents, batch and pads change, the filter stays: one algorithm packs it once. */
static void a_constant_filter_is_packed_once(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *constant = make_layer(host, TCONV_FILTER_CONSTANT),
                    *varying = make_layer(host, TCONV_FILTER_VARIES);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.algorithm = "gather_group";
        struct tensors first;
        for (int i = 0; i < 6; i++) {
            const tconv_problem p = plane(1 + i % 2, 5, 7, 6 + i % 3, 3, 2, 1);
            struct tensors t;
            make_tensors(&p, REAL_NUMBERS, 4, &t);
            tconv_tensors arrays = arrays_of(&t);
            if (i == 0)
                first = t;
            else
                memcpy(t.filter, first.filter, (size_t)t.geometry.filter_bytes);
            run(constant, &p, &options, &arrays);
            compare_with_oracle(&devices[d], &p, options.algorithm, false, &t);
            memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
            run(varying, &p, &options, &arrays);
            compare_with_oracle(&devices[d], &p, options.algorithm, false, &t);
            expect_counts(constant, (uint64_t)i + 1, (uint64_t)i + 1, (uint64_t)i + 1, 1);
            expect_counts(varying, (uint64_t)i + 1, (uint64_t)i + 1, (uint64_t)i + 1,
                          (uint64_t)i + 1);
            if (i != 0) free_tensors(&t);
        }
        /* Other weights: the layer is told. */
        const tconv_problem p = plane(1, 5, 7, 6, 3, 2, 1);
        const tconv_tensors arrays = arrays_of(&first);
        first.filter[0] += 1;
        tconv_layer_refresh(constant);
        run(constant, &p, &options, &arrays);
        compare_with_oracle(&devices[d], &p, options.algorithm, false, &first);
        expect_counts(constant, 7, 6, 6, 2);
        /* Another algorithm reads another layout. */
        options.algorithm = "reference";
        run(constant, &p, &options, &arrays);
        compare_with_oracle(&devices[d], &p, options.algorithm, false, &first);
        expect_counts(constant, 8, 7, 7, 3);
        free_tensors(&first);
        tconv_layer_release(constant);
        tconv_layer_release(varying);
        tconv_device_release(host);
    }
}

struct refreshing {
    tconv_layer *layer;
    int calls;
};

static void refresh_once(void *context, const tconv_trace_event *event)
{
    struct refreshing *own = context;
    (void)event;
    if (own->calls++ == 0) tconv_layer_refresh(own->layer);
}

/* A filter that was read before the layer was refreshed is not kept, in slabs or not: the
 * application may have changed it since. */
static void a_refresh_counts_while_a_filter_is_packed(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++)
        for (int in_slabs = 0; in_slabs < 2; in_slabs++) {
            tconv_device *host = open_host(&devices[d]);
            tconv_layer *layer = make_layer(host, TCONV_FILTER_CONSTANT);
            const tconv_problem p = plane(2, 5, 7, 40, 3, 2, 1);
            tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
            options.algorithm = "gather_group";
            tconv_run how = TCONV_RUN_INIT;
            if (in_slabs) how.memory_limit = 200000;
            struct refreshing own = {layer, 0};
            struct tensors t;
            tconv_error error;
            make_tensors(&p, SMALL_INTEGERS, 4, &t);
            const tconv_tensors arrays = arrays_of(&t);
            expect_ok(tconv_device_set_trace(host, TCONV_TRACE_LAUNCH, refresh_once, &own, &error),
                      &error);
            uint64_t packed[3];
            for (int i = 0; i < 3; i++) {
                tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
                expect_ok(tconv_layer_run(layer, &p, &options, &arrays, &how, &error), &error);
                compare_with_oracle(&devices[d], &p, options.algorithm, false, &t);
                expect_ok(tconv_layer_count(layer, &counts, &error), &error);
                packed[i] = counts.filters_packed;
            }
            assert_true(own.calls > 0 && packed[0] > 0);
            assert_int_equal(packed[1], 2 * packed[0]);
            assert_int_equal(packed[2], packed[1]);
            free_tensors(&t);
            tconv_layer_release(layer);
            tconv_device_release(host);
        }
}

struct writing {
    float *element;
    int calls;
};

static void write_once(void *context, const tconv_trace_event *event)
{
    struct writing *own = context;
    (void)event;
    if (own->calls++ == 0) *own->element += 1;
}

/* If a watched filter changes while it is packed, nobody knows what was packed. The layer does not
 * keep the packed filter for the old weights. */
static void a_filter_that_changes_while_it_is_packed_is_not_kept(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layer = make_layer(host, TCONV_FILTER_WATCHED);
        const tconv_problem p = plane(1, 5, 7, 6, 3, 2, 1);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.algorithm = "gather_group";
        struct tensors t;
        tconv_error error;
        make_tensors(&p, SMALL_INTEGERS, 4, &t);
        struct writing own = {&t.filter[0], 0};
        const tconv_tensors arrays = arrays_of(&t);
        expect_ok(tconv_device_set_trace(host, TCONV_TRACE_LAUNCH, write_once, &own, &error),
                  &error);
        run(layer, &p, &options, &arrays); /* whose result may have either */
        assert_true(own.calls > 0);
        t.filter[0] -= 1;
        run(layer, &p, &options, &arrays);
        compare_with_oracle(&devices[d], &p, options.algorithm, false, &t);
        expect_counts(layer, 2, 1, 1, 2);
        free_tensors(&t);
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

static void the_plans_used_last_are_kept(void **state)
{
    (void)state;
    tconv_device *host = open_host(&devices[0]);
    tconv_layer *layer = make_layer(host, TCONV_FILTER_CONSTANT);
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.algorithm = "reference";
    const tconv_problem largest = plane(1, 1, 1, MOST_PLANS + 2, 1, 1, 0);
    struct tensors t;
    make_tensors(&largest, SMALL_INTEGERS, 4, &t);
    const tconv_tensors arrays = arrays_of(&t);
    for (int extent = 1; extent <= MOST_PLANS + 1; extent++) {
        const tconv_problem p = plane(1, 1, 1, extent, 1, 1, 0);
        run(layer, &p, &options, &arrays);
    }
    expect_counts(layer, MOST_PLANS + 1, MOST_PLANS + 1, MOST_PLANS, 1);
    const tconv_problem second = plane(1, 1, 1, 2, 1, 1, 0), oldest = plane(1, 1, 1, 1, 1, 1, 0);
    run(layer, &second, &options, &arrays);
    expect_counts(layer, MOST_PLANS + 2, MOST_PLANS + 1, MOST_PLANS, 1);
    run(layer, &oldest, &options, &arrays);
    expect_counts(layer, MOST_PLANS + 3, MOST_PLANS + 2, MOST_PLANS, 1);
    run(layer, &second, &options, &arrays); /* another one had to go: this one was used since */
    expect_counts(layer, MOST_PLANS + 4, MOST_PLANS + 2, MOST_PLANS, 1);
    /* Each of these differs from the problem before in one attribute or option. */
    tconv_problem p = plane(1, 1, 1, 4, 2, 2, 0);
    struct tensors small;
    make_tensors(&p, SMALL_INTEGERS, 5, &small);
    const tconv_tensors small_arrays = arrays_of(&small);
    uint64_t made = MOST_PLANS + 2, runs = MOST_PLANS + 4;
    run(layer, &p, &options, &small_arrays);
    expect_counts(layer, ++runs, ++made, MOST_PLANS, 2);
    p.pads_end.value[0] = 1;
    run(layer, &p, &options, &small_arrays);
    expect_counts(layer, ++runs, ++made, MOST_PLANS, 2);
    options.epilogue.alpha = 0.5;
    run(layer, &p, &options, &small_arrays);
    expect_counts(layer, ++runs, ++made, MOST_PLANS, 2);
    options.epilogue.activation = TCONV_ACTIVATION_RELU;
    run(layer, &p, &options, &small_arrays);
    expect_counts(layer, ++runs, ++made, MOST_PLANS, 2);
    /* Values after the end of a list make no difference. */
    p.strides.value[5] = p.data.dim[7] = 99;
    run(layer, &p, &options, &small_arrays);
    expect_counts(layer, ++runs, made, MOST_PLANS, 2);
    free_tensors(&small);
    free_tensors(&t);
    tconv_layer_release(layer);
    tconv_device_release(host);
}

/* A copy of `bytes` in `memory`, `shift` bytes behind a multiple of 64 that is not its begin. */
static void *at(unsigned char *memory, size_t shift, const void *from, size_t bytes)
{
    unsigned char *place = memory + 64 - (uintptr_t)memory % 64 + shift;
    memcpy(place, from, bytes);
    return place;
}

/* All tensors of an epilogue, so many bytes behind a multiple of 64: also in the middle of an
 * element, where no kernel may read it. */
static void arrays_lie_anywhere(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layers[] = {make_layer(host, TCONV_FILTER_CONSTANT),
                                 make_layer(host, TCONV_FILTER_VARIES)};
        const tconv_problem p = plane(1, 3, 4, 5, 3, 2, 1);
        struct tensors t;
        make_tensors(&p, REAL_NUMBERS, 6, &t);
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.scale = e.residual = true;
        e.activation = TCONV_ACTIVATION_PRELU;
        e.beta = 0.5;
        make_epilogue(&p, &e, 6, &t);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue = e;
        options.epilogue.bias = true;
        const size_t channels = t.channels * sizeof(float),
                     output = (size_t)t.geometry.output_bytes;
        const struct {
            const void *from;
            size_t bytes;
        } parts[] = {{t.data, (size_t)t.geometry.data_bytes},
                     {t.filter, (size_t)t.geometry.filter_bytes},
                     {t.bias, channels},
                     {t.scale, channels},
                     {t.slope, channels},
                     {t.residual, output},
                     {t.before, output}};
        enum { PARTS = sizeof parts / sizeof *parts, GUARD = 64 };
        for (size_t shift = 0; shift <= 16; shift += shift < 4 ? 1 : 4)
            for (int l = 0; l < 2; l++) {
                unsigned char *memory[PARTS];
                void *place[PARTS];
                for (size_t i = 0; i < PARTS; i++) {
                    memory[i] = malloc(parts[i].bytes + 2 * 64 + GUARD);
                    assert_non_null(memory[i]);
                    memset(memory[i], 0xa5, parts[i].bytes + 2 * 64 + GUARD);
                    place[i] = at(memory[i], shift + 4 * (i % 3), parts[i].from, parts[i].bytes);
                }
                const tconv_tensors arrays = {.struct_size = sizeof arrays,
                                              .data.host = place[0],
                                              .filter.host = place[1],
                                              .output.host = place[6],
                                              .bias.host = place[2],
                                              .scale.host = place[3],
                                              .slope.host = place[4],
                                              .residual.host = place[5]};
                run(layers[l], &p, &options, &arrays);
                memcpy(t.output, place[6], output);
                compare_with_oracle(&devices[d], &p, "auto", true, &t);
                for (size_t i = 0; i < PARTS; i++) {
                    const unsigned char *end = (unsigned char *)place[i] + parts[i].bytes;
                    if (i < PARTS - 1) assert_memory_equal(place[i], parts[i].from, parts[i].bytes);
                    assert_int_equal(((unsigned char *)place[i])[-1], 0xa5);
                    for (size_t g = 0; g < 8; g++) assert_int_equal(end[g], 0xa5);
                    free(memory[i]);
                }
            }
        free_tensors(&t);
        tconv_layer_release(layers[0]);
        tconv_layer_release(layers[1]);
        tconv_device_release(host);
    }
}

/* Each tensor is now a few bytes larger than in the run before, now smaller, in slabs or not. */
static void arrays_grow(void **state)
{
    (void)state;
    const int extents[] = {3, 4, 3, 5, 12, 13};
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue.residual = true;
    options.epilogue.beta = 0.5;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layer = make_layer(host, TCONV_FILTER_VARIES);
        for (int in_slabs = 0; in_slabs < 2; in_slabs++)
            for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
                const tconv_problem p = plane(1, 1, 1, extents[i], 1, 1, 0);
                struct tensors t;
                tconv_error error;
                tconv_run how = TCONV_RUN_INIT;
                make_tensors(&p, SMALL_INTEGERS, 4, &t);
                make_epilogue(&p, &options.epilogue, 4, &t);
                memcpy(t.output, t.before, (size_t)t.geometry.output_bytes);
                tconv_tensors arrays = arrays_of(&t);
                arrays.residual.host = t.residual;
                if (in_slabs) how.memory_limit = t.geometry.output_bytes * 3 - 1;
                expect_ok(tconv_layer_run(layer, &p, &options, &arrays, &how, &error), &error);
                compare_with_oracle(&devices[d], &p, "auto", false, &t);
                free_tensors(&t);
            }
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

/* Inputs that are the same array, and an output on top of an input. */
static void arrays_overlap(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layer = make_layer(host, TCONV_FILTER_VARIES);
        const tconv_problem p =
            plane(1, 2, 2, 3, 3, 1, 1); /* data, and filter, as large as the output */
        struct tensors t;
        make_tensors(&p, REAL_NUMBERS, 6, &t);
        tconv_epilogue e = TCONV_EPILOGUE_INIT;
        e.residual = true;
        make_epilogue(&p, &e, 6, &t);
        tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
        options.epilogue = e;
        options.epilogue.bias = true;
        memcpy(t.residual, t.data, (size_t)t.geometry.output_bytes);
        memcpy(t.bias, t.filter, t.channels * sizeof(float));
        tconv_tensors arrays = arrays_of(&t);
        arrays.residual.host = t.data;
        arrays.bias.host = t.filter;
        run(layer, &p, &options, &arrays);
        compare_with_oracle(&devices[d], &p, "auto", true, &t);
        memcpy(t.output, t.residual, (size_t)t.geometry.output_bytes);
        arrays.residual.host = t.output;
        run(layer, &p, &options, &arrays);
        compare_with_oracle(&devices[d], &p, "auto", true, &t);
        /* An output on top of each other input, from the same byte on. */
        tconv_tensors apart = arrays_of(&t);
        apart.bias.host = t.bias;
        apart.residual.host = t.residual;
        const struct {
            size_t member, bytes;
        } inputs[] = {{offsetof(tconv_tensors, data), (size_t)t.geometry.data_bytes},
                      {offsetof(tconv_tensors, filter), (size_t)t.geometry.filter_bytes},
                      {offsetof(tconv_tensors, bias), t.channels * sizeof(float)}};
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
            unsigned char *whole = malloc(4096 + (1 << 16)); /* Windows has no aligned_alloc */
            void *block = whole + (4096 - (uintptr_t)whole % 4096);
            assert_true(inputs[i].bytes <= 1 << 16 && t.geometry.output_bytes <= 1 << 16);
            arrays = apart;
            tconv_tensor *member = (tconv_tensor *)(void *)((char *)&arrays + inputs[i].member);
            memcpy(block, member->host, inputs[i].bytes);
            member->host = arrays.output.host = block;
            run(layer, &p, &options, &arrays);
            memcpy(t.output, block, (size_t)t.geometry.output_bytes);
            compare_with_oracle(&devices[d], &p, "auto", true, &t);
            free(whole);
        }
        free_tensors(&t);
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

/* An output that begins some bytes before or behind an input, so that they share some elements or
 * none: only what shares one is copied. */
static void arrays_overlap_in_part(void **state)
{
    (void)state;
    enum { ROOM = 2048, STEP = 36 }; /* elements before the data, and from place to place */
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *layer = make_layer(host, TCONV_FILTER_VARIES);
        const tconv_problem p = plane(1, 2, 2, 6, 3, 1, 1); /* data as large as the output */
        struct tensors t;
        make_tensors(&p, SMALL_INTEGERS, 6, &t);
        const size_t bytes = (size_t)t.geometry.data_bytes;
        float *whole = malloc(2 * ROOM * sizeof *whole), *data = whole + ROOM;
        assert_non_null(whole);
        assert_true(bytes == (size_t)t.geometry.output_bytes && bytes / sizeof *data % STEP == 0);
        const int places = (int)(bytes / sizeof *data / STEP);
        for (int place = -places; place <= places; place++) {
            float *output = data + place * STEP;
            memset(whole, 0xff, 2 * ROOM * sizeof *whole);
            memcpy(data, t.data, bytes);
            tconv_tensors arrays = arrays_of(&t);
            arrays.data.host = data;
            arrays.output.host = output;
            run(layer, &p, NULL, &arrays);
            memcpy(t.output, output, bytes);
            compare_with_oracle(&devices[d], &p, "auto", false, &t);
            if (place == -places || place == places) assert_memory_equal(data, t.data, bytes);
        }
        free(whole);
        free_tensors(&t);
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

static void wrong_calls(void **state)
{
    (void)state;
    tconv_device *host = open_host(&devices[0]);
    tconv_layer *layer = make_layer(host, TCONV_FILTER_CONSTANT), *none = NULL;
    tconv_problem p = plane(1, 2, 3, 4, 2, 2, 0);
    struct tensors t;
    make_tensors(&p, SMALL_INTEGERS, 4, &t);
    tconv_tensors arrays = arrays_of(&t);
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    tconv_error error;
    tconv_device *twice[] = {host, host}, *no_device = NULL;
    expect_error(tconv_layer_create(NULL, 1, TCONV_FILTER_CONSTANT, &none, &error),
                 TCONV_ERROR_ARGUMENT, &error, "devices is NULL");
    expect_error(tconv_layer_create(&no_device, 1, TCONV_FILTER_CONSTANT, &none, &error),
                 TCONV_ERROR_ARGUMENT, &error, "devices[0] is NULL");
    expect_error(tconv_layer_create(twice, 2, TCONV_FILTER_CONSTANT, &none, &error),
                 TCONV_ERROR_ARGUMENT, &error, "devices[1] is given twice");
    expect_error(tconv_layer_create(&host, 0, TCONV_FILTER_CONSTANT, &none, &error),
                 TCONV_ERROR_ARGUMENT, &error, "device_count is 0: it must be at least 1");
    expect_error(tconv_layer_create(&host, 1, (tconv_filter_use)3, &none, &error),
                 TCONV_ERROR_ARGUMENT, &error, "filter_use is 3");
    expect_error(tconv_layer_create(&host, 1, TCONV_FILTER_CONSTANT, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "out is NULL");
    expect_error(tconv_layer_run(NULL, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "layer is NULL");
    expect_error(tconv_layer_run(layer, NULL, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "problem is NULL");
    tconv_plan *plan = NULL;
    expect_error(tconv_layer_plan(NULL, &p, NULL, &plan, &error), TCONV_ERROR_ARGUMENT, &error,
                 "layer is NULL");
    expect_error(tconv_layer_plan(layer, NULL, NULL, &plan, &error), TCONV_ERROR_ARGUMENT, &error,
                 "problem is NULL");
    expect_error(tconv_layer_plan(layer, &p, NULL, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                 "out is NULL");
    expect_error(tconv_layer_count(NULL, &counts, &error), TCONV_ERROR_ARGUMENT, &error,
                 "layer is NULL");
    expect_error(tconv_layer_count(layer, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                 "counts is NULL");
    counts.struct_size = 8;
    expect_error(tconv_layer_count(layer, &counts, &error), TCONV_ERROR_ARGUMENT, &error,
                 "struct_size");
    p.strides.count = 99;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ATTRIBUTE,
                 &error, "strides");
    expect_error(tconv_layer_plan(layer, &p, NULL, &plan, &error), TCONV_ERROR_ATTRIBUTE, &error,
                 "strides");
    assert_null(plan);
    p = plane(1, 2, 3, 4, 2, 2, 0);
    p.data.dim[1] = 3;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_SHAPE, &error,
                 "channels");
    p.data.dim[1] = 2;
    arrays.filter.host = NULL;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "tensors.filter is absent");
    arrays = arrays_of(&t);
    arrays.data.host = NULL;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "tensors.data is absent");
    arrays = arrays_of(&t);
    arrays.data.pointer = t.output;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "tensors.data has both an array of the host");
    arrays = arrays_of(&t);
    arrays.bias.host = t.filter;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), TCONV_ERROR_ARGUMENT,
                 &error, "tensors.bias is given, but options.epilogue.bias is false");
    arrays = arrays_of(&t);
    tconv_run how = TCONV_RUN_INIT;
    cl_event done;
    how.done = &done;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, &how, &error), TCONV_ERROR_ARGUMENT,
                 &error, "run.done is given, but run.queue is NULL");
    how.struct_size = 8;
    expect_error(tconv_layer_run(layer, &p, NULL, &arrays, &how, &error), TCONV_ERROR_ARGUMENT,
                 &error, "struct_size of run");
    expect_error(tconv_layer_run(layer, &p, NULL, NULL, NULL, &error), TCONV_ERROR_ARGUMENT, &error,
                 "tensors is NULL");
    expect_counts(layer, 0, 1, 1, 0);
    const tconv_problem empty = plane(0, 5, 7, 11, 3, 2, 1);
    run(layer, &empty, NULL, &(tconv_tensors)TCONV_TENSORS_INIT);
    expect_counts(layer, 1, 2, 2, 0);
    tconv_layer_release(NULL);
    tconv_layer_refresh(NULL);
    tconv_layer_release(layer);
    free_tensors(&t);
    tconv_device_release(host);
}

/* ---- threads ---- */

enum { THREADS = 4, SHAPES = 3, TURNS = 40 };

struct thread {
    pthread_t id;
    int number;
    tconv_layer *layer;
    const tconv_problem *problems;
    const struct tensors *tensors; /* their outputs are what each run must give */
    char wrong[1300];
};

static void *run_shapes(void *argument)
{
    struct thread *t = argument;
    for (int i = 0; i < TURNS && t->wrong[0] == '\0'; i++) {
        const int shape = (i + t->number) % SHAPES;
        const struct tensors *known = &t->tensors[shape];
        const size_t bytes = (size_t)known->geometry.output_bytes;
        tconv_tensors arrays = arrays_of(known);
        tconv_error error;
        void *output = malloc(bytes);
        if (output == NULL) {
            snprintf(t->wrong, sizeof t->wrong, "no memory");
            break;
        }
        arrays.output.host = output;
        if (t->number == 0 && i % 8 == 0) tconv_layer_refresh(t->layer);
        if (tconv_layer_run(t->layer, &t->problems[shape], NULL, &arrays, NULL, &error) != TCONV_OK)
            snprintf(t->wrong, sizeof t->wrong, "%s", error.message);
        else if (memcmp(output, known->output, bytes) != 0)
            snprintf(t->wrong, sizeof t->wrong, "shape %d has other results", shape);
        free(output);
    }
    return NULL;
}

static void threads_share_a_layer(void **state)
{
    (void)state;
    if (threads_left_out()) return;
    for (int d = 0; d < device_count; d++) {
        tconv_device *host = open_host(&devices[d]);
        tconv_layer *alone = make_layer(host, TCONV_FILTER_CONSTANT),
                    *layer = make_layer(host, TCONV_FILTER_CONSTANT);
        tconv_problem problems[SHAPES];
        struct tensors tensors[SHAPES];
        for (int i = 0; i < SHAPES; i++) {
            problems[i] = plane(1 + i, 5, 7, 6 + i, 3, 2, 1);
            make_tensors(&problems[i], REAL_NUMBERS, 4, &tensors[i]);
            if (i > 0)
                memcpy(tensors[i].filter, tensors[0].filter,
                       (size_t)tensors[0].geometry.filter_bytes);
            const tconv_tensors arrays = arrays_of(&tensors[i]);
            run(alone, &problems[i], NULL, &arrays);
            compare_with_oracle(&devices[d], &problems[i], "auto", false, &tensors[i]);
        }
        struct thread threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            threads[i] = (struct thread){
                .number = i, .layer = layer, .problems = problems, .tensors = tensors};
            assert_int_equal(pthread_create(&threads[i].id, NULL, run_shapes, &threads[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i].id, NULL), 0);
            if (threads[i].wrong[0] != '\0') failed("thread %d: %s", i, threads[i].wrong);
        }
        tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
        tconv_error error;
        expect_ok(tconv_layer_count(layer, &counts, &error), &error);
        assert_int_equal(counts.runs, THREADS * TURNS);
        assert_int_equal(counts.plans_made, SHAPES);
        for (int i = 0; i < SHAPES; i++) free_tensors(&tensors[i]);
        tconv_layer_release(alone);
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

/* A pool of the application: how many threads it starts, and how often it was asked to. */
struct pool {
    int threads, calls;
    void (*task)(void *argument);
    void *argument;
};

static void *call_task(void *user)
{
    struct pool *pool = user;
    pool->task(pool->argument);
    return NULL;
}

static void on_threads(void *user, void (*task)(void *argument), void *argument)
{
    struct pool *pool = user;
    pthread_t ids[THREADS];
    pool->calls++;
    pool->task = task;
    pool->argument = argument;
    for (int i = 0; i < pool->threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, call_task, pool), 0);
    for (int i = 0; i < pool->threads; i++) assert_int_equal(pthread_join(ids[i], NULL), 0);
}

static struct pool openmp; /* the threads of `parallel` */

/* As GOMP_parallel, which runs one of the tasks on the calling thread. */
static void parallel(void (*task)(void *argument), void *argument, unsigned threads, unsigned flags)
{
    assert_int_equal(threads, 0);
    assert_int_equal(flags, 0);
    on_threads(&openmp, task, argument);
    task(argument);
}

static void on_openmp(void *pool, void (*task)(void *argument), void *argument)
{
    void (*function)(void (*)(void *), void *, unsigned, unsigned) = parallel;
    void *address;
    memcpy(&address, &function, sizeof address);
    openmp = *(struct pool *)pool;
    tconv_on_openmp(address, task, argument);
    *(struct pool *)pool = openmp;
}

static tconv_status run_on_threads(tconv_layer *layer, tconv_on_threads function, void *pool,
                                   const tconv_problem *problem, const tconv_tensors *tensors,
                                   tconv_error *error)
{
    tconv_run how = TCONV_RUN_INIT;
    how.on_threads = function;
    how.pool = pool;
    how.threads = 2;
    return tconv_layer_run(layer, problem, NULL, tensors, &how, error);
}

/* The layer is computed, whatever threads the pool has, and errors arrive. The threads of the
 * application are left alone where the driver has its own. */
static void threads_of_the_application_compute(void **state)
{
    (void)state;
    const tconv_on_threads pools[] = {NULL, on_threads, on_openmp};
    for (int d = 0; d < device_count && !threads_left_out(); d++) {
        tconv_device *host = open_host(&devices[d]);
        const bool uses_pool = tconv_device_threads(host) > 1;
        tconv_layer *layer = make_layer(host, TCONV_FILTER_CONSTANT);
        const tconv_problem p = plane(1, 8, 8, 22, 3, 2, 1), small = plane(1, 5, 7, 9, 3, 2, 1);
        struct tensors t;
        tconv_error error;
        make_tensors(&p, REAL_NUMBERS, 4, &t);
        tconv_tensors arrays = arrays_of(&t), wrong = arrays;
        uint64_t runs = 0;
        for (int i = 0; i < 3; i++)
            for (int threads = 0; threads <= THREADS; threads++) {
                struct pool pool = {.threads = threads};
                memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
                expect_ok(run_on_threads(layer, pools[i], &pool, &p, &arrays, &error), &error);
                compare_with_oracle(&devices[d], &p, NULL, false, &t);
                assert_int_equal(pool.calls, uses_pool && pools[i] != NULL ? 1 : 0);
                expect_counts(layer, ++runs, 1, 1, 1);
            }
        memset(t.output, 0xff, (size_t)t.geometry.output_bytes);
        expect_ok(run_on_threads(layer, tconv_on_openmp, NULL, &p, &arrays, &error), &error);
        compare_with_oracle(&devices[d], &p, NULL, false, &t);
        expect_counts(layer, ++runs, 1, 1, 1);
        struct pool pool = {.threads = 2};
        struct tensors few;
        make_tensors(&small, REAL_NUMBERS, 4, &few);
        const tconv_tensors few_arrays = arrays_of(&few);
        expect_ok(run_on_threads(layer, on_threads, &pool, &small, &few_arrays, &error), &error);
        compare_with_oracle(&devices[d], &small, NULL, false, &few);
        assert_true(uses_pool || pool.calls == 0);
        expect_counts(layer, ++runs, 2, 2, 2);
        free_tensors(&few);
        wrong.output.host = NULL;
        expect_error(run_on_threads(layer, on_threads, &pool, &p, &wrong, &error),
                     TCONV_ERROR_ARGUMENT, &error, "tensors.output is absent");
        expect_error(run_on_threads(NULL, on_threads, &pool, &p, &arrays, &error),
                     TCONV_ERROR_ARGUMENT, &error, "layer is NULL");
        expect_counts(layer, runs, 2, 2, 2);
        free_tensors(&t);
        tconv_layer_release(layer);
        tconv_device_release(host);
    }
}

int main(void)
{
    struct CMUnitTest tests[] = {
        smoke_test(a_constant_filter_is_packed_once),
        cmocka_unit_test(weights_have_versions),
        cmocka_unit_test(runs_leave_set_weights),
        cmocka_unit_test(weights_are_set_on_all_devices_or_none),
        cmocka_unit_test(a_constant_filter_has_an_order),
        cmocka_unit_test(a_layer_tells_the_plan_of_its_runs),
        cmocka_unit_test(an_empty_batch_packs_nothing),
        cmocka_unit_test(a_search_may_run_its_layer),
        cmocka_unit_test(memory_has_a_hash),
        cmocka_unit_test(a_refresh_counts_while_a_filter_is_packed),
        cmocka_unit_test(a_filter_that_changes_while_it_is_packed_is_not_kept),
        cmocka_unit_test(the_plans_used_last_are_kept),
        cmocka_unit_test(arrays_lie_anywhere),
        cmocka_unit_test(arrays_grow),
        cmocka_unit_test(arrays_overlap),
        cmocka_unit_test(arrays_overlap_in_part),
        cmocka_unit_test(wrong_calls),
        smoke_test(threads_share_a_layer),
        cmocka_unit_test(threads_of_the_application_compute),
    };
    return run_smoke_or_all("layer", tests, open_all_devices, close_all_devices);
}
