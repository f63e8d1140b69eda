/* SPDX-License-Identifier: Apache-2.0 */
/* What a small layer costs the host: ten layers B18 of bench/suite.csv in a chain, enqueued one by
 * one and as one recorded command buffer. Prints, for each layer, the microseconds that the host
 * spends in calls, and those until the chain has ended, medians of interleaved rounds. Not a test;
 * docs/api.md has the figures.
 *
 * usage: time_record [ROUNDS] */
#include "recorder.h"
#include "setup.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 10, MOST_ROUNDS = 100000 };

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void expect(bool right, const char *what)
{
    if (right) return;
    fprintf(stderr, "time_record: %s failed\n", what);
    exit(1);
}

/* A chain: each layer reads from the begin of what the one before wrote. */
struct chain {
    const struct device *device;
    struct setup setup;
    tconv_tensors args[LAYERS];
};

static void make_chain(const struct device *d, struct chain *c)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    set_shape(&p.data, 4, (int64_t[]){1, 21, 9, 11});
    set_shape(&p.filter, 4, (int64_t[]){21, 21, 4, 4});
    set_list(&p.strides, 2, (int64_t[]){2, 2});
    c->device = d;
    set_up(&c->setup, d, &p, NULL, false, REAL_NUMBERS);
    pack(&c->setup);
    for (int i = 0; i < LAYERS; i++) {
        c->args[i] = c->setup.args;
        if (i > 0) c->args[i].data = c->args[i - 1].output;
        c->args[i].output.memory = buffer_of(d, NULL, c->setup.output_bytes);
    }
}

static cl_event enqueue_chain(const struct chain *c)
{
    cl_event done = NULL;
    tconv_error error;
    for (int i = 0; i < LAYERS; i++)
        expect_ok(tconv_plan_enqueue(c->setup.plan, c->device->queue, &c->args[i], 0, NULL,
                                     i == LAYERS - 1 ? &done : NULL, &error),
                  &error);
    return done;
}

static recording record_chain(const struct chain *c, const struct recorder *r)
{
    cl_int code;
    tconv_error error;
    recording made = r->create(1, &c->device->queue, NULL, &code);
    expect(code == CL_SUCCESS, "clCreateCommandBufferKHR");
    uint32_t point = 0;
    for (int i = 0; i < LAYERS; i++) {
        const uint32_t before = point;
        expect_ok(tconv_plan_record(c->setup.plan, made, c->device->queue, &c->args[i],
                                    i == 0 ? 0 : 1, i == 0 ? NULL : &before, &point, &error),
                  &error);
    }
    expect(r->finalize(made) == CL_SUCCESS, "clFinalizeCommandBufferKHR");
    return made;
}

int main(int count, char **arguments)
{
    const int rounds = count > 1 ? atoi(arguments[1]) : 500;
    expect(rounds > 0 && rounds <= MOST_ROUNDS, "reading ROUNDS");
    expect(open_all_devices(NULL) == 0, "opening devices");
    for (int i = 0; i < device_count; i++) {
        struct chain c;
        struct recorder r;
        make_chain(&devices[i], &c);
        const bool records = recorder_find(id_of(&devices[i]), &r);
        recording made = records ? record_chain(&c, &r) : NULL;
        static double calls[2][MOST_ROUNDS], ends[2][MOST_ROUNDS];
        for (int round = -10; round < rounds; round++)
            for (int way = 0; way < (records ? 2 : 1); way++) {
                cl_event done = NULL;
                const double begin = tconv_os_seconds();
                if (way == 0)
                    done = enqueue_chain(&c);
                else
                    expect(r.enqueue(0, NULL, made, 0, NULL, &done) == CL_SUCCESS,
                           "clEnqueueCommandBufferKHR");
                const double called = tconv_os_seconds();
                expect(clWaitForEvents(1, &done) == CL_SUCCESS, "clWaitForEvents");
                const double end = tconv_os_seconds();
                clReleaseEvent(done);
                if (round < 0) continue;
                calls[way][round] = 1e6 * (called - begin) / LAYERS;
                ends[way][round] = 1e6 * (end - begin) / LAYERS;
            }
        printf("%s, %s, us for each of %d layers, medians of %d rounds\n", devices[i].info->name,
               tconv_plan_algorithm(c.setup.plan), LAYERS, rounds);
        for (int way = 0; way < (records ? 2 : 1); way++)
            printf("  %s: %.2f in calls, %.2f until the end\n", way == 0 ? "enqueued" : "recorded",
                   median(calls[way], rounds), median(ends[way], rounds));
        if (records) r.release(made);
        for (int l = 0; l < LAYERS; l++) clReleaseMemObject(c.args[l].output.memory);
        tear_down(&c.setup);
    }
    return close_all_devices(NULL);
}
