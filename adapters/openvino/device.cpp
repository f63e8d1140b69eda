// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace tconv_openvino
{

void check(tconv_status status, const tconv_error &error)
{
    if (status != TCONV_OK) throw Failure(error.message);
}

void check_opencl(cl_int code, const char *call)
{
    if (code != CL_SUCCESS)
        throw Failure(std::string(call) + " failed with OpenCL code " + std::to_string(code));
}

Lane::Lane(cl_context context, cl_device_id device, bool host_memory)
    : context_(context), host_memory_(host_memory)
{
    cl_int code;
    queue_ = clCreateCommandQueue(context, device, 0, &code);
    check_opencl(code, "clCreateCommandQueue");
}

Lane::~Lane()
{
    finish();
    for (cl_mem buffer : buffers_)
        if (buffer != nullptr) clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue_);
}

void Lane::finish()
{
    clFinish(queue_);
    for (cl_mem buffer : wrapped_) clReleaseMemObject(buffer);
    wrapped_.clear();
}

cl_mem Lane::space(Role role, size_t bytes)
{
    if (sizes_[role] >= bytes) return buffers_[role];
    if (buffers_[role] != nullptr) clReleaseMemObject(buffers_[role]);
    buffers_[role] = nullptr;
    sizes_[role] = 0;
    cl_int code;
    cl_mem buffer = clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code);
    check_opencl(code, "clCreateBuffer");
    buffers_[role] = buffer;
    sizes_[role] = bytes;
    return buffer;
}

// Null where the memory is not the device's own. OpenCL wants memory that it is given aligned to the types that kernels access
// (1.2, appendix C.3), which are single elements; no region is larger than its tensor, so that none overlaps another one.
cl_mem Lane::wrap(const void *memory, size_t bytes, cl_mem_flags flags)
{
    constexpr std::uintptr_t alignment = 8; // of the largest element type
    if (!host_memory_ || reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) return nullptr;
    cl_int code;
    cl_mem buffer = clCreateBuffer(context_, flags | CL_MEM_USE_HOST_PTR, bytes,
                                   const_cast<void *>(memory), &code);
    if (code != CL_SUCCESS) return nullptr;
    wrapped_.push_back(buffer);
    return buffer;
}

cl_mem Lane::upload(Role role, const void *source, size_t bytes)
{
    if (cl_mem buffer = wrap(source, bytes, CL_MEM_READ_ONLY)) return buffer;
    cl_mem buffer = space(role, bytes);
    check_opencl(
        clEnqueueWriteBuffer(queue_, buffer, CL_FALSE, 0, bytes, source, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
    return buffer;
}

cl_mem Lane::output(void *target, size_t bytes)
{
    output_ = wrap(target, bytes, CL_MEM_READ_WRITE);
    output_wrapped_ = output_ != nullptr;
    if (!output_wrapped_) output_ = space(OUTPUT, bytes);
    return output_;
}

void Lane::download(void *target, size_t bytes)
{
    if (!output_wrapped_) {
        check_opencl(
            clEnqueueReadBuffer(queue_, output_, CL_TRUE, 0, bytes, target, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
        return;
    }
    cl_int code;
    void *mapped = clEnqueueMapBuffer(queue_, output_, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr,
                                      nullptr, &code);
    check_opencl(code, "clEnqueueMapBuffer");
    check_opencl(clEnqueueUnmapMemObject(queue_, output_, mapped, 0, nullptr, nullptr),
                 "clEnqueueUnmapMemObject");
}

Device &Device::open(int64_t number)
{
    static std::mutex mutex;
    static auto *devices = new std::map<int, Device *>; // as what it holds, never given back
    if (number > INT32_MAX) throw Failure("no device has the number " + std::to_string(number));
    tconv_error error;
    int chosen = number >= 0 ? static_cast<int>(number) : -1;
    const std::lock_guard<std::mutex> lock(mutex);
    if (chosen < 0) check(tconv_device_default(&chosen, &error), error);
    Device *&device = (*devices)[chosen];
    if (device == nullptr) device = new Device(chosen);
    return *device;
}

Device::Device(int number)
{
    tconv_error error;
    check(tconv_host_create(number, &host_, &error), error);
    host_memory_ = tconv_device_properties(handle())->kind == TCONV_DEVICE_CPU;
}

Device::Lease::Lease(Device &device) : device_(device)
{
    {
        const std::lock_guard<std::mutex> lock(device.mutex_);
        if (!device.idle_.empty()) {
            lane_ = std::move(device.idle_.back());
            device.idle_.pop_back();
            return;
        }
    }
    cl_device_id id;
    check_opencl(clGetCommandQueueInfo(tconv_host_queue(device.host_), CL_QUEUE_DEVICE, sizeof id,
                                       &id, nullptr),
                 "clGetCommandQueueInfo");
    lane_ = std::make_unique<Lane>(tconv_host_context(device.host_), id, device.host_memory_);
}

Device::Lease::~Lease()
{
    lane_->finish();
    const std::lock_guard<std::mutex> lock(device_.mutex_);
    device_.idle_.push_back(std::move(lane_));
}

} // namespace tconv_openvino
