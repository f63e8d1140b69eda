// SPDX-License-Identifier: Apache-2.0
// OpenCL devices, each opened once.
#pragma once

#include <tconv_cl/tconv_cl.h>

#include <stdexcept>
#include <string>

namespace tconv_openvino
{

// What the library says when something cannot be done.
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

    // Whether it is the caller's mistake, and not something that only the library cannot do.
    bool is_wrong_request() const
    {
        return status_ < TCONV_ERROR_UNSUPPORTED;
    }

  private:
    tconv_status status_;
};

// Throws Failure where the status is not TCONV_OK.
void check(tconv_status status, const tconv_error &error);

// The device with that name (see tconv_device_find; empty: the default one). Opened once, never
// closed: when a process ends, OpenCL runtimes may be gone before this library is. Throws Failure.
tconv_session *open_device(const std::string &name);
tconv_status open_device(const char *name, tconv_session **out, tconv_error *error);

} // namespace tconv_openvino
