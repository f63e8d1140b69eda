// SPDX-License-Identifier: Apache-2.0
// Finds in a graph of ggml's what the library computes at once: a convolution, or a transposed one,
// with what follows it.
#pragma once

#include "ggml.hpp"

#include <tconv_cl/tconv_cl.h>

#include <string>

namespace tconv_ggml
{

// The problem of a range of a graph's nodes. Tensors are the graph's.
struct Job {
    tconv_problem problem = TCONV_PROBLEM_INIT;
    tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    const ggml_tensor *weights = nullptr;
    const ggml_tensor *data = nullptr;
    const ggml_tensor *bias = nullptr, *slope = nullptr, *slope2 = nullptr; // null: absent
    const ggml_tensor *residual = nullptr;
    ggml_tensor *output = nullptr;
    int end = 0;       // one behind the range's last node
    std::string fused; // what it computes, for the trace: "CONV_TRANSPOSE_1D crop bias"
};

// True if nothing is computed for the node: a view, or a node that is not asked for.
bool is_idle(const ggml_tensor *node);

// Finds the job that begins at node `index`, with as many operators as the library computes at
// once. False: no job begins there. Reads elements of weights, which must have their values.
bool find_job(const ggml_cgraph *graph, int index, uint64_t least_macs, Job &job);

} // namespace tconv_ggml
