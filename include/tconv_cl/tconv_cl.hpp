/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl in C++11 and later: objects that release themselves, and errors as exceptions. Header
 * only; the functions behind it, their errors and thread rules are those of tconv_cl.h.
 *
 *     tconv_threads_enable();                                   // at the program's start: device.h
 *     tconv::device device(TCONV_DEVICE_DEFAULT);
 *     tconv::layer layer(device);                               // its filter is constant
 *     tconv_problem problem = TCONV_PROBLEM_INIT;               // and so on
 *     layer.run(problem, tensors);
 *
 * Objects can be moved but not copied. An object that was moved from, or made without arguments, is
 * empty and false. `get()` is the handle for functions of the C interface.
 *
 * A class has the name of its handle without tconv_, and a function that of the C interface without
 * the class: tconv::layer::run is tconv_layer_run. Constructors are ..._create, and ..._open if
 * they take a device's number. Each call has two forms: one throws tconv::error, one takes a
 * tconv_error & at its end, returns the status and never throws. With TCONV_CL_NO_EXCEPTIONS
 * defined there is only the second one: objects are empty until `create` or `open`. All files of a
 * program define it, or none. Callbacks must not throw. */
#ifndef TCONV_CL_TCONV_CL_HPP
#define TCONV_CL_TCONV_CL_HPP

#include "tconv_cl.h"

#include <cstddef>
#ifndef TCONV_CL_NO_EXCEPTIONS
#if !defined(__cpp_exceptions) && !defined(__EXCEPTIONS) && !defined(_CPPUNWIND)
#error "exceptions are off: define TCONV_CL_NO_EXCEPTIONS before tconv_cl.hpp is included"
#endif
#include <stdexcept>
#endif

/* The C++ interface: each class owns one handle of the C interface. */
namespace tconv
{

#ifndef TCONV_CL_NO_EXCEPTIONS
/* The error of a function of the C interface. */
class error : public std::runtime_error
{
  public:
    explicit error(const tconv_error &e)
        : std::runtime_error(e.message), status_(e.status), opencl_(e.opencl_code)
    {
    }
    tconv_status status() const noexcept
    {
        return status_;
    }
    /* The raw code; 0: none. */
    int opencl_code() const noexcept
    {
        return opencl_;
    }

