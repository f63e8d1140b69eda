/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with its filter and its buffers on one device, ready to be enqueued: what tests of the API
 * start from. */
#ifndef TCONV_DEVICE_TESTS_SETUP_H
#define TCONV_DEVICE_TESTS_SETUP_H

#include "support.h"

/* A square image: batch, input and output channels, extent, kernel, stride and pad of both axes. */
tconv_problem plane(int64_t n, int64_t ci, int64_t co, int64_t x, int64_t k, int64_t s,
                    int64_t pad);

/* The same, or something like it that the algorithm takes. */
tconv_problem plane_for(const char *algorithm, int64_t n, int64_t ci, int64_t co, int64_t x,
                        int64_t k, int64_t s, int64_t pad);

struct setup {
    const struct device *device;
    const char *algorithm; /* as it was asked for */
    tconv_problem problem;
    struct tensors tensors;
    size_t output_bytes, workspace_bytes;
    tconv_plan *plan;
    tconv_packed_filter *filter; /* not packed yet */
    cl_mem data, weights, bias, output, workspace;
    tconv_tensors args;
};

/* What an algorithm is asked for by name; fast arithmetic where it has no other. */
tconv_plan_options options_for(const char *algorithm, bool bias);

void set_up(struct setup *s, const struct device *device, const tconv_problem *problem,
            const char *algorithm, bool bias, enum contents contents);
void tear_down(struct setup *s);

/* Packs the filter, and runs the plan, on the device's queue. */
void pack(struct setup *s);
void enqueue(struct setup *s);

/* Waits for the output. */
void download(struct setup *s, cl_uint waits, const cl_event *wait);

/* A buffer of one byte at least; the test fails where there is none. */
cl_mem buffer_of(const struct device *device, const void *contents, size_t bytes);

/* An event that the test ends, to hold back commands; the test fails where there is none. */
cl_event new_gate(const struct device *device);

cl_device_id id_of(const struct device *device);

/* Another device object in the context of a device under test, with a folder for what it keeps;
 * NULL: none. The test fails if there is none. */
tconv_device *device_with_cache(const struct device *device, const char *folder);

/* The test fails where the status is not TCONV_OK, or not the wanted one with these words in its
 * sentence. */
void expect_ok(tconv_status status, const tconv_error *error);
void expect_error(tconv_status got, tconv_status wanted, const tconv_error *error,
                  const char *words);

#endif
