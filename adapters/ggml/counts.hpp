// SPDX-License-Identifier: Apache-2.0
// What the plug-in did in this process. A program gets it by
// ggml_backend_reg_get_proc_address(registry, "tconv_ggml_counts"), a tconv_ggml_counts_function.
#pragma once

#include <cstdint>

struct tconv_ggml_counts {
    uint64_t jobs;      // that the library computed: convolutions with what is fused
    uint64_t operators; // of ggml's in these, views not counted
    uint64_t left;      // operators that ggml's backend for the processor computed
};

using tconv_ggml_counts_function = void (*)(struct tconv_ggml_counts *out);
