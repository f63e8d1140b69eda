// SPDX-License-Identifier: Apache-2.0
// Which operators a scheduler of ggml's may give to this device.
#pragma once

#include "ggml.hpp"

namespace tconv_ggml
{

// True for convolutions, and for operators whose values come from one through few others. The graph
// that an operator is in is unknown, only what it reads: so the layers of a language model stay
// where they are.
bool is_claimed(const ggml_tensor *op);

} // namespace tconv_ggml
