// SPDX-License-Identifier: Apache-2.0
// What the tests and the benchmark share: the two devices, random tensors, graphs in memory.
#pragma once

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tconv_ggml_tests
{

using Context = std::unique_ptr<ggml_context, decltype(&ggml_free)>;
using Buffer = std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)>;
using Backend = std::unique_ptr<ggml_backend, decltype(&ggml_backend_free)>;

constexpr size_t MOST_NODES = 4096;

inline Context make_context()
{
    const size_t size = MOST_NODES * ggml_tensor_overhead() +
                        ggml_graph_overhead_custom(MOST_NODES, false);
    return {ggml_init({size, nullptr, true}), ggml_free};
}

// A backend of the device with this name; ends the program without one.
inline Backend make_backend(const char *device, int threads)
{
    ggml_backend_dev_t found = ggml_backend_dev_by_name(device);
    ggml_backend_t made = found == nullptr ? nullptr : ggml_backend_dev_init(found, nullptr);
    if (made == nullptr) {
        std::fprintf(stderr, "ggml has no device %s: GGML_BACKEND_PATH must name the plug-in\n",
                     device);
        std::exit(1);
    }
    const auto set =
        reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
            ggml_backend_dev_backend_reg(found), "ggml_backend_set_n_threads"));
    if (set != nullptr) set(made, threads);
    return {made, ggml_backend_free};
}

inline void set_elements(ggml_tensor *tensor, const std::vector<float> &elements)
{
    const auto count = static_cast<int64_t>(elements.size());
    if (tensor->type == GGML_TYPE_F32) {
        ggml_backend_tensor_set(tensor, elements.data(), 0, ggml_nbytes(tensor));
    } else if (tensor->type == GGML_TYPE_F16) {
        std::vector<ggml_fp16_t> half(elements.size());
        ggml_fp32_to_fp16_row(elements.data(), half.data(), count);
        ggml_backend_tensor_set(tensor, half.data(), 0, ggml_nbytes(tensor));
    } else {
        std::vector<ggml_bf16_t> half(elements.size());
        ggml_fp32_to_bf16_row(elements.data(), half.data(), count);
        ggml_backend_tensor_set(tensor, half.data(), 0, ggml_nbytes(tensor));
    }
}

// Uniform in [least, most].
inline void set_random(ggml_tensor *tensor, float least, float most, std::mt19937 &random)
{
    std::uniform_real_distribution<float> uniform(least, most);
    std::vector<float> elements(static_cast<size_t>(ggml_nelements(tensor)));
    for (float &x : elements) x = uniform(random);
    set_elements(tensor, elements);
}

inline std::vector<float> elements_of(const ggml_tensor *tensor)
{
    std::vector<float> elements(static_cast<size_t>(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, elements.data(), 0, ggml_nbytes(tensor));
    return elements;
}

// The mean square of the differences, relative to that of the expected elements.
inline double relative_error(const std::vector<float> &got, const std::vector<float> &expected)
{
    double error = 0, square = 0;
    for (size_t i = 0; i < expected.size(); i++) {
        const double x = static_cast<double>(expected[i]), d = static_cast<double>(got[i]) - x;
        error += d * d;
        square += x * x;
    }
    return got.size() == expected.size() ? error / square : INFINITY;
}

} // namespace tconv_ggml_tests
