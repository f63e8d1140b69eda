// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <map>
#include <mutex>

namespace tconv_openvino
{

void check(tconv_status status, const tconv_error &error)
{
    if (status != TCONV_OK) throw Failure(error.message);
}

tconv_session *open_device(const std::string &name)
{
    static std::mutex mutex;
    static auto *hosts = new std::map<int, tconv_session *>; // as what it holds, never given back
    tconv_error error;
    int number;
    // In a forked child this throws, before the mutex, which a thread of the parent may have held.
    check(tconv_device_find(name.c_str(), &number, &error), error);
    const std::lock_guard<std::mutex> lock(mutex);
    tconv_session *&host = (*hosts)[number];
    if (host == nullptr) check(tconv_session_create(number, &host, &error), error);
    return host;
}

} // namespace tconv_openvino
