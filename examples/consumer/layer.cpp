/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ interface: a layer on host arrays, which runs several times, and an error. */
#include <tconv_cl/tconv_cl.hpp>

#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

static tconv_problem upsampling()
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    const tconv_shape data = {4, {1, 3, 8, 8}}, filter = {4, {3, 5, 4, 4}};
    const tconv_list strides = {2, {2, 2}}, pads = {2, {1, 1}};
    problem.data = data;
    problem.filter = filter;
    problem.strides = strides;
    problem.pads_begin = problem.pads_end = pads;
    return problem;
}

int main()
{
    try {
        tconv::session session;
        tconv::session_layer layer(session);
        const std::vector<float> data(3 * 8 * 8, 1.0f), filter(3 * 5 * 4 * 4, 0.25f);
        std::vector<float> output(5 * 16 * 16, -1.0f);
        tconv_arrays arrays = TCONV_ARRAYS_INIT;
        arrays.data = data.data();
        arrays.filter = filter.data();
        arrays.output = output.data();
        for (int i = 0; i < 3; i++) layer.run(upsampling(), arrays);
        /* Two taps of each axis reach an inner output: 3 * 2 * 2 * 0.25. */
        std::printf("tconv-cl %s: %g\n", tconv_version(), output[16 * 8 + 8]);
        if (output[16 * 8 + 8] != 3.0f || output[0] != 0.75f) return 1;

        /* For OpenCL buffers: its executions name a queue, data and output. */
        tconv_weights weights = TCONV_WEIGHTS_INIT;
        weights.filter = filter.data();
        const tconv::device_layer on_device(session.device(), session.queue(), upsampling(),
                                            weights);
        if (on_device.bytes() != tconv_plan_filter_bytes(on_device.plan()) ||
            on_device.geometry().output_bytes != output.size() * sizeof(float))
            return 1;

        tconv::session_layer moved = std::move(layer);
        if (layer || !moved) return 1;
        arrays.filter = nullptr;
        moved.run(upsampling(), arrays);
    } catch (const tconv::error &e) {
        std::printf("as it should be: %s\n", e.what());
        return e.status() == TCONV_ERROR_ARGUMENT && std::strstr(e.what(), "filter") ? 0 : 1;
    }
    return 1;
}
