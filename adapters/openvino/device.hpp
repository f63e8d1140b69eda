// SPDX-License-Identifier: Apache-2.0
// An OpenCL device, and lanes on it: each is a queue with buffers, used by one call at a time.
#pragma once

#include <tconv_cl/tconv_cl.h>

#include <array>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace tconv_openvino
{

// What the library or OpenCL says when something cannot be done.
class Failure : public std::runtime_error
{
    using std::runtime_error::runtime_error;
};

void check(tconv_status status, const tconv_error &error);
void check_opencl(cl_int code, const char *call);

enum Role { DATA, WEIGHTS, SCALE, BIAS, SLOPE, OUTPUT, WORKSPACE, ROLES };

// Its buffers grow to what calls need and then stay. Commands run in order.
class Lane
{
  public:
    Lane(cl_context context, cl_device_id device, bool host_memory);
    ~Lane();
    Lane(const Lane &) = delete;
    Lane &operator=(const Lane &) = delete;

    cl_command_queue queue() const
    {
        return queue_;
    }
    // A buffer with the elements at `source`, which stay until finish().
    cl_mem upload(Role role, const void *source, size_t bytes);
    cl_mem space(Role role, size_t bytes);
    // A buffer whose contents download() brings to `target`.
    cl_mem output(void *target, size_t bytes);
    void download(void *target, size_t bytes);
    // Waits for all commands and forgets the caller's memory.
    void finish();

  private:
    cl_mem wrap(const void *memory, size_t bytes, cl_mem_flags flags);

    cl_context context_;
    bool host_memory_; // buffers may lie in the caller's memory: nothing is copied
    cl_command_queue queue_ = nullptr;
    std::array<cl_mem, ROLES> buffers_{};
    std::array<size_t, ROLES> sizes_{};
    std::vector<cl_mem> wrapped_;
    cl_mem output_ = nullptr;
    bool output_wrapped_ = false;
};

class Device
{
  public:
    // The device with that number, or the library's default where it is negative. Opened once, never closed: when a process
    // ends, OpenCL runtimes may be gone before this library is. Throws Failure.
    static Device &open(int64_t number);

    tconv_device *handle() const
    {
        return tconv_host_device(host_);
    }

    // A lane for one call.
    class Lease
    {
      public:
        explicit Lease(Device &device);
        ~Lease();
        Lease(const Lease &) = delete;
        Lease &operator=(const Lease &) = delete;
        Lane *operator->() const
        {
            return lane_.get();
        }

      private:
        Device &device_;
        std::unique_ptr<Lane> lane_;
    };

  private:
    explicit Device(int number);

    tconv_host *host_ = nullptr;
    bool host_memory_ = false;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Lane>> idle_;
};

} // namespace tconv_openvino
