// SPDX-License-Identifier: Apache-2.0
#include "version.hpp"

#include "ggml.hpp"

#include <dlfcn.h>

#include <cstring>

namespace tconv_ggml
{

// The file that holds the code or data at an address; NULL: unknown.
static const void *file_of(const void *address)
{
    Dl_info info;
    return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// The numbers that this library knows operators by.
static constexpr struct {
    ggml_op op;
    const char *name;
} OPERATORS[] = {
    {GGML_OP_ADD, "ADD"},
    {GGML_OP_MUL_MAT, "MUL_MAT"},
    {GGML_OP_RESHAPE, "RESHAPE"},
    {GGML_OP_VIEW, "VIEW"},
    {GGML_OP_IM2COL, "IM2COL"},
    {GGML_OP_COL2IM_1D, "COL2IM_1D"},
    {GGML_OP_CONV_2D, "CONV_2D"},
    {GGML_OP_CONV_TRANSPOSE_1D, "CONV_TRANSPOSE_1D"},
    {GGML_OP_CONV_TRANSPOSE_2D, "CONV_TRANSPOSE_2D"},
    {GGML_OP_LEAKY_RELU, "LEAKY_RELU"},
    {GGML_OP_UNARY, "UNARY"},
};

std::string unfit(const void *caller)
{
    const std::string ours = TCONV_GGML_VERSION, theirs = ggml_version();
    if (theirs != ours)
        return "this plug-in is for ggml " + ours + ", and the program has ggml " + theirs +
               ": build it with TCONV_GGML_SOURCE for that version";
    for (const auto &row : OPERATORS)
        if (std::strcmp(ggml_op_name(row.op), row.name) != 0)
            return "the program's ggml calls itself " + theirs + ", but its operator " +
                   std::to_string(row.op) + " is " + ggml_op_name(row.op) + " instead of " +
                   row.name +
                   ": build the plug-in with TCONV_GGML_SOURCE for the program's sources";
    if (file_of(caller) != file_of(dlsym(RTLD_DEFAULT, "ggml_backend_load")))
        return "the program has ggml inside, and the plug-in got another copy, libggml.so: only "
               "programs that use ggml as shared libraries can load it";
    return "";
}

} // namespace tconv_ggml
