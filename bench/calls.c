/* SPDX-License-Identifier: Apache-2.0 */
/* Times calls of tconv_layer_run that compute a small layer from arrays of the host, from the call
 * until the output is complete: 8 channels to 8, 6 x 6, kernel 3 x 3, f32, stride 1. Prints the
 * median for each use of the filter, in microseconds.
 *
 *     cc -O2 -Iinclude bench/calls.c -o build/calls -Lbuild -ltconv_cl -lOpenCL
 *     LD_LIBRARY_PATH=build build/calls
 *
 * calls.py has the same through NumPy. */
#include <tconv_cl/tconv_cl.h>

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHANNELS = 8, EXTENT = 6, KERNEL = 3, OUTPUT = EXTENT + KERNEL - 1, CALLS = 20000 };

static double microseconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static int in_order(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

int main(void)
{
    static const char *const names[] = {"varies", "constant", "watched"};
    static alignas(64) float data[CHANNELS * EXTENT * EXTENT], output[CHANNELS * OUTPUT * OUTPUT],
        filter[CHANNELS * CHANNELS * KERNEL * KERNEL];
    static double times[CALLS];
    tconv_problem problem = TCONV_PROBLEM_INIT;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_device *device = NULL;
    tconv_error error;
    problem.operation = TCONV_CONV_BACKPROP;
    problem.data_type = problem.filter_type = TCONV_F32;
    problem.data = (tconv_shape){4, {1, CHANNELS, EXTENT, EXTENT}};
    problem.filter = (tconv_shape){4, {CHANNELS, CHANNELS, KERNEL, KERNEL}};
    tensors.data.host = data;
    tensors.filter.host = filter;
    tensors.output.host = output;
    tconv_threads_enable();
    tconv_status status = tconv_device_open(TCONV_DEVICE_DEFAULT, &device, &error);
    for (int use = TCONV_FILTER_VARIES; use <= TCONV_FILTER_WATCHED && status == TCONV_OK; use++) {
        tconv_layer *layer = NULL;
        status = tconv_layer_create(&device, 1, (tconv_filter_use)use, &layer, &error);
        for (int i = -CALLS / 100; i < CALLS && status == TCONV_OK; i++) {
            const double begin = microseconds();
            status = tconv_layer_run(layer, &problem, NULL, &tensors, NULL, &error);
            if (i >= 0) times[i] = microseconds() - begin;
        }
        tconv_layer_release(layer);
        if (status != TCONV_OK) break;
        qsort(times, CALLS, sizeof *times, in_order);
        printf("the filter %s: %.1f us\n", names[use], times[CALLS / 2]);
    }
    tconv_device_release(device);
    if (status != TCONV_OK) fprintf(stderr, "%s\n", error.message);
    return status == TCONV_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
