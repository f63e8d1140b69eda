/* SPDX-License-Identifier: Apache-2.0 */
/* An execution of several commands, one of which the device refuses: what plan.h promises of the
 * output, and that nothing leaks. And arrays that take much of a small device's memory. */
#include "algorithm/cost/machine.h"
#include "device/device.h"
#include "faults.h"
#include "plan/plan_internal.h"
#include "setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PIECES = 5 };
static const unsigned char MARK = 0xff; /* in each byte: a NaN */

static void mark_output(struct setup *s)
{
    memset(s->tensors.output, MARK, s->output_bytes);
    assert_int_equal(clEnqueueWriteBuffer(s->device->queue, s->output, CL_TRUE, 0, s->output_bytes,
                                          s->tensors.output, 0, NULL, NULL),
                     CL_SUCCESS);
}

/* How many elements of the output are results; all others must have the mark. */
static size_t count_results(struct setup *s, const float *results)
{
    float mark;
    size_t count = 0;
    memset(&mark, MARK, sizeof mark);
    download(s, 0, NULL);
    for (size_t i = 0; i < s->tensors.output_count; i++) {
        const float *got = &s->tensors.output[i];
        if (memcmp(got, &results[i], sizeof *got) == 0)
            count++;
        else
            assert_memory_equal(got, &mark, sizeof mark);
    }
    return count;
}

static int count_commands(const struct tconv_kernel_plan *k)
{
    int commands = 0;
    for (int i = 0; i < k->run_count; i++) commands += k->run[i].pieces;
    return commands;
}

/* Makes a plan whose last launch has several pieces, by what its device says of launches. */
static void set_up_divided(struct setup *s, const struct device *d, const char *algorithm)
{
    const tconv_problem p = plane(1, 6, 10, 20, 4, 2, 1);
    set_up(s, d, &p, algorithm, false, SMALL_INTEGERS);
    d->device->launch_ms = tconv_machine_ms(&s->plan->request.machine, s->plan->candidate.cost) /
                           PIECES;
    tear_down(s);
    set_up(s, d, &p, algorithm, false, SMALL_INTEGERS);
    d->device->launch_ms = -1;
    const struct tconv_kernel_plan *k = &s->plan->kernel_plan;
    assert_true(k->run[k->run_count - 1].pieces > 1);
    pack(s);
}

/* The pieces that were enqueued one after the other since the last first one. */
struct pieces {
    int number, of;
    size_t end; /* one behind the last global id */
    bool wrong;
};

static void follow_pieces(void *context, const tconv_trace_event *event)
{
    struct pieces *p = context;
    if (event->piece == 0) *p = (struct pieces){.wrong = p->wrong};
    p->wrong = p->wrong || event->kind != TCONV_TRACE_LAUNCH || event->piece != p->number ||
               event->offset[0] != p->end;
    p->number++;
    p->of = event->pieces;
    p->end += event->global[0];
}

static void refuse_each_command(struct setup *s, const float *results)
{
    const int last_pieces = s->plan->kernel_plan.run[s->plan->kernel_plan.run_count - 1].pieces;
    const int commands = count_commands(&s->plan->kernel_plan);
    for (int n = 1; n <= commands; n++) {
        long before[KINDS], after[KINDS];
        cl_event done = NULL;
        tconv_error error;
        mark_output(s);
        fault_alive(before);
        fault_arm(fault_call_named("clEnqueueNDRangeKernel"), n, CL_OUT_OF_RESOURCES);
        const tconv_status status =
            tconv_plan_enqueue(s->plan, s->device->queue, &s->args, 0, NULL, &done, &error);
        assert_true(fault_disarm());
        fault_alive(after);
        expect_error(status, TCONV_ERROR_DEVICE_MEMORY, &error, "clEnqueueNDRangeKernel");
        assert_int_equal(error.opencl_code, CL_OUT_OF_RESOURCES);
        assert_null(done);
        for (int kind = 0; kind < KINDS; kind++) assert_int_equal(after[kind], before[kind]);
        const size_t count = count_results(s, results);
        const bool some = n > commands - last_pieces + 1; /* pieces of the last launch ran */
        assert_true(some ? count > 0 && count < s->tensors.output_count : count == 0);
    }
    mark_output(s);
    enqueue(s); /* as if nothing had failed */
    assert_int_equal(count_results(s, results), s->tensors.output_count);
}

