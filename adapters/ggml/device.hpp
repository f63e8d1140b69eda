// SPDX-License-Identifier: Apache-2.0
// The OpenCL device, and what the environment asks for.
#pragma once

#include "ggml.hpp"

#include <tconv_cl/tconv_cl.h>

#include <string>

namespace tconv_ggml
{

// What this process uses. Set once, before any other function of this library is called.
struct Settings {
    tconv_device *device =
        nullptr; // never released: OpenCL runtimes may be gone before this library
    enum ggml_backend_dev_type type = GGML_BACKEND_DEVICE_TYPE_IGPU; // TCONV_GGML_TYPE
    uint64_t least_macs = 0; // smaller convolutions are left to ggml: TCONV_GGML_LEAST_MACS
    bool traces = false;     // TCONV_GGML_TRACE
};

const Settings &settings();

// Reads the environment and opens the device. Returns why it failed, as one sentence; empty: it did
// not. The first call counts.
std::string make_settings();

} // namespace tconv_ggml
