/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ interface: a layer on arrays of the host, which runs several times, and an error. */
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
    /* On a processor with PoCL, this program's threads compute, so that a layer wakes none. */
    tconv_threads_enable();
    try {
        tconv::device device(TCONV_DEVICE_DEFAULT);
        tconv::layer layer(device);
        const std::vector<float> data(3 * 8 * 8, 1.0f), filter(3 * 5 * 4 * 4, 0.25f);
        std::vector<float> output(5 * 16 * 16, -1.0f);
        tconv_tensors tensors = TCONV_TENSORS_INIT;
        tensors.data.host = data.data();
        tensors.filter.host = filter.data();
        tensors.output.host = output.data();
        for (int i = 0; i < 3; i++) layer.run(upsampling(), tensors);
        /* Two taps of each axis reach an inner output: 3 * 2 * 2 * 0.25. */
        std::printf("tconv-cl %s: %g\n", tconv_version(), output[16 * 8 + 8]);
        if (output[16 * 8 + 8] != 3.0f || output[0] != 0.75f) return 1;

        /* The layer packed the filter once, so it need not read it any more. */
        tensors.filter.host = nullptr;
        layer.run(upsampling(), tensors);
        const tconv::plan plan = layer.make_plan(upsampling());
        if (plan.geometry().output_bytes != output.size() * sizeof(float)) return 1;

        tconv::layer moved = std::move(layer);
        if (layer || !moved) return 1;
        moved.refresh(); /* the weights are forgotten */
        moved.run(upsampling(), tensors);
    } catch (const tconv::error &e) {
        std::printf("as it should be: %s\n", e.what());
        return e.status() == TCONV_ERROR_ARGUMENT && std::strstr(e.what(), "filter") ? 0 : 1;
    }
    return 1;
}
