// SPDX-License-Identifier: Apache-2.0
// Opens OpenCL devices, each once, for all models of the process.
#include "device.hpp"

#include <map>
#include <mutex>

namespace tconv_openvino
{

void check(tconv_status status, const tconv_error &error)
{
    if (status != TCONV_OK) throw Failure(status, error.message);
}

tconv_status open_device(const char *name, tconv_session **out, tconv_error *error)
{
    static std::mutex mutex;
    static auto *hosts =
        new std::map<int, tconv_session *>; // never released, as the sessions in it
    int number;
    // In a forked child this fails. It comes before the mutex, which a thread of the parent may
    // have held.
    const tconv_status status = tconv_device_find(name, &number, error);
    if (status != TCONV_OK) return status;
    const std::lock_guard<std::mutex> lock(mutex);
    tconv_session *&host = (*hosts)[number];
    const tconv_status opened = host != nullptr ? TCONV_OK
                                                : tconv_session_create(number, &host, error);
    if (opened == TCONV_OK) *out = host;
    return opened;
}

tconv_session *open_device(const std::string &name)
{
    tconv_session *host = nullptr;
    tconv_error error;
    check(open_device(name.c_str(), &host, &error), error);
    return host;
}

} // namespace tconv_openvino
