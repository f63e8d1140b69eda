// SPDX-License-Identifier: Apache-2.0
// Whether the ggml that loads this library is the one that it was compiled for.
#pragma once

#include <string>

namespace tconv_ggml
{

// Why the program's ggml cannot be served, as one sentence; empty: it can. ggml's structures and
// the numbers of its operators change while the version of its interface for backends stays, so
// only the very version is taken that the headers are of. `caller` is an address in the code that
// loads this library.
std::string unfit(const void *caller);

} // namespace tconv_ggml