  private:
    tconv_status status_;
    int opencl_;
};

/* Throws if `status` is not TCONV_OK. */
inline void check(tconv_status status, const tconv_error &e)
{
    if (status != TCONV_OK) throw error(e);
}
#endif

template <typename Handle, void (*Release)(Handle *)> class owner
{
  public:
    owner() noexcept : handle_(nullptr)
    {
    }
    /* Takes over one reference. */
    explicit owner(Handle *handle) noexcept : handle_(handle)
    {
    }
    /* `other` is empty after it. */
    owner(owner &&other) noexcept : handle_(other.release())
    {
    }
    owner &operator=(owner &&other) noexcept
    {
        if (this != &other) reset(other.release());
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner()
    {
        Release(handle_);
    }

    /* The handle, which stays owned; NULL: empty. */
    Handle *get() const noexcept
    {
        return handle_;
    }
    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }

    Handle *release() noexcept
    {
        Handle *handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    /* Releases the handle and takes over another one. */
    void reset(Handle *handle = nullptr) noexcept
    {
        Release(handle_);
        handle_ = handle;
    }

  protected:
    /* Takes the handle that `status` says was made. */
    tconv_status take(tconv_status status, Handle *handle) noexcept
    {
        if (status == TCONV_OK) reset(handle);
        return status;
    }

  private:
    Handle *handle_;
};

class device : public owner<tconv_device, tconv_device_release>
{
  public:
    device() = default;
    tconv_status open(int number, tconv_error &e) noexcept
    {
        tconv_device *made = nullptr;
        const tconv_status status = tconv_device_open(number, &made, &e);
        return take(status, made);
    }
    tconv_status create(cl_context context, cl_device_id id, tconv_error &e) noexcept
    {
        tconv_device *made = nullptr;
        const tconv_status status = tconv_device_create(context, id, &made, &e);
        return take(status, made);
    }
    tconv_status set_trace(uint32_t kinds, tconv_trace_callback callback, void *context,
                           tconv_error &e) noexcept
    {
        return tconv_device_set_trace(get(), kinds, callback, context, &e);
    }
    void trace_replay(struct _cl_command_buffer_khr *command_buffer, const char *name,
                      cl_event event) noexcept
    {
        tconv_device_trace_replay(get(), command_buffer, name, event);
    }
    /* Not of an empty object. */
    const tconv_device_info &properties() const noexcept
    {
        return *tconv_device_properties(get());
    }
    cl_context context() const noexcept
    {
        return tconv_device_context(get());
    }
    cl_device_id id() const noexcept
    {
        return tconv_device_id(get());
    }
    int threads() const noexcept
    {
        return tconv_device_threads(get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    explicit device(int number)
    {
        tconv_error e;
        check(open(number, e), e);
    }
    device(cl_context context, cl_device_id id)
    {
        tconv_error e;
        check(create(context, id, e), e);
    }
    void set_trace(uint32_t kinds, tconv_trace_callback callback, void *context)
    {
        tconv_error e;
        check(set_trace(kinds, callback, context, e), e);
    }
#endif
};

class plan : public owner<tconv_plan, tconv_plan_release>
{
  public:
    plan() = default;
    tconv_status create(tconv_device *on, const tconv_problem &problem,
                        const tconv_plan_options *options, tconv_error &e) noexcept
    {
        tconv_plan *made = nullptr;
        const tconv_status status = tconv_plan_create(on, &problem, options, &made, &e);
        return take(status, made);
    }
    tconv_status enqueue(cl_command_queue queue, const tconv_tensors &tensors, cl_uint wait_count,
                         const cl_event *wait, cl_event *done, tconv_error &e) const noexcept
    {
        return tconv_plan_enqueue(get(), queue, &tensors, wait_count, wait, done, &e);
    }
    tconv_status run(const tconv_tensors &tensors, tconv_error &e) const noexcept
    {
        return tconv_plan_run(get(), &tensors, &e);
    }
    tconv_status record(struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
                        const tconv_tensors &tensors, uint32_t wait_count, const uint32_t *wait,
                        uint32_t *done, tconv_error &e) const noexcept
    {
        return tconv_plan_record(get(), command_buffer, queue, &tensors, wait_count, wait, done,
                                 &e);
    }
    /* Not of an empty object. */
    const tconv_geometry &geometry() const noexcept
    {
        return *tconv_plan_geometry(get());
    }
    const char *algorithm() const noexcept
    {
        return tconv_plan_algorithm(get());
    }
    uint64_t workspace_bytes() const noexcept
    {
        return tconv_plan_workspace_bytes(get());
    }
    uint64_t filter_bytes() const noexcept
    {
        return tconv_plan_filter_bytes(get());
    }
    bool is_stale() const noexcept
    {
        return tconv_plan_is_stale(get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    plan(tconv_device *on, const tconv_problem &problem,
         const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(create(on, problem, options, e), e);
    }
    void enqueue(cl_command_queue queue, const tconv_tensors &tensors, cl_uint wait_count = 0,
                 const cl_event *wait = nullptr, cl_event *done = nullptr) const
    {
        tconv_error e;
        check(enqueue(queue, tensors, wait_count, wait, done, e), e);
    }
    void run(const tconv_tensors &tensors) const
    {
        tconv_error e;
        check(run(tensors, e), e);
    }
    void record(struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
                const tconv_tensors &tensors, uint32_t wait_count = 0,
                const uint32_t *wait = nullptr, uint32_t *done = nullptr) const
    {
        tconv_error e;
        check(record(command_buffer, queue, tensors, wait_count, wait, done, e), e);
    }
#endif
};

class packed_filter : public owner<tconv_packed_filter, tconv_packed_filter_release>
{
  public:
    packed_filter() = default;
    tconv_status create(const plan &of, const tconv_tensor *storage, tconv_error &e) noexcept
    {
        tconv_packed_filter *made = nullptr;
        const tconv_status status = tconv_packed_filter_create(of.get(), storage, &made, &e);
        return take(status, made);
    }
    tconv_status enqueue_pack(cl_command_queue queue, const tconv_tensor &weights,
                              cl_uint wait_count, const cl_event *wait, cl_event *done,
                              tconv_error &e) noexcept
    {
        return tconv_packed_filter_enqueue_pack(get(), queue, &weights, wait_count, wait, done, &e);
    }
    tconv_status pack(const tconv_tensor &weights, tconv_error &e) noexcept
    {
        return tconv_packed_filter_pack(get(), &weights, &e);
    }
    bool fits(const plan &other) const noexcept
    {
        return tconv_packed_filter_fits(get(), other.get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    explicit packed_filter(const plan &of, const tconv_tensor *storage = nullptr)
    {
        tconv_error e;
        check(create(of, storage, e), e);
    }
    void enqueue_pack(cl_command_queue queue, const tconv_tensor &weights, cl_uint wait_count = 0,
                      const cl_event *wait = nullptr, cl_event *done = nullptr)
    {
        tconv_error e;
        check(enqueue_pack(queue, weights, wait_count, wait, done, e), e);
    }
    void pack(const tconv_tensor &weights)
    {
        tconv_error e;
        check(pack(weights, e), e);
    }
#endif
};

/* It keeps its devices alive. */
class layer : public owner<tconv_layer, tconv_layer_release>
{
  public:
    layer() = default;
    tconv_status create(tconv_device *const *devices, int device_count, tconv_filter_use filter_use,
                        tconv_error &e) noexcept
    {
        tconv_layer *made = nullptr;
        const tconv_status status =
            tconv_layer_create(devices, device_count, filter_use, &made, &e);
        return take(status, made);
    }
    tconv_status run(const tconv_problem &problem, const tconv_tensors &tensors,
                     const tconv_plan_options *options, const tconv_run *how,
                     tconv_error &e) noexcept
    {
        return tconv_layer_run(get(), &problem, options, &tensors, how, &e);
    }
    tconv_status set(const tconv_problem &problem, const tconv_tensors &tensors,
                     const tconv_plan_options *options, const tconv_run *how,
                     tconv_error &e) noexcept
    {
        return tconv_layer_set(get(), &problem, options, &tensors, how, &e);
    }
    tconv_status prepare(const tconv_problem &problem, const tconv_shape *most,
                         const tconv_plan_options *options, tconv_error &e) noexcept
    {
        return tconv_layer_prepare(get(), &problem, most, options, &e);
    }
    tconv_status make_plan(const tconv_problem &problem, const tconv_plan_options *options,
                           plan &out, tconv_error &e) noexcept
    {
        tconv_plan *made = nullptr;
        const tconv_status status = tconv_layer_plan(get(), &problem, options, &made, &e);
        if (status == TCONV_OK) out.reset(made);
        return status;
    }
    void refresh() noexcept
    {
        tconv_layer_refresh(get());
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    explicit layer(const device &on, tconv_filter_use filter_use = TCONV_FILTER_CONSTANT)
    {
        tconv_error e;
        tconv_device *const one = on.get();
        check(create(&one, 1, filter_use, e), e);
    }
    void run(const tconv_problem &problem, const tconv_tensors &tensors,
             const tconv_plan_options *options = nullptr, const tconv_run *how = nullptr)
    {
        tconv_error e;
        check(run(problem, tensors, options, how, e), e);
    }
    void set(const tconv_problem &problem, const tconv_tensors &tensors,
             const tconv_plan_options *options = nullptr, const tconv_run *how = nullptr)
    {
        tconv_error e;
        check(set(problem, tensors, options, how, e), e);
    }
    void prepare(const tconv_problem &problem, const tconv_shape *most = nullptr,
                 const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        check(prepare(problem, most, options, e), e);
    }
    /* tconv_layer_plan. */
    plan make_plan(const tconv_problem &problem, const tconv_plan_options *options = nullptr)
    {
        tconv_error e;
        plan made;
        check(make_plan(problem, options, made, e), e);
        return made;
    }
#endif
};

/* A stream of a layer, which must live longer. */
class stream : public owner<tconv_stream, tconv_stream_release>
{
  public:
    stream() = default;
    tconv_status create(const layer &of, const tconv_problem &problem,
                        const tconv_plan_options *options, const tconv_stream_options *streaming,
                        tconv_error &e) noexcept
    {
        tconv_stream *made = nullptr;
        const tconv_status status =
            tconv_stream_create(of.get(), &problem, options, streaming, &made, &e);
        return take(status, made);
    }
    const char *algorithm() const noexcept
    {
        return tconv_stream_algorithm(get());
    }
    int64_t outputs(int64_t columns) const noexcept
    {
        return tconv_stream_outputs(get(), columns);
    }
    tconv_status push(int64_t columns, const tconv_tensors &tensors, const tconv_run *how,
                      tconv_error &e) noexcept
    {
        return tconv_stream_push(get(), columns, &tensors, how, &e);
    }
    tconv_status flush(const tconv_tensors &tensors, const tconv_run *how, tconv_error &e) noexcept
    {
        return tconv_stream_flush(get(), &tensors, how, &e);
    }
    tconv_status reset_to(int64_t columns, const tconv_tensor *history, const tconv_run *how,
                          tconv_error &e) noexcept
    {
        return tconv_stream_reset(get(), columns, history, how, &e);
    }
    tconv_status describe(tconv_stream_info &out, tconv_error &e) const noexcept
    {
        return tconv_stream_describe(get(), &out, &e);
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    stream(const layer &of, const tconv_problem &problem,
           const tconv_plan_options *options = nullptr,
           const tconv_stream_options *streaming = nullptr)
    {
        tconv_error e;
        check(create(of, problem, options, streaming, e), e);
    }
    void push(int64_t columns, const tconv_tensors &tensors, const tconv_run *how = nullptr)
    {
        tconv_error e;
        check(push(columns, tensors, how, e), e);
    }
    void flush(const tconv_tensors &tensors, const tconv_run *how = nullptr)
    {
        tconv_error e;
        check(flush(tensors, how, e), e);
    }
    /* tconv_stream_reset: `reset` is that of the handle. */
    void reset_to(int64_t columns = 0, const tconv_tensor *history = nullptr,
                  const tconv_run *how = nullptr)
    {
        tconv_error e;
        check(reset_to(columns, history, how, e), e);
    }
#endif
};

class recording : public owner<tconv_recording, tconv_recording_release>
{
  public:
    recording() = default;
    tconv_status create(const plan &of, struct _cl_command_buffer_khr *command_buffer,
                        cl_command_queue queue, const tconv_tensors &tensors, uint32_t wait_count,
                        const uint32_t *wait, uint32_t *done, tconv_error &e) noexcept
    {
        tconv_recording *made = nullptr;
        const tconv_status status = tconv_recording_create(
            of.get(), command_buffer, queue, &tensors, wait_count, wait, done, &made, &e);
        return take(status, made);
    }
    tconv_status update(const tconv_tensors &tensors, tconv_error &e) noexcept
    {
        return tconv_recording_update(get(), &tensors, &e);
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    recording(const plan &of, struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
              const tconv_tensors &tensors, uint32_t wait_count = 0, const uint32_t *wait = nullptr,
              uint32_t *done = nullptr)
    {
        tconv_error e;
        check(create(of, command_buffer, queue, tensors, wait_count, wait, done, e), e);
    }
    void update(const tconv_tensors &tensors)
    {
        tconv_error e;
        check(update(tensors, e), e);
    }
#endif
};

/* A recorded run of a layer (tconv_layer_record). Its command buffer must be released before. */
class layer_recording : public owner<tconv_layer_recording, tconv_layer_recording_release>
{
  public:
    layer_recording() = default;
    tconv_status create(const layer &of, const tconv_problem &problem,
                        const tconv_plan_options *options,
                        struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
                        const tconv_tensors &tensors, bool replaceable, uint32_t wait_count,
                        const uint32_t *wait, uint32_t *done, tconv_error &e) noexcept
    {
        tconv_layer_recording *made = nullptr;
        const tconv_status status = tconv_layer_record(of.get(), &problem, options, command_buffer,
                                                       queue, &tensors, replaceable, wait_count,
                                                       wait, done, &made, &e);
        return take(status, made);
    }
    /* With the weights of a layer, or with those of before. */
    tconv_status update(const layer *of, const tconv_tensors &tensors, tconv_error &e) noexcept
    {
        return tconv_layer_recording_update(get(), of == nullptr ? nullptr : of->get(), &tensors,
                                            &e);
    }

#ifndef TCONV_CL_NO_EXCEPTIONS
    layer_recording(const layer &of, const tconv_problem &problem,
                    const tconv_plan_options *options,
                    struct _cl_command_buffer_khr *command_buffer, cl_command_queue queue,
                    const tconv_tensors &tensors, bool replaceable = false, uint32_t wait_count = 0,
                    const uint32_t *wait = nullptr, uint32_t *done = nullptr)
    {
        tconv_error e;
        check(create(of, problem, options, command_buffer, queue, tensors, replaceable, wait_count,
                     wait, done, e),
              e);
    }
    void update(const layer *of, const tconv_tensors &tensors)
    {
        tconv_error e;
        check(update(of, tensors, e), e);
    }
#endif
};

} // namespace tconv

#endif
