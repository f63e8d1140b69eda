// SPDX-License-Identifier: Apache-2.0
// Opens OpenCL devices, each once.
#pragma once

#include <tconv_cl/tconv_cl.h>

#include <stdexcept>
#include <string>

namespace tconv_openvino
{

// An error of the library, as an exception.
class Failure : public std::runtime_error
{
  public:
    Failure(tconv_status status, const std::string &message)
        : std::runtime_error(message), status_(status)
    {
    }

    tconv_status status() const
    {
        return status_;
    }

    // True if the request is wrong; false if only the library cannot do it.
    bool is_wrong_request() const
    {
        return status_ < TCONV_ERROR_UNSUPPORTED;
    }

  private:
    tconv_status status_;
};

// Throws Failure if the status is not TCONV_OK.
void check(tconv_status status, const tconv_error &error);

// Opens the device with this name (see tconv_device_find; empty: the default one), or returns the
// open one. It is never closed: when a process ends, OpenCL runtimes may be gone before this
// library. Throws Failure.
tconv_device *open_device(const std::string &name);
tconv_status open_device(const char *name, tconv_device **out, tconv_error *error);

// tconv_device_set_trace for all devices, open ones and those that are opened later. One thread at
// a time, and not from a callback.
tconv_status trace_devices(uint32_t kinds, tconv_trace_callback callback, void *context,
                           tconv_error *error);

} // namespace tconv_openvino
