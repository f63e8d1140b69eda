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

// What all threads share.
struct Devices {
    std::mutex mutex;
    std::map<int, tconv_device *> open;
    uint32_t traced = 0;
    tconv_trace_callback callback = nullptr;
    void *context = nullptr;
};

static Devices &devices()
{
    static auto *all = new Devices; // never released, as the devices in it
    return *all;
}

// A new device has no callback for which tconv_device_set_trace would wait.
static tconv_status open_number(const Devices &all, int number, tconv_device **out,
                                tconv_error *error)
{
    tconv_device *made;
    const tconv_status opened = tconv_device_open(number, &made, error);
    if (opened != TCONV_OK) return opened;
    const tconv_status traced =
        tconv_device_set_trace(made, all.traced, all.callback, all.context, error);
    if (traced == TCONV_OK)
        *out = made;
    else
        tconv_device_release(made);
    return traced;
}

tconv_status open_device(const char *name, tconv_device **out, tconv_error *error)
{
    int number;
    // In a forked child this fails. It comes before the mutex, which a thread of the parent may
    // have held.
    const tconv_status status = tconv_device_find(name, &number, error);
    if (status != TCONV_OK) return status;
    Devices &all = devices();
    const std::lock_guard<std::mutex> lock(all.mutex);
    tconv_device *&device = all.open[number];
    const tconv_status opened = device != nullptr ? TCONV_OK
                                                  : open_number(all, number, &device, error);
    if (opened == TCONV_OK) *out = device;
    return opened;
}

tconv_status trace_devices(uint32_t kinds, tconv_trace_callback callback, void *context,
                           tconv_error *error)
{
    int count;
    const tconv_status status = tconv_device_count(&count, error); // fails in a forked child
    if (status != TCONV_OK) return status;
    Devices &all = devices();
    std::map<int, tconv_device *> open;
    { // without the mutex below: earlier callbacks, which are waited for, may open devices
        const std::lock_guard<std::mutex> lock(all.mutex);
        all.traced = kinds;
        all.callback = callback;
        all.context = context;
        open = all.open;
    }
    for (const auto &[number, device] : open) {
        if (device == nullptr) continue;
        const tconv_status set = tconv_device_set_trace(device, kinds, callback, context, error);
        if (set != TCONV_OK) return set;
    }
    return TCONV_OK;
}

tconv_device *open_device(const std::string &name)
{
    tconv_device *device = nullptr;
    tconv_error error;
    check(open_device(name.c_str(), &device, &error), error);
    return device;
}

} // namespace tconv_openvino