static void refused_pieces_leave_results_or_what_was_there(void **state)
{
    (void)state;
    static const char *const names[] = {"reference", "tiled_group"};
    for (int i = 0; i < device_count; i++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            struct setup s;
            if (never_runs(&devices[i], names[n])) continue;
            set_up_divided(&s, &devices[i], names[n]);
            mark_output(&s);
            enqueue(&s);
            download(&s, 0, NULL);
            compare_with_oracle(&devices[i], &s.problem, names[n], false, &s.tensors);
            float *results = malloc(s.output_bytes);
            assert_non_null(results);
            memcpy(results, s.tensors.output, s.output_bytes);
            refuse_each_command(&s, results);

            struct pieces pieces = {.number = 0};
            const struct tconv_launch *last =
                &s.plan->kernel_plan.run[s.plan->kernel_plan.run_count - 1];
            tconv_device_set_trace(devices[i].device, TCONV_TRACE_ALL, follow_pieces, &pieces,
                                   NULL);
            long before[KINDS], after[KINDS];
            fault_alive(before);
            mark_output(&s);
            enqueue(&s);
            fault_alive(after);
            assert_memory_equal(after, before, sizeof after);
            assert_int_equal(count_results(&s, results), s.tensors.output_count);
            assert_false(pieces.wrong);
            assert_true(pieces.of == last->pieces && pieces.number == last->pieces);
            assert_int_equal(pieces.end, last->global[0]);
            refuse_each_command(&s, results);
            tconv_device_set_trace(devices[i].device, TCONV_TRACE_ALL, NULL, NULL, NULL);
            free(results);
            tear_down(&s);
        }
}

/* Arrays that take more than a quarter of the device's memory are computed in slabs, but at once if
 * the output lies on an input: then it may, unless the memory is limited. */
static void large_arrays_may_overlap(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        tconv_device *device = devices[d].device;
        const uint64_t memory = device->info.global_memory;
        const tconv_problem p = plane(2, 6, 10, 20, 4, 2, 1);
        struct tensors t;
        tconv_layer *layer;
        tconv_tensors arrays = TCONV_TENSORS_INIT;
        tconv_run limited = TCONV_RUN_INIT;
        tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
        tconv_error error;
        make_tensors(&p, SMALL_INTEGERS, 5, &t);
        const size_t data_bytes = (size_t)t.geometry.data_bytes,
                     output_bytes = (size_t)t.geometry.output_bytes;
        float *block = malloc(data_bytes + output_bytes);
        assert_non_null(block);
        expect_ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, &layer, &error), &error);
        device->info.global_memory = 4 * (data_bytes + output_bytes) - 4;
        arrays.data.host = t.data;
        arrays.filter.host = t.filter;
        arrays.output.host = t.output;
        expect_ok(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), &error);
        compare_with_oracle(&devices[d], &p, NULL, false, &t);
        expect_ok(tconv_layer_count(layer, &counts, &error), &error);
        assert_int_equal(counts.in_slabs, 1);
        for (int i = 0; i < 2; i++) { /* the second run knows the plan */
            memcpy(block, t.data, data_bytes);
            arrays.data.host = block;
            arrays.output.host = block + 1;
            expect_ok(tconv_layer_run(layer, &p, NULL, &arrays, NULL, &error), &error);
            memcpy(t.output, block + 1, output_bytes);
            compare_with_oracle(&devices[d], &p, NULL, false, &t);
        }
        expect_ok(tconv_layer_count(layer, &counts, &error), &error);
        assert_int_equal(counts.in_slabs, 1);
        limited.memory_limit = data_bytes + output_bytes - 1;
        assert_int_equal(tconv_layer_run(layer, &p, NULL, &arrays, &limited, &error),
                         TCONV_ERROR_ARGUMENT);
        device->info.global_memory = memory;
        tconv_layer_release(layer);
        free(block);
        free_tensors(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_pieces_leave_results_or_what_was_there),
        cmocka_unit_test(large_arrays_may_overlap)};
    return cmocka_run_group_tests_name("divided", tests, open_all_devices, close_all_devices);
}
