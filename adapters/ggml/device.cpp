// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <cerrno>
#include <cstdlib>

namespace tconv_ggml
{

static Settings made;

const Settings &settings()
{
    return made;
}

// A variable's text; empty: it is not set.
static std::string variable(const char *name)
{
    const char *text = std::getenv(name);
    return text == nullptr ? "" : text;
}

static std::string refused(const char *name, const std::string &text, const char *expected)
{
    return std::string(name) + " is \"" + text + "\": it must be " + expected;
}

static std::string read_environment()
{
    const std::string type = variable("TCONV_GGML_TYPE");
    if (type == "accel")
        made.type = GGML_BACKEND_DEVICE_TYPE_ACCEL;
    else if (!type.empty() && type != "igpu")
        return refused("TCONV_GGML_TYPE", type, "igpu or accel");
    const std::string macs = variable("TCONV_GGML_LEAST_MACS");
    if (!macs.empty()) {
        char *end;
        errno = 0;
        made.least_macs = std::strtoull(macs.c_str(), &end, 10);
        if (macs[0] < '0' || macs[0] > '9' || *end != '\0' || errno != 0)
            return refused("TCONV_GGML_LEAST_MACS", macs, "a number of multiply-adds");
    }
    const std::string trace = variable("TCONV_GGML_TRACE");
    made.traces = trace == "1";
    if (!trace.empty() && trace != "0" && trace != "1")
        return refused("TCONV_GGML_TRACE", trace, "0 or 1");
    return "";
}

// What the library does, as lines of ggml's log.
static void log_event(void *, const tconv_trace_event *event)
{
    const auto ms = static_cast<unsigned long>((event->end_ns - event->begin_ns) / 1000000);
    if (event->kind == TCONV_TRACE_PLAN)
        GGML_LOG_INFO("tconv: %s %s, chosen by %s, planned in %lu ms: %s\n", event->algorithm,
                      event->tile, event->source, ms,
                      event->problem == nullptr ? "" : event->problem);
    else if (event->kind == TCONV_TRACE_PROGRAM && event->message != nullptr)
        GGML_LOG_INFO("tconv: %s does not compile: %s\n", event->name, event->message);
    else if (event->kind == TCONV_TRACE_FALLBACK)
        GGML_LOG_WARN("tconv: %s stays ggml's: %s\n", event->problem, event->message);
}

std::string make_settings()
{
    if (made.device != nullptr) return "";
    tconv_threads_enable();
    const std::string wrong = read_environment();
    if (!wrong.empty()) return wrong;
    tconv_device *device;
    tconv_error error;
    if (tconv_device_open(TCONV_DEVICE_DEFAULT, &device, &error) != TCONV_OK) return error.message;
    const uint32_t kinds = made.traces
                               ? TCONV_TRACE_PLAN | TCONV_TRACE_PROGRAM | TCONV_TRACE_FALLBACK
                               : TCONV_TRACE_FALLBACK;
    if (tconv_device_set_trace(device, kinds, log_event, nullptr, &error) != TCONV_OK) {
        tconv_device_release(device);
        return error.message;
    }
    if (variable("TCONV_GGML_LEAST_MACS").empty())
        made.least_macs = tconv_device_least_macs(device);
    made.device = device;
    return "";
}

} // namespace tconv_ggml
